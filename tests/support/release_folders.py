"""Releases that somebody changes behind our back.

Before the first change to a release these helpers write all of it once more without a change, and
`verify` has to accept that copy. So what is refused later is refused for what was changed.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tempfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from helpers import configuration_file, write_table
from pyarrow import orc

from anonspark.config import load_configuration
from anonspark.engine.files import PublishedFile
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.local.files import LocalFiles
from anonspark.engine.parquet_encoding import encode_table
from anonspark.engine.protocol import Engine
from anonspark.pipeline.run import run
from anonspark.release.manifest import Manifest, manifest_text
from anonspark.sidecars.contents import sidecar_contents
from anonspark.verification.audit import audit_release

_SHOWN: set[str] = set()
"""Releases of which an unchanged copy was accepted, and folders that were changed since."""


def release_of_several_files(engine: Engine, folder: Path) -> Path:
    """Make a release of 300 records in three files."""
    random = np.random.default_rng(3)
    table = {"age": random.integers(0, 99, 300), "illness": random.choice(["flu", "gout"], 300)}
    write_table(folder / "input.parquet", table)
    attributes = {"age": "quasi_identifier", "illness": "sensitive"}
    path = configuration_file(folder, attributes=attributes, model={"name": "su-mondrian"})
    run(engine, load_configuration(str(path)), run_id="night")
    release = folder / "release"
    data = pq.read_table(release / "data")
    for place in range(3):
        part = encode_table(data.slice(place * 100, 100))
        (release / "data" / f"part-1000{place}.parquet").write_bytes(part)
    for path in (release / "data").glob("*part-0000*"):
        path.unlink()
    return release


def write_checksum(path: Path) -> Path:
    """Write what Hadoop's local file system writes beside a file: a CRC of every 512 bytes."""
    content = path.read_bytes()
    sums = [zlib.crc32(content[start : start + 512]) for start in range(0, len(content), 512)]
    checksum = path.with_name(f".{path.name}.crc")
    checksum.write_bytes(b"crc\0\0\0\2\0" + b"".join(one.to_bytes(4, "big") for one in sums))
    return checksum


def rewrite(path: Path, content: bytes) -> None:
    """Write a file as somebody does who does not know Hadoop's checksums.

    Manifests and tables have to be written as the package does, else they would be refused for
    that. Broken ones, which nobody can read, are written as they are.
    """
    release = next((one for one in path.parents if (one / "manifest.json").exists()), None)
    if release is not None and str(release) not in _SHOWN:
        show_unchanged(release)
    assert content == _as_the_package_writes(path.name, content), f"another form of {path.name}"
    damage(path, content)


def damage(path: Path, content: bytes) -> None:
    """Write what the package would not write: a manifest, table or file in another form."""
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _as_the_package_writes(name: str, content: bytes) -> bytes:
    """Return what the package writes in place of a manifest or a table with the same content."""
    try:
        if name == "manifest.json":
            return manifest_text(json.loads(content)).encode()
        if name.endswith(".parquet"):
            table = pq.read_table(io.BytesIO(content)).replace_schema_metadata(None)
            return encode_table(table)
    except (ValueError, AttributeError, OSError, pa.ArrowException):
        pass
    return content


def show_unchanged(release: Path) -> None:
    """Check that an unchanged copy of a release is accepted. Once for all of its copies."""
    _SHOWN.add(str(release))
    digest = hashlib.sha256((release / "manifest.json").read_bytes()).hexdigest()
    if digest in _SHOWN:
        return
    _SHOWN.add(digest)
    with tempfile.TemporaryDirectory() as folder:
        unchanged = Path(shutil.copytree(release, Path(folder) / "unchanged", symlinks=True))
        _SHOWN.add(str(unchanged))
        for path in (unchanged / "manifest.json", *unchanged.rglob("*.parquet")):
            damage(path, _as_the_package_writes(path.name, path.read_bytes()))
        list_files(unchanged)
        failures = audit_release(LocalEngine(), str(unchanged)).failures
        assert failures == [], failures


def read_manifest(release: Path) -> dict[str, Any]:
    """Return the manifest as it lies there."""
    document: dict[str, Any] = json.loads((release / "manifest.json").read_text())
    return document


def save_manifest(release: Path, document: dict[str, Any]) -> None:
    """Write a manifest as the package does."""
    rewrite(release / "manifest.json", manifest_text(document).encode())


def list_files(release: Path, *, explained: bool = True) -> None:
    """Let a manifest say what lies in its release now.

    Parameters
    ----------
    release : Path
    explained : bool
        Whether the files that explain a release are written again as well.
    """
    manifest = json.loads((release / "manifest.json").read_text())
    listed = files_of(release)
    if explained:
        # The last one by name: tests damage the first.
        last = max((release / "data").glob("part-*"))
        schema = orc.ORCFile(last).schema if last.suffix == ".orc" else pq.read_schema(last)
        contents = sidecar_contents(Manifest(manifest), schema, listed)
        for name, content in contents.items():
            rewrite(release / name, content)
        listed = files_of(release)
    manifest["files"] = [one.as_dict() for one in listed]
    save_manifest(release, manifest)


def files_of(release: Path) -> list[PublishedFile]:
    """Return the files of a release as they lie there: damaged ones with the rows as listed."""
    rows = {file["path"]: file["rows"] for file in read_manifest(release).get("files") or ()}
    files, listed = LocalFiles(), []
    for name, size in files.files_below(str(release)):
        if name == "manifest.json" or name.endswith(".crc") or (release / name).is_symlink():
            continue
        count = _rows_of(release / name, rows.get(name))
        listed.append(PublishedFile(name, size, count, files.sha256(str(release / name))))
    return listed


def _rows_of(path: Path, listed: int | None) -> int | None:
    try:
        if path.suffix == ".parquet":
            return int(pq.read_metadata(path).num_rows)
        if path.suffix == ".orc":
            return int(orc.ORCFile(path).nrows)
    except (pa.ArrowInvalid, OSError, UnicodeDecodeError):
        pass
    return listed
