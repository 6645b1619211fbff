"""A chain of files, each signed with a key: number, hash of the file before it, signature."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from anonspark.engine.files import Files
from anonspark.errors import ConfigurationError, DataError
from anonspark.ownership import fault_at, write_new
from anonspark.sharing.ledger.lock import create_whole, digest_of, text_of

KEY_BYTES = 32
"""Bytes of a key at least, and of one that is made here."""

SUBJECT_BYTES = 16
"""Bytes of the name of a person."""

_LARGEST = 1 << 16
_MOST_OF_BLAKE = hashlib.blake2b.MAX_KEY_SIZE
_FIXED = b"anonspark ledger key"
_FOR_VALUES = b"anonspark sensitive values"
_FOR_SIGNATURES = b"anonspark signature\0"


@dataclass(frozen=True)
class Key:
    """A secret key of at most 64 bytes, which is shown nowhere.

    ``path`` is the absolute path of its file, beside which the last event of a ledger is
    remembered. It is empty for a key of no ledger.

    >>> key = Key(b"secret")
    >>> key, len(key.fingerprint), key.sign("a") == key.sign("a")
    (Key(path=''), 16, True)
    """

    secret: bytes = field(repr=False)
    path: str = ""

    @classmethod
    def random(cls) -> Key:
        """Return a key that is used once, without a ledger."""
        return cls(secrets.token_bytes(KEY_BYTES))

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that distinguish keys, and reveal nothing about them."""
        return self._digest(_FIXED, 8).hex()

    @property
    def of_values(self) -> int:
        """64 bits, signed: the key of the hashes of sensitive values."""
        return int.from_bytes(self._digest(_FOR_VALUES, 8), "big", signed=True)

    def sign(self, text: str) -> str:
        """Return the signature of a text, in hexadecimal digits."""
        return self._digest(_FOR_SIGNATURES + text.encode(), 32).hex()

    def _digest(self, text: bytes, size: int) -> bytes:
        return hashlib.blake2b(text, key=self.secret, digest_size=size).digest()


def read_key(path: str, key: str = "ledger.key_file") -> Key:
    """Read a key from a file of the local disk. ``key`` names the option in messages.

    Raises ConfigurationError if it cannot be read, is short, or other users can read it.
    """
    try:
        absolute = Path(path).absolute()
        fault = fault_at(absolute, "private")
        if fault is not None:
            raise ConfigurationError(f"{key}: {path} {fault}")
        with absolute.open("rb") as file:
            content = file.read(_LARGEST)
    except OSError as error:
        raise ConfigurationError(
            f"{key}: the file cannot be read ({error.strerror or 'it is no path'}). Expected the "
            "key of the ledger at a local path. Check the path, or make one with anonspark ledger "
            "init"
        ) from error
    if len(content) < KEY_BYTES:
        raise ConfigurationError(
            f"{key}: found {len(content)} bytes. Expected {KEY_BYTES} at least. Make a key with "
            "anonspark ledger init"
        )
    if len(content) > _MOST_OF_BLAKE:
        content = hashlib.blake2b(content).digest()
    return Key(content, str(absolute))


def make_key(path: str) -> Key:
    """Write a random key to a new file that its owner alone can read.

    Raises ConfigurationError if it cannot be written.
    """
    content = secrets.token_bytes(KEY_BYTES)
    try:
        write_new(path, content, 0o600)
    except OSError as error:
        raise ConfigurationError(
            f"--key-file: the file cannot be written ({error.strerror or 'it is no path'}). "
            "Expected a local path of a directory that is there. Choose another"
        ) from error
    return Key(content, str(Path(path).absolute()))


CHANGED = (ValueError, TypeError, KeyError, RecursionError)
"""Errors of reading a file that is not as it was written."""

Sign = Callable[[str], str]
"""Signs a text with a key. Where there is none, the SHA-256 shows damage."""

_SIGNATURE = "signature"

# With checksums of Hadoop's local file system.
_ENTRY_OR_DRAFT = re.compile(r"[0-9]+\.json|\.\w+\.json\.[0-9a-f]{16}|\..*\.crc")


@dataclass(frozen=True)
class Link:
    """A file of a chain: its number from 1 on, its path, and its content without the signature."""

    number: int
    path: str
    content: Mapping[str, Any]

    @property
    def time(self) -> str:
        """The time when it was written, in UTC, to the second."""
        return str(self.content["time"])

    @property
    def type(self) -> str:
        """The kind of an event."""
        return str(self.content["type"])


