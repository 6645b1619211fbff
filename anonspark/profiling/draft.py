"""A configuration that is drafted from a profile, and the files that it is written to."""

from __future__ import annotations

import json
import os
import secrets
import shlex
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any, Literal

import yaml

from anonspark.config import json_schema
from anonspark.config.decision import Decision
from anonspark.config.reading import is_address
from anonspark.config.variables import escaped
from anonspark.core.criterion import proposed_l
from anonspark.core.recognition.names import unit_of_name, weight_of_name
from anonspark.core.recognition.values import DISEASE
from anonspark.errors import ConfigurationError, DataError, PublishingError
from anonspark.foreign_text import json_text, visible
from anonspark.ownership import write_new
from anonspark.profiling.profile import MISSING_MARKERS, ColumnProfile, Profile
from anonspark.profiling.roles import NAMES_AND_PLACES
from anonspark.profiling.source import Source

Role = Literal["identifier", "quasi_identifier", "sensitive", "insensitive"]

_MEASURED = ("whole number", "number")
_MOST_CLASSES = 100
_MAY_MISS = 0.01
_TYPES = {
    "whole number": "number",
    "number": "number",
    "date": "date",
    "timestamp": "timestamp",
    "mixed": "text",
    "code": "text",
}


@dataclass(frozen=True)
class DraftedAttribute:
    """A line of the section ``attributes``, or a comment there if the role is None: not published.

    ``options`` are YAML for what stands beside the role, or beside that of a quasi-identifier if
    there is none, which the column could be if it is ``usable``. ``hint`` is another way to write
    the line, or None.
    """

    name: str
    role: Role | None
    reason: str
    options: dict[str, str] = field(default_factory=dict)
    hint: str | None = None
    usable: bool = True


@dataclass(frozen=True)
class Criterion:
    """The number of different values that each class needs of a sensitive attribute, and why."""

    attribute: str
    l: int  # noqa: E741 - its name in the literature
    reason: str


@dataclass(frozen=True)
class Draft:
    """A configuration to be written.

    ``unit_reason`` says what k counts by the unit. Without a unit, ``possible_units`` are columns
    that may be one, or None if each row is a person for sure. ``weights`` is a column of sampling
    weights, and ``target`` the sensitive attribute from which orders of categories can be learned,
    or None. ``missing_markers`` are empty if they are those of any table.
    """

    source: Source
    rows: int
    attributes: list[DraftedAttribute]
    k: int
    criteria: list[Criterion]
    missing: str
    unit: str | None
    unit_reason: str
    possible_units: tuple[str, ...] | None
    weights: str | None
    output: str
    target: str | None
    missing_markers: tuple[str, ...]


@dataclass(frozen=True)
class Answers:
    """What a person answered, or the options of the command.

    ``roles`` are those of the columns that get one, or None for the proposed ones: then the unit is
    the proposed one, too. ``unit`` is a column that numbers people or households, or None if each
    row is a person. With ``weighted`` quasi-identifiers get the weights of the profile.
    """

    roles: Mapping[str, Role] | None
    k: int
    output: str
    unit: str | None = None
    weighted: bool = False


