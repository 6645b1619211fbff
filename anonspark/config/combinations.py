"""Find contradictions between sections of the configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from anonspark.config.attributes import Attribute
from anonspark.config.gates import EvaluateOptions, RiskOptions
from anonspark.config.input import MissingPolicy, columns_of
from anonspark.config.models import CuttingOptions, ModelOptions
from anonspark.config.output import OutputStyle
from anonspark.config.privacy import PrivacyOptions
from anonspark.config.problems import Finding, did_you_mean, in_words


def unusable_names(attributes: Mapping[str, Attribute]) -> Iterator[Finding]:
    """Find empty names, and names that Spark does not distinguish."""
    first: dict[str, str] = {}
    for name in attributes:
        if name == "":
            yield Finding(
                ("attributes", name),
                "found an empty name. Expected the name of a column. Correct or remove it",
            )
        other = first.setdefault(name.lower(), name)
        if other != name:
            yield Finding(
                ("attributes", name),
                f"found the name {other!r} again, only with other upper and lower case, which "
                "does not count. Expected each column once. Remove one of the two",
            )


def lacking_quasi_identifiers(attributes: Mapping[str, Attribute]) -> Iterator[Finding]:
    """Find that no attribute is a quasi-identifier."""
    if all(attribute.role != "quasi_identifier" for attribute in attributes.values()):
        yield Finding(
            ("attributes",),
            "found no quasi_identifier. Expected at least one. Give the role 'quasi_identifier' to "
            "the attributes that could identify a person together",
        )


def unusable_criteria(
    attributes: Mapping[str, Attribute], privacy: PrivacyOptions
) -> Iterator[Finding]:
    """Find criteria about attributes that are not sensitive, or lack an order or hierarchy."""
    sensitive = [name for name, attribute in attributes.items() if attribute.role == "sensitive"]
    for location, name in privacy.locations():
        if name not in sensitive:
            role = f"has the role '{attributes[name].role}'" if name in attributes else "is none"
            hint = did_you_mean(name, sensitive, "List it among the attributes")
            yield Finding(
                ("privacy", *location),
                f"found {in_words(name)}, which {role}. Expected the name of an attribute with "
                f"the role 'sensitive'. {hint}",
            )
    ordered = {entry.attribute for entry in privacy.t_closeness if entry.distance == "ordered"}
    for index, closeness in enumerate(privacy.t_closeness):
        if closeness.distance == "hierarchical" and closeness.attribute in ordered:
            yield Finding(
                ("privacy", "t_closeness", index, "distance"),
                "found 'hierarchical' and 'ordered' for the same attribute. Expected one of "
                "the two, because a hierarchy also orders the values. Remove one",
            )
        attribute = attributes.get(closeness.attribute)
        if (
            closeness.distance == "hierarchical"
            and attribute is not None
            and attribute.role == "sensitive"
            and attribute.hierarchy is None
        ):
            yield Finding(
                ("privacy", "t_closeness", index, "distance"),
                "found 'hierarchical' for an attribute without a hierarchy. Expected 'equal' "
                "or 'ordered'. Give the attribute a hierarchy file or change the distance",
            )


def unusable_unit(
    attributes: Mapping[str, Attribute], privacy: PrivacyOptions
) -> Iterator[Finding]:
    """Find units that are no attributes, or are named twice."""
    for index, name in enumerate(privacy.unit):
        where = ("privacy", "unit", index)
        if name not in attributes:
            hint = did_you_mean(name, attributes, "List it among the attributes")
            yield Finding(
                where,
                f"found {in_words(name)}, which is no attribute. Expected the name of one, as a "
                f"rule with the role 'identifier'. {hint}",
            )
        elif name in privacy.unit[:index]:
            text = f"found {in_words(name)} twice. Expected each name once. Remove one"
            yield Finding(where, text)


def labels_of_records(model: Mapping[str, Any], missing: str) -> str | None:
    """Explain which labels depend on other records, so that presence has no bound, or None."""
    # Records left out are in the table. The top of a hierarchy shows whether a value is missing.
    is_whole = model.get("suppression_limit") == 0 and missing != "category"
    if model["name"] == "full-domain" and model["levels"] and is_whole:
        return None
    return (
        f"found together with the model {model['name']!r}, with labels that depend on the records, "
        "or records that are left out. A person of the population who is the only one with the "
        "value at the end of a range is in the release for sure, and a level may be chosen because "
        "of one person. Expected model.name: full-domain, with model.levels that you do not take "
        "from these records, model.suppression_limit: 0, missing: drop or error, and hierarchies "
        "such as intervals. Set these"
    )


def unusable_presence(
    model: ModelOptions, missing: str, privacy: PrivacyOptions
) -> Iterator[Finding]:
    """Refuse delta-presence with labels that prove who is in the release."""
    problem = labels_of_records(model.model_dump(), missing)
    if privacy.delta_presence is not None and problem is not None:
        yield Finding(("privacy", "delta_presence"), problem)


def unusable_pseudonyms(
    attributes: Mapping[str, Attribute],
    privacy: PrivacyOptions,
    pseudonyms: Mapping[str, str],
) -> Iterator[Finding]:
    """Find pseudonyms of columns that identify no one, or with the name of another column."""
    names = {name.lower(): name for name in attributes}
    for index, (name, column) in enumerate(pseudonyms.items()):
        where = ("output", "pseudonyms", name)
        if index:
            yield Finding(
                where,
                "found a second one. Expected one column, which stands for all that "
                "privacy.unit names together. Remove it",
            )
        elif name not in privacy.unit:
            yield Finding(
                where,
                f"found {in_words(name)}, which privacy.unit does not name. Expected one of the "
                "attributes that identify people, because without privacy.unit the records of a "
                "person could be a class. Set privacy.unit, or remove it",
            )
        elif name in attributes and attributes[name].role != "identifier":
            yield Finding(
                where,
                f"found an attribute with the role '{attributes[name].role}', which is "
                "published itself. Expected an identifier. Make it one, or remove it",
            )
        other = names.get(column.lower())
        if other is not None:
            yield Finding(
                where,
                f"found {in_words(column)}, the name of the attribute {other!r}. Expected a name "
                "of its own. Choose another",
            )


def unmeasurable(evaluate: EvaluateOptions, style: OutputStyle) -> Iterator[Finding]:
    """Find figures that cannot be measured in what is published, or give back what it hides."""
    if style == "mean" and evaluate.information:
        yield Finding(
            ("evaluate", "information"),
            "found true together with output.style 'mean', which hides the values that a class "
            "covers. Expected another style. Choose 'interval' or 'bounds', or set it to false",
        )
    if style == "mean" and evaluate.association is not None:
        yield Finding(
            ("evaluate", "association"),
            "found a target together with output.style 'mean', whose hidden values the figures "
            "would describe. Expected another style. Choose 'interval' or 'bounds', or remove it "
            "and keep to yourself what anonspark evaluate shows",
        )


def unusable_published(
    attributes: Mapping[str, Attribute], evaluate: EvaluateOptions
) -> Iterator[Finding]:
    """Find a target that is not published unchanged, and weights that are quasi-identifiers."""
    published = [
        name
        for name, attribute in attributes.items()
        if attribute.role in ("sensitive", "insensitive")
    ]
    identifiers = [name for name, attribute in attributes.items() if attribute.role == "identifier"]
    target = None if evaluate.association is None else evaluate.association.target
    expected = "one that is published as it is, with the role 'sensitive' or 'insensitive'"
    for key, name, usable, kinds in (
        (("association", "target"), target, published, expected),
        (
            ("risk", "weights"),
            evaluate.risk.weights,
            [*published, *identifiers],
            f"{expected}, or an 'identifier', which is not published",
        ),
    ):
        if name is None or name in usable:
            continue
        is_there = name in attributes
        role = f"has the role '{attributes[name].role}'" if is_there else "is no attribute"
        hint = did_you_mean(name, usable, "Choose another column, or change its role")
        yield Finding(
            ("evaluate", *key), f"found {in_words(name)}, which {role}. Expected {kinds}. {hint}"
        )


def unusable_where(attributes: Mapping[str, Attribute], where: str | None) -> Iterator[Finding]:
    """Find a condition that tells who reads the manifest what no record may show."""
    roles = {name.lower(): attribute.role for name, attribute in attributes.items()}
    for name in columns_of(where):
        if (role := roles.get(name.lower())) in ("identifier", "sensitive"):
            text = f"a condition on {in_words(name)}, which has the role '{role}', shows its values"
            yield Finding(("input", "where"), f"{text}. Expected another column. Remove it")


def unusable_weights(risk: RiskOptions, privacy: PrivacyOptions) -> Iterator[Finding]:
    """Find weights of records where a person may have several."""
    if risk.weights is not None and privacy.unit:
        yield Finding(
            ("evaluate", "risk", "weights"),
            "found it together with privacy.unit. Expected one of them, because a person with "
            "several records would count with the weight of each. Remove one",
        )


def unusable_suppression(model: ModelOptions, evaluate: EvaluateOptions) -> Iterator[Finding]:
    """Find measures that a release with suppressed classes does not allow."""
    if not isinstance(model, CuttingOptions) or not model.suppression_limit:
        return
    if evaluate.compare_baseline:
        yield Finding(
            ("evaluate", "compare_baseline"),
            "found true together with model.suppression_limit. Expected one of them, because "
            "classes of the first round are left out. Remove one",
        )


def generated_columns(
    attributes: Mapping[str, Attribute],
    style: OutputStyle,
    missing: MissingPolicy,
    pseudonyms: Mapping[str, str],
) -> Iterator[Finding]:
    """Find published columns with the name of a column that the release generates."""
    suffixes = ["_min", "_max"] if style == "bounds" else []
    if missing == "category" and style != "interval":
        suffixes.append("_missing")
    generated = {
        (name + suffix).lower(): (name, suffix)
        for name, attribute in attributes.items()
        if attribute.role == "quasi_identifier"
        for suffix in suffixes
    }
    yield from (
        Finding(
            ("output", "pseudonyms", name),
            f"found the name of a column that output.style '{style}' generates for "
            f"{generated[column.lower()][0]!r}. Expected a name of its own. Choose another",
        )
        for name, column in pseudonyms.items()
        if column.lower() in generated
    )
    for name, attribute in attributes.items():
        if attribute.role == "identifier" or name.lower() not in generated:
            continue
        source, suffix = generated[name.lower()]
        cause = f"output.style '{style}'"
        if suffix == "_missing":
            cause += " with missing 'category'"
        yield Finding(
            ("attributes", name),
            f"found the name of the column {source + suffix!r}, which {cause} generates for "
            f"{source!r}. Expected a name of its own. Rename the column in the input, choose "
            "another output.style, or do not publish it",
        )
