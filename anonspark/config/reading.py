"""Reading the small files that a user names: local ones here, others through Spark's Hadoop."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from anonspark.errors import ConfigurationError, SparkNeededError
from anonspark.redaction import redact

TextReader = Callable[[str], str]
"""Returns the text of a file. Raises OSError where it cannot, UnicodeDecodeError if it is none."""

# Two letters at least: one is a drive of Windows.
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def is_address(path: str | Path) -> bool:
    r"""Return whether a path names its file system. Other paths are local.

    >>> is_address("hdfs://host/people"), is_address("people.csv"), is_address("C:\\people.csv")
    (True, False, False)
    """
    return _ADDRESS.match(str(path)) is not None


def read_local_text(path: str) -> str:
    """Read a UTF-8 file of the local disk.

    Raises SparkNeededError if it lies on another file system, OSError or UnicodeDecodeError if it
    cannot be read.
    """
    if is_address(path):
        raise SparkNeededError(
            f"{redact(path)}: lies on a file system of Hadoop, which is reached through Spark "
            "alone. Give a path of the local disk, or a reader such as "
            "anonspark.engine.spark.filesystem.FileSystem(spark).read_document"
        )
    return Path(path).read_text(encoding="utf-8-sig")


def local_path(path: str) -> str | None:
    """Return the local path of an address, or None if it is remote.

    >>> local_path("file:///etc/seed"), local_path("hdfs://host/seed")
    ('/etc/seed', None)
    """
    if not path.startswith("file:"):
        return None
    parts = urlsplit(path)
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        return None
    return unquote(parts.path)


def read_named_text(path: str, read: TextReader) -> str:
    """Read a file that a configuration names: local ones here, others with ``read``.

    Where the configuration itself lies makes no difference.
    """
    local = local_path(path) if is_address(path) else path
    return read(path) if local is None else read_local_text(local)


def read_or_explain(path: str, read: TextReader, where: str, expected: str) -> str:
    """Read a file. Raises ConfigurationError, which names the file and what was expected."""
    try:
        return read(path)
    except FileNotFoundError:
        reason = f"no such file. Expected {expected}. Check the path"
    except IsADirectoryError:
        reason = f"found a directory. Expected {expected}. Check the path"
    except UnicodeDecodeError:
        reason = f"the file is not UTF-8 text. Expected {expected}. Check the path"
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or "it is no path"
        reason = f"the file cannot be read ({cause}). Check the path and its permissions"
    raise ConfigurationError(f"{where}: {reason}")


def sibling(path: str | Path, named: str) -> str:
    """Resolve a path relative to the directory of the file that names it.

    >>> sibling("conf/people.yaml", "ages.csv")
    'conf/ages.csv'
    """
    if is_address(path):
        return named if is_address(named) else posixpath.join(posixpath.dirname(str(path)), named)
    return str(Path(path).parent / named)
