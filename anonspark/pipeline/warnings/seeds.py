"""Warnings about the seed; none quotes it."""

from __future__ import annotations

from anonspark.config import Configuration
from anonspark.config.seed import is_readable_by_others
from anonspark.pipeline.warnings.release_warning import ReleaseWarning

# So many can be tried in minutes, against the fingerprint that the manifest holds.
_GUESSABLE = 2**32

# No number is proposed: logs are read by many, and what stands in one is no secret.
_DRAW = "python3 -c 'import secrets; print(secrets.randbits(64) - 2**63)'"


def seed_warnings(configuration: Configuration) -> list[ReleaseWarning]:
    """Warn of a seed that others know, could guess, or can read.

    Parameters
    ----------
    configuration : Configuration
        Of a run that is not the demo.
    """
    execution = configuration.execution
    found = []
    if abs(execution.seed) < _GUESSABLE:
        what = "is 0, the default, which everybody knows"
        if execution.seed:
            what = "is a small number, which can be found by trying"
        found.append(
            ReleaseWarning(
                "guessable_seed",
                f"execution.seed {what}: an attacker can test guesses about who is in which class. "
                "For real data draw one at random from the whole range, and keep it secret in a "
                "file that execution.seed_file names",
                advice=f"; this draws one: (umask 077; {_DRAW} > seed)",
            )
        )
    if execution.seed_file is not None and is_readable_by_others(execution.seed_file):
        found.append(
            ReleaseWarning(
                "seed_file_readable",
                "execution.seed_file: others than its owner may read the file, and so test guesses "
                "about who is in which class. Take the right from them (chmod 600)",
            )
        )
    return found
