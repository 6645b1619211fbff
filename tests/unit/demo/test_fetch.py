"""Download of the Adult data set, against a server on this machine."""

from __future__ import annotations

import hashlib
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from anonspark.demo import fetch
from anonspark.demo.fetch import ADULT_COLUMNS, fetch_adult
from anonspark.errors import ConfigurationError, DataError, EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DERIVED = ("adult.csv", "adult_raw.csv", "adult_test.csv")
ALL_FILES = {"adult.data", "adult.test", *DERIVED}


class _Server:
    """Serves `files`, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.cut_off = False
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                body = outer.files.get(self.path.removeprefix("/adult/"))
                if body is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[: len(body) // 2] if outer.cut_off else body)

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/adult/"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = _Server()
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.http.shutdown()
    thread.join()
    server.http.server_close()


@pytest.fixture(scope="module")
def originals(data_directory: Path) -> dict[str, bytes]:
    """UCI's files, made again from our copies; the module under test checks that they are."""

    def rows(name: str) -> list[str]:
        return (data_directory / name).read_text().replace(",", ", ").splitlines()[1:]

    data = "".join(f"{row}\n" for row in rows("adult_raw.csv")) + "\n"
    test = "".join(f"{row}.\n" for row in rows("adult_test.csv")) + "\n"
    return {
        "adult.data": data.encode(),
        "adult.test": b"|1x3 Cross validator\n" + test.encode(),
    }


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Small stand-ins for UCI's files, which pass for the originals."""
    complete = ", ".join(["39", *("x" for _ in ADULT_COLUMNS[2:]), "<=50K"])
    incomplete = complete.replace("x", "?", 1)
    files = {
        "adult.data": f"{complete}\n{incomplete}\n\n".encode(),
        "adult.test": f"|1x3 Cross validator\n{incomplete}.\n\n".encode(),
    }
    checksums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    monkeypatch.setattr(fetch, "_CHECKSUMS", checksums)
    return files


def test_makes_the_known_files_from_the_originals(
    server: _Server, originals: dict[str, bytes], data_directory: Path, tmp_path: Path
) -> None:
    server.files = originals
    paths = fetch_adult(tmp_path, base_url=server.url)
    assert [path.parent for path in paths] == [tmp_path] * 5
    assert {path.name for path in paths} == ALL_FILES == {p.name for p in tmp_path.iterdir()}
    for name in DERIVED:
        assert (tmp_path / name).read_bytes() == (data_directory / name).read_bytes()
    for name, content in originals.items():
        assert (tmp_path / name).read_bytes() == content
    checksum = hashlib.sha256((tmp_path / "adult.csv").read_bytes()).hexdigest()
    assert checksum == "1ee178beba351488009b89f6f8e5649fb69054f40be9b08bdb24d1c4fc53214e"


def test_keeps_complete_rows_and_cleans_values(
    server: _Server, tiny: dict[str, bytes], tmp_path: Path
) -> None:
    server.files = tiny
    target = tmp_path / "new" / "folder"
    fetch_adult(target, base_url=server.url.rstrip("/"))
    header = ",".join(ADULT_COLUMNS)
    x = ",".join("x" * 13)
    assert (target / "adult.csv").read_bytes() == f"{header}\n39,{x},<=50K\n".encode()
    assert len((target / "adult_raw.csv").read_text().splitlines()) == 3
    test_table = (target / "adult_test.csv").read_text()
    assert test_table == f"{header}\n39,{x.replace('x', '?', 1)},<=50K\n"


def test_uses_checked_downloads_again(
    server: _Server, tiny: dict[str, bytes], tmp_path: Path
) -> None:
    for name, content in tiny.items():
        (tmp_path / name).write_bytes(content)
    fetch_adult(tmp_path, base_url=server.url)
    assert server.asked == []
    assert {path.name for path in tmp_path.iterdir()} == ALL_FILES


def test_replaces_a_download_that_is_not_the_original(
    server: _Server, tiny: dict[str, bytes], tmp_path: Path
) -> None:
    server.files = tiny
    (tmp_path / "adult.data").write_bytes(b"a copy that differs")
    fetch_adult(tmp_path, base_url=server.url)
    assert server.asked == ["/adult/adult.data", "/adult/adult.test"]
    assert (tmp_path / "adult.data").read_bytes() == tiny["adult.data"]


@pytest.mark.parametrize("wrong", ["adult.data", "adult.test"])
def test_wrong_checksum(
    server: _Server, tiny: dict[str, bytes], tmp_path: Path, wrong: str
) -> None:
    server.files = {**tiny, wrong: b"something else"}
    (tmp_path / "adult.csv").write_text("from before")
    with pytest.raises(DataError, match=rf"{wrong}: is not UCI's original.*SHA-256"):
        fetch_adult(tmp_path, base_url=server.url)
    assert [path.name for path in tmp_path.iterdir()] == ["adult.csv"]
    assert (tmp_path / "adult.csv").read_text() == "from before"


def test_endless_download(
    server: _Server, tiny: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "_LIMIT_BYTES", 10)
    server.files = tiny
    with pytest.raises(DataError, match="larger than 10 bytes"):
        fetch_adult(tmp_path, base_url=server.url)
    assert list(tmp_path.iterdir()) == []


def test_server_without_the_file(server: _Server, tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match=r"adult\.data: the server answered 404"):
        fetch_adult(tmp_path / "new" / "folder", base_url=server.url)
    assert list(tmp_path.iterdir()) == []


def test_download_breaks_off(server: _Server, tiny: dict[str, bytes], tmp_path: Path) -> None:
    server.files = tiny
    server.cut_off = True
    with pytest.raises(EnvironmentProblem, match="broke off"):
        fetch_adult(tmp_path, base_url=server.url)
    assert list(tmp_path.iterdir()) == []


def test_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # bound but not listening: nobody answers
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
        with pytest.raises(EnvironmentProblem, match="cannot be reached"):
            fetch_adult(tmp_path, base_url=url)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["file:///etc/", "ftp://127.0.0.1/adult/", "adult"])
def test_other_kinds_of_address(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigurationError, match="https://"):
        fetch_adult(tmp_path, base_url=url)


def test_directory_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for directory in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ConfigurationError, match="cannot be made a folder"):
            fetch_adult(directory)


def test_full_disk(
    server: _Server, tiny: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    server.files = tiny
    monkeypatch.setattr(fetch, "_write", fail)
    with pytest.raises(EnvironmentProblem, match="No space left on device"):
        fetch_adult(tmp_path / "new", base_url=server.url)
    assert list(tmp_path.iterdir()) == []
