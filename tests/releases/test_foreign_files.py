"""Files of other programs, first lines of theirs, and what else a stranger hands over."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pandas as pd
import pytest
from helpers import command

import anonspark
from anonspark.errors import DataError

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
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
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
        refused = command(capsys, *arguments, "--no-progress")
        assert refused.code == 3, arguments
        assert kind in refused.err
        assert remedy in refused.err


def test_formats_of_other_programs_and_folders_of_their_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    for name in ("p.xlsx", "~$p.xlsx"):
        (tmp_path / "in" / name).write_bytes(b"broken")
    path = configuration(tmp_path, str(tmp_path / "in"))
    for more in ((), ("--set", "input.format=stata"), ("--set", "execution.engine=spark")):
        refused = command(capsys, "check", path, *more, "--no-progress")
        assert refused.code == 3, refused.err
        assert f"anonspark convert {tmp_path}/in {tmp_path}/in.parquet" in refused.err
    refused = command(capsys, "profile", "hdfs://x/p.sav")
    assert refused.code == 3
    assert "Download them, and run: anonspark convert p.sav p.parquet" in refused.err


def test_a_first_line_that_names_the_separator_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.csv").write_text("sep=;\nage;sex\n" + "20;f\n" * 9)
    path = tmp_path / "p.csv"
    for arguments in (
        ("profile", path),
        ("profile", path, "--option", "header=true"),
        ("check", configuration(tmp_path, str(path))),
    ):
        outcome = command(capsys, *arguments, "--no-progress")
        assert outcome.code == 0, outcome.err
        assert re.search(r"\b9 rows|records +9\b", outcome.out)


@pytest.mark.parametrize("header", ['"","age","sex"', ",age,sex"])
def test_an_index_without_a_name(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    header: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{n},{20 + n % 15},{'fm'[n % 2]}" for n in range(60)]
    (tmp_path / "r.csv").write_text("\n".join([header, *rows, ""]))
    assert command(capsys, "init", "r.csv", "--no-progress").code == 0
    text = (tmp_path / "r.yaml").read_text()
    assert "  _c0: identifier  # an index of rows, as R and pandas write it" in text
    for name in ("check", "run"):
        outcome = command(capsys, name, "r.yaml", "--no-progress")
        assert outcome.code == 0, outcome.err
    # Of two columns without a name nobody knows whether the first line names any.
    (tmp_path / "two.csv").write_text("\n".join([",,sex", *rows, ""]))
    assert command(capsys, "profile", "two.csv", "--no-progress").code == 2


def test_names_in_another_unicode_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = unicodedata.normalize("NFC", "größe")
    header = unicodedata.normalize("NFD", f"age,{name}")
    (tmp_path / "n.csv").write_text(f"{header}\n20,1\n", encoding="utf-8")
    path = configuration(tmp_path, str(tmp_path / "n.csv"), f"age, {name}")
    refused = command(capsys, "check", path, "--no-progress")
    assert refused.code == 3
    assert (
        f"attributes.{name}: the input has a column of this name in another Unicode" in refused.err
    )


def test_a_table_in_place_of_a_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("people.csv", "people.parquet", "people.txt"):
        path = tmp_path / name
        path.write_text("age,name\n20,Ada Lovelace\n")
        for asked in ("run", "check"):
            refused = command(capsys, asked, path, "--no-progress")
            assert refused.code == 2
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
