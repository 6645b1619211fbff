"""Ledgers: every file that is changed is refused, and no release of a data set is ever missing."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import cases
from commands import Cli, Outcome
from helpers import configuration_file, write_table
from recipients import plan_about

from anonspark import ownership
from anonspark.config import load_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.local.files import LocalFiles
from anonspark.errors import GuaranteeError, PublishingError
from anonspark.pipeline.run import run
from anonspark.sharing.ledger import events as ledger_events
from anonspark.sharing.ledger.budget import Limit, charge, list_release
from anonspark.sharing.ledger.chain import make_key
from anonspark.sharing.ledger.events import Events
from anonspark.sharing.ledger.ledger import init_ledger, open_ledger
from anonspark.sharing.recipients.distribute import distribute
from anonspark.sharing.recipients.plan import parse_plan

FILES = LocalFiles()


def table(rows: int) -> pa.Table:
    draw = np.random.default_rng(3)
    return pa.table(
        {
            "person": [f"p{number}" for number in range(rows)],
            "age": draw.integers(18, 90, rows),
            "ill": draw.choice(["flu", "cold", "gout"], rows),
        }
    )


def plan_at(folder: Path) -> dict[str, Any]:
    return plan_about(
        folder / "people.parquet",
        {"person": "identifier", "age": "quasi_identifier", "ill": "sensitive"},
        {"press": {"columns": ["age", "ill"]}},
        ledger={"path": str(folder / "ledger"), "key_file": str(folder / "keys" / "key")},
        output=str(folder / "releases" / "first"),
    )


@dataclass(frozen=True)
class Scene:
    """A ledger with two releases, in a folder, and a command line in this process."""

    folder: Path
    cli: Cli

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger"

    @property
    def last(self) -> Path:
        return self.folder / "keys" / "key.last"

    def check(self, *more: str) -> Outcome:
        return self.cli("ledger", "check", self.ledger, *more)

    def plan(self) -> Outcome:
        document = plan_at(self.folder) | {"output": str(self.folder / "releases" / "next")}
        path = self.folder / "plan.yaml"
        path.write_text(json.dumps(document))
        return self.cli("distribute", path, "--run-id", "next", "--no-progress")

    def require_refused(self, *expected: str) -> None:
        """Check that both refuse, with a message that names what is wrong."""
        checked, planned = self.check(), self.plan()
        assert checked.code in (2, 3, 4), checked.out
        assert planned.code in (2, 3), planned.err
        for text in expected:
            assert text in checked.err.replace("\n", ""), checked.err
            assert text in planned.err.replace("\n", ""), planned.err
        assert not (self.folder / "releases" / "next" / "press").exists()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    """Return a folder with a ledger, and copies of the ledger after each of its events."""
    folder = tmp_path_factory.mktemp("world") / "there"
    (folder / "keys").mkdir(parents=True)
    states: list[Path] = []
    append: Callable[..., Any] = Events.append

    def copied(self: Events, *told: Any) -> Any:
        states.append(folder.parent / f"state-{len(states)}")
        shutil.copytree(folder / "ledger", states[-1], ignore=shutil.ignore_patterns("lock"))
        return append(self, *told)

    key = make_key(str(folder / "keys" / "key"))
    init_ledger(FILES, str(folder / "ledger"), key, ["person"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Events, "append", copied)
        for number, name in enumerate(("first", "second")):
            pq.write_table(table(100 + 20 * number), folder / "people.parquet")
            document = plan_at(folder) | {"output": str(folder / "releases" / name)}
            distribute(LocalEngine(), parse_plan(document), run_id=name)
    return folder, states


@pytest.fixture
def scene(world: tuple[Path, list[Path]], cli: Cli) -> Any:
    """Give the world, as it was before each test."""
    folder, _ = world
    sound = folder.parent / "sound"
    if not sound.exists():
        shutil.copytree(folder, sound)
    yield Scene(folder, cli)
    shutil.rmtree(folder)
    shutil.copytree(sound, folder)


def files_of(ledger: Path) -> list[Path]:
    return sorted(path for path in ledger.rglob("*") if path.is_file())


def test_a_sound_ledger_is_accepted(scene: Scene) -> None:
    assert scene.check("--files").code == 0
    done = scene.plan()
    assert done.code == 0, done.err
    assert scene.check("--files").code == 0


def test_each_file_with_each_kind_of_byte_changed(scene: Scene) -> None:
    for path in files_of(scene.ledger):
        content = path.read_bytes()
        # Where the middle is depends on the paths in it: what names the key is changed, too.
        named = [content.find(name) + 2 for name in (b"key_file", b"/key") if name in content]
        for place in (0, len(content) // 2, len(content) - 2, *named):
            path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
            scene.require_refused(path.name if path.parent.name == "events" else str(path))
        path.write_bytes(content + b" ")
        scene.require_refused(str(path))
        path.write_bytes(content)


def test_each_file_missing(scene: Scene) -> None:
    for path in files_of(scene.ledger):
        content = path.read_bytes()
        path.unlink()
        newest = path.parent.name == "events" and not path.with_name("00000011.json").exists()
        expected = scene.ledger if path.name == "ledger.json" or newest else path
        scene.require_refused(str(expected))
        path.write_bytes(content)


def test_copies_of_files_and_of_directories(scene: Scene) -> None:
    for path in files_of(scene.ledger):
        for name in (f"{path.stem}-copy{path.suffix}", f"{path.name}~"):
            copy = path.with_name(name)
            shutil.copyfile(path, copy)
            scene.require_refused(str(copy))
            copy.unlink()
    for kind in ("members/press-first", "classes/press-first", "base/generation=1"):
        copy = scene.ledger / f"{kind}9"
        shutil.copytree(scene.ledger / kind, copy)
        scene.require_refused(str(copy))
        shutil.rmtree(copy)
    (scene.ledger / "members" / "empty").mkdir()
    scene.require_refused("members/empty")


def test_events_in_the_place_of_others(scene: Scene) -> None:
    events = files_of(scene.ledger / "events")
    contents = [path.read_bytes() for path in events]
    for number in range(len(events) - 1):
        events[number].write_bytes(contents[number + 1])
        scene.require_refused(events[number].name)
        events[number].write_bytes(contents[number])
    # One more, which was never written.
    (scene.ledger / "events" / f"{len(events) + 1:08}.json").write_bytes(contents[-1])
    scene.require_refused(f"{len(events) + 1:08}.json")


def test_each_earlier_state_put_back(scene: Scene, world: tuple[Path, list[Path]]) -> None:
    """All files of it, and its events alone, with later members where they lie."""
    for state in world[1]:
        shutil.rmtree(scene.ledger)
        shutil.copytree(state, scene.ledger)
        scene.require_refused(str(scene.ledger), str(scene.last.parent / "key"), "--as-newest")
        shutil.rmtree(scene.ledger)
        shutil.copytree(scene.folder.parent / "sound" / "ledger", scene.ledger)
        shutil.rmtree(scene.ledger / "events")
        shutil.copytree(state / "events", scene.ledger / "events")
        scene.require_refused(str(scene.ledger))


def test_the_last_event_signed_anew_without_the_key(scene: Scene) -> None:
    path = files_of(scene.ledger / "events")[-1]
    told = json.loads(path.read_text())
    # What follows is refused for what it says, not for how it is written.
    assert ledger_events_text(told) == path.read_text()
    assert told["type"] == "published"
    told["type"] = "failed"
    for signature in (told["signature"], "", None, "0" * 64):
        path.write_text(ledger_events_text(told | {"signature": signature}))
        scene.require_refused(path.name)
    del told["signature"]
    path.write_text(ledger_events_text(told))
    scene.require_refused(path.name)


def ledger_events_text(told: dict[str, Any]) -> str:
    return json.dumps(told, ensure_ascii=False, indent=1) + "\n"


@pytest.mark.parametrize("damage", ["missing", "changed", "of others", "link"])
def test_what_is_remembered(scene: Scene, damage: str) -> None:
    last, path = scene.last, scene.last
    text = last.read_text()
    if damage == "missing":
        last.unlink()
    elif damage == "changed":
        last.write_text(text.replace('"number": ', '"number": 1'))
    elif damage == "of others":
        last.chmod(0o644)
    else:
        last.rename(last.with_name("elsewhere"))
        last.symlink_to(last.with_name("elsewhere"))
    scene.require_refused(str(path))


def test_who_takes_an_older_ledger_for_the_newest_goes_on(
    scene: Scene, world: tuple[Path, list[Path]]
) -> None:
    """As after a loss of the disk; what was published since has to be moved, too."""
    first_done = next(
        state
        for state in world[1]
        if (state / "events" / "00000005.json").exists()
        and not (state / "events" / "00000006.json").exists()
    )
    shutil.rmtree(scene.ledger)
    shutil.copytree(first_done, scene.ledger)
    assert scene.check().code == 3
    accepted = scene.check("--as-newest")
    assert accepted.code == 0, accepted.err
    assert scene.check("--files").code == 0
    assert scene.plan().code == 0


def test_a_release_that_the_ledger_does_not_know(
    scene: Scene, world: tuple[Path, list[Path]]
) -> None:
    """Ledger and key were put back together: the releases are there still."""
    shutil.rmtree(scene.ledger)
    shutil.copytree(world[1][0], scene.ledger)
    assert scene.check("--as-newest").code == 0
    document = plan_at(scene.folder)
    document["base"]["output"] = {"mode": "overwrite"}
    path = scene.folder / "plan.yaml"
    path.write_text(json.dumps(document))
    done = scene.cli.ends(3, "distribute", path, "--run-id", "third", "--no-progress")
    assert "does not know the release of press at" in done.err
    (scene.folder / "releases" / "first" / "press").rename(scene.folder / "elsewhere")
    scene.cli.ends(0, "distribute", path, "--run-id", "third")


def test_a_key_is_of_one_ledger(scene: Scene) -> None:
    """Else a sound ledger of the same key could take the place of another."""
    words = ("--key-file", scene.folder / "keys" / "key", "--subject", "person")
    done = scene.cli.ends(2, "ledger", "init", scene.folder / "another", *words)
    assert f"--key-file: {scene.last} is there already" in done.err
    assert not (scene.folder / "another").exists()
    content = scene.last.read_bytes()
    scene.last.unlink()
    scene.cli.ends(0, "ledger", "init", scene.folder / "another", *words)
    scene.last.write_bytes(content)
    shutil.rmtree(scene.ledger)
    (scene.folder / "another").rename(scene.ledger)
    scene.require_refused(str(scene.ledger), "or another")


@pytest.mark.parametrize("name", ["next", "next/press"])
def test_releases_of_a_plan_do_not_go_where_a_link_leads(scene: Scene, name: str) -> None:
    link = scene.folder / "releases" / name
    link.parent.mkdir(exist_ok=True)
    (scene.folder / "elsewhere").mkdir()
    link.symlink_to(scene.folder / "elsewhere")
    done = scene.plan()
    assert done.code == 2
    assert f"{link} is a symbolic link" in done.err
    assert not list((scene.folder / "elsewhere").iterdir())


def test_another_key_file_is_named(scene: Scene) -> None:
    keys = scene.folder / "keys"
    keys.rename(scene.folder / "moved")
    assert scene.check().code == 2
    moved = ("--key-file", str(scene.folder / "moved" / "key"))
    assert scene.check(*moved).code == 0
    words = ("--reason", "destroyed", "--by", "the officer")
    scene.cli.ends(0, "ledger", "withdraw", scene.ledger, "press-first", *words, *moved)
    assert scene.check(*moved).code == 0


def test_a_withdrawal_is_signed(scene: Scene) -> None:
    words = ("--reason", "destroyed", "--by", "the officer")
    scene.cli.ends(0, "ledger", "withdraw", scene.ledger, "press-first", *words)
    path = files_of(scene.ledger / "events")[-1]
    path.write_text(path.read_text().replace("press-first", "press-secon"))
    scene.require_refused(path.name)


def test_several_are_withdrawn_or_none(scene: Scene) -> None:
    events = len(files_of(scene.ledger / "events"))
    words = ("--reason", "destroyed", "--by", "the officer")

    def withdraw(*releases: str) -> Outcome:
        return scene.cli("ledger", "withdraw", scene.ledger, *releases, *words)

    refused = withdraw("press-first", "press-third")
    assert refused.code == 2
    assert "has no 'press-third'" in refused.err
    assert len(files_of(scene.ledger / "events")) == events
    done = withdraw("press-first", "press-second", "press-first")
    assert done.code == 0, done.err
    assert len(files_of(scene.ledger / "events")) == events + 2


def test_a_plan_does_not_read_what_no_longer_counts(scene: Scene) -> None:
    """What it would read grows with every night. The check reads it."""
    words = ("--reason", "destroyed", "--by", "the officer")
    scene.cli.ends(0, "ledger", "withdraw", scene.ledger, "press-first", *words)
    path = next((scene.ledger / "members" / "press-first").rglob("*.parquet"))
    content = path.read_bytes()
    path.unlink()
    scene.require_refused(str(path))
    path.write_bytes(content + b" ")
    checked = scene.check()
    assert checked.code == 4
    assert str(path) in checked.err.replace("\n", "")
    planned = scene.plan()
    assert planned.code == 0, planned.err
    # An old base partition neither.
    path.write_bytes(content)
    assert scene.check().code == 0
    path = next((scene.ledger / "base" / "generation=1").rglob("*.parquet"))
    path.write_bytes(path.read_bytes() + b" ")
    assert scene.check().code == 4
    shutil.rmtree(scene.folder / "releases" / "next")
    planned = scene.plan()
    assert planned.code == 0, planned.err


def test_each_event_is_read_once(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger of years has tens of thousands."""
    read: Counter[str] = Counter()
    read_text = LocalFiles.read_text

    def counted(self: LocalFiles, path: str) -> str:
        if "/events/" in path:
            read[path] += 1
        return read_text(self, path)

    monkeypatch.setattr(LocalFiles, "read_text", counted)
    words = ("--reason", "destroyed", "--by", "the officer")
    for call in (
        scene.check,
        scene.plan,
        lambda: scene.cli("clean", scene.folder / "plan.yaml"),
        lambda: scene.cli("ledger", "withdraw", scene.ledger, "press-next", *words),
    ):
        read.clear()
        there = len(files_of(scene.ledger / "events"))
        done = call()
        assert done.code == 0, done.err
        assert len(read) == there
        assert set(read.values()) == {1}


