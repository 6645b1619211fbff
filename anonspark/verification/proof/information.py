"""Measure the information that a release loses, in bits: entropy and divergence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from anonspark.engine.protocol import Table
from anonspark.labels.region_matching import LabelledTable
from anonspark.verification.attacks.presence import RegionCounts, count_regions
from anonspark.verification.proof.unit_criteria import count_sizes


@dataclass(frozen=True)
class Information:
    """The lost information.

    ``entropy`` has, for each quasi-identifier, the bits that identify every record's value among
    those that its published value covers, by how frequent they are in the input: non-uniform
    entropy, from 0 to the entropy of the column, summed over the records (Gionis and Tassa 2009).
    ``divergence`` is the Kullback-Leibler divergence, in bits, of the input's quasi-identifiers
    from the release, when every class is spread evenly over the values that it covers and each
    record is looked for in its own class: exact if classes do not overlap, otherwise an upper
    bound.
    """

    entropy: tuple[float, ...]
    divergence: float


def measure_information(labels: LabelledTable, records: Table, left_out: int) -> Information:
    """Measure the entropy that each quasi-identifier loses, and the divergence of the release.

    ``records`` are the input, with null for missing values. ``left_out`` of them are not published:
    they count as one class that covers everything. Errors are those of
    :func:`~anonspark.verification.attacks.presence.measure_presence`. Two jobs and the two of
    :func:`~anonspark.verification.attacks.presence.count_regions` twice for each quasi-identifier,
    two more for all together. The different labels of each are collected.
    """
    rows = records.count()
    entropy = []
    # Logarithms of the number of values that each label covers.
    covered = []
    for attribute in labels.attributes:
        bits_of_values, different = _bits(records, [attribute.name])
        single = replace(labels, attributes=[attribute])
        bits_of_labels = _weighted(count_regions(single, records)) + left_out * math.log2(rows)
        # Rounding must not make it negative.
        entropy.append(max(bits_of_labels - bits_of_values, 0.0))
        each_once = records.select([attribute.name]).aggregate([attribute.name])
        covered.append(_weighted(count_regions(single, each_once)))
        covered.append(left_out * math.log2(different))
    tuples, _ = _bits(records, [attribute.name for attribute in labels.attributes])
    published = [column for attribute in labels.attributes for column in attribute.columns]
    classes, _ = _bits(labels.data, published)
    alone = left_out * math.log2(left_out) if left_out else 0.0
    divergence = math.fsum([tuples, -classes, -alone, *covered]) / rows
    return Information(tuple(entropy), divergence)


def _weighted(counts: RegionCounts) -> float:
    """Return the logarithm of what each record is hidden among, summed over the records.

    >>> import numpy as np
    >>> _weighted(RegionCounts(np.array([0]), np.array([3]), np.array([4])))
    6.0
    """
    pairs = zip(counts.released, counts.population, strict=True)
    return math.fsum(int(n) * math.log2(int(covered)) for n, covered in pairs)


def _bits(table: Table, names: Sequence[str]) -> tuple[float, int]:
    """Return the sum of n log2 n over groups of n equal records, and the number of groups."""
    # Numbered, so that no name clashes with ours.
    keys = {f"key_{index}": name for index, name in enumerate(names)}
    sizes = count_sizes(table.select(keys), list(keys))
    total = math.fsum(groups * n * math.log2(n) for n, groups in sizes.items())
    return total, sum(sizes.values())
