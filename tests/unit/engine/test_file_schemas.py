"""Which file lacks which column, told by what each of them says."""

from __future__ import annotations

import pyarrow as pa
import pytest

from anonspark.engine.data_files import FileSchemas, require_columns
from anonspark.engine.raw_columns import WantedColumns
from anonspark.errors import DataError

AGE, CITY = pa.field("age", pa.int32()), pa.field("city", pa.string())
WANTED = {"age": True, "city": True, "id": False}


def lacking(
    *schemas: list[pa.Field], missing: str = "error", folders: tuple[str, ...] = ()
) -> list[pa.Field]:
    files = FileSchemas(
        [f"s3a://KEY:SECRET@b/{place}" for place in range(len(schemas))],
        [pa.schema(fields) for fields in schemas],
        list(range(len(schemas))),
        folders,
    )
    wanted = WantedColumns(WANTED, missing, "input.missing_columns")  # type: ignore[arg-type]
    columns = [field.name for field in schemas[0]]
    return require_columns(files, wanted, columns=columns, path_key="input.path")


def test_files_that_agree() -> None:
    more = pa.field("more", pa.float64())
    assert lacking([AGE, CITY], [CITY, AGE], [AGE, more, CITY]) == []


def test_a_column_that_no_file_has_is_told_by_others() -> None:
    assert lacking([AGE], [AGE]) == []


def test_every_column_that_is_lacking_is_named() -> None:
    with pytest.raises(DataError) as told:
        lacking([CITY], [AGE, CITY], [AGE], [CITY])
    assert len(told.value.problems) == 2
    assert told.value.problems[0].startswith(
        "input.path: s3a://(redacted)@b/0 (and 1 more of 4 files) lacks the column 'age', which"
    )
    assert "s3a://(redacted)@b/2 lacks the column 'city'" in told.value.problems[1]


def test_nulls_give_the_columns_that_the_first_file_lacks() -> None:
    assert lacking([CITY], [AGE, CITY], missing="null") == [AGE]
    assert lacking([AGE, CITY], [AGE], missing="null") == []


def test_the_case_of_letters_does_not_count() -> None:
    assert lacking([AGE, CITY], [pa.field("AGE", pa.int32()), CITY]) == []
    with pytest.raises(
        DataError, match=("has 2 columns that Spark cannot distinguish, 'age', 'AGE'")
    ):
        lacking([AGE, CITY], [AGE, pa.field("AGE", pa.int32()), CITY])


def test_columns_that_are_names_of_folders_are_in_no_file() -> None:
    assert lacking([AGE], [AGE, CITY], folders=("CITY",)) == []


def test_types_have_to_agree_where_values_are_read() -> None:
    with pytest.raises(DataError, match=r"the column 'age' has type int in .*/0 and string in "):
        lacking([AGE, CITY], [pa.field("age", pa.string()), CITY], missing="null")
    identifier = [pa.field("id", kind()) for kind in (pa.int64, pa.string)]
    assert lacking([AGE, CITY, identifier[0]], [AGE, CITY, identifier[1]]) == []


def test_files_without_columns_and_with_numbers_for_names() -> None:
    numbered = [pa.field("_col0", pa.int32()), pa.field("_col1", pa.string())]
    assert lacking([AGE, CITY], [], numbered) == []
