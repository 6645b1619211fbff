"""Two releases cannot be joined by their pseudonyms, whatever it is that they differ in.

Pairs of runs differ in one thing that decides what is published, and have no pseudonym in common;
or in what decides nothing, and have the same.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import interrupted
from helpers import configuration_file, published, write_table
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anonspark.config import load_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.spark.engine import SparkEngine
from anonspark.errors import ConfigurationError
from anonspark.pipeline.run import run

Row = dict[str, Any]

K = 3


def visits() -> list[Row]:
    """Return two visits of each of 30 patients."""
    draw = random.Random(11)  # noqa: S311 - no secret
    return [
        {
            "patient": f"P{number:02}",
            "age": draw.randrange(20, 80),
            "city": draw.choice(["Bonn", "Jena", "Kiel", "Ulm"]),
            "ill": draw.choice(["flu", "cold", "cough"]),
            "nights": draw.randrange(9),
            "note": "not listed",
        }
        for number in range(30)
        for _ in range(2)
    ]


CITIES = ["Bonn;west;*", "Kiel;north;*", "Jena;east;*", "Ulm;south;*"]


class World:
    """A table, a configuration, and the files that it names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows = visits()
        self.cities = list(CITIES)
        self.sections: dict[str, Any] = {
            "attributes": {
                "patient": "identifier",
                "age": {"role": "quasi_identifier", "range": [0, 120]},
                "city": {"role": "quasi_identifier", "hierarchy": str(folder / "cities.csv")},
                "ill": "sensitive",
                "nights": "insensitive",
            },
            "privacy": {"k": K, "unit": "patient", "allow_alone": True},
            "model": {"name": "smondrian"},
            "output": {"pseudonyms": {"patient": "person"}},
            "execution": {"seed": 2**40},
        }

    def pseudonyms(self, engine: Any = None, **options: Any) -> set[str]:
        """Return those of a release that is made of it, always at the same place."""
        write_table(self.folder / "input.parquet", pa.Table.from_pylist(self.rows))
        (self.folder / "cities.csv").write_text("\n".join(self.cities) + "\n")
        shutil.rmtree(self.folder / "release", ignore_errors=True)
        configuration = load_configuration(configuration_file(self.folder, **self.sections))
        run(engine or LocalEngine(), configuration, **options)
        (column,) = self.sections["output"]["pseudonyms"].values()
        return set(published(self.folder / "release")[column].to_pylist())


def changed_rows(change: Callable[[list[Row], random.Random], None]) -> Callable[..., None]:
    def apply(world: World, draw: random.Random) -> None:
        change(world.rows, draw)

    return apply


def changed_sections(change: Callable[[dict[str, Any]], None]) -> Callable[..., None]:
    def apply(world: World, draw: random.Random) -> None:  # noqa: ARG001
        change(world.sections)

    return apply


def _merge_patients(rows: list[Row], draw: random.Random) -> None:
    one, other = draw.sample(range(30), 2)
    for row in rows:
        if row["patient"] == f"P{one:02}":
            row["patient"] = f"P{other:02}"


def _swap_patients(rows: list[Row], draw: random.Random) -> None:
    """Neither the identifiers nor the records are others, only whose they are."""
    one, other = draw.sample(range(30), 2)
    first, second = rows[2 * one], rows[2 * other]
    first["patient"], second["patient"] = second["patient"], first["patient"]


def _rename_patient(rows: list[Row], draw: random.Random) -> None:
    rows[draw.randrange(60)]["patient"] = "P99"


def _change(name: str, value: Any) -> Callable[[list[Row], random.Random], None]:
    def apply(rows: list[Row], draw: random.Random) -> None:
        rows[draw.randrange(60)][name] = value

    return apply


def _remove(rows: list[Row], draw: random.Random) -> None:
    del rows[draw.randrange(60)]


def _other_groups(world: World, draw: random.Random) -> None:  # noqa: ARG001
    """One city lies elsewhere, which not every class shows."""
    world.cities[1] = "Kiel;west;*"


