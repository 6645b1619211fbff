"""The key of a ledger: what makes names of people and of sensitive values out of the values."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from anonspark.errors import ConfigurationError
from anonspark.ownership import fault_at, write_new

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
    """A secret key.

    Parameters
    ----------
    secret : bytes
        At most 64. Shown nowhere.
    path : str
        Absolute path of its file, beside which the last event of a ledger is remembered. Empty
        where it has none, and is of no ledger.
    """

    secret: bytes = field(repr=False)
    path: str = ""

    @classmethod
    def random(cls) -> Key:
        """Return a key that is used once, where there is no ledger."""
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
    """Read a key from a file of the local disk.

    Parameters
    ----------
    path : str
    key : str
        What named the file, for messages.

    Raises
    ------
    ConfigurationError
        If it cannot be read, is short, or is not of its owner alone.
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

    Raises
    ------
    ConfigurationError
        If it cannot be written.
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