def draft_configuration(profile: Profile, answers: Answers) -> Draft:
    """Draft a configuration from what a profile proposes, or a person answered.

    Raises DataError if there are fewer than k units, or no quasi-identifier.
    """
    roles = _roles(profile, answers)
    identifiers, quasi, sensitive = (
        [column for column in profile.columns if roles[column.name][0] == role]
        for role in ("identifier", "quasi_identifier", "sensitive")
    )
    unit = profile.unit if answers.roles is None else answers.unit
    _require_enough(profile, answers.k, unit, quasi)
    weights_by_name = profile.weights([column.name for column in quasi]) if answers.weighted else {}
    attributes = [
        _drafted(column, profile, roles, weights_by_name.get(column.name))
        for column in profile.columns
    ]
    weights = (item.name for item in identifiers if weight_of_name(item.name) is not None)
    markers = profile.missing_markers
    lacking = sum(identifier.counts.missing for identifier in quasi)
    return Draft(
        source=_typed(profile.source),
        rows=profile.rows,
        attributes=attributes,
        k=answers.k,
        criteria=list(filter(None, (_criterion(column, profile.rows) for column in sensitive))),
        missing="category" if lacking > _MAY_MISS * profile.rows else "drop",
        unit=unit,
        unit_reason=_counting(unit),
        possible_units=profile.possible_units if answers.roles is None else None,
        # With a unit, each record of a person would count with its weight.
        weights=next(weights, None) if unit is None else None,
        output=answers.output,
        target=_target(sensitive, quasi),
        missing_markers=markers if markers != MISSING_MARKERS else (),
    )


def _require_enough(
    profile: Profile, k: int, unit: str | None, quasi: Sequence[ColumnProfile]
) -> None:
    """Raise DataError if a table has fewer than k units, or no quasi-identifier."""
    people = next(
        (column.counts.distinct for column in profile.columns if column.name == unit), profile.rows
    )
    if people < k:
        units = "rows" if unit is None else f"values of {unit}"
        raise DataError(
            f"DATA: {profile.source.path} has {people:,} {units}, and k = {k:,} needs that many at "
            "least. Nothing was written. Take more records, or a smaller --k"
        )
    if not quasi:
        raise DataError(
            f"DATA: no column of {profile.source.path} can be proposed as a quasi-identifier, and "
            "a configuration needs one (each column is empty or the same everywhere, an "
            "identifier, a name, free text or of a type that is not judged). Nothing was written. "
            f"See anonspark profile {profile.source.path}, or choose the columns with --interactive"
        )


def _drafted(
    column: ColumnProfile,
    profile: Profile,
    roles: Mapping[str, tuple[Role | None, str]],
    weight: float | None,
) -> DraftedAttribute:
    """Draft the line of a column by its role."""
    role, reason = roles[column.name]
    if role is None:
        return _left_out(column, reason, is_key=column.name in profile.keys)
    if role != "quasi_identifier":
        revealed = "" if role == "identifier" else _giving(column.name, profile, roles)
        return DraftedAttribute(column.name, role, reason + revealed)
    attribute = _quasi_identifier(column, reason)
    if weight is not None:
        attribute.options["weight"] = f"{weight:g}"
    return attribute


def _counting(unit: str | None) -> str:
    """Say in words what k counts if a column identifies the unit.

    >>> _counting("patient_id")
    'it repeats: k counts people, not their records'
    """
    kind = None if unit is None else unit_of_name(unit)
    if kind == "household":
        return "k counts households: so k people share what is published, and not one family"
    if kind == "person":
        return "it repeats: k counts people, not their records"
    return "it repeats: k counts its values, not records. Take it out if they are no people"


def _roles(profile: Profile, answers: Answers) -> dict[str, tuple[Role | None, str]]:
    """Return the role of each column, and why."""
    roles: dict[str, tuple[Role | None, str]] = {}
    for column in profile.columns:
        if answers.roles is None or answers.roles.get(column.name) == column.role:
            roles[column.name] = column.role, column.reason
        else:
            roles[column.name] = answers.roles.get(column.name), "you said so"
    return roles


def _giving(name: str, profile: Profile, roles: Mapping[str, tuple[Role | None, str]]) -> str:
    """Say which quasi-identifiers a column gives away that is published unchanged."""
    revealed = [
        dependency.determines
        for dependency in profile.dependencies
        if dependency.column == name and roles[dependency.determines][0] == "quasi_identifier"
    ]
    if not revealed:
        return ""
    return f". Gives {', '.join(revealed)} away: it reveals more than ranges do"


