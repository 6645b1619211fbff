"""A table of invented people, of any size, for demonstrations, tests and measurements.

Every value is computed from the seed and the number of the row through xxHash64. So the table does
not depend on the engine, the number of tasks and executors, or tasks that run twice. No person in
it exists: names, cities and postal codes are invented.
"""

from __future__ import annotations

import datetime
import hashlib
import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import reduce
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml
from numpy.typing import NDArray

from anonspark.config import Configuration, parse_configuration
from anonspark.config.variables import configuration_yaml
from anonspark.engine.values.hashing import xxhash64
from anonspark.errors import ConfigurationError
from anonspark.labels.regions import OrderedRegion, PublishedAttribute, Region, read_label
from anonspark.ownership import fault_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


Longs = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]

PEOPLE_SCHEMA: Final = pa.schema(
    {
        "person_id": pa.string(),
        "full_name": pa.string(),
        "birth_date": pa.date32(),
        "sex": pa.string(),
        "postal_code": pa.int32(),
        "city": pa.string(),
        "education": pa.string(),
        "marital_status": pa.string(),
        "income": pa.float64(),
        "capital_gain": pa.int64(),
        "hours_per_week": pa.int32(),
        "body_mass_index": pa.float64(),
        "last_visit": pa.timestamp("us", "UTC"),
        "diagnosis": pa.string(),
        "visits": pa.int32(),
    }
)
"""The columns of the table, identifiers first."""

EDUCATION_ORDER: Final = (
    "no degree",
    "primary school",
    "lower secondary",
    "upper secondary",
    "vocational training",
    "bachelor",
    "master",
    "doctorate",
)
"""The values of the column ``education``, lowest first."""

# A fixed day: with a clock the same seed would give another table tomorrow.
_TODAY: Final = datetime.date(2024, 12, 31)
_DAYS_PER_YEAR: Final = 365.25
_SECONDS_PER_DAY: Final = 86_400

# Lower ends of the age groups after the first one, in years.
_AGE_GROUPS: Final = (35, 50, 65, 80)

# Relative frequencies by age group: 18-34, 35-49, 50-64, 65-79, 80 and over.
_EDUCATION: Final = dict(
    zip(
        EDUCATION_ORDER,
        (
            (2, 2, 3, 4, 7),
            (3, 4, 6, 10, 18),
            (12, 12, 15, 20, 24),
            (33, 27, 26, 25, 20),
            (18, 22, 24, 22, 18),
            (20, 18, 14, 10, 7),
            (11, 13, 10, 7, 4.5),
            (1, 2, 2, 2, 1.5),
        ),
        strict=True,
    )
)
_MARITAL_STATUS: Final = {
    "single": (74, 28, 14, 8, 5),
    "married": (24, 58, 62, 62, 40),
    "divorced": (2, 13, 20, 14, 8),
    "widowed": (0, 1, 4, 16, 47),
}
_DIAGNOSIS: Final = {
    "acute bronchitis": (7, 6, 5, 5, 5),
    "allergic rhinitis": (14, 10, 6, 3, 2),
    "anxiety disorder": (13, 10, 6, 3, 2),
    "asthma": (9, 7, 5, 4, 3),
    "back pain": (7, 10, 10, 7, 5),
    "chlamydia infection": (4, 1.5, 0.5, 0, 0),
    "chronic kidney disease": (0.5, 1, 2, 4, 7),
    "chronic obstructive pulmonary disease": (0, 1, 4, 7, 7),
    "colorectal cancer": (0, 0.5, 1.5, 2.5, 3),
    "coronary heart disease": (0, 1, 5, 10, 11),
    "dementia": (0, 0, 0.5, 3, 11),
    "depression": (11, 10, 8, 5, 4),
    "eczema": (6, 4, 3, 2, 2),
    "fracture": (4, 3, 3, 5, 7),
    "gastritis": (6, 7, 6, 4, 3),
    "heart failure": (0, 0.5, 1.5, 4, 9),
    "high cholesterol": (1, 5, 9, 8, 5),
    "human immunodeficiency virus infection": (1, 1, 1, 0.5, 0),
    "hypertension": (2, 8, 16, 18, 17),
    "hypothyroidism": (2, 4, 5, 5, 4),
    "iron deficiency anemia": (3, 3, 2, 3, 4),
    "migraine": (9, 8, 4, 2, 1),
    "osteoarthritis": (0, 2, 7, 11, 11),
    "stroke": (0, 0.5, 2, 4, 7),
    "type 2 diabetes": (1, 5, 11, 13, 11),
}
_SLOTS: Final = 400  # resolution of the frequencies above: 1 slot is a quarter of a percent


