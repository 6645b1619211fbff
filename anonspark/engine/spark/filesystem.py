"""Files and directories of HDFS, object stores and local disks, by Hadoop's FileSystem API."""

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

# An option of S3A since Hadoop 3.4.2: the store refuses a file that exists (HADOOP-19256).
_CONDITIONAL = "fs.option.create.conditional.overwrite"

# Hadoop's exceptions because of a file, not of a disk or a connection, and because of permissions.
_OF_FILES = {"FileNotFoundException": errno.ENOENT, "ChecksumException": errno.EBADMSG}
_OF_PERMISSIONS = ("AccessDeniedException", "AccessControlException")

# The beginning of a file's status as Java prints it.
_PRINTED = re.compile(r"\{path=([\w.+-]+:/.+); isDirectory=false; length=(\d+); ", re.DOTALL)

# Hadoop has no method for it. In other stores (abfs: is one) a rename may be one step.
_OBJECT_STORES = frozenset({"s3", "s3a", "gs"})


@contextmanager
def _reaching(path: str) -> Iterator[None]:
    """Translate errors of Hadoop about a path.

    Raises EnvironmentProblem for a fault that may pass, else ConfigurationError with the path.
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
    """Return a system's error for one of a permission, which does not depend on the file."""
    if not any(name in str(error) for name in _OF_PERMISSIONS):
        return error
    refusal = FilesError(errno.EACCES, java_class_name(error) or os.strerror(errno.EACCES), path)
    refusal.__cause__ = error
    return refusal


