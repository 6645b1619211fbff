"""Quasi-identifiers of texts that would be worth more as numbers, days or ordered groups."""

from __future__ import annotations

from collections.abc import Sequence

from anonspark.config import Configuration
from anonspark.core.encoding import QuasiIdentifier
from anonspark.core.recognition.disguised import disguise_of, letters_misorder
from anonspark.pipeline.warnings.release_warning import ReleaseWarning

_TEXTS = "are texts, so a class publishes a list of them in the order of their letters"


def text_value_warnings(
    quasi_identifiers: Sequence[QuasiIdentifier], configuration: Configuration
) -> list[ReleaseWarning]:
    """Warn of texts that are days or numbers, and of groups that letters order wrongly.

    Parameters
    ----------
    quasi_identifiers : sequence of QuasiIdentifier
        With their different values. No value is looked at where an order or a hierarchy is
        declared, and no form of values where their type is.
    configuration : Configuration
    """
    found = []
    for one in quasi_identifiers:
        declared = configuration.attributes[one.name]
        has_order = declared.order or list(one.categories or ()) != sorted(one.categories or ())
        if one.kind != "category" or has_order or declared.hierarchy:
            continue
        disguise = disguise_of(one.categories)
        # Of texts that are plain numbers whoever reads the input has logged it.
        if disguise and disguise != "number" and declared.type is None:
            kind = "numbers" if disguise.endswith("number") else "days"
            remedy = _remedy(disguise, configuration)
            text = f"nearly all of its values are {kind}, but they {_TEXTS}. {remedy}"
            found.append(ReleaseWarning(f"text_{kind}", text, one.name))
        elif disguise is None and letters_misorder(one.categories):
            found.append(
                ReleaseWarning(
                    "order_of_letters",
                    f"its values {_TEXTS}, but they are groups that letters order wrongly, so a "
                    "class may join groups that are far apart. List all groups from the lowest to "
                    f"the highest as attributes.{one.name}.order, or give it a hierarchy",
                    one.name,
                )
            )
    return found


def _remedy(disguise: str, configuration: Configuration) -> str:
    """Say what makes days and numbers of them."""
    if disguise in ("date", "timestamp"):
        return f"Declare its type as {disguise}"
    if disguise == "other number":
        return "Convert them to numbers that are written as 1234.5"
    given = {name.lower(): value for name, value in configuration.input.options.items()}
    is_tried = "dateformat" in given and given.get("inferschema", "").lower() == "true"
    if configuration.input.format.lower() != "csv" or is_tried:
        return "Convert them to days that are written as 2026-01-31"
    return (
        "Set input.options.dateFormat to the form that they have, such as dd.MM.yyyy, and "
        "input.options.inferSchema to true, or convert them to days that are written as 2026-01-31"
    )
