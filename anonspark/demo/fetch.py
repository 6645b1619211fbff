"""Download the Adult data set of the UCI Machine Learning Repository and bring it into shape."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Final

from anonspark.errors import ConfigurationError, DataError, EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ADULT_URL: Final = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/"
"""The folder of the UCI archive that holds the data set."""

ADULT_COLUMNS: Final = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
)
"""The columns of the data set. UCI's files have no header."""

# Many copies of the files differ from the original by a few bytes, and the figures with them.
_CHECKSUMS: Final = {
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}
_TIMEOUT_SECONDS: Final = 30.0
_CHUNK_BYTES: Final = 1 << 16
_LIMIT_BYTES: Final = 16 << 20  # the larger file has 4 MB; a server must not fill the disk


def fetch_adult(directory: Path, *, base_url: str = ADULT_URL) -> list[Path]:
    """Download the Adult data set, check it and write it as tables with a header.

    Nothing is moved to the folder before all five files are complete: after an error it holds what
    it held before. A download that is there already and has the right checksum is used again, so
    that the two files can be brought by hand to a machine without a network.

    Parameters
    ----------
    directory : Path
        Folder to write to. Made if it does not exist. Downloads of the same names that are not
        UCI's originals are replaced.
    base_url : str
        Folder, ``https`` or ``http``, that holds ``adult.data`` and ``adult.test``.

    Returns
    -------
    list of Path
        ``adult.data`` and ``adult.test`` as downloaded. ``adult.csv`` has the 30,162 complete rows
        of ``adult.data``. ``adult_raw.csv`` has all its 32,561 rows, with ``?`` for a missing
        value, and ``adult_test.csv`` the 16,281 rows of ``adult.test``, also with ``?``.

    Raises
    ------
    ConfigurationError
        If `base_url` is of another kind, `directory` cannot be made, or holds a table of such a
        name that says something else.
    DataError
        If a download is not the original.
    EnvironmentProblem
        If the files cannot be downloaded or written.
    """
    if urllib.parse.urlsplit(base_url).scheme not in ("https", "http"):
        raise ConfigurationError(f"{base_url}: must begin with https:// or http://.")
    made = _make_directory(directory)
    try:
        # Beside its destination, so that moving a file there is one step of the file system.
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=directory) as temporary:
            staged = _stage(Path(temporary), directory, base_url)
            _require_own(staged, directory)
            return [path.replace(directory / path.name) for path in staged]
    except BaseException as error:
        for folder in made:
            with contextlib.suppress(OSError):  # somebody else may have begun to use it
                folder.rmdir()
        if isinstance(error, OSError):
            raise EnvironmentProblem(
                f"{directory}: cannot be written to ({error.strerror}). Free some space, or give"
                " another folder."
            ) from error
        raise


def _require_own(staged: list[Path], directory: Path) -> None:
    """Check that what is replaced was written here before: a table may be a user's own work."""
    for path in staged:
        there = directory / path.name
        is_table = path.name not in _CHECKSUMS
        if there.is_symlink() or (
            is_table
            and there.exists()
            and not (there.is_file() and there.read_bytes() == path.read_bytes())
        ):
            raise ConfigurationError(
                f"{there}: is there already and is another table than the one that is fetched."
                " Give another folder, or move it elsewhere."
            )


def _make_directory(directory: Path) -> list[Path]:
    """Make a folder and those above it, and return what was made, innermost first."""
    missing = [folder for folder in (directory, *directory.parents) if not folder.exists()]
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"{directory}: cannot be made a folder ({error.strerror}). Give another one."
        ) from error
    return missing


def _stage(temporary: Path, directory: Path, base_url: str) -> list[Path]:
    """Put all five files into a folder of their own."""
    downloads = []
    for name, checksum in _CHECKSUMS.items():
        path = temporary / name
        present = directory / name
        if present.is_file() and hashlib.sha256(present.read_bytes()).hexdigest() == checksum:
            path.write_bytes(present.read_bytes())
        else:
            _download(f"{base_url.rstrip('/')}/{name}", path, checksum)
        downloads.append(path)
    rows = list(_rows(downloads[0]))
    return [
        *downloads,
        _write(temporary / "adult.csv", (row for row in rows if "?" not in row)),
        _write(temporary / "adult_raw.csv", rows),
        _write(temporary / "adult_test.csv", _rows(downloads[1])),
    ]


def _download(url: str, path: Path, checksum: str) -> None:
    """Write what is at an address to a file, and check it."""
    by_hand = (
        "Check the network and the proxy settings (https_proxy), or download the file elsewhere and"
        f" put it into the folder as {path.name}."
    )
    try:
        # The scheme was checked, and the library follows redirects to web addresses alone.
        response = urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS)  # noqa: S310
    except urllib.error.HTTPError as error:
        error.close()
        raise EnvironmentProblem(f"{url}: the server answered {error.code}. {by_hand}") from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise EnvironmentProblem(f"{url}: cannot be reached ({reason}). {by_hand}") from error
    digest = hashlib.sha256()
    with response, path.open("wb") as file:
        for chunk in _chunks(response, url, by_hand):
            digest.update(chunk)
            file.write(chunk)
    if digest.hexdigest() != checksum:
        raise DataError(
            f"{url}: is not UCI's original {path.name}: its SHA-256 is {digest.hexdigest()},"
            f" expected was {checksum}. Download it from {ADULT_URL}."
        )


def _chunks(response: http.client.HTTPResponse, url: str, by_hand: str) -> Iterator[bytes]:
    """Yield the body of a response piece by piece, up to a limit."""
    received = 0
    while True:
        try:
            chunk = response.read(_CHUNK_BYTES)
            if not chunk and response.length:  # read() passes over this in silence
                raise http.client.IncompleteRead(b"", response.length)
        except (OSError, http.client.HTTPException) as error:
            raise EnvironmentProblem(
                f"{url}: the download broke off ({type(error).__name__}). {by_hand}"
            ) from error
        if not chunk:
            return
        received += len(chunk)
        if received > _LIMIT_BYTES:
            raise DataError(
                f"{url}: is not UCI's original: it is larger than {_LIMIT_BYTES} bytes. Download it"
                f" from {ADULT_URL}."
            )
        yield chunk


def _rows(path: Path) -> Iterator[list[str]]:
    """Yield the rows of a file in UCI's form: blanks round values, remarks, dots after labels."""
    for line in path.read_text(encoding="ascii").splitlines():
        if line and not line.startswith("|"):
            yield [value.strip() for value in line.rstrip(".").split(",")]


def _write(path: Path, rows: Iterable[list[str]]) -> Path:
    """Write rows below a header. No value of the data set needs quotes."""
    lines = [",".join(row) + "\n" for row in (ADULT_COLUMNS, *rows)]
    path.write_text("".join(lines), encoding="ascii", newline="\n")
    return path
