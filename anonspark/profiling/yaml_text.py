"""A drafted configuration as YAML with comments."""

from __future__ import annotations

import shlex
from typing import Any

import yaml

from anonspark.foreign_text import visible
from anonspark.profiling.draft import Draft, DraftedAttribute


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
    if source.format == "csv" and "inferSchema" not in source.options:
        lines.append(
            "  # Without inferSchema, because it takes zeros off codes and changes other texts."
        )
    if draft.missing_markers:
        lines.append(
            f"  missing_markers: {_flow(list(draft.missing_markers))}"
            "  # stand for missing as a rule; take out what is a value here"
        )
    lines += ["", *_attributes(draft), "", *_rest(draft, path, seed_file)]
    return "\n".join(lines) + "\n"


def _attributes(draft: Draft) -> list[str]:
    lines = [
        "# identifier: says who someone is by itself; never published.",
        "# quasi_identifier: says it together with others; published as a range that k share.",
        "# sensitive: what nobody should learn about a person; published as it is.",
        "# insensitive: harmless; published as it is. No column is proposed as such.",
        "attributes:",
    ]
    for one in draft.attributes:
        if one.role is not None:
            lines += _attribute(one)
    left = [one for one in draft.attributes if one.role is None]
    if left:
        lines.append("  # Not published; take a # away to publish a column.")
        for one in left:
            written = f": {_value(one)}" if one.usable else ""
            lines.append(f"  # {_scalar(one.name)}{written}  # {_comment(one.reason)}")
    return lines


def _attribute(one: DraftedAttribute) -> list[str]:
    lines = [f"  {_scalar(one.name)}: {_value(one)}  # {_comment(one.reason)}"]
    if one.hint is not None:
        lines.append(f"  # {_scalar(one.name)}: {one.hint}")
    return lines


def _value(one: DraftedAttribute) -> str:
    role = one.role or "quasi_identifier"
    beside = ", ".join(f"{name}: {text}" for name, text in one.options.items())
    return f"{{role: {role}, {beside}}}" if beside else role


def _rest(draft: Draft, path: str, seed_file: str) -> list[str]:
    lines = []
    if draft.missing == "category":
        lines.append("missing: category  # keeps rows without a quasi-identifier; drop would not")
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
            f"    - {_flow({'attribute': one.attribute, 'l': one.l})}  # {_comment(one.reason)}"
            for one in draft.criteria
        ]
    lines += [
        "",
        "output:",
        f"  path: {_scalar(draft.output)}",
        "",
        "execution:",
        f"  seed_file: {_scalar(seed_file)}  # a secret, drawn at random: keep it apart from this",
    ]
    if draft.target is not None:
        lines += [
            "",
            "# Which values of a category share a set depends on their order, which is that of the",
            "# alphabet. An order that goes with a column loses less of what tells of it:",
            f"#     anonspark arrange {_argument(path)} --target {_argument(draft.target)}",
        ]
    return lines


def _argument(text: str) -> str:
    """Return a text as a shell takes it."""
    return _comment(shlex.quote(text))


def _comment(text: str) -> str:
    """Return a text that does not end its comment."""
    return "".join(one if one.isprintable() else " " for one in text)


def _scalar(value: str) -> str:
    return _flow([value])[1:-1]


def _flow(value: Any) -> str:
    """Return a value on one line."""
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
