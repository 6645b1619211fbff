"""Warn of columns published as they are that give quasi-identifiers away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.config import Configuration
from anonspark.core.association import Dependency, dense_codes, find_dependencies, joined_codes
from anonspark.core.columns import RECORD_HASH, payload_column, quasi_identifier_column
from anonspark.core.figure_text import rounded_share
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import is_number, is_plain, is_time
from anonspark.engine.tasks import Batches
from anonspark.engine.values.hashing import content_hash
from anonspark.engine.values.value_texts import as_floats
from anonspark.pipeline.warnings.release_warning import ReleaseWarning
from anonspark.staged.sampling import all_records, drawn_by_hash, sample_records

SAMPLE_ROWS = 32_768
"""Records of the sample. Of a table with no more all are looked at."""

# The sample is collected by the driver through one task. It is smaller the more columns there are.
_SAMPLE_BYTES, _LEAST_ROWS = 8 << 20, 1_000

# Columns published as they are of which pairs are looked at, too.
_PAIRED = 5


@dataclass(frozen=True, repr=False)
class RecordSample:
    """Hashes and numbers of some records of a table, or of all of a small one.

    ``columns`` maps the published columns whose values can be compared to those of the table, which
    has ``records`` rows. ``drawn`` has a row for each record: a hash of each column, and the number
    of numbers and times.
    """

    columns: Mapping[str, str]
    records: int
    drawn: pa.Table

    def hashes(self, name: str) -> pa.ChunkedArray:
        """Return the hashes of a column's values."""
        return self.drawn[f"code_{list(self.columns).index(name)}"]

    def sizes(self) -> dict[int, int]:
        """Return how many different records of the sample occur how often."""
        codes = [f"code_{index}" for index in range(len(self.columns))]
        if not codes:
            return {}
        counts = self.drawn.group_by(codes).aggregate([([], "count_all")])["count_all"]
        return {count["values"]: count["counts"] for count in counts.value_counts().to_pylist()}

    def whole_numbers(self, name: str) -> int:
        """Count the records without a fraction in a column: all of a column of texts."""
        number = f"number_{list(self.columns).index(name)}"
        if number not in self.drawn.schema.names:
            return len(self.drawn)
        values = self.drawn[number]
        return int(pc.sum(pc.equal(values, pc.floor(values)), min_count=0).as_py())


