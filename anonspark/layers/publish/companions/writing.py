"""Writing what stands beside the data: README.md, datapackage.json and the view in SQL."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from anonspark.engine.files import Files, PublishedFile
from anonspark.layers.publish.companions.readme import readme
from anonspark.layers.publish.companions.views import view_text
from anonspark.layers.publish.companions.wording import about_columns, title_of, type_of
from anonspark.release.manifest import Manifest

_MEDIA_TYPES = {"parquet": "application/vnd.apache.parquet", "orc": "application/vnd.apache.orc"}

_HIDDEN = ("_", ".")


def data_package(manifest: Manifest, schema: pa.Schema, files: Sequence[PublishedFile]) -> str:
    """Return the descriptor of a release.

    Parameters
    ----------
    manifest : Manifest
    schema : pyarrow.Schema
        Of the published records.
    files : sequence of PublishedFile
        All of the release, in any order; those of the records are named.
    """
    own = sorted(one.path for one in files if one.path.startswith("data/") and _is_seen(one.path))
    data_format = manifest.data_format.lower()
    resource: dict[str, Any] = {
        "name": "data",
        "profile": "data-resource",
        "title": "Published records",
        "path": own,
        "format": data_format,
        "bytes": sum(one.bytes for one in files if one.path in own),
        "schema": {"fields": _fields(manifest, schema)},
    }
    if data_format in _MEDIA_TYPES:
        resource["mediatype"] = _MEDIA_TYPES[data_format]
    descriptor = {
        "profile": "data-package",
        "name": f"release-{manifest.fingerprint[:12]}",
        "title": title_of(manifest),
        "description": "See README.md for what the columns mean and how to count in them.",
        "resources": [resource],
    }
    return json.dumps(descriptor, indent=2, ensure_ascii=False) + "\n"


def _is_seen(path: str) -> bool:
    return not any(part.startswith(_HIDDEN) for part in path.split("/"))


def _fields(manifest: Manifest, schema: pa.Schema) -> list[Mapping[str, str]]:
    about = about_columns(manifest, schema)
    return [
        {
            "name": field.name,
            "type": type_of(field.type),
            "description": about[field.name].meaning,
            "role": about[field.name].role,
        }
        for field in schema
    ]


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