def _typed(source: Source) -> Source:
    """Let Spark infer the types of a CSV file: the columns that keep texts are declared."""
    if source.format != "csv":
        return source
    return replace(source, options={**source.options, "inferSchema": "true"})


def _quasi_identifier(column: ColumnProfile, reason: str) -> DraftedAttribute:
    """Draft a quasi-identifier: its type, and how its values are generalized."""
    options: dict[str, str] = {}
    is_text = column.type == "string"
    # Texts of several forms, or with markers, stay texts unless their type is declared.
    has_forms = column.kind in ("mixed", "number", "timestamp")
    type_needed = is_text and (column.counts.missing > 0 or has_forms)
    # A fraction that is read as a number does not keep its text.
    is_code = column.looks_like in ("postal code", DISEASE) and column.kind != "number"
    length = column.length or 0
    if column.looks_like == DISEASE and is_code and column.kind != "whole number":
        if type_needed:
            options["type"] = "text"
        options["hierarchy"] = "{keep: [3, 1]}"
        reason += ". Published by its first three characters, or by the first"
    elif (is_code or column.kind == "code") and 2 <= length <= 10:
        if is_text:
            options["type"] = "text"
        options["hierarchy"] = f"{{prefix: {list(range(1, length))}}}"
        reason += ". Published with its last characters masked"
    elif column.are_names:
        options["type"] = "text"
        reason += ". Its numbers stand for names. If they have an order, take the type away"
    elif column.order:
        options = {"type": "text"} if column.kind == "mixed" else {}
        options["order"] = f"[{', '.join(map(json_text, escaped(list(column.order))))}]"
        reason += ". In this order, because letters would order its groups otherwise"
    elif type_needed and column.kind in _TYPES:
        options["type"] = _TYPES[column.kind]
    has_ends = options.get("type") != "text" and not options.keys() & {"hierarchy", "order"}
    if has_ends and column.grid is not None:
        options["grid"] = str(column.grid)
        reason += ". Ranges end on this grid"
    hint = _hint(column, options, is_code=is_code)
    return DraftedAttribute(column.name, "quasi_identifier", reason, options, hint)


def _hint(column: ColumnProfile, options: Mapping[str, str], *, is_code: bool) -> str | None:
    """Return another way to write a quasi-identifier, or None if there is no better one."""
    if column.looks_like == "age" and column.kind in _MEASURED:
        kind = "type: number, " if "type" in options else ""
        return (
            f"{{role: quasi_identifier, {kind}hierarchy: {{intervals: [5, 10], top: 90}}}}"
            "  # the same steps for all, and 90+"
        )
    if column.kind == "date" and "hierarchy" not in options:
        kind = "type: date, " if "type" in options else ""
        return (
            f"{{role: quasi_identifier, {kind}hierarchy: {{calendar: [month, year, decade]}}}}"
            "  # whole months, years, decades"
        )
    if is_code and column.type == "string" and "hierarchy" not in options:
        return "{role: quasi_identifier, hierarchy: {keep: [3, 1]}}  # three characters, then one"
    return None


def _left_out(column: ColumnProfile, reason: str, *, is_key: bool) -> DraftedAttribute:
    """Draft a column that is left out, with the options it would need as a quasi-identifier."""
    usable = (
        column.kind not in ("nested", "empty", "other date", "other number")
        and column.looks_like not in ("free text", *NAMES_AND_PLACES)
        and column.counts.distinct > 1
    )
    options = _quasi_identifier(column, "").options if usable else {}
    if is_key and "hierarchy" not in options:
        # With a declared type it is no longer taken for a key.
        options.setdefault("type", "number" if column.kind in _MEASURED else "text")
    return DraftedAttribute(column.name, None, reason, options, usable=usable)


def _criterion(column: ColumnProfile, rows: int) -> Criterion | None:
    """Require as many different values in each class as the frequencies allow, or None."""
    values = column.counts.distinct
    largest = max(column.counts.largest, column.counts.missing) / max(rows, 1)
    number = proposed_l(values, largest)
    if number is None:
        return None
    return Criterion(column.name, number, f"{values:,} values, the largest {largest:.0%}")


