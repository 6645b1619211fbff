"""The section ``parts`` of manifests: what a union says of the releases that it is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from anonspark.config.privacy import PrivacyOptions
from anonspark.config.problems import key_path


def form_problems(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Find a column of holders that is no quasi-identifier, and parts that promise nothing."""
    holder = manifest["holder_column"]
    if holder is not None and (
        holder not in manifest["configuration"]["attributes"]
        or holder not in manifest["published"]["quasi_identifier_columns"]
    ):
        yield "holder_column: expected a quasi-identifier of the union"
    for place, part in enumerate(manifest["parts"]):
        try:
            _privacy_of(part)
        except ValidationError:
            yield f"{key_path(('parts', place, 'privacy'))}: expected what anonspark writes there"


def _privacy_of(part: Mapping[str, Any]) -> PrivacyOptions:
    # Of the population of a holder a union tells nothing, so that there is none to check.
    return PrivacyOptions.model_validate(part["privacy"] | {"delta_presence": None})
