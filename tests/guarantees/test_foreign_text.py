"""Names and values of others act on no terminal, no Markdown and no page, whatever is called."""

from __future__ import annotations

import io
import json
import logging
import re
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from commands import Cli

import anonspark
from anonspark.foreign_text import code_span, json_text, visible, visible_lines
from anonspark.profiling.draft import _flow

# Sets the clipboard, clears the screen, turns the writing round, ends a line, is markup of rich.
CODES = "\x1b]52;c;cHduZWQ=\x07\x1b[2J\x9b2J\u202e\u2028\u200b\x7f\r\nforged: [red]x[/] :smile:"
MARKUP = "<img src=x onerror=alert(1)>[pay](https://evil.example)`<b>`|"
AGE, TOWN, WARD = f"age{CODES}", f"to\nwn {MARKUP}", f"wa[/]rd{MARKUP}{CODES}"
DISEASE = f"disease{CODES}{MARKUP}"

HOSTILE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]")


def no_codes(text: str) -> None:
    assert not HOSTILE.search(text), text
    assert "\u200b" not in text
    assert not re.search(r"^forged", text, re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    rows = 120
    table = {
        AGE: [20 + row * 7 % 41 for row in range(rows)],
        TOWN: [("a", f"b{CODES}", f"c{MARKUP}")[row % 3] for row in range(rows)],
        WARD: [f"{'xy'[row % 2]}{CODES}{MARKUP}" for row in range(rows)],
        DISEASE: [f"{one}{CODES}{MARKUP}" for one in ("flu", "cold", "cough", "asthma") * 30],
    }
    pq.write_table(pa.table(table), folder / "t.parquet")
    document = {
        "input": {"path": str(folder / "t.parquet")},
        "attributes": {
            AGE: "quasi_identifier",
            TOWN: "quasi_identifier",
            WARD: "insensitive",
            DISEASE: "sensitive",
        },
        "privacy": {"k": 5, "l_diversity": {"attribute": DISEASE, "l": 2}},
        "output": {"path": str(folder / "release")},
        "metrics": {"append_to": str(folder / "nights"), "job": f"job{CODES}"},
    }
    (folder / "c.json").write_text(json.dumps(document))
    wrong = (
        document
        | {"privacy": {"k": 5}}
        | {"attributes": {f"lost{CODES}": "quasi_identifier", AGE: "sensitive"}}
    )
    (folder / "wrong.json").write_text(json.dumps(wrong))
    return folder


def test_no_command_shows_codes(folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    logging.getLogger("anonspark").handlers = []
    quoted = '"' + DISEASE.replace('"', '""') + '"'
    calls: list[tuple[int, list[str]]] = [
        (0, ["profile", "t.parquet", "--show-values"]),
        (0, ["init", "t.parquet", "--out", "drafted.yaml"]),
        (0, ["check", "c.json"]),
        (0, ["check", "c.json", "--plan"]),
        (0, ["run", "c.json"]),
        (0, ["verify", "release", "--original", "t.parquet"]),
        (0, ["query", "release", f"by {quoted}"]),
        (0, ["report", "release"]),
        (0, ["history", "nights"]),
        (0, ["evaluate", "release", "--original", "t.parquet", "--target", DISEASE]),
        (2, ["run", f"no{CODES}.yaml"]),
        (2, ["check", "wrong.json", "--set", f"x{CODES}=1"]),
        (2, [f"runn{CODES}"]),
        (2, ["query", "release", f"x{CODES} = 1"]),
        (3, ["check", "wrong.json"]),
        (2, ["verify", f"nowhere{CODES}"]),
        (3, ["verify", "no\x1b[2J\u202e\nforged"]),
    ]
    for code, arguments in calls:
        for more in ([], ["--log-format", "json"], ["--debug"]) if code else ([],):
            found = cli(*arguments, *more)
            assert found.code == code, (arguments, found.err)
            no_codes(found.out)
            no_codes(found.err)
    for arguments in (
        ["query", "release", f"by {quoted}", "--json"],
        ["check", "c.json", "--json"],
    ):
        found = cli(*arguments, "--json")
        no_codes(found.out)
        assert json.loads(found.out)
    groups = json.loads(cli("query", "release", f"by {quoted}", "--json").out)
    assert f"flu{CODES}{MARKUP}" in {one["value"] for one in groups["groups"]}

    drafted = yaml.safe_load((folder / "drafted.yaml").read_text())
    assert set(drafted["attributes"]) <= {AGE, TOWN, WARD, DISEASE}
    no_codes((folder / "drafted.yaml").read_text())

    page = (folder / "release" / "README.md").read_text()
    no_codes(page)
    outside = re.sub(r"```.*?```|`[^`\n]*`", "", page, flags=re.DOTALL)
    for sign in ("<", "](", "forged", "evil", "`"):
        assert sign not in outside, sign
    descriptions = json.loads((folder / "release" / "datapackage.json").read_text())
    for field in descriptions["resources"][0]["schema"]["fields"]:
        assert "<" not in re.sub(r"`[^`]*`", "", field["description"])
    for name in folder.glob("release*/**/*.html"):
        assert not Tags(name.read_text()).of_others

    shown = anonspark.read(str(folder / "release"))
    no_codes(repr(shown))


class Tags(HTMLParser):
    """Finds elements and attributes that no page of ours has."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.of_others: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("img", "script", "b") or any(name.startswith("on") for name, _ in attrs):
            self.of_others.append(tag)


def no_codes_in_page(page: str) -> None:
    assert not HOSTILE.search(page), page
    assert "\u200b" not in page
    assert not Tags(page).of_others


def test_no_command_for_several_parties_shows_codes(
    folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plans, ledgers, selections, comparisons, questions and pages."""
    monkeypatch.chdir(folder)

    def call(code: int, *arguments: object) -> None:
        done = cli(*arguments)
        assert done.code == code, (arguments, done.err)
        no_codes(done.out)
        no_codes(done.err)

    people = {
        **pq.read_table("t.parquet").to_pydict(),
        TOWN: [f"{row}{CODES}" for row in range(120)],
    }
    pq.write_table(pa.table(people), "people.parquet")
    roles = {TOWN: "identifier", AGE: "quasi_identifier", WARD: "insensitive", DISEASE: "sensitive"}
    diverse = {"k": 5, "l_diversity": {"attribute": DISEASE, "l": 2}}
    base = {"input": {"path": "people.parquet"}, "attributes": roles, "privacy": diverse}
    asked = {"approved": f"yes{CODES}{MARKUP}", "columns": [AGE, DISEASE]}
    plan = {
        "base": base | {"execution": {"seed": 2**40}},
        "subject": TOWN,
        "ledger": {"path": "ledger", "key_file": "key"},
        "output": "given",
        "recipients": {"press": asked | {"where": {WARD: [f"x{CODES}{MARKUP}"]}}},
    }
    Path("plan.json").write_text(json.dumps(plan))
    other = plan | {"recipients": {f"press{CODES}": asked}}
    Path("other.json").write_text(json.dumps(other))
    selection = {
        "input": {"path": "t.parquet"},
        "attributes": roles | {TOWN: "quasi_identifier", WARD: "quasi_identifier"},
        "selection": {
            "target": DISEASE,
            "candidates": [TOWN, WARD],
            "count": 1,
            "epsilon": 1,
            "score": "gini",
            "output": "selected",
            "domains": {
                TOWN: {"values": ["a", f"b{CODES}", f"c{MARKUP}"]},
                WARD: {"values": [f"{one}{CODES}{MARKUP}" for one in "xy"]},
                DISEASE: {"values": sorted(set(people[DISEASE]))},
            },
        },
        "ledger": {"path": "budgets", "dataset": "people", "limit": 5},
    }
    Path("select.json").write_text(json.dumps(selection))
    shared = json.loads(Path("c.json").read_text())
    axes = [{"privacy.k": [5, 9]}]
    grid = {"title": CODES, "base": shared, "axes": axes, "output": "compared"}
    Path("grid.json").write_text(json.dumps(grid))
    call(0, "ledger", "init", "ledger", "--key-file", "key", "--subject", TOWN)
    call(0, "distribute", "plan.json", "--run-id", "n1", "--check")
    call(0, "distribute", "plan.json", "--run-id", "n1")
    call(2, "distribute", "other.json", "--run-id", "n2")
    call(0, "ledger", "withdraw", "ledger", "press-n1", "--reason", CODES, "--by", CODES)
    call(0, "ledger", "show", "ledger")
    call(0, "ledger", "show", "ledger", "--json")
    call(0, "ledger", "check", "ledger", "--files")
    call(2, "ledger", "check", "ledger", "--coalition", CODES)
    call(0, "select", "select.json")
    call(0, "select", "select.json", "--dry-run")
    call(0, "ledger", "show", "budgets")
    call(0, "compare", "grid.json")
    call(2, "union", "release", f"x{CODES}", "--out", "united")
    call(2, "mapping", f"x{CODES}")
    call(0, "doctor")
    call(0, "history", "nights", "--html", "history.html")
    call(0, "profile", "t.parquet", "--html", "profile.html", "--show-values")
    call(0, "report", "release", "--original", "t.parquet", "--target", DISEASE)

    lock = {"host": CODES, "run_id": CODES, "time": CODES}
    Path("ledger/lock").write_text(json.dumps(lock))
    for words in (["ledger", "unlock", "ledger"], ["init", "t.parquet", "-i", "--out", "i.yaml"]):
        monkeypatch.setattr("sys.stdin", io.StringIO("\n" * 20))
        done = cli(*words)
        no_codes(done.out)
        no_codes(done.err)
        assert "?" in done.out or "[y/N]" in done.out

    shown = [anonspark.profile("t.parquet"), anonspark.verify("release"), anonspark.read("release")]
    for one in shown:
        no_codes(repr(one))
        no_codes_in_page(getattr(one, "_repr_html_", str)())
    pages = sorted(folder.rglob("*.html"))
    assert {page.name for page in pages} >= {"history.html", "profile.html", "report.html"}
    for page in pages:
        no_codes_in_page(page.read_text())


def test_what_is_visible() -> None:
    assert visible("Zoë, 東京 \\x") == "Zoë, 東京 \\x"
    assert visible("\x1b[2J\x9b\u202e\u2028\ud800\n") == "\\x1b[2J\\x9b\\u202e\\u2028\\ud800\\n"
    assert visible_lines("a\nb\r") == "a\nb\\r"
    value = {CODES: [MARKUP, "\U000e0041", 1, None]}
    assert json.loads(json_text(value, indent=2)) == value
    no_codes(json_text(value))
    assert code_span("a`|\n") == "`a\\x60\\x7c\\n`"


@pytest.mark.parametrize("name", [AGE, TOWN, WARD, "# x", "no", "\U000e0041", "a: b", "- c"])
def test_yaml_reads_back_the_same_name(name: str) -> None:
    text = _flow({"attribute": name, "l": 2})
    assert "\n" not in text
    no_codes(text)
    assert yaml.safe_load(text) == {"attribute": name, "l": 2}
