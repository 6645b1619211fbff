"""What is changed in a release is refused or called unproven, and sound releases are accepted."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from forgeries import (
    CHANGES,
    Nothing,
    check_release,
    forge,
    read_manifest,
    read_table,
    save_manifest,
    save_table,
    try_forgery,
    verified,
)
from release_folders import damage, list_files
from sound_releases import ALL_MODELS_AND_STYLES, SoundRelease, catalogue, make_release

from anonspark.engine.local.engine import LocalEngine
from anonspark.verification.audit import audit_release
from anonspark.verification.result import Verification

BY_DAY = (1, 2, 3, 5, 6, 9, 11, 70)
FORGERIES = 2_000
SHARE = 120


@pytest.fixture(scope="module")
def by_day(tmp_path_factory: pytest.TempPathFactory) -> list[SoundRelease]:
    """Make some releases, of all styles and most models."""
    return catalogue(tmp_path_factory.mktemp("sound"), BY_DAY)


@pytest.fixture(scope="module")
def at_night(tmp_path_factory: pytest.TempPathFactory) -> list[SoundRelease]:
    """Make releases of all models in all styles."""
    return catalogue(tmp_path_factory.mktemp("sound"), ALL_MODELS_AND_STYLES)


def false_alarms(sound: SoundRelease) -> Iterator[str]:
    """Say what is wrongly said of a sound release."""
    for original in dict.fromkeys((None, sound.original)):
        found = verified(sound.path, original)
        if isinstance(found, str):
            yield f"{sound.title}, original {original}: {found}"
    if (code := check_release(sound.path)) and sound.path.joinpath("data").exists():
        yield f"{sound.title}: check_release.py ends with {code}"


def holes(sound: list[SoundRelease], seeds: range, scratch: Path) -> Iterator[str]:
    """Forge releases, and say which are accepted as proven, or judged in two ways."""
    for seed in seeds:
        draw = random.Random(seed)  # noqa: S311
        source = draw.choice(sound)
        forged = Path(shutil.copytree(source.path, scratch / "forged", symlinks=True))
        try:
            outcome = try_forgery(forge(draw, forged), forged, source.original)
        except Nothing:
            continue
        finally:
            shutil.rmtree(forged)
        if outcome.verdict == "accepted" or not outcome.agrees:
            yield f"{seed}: {source.title}: {outcome}"


@pytest.mark.night
def test_a_share_of_forgeries(by_day: list[SoundRelease], tmp_path: Path) -> None:
    assert not list(holes(by_day, range(SHARE), tmp_path))


@pytest.mark.night
def test_random_forgeries(at_night: list[SoundRelease], tmp_path: Path) -> None:
    """The seeds of the share aside, which are drawn among other releases there."""
    assert not list(holes(at_night, range(SHARE, SHARE + FORGERIES), tmp_path))


@pytest.mark.parametrize("kind", sorted(CHANGES))
def test_each_kind_is_forged(kind: str, by_day: list[SoundRelease], tmp_path: Path) -> None:
    """By day one of each kind. A kind that changes nothing would prove nothing."""
    for seed in range(100):
        draw = random.Random(seed)  # noqa: S311
        source = draw.choice(by_day)
        forged = Path(shutil.copytree(source.path, tmp_path / f"{seed}", symlinks=True))
        try:
            forgery = forge(draw, forged, kind)
        except Nothing:
            continue
        assert contents(forged) != contents(source.path)
        outcome = try_forgery(forgery, forged, source.original)
        assert outcome.verdict != "accepted", outcome
        assert outcome.agrees, outcome
        return
    pytest.fail("no release has what this kind would change")


def contents(release: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(release)): path.read_bytes() if path.is_file() else None
        for path in release.rglob("*")
    }


def test_sound_releases(by_day: list[SoundRelease]) -> None:
    assert not [alarm for sound in by_day for alarm in false_alarms(sound)]


@pytest.mark.night
def test_more_sound_releases(tmp_path: Path) -> None:
    alarms = []
    for seed in range(1_000, 1_300):
        sound = make_release(seed, tmp_path / f"{seed}")
        alarms += false_alarms(sound)
        shutil.rmtree(tmp_path / f"{seed}")
    assert not alarms


def test_classes_that_are_not_there(by_day: list[SoundRelease], tmp_path: Path) -> None:
    """Nothing was derived where the table of classes had no row, and so nothing compared."""
    forged = Path(shutil.copytree(by_day[0].path, tmp_path / "forged"))
    save_table(forged, "metrics/classes", read_table(forged, "metrics/classes").slice(0, 0))
    list_files(forged, explained=False)
    assert "bounds and sizes (those of the labels)" in str(verified(forged))


def test_names_of_models_that_are_no_texts(tmp_path: Path) -> None:
    """It ended with an error of ours."""
    release = make_release(10, tmp_path / "auto").path
    document = read_manifest(release)
    document["chosen_model"]["tried"][0]["model"]["name"] = {}
    save_manifest(release, document)
    assert "chosen_model: expected options of models" in str(verified(release))


@pytest.mark.parametrize(
    "keys", [("files", 0), ("published",), ("configuration", "privacy"), ("fingerprints",)]
)
def test_keys_of_a_section_in_another_order(
    keys: tuple[Any, ...], by_day: list[SoundRelease], tmp_path: Path
) -> None:
    forged = Path(shutil.copytree(by_day[0].path, tmp_path / "forged"))
    document = read_manifest(forged)
    section: Any = document
    for key in keys:
        section = section[key]
    turned = dict(reversed(section.items()))
    section.clear()
    section.update(turned)
    save_manifest(forged, document)
    found = str(verified(forged))
    assert "its bytes are not those" in found or "in the order in which they are written" in found


@pytest.mark.parametrize(
    ("name", "figure", "is_claimed"),
    [
        ("attributes", "iloss", True),
        ("attributes", "generalized_rows", False),
        ("rounds", "loss", True),
        ("privacy", "measured", False),
        ("risk", "average", False),
    ],
)
def test_figures_that_no_record_shows_are_claimed(
    name: str, figure: str, is_claimed: bool, by_day: list[SoundRelease], tmp_path: Path
) -> None:
    """Claims are accepted and listed, whatever another claim says; what is counted is refused."""
    forged = Path(shutil.copytree(by_day[0].path, tmp_path / "forged"))
    table = read_table(forged, f"metrics/{name}")
    values = table[figure].to_pylist()
    values[-1] = 0 if values[-1] else 1
    index = table.schema.get_field_index(figure)
    changed = pa.array(values, table.schema.field(index).type)
    save_table(forged, f"metrics/{name}", table.set_column(index, figure, changed))
    list_files(forged)
    found = audit_release(LocalEngine(), str(forged))
    listed = {f"metrics/{name}", f"metrics/{name}: {figure}"} & {*found.claimed}
    assert (bool(listed), found.failures == []) == (is_claimed, is_claimed), found.failures


def test_what_is_claimed_of_columns(by_day: list[SoundRelease]) -> None:
    """The types of columns as they came were neither proven nor claimed, names of classes too."""
    types = "data: types of the columns that are published as they came"
    sound = next(one for one in by_day if one.original is not None)
    found, matched = verified(sound.path), verified(sound.path, sound.original)
    assert isinstance(found, Verification)
    assert isinstance(matched, Verification)
    assert {types, "metrics/classes: class_id", "metrics/classes: round"} <= {*found.claimed}
    assert types not in matched.claimed


def test_keys_of_a_manifest_in_another_order(by_day: list[SoundRelease], tmp_path: Path) -> None:
    forged = Path(shutil.copytree(by_day[0].path, tmp_path / "forged"))
    save_manifest(forged, dict(reversed(read_manifest(forged).items())))
    assert "its bytes are not those that anonspark writes" in str(verified(forged))


def test_a_number_of_units_twice(tmp_path: Path) -> None:
    """The second entry was believed."""
    release = make_release(3, tmp_path / "sound").path
    document = read_manifest(release)
    document["published"]["units"].append(document["published"]["units"][0])
    save_manifest(release, document)
    assert "published.units: expected each number once" in str(verified(release))


@pytest.mark.parametrize("seed", [1615, 2139])
def test_bytes_that_say_nothing(seed: int, tmp_path: Path) -> None:
    """A width of no numbers and an encoding that no page has were not looked at."""
    release = make_release({1615: 22, 2139: 15}[seed], tmp_path / "sound").path
    path = release / {1615: "metrics/rounds", 2139: "data"}[seed] / "part-00000.parquet"
    content = bytearray(path.read_bytes())
    content[{1615: 61, 2139: 5422}[seed]] ^= {1615: 1, 2139: 16}[seed]
    damage(path, bytes(content))
    list_files(release, explained=False)
    assert "hold more than anonspark writes" in str(verified(release))


@pytest.mark.parametrize(
    ("name", "key"), [("output_fingerprint", "fingerprints.output"), ("started", "started")]
)
def test_a_summary_without_a_value(
    name: str, key: str, by_day: list[SoundRelease], tmp_path: Path
) -> None:
    """A null was compared with nothing, or ended verify with an error of ours."""
    forged = Path(shutil.copytree(by_day[0].path, tmp_path / "forged"))
    table = read_table(forged, "metrics/summary")
    index = table.schema.get_field_index(name)
    save_table(
        forged,
        "metrics/summary",
        table.set_column(index, table.field(index), pa.nulls(1, table.field(index).type)),
    )
    list_files(forged, explained=False)
    assert f"{key}: found" in str(verified(forged))


@pytest.mark.parametrize("size", [None, 0, -1])
def test_classes_without_a_size(
    size: int | None, by_day: list[SoundRelease], tmp_path: Path
) -> None:
    """They ended with an error of ours."""
    forged = Path(shutil.copytree(by_day[0].path, tmp_path / "forged"))
    table = read_table(forged, "metrics/classes")
    index = table.schema.get_field_index("size")
    sizes = pa.array([size, *table["size"].to_pylist()[1:]], table["size"].type)
    save_table(forged, "metrics/classes", table.set_column(index, "size", sizes))
    list_files(forged, explained=False)
    assert "rows that no run writes" in str(verified(forged))
