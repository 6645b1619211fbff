"""Nothing that is read is run, and nothing is read or written where somebody else may have been."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from cases import cases
from commands import Cli
from helpers import configuration_file, write_table
from places import REPOSITORY

from anonspark.config import load_configuration
from anonspark.config.yaml_reading import Loader
from anonspark.engine.local.files import LocalFiles
from anonspark.errors import ConfigurationError
from anonspark.kernels import numba_patches
from anonspark.sharing.ledger.chain import make_key, read_key
from anonspark.sharing.ledger.ledger import init_ledger


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


SOMEBODY = 54321
Spoil = Callable[[Path], None]


def _link(path: Path) -> None:
    """Move what is there, or an empty directory, elsewhere, and lead there."""
    elsewhere = path.parent / "elsewhere"
    if path.exists():
        path.rename(elsewhere)
    else:
        elsewhere.mkdir(mode=0o700, exist_ok=True)
    path.symlink_to(elsewhere)


def _give_away(path: Path) -> None:
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.chown(path, SOMEBODY, SOMEBODY)


def _open_to_others(path: Path) -> None:
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.chmod(0o777)


AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
OTHERS = [
    pytest.param(_link, "is a symbolic link", id="link"),
    pytest.param(_give_away, f"belongs to the user {SOMEBODY}", id="owner", marks=AS_ROOT),
]
ALSO_OPEN = [*OTHERS, pytest.param(_open_to_others, "has permissions 777", id="mode")]


def table(rows: int = 200) -> pa.Table:
    draw = np.random.default_rng(0)
    return pa.table(
        {
            "age": draw.integers(18, 90, rows),
            "zone": draw.integers(0, 9, rows),
            "ill": ["no"] * rows,
        }
    )


def configured(folder: Path, **sections: Any) -> Path:
    write_table(folder / "input.parquet", table())
    roles = {"age": "quasi_identifier", "zone": "quasi_identifier", "ill": "insensitive"}
    attributes = {name: {"role": role} for name, role in roles.items()}
    return configuration_file(
        folder, attributes=attributes, execution={"seed": 2**40, "engine": "local"}, **sections
    )


def all_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


STAGINGS = {
    "run --resume": ("run", "--run-id", "night", "--resume"),
    "run": ("run", "--run-id", "night"),
    "clean": ("clean", "--run-id", "night"),
}


@pytest.mark.parametrize("words", STAGINGS.values(), ids=STAGINGS)
@pytest.mark.parametrize(("spoil", "expected"), ALSO_OPEN)
@pytest.mark.parametrize("private", [False, True])
def test_staging(
    tmp_path: Path, cli: Cli, words: tuple[str, ...], spoil: Spoil, expected: str, private: bool
) -> None:
    """Also that of raw records, which `execution.staging_path` moves."""
    sections: dict[str, Any] = {"execution": {"seed": 2**40, "engine": "local"}}
    path = configured(tmp_path)
    staging = tmp_path / ".release.anonspark-night"
    if private:
        from anonspark.layers.publish.staging import place_of

        staging_path = tmp_path / "private"
        sections["execution"]["staging_path"] = str(staging_path)
        place = place_of(LocalFiles(), str(tmp_path / "release"), "night", str(staging_path))
        staging = Path(place.private.removeprefix("file:"))
        staging_path.mkdir()
        (tmp_path / ".release.anonspark-night").mkdir(mode=0o700)
    spoil(staging)
    before = all_below(tmp_path)
    verb, *others = words
    more = ("--set", f"execution.staging_path={tmp_path / 'private'}") if private else ()
    cli.ends(5, verb, path, *others, *more, says=(expected, str(staging)))
    assert all_below(tmp_path) == before


@pytest.mark.parametrize("name", ["rounds", "written-1", "state/attempts", "state"])
@pytest.mark.parametrize("verb", ["run", "clean"])
def test_links_inside_of_staging(tmp_path: Path, cli: Cli, name: str, verb: str) -> None:
    """Raw records of a run that goes on are not led elsewhere."""
    path = configured(tmp_path)
    link = tmp_path / ".release.anonspark-night" / name
    link.parent.mkdir(mode=0o700, parents=True)
    (tmp_path / ".release.anonspark-night").chmod(0o700)
    (tmp_path / "elsewhere").mkdir()
    link.symlink_to(tmp_path / "elsewhere")
    before = all_below(tmp_path)
    more = ("--resume",) if verb == "run" else ()
    cli.ends(5, verb, path, "--run-id", "night", *more, says=f"{link} is a link or a device")
    assert all_below(tmp_path) == before


@pytest.mark.parametrize(("spoil", "expected"), OTHERS)
def test_a_release_of_others_is_not_replaced(
    tmp_path: Path, cli: Cli, spoil: Spoil, expected: str
) -> None:
    path = configured(tmp_path, output={"mode": "overwrite"})
    cli.ends(0, "run", path)
    spoil(tmp_path / "release")
    before = all_below(tmp_path)
    cli.ends(2, "run", path, says=expected)
    assert all_below(tmp_path) == before


@AS_ROOT
def test_a_release_of_others_is_not_taken_for_that_of_a_run(tmp_path: Path, cli: Cli) -> None:
    path = configured(tmp_path)
    cli.ends(0, "run", path, "--run-id", "night")
    os.chown(tmp_path / "release", SOMEBODY, SOMEBODY)
    cli.ends(2, "run", path, "--run-id", "night", "--resume", says="belongs to the user")


def test_what_people_do_with_releases_works(tmp_path: Path, cli: Cli) -> None:
    """A link above the output, a group that writes, and readers."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "data").symlink_to(tmp_path / "disk")
    output = {"path": str(tmp_path / "data" / "release"), "mode": "overwrite"}
    path = configured(tmp_path, output=output)
    before = os.umask(0o002)
    try:
        cli.ends(0, "run", path)
        (tmp_path / "disk").chmod(0o2775)
        assert (tmp_path / "disk" / "release").stat().st_mode & 0o775 == 0o775
        if os.geteuid() == 0:
            os.chown(tmp_path / "disk" / "release", SOMEBODY, os.getegid())
        cli.ends(0, "run", path, "--run-id", "night", "--resume")
    finally:
        os.umask(before)


