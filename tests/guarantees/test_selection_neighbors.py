"""Tables that differ in a record, or in a person: `select` shows which it was by noise only.

Every other channel (exit code, output, log, files, charge) is equal for both. docs/inference.md
lists them.
"""

from __future__ import annotations

import json
import logging
import random
import re
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from cases import cases
from commands import command

import anonspark
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import ConfigurationError
from anonspark.sharing.selection.selecting import look_ahead, select
from anonspark.sharing.selection.settings import parse_selection

RECORDS = 40
BASE = [f"P{n},{20 + n % 50},{'mf'[n % 2]},{'flu' if n % 3 else 'hiv'}" for n in range(RECORDS)]

MECHANISMS: Mapping[str, Mapping[str, Any]] = {
    "bounded": {"score": "information_gain", "records_at_most": RECORDS},
    "bounded by few": {"score": "information_gain", "records_at_most": 3, "tables_epsilon": "0.5"},
    "tables": {"mechanism": "tables"},
    "bins that are drawn": {
        "domains": {
            "diag": {"values": ["flu", "hiv"]},
            "sex": {"values": ["m", "f"]},
            "age": {
                "bins": {"from": 20, "to": 70, "width": 5, "quantiles": 3, "epsilon": "0.000001"}
            },
        }
    },
    "of persons": {"person": "who", "rows_per_person": 2, "tables_epsilon": "0.5"},
}

RECORD: Mapping[str, Sequence[str]] = {
    "one more than the bound": ["P40,33,m,flu"],
    "a class that is not declared": ["P40,33,m,plague"],
    "no class": ["P40,33,m,"],
    "values that are not declared": ["P40,old,x,hiv"],
    "nothing but missing values": [",,,"],
    "nobody": [",33,m,flu"],
    "a quote that does not end": ['P40,33,"m,flu'],
    "a quote within a value": ['P40,33,m"x"y,flu'],
    "too few values": ["P40,33"],
    "too many values": ["P40,33,m,flu,x,y"],
    "a zero byte": ["P40,33,m\0,flu"],
    "a long value": ["P40,33," + "m" * 300_000 + ",flu"],
    "a number beyond all": ["P40,1e999999,m,flu"],
}
"""Of each what is added to the table."""


