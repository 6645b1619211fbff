"""Write the zip for ``spark-submit --py-files``: the package with its data, the same bytes always.

python distribution/package_zip.py dist/anonspark-0.1.0.zip
"""

from __future__ import annotations

import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = REPOSITORY / "anonspark"

# The earliest time that a zip can hold.
NO_TIME = (1980, 1, 1, 0, 0, 0)
READABLE_FILE = 0o100644


def write_zip(target: Path) -> None:
    """Write the zip.

    Parameters
    ----------
    target : Path
        Where to; what is there is replaced.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_suffix(".unfinished")
    sources = (path for path in PACKAGE.rglob("*") if path.is_file())
    with ZipFile(unfinished, "w", ZIP_DEFLATED) as written:
        for source in sorted(sources, key=lambda path: path.relative_to(REPOSITORY).as_posix()):
            # Python loads no machine code from a zip: the archive has it.
            if {"__pycache__", "_built"} & set(source.parts):
                continue
            entry = ZipInfo(source.relative_to(REPOSITORY).as_posix(), NO_TIME)
            entry.compress_type = ZIP_DEFLATED
            entry.external_attr = READABLE_FILE << 16
            written.writestr(entry, source.read_bytes())
    unfinished.replace(target)


if __name__ == "__main__":
    write_zip(Path(sys.argv[1]))
    print(sys.argv[1])
