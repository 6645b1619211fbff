"""Files and directories through the Hadoop FileSystem API: HDFS, object stores and local disks."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from anonspark.errors import ConfigurationError

__all__ = ["FileSystem"]


@contextmanager
def _reaching(path: str) -> Iterator[None]:
    """Translate what Hadoop says of a path that it cannot reach.

    Raises
    ------
    ConfigurationError
        Naming the path.
    """
    try:
        yield
    except (Py4JError, PySparkException) as error:
        raise ConfigurationError(
            f"path {path}: Hadoop cannot reach it; check scheme, host, spelling (a relative path "
            "has no colon) and permissions, and that Spark has the package of its file system"
        ) from error


@dataclass(frozen=True)
class FileSystem:
    """Path operations as the cluster sees them; nothing here assumes a local disk.

    Parameters
    ----------
    spark : SparkSession
        A classic session: the API is reached through its Java gateway.
    """

    spark: SparkSession

    @cached_property
    def _path_class(self) -> Any:
        # Each part of a name of Java's is a call of its own.
        return self.spark._jvm.org.apache.hadoop.fs.Path  # type: ignore[union-attr]

    def _open(self, path: str) -> tuple[Any, Any]:
        if "\0" in path:
            raise ConfigurationError(
                f"path {path!r}: found the character NUL, which no file system has in names; "
                "remove it"
            )
        with _reaching(path):
            java_path = self._path_class(path)
            configuration = self.spark._jsc.hadoopConfiguration()
            return java_path.getFileSystem(configuration), java_path

    def qualified(self, path: str) -> str:
        """Return the absolute address of a path, with scheme and without dots."""
        file_system, java_path = self._open(path)
        with _reaching(path):
            return str(file_system.makeQualified(java_path).toString())

    def resolved(self, path: str) -> str:
        """Return the absolute address of a path, with local symbolic links followed."""
        address = self.qualified(path)
        if address.startswith("file:"):
            return "file:" + os.path.realpath(address.removeprefix("file:"))
        return address

    def exists(self, path: str) -> bool:
        """Return whether a file or directory is there."""
        file_system, java_path = self._open(path)
        with _reaching(path):
            return bool(file_system.exists(java_path))

    def matches(self, pattern: str) -> list[str]:
        """Return the addresses of all files and directories that a path or glob pattern names."""
        file_system, java_path = self._open(pattern)
        with _reaching(pattern):
            found = file_system.globStatus(java_path)
        return [str(status.getPath().toString()) for status in found or ()]

    def parent(self, path: str) -> str:
        """Return the address of the directory that holds a path."""
        file_system, java_path = self._open(path)
        with _reaching(path):
            parent = file_system.makeQualified(java_path).getParent()
        return str(parent.toString()) if parent is not None else self.qualified(path)

    def make_private_directory(self, path: str) -> None:
        """Create a directory, readable by its owner only where the file system knows owners.

        One that is there already is made private; its parents are created as usual.

        Raises
        ------
        OSError, Py4JError
            If the file system refuses, as for a directory of somebody else.
        """
        # On HDFS missing parents would get the same permission, and hide the release.
        self.make_directory(self.parent(path))
        file_system, java_path = self._open(path)
        permission = self.spark._jvm.org.apache.hadoop.fs.permission.FsPermission("700")  # type: ignore[union-attr]
        if not file_system.mkdirs(java_path, permission):
            raise OSError(f"cannot create directory {path}")
        file_system.setPermission(java_path, permission)

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents."""
        file_system, java_path = self._open(path)
        if not file_system.mkdirs(java_path):
            raise OSError(f"cannot create directory {path}")

    def children(self, path: str) -> list[str]:
        """Return the addresses of what a directory holds, sorted; none where it is not there."""
        file_system, java_path = self._open(path)
        with _reaching(path):
            if not file_system.exists(java_path):
                return []
            found = file_system.listStatus(java_path)
        return sorted(str(status.getPath().toString()) for status in found)

    def files_below(self, path: str) -> list[tuple[str, int]]:
        """Return every file of a directory at any depth, sorted: relative path, and bytes."""
        file_system, java_path = self._open(path)
        start = len(str(file_system.makeQualified(java_path).toString()).rstrip("/")) + 1
        found = []
        with _reaching(path):
            statuses = file_system.listFiles(java_path, True)
            while statuses.hasNext():
                status = statuses.next()
                found.append((str(status.getPath().toString())[start:], int(status.getLen())))
        return sorted(found)

    def sha256(self, path: str) -> str:
        """Return the SHA-256 of a file in hexadecimal digits; it is read in Java, by the driver."""
        file_system, java_path = self._open(path)
        digests = self.spark._jvm.org.apache.commons.codec.digest.DigestUtils  # type: ignore[union-attr]
        with _reaching(path):
            stream = file_system.open(java_path)
            try:
                return str(digests.sha256Hex(stream))
            finally:
                stream.close()

    def rename(self, source: str, target: str) -> None:
        """Rename a file or directory; the target must not exist.

        Raises
        ------
        OSError
            If the file system refuses, or the target came into being meanwhile; source and target
            are then as they were.
        """
        file_system, source_path = self._open(source)
        target_path = self._open(target)[1]
        if file_system.exists(target_path):
            raise OSError(f"cannot rename {source} to {target}: it is there already")
        name = nested = source_path.getName()
        is_directory = file_system.getFileStatus(source_path).isDirectory()
        # A directory may hold one of its own name, as a release called data does.
        while is_directory and self.exists(f"{source}/{nested}"):
            nested = f"{nested}/{name}"
        if not file_system.rename(source_path, target_path):
            raise OSError(f"cannot rename {source} to {target}")
        # Hadoop moves into a directory that came into being since the question above.
        if is_directory and self.exists(f"{target}/{nested}"):
            file_system.rename(self._open(f"{target}/{name}")[1], source_path)
            raise OSError(f"cannot rename {source} to {target}: it is there already")

    def replace(self, path: str, content: bytes, temporary: str) -> None:
        """Write a small file aside and rename it, so that readers never see half of it.

        A file that is there is deleted just before, for a rename does not overwrite.

        Parameters
        ----------
        path : str
        content : bytes
        temporary : str
            Name to write under in the same directory; hidden, so that readers pass over it.

        Raises
        ------
        OSError
            If the file system refuses; no temporary file is left.
        """
        aside = f"{self.parent(path)}/{temporary}"
        try:
            self.write_bytes(aside, content)
            self.delete(path)
            self.rename(aside, path)
        except BaseException:
            self.delete(aside)
            raise

    def delete(self, path: str) -> None:
        """Delete a file or a directory with all that is in it; nothing happens where none is."""
        file_system, java_path = self._open(path)
        if file_system.exists(java_path) and not file_system.delete(java_path, True):
            raise OSError(f"cannot delete {path}")

    def delete_if_empty(self, path: str) -> None:
        """Delete a directory that holds no file at any depth."""
        file_system, java_path = self._open(path)
        if file_system.exists(java_path) and not file_system.listFiles(java_path, True).hasNext():
            file_system.delete(java_path, True)

    def create_text(self, path: str, text: str) -> None:
        """Write a small UTF-8 file that must not be there: of several writers one succeeds.

        Raises
        ------
        FileExistsError
        """
        file_system, java_path = self._open(path)
        try:
            stream = file_system.create(java_path, False)
        except Py4JError as error:
            if not file_system.exists(java_path):
                raise
            raise FileExistsError(path) from error
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def write_text(self, path: str, text: str) -> None:
        """Write a small UTF-8 file."""
        self.write_bytes(path, text.encode())

    def write_atomically(self, path: str, text: str) -> None:
        """Write a small UTF-8 file that is there as a whole or not at all; replaces none."""
        directory, _, name = path.rpartition("/")
        hidden = f"{directory}/.{name}.writing"
        self.write_text(hidden, text)
        self.rename(hidden, path)

    def write_bytes(self, path: str, content: bytes) -> None:
        """Write a small file."""
        file_system, java_path = self._open(path)
        stream = file_system.create(java_path, True)
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()

    def read_text(self, path: str) -> str:
        """Read a small UTF-8 file."""
        file_system, java_path = self._open(path)
        stream = file_system.open(java_path)
        try:
            utilities = self.spark._jvm.org.apache.commons.io.IOUtils  # type: ignore[union-attr]
            return bytes(utilities.toByteArray(stream)).decode()
        finally:
            stream.close()

    def read_document(self, path: str) -> str:
        """Read a file that a user named, and say what is wrong as the local disk does.

        Raises
        ------
        OSError
            If there is no such file, or it cannot be read.
        UnicodeDecodeError
            If it is not UTF-8.
        ConfigurationError
            If Hadoop cannot reach the place.
        """
        if not self.exists(path):
            raise FileNotFoundError(path)
        try:
            return self.read_text(path).removeprefix("\ufeff")
        except (Py4JError, PySparkException) as error:
            raise OSError(errno.EIO, "Hadoop cannot open it as a file", path) from error
