"""What arguments may be, and what is said of those that are something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

import anonspark
from anonspark.errors import ConfigurationError

ROWS = 60
PEOPLE = pd.DataFrame({"age": [row % 12 for row in range(ROWS)], "sex": ["f", "m"] * (ROWS // 2)})
ARGUMENTS: dict[str, Any] = {"k": 5, "progress": False}


def refused(function: Callable[..., Any], *given: Any, **named: Any) -> str:
    """Return what a call is refused with."""
    with pytest.raises(ConfigurationError) as caught:
        function(*given, **named)
    return str(caught.value)


@pytest.mark.parametrize("function", [anonspark.anonymize, anonspark.compare, anonspark.verify])
def test_names_of_columns(function: Callable[..., Any]) -> None:
    own = ARGUMENTS if function is not anonspark.verify else {"k": 5}
    expected = "; expected a list of names of columns"
    assert refused(function, PEOPLE, quasi_identifiers={"age", "sex"}, **own) == (
        "quasi_identifiers: found a set, whose order is another one in each process" + expected
    )
    for found, told in (
        ("age", "a text"),
        (None, "NoneType"),
        ([3], "something else than texts in it"),
    ):
        text = f"quasi_identifiers: found {told}{expected}"
        assert refused(function, PEOPLE, quasi_identifiers=found, **own) == text
    text = f"sensitive: found a text{expected}"
    assert refused(function, PEOPLE, quasi_identifiers=["age"], sensitive="sex", **own) == text
    for named in ((name for name in ["age"]), pd.Index(["age"])):
        function(PEOPLE, quasi_identifiers=named, **own)
