"""Downloads the Adult data set of the UCI Machine Learning Repository and writes it as tables.

python tools/fetch_adult.py data

Nothing is written before both downloads are complete and are UCI's originals by their SHA-256.
Originals that are in the folder already are not downloaded again, so you can bring them by hand.
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import sys
import urllib.request
from collections.abc import Iterable
from pathlib import Path

URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult"

COLUMNS = (
    "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,"
    "capital-gain,capital-loss,hours-per-week,native-country,income"
)

# Many copies differ from the originals by a few bytes, and the figures with them.
CHECKSUMS = {
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}

MOST_BYTES = 16 << 20


def read_original(name: str, directory: Path, url: str) -> bytes:
    """Return a file of UCI's, from the folder or from its address. Any other one ends it."""
    present = directory / name
    if present.is_file() and is_original(name, content := present.read_bytes()):
        return content
    try:
        with urllib.request.urlopen(f"{url}/{name}", timeout=30) as response:  # noqa: S310
            content = response.read(MOST_BYTES)
    except (OSError, http.client.HTTPException, ValueError) as error:
        sys.exit(f"{url}/{name}: cannot be downloaded ({error}). Put the file into {directory}")
    if not is_original(name, content):
        sys.exit(f"{url}/{name}: is not UCI's original. Download it from {URL}")
    return content


def is_original(name: str, content: bytes) -> bool:
    """Return whether a file has UCI's checksum."""
    return hashlib.sha256(content).hexdigest() == CHECKSUMS[name]


def rows_of(content: bytes) -> list[str]:
    """Return the rows: UCI's have blanks round values, remarks, and dots after labels."""
    lines = content.decode("ascii").splitlines()
    return [line.rstrip(".").replace(" ", "") for line in lines if line and line[0] != "|"]


def table_of(rows: Iterable[str]) -> bytes:
    """Return a table with a header. No value needs quotes."""
    return "".join(f"{row}\n" for row in (COLUMNS, *rows)).encode("ascii")


def fetch_adult(directory: Path, url: str = URL) -> None:
    """Write both originals and three tables.

    ``adult.csv`` has the 30,162 complete rows of ``adult.data``, ``adult_raw.csv`` all its 32,561
    rows with ``?`` for a missing value, ``adult_test.csv`` the 16,281 rows of ``adult.test``.
    """
    files = {name: read_original(name, directory, url) for name in CHECKSUMS}
    rows = rows_of(files["adult.data"])
    files["adult.csv"] = table_of(row for row in rows if "?" not in row)
    files["adult_raw.csv"] = table_of(rows)
    files["adult_test.csv"] = table_of(rows_of(files["adult.test"]))
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = directory / name
        if name not in CHECKSUMS and path.exists() and path.read_bytes() != content:
            sys.exit(f"{path}: is another table. Choose another folder, or move it elsewhere")
    for name, content in files.items():
        (directory / name).write_bytes(content)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    fetch_adult(parser.parse_args().directory)
