"""Many nights of a plan: no coalition singles a person out, and a newcomer changes nothing."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import shutil
import signal
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import chdir
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import data_beside

import anonspark
from anonspark.cli.application import main
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.local.files import LocalFiles
from anonspark.errors import AnonsparkError, DataError, PublishingError
from anonspark.release.manifest import manifest_text
from anonspark.sharing.ledger.chain import make_key, read_key
from anonspark.sharing.ledger.check import check_ledger, demand_of, required_coalitions
from anonspark.sharing.ledger.ledger import init_ledger, open_ledger, withdraw_releases
from anonspark.sharing.recipients.distribute import distribute
from anonspark.sharing.recipients.members import clean_plan
from anonspark.sharing.recipients.plan import Plan, parse_plan

FILES = LocalFiles()
K, L = 4, 2
PEOPLE = 120
SCHEMA = pa.schema(
    [
        ("pid", pa.string()),
        ("tag", pa.int64()),
        *((name, pa.int64()) for name in ("age", "zip")),
        *((name, pa.string()) for name in ("sex", "dept", "diag")),
    ]
)
RECIPIENTS: dict[str, dict[str, Any]] = {
    "office": {"columns": ["age", "zip", "tag"]},
    "psych": {"columns": ["age", "zip", "tag", "diag"], "where": {"dept": ["psy"]}},
    "press": {"columns": ["age", "sex", "tag"], "privacy": {"k": 7}},
}

# In the order of the nights: what is put back instead of the newest ledger.
BACKUPS = ("ledger", "ledger and key", "ledger taken for the newest")

# How many operations on files a night has, about; a later one is a fault of no night.
OPERATIONS = 1000
_CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.chmod")
Copy = dict[int, tuple[tuple[Any, ...], Any]]
"""Class and diagnosis of each tag in a release."""


def at_operation(number: int, happen: Callable[[], None], changes: Collection[str]) -> None:
    """Do something before the operation of a number that changes files of this process."""
    counted = itertools.count(1)

    def hook(event: str, given: tuple[Any, ...]) -> None:
        writes = event == "open" and isinstance(given[2], int) and given[2] & 3
        if (writes or event in changes) and next(counted) == number:
            happen()

    sys.addaudithook(hook)


def be_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def find_no_space() -> None:
    raise OSError(28, "No space left on device")


def require_no_staging() -> None:
    """Check that runs left nothing beside their outputs."""
    found = [*Path().glob(".*anonspark-*"), *Path("out").glob("**/.*anonspark-*")]
    assert not found, "staging was left behind"


class Nights:
    """A hospital whose people come, leave, change and come back, and three recipients."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.draw = folder, random.Random(seed)  # noqa: S311 - drawn again alike
        self.numbers = itertools.count(1)
        self.there = [self.person() for _ in range(PEOPLE)]
        self.gone: list[dict[str, Any]] = []
        self.held: dict[str, tuple[str, Copy]] = {}
        self.shares: list[float] = []
        self.faults: Counter[str] = Counter()
        key = make_key("key")
        init_ledger(FILES, "ledger", key, ["pid"], ())

    def person(self) -> dict[str, Any]:
        number = next(self.numbers)
        return {"pid": f"P{number}", "tag": number, **self.values()}

    def values(self) -> dict[str, Any]:
        return {
            "age": self.draw.choice([None, *range(18, 98)]),
            "zip": self.draw.randrange(10_000, 10_030),
            "sex": self.draw.choice(["f", "m"]),
            "dept": self.draw.choice(["psy", "surg"]),
            "diag": self.draw.choice("abcd"),
        }

    def live(self) -> None:
        """Let some people leave, come back, come or change."""
        for one in self.draw.sample(self.there, self.draw.randrange(4)):
            self.there.remove(one)
            self.gone.append(one)
        for one in self.draw.sample(self.gone, min(len(self.gone), self.draw.randrange(3))):
            self.gone.remove(one)
            self.there.append(one)
        while len(self.there) < PEOPLE:
            self.there.append(self.person())
        for one in self.draw.sample(self.there, self.draw.randrange(3)):
            one.update(self.draw.sample(sorted(self.values().items()), 2))
        self.draw.shuffle(self.there)
        pq.write_table(pa.Table.from_pylist(self.there, SCHEMA), "people.parquet")

    def plan(self) -> Plan:
        return parse_plan(
            {
                "base": {
                    "input": {"path": "people.parquet"},
                    "attributes": {
                        "pid": "identifier",
                        **dict.fromkeys(("age", "zip", "sex"), "quasi_identifier"),
                        **dict.fromkeys(("tag", "dept"), "insensitive"),
                        "diag": "sensitive",
                    },
                    "missing": "category",
                    "privacy": {"k": K},
                    "model": {"name": "smondrian"},
                    "execution": {"seed": 6834927109572938475},
                    "output": {"mode": "overwrite"},
                },
                "subject": "pid",
                "collusion": {"k": K, "l_diversity": {"attribute": "diag", "l": L}},
                "ledger": {"path": "ledger", "key_file": "key"},
                "output": "out",
                "recipients": {
                    name: {"approved": "yes", **own} for name, own in RECIPIENTS.items()
                },
            }
        )

    def carry_out(self, run_id: str, *, resume: bool = False) -> None:
        try:
            # One thread: for so few people, handing tasks over takes longer than they do.
            distribute(LocalEngine(1), self.plan(), run_id=run_id, resume=resume)
        except DataError as error:
            if "records are withheld so that" not in str(error):
                raise
            # So few people have the same classes as before. Recipients destroy what they have.
            self.faults["withheld"] += 1
            shutil.rmtree("out", ignore_errors=True)
            self.withdraw(list(self.held))
            distribute(LocalEngine(1), self.plan(), run_id=run_id)

    def fail(self, run_id: str) -> None:
        """Carry the plan out in a process that is killed, or whose disk is full, and repair it."""
        kind = self.draw.choice(["killed", "full"])
        number = self.draw.randrange(1, OPERATIONS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            code = 70
            try:
                # What it withdraws this process would not know.
                self.withdraw = lambda _: os._exit(1)  # type: ignore[method-assign]
                if kind == "killed":
                    at_operation(number, be_killed, _CHANGES)
                else:
                    at_operation(number % 400, find_no_space, ["os.mkdir", "os.link"])
                self.carry_out(run_id)
                code = 0
            except (AnonsparkError, OSError):
                code = 1
            finally:
                os._exit(code)
        end = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert end in (0, 1, *([-signal.SIGKILL] if kind == "killed" else [])), (kind, number, end)
        self.faults[kind if end else "none"] += 1
        self.copy()
        # Whatever happened, the ledger knows at least what was given.
        known = open_ledger(FILES, "ledger", read_key("key"))
        assert {one.name for one in known.counted} >= set(self.held)
        if end == 0:
            return
        repair = self.draw.choice(["resume", "clean", "again"])
        self.faults[repair] += 1
        if repair == "clean":
            clean_plan(FILES, self.plan())
        try:
            self.carry_out(run_id, resume=repair == "resume")
        except PublishingError as error:
            # What can be gone on with is a matter for a person to decide.
            assert repair == "again" and "anonspark clean" in str(error)  # noqa: PT017, PT018
            self.copy()
            clean_plan(FILES, self.plan())
            self.carry_out(f"{run_id}b")

    def copy(self) -> None:
        """Give every recipient a copy of what is at its path."""
        for name, own in RECIPIENTS.items():
            release = Path("out", name)
            if not (release / "manifest.json").exists():
                continue
            run_id = json.loads((release / "manifest.json").read_text())["run_id"]
            if f"{name}-{run_id}" in self.held:
                continue
            rows = pq.read_table(release / "data").to_pylist()
            columns = [column for column in rows[0] if column not in ("tag", "diag")]
            assert set(columns) & set(own["columns"])
            self.held[f"{name}-{run_id}"] = (
                name,
                {
                    row["tag"]: (tuple(str(row[one]) for one in columns), row.get("diag"))
                    for row in rows
                },
            )

    def destroy(self) -> None:
        """Let recipients destroy old releases, but for one in twenty that stays for long."""
        self.withdraw(
            [
                name
                for place, name in enumerate(list(self.held)[:-6])
                if self.draw.random() < (0.02 if name.endswith("0") else 0.3) or place > 12
            ]
        )

    def withdraw(self, names: list[str]) -> None:
        withdraw_releases(FILES, "ledger", names, reason="destroyed", by="a test")
        for name in names:
            del self.held[name]

    def check(self) -> None:
        """Count the people of all joint classes of all coalitions, and their diagnoses."""
        for size in range(1, len(RECIPIENTS) + 1):
            for coalition in itertools.combinations(RECIPIENTS, size):
                self.check_coalition(coalition)

    def check_coalition(self, coalition: tuple[str, ...]) -> None:
        given = [(name, copy) for name, (owner, copy) in self.held.items() if owner in coalition]
        joint: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        for tag in set().union(*(copy for _, copy in given)):
            signature = tuple(copy[tag][0] if tag in copy else None for _, copy in given)
            joint[signature].append(tag)
        for members in joint.values():
            assert len(members) >= K, (coalition, len(members))
            for name, copy in given:
                if len(coalition) > 1 and name.startswith("psych") and members[0] in copy:
                    assert len({copy[tag][1] for tag in members}) >= L, (coalition, name)

    def night(self, number: int, fault: bool) -> None:
        self.live()
        if fault:
            self.fail(f"n{number}")
        else:
            self.carry_out(f"n{number}")
        require_no_staging()
        self.copy()
        given = [copy for owner, copy in self.held.values() if owner == "office"]
        self.shares.append(len(given[-1]) / len(self.there))
        self.destroy()
        self.check()

    def put_back(self, kind: str, number: int) -> None:
        """Put back a ledger of some nights ago, as somebody does who lost a disk."""
        old, newest = Path("old"), Path("newest")
        newest.mkdir()
        for name in ("ledger", "key.last"):
            shutil.move(name, newest / name)
        shutil.copytree(old / "ledger", "ledger")
        shutil.copy((old if kind != "ledger" else newest) / "key.last", "key.last")
        refusal = (
            "does not know the release" if kind == "ledger and key" else "is older than it was"
        )
        if kind == "ledger taken for the newest":
            shutil.copy(newest / "key.last", "key.last")
        self.live()
        with pytest.raises(DataError, match=refusal):
            self.carry_out(f"n{number}")
        require_no_staging()
        if kind == "ledger taken for the newest":
            opened = open_ledger(FILES, "ledger", read_key("key"), as_newest=True)
            opened.events.remember(older=True)
            # What the old ledger does not know does not count, and its recipients destroy it.
            counted = {one.name for one in opened.counted}
            self.held = {name: one for name, one in self.held.items() if name in counted}
            shutil.rmtree("out")
            lost = counted - set(self.held)
            withdraw_releases(FILES, "ledger", lost, reason="gone", by="a test")
        else:
            shutil.rmtree("ledger")
            for name in ("ledger", "key.last"):
                shutil.move(newest / name, name)
        shutil.rmtree(newest)


@pytest.mark.parametrize(
    ("seed", "nights"),
    [
        pytest.param(1, 9),
        pytest.param(3, 500, marks=[pytest.mark.night, pytest.mark.timeout(3 * 3600)]),
        pytest.param(6, 500, marks=[pytest.mark.night, pytest.mark.timeout(3 * 3600)]),
    ],
)
def test_no_coalition_of_many_nights(
    tmp_path: Path, seed: int, nights: int, record_property: Callable[[str, object], None]
) -> None:
    with chdir(tmp_path):
        hospital = Nights(tmp_path, seed)
        backups = {nights * (one + 1) // 4: kind for one, kind in enumerate(BACKUPS)}
        for number in range(nights):
            if number in backups:
                hospital.put_back(backups[number], number)
            if number + 2 in backups:
                shutil.rmtree("old", ignore_errors=True)
                Path("old").mkdir()
                shutil.copytree("ledger", "old/ledger")
                shutil.copy("key.last", "old/key.last")
            hospital.night(number, fault=number % min(10, nights // 3) == 1)
        found = open_ledger(FILES, "ledger", read_key("key"))
        assert {one.name for one in found.counted} == set(hospital.held)
        told = check_ledger(
            LocalEngine(1),
            found,
            [*required_coalitions(found), *itertools.combinations(sorted(RECIPIENTS), 2)],
            demand_of(found),
            with_files=True,
        )
        assert told.problems == []
        require_no_staging()
    record_property(
        "points",
        f"seed {seed}, {nights} nights: {dict(hospital.faults)}, {len(found.releases)} releases, "
        f"{len(found.events.events)} events, {median(hospital.shares):.0%} of the people given",
    )
    # A plan that gives next to nothing would hold, too. The first nights give nearly all, later
    # ones between a fifth and all: recipients still have some fifteen releases.
    assert median(hospital.shares) > (0.5 if nights < 100 else 0.3)
    assert hospital.faults["killed"] + hospital.faults["full"] >= nights // 20 + 1


NEWCOMER_SCHEMA = pa.schema(
    [
        ("pid", pa.string()),
        ("age", pa.int64()),
        ("zip", pa.int64()),
        ("dept", pa.string()),
        ("diag", pa.string()),
    ]
)
NEWCOMER_RECIPIENTS = ("all", "psych")

# Of when a release was made, and of what is hashed or counted of that.
_OF_TIME = re.compile(r"\.(started|seconds|created|sha256|bytes)\b|\.versions\.")
NEWCOMERS: Mapping[str, Mapping[str, Any]] = data_beside(__file__)["NEWCOMERS"]


def people() -> list[dict[str, Any]]:
    draw = random.Random(4)  # noqa: S311 - the same people each time
    found = [
        {
            "pid": f"P{number:04}",
            "age": draw.randint(0, 99),
            "zip": draw.randint(10_000, 10_030),
            "dept": draw.choice(["surg", "psy"]),
            "diag": draw.choice("abc"),
        }
        for number in range(300)
    ]
    # More than k are without an age from the first night on.
    for one in found[-20:]:
        one["age"] = None
    return found


def flat(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from flat(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from flat(inner, f"{path}.{place}")
    else:
        yield path, value


def everything(release: Path) -> dict[str, Any]:
    """Return all that a recipient has, by file and place in it, without times."""
    found: dict[str, Any] = {}
    for path in sorted(one for one in release.rglob("*") if one.is_file()):
        name = str(path.relative_to(release))
        if path.suffix == ".json":
            found |= flat(json.loads(path.read_text()), name)
        elif path.suffix == ".parquet" and name.startswith("metrics"):
            found |= flat(pq.read_table(path).to_pylist(), name)
        elif path.suffix in (".html", ".md"):
            found[name] = re.sub(
                r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*|\d+(\.\d+)? s\b", "", path.read_text()
            )
        else:
            found[name] = path.read_bytes()
    return {name: one for name, one in found.items() if not _OF_TIME.search(name)}


def watched(folder: Path, recipient: str) -> dict[str, Any]:
    """Return what follows the releases of a recipient, and the page of the last one."""
    found: dict[str, Any] = {}
    for path in sorted((folder / "watched" / recipient).rglob("*.parquet")):
        name = str(path.relative_to(folder))
        found |= dict(flat(pq.read_table(path).to_pylist(), name))
    found = {name: one for name, one in found.items() if not _OF_TIME.search(name)}
    manifest = folder / "n3" / recipient / "manifest.json"
    document = json.loads(manifest.read_text())
    # The page draws how long each stage took.
    document["seconds"] = dict.fromkeys(sorted(document["seconds"]), 1.0)
    manifest.write_text(manifest_text(document))
    with chdir(folder):
        main(["report", f"n3/{recipient}", "--out", f"{recipient}.html", "--no-progress"])
    found["page"] = re.sub(
        r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*|[0-9a-f]{64}",
        "",
        (folder / f"{recipient}.html").read_text(),
    )
    return found


class NewcomerNights:
    """Two nights of a plan, and third ones that all follow these."""

    def __init__(self, folder: Path, missing: str) -> None:
        self.folder, self.missing = folder / "two", missing
        self.people = people()
        gone = [one["pid"] for one in self.people if one["dept"] == "psy"][:7]
        self.rest = [one for one in self.people if one["pid"] not in gone]
        self.folder.mkdir()
        key = make_key(str(self.folder / "key"))
        init_ledger(LocalEngine().files, str(self.folder / "ledger"), key, ["pid"], ())
        self.night(self.folder, 1, self.people)
        self.night(self.folder, 2, self.rest)

    def night(self, folder: Path, number: int, rows: list[dict[str, Any]]) -> Any:
        pq.write_table(pa.Table.from_pylist(rows, NEWCOMER_SCHEMA), folder / "d.parquet")
        plan = {
            "base": {
                "input": {"path": "d.parquet"},
                "attributes": {
                    "pid": "identifier",
                    "age": "quasi_identifier",
                    "zip": "quasi_identifier",
                    "dept": "insensitive",
                    "diag": "sensitive",
                },
                "missing": self.missing,
                "privacy": {"k": 5},
                "execution": {"seed": 6834927109572938475},
                "gates": {name: {"min": 5, "max": 1000} for name in ("rows_in", "rows_published")},
            },
            "subject": "pid",
            "collusion": {"k": 5},
            "ledger": {"path": "ledger", "key_file": "key"},
            "output": f"n{number}",
            "recipients": {
                "psych": {
                    "approved": "a",
                    "columns": ["age", "zip", "diag"],
                    "where": {"dept": ["psy"]},
                },
                "all": {"approved": "b", "columns": ["age", "zip"]},
            },
        }
        for name, own in plan["recipients"].items():
            own["metrics"] = {
                "job": name,
                "append_to": f"watched/{name}",
                "drift": {"rows_in": 1, "rows_dropped_missing": 1, "rows_published": 1},
            }
        # The same paths in every folder: they are in the fingerprint of the configuration.
        with chdir(folder):
            return distribute(LocalEngine(), parse_plan(plan), run_id=f"n{number}")

    def third(self, name: str, newcomers: list[dict[str, Any]]) -> tuple[Any, dict[str, Any]]:
        folder = self.folder.parent / name
        shutil.copytree(self.folder, folder)
        given = self.night(folder, 3, [*self.rest, *newcomers])
        told = {
            one: everything(folder / "n3" / one) | watched(folder, one)
            for one in NEWCOMER_RECIPIENTS
        }
        text = {
            name: {key: _without(value, folder) for key, value in one.items()}
            for name, one in told.items()
        }
        return given, text


def _without(value: Any, folder: Path) -> Any:
    return value.replace(str(folder), "") if isinstance(value, str) else value


@pytest.fixture(scope="module", params=["drop", "category"])
def nights(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> NewcomerNights:
    return NewcomerNights(tmp_path_factory.mktemp(request.param), request.param)


@pytest.fixture(scope="module")
def without(nights: NewcomerNights) -> dict[str, Any]:
    return nights.third("nobody", [])[1]


@pytest.mark.parametrize("name", NEWCOMERS)
def test_nobody_gets_anything_else(
    nights: NewcomerNights, without: dict[str, Any], name: str
) -> None:
    newcomer = {"pid": "X", "age": 50, "zip": 10_010, "dept": "psy", "diag": "a"} | NEWCOMERS[name]
    given, found = nights.third(name.replace(" ", "-"), [newcomer])
    for recipient in NEWCOMER_RECIPIENTS:
        differ = {
            key: (without[recipient].get(key), found[recipient].get(key))
            for key in without[recipient] | found[recipient]
            if without[recipient].get(key) != found[recipient].get(key)
        }
        assert differ == {}, recipient
    # Who carries the plan out knows.
    assert given.withheld["all"] > 0


def test_no_count_of_what_is_not_given(nights: NewcomerNights, without: dict[str, Any]) -> None:
    for recipient in NEWCOMER_RECIPIENTS:
        found = without[recipient]
        told = {key: value for key, value in found.items() if re.search(r"\.rows_(re|wi)", key)}
        assert len(told) >= 6
        dropped = {
            k: v for k, v in found.items() if re.search(r"summary.*rows_(in|dropped_missing)$", k)
        }
        assert len(dropped) >= 4
        assert set(told.values()) == {None}
        assert (set(dropped.values()) == {None}) == (nights.missing == "drop")


def test_whose_records_are_is_looked_up_in_what_is_given(caplog: pytest.LogCaptureFixture) -> None:
    """A table in memory cannot be opened again, and nobody's other columns are looked at."""
    rows = [one | {"family": number // 3} for number, one in enumerate(people())]
    roles = {"pid": "identifier", "age": "quasi_identifier", "zip": "quasi_identifier"}
    plan = {
        "base": {"attributes": roles, "missing": "category", "privacy": {"k": 5}},
        "recipients": {"all": {"approved": "b", "columns": ["age", "zip"]}},
        "subject": "pid",
    }
    with anonspark.distribute(pa.Table.from_pylist(rows), plan) as given:
        assert "family" not in json.dumps(given.releases["all"].manifest)
    assert "numbers people" not in caplog.text
