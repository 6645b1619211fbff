"""The command ``anonspark demo``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anonspark.cli.command import IN_PROCESS, Call, command

if TYPE_CHECKING:
    import pyarrow as pa

    from anonspark.engine.protocol import Engine
    from anonspark.pipeline.context import Release
    from anonspark.presentation.terminal import Block

    Shown = tuple[pa.Table, pa.Table]


@command(*IN_PROCESS)
def demo(
    call: Call,
    out: Annotated[Path, typer.Option(help="Directory for everything that it makes.")] = Path(
        "anonspark-demo"
    ),
    rows: Annotated[int, typer.Option(min=100, help="People to generate.")] = 20_000,
    spark: Annotated[bool, typer.Option("--spark", help="Work with an embedded Spark.")] = False,
) -> None:
    """Anonymize generated people, and show the result."""

    def generate_and_anonymize(engine: Engine) -> tuple[Path, Release, Shown | None]:
        import pyarrow.parquet as pq

        from anonspark.demo.people import find_class, prepare_demo
        from anonspark.labels.regions import published_attributes
        from anonspark.pipeline.run import run as run_pipeline
        from anonspark.release.manifest import read_manifest

        path, configuration = prepare_demo(out, rows)
        release = run_pipeline(
            engine, configuration, progress=call.progress, purpose="demonstration"
        )
        (people,) = configuration.input.paths
        attributes = published_attributes(read_manifest(engine.files, release.path))
        published = pq.read_table(f"{release.path}/data")
        return path, release, find_class(pq.read_table(people), published, attributes)

    chosen = replace(call, engine="spark" if spark else "local")
    path, release, shown = chosen.work(generate_and_anonymize)

    def blocks(_: object) -> Iterator[Block]:
        """Yield five people before and after, and the card of the release."""
        from anonspark.cli.display import record_blocks
        from anonspark.presentation.release import published_card

        if shown:
            before, after = (table.slice(0, 5) for table in shown)
            names = ["birth_date", "sex", "postal_code", "diagnosis"]
            people = before.select(["full_name", *names])
            yield from record_blocks("Before: five invented people", people)
            yield from record_blocks("After: the same five people", after.select(names))
        yield published_card(
            release,
            (
                ("settings", str(path)),
                ("data", f"{release.path}/data (Parquet)"),
                ("metrics", f"{release.path}/metrics (Parquet)"),
                ("manifest", f"{release.path}/manifest.json"),
                ("prove it", f"anonspark verify {release.path}"),
                ("see it", f"anonspark report {release.path}"),
                ("change it", f"anonspark run {path} --set privacy.k=50"),
            ),
        )

    document = {"configuration": str(path), "path": release.path, "summary": release.summary}
    call.show(document, blocks, is_answer=False)