def test_a_directory_of_the_key_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(30, "Read-only file system")

    key = make_key(str(tmp_path / "key"))
    ledger = init_ledger(FILES, str(tmp_path / "ledger"), key, ["person"])
    monkeypatch.setattr(ownership.os, "open", refuse)
    with pytest.raises(PublishingError, match=r"ledger\.key_file: .*last cannot be written"):
        ledger.events.append(ledger_events.REFUSED, {})
    monkeypatch.undo()
    # The ledger is ahead of what is remembered, which is no harm.
    assert len(open_ledger(FILES, str(tmp_path / "ledger"), key).events.events) == 2


def test_a_budget(tmp_path: Path, cli: Cli) -> None:
    """Whatever is changed, missing or added is refused, by check and by who adds to it."""
    limit = Limit(Fraction(1), "add_remove", "record")
    folder = tmp_path / "ledger" / "people"
    for number in range(3):
        told = {"run_id": f"run {number}", "kind": "select"}
        charge(FILES, f"file:{folder}", limit, Fraction(1, 10), told)

    def require_refused(expected: Path) -> None:
        done = cli("ledger", "check", tmp_path / "ledger")
        assert done.code == 4, expected
        assert str(expected) in done.err.replace("\n", "")
        with pytest.raises(GuaranteeError, match=re.escape(str(expected))):
            list_release(FILES, f"file:{folder}", limit, {"run_id": "x", "release": "y"})

    cli.ends(0, "ledger", "check", tmp_path / "ledger")
    for path in files_of(folder):
        content = path.read_bytes()
        # Where the middle is depends on the paths in it: what names the key is changed, too.
        named = [content.find(name) + 2 for name in (b"key_file", b"/key") if name in content]
        for place in (0, len(content) // 2, len(content) - 2, *named):
            path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
            done = cli("ledger", "check", tmp_path / "ledger")
            assert done.code != 0, (path, place)
        path.unlink()
        if path.name != "000003.json":
            require_refused(path)
        path.write_bytes(content)
        copy = path.with_name(f"a{path.name}")
        shutil.copyfile(path, copy)
        require_refused(copy)
        copy.unlink()
    cli.ends(0, "ledger", "check", tmp_path / "ledger")


def configured(tmp_path: Path, **sections: Any) -> Path:
    draw = np.random.default_rng(1)
    columns = {"age": draw.integers(20, 60, 200), "ill": draw.choice(["no", "yes"], 200)}
    write_table(tmp_path / "input.parquet", pa.table(columns))
    ledger = {"path": str(tmp_path / "ledger"), "dataset": "people", "limit": 2}
    return configuration_file(
        tmp_path,
        **{
            "attributes": {"age": "quasi_identifier", "ill": "sensitive"},
            "privacy": {"l_diversity": [{"attribute": "ill", "l": 2}]},
            "ledger": ledger,
            "execution": {"seed": 11},
        }
        | sections,
    )


def entries(tmp_path: Path) -> list[dict[str, Any]]:
    paths = sorted((tmp_path / "ledger" / "people").glob("0*.json"))
    return [json.loads(path.read_text()) for path in paths]


def test_a_release_is_listed_beside_what_was_spent(tmp_path: Path, cli: Cli) -> None:
    selection = {
        "target": "ill",
        "count": 1,
        "epsilon": "0.5",
        "domains": {"ill": {"values": ["no", "yes"]}, "age": {"bins": [30, 40, 50]}},
        "output": str(tmp_path / "selection"),
    }
    path = configured(tmp_path, selection=selection)
    cli.ends(0, "select", path)
    cli.ends(0, "run", path, "--run-id", "one")
    spent, release = entries(tmp_path)
    manifest = json.loads((tmp_path / "release" / "manifest.json").read_text())
    assert spent["kind"] == "select"
    assert {name: release[name] for name in ("number", "run_id", "command", "kind", "k")} == {
        "number": 2, "run_id": "one", "command": "run", "kind": "release", "k": 5,
    }  # fmt: skip
    assert release["release"] == manifest["fingerprints"]["output"]
    assert release["criteria"] == {"l_diversity": [{"attribute": "ill", "l": 2}]}
    assert "epsilon" not in release
    assert release["spent_before"] == release["spent_after"] == "1/2"
    # Where the ledger is, who gets the release need not know.
    assert str(tmp_path / "ledger") not in json.dumps(manifest)
    shown = cli("ledger", "show", tmp_path / "ledger")
    assert "people: 0.5 of 2 spent, 1.5 left" in shown.out
    assert "release" in shown.out
    cli.ends(0, "ledger", "check", tmp_path / "ledger")
    # The chain covers releases, too.
    place = tmp_path / "ledger" / "people" / "000002.json"
    place.write_text(place.read_text().replace('"k": 5', '"k": 50'))
    more = ("--set", f"selection.output={tmp_path / 'more'}")
    cli.ends(4, "select", path, *more, "--dry-run")
    cli.ends(4, "run", path, "--set", f"output.path={tmp_path / 'b'}")
    cli.ends(4, "ledger", "check", tmp_path / "ledger")


def test_every_release_is_listed_once(tmp_path: Path, cli: Cli) -> None:
    path = configured(tmp_path)
    cli.ends(0, "check", path)
    assert not (tmp_path / "ledger").exists()
    for _ in range(2):
        cli.ends(0, "run", path, "--run-id", "one")
        assert len(entries(tmp_path)) == 1
    overwriting = ("run", path, "--set", "output.mode=overwrite", "--run-id")
    cli.ends(0, *overwriting, "one")
    assert len(entries(tmp_path)) == 1
    cli.ends(0, *overwriting, "two")
    assert [one["run_id"] for one in entries(tmp_path)] == ["one", "two"]


def test_releases_of_a_comparison_are_not_listed(tmp_path: Path) -> None:
    configuration = load_configuration(configured(tmp_path))
    run(LocalEngine(), configuration, purpose="comparison")
    assert not (tmp_path / "ledger").exists()


@cases(__file__, "ledger", "code", "told")
def test_without_a_sound_ledger_nothing_is_published(
    tmp_path: Path, cli: Cli, ledger: dict[str, Any], code: int, told: str
) -> None:
    for name, text in (("made", '{"limit": "2", "neighbors": "replace", "unit": "record"}'),):
        (tmp_path / "ledger").mkdir()
        (tmp_path / "ledger" / name).mkdir(mode=0o700)
        (tmp_path / "ledger" / name / "limit.json").write_text(text)
    (tmp_path / "ledger" / "broken").mkdir(mode=0o700)
    (tmp_path / "ledger" / "broken" / "limit.json").write_text("{}")
    own = {"path": str(tmp_path / "ledger"), "dataset": "people", "limit": 2} | ledger
    own["path"] = own["path"].replace("{folder}", str(tmp_path))
    cli.ends(code, "run", configured(tmp_path, ledger=own), says=told)
    assert not (tmp_path / "release").exists()


def test_a_ledger_that_cannot_be_written(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError("read-only file system")

    path = configured(tmp_path)
    monkeypatch.setattr("anonspark.sharing.ledger.budget.append_link", refuse)
    cli.ends(5, "run", path, says="Nothing was drawn or published")
    assert not (tmp_path / "release").exists()


def test_a_release_that_was_listed_and_did_not_come(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: Any, **__: Any) -> None:
        raise OSError("killed")

    path = configured(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr("anonspark.pipeline.run.commit", die)
        assert cli("run", path, "--run-id", "one").code != 0
    assert not (tmp_path / "release").exists()
    assert len(entries(tmp_path)) == 1
    # The next attempt makes the same release, which is listed already.
    cli.ends(0, "run", path, "--run-id", "one", "--resume")
    assert (tmp_path / "release" / "manifest.json").exists()
    assert len(entries(tmp_path)) == 1
