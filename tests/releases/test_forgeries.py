"""What is changed in a release is refused or called unproven, and sound releases are accepted."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from functools import cache, reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cases import cases, changed
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
from release_folders import list_files
from sound_releases import ALL_MODELS_AND_STYLES, SoundRelease, catalogue, make_release

from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline import run as running
from anonspark.pipeline import verifying
from anonspark.pipeline.verifying import VerifiedRelease
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


def test_the_order_of_what_was_left_out_is_claimed(
    by_day: list[SoundRelease], tmp_path: Path
) -> None:
    sample = by_day[-1]
    forged = Path(shutil.copytree(sample.path, tmp_path / "forged"))
    left_out = read_table(forged, "left_out")
    save_table(forged, "left_out", left_out.take(list(range(len(left_out)))[::-1]))
    list_files(forged)
    found = verified(forged, sample.original)
    assert isinstance(found, Verification)
    assert "left_out: order of rows" in found.claimed
    assert len(left_out) > 1


def test_sound_releases(by_day: list[SoundRelease]) -> None:
    assert not [alarm for sound in by_day for alarm in false_alarms(sound)]


@pytest.mark.parametrize("seed", [2, 3, 5])
def test_a_run_proves_what_a_stranger_proves(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of its staged files by the same function, before they are published."""
    proofs: list[Verification] = []

    def verify_staged(*arguments: Any) -> VerifiedRelease:
        staged = verifying.verify_staged(*arguments)
        proofs.append(staged.proof)
        return staged

    monkeypatch.setattr(running, "verify_staged", verify_staged)
    found = verified(make_release(seed, tmp_path / "sound").path)
    assert isinstance(found, Verification)
    by_run, by_stranger = proofs[-1].as_dict(), found.as_dict()
    names = ("rows", "fingerprint", "sizes", "criteria", "risk", "presence", "suppressed", "holds")
    assert [by_run[name] for name in names] == [by_stranger[name] for name in names]
    for proof in (by_run, by_stranger):
        units = proof["units"]
        assert units is None or units["classes"] == by_stranger["units"]["classes"]


@pytest.mark.night
def test_more_sound_releases(tmp_path: Path) -> None:
    alarms = []
    for seed in range(1_000, 1_300):
        sound = make_release(seed, tmp_path / f"{seed}")
        alarms += false_alarms(sound)
        shutil.rmtree(tmp_path / f"{seed}")
    assert not alarms


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """Make a release by its seed, once."""
    folder = tmp_path_factory.mktemp("sound")
    return cache(lambda seed: make_release(seed, folder / f"{seed}").path)


def write_value(release: Path, table: str, column: str, value: Any, row: int = 0) -> None:
    """Write a value of a table as the package writes it, and list the file."""
    before = read_table(release, table)
    values = before[column].to_pylist()
    values[row] = value
    index = before.schema.get_field_index(column)
    changed = pa.array(values, before.schema.field(index).type)
    save_table(release, table, before.set_column(index, column, changed))
    list_files(release, explained=False)


@cases(__file__, "case")
def test_what_is_forged_is_refused(
    case: dict[str, Any], sound: Callable[[int], Path], tmp_path: Path
) -> None:
    """`save_table` and `save_manifest` show first that an unchanged copy is accepted."""
    case = {"release": BY_DAY[0], **case}
    told = case.pop("told")
    forged = Path(shutil.copytree(sound(case.pop("release")), tmp_path / "forged"))
    document = read_manifest(forged)
    match case:
        case {"table": table, "rows": rows}:
            save_table(forged, table, read_table(forged, table).slice(0, rows))
            list_files(forged, explained=False)
        case {"table": _}:
            write_value(forged, **case)
        case {"manifest": path, "value": value}:
            save_manifest(forged, changed(document, {path: value}))
        case {"turned": keys}:
            section = reduce(lambda inside, key: inside[key], keys, document)
            turned = dict(reversed(section.items()))
            section.clear()
            section.update(turned)
            save_manifest(forged, document)
    assert told in str(verified(forged))


@pytest.mark.parametrize(("name", "figure"), [("attributes", "iloss"), ("rounds", "loss")])
def test_figures_that_no_record_shows_are_claimed(
    name: str, figure: str, sound: Callable[[int], Path], tmp_path: Path
) -> None:
    """Claims are accepted and listed, whatever another claim says."""
    forged = Path(shutil.copytree(sound(BY_DAY[0]), tmp_path / "forged"))
    write_value(forged, f"metrics/{name}", figure, 0.875)
    found = audit_release(LocalEngine(), str(forged)).require()
    assert {f"metrics/{name}", f"metrics/{name}: {figure}"} & {*found.claimed}


def test_what_is_claimed_of_columns(by_day: list[SoundRelease]) -> None:
    """The types of columns as they came were neither proven nor claimed, names of classes too."""
    types = "data: types of the columns that are published as they came"
    sound = next(one for one in by_day if one.original is not None)
    found, matched = verified(sound.path), verified(sound.path, sound.original)
    assert isinstance(found, Verification)
    assert isinstance(matched, Verification)
    assert {types, "metrics/classes: class_id", "metrics/classes: round"} <= {*found.claimed}
    assert types not in matched.claimed