def _target(sensitive: list[ColumnProfile], quasi: list[ColumnProfile]) -> str | None:
    """Return a sensitive attribute to learn orders of categories from, or None without need."""
    if not any(item.kind == "text" and item.counts.distinct > 2 for item in quasi):
        return None
    names = (item.name for item in sensitive if 2 <= item.counts.distinct <= _MOST_CLASSES)
    return next(names, None)


_TRIES_MODELS = 100_000
"""Up to so many rows `init` proposes to try models, which takes some seconds."""


def yaml_text(draft: Draft, path: str, seed_file: str, schema: str) -> str:
    """Return the text of the file ``path``, with its JSON Schema at a path relative to it."""
    source = draft.source
    lines = [
        f"# yaml-language-server: $schema={schema}",
        "#",
        f"# Proposed by anonspark init for {_comment(source.path)}: {draft.rows:,} rows, "
        f"{len(draft.attributes):,} columns.",
        "# Nothing is published before you run it. Read it, correct it, and then",
        "#",
        f"#     anonspark check {_argument(path)}",
        f"#     anonspark run {_argument(path)}",
        f"#     anonspark verify {_argument(draft.output)}",
        "",
        "input:",
        f"  path: {_scalar(source.path)}",
        f"  format: {_scalar(source.format)}"
        + "".join(f"  # {_comment(note)}" for note in source.notes[:1]),
    ]
    if source.options:
        lines.append(f"  options: {_flow(source.options)}")
    if draft.missing_markers:
        lines.append(
            f"  missing_markers: {_flow(list(draft.missing_markers))}"
            "  # stand for missing as a rule. Take out what is a value here"
        )
    lines += ["", *_attributes(draft), "", *_rest(draft, path, seed_file)]
    return "\n".join(lines) + "\n"


def decision_text(draft: Draft) -> str:
    """Return the template of a decision as YAML, with the reason of each column."""
    lines = [f"{name}:  # {title}" for name, title in Decision.titles().items()]
    lines += [
        f"  {_key(attribute.name)}: {_key(attribute.reason)}" for attribute in draft.attributes
    ]
    return "\n".join(lines) + "\n"


def _attributes(draft: Draft) -> list[str]:
    """Write the section ``attributes``, with the reason for each role as a comment."""
    lines = [
        "# identifier: identifies a person by itself. Never published.",
        "# quasi_identifier: identifies together with others. Published as a range of k records.",
        "# sensitive: what no one should learn about a person. Published as it is.",
        "# insensitive: harmless. Published as it is. No column is proposed as such.",
    ]
    if any("weight" in attribute.options for attribute in draft.attributes):
        lines.append("# weight: the smaller, the more records a column makes unique.")
    lines.append("attributes:")
    for attribute in draft.attributes:
        if attribute.role is not None:
            lines += _attribute(attribute)
    unpublished = [attribute for attribute in draft.attributes if attribute.role is None]
    if unpublished:
        lines.append("  # Not published. Take a # away to publish a column.")
        for attribute in unpublished:
            written = f": {_value(attribute)}" if attribute.usable else ""
            lines.append(f"  # {_key(attribute.name)}{written}  # {_comment(attribute.reason)}")
    return lines


def _attribute(attribute: DraftedAttribute) -> list[str]:
    """Return the line of a published column, and its hint."""
    lines = [f"  {_key(attribute.name)}: {_value(attribute)}  # {_comment(attribute.reason)}"]
    if attribute.hint is not None:
        lines.append(f"  # {_key(attribute.name)}: {attribute.hint}")
    return lines


