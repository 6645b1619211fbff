"""What a verdict says where less was asked for than a reader takes it for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from cases import cases
from commands import Cli
from helpers import configuration_file, write_table
from release_folders import read_manifest, save_manifest

import anonspark
from anonspark.errors import ConfigurationError, GuaranteeError

ROWS = 120
ATTRIBUTES = {"age": {"role": "quasi_identifier", "grid": 1}, "illness": "sensitive"}


def people() -> dict[str, Any]:
    """Twelve ages of ten people each; of the six lower ones all people have the same illness."""
    ages = [20 + row // 10 for row in range(ROWS)]
    return {
        "age": ages,
        "illness": [
            "flu" if age < 26 else ("flu", "cold")[row % 2] for row, age in enumerate(ages)
        ],
        "ward": ["north"] * ROWS,
        "note": [f"note {row}" for row in range(ROWS)],
    }


@pytest.fixture
def configured(tmp_path: Path) -> Path:
    write_table(tmp_path / "input.parquet", people())
    return configuration_file(
        tmp_path,
        attributes=dict(ATTRIBUTES),
        model={"name": "smondrian"},
        execution={"seed": 2**40},
    )


def test_a_sensitive_attribute_without_a_criterion(
    configured: Path, tmp_path: Path, cli: Cli
) -> None:
    remedy = "privacy.l_diversity (--set privacy.l_diversity=2, in Python l=2)"
    checked = cli("check", configured, "--no-progress")
    assert "75% of the records share its most frequent value" in checked.err
    assert remedy in checked.err
    assert "usable, with 1 warning" in checked.out
    share = "50% of the records lie in such classes"
    cli.ends(0, "run", configured, "--no-progress", "--report", says=(share, remedy))
    (warning,) = read_manifest(tmp_path / "release")["warnings"]
    assert (warning["code"], warning["attribute"]) == ("no_criterion", "illness")
    assert warning["figures"] == {"homogeneous_records": ROWS // 2}
    assert "flu" not in warning["text"]
    proved = cli.ends(0, "verify", tmp_path / "release", "--no-progress", says=(share, remedy))
    assert "All criteria hold, with 1 warning" in proved.out
    readme = (tmp_path / "release" / "README.md").read_text()
    assert "`illness`: no criterion was asked for" in readme
    assert "100% share one value" in (tmp_path / "release" / "report.html").read_text()
    # With the option that the warning names nothing is left to warn of.
    option = ("--set", "privacy.l_diversity=2", "--set", "output.mode=overwrite")
    done = cli("run", configured, "--no-progress", *option)
    assert (done.code, done.err) == (0, "")
    assert "no criterion" not in (tmp_path / "release" / "README.md").read_text()
    proved = cli("verify", tmp_path / "release", "--no-progress")
    assert "All criteria hold." in proved.out


@cases(__file__, "privacy", "code")
def test_a_criterion_that_allows_classes_with_one_value(
    configured: Path, tmp_path: Path, privacy: dict[str, Any], code: str | None,
    cli: Cli,
) -> None:  # fmt: skip
    options = [f"--set=privacy.{key}={json.dumps(value)}" for key, value in privacy.items()]
    cli.ends(0, "run", configured, "--no-progress", *options)
    found = [one["code"] for one in read_manifest(tmp_path / "release")["warnings"]]
    assert found == ([] if code is None else [code])
    proved = cli("verify", tmp_path / "release", "--no-progress", "--json")
    assert len(json.loads(proved.out)["warnings"]) == len(found)


def test_the_option_that_is_named_fits_the_configuration(configured: Path, cli: Cli) -> None:
    attributes = {**ATTRIBUTES, "note": "sensitive"}
    several = [f"--set=attributes={json.dumps(attributes)}"]
    named = "--set privacy.l_diversity.note=3)"
    checked = cli("check", configured, "--no-progress", *several)
    assert named in checked.err
    # In Python l is asked of all attributes.
    assert "in Python" not in checked.err
    checked = cli(
        "check", configured, "--no-progress", *several, "--set=privacy.l_diversity.note=3"
    )
    assert "attributes.note: no criterion" not in checked.err
    listed = [*several, '--set=privacy.l_diversity=[{"attribute": "illness", "l": 2}]']
    checked = cli("check", configured, "--no-progress", *listed)
    assert "(add an entry of this attribute with l: 3)" in checked.err
    assert named not in checked.err


def test_a_distribution_is_no_better_than_its_releases() -> None:
    table = pd.DataFrame({**people(), "person": range(ROWS)})
    roles = {"person": "identifier", **ATTRIBUTES}
    plan = {
        "base": {"attributes": roles, "privacy": {"k": 5}, "execution": {"seed": 2**40}},
        "subject": "person",
        "recipients": {"clinic": {"approved": "2026-1", "columns": ["age", "illness"]}},
    }
    with anonspark.distribute(table, plan, progress=False) as found:
        assert repr(found).startswith("Distribution: ! ")
        assert "clinic: illness: no criterion forbids" in repr(found)


def test_python_proposes_l() -> None:
    table = pd.DataFrame(people())
    asked: dict[str, Any] = {"k": 5, "quasi_identifiers": ["age"], "progress": False}

    def criteria(**more: Any) -> list[tuple[str, float]]:
        with anonspark.anonymize(table, **asked, **more) as release:
            listed = release.manifest["configuration"]["privacy"]["l_diversity"]
            return [(one["attribute"], one["l"]) for one in listed]

    assert criteria(sensitive=["illness"]) == [("illness", 2)]
    assert criteria(sensitive=["illness", "ward", "note"]) == [("illness", 2), ("note", 3)]
    assert criteria(sensitive=["note"], l=4) == [("note", 4)]
    assert criteria(sensitive=["illness"], l=None) == criteria(insensitive=["illness"]) == []
    with anonspark.anonymize(table, **asked, sensitive=["illness"], l=None) as release:
        assert repr(release).startswith("Release: ! every record matches at least 9 others")
        assert "no criterion forbids" in repr(release)
        assert 'class="verdict mixed"' in release._repr_html_()
        assert repr(release.verify()).startswith(
            "Verification: ! All criteria hold, with 1 warning"
        )
    with anonspark.anonymize(table, **asked, sensitive=["illness"]) as release:
        assert repr(release).startswith("Release: ✓ every record matches")
        assert 'class="verdict good"' in release._repr_html_()
    with pytest.raises(GuaranteeError, match=r"which has 1 value\. .* \(in Python l=None\)"):
        criteria(sensitive=["ward"], l=2)
    for wrong, words in ((1, "found 1"), ("two", "found str"), (True, "found bool")):
        with pytest.raises(ConfigurationError, match=f"l: {words}. Expected a whole number"):
            criteria(sensitive=["illness"], l=wrong)
    with pytest.raises(ConfigurationError, match="l: found it without a sensitive column"):
        criteria(l=2)
    with pytest.raises(ConfigurationError, match="l: found together with a configuration"):
        anonspark.anonymize(table, {"attributes": ATTRIBUTES, "privacy": {"k": 5}}, l=2)
    compared = anonspark.compare(table, k=[5], quasi_identifiers=["age"], sensitive=["illness"])
    assert [row["k"] for row in compared.rows] == [5]


def test_what_cannot_be_hidden_or_measured_is_said() -> None:
    table = pa.table({**people(), "codes": [["a"][: row % 2] for row in range(ROWS)]})
    with anonspark.anonymize(
        table, k=5, quasi_identifiers=["age"], sensitive=["ward", "codes"], progress=False
    ) as release:
        ward, codes = release.manifest["warnings"]
    assert "All records lie in such classes" in ward["text"]
    assert "only one value, which no criterion can hide" in ward["text"]
    assert "what classes show of it is not measured" in codes["text"]


def test_k_1_protects_nobody(configured: Path, tmp_path: Path, cli: Cli) -> None:
    for name in ("check", "run"):
        refused = cli(name, configured, "--set", "privacy.k=1")
        assert refused.code == 2, name
        assert "privacy.k: found 1, which protects no one" in refused.err
        assert "set privacy.allow_k_1 to true" in refused.err
    allowed = ("--set", "privacy.k=1", "--set", "privacy.allow_k_1=true")
    checked = cli("check", configured, "--no-progress", *allowed)
    assert "privacy.k is 1: every record may be a class alone" in checked.err
    done = cli.ends(0, "run", configured, "--no-progress", *allowed, "--report")
    assert "no protection, because k = 1 lets every record" in done.out
    assert "excellent" not in done.out
    release = tmp_path / "release"
    codes = {one["code"] for one in read_manifest(release)["warnings"]}
    assert codes == {"no_protection", "no_criterion"}
    assert "- k = 1 protects no one" in (release / "README.md").read_text()
    page = (release / "report.html").read_text()
    assert "no protection" in page
    assert "excellent" not in page
    proved = cli("verify", release, "--no-progress")
    assert "All criteria hold, but k = 1 protects no one." in proved.out
    with pytest.raises(ConfigurationError, match="which protects no one"):
        anonspark.anonymize(pd.DataFrame(people()), k=1, quasi_identifiers=["age"])
    config = {"attributes": ATTRIBUTES, "privacy": {"k": 1, "allow_k_1": True}}
    with anonspark.anonymize(pd.DataFrame(people()), config) as one:
        assert repr(one).startswith("Release: ✗ no protection")
        assert repr(one.verify()).startswith(
            "Verification: ✗ All criteria hold, but k = 1 protects no one."
        )
    with pytest.raises(
        ConfigurationError, match=r"k: found 1. Expected a whole number of at least 2"
    ):
        anonspark.verify(pd.DataFrame(people()), quasi_identifiers=["age"], k=1)


def test_a_plan_does_not_let_recipients_single_people_out(tmp_path: Path) -> None:
    document = {
        "base": {
            "input": {"path": str(tmp_path / "input.parquet")},
            "attributes": dict(ATTRIBUTES),
            "privacy": {"k": 5},
        },
        "collusion": {"k": 1},
        "recipients": {"office": {"approved": "a test", "columns": ["age"]}},
    }
    table = pd.DataFrame(people())
    with pytest.raises(ConfigurationError, match=r"collusion\.k: found 1, which protects no one"):
        anonspark.distribute(table, document)


def test_usefulness_counts_what_is_left_out(configured: Path, tmp_path: Path, cli: Cli) -> None:
    done = cli("run", configured, "--no-progress", "--report")
    words = "for the detail kept in the published columns, 2 of 4 columns published"
    assert words in done.out
    assert "2 not published: ward, note" in done.out
    release = tmp_path / "release"
    summary = read_manifest(release)["summary"]
    assert (summary["columns_in"], summary["columns_published"]) == (4, 2)
    assert "2 of 4 columns published" in (release / "README.md").read_text()
    page = (release / "report.html").read_text()
    assert words in page
    assert words.replace("the published", "its") not in page
    told = json.loads(cli("verify", release, "--json", "--no-progress").out)
    assert (told["columns_in"], told["columns_published"]) == (4, 2)
    # What nobody could count is checked: the columns that are published.
    manifest = json.loads((release / "manifest.json").read_text())
    manifest["summary"]["columns_published"] = 4
    save_manifest(release, manifest)
    cli.ends(4, "verify", release, "--no-progress", says="summary.columns_published: found 4")


def test_the_card_names_columns_that_are_not_published() -> None:
    table = pd.DataFrame(people()).assign(**{f"more_{place}": 1 for place in range(9)})
    with anonspark.anonymize(table, k=5, quasi_identifiers=["age"], progress=False) as release:
        assert release.unpublished[:3] == ("illness", "ward", "note")
        text = " ".join(repr(release).split())
    assert "1 of 13 columns published" in text
    assert "12 not published: illness, ward, note, more_0, " in text
    assert "and 4 more" in text


def test_a_query_for_a_value_that_nobody_has(configured: Path, tmp_path: Path, cli: Cli) -> None:
    cli.ends(0, "run", configured, "--no-progress")
    release = tmp_path / "release"
    for question, warns in (
        ("illness = 'Flu'", True),
        ("illness != 'Flu'", True),
        ("illness in ('flu', 'Flu')", True),
        ("age = 99", True),
        ("illness = 'flu' and not age = 25", False),
    ):
        found = cli.ends(0, "query", release, question, "--no-progress")
        assert ("no record can have the value" in found.err) == warns, question
        assert "lu" not in found.err.replace("value", "")
    told = json.loads(cli("query", release, "age = 99", "--json", "--no-progress").out)
    assert told["upper"] == 0
    (warning,) = told["warnings"]
    assert "'age' is compared with at character 7" in warning
