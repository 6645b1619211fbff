"""A verifier that a stranger reads in ten minutes: one file, copied into each release.

Nothing of the package imports that file, and it imports nothing of the package.
"""

from __future__ import annotations

from importlib.resources import files

VERIFIER = "check_release.py"
"""Name of the file, here and in a release."""


def verifier_text() -> bytes:
    """Return the file as it lies in every release of this version."""
    # The package may be a zip, as on a cluster.
    return files(__name__).joinpath(VERIFIER).read_bytes()