def _value(attribute: DraftedAttribute) -> str:
    """Return the role of a column, with its options.

    >>> _value(DraftedAttribute("age", "quasi_identifier", "", {"type": "number"}))
    '{role: quasi_identifier, type: number}'
    """
    role = attribute.role or "quasi_identifier"
    options = ", ".join(f"{name}: {text}" for name, text in attribute.options.items())
    return f"{{role: {role}, {options}}}" if options else role


def _privacy(draft: Draft) -> list[str]:
    """Write the section ``privacy``: k, who counts as a person, and criteria with their reasons."""
    lines = ["privacy:", f"  k: {draft.k}  # everyone looks like at least {draft.k - 1} others"]
    if draft.unit is not None:
        lines.append(f"  unit: {_scalar(draft.unit)}  # {draft.unit_reason}")
    elif draft.possible_units is not None:
        names = ", ".join(map(_scalar, draft.possible_units))
        lines += [
            "  # Who is a person here? k counts rows. If people or households have several rows,",
            "  # give the column that numbers them the role identifier, and name it:",
            "  # unit: COLUMN" + (f"  # it may be {_comment(names)}" if names else ""),
        ]
    if draft.criteria:
        lines.append("  l_diversity:  # every class must hold several values")
        lines += [
            f"    - {_flow({'attribute': criterion.attribute, 'l': criterion.l})}"
            f"  # {_comment(criterion.reason)}"
            for criterion in draft.criteria
        ]
    return lines


def _rest(draft: Draft, path: str, seed_file: str) -> list[str]:
    """Write the sections behind ``attributes``, with comments on what to decide."""
    missing = "drop  # rows without a quasi-identifier are left out"
    if draft.missing == "category":
        missing = "category  # keeps rows without a quasi-identifier. Drop would not"
    model = "auto  # tries three models for some seconds. Takes the fastest that loses least"
    if draft.rows > _TRIES_MODELS:
        model = "su-mondrian"
    lines = [
        f"missing: {missing}",
        "",
        *_privacy(draft),
        "",
        f"model: {model}",
        "",
        "output:",
        f"  path: {_scalar(draft.output)}",
        "",
        "execution:",
        f"  seed_file: {_scalar(seed_file)}  # a secret, drawn at random: keep it apart from this",
    ]
    if draft.weights is not None:
        lines += [
            "",
            "evaluate:  # how many people each row stands for: estimates the individual risk",
            f"  risk: {{weights: {_scalar(draft.weights)}}}",
        ]
    if draft.target is not None:
        lines += [
            "",
            "# Which values of a category share a set depends on their order, which is that of the",
            "# alphabet. An order that goes with a column loses less of what predicts it:",
            f"#     anonspark arrange {_argument(path)} --target {_argument(draft.target)}",
        ]
    return lines


def _argument(text: str) -> str:
    """Quote a text for a shell command in a comment.

    >>> _argument("my table.yaml")
    "'my table.yaml'"
    """
    return _comment(shlex.quote(text))


def _comment(text: str) -> str:
    r"""Replace what does not print by blanks: a line break would end the comment.

    >>> _comment("first\nsecond")
    'first second'
    """
    return "".join(character if character.isprintable() else " " for character in text)


def _scalar(value: str) -> str:
    """Return a text as YAML.

    >>> _scalar("12"), _scalar("city")
    ("'12'", 'city')
    """
    return _flow([value])[1:-1]


def _key(name: str) -> str:
    """Return a name as a key of YAML, in which variables are not replaced."""
    return _dumped([name])[1:-1]


def _flow(value: Any) -> str:
    """Return a value as YAML on one line, with its dollar signs escaped."""
    return _dumped(escaped(value))


def _dumped(value: Any) -> str:
    """Return a value as YAML on one line."""
    text = yaml.dump(
        value,
        Dumper=_Dumper,
        default_flow_style=True,
        allow_unicode=True,
        sort_keys=False,
        width=float("inf"),
    )
    # `visible` writes escapes that YAML reads back within double quotes.
    return visible(text.strip())


