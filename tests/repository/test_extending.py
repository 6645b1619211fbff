"""What the page about extending adds is registered as real ones are, and works."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import numpy as np
import pytest
from cases import cases, changed
from example_extension import EXAMPLE, PACKAGE, install, on_the_path
from helpers import configuration_file, metrics, of_any_run, published, write_table
from places import REPOSITORY
from release_folders import read_manifest, save_manifest

from anonspark.config import Configuration, json_schema, load_configuration, parse_configuration
from anonspark.config.json_schema import load_extensions
from anonspark.core import extensions
from anonspark.core.figures import SUMMARY, arrow_schema, results
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import ConfigurationError, EnvironmentProblem, GuaranteeError
from anonspark.models.model import Model
from anonspark.pipeline.run import run
from anonspark.release.derived_figures import Totals
from anonspark.verification.audit import audit_release

PAGE = (REPOSITORY / "docs" / "extending.md").read_text()
DOCUMENT: dict[str, Any] = {
    "input": {"path": "people.csv"},
    "attributes": {"age": "quasi_identifier"},
    "privacy": {"k": 5},
    "output": {"path": "out"},
}


def blocks(section: str) -> list[str]:
    text = re.search(rf"^## {section}$(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    assert text is not None
    found: list[str] = re.findall(r"^```python\n(.*?)^```$", text[1], re.M | re.S)
    return found


@pytest.fixture
def code(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run the blocks of a section of the page, and return what they define."""
    module = ModuleType("extending")
    monkeypatch.setitem(sys.modules, "extending", module)
    for block in blocks(request.param):
        exec(compile(block, "docs/extending.md", "exec"), module.__dict__)  # noqa: S102
    return module.__dict__


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder into which the package of the page is installed."""
    return install(tmp_path_factory.mktemp("example"))


@pytest.fixture
def example(installed: Path) -> Iterator[pytest.MonkeyPatch]:
    """Let this process find the package of the page."""
    with on_the_path(installed) as patch:
        yield patch


@pytest.mark.parametrize("kind", ["model", "criterion"])
def test_the_page_shows_the_package(kind: str) -> None:
    text = (EXAMPLE / "anonspark_example" / f"{kind}.py").read_text()
    # The docstring of the file stands above the block.
    assert text.partition("\n\n")[2] == blocks(f"A {kind}")[0]
    (toml,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.M | re.S)
    assert toml in (EXAMPLE / "pyproject.toml").read_text()


def configured(folder: Path, **sections: Any) -> Configuration:
    random = np.random.default_rng(3)
    table = {
        "age": random.integers(0, 90, 203),
        "income": np.arange(203),
        "disease": random.choice(list("abcdef"), 203, p=[0.3, 0.25, 0.2, 0.1, 0.1, 0.05]),
    }
    write_table(folder / "input.parquet", table)
    roles = {"age": "quasi_identifier", "income": "quasi_identifier", "disease": "sensitive"}
    return load_configuration(str(configuration_file(folder, attributes=roles, **sections)))


SORTED = {"name": "sorted", "attribute": 1}


@pytest.mark.usefixtures("example")
def test_a_model_of_another_package(tmp_path: Path) -> None:
    configuration = configured(tmp_path, model=SORTED)
    assert type(configuration.model).__name__ == "SortedOptions"
    run(LocalEngine(), configuration)
    # Neighbours in the second attribute: 40 groups, of which three have a record more.
    sizes = [one["size"] for one in metrics(tmp_path / "release", "classes")]
    assert sorted(sizes) == [5] * 37 + [6] * 3
    assert audit_release(LocalEngine(), str(tmp_path / "release")).holds


@pytest.mark.usefixtures("example")
@pytest.mark.parametrize(
    "model",
    [
        SORTED,
        {"name": "su-mondrian"},
        {"name": "u-canon", "separation": "always"},
        {"name": "microaggregation"},
    ],
    ids=lambda one: one["name"],
)
def test_a_criterion_of_another_package(tmp_path: Path, model: dict[str, Any]) -> None:
    """Every model asks the package's function, and the proof its measure."""
    configuration = configured(tmp_path, model=model, privacy={"k": 5, "two_largest": 0.7})
    # As it is sent to tasks and kept.
    again = pickle.loads(pickle.dumps(configuration))  # noqa: S301
    assert again.privacy.criteria == configuration.privacy.criteria
    assert again.fingerprint() == configuration.fingerprint()
    run(LocalEngine(), configuration)
    release = tmp_path / "release"
    found = audit_release(LocalEngine(), str(release))
    assert found.holds
    (measured,) = found.criteria
    values = published(release).group_by(["age", "income"]).aggregate([("disease", "list")])
    shares = [
        sum(n for _, n in Counter(own).most_common(2)) / len(own)
        for own in values["disease_list"].to_pylist()
    ]
    assert measured.measured == pytest.approx(max(shares))
    assert max(shares) <= 0.7
    # The verifier of one file knows our criteria alone, and says so.
    checked = subprocess.run(
        [sys.executable, release / "check_release.py", release],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert checked.returncode == 0
    assert "two_largest" in checked.stdout.partition("not checked:")[2]
    # Without it there are classes that violate it.
    asked = configured(tmp_path, model=model, output={"path": str(tmp_path / "other")})
    run(LocalEngine(), asked)
    other = load_configuration(
        str(configuration_file(tmp_path, **REQUIRED)), [f"output.path={tmp_path / 'other'}"]
    )
    assert not audit_release(LocalEngine(), str(tmp_path / "other"), other).holds


REQUIRED: dict[str, Any] = {
    "attributes": {"age": "quasi_identifier", "income": "quasi_identifier", "disease": "sensitive"},
    "privacy": {"k": 5, "two_largest": {"disease": 0.7}},
}


@pytest.mark.usefixtures("example")
def test_full_domain_judges_by_it_too(tmp_path: Path) -> None:
    roles = {
        "age": {"role": "quasi_identifier", "hierarchy": {"intervals": [10, 50]}},
        "disease": "sensitive",
    }
    configured(tmp_path)
    path = configuration_file(
        tmp_path,
        attributes=roles,
        model={"name": "rho-gain"},
        privacy={"k": 5, "two_largest": 0.65},
    )
    run(LocalEngine(), load_configuration(str(path)))
    assert audit_release(LocalEngine(), str(tmp_path / "release")).holds


@pytest.mark.parametrize("code", ["A criterion"], indirect=True)
def test_a_compiled_function_judges_alike(
    tmp_path: Path, example: pytest.MonkeyPatch, code: dict[str, Any]
) -> None:
    sections = {"privacy": {"k": 5, "two_largest": 0.7}, "model": {"name": "su-mondrian"}}
    run(LocalEngine(), configured(tmp_path, **sections))
    own = extensions.extension(extensions.CRITERIA, "two_largest")
    assert own is not None
    (tmp_path / "compiled").mkdir()
    compiled = extensions.Extension(
        replace(own.value, kernel=code["records_lacking_compiled"]), own.package
    )
    example.setitem(extensions._LOADED, (extensions.CRITERIA, "two_largest"), compiled)
    run(LocalEngine(), configured(tmp_path / "compiled", **sections))
    assert of_any_run(tmp_path / "compiled" / "release") == of_any_run(tmp_path / "release")


@pytest.mark.usefixtures("example")
def test_the_schema_knows_both_once_they_are_loaded() -> None:
    document = DOCUMENT | {
        "quasi_identifiers": ["age"],
        "sensitive": ["disease"],
        "model": SORTED,
        "privacy": {"k": 5, "two_largest": 0.8},
    }
    del document["attributes"]
    validate = jsonschema.Draft202012Validator
    assert list(validate(json_schema()).iter_errors(document)) != []
    load_extensions()
    assert list(validate(json_schema()).iter_errors(document)) == []
    wrong = document | {"privacy": {"k": 5, "two_largest": {"disease": "x"}}}
    assert list(validate(json_schema()).iter_errors(wrong)) != []


@pytest.mark.usefixtures("example")
@cases(__file__, "changes", "message")
def test_what_is_asked_for_wrongly(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        parse_configuration(changed(DOCUMENT, changes))


@pytest.mark.usefixtures("example")
def test_nothing_is_loaded_that_no_name_asks_for() -> None:
    parse_configuration(DOCUMENT)
    assert "anonspark_example" not in sys.modules
    assert extensions._LOADED == {}


def test_a_release_of_a_package_that_is_not_here(tmp_path: Path, installed: Path) -> None:
    with on_the_path(installed):
        privacy = {"k": 5, "two_largest": 0.8}
        run(LocalEngine(), configured(tmp_path, model=SORTED, privacy=privacy))
    manifest = json.loads((tmp_path / "release" / "manifest.json").read_text())
    names = "anonspark.criteria.two_largest", "anonspark.models.sorted"
    places = dict.fromkeys(names, PACKAGE)
    assert manifest["versions"]["extensions"] == places
    with on_the_path(), pytest.raises(EnvironmentProblem) as raised:
        audit_release(LocalEngine(), str(tmp_path / "release"))
    for place, line in zip(places, str(raised.value).splitlines(), strict=True):
        assert f"{place} is that of the package {PACKAGE}, which is not installed here" in line


@pytest.mark.usefixtures("example")
@pytest.mark.parametrize(
    "extensions", [{"anonspark.models.sorted": PACKAGE}, {"sorted": "x 1"}, {"os.path": "a/b 1"}]
)
def test_a_manifest_names_the_packages_of_its_configuration_alone(
    tmp_path: Path, extensions: dict[str, str]
) -> None:
    run(LocalEngine(), configured(tmp_path))
    manifest = read_manifest(tmp_path / "release")
    assert "extensions" not in manifest["versions"]
    manifest["versions"]["extensions"] = extensions
    save_manifest(tmp_path / "release", manifest)
    with pytest.raises(GuaranteeError, match=r"versions\.extensions: expected"):
        audit_release(LocalEngine(), str(tmp_path / "release"))


@cases(__file__, "point", "message")
def test_a_package_that_cannot_be_used(tmp_path: Path, point: str, message: str) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    metadata = tmp_path / "broken-2.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 2\n")
    (metadata / "entry_points.txt").write_text(point)
    changes = (
        {"model": {"name": "sorted"}}
        if "models" in point
        else {"privacy": {"k": 5, "two_largest": 0.8}}
    )
    with on_the_path(tmp_path), pytest.raises(ConfigurationError) as raised:
        configured(tmp_path, **changes)
    assert "of the installed package broken 2 cannot be used" in str(raised.value)
    assert message in str(raised.value)


BROKEN = """
from dataclasses import replace
from anonspark.core.criterion import CRITERIA
ALPHA = CRITERIA["alpha"]
OTHER = replace(ALPHA, key="two_largest")
"""


def test_two_packages_of_one_name(tmp_path: Path, installed: Path) -> None:
    metadata = tmp_path / "copy-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: copy\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[anonspark.models]\nsorted = os:path\n")
    with on_the_path(installed, tmp_path), pytest.raises(ConfigurationError, match="several"):
        configured(tmp_path, model=SORTED)