def not_read(path: str) -> str:
    """Say that a file cannot be read.

    >>> not_read("a.json")[:21]
    'a.json cannot be read'
    """
    return f"{path} cannot be read. Expected a file. Check permissions, and what is there"


def read_chain(
    files: Files,
    head: tuple[str, str],
    directory: str,
    path_of: Callable[[int], str],
    sign: Sign | None = digest_of,
) -> tuple[list[Link], list[str]]:
    """Read all files of a chain, and check that none is missing or was changed.

    ``head`` are path and text of the file before the first one, ``path_of`` returns the path of a
    number. ``sign`` returns the signature of a text, or is None if signatures are not checked.
    Returns the links, and the SHA-256 of the head and of each file. Raises DataError.
    """
    previous, text = head
    digests = [digest_of(text)]
    links: list[Link] = []
    remaining = deque(_files_of(files, directory, previous))
    while remaining:
        number = len(links) + 1
        path = path_of(number)
        if remaining[0] == path:
            remaining.popleft()
        elif not files.exists(path):
            raise DataError(
                f"ledger: {path} is missing, and later ones are there. Nothing can be added behind "
                "a gap. Bring the file back from a copy"
            )
        try:
            text = files.read_text(path)
            content = json.loads(text)
            signature = content.pop(_SIGNATURE)
            signed = _signed(text, signature)
            stated = (content["number"], content["previous"])
            _ = content["time"]
        except OSError as error:
            raise DataError(f"ledger: {not_read(path)}") from error
        except CHANGED as error:
            raise DataError(
                f"ledger: {path} is not as anonspark writes it: it was changed, or cut off. Bring "
                "the file back from a copy"
            ) from error
        if sign is not None and signature != sign(signed):
            raise DataError(
                f"ledger: {path} has another signature than its content gives: it was changed. "
                "Bring the file back from a copy"
            )
        if stated != (number, digests[-1]):
            raise DataError(
                f"ledger: {path} does not follow from the file before it, {previous}: one of the "
                "two was changed. Bring both back from a copy"
            )
        links.append(Link(number, path, content))
        digests.append(digest_of(text))
        previous = path
    return links, digests


def _signed(text: str, signature: str) -> str:
    r"""Return the part of a file's text that is signed: all but its last member.

    It is cut out, because writing the content anew takes ten times as long as reading it. Raises
    ValueError if the signature is not at the end.

    >>> _signed('{\n "a": 1,\n "signature": "0f"\n}\n', "0f")
    '{\n "a": 1\n}\n'
    """
    end = f',\n "{_SIGNATURE}": "{signature}"\n}}\n'
    if not text.endswith(end):
        raise ValueError
    return text.removesuffix(end) + "\n}\n"


def _files_of(files: Files, directory: str, head: str) -> list[str]:
    """Return the files of a chain in their order. Drafts of killed processes are passed over.

    Raises DataError if something else lies there, which is not the head.
    """
    head = head.rpartition("/")[2]
    names = [path.rpartition("/")[2] for path in files.children(directory)]
    strange = [name for name in names if name != head and not _ENTRY_OR_DRAFT.fullmatch(name)]
    if strange:
        raise DataError(
            f"ledger: {directory}/{strange[0]} was not put there by anonspark. Remove it, or move "
            "it elsewhere"
        )
    entries = [name for name in names if name != head and not name.startswith(".")]
    return [f"{directory}/{name}" for name in sorted(entries, key=lambda name: (len(name), name))]


def append_link(
    files: Files,
    path: str,
    digests: Sequence[str],
    content: Mapping[str, Any],
    sign: Sign = digest_of,
) -> tuple[Link, str]:
    """Write the next file of a chain at a path, signed, and return it with its SHA-256.

    ``digests`` are those of the head and of each file before. Raises FileExistsError if another
    process has written the file of this number.
    """
    document = {"number": len(digests), "previous": digests[-1], "time": now(), **content}
    text = text_of({**document, _SIGNATURE: sign(text_of(document))})
    create_whole(files, path, text)
    return Link(len(digests), path, document), digest_of(text)


def now() -> str:
    """Return the time in UTC, to the second.

    >>> now().endswith("Z")
    True
    """
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
