"""What is known of a tool, and what it is asked to do; nothing but the standard library."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    Reader = Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame]

__all__ = ["Job", "Tool", "repeated", "serve"]

COUNT = "count"


@dataclass(frozen=True)
class Job:
    """What a tool is asked to do.

    Parameters
    ----------
    table : str
        CSV file with a header; the quasi-identifiers are whole numbers.
    output : str
        CSV file to write what the tool returned to, as it is.
    k : int
    quasi_identifiers : list of str
    sensitive : str
        Column that is published as it is.
    cores : int
        How many the tool may use, if it can use several.
    """

    table: str
    output: str
    k: int
    quasi_identifiers: list[str]
    sensitive: str
    cores: int

    def as_argument(self) -> str:
        """Return the job as :func:`serve` takes it."""
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class Tool:
    """Another tool.

    Parameters
    ----------
    name : str
        In tables, and of its file in ``requirements/`` and its environment.
    distribution : str
        What it is called on PyPI.
    module : str
        Its adapter, which does a :class:`Job` when run in the tool's environment.
    python : str
        Version that it needs.
    about : str
        What it does, in a few words.
    read : callable or None
        Takes what the tool returned (every column as text) and the table that it got (in the order
        of its rows, as numbers); returns a table that ``anonspark verify`` reads. None for a tool
        that publishes nothing.
    conversion : str
        What ``read`` does, one sentence for readers of the figures.
    keeps_sensitive : bool
        Whether every record is published with its own sensitive value.
    without_dependencies : bool
        Whether its requirements name every package because what it declares cannot be installed.
    """

    name: str
    distribution: str
    module: str
    python: str
    about: str
    read: Reader | None = None
    conversion: str = ""
    keeps_sensitive: bool = True
    without_dependencies: bool = False


def serve(do: Callable[[Job], None]) -> None:
    """Do the job on the command line."""
    do(Job(**json.loads(sys.argv[1])))


def repeated(classes: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each record of rows that tell in ``count`` how many they stand for."""
    times = classes[COUNT].astype(int)
    records: pd.DataFrame = classes.loc[classes.index.repeat(times)].drop(columns=COUNT)
    return records
