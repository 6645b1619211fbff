"""Turn a selection into a request for the mechanisms, with the domains of all attributes."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256

import pyarrow as pa

from anonspark.config import Configuration
from anonspark.config.budget import as_fraction
from anonspark.config.input import NOT_IN_FILES
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.data_files import listed_files
from anonspark.engine.encodings import codec_of
from anonspark.engine.files import Files
from anonspark.engine.hierarchies import read_hierarchy_files
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.raw_columns import is_plain, require_distinct, type_name
from anonspark.errors import ConfigurationError, DataError
from anonspark.sharing.ledger.budget import Limit
from anonspark.sharing.selection.counting import MOST_CELLS, Person
from anonspark.sharing.selection.domains import MOST_ROWS, Domain
from anonspark.sharing.selection.mechanisms import loss_of_a_record, scale_of, width_of
from anonspark.sharing.selection.settings import DomainOptions, EvenBins, SelectionSettings

_LOGGER = logging.getLogger(__name__)
_LARGE_EPSILON = 10
_TWO = 2
_OF_FILES = ("csv", "parquet", "orc", "avro")
# Other formats may infer a column's type from its values.
_FORMATS = (*_OF_FILES, "delta", "iceberg", *NOT_IN_FILES)
# Encodings in which no byte changes how later lines are read: no UTF-16, UTF-7 or ISO-2022.
_ENCODINGS = re.compile(
    r"utf-8(-sig)?|ascii|iso8859-\d+|(cp|ptcp)\d+|(koi8|mac|euc|shift|tis|gb|big5|kz|johab)[-\w]*"
)
# Options of CSV by which values decide about types, or what becomes of malformed records.
_OF_VALUES = {"inferschema", "mode", "maxcharspercolumn", "unescapedquotehandling"}
# Options of CSV by which one record would change the others, what they have to be, and why.
_OF_ONE_RECORD = (
    (
        "header",
        "true",
        "without a header one record, the first, would decide how all others are read. Add a "
        "header and say true (sep and encoding are a comma and UTF-8 unless you give them)",
    ),
    ("multiLine", "false", "a quote of one record could take in all others. Remove it"),
    ("comment", "", "where the header is a comment, a record takes its place. Remove such lines"),
)
# Noisy counts stay far below 64 bits.
_LARGEST_SCALE = 2**50


@dataclass(frozen=True)
class Query:
    """The request: the settings, and the domains of candidates and target."""

    settings: SelectionSettings
    candidates: list[Domain]
    target: Domain

    @property
    def epsilon(self) -> Fraction:
        """Loss of the mechanism."""
        return as_fraction(self.settings.selection.epsilon) or Fraction(0)

    @property
    def of_tables(self) -> Fraction:
        """Loss of the noisy tables of chosen attributes."""
        return as_fraction(self.settings.selection.tables_epsilon) or Fraction(0)

    @property
    def charged(self) -> Fraction:
        """The loss that is charged altogether."""
        return self.epsilon + self.of_tables + sum(self.of_bins.values())

    @property
    def of_bins(self) -> dict[str, Fraction]:
        """Loss of the bins that are drawn, by attribute."""
        drawn_bins = self.settings.selection.drawn_bins
        return {name: as_fraction(bins.epsilon) or Fraction(0) for name, bins in drawn_bins.items()}

    @property
    def of_a_record(self) -> Fraction:
        """The privacy loss of one record by the mechanism."""
        return self.loss_of_a_record(self.epsilon)

    def loss_of_a_record(self, epsilon: Fraction) -> Fraction:
        """Return what one record may lose, so that a person or a replaced record loses epsilon."""
        options = self.settings.selection
        return loss_of_a_record(epsilon, options.neighbors, options.rows_per_person)

    @property
    def scale(self) -> Fraction | None:
        """The scale of the noise of published tables, or None if none are published."""
        if self.settings.selection.mechanism == "tables":
            return scale_of(len(self.candidates), self.of_a_record)
        if self.of_tables:
            loss = self.loss_of_a_record(self.of_tables)
            return scale_of(self.settings.selection.count, loss)
        return None

    @property
    def width(self) -> int | None:
        """The width of the interval of scores, or None if tables are ranked."""
        options = self.settings.selection
        return width_of(options.score, self.records_at_most) if options.mechanism == "top" else None

    @property
    def records_at_most(self) -> int | None:
        """The bound on the records, or None if the score needs no bound."""
        options = self.settings.selection
        needed = options.mechanism == "top" and options.score == "information_gain"
        return options.records_at_most if needed else None

    @property
    def limit(self) -> Limit:
        """The budget of the configuration."""
        options = self.settings.selection
        return Limit(self.settings.ledger.most, options.neighbors, options.unit)

    @property
    def person(self) -> Person | None:
        """The person whose records are bounded, or None if every record counts."""
        options = self.settings.selection
        if options.person is None:
            return None
        seed = self.settings.configuration.execution.seed
        return Person(options.person, options.rows_per_person, seed)

    @property
    def cells(self) -> int:
        """The number of cells of all tables."""
        return sum(candidate.rows for candidate in self.candidates) * len(self.target.labels)

    @property
    def domains(self) -> dict[str, str]:
        """The SHA-256 that identifies the domain of each attribute."""
        return {domain.name: domain.fingerprint() for domain in (*self.candidates, self.target)}

    def fingerprint(self) -> str:
        """Return a fingerprint, equal for two selections that ask for the same."""
        document = self.settings.selection.model_dump(mode="json", by_alias=True)
        del document["output"]
        document["candidates"] = list(self.settings.candidates)
        document["domains"] = self.domains
        text = json.dumps(document, sort_keys=True)
        return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def open_query(
    engine: Engine, settings: SelectionSettings, table: Table | None = None
) -> tuple[Table, Query]:
    """Open the table and resolve the domain of each attribute, from declarations and the schema.

    No record is read, because a domain must not depend on one. ``table`` is None to open the
    configuration's input. Raises ConfigurationError for errors in declared domains, before the
    table is opened, and DataError for a missing column or a type that a domain cannot hold.
    """
    names = [*settings.candidates, settings.selection.target]
    _require_used(settings, names)
    keys = {name: f"selection.domains.{name}.hierarchy" for name in settings.selection.domains}
    hierarchies = read_hierarchy_files(engine.files, _hierarchy_paths(settings, names), keys=keys)
    declared = {
        name: domain
        for name in names
        if (domain := _declared(settings, name, hierarchies.get(name))) is not None
    }
    _require_sizes(settings, declared)
    if table is None:
        configuration = _without_inference(settings.configuration)
        _require_no_folders(engine.files, configuration, [*names, settings.selection.person])
        with engine.reading(configuration.input.paths):
            table = engine.open_source(configuration, for_tasks=True, skips_malformed=True)
    _require_columns(settings, table.schema, names)
    domains = _resolved_domains(settings, table.schema, names, declared)
    candidates = [domains[name] for name in settings.candidates]
    query = Query(settings, candidates, domains[settings.selection.target])
    if (query.scale or 0) > _LARGEST_SCALE:
        raise ConfigurationError(
            "selection: the noise of a cell would be of a scale beyond all counts. Expected a "
            "larger epsilon, fewer candidates, or fewer rows_per_person. Correct them"
        )
    if query.charged > _LARGE_EPSILON:
        _LOGGER.warning(
            "selection.epsilon: found %g (with tables_epsilon), which protects little: an answer "
            "may be e^%g times as likely with a person as without. Expected at most %d",
            *(query.charged, query.charged, _LARGE_EPSILON),
        )
    return table, query


def _resolved_domains(
    settings: SelectionSettings,
    schema: pa.Schema,
    names: Sequence[str],
    declared: Mapping[str, Domain],
) -> dict[str, Domain]:
    """Return the domain of each attribute: the declared one, or false and true of a boolean.

    Raises ConfigurationError for an attribute without a domain or domains that are too large, and
    DataError for a column that its domain cannot hold.
    """
    domains, problems = {}, []
    for name in names:
        if pa.types.is_boolean(schema.field(name).type) and not _comes_before(settings, name):
            domains[name] = Domain.of_values(name, ["false", "true"])
        elif name in declared:
            domains[name] = declared[name]
        else:
            problems.append(
                f"selection.domains.{name}: missing. The values of {name!r} are declared nowhere, "
                "and must not be looked up in the data. Give values, bins or a hierarchy"
            )
    if problems:
        raise ConfigurationError(*problems)
    _require_sizes(settings, domains)
    mismatched = [name for name in names if not domains[name].takes(schema.field(name).type)]
    if mismatched:
        raise DataError(
            *(
                f"selection.domains.{name}: found bins, and column {name!r} has type "
                f"{type_name(schema.field(name).type)}. Expected numbers or texts. Give values"
                for name in mismatched
            )
        )
    return domains


def _require_used(settings: SelectionSettings, names: Sequence[str]) -> None:
    """Refuse a declared domain of an attribute that is neither a candidate nor the target."""
    unused = [name for name in settings.selection.domains if name not in names]
    if unused:
        raise ConfigurationError(
            *(
                f"selection.domains.{name}: found a domain of what is neither a candidate nor the "
                f"target. Expected one of {', '.join(map(repr, names))}. Correct the name, or "
                "remove it"
                for name in unused
            )
        )


def _without_inference(configuration: Configuration) -> Configuration:
    """Configure the input so that no record decides how others are read.

    If types were inferred, one word among numbers would make texts of all of them, and move every
    record into another row. Raises ConfigurationError if the format always infers types.
    """
    source = configuration.input
    if source.format.lower() not in _FORMATS:
        raise ConfigurationError(
            f"input.format: found {source.format!r}, whose columns and types may be derived from "
            "all records, so that one record would change how the others are counted. Expected one "
            f"of {', '.join(_FORMATS)}. Write the table as parquet"
        )
    if source.format.lower() != "csv":
        # Options are not recognized in the files either.
        return configuration.with_input({})
    lowered = {name.lower(): value.lower() for name, value in source.options.items()}
    for name, expected, reason in _OF_ONE_RECORD:
        value = lowered.get(name.lower(), "" if expected == "true" else expected)
        if value != expected:
            raise ConfigurationError(
                f"input.options.{name}: {f'found {value}' if value else 'missing'}. Expected "
                f"{expected or 'none'}, because {reason}, or write the table as parquet"
            )
    encoding = lowered.get("encoding", lowered.get("charset", "utf-8"))
    codec = codec_of(encoding) or "utf-8"
    if not _ENCODINGS.fullmatch(codec) or "\n".encode(codec) != b"\n":
        raise ConfigurationError(
            f"input.options.encoding: found {encoding}. Expected an encoding in which each line is "
            "read by itself, because one damaged record could change those after it. Write the "
            "file in UTF-8, or the table as parquet"
        )
    options = {
        name: option for name, option in source.options.items() if name.lower() not in _OF_VALUES
    }
    copied = source.model_copy(update={"options": options})
    return configuration.model_copy(update={"input": copied}).with_input({})


def _require_no_folders(
    files: Files, configuration: Configuration, names: Sequence[str | None]
) -> None:
    """Raise ConfigurationError if a column is made of the names of folders, as of ``ward=12``."""
    source = configuration.input
    if source.format.lower() not in _OF_FILES:
        return
    folders = {name.lower() for file in listed_files(files, source.paths) for name in file.folders}
    for name in filter(None, names):
        if name.lower() in folders:
            raise ConfigurationError(
                f"input.path: the column {name!r} is made of the names of folders, whose type is "
                "made of all of them, so that one record would change how the others are counted. "
                "Write the column into the files, or leave it out of the selection"
            )


def _hierarchy_paths(settings: SelectionSettings, names: Sequence[str]) -> dict[str, str]:
    """Return the hierarchy file of each attribute whose values come from one."""
    paths = {}
    for name in names:
        options = settings.selection.domains.get(name)
        attribute = settings.configuration.attributes.get(name)
        hierarchy = None if attribute is None else attribute.hierarchy
        if options is not None and options.hierarchy is not None:
            paths[name] = options.hierarchy
        elif options is None and isinstance(hierarchy, str):
            paths[name] = hierarchy
    return paths


def _comes_before(settings: SelectionSettings, name: str) -> bool:
    """Return whether something is declared that comes before the two values of a boolean."""
    attribute = settings.configuration.attributes.get(name)
    ordered = attribute is not None and attribute.order is not None
    return name in settings.selection.domains or ordered


def _declared(settings: SelectionSettings, name: str, hierarchy: Hierarchy | None) -> Domain | None:
    """Return the rows of an attribute's table, or None if they are declared nowhere."""
    options = settings.selection.domains.get(name)
    if options is not None and options.values is not None:
        return Domain.of_values(name, options.values)
    if options is not None and options.bins is not None:
        edges = options.bins.edges() if isinstance(options.bins, EvenBins) else options.bins
        return Domain.of_edges(name, edges)
    attribute = settings.configuration.attributes.get(name)
    if options is None and attribute is not None and attribute.order is not None:
        return Domain.of_values(name, attribute.order)
    if hierarchy is None:
        return None
    return _of_hierarchy(name, hierarchy, options)


