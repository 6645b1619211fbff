"""The table of criteria: each kind is described, judged by the kernel and measured once."""

from __future__ import annotations

import pytest

from anonspark.core.criterion import CRITERIA, Criterion
from anonspark.kernels import criteria as kernel
from anonspark.verification.measures import MEASURES

every_kind = pytest.mark.parametrize("kind", list(CRITERIA))


def test_kinds_are_the_same_everywhere() -> None:
    kinds = list(CRITERIA)
    assert list(MEASURES) == kinds
    constants = [getattr(kernel, one.kernel) for one in CRITERIA.values()]
    assert sorted(constants) == list(range(len(kinds)))
    assert len({one.column for one in CRITERIA.values()}) == len(kinds)


@every_kind
def test_words_have_the_bound_and_no_brace(kind: str) -> None:
    words = Criterion("s", kind, 2.5, 0.75).describe()
    assert "2.5" in words
    assert "{" not in words + CRITERIA[kind].measured.format(bound="3")


@pytest.mark.parametrize(
    ("criterion", "words"),
    [
        (Criterion("s", "distinct", 3), "distinct l-diversity with l = 3"),
        (
            Criterion("s", "recursive", 2, 1.5),
            "recursive (c, l)-diversity with c = 1.5 and l = 2",
        ),
        (Criterion("s", "alpha", 0.5), "(alpha, k)-anonymity with alpha = 0.5"),
        (Criterion("s", "equal distance", 0.2), "t-closeness with t = 0.2 (equal distance)"),
    ],
)
def test_criteria_in_words(criterion: Criterion, words: str) -> None:
    assert criterion.describe() == words


def test_only_recursive_diversity_has_a_c() -> None:
    assert Criterion("s", "recursive", 2, 1.5).told_c == 1.5
    assert Criterion("s", "recursive", 2, 1.5).limit == 1.5
    assert Criterion("s", "entropy", 2).told_c is None
    assert Criterion("s", "entropy", 2).limit == 2