@pytest.mark.parametrize(("spoil", "expected"), OTHERS)
@pytest.mark.parametrize("name", ["summary", "rounds"])
def test_tables_of_all_runs(
    tmp_path: Path, cli: Cli, spoil: Spoil, expected: str, name: str
) -> None:
    (tmp_path / "history").mkdir()
    spoil(tmp_path / "history" / name)
    path = configured(tmp_path, metrics={"append_to": str(tmp_path / "history")})
    cli.ends(2, "run", path, says=expected)
    assert not (tmp_path / "release").exists()


@pytest.mark.parametrize(("spoil", "expected"), OTHERS)
def test_the_night_of_a_table_of_all_runs(
    tmp_path: Path, cli: Cli, spoil: Spoil, expected: str
) -> None:
    path = configured(tmp_path, metrics={"append_to": str(tmp_path / "history")})
    cli.ends(0, "run", path, "--run-id", "night")
    (date,) = (tmp_path / "history" / "summary").iterdir()
    spoil(date)
    other = ("--set", f"output.path={tmp_path / 'other'}")
    done = cli.ends(5, "run", path, "--run-id", "next", *other, says=expected)
    assert f"The release at {tmp_path / 'other'} is complete" in done.err


@pytest.mark.parametrize(("spoil", "expected"), OTHERS)
def test_comparisons(tmp_path: Path, cli: Cli, spoil: Spoil, expected: str) -> None:
    path = configured(tmp_path)
    for place in ("release-comparison", "release-comparison/cells"):
        spoil(tmp_path / place)
        cli.ends(2, "compare", path, says=expected)
        (tmp_path / place).unlink() if spoil is _link else os.chown(tmp_path / place, 0, 0)
        (tmp_path / "release-comparison").mkdir(exist_ok=True)


@pytest.mark.parametrize("name", ["page.html", ".page.html.writing"])
def test_a_page_does_not_go_where_a_link_leads(tmp_path: Path, cli: Cli, name: str) -> None:
    configured(tmp_path)
    (tmp_path / "precious").write_text("precious")
    (tmp_path / name).symlink_to(tmp_path / "precious")
    cli.ends(
        2 if name == "page.html" else 0,
        "profile",
        tmp_path / "input.parquet",
        "--html",
        tmp_path / "page.html",
    )
    assert (tmp_path / "precious").read_text() == "precious"


@AS_ROOT
def test_a_page_is_not_written_into_a_file_of_others(tmp_path: Path, cli: Cli) -> None:
    configured(tmp_path)
    (tmp_path / "page.html").touch(mode=0o666)
    os.chown(tmp_path / "page.html", SOMEBODY, SOMEBODY)
    cli.ends(2, "profile", tmp_path / "input.parquet", "--html", tmp_path / "page.html")
    assert not (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(("spoil", "expected"), ALSO_OPEN)
def test_ledgers(tmp_path: Path, cli: Cli, spoil: Spoil, expected: str) -> None:
    key = str(tmp_path / "key")
    init_ledger(LocalFiles(), str(tmp_path / "ledger"), make_key(key), ["person"])
    cli.ends(0, "ledger", "check", tmp_path / "ledger")
    spoil(tmp_path / "ledger")
    for verb in ("check", "show", "unlock"):
        cli.ends(2, "ledger", verb, tmp_path / "ledger", says=expected)
    arguments = ("--key-file", key, "--subject", "person")
    cli.ends(2, "ledger", "init", tmp_path / "ledger", *arguments)


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (_link, "is a symbolic link"),
        pytest.param(
            lambda path: os.chown(path, SOMEBODY, SOMEBODY), "belongs to the user", marks=AS_ROOT
        ),
        (lambda path: path.chmod(0o640), "has permissions 640"),
    ],
    ids=["link", "owner", "mode"],
)
def test_keys_of_others(tmp_path: Path, spoil: Spoil, expected: str) -> None:
    from anonspark.errors import ConfigurationError

    make_key(str(tmp_path / "key"))
    spoil(tmp_path / "key")
    with pytest.raises(ConfigurationError, match=expected):
        read_key(str(tmp_path / "key"))


@pytest.mark.parametrize(("spoil", "_"), ALSO_OPEN)
@pytest.mark.parametrize("inside", [False, True])
def test_compiled_code_of_others_is_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Spoil, _: str, inside: bool
) -> None:
    chosen = tmp_path / "numba"
    monkeypatch.setattr(numba_patches.config, "CACHE_DIR", str(chosen))
    folder = numba_patches.folder_to_compile_into.__wrapped__
    assert folder().parent == chosen
    spoil(folder() if inside else chosen)
    assert chosen not in folder().parents
