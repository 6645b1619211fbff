"""Small releases of all models, styles, criteria and types, drawn by a seed."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from helpers import write_table
from holders import anonymize, write_coding
from recipients import carry_out

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.protocol import Engine
from anonspark.errors import AnonsparkError
from anonspark.pipeline.run import run
from anonspark.reporting.build_report import report_release
from anonspark.sharing.holders.union import unite

MODELS = (
    *("su-mondrian", "smondrian", "mondrian", "microaggregation", "full-domain", "canon"),
    *("rho-gain", "u-mondrian", "u-canon", "mapping", "auto"),
)
ALL_MODELS_AND_STYLES = (*range(33), 70, 105, 149)
"""Seeds of releases of every model in every style, and of three that leave records out."""

STYLES = ("interval", "bounds", "mean")
_FORMATS = ("parquet", "parquet", "csv", "json", "orc")
_BY_LEVELS = ("full-domain", "rho-gain")
_DAY = datetime.date(1950, 1, 1)
_MOMENT = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
_CITIES = ("Adana", "Bursa", "Konya", "Rize", "Izmir")
_DIAGNOSES = ("flu", "cold", "a 'b'", "fraktür", "gout, acute")

# Arrow's type of a column, how a value is drawn, and rules by which it is generalized.
_KINDS: Mapping[str, tuple[pa.DataType, Callable[[random.Random], Any], tuple[Any, ...]]] = {
    "age": (
        pa.int64(),
        lambda d: d.randint(17, 90),
        ({"intervals": [5, 10, 20]}, {"intervals": [5, 20], "top": 70}),
    ),
    "small": (pa.int16(), lambda d: d.randint(-9, 9), ({"intervals": [3, 9], "origin": 1},)),
    "height": (pa.float64(), lambda d: round(d.gauss(170, 10), 1), ({"intervals": [10, 50]},)),
    "share": (pa.float32(), lambda d: d.randint(0, 9) / 8, ()),
    "pay": (pa.decimal128(9, 2), lambda d: Decimal(d.randint(-500, 5000)) / 100, ()),
    "born": (
        pa.date32(),
        lambda d: _DAY + datetime.timedelta(days=d.randint(0, 9000)),
        ({"calendar": ["month", "year"]}, {"calendar": ["quarter", "decade"]}),
    ),
    "seen": (
        pa.timestamp("us", "UTC"),
        lambda d: _MOMENT + datetime.timedelta(minutes=d.randint(0, 10**5)),
        (),
    ),
    "member": (pa.bool_(), lambda d: d.random() < 0.4, ()),
    "sex": (pa.string(), lambda d: d.choice("fm"), ()),
    "city": (pa.string(), lambda d: d.choice(_CITIES), ("file",)),
    "postal code": (
        pa.string(),
        lambda d: f"{d.randint(100, 130)}x",
        ({"prefix": [2, 3]}, {"keep": [3, 1]}),
    ),
}


@dataclass(frozen=True)
class SoundRelease:
    """A release, and the table that it was made of; None where there is none to match with."""

    path: Path
    original: Path | None
    input_format: str
    title: str


def write_hierarchy(folder: Path) -> Path:
    """Write the hierarchy of the cities."""
    path = folder / "cities.csv"
    south = ("Adana", "Konya")
    path.write_text("".join(f"{c},{'south' if c in south else 'north'},*\n" for c in _CITIES))
    return path


def draw_table(draw: random.Random, names: list[str], rows: int, missing: float) -> pa.Table:
    """Return people with these quasi-identifiers, some values missing."""

    def column(make: Callable[[random.Random], Any], share: float) -> list[Any]:
        return [None if draw.random() < share else make(draw) for _ in range(rows)]

    columns = {name: pa.array(column(_KINDS[name][1], missing), _KINDS[name][0]) for name in names}
    weights = [9, 7, 5, 3, 2]
    columns["diagnosis"] = pa.array(
        column(lambda d: d.choices(_DIAGNOSES, weights)[0], draw.choice([0, 0, 0.03])), pa.string()
    )
    columns["score"] = pa.array(column(lambda d: d.randint(0, 5), 0), pa.int32())
    columns["visits"] = pa.array(column(lambda d: d.randint(0, 5), 0.05), pa.int64())
    people = rows if draw.random() < 0.5 else rows * 2 // 3
    columns["person"] = pa.array([f"P{n % people:04}" for n in range(rows)])
    return pa.table(columns)


def draw_privacy(draw: random.Random, k: int) -> dict[str, Any]:
    """Return what is required, as criteria that a table of some hundred records can satisfy."""
    criteria: list[dict[str, Any]] = [
        {"l_diversity": {"attribute": "diagnosis", "l": 2}},
        {"l_diversity": {"attribute": "diagnosis", "l": 1.8, "kind": "entropy"}},
        {"l_diversity": {"attribute": "diagnosis", "l": 2, "c": 3, "kind": "recursive"}},
        {"t_closeness": {"attribute": "diagnosis", "t": 0.6}},
        {"t_closeness": {"attribute": "score", "t": 0.5, "distance": "ordered"}},
        {"alpha_k_anonymity": {"attribute": "diagnosis", "alpha": 0.8}},
        {"beta_likeness": {"attribute": "diagnosis", "beta": 6}},
    ]
    privacy: dict[str, Any] = {"k": k}
    for criterion in draw.sample(criteria, draw.choice([0, 1, 1, 2])):
        privacy.update(criterion)
    if draw.random() < 0.35:
        # Distinct values alone can be counted by people.
        distinct = [one for one in criteria[:1] if one["l_diversity"] == privacy.get("l_diversity")]
        privacy = {"k": k, "unit": "person", **dict(*distinct)}
    return privacy


def draw_configuration(
    draw: random.Random, folder: Path, model: str, style: str
) -> tuple[dict[str, Any], pa.Table]:
    """Return a configuration, without input and output, and a table for it."""
    cities = write_hierarchy(folder)
    names = draw.sample(sorted(_KINDS), draw.randint(2, 4))
    by_levels = model in _BY_LEVELS or (model == "mapping" and draw.random() < 0.3)
    if by_levels:
        names = [name for name in names if _KINDS[name][2]] or ["age", "city"]
    attributes: dict[str, Any] = {"person": "identifier"}
    for name in names:
        rules = _KINDS[name][2]
        attributes[name] = {"role": "quasi_identifier"}
        if rules and (by_levels or draw.random() < 0.3):
            rule = draw.choice(rules)
            attributes[name]["hierarchy"] = str(cities) if rule == "file" else rule
        if draw.random() < 0.3:
            attributes[name]["weight"] = draw.choice([0.5, 2, 3])
        if name == "age" and draw.random() < 0.3:
            attributes[name]["range"] = [0, 120]
        if name == "sex" and draw.random() < 0.5 and "hierarchy" not in attributes[name]:
            attributes[name]["order"] = ["m", "f"]
    attributes |= {"diagnosis": "sensitive", "score": "sensitive", "visits": "insensitive"}
    missing = draw.choice(["drop", "category", "error"])
    share = 0 if missing == "error" else draw.choice([0.0, 0.04, 0.1])
    document: dict[str, Any] = {
        "attributes": attributes,
        "missing": missing,
        "privacy": draw_privacy(draw, draw.choice([2, 3, 3, 5])),
        "output": {"style": style},
        "execution": {"seed": draw.getrandbits(62)},
    }
    if draw.random() < 0.3:
        document["report"] = {"title": "Visits", "purpose": "A test", "contact": "a@b.example"}
    if document["privacy"].get("unit") and draw.random() < 0.5:
        document["output"]["pseudonyms"] = {"person": "patient"}
        document["privacy"]["allow_alone"] = True
    if draw.random() < 0.2:
        document["output"]["format"] = "orc"
    if model in _BY_LEVELS:
        document["model"] = {"name": model, "suppression_limit": draw.choice([0.1, 0.4, 1.0])}
        if draw.random() < 0.6:  # then the release says which values the records have
            if "unit" not in document["privacy"]:
                document["privacy"]["t_closeness"] = {"attribute": "diagnosis", "t": 0.8}
            document["model"]["maximum_levels"] = {names[0]: 1}
        if draw.random() < 0.3:
            document["model"]["residual"] = "suppress"
    elif model != "mapping":
        document["model"] = {"name": model}
    if style != "mean" and draw.random() < 0.2:
        document["evaluate"] = {"information": True, "association": {"target": "score"}}
    if style != "mean" and draw.random() < 0.15:
        document["gates"] = {"gcp": {"max": 1.0}, "rows_published": {"min": 1}}
    return document, draw_table(draw, names, draw.randint(60, 220), share)


def make_release(
    seed: int, folder: Path, *, engine: Engine | None = None, tries: int = 40
) -> SoundRelease:
    """Make the release of a seed; all models and styles come in 33 seeds that follow one another.

    What was drawn is drawn again where it is refused: some options exclude others.
    """
    model, style = MODELS[seed % len(MODELS)], STYLES[seed % len(STYLES)]
    if model in _BY_LEVELS:
        style = "interval"
    elif model == "mapping" and style == "mean":
        style = "bounds"
    draw = random.Random(seed)  # noqa: S311
    folder.mkdir(parents=True)
    engine = engine or LocalEngine()
    refusals = []
    for attempt in range(tries):
        document, table = draw_configuration(draw, folder, model, style)
        input_format = draw.choice(_FORMATS)
        path = write_table(folder / f"input-{attempt}.{input_format}", table, input_format)
        document["input"] = {"path": str(path), "format": input_format}
        if input_format == "csv":
            document["input"]["options"] = {"header": "true", "inferSchema": "true"}
        release = folder / f"release-{attempt}"
        document["output"]["path"] = str(release)
        try:
            if model == "mapping":
                _run_with_mapping(engine, document, table, folder / f"earlier-{attempt}", draw)
            else:
                run(engine, parse_configuration(document))
        except AnonsparkError as error:
            refusals.append(f"{type(error).__name__}: {error}")
            continue
        if draw.random() < 0.15:
            report_release(engine, str(release))
        matched = path if style != "mean" else None
        return SoundRelease(release, matched, input_format, f"seed {seed}: {model}, {style}")
    raise AssertionError(f"nothing that was drawn was accepted: {refusals}")


def _run_with_mapping(
    engine: Engine, document: dict[str, Any], table: pa.Table, earlier: Path, draw: random.Random
) -> None:
    """Publish the records, and then two thirds of them by the mapping of the first release."""
    levelled = all(
        isinstance(each, str) or "hierarchy" in each or each.get("role") != "quasi_identifier"
        for each in document["attributes"].values()
    )
    first = {
        **document,
        "input": {"path": str(earlier) + ".parquet", "format": "parquet"},
        "model": {"name": "full-domain" if levelled else draw.choice(["su-mondrian", "canon"])},
        "output": {**document["output"], "path": str(earlier)},
    }
    pq.write_table(table, first["input"]["path"])
    run(engine, parse_configuration(first))
    document["model"] = {"name": "mapping", "release": str(earlier)}
    document["model"]["unfit"] = draw.choice(["merge", "suppress"])
    run(engine, parse_configuration(document))


def make_union(folder: Path, *, by_holder: bool) -> SoundRelease:
    """Unite the releases of two holders."""
    privacy = {"k": 3, "l_diversity": {"attribute": "illness", "l": 2}}
    coding = write_coding(folder, privacy)
    draw = random.Random(by_holder)  # noqa: S311
    for name in ("north", "south"):
        people = {
            "age": [draw.randint(20, 40) for _ in range(60)],
            "sex": [draw.choice(["female", "male"]) for _ in range(60)],
            "illness": [draw.choice(_DIAGNOSES) for _ in range(60)],
        }
        anonymize(folder, name, people, coding)
    path = folder / "union"
    paths = [str(folder / name) for name in ("north", "south")]
    unite(LocalEngine(), paths, str(path), holder_column="clinic" if by_holder else None)
    return SoundRelease(path, None, "parquet", f"union, by holder: {by_holder}")


def make_recipients(folder: Path) -> list[SoundRelease]:
    """Make a release for each of two recipients."""
    draw = random.Random(3)  # noqa: S311
    names = ["age", "height", "sex", "city"]
    table = draw_table(draw, names, 200, 0.03)
    table = table.set_column(
        table.schema.get_field_index("person"), "person", pa.array(range(len(table)))
    )
    folder.mkdir(parents=True)
    source = write_table(folder / "people.parquet", table)
    attributes = {"person": "identifier"} | dict.fromkeys(names, "quasi_identifier")
    plan = {
        "base": {
            "input": {"path": str(source)},
            "attributes": attributes | {"diagnosis": "sensitive"},
            "privacy": {"k": 2},
            "model": {"name": "smondrian"},
            "execution": {"seed": 7},
        },
        "subject": "person",
        "output": str(folder / "releases"),
        "recipients": {
            "a": {"approved": "x", "columns": [*names[:2], "diagnosis"], "privacy": {"k": 5}},
            "b": {"approved": "x", "columns": [*names[1:], "diagnosis"], "where": {"sex": ["f"]}},
        },
    }
    releases = carry_out(plan).releases
    return [
        SoundRelease(Path(release.path), None, "parquet", f"recipient {name}")
        for name, release in releases.items()
    ]


def make_sample(folder: Path) -> SoundRelease:
    """Publish a sample with weights and a copy, without the classes that lose most."""
    folder.mkdir(parents=True)
    draw = random.Random(5)  # noqa: S311
    names = ["age", "city", "sex"]
    table = draw_table(draw, names, 200, 0.05)
    weights = [round(draw.uniform(1, 9), 2) for _ in range(len(table))]
    path = write_table(folder / "people.parquet", table.append_column("weight", [weights]))
    roles = {"person": "identifier", "weight": "identifier", "diagnosis": "sensitive"}
    document = {
        "input": {"path": str(path)},
        "attributes": roles | dict.fromkeys(names, "quasi_identifier"),
        "missing": "drop",
        "privacy": {
            "k": 3,
            "t_closeness": {"attribute": "diagnosis", "t": 0.7, "distance": "maximum"},
        },
        "model": {"name": "su-mondrian", "suppression_limit": 0.1},
        "evaluate": {"risk": {"weights": "weight"}},
        "output": {"path": str(folder / "release"), "copies": ["csv"]},
        "execution": {"seed": 77},
    }
    run(LocalEngine(), parse_configuration(document))
    return SoundRelease(folder / "release", path, "parquet", "a sample with weights")


def catalogue(folder: Path, seeds: Iterable[int]) -> list[SoundRelease]:
    """Make the releases of these seeds, two unions, two releases of a plan, and a sample."""
    return [
        *(make_release(seed, folder / f"{seed}") for seed in seeds),
        *(make_union(folder / f"union-{each}", by_holder=each) for each in (False, True)),
        *make_recipients(folder / "recipients"),
        make_sample(folder / "sample"),
    ]
