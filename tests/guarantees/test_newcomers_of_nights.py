"""A newcomer who is withheld, or whose record is dropped, changes nothing that a recipient gets."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import chdir
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anonspark
from anonspark.cli.application import main
from anonspark.engine.local.engine import LocalEngine
from anonspark.release.manifest import manifest_text
from anonspark.sharing.ledger.chain import make_key
from anonspark.sharing.ledger.ledger import init_ledger
from anonspark.sharing.recipients.distribute import distribute
from anonspark.sharing.recipients.plan import parse_plan

SCHEMA = pa.schema(
    [
        ("pid", pa.string()),
        ("age", pa.int64()),
        ("zip", pa.int64()),
        ("dept", pa.string()),
        ("diag", pa.string()),
    ]
)
RECIPIENTS = ("all", "psych")
# Of when a release was made, and of what is hashed or counted of that.
_OF_TIME = re.compile(r"\.(started|seconds|created|sha256|bytes)\b|\.versions\.")

NEWCOMERS: Mapping[str, Mapping[str, Any]] = {
    "of the condition": {},
    "not of the condition": {"dept": "surg"},
    "older than all": {"age": 500},
    "not of the condition, and older": {"age": 500, "dept": "surg"},
    "farther than all": {"zip": 99_999},
    "of a new diagnosis": {"diag": "zz"},
    "without a department": {"dept": None},
    "without an age": {"age": None},
    "without anything": {"age": None, "zip": None, "dept": None, "diag": None},
}


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


class Nights:
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
        pq.write_table(pa.Table.from_pylist(rows, SCHEMA), folder / "d.parquet")
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
        told = {one: everything(folder / "n3" / one) | watched(folder, one) for one in RECIPIENTS}
        text = {
            name: {key: _without(value, folder) for key, value in one.items()}
            for name, one in told.items()
        }
        return given, text


def _without(value: Any, folder: Path) -> Any:
    return value.replace(str(folder), "") if isinstance(value, str) else value


@pytest.fixture(scope="module", params=["drop", "category"])
def nights(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Nights:
    return Nights(tmp_path_factory.mktemp(request.param), request.param)


@pytest.fixture(scope="module")
def without(nights: Nights) -> dict[str, Any]:
    return nights.third("nobody", [])[1]


@pytest.mark.parametrize("name", NEWCOMERS)
def test_nobody_gets_anything_else(nights: Nights, without: dict[str, Any], name: str) -> None:
    newcomer = {"pid": "X", "age": 50, "zip": 10_010, "dept": "psy", "diag": "a"} | NEWCOMERS[name]
    given, found = nights.third(name.replace(" ", "-"), [newcomer])
    for recipient in RECIPIENTS:
        differ = {
            key: (without[recipient].get(key), found[recipient].get(key))
            for key in without[recipient] | found[recipient]
            if without[recipient].get(key) != found[recipient].get(key)
        }
        assert differ == {}, recipient
    # Who carries the plan out knows.
    assert given.withheld["all"] > 0


def test_no_count_of_what_is_not_given(nights: Nights, without: dict[str, Any]) -> None:
    for recipient in RECIPIENTS:
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
