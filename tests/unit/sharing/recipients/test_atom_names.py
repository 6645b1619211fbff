"""Names of atoms: those of different strata, and of different plans, never meet."""

from __future__ import annotations

from itertools import product

import pyarrow as pa

from anonspark.core.columns import ATOM, CLASS_ID, SUBJECT
from anonspark.sharing.recipients.base_partition import NameAtoms


def test_no_two_plans_or_strata_share_a_name() -> None:
    # Models name their classes by the seed and the place in the tree: alike in every plan.
    classes = pa.RecordBatch.from_pydict(
        {CLASS_ID: pa.array([-5, 0, 7]), SUBJECT: pa.array([b"a", b"b", b"c"])}
    )
    names = [
        name
        for generation, pattern in product(range(20), range(1, 40))
        for batch in NameAtoms(generation, pattern)(iter([classes]))
        for name in batch.column(ATOM).to_pylist()
    ]
    assert len(set(names)) == len(names) == 3 * 20 * 39
