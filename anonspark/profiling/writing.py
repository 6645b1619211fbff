"""Write a drafted configuration and its seed: both, or none."""

from __future__ import annotations

import json
import os
import secrets
import shlex
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any

import yaml

from anonspark.config import json_schema
from anonspark.config.decision import Decision
from anonspark.config.reading import is_address
from anonspark.config.variables import escaped
from anonspark.errors import ConfigurationError, PublishingError
from anonspark.foreign_text import visible
from anonspark.ownership import write_new
from anonspark.profiling.draft import Draft, DraftedAttribute

_TRIES_MODELS = 100_000
"""Up to so many rows `init` proposes to try models: it takes some seconds."""


def yaml_text(draft: Draft, path: str, seed_file: str, schema: str) -> str:
    """Return the text of the file.

    Parameters
    ----------
    draft : Draft
    path : str
        Of the file.
    seed_file : str
    schema : str
        Of the JSON Schema, relative to the file.
    """
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
    """Return the template of a decision, with the reasons of the columns."""
    lines = [f"{name}:  # {title}" for name, title in Decision.titles().items()]
    lines += [
        f"  {_key(attribute.name)}: {_key(attribute.reason)}" for attribute in draft.attributes
    ]
    return "\n".join(lines) + "\n"


def _attributes(draft: Draft) -> list[str]:
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
    lines = [f"  {_key(attribute.name)}: {_value(attribute)}  # {_comment(attribute.reason)}"]
    if attribute.hint is not None:
        lines.append(f"  # {_key(attribute.name)}: {attribute.hint}")
    return lines


def _value(attribute: DraftedAttribute) -> str:
    role = attribute.role or "quasi_identifier"
    options = ", ".join(f"{name}: {text}" for name, text in attribute.options.items())
    return f"{{role: {role}, {options}}}" if options else role


def _rest(draft: Draft, path: str, seed_file: str) -> list[str]:
    lines = []
    if draft.missing == "category":
        lines.append("missing: category  # keeps rows without a quasi-identifier. Drop would not")
    else:
        lines.append("missing: drop  # rows without a quasi-identifier are left out")
    lines += [
        "",
        "privacy:",
        f"  k: {draft.k}  # everyone looks like at least {draft.k - 1} others",
    ]
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
    model = "auto  # tries three models for some seconds. Takes the fastest that loses least"
    if draft.rows > _TRIES_MODELS:
        model = "su-mondrian"
    lines += [
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
    """Return a text as a shell takes it."""
    return _comment(shlex.quote(text))


def _comment(text: str) -> str:
    """Return a text that does not end its comment."""
    return "".join(character if character.isprintable() else " " for character in text)


def _scalar(value: str) -> str:
    return _flow([value])[1:-1]


def _key(name: str) -> str:
    """Return a name as a key, in which there are no variables."""
    return _dumped([name])[1:-1]


def _flow(value: Any) -> str:
    """Return a value on one line."""
    return _dumped(escaped(value))


def _dumped(value: Any) -> str:
    text = yaml.dump(
        value,
        Dumper=_Dumper,
        default_flow_style=True,
        allow_unicode=True,
        sort_keys=False,
        width=float("inf"),
    )
    # In double quotes the escapes mean the same.
    return visible(text.strip())


class _Dumper(yaml.SafeDumper):
    """Writes texts with signs that show nothing in double quotes, which may have escapes."""


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, None if text.isprintable() else '"'
    ),
)


SCHEMA = "anonspark.schema.json"


def default_path(data: str) -> str:
    """Return where the configuration of a table is written by default."""
    return f"{_stem(data)}.yaml"


def default_output(path: str) -> str:
    """Return where the release of a configuration goes by default."""
    return f"out/{PurePath(path).stem}"


def seed_path(path: str) -> str:
    """Return the path of the file with the seed, beside the configuration."""
    return str(PurePath(path).with_suffix(".seed"))


def _stem(data: str) -> str:
    name = PurePath(data.rstrip("/*")).name
    return name.partition(".")[0] or "table"


def require_new(path: str) -> None:
    """Check that a configuration, and what belongs to it, can be written.

    Raises
    ------
    ConfigurationError
        If something is there, the path is no local one, or leads through a file.
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
    """Write a configuration and what belongs to it.

    Parameters
    ----------
    draft : Draft
    path : str
        Of the YAML file.
    decision : bool
        Whether a template of the decision is written, too.

    Returns
    -------
    list of str
        The files that were written, the configuration first. All but the JSON Schema can be read
        by their owner alone: the seed is a secret, and the configuration may hold values of the
        data. A JSON Schema that is there already is left as it is.

    Raises
    ------
    ConfigurationError
        If one of the files is there already. Nothing is written then.
    PublishingError
        If they cannot be written.
    """
    require_new(path)
    seed, schema = seed_path(path), str(PurePath(path).parent / SCHEMA)
    private = {seed: f"{secrets.randbits(64) - 2**63}\n"}
    if decision:
        private[str(PurePath(path).with_suffix(".decision.yaml"))] = decision_text(draft)
    public: dict[str, str] = {}
    if not os.path.lexists(schema):
        public[schema] = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
    # The configuration is written last, and says that all are there.
    write_files({**public, **private, path: yaml_text(draft, path, seed, SCHEMA)}, public)
    return [path, *private, *public]


def write_files(texts: Mapping[str, str], public: Collection[str]) -> None:
    """Write files that are not there, in order: all of them, or none."""
    done: list[str] = []
    *_, last = texts
    try:
        Path(last).parent.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            write_new(name, text.encode(), 0o644 if name in public else 0o600)
            done.append(name)
    except BaseException as error:
        for name in done:
            with suppress(OSError):
                Path(name).unlink()
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
