"""A table of invented people, of any size, for trying out, testing and measuring the anonymizer.

Every value is computed from the seed and the number of the row through ``xxhash64``, with native
column expressions alone: the table is the same for any number of partitions and executors, and for
a task that Spark runs twice. Nobody in it exists. Names, cities and postal codes are invented.
"""

from __future__ import annotations

import datetime
import hashlib
import math
import re
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812  the usual name in Spark code

from anonspark.engine.spark.errors import environment_problem
from anonspark.engine.spark.filesystem import FileSystem
from anonspark.errors import ConfigurationError, PublishingError
from anonspark.layers.publish.paths import require_target

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import Column, DataFrame, SparkSession

# What Hadoop and Java throw at an address.
_NOT_WRITTEN: Final = re.compile(
    r"(?:java\.io|java\.nio\.file|org\.apache\.hadoop\.\w+)\.\w+Exception"
)

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

PEOPLE_FORMATS: Final = ("parquet", "csv", "orc", "json")
"""The formats :func:`write_people` can write."""

# The table describes this day for ever: a clock would make the same seed give another table.
_TODAY: Final = datetime.date(2024, 12, 31)
_DAYS_PER_YEAR: Final = 365.25
_SECONDS_PER_DAY: Final = 86_400
_ROWS_PER_PARTITION: Final = 500_000  # a Parquet file of some 20 MB

# Lower ends of the age groups after the first one, in years.
_AGE_GROUPS: Final = (35, 50, 65, 80)

# Relative frequencies, one column an age group: 18-34, 35-49, 50-64, 65-79, 80 and over.
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