def _of_hierarchy(name: str, hierarchy: Hierarchy, options: DomainOptions | None) -> Domain:
    """Return a domain whose rows are the values of a hierarchy, or the groups of a level."""
    level = None if options is None else options.level
    if level is None:
        return Domain.of_values(name, hierarchy.leaves)
    if level > len(hierarchy.levels):
        raise ConfigurationError(
            f"selection.domains.{name}.level: found {level}. The hierarchy has "
            f"{len(hierarchy.levels)} above its values. Lower it"
        )
    grouping = hierarchy.levels[level - 1]
    starts = [*grouping.starts, len(hierarchy.leaves)]
    groups = {
        hierarchy.leaves[index]: label
        for label, start, stop in zip(grouping.labels, starts[:-1], starts[1:], strict=True)
        for index in range(start, stop)
    }
    return Domain.of_groups(name, groups)


def _require_columns(settings: SelectionSettings, schema: pa.Schema, names: Sequence[str]) -> None:
    """Raise DataError unless all columns exist, with types that can be read."""
    person = settings.selection.person
    names = [*names, person] if person is not None else names
    missing = [name for name in names if name not in schema.names]
    if missing:
        raise DataError(
            f"selection: the input has no column {', '.join(map(repr, missing))}. It has "
            f"{', '.join(map(repr, schema.names))}. Correct the names"
        )
    require_distinct(schema.names, names, "the input")
    unreadable = [name for name in names if not is_plain(schema.field(name).type)]
    if unreadable:
        raise DataError(
            *(
                f"selection: column {name!r} has type {type_name(schema.field(name).type)}. "
                "Expected numbers, days, times, booleans or texts. Leave it out of the candidates"
                for name in unreadable
            )
        )


