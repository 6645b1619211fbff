"""Folders of Delta Lake, Iceberg and Hudi, which have files of records that were deleted."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import Outcome, command, configuration_file, write_table

from anonspark.engine.files import FilesError
from anonspark.engine.local.files import LocalFiles
from anonspark.engine.managed_tables import require_plain_files
from anonspark.errors import ConfigurationError

PEOPLE = {"age": [20 + row % 40 for row in range(120)], "illness": ["flu", "cold", "none"] * 40}

DELTA = "_delta_log/00000000000000000000.json"
HUDI = ".hoodie/hoodie.properties"
ICEBERG = "metadata/00001-5f1e-uuid.metadata.json"
COMPRESSED = "metadata/v3.gz.metadata.json"


def folder_of(path: Path, log: str, data: str = "part-0.parquet") -> Path:
    write_table(path / data, PEOPLE)
    (path / log).parent.mkdir(parents=True, exist_ok=True)
    (path / log).write_text("{}")
    return path


def check(capsys: pytest.CaptureFixture[str], folder: Path, **section: object) -> Outcome:
    path = configuration_file(
        folder, input=section, attributes={"age": "quasi_identifier", "illness": "sensitive"}
    )
    return command(capsys, "check", path, "--no-progress")


@pytest.mark.parametrize(
    ("log", "data", "kind"),
    [
        pytest.param(DELTA, "part-0.parquet", "delta", id="delta"),
        pytest.param(DELTA, "country=DE/part-0.parquet", "delta", id="parts of delta"),
        pytest.param(HUDI, "2026/01/part-0.parquet", "hudi", id="hudi"),
        pytest.param(
            "d=1/.hoodie_partition_metadata", "d=1/part-0.parquet", "hudi", id="a partition of hudi"
        ),
        pytest.param(ICEBERG, "data/part-0.parquet", "iceberg", id="iceberg"),
        pytest.param(COMPRESSED, "part-0.parquet", "iceberg", id="iceberg that was adopted"),
        pytest.param(
            "metadata/latest.metadata.json", "data/part-0.parquet", "iceberg", id="other names"
        ),
    ],
)
@pytest.mark.parametrize("said", [{}, {"format": "parquet"}], ids=["not said", "parquet"])
def test_none_of_its_files_is_read_as_a_plain_one(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    log: str,
    data: str,
    kind: str,
    said: dict[str, str],
) -> None:
    table = folder_of(tmp_path / "lake" / "t", log, data)
    (tmp_path / "link.parquet").symlink_to(table / data)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "part.parquet").symlink_to(table / data)
    for path in (
        table,
        tmp_path / "links",
        f"{table}/",
        table / data,
        [str(tmp_path / "input.parquet"), str(table / data)],
        (table / data).parent / "*.parquet",
        tmp_path / "lake" / "*",
        tmp_path / "lake",
        tmp_path / "link.parquet",
    ):
        write_table(tmp_path / "input.parquet", PEOPLE)
        given = path if isinstance(path, list) else str(path)
        outcome = check(capsys, tmp_path, path=given, **said)
        assert outcome.code == 2, path
        assert f"set input.format to {kind}" in outcome.err
        assert str(table) in outcome.err


def test_the_run_the_original_and_the_profile_look_as_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = folder_of(tmp_path / "t", DELTA)
    write_table(tmp_path / "input.parquet", PEOPLE)
    path = configuration_file(
        tmp_path, attributes={"age": "quasi_identifier", "illness": "sensitive"}
    )
    refused = command(capsys, "run", path, "--no-progress", "--set", f"input.path={table}")
    assert refused.code == 2
    assert not (tmp_path / "release").exists()
    assert command(capsys, "run", path, "--no-progress").code == 0
    for arguments in (
        ("verify", tmp_path / "release", "--original", table),
        ("verify", tmp_path / "release", "--original", table / "part-0.parquet"),
        ("verify", tmp_path / "release", "--population", table),
        ("profile", table, "--format", "parquet"),
        ("profile", table / "part-0.parquet"),
        ("init", table / "*.parquet"),
    ):
        outcome = command(capsys, *arguments, "--no-progress")
        assert outcome.code == 2, arguments
        assert "Delta Lake table" in outcome.err


def test_what_is_no_such_table_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # A description for people, and a table beside plain files that no reader goes into.
    write_table(tmp_path / "plain" / "people.parquet", PEOPLE)
    (tmp_path / "plain" / "metadata").mkdir()
    (tmp_path / "plain" / "metadata" / "people.metadata.json").write_text("{}")
    folder_of(tmp_path / "plain" / "old", DELTA)
    assert check(capsys, tmp_path, path=str(tmp_path / "plain"), format="parquet").code == 0
    # A reader goes into folders that are columns.
    folder_of(tmp_path / "plain" / "year=2026", DELTA)
    outcome = check(capsys, tmp_path, path=str(tmp_path / "plain"), format="parquet")
    assert "Delta Lake table" in outcome.err


def test_who_says_the_format_is_believed(tmp_path: Path) -> None:
    table = str(folder_of(tmp_path / "t", DELTA))
    for known in ("delta", "DELTA", "org.apache.spark.sql.delta.sources.DeltaDataSource"):
        require_plain_files(LocalFiles(), [table], known, "input.path")
    with pytest.raises(ConfigurationError, match="set the format to delta"):
        require_plain_files(LocalFiles(), [table], "orc", "--original")


class Guarded(LocalFiles):
    """The local disk, of which only one folder may be looked at."""

    def exists(self, path: str) -> bool:
        """Refuse what is above the folder."""
        if "/open/" not in path:
            raise FilesError("access denied")
        return super().exists(path)


def test_folders_above_that_nobody_may_look_at_are_no_error(tmp_path: Path) -> None:
    write_table(tmp_path / "open" / "plain" / "people.parquet", PEOPLE)
    table = folder_of(tmp_path / "open" / "t", DELTA)
    require_plain_files(Guarded(), [str(tmp_path / "open" / "plain")], "parquet", "input.path")
    with pytest.raises(ConfigurationError, match="Delta Lake table"):
        require_plain_files(Guarded(), [f"{table}/part-0.parquet"], "parquet", "input.path")
