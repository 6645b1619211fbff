"""Compare a manifest's configuration with its coding."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from anonspark.config.attributes import Attribute, order_as_told
from anonspark.config.privacy import PrivacyOptions

_DEFAULTS = {name: field.default for name, field in Attribute.model_fields.items()}

# A coding tells a file of a hierarchy by its hash, a manifest by its path.
_DESCRIBED_OTHERWISE = {"hierarchy", "order", "order_entries", "order_fingerprint"}


def not_as_coded(
    configured: Mapping[str, Any], document: Mapping[str, Any], extra: Collection[str | None] = ()
) -> list[str]:
    """Return the keys whose values differ from the agreed coding.

    Parameters
    ----------
    configured : mapping
        The section ``configuration`` of a manifest, sound in form.
    document : mapping
        Of its coding (:attr:`anonspark.sharing.coding.agreement.Coding.document`).
    extra : collection of str
        Attributes that no coding lists, besides the identifiers of a holder.

    Returns
    -------
    list of str
        Without those of ``privacy``, which :func:`is_at_least` compares.
    """
    agreed = {attribute["name"]: attribute for attribute in document["attributes"]}
    listed = {
        name: attribute
        for name, attribute in configured["attributes"].items()
        if attribute["role"] != "identifier" and name not in extra
    }
    keys = [] if list(listed) == list(agreed) else ["attributes"]
    keys += [
        f"attributes.{name}"
        for name, attribute in listed.items()
        if name in agreed and not _is_as_agreed(attribute, agreed[name])
    ]
    output = configured["output"]
    for key, stated, expected in (
        ("missing", configured.get("missing", "drop"), document.get("missing")),
        ("output.style", output["style"], document.get("style")),
        ("output.pseudonyms", bool(output.get("pseudonyms")), False),
    ):
        if stated != expected:
            keys.append(key)
    return keys


def _is_as_agreed(attribute: Mapping[str, Any], agreed: Mapping[str, Any]) -> bool:
    same = all(
        value == agreed.get(key, _DEFAULTS.get(key))
        for key, value in attribute.items()
        if key not in _DESCRIBED_OTHERWISE
    )
    order = agreed.get("order")
    if attribute.get("order") is not None or order is None:
        options, expected = {"order": attribute.get("order")}, {"order": order}
    else:
        expected = order_as_told(order)
        options = {key: attribute.get(key) for key in expected}
    return same and options == expected


def is_at_least(asked: PrivacyOptions, least: PrivacyOptions) -> bool:
    """Return whether what is asked for is at least what a coding asks for."""
    return asked.k >= least.k and all(
        any(criterion.is_as_strict_as(required) for criterion in asked.criteria)
        for required in least.criteria
    )