def _other_order(world: World, draw: random.Random) -> None:  # noqa: ARG001
    world.cities = [*world.cities[2:], *world.cities[:2]]


def _set(section: str, **keys: Any) -> Callable[[dict[str, Any]], None]:
    def apply(sections: dict[str, Any]) -> None:
        sections[section] = {**sections.get(section, {}), **keys}

    return apply


def _attribute(name: str, **keys: Any) -> Callable[[dict[str, Any]], None]:
    def apply(sections: dict[str, Any]) -> None:
        own = sections["attributes"][name]
        sections["attributes"][name] = {**({"role": own} if isinstance(own, str) else own), **keys}

    return apply


def _reorder(sections: dict[str, Any]) -> None:
    attributes = sections["attributes"]
    sections["attributes"] = {"ill": attributes.pop("ill"), **attributes}


DECIDES: dict[str, Callable[..., None]] = {
    "patients merged": changed_rows(_merge_patients),
    "visits swapped": changed_rows(_swap_patients),
    "patient renamed": changed_rows(_rename_patient),
    "age": changed_rows(_change("age", 81)),
    "city": changed_rows(_change("city", None)),
    "illness": changed_rows(_change("ill", "gout")),
    "nights": changed_rows(_change("nights", 10)),
    "one visit less": changed_rows(_remove),
    "hierarchy": _other_groups,
    "order of a hierarchy": _other_order,
    "k": changed_sections(_set("privacy", k=K + 1)),
    "l": changed_sections(_set("privacy", l_diversity={"attribute": "ill", "l": 2})),
    "seed": changed_sections(_set("execution", seed=2**40 + 1)),
    "model": changed_sections(lambda own: own.update(model={"name": "microaggregation"})),
    "split": changed_sections(
        lambda own: own.update(model={"name": "smondrian", "split": "relaxed"})
    ),
    "style": changed_sections(_set("output", style="bounds")),
    "missing": changed_sections(lambda sections: sections.update(missing="category")),
    "markers": changed_sections(_set("input", missing_markers=["", "?", "none"])),
    "range": changed_sections(_attribute("age", range=[0, 130])),
    "weight": changed_sections(_attribute("age", weight=2.0)),
    "type": changed_sections(_attribute("age", type="number")),
    "order": changed_sections(_attribute("ill", order=["flu", "cold", "cough", "gout"])),
    "order of attributes": changed_sections(_reorder),
    "name of the column": changed_sections(_set("output", pseudonyms={"patient": "someone"})),
    "one column less": changed_sections(
        lambda sections: sections["attributes"].pop("nights", None)
    ),
    "role": changed_sections(lambda sections: sections["attributes"].update(nights="sensitive")),
}


@pytest.fixture(scope="module")
def world_and_pseudonyms(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, set[str]]:
    world = World(tmp_path_factory.mktemp("world"))
    return world, world.pseudonyms()


@pytest.mark.night
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(
    names=st.lists(st.sampled_from(sorted(DECIDES)), min_size=1, max_size=2, unique=True),
    draw=st.randoms(use_true_random=False),
)
def test_whatever_decides_changes_all(
    world_and_pseudonyms: tuple[World, set[str]], names: list[str], draw: random.Random
) -> None:
    world, first = world_and_pseudonyms
    other = World(world.folder)
    for name in names:
        DECIDES[name](other, draw)
    found = other.pseudonyms()
    assert found
    assert not first & found


@pytest.mark.parametrize("name", DECIDES)
def test_each_alone(world_and_pseudonyms: tuple[World, set[str]], name: str) -> None:
    world, first = world_and_pseudonyms
    other = World(world.folder)
    DECIDES[name](other, random.Random(3))  # noqa: S311 - no secret
    found = other.pseudonyms()
    assert len(found) >= 20
    assert not first & found


