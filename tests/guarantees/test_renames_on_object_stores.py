"""A rename that copies and ends early on an object store loses nothing and is not taken back."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from simulated_store import ARRAYS, BUCKET, Sequenced, SimulatedStore, _Hadoop, _JavaPath

from anonspark.engine.spark import filesystem
from anonspark.engine.spark.filesystem import FileSystem


class Disturbed(SimulatedStore):
    """A store that does something once, after a request of a kind."""

    verb = ""
    then: Callable[[], None] = staticmethod(lambda: None)

    def _request(self, verb: str, key: str, do: Callable[[], Any], **more: Any) -> Any:
        done = super()._request(verb, key, do, **more)
        if verb == self.verb:
            self.verb = ""
            self.then()
            raise Py4JError("the answer was lost")
        return done


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disturbed:
    monkeypatch.setattr(filesystem, "java_class", lambda _, name: ARRAYS.get(name, _JavaPath))
    monkeypatch.setattr(filesystem, "sequence_of", lambda _, array: Sequenced(array))
    return Disturbed(tmp_path)


def filled(store: Disturbed, *names: str) -> FileSystem:
    for name in names:
        store.put(f"{store.root}/{name}", name.encode())
    hadoop = _Hadoop(store)
    spark = SimpleNamespace(_jsc=SimpleNamespace(hadoopConfiguration=lambda: hadoop))
    return FileSystem(cast("SparkSession", spark))


def rename(store: Disturbed, files: FileSystem, source: str, target: str) -> None:
    files.rename(f"{BUCKET}{store.root}/{source}", f"{BUCKET}{store.root}/{target}")


def keys(store: Disturbed) -> set[str]:
    return {key.removeprefix(f"{store.root}/") for key in store._keys}


@pytest.mark.parametrize(
    ("names", "source", "target"),
    [
        (("from/a", "from/b", "from/c"), "from", "to"),
        (("from/manifest.json",), "from/manifest.json", "to/manifest.json"),
    ],
)
def test_only_the_answer_is_lost(
    store: Disturbed, names: tuple[str, ...], source: str, target: str
) -> None:
    files = filled(store, *names)
    store.verb = "delete"
    rename(store, files, source, target)
    assert keys(store) == {name.replace("from", "to") for name in names}


def test_another_process_writes_there_while_it_copies(store: Disturbed) -> None:
    """The source was deleted, of which a third was copied."""
    files = filled(store, "from/a", "from/b", "from/c")
    store.verb = "copy"
    store.then = lambda: store.put(f"{store.root}/to/other", b"other")
    with pytest.raises(OSError, match="the answer was lost"):
        rename(store, files, "from", "to")
    assert keys(store) >= {"from/a", "from/b", "from/c", "to/other"}


def test_files_are_copied_side_by_side(store: Disturbed, monkeypatch: pytest.MonkeyPatch) -> None:
    files, running, most = filled(store), [], []

    def rename(_: FileSystem, source: str, __: str) -> None:
        running.append(source)
        most.append(len(running))
        time.sleep(0.02)
        running.remove(source)
        if source.endswith("7"):
            raise OSError("cannot rename")

    monkeypatch.setattr(FileSystem, "rename", rename)
    files.rename_each({f"{BUCKET}/a/{number}": f"{BUCKET}/b/{number}" for number in range(7)})
    assert max(most) > 3
    with pytest.raises(OSError, match="cannot rename"):
        files.rename_each({f"{BUCKET}/a/{number}": f"{BUCKET}/b/{number}" for number in range(99)})
    assert not running
