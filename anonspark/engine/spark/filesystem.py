"""Files and directories through the Hadoop FileSystem API: HDFS, object stores and local disks."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from anonspark.engine.files import (
    Entry,
    Files,
    FilesError,
    each_method,
    holds_copies,
    literal,
    require_no_nul,
)
from anonspark.engine.local.files import LocalFiles
from anonspark.engine.spark.connect import MountedFiles
from anonspark.engine.spark.errors import environment_problem, java_class_name
from anonspark.engine.spark.java_objects import elements_of_scala, java_class, sequence_of, texts_of
from anonspark.engine.spark.settings import is_of_connect
from anonspark.errors import ConfigurationError, EnvironmentProblem
from anonspark.ownership import LINK, Access, fault_at, fault_of, make_private

_P = ParamSpec("_P")
_R = TypeVar("_R")

# Of S3A since Hadoop 3.4.2: the store refuses a file that is there (HADOOP-19256).
_CONDITIONAL = "fs.option.create.conditional.overwrite"

# What Hadoop throws because of a file, and not of a disk or a connection; and of a permission.
_OF_FILES = {"FileNotFoundException": errno.ENOENT, "ChecksumException": errno.EBADMSG}
_OF_PERMISSIONS = ("AccessDeniedException", "AccessControlException")

# What a file's status prints, whatever else it adds.
_PRINTED = re.compile(r"\{path=([\w.+-]+:/.+); isDirectory=false; length=(\d+); ", re.DOTALL)

# Hadoop has no question for it. Of others than these (abfs: is one) a rename may be one step.
_OBJECT_STORES = frozenset({"s3", "s3a", "gs"})


@contextmanager
def _reaching(path: str) -> Iterator[None]:
    """Translate what Hadoop says of a path that it cannot reach.

    Raises
    ------
    ConfigurationError
        Naming the path.
    EnvironmentProblem
        If what is there may be reached another time.
    """
    try:
        yield
    except (Py4JError, PySparkException) as error:
        problem = environment_problem(error)
        if problem is not None:
            raise EnvironmentProblem(f"path {path}: {problem}") from error
        raise ConfigurationError(
            f"path {path}: Hadoop cannot reach it. Check scheme, host, spelling (a relative path "
            "has no colon) and permissions, and that Spark has the package of its file system"
        ) from _refusal_of(error, path)


def _refusal_of(error: Exception, path: str) -> Exception:
    """Return an error of the system for one of a permission, which says nothing of the file."""
    if not any(name in str(error) for name in _OF_PERMISSIONS):
        return error
    refusal = FilesError(errno.EACCES, java_class_name(error) or os.strerror(errno.EACCES), path)
    refusal.__cause__ = error
    return refusal


def _refused(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """Translate what Hadoop says where it refuses. A lost Java stays what it is."""

    @wraps(method)
    def translated(*arguments: _P.args, **named: _P.kwargs) -> _R:
        try:
            return method(*arguments, **named)
        except Py4JNetworkError:
            raise
        except (Py4JError, PySparkException) as error:
            problem = environment_problem(error)
            if problem is not None:
                raise EnvironmentProblem(problem) from error
            # Its text may quote an address with a password.
            kind = java_class_name(error) or str(error)
            codes = (number for name, number in _OF_FILES.items() if name in str(error))
            raise FilesError(next(codes, errno.EIO), kind, str(arguments[1])) from error

    return translated


@each_method(_refused)
@dataclass(frozen=True)
class FileSystem(Files):
    """Hadoop's file systems. :class:`anonspark.engine.files.Files` says more of each method.

    Parameters
    ----------
    spark : SparkSession
        A classic session: the API is reached through its Java gateway.
    """

    spark: SparkSession

    @cached_property
    def _path_class(self) -> Any:
        return java_class(self.spark, "org.apache.hadoop.fs.Path")

    def _open(self, path: str) -> tuple[Any, Any]:
        require_no_nul(path)
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
        address = path if path.startswith("file:/") else self.qualified(path)
        if address.startswith("file:"):
            return "file:" + os.path.realpath(address.removeprefix("file:"))
        return address

    def local_path(self, path: str) -> str | None:
        """Return where a path is on the local disk, links not followed, or None for other paths."""
        file_system, java_path = self._open(path)
        with _reaching(path):
            address = str(file_system.makeQualified(java_path).toString())
            if address.startswith("viewfs:"):
                above = java_path.getParent()
                if above is None or not file_system.exists(above):
                    return None
                resolved = str(file_system.resolvePath(above).toString()).rstrip("/")
                address = f"{resolved}/{java_path.getName()}"
        return address.removeprefix("file:") if address.startswith("file:") else None

    def fault(self, path: str, access: Access = "shared") -> str | None:
        """Return why what is at a path cannot be used, and what to do, or None if it can."""
        local = self.local_path(path)
        if local is not None:
            return fault_at(local, access)
        file_system, java_path = self._open(path)
        try:
            status = file_system.getFileLinkStatus(java_path)
        except Py4JError as error:
            # Asked once more, it might be there because another process made it.
            if "FileNotFoundException" not in str(error):
                raise
            return None
        if status.isSymlink():
            return LINK
        # Object stores say that everything is ours, others name owners as they like.
        if not str(file_system.resolvePath(java_path).toUri().getScheme()).endswith("hdfs"):
            return None
        users = java_class(self.spark, "org.apache.hadoop.security.UserGroupInformation")
        user = users.getCurrentUser()
        mode = int(status.getPermission().toShort())
        owner = str(status.getOwner()), str(status.getGroup()), mode
        return fault_of(owner, str(user.getShortUserName()), set(user.getGroupNames()), access)

    def remote_tree(self, path: str) -> list[Entry]:
        """Return what a directory holds that is on no local disk."""
        return self._remote_tree(*self._open(path), "")

    def _remote_tree(self, file_system: Any, directory: Any, prefix: str) -> list[Entry]:
        if not file_system.exists(directory):
            return []
        entries = []
        for status in file_system.listStatus(directory):
            inner = status.getPath()
            path = prefix + str(inner.getName())
            if status.isSymlink():
                entries.append(Entry(path, "link"))
            elif status.isDirectory():
                entries.append(Entry(path, "directory"))
                entries += self._remote_tree(file_system, inner, f"{path}/")
            else:
                entries.append(Entry(path, "file", int(status.getLen())))
        return entries

    def exists(self, path: str) -> bool:
        """Return whether a file or directory is there."""
        file_system, java_path = self._open(path)
        with _reaching(path):
            try:
                return bool(file_system.exists(java_path))
            except Py4JError as error:
                # So HDFS answers whoever is not its superuser, where the parent is a file.
                if "(is not a directory)" not in str(error):
                    raise
                return False

    def matches(self, pattern: str) -> list[str]:
        """Return the addresses of all files and directories that a path or glob pattern names."""
        file_system, java_path = self._open(pattern)
        with _reaching(pattern):
            if literal(pattern) != pattern and file_system.exists(java_path):
                return [str(file_system.makeQualified(java_path).toString())]
            return self._paths(file_system.globStatus(java_path))

    def parent(self, path: str) -> str:
        """Return the address of the directory that holds a path."""
        file_system, java_path = self._open(path)
        with _reaching(path):
            parent = file_system.makeQualified(java_path).getParent()
        return str(parent.toString()) if parent is not None else self.qualified(path)

    def make_private_directory(self, path: str) -> None:
        """Create a directory, readable by its owner only where the file system knows owners."""
        # On HDFS missing parents would get the same permission, and hide the release.
        self.make_directory(self.parent(path))
        local = self.local_path(path)
        if local is not None:
            make_private(Path(local))
            return
        fault = self.fault(path, "code")
        if fault is not None:
            raise OSError(f"{path} {fault}")
        file_system, java_path = self._open(path)
        permission = java_class(self.spark, "org.apache.hadoop.fs.permission.FsPermission")("700")
        if not file_system.mkdirs(java_path, permission):
            raise OSError(f"cannot create directory {path}")
        file_system.setPermission(java_path, permission)
        # Somebody else may have made it meanwhile, which Hadoop does not say.
        fault = self.fault(path, "private")
        if fault is not None:
            raise OSError(f"{path} {fault}")

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents."""
        file_system, java_path = self._open(path)
        if not file_system.mkdirs(java_path):
            raise OSError(f"cannot create directory {path}")

    def children(self, path: str) -> list[str]:
        """Return the sorted addresses of what a directory holds, none if there is no directory."""
        file_system, java_path = self._open(path)
        with _reaching(path):
            is_there = file_system.exists(java_path)
            return self._paths(file_system.listStatus(java_path) if is_there else None)

    def _paths(self, statuses: Any | None) -> list[str]:
        """Return the sorted paths of statuses, None of which is there if there is no array."""
        if statuses is None:
            return []
        utilities = java_class(self.spark, "org.apache.hadoop.fs.FileUtil")
        try:
            return sorted(texts_of(sequence_of(self.spark, utilities.stat2Paths(statuses))))
        except Py4JError:
            # Py4J finds no method for an array of other statuses, such as those of S3A.
            return sorted(str(status.getPath().toString()) for status in statuses)

    def files_below(self, path: str) -> list[tuple[str, int]]:
        """Return every file of a directory at any depth, sorted: relative path, and bytes."""
        file_system, java_path = self._open(path)
        with _reaching(path):
            # What viewfs prints of a file leaves out its path.
            root = file_system.resolvePath(java_path)
            address = str(root.toString())
            if address.startswith("file:"):
                # Hadoop would start a program for each file, to ask for owner and permissions.
                return LocalFiles().files_below(address)
            iterators = java_class(self.spark, "org.apache.hadoop.util.functional.RemoteIterators")
            configuration = self.spark._jsc.hadoopConfiguration()
            iterator = root.getFileSystem(configuration).listFiles(root, True)
            listed = paths_and_sizes(sequence_of(self.spark, iterators.toList(iterator).toArray()))
        start = len(address.rstrip("/")) + 1
        return sorted((file[start:], size) for file, size in listed)

    def sha256(self, path: str) -> str:
        """Return the SHA-256 of a file in hexadecimal digits. It is read in Java, by the driver."""
        file_system, java_path = self._open(path)
        digests = java_class(self.spark, "org.apache.commons.codec.digest.DigestUtils")
        with _reaching(path), closing(file_system.open(java_path)) as stream:
            return str(digests.sha256Hex(stream))

    def rename_copies(self, path: str) -> bool:
        """Return whether renaming a directory copies all that is in it, as object stores do."""
        return str(self._open(path)[0].getUri().getScheme()) in _OBJECT_STORES

    def rename(self, source: str, target: str) -> None:
        """Rename a file or directory. The target must not exist."""
        file_system, source_path = self._open(source)
        target_path = self._open(target)[1]
        if file_system.exists(target_path):
            raise OSError(f"cannot rename {source} to {target}: it is there already")
        name = nested = source_path.getName()
        is_directory = file_system.getFileStatus(source_path).isDirectory()
        # A directory may hold one of its own name, as a release called data does.
        while is_directory and self.exists(f"{source}/{nested}"):
            nested = f"{nested}/{name}"
        try:
            if not file_system.rename(source_path, target_path):
                raise OSError(f"cannot rename {source} to {target}")
        except Py4JError:
            if not (self.rename_copies(source) and self.exists(target)):
                raise
            if is_directory and self.exists(source) and not holds_copies(self, target, source):
                # Not all was copied. What others put there meanwhile is not ours to delete.
                if holds_copies(self, source, target):
                    self.delete(target)
                raise
            # All was copied, and some or all of it deleted.
            self.delete(source)
        # Hadoop moves into a directory that came into being since the question above.
        if is_directory and self.exists(f"{target}/{nested}"):
            file_system.rename(self._open(f"{target}/{name}")[1], source_path)
            raise OSError(f"cannot rename {source} to {target}: it is there already")

    def replace(self, path: str, content: bytes, temporary: str) -> None:
        """Write a small file aside and rename it, so that readers never see half of it."""
        local = self.local_path(path)
        if local is not None:
            LocalFiles().replace(local, content, temporary)
            return
        if self.rename_copies(path):
            # An object is there as a whole, or the earlier one is.
            self.write_bytes(path, content)
            return
        aside = f"{self.parent(path)}/{temporary}"
        try:
            self.write_bytes(aside, content)
            if not self._rename_over(aside, path):
                self.delete(path)
                self.rename(aside, path)
        except BaseException:
            # Else it is the only one that is left.
            if self.exists(path):
                self.delete(aside)
            raise

    def _rename_over(self, source: str, target: str) -> bool:
        """Rename a file in one step to where another one may be. False where nothing is known."""
        file_system, source_path = self._open(source)
        if not str(file_system.getScheme()).endswith("hdfs"):
            return False
        rename = java_class(self.spark, "org.apache.hadoop.fs.Options$Rename")
        overwriting = self.spark._sc._gateway.new_array(rename, 1)  # type: ignore[union-attr]
        overwriting[0] = rename.OVERWRITE
        context = java_class(self.spark, "org.apache.hadoop.fs.FileContext").getFileContext(
            file_system.getUri(), self.spark._jsc.hadoopConfiguration()
        )
        context.rename(source_path, self._open(target)[1], overwriting)
        return True

    def delete(self, path: str) -> None:
        """Delete a file or a directory with all that is in it. Nothing happens where none is."""
        file_system, java_path = self._open(path)
        if file_system.exists(java_path) and not file_system.delete(java_path, True):
            raise OSError(f"cannot delete {path}")

    def delete_if_empty(self, path: str) -> None:
        """Delete a directory that holds no file at any depth."""
        file_system, java_path = self._open(path)
        if file_system.exists(java_path) and not file_system.listFiles(java_path, True).hasNext():
            file_system.delete(java_path, True)

    def create_text(self, path: str, text: str) -> None:
        """Write a small UTF-8 file that must not be there: of several writers one succeeds."""
        file_system, java_path = self._open(path)
        # An object store looks first and writes at the end, unless the writing itself is refused.
        conditional = file_system.hasPathCapability(java_path, _CONDITIONAL)
        try:
            if conditional:
                builder = file_system.createFile(java_path).overwrite(False)
                stream = builder.opt(_CONDITIONAL, "true").build()
            else:
                stream = file_system.create(java_path, False)
        except Py4JError as error:
            if not file_system.exists(java_path):
                raise
            raise FileExistsError(path) from error
        try:
            stream.write(bytearray(text.encode()))
        except BaseException:
            with suppress(Py4JError):
                stream.close()
            raise
        try:
            stream.close()
        except Py4JError as error:
            if not conditional or not file_system.exists(java_path):
                raise
            raise FileExistsError(path) from error

    def write_bytes(self, path: str, content: bytes) -> None:
        """Write a small file."""
        local = self.local_path(path)
        if local is not None and Path(local).is_symlink():
            raise OSError(f"{path} {LINK}")
        file_system, java_path = self._open(path)
        with closing(file_system.create(java_path, True)) as stream:
            stream.write(bytearray(content))

    def read_text(self, path: str) -> str:
        """Read a small UTF-8 file."""
        file_system, java_path = self._open(path)
        utilities = java_class(self.spark, "org.apache.commons.io.IOUtils")
        with closing(file_system.open(java_path)) as stream:
            return bytes(utilities.toByteArray(stream)).decode()

    def read_part(self, path: str, offset: int, length: int) -> bytes:
        """Read some bytes of a file that has as many there."""
        file_system, java_path = self._open(path)
        utilities = java_class(self.spark, "org.apache.commons.io.IOUtils")
        with closing(file_system.open(java_path)) as stream:
            stream.seek(offset)
            return bytes(utilities.toByteArray(stream, length))

    def size(self, path: str) -> int:
        """Return the bytes of a file."""
        file_system, java_path = self._open(path)
        return int(file_system.getFileStatus(java_path).getLen())


def paths_and_sizes(statuses: Any) -> list[tuple[str, int]]:
    """Return the paths and bytes of files, of a sequence of Scala's of Hadoop's statuses.

    Notes
    -----
    Taken from what statuses print, and if they print something else, asked for one by one.
    """
    printed = [_PRINTED.search(text) for text in texts_of(statuses)]
    if all(printed):
        return [(match[1], int(match[2])) for match in printed if match is not None]
    return [(str(s.getPath().toString()), int(s.getLen())) for s in elements_of_scala(statuses)]


def files_of(spark: SparkSession) -> FileSystem | MountedFiles:
    """Return the files and directories that a session reads and writes."""
    return MountedFiles(spark) if is_of_connect(spark) else FileSystem(spark)


def path_for(spark: SparkSession, path: str) -> str:
    """Return a path as a session has to be given it.

    A path without scheme is on the server's default file system, which is not that of this process.
    """
    return MountedFiles(spark).qualified(path) if is_of_connect(spark) else path