def _words(text: str) -> list[str]:
    """Return the words of a text."""
    return text.split()


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
# The city of every rank, largest first: each pair of a beginning and an end once.
_CITIES: Final = tuple(
    _CITY_BEGINNINGS[rank % 12] + _CITY_ENDS[(rank // 12 + rank % 12) % 10] for rank in range(120)
)


def _hash(seed: int, name: str) -> Column:
    """Return 64 evenly spread bits for each row, as a long.

    ``xxhash64`` of one long is a bijection once the key before it is fixed, so that two rows never
    get the same bits: identifiers made from it need no check for collisions.
    """
    digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
    key = int.from_bytes(digest[:8], "big", signed=True)
    return F.xxhash64(F.lit(key).cast("long"), F.col("id"))


def _uniform(seed: int, name: str) -> Column:
    """Return an even variate in [0, 1), of 48 bits: a small whole number added to it is exact."""
    return F.shiftrightunsigned(_hash(seed, name), 16) * F.lit(2.0**-48)


def _normal(seed: int, name: str) -> Column:
    """Return a nearly normal variate of mean 0 and standard deviation 1, within (-6, 6).

    It is the sum of twelve even variates of 16 bits, whose variance is 1 as it stands. Unlike
    Box-Muller it needs no cosine, which processors round differently.
    """
    # Two pieces are added at once, each in a lane of 32 bits.
    lanes = F.lit(0x0000_FFFF_0000_FFFF)
    total = F.lit(0)
    for part in range(3):
        bits = _hash(seed, f"{name} {part}")
        total = total + bits.bitwiseAND(lanes)
        total = total + F.shiftrightunsigned(bits, 16).bitwiseAND(lanes)
    both = total.bitwiseAND(F.lit(0xFFFF_FFFF)) + F.shiftrightunsigned(total, 32)
    return (both - F.lit(12 * 0xFFFF // 2)) * F.lit(2.0**-16)


def _whole(value: Column) -> Column:
    """Return the whole part of a value."""
    return value.cast("int")


def _rounded(value: Column, decimals: int) -> Column:
    """Return a value above 0 rounded to decimals, without the detour that `round` makes."""
    return F.floor(value * F.lit(10.0**decimals) + F.lit(0.5)) / F.lit(10.0**decimals)


def _rank(uniform: Column, size: int) -> Column:
    """Return a rank in 1..size with a long tail: P(r) = log(1 + 1 / r) / log(size + 1).

    This is Zipf's law with exponent 1 but for a slightly lighter head, and can be inverted.
    """
    # A trifle less than the logarithm, so that rounding cannot give a rank too many.
    return F.floor(F.exp(uniform * F.lit(math.log(size + 1) * (1 - 1e-12))))


def _pick(values: Sequence[str], position: Column) -> Column:
    """Return the value at a position counted from 0.

    Spark folds the split of a literal into a constant array: one call instead of one per value, and
    a look-up that stays short in the generated code however many values there are. Java leaves
    methods above 8,000 bytes uncompiled, which would make the table take six times as long.
    """
    return F.get(F.split(F.lit("|".join(values)), r"\|"), position)


def _pick_number(values: Sequence[int], position: Column) -> Column:
    """Return the number at a position counted from 0."""
    text = "|".join(map(str, values))
    return F.get(F.split(F.lit(text), r"\|").cast("array<int>"), position)


def _position_by_age(uniform: Column, weights: Mapping[str, tuple[float, ...]]) -> Column:
    """Return the position of a category drawn with the frequencies of the age group."""
    slots: list[int] = []
    for group in range(len(_AGE_GROUPS) + 1):
        ends = list(accumulate(row[group] for row in weights.values()))
        slots += [bisect_right(ends, (slot + 0.5) * ends[-1] / _SLOTS) for slot in range(_SLOTS)]
    # The age group is a whole number, so that adding it before rounding down is the same.
    return _pick_number(slots, F.floor((F.col("age_group") + uniform) * F.lit(float(_SLOTS))))


def _missing(value: Column, uniform: Column, share: float) -> Column:
    """Return null for a share of the rows and the value for the others."""
    return F.when(uniform >= F.lit(share), value)


def generate_people(
    spark: SparkSession, rows: int, seed: int = 0, partitions: int | None = None
) -> DataFrame:
    """Describe a table of invented adults as they were on 31 December 2024.

    ===================  =========  ==============================================================
    column               type       distribution
    ===================  =========  ==============================================================
    ``person_id``        string     ``P`` and 16 hexadecimal digits, unique, not in row order
    ``full_name``        string     given name by sex, family name from 100, both long-tailed
    ``birth_date``       date       age 18 to 98, the fewer the older, mean about 45
    ``sex``              string     female 50.5 %, male 49 %, other 0.5 %
    ``postal_code``      integer    a block of numbers for each city, the larger the city the more
                                    codes, low codes of a block more frequent
    ``city``             string     120 cities by Zipf's law; the largest has about 14 % of all
    ``education``        string     `EDUCATION_ORDER`, higher for the young; 1 % missing
    ``marital_status``   string     single, married, divorced, widowed, by age group
    ``income``           double     a year's, lognormal with 2 decimals; the median grows by 17 %
                                    with each step of education and peaks at the age of 52
    ``capital_gain``     long       0 for 92 %, otherwise Pareto from 500 with exponent 1.6
    ``hours_per_week``   integer    40 for 45 %, otherwise normal (38, 12) within 1 to 99
    ``body_mass_index``  double     lognormal with 1 decimal, median 25.5 at 45, grows with age; 3 %
                                    missing
    ``last_visit``       timestamp  exponential backwards from the last day, mean 400 days, at most
                                    5 years; between 8 and 18 o'clock UTC
    ``diagnosis``        string     25 diseases, by age group
    ``visits``           integer    geometric, mean grows with age
    ===================  =========  ==============================================================

    Nothing is computed before an action. The data never leaves the executors, there is no shuffle,
    and Python takes no part.

    Parameters
    ----------
    spark : SparkSession
        The session to use.
    rows : int
        Number of people, at least 1.
    seed : int
        Another seed gives other people.
    partitions : int, optional
        Number of partitions. The people are the same for any. By default one for every 500,000
        rows.

    Returns
    -------
    DataFrame
        The people, identifiers first.

    Raises
    ------
    ConfigurationError
        If `rows` or `partitions` is below 1.
    """
    problems = [
        f"{name}: is {value}, but must be 1 or more."
        for name, value in (("rows", rows), ("partitions", partitions))
        if value is not None and value < 1
    ]
    if problems:
        raise ConfigurationError(*problems)
    if partitions is None:
        partitions = math.ceil(rows / _ROWS_PER_PARTITION)

    # Several steps instead of one, so that what several columns depend on is computed once. As
    # long as the last step uses each column of the one before twice or more, Spark makes it a
    # method of its own, which keeps both below the size that Java compiles.
    city = _rank(_uniform(seed, "city"), len(_CITIES)) - F.lit(1)
    drawn = spark.range(0, rows, 1, partitions).select(
        "id",
        _age_in_days(seed).alias("age_days"),
        _sex(seed).alias("sex"),
        city.alias("city_position"),
    )
    groups = [bisect_right(_AGE_GROUPS, years) for years in range(100)]
    grouped = drawn.withColumn(
        "age_group", _pick_number(groups, F.floor(_age_in_years()))
    ).withColumn("education_rank", _position_by_age(_uniform(seed, "education"), _EDUCATION))
    return grouped.select(
        F.concat(F.lit("P"), F.lpad(F.hex(_hash(seed, "person_id")), 16, "0")).alias("person_id"),
        _full_name(seed).alias("full_name"),
        F.date_sub(F.lit(_TODAY), F.col("age_days")).alias("birth_date"),
        F.col("sex"),
        _postal_code(seed).alias("postal_code"),
        _pick(_CITIES, F.col("city_position")).alias("city"),
        _education(seed).alias("education"),
        _pick_by_age(seed, "marital_status", _MARITAL_STATUS).alias("marital_status"),
        _income(seed).alias("income"),
        _capital_gain(seed).alias("capital_gain"),
        _hours_per_week(seed).alias("hours_per_week"),
        _body_mass_index(seed).alias("body_mass_index"),
        _last_visit(seed).alias("last_visit"),
        _pick_by_age(seed, "diagnosis", _DIAGNOSIS).alias("diagnosis"),
        _visits(seed).alias("visits"),
    )


def _age_in_days(seed: int) -> Column:
    """Return an age in whole days: it gets rarer steadily towards 98 years."""
    # The smaller of two even variates, by inversion.
    days = F.lit(98 * _DAYS_PER_YEAR + 1) - F.lit(80 * _DAYS_PER_YEAR) * F.sqrt(
        F.lit(1.0) - _uniform(seed, "age")
    )
    return _whole(days)


def _sex(seed: int) -> Column:
    draw = _uniform(seed, "sex")
    return (
        F.when(draw < F.lit(0.505), "female").when(draw < F.lit(0.995), "male").otherwise("other")
    )


def _education(seed: int) -> Column:
    """Return the education, unknown for some people."""
    education = _pick(EDUCATION_ORDER, F.col("education_rank"))
    return _missing(education, _uniform(seed, "education missing"), 0.01)


def _pick_by_age(seed: int, name: str, weights: Mapping[str, tuple[float, ...]]) -> Column:
    """Return a category drawn with the frequencies of the age group."""
    return _pick(list(weights), _position_by_age(_uniform(seed, name), weights))


def _age_in_years() -> Column:
    """Return the age with its fraction."""
    return F.col("age_days") * F.lit(1 / _DAYS_PER_YEAR)


def _full_name(seed: int) -> Column:
    """Return given and family name. People of sex "other" have names of both lists."""
    given = _rank(_uniform(seed, "given name"), len(_FEMALE_NAMES))
    among_male = (F.col("sex") == F.lit("male")) | (
        (F.col("sex") == F.lit("other")) & (_hash(seed, "name list") < F.lit(0))
    )
    before_first = F.when(among_male, F.lit(len(_FEMALE_NAMES) - 1)).otherwise(F.lit(-1))
    family = _rank(_uniform(seed, "family name"), len(_FAMILY_NAMES))
    return F.concat_ws(
        " ",
        _pick(_FEMALE_NAMES + _MALE_NAMES, given + before_first),
        _pick(_FAMILY_NAMES, family - F.lit(1)),
    )


def _postal_code(seed: int) -> Column:
    """Return a code of the city's block. Blocks are 740 apart and not in order of size."""
    ranks = range(1, len(_CITIES) + 1)
    first = _pick_number(
        [10_007 + rank * 37 % len(_CITIES) * 740 for rank in ranks], F.col("city_position")
    )
    codes = _pick_number([4 + 600 // rank for rank in ranks], F.col("city_position"))
    draw = _uniform(seed, "postal_code")
    return first + _whole(codes * draw * draw)


def _income(seed: int) -> Column:
    """Return the income of a year in whole cents."""
    from_peak = (_age_in_years() - F.lit(52.0)) * F.lit(1 / 34)
    logarithm = (
        F.lit(9.86)
        + F.lit(0.16) * F.col("education_rank")
        + F.lit(0.35) * (F.lit(1.0) - from_peak * from_peak)
        + F.lit(0.55) * _normal(seed, "income")
    )
    return _rounded(F.exp(logarithm), 2)


def _capital_gain(seed: int) -> Column:
    """Return 0 for most people and a Pareto variate for the others."""
    draw = _uniform(seed, "capital_gain")
    # 1 - u is never 0, so that the power is finite.
    remainder = (F.lit(1.0) - draw) * F.lit(1 / 0.08)
    gain = F.floor(F.lit(500.0) * F.pow(remainder, F.lit(-1 / 1.6)))
    return F.when(draw >= F.lit(0.92), gain).otherwise(F.lit(0).cast("long"))


def _hours_per_week(seed: int) -> Column:
    """Return 40 for many people and about that for the others."""
    hours = _whole(F.lit(38.5) + F.lit(12.0) * _normal(seed, "hours_per_week"))
    within = F.greatest(F.lit(1), F.least(F.lit(99), hours))
    return F.when(_uniform(seed, "hours_per_week usual") < F.lit(0.45), F.lit(40)).otherwise(within)


def _body_mass_index(seed: int) -> Column:
    """Return the body mass index, unknown for some people."""
    logarithm = (
        F.lit(math.log(25.5))
        + F.lit(0.002) * (_age_in_years() - F.lit(45.0))
        + F.lit(0.17) * _normal(seed, "body_mass_index")
    )
    return _missing(_rounded(F.exp(logarithm), 1), _uniform(seed, "body_mass_index missing"), 0.03)


def _last_visit(seed: int) -> Column:
    """Return an instant: the same one whatever time zone the session shows it in."""
    last_midnight = (_TODAY - datetime.date(1970, 1, 1)).days * _SECONDS_PER_DAY
    days_ago = F.least(
        F.floor(F.lit(-400.0) * F.log(F.lit(1.0) - _uniform(seed, "last_visit day"))),
        F.lit(5 * 365).cast("long"),
    )
    second = F.floor(F.lit(10 * 3600.0) * _uniform(seed, "last_visit second"))
    return F.timestamp_seconds(
        F.lit(last_midnight + 8 * 3600).cast("long") - days_ago * F.lit(_SECONDS_PER_DAY) + second
    )


def _visits(seed: int) -> Column:
    """Return the number of visits in the last year."""
    mean = F.lit(1.0) + _age_in_years() * F.lit(0.05)
    return _whole(-mean * F.log(F.lit(1.0) - _uniform(seed, "visits")))


def write_people(
    spark: SparkSession,
    rows: int,
    path: str | Path,
    seed: int = 0,
    format: str = "parquet",
    partitions: int | None = None,
) -> None:
    """Write the table of :func:`generate_people` to a new folder, one file a partition.

    Cost: one job without a shuffle.

    Parameters
    ----------
    spark : SparkSession
        The session to use.
    rows : int
        Number of people, at least 1.
    path : str or Path
        Where to write: a path or any URI that Hadoop knows. Nothing may be there yet.
    seed : int
        Another seed gives other people.
    format : str
        One of `PEOPLE_FORMATS`. Files in CSV have a header, and instants in the session's time
        zone.
    partitions : int, optional
        Number of files. By default one for every 500,000 rows.

    Raises
    ------
    ConfigurationError
        If something is at `path` already, be it a link to nothing, it cannot be reached, the format
        is unknown, or a number is below 1.
    PublishingError
        If it cannot be written.
    """
    if format not in PEOPLE_FORMATS:
        raise ConfigurationError(
            f"format: is {format!r}, but must be one of {', '.join(PEOPLE_FORMATS)}."
        )
    files = FileSystem(spark)
    files.qualified(str(path))
    # Spark takes a link to nothing for a free place, and fails there after the work.
    require_target(files, "out", str(path))
    writer = generate_people(spark, rows, seed, partitions).write.mode("errorifexists")
    if format == "csv":
        writer = writer.options(header=True, timestampFormat="yyyy-MM-dd HH:mm:ss")
    try:
        writer.format(format).save(str(path))
    except Py4JJavaError as error:
        # A parent that is read-only or of somebody else, a full disk.
        if environment_problem(error) is not None or not _NOT_WRITTEN.search(str(error)):
            raise
        raise PublishingError(
            f"{path}: cannot be written; check that its parent can be written and has room"
        ) from error
    except AnalysisException as error:
        # Spark looks before it starts a job. The name of the condition is part of the text in
        # every version, the method that returns it is not.
        if "PATH_ALREADY_EXISTS" not in str(error):
            raise
        raise ConfigurationError(
            f"{path}: exists already and would have to be overwritten. Give another path or remove"
            " it first."
        ) from error
