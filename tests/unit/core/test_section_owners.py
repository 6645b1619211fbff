"""Sections whose meaning another room knows are read by it, and refused where nobody does."""

from __future__ import annotations

import subprocess
import sys

import pytest

from anonspark.core.extensions import owner_of, register_owner
from anonspark.errors import ConfigurationError


def test_an_owner_is_loaded_when_its_section_is_met() -> None:
    loads: list[str] = []
    register_owner("weather", lambda: loads.append("now") or "forecast")
    assert loads == []
    assert owner_of("weather") == "forecast"
    assert loads == ["now"]


def test_a_section_that_nobody_owns_is_refused() -> None:
    with pytest.raises(
        ConfigurationError, match="climate: found a section that no loaded module reads"
    ):
        owner_of("climate")


@pytest.mark.parametrize("section", ["coding", "parts", "ledger"])
def test_the_core_alone_passes_over_nothing_that_it_cannot_check(section: str) -> None:
    code = f"""
from anonspark.core.extensions import owner_of
try:
    owner_of({section!r})
except Exception as error:
    print(type(error).__name__)
import anonspark.sharing
print(owner_of({section!r}).__name__.startswith("anonspark.sharing."))
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert ran.stdout.split() == ["ConfigurationError", "True"]
