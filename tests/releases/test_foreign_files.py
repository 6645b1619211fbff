"""Files of other programs: first lines of theirs, and folders with records that were deleted."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pandas as pd
import pytest
from commands import Cli, Outcome
from helpers import configuration_file, write_table

import anonspark
from anonspark.engine.files import FilesError
from anonspark.engine.local.files import LocalFiles
from anonspark.engine.managed_tables import require_plain_files
from anonspark.errors import ConfigurationError, DataError

FILES = {
    "dta.csv": (b"<stata_dta><header>\0", "files of Stata", "convert dta.csv dta.parquet"),
    "old.csv": (b"\x72\x02\x01\x00\0", "files of Stata", "convert old.csv old.parquet"),
    "xlsx.csv": (
        b"PK\x03\x04" + bytes(26) + b"[Content_Types].xml",
        "files of Excel",
        "convert xlsx.csv xlsx.parquet",
    ),
    "xls.csv": (b"\xd0\xcf\x11\xe0\0", "files of Excel", "convert xls.csv xls.parquet"),
    "sav.csv": (b"$FL2@(#)\0", "files of SPSS", "convert sav.csv sav.parquet"),
    "por.csv": (b"0" * 200 + b"ASCII SPSS PORT FILE", "of SPSS", "convert por.csv por.parquet"),
    "sas7bdat.csv": (bytes(12) + b"\xc2\xea\x81\x60\0", "files of SAS", "sas7bdat.parquet"),
    "my survey.sav.gz": (b"broken", "files of SPSS", "convert 'my survey.sav.gz' 'my survey.parqu"),
    "~x.xlsx": (b"broken", "files of Excel", "convert '~x.xlsx' '~x.parquet'"),
    "p.feather": (b"ARROW1\0\0", "the file is Feather", "pandas.read_feather"),
    "p.pkl": (b"\x80\x04\x95\0", "the file is a pickle", "pandas.read_pickle"),
    "zst.csv": (b"\x28\xb5\x2f\xfd\0", "the file is compressed with Zstandard", "the ending .zst"),
    "xz.csv": (b"\xfd7zXZ\0", "the file is compressed with xz", "the ending .xz"),
    "zip.csv": (b"PK\x03\x04\0", "the file is a zip archive", "the ending .zip"),
}


def configuration(folder: Path, path: str, columns: str = "age") -> Path:
    written = folder / "c.yaml"
    written.write_text(
        f"input: {{path: {path}}}\nquasi_identifiers: [{columns}]\nprivacy: {{k: 5}}\n"
        "output: {path: o}\n"
    )
    return written


@pytest.mark.parametrize("name", FILES)
def test_files_of_other_programs(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    content, kind, remedy = FILES[name]
    Path(name).write_bytes(content)
    for arguments in (
        ("profile", name),
        ("init", name),
        ("check", configuration(tmp_path, name)),
        ("run", "c.yaml"),
        ("run", "c.yaml", "--set", "execution.engine=local"),
    ):
        refused = cli(*arguments, "--no-progress")
        assert refused.code == 3, arguments
        assert kind in refused.err
        assert remedy in refused.err


def test_formats_of_other_programs_and_folders_of_their_files(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "in").mkdir()
    for name in ("p.xlsx", "~$p.xlsx"):
        (tmp_path / "in" / name).write_bytes(b"broken")
    path = configuration(tmp_path, str(tmp_path / "in"))
    for more in ((), ("--set", "input.format=stata"), ("--set", "execution.engine=spark")):
        refused = cli.ends(3, "check", path, *more, "--no-progress")
        assert f"anonspark convert {tmp_path}/in {tmp_path}/in.parquet" in refused.err
    refused = cli.ends(3, "profile", "hdfs://x/p.sav")
    assert "Download them, and run: anonspark convert p.sav p.parquet" in refused.err


def test_a_first_line_that_names_the_separator_is_read(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "p.csv").write_text("sep=;\nage;sex\n" + "20;f\n" * 9)
    path = tmp_path / "p.csv"
    for arguments in (
        ("profile", path),
        ("profile", path, "--option", "header=true"),
        ("check", configuration(tmp_path, str(path))),
    ):
        outcome = cli.ends(0, *arguments, "--no-progress")
        assert re.search(r"\b9 rows|records +9\b", outcome.out)


@pytest.mark.parametrize("header", ['"","age","sex"', ",age,sex"])
def test_an_index_without_a_name(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, header: str
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{n},{20 + n % 15},{'fm'[n % 2]}" for n in range(60)]
    (tmp_path / "r.csv").write_text("\n".join([header, *rows, ""]))
    cli.ends(0, "init", "r.csv", "--no-progress")
    text = (tmp_path / "r.yaml").read_text()
    assert "  _c0: identifier  # an index of rows, as R and pandas write it" in text
    for name in ("check", "run"):
        cli.ends(0, name, "r.yaml", "--no-progress")
    # Of two columns without a name nobody knows whether the first line names any.
    (tmp_path / "two.csv").write_text("\n".join([",,sex", *rows, ""]))
    cli.ends(2, "profile", "two.csv", "--no-progress")


def test_names_in_another_unicode_form(tmp_path: Path, cli: Cli) -> None:
    name = unicodedata.normalize("NFC", "größe")
    header = unicodedata.normalize("NFD", f"age,{name}")
    (tmp_path / "n.csv").write_text(f"{header}\n20,1\n", encoding="utf-8")
    path = configuration(tmp_path, str(tmp_path / "n.csv"), f"age, {name}")
    refused = cli.ends(3, "check", path, "--no-progress")
    assert (
        f"attributes.{name}: the input has a column of this name in another Unicode" in refused.err
    )


def test_a_table_in_place_of_a_configuration(tmp_path: Path, cli: Cli) -> None:
    for name in ("people.csv", "people.parquet", "people.txt"):
        path = tmp_path / name
        path.write_text("age,name\n20,Ada Lovelace\n")
        for asked in ("run", "check"):
            refused = cli.ends(2, asked, path, "--no-progress")
            assert "Ada" not in refused.err
            assert "age" not in refused.err
            assert ("anonspark init" in refused.err) == (name != "people.txt")


def test_dataframes_without_columns() -> None:
    frame = pd.DataFrame({"age": [20, 30] * 10, "sex": list("fm") * 10})
    for indexed in (frame.set_index("age"), frame.groupby(["age", "sex"])[["sex"]].count()):
        with pytest.raises(DataError, match=r"age: it is the index .* with reset_index\(\)"):
            anonspark.anonymize(indexed, quasi_identifiers=["age"], k=5)
    with pytest.raises(DataError, match="the table is empty"):
        anonspark.anonymize(pd.DataFrame(), quasi_identifiers=["age"], k=5)
    with pytest.raises(DataError, match="the table is empty"):
        anonspark.anonymize(frame[:0], quasi_identifiers=["age"], k=5)


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


def check(cli: Cli, folder: Path, **section: object) -> Outcome:
    path = configuration_file(
        folder, input=section, attributes={"age": "quasi_identifier", "illness": "sensitive"}
    )
    return cli("check", path, "--no-progress")


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
    tmp_path: Path, cli: Cli, log: str, data: str, kind: str, said: dict[str, str]
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
        outcome = check(cli, tmp_path, path=given, **said)
        assert outcome.code == 2, path
        assert f"set input.format to {kind}" in outcome.err
        assert str(table) in outcome.err


def test_the_run_the_original_and_the_profile_look_as_well(tmp_path: Path, cli: Cli) -> None:
    table = folder_of(tmp_path / "t", DELTA)
    write_table(tmp_path / "input.parquet", PEOPLE)
    path = configuration_file(
        tmp_path, attributes={"age": "quasi_identifier", "illness": "sensitive"}
    )
    cli.ends(2, "run", path, "--no-progress", "--set", f"input.path={table}")
    assert not (tmp_path / "release").exists()
    cli.ends(0, "run", path, "--no-progress")
    for arguments in (
        ("verify", tmp_path / "release", "--original", table),
        ("verify", tmp_path / "release", "--original", table / "part-0.parquet"),
        ("verify", tmp_path / "release", "--population", table),
        ("profile", table, "--format", "parquet"),
        ("profile", table / "part-0.parquet"),
        ("init", table / "*.parquet"),
    ):
        outcome = cli(*arguments, "--no-progress")
        assert outcome.code == 2, arguments
        assert "Delta Lake table" in outcome.err


def test_what_is_no_such_table_is_read(tmp_path: Path, cli: Cli) -> None:
    # A description for people, and a table beside plain files that no reader goes into.
    write_table(tmp_path / "plain" / "people.parquet", PEOPLE)
    (tmp_path / "plain" / "metadata").mkdir()
    (tmp_path / "plain" / "metadata" / "people.metadata.json").write_text("{}")
    folder_of(tmp_path / "plain" / "old", DELTA)
    assert check(cli, tmp_path, path=str(tmp_path / "plain"), format="parquet").code == 0
    # A reader goes into folders that are columns.
    folder_of(tmp_path / "plain" / "year=2026", DELTA)
    outcome = check(cli, tmp_path, path=str(tmp_path / "plain"), format="parquet")
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
