"""Criteria of a union that tells holders apart, against measuring each holder's records alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from cases import data_beside
from hypothesis import given
from hypothesis import strategies as st

from anonspark.config.privacy import PrivacyOptions
from anonspark.engine.local.engine import LocalEngine
from anonspark.verification.claims.claim import Claim
from anonspark.verification.proof import criteria
from anonspark.verification.proof.sensitive_figures import measure_sensitive

PRIVACY: dict[str, Any] = data_beside(__file__)["PRIVACY"]
RECORD = st.tuples(
    st.sampled_from(["north", "south", None]),
    st.sampled_from(["x", "y"]),
    st.sampled_from(["flu", "gout", "ulcer", None]),
)


@pytest.fixture(autouse=True, scope="module")
def few_classes_at_once() -> Iterator[None]:
    """Measure two classes at a time, which changes nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(criteria, "_CLASSES_AT_ONCE", 2)
        yield


def claim(columns: list[str], holder: str | None) -> Claim:
    return Claim(
        PrivacyOptions.model_validate(PRIVACY),
        columns,
        tuple(columns),
        sensitive=("illness",),
        orders={"illness": ["ulcer", "gout", "flu", "none has it"]},
        holder=holder,
    )


@given(st.lists(RECORD, min_size=1, max_size=30))
def test_each_class_is_measured_beside_its_own_holder(
    records: list[tuple[str | None, ...]],
) -> None:
    engine = LocalEngine()
    columns = [pa.array(one, pa.string()) for one in zip(*records, strict=True)]
    table = pa.Table.from_arrays(columns, ["clinic", "town", "illness"])
    together = measure_sensitive(
        engine.table(table), claim(["town", "clinic"], "clinic"), table.num_rows
    )
    alone = []
    for holder in {one[0] for one in records}:
        own = table.filter(pa.array([one[0] == holder for one in records]))
        alone.append(measure_sensitive(engine.table(own), claim(["town"], None), 8).criteria)
    for place, one in enumerate(together.criteria):
        each = [measured[place] for measured in alone]
        assert {other.criterion for other in each} == {one.criterion}
        worst = min if one.criterion.type.worst_is_smallest else max
        assert one.measured == pytest.approx(worst(other.measured for other in each))
        assert one.violating_classes == sum(other.violating_classes for other in each)
        assert one.violating_records == sum(other.violating_records for other in each)
