"""Releases that somebody changes behind our back."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from helpers import configuration_file, write_table

from anonspark.config import load_configuration
from anonspark.engine.files import PublishedFile
from anonspark.engine.local.files import LocalFiles
from anonspark.engine.parquet_encoding import encode_table
from anonspark.engine.protocol import Engine
from anonspark.pipeline.run import run
from anonspark.release.manifest import Manifest, manifest_text
from anonspark.release.sidecar_files.contents import sidecar_contents


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
    """Write a file as somebody does who does not know Hadoop's checksums."""
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def list_files(release: Path, *, explained: bool = True) -> None:
    """Let a manifest say what lies in its release now.

    Parameters
    ----------
    release : Path
    explained : bool
        Whether the files that explain a release are written again as well.
    """
    manifest = json.loads((release / "manifest.json").read_text())
    listed = _listed(release)
    if explained:
        # The last one by name: tests damage the first.
        schema = pq.read_schema(max((release / "data").glob("part-*")))
        contents = sidecar_contents(Manifest(manifest), schema, listed)
        for name, content in contents.items():
            rewrite(release / name, content)
        listed = _listed(release)
    manifest["files"] = [one.as_dict() for one in listed]
    rewrite(release / "manifest.json", manifest_text(manifest).encode())


def _listed(release: Path) -> list[PublishedFile]:
    files, listed = LocalFiles(), []
    for name, size in files.files_below(str(release)):
        path = release / name
        is_table = path.suffix == ".parquet" and path.read_bytes().endswith(b"PAR1")
        rows = pq.read_metadata(path).num_rows if is_table else None
        listed.append(PublishedFile(name, size, rows, files.sha256(str(path))))
    return [one for one in listed if one.path != "manifest.json"]