class _Dumper(yaml.SafeDumper):
    """Writes texts in double quotes, which may have escapes, if some signs do not print."""


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, None if text.isprintable() else '"'
    ),
)


SCHEMA = "anonspark.schema.json"


def default_path(data: str) -> str:
    """Return where the configuration of a table is written by default.

    >>> default_path("data/people.csv.gz")
    'people.yaml'
    """
    return f"{_stem(data)}.yaml"


def default_output(path: str) -> str:
    """Return where the release of a configuration goes by default.

    >>> default_output("conf/people.yaml")
    'out/people'
    """
    return f"out/{PurePath(path).stem}"


def seed_path(path: str) -> str:
    """Return the path of the file with the seed, next to the configuration.

    >>> seed_path("conf/people.yaml")
    'conf/people.seed'
    """
    return str(PurePath(path).with_suffix(".seed"))


def _stem(data: str) -> str:
    """Return the name of a file or folder without its suffixes.

    >>> _stem("s3://bucket/people/*")
    'people'
    """
    name = PurePath(data.rstrip("/*")).name
    return name.partition(".")[0] or "table"


def require_new(path: str) -> None:
    """Check that a configuration and its seed can be written.

    Raises ConfigurationError if something is at their paths, or the path is no local one, or leads
    through a file.
    """
    if is_address(path):
        raise ConfigurationError(
            f"--out: found the address {path}. Expected a path of this machine's disk. Write it "
            "there, and copy it"
        )
    if Path(path).is_dir():
        raise ConfigurationError(
            f"--out: found the directory {path}. Expected a path of a file, as "
            f"{PurePath(path) / 'anonspark.yaml'}"
        )
    around = next(parent for parent in PurePath(path).parents if os.path.lexists(parent))
    if not Path(around).is_dir():
        raise ConfigurationError(
            f"--out: {path} cannot be written, for {around} is a file. Expected a directory. "
            "Choose another path"
        )
    for file in (path, seed_path(path)):
        if os.path.lexists(file):
            raise ConfigurationError(
                f"--out: found {file} already, which is not overwritten. Remove it, or choose "
                "another path"
            )


def write_draft(draft: Draft, path: str, *, decision: bool = False) -> list[str]:
    """Write a configuration, its seed, and the JSON Schema if that is absent: all or none.

    Returns the paths that were written, the configuration first. Only their owner can read them,
    except the schema: the seed is a secret, and the configuration may hold values of the data. With
    ``decision`` a template of the decision is also written. Raises ConfigurationError if a file
    exists already, and PublishingError if one cannot be written.
    """
    require_new(path)
    seed, schema = seed_path(path), str(PurePath(path).parent / SCHEMA)
    private = {seed: f"{secrets.randbits(64) - 2**63}\n"}
    if decision:
        private[str(PurePath(path).with_suffix(".decision.yaml"))] = decision_text(draft)
    public: dict[str, str] = {}
    if not os.path.lexists(schema):
        public[schema] = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
    # Written last, the configuration is there only if all others are.
    write_files({**public, **private, path: yaml_text(draft, path, seed, SCHEMA)}, public)
    return [path, *private, *public]


def write_files(texts: Mapping[str, str], public: Collection[str]) -> None:
    """Write new files in order, all or none. Those not public are for their owner alone."""
    written: list[str] = []
    *_, last = texts
    try:
        Path(last).parent.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            write_new(path, text.encode(), 0o644 if path in public else 0o600)
            written.append(path)
    except BaseException as error:
        for path in written:
            with suppress(OSError):
                Path(path).unlink()
        if isinstance(error, FileExistsError):
            raise ConfigurationError(
                f"--out: found {error.filename2 or error.filename} already, which is not "
                "overwritten. Remove it, or choose another path"
            ) from error
        if isinstance(error, OSError):
            raise PublishingError(
                f"--out: nothing can be written next to {last} ({error.strerror}). Check the path, "
                "permissions and free space"
            ) from error
        raise
