"""Recognizers of Presidio are asked where it is installed; here by a stand-in with its names."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

from anonspark.profiling import presidio

WALLETS = [f"1{'x' * 20}{number}" for number in range(6)]


@dataclass
class _Result:
    start: int
    end: int
    score: float


@dataclass
class _PatternRecognizer:
    supported_entities: list[str]
    pattern: str
    score: float = 0.9

    def analyze(self, text: str, entities: list[str], _nlp_artifacts: None) -> list[_Result]:
        assert entities == self.supported_entities
        found = re.search(self.pattern, text)
        return [_Result(found.start(), found.end(), self.score)] if found else []


class _Registry:
    recognizers: list[Any]

    def load_predefined_recognizers(self) -> None:
        self.recognizers = [
            object(),
            _PatternRecognizer(["URL"], ".*"),
            _PatternRecognizer(["US_BANK_NUMBER"], ".*", 0.05),
            _PatternRecognizer(["CRYPTO"], "1x{20}[0-9]"),
        ]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    module = ModuleType("presidio_analyzer")
    module.PatternRecognizer = _PatternRecognizer  # type: ignore[attr-defined]
    module.RecognizerRegistry = _Registry  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "presidio_analyzer", module)
    presidio._recognizers.cache_clear()
    yield
    presidio._recognizers.cache_clear()


@pytest.mark.usefixtures("installed")
def test_whole_values_are_recognized() -> None:
    found = presidio.recognize_with_presidio([*WALLETS, "odd"])
    assert found is not None
    assert (found.kind, round(found.share, 2)) == ("identity number (crypto, Presidio)", 0.86)
    assert presidio.recognize_with_presidio([f"it is {one}" for one in WALLETS]) is None
    assert presidio.recognize_with_presidio(WALLETS[:4]) is None
    assert presidio.recognize_with_presidio(["a", "b", "c", "d", "e"]) is None


def test_nothing_is_told_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "presidio_analyzer", None)
    presidio._recognizers.cache_clear()
    assert presidio.recognize_with_presidio(WALLETS) is None
    presidio._recognizers.cache_clear()
