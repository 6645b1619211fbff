"""What is shown, kept, counted or refused, at k - 1, k and k + 1 records or people."""

from __future__ import annotations


def test_nothing() -> None:
    pass
