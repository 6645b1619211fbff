"""The local engine: its disk, its input, files that it writes, its learners."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import cases
from pyarrow import orc

from anonspark.config import parse_configuration
from anonspark.engine.data_files import find_files
from anonspark.engine.files import FilesError, PublishedFile
from anonspark.engine.local.engine import LocalEngine, LocalInput
from anonspark.engine.local.files import LocalFiles
from anonspark.engine.local.learning import train
from anonspark.engine.local.writing import write_orc, write_parquet
from anonspark.engine.parquet_encoding import STAMPED_VERSION, nullable, spark_description
from anonspark.engine.raw_columns import WantedColumns
from anonspark.errors import ConfigurationError, DataError
from anonspark.verification.proof.release_files import read_footer

FILES = LocalFiles()


@cases(__file__, "path", "place")
def test_addresses(path: str, place: str) -> None:
    assert FILES.local_path(path) == place
    assert FILES.qualified(path) == f"file:{place}"
    assert FILES.qualified(FILES.qualified(path)) == f"file:{place}"


def test_relative_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert FILES.qualified("a/../b") == f"file:{tmp_path}/b"
    assert FILES.parent("b") == f"file:{tmp_path}"
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there")
    assert FILES.qualified("link/x") == f"file:{tmp_path}/link/x"
    assert FILES.resolved("link/x") == f"file:{tmp_path}/there/x"


@cases(__file__, "path", "words")
def test_what_is_no_address(path: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        FILES.exists(path)


def test_of_several_writers_one_succeeds(tmp_path: Path) -> None:
    made: list[str] = []
    begin = threading.Barrier(8)

    def create(number: int) -> None:
        begin.wait()
        try:
            FILES.create_text(f"{tmp_path}/state/one", str(number))
        except FileExistsError:
            return
        made.append(str(number))

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [FILES.read_text(f"{tmp_path}/state/one")] == made


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_a_target_that_comes_into_being_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    if kind == "file":
        source.write_text("new")
        target.write_text("old")
    else:
        (source / "x").mkdir(parents=True)
        (target / "y").mkdir(parents=True)
    monkeypatch.setattr("anonspark.engine.local.files._exists", lambda _: False)
    with pytest.raises(FilesError, match="it is there already"):
        FILES.rename(str(source), str(target))
    assert source.exists()
    assert (target.read_text() == "old") if kind == "file" else (target / "y").is_dir()


def test_file_systems_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    FILES.write_text(f"{tmp_path}/old", "content")
    FILES.rename(f"{tmp_path}/old", f"{tmp_path}/new")
    assert FILES.read_text(f"{tmp_path}/new") == "content"
    assert FILES.children(str(tmp_path)) == [f"file:{tmp_path}/new"]


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    FILES.write_text(f"{tmp_path}/one", "old")
    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(FilesError, match="No space left on device") as told:
        FILES.replace(f"{tmp_path}/one", b"new", ".aside")
    assert told.value.errno == errno.ENOSPC
    assert FILES.files_below(str(tmp_path)) == [("one", 3)]
    assert FILES.read_text(f"{tmp_path}/one") == "old"


def test_a_private_directory(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir(mode=0o755)
    for name in ("new/private", "there"):
        FILES.make_private_directory(f"{tmp_path}/{name}")
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "new").stat().st_mode & 0o077


def test_checksums_of_hadoop_go_with_their_files(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        FILES.write_text(f"{tmp_path}/{name}", name)
        (tmp_path / f".{name}.crc").write_text("of Hadoop")
    assert FILES.files_below(str(tmp_path)) == [("a", 1), ("b", 1), ("c", 1)]
    FILES.rename(f"{tmp_path}/a", f"{tmp_path}/d")
    FILES.delete(f"{tmp_path}/b")
    FILES.replace(f"{tmp_path}/c", b"new", ".aside")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".d.crc", "c", "d"]
    FILES.write_bytes(f"{tmp_path}/d", b"new")
    assert not (tmp_path / ".d.crc").exists()


def test_patterns(tmp_path: Path) -> None:
    for name in ("year=2025/a.csv", "year=2026/a.csv", "year=2026/b.csv", "x,y", "z*"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    found = {
        "year=*/a.csv": ["year=2025/a.csv", "year=2026/a.csv"],
        "year=202[6-9]/?.csv": ["year=2026/a.csv", "year=2026/b.csv"],
        "{year=2025/a,year=2026/b}.csv": ["year=2025/a.csv", "year=2026/b.csv"],
        "year={2025,2024}": ["year=2025"],
        "x,y": ["x,y"],
        r"z\*": ["z*"],
        "none*": [],
        "x,y/*": [],
        "{x,z}*": ["x,y", "z*"],
        "year=202[!5]": ["year=2026"],
        "year=202[^5]": ["year=2026"],
        "[a": [],
        "{a": [],
    }
    for pattern, names in found.items():
        expected = [f"file:{tmp_path}/{name}" for name in names]
        assert FILES.matches(f"{tmp_path}/{pattern}") == expected
    assert FILES.matches("/") == ["file:/"]


def file_in(folder: Path) -> None:
    folder.mkdir()
    (folder / "a.csv").write_text("a\n1\n")


def test_folders_that_name_markers(tmp_path: Path) -> None:
    for name in ("age=1.5", "age=999.0", "age=NA"):
        file_in(tmp_path / name)
    wanted = WantedColumns({}, markers=("NA", "999"))
    found = find_files(LocalFiles(), [str(tmp_path)], "input.path", wanted)
    assert [file.folders["age"] for file in found.files] == ["1.5", None, None]
    assert found.folders.field("age").type == pa.float64()
    file_in(tmp_path / "age=007")
    found = find_files(LocalFiles(), [str(tmp_path)], "input.path", wanted)
    assert [file.folders["age"] for file in found.files] == ["007", "1.5", "999.0", "NA"]


class CountingFiles(LocalFiles):
    """Counts how often patterns are looked for."""

    asked: ClassVar[list[str]] = []

    def matches(self, pattern: str) -> list[str]:
        """Return what a pattern names."""
        self.asked.append(pattern)
        return super().matches(pattern)


def test_each_path_is_looked_for_once(tmp_path: Path) -> None:
    file_in(tmp_path / "age=1")
    paths = [f"{tmp_path}/*", str(tmp_path / "age=1")]
    files = CountingFiles()
    assert len(find_files(files, paths, "input.path").files) == 2
    assert files.asked == paths
    with pytest.raises(DataError, match=r"there is not there. (.|\n)*here is not there"):
        find_files(files, ["there", str(tmp_path), "here"], "input.path")


@cases(__file__, "folder", "message")
def test_folders_that_are_refused(tmp_path: Path, folder: str, message: str) -> None:
    file_in(tmp_path / folder)
    with pytest.raises(DataError, match=message):
        find_files(LocalFiles(), [str(tmp_path)], "input.path")


BATCHES = [
    pa.record_batch({"age": [1, None, 3], "town": ["Rize", None, "Ulm"]}),
    pa.record_batch({"age": [4], "town": ["Köln"]}),
]
SCHEMA = pa.schema([pa.field("age", pa.int64(), False), ("town", pa.string())])
Write = Callable[[Any, pa.Schema, str], PublishedFile]


@pytest.mark.parametrize(
    ("write", "read"),
    [(write_parquet, pq.read_table), (write_orc, orc.read_table)],
    ids=["parquet", "orc"],
)
def test_what_is_told_of_a_file(tmp_path: Path, write: Write, read: Any) -> None:
    path = tmp_path / "file"
    told = write(iter(BATCHES), SCHEMA, str(path))
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    assert told == PublishedFile(str(path), len(content), 4, digest)
    assert read(path).to_pylist() == pa.Table.from_batches(BATCHES).to_pylist()
    footer = read_footer(content)
    assert footer is not None
    assert (footer.rows, footer.names, footer.strange) == (4, ["age", "town"], [])
    again = write(iter(BATCHES), SCHEMA, str(tmp_path / "again"))
    assert again.sha256 == told.sha256
    with pytest.raises(FileExistsError):
        write(iter(BATCHES), SCHEMA, str(path))


def test_what_a_parquet_file_says(tmp_path: Path) -> None:
    write_parquet(iter(BATCHES), SCHEMA, str(tmp_path / "file"))
    with pq.ParquetFile(tmp_path / "file") as file:
        metadata = file.metadata
    assert metadata.num_row_groups == 2
    assert metadata.row_group(0).column(0).compression == "SNAPPY"
    assert set(metadata.metadata) == {
        b"org.apache.spark.version",
        b"org.apache.spark.sql.parquet.row.metadata",
    }
    assert metadata.metadata[b"org.apache.spark.version"].decode() == STAMPED_VERSION
    described = json.loads(metadata.metadata[b"org.apache.spark.sql.parquet.row.metadata"])
    assert described["fields"][0] == {
        "name": "age",
        "type": "long",
        "nullable": True,
        "metadata": {},
    }


def test_schemas_in_the_json_of_spark() -> None:
    inner = pa.struct([pa.field("day", pa.date32(), False), ("cost", pa.decimal128(5, 2))])
    schema = pa.schema([pa.field("visits", pa.list_(inner), False), ("at", pa.timestamp("us"))])
    described = json.loads(spark_description(nullable(schema)))
    assert [field["nullable"] for field in described["fields"]] == [True, True]
    visits, at = (field["type"] for field in described["fields"])
    assert at == "timestamp_ntz"
    assert (visits["type"], visits["containsNull"]) == ("array", True)
    assert [field["type"] for field in visits["elementType"]["fields"]] == ["date", "decimal(5,2)"]
    assert nullable(schema).field("visits").type.value_field.name == "element"


@pytest.mark.parametrize(
    ("values", "refused"),
    [
        (pa.array([date(1582, 10, 15), None]), None),
        (pa.array([date(1582, 10, 14)]), "days before 1582-10-15"),
        (pa.array([datetime(1970, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")), None),
        (pa.array([datetime(1969, 12, 31, tzinfo=UTC)], pa.timestamp("us", "UTC")), "before 1970"),
        (pa.array([datetime(9999, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")), "after 2262"),
        (pa.array([datetime(2026, 1, 1)], pa.timestamp("us")), "times without a zone"),
        (pa.array([Decimal("1.5")], pa.decimal128(38, 18)), None),
    ],
    ids=str,
)
def test_what_orc_does_not_keep(tmp_path: Path, values: pa.Array, refused: str | None) -> None:
    batch = pa.record_batch({"value": values})
    if refused is None:
        write_orc(iter([batch]), batch.schema, str(tmp_path / "file"))
        read = orc.read_table(tmp_path / "file").column("value").cast(values.type)
        assert read.to_pylist() == values.to_pylist()
    else:
        with pytest.raises(ConfigurationError, match=refused):
            write_orc(iter([batch]), batch.schema, str(tmp_path / "file"))


class FrugalInput(LocalInput):
    """Counts exactly as few different texts as some."""

    most_distinct = 256


def test_more_texts_than_a_task_counts_are_estimated(tmp_path: Path) -> None:
    """The total of tasks took the hashes that they kept for all that there were."""
    (tmp_path / "a.csv").write_text("name\n" + "".join(f"x{place}\n" for place in range(20_000)))
    configuration = parse_configuration(
        {
            "input": {
                "path": str(tmp_path / "a.csv"),
                "format": "csv",
                "options": {"header": "true"},
            },
            "output": {"path": str(tmp_path / "release")},
            "attributes": {"name": {"role": "quasi_identifier"}},
            "privacy": {"k": 2},
            "model": "mondrian",
        }
    )
    engine = LocalEngine()
    table = engine.open_source(configuration)
    for kind, tolerance in ((LocalInput, 0.0), (FrugalInput, 0.3)):
        found = kind.of(table, configuration, {}).inspect()
        assert found["distinct_0"] == pytest.approx(20_000, rel=tolerance)


def test_threads_that_predict_at_once_do_not_warn(recwarn: pytest.WarningsRecorder) -> None:
    """Each call of scikit-learn replaces the filters of warnings of the whole process."""
    features = np.random.default_rng(1).random((100, 3))
    examples = pa.table({"features": list(features), "label": np.round(features[:, 0])})
    models = train(examples, 2)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            for _ in threads.map(
                lambda _: [one.predict(features) for one in models.values()], range(40)
            ):
                pass
    finally:
        sys.setswitchinterval(interval)
    assert not recwarn.list
