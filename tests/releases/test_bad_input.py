"""Wrong data and wrong configurations: exit code, message, and nothing on disk that changes.

Every case runs `check`, if it can tell, and `run`, over an earlier release that must survive. The
tables are full of values that no message may show.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cases import cases
from commands import Cli
from helpers import configuration_file, contents, summary, write_table

from anonspark.engine.spark import engine as spark_engine
from anonspark.layers.prepare import sensitive as sensitive_module
from anonspark.pipeline import preparing, run

SECRETS = ("Zebediah", "987654321", "1234.5678", "Kryptonitis")

ATTRIBUTES = {"age": "quasi_identifier", "height": "quasi_identifier", "disease": "sensitive"}

OVER_RELEASE = {"mode": "overwrite"}

Refused = Callable[..., str]


def people(rows: int = 40) -> dict[str, Any]:
    return {
        "name": [f"Zebediah {number}" for number in range(rows)],
        "age": [987654321, *range(20, 19 + rows)][:rows],
        "height": [1234.5678, *(150.0 + number for number in range(rows - 1))][:rows],
        "disease": ["Kryptonitis"] * rows,
    }


@pytest.fixture
def earlier_release(tmp_path: Path) -> Path:
    """Put an earlier release at the output path."""
    for name in ("data/part-0.parquet", "manifest.json", ".hidden"):
        path = tmp_path / "release" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"earlier {name}")
    return tmp_path / "release"


@pytest.fixture
def refused(tmp_path: Path, cli: Cli) -> Refused:
    """Require commands to fail with a code and a message, and to leave everything as it was."""

    def require(
        code: int,
        *told: str,
        commands: tuple[str, ...] = ("check", "run"),
        configuration: Path | None = None,
        **sections: Any,
    ) -> str:
        sections = {"attributes": ATTRIBUTES, "output": OVER_RELEASE} | sections
        configuration = configuration or configuration_file(tmp_path, **sections)
        before = contents(tmp_path)
        message = ""
        for name in commands:
            outcome = cli.ends(code, name, configuration)
            assert outcome.out == ""
            message = "\n".join(
                line for line in outcome.err.splitlines() if line.startswith("error: ")
            )
            for text in told:
                assert text in message
            for secret in SECRETS:
                assert secret not in outcome.err
            # Spark's daemon of Python writes one where a reader of its task has ended before.
            assert all("daemon.py" in one for one in outcome.err.split("Traceback")[1:])
            assert contents(tmp_path) == before
        return message

    return require


@pytest.fixture
def refused_table(refused: Refused, tmp_path: Path) -> Refused:
    """Require the same of a table, under the usual configuration but for some sections."""

    def require(
        columns: dict[str, Any] | pa.Table,
        *told: str,
        format: str = "parquet",
        commands: tuple[str, ...] = ("check", "run"),
        **sections: Any,
    ) -> str:
        write_table(tmp_path / "input.parquet", columns, format)
        return refused(3, *told, commands=commands, **sections)

    return require


def people_with(changes: dict[str, Any]) -> dict[str, Any]:
    """Return people with other columns, or with other values at some places of a column.

    A value at the place ``text`` is the last one of a column whose others are texts.
    """
    columns = people()
    for name, values in changes.items():
        if isinstance(values, list):
            columns[name] = values * (40 // len(values))
        elif "text" in values:
            columns[name] = [*map(str, columns[name][1:]), values["text"]]
        else:
            for place, value in values.items():
                columns[name][place] = value
    return columns


@pytest.mark.usefixtures("earlier_release")
class TestWrongData:
    """Exit code 3."""

    def test_missing_input_is_refused_by_its_path(self, refused: Refused, tmp_path: Path) -> None:
        refused(3, "input.path", str(tmp_path / "input.parquet"), "Check the path")

    def test_missing_files_of_several(self, refused: Refused, tmp_path: Path) -> None:
        there = write_table(tmp_path / "there.parquet", people())
        paths = [str(there), f"{tmp_path}/gone", f"{tmp_path}/lost/gone-*.parquet"]
        message = refused(3, paths[1], paths[2], input={"path": paths})
        assert paths[0] not in message

    @cases(__file__, "changes", "sections", "told")
    def test_wrong_values_are_counted_and_not_shown(
        self,
        refused_table: Refused,
        changes: dict[str, Any],
        sections: dict[str, Any],
        told: list[str],
    ) -> None:
        attributes = ATTRIBUTES | sections.get("attributes", {})
        refused_table(people_with(changes), *told, **{**sections, "attributes": attributes})

    @pytest.mark.parametrize("format", ["parquet", "csv"])
    def test_empty_table_is_refused(self, refused_table: Refused, format: str) -> None:
        source = {"format": format, "options": {"header": True} if format == "csv" else {}}
        nobody = pa.table(people()).slice(0, 0)
        refused_table(
            nobody, "input.path: the table is empty", "k = 5", format=format, input=source
        )

    def test_fewer_rows_than_k(self, refused_table: Refused) -> None:
        refused_table(people(4), "privacy.k: 5 needs at least 5 rows, the input has 4")

    def test_no_new_directory_is_left(self, refused_table: Refused, tmp_path: Path) -> None:
        output = {"path": str(tmp_path / "new" / "deep" / "release")}
        refused_table(people(4), "privacy.k", output=output)

    def test_fewer_rows_than_k_after_dropping(self, refused_table: Refused) -> None:
        columns = people(6)
        columns["height"][2:4] = [None, float("nan")]
        refused_table(columns, "the input has 4, 2 more were dropped for missing values")

    def test_a_column_without_values_is_named(self, refused_table: Refused) -> None:
        columns = people()
        columns["height"] = pa.nulls(len(columns["height"]), pa.float64())
        refused_table(columns, "attributes.height: 40 of 40 values are missing. Complete them")

    @pytest.mark.parametrize(
        ("value", "data_type"), [("inf", pa.float64()), ("-inf", pa.float32())], ids=str
    )
    def test_infinite_values_are_refused(
        self, refused_table: Refused, value: str, data_type: pa.DataType
    ) -> None:
        columns = people()
        columns["height"][7] = float(value)
        columns["height"] = pa.array(columns["height"], data_type)
        refused_table(columns, "attributes.height: 1 of 40 values are infinite")

    @pytest.mark.parametrize("format", ["parquet", "orc"])
    @pytest.mark.parametrize(
        ("place", "column"), [("first", "disease"), ("middle", "height"), ("last", "disease")]
    )
    def test_file_that_lacks_a_column(
        self, refused: Refused, tmp_path: Path, format: str, place: str, column: str
    ) -> None:
        folder = tmp_path / "input"
        for name in ("first", "middle", "last"):
            columns = people()
            if name == place:
                del columns[column]
            # What is not listed may be there or not.
            columns |= {"extra": [1] * 40} if name == "last" else {}
            write_table(folder / f"{name}.{format}", columns, format)
        message = refused(
            3,
            f"input.path: file:{folder}/{place}.{format} lacks the column '{column}', which other "
            "files have",
            "set input.missing_columns to null",
            commands=("check", "run") if place == "first" else ("check",),
            input={"path": str(folder), "format": format},
        )
        assert "no such column" not in message

    def test_a_header_that_names_a_column_twice(self, refused: Refused, tmp_path: Path) -> None:
        (tmp_path / "input.csv").write_text("age,disease,age\n" + "41,flu,42\n" * 9)
        refused(
            3,
            "has 2 columns of one name, 'age', 'age'",
            input={"path": str(tmp_path / "input.csv")},
            attributes={"age": "quasi_identifier"},
        )

    @pytest.mark.parametrize("format", ["parquet", "orc"])
    def test_files_with_one_column_in_two_types(
        self, refused: Refused, tmp_path: Path, format: str
    ) -> None:
        folder = tmp_path / "input"
        write_table(folder / f"a.{format}", people(), format)
        columns = people() | {
            "age": pa.array(range(40), pa.float64()),
            "height": ["1234.5678"] * 40,
        }
        write_table(folder / f"b.{format}", columns | {"name": [987654321] * 40}, format)
        message = refused(
            3,
            f"the column 'age' has type bigint in file:{folder}/a.{format} and double in "
            f"file:{folder}/b.{format}",
            "the column 'height' has type double in",
            commands=("check",),
            input={"path": str(folder), "format": format, "missing_columns": None},
            attributes=ATTRIBUTES | {"name": "identifier"},
        )
        assert "'name'" not in message

    @pytest.mark.parametrize(
        "header", ["name,height,age,disease", "Zebediah 0,41,170.5,Kryptonitis"]
    )
    def test_csv_files_with_different_headers(
        self, refused: Refused, tmp_path: Path, header: str
    ) -> None:
        """Columns in another order, or a file without a header, whose first record it would be."""
        folder = tmp_path / "input"
        write_table(folder / "a.csv", people(), "csv")
        second = write_table(folder / "b.csv", people(), "csv")
        second.write_text(f"{header}\n{second.read_text().partition(chr(10))[2]}")
        options = {"header": True, "inferSchema": True}
        refused(
            3,
            f"{folder}/",
            "CSV files with different headers",
            input={"path": str(folder), "format": "csv", "options": options},
        )

    @pytest.mark.parametrize("role", ["quasi_identifier", "sensitive", "insensitive"])
    def test_column_of_maps_is_refused_in_every_role(
        self, refused_table: Refused, role: str
    ) -> None:
        kind = pa.map_(pa.string(), pa.int64())
        refused_table(
            people() | {"visits": pa.array([[("Zebediah", 987654321)]] * 40, kind)},
            "attributes.visits",
            "map<string,bigint>",
            attributes=ATTRIBUTES | {"visits": role},
        )

    @pytest.mark.parametrize(
        "record",
        ["Zebediah,41,170.5,Kryptonitis,987654321", "Zebediah", "Zebediah,41"],
        ids=["too-long", "one-value", "too-short"],
    )
    @pytest.mark.parametrize("options", [{}, {"inferSchema": True}], ids=["texts", "inferred"])
    def test_malformed_csv_record(
        self, refused: Refused, tmp_path: Path, record: str, options: dict[str, Any]
    ) -> None:
        source = write_table(tmp_path / "input.csv", people(), "csv")
        with source.open("a") as file:
            file.write(f"{record}\n")
        number = {"role": "quasi_identifier", "type": "number"}
        refused(
            3,
            "input.path",
            str(source),
            "input.options",
            input={"path": str(source), "format": "csv", "options": {"header": True} | options},
            attributes=ATTRIBUTES | {"age": number, "height": number},
        )

    def test_malformed_json_record(self, refused: Refused, tmp_path: Path) -> None:
        source = write_table(tmp_path / "input.json", people(), "json")
        with source.open("a") as file:
            file.write('{"name": "Zebediah", "age": 987654321, \n')
        refused(3, "input.path", str(source), input={"path": str(source), "format": "json"})

    @pytest.mark.parametrize("damage", ["footer", "middle", "other-format"])
    @pytest.mark.parametrize("format", ["parquet", "orc"])
    def test_damaged_file_is_refused_by_its_folder(
        self, refused: Refused, tmp_path: Path, format: str, damage: str
    ) -> None:
        folder = tmp_path / "input"
        write_table(folder / f"a.{format}", people(), format)
        source = write_table(folder / f"b.{format}", people(5000), format)
        whole = source.read_bytes()
        if damage == "footer":
            source.write_bytes(whole[: len(whole) // 2])
        elif damage == "middle":
            source.write_bytes(
                whole[:50] + b"\xff" * (len(whole) // 2) + whole[50 + len(whole) // 2 :]
            )
        else:
            source.write_text("name,age\nZebediah,987654321\n" * 100)
        refused(
            3,
            "input.path",
            str(folder),
            "input.format",
            input={"path": str(folder), "format": format},
        )

    @pytest.mark.usefixtures("spark")
    def test_format_that_does_not_exist(self, refused: Refused, tmp_path: Path) -> None:
        write_table(tmp_path / "input.parquet", people())
        refused(
            2,
            "input.format: this Spark has no data source 'parket'",
            "parquet",
            input={"format": "parket"},
        )

    @pytest.mark.usefixtures("spark")
    @cases(__file__, "format", "vanishing", "name")
    def test_input_that_vanishes_while_it_is_read(
        self,
        refused: Refused,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        format: str,
        vanishing: str,
        name: str,
    ) -> None:
        folder = tmp_path / "input"
        for number in range(3):
            write_table(folder / f"{number}.{format}", people(), format)
        options = {"header": True, "inferSchema": True} if format == "csv" else {}
        opening = spark_engine.open_input

        def open_and_lose(*arguments: Any) -> Any:
            table = opening(*arguments)
            for file in folder.iterdir():
                if vanishing == "all" or file.name.startswith("1."):
                    file.rename(tmp_path / "elsewhere" / file.name)
            return table

        (tmp_path / "elsewhere").mkdir()
        monkeypatch.setattr(spark_engine, "open_input", open_and_lose)
        with pytest.raises(AssertionError, match="elsewhere"):
            # All that changes is what was taken away here.
            refused(
                3,
                str(folder),
                "files vanished",
                "run again",
                commands=(name,),
                input={"path": str(folder), "format": format, "options": options},
                execution={"engine": "spark"},
            )

    def test_several_problems_at_once(self, refused_table: Refused) -> None:
        changes: dict[str, Any] = {"age": {"text": "Zebediah"}, "height": {5: float("inf")}}
        columns = people_with(changes)
        columns["born"] = ["2020-01-31"] * 39 + ["31.12.1234.5678"]
        message = refused_table(
            columns,
            "attributes.age: a text column",
            "attributes.height: 1 of 40 values are infinite",
            "attributes.born: 1 of 40 values are not of the declared type date",
            attributes=ATTRIBUTES | {"born": {"role": "quasi_identifier", "type": "date"}},
        )
        assert len(message.splitlines()) == 3

    def test_too_many_sensitive_values(
        self, refused_table: Refused, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sensitive_module, "_MOST_VALUES", 39)
        refused_table(
            people() | {"disease": [f"Kryptonitis {number}" for number in range(40)]},
            "attributes.disease: more than 39 different values",
            privacy={"t_closeness": {"attribute": "disease", "t": 1.0}},
        )

    @pytest.mark.parametrize("kind", ["order", "hierarchy"])
    def test_order_or_hierarchy_that_lacks_sensitive_values(
        self, refused_table: Refused, tmp_path: Path, kind: str
    ) -> None:
        groups = tmp_path / "groups.csv"
        groups.write_text("cold;*\nflu;*\n")
        listed = {"order": ["cold", "flu"]} if kind == "order" else {"hierarchy": str(groups)}
        distance = "ordered" if kind == "order" else "hierarchical"
        refused_table(
            people() | {"disease": ["flu", "cold", "Kryptonitis", "cold"] * 10},
            f"attributes.disease.{kind}: lacks some of the column's different values",
            attributes=ATTRIBUTES | {"disease": {"role": "sensitive", **listed}},
            privacy={"t_closeness": {"attribute": "disease", "t": 0.5, "distance": distance}},
        )


@pytest.mark.usefixtures("earlier_release")
@cases(__file__, "section", "bounds", "told")
def test_criterion_that_the_whole_input_violates(
    refused: Refused,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    section: str,
    bounds: dict[str, Any],
    told: str,
) -> None:
    """Exit code 4, before any record is anonymized."""

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("the rounds have begun")

    monkeypatch.setattr(run, "run_rounds", never)
    write_table(tmp_path / "input.parquet", people())
    refused(
        4,
        f"violates {told} on attribute 'disease', which has 1 value",
        "Nothing was published",
        privacy={section: {"attribute": "disease", **bounds}},
    )


def test_input_may_vanish_after_it_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    source = write_table(tmp_path / "input.parquet", people())
    path = configuration_file(tmp_path, attributes=ATTRIBUTES)
    taking = preparing.take_snapshot

    def take_and_lose(*arguments: Any) -> Any:
        taken = taking(*arguments)
        source.unlink()
        return taken

    monkeypatch.setattr(preparing, "take_snapshot", take_and_lose)
    cli.ends(0, "run", path)
    assert summary(tmp_path / "release")["rows_published"] == 40


def test_a_csv_without_a_header_is_not_quoted(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "people.csv").write_text("Kryptonitis,34,flu\nKryptonitis,35,flu\n")
    path = configuration_file(
        tmp_path,
        input={
            "path": str(tmp_path / "people.csv"),
            "format": "csv",
            "options": {"header": "true"},
        },
        attributes=ATTRIBUTES,
    )
    outcome = cli.ends(3, "check", path)
    assert "the input has 3 columns, and none of them has the name of an attribute" in outcome.err
    assert "Kryptonitis" not in outcome.out + outcome.err


def test_nan_is_missing(tmp_path: Path, cli: Cli) -> None:
    columns = people()
    columns["height"][3:6] = [None, float("nan"), -float("nan")]
    columns["weight"] = pa.array([float("nan")] + [1.5] * 39, pa.float32())
    write_table(tmp_path / "input.parquet", columns)
    path = configuration_file(tmp_path, attributes=ATTRIBUTES | {"weight": "quasi_identifier"})
    cli.ends(0, "run", path)
    row = summary(tmp_path / "release")
    # Four are fewer than k = 5.
    assert (row["rows_in"], row["rows_dropped_missing"], row["rows_published"]) == (None, None, 36)


@pytest.mark.usefixtures("earlier_release")
class TestWrongConfiguration:
    """Exit code 2."""

    # What is wrong, in which words: unit/config/test_configuration.py.
    @cases(__file__, "sections", "told")
    def test_wrong_configuration_is_refused_by_check_and_run(
        self, refused: Refused, tmp_path: Path, sections: dict[str, Any], told: list[str]
    ) -> None:
        write_table(tmp_path / "input.parquet", people())
        refused(2, *told, **sections)

    def test_output_that_exists(self, refused: Refused, tmp_path: Path) -> None:
        write_table(tmp_path / "input.parquet", people())
        refused(
            2,
            f"output.path: {tmp_path}/release exists already",
            "overwrite",
            commands=("run",),
            output={},
        )

    @pytest.mark.usefixtures("spark")
    @cases(__file__, "format", "options", "told")
    def test_options_that_the_data_source_does_not_take(
        self,
        refused: Refused,
        tmp_path: Path,
        format: str,
        options: dict[str, Any],
        told: list[str],
    ) -> None:
        write_table(tmp_path / "input.parquet", people(), format)
        # The first one runs both.
        commands = ("check", "run") if options == {"sep": ""} else ("check",)
        refused(
            2,
            *told,
            commands=commands,
            input={"format": format, "options": options},
            execution={"engine": "spark"},
        )

    @pytest.mark.usefixtures("spark")
    @cases(__file__, "address", "options", "told")
    def test_databases_that_cannot_be_read(
        self, refused: Refused, address: str, options: dict[str, Any], told: list[str]
    ) -> None:
        commands = ("check",) if options else ("check", "run")
        refused(
            2,
            *told,
            commands=commands,
            input={"path": address, "format": "jdbc", "options": options},
        )

    @pytest.mark.parametrize(
        "address", ["file://user@host/x", "file://host/x", "nullscan://x", "x\0y"]
    )
    @pytest.mark.parametrize(
        "place",
        [("input", "path"), ("output", "path"), ("execution", "staging_path")],
        ids=lambda place: place[0],
    )
    def test_addresses_that_no_file_system_takes(
        self, refused: Refused, tmp_path: Path, place: tuple[str, str], address: str
    ) -> None:
        write_table(tmp_path / "input.parquet", people())
        section, key = place
        sections: dict[str, Any] = {"output": OVER_RELEASE, section: {key: address}}
        code = 3 if section == "input" and not address.startswith("file:") else 2
        refused(code, repr(address).strip("'"), "path ", commands=("check",), **sections)

    @cases(__file__, "source", "target", "mode")
    def test_output_and_input_inside_one_another(
        self, refused: Refused, tmp_path: Path, source: str, target: str, mode: str
    ) -> None:
        write_table(tmp_path / "table" / "2026" / "input.parquet", people())
        write_table(tmp_path / "table" / "input.parquet", people())
        (tmp_path / "link").symlink_to(tmp_path / "table")
        (tmp_path / "other").mkdir()
        refused(
            2,
            f"output.path: {tmp_path / target} and the input {tmp_path / source} "
            "lie inside one another",
            input={"path": str(tmp_path / source)},
            output={"path": str(tmp_path / target), "mode": mode},
        )

    def test_output_is_the_second_input(self, refused: Refused, tmp_path: Path) -> None:
        first = write_table(tmp_path / "first" / "a.parquet", people())
        second = write_table(tmp_path / "second" / "a.parquet", people())
        refused(
            2,
            f"file://{second}",
            "lie inside one another",
            input={"path": [str(first), f"file://{second}"]},
            output={"path": str(second.parent), "mode": "overwrite"},
        )

    def test_neighbours_with_one_prefix_are_apart(self, tmp_path: Path, cli: Cli) -> None:
        source = write_table(tmp_path / "table" / "a.parquet", people())
        path = configuration_file(
            tmp_path,
            input={"path": str(source.parent)},
            attributes=ATTRIBUTES,
            output={"path": str(tmp_path / "table-published")},
        )
        cli.ends(0, "check", path)

    def test_configuration_file_that_does_not_exist(self, refused: Refused, tmp_path: Path) -> None:
        missing = tmp_path / "nowhere.yaml"
        refused(2, f"{missing}: no such file", configuration=missing, commands=("check", "run"))

    def test_configuration_that_is_no_yaml(self, refused: Refused, tmp_path: Path) -> None:
        broken = tmp_path / "broken.yaml"
        broken.write_text("input: {path: [unclosed\n")
        refused(2, str(broken), configuration=broken, commands=("check", "run"))


@cases(__file__, "arguments", "told")
def test_wrong_usage_points_to_the_help(cli: Cli, arguments: list[str], told: str) -> None:
    outcome = cli.ends(2, *arguments, says=(told, "--help"))
    assert "Traceback" not in outcome.err


@cases(__file__, "override", "told")
def test_wrong_override_is_refused(tmp_path: Path, cli: Cli, override: str, told: str) -> None:
    path = configuration_file(tmp_path, attributes=ATTRIBUTES)
    cli.ends(2, "run", path, "--set", override, says=told)
