"""Records of classes with one value, and values by their number, beside a count in Python."""

from collections import Counter

import pyarrow as pa
from helpers import local_table
from hypothesis import given
from hypothesis import strategies as st

from anonspark.verification.classes import count_published_classes

VALUES = {
    "text": st.sampled_from(["flu", "tumour", None]),
    "number": st.sampled_from([0.0, -0.0, 1.5, None]),
}
RECORDS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 1), *VALUES.values()), max_size=40
)


@given(records=RECORDS, tasks=st.integers(1, 4))
def test_records_of_classes_with_one_value(
    records: list[tuple[str, int, str | None, float | None]], tasks: int
) -> None:
    schema = pa.schema(
        [("age", pa.string()), ("zip", pa.int64()), ("text", pa.string()), ("number", pa.float64())]
    )
    rows = [dict(zip(schema.names, record, strict=True)) for record in records]
    table = local_table(pa.Table.from_pylist(rows, schema), tasks=tasks)

    counted = count_published_classes(table, ["age", "zip"], list(VALUES), counted=list(VALUES))
    found = counted.homogeneous

    sizes = Counter((age, code) for age, code, *_ in records)
    for place, name in enumerate(VALUES, start=2):
        values: dict[tuple[str, int], set[object]] = {}
        for record in records:
            values.setdefault(record[:2], set()).add(record[place])
        assert found[name] == sum(sizes[one] for one, own in values.items() if len(own) == 1)
        column = [record[place] for record in records]
        assert counted.values[name] == Counter(Counter(column).values())
        assert counted.missing[name] == column.count(None)
    assert counted.sizes == Counter(sizes.values())
    assert counted.fingerprint == count_published_classes(table, ["age", "zip"]).fingerprint