def _require_sizes(settings: SelectionSettings, domains: Mapping[str, Domain]) -> None:
    """Raise ConfigurationError for too few classes, or too many rows or cells so far."""
    selection, target = settings.selection, domains.get(settings.selection.target)
    candidates = [domains[name] for name in settings.candidates if name in domains]
    problems = []
    classes = None if target is None else len(target.labels)
    if classes is not None and classes < _TWO:
        problems.append(
            f"selection.target: found {classes} declared class. Expected two at least. Declare more"
        )
    exact = selection.score == "chi_square" and selection.mechanism == "top"
    if exact and classes is not None and classes > _TWO:
        problems.append(
            f"selection.score: chi_square under top is for two classes, found {classes}. Choose "
            "gini, or mechanism: tables"
        )
    domains_so_far = [*candidates, *([target] if target else [])]
    too_large = [domain.name for domain in domains_so_far if domain.rows > MOST_ROWS]
    if too_large:
        problems.append(
            f"selection.domains: {', '.join(too_large)} have more than {MOST_ROWS:,} values. "
            "Expected fewer. Give coarser domains"
        )
    cells = sum(candidate.rows for candidate in candidates) * (classes or _TWO)
    if cells > MOST_CELLS:
        problems.append(
            f"selection: found {cells:,} cells. Expected at most {MOST_CELLS:,}. Give coarser "
            "domains, or fewer candidates"
        )
    if problems:
        raise ConfigurationError(*problems)
