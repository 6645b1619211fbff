"""Delta Lake and Apache Iceberg: the version that is read is pinned, and a release is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from golden_run import FINGERPRINTS, ROWS
from spark_client import outcomes_of_table_formats


@pytest.fixture(scope="module")
def outcomes(golden_people: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run the client."""
    folder = tmp_path_factory.mktemp("formats")
    return outcomes_of_table_formats(folder, "table_formats_client.py", golden_people)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("data_format", ["delta", "iceberg", "delta by name", "iceberg by name"])
def test_a_continued_run_reads_the_version_that_it_began_with(
    outcomes: dict[str, Any], data_format: str
) -> None:
    of_format = outcomes[data_format]
    assert of_format["killed"]["code"] == 1
    for name in ("resumed", "verify", "again"):
        assert of_format[name]["code"] == 0, of_format[name]["said"]
    assert "round 1 of 2: 600 rows: finished before" in of_format["resumed"]["said"]
    manifest, later = of_format["manifest"], of_format["manifest of the next run"]
    found = {name: manifest["fingerprints"][name] for name in FINGERPRINTS}
    assert found == FINGERPRINTS
    assert later["published"]["rows"] == ROWS + 100
    assert manifest["input_version"].keys() == {"versionAsOf"}
    assert later["input_version"] != manifest["input_version"]


def test_a_release_as_delta(outcomes: dict[str, Any]) -> None:
    """It has one version, so that nobody travels back to what was refused."""
    delta = outcomes["delta"]
    assert delta["refused"]["code"] == 4, delta["refused"]["said"]
    assert not delta["after it was refused"]
    for name in ("as delta", "verify delta"):
        assert delta[name]["code"] == 0, delta[name]["said"]
    assert (delta["rows of delta"], delta["versions of delta"]) == (ROWS, 1)
    manifest = delta["manifest of delta"]
    assert manifest["fingerprints"]["output"] == FINGERPRINTS["output"]
    # The configuration names the version itself.
    assert "input_version" not in manifest


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("absent", 3, "TABLE_OR_VIEW_NOT_FOUND"),
        ("plain; DROP TABLE plain", 3, "is no name of a table"),
        ("other options", 2, "Expected versionAsOf or timestampAsOf"),
    ],
)
def test_what_cannot_be_read_by_name(
    outcomes: dict[str, Any], name: str, code: int, said: str
) -> None:
    refused = outcomes["refused"][name]
    assert refused["code"] == code
    assert said in refused["said"]
