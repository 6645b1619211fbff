"""What sections of the configuration cannot mean together."""

from __future__ import annotations

from collections.abc import Mapping

from anonspark.config.attributes import Attribute
from anonspark.config.evaluate import AssociationOptions, EvaluateOptions
from anonspark.config.input import MissingPolicy
from anonspark.config.output import OutputStyle
from anonspark.config.privacy import PrivacyOptions
from anonspark.config.problems import Finding, found, nearest


def _folded(name: str) -> str:
    # As Spark compares column names unless it is told otherwise.
    return name.lower()


def unusable_names(attributes: Mapping[str, Attribute]) -> list[Finding]:
    """Find empty names, and names that Spark does not tell apart."""
    findings: list[Finding] = []
    first: dict[str, str] = {}
    for name in attributes:
        if name == "":
            findings.append(
                Finding(
                    ("attributes", name),
                    "found an empty name; expected the name of a column; correct or remove it",
                )
            )
        other = first.setdefault(_folded(name), name)
        if other != name:
            findings.append(
                Finding(
                    ("attributes", name),
                    f"found the name {other!r} again, but for upper and lower case, which Spark "
                    "does not tell apart; expected each column once; remove one of the two",
                )
            )
    return findings


def lacking_quasi_identifiers(attributes: Mapping[str, Attribute]) -> list[Finding]:
    """Find that no attribute is a quasi-identifier."""
    if any(attribute.role == "quasi_identifier" for attribute in attributes.values()):
        return []
    return [
        Finding(
            ("attributes",),
            "found no quasi_identifier; expected at least one; give the role 'quasi_identifier' to "
            "the attributes that could identify a person together",
        )
    ]


def unusable_criteria(
    attributes: Mapping[str, Attribute], privacy: PrivacyOptions
) -> list[Finding]:
    """Find criteria about attributes that are not sensitive, or lack what the criterion needs."""
    findings = []
    sensitive = [name for name, attribute in attributes.items() if attribute.role == "sensitive"]
    for location, name in privacy.locations():
        if name not in sensitive:
            role = f"has the role '{attributes[name].role}'" if name in attributes else "is none"
            near = nearest(name, sensitive)
            hint = f"; did you mean {near!r}?" if near else ""
            findings.append(
                Finding(
                    ("privacy", *location),
                    f"found {found(name)}, which {role}; expected the name of an attribute with "
                    f"the role 'sensitive'{hint or '; list it among the attributes'}",
                )
            )
    ordered = {one.attribute for one in privacy.t_closeness if one.distance == "ordered"}
    for place, closeness in enumerate(privacy.t_closeness):
        if closeness.distance == "hierarchical" and closeness.attribute in ordered:
            findings.append(
                Finding(
                    ("privacy", "t_closeness", place, "distance"),
                    "found 'hierarchical' beside 'ordered' for the same attribute; expected one of "
                    "the two, for a hierarchy orders the values, too; remove one",
                )
            )
        attribute = attributes.get(closeness.attribute)
        if (
            closeness.distance == "hierarchical"
            and attribute is not None
            and attribute.role == "sensitive"
            and attribute.hierarchy is None
        ):
            findings.append(
                Finding(
                    ("privacy", "t_closeness", place, "distance"),
                    "found 'hierarchical' for an attribute without a hierarchy; expected 'equal' "
                    "or 'ordered'; give the attribute a hierarchy file or change the distance",
                )
            )
    return findings


def unusable_unit(attributes: Mapping[str, Attribute], privacy: PrivacyOptions) -> list[Finding]:
    """Find units that are no attributes, or are named twice."""
    findings = []
    for place, name in enumerate(privacy.unit):
        where = ("privacy", "unit", place)
        if name not in attributes:
            near = nearest(name, list(attributes))
            hint = f"did you mean {near!r}?" if near else "list it among the attributes"
            findings.append(
                Finding(
                    where,
                    f"found {found(name)}, which is no attribute; expected the name of one, as a "
                    f"rule with the role 'identifier'; {hint}",
                )
            )
        elif name in privacy.unit[:place]:
            findings.append(
                Finding(where, f"found {found(name)} twice; expected each name once; remove one")
            )
    return findings


