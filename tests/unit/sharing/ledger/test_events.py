"""The chain of events: what is missing or changed is found."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from anonspark.engine.local.files import LocalFiles
from anonspark.errors import ConfigurationError, DataError, PublishingError
from anonspark.sharing.ledger.chain import Key, make_key, read_key
from anonspark.sharing.ledger.check import list_coalitions
from anonspark.sharing.ledger.events import FAILED, PLANNED, PUBLISHED, WITHDRAWN, Events
from anonspark.sharing.ledger.ledger import Ledger, init_ledger, open_ledger
from anonspark.sharing.ledger.lock import locked

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
