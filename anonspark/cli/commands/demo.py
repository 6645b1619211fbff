"""The commands ``anonspark demo``, ``generate`` and ``fetch``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anonspark.cli.logs import LOG
from anonspark.cli.options import AsJson, Master, Quiet
from anonspark.cli.printing import print_json
from anonspark.cli.terminal import OUT
from anonspark.cli.working import work_with_engine, work_with_spark
from anonspark.errors import ConfigurationError

if TYPE_CHECKING:
    import pyarrow as pa

    from anonspark.engine.protocol import Engine
    from anonspark.engine.spark.engine import SparkEngine
    from anonspark.pipeline.released import Release

    Shown = tuple[pa.Table, pa.Table]


def demo(
    out: Annotated[Path, typer.Option(help="Directory for everything that it makes.")] = Path(
        "anonspark-demo"
    ),
    rows: Annotated[int, typer.Option(min=100, help="People to generate.")] = 20_000,
    spark: Annotated[bool, typer.Option("--spark", help="Work with an embedded Spark.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Anonymize generated people, and show the result."""
    from anonspark.cli.display import show_records
    from anonspark.cli.verdict_display import show_verdict

    progress = LOG.get().follow(quiet=quiet)

    def generate_and_anonymize(engine: Engine) -> tuple[Path, Release, Shown | None]:
        import pyarrow.parquet as pq

        from anonspark.demo.demo import find_class, prepare_demo
        from anonspark.pipeline.run import run as run_pipeline
        from anonspark.release.manifest import read_manifest
        from anonspark.release.regions import published_attributes

        path, configuration = prepare_demo(out, rows)
        release = run_pipeline(engine, configuration, progress=progress, purpose="demonstration")
        (people,) = configuration.input.paths
        attributes = published_attributes(read_manifest(engine.files, release.path))
        published = pq.read_table(f"{release.path}/data")
        return path, release, find_class(pq.read_table(people), published, attributes)

    path, release, shown = work_with_engine(
        "spark" if spark else "local", None, None, generate_and_anonymize
    )
    if as_json:
        summary = release.summary
        print_json({"configuration": str(path), "path": release.path, "summary": summary})
        return
    if shown:
        before, after = (table.slice(0, 5) for table in shown)
        names = ["birth_date", "sex", "postal_code", "diagnosis"]
        show_records(OUT, "Before: five invented people", before.select(["full_name", *names]))
        show_records(OUT, "After: the same five people", after.select(names))
    show_verdict(OUT, release)
    OUT.print(
        f"Configuration: {path}",
        f"Release:       {release.path}/data (Parquet)",
        f"Metrics:       {release.path}/metrics (Parquet)",
        f"Manifest:      {release.path}/manifest.json",
        f"Prove it:      anonspark verify {release.path}",
        f"See it:        anonspark report {release.path}",
        f"Change it:     anonspark run {path} --set privacy.k=50",
        sep="\n",
    )


def generate(
    rows: Annotated[int, typer.Option(help="People to generate.")],
    out: Annotated[str, typer.Option(help="Directory to write to; must not exist.")],
    seed: Annotated[int, typer.Option(help="Another seed makes other people.")] = 0,
    format: Annotated[str, typer.Option(help="parquet, csv, orc or json.")] = "parquet",
    master: Master = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write a table of invented people, of any size, in parallel."""
    progress = LOG.get().follow(quiet=quiet)

    def write(engine: SparkEngine) -> None:
        from anonspark.demo.people import write_people

        with progress.stage("generate people", rows=rows):
            write_people(engine.session, rows, out, seed, format)

    work_with_spark(master, write)
    if as_json:
        print_json({"rows": rows, "path": out, "format": format})
    else:
        OUT.print(f"{rows:,} people at {out}")


def fetch(
    name: Annotated[str, typer.Argument(help="Data set: adult.")],
    out: Annotated[Path, typer.Option(help="Directory to write to.")],
    url: Annotated[
        str | None, typer.Option(help="Where the original files are, instead of UCI's archive.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Download a public data set, check it and write it as CSV."""
    from anonspark.demo.fetch import ADULT_URL, fetch_adult

    if name != "adult":
        raise ConfigurationError(f"fetch: no data set {name!r}; expected adult")
    with LOG.get().follow(quiet=quiet).stage(f"fetch {name}"):
        paths = fetch_adult(out, base_url=url or ADULT_URL)
    if as_json:
        print_json({"files": [str(path) for path in paths]})
        return
    for path in paths:
        OUT.print(str(path))
