"""What the page about extending adds is registered as real ones are, and works."""

from __future__ import annotations

import json
import re
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from counted_tables import Records
from one_block import release
from places import REPOSITORY
from references import k_alone

from anonspark.config import json_schema, models, parse_configuration
from anonspark.core import criterion
from anonspark.core.figures import SUMMARY, ddl, results
from anonspark.errors import ConfigurationError
from anonspark.layers.evaluate.metrics import Totals
from anonspark.models import registry
from anonspark.models.model import Model
from anonspark.verification.measures import ValueCounts

PAGE = (REPOSITORY / "docs" / "extending.md").read_text()
DOCUMENT: dict[str, Any] = {
    "input": {"path": "people.csv"},
    "attributes": {"age": "quasi_identifier"},
    "privacy": {"k": 5},
    "output": {"path": "out"},
}


@pytest.fixture
def code(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run the blocks of a section of the page, and return what they define."""
    text = re.search(rf"^## {request.param}$(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    assert text is not None
    blocks = re.findall(r"^```python\n(.*?)^```$", text[1], re.M | re.S)
    assert blocks
    module = ModuleType("extending")
    monkeypatch.setitem(sys.modules, "extending", module)
    for block in blocks:
        exec(compile(block, "docs/extending.md", "exec"), module.__dict__)  # noqa: S102
    return module.__dict__


@pytest.mark.parametrize("code", ["A model"], indirect=True)
def test_a_model(code: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="smondrian"):
        parse_configuration(DOCUMENT | {"model": {"name": "sorted"}})
    monkeypatch.setattr(models, "_OPTIONS", (*models._OPTIONS, code["SortedOptions"]))
    monkeypatch.setattr(registry, "_MODELS", (*registry._MODELS, code["Sorted"]))

    configuration = parse_configuration(DOCUMENT | {"model": {"name": "sorted", "attribute": 1}})
    assert isinstance(configuration.model, code["SortedOptions"])
    assert "Number of the attribute to sort by." in json.dumps(json_schema())
    random = np.random.default_rng(3)
    ages, incomes = random.integers(0, 90, 203), np.arange(203)
    made = release(Records([ages, incomes]), k_alone(5), configuration.model)
    # Neighbours in the second attribute: 40 groups, of which three have a record more.
    assert sorted(made.sizes.tolist()) == [5] * 37 + [6] * 3


def test_a_model_that_is_no_tree_says_two_things() -> None:
    assert Model.__abstractmethods__ == {"__init__", "rounds", "anonymize"}


@pytest.mark.parametrize("code", ["A criterion"], indirect=True)
def test_a_criterion(code: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        criterion, "CRITERIA", criterion.CRITERIA | {"two largest": code["TWO_LARGEST"]}
    )
    required = criterion.Criterion("disease", "two largest", 0.8)
    words = "at most 0.8 of a class with its two most frequent values"
    assert (required.describe(), required.limit, required.type.worst_is_smallest) == (
        words,
        0.8,
        False,
    )
    random = np.random.default_rng(4)
    counts = random.integers(0, 4, (50, 6))
    counts[:, 0] += 1
    classes, values = np.nonzero(counts)
    table = ValueCounts(classes, values, counts[classes, values])
    measured = code["TWO_LARGEST_MEASURE"].figures(table, None, required, None)
    judged = [code["two_largest_share"](own, np.flatnonzero(own), own.sum()) for own in counts]
    np.testing.assert_allclose(measured, judged, rtol=1e-12)


@pytest.mark.parametrize("code", ["A figure"], indirect=True)
def test_a_figure(code: dict[str, Any]) -> None:
    summary = (*SUMMARY, code["CLASSES_OF_K"])
    assert ddl(summary).endswith(", classes_of_k long")
    # So gates and drift may bound it.
    assert results(summary)[-1].title == "classes of exactly k records"
    totals = Totals(rows=22, classes=4, squares=124, sizes={5: 3, 7: 1}, attributes=())
    assert code["classes_of_k"](totals, 5) == 3
    assert code["classes_of_k"](totals, 6) == 0
