"""The section ``coding``: which agreed coding a configuration follows. Its owner reads the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Protocol

from pydantic import AfterValidator, BeforeValidator

from anonspark.config.problems import found
from anonspark.config.reading import TextReader
from anonspark.config.section import NonEmptyText, Section

CODING = "coding"
"""The section, whose owner is a :class:`CodingReader` (:mod:`anonspark.core.section_owners`)."""

_DIGITS = frozenset("0123456789abcdef")


def _require_digits(text: str) -> str:
    if len(text) != 64 or not _DIGITS.issuperset(text):
        raise ValueError(
            f"found {found(text)}. Expected 64 hexadecimal digits, as anonspark check prints them. "
            "Correct it, or remove it"
        )
    return text


class CodingOptions(Section):
    """The coding that a configuration follows."""

    path: NonEmptyText
    """The file of the coding. A local path, or any address."""

    fingerprint: Annotated[str, AfterValidator(_require_digits)] | None = None
    """Fingerprint of the coding that was agreed on, as check prints it: another file, or another
    hierarchy file that it names, is refused."""


def _path_alone(value: object) -> object:
    return {"path": value} if isinstance(value, str) else value


CodingKey = Annotated[CodingOptions | None, BeforeValidator(_path_alone)]
"""The form of the key ``coding`` of a configuration."""


class AgreedCoding(Protocol):
    """A coding as it was read."""

    @property
    def name(self) -> str:
        """Return its name among the holders."""

    @property
    def fingerprint(self) -> str:
        """Return its fingerprint, which differs from that of every other coding."""

    @property
    def digests(self) -> Mapping[str, str]:
        """SHA-256 of the hierarchy files that were agreed on, by attribute."""

    def as_dict(self) -> dict[str, object]:
        """Return what a manifest says of it."""


class CodingReader(Protocol):
    """Have the owner of the section read the coding that it names."""

    def merge_coding(
        self, document: dict[str, Any], read: TextReader, problems: list[str]
    ) -> AgreedCoding | None:
        """Put what a coding says into the configuration that names it.

        Parameters
        ----------
        document : dict
            The configuration before it is checked, with the key ``coding``. It is changed.
        read : callable
            Reads the coding and its hierarchy files where they lie at addresses. Others are local.
        problems : list of str
            What is wrong is added.

        Returns
        -------
        AgreedCoding or None
            None where it cannot be read, so that nothing is known of the attributes.

        Raises
        ------
        SparkNeededError
            If it lies where only Spark's Hadoop reaches it.
        """