# A literal list of so many words would be longer.
_words = str.split

_FEMALE_NAMES: Final = _words(
    "Mary Anna Emma Sofia Laura Julia Maria Sarah Clara Nora Ella Alice Eva Helen Ida Lucy Grace "
    "Ruth Rosa Irene Vera Diana Nina Olga Paula Silvia Tara Yara Zoe Amira Elif Leyla Mei Hana "
    "Priya Fatima Ingrid Greta Carmen Beatriz"
)
_MALE_NAMES: Final = _words(
    "John Peter Paul Thomas Martin Daniel David Adam Jacob Leo Max Felix Oscar Hugo Victor Simon "
    "Henry Arthur Emil Karl Ivan Marco Luca Diego Omar Ali Emre Mehmet Ravi Arjun Wei Kenji Samuel "
    "Noah Elias Aaron Julian Robert George Stefan"
)
_FAMILY_NAMES: Final = _words(
    "Smith Miller Weaver Taylor Baker Fisher Mason Carter Cooper Fletcher Turner Walker Archer "
    "Barber Brewer Butler Chandler Clark Cook Dyer Farmer Forester Gardener Glover Hunter Keeper "
    "Marshall Mercer Miner Page Painter Parker Piper Porter Potter Sawyer Shepherd Skinner Spencer "
    "Stewart Tanner Thatcher Tyler Wainwright Ward Wheeler Wright Ahmed Andersen Aydin Bianchi "
    "Chen Costa Demir Diaz Dubois Eriksen Fernandez Garcia Gupta Hansen Horvat Ito Ivanov Jansen "
    "Kaya Khan Kim Kowalski Kumar Larsen Lopez Martinez Meyer Moreau Nagy Nguyen Novak Okafor "
    "Olsen Papadopoulos Park Patel Petrov Popescu Ricci Rossi Santos Sato Schmidt Silva Singh "
    "Suzuki Tanaka Wang Weber Yilmaz Zhang Zimmermann Virtanen"
)

