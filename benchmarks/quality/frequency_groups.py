"""The thesis' hierarchies: values are grouped by how often their most frequent class is with them.

The program's own are learned otherwise: :mod:`anonspark.core.arrangement`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from quality.csv_tables import Texts

SUPPRESSED = "*"
THESIS_RHOS = (5, 10, 20, 50)


@dataclass(frozen=True)
class Leading:
    """The most frequent class among the records of a value.

    Parameters
    ----------
    name : str
        Of classes that are equally frequent the first by code point.
    records : int
        Records of the value with this class.
    total : int
        Records of the value.
    """

    name: str
    records: int
    total: int

    @property
    def share(self) -> float:
        """The share of the class, from 0 to 1."""
        return self.records / self.total

    def group(self, rho: int) -> tuple[str, int]:
        """Return class and bin of the share, in percent; the last bin is closed, so it has 100%.

        The loops of the thesis begin at 1 and would lose bin 0, which three classes can reach.
        """
        return self.name, min(100 * self.records // (rho * self.total), 100 // rho - 1)


def leading_classes(values: Sequence[str], target: Sequence[str]) -> dict[str, Leading]:
    """Return the most frequent class of each value."""
    pairs = Counter(zip(values, target, strict=True))
    totals = Counter(values)
    best: dict[str, Leading] = {}
    for (value, name), records in sorted(pairs.items(), key=lambda one: (-one[1], one[0])):
        best.setdefault(value, Leading(name, records, totals[value]))
    return best


def groups_of(leading: Mapping[str, Leading], rho: int) -> dict[tuple[str, int], frozenset[str]]:
    """Return the groups of values by class and bin."""
    groups: dict[tuple[str, int], set[str]] = {}
    for value, one in leading.items():
        groups.setdefault(one.group(rho), set()).add(value)
    return {group: frozenset(values) for group, values in groups.items()}


def published_by_groups(
    table: Texts,
    columns: Sequence[str],
    target: str,
    lists: Sequence[Sequence[int]],
    rhos: Sequence[int] = THESIS_RHOS,
) -> list[list[str]]:
    """Publish lists of rows by frequency groups, one column of texts for each of the columns.

    A list with one value keeps it; another has the group with the smallest rho that holds all of
    its values, or ``*``. Groups of the same values have the same text.
    """
    classes = table.column(target)
    published = []
    for name in columns:
        values = table.column(name)
        leading = leading_classes(values, classes)
        groups = [
            {value: group for group in groups_of(leading, rho).values() for value in group}
            for rho in rhos
        ]
        texts = [""] * len(values)
        text_of = cache(lambda group: "|".join(sorted(group)))
        for rows in lists:
            own = {values[row] for row in rows}
            if len(own) == 1:
                (text,) = own
            else:
                some = next(iter(own))
                fitting = (of[some] for of in groups if own <= of[some])
                found = next(fitting, None)
                text = SUPPRESSED if found is None else text_of(found)
            for row in rows:
                texts[row] = text
        published.append(texts)
    return published
