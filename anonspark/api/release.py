"""What anonymizing a table in memory returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Generic, TypeVar

from anonspark.config import Configuration, parse_configuration
from anonspark.config.reading import TextReader
from anonspark.redaction import Redacted
from anonspark.verification.result import Verification

Frame = TypeVar("Frame")
"""A table of the kind that was given: a DataFrame of Spark, pandas or polars, or Arrow's."""

GIVEN = "the given DataFrame"
"""What messages call the table."""

DATA = "data"


@dataclass(frozen=True, repr=False)
class Release(Redacted, Generic[Frame]):
    """An anonymized table with its metrics, over private files.

    Its tables are of the kind that was given: lazy DataFrames of Spark, or pandas', polars' or
    Arrow's tables, which are read from the files once. It is a context manager: at its end, or with
    :meth:`close`, the files are removed; those in a temporary directory of this machine also when
    the interpreter ends. So write or cache what you keep.

    Parameters
    ----------
    path : str
        Directory of the files, in the layout of every release.
    data : DataFrame
        The published records.
    classes, rounds, summary, attributes, privacy, risk : DataFrame
        The metrics tables.
    manifest : dict
        What the release is and how it was made.
    """

    path: str
    data: Frame
    classes: Frame
    rounds: Frame
    summary: Frame
    attributes: Frame
    privacy: Frame
    risk: Frame
    manifest: dict[str, Any]
    _prove: Callable[[Frame | None, Frame | None], Verification] = field(repr=False)
    _close: Callable[[], None] = field(repr=False)

    @classmethod
    def of(
        cls,
        path: str,
        manifest: dict[str, Any],
        read: Callable[[str], Frame],
        prove: Callable[[Frame | None, Frame | None], Verification],
        close: Callable[[], None],
    ) -> Release[Frame]:
        """Return a release of some files.

        Parameters
        ----------
        path : str
        manifest : dict
        read : callable
            Takes the name of a table.
        prove : callable
            Takes an original and a population.
        close : callable
        """
        names = (DATA, "classes", "rounds", "summary", "attributes", "privacy", "risk")
        tables = {name: read(name) for name in names}
        return cls(path=path, **tables, manifest=manifest, _prove=prove, _close=close)

    def verify(
        self, *, original: Frame | None = None, population: Frame | None = None
    ) -> Verification:
        """Measure what the files keep of the promise; see :func:`anonspark.verify`.

        Parameters
        ----------
        original : DataFrame or None
            The table that was anonymized, for truthfulness and the linkage attack.
        population : DataFrame or None
            What an attacker may have, for the linkage attack and the journalist's risk.
        """
        return self._prove(original, population)

    def close(self) -> None:
        """Remove the files; lazy DataFrames are of no use any more."""
        self._close()

    def __enter__(self) -> Release[Frame]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def given_input(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document that reads what it is given."""
    return {**config, "input": {"path": GIVEN, **config.get("input", {})}}


def given_configuration(
    config: Mapping[str, Any] | Configuration,
    path: str,
    read: TextReader,
    *,
    needs_seed: bool = True,
) -> Configuration:
    """Return a configuration that writes to a path and reads what it is given."""
    if isinstance(config, Configuration):
        output = config.output.model_copy(update={"path": path, "mode": "error"})
        return config.model_copy(update={"output": output})
    return parse_configuration(
        given_input(config) | {"output": {**config.get("output", {}), "path": path}},
        read=read,
        needs_seed=needs_seed,
    )
