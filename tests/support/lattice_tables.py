"""Tables for the tests of full-domain recoding, and what their nodes are like, the slow way."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from anonspark.core.columns import quasi_identifier_column
from anonspark.core.criteria import Criteria, SensitiveAttribute
from anonspark.core.criterion import Criterion
from anonspark.core.encoding import QuasiIdentifier
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.layers.partition.lattice.domain import Domain, domain_of
from anonspark.layers.partition.lattice.tuples import Tuples

Rows = Sequence[Sequence[str]]
Levels = tuple[int, ...]


def quasi_identifier(
    name: str, rows: Rows, *, has_missing: bool = False, weight: float = 1.0
) -> QuasiIdentifier:
    """Return a quasi-identifier all of whose values occur."""
    hierarchy = Hierarchy.from_rows(rows)
    return QuasiIdentifier(
        name,
        "category",
        pa.string(),
        0,
        len(hierarchy.leaves) - 1,
        categories=hierarchy.leaves,
        has_missing=has_missing,
        weight=weight,
        hierarchy=hierarchy,
    )


def sensitive_attribute(values: Sequence[str]) -> SensitiveAttribute:
    domain = sorted(set(values))
    counts = np.array([list(values).count(value) for value in domain], np.int64)
    none = np.zeros(0, np.int64)
    return SensitiveAttribute("s", "payload_0", pa.array(domain, pa.string()), counts, none, none)


def tuples_of(
    columns: Sequence[Sequence[str | None]], values: Sequence[str], domain: Domain
) -> Tuples:
    """Count the distinct tuples of a table as it is."""
    table = {
        quasi_identifier_column(index): pa.array(column, pa.string())
        for index, column in enumerate(columns)
    }
    if domain.criteria.sensitive:
        table["payload_0"] = pa.array(values, pa.string())
    bottom = (0,) * len(columns)
    encoded, _ = domain.encode(pa.table(table), bottom)
    codes, counts = np.unique(encoded, axis=0, return_counts=True)
    return Tuples(domain, bottom, np.ascontiguousarray(codes), counts)


@dataclass(frozen=True)
class RandomTable:
    """A table, and what is asked of it."""

    columns: list[list[str | None]]
    values: list[str]
    quasi_identifiers: tuple[QuasiIdentifier, ...]
    criteria: Criteria

    @property
    def domain(self) -> Domain:
        return domain_of(self.quasi_identifiers, self.criteria)

    @property
    def tuples(self) -> Tuples:
        return tuples_of(self.columns, self.values, self.domain)

    @property
    def rows(self) -> int:
        return len(self.values)

    @property
    def heights(self) -> Levels:
        return tuple(one.height for one in self.quasi_identifiers)

    def label(self, index: int, value: str | None, level: int) -> str:
        """Return the group of a value, in words."""
        hierarchy = self.quasi_identifiers[index].hierarchy
        assert hierarchy is not None
        if level == hierarchy.height:
            return "*"
        if value is None:
            return "missing"
        code = np.array([hierarchy.leaves.index(value)])
        return f"{level} {hierarchy.nodes(level, code)[0]}"

    def classes(self, levels: Levels) -> dict[tuple[str, ...], list[int]]:
        """Return the records of each class."""
        classes: dict[tuple[str, ...], list[int]] = {}
        for row in range(self.rows):
            key = tuple(
                self.label(index, column[row], level)
                for index, (column, level) in enumerate(zip(self.columns, levels, strict=True))
            )
            classes.setdefault(key, []).append(row)
        return classes

    def satisfies(self, members: Sequence[int]) -> bool:
        """Return whether a class satisfies all criteria, by their definitions."""
        if len(members) < self.criteria.k:
            return False
        shares = {
            value: count / len(members)
            for value, count in Counter(self.values[row] for row in members).items()
        }
        everywhere = Counter(self.values)
        for one in self.criteria.criteria:
            if one.kind == "distinct" and len(shares) < one.bound:
                return False
            if one.kind == "entropy":
                entropy = -sum(share * math.log(share) for share in shares.values())
                if entropy < math.log(one.bound) - 1e-9:
                    return False
            if one.kind == "equal distance":
                distance = sum(
                    abs(shares.get(value, 0.0) - count / self.rows)
                    for value, count in everywhere.items()
                )
                if distance / 2 > one.bound + 1e-9:
                    return False
        return True

    def nodes(self) -> Iterator[Levels]:
        yield from product(*(range(height + 1) for height in self.heights))

    def covered(self, index: int, label: str, level: int) -> set[str | None]:
        """Return the values of the domain that a group covers."""
        one = self.quasi_identifiers[index]
        values: list[str | None] = [*one.categories, *([None] * one.has_missing)]
        return {value for value in values if self.label(index, value, level) == label}

    def cost(self, name: str, levels: Levels) -> tuple[float, int]:
        """Return what a node costs and how many records it suppresses, by the definitions."""
        classes = self.classes(levels)
        kept = {key: rows for key, rows in classes.items() if self.satisfies(rows)}
        suppressed = self.rows - sum(len(rows) for rows in kept.values())
        if name == "average_class_size":
            return -len(kept), suppressed
        if name == "monotonic_discernibility":
            return sum(len(rows) ** 2 for rows in classes.values()), suppressed
        if name == "discernibility":
            squares = sum(len(rows) ** 2 for rows in kept.values())
            return squares + self.rows * suppressed, suppressed
        total = 0.0
        for index, (one, level) in enumerate(zip(self.quasi_identifiers, levels, strict=True)):
            column = self.columns[index]
            for key, rows in kept.items():
                covered = self.covered(index, key[index], level)
                if name == "precision":
                    value = level / one.height
                elif name == "loss":
                    value = (len(covered) - 1) / max(one.domain_size - 1, 1)
                else:
                    value = math.log2(sum(other in covered for other in column))
                total += one.weight * value * len(rows)
            lost = math.log2(self.rows) if name == "entropy" else 1.0
            total += one.weight * lost * suppressed
        return total, suppressed

    def best(self, name: str, most_suppressed: int) -> tuple[Levels, float] | None:
        """Return the best node of all."""
        found = []
        for levels in self.nodes():
            cost, suppressed = self.cost(name, levels)
            if suppressed <= most_suppressed and suppressed < self.rows:
                found.append((round(cost, 6), suppressed, sum(levels), levels))
        return (min(found)[3], min(found)[0]) if found else None


def random_table(random: np.random.Generator, *kinds: str, missing: bool = False) -> RandomTable:
    """Draw a table of up to 40 records and 3 quasi-identifiers."""
    rows = int(random.integers(3, 41))
    attributes, columns = [], []
    for index in range(int(random.integers(1, 4))):
        leaves = [f"v{index}{number}" for number in range(int(random.integers(1, 9)))]
        has_missing = missing and bool(random.integers(2))
        labels: list[list[str]] = [[leaf] for leaf in leaves]
        group = list(range(len(leaves)))
        for level in range(int(random.integers(0, 3))):
            # Neighbours fall into one group.
            group = [number // 2 for number in group]
            for own, number in zip(labels, group, strict=True):
                own.append(f"g{index}{level}{number}")
        attributes.append(
            quasi_identifier(
                f"q{index}",
                [[*own, "*"] for own in labels],
                has_missing=has_missing,
                weight=float(random.choice([0.5, 1.0, 1.0, 2.0])),
            )
        )
        values: list[Any] = [*leaves, *([None] * has_missing)]
        skewed = random.integers(0, len(values), rows) * random.integers(0, 2, rows)
        columns.append([values[place] for place in skewed])
    # In the order of the domain.
    places = sorted(range(len(attributes)), key=lambda place: -attributes[place].domain_size)
    attributes = [attributes[place] for place in places]
    columns = [columns[place] for place in places]
    sensitive = [str(value) for value in random.choice(list("aaabcd"), rows)]
    bounds = {"distinct": 2.0, "entropy": 1.5, "equal distance": 0.3}
    criteria = tuple(Criterion("s", kind, bounds[kind]) for kind in kinds)  # type: ignore[arg-type]
    own = (sensitive_attribute(sensitive),) if criteria else ()
    return RandomTable(
        columns, sensitive, tuple(attributes), Criteria(int(random.integers(1, 6)), criteria, own)
    )
