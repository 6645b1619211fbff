"""Ledgers: what is spent adds up to the limit, and what is missing or changed is found."""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.local.files import LocalFiles
from anonspark.errors import ConfigurationError, DataError, GuaranteeError, PublishingError
from anonspark.sharing.ledger import budget as budget_module
from anonspark.sharing.ledger.budget import Limit, charge, read_budget
from anonspark.sharing.ledger.chain import Key, append_link, make_key, read_key
from anonspark.sharing.ledger.check import list_coalitions
from anonspark.sharing.ledger.events import FAILED, PLANNED, PUBLISHED, WITHDRAWN, Events
from anonspark.sharing.ledger.ledger import Ledger, init_ledger, open_ledger
from anonspark.sharing.ledger.lock import locked

LIMIT = Limit(Fraction(1), "add_remove", "record")
TENTH = Fraction(1, 10)
TOLD = {"kind": "select"}


def spend(path: str) -> bool:
    try:
        charge(LocalEngine().files, path, LIMIT, TENTH, {"run_id": "a run", "kind": "select"})
    except GuaranteeError:
        return False
    return True


def test_what_is_spent_adds_up(tmp_path: Path) -> None:
    files, path = LocalEngine().files, str(tmp_path / "people")
    assert read_budget(files, path) is None
    for number in range(1, 4):
        entry = charge(files, path, LIMIT, TENTH, {"run_id": f"run {number}", "kind": "select"})
        assert entry.number == number
    budget = read_budget(files, path)
    assert budget is not None
    assert (budget.spent, budget.left) == (Fraction(3, 10), Fraction(7, 10))
    assert [entry.content["run_id"] for entry in budget.entries] == ["run 1", "run 2", "run 3"]


def test_of_twenty_asks_of_processes_at_once_ten_succeed(tmp_path: Path) -> None:
    path = str(tmp_path / "people")
    # Processes of their own, that come from one which has read the package already.
    context = get_context("forkserver")
    context.set_forkserver_preload(
        ["pytest", "anonspark.sharing.ledger.budget", LocalEngine.__module__]
    )
    with ProcessPoolExecutor(4, mp_context=context) as pool:
        found = list(pool.map(spend, [path] * 20))
    assert sum(found) == 10
    budget = read_budget(LocalEngine().files, path)
    assert budget is not None
    assert [entry.number for entry in budget.entries] == list(range(1, 11))
    assert (budget.spent, budget.left) == (1, 0)


def test_of_two_at_the_same_number_one_starts_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, path = LocalEngine().files, str(tmp_path / "people")
    append_link = budget_module.append_link

    def after_another(*arguments: Any) -> str:
        monkeypatch.setattr(budget_module, "append_link", append_link)
        assert charge(files, path, LIMIT, TENTH, {**TOLD, "run_id": "another"}).number == 1
        return append_link(*arguments)

    monkeypatch.setattr(budget_module, "append_link", after_another)
    assert charge(files, path, LIMIT, TENTH, {**TOLD, "run_id": "a run"}).number == 2
    budget = read_budget(files, path)
    assert budget is not None
    assert [one.content["run_id"] for one in budget.entries] == ["another", "a run"]
    assert budget.spent == 2 * TENTH


