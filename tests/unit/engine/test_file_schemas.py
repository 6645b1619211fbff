"""Which file lacks which column or field of a struct, and what each of them says."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.ml.linalg import VectorUDT
from pyspark.sql import types as spark_types

from anonspark.engine.data_files import FileSchemas, require_columns
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.raw_columns import WantedColumns
from anonspark.engine.spark.arrow import arrow_schema
from anonspark.engine.spark.fields import _of_structs
from anonspark.engine.struct_fields import (
    StructField,
    outer_columns,
    struct_fields,
    whole_structs,
    with_field,
    with_struct_fields,
    written_fields,
)
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
    with pytest.raises(DataError, match=("has 2 columns of one name, 'age', 'AGE'")):
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


GEO = pa.struct([("lat", pa.float64()), ("lon", pa.float64())])
ADDRESS = pa.struct([("city", pa.string()), ("geo", GEO), ("tags", pa.list_(pa.string()))])


def test_fields_follow_their_struct() -> None:
    schema = with_struct_fields(pa.schema([("address", ADDRESS), ("age", pa.int32())]))
    assert schema.names == [
        *("address", "address.city", "address.geo", "address.geo.lat", "address.geo.lon"),
        *("address.tags", "age"),
    ]
    assert schema.field("address.geo.lat").type == pa.float64()
    assert whole_structs(schema) == ["address", "address.geo"]
    assert written_fields("address", ADDRESS) == [
        "address.city",
        "address.geo.lat",
        "address.geo.lon",
    ]
    assert with_struct_fields(schema) == schema


def test_a_column_goes_before_a_field_of_its_name() -> None:
    inner = pa.struct([("city", pa.string()), ("zip", pa.int64())])
    schema = pa.schema([("address", inner), ("Address.City", pa.int8())])
    assert list(struct_fields(schema)) == ["address.zip"]


def test_fields_that_cannot_be_told_apart_are_no_columns() -> None:
    inner = pa.struct([("city", pa.string()), ("CITY", pa.string()), ("zip", pa.int64())])
    assert list(struct_fields(pa.schema([("a", inner)]))) == ["a.zip"]
    assert struct_fields(pa.schema([("a", inner), ("A", inner)])) == {}


def test_arrays_and_maps_have_no_fields() -> None:
    many = [pa.list_(ADDRESS), pa.map_(pa.string(), ADDRESS)]
    assert struct_fields(pa.schema([(str(place), one) for place, one in enumerate(many)])) == {}


def test_a_part_of_what_is_read_is_not_read_twice() -> None:
    fields = struct_fields(pa.schema([("address", ADDRESS)]))
    city, geo, lat = (fields[f"address.{name}"] for name in ("city", "geo", "geo.lat"))
    assert outer_columns([city, lat]) == ["address.city", "address.geo.lat"]
    assert outer_columns([lat, geo, city]) == ["address.geo", "address.city"]
    whole = StructField("address", "address", (), ADDRESS)
    assert outer_columns([city, whole]) == ["address"]


def test_a_struct_gets_a_field_that_it_lacks() -> None:
    lat = struct_fields(pa.schema([("address", ADDRESS)]))["address.geo.lat"]
    lacks = pa.field("address", pa.struct([("city", pa.string())]))
    found = with_field(lacks, lat).type
    assert found == pa.struct([("city", pa.string()), ("geo", pa.struct([("lat", pa.float64())]))])
    assert with_field(pa.field("address", found), lat).type == found


PEOPLE = st.lists(
    st.one_of(
        st.none(),
        st.fixed_dictionaries(
            {
                "city": st.sampled_from([None, "a", "b"]),
                "geo": st.one_of(
                    st.none(),
                    st.fixed_dictionaries({"lat": st.one_of(st.none(), st.integers(0, 3))}),
                ),
            }
        ),
    ),
    max_size=12,
)


@given(PEOPLE)
def test_values_of_tables_in_memory(rows: list[dict[str, Any] | None]) -> None:
    """A value is missing where a struct around it is."""
    kind = pa.struct([("city", pa.string()), ("geo", pa.struct([("lat", pa.int64())]))])
    table = pa.table({"address": pa.array(rows, kind), "n": pa.array(range(len(rows)), pa.int64())})
    found = LocalEngine().wrap(table.slice(len(rows) // 3)).collect()
    kept = rows[len(rows) // 3 :]
    assert (
        found.select(["address", "n"]).to_pylist()
        == [{"address": one, "n": number} for number, one in enumerate(rows)][len(rows) // 3 :]
    )
    assert found["address.city"].to_pylist() == [(one or {}).get("city") for one in kept]
    assert found["address.geo.lat"].to_pylist() == [
        ((one or {}).get("geo") or {}).get("lat") for one in kept
    ]


def lacking_fields(*schemas: pa.Schema, missing: str = "error") -> list[pa.Field]:
    files = FileSchemas(
        [f"part-{place}" for place in range(len(schemas))], schemas, list(range(len(schemas)))
    )
    wanted = WantedColumns({"a.x": True}, missing, "input.missing_columns")  # type: ignore[arg-type]
    columns = with_struct_fields(schemas[0]).names
    return require_columns(files, wanted, columns=columns, path_key="input.path")


def of_struct(*fields: tuple[str, pa.DataType]) -> pa.Schema:
    return pa.schema([("a", pa.struct(fields))])


def test_every_file_has_to_have_the_field() -> None:
    whole, lacks = of_struct(("x", pa.int64()), ("y", pa.int64())), of_struct(("y", pa.int64()))
    assert lacking_fields(whole, whole) == []
    with pytest.raises(DataError, match=r"part-1 lacks the column 'a\.x', which other files have"):
        lacking_fields(whole, lacks)
    assert lacking_fields(whole, lacks, missing="null") == []
    assert lacking_fields(lacks, whole, missing="null") == [pa.field("a.x", pa.int64())]
    with pytest.raises(DataError, match=r"'a\.x' has type bigint in part-0 and string in part-1"):
        lacking_fields(whole, of_struct(("x", pa.string())))


def test_a_field_of_some_files_is_no_column_of_others() -> None:
    column = pa.schema([("a.x", pa.int64())])
    with pytest.raises(DataError, match=r"'a\.x' is a column in part-1, and a field of a struct"):
        lacking_fields(of_struct(("x", pa.int64())), column, missing="null")


def test_vectors_of_spark_are_no_structs() -> None:
    vector = spark_types.StructField("v", VectorUDT())
    inner = spark_types.StructType([vector, spark_types.StructField("x", spark_types.LongType())])
    schema = spark_types.StructType([vector, spark_types.StructField("a", inner)])
    assert list(struct_fields(arrow_schema(_of_structs(schema)))) == ["a.v", "a.x"]
