"""Variables of the environment in a configuration file, and where its messages point to."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import cases, data_beside
from hypothesis import given
from hypothesis import strategies as st

from anonspark.comparison.grid import load_grid
from anonspark.config import Configuration, load_configuration
from anonspark.config.variables import escaped, fill_in
from anonspark.core.run_ids import RUN_DATE_VARIABLE
from anonspark.errors import ConfigurationError
from anonspark.redaction import redact

SECRET = "Tr0ub4dor-and-3"  # noqa: S105 - it unlocks nothing
TEXT: str = data_beside(__file__)["TEXT"]


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEOPLE_DIR", f"/data/{SECRET}")
    monkeypatch.setenv("READER", SECRET)
    monkeypatch.setenv(RUN_DATE_VARIABLE, "2026-01-31")
    for name in ("PEOPLE_K", "SIZE"):
        monkeypatch.delenv(name, raising=False)


def load(folder: Path, text: str = TEXT, *overrides: str) -> Configuration:
    path = folder / "visits.yaml"
    path.write_text(text)
    return load_configuration(path, overrides)


def problems(folder: Path, text: str, *overrides: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load(folder, text, *overrides)
    start = f"{folder / 'visits.yaml'}:"
    return [problem.removeprefix(start) for problem in caught.value.problems]


def test_variables_are_filled_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configuration = load(tmp_path)
    assert configuration.input.path == f"/data/{SECRET}/people"
    assert configuration.input.options["user"] == SECRET
    assert configuration.input.options["fetchsize"] == "100"
    assert (configuration.privacy.k, configuration.output.path) == (5, "out/20260131")
    # Who must not see a value gives it to an option or a variable with a telling name.
    assert configuration.public_dict()["input"]["path"] == f"/data/{SECRET}/people"
    monkeypatch.setenv("PEOPLE_K", "7")
    assert load(tmp_path).privacy.k == 7
    assert load(tmp_path, TEXT, "privacy.k=9").privacy.k == 9


def test_written_out_it_is_the_same_configuration(tmp_path: Path) -> None:
    written = TEXT.replace("${PEOPLE_DIR}", f"/data/{SECRET}").replace("${READER}", SECRET)
    written = written.replace("${SIZE:-100}", "100").replace("${PEOPLE_K:-5}", "5")
    written = written.replace("${run_date:%Y%m%d}", "20260131")
    assert load(tmp_path, written).fingerprint() == load(tmp_path).fingerprint()


def test_a_variable_that_is_missing_is_one_problem_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PEOPLE_DIR")
    text = TEXT.replace("${PEOPLE_K:-5}", "${PEOPLE_K}")
    path, k = problems(tmp_path, text)
    assert path.startswith("2:3: input.path: found ${PEOPLE_DIR}, but there is no environment")
    assert k.startswith("7:3: privacy.k: found ${PEOPLE_K}, but there is no environment variable")


def test_what_is_replaced_needs_no_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PEOPLE_DIR")
    assert load(tmp_path, TEXT, "input.path=other").input.path == "other"
    (path,) = problems(tmp_path, TEXT, "output.path=other")
    assert path.startswith("2:3: input.path: found ${PEOPLE_DIR}, but there is no environment")


def test_a_value_breaks_out_of_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEOPLE_DIR", "a\nprivacy: {k: 1}\n# ${READER}")
    configuration = load(tmp_path)
    assert configuration.input.path == "a\nprivacy: {k: 1}\n# ${READER}/people"
    assert configuration.privacy.k == 5


@cases(__file__, "text", "expected")
def test_forms(text: str, expected: str) -> None:
    environment = {"SET": "s", "EMPTY": "", RUN_DATE_VARIABLE: "2026-01-31"}
    filled = fill_in(text, environment)
    assert (filled.text, filled.problems) == (expected, [])


@pytest.mark.parametrize(
    "text", ["${}", "${1A}", "${run_date:%s}", "${run_date:}", "${A B}", "${RUN_DATE}", "${a:b}"]
)
def test_other_forms_are_wrong(text: str) -> None:
    assert len(fill_in(text, {}).problems) == 1


def test_a_day_that_is_none() -> None:
    (problem,) = fill_in("${run_date}", {RUN_DATE_VARIABLE: "31.1.2026"}).problems
    assert "--run-date" in problem


def test_a_grid_and_its_base_have_variables(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(TEXT.replace("format: jdbc", "format: csv"))
    grid = tmp_path / "grid.yaml"
    grid.write_text("base: base.yaml\naxes: {privacy.k: [2, 3]}\noutput: out-${run_date}\n")
    loaded = load_grid(grid)
    assert loaded.output == "out-2026-01-31"
    for cell in loaded.cells:
        assert cell.configuration.input.path == f"/data/{SECRET}/people"
    grid.write_text("base: base.yaml\naxes: {privacy.k: [2, 3]}\noutptu: ${READER}\n")
    with pytest.raises(ConfigurationError, match=r"grid\.yaml:3:1: outptu: unknown key"):
        load_grid(grid)


def test_a_variable_with_a_telling_name_is_shown_by_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISITS_PASSWORD", "q7-unlikely-word")
    load(tmp_path, TEXT.replace("${READER}", "${VISITS_PASSWORD}"))
    assert redact("refused: q7-unlikely-word is wrong") == "refused: ${VISITS_PASSWORD} is wrong"


@cases(__file__, "written", "secret", "value")
def test_a_variable_of_a_secret_key_is_shown_by_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, secret: str, value: str
) -> None:
    monkeypatch.setenv("LOGIN", value)
    load(tmp_path, TEXT.replace(written, secret))
    assert redact(f"refused: {value} is wrong") == "refused: ${LOGIN} is wrong"
    # It would be a figure of any text.
    monkeypatch.setenv("LOGIN", "1000")
    load(tmp_path, TEXT.replace(written, secret))
    assert redact("1000 records") == "1000 records"


@given(st.text("$ {}aB:-", max_size=12))
def test_what_is_written_is_read_again(text: str) -> None:
    filled = fill_in(escaped(text), {})
    assert (filled.text, filled.problems) == (text, [])
    assert escaped({text: [text, {"a": text}, 1]})[text][0] == escaped(text)
