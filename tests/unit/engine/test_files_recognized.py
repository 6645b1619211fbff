"""What files tell of themselves, where a configuration does not say it."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import zipfile
from collections.abc import Callable
from datetime import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from anonspark.config import Configuration, parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.raw_columns import WantedColumns
from anonspark.engine.recognition import found_in_files, recognize
from anonspark.errors import ConfigurationError, DataError

ENGINE = LocalEngine()
PEOPLE = [["age", "city", "job"], ["31", "Wien", "Bäcker"], ["44", "Graz", "Koch"]]


def zipped(content: bytes, *more: str) -> bytes:
    """Return an archive of a file, and of others."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("folder/", "__MACOSX/folder/._a.csv", "folder/a.csv", *more):
            archive.writestr(name, b"" if name.endswith("/") else content)
    return whole.getvalue()


def zstandard(content: bytes) -> bytes:
    """Return content in two frames, as parallel programs write them."""
    halves = content[: len(content) // 2], content[len(content) // 2 :]
    return b"".join(pa.compress(half, codec="zstd", asbytes=True) for half in halves)


PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard,
    ".zip": zipped,
}


@pytest.mark.parametrize("ending", PACK)
def test_compressed_files(tmp_path: Path, ending: str) -> None:
    rows = [PEOPLE[0], *([str(20 + n % 50), f"City {n}", "Koch"] for n in range(40_000))]
    (tmp_path / "plain.csv").write_text(text_of(rows))
    content = PACK[ending](text_of(rows).encode())
    path = tmp_path / f"a.csv{ending}"
    path.write_bytes(content)
    options = {"header": "true", "inferSchema": "true"}
    plain, packed = (
        ENGINE.open_table([str(one)], "csv", options, key="input.path").collect()
        for one in (tmp_path / "plain.csv", path)
    )
    assert packed.equals(plain)
    for damaged in (content[: len(content) // 2], b"PK" + bytes(90)):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"a\.csv.*(damaged|cannot be read in this format)"):
            ENGINE.open_table([str(path)], "csv", options, key="input.path").collect()


def test_archives_that_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.zip"
    path.write_bytes(zipped(b"a,b\n1,2\n", "folder/b.csv"))
    with pytest.raises(DataError, match=r"a.csv.zip: found 2 files in the archive. Expected one"):
        recognize(ENGINE.files, [str(path)])
    content = bytearray(zipped(b"a,b\n1,2\n"))
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = content.rindex(mark)
        content[at + flags] |= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"a.csv.zip: the archive is encrypted"):
        recognize(ENGINE.files, [str(path)])


def text_of(rows: list[list[str]], separator: str = ",") -> str:
    return "".join(separator.join(row) + "\n" for row in rows)


def configured(path: Path | str, *names: str, **own: object) -> Configuration:
    first, *others = names or PEOPLE[0]
    return parse_configuration(
        {
            "input": {"path": str(path), **own},
            "attributes": {first: "quasi_identifier", **dict.fromkeys(others, "insensitive")},
            "privacy": {"k": 2},
            "output": {"path": "out"},
        }
    )


def found(path: Path | str, *names: str, **own: object) -> dict[str, str]:
    return found_in_files(ENGINE.files, configured(path, *names, **own))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "input.path: .*a.csv: the file is empty"),
        (b"\xef\xbb\xbf", "input.path: .*a.csv: the file is empty"),
        (b"id,born\n", "the file has no records, unless .*input.options.header: false"),
        (b"PAR1\x15\x00", "the file is Parquet by its first bytes.*input.format: parquet"),
    ],
)
def test_what_is_no_csv_or_has_no_records(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(DataError, match=said):
        found(tmp_path / "a.csv")


def test_a_quoted_value_may_go_on_in_the_next_line(tmp_path: Path) -> None:
    path = tmp_path / "notes.csv"
    path.write_text('id;age;note\n1;21;"one\n\ntwo, ""three"" and"\n2;22;"a, b\nc, d"\n')
    looked_at = recognize(ENGINE.files, [str(path)])
    assert looked_at.options == {"header": "true", "sep": ";"}
    # A quote that nothing ends takes no other lines for its value.
    path.write_text('id;age;note\n1;21;"one\n2;22;b\n')
    assert recognize(ENGINE.files, [str(path)]).options == looked_at.options


@cases(__file__, "key", "said")
def test_a_line_break_in_a_value_is_told_with_what_reads_it(
    tmp_path: Path, key: str, said: str
) -> None:
    path = tmp_path / "notes.csv"
    path.write_text('id;age;note\n1;21;"one\ntwo"\n')
    options = {"header": "true", "sep": ";"}
    table = ENGINE.open_table([str(path)], "csv", options, key=key)
    with pytest.raises(DataError, match="a value has a line break in it") as caught:
        table.count()
    assert said in str(caught.value)
    assert "escape" not in str(caught.value)


@cases(__file__, "name", "content", "said")
def test_a_malformed_record_is_told(tmp_path: Path, name: str, content: str, said: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    data_format = path.suffix[1:]
    options = {"header": "true"} if data_format == "csv" else {}
    with pytest.raises(DataError, match=said) as caught:
        ENGINE.open_table([str(path)], data_format, options, key="DATA").count()
    assert "files cannot be read" not in str(caught.value)


def test_quotes_inside_of_values_are_told_with_what_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "notes.csv"
    path.write_text('id,note\n1,"two "inches" high"\n')
    for own, said in (({}, r"--option escape='\'"), ({"escape": "\\"}, "--option escape='\"'")):
        table = ENGINE.open_table([str(path)], "csv", {"header": "true"} | own, key="DATA")
        with pytest.raises(DataError, match="quotes that are neither around a value") as caught:
            table.count()
        assert said in str(caught.value)


@cases(__file__, "name", "separator", "codec", "expected")
def test_a_csv_file_tells_how_it_is_written(
    tmp_path: Path, name: str, separator: str, codec: str, expected: dict[str, str]
) -> None:
    content = text_of(PEOPLE, separator).encode(codec)
    path = tmp_path / name
    path.write_bytes(PACK.get(path.suffix, bytes)(content))
    assert configured(path).input.format == "csv"
    assert found(path) == {"header": "true", "inferSchema": "true"} | expected
    table = ENGINE.open_source(configured(path))
    assert table.schema.names == PEOPLE[0]
    assert table.collect()["job"].to_pylist() == ["Bäcker", "Koch"]


@pytest.mark.parametrize(
    ("codec", "name", "town"),
    [("cp1252", "windows-1252", "Zürich"), ("cp1251", "windows-1251", "Москва")],
)
def test_letters_that_are_not_utf_8_are_guessed_by_profile_alone(
    tmp_path: Path, codec: str, name: str, town: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(text_of([["age", "town"], *[["31", town], ["44", town]] * 9]).encode(codec))
    with pytest.raises(DataError, match="line 2 is not written in UTF-8") as raised:
        found(path, "age", "town")
    assert f"input.options.encoding: {name}" in str(raised.value)
    assert town not in str(raised.value)
    guessed = recognize(ENGINE.files, [str(path)], guesses=True)
    assert (guessed.encoding, guessed.is_guess) == (name, True)
    assert f"encoding {name} (a guess: look at the letters" in guessed.words
    said = {"encoding": name}
    assert recognize(ENGINE.files, [str(path)], options=said).options == {"header": "true"}


def test_a_first_line_that_names_the_separator_is_none_of_the_table(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for line in ("sep=;", '"SEP=;"', "sep=,"):
        path.write_text(
            f"{line}\nage{line[-1]}x\n" if line == "sep=," else f"{line}\nage;x\n31;1\n"
        )
        separator = line.strip('"')[-1]
        looked_at = recognize(ENGINE.files, [str(path)], names=["age", "x"])
        assert (looked_at.separator, looked_at.header) == (separator, True)
    path.write_text("sep=;\nage;x\n31;1\n")
    assert recognize(ENGINE.files, [str(path)], options={"sep": "|"}).separator == "|"
    for more in ({}, {"options": {"header": True, "inferSchema": True}}):
        assert ENGINE.open_source(configured(path, "age", "x", **more)).collect().to_pylist() == [
            {"age": 31, "x": 1}
        ]


def test_what_is_said_wins(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text_of(PEOPLE, ";"))
    said = {"HEADER": False, "delimiter": "|", "charset": "UTF-8", "inferSchema": False}
    assert found(path, "_c0", options=said) == {}
    assert configured(path, format="parquet").input.format == "parquet"
    assert found(path, format="parquet") == {}


@pytest.mark.parametrize("separator", [",", ";"])
def test_a_configuration_that_was_right_before_reads_the_same(
    tmp_path: Path, separator: str
) -> None:
    """Commas separate wherever they could, and positions as names mean no header."""
    path = tmp_path / "a.csv"
    path.write_text(text_of([["1,2", "3,4"], ["5,6", "7,8"]], separator))
    assert found(path, "_c0", "_c1", format="csv") == {}
    path.write_text(text_of([["a", "b"], ["5", "7"]]))
    assert found(path, "a", "b", format="csv", options={"header": True}) == {}
    old = configured("people", format="parquet").fingerprint()
    assert configured("people").fingerprint() == old


def test_a_directory_is_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "b.csv").write_text(text_of(PEOPLE, ";"))
    (tmp_path / "part" / "a.csv").write_text("")
    (tmp_path / "part" / "_SUCCESS").write_text("")
    assert found(tmp_path / "part")["format"] == "csv"
    assert ENGINE.open_source(configured(tmp_path / "part")).count() == 2
    for nothing in ("\ufeff", "\n \n", "sep=,\n"):
        (tmp_path / "part" / "a.csv").write_text(nothing)
        assert ENGINE.open_source(configured(tmp_path / "part")).count() == 2
    (tmp_path / "part" / "a.csv").unlink()
    (tmp_path / "part" / "above").mkdir()
    (tmp_path / "part" / "above" / "no.csv").write_text("1,2\n")
    assert ENGINE.open_source(configured(tmp_path / "part")).count() == 2
    pq.write_table(pa.table({"age": [1]}), tmp_path / "c.parquet")
    (tmp_path / "part" / "b.csv").unlink()
    assert found(tmp_path) == {}


def test_a_column_of_folders_needs_no_place_in_the_header(tmp_path: Path) -> None:
    folder = tmp_path / "year=2026"
    folder.mkdir()
    (folder / "a.csv").write_text("1,2\n3,4\n")
    assert found(tmp_path, "_c0", "year", format="csv") == {}


@pytest.mark.parametrize(
    ("content", "header"),
    [
        ("age,city\n31,Wien\n44,Graz\n", True),
        ("31,Wien\n44,Graz\n", False),
        ("country,2019,2020\nAT,1,2\nDE,3,4\n", False),
        ("city,job\nWien,Koch\n", None),
        ("a,b\n" + "x,y\nz,w\n" * 30, True),
        ("x,y\n" + "x,y\nz,w\n" * 30, False),
        ("day,place\n2026-01-31,Wien\n", True),
        ("unknown,Krems,Bauer\n31,Wien,Koch\n44,Graz,Wirt\n", None),
        ("age,a,b\n31,Wien,Koch\n44,Graz,Wirt\n", True),
        ("q,a,b\n" + "31,x,Koch\n44,y,Wirt\n" * 10, True),
        ("q,a1,b1\n" + "".join(f"{n % 3},a{n},b{n}\n" for n in range(2, 40)), None),
        ("q,a,b\n31,5,Koch\n44,6,Wirt\n", True),
    ],
)
def test_values_tell_a_header_or_nothing_is_said(
    tmp_path: Path, content: str, header: bool | None
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content)
    assert recognize(ENGINE.files, [str(path)]).header is header


def test_what_cannot_be_told_is_asked_for_without_a_value(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("Wien,Koch\nGraz,Wirt\n")
    with pytest.raises(ConfigurationError, match=r"input\.options\.header: true") as raised:
        found(path, "town", "work")
    assert not any(word in str(raised.value) for word in ("Wien", "Koch", "Graz", "Wirt"))


def test_utf_16_is_known_by_its_mark_and_refused_without(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    text = "имя,число\nЮлий Бубнив,31\n"
    path.write_bytes(text.encode("utf-16"))
    assert found(path, "имя", "число")["encoding"] == "UTF-16"
    read = ENGINE.open_source(configured(path, "имя", "число")).collect()
    assert read.to_pylist() == [{"имя": "Юлий Бубнив", "число": 31}]
    for codec, name in (("utf-16-le", "UTF-16LE"), ("utf-16-be", "UTF-16BE")):
        path.write_bytes(text.encode(codec))
        with pytest.raises(DataError, match=f"line 1 is not written in UTF-8 .likely {name}"):
            found(path, "имя", "число")
        assert recognize(ENGINE.files, [str(path)], options={"encoding": name}).header
    path.write_bytes(text.encode())
    assert recognize(ENGINE.files, [str(path)]).encoding == "UTF-8"


def test_files_of_several_formats_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(text_of(PEOPLE))
    (tmp_path / "b.json").write_text("{}")
    (tmp_path / "notes.md").write_text("no table")
    with pytest.raises(
        ConfigurationError, match=r"/a\.csv \(csv\) and .*/b\.json \(json\)\. .* such as \*\.csv"
    ):
        found(tmp_path)
    (tmp_path / "b.json").unlink()
    assert found(tmp_path)["format"] == "csv"


def test_nothing_is_told_of_files_that_are_not_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "anonspark")
    found(tmp_path / "nowhere.csv")
    assert not caplog.records
    (tmp_path / "a.csv").write_text(text_of(PEOPLE))
    found(tmp_path / "a.csv")
    assert "read with what its files show" in caplog.text


WORD = st.text("abcdefgh ", min_size=1, max_size=6).map(lambda one: f"x{one}y")


@given(
    names=st.lists(WORD, min_size=2, max_size=5, unique=True),
    rows=st.integers(1, 5),
    separator=st.sampled_from(",;\t|"),
    draw=st.randoms(use_true_random=False),
)
def test_names_of_attributes_find_any_header(
    tmp_path_factory: pytest.TempPathFactory,
    names: list[str],
    rows: int,
    separator: str,
    draw: random.Random,
) -> None:
    lines = [[str(draw.choice([1, "z", "?", 2.5])) for _ in names] for _ in range(rows)]
    path = tmp_path_factory.getbasetemp() / "drawn.csv"
    path.write_text(text_of([names, *lines], separator))
    told = recognize(ENGINE.files, [str(path)], names=names)
    assert (told.header, told.separator) == (True, separator)


@pytest.mark.parametrize("first", ["Eve,NA,Lugano", "Eve,?,Lugano", "Eve,,Lugano", "Eve,x,Bern"])
def test_a_record_without_a_number_is_no_header(tmp_path: Path, first: str) -> None:
    """Its fields would be shown as names of columns."""
    others = [f"P{number},{number},{('Bern', 'Basel')[number % 2]}" for number in range(40)]
    path = tmp_path / "people.csv"
    path.write_text("\n".join([first, *others]) + "\n")
    assert recognize(ENGINE.files, [str(path)]).header is None


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_a_damaged_file_is_told_of(tmp_path: Path, damage: str) -> None:
    text = "age\n" + "".join(f"{number * 7919 % 10007}\n" for number in range(20_000))
    packed = bytearray(gzip.compress(text.encode()))
    if damage == "cut":
        del packed[len(packed) // 2 :]
    else:
        packed[len(packed) // 2 :: 50] = b"\xff" * len(packed[len(packed) // 2 :: 50])
    path = tmp_path / "people.csv.gz"
    path.write_bytes(packed)
    with pytest.raises(DataError, match="cannot be read"):
        ENGINE.open_table([str(path)], "csv", {"header": "true"}, key="DATA").collect()


@pytest.mark.parametrize("listed", ["age", "AT", "at.time"])
def test_a_column_of_an_unknown_type_matters_if_it_is_listed(tmp_path: Path, listed: str) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"age": [30, 31], "at": [time(8), None]}), path)
    wanted = WantedColumns({listed: True})
    if listed == "age":
        table = ENGINE.open_table([str(path)], "parquet", {}, key="input.path", selection=wanted)
        assert (table.schema.names, table.count()) == (["age"], 2)
    else:
        with pytest.raises(DataError, match=r"the column 'at' has the type time64\[us\]"):
            ENGINE.open_table([str(path)], "parquet", {}, key="DATA", selection=wanted)
    # Who asks for no column gets it, unread.
    assert ENGINE.open_table([str(path)], "parquet", {}, key="DATA").schema.names == ["age", "at"]


@pytest.mark.parametrize(
    ("listed", "is_refused"),
    [(None, True), ("AGE", True), ("sex", True), ("Sex1", True), ("age", True), ("town", False)],
)
def test_names_that_differ_in_case_are_refused(
    tmp_path: Path, listed: str | None, is_refused: bool
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("town,Sex,sex,Age,age,x5,x6\nWien,f,m,1,2,3,4\n")
    wanted = None if listed is None else WantedColumns({listed: True})

    def names() -> list[str]:
        given = ([str(path)], "csv", {"header": "true"})
        return ENGINE.open_table(*given, key="DATA", selection=wanted).schema.names

    if not is_refused:
        assert names()[0] == "town"
        return
    with pytest.raises(DataError, match=r"DATA: .*a\.csv: has 2 columns of one name"):
        names()
