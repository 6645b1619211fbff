"""Variables of the environment in a configuration, and the seed with its three places."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from cases import cases, data_beside
from hypothesis import given
from hypothesis import strategies as st

from anonspark.comparison.grid import load_grid
from anonspark.config import Configuration, load_configuration, parse_configuration
from anonspark.config.loading import SEED_VARIABLE, is_readable_by_others
from anonspark.config.variables import escaped, fill_in
from anonspark.core.run_ids import RUN_DATE_VARIABLE
from anonspark.errors import ConfigurationError, SparkNeededError
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


SEED = -7_316_200_459_918_273_645
DOCUMENT: dict[str, Any] = {
    "input": {"path": "people.parquet"},
    "attributes": {"age": "quasi_identifier"},
    "privacy": {"k": 2},
    "output": {"path": "out"},
}


def kept_in(tmp_path: Path, text: str) -> str:
    path = tmp_path / "seed"
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


def with_execution(**execution: Any) -> dict[str, Any]:
    return {**DOCUMENT, "execution": execution}


@pytest.fixture(autouse=True)
def _no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SEED_VARIABLE, raising=False)


def problems_of_seed(document: dict[str, Any], overrides: tuple[str, ...] = ()) -> str:
    with pytest.raises(ConfigurationError) as caught:
        parse_configuration(document, overrides)
    assert str(SEED) not in str(caught.value)
    assert str(abs(SEED)) not in str(caught.value)
    return str(caught.value)


def test_three_places_make_one_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    direct = parse_configuration(with_execution(seed=SEED))
    path = kept_in(tmp_path, f"  {SEED}\n")
    from_file = [
        parse_configuration(with_execution(seed_file=path)),
        parse_configuration(with_execution(seed_file=Path(path).as_uri())),
        parse_configuration(DOCUMENT, [f"execution.seed_file={path}"]),
    ]
    monkeypatch.setenv(SEED_VARIABLE, f"{SEED}")
    from_variable = [
        parse_configuration(DOCUMENT),
        parse_configuration(with_execution(seed_file=None)),
    ]
    for other in (*from_file, *from_variable):
        assert other.execution.seed == SEED
        assert other.fingerprint() == direct.fingerprint()
        assert other.input_fingerprint() == direct.input_fingerprint()
        assert other.settings_fingerprint() == direct.settings_fingerprint()
        assert other.public_dict() == direct.public_dict()
        assert str(SEED) not in json.dumps(other.public_dict())
    assert "seed_file" not in from_file[0].model_dump()["execution"]


def test_the_file_of_a_configuration_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "configuration.yaml"
    path.write_text(yaml.safe_dump(with_execution(seed_file=kept_in(tmp_path, f"\ufeff{SEED}"))))
    assert load_configuration(path).execution.seed == SEED


@cases(__file__, "execution", "variable", "named")
def test_one_place_only(
    execution: dict[str, Any], variable: str | None, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if variable is not None:
        monkeypatch.setenv(SEED_VARIABLE, variable)
    found = problems_of_seed(with_execution(**execution))
    assert named in found
    assert "Keep one of them" in found
    assert "\n" not in found


@pytest.mark.parametrize(
    "text", ["", f"seed: {SEED}", f"{SEED} 1", "7.0", str(2**63), "x" * 10_000, f"'{SEED}'", "1_0"]
)
def test_what_is_no_seed(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = kept_in(tmp_path, text)
    found = problems_of_seed(with_execution(seed_file=path))
    assert found.startswith(f"execution.seed_file: {path}: the file holds something else. ")
    monkeypatch.setenv(SEED_VARIABLE, text)
    assert problems_of_seed(DOCUMENT).startswith(
        f"{SEED_VARIABLE}: the environment variable holds "
    )


@cases(__file__, "name", "reason")
def test_a_file_that_cannot_be_read(name: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\xfa")
    assert reason in problems_of_seed(with_execution(seed_file=f"{tmp_path}/{name}"))


def test_types_and_other_problems_are_told_beside_it(tmp_path: Path) -> None:
    found = problems_of_seed(with_execution(seed_file=7, task_rows=0))
    assert "execution.seed_file: found the whole number 7. Expected a non-empty text" in found
    assert "execution.task_rows" in found
    found = problems_of_seed(with_execution(seed_file=str(tmp_path / "missing"), task_rows=0))
    assert "no such file" in found
    assert "execution.task_rows" in found


@pytest.mark.parametrize(
    "override",
    [
        f"execution.seed='{SEED}'",
        f"execution.seed={SEED}0",
        f"execution.seed=[{SEED}",
        f"execution.seed={SEED}\nexecution.seed",
        f"execution.seed.x={SEED}",
    ],
)
def test_no_message_quotes_the_seed(override: str) -> None:
    problems_of_seed(with_execution(seed=SEED), (override,))


@pytest.mark.parametrize("value", [f"{SEED}", SEED * 100, float(SEED), [SEED], {"a": SEED}])
def test_no_message_quotes_a_seed_of_the_wrong_type(value: object) -> None:
    assert problems_of_seed(with_execution(seed=value)).startswith("execution.seed: found ")


def test_who_does_not_need_the_seed_reads_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    document = with_execution(seed_file="/nowhere/at/all")
    monkeypatch.setenv(SEED_VARIABLE, "nonsense")
    assert parse_configuration(document, needs_seed=False).privacy.k == 2


def test_a_file_elsewhere_is_read_by_the_reader_that_is_given() -> None:
    document = with_execution(seed_file="s3a://KEY:hunter2@bucket/seed")
    with pytest.raises(SparkNeededError) as caught:
        parse_configuration(document)
    assert "hunter2" not in str(caught.value)
    read: list[str] = []

    def reader(path: str) -> str:
        read.append(path)
        return f"{SEED}\n"

    assert parse_configuration(document, read=reader).execution.seed == SEED
    assert read == ["s3a://KEY:hunter2@bucket/seed"]
    # What is wrong otherwise is told before Spark is started.
    problems_of_seed({**document, "privacy": {"k": 0}})


def test_a_model_that_is_validated_by_itself_does_not_pass_over_the_file() -> None:
    with pytest.raises(ValueError, match="a file that was not read"):
        Configuration.model_validate(with_execution(seed_file="seed"))


def test_permissions(tmp_path: Path) -> None:
    path = Path(kept_in(tmp_path, "7"))
    for mode, others in ((0o600, False), (0o400, False), (0o640, True), (0o604, True)):
        path.chmod(mode)
        assert is_readable_by_others(str(path)) is others
        assert is_readable_by_others(path.as_uri()) is others
    assert not is_readable_by_others("hdfs:///seed")


def test_cells_of_a_grid_share_the_file(tmp_path: Path) -> None:
    grid = {
        "base": with_execution(seed_file="hdfs:///seed"),
        "axes": {"privacy.k": [2, 3]},
        "output": "out",
    }
    path = tmp_path / "grid.yaml"
    path.write_text(yaml.safe_dump(grid))
    read: list[str] = []

    def reader(place: str) -> str:
        read.append(place)
        return path.read_text() if place == str(path) else str(SEED)

    cells = load_grid(path, (), reader).cells
    assert [cell.configuration.execution.seed for cell in cells] == [SEED, SEED]
    assert read == [str(path), "hdfs:///seed"]
    with pytest.raises(SparkNeededError):
        load_grid(path)
    grid["axes"] = {"execution.seed_file": ["a", "b"]}
    path.write_text(yaml.safe_dump(grid))
    with pytest.raises(ConfigurationError, match="mixed into the prepared records"):
        load_grid(path, (), reader)