def test_an_entry_that_comes_while_they_are_listed_is_not_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listing may tell the later of two new files, and not the earlier."""
    files, path = LocalEngine().files, str(tmp_path / "people")
    for number in range(4):
        charge(files, path, LIMIT, TENTH, {**TOLD, "run_id": f"run {number}"})
    children = type(files).children

    def listed(self: Any, folder: str) -> list[str]:
        return [one for one in children(self, folder) if not one.endswith(("1.json", "3.json"))]

    assert len(files.children(path)) == 5
    monkeypatch.setattr(type(files), "children", listed)
    assert len(files.children(path)) == 3
    budget = read_budget(files, path)
    assert budget is not None
    assert [entry.number for entry in budget.entries] == [1, 2, 3, 4]


def test_a_budget_that_is_made_while_it_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, path = LocalEngine().files, str(tmp_path / "people")
    exists = type(files).exists

    def another_makes_it(self: Any, asked: str) -> bool:
        monkeypatch.setattr(type(files), "exists", exists)
        assert not exists(self, asked)
        charge(files, path, LIMIT, TENTH, TOLD)
        return False

    monkeypatch.setattr(type(files), "exists", another_makes_it)
    budget = read_budget(files, path)
    assert budget is not None
    assert budget.spent == TENTH


def test_the_limit_is_reached_to_the_last_bit(tmp_path: Path) -> None:
    files, path = LocalEngine().files, str(tmp_path / "people")
    for _ in range(3):
        charge(files, path, LIMIT, Fraction(1, 3), TOLD)
    with pytest.raises(GuaranteeError, match=r"1 of 1 are spent, and 0\.000001 more"):
        charge(files, path, LIMIT, Fraction(1, 10**6), TOLD)


def test_replacing_is_removing_and_adding(tmp_path: Path) -> None:
    files = LocalEngine().files
    replaces = Limit(Fraction(1), "replace", "record")
    charge(files, str(tmp_path / "a"), LIMIT, TENTH, TOLD)
    entry = charge(files, str(tmp_path / "a"), replaces, TENTH, TOLD)
    assert entry.spent_after == Fraction(15, 100)
    charge(files, str(tmp_path / "b"), replaces, TENTH, TOLD)
    entry = charge(files, str(tmp_path / "b"), LIMIT, TENTH, TOLD)
    assert entry.spent_after == Fraction(3, 10)


def test_limit_and_unit_are_fixed(tmp_path: Path) -> None:
    files, path = LocalEngine().files, str(tmp_path / "people")
    charge(files, path, LIMIT, TENTH, TOLD)
    with pytest.raises(ConfigurationError, match=r"ledger\.limit: found 2\. .* has 1\."):
        charge(files, path, Limit(Fraction(2), "add_remove", "record"), TENTH, TOLD)
    person = {"person": "patient", "rows": 2}
    with pytest.raises(
        ConfigurationError,
        match=r"selection\.person: found a person of 'patient' .* has a record\.",
    ):
        charge(files, path, Limit(Fraction(1), "add_remove", person), TENTH, TOLD)


@pytest.mark.parametrize("damage", ["gone", "changed", "sum", "signed sum", "limit", "no json"])
def test_a_broken_chain(tmp_path: Path, damage: str) -> None:
    files, folder = LocalEngine().files, tmp_path / "people"
    for _ in range(3):
        charge(files, str(folder), LIMIT, TENTH, TOLD)
    second = folder / "000002.json"
    if damage == "gone":
        second.unlink()
    elif damage == "limit":
        (folder / "limit.json").write_text(Limit(Fraction(9), "add_remove", "record").to_text())
    elif damage == "no json":
        second.write_text("{")
    elif damage == "signed sum":
        last = folder / "000003.json"
        last.unlink()
        budget = read_budget(files, str(folder))
        assert budget
        content = {**TOLD, "epsilon": "1/10", "spent_before": "1/5", "spent_after": "1/5"}
        append_link(files, str(last), budget.digests, content)
    else:
        told = json.loads(second.read_text())
        told |= {"epsilon": "0", "spent_after": "1/10"} if damage == "sum" else {"run_id": "x"}
        second.write_text(json.dumps(told))
    before = sorted(folder.iterdir())
    with pytest.raises(GuaranteeError, match="Nothing was drawn"):
        charge(files, str(folder), LIMIT, TENTH, TOLD)
    assert sorted(folder.iterdir()) == before


CRAFTED = {
    "no texts": b"\xff\xfe",
    "too deep": b"[" * 100_000,
    "another unit": b'{"limit": "1", "neighbors": "add_remove", "unit": 5}',
    "half a unit": b'{"limit": "1", "neighbors": "add_remove", "unit": {"person": "name"}}',
}


@pytest.mark.parametrize("name", ["limit.json", "000001.json"])
@pytest.mark.parametrize("content", CRAFTED.values(), ids=CRAFTED)
def test_crafted_files(tmp_path: Path, name: str, content: bytes) -> None:
    files, folder = LocalEngine().files, tmp_path / "people"
    charge(files, str(folder), LIMIT, TENTH, TOLD)
    (folder / name).write_bytes(content)
    with pytest.raises(GuaranteeError, match=f"{name} is not as anonspark writes it"):
        read_budget(files, str(folder))


@pytest.mark.parametrize("name", ["limit.json", "000001.json"])
def test_a_directory_instead_of_a_file(tmp_path: Path, name: str) -> None:
    files, folder = LocalEngine().files, tmp_path / "people"
    charge(files, str(folder), LIMIT, TENTH, TOLD)
    (folder / name).unlink()
    (folder / name).mkdir()
    with pytest.raises(GuaranteeError, match=f"{name} cannot be read. Expected a file"):
        read_budget(files, str(folder))


def test_an_entry_without_a_time(tmp_path: Path) -> None:
    files, folder = LocalEngine().files, tmp_path / "people"
    charge(files, str(folder), LIMIT, TENTH, TOLD)
    told = json.loads((folder / "000001.json").read_text())
    del told["time"]
    (folder / "000001.json").write_text(json.dumps(told))
    with pytest.raises(GuaranteeError, match="it was changed"):
        read_budget(files, str(folder))


FILES = LocalFiles()


@pytest.fixture
def key(tmp_path: Path) -> Key:
    return make_key(str(tmp_path / "key"))


@pytest.fixture
def ledger(tmp_path: Path, key: Key) -> Ledger:
    """A ledger with three events."""
    made = init_ledger(FILES, str(tmp_path / "ledger"), key, ["person"])
    for release in ("a-1", "b-1"):
        made.events.append(PLANNED, {"release": release, "recipient": release[0], "until": None})
    return made


def again(ledger: Ledger) -> Ledger:
    return open_ledger(FILES, ledger.layout.path, ledger.events.key)


def test_events_are_read_as_they_were_written(ledger: Ledger) -> None:
    read = again(ledger)
    assert read.events.events == ledger.events.events
    assert [one.number for one in read.events.events] == [1, 2, 3]
    assert read.head["subject"] == ["person"]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_changed_byte_is_found(ledger: Ledger, number: int) -> None:
    path = Path(ledger.layout.event(number).removeprefix("file:"))
    text = path.read_text()
    path.write_text(text.replace("2", "3", 1) if number < 3 else text.replace('"b"', '"c"', 1))
    with pytest.raises(DataError, match=rf"0{number}\.json has another signature than"):
        again(ledger)
    if number < 3:
        with pytest.raises(DataError, match="does not follow from the file before it"):
            open_ledger(FILES, ledger.layout.path)


def test_a_gap_is_found(ledger: Ledger) -> None:
    Path(ledger.layout.event(2).removeprefix("file:")).unlink()
    with pytest.raises(DataError, match=r"00000002\.json is missing"):
        again(ledger)


def test_a_cut_off_event_is_found(ledger: Ledger) -> None:
    Path(ledger.layout.event(3).removeprefix("file:")).write_text('{"number": 3')
    with pytest.raises(DataError, match="is not as anonspark writes it"):
        again(ledger)


def test_a_number_is_taken_once(ledger: Ledger) -> None:
    other = Events.read(FILES, ledger.layout, ledger.events.key)
    other.append(PUBLISHED, {"release": "a-1"})
    with pytest.raises(PublishingError, match="another process has written event 4"):
        ledger.events.append(PUBLISHED, {"release": "b-1"})


def test_states(ledger: Ledger) -> None:
    assert {one.state for one in ledger.releases.values()} == {"planned"}
    ledger.events.append(PUBLISHED, {"release": "a-1"})
    ledger.events.append(FAILED, {"release": "b-1"})
    assert [one.name for one in ledger.counted] == ["a-1"]
    ledger.events.append(WITHDRAWN, {"release": "a-1", "by": "me", "reason": "destroyed"})
    assert ledger.counted == []
    ledger.events.append(PLANNED, {"release": "b-1", "recipient": "b", "until": "2020-01-01"})
    (one,) = ledger.counted
    assert (one.name, one.state) == ("b-1", "planned")
    assert one.is_past(date(2026, 1, 1))


def test_another_ledger_is_not_overwritten(ledger: Ledger) -> None:
    with pytest.raises(ConfigurationError, match="found a ledger at"):
        init_ledger(FILES, ledger.layout.path, Key(b"2" * 32), ["person"])


def test_another_key(ledger: Ledger) -> None:
    with pytest.raises(ConfigurationError, match=r"/ledger\.json names the key"):
        open_ledger(FILES, ledger.layout.path, Key(b"2" * 32))


def test_no_ledger(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="found nothing at"):
        open_ledger(FILES, str(tmp_path / "none"))


def test_a_newer_format(ledger: Ledger) -> None:
    path = Path(ledger.layout.head.removeprefix("file:"))
    path.write_text(json.dumps(dict(ledger.head) | {"format": 2}))
    with pytest.raises(ConfigurationError, match="has format 2"):
        again(ledger)


def test_the_lock(ledger: Ledger) -> None:
    with locked(FILES, ledger.layout, "first"):
        second = locked(FILES, ledger.layout, "second")
        with pytest.raises(PublishingError, match="run first on host"):
            second.__enter__()
    with locked(FILES, ledger.layout, "second"):
        assert FILES.exists(ledger.layout.lock)
    assert not FILES.exists(ledger.layout.lock)


def test_the_lock_of_a_dead_process(ledger: Ledger) -> None:
    import socket

    held = {"run_id": "x", "host": socket.gethostname(), "process": "boot 999999999 1"}
    FILES.write_text(ledger.layout.lock, json.dumps(held))
    with locked(FILES, ledger.layout, "second"):
        assert FILES.exists(ledger.layout.lock)


def test_keys(tmp_path: Path) -> None:
    path = tmp_path / "key"
    made = make_key(str(path))
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_key(str(path)) == made
    assert "secret" not in repr(made)
    path.chmod(0o640)
    with pytest.raises(ConfigurationError, match="has permissions 640"):
        read_key(str(path))
    short = tmp_path / "short"
    short.write_bytes(b"12")
    short.chmod(0o600)
    with pytest.raises(ConfigurationError, match=r"found 2 bytes. Expected 32 at least"):
        read_key(str(short))
    with pytest.raises(ConfigurationError, match="the file cannot be read"):
        read_key(str(tmp_path / "none"))


def test_coalitions() -> None:
    def found(size: int | None, **options: object) -> list[tuple[str, ...]]:
        given = {"public": [], "together": [], "of_plan": "abcd"} | options
        return list_coalitions("abcd", size=size, **given)  # type: ignore[arg-type]

    assert found(None) == [("a", "b", "c", "d")]
    assert len(found(2)) == 6
    # Of others nothing changes.
    assert found(2, of_plan="a") == [("a", "b"), ("a", "c"), ("a", "d")]
    assert found(2, together=[["b", "c"]], of_plan="a") == [("a", "b", "c"), ("a", "d")]
    assert found(1, public="d") == [("a", "d"), ("b", "d"), ("c", "d")]
    assert len(found(1, public="d", of_plan="d")) == 3


def test_too_many_coalitions() -> None:
    names = [f"r{number:02}" for number in range(40)]
    with pytest.raises(ConfigurationError, match="make 9,880 coalitions"):
        list_coalitions(names, public=[], together=[], size=3, of_plan=names)