@settings(max_examples=10, suppress_health_check=list(HealthCheck))
@given(draw=st.randoms(use_true_random=False), task_rows=st.sampled_from([10, 250_000]))
def test_what_decides_nothing_changes_none(
    world_and_pseudonyms: tuple[World, set[str]], draw: random.Random, task_rows: int
) -> None:
    """Order and files of the rows, columns that are not listed, places, and how work is done."""
    world, first = world_and_pseudonyms
    other = World(world.folder)
    draw.shuffle(other.rows)
    for row in other.rows:
        row["note"] = draw.choice(["a", "b"])
    parts = world.folder / "parts"
    shutil.rmtree(parts, ignore_errors=True)
    write_table(parts / "1.parquet", pa.Table.from_pylist(other.rows[:20]))
    write_table(parts / "2.parquet", pa.Table.from_pylist(other.rows[20:]))
    other.sections["input"] = {"path": str(parts)}
    other.sections["execution"]["task_rows"] = task_rows
    assert other.pseudonyms(run_id="another") == first


def test_the_release_that_is_mapped(tmp_path: Path) -> None:
    """Another earlier release at the same path makes other classes, or other labels of the same."""
    found = []
    for style, k in (("interval", K), ("interval", 2 * K), ("bounds", K)):
        earlier = World(tmp_path)
        earlier.sections["privacy"]["k"] = k
        earlier.sections["output"]["style"] = style
        # Regions without their data are enough.
        earlier.pseudonyms()
        shutil.rmtree(tmp_path / "earlier", ignore_errors=True)
        shutil.copytree(tmp_path / "release", tmp_path / "earlier")
        mapped = World(tmp_path)
        mapped.sections["model"] = {"name": "mapping", "release": str(tmp_path / "earlier")}
        found.append(mapped.pseudonyms())
        assert mapped.pseudonyms() == found[-1]
    assert not found[0] & found[1]


def test_labels_of_a_mapped_release(tmp_path: Path) -> None:
    """Its records are the same, its classes hold the same, and only a label is wider."""
    earlier = World(tmp_path)
    earlier.pseudonyms()
    shutil.copytree(tmp_path / "release", tmp_path / "earlier")
    mapped = World(tmp_path)
    mapped.sections["model"] = {"name": "mapping", "release": str(tmp_path / "earlier")}
    first = mapped.pseudonyms()
    (part,) = (tmp_path / "earlier" / "data").glob("*.parquet")
    table = pq.read_table(part)
    ages = table["age"].to_pylist()
    oldest = max(ages, key=lambda one: int(one.strip("[]").split("-")[-1]))
    wider = f"[{oldest.strip('[]').split('-')[0]}-119]"
    place = table.schema.get_field_index("age")
    changed = pa.array([wider if one == oldest else one for one in ages])
    pq.write_table(table.set_column(place, "age", changed), part)
    second = mapped.pseudonyms()
    assert {"119]"} & {
        one.split("-")[-1] for one in published(tmp_path / "release")["age"].to_pylist()
    }
    assert not first & second


def test_a_run_that_is_continued(world_and_pseudonyms: tuple[World, set[str]]) -> None:
    world, first = world_and_pseudonyms

    with interrupted("stage_findings"):
        World(world.folder).pseudonyms(run_id="one", resume=True)
    # Between the attempts an identifier was corrected: rounds that are finished have the old one.
    corrected = World(world.folder)
    corrected.rows[0]["patient"] = "P99"
    with pytest.raises(ConfigurationError, match="--resume: found another input"):
        corrected.pseudonyms(run_id="one", resume=True)
    assert World(world.folder).pseudonyms(run_id="one", resume=True) == first
    manifest = json.loads((world.folder / "release" / "manifest.json").read_text())
    assert manifest["attempt"] > 1


def test_both_engines(world_and_pseudonyms: tuple[World, set[str]], spark: Any) -> None:
    world, first = world_and_pseudonyms
    other = World(world.folder)
    other.rows.reverse()
    other.sections["execution"]["task_rows"] = 20
    assert other.pseudonyms(SparkEngine(spark)) == first
