"""The section ``parts`` of manifests: what a union says of the releases that it is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from anonspark.config.privacy import PrivacyOptions
from anonspark.config.problems import key_path
from anonspark.release.sections import Statement
from anonspark.sharing.coding.agreement import coding_privacy
from anonspark.sharing.coding.comparing import is_at_least


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


def comparisons(manifest: Mapping[str, Any], privacy: PrivacyOptions) -> Iterator[Statement]:
    """Compare what a union says of itself with its parts."""
    parts, holder = manifest["parts"], "holder_column"
    agreed = coding_privacy(manifest["coding"]["document"])
    yield Statement("configuration.privacy", privacy == agreed, True)
    for place, part in enumerate(parts):
        key = f"parts[{place}].privacy (at least that of the coding)"
        own = _privacy_of(part)
        yield Statement(key, is_at_least(own, agreed), True)
        # Without a class of k records there is nothing that a holder could have published.
        key = f"parts[{place}].rows (at least k)"
        yield Statement(key, part["rows"] >= own.k, True)
    for key in ("run_id", "output_fingerprint"):
        different = len({part[key] for part in parts})
        yield Statement(f"parts (different {key})", different, len(parts))
    rows = sum(part["rows"] for part in parts)
    yield Statement("published.rows", manifest["published"]["rows"], rows)
    holders = len({part["holder"] for part in parts if part["holder"] is not None})
    expected = 0 if manifest[holder] is None else len(parts)
    yield Statement("parts (different holders)", holders, expected)


def _privacy_of(part: Mapping[str, Any]) -> PrivacyOptions:
    # Of the population of a holder a union tells nothing, so that there is none to check.
    return PrivacyOptions.model_validate(part["privacy"] | {"delta_presence": None})
