"""Nothing that is read is run: no configuration, no column name, no file of a hierarchy."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml
from cases import cases
from places import REPOSITORY

from anonspark.config import load_configuration
from anonspark.config.yaml_reading import Loader
from anonspark.errors import ConfigurationError


@cache
def sources() -> dict[Path, ast.Module]:
    """Return all our own sources, parsed."""
    return {
        path: ast.parse(path.read_text(encoding="utf-8"))
        for folder in ("anonspark", "jobs")
        for path in sorted((REPOSITORY / folder).rglob("*.py"))
    }


# They turn data into code or into arbitrary objects.
MODULES = {"cloudpickle", "code", "dill", "joblib", "marshal", "pickle", "runpy", "shelve"}
FUNCTIONS = {"__import__", "compile", "eval", "exec"}
METHODS = {
    *("os.system", "os.popen", "os.execv", "os.execvp", "os.spawnv"),
    *("subprocess.getoutput", "subprocess.getstatusoutput"),
    *("yaml.load", "yaml.load_all", "yaml.full_load", "yaml.unsafe_load", "yaml.Loader"),
    *("yaml.UnsafeLoader", "yaml.FullLoader", "np.load", "pd.read_pickle"),
}
LAST_NAMES = {name.rpartition(".")[2] for name in METHODS}
# What Spark parses as SQL, and the arguments whose text may stand in it: our own names of staged
# columns and of types, names in quotes, and the name of a table that a pattern has matched.
PARSED = {"expr", "selectExpr", "sql", "where", "filter"}
OUR_OWN = {"column", "target", "text", "found", "matched_name", "escaped_version"}


def used(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and name of everything that could run what was read."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in FUNCTIONS:
                yield node.lineno, node.func.id
            continue
        elif isinstance(node, ast.Attribute):
            if node.attr in LAST_NAMES and ast.unparse(node) in METHODS:
                yield node.lineno, ast.unparse(node)
            continue
        elif isinstance(node, ast.keyword):
            if node.arg == "shell" and ast.unparse(node.value) != "False":
                yield node.value.lineno, "shell"
            continue
        else:
            continue
        for name in names:
            if name.partition(".")[0] in MODULES:
                yield node.lineno, name


def test_nothing_in_the_package_runs_what_it_reads() -> None:
    assert len(sources()) > 150
    found = {
        f"{path.relative_to(REPOSITORY)}:{line}: {name}"
        for path, tree in sources().items()
        for line, name in used(tree)
    }
    assert found == set()


@cases(__file__, "code")
def test_the_walk_finds_what_it_looks_for(code: str) -> None:
    assert list(used(ast.parse(code)))


def interpolated(call: ast.Call) -> Iterator[ast.expr]:
    """Yield what is put into the texts that Spark parses as SQL."""
    for argument in call.args:
        if isinstance(argument, ast.JoinedStr):
            for part in argument.values:
                if isinstance(part, ast.FormattedValue):
                    yield part.value
        elif isinstance(argument, ast.BinOp) and ast.unparse(call.func) == "sf.expr":
            yield argument


def test_names_in_parsed_expressions_are_quoted() -> None:
    calls = [
        (path, call)
        for path, tree in sources().items()
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in PARSED
    ]
    assert len(calls) > 20
    for path, call in calls:
        for value in interpolated(call):
            quoted = isinstance(value, ast.Call) and ast.unparse(value.func) == "quoted"
            own = ast.unparse(value).partition(".")[0] in OUR_OWN
            assert quoted or own, f"{path}:{call.lineno}: {ast.unparse(call)}"


def test_yaml_is_loaded_safely() -> None:
    assert issubclass(Loader, yaml.SafeLoader)
    assert not issubclass(Loader, yaml.FullLoader | yaml.UnsafeLoader)
    assert set(Loader.yaml_constructors) <= set(yaml.SafeLoader.yaml_constructors)
    assert Loader.yaml_multi_constructors == {}


@cases(__file__, "value")
def test_a_configuration_with_python_objects_is_refused(tmp_path: Path, value: str) -> None:
    marker = tmp_path / "ran"
    path = tmp_path / "configuration.yaml"
    path.write_text(f"input: {value.format(marker=marker)}\n", encoding="utf-8")
    with pytest.raises(ConfigurationError):
        load_configuration(path)
    assert not marker.exists()


def test_an_override_with_python_objects_is_refused(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    path = tmp_path / "configuration.yaml"
    path.write_text(
        "input: {path: x}\nattributes: {a: quasi_identifier}\nprivacy: {k: 2}\noutput: {path: y}\n",
        encoding="utf-8",
    )
    override = f"privacy.k=!!python/object/apply:os.system ['touch {marker}']"
    with pytest.raises(ConfigurationError):
        load_configuration(path, [override])
    assert not marker.exists()
    assert load_configuration(path).privacy.k == 2