def sample_of(
    table: Table, configuration: Configuration, records: int, *, most: int = SAMPLE_ROWS
) -> RecordSample:
    """Draw a sample of up to ``most`` of the records that are kept, under staged names.

    One pass over the records, which hashes draw if there are more. Tables with large numbers of
    equal records take two more passes, and before them one with a shuffle of a hash for each
    record. 64-bit hashes of the sample's values, and its numbers, are collected.
    """
    staged = comparable_columns(table, configuration)
    types = [table.schema.field(column).type for column in staged.values()]
    narrow = _Narrow(tuple(is_number(kind) or is_time(kind) for kind in types))
    if not staged or not records:
        return RecordSample(staged, records, narrow.schema.empty_table())
    # Hashes and numbers have 8 bytes each.
    most = min(most, max(_SAMPLE_BYTES // (8 * len(narrow.schema)), _LEAST_ROWS))
    drawn = _sample(table, staged, narrow, records, most, configuration.execution.seed)
    return RecordSample(staged, records, drawn)


def dependency_warnings(sample: RecordSample, configuration: Configuration) -> list[ReleaseWarning]:
    """Warn of unchanged columns that give quasi-identifiers away.

    Each such column has a warning, and so has a pair of columns neither of which does it alone.
    Shares are rounded to multiples of k records.
    """
    published = [name for name in configuration.published_as_is if name in sample.columns]
    pairs = {
        f"{first} and {second}": (first, second)
        for first, second in combinations(published[:_PAIRED], 2)
    }
    by_name: dict[str, list[Dependency]] = {}
    for dependency in _find(sample, published, pairs, configuration.quasi_identifiers):
        alone = chain(*(by_name.get(name, ()) for name in pairs.get(dependency.column, ())))
        if dependency.determines not in [other.determines for other in alone]:
            by_name.setdefault(dependency.column, []).append(dependency)
    exact = len(sample.drawn) == sample.records
    return [
        _warning(pairs.get(name, (name,)), shown, configuration, exact=exact)
        for name, shown in by_name.items()
    ]


def _find(
    sample: RecordSample,
    published: Sequence[str],
    pairs: Mapping[str, tuple[str, str]],
    identifiers: Sequence[str],
) -> Iterable[Dependency]:
    """Find what columns and pairs of columns determine in a sample."""
    determined = [name for name in identifiers if name in sample.columns]
    if not published or not determined or not len(sample.drawn):
        return ()
    drawn = {name: sample.drawn[name].to_numpy() for name in sample.drawn.column_names}
    codes, numbers = {}, {}
    for index, name in enumerate(sample.columns):
        codes[name] = dense_codes(drawn[f"code_{index}"])[0]
        if f"number_{index}" in drawn:
            numbers[name] = drawn[f"number_{index}"]
    codes |= {name: joined_codes(codes[a], codes[b]) for name, (a, b) in pairs.items()}
    columns = [*published, *pairs]
    return find_dependencies(list(codes), list(codes.values()), columns, determined, numbers)


def comparable_columns(table: Table, configuration: Configuration) -> dict[str, str]:
    """Return the staged columns of published ones whose values can be compared, by their names."""
    return {
        name: column(index)
        for column, names in (
            (payload_column, configuration.published_as_is),
            (quasi_identifier_column, configuration.quasi_identifiers),
        )
        for index, name in enumerate(names)
        if is_plain(table.schema.field(column(index)).type)
    }


def _sample(
    table: Table, staged: Mapping[str, str], narrow: _Narrow, records: int, most: int, seed: int
) -> pa.Table:
    """Return hashes and numbers of the records of a sample."""
    columns = list(staged.values())
    if records > most:
        is_hashed = RECORD_HASH in table.schema.names
        hashed = table if is_hashed else table.with_hashes({RECORD_HASH: columns}, seed)
        drawn = drawn_by_hash(hashed, columns, records, most).map_batches(narrow, narrow.schema)
        sample = all_records(drawn, narrow.schema.names, seed, 2 * most)
        if most < 4 * len(sample) < 8 * most:
            return sample
    values = table.select(columns).map_batches(narrow, narrow.schema)
    return sample_records(values, narrow.schema.names, records, most, seed)


def _warning(
    columns: Sequence[str],
    dependencies: Sequence[Dependency],
    configuration: Configuration,
    *,
    exact: bool,
) -> ReleaseWarning:
    """Warn that columns nearly determine others, with shares that reveal no small count."""
    k = configuration.privacy.k
    figures: list[dict[str, object]] = [
        {
            "attribute": dependency.determines,
            "share": 1
            - (
                rounded_share(
                    round((1 - dependency.holds) * dependency.records), dependency.records, k
                )
                or 0.0
            ),
            "within": dependency.within,
        }
        for dependency in dependencies
    ]
    shown = []
    for figure in figures:
        within = f" to within {figure['within']:.0%} of its range" if figure["within"] else ""
        shown.append(
            f"{figure['attribute']}{within} for about {figure['share']:.1%} of the records"
        )
    companion = f"together with {columns[1]} " if len(columns) > 1 else ""
    return ReleaseWarning(
        "gives_away",
        f"published as it is ({configuration.attributes[columns[0]].role}), {companion}it shows "
        f"{', '.join(shown)}. An attacker who knows that of a person finds the records of a class "
        f"that fit, which may be fewer than k = {k:,}. Leave the column out, make it coarser, or "
        "make it a quasi_identifier",
        columns[0],
        {"columns": list(columns), "gives_away": figures, "exact": exact},
    )


def withheld_dependency_warnings(configuration: Configuration) -> Iterator[ReleaseWarning]:
    """Return what is published instead of these warnings if records were left out.

    The figures would be about those records, too. So it is the same whatever was found.
    """
    if configuration.published_as_is:
        yield ReleaseWarning(
            "gives_away_not_told",
            "records were left out, so only the log of the run shows whether a column published "
            "as it is gives a quasi-identifier away",
        )


@dataclass(frozen=True)
class _Narrow:
    """Replaces values by hashes, and adds those that can be measured as numbers."""

    measured: tuple[bool, ...]

    @property
    def schema(self) -> pa.Schema:
        codes = [(f"code_{index}", pa.int64()) for index in range(len(self.measured))]
        numbers = [(f"number_{i}", pa.float64()) for i, flag in enumerate(self.measured) if flag]
        return pa.schema([*codes, *numbers])

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            arrays = [pa.array(content_hash([column])) for column in batch.columns]
            for column, is_measured in zip(batch.columns, self.measured, strict=True):
                if is_measured:
                    arrays.append(as_floats(column))
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)