_CITY_BEGINNINGS: Final = _words("Oak Lake Stone Ash Glen North Maple Hart Fair Brook Elm Clay")
_CITY_ENDS: Final = _words("port ton field ridge haven wood ford ville mont view")
# Cities by size, the largest first: each pair of a beginning and an end occurs once.
_CITIES: Final = tuple(
    _CITY_BEGINNINGS[rank % 12] + _CITY_ENDS[(rank // 12 + rank % 12) % 10] for rank in range(120)
)


def people_of(seed: int, ids: Longs) -> pa.RecordBatch:
    """Return the invented adults of some rows as they were on 31 December 2024.

    ===================  =========  ==============================================================
    column               type       distribution
    ===================  =========  ==============================================================
    ``person_id``        string     ``P`` and 16 hexadecimal digits, unique, not in row order
    ``full_name``        string     given name by sex, family name from 100, both long-tailed
    ``birth_date``       date       age 18 to 98, the fewer the older, mean about 45
    ``sex``              string     female 50.5%, male 49%, other 0.5%
    ``postal_code``      integer    a block of numbers for each city, the larger the city the more
                                    codes, low codes of a block more frequent
    ``city``             string     120 cities by Zipf's law, the largest has about 14% of all
    ``education``        string     `EDUCATION_ORDER`, higher for the young, 1% missing
    ``marital_status``   string     single, married, divorced, widowed, by age group
    ``income``           double     a year's, lognormal with 2 decimals, the median grows by 17%
                                    with each step of education and peaks at the age of 52
    ``capital_gain``     long       0 for 92%, otherwise Pareto from 500 with exponent 1.6
    ``hours_per_week``   integer    40 for 45%, otherwise normal (38, 12) within 1 to 99
    ``body_mass_index``  double     lognormal with 1 decimal, median 25.5 at 45, grows with age, 3%
                                    missing
    ``last_visit``       timestamp  exponential backwards from the last day, mean 400 days, at most
                                    5 years, between 8 and 18 o'clock UTC
    ``diagnosis``        string     25 diseases, by age group
    ``visits``           integer    geometric, mean grows with age
    ===================  =========  ==============================================================

    ``ids`` are the numbers of the rows, int64, counted from 0. Another seed gives other people. The
    result has the columns of `PEOPLE_SCHEMA`.

    >>> people_of(0, np.arange(2))["city"].to_pylist()
    ['Brookview', 'Ashwood']
    """
    draw = _Draws(seed, ids)
    age_days = _age_in_days(draw)
    years = age_days * (1 / _DAYS_PER_YEAR)
    group = np.searchsorted(_AGE_GROUPS, np.floor(years), side="right")
    education = _position_by_age(group, draw.uniform("education"), _EDUCATION)
    city = _rank(draw.uniform("city"), len(_CITIES)) - 1
    is_male = draw.uniform("sex")
    sex = np.select([is_male < 0.505, is_male < 0.995], [0, 1], 2)
    columns: dict[str, object] = {
        "person_id": [f"P{bits:016X}" for bits in draw.bits("person_id").view(np.uint64).tolist()],
        "full_name": _full_name(draw, sex),
        "birth_date": (_day(_TODAY) - age_days).astype(np.int32),
        "sex": _pick(("female", "male", "other"), sex),
        "postal_code": _postal_code(draw, city),
        "city": _pick(_CITIES, city),
        "education": _pick(
            EDUCATION_ORDER, education, missing=draw.uniform("education missing") < 0.01
        ),
        "marital_status": _pick_by_age(draw, group, "marital_status", _MARITAL_STATUS),
        "income": _income(draw, years, education),
        "capital_gain": _capital_gain(draw),
        "hours_per_week": _hours_per_week(draw),
        "body_mass_index": _body_mass_index(draw, years),
        "last_visit": _last_visit(draw) * 1_000_000,
        "diagnosis": _pick_by_age(draw, group, "diagnosis", _DIAGNOSIS),
        "visits": _whole(-(1.0 + years * 0.05) * np.log(1.0 - draw.uniform("visits"))),
    }
    arrays = [
        values if isinstance(values, pa.Array) else pa.array(values).cast(field.type)
        for field, values in zip(PEOPLE_SCHEMA, columns.values(), strict=True)
    ]
    return pa.record_batch(arrays, schema=PEOPLE_SCHEMA)


class _Draws:
    """Random variates of some rows, which follow from the seed, a name and the row's number."""

    def __init__(self, seed: int, ids: Longs) -> None:
        self._seed, self._ids = seed, pa.array(ids, pa.int64())

    def bits(self, name: str) -> Longs:
        """Return 64 evenly spread bits for each row, int64 (n,).

        With a fixed key xxHash64 of one long is a bijection: no two rows get the same bits, so that
        identifiers made from them need no check for collisions.
        """
        digest = hashlib.sha256(f"{self._seed}:{name}".encode()).digest()
        key = xxhash64([pa.array([int.from_bytes(digest[:8], "big", signed=True)])])
        return xxhash64([self._ids], int(key[0]))

    def uniform(self, name: str) -> Floats:
        """Return uniform variates in [0, 1) of 48 bits: adding a small whole number is exact.

        >>> _Draws(0, np.arange(2)).uniform("age").round(3).tolist()
        [0.554, 0.169]
        """
        bits = self.bits(name).view(np.uint64) >> np.uint64(16)
        return bits.astype(np.float64) * 2.0**-48

    def normal(self, name: str) -> Floats:
        """Return nearly normal variates of mean 0 and standard deviation 1, within (-6, 6).

        Each is the sum of twelve uniform variates of 16 bits, which has the variance 1. Unlike
        Box-Muller this needs no cosine, which processors round differently.
        """
        pieces = np.stack([self.bits(f"{name} {part}") for part in range(3)]).view(np.uint16)
        total = pieces.reshape(3, -1, 4).sum(axis=(0, 2), dtype=np.int64)
        values: Floats = (total - 12 * 0xFFFF // 2).astype(np.float64) * 2.0**-16
        return values


def _whole(value: Floats) -> NDArray[np.int32]:
    """Truncate numbers to int32."""
    return value.astype(np.int32)


def _rounded(value: Floats, decimals: int) -> Floats:
    """Round positive numbers to decimals, a half always up.

    >>> _rounded(np.array([0.25, 0.35]), 1).tolist()
    [0.3, 0.4]
    """
    values: Floats = np.floor(value * 10.0**decimals + 0.5) / 10.0**decimals
    return values


def _day(date: datetime.date) -> int:
    """Return the number of a day, counted from 1970.

    >>> _day(datetime.date(1970, 1, 31))
    30
    """
    return (date - datetime.date(1970, 1, 1)).days


def _rank(uniform: Floats, size: int) -> Longs:
    """Return ranks from 1 to ``size`` with P(r) = log(1 + 1 / r) / log(size + 1).

    This is Zipf's law with exponent 1 but for a slightly lighter head, and can be inverted.

    >>> _rank(np.array([0.0, 0.5, 0.999]), 120).tolist()
    [1, 10, 120]
    """
    # Slightly less than the logarithm: rounding must not give a rank above the size.
    values: Longs = np.exp(uniform * (math.log(size + 1) * (1 - 1e-12))).astype(np.int64)
    return values


def _pick(
    values: Sequence[str], position: Longs, missing: NDArray[np.bool_] | None = None
) -> pa.Array:
    """Return the values at positions, which count from 0, or null where a mask is true."""
    return pa.array(values).take(pa.array(position, mask=missing))


def _position_by_age(
    group: Longs, uniform: Floats, weights: Mapping[str, tuple[float, ...]]
) -> Longs:
    """Return positions of categories, drawn with the frequencies of each person's age group."""
    slots: list[int] = []
    for age_group in range(len(_AGE_GROUPS) + 1):
        ends = list(accumulate(row[age_group] for row in weights.values()))
        slots += [bisect_right(ends, (slot + 0.5) * ends[-1] / _SLOTS) for slot in range(_SLOTS)]
    # The age group is a whole number: adding it before rounding down gives the same slot.
    return np.array(slots)[((group + uniform) * float(_SLOTS)).astype(np.int64)]


def _pick_by_age(
    draw: _Draws, group: Longs, name: str, weights: Mapping[str, tuple[float, ...]]
) -> pa.Array:
    """Return categories, drawn with the frequencies of each person's age group."""
    return _pick(list(weights), _position_by_age(group, draw.uniform(name), weights))


def _age_in_days(draw: _Draws) -> Longs:
    """Return ages in whole days, which get steadily rarer towards 98 years."""
    # The smaller of two uniform variates, by inversion of its distribution.
    span = 80 * _DAYS_PER_YEAR * np.sqrt(1.0 - draw.uniform("age"))
    values: Longs = (98 * _DAYS_PER_YEAR + 1 - span).astype(np.int64)
    return values


def _full_name(draw: _Draws, sex: Longs) -> pa.Array:
    """Return given and family names. People of sex "other" have given names of both lists."""
    rank = _rank(draw.uniform("given name"), len(_FEMALE_NAMES)) - 1
    among_male = (sex == 1) | ((sex == 2) & (draw.bits("name list") < 0))
    family = _rank(draw.uniform("family name"), len(_FAMILY_NAMES)) - 1
    names = [f"{first} {last}" for first in _FEMALE_NAMES + _MALE_NAMES for last in _FAMILY_NAMES]
    first = rank + among_male * len(_FEMALE_NAMES)
    return _pick(names, first * len(_FAMILY_NAMES) + family)


def _postal_code(draw: _Draws, city: Longs) -> Longs:
    """Return codes of each city's block. Blocks are 740 apart and not in order of size."""
    codes = 4 + 600 // (city + 1)
    uniform = draw.uniform("postal_code")
    return 10_007 + (city + 1) * 37 % len(_CITIES) * 740 + _whole(codes * uniform * uniform)


def _income(draw: _Draws, years: Floats, education: Longs) -> Floats:
    """Return incomes of a year, in whole cents."""
    from_peak = (years - 52.0) * (1 / 34)
    logarithm = (
        9.86
        + 0.16 * education
        + 0.35 * (1.0 - from_peak * from_peak)
        + 0.55 * draw.normal("income")
    )
    return _rounded(np.exp(logarithm), 2)


def _capital_gain(draw: _Draws) -> Longs:
    """Return 0 for 92% of the people and Pareto variates for the others."""
    uniform = draw.uniform("capital_gain")
    # 1 - u is never 0, so that the power is finite.
    remainder = (1.0 - uniform) * (1 / 0.08)
    return np.where(uniform >= 0.92, np.floor(500.0 * remainder ** (-1 / 1.6)), 0).astype(np.int64)


def _hours_per_week(draw: _Draws) -> Longs:
    """Return 40 for 45% of the people and normal variates around 38 for the others."""
    hours = _whole(38.5 + 12.0 * draw.normal("hours_per_week")).clip(1, 99)
    return np.where(draw.uniform("hours_per_week usual") < 0.45, 40, hours)


def _body_mass_index(draw: _Draws, years: Floats) -> pa.Array:
    """Return body mass indices, unknown for 3% of the people."""
    logarithm = math.log(25.5) + 0.002 * (years - 45.0) + 0.17 * draw.normal("body_mass_index")
    missing = draw.uniform("body_mass_index missing") < 0.03
    return pa.array(_rounded(np.exp(logarithm), 1), mask=missing)


def _last_visit(draw: _Draws) -> Longs:
    """Return instants in seconds since 1970."""
    days_ago = np.floor(-400.0 * np.log(1.0 - draw.uniform("last_visit day"))).clip(max=5 * 365)
    second = np.floor(10 * 3600.0 * draw.uniform("last_visit second"))
    last_morning = _day(_TODAY) * _SECONDS_PER_DAY + 8 * 3600
    values: Longs = (last_morning - days_ago * _SECONDS_PER_DAY + second).astype(np.int64)
    return values


def prepare_demo(directory: Path, rows: int) -> tuple[Path, Configuration]:
    """Write generated people and a configuration that anonymizes them.

    Writes ``people-<rows>.parquet`` and ``people.yaml`` into the directory. Returns the path of the
    configuration, and what it says. Raises ConfigurationError if other files are there.
    """
    people = directory / f"people-{rows}.parquet"
    ranges = {"role": "quasi_identifier", "grid": "auto"}
    document: dict[str, object] = {
        "input": {"path": str(people)},
        "attributes": {
            "person_id": "identifier",
            "birth_date": dict(ranges),
            "sex": "quasi_identifier",
            "postal_code": dict(ranges),
            "education": {"role": "quasi_identifier", "order": list(EDUCATION_ORDER)},
            "income": dict(ranges),
            "capital_gain": dict(ranges),
            "hours_per_week": dict(ranges),
            "diagnosis": "sensitive",
        },
        "missing": "category",
        "privacy": {"k": 10, "l_diversity": 3},
        "model": {"name": "su-mondrian", "rho": 5},
        "evaluate": {"compare_baseline": True},
        "output": {"path": str(directory / "release"), "mode": "overwrite"},
    }
    path = directory / "people.yaml"
    _require_own_configuration(path, document)
    table = pa.Table.from_batches([people_of(0, np.arange(rows))])
    if people.is_symlink() or (people.exists() and not _is_equal(people, table)):
        raise _other_file(people)
    directory.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, people)
    path.write_text(configuration_yaml(document))
    return path, parse_configuration(document)


def find_class(
    people: pa.Table, published: pa.Table, attributes: Sequence[PublishedAttribute]
) -> tuple[pa.Table, pa.Table] | None:
    """Return the people of one class and what is published of them, both sorted by diagnosis.

    ``attributes`` are the quasi-identifiers of the release. Returns None if the labels of every
    class also cover people of other classes.
    """
    names = [attribute.name for attribute in attributes]
    for labels in published.group_by(names, use_threads=False).aggregate([]).to_pylist():
        records = published.filter(
            reduce(pc.and_, [pc.equal(published[name], labels[name]) for name in names])
        )
        covered = [
            _covered(people[attribute.name], read_label(labels[attribute.name], attribute))
            for attribute in attributes
        ]
        # Labels cover all people of their class: if they cover no more, these are its people.
        members = people.filter(reduce(pc.and_, covered))
        if len(members) == len(records):
            return members.sort_by("diagnosis"), records.sort_by("diagnosis")
    return None


def _covered(column: pa.ChunkedArray, region: Region) -> pa.ChunkedArray:
    """Return which values of a column a label stands for."""
    if isinstance(region, OrderedRegion):
        numbers = column.cast(pa.int32()) if pa.types.is_date(column.type) else column
        (between,) = region.intervals or ()
        return pc.and_(pc.greater_equal(numbers, between.low), pc.less_equal(numbers, between.high))
    values = [*(region.values or ()), *([None] if region.missing else [])]
    return pc.is_in(column, pa.array(values, column.type))


def _require_own_configuration(path: Path, document: dict[str, object]) -> None:
    """Raise ConfigurationError if a file was not written by the demo, with any number of people."""
    if not path.exists() and not path.is_symlink():
        return
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        content = None
    is_of_demo = isinstance(content, dict) and all(
        content.get(key) == document[key] for key in document if key not in ("input", "output")
    )
    if fault_at(path) or not is_of_demo:
        raise _other_file(path)


def _is_equal(path: Path, table: pa.Table) -> bool:
    """Return whether a file holds exactly this table."""
    try:
        return bool(pq.read_table(path).equals(table))
    except (OSError, pa.ArrowException):
        return False


def _other_file(path: Path) -> ConfigurationError:
    """Return the error that a file was not written by the demo."""
    return ConfigurationError(
        f"--out: {path} was not written by the demo, which would replace it. Choose another"
        " directory, or move the file."
    )
