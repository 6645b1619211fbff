"""What engines do with files, as small pieces whose outcomes can be compared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from anonspark.engine.files import Files

Operation = Callable[[Files, Path], Any]
"""Works in an empty folder and returns what it found there."""

PATTERNS = (
    *("*", "*/*", "a*", "?1.txt", "[ab]1.txt", "[^a]1.txt", "[!a]1.txt", "[a-b]?.txt", "[]a]1.txt"),
    *("{a1,b1}.txt", "{a,b}[12].txt", "{sub/c,a1}*", "{sub/{c,d},a}1.txt", "a}*", "]*"),
    *("sub", "sub/", "sub/c1.txt", "sub/*.txt", "a1.txt/*", "none/*", "*/none", ".*", "_*"),
    *("with space*", "with%20*", "a+1*", "a,1*", r"star\*.txt", "täg*", "date=2026-01-*"),
    *("sub/../a1.txt", "./a1.txt", "a1.txt//", "link/*", "dangl*", "dangling"),
)


def outcome(operation: Operation, files: Files, folder: Path) -> tuple[Any, dict[str, Any]]:
    """Return what an operation found or refused to do, and all that lies in its folder then."""
    try:
        found = operation(files, folder)
    except OSError as error:
        # Systems word it in their own way; a rename and a new directory are ours to word.
        kind = FileExistsError if isinstance(error, FileExistsError) else OSError
        found = (kind, str(error) if str(error).startswith("cannot ren") else "")
    except Exception as error:  # noqa: BLE001 - compared
        found = type(error).__name__
    there = {
        str(path.relative_to(folder)): (
            str(path.readlink())
            if path.is_symlink()
            else path.read_bytes()
            if path.is_file()
            else None,
            oct(path.lstat().st_mode),
        )
        for path in sorted(folder.rglob("*"))
        if not path.name.endswith(".crc")
    }
    return _without(found, folder), _without(there, folder)


def _without(found: Any, folder: Path) -> Any:
    if isinstance(found, str):
        return found.replace(str(folder), "/folder")
    if isinstance(found, dict):
        return {key: _without(value, folder) for key, value in found.items()}
    if isinstance(found, list | tuple):
        return [_without(one, folder) for one in found]
    return found


def lay_out(folder: Path) -> None:
    """Make files of many kinds of names, without any engine."""
    for name in (
        *("a1.txt", "a2.txt", "b1.txt", "sub/c1.txt", "sub/d1.txt", ".hidden", "_SUCCESS"),
        *("with space.txt", "with%20percent.txt", "a+1.txt", "a,1.txt", "star*.txt", "tägl.txt"),
        *("date=2026-01-05/x.txt", "date=2026-02-05/x.txt", "]1.txt", "a}.txt", "sub/deep/e.txt"),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / "link").symlink_to(folder / "sub")
    (folder / "dangling").symlink_to(folder / "nowhere")
    (folder / "empty" / "inner").mkdir(parents=True)


def _addresses(files: Files, folder: Path) -> Any:
    (folder / "sub").mkdir()
    (folder / "link").symlink_to("sub")
    paths = (
        *("", "/", "x", "x/", "x//y", "sub/../y", "./z", "link/y", "with space", "a%20b", "ä:b"),
        *("/x?y", "#z", "*"),
    )
    given = [f"{folder}/{path}" for path in paths]
    given += [f"file:{path}" for path in given] + [f"file://{path}" for path in given]
    return [
        (files.qualified(one), files.resolved(one), files.local_path(one), files.parent(one))
        for one in given
    ]


def _relative(files: Files, _: Path) -> Any:
    before = Path.cwd()
    return [
        files.qualified(path).replace(str(before), "/cwd")
        for path in ("x", ".", "./x", "a/../b", "a/b:c", "x/")
    ]


def _no_address(path: str) -> Operation:
    def refused(files: Files, _: Path) -> Any:
        return [_kind(ask, path) for ask in (files.qualified, files.exists, files.matches)]

    return refused


def _kind(ask: Callable[[str], Any], path: str) -> Any:
    try:
        return ask(path)
    except Exception as error:  # noqa: BLE001 - compared
        return type(error).__name__


def _listings(files: Files, folder: Path) -> Any:
    lay_out(folder)
    paths = ("", "/sub", "/none", "/a1.txt", "/link", "/empty", "/dangling")
    return [
        (
            files.children(f"{folder}{path}"),
            [(one.path, one.kind, one.bytes) for one in files.tree(f"{folder}{path}")],
            files.exists(f"{folder}{path}"),
            files.fault(f"{folder}{path}"),
            files.dangling_parent(f"{folder}{path}/x/y"),
        )
        for path in paths
    ]


def _files_below(files: Files, folder: Path) -> Any:
    lay_out(folder)
    files.write_text(f"{folder}/sub/written", "by the engine")
    return [
        files.files_below(f"{folder}"),
        files.files_below(f"{folder}/sub/"),
        files.files_below(f"{folder}/empty"),
    ]


def _matches(pattern: str) -> Operation:
    def found(files: Files, folder: Path) -> Any:
        lay_out(folder)
        return files.matches(f"{folder}/{pattern}"), files.matches(f"file:{folder}/{pattern}")

    return found


def _write_and_read(files: Files, folder: Path) -> Any:
    path = f"file:{folder}/new/deep/file"
    files.write_text(path, "first, with täg")
    files.write_bytes(path, b"second")
    files.replace(path, b"\xef\xbb\xbfthird", ".aside")
    files.write_atomically(f"{folder}/whole", "at once")
    return (
        files.read_text(path),
        files.read_document(path),
        files.read_part(path, 2, 3),
        files.read_part(path, 0, 0),
        files.size(path),
        files.sha256(path),
        files.children(f"{folder}/new/deep"),
        files.children(str(folder)),
    )


def _create(files: Files, folder: Path) -> Any:
    files.create_text(f"{folder}/in/one", "first")
    files.create_text(f"{folder}/in/one", "second")


def _rename(files: Files, folder: Path) -> Any:
    files.write_text(f"{folder}/a/file", "x")
    files.write_text(f"{folder}/a/a/nested", "y")
    files.rename(f"{folder}/a", f"{folder}/b")
    files.rename(f"{folder}/b/file", f"file:{folder}/b/renamed")
    return files.read_text(f"{folder}/b/renamed"), files.read_text(f"{folder}/b/a/nested")


def _directories(files: Files, folder: Path) -> Any:
    files.make_private_directory(f"{folder}/up/private")
    files.make_directory(f"{folder}/usual/deep")
    files.make_directory(f"{folder}/usual/deep")
    files.make_private_directory(f"{folder}/usual/deep")
    files.make_directory(f"{folder}/gone/inner")
    files.delete_if_empty(f"{folder}/gone")
    files.delete_if_empty(f"{folder}/never")
    files.write_text(f"{folder}/stays/inner/file", "x")
    files.delete_if_empty(f"{folder}/stays")
    files.delete_if_empty(f"{folder}/stays/inner/file")


def _delete(files: Files, folder: Path) -> Any:
    lay_out(folder)
    for name in ("a1.txt", "sub", "link", "never", "dangling", "empty"):
        files.delete(f"{folder}/{name}")


def _delete_link(files: Files, folder: Path) -> Any:
    lay_out(folder)
    files.delete(f"{folder}/link")


def _after(prepare: Callable[[Files, str], Any], refused: Callable[[Files, str], Any]) -> Operation:
    def both(files: Files, folder: Path) -> Any:
        prepare(files, str(folder))
        return refused(files, str(folder))

    return both


def _two_files(files: Files, folder: str) -> None:
    files.write_text(f"{folder}/one", "1")
    files.write_text(f"{folder}/two/inside", "2")


REFUSED: dict[str, Callable[[Files, str], Any]] = {
    "rename to a file": lambda files, at: files.rename(f"{at}/two", f"{at}/one"),
    "rename to a directory": lambda files, at: files.rename(f"{at}/one", f"{at}/two"),
    "rename what is not there": lambda files, at: files.rename(f"{at}/none", f"{at}/new"),
    "directory where a file is": lambda files, at: files.make_directory(f"{at}/one"),
    "directory below a file": lambda files, at: files.make_directory(f"{at}/one/x"),
    "private where a file is": lambda files, at: files.make_private_directory(f"{at}/one"),
    "write to a directory": lambda files, at: files.write_text(f"{at}/two", "x"),
    "write below a file": lambda files, at: files.write_text(f"{at}/one/x", "x"),
    "create below a file": lambda files, at: files.create_text(f"{at}/one/x", "x"),
    "write at once what is there": lambda files, at: files.write_atomically(f"{at}/one", "x"),
    "read a directory": lambda files, at: files.read_text(f"{at}/two"),
    "read what is not there": lambda files, at: files.read_text(f"{at}/none"),
    "document that is a directory": lambda files, at: files.read_document(f"{at}/two"),
    "document that is not there": lambda files, at: files.read_document(f"{at}/none"),
    "read behind the end": lambda files, at: files.read_part(f"{at}/one", 1, 5),
    "size of what is not there": lambda files, at: files.size(f"{at}/none"),
    "hash of what is not there": lambda files, at: files.sha256(f"{at}/none"),
    "no text": lambda files, at: [
        files.write_bytes(f"{at}/bytes", b"\xff"),
        files.read_text(f"{at}/bytes"),
    ],
}

OPERATIONS: dict[str, Operation] = {
    "addresses": _addresses,
    "relative addresses": _relative,
    "listings": _listings,
    "files below": _files_below,
    "write and read": _write_and_read,
    "create": _create,
    "rename": _rename,
    "directories": _directories,
    "delete": _delete,
    "delete a link": _delete_link,
}
OPERATIONS |= {
    f"no address {path!r}": _no_address(path)
    for path in ("", "a:b", "file:x", "//host/x", "file://host/x", "nothing://host/x", "\0")
}
OPERATIONS |= {f"matches {pattern}": _matches(pattern) for pattern in PATTERNS}
OPERATIONS |= {name: _after(_two_files, refused) for name, refused in REFUSED.items()}