def _refused(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a method to raise FilesError for errors of Hadoop, unless its Java has ended."""

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
            # Only the kind: the text may quote an address with a password.
            kind = java_class_name(error) or str(error)
            codes = (number for name, number in _OF_FILES.items() if name in str(error))
            raise FilesError(next(codes, errno.EIO), kind, str(arguments[1])) from error

    return translated


@each_method(_refused)
@dataclass(frozen=True)
class FileSystem(Files):
    """Hadoop's file systems. :class:`anonspark.engine.files.Files` describes each method.

    The session is a classic one, through whose Java the API is called.
    """

    spark: SparkSession

    @cached_property
    def _path_class(self) -> Any:
        """Return Hadoop's class of paths."""
        return java_class(self.spark, "org.apache.hadoop.fs.Path")

    def _open(self, path: str) -> tuple[Any, Any]:
        """Return the file system of a path, and the path as Hadoop's object."""
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
        """Return where a path is on the local disk, without following links, or None."""
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
        """Return why a file or directory is unsafe to use, with a remedy, or None if it is safe."""
        local = self.local_path(path)
        if local is not None:
            return fault_at(local, access)
        file_system, java_path = self._open(path)
        try:
            status = file_system.getFileLinkStatus(java_path)
        except Py4JError as error:
            # No second call: meanwhile another process may create it.
            if "FileNotFoundException" not in str(error):
                raise
            return None
        if status.isSymlink():
            return LINK
        # In object stores everything is ours, and other file systems name arbitrary owners.
        if not str(file_system.resolvePath(java_path).toUri().getScheme()).endswith("hdfs"):
            return None
        users = java_class(self.spark, "org.apache.hadoop.security.UserGroupInformation")
        user = users.getCurrentUser()
        mode = int(status.getPermission().toShort())
        owner = str(status.getOwner()), str(status.getGroup()), mode
        return fault_of(owner, str(user.getShortUserName()), set(user.getGroupNames()), access)

    def remote_tree(self, path: str) -> list[Entry]:
        """List a directory that is not on a local disk."""
        return self._remote_tree(*self._open(path), "")

    def _remote_tree(self, file_system: Any, directory: Any, prefix: str) -> list[Entry]:
        """List a directory at any depth, with a prefix before each path."""
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
        """Return the addresses of all files and directories that match a path or glob pattern."""
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
        """Create a directory that its owner alone can read, if the file system has owners."""
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
        # Hadoop does not report that another user created it meanwhile.
        fault = self.fault(path, "private")
        if fault is not None:
            raise OSError(f"{path} {fault}")

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents."""
        file_system, java_path = self._open(path)
        if not file_system.mkdirs(java_path):
            raise OSError(f"cannot create directory {path}")

    def children(self, path: str) -> list[str]:
        """Return the sorted addresses in a directory, or an empty list if no directory is there."""
        file_system, java_path = self._open(path)
        with _reaching(path):
            is_there = file_system.exists(java_path)
            return self._paths(file_system.listStatus(java_path) if is_there else None)

    def _paths(self, statuses: Any | None) -> list[str]:
        """Return the sorted paths of an array of statuses, or an empty list if it is None."""
        if statuses is None:
            return []
        utilities = java_class(self.spark, "org.apache.hadoop.fs.FileUtil")
        try:
            return sorted(texts_of(sequence_of(self.spark, utilities.stat2Paths(statuses))))
        except Py4JError:
            # Py4J finds no method for an array of a subclass of statuses, such as S3A's.
            return sorted(str(status.getPath().toString()) for status in statuses)

    def files_below(self, path: str) -> list[tuple[str, int]]:
        """List the relative path and bytes of every file of a directory, at any depth, sorted."""
        file_system, java_path = self._open(path)
        with _reaching(path):
            # A status of viewfs does not print its path.
            root = file_system.resolvePath(java_path)
            address = str(root.toString())
            if address.startswith("file:"):
                # Hadoop would start a program for each file, for its owner and permissions.
                return LocalFiles().files_below(address)
            iterators = java_class(self.spark, "org.apache.hadoop.util.functional.RemoteIterators")
            configuration = self.spark._jsc.hadoopConfiguration()
            iterator = root.getFileSystem(configuration).listFiles(root, True)
            listed = paths_and_sizes(sequence_of(self.spark, iterators.toList(iterator).toArray()))
        start = len(address.rstrip("/")) + 1
        return sorted((file[start:], size) for file, size in listed)

    def sha256(self, path: str) -> str:
        """Return the SHA-256 of a file in hexadecimal digits. The driver's Java reads it."""
        file_system, java_path = self._open(path)
        digests = java_class(self.spark, "org.apache.commons.codec.digest.DigestUtils")
        with _reaching(path), closing(file_system.open(java_path)) as stream:
            return str(digests.sha256Hex(stream))

    def rename_copies(self, path: str) -> bool:
        """Return whether renaming a directory copies all that is in it, as object stores do."""
        return str(self._open(path)[0].getUri().getScheme()) in _OBJECT_STORES

    def rename(self, source: str, target: str) -> None:
        """Rename a file or directory to a path that must not exist."""
        file_system, source_path = self._open(source)
        target_path = self._open(target)[1]
        if file_system.exists(target_path):
            raise OSError(f"cannot rename {source} to {target}: it is there already")
        name = nested = source_path.getName()
        is_directory = file_system.getFileStatus(source_path).isDirectory()
        # A directory may have a child of the same name, as a release called data does.
        while is_directory and self.exists(f"{source}/{nested}"):
            nested = f"{nested}/{name}"
        try:
            if not file_system.rename(source_path, target_path):
                raise OSError(f"cannot rename {source} to {target}")
        except Py4JError:
            if not (self.rename_copies(source) and self.exists(target)):
                raise
            if is_directory and self.exists(source) and not holds_copies(self, target, source):
                # Not all was copied. Files of others in the target must not be deleted.
                if holds_copies(self, source, target):
                    self.delete(target)
                raise
            # All was copied, and some or all of the source is deleted.
            self.delete(source)
        # If the target was created since the check above, Hadoop moved the directory into it.
        if is_directory and self.exists(f"{target}/{nested}"):
            file_system.rename(self._open(f"{target}/{name}")[1], source_path)
            raise OSError(f"cannot rename {source} to {target}: it is there already")

    def replace(self, path: str, content: bytes, temporary: str) -> None:
        """Replace a small file by way of a temporary one, so that readers never see a part."""
        local = self.local_path(path)
        if local is not None:
            LocalFiles().replace(local, content, temporary)
            return
        if self.rename_copies(path):
            # Stores replace an object in one step.
            self.write_bytes(path, content)
            return
        aside = f"{self.parent(path)}/{temporary}"
        try:
            self.write_bytes(aside, content)
            if not self._rename_over(aside, path):
                self.delete(path)
                self.rename(aside, path)
        except BaseException:
            # If the target is gone, this is the only file that is left.
            if self.exists(path):
                self.delete(aside)
            raise

    def _rename_over(self, source: str, target: str) -> bool:
        """Rename a file over another one in one step, or return False if that is uncertain."""
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
        """Delete a file, or a directory with all that is in it.

        Does nothing if neither is there.
        """
        file_system, java_path = self._open(path)
        if file_system.exists(java_path) and not file_system.delete(java_path, True):
            raise OSError(f"cannot delete {path}")

    def delete_if_empty(self, path: str) -> None:
        """Delete a directory that holds no file at any depth."""
        file_system, java_path = self._open(path)
        if file_system.exists(java_path) and not file_system.listFiles(java_path, True).hasNext():
            file_system.delete(java_path, True)

    def create_text(self, path: str, text: str) -> None:
        """Write a small UTF-8 file that must not exist: only one of several writers succeeds."""
        file_system, java_path = self._open(path)
        # Without a conditional write an object store checks first and writes when closing.
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
        """Read ``length`` bytes at ``offset``."""
        file_system, java_path = self._open(path)
        utilities = java_class(self.spark, "org.apache.commons.io.IOUtils")
        with closing(file_system.open(java_path)) as stream:
            stream.seek(offset)
            return bytes(utilities.toByteArray(stream, length))

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        file_system, java_path = self._open(path)
        return int(file_system.getFileStatus(java_path).getLen())


def paths_and_sizes(statuses: Any) -> list[tuple[str, int]]:
    """Return the paths and bytes of files from a Scala sequence of Hadoop's statuses.

    Takes them from the printed statuses, or from each status if these print something else.
    """
    printed = [_PRINTED.search(text) for text in texts_of(statuses)]
    if all(printed):
        return [(match[1], int(match[2])) for match in printed if match is not None]
    return [(str(s.getPath().toString()), int(s.getLen())) for s in elements_of_scala(statuses)]


def files_of(spark: SparkSession) -> FileSystem | MountedFiles:
    """Return the files and directories that a session reads and writes."""
    return MountedFiles(spark) if is_of_connect(spark) else FileSystem(spark)


def path_for(spark: SparkSession, path: str) -> str:
    """Return a path as a session needs it.

    On a server, a path without scheme is one of its default file system, not of this process's.
    """
    return MountedFiles(spark).qualified(path) if is_of_connect(spark) else path