def test_a_function_that_fails_for_some_groups_ends_the_run(
    tmp_path: Path, example: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    configuration = configured(tmp_path, privacy={"k": 5, "two_largest": 0.8})
    known = extensions.extension(extensions.CRITERIA, "two_largest")
    assert known is not None
    fails = replace(known.value, kernel=lambda group, _: 1 // (group.size == 2))
    broken = extensions.Extension(fails, known.package)
    example.setitem(extensions._LOADED, (extensions.CRITERIA, "two_largest"), broken)
    with pytest.raises(ConfigurationError, match="of another package failed for a group"):
        run(LocalEngine(), configuration)
    assert "privacy.two_largest: judging a group ends with ZeroDivisionError" in caplog.text
    assert not (tmp_path / "release").exists()


def test_a_function_that_fails_names_its_package(
    tmp_path: Path, example: pytest.MonkeyPatch
) -> None:
    configuration = configured(tmp_path, privacy={"k": 5, "two_largest": 0.8})
    own = extensions.extension(extensions.CRITERIA, "two_largest")
    assert own is not None
    broken = extensions.Extension(replace(own.value, kernel=lambda _, __: 1 // 0), own.package)
    example.setitem(extensions._LOADED, (extensions.CRITERIA, "two_largest"), broken)
    with pytest.raises(ConfigurationError, match=f"installed package {PACKAGE} cannot be used"):
        run(LocalEngine(), configuration)


def test_a_model_that_is_no_tree_says_two_things() -> None:
    assert Model.__abstractmethods__ == {"__init__", "rounds", "anonymize"}


@pytest.mark.parametrize("code", ["A figure"], indirect=True)
def test_a_figure(code: dict[str, Any]) -> None:
    summary = (*SUMMARY, code["CLASSES_OF_K"])
    assert str(arrow_schema(summary).field("classes_of_k").type) == "int64"
    # So gates and drift may bound it.
    assert results(summary)[-1].title == "classes of exactly k records"
    totals = Totals({5: 3, 7: 1})
    assert code["classes_of_k"](totals, 5) == 3
    assert code["classes_of_k"](totals, 6) == 0
