"""The section ``coding`` of configurations and manifests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from anonspark.sharing.coding.agreement import (
    CodingFile,
    agreed_digests,
    coding_fingerprint,
)
from anonspark.sharing.coding.merging import merge_coding

__all__ = ["agreed_digests", "form_problems", "merge_coding"]


def form_problems(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Return the errors in the section of a manifest, with name, fingerprint, document."""
    coding = manifest["coding"]
    document = coding["document"]
    if coding["name"] != document.get("name"):
        yield "coding.name: expected that of coding.document"
    if coding["fingerprint"] != coding_fingerprint(document):
        yield "coding.fingerprint: expected that of coding.document"
    # The contents of files stand for the files.
    attributes = {
        str(attribute.get("name")): {
            key: "-" if key == "hierarchy" and "sha256" in value else value
            for key, value in attribute.items()
            if key != "name"
        }
        for attribute in document["attributes"]
    }
    try:
        CodingFile.model_validate({**document, "attributes": attributes})
    except ValidationError:
        yield "coding.document: expected what anonspark writes there"
