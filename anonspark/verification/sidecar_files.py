"""The files that explain a release: written again, and compared."""

from __future__ import annotations

import hashlib

import pyarrow as pa

from anonspark._version import __version__
from anonspark.engine.files import PublishedFile
from anonspark.release.layout import COMPANIONS, named
from anonspark.release.manifest import Manifest
from anonspark.release.regions import published_attributes
from anonspark.release.sidecar_files.contents import sidecar_contents


def changed_sidecar_files(release: str, manifest: Manifest, schema: pa.Schema) -> list[str]:
    """Compare what explains a release with what this version writes of its manifest and columns.

    Parameters
    ----------
    release : str
        Its directory, for the message.
    manifest : Manifest
        Whose list of files was compared with what lies there.
    schema : pyarrow.Schema
        Of the published records.

    Returns
    -------
    list of str
        One sentence, or none; none of a release of another version, which may word it otherwise.
    """
    columns = {name for one in published_attributes(manifest) for name in one.columns}
    if manifest.version != __version__ or not columns <= {*schema.names}:  # which is refused itself
        return []
    listed = [PublishedFile(**file) for file in manifest.files]
    contents = sidecar_contents(manifest, schema, listed)
    expected = {name: hashlib.sha256(text).hexdigest() for name, text in contents.items()}
    found = {file.path: file.sha256 for file in listed if file.path in COMPANIONS}
    changed = sorted(
        name for name in expected.keys() | found.keys() if found.get(name) != expected.get(name)
    )
    if not changed:
        return []
    return [
        f"{release}: {named(changed)}: not what this version writes of this manifest and these "
        "records, so that it may say or run something else; do not use it, restore the release or "
        "publish it again"
    ]
