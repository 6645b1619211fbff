"""The distributed tree and the kernel on five public tables: the same groups, record by record.

Tasks of 2,000 records are cut on the cluster down to such nodes, those of 10^9 in the kernel alone.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cases import cases
from counted_tables import RULES, AnyRule, Records
from places import require_data
from public_tables import TABLES, read
from references import attribute_of, k_alone

from anonspark.core.criteria import Criteria
from anonspark.core.criterion import Criterion

K = 10
TASK_ROWS = 2_000

STRICT_BALANCED = "strict balanced data"
MONDRIAN = (STRICT_BALANCED, "strict published cell", "relaxed data")

KDD_CUP = "kddcup99_10_percent.csv.gz"
# Of a hundred thousand records, or half a million, 25,000 are enough.
EVERY = {KDD_CUP: 20, "fars.csv": 4, "diabetic_data.csv.gz": 4}
# Each table is read once for all of its rules. Canon takes long where most records are equal. By
# day each table has one rule of Mondrian, and the first one Canon, too.
CASES = [
    pytest.param(
        file,
        rule,
        marks=[]
        if rule == MONDRIAN[place % 3] or (place, rule) == (0, "canon spread")
        else [pytest.mark.night],
    )
    for place, file in enumerate(TABLES)
    for rule in (*MONDRIAN, "canon spread")
    if (file, rule) != (KDD_CUP, "canon spread")
]


def require_same_names(records: Records, criteria: Criteria, rule: AnyRule) -> np.ndarray:
    """Require that every record is in a group of the same name however large the tasks are."""
    at_once = records.names_at_once(criteria, rule)
    by_leaves = records.names_by_leaves(criteria, rule, TASK_ROWS)
    assert (by_leaves == at_once).all()
    assert np.unique(at_once, return_counts=True)[1].min() >= criteria.k
    return at_once


@pytest.mark.parametrize(("file", "rule"), CASES)
def test_the_same_groups_for_any_size_of_tasks(data_directory: Path, file: str, rule: str) -> None:
    path = data_directory / file
    require_data(path)
    records = read(path, TABLES[file], every=EVERY.get(file, 1))
    assert len(records) > 10 * TASK_ROWS
    require_same_names(records, k_alone(K), RULES[rule])


@cases(__file__, "file", "sensitive")
def test_the_same_groups_under_a_criterion(data_directory: Path, file: str, sensitive: str) -> None:
    path = data_directory / file
    require_data(path)
    records = read(path, TABLES[file], sensitive)
    attribute = attribute_of(sensitive, np.bincount(records.values[:, 0]).tolist())
    criteria = Criteria(K, (Criterion(sensitive, "equal distance", 0.2),), (attribute,))
    names = require_same_names(records, criteria, RULES[STRICT_BALANCED])
    # The boundaries further out cut groups that the published rule leaves whole.
    published = records.names_at_once(criteria, RULES["strict published data"])
    assert len(np.unique(names)) > len(np.unique(published))
