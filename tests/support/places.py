"""Where this repository and what the tests need of it lies."""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
# The hierarchies of the theses' full-domain recoding, a file for an attribute of Adult.
HIERARCHIES = REPOSITORY / "conf" / "hierarchies" / "adult-vural-2017"
