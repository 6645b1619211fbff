"""The seed from wherever it is kept: in the configuration, in a file of its own, or in a variable.

It is a secret, so nothing here quotes it: not what was found in the file nor in the variable.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Any

from anonspark.config.reading import TextReader, local_path, read_named_text, read_or_explain
from anonspark.errors import ConfigurationError, SparkNeededError
from anonspark.redaction import redact

SEED_VARIABLE = "ANONSPARK_SEED"
"""Environment variable that may hold the seed."""

_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_EXPECTED = f"Expected one whole number from {_SMALLEST} to {_LARGEST}"
_NUMBER = re.compile(r"[-+]?[0-9]{1,30}")


def fill_in_seed(
    document: dict[str, Any], read: TextReader, problems: list[str], *, needed: bool
) -> SparkNeededError | None:
    """Put the seed into a configuration that says where it is kept.

    Parameters
    ----------
    document : dict
        The configuration before it is checked. Its ``execution.seed`` is set.
    read : callable
        Reads the file where it is at an address. Others are local.
    problems : list of str
        What is wrong is added.
    needed : bool
        Whether the seed is asked for at all. If not, neither file nor variable is read, so that
        readers of a release need no secret.

    Returns
    -------
    SparkNeededError or None
        To be raised where nothing else is wrong: the file can be read through Spark alone.
    """
    execution = document.get("execution", {})
    if not isinstance(execution, dict):
        # Reported with everything else that has the wrong type.
        return None
    path = execution.get("seed_file")
    keys = [f"execution.{key}" for key in ("seed", "seed_file") if execution.get(key) is not None]
    if needed and SEED_VARIABLE in os.environ:
        keys.append(f"the environment variable {SEED_VARIABLE}")
    if len(keys) > 1:
        problems.append(
            f"{' and '.join(keys)}: found the seed in {len(keys)} places. Expected it in one of "
            f"execution.seed, execution.seed_file and {SEED_VARIABLE}. Keep one of them"
        )
        execution.pop("seed_file", None)
        return None
    if path is None or not needed:
        # What is no text is left to the check of types.
        if path is None or isinstance(path, str):
            execution.pop("seed_file", None)
        if needed and SEED_VARIABLE in os.environ:
            seed = _number(os.environ[SEED_VARIABLE])
            if seed is None:
                problems.append(
                    f"{SEED_VARIABLE}: the environment variable holds something else. {_EXPECTED}. "
                    "Correct it, or unset it"
                )
            else:
                document["execution"] = execution | {"seed": seed}
        return None
    if not isinstance(path, str) or not path:
        return None
    try:
        execution["seed"] = _read_seed(path, read)
    except SparkNeededError as error:
        # The rest is checked meanwhile.
        execution["seed"] = 0
        return error
    except ConfigurationError as error:
        execution.pop("seed_file")
        problems += error.problems
    return None


def _number(text: str) -> int | None:
    """Return the number that a text holds, or None if it holds anything else."""
    if not _NUMBER.fullmatch(text.strip()):
        return None
    number = int(text)
    return number if _SMALLEST <= number <= _LARGEST else None


def _read_seed(path: str, read: TextReader) -> int:
    """Read the file of the seed.

    Raises
    ------
    ConfigurationError
        If it cannot be read, or holds something else. What it holds is not quoted.
    """
    shown = redact(path)
    # A message is one line, whatever the path.
    where = f"execution.seed_file: {shown if shown.isprintable() else repr(shown)}"
    expected = "a file that holds the seed"
    text = read_or_explain(path, lambda name: read_named_text(name, read), where, expected)
    seed = _number(text)
    if seed is None:
        raise ConfigurationError(
            f"{where}: the file holds something else. {_EXPECTED} and nothing else. Correct it"
        )
    return seed


def is_readable_by_others(path: str) -> bool:
    """Return whether another user than its owner may read a file of the local disk.

    Parameters
    ----------
    path : str
        Of the file of the seed. Nothing is known of addresses of other file systems.
    """
    try:
        mode = Path(local_path(path) or path).stat().st_mode
    except (OSError, ValueError):
        # Not on this disk, or gone since it was read.
        return False
    return stat.S_ISREG(mode) and bool(mode & (stat.S_IRGRP | stat.S_IROTH))