def unusable_pseudonyms(
    attributes: Mapping[str, Attribute],
    privacy: PrivacyOptions,
    pseudonyms: Mapping[str, str],
) -> list[Finding]:
    """Find pseudonyms of what tells nobody apart, and columns that are there already."""
    findings = []
    names = {_folded(name): name for name in attributes}
    for place, (name, column) in enumerate(pseudonyms.items()):
        where = ("output", "pseudonyms", name)
        if place:
            findings.append(
                Finding(
                    where,
                    "found a second one; expected one column, which stands for all that "
                    "privacy.unit names together; remove it",
                )
            )
        elif name not in privacy.unit:
            findings.append(
                Finding(
                    where,
                    f"found {found(name)}, which privacy.unit does not name; expected one of the "
                    "attributes that tell people apart, for without privacy.unit the records of a "
                    "person could be a class; set privacy.unit, or remove it",
                )
            )
        elif name in attributes and attributes[name].role != "identifier":
            findings.append(
                Finding(
                    where,
                    f"found an attribute with the role '{attributes[name].role}', which is "
                    "published itself; expected an identifier; make it one, or remove it",
                )
            )
        other = names.get(_folded(column))
        if other is not None:
            findings.append(
                Finding(
                    where,
                    f"found {found(column)}, the name of the attribute {other!r}; expected a name "
                    "of its own; choose another",
                )
            )
    return findings


def unmeasurable(evaluate: EvaluateOptions, style: OutputStyle) -> list[Finding]:
    """Find figures that cannot be measured in what is published, or give back what it hides."""
    if style != "mean":
        return []
    association = Finding(
        ("evaluate", "association"),
        "found a target together with output.style 'mean', whose hidden values the figures would "
        "describe; expected another style; choose 'interval' or 'bounds', or remove it and keep to "
        "yourself what anonspark evaluate shows",
    )
    information = [
        Finding(
            ("evaluate", "information"),
            "found true together with output.style 'mean', which does not tell what values a class "
            "covers; expected another style; choose 'interval' or 'bounds', or set it to false",
        )
    ]
    return information * evaluate.information + [association] * (evaluate.association is not None)


def unusable_association(
    attributes: Mapping[str, Attribute], association: AssociationOptions | None
) -> list[Finding]:
    """Find targets that are not published as they are."""
    if association is None:
        return []
    name = association.target
    published = [own for own, one in attributes.items() if one.role in ("sensitive", "insensitive")]
    if name in published:
        return []
    role = f"has the role '{attributes[name].role}'" if name in attributes else "is no attribute"
    near = nearest(name, published)
    hint = f"did you mean {near!r}?" if near else "choose another column, or change its role"
    return [
        Finding(
            ("evaluate", "association", "target"),
            f"found {found(name)}, which {role}; expected one that is published as it is, with the "
            f"role 'sensitive' or 'insensitive'; {hint}",
        )
    ]


def generated_columns(
    attributes: Mapping[str, Attribute],
    style: OutputStyle,
    missing: MissingPolicy,
    pseudonyms: Mapping[str, str],
) -> list[Finding]:
    """Find published columns with the name of a column that the release generates."""
    suffixes = ["_min", "_max"] if style == "bounds" else []
    if missing == "category" and style != "interval":
        suffixes.append("_missing")
    generated = {
        _folded(name + suffix): (name, suffix)
        for name, attribute in attributes.items()
        if attribute.role == "quasi_identifier"
        for suffix in suffixes
    }
    findings = [
        Finding(
            ("output", "pseudonyms", name),
            f"found the name of a column that output.style '{style}' generates for "
            f"{generated[_folded(column)][0]!r}; expected a name of its own; choose another",
        )
        for name, column in pseudonyms.items()
        if _folded(column) in generated
    ]
    for name, attribute in attributes.items():
        if attribute.role == "identifier" or _folded(name) not in generated:
            continue
        source, suffix = generated[_folded(name)]
        cause = f"output.style '{style}'"
        if suffix == "_missing":
            cause += " with missing 'category'"
        findings.append(
            Finding(
                ("attributes", name),
                f"found the name of the column {source + suffix!r}, which {cause} generates for "
                f"{source!r}; expected a name of its own; rename the column in the input, choose "
                "another output.style, or do not publish it",
            )
        )
    return findings
