"""Writing what stands beside the data: README.md, datapackage.json and the view in SQL."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from anonspark.engine.files import Files, PublishedFile
from anonspark.layers.publish.companions.data_package import data_package
from anonspark.layers.publish.companions.readme import readme
from anonspark.layers.publish.companions.views import view_text
from anonspark.release.manifest import Manifest


def write_companions(
    files: Files,
    manifest: dict[str, Any],
    schema: pa.Schema,
    written: Sequence[PublishedFile],
    release: str,
) -> list[PublishedFile]:
    """Write the files that explain a release, from what its manifest says.

    Parameters
    ----------
    files : Files
    manifest : dict
        Of the release, without ``files``.
    schema : pyarrow.Schema
        Of the published records.
    written : sequence of PublishedFile
        What else of the release is written.
    release : str
        Its directory.

    Returns
    -------
    list of PublishedFile
        The same bytes for the same records, configuration and version: neither the name of the run
        nor a time is in them.
    """
    told = Manifest(manifest)
    view = view_text(told, schema)
    texts = {} if view is None else {"views.sql": view}
    texts["datapackage.json"] = data_package(told, schema, written)
    texts["README.md"] = readme(told, schema, {*texts, "README.md"})
    found = []
    for name, text in sorted(texts.items()):
        content = text.encode()
        files.write_bytes(f"{release}/{name}", content)
        digest = hashlib.sha256(content).hexdigest()
        found.append(PublishedFile(name, len(content), None, digest))
    return found