@pytest.fixture
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw the same coins in every run: what differs then is no noise."""
    defaults = select.__kwdefaults__ | {}

    def below(most: int) -> int:
        return random.randrange(most)  # noqa: S311 - a test that can be repeated

    monkeypatch.setattr(select, "__kwdefaults__", defaults | {"below": below})


def document_at(folder: Path, **selection: Any) -> dict[str, Any]:
    return {
        "input": {"path": str(folder / "p.csv"), "options": {"header": True}},
        "attributes": {
            "who": "identifier",
            "age": "quasi_identifier",
            "sex": "quasi_identifier",
            "diag": "sensitive",
        },
        "selection": {
            "target": "diag",
            # All of them, so that only their order is drawn.
            "count": 2,
            "epsilon": "0.000001",
            "domains": {
                "diag": {"values": ["flu", "hiv"]},
                "sex": {"values": ["m", "f"]},
                "age": {"bins": [30, 50]},
            },
            "output": str(folder / "out"),
        }
        | selection,
        "execution": {"seed": 6834927109572938475},
        "ledger": {"path": str(folder / "ledger"), "dataset": "d", "limit": 1},
    }


def without_chance(text: str, folder: Path) -> list[str]:
    """Return the words of a text, without times and names of folders; their order was drawn."""
    text = text.replace(str(folder), "")
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*|\d+(\.\d+)? s\b|[0-9a-f]{32,}", "", text)
    return sorted(text.split())


class Channels:
    """Runs `select` and returns all that somebody sees of it but what is drawn."""

    def __init__(
        self, folder: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
    ) -> None:
        self.folder, self.capsys, self.caplog = folder, capsys, caplog
        self.numbers = count()

    def of(self, records: Sequence[str], changes: Mapping[str, Any], missing: str) -> Any:
        folder = self.folder / str(next(self.numbers))
        folder.mkdir()
        (folder / "p.csv").write_text("who,age,sex,diag\n" + "".join(f"{one}\n" for one in records))
        document = document_at(folder, **changes) | {"missing": missing}
        path = folder / "configuration.json"
        path.write_text(json.dumps(document))
        random.seed(1)
        self.caplog.clear()
        with self.caplog.at_level(logging.INFO, logger="anonspark"):
            shown = command(self.capsys, "select", path, "--run-id", "one")
        files = {
            str(one.relative_to(folder)): one for one in folder.rglob("*") if one.name != "p.csv"
        }
        told = json.loads(files["out/selection.json"].read_text())
        told["attributes"].sort()
        entry = json.loads(files["ledger/d/000001.json"].read_text())
        tables = {
            name: pq.read_table(one).drop(["records"]).sort_by("attribute").to_pylist()
            for name, one in files.items()
            if name.startswith("out/tables/") and one.suffix == ".parquet"
        }
        for one in (entry, told["ledger"]):
            del one["time"]
        return {
            "exit code": shown.code,
            "output": without_chance(shown.out, folder),
            "messages": without_chance(shown.err, folder),
            "log": without_chance(self.caplog.text, folder),
            "files": sorted(re.sub(r"[0-9a-f-]{36}", "", name) for name in files),
            "entry": re.sub(r"[0-9a-f]{64}", "", str(entry)),
            "result": re.sub(r"[0-9a-f]{64}", "", str(told).replace(str(folder), "")),
            "tables": list(tables.values()),
        }


@pytest.mark.usefixtures("seeded")
@pytest.mark.parametrize("changes", MECHANISMS.values(), ids=MECHANISMS)
def test_all_channels_of_neighbors(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    changes: Mapping[str, Any],
) -> None:
    channels = Channels(tmp_path, capsys, caplog)
    for missing in ("category", "drop"):
        without = channels.of(BASE, changes, missing)
        assert without["exit code"] == 0
        for what, added in RECORD.items():
            assert channels.of([*BASE, *added], changes, missing) == without, what
        assert channels.of([], changes, missing) == without
        assert channels.of(BASE[:1], changes, missing) == without


@pytest.mark.usefixtures("seeded")
def test_all_channels_of_persons(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    channels, changes = Channels(tmp_path, capsys, caplog), MECHANISMS["of persons"]
    without = channels.of(BASE, changes, "category")
    many = [f"Q,{age},m,hiv" for age in range(500)]
    for own in (many[:1], many[:2], many[:3], many, ['Q,"1,m,hiv', ",1,m,hiv"]):
        assert channels.of([*BASE, *own], changes, "category") == without


def test_what_fails_while_records_are_read_is_charged(tmp_path: Path) -> None:
    settings = parse_selection(document_at(tmp_path))
    (tmp_path / "p.csv").write_text("who,age,sex,diag\n")
    engine = LocalEngine()

    class Vanishing(type(engine)):  # type: ignore[misc]
        """An engine whose files vanish once they are opened."""

        def open_source(self, *given: Any, **options: Any) -> Any:
            opened = super().open_source(*given, **options)
            (tmp_path / "p.csv").unlink()
            return opened

    with pytest.raises(Exception, match=r"vanished|cannot be read"):
        select(Vanishing(), settings)
    assert (tmp_path / "ledger" / "d" / "000001.json").exists()


@cases(__file__, "options", "message")
def test_what_would_let_one_record_change_others(
    tmp_path: Path, options: Mapping[str, Any], message: str
) -> None:
    document = document_at(tmp_path)
    document["input"]["options"] = options
    (tmp_path / "p.csv").write_text("who,age,sex,diag\n")
    for function in (look_ahead, select):
        with pytest.raises(ConfigurationError, match=re.escape(message)):
            function(LocalEngine(), parse_selection(document))
    assert not (tmp_path / "ledger").exists()


def test_columns_of_folders_have_types_of_all_of_them(tmp_path: Path) -> None:
    document = document_at(tmp_path)
    document["input"]["path"] = str(tmp_path / "parts")
    (tmp_path / "parts" / "sex=m").mkdir(parents=True)
    (tmp_path / "parts" / "sex=m" / "p.csv").write_text("who,age,diag\n")
    document["input"]["format"] = "csv"
    settings = parse_selection(document)
    with pytest.raises(ConfigurationError, match="column 'sex' is made of the names of folders"):
        select(LocalEngine(), settings)
    assert not (tmp_path / "ledger").exists()


@pytest.mark.parametrize(
    "value", [7, 2**70, b"x", [1], {"a": 1}, "\ud800", None, 1.5, True], ids=str
)
def test_no_object_of_pandas_decides_how_others_are_read(tmp_path: Path, value: Any) -> None:
    document = document_at(tmp_path, mechanism="tables", epsilon=50, candidates=["sex"], count=1)
    document["selection"]["domains"].pop("age")
    document["ledger"]["limit"] = 100
    del document["input"]
    table = pd.DataFrame([one.split(",") for one in BASE], columns=["who", "age", "sex", "diag"])
    table.loc[len(table)] = ["P40", "33", value, "flu"]
    anonspark.select(table, document)
    rows = pq.read_table(tmp_path / "out" / "tables").to_pylist()
    counted = {one: sum(r["records"] for r in rows if r["value"] == one) for one in ("m", "f")}
    assert counted == {"m": 20, "f": 20}
