"""Releases of which somebody has changed one thing, and repaired whatever says the same of it.

The forger knows the package: files are listed as they are, with their rows and SHA-256, texts are
derived again from the manifest, and what ``verify`` measures stands wherever the release says it.
"""

from __future__ import annotations

import copy
import io
import json
import math
import random
import re
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc
import pyarrow.parquet as pq
from release_folders import (
    damage,
    files_of,
    list_files,
    read_manifest,
    rewrite,
    save_manifest,
    show_unchanged,
)

from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.parquet_encoding import encode_table
from anonspark.engine.protocol import Engine
from anonspark.errors import AnonsparkError
from anonspark.release.manifest import Manifest, manifest_text
from anonspark.sidecars.contents import sidecar_contents
from anonspark.verification.audit import audit_release
from anonspark.verification.result import Verification
from anonspark.verifier import VERIFIER, verifier_text

NAME = "Zebediah Doe"
"""What a forger would hide in a release."""

ORDER = "data: order of classes, and of records in a class"
"""What is changed where the same records stand in another order, or in other files."""

LABEL = "data: a label"
"""What is changed where all records of a value get another one: it may say more of them."""

SAME = "nothing"
"""What is changed where a column has the same values as before, in a type of the same name."""


@dataclass(frozen=True)
class Forgery:
    """What was changed.

    Parameters
    ----------
    kind : str
        Name of the change.
    subject : str
        What was changed: ``data``, ``metrics/classes: ncp``, ``manifest: summary.rows_in``,
        ``file: README.md``.
    detail : str
        How, for whoever looks for the reason.
    """

    kind: str
    subject: str
    detail: str


class Nothing(Exception):  # noqa: N818 - no error
    """A change that a release does not allow, such as of a file that it lacks."""


_HEXADECIMAL = re.compile("[0-9a-f]{12,64}")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT")

Change = Callable[[random.Random, Path], tuple[str, str]]
CHANGES: dict[str, Change] = {}
"""Every kind of change, by its name: it returns subject and detail."""


def _change(kind: Change) -> Change:
    CHANGES[kind.__name__.strip("_")] = kind
    return kind


# What changes files -----------------------------------------------------------------------------


def name_other_version(release: Path) -> None:
    """Let the manifest say that another version wrote the release."""
    document = read_manifest(release)
    document["versions"]["anonspark"] = "0.0.9"
    save_manifest(release, document)


def tables_of(release: Path, folder: str) -> list[Path]:
    """Return the files of a table."""
    return sorted(p for p in (release / folder).glob("*") if p.suffix in (".parquet", ".orc"))


def read_table(release: Path, folder: str) -> pa.Table:
    """Return a table of a release."""
    files = tables_of(release, folder)
    if not files:
        raise Nothing
    read = [pa.orc.read_table(f) if f.suffix == ".orc" else pq.read_table(f) for f in files]
    return pa.concat_tables(read)


def save_table(release: Path, folder: str, table: pa.Table) -> None:
    """Replace the files of a table by one that is written as the package does."""
    first, *others = tables_of(release, folder)
    for path in others:
        path.unlink()
    table = table.combine_chunks()
    if first.suffix == ".orc":
        try:
            pyarrow.orc.write_table(table.replace_schema_metadata(None), first)
        except pa.ArrowNotImplementedError as error:
            raise Nothing from error
    else:
        rewrite(first, encode_table(table.replace_schema_metadata(None)))


def _other(draw: random.Random, value: Any) -> Any:
    """Return a value of the same kind that is not the same."""
    match value:
        case bool():
            return not value
        case int():
            return value + draw.choice([-1, 1, 7, 1000])
        case float():
            return draw.choice(
                [value + 1.0, value * 1.25 + 0.25, value * 1.01 + 0.01, -value - 1.0]
            )
        case str() if _HEXADECIMAL.fullmatch(value) and draw.random() < 0.7:
            return "".join(draw.choices("0123456789abcdef", k=len(value)))
        case str() if _INSTANT.match(value) and draw.random() < 0.7:
            return draw.choice([f"1999{value[4:]}", f"{value[:-6]}+01:00", f"{value[:10]}"])
        case str():
            place = draw.randint(0, len(value))
            return draw.choice(
                [NAME, value + " ", value[:place] + "x" + value[place:], f"{NAME}, {value}"]
            )
    raise Nothing


def _replaced(table: pa.Table, name: str, values: list[Any]) -> pa.Table:
    field = table.schema.field(name)
    index = table.schema.get_field_index(name)
    field = field.with_nullable(field.nullable or None in values)
    try:
        return table.set_column(index, field, pa.array(values, field.type))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise Nothing from error


# Records ----------------------------------------------------------------------------------------


def _change_cell(draw: random.Random, table: pa.Table) -> tuple[pa.Table, str]:
    if not table.num_rows:
        raise Nothing
    name, row = draw.choice(table.column_names), draw.randrange(table.num_rows)
    values = table[name].to_pylist()
    old = values[row]
    how = draw.choice(["null", "other row", "other row", "value", "value"])
    if how == "null":
        values[row] = None
    elif how == "other row" or not isinstance(old, bool | int | float | str):
        values[row] = draw.choice(values)
    else:
        values[row] = _other(draw, old)
    if repr(values[row]) == repr(old):
        raise Nothing
    return _replaced(table, name, values), f"{name}, row {row}, {how}"


def _change_rows(draw: random.Random, table: pa.Table) -> tuple[pa.Table, str]:
    rows = list(range(table.num_rows))
    if not rows:
        raise Nothing
    row, how = draw.choice(rows), draw.choice(["removed", "doubled", "added", "removed several"])
    if how == "added":
        mixed = {c: [draw.choice(table[c].to_pylist())] for c in table.column_names}
        return pa.concat_tables([table, pa.table(mixed, table.schema)]), f"row {how}"
    others = rows[:row] + rows[row + 1 :]
    several = rows[: -draw.randint(1, max(1, len(rows) // 3))]
    rows = {"removed": others, "doubled": [*rows, row]}.get(how, several)
    return table.take(pa.array(rows, pa.int64())), f"row {row} {how}"


def _change_order(draw: random.Random, table: pa.Table) -> tuple[pa.Table, str]:
    rows, how = list(range(table.num_rows)), draw.choice(["shuffled", "reversed"])
    draw.shuffle(rows) if how == "shuffled" else rows.reverse()
    changed = table.take(pa.array(rows, pa.int64()))
    if changed.equals(table):
        raise Nothing
    return changed, how


def _change_columns(draw: random.Random, table: pa.Table) -> tuple[pa.Table, str]:
    names = table.column_names
    name, how = draw.choice(names), draw.choice(["added", "removed", "renamed", "moved"])
    if how == "added":
        values = draw.choice([[NAME] * len(table), [None] * len(table), range(len(table))])
        return table.append_column(draw.choice(["person_2", f"{name}_min"]), pa.array(values)), how
    if how == "removed":
        return table.drop_columns([name]), f"{name} {how}"
    if how == "renamed":
        return table.rename_columns([f"{n} 2" if n == name else n for n in names]), f"{name} {how}"
    if len(names) < 2:
        raise Nothing
    return table.select(names[1:] + names[:1]), how


def _change_type(draw: random.Random, table: pa.Table) -> tuple[pa.Table, str]:
    name = draw.choice(table.column_names)
    old = table.schema.field(name)
    types = (pa.string(), pa.int64(), pa.int32(), pa.float64(), pa.float32(), pa.binary())
    new = draw.choice([each for each in types if each != old.type])
    try:
        values = table[name].cast(new)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise Nothing from error
    index = table.schema.get_field_index(name)
    return table.set_column(index, old.with_type(new), values), f"{name} as {new}"


def _change_column(draw: random.Random, table: pa.Table) -> tuple[pa.Table, str]:
    name = draw.choice(table.column_names)
    values, how = table[name].to_pylist(), draw.choice(["null", "shifted", "changed"])
    if how == "null":
        new = [None for _ in values]
    elif how == "shifted":
        new = values[1:] + values[:1]
    else:
        new = [_other(draw, value) if value is not None else value for value in values]
    if new == values:
        raise Nothing
    return _replaced(table, name, new), f"{name}, {how}"


def _change_label(draw: random.Random, table: pa.Table) -> tuple[pa.Table, str]:
    """Change a value of all rows that have it."""
    name = draw.choice(table.column_names)
    values = table[name].to_pylist()
    if not values:
        raise Nothing
    old = draw.choice(values)
    new = draw.choice([None, *values]) if draw.random() < 0.4 else _other(draw, old)
    if repr(new) == repr(old):
        raise Nothing
    changed = [new if repr(value) == repr(old) else value for value in values]
    return _replaced(table, name, changed), f"{name}, all of a value"


_OF_TABLES = {
    "cell": _change_cell,
    "label": _change_label,
    "column": _change_column,
    "rows": _change_rows,
    "columns": _change_columns,
    "order": _change_order,
    "type": _change_type,
}


@_change
def records(draw: random.Random, release: Path) -> tuple[str, str]:
    """Change the records, in the ways of :data:`_OF_TABLES`, and list new columns or not."""
    how = draw.choice(["cell", *_OF_TABLES])
    before = read_table(release, "data")
    after, detail = _OF_TABLES[how](draw, before)
    save_table(release, "data", after)
    if how == "columns" and draw.random() < 0.5:
        document = read_manifest(release)
        document["published"]["columns"] = after.column_names
        save_manifest(release, document)
    if how == "type":
        name = detail.rpartition(" as ")[0]
        written = (read_table(release, "data")[name].to_pylist(), before[name].to_pylist())
        if all(new == old or str(new) == str(old) for new, old in zip(*written, strict=True)):
            return SAME, detail
    labels = read_manifest(release)["published"]["quasi_identifier_columns"]
    if how == "label" and detail.partition(",")[0] in labels:
        return LABEL, detail
    return ORDER if how == "order" else "data", detail


@_change
def record_files(draw: random.Random, release: Path) -> tuple[str, str]:
    """Add a file to the records, with records of the first file, or move some there."""
    table = read_table(release, "data")
    (first, *_) = tables_of(release, "data")
    other = first.with_name(first.name.replace("00000", draw.choice(["00001", "00007", "x"])))
    if other == first or first.suffix != ".parquet":
        raise Nothing
    rows = draw.choice([1, len(table) // 2])
    other.write_bytes(encode_table(table.slice(0, rows)))
    if draw.random() < 0.5 and other.name > first.name:
        rewrite(first, encode_table(table.slice(rows)))
        return ORDER, f"the first {rows} rows moved to the last file"
    return "data", f"a file of {rows} rows added"


@_change
def metrics(draw: random.Random, release: Path) -> tuple[str, str]:
    """Change a table of metrics, or of what was left out, and the manifest's figure of its name."""
    folders = [str(p.relative_to(release)) for p in sorted((release / "metrics").glob("*"))]
    folder = draw.choice(folders + ["left_out"] * (2 * (release / "left_out").is_dir()))
    before, how = read_table(release, folder), draw.choice(["cell", "cell", *_OF_TABLES])
    after, detail = _OF_TABLES[how](draw, before)
    save_table(release, folder, after)
    if before.to_pylist() == after.to_pylist():
        return SAME, detail
    name = "order of rows" if how == "order" else detail.partition(",")[0]
    if how not in ("cell", "column", "label", "order"):
        return _subject(folder, folder, before, after), detail
    if folder == "metrics/summary" and draw.random() < 0.7:
        document = read_manifest(release)
        if name in document["summary"]:
            document["summary"][name] = after[name][0].as_py()
            save_manifest(release, document)
    return _subject(f"{folder}: {name}", folder, before, after), detail


def _subject(name: str, folder: str, before: pa.Table, after: pa.Table) -> str:
    """Return the name of what was changed in a table: the risk of rounds is a claim of its own."""
    if folder == "metrics/risk" and "round" in after.column_names:
        of_release = [pc.filter(t, pc.is_null(t["round"])).to_pylist() for t in (before, after)]
        if of_release[0] == of_release[1]:
            return f"{folder}: figures of rounds"
    return name


# JSON -------------------------------------------------------------------------------------------


def leaves(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Walk over the paths of a document's leaves: also of what is empty."""
    if isinstance(document, dict) and document:
        for key, value in document.items():
            yield from leaves(value, (*path, key))
    elif isinstance(document, list) and document:
        for index, value in enumerate(document):
            yield from leaves(value, (*path, index))
    else:
        yield path


def _parent(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path[:-1]:
        document = document[key]
    return document


def _dotted(path: tuple[Any, ...]) -> str:
    return ".".join(map(str, path))


def _change_json(draw: random.Random, document: Any, how: str) -> tuple[tuple[Any, ...], str]:
    """Change a document at a leaf, or add a key to one of its mappings."""
    sections = list(leaves(document))
    tops = sorted({path[0] for path in sections} - {"files", "form"}, key=str)
    top = draw.choice(tops)
    path = draw.choice([one for one in sections if one[0] == top])
    parent = _parent(document, path)
    old = parent[path[-1]]
    match how:
        case "changed":
            if old is None or old in ([], {}):
                parent[path[-1]] = draw.choice([NAME, 1, True, [NAME], {"a": NAME}, [1]])
            else:
                parent[path[-1]] = _other(draw, old)
        case "removed":
            del parent[path[-1]]
        case "null":
            if old is None:
                raise Nothing
            parent[path[-1]] = None
        case "retyped":
            new: list[Any] = [str(old), [old], {"value": old}]
            if isinstance(old, int | float) and math.isfinite(old):
                new += [float(old), int(old)]
            new = [one for one in new if json.dumps(one) != json.dumps(old)]
            parent[path[-1]] = draw.choice(new)
        case "added":
            depth = draw.randint(0, len(path) - 1)
            parent = _parent(document, path[: depth + 1])
            path = (*path[:depth], NAME)
            value = draw.choice([NAME, 1, None, {}, [NAME]])
            if isinstance(parent, list):
                parent.append(draw.choice([value, copy.deepcopy(parent[0])]) if parent else value)
            else:
                parent[NAME] = value
    return path, f"{_dotted(path)} {how}"


@_change
def manifest(draw: random.Random, release: Path) -> tuple[str, str]:
    """Change, remove or add a value of the manifest, half of the time none of the settings."""
    document, how = read_manifest(release), draw.choice(_HOW)
    settings = ("configuration", "versions", "seconds") if draw.random() < 0.5 else ()
    kept = {key: document.pop(key) for key in settings}
    order = [*read_manifest(release)]
    path, detail = _change_json(draw, document, how)
    document |= kept
    document = {key: document[key] for key in (*order, *document) if key in document}
    save_manifest(release, document)
    _repair_tables(release, path, document)
    return f"manifest: {_dotted(path)}", detail


_HOW = ("changed", "changed", "changed", "null", "removed", "retyped", "added")


def _repair_tables(release: Path, path: tuple[Any, ...], document: dict[str, Any]) -> None:
    """Let the tables say what the manifest says now."""
    name = path[-1]
    if path[0] in ("run_id", "started") and path[0] in document:
        for folder in (release / "metrics").glob("*"):
            _set_column(release, f"metrics/{folder.name}", path[0], document[path[0]])
    elif path[0] == "summary" and len(path) == 2 and name in document["summary"]:
        _set_column(release, "metrics/summary", name, document["summary"][name])
    elif path[0] == "fingerprints" and name in document["fingerprints"]:
        column = f"{name}_fingerprint"
        _set_column(release, "metrics/summary", column, document["fingerprints"][name])


def _set_column(release: Path, folder: str, name: str, value: Any) -> None:
    try:
        table = read_table(release, folder)
        if name in table.column_names:
            save_table(release, folder, _replaced(table, name, [value] * len(table)))
    except (Nothing, TypeError, ValueError):
        pass


_SPELLINGS: dict[str, Callable[[str], str]] = {
    "blanks": lambda text: text + " " * 20 + "\n",
    "indent": lambda text: json.dumps(json.loads(text), indent=1, ensure_ascii=False) + "\n",
    "ascii": lambda text: text.replace('"run_id"', '"run\\u005fid"'),
    "order": lambda text: manifest_text(dict(reversed(json.loads(text).items()))),
    "twice": lambda text: text.replace('  "run_id"', f'  "run_id": "{NAME}",\n  "run_id"', 1),
    "comment": lambda text: text.replace("\n", f"\n// {NAME}\n", 1),
}


@_change
def manifest_spelling(draw: random.Random, _: Path) -> tuple[str, str]:
    """Write the same manifest in another way; see :func:`forge`, which does it at the end."""
    return "manifest", draw.choice([*_SPELLINGS])


@_change
def text_bytes(draw: random.Random, release: Path) -> tuple[str, str]:
    """Insert bytes into a text, or change what JSON says."""
    names = ("README.md", "views.sql", "datapackage.json", "check_release.py", "report.html",
             "copies/part-00000.csv")  # fmt: skip
    path = release / draw.choice([name for name in names if (release / name).exists()])
    content = path.read_bytes()
    if path.suffix == ".json" and draw.random() < 0.8:
        document = json.loads(content)
        _, detail = _change_json(draw, document, draw.choice(_HOW))
        rewrite(path, (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode())
        return f"file: {path.name}", detail
    offset = draw.randint(0, len(content))
    more = draw.choice([b"\n", b" ", b"<!-- " + NAME.encode() + b" -->", b"\n-- COPY\n", b"\0"])
    rewrite(path, content[:offset] + more + content[offset:])
    return f"file: {path.relative_to(release)}", f"{len(more)} bytes at {offset}"


_ADDED = (
    *("raw.csv", "data/raw.csv", ".hidden", "data/.hidden", "_SUCCESS", "data/_metadata"),
    *("metrics/people/part-00000.parquet", "left_out/part-00000.parquet", "report.html"),
    *("metrics/summary/part-00001.parquet", "metrics/nodes/part-00000.parquet", "README.md~"),
    *("notes/README.md", ".README.md.crc", "data/.part-00000.parquet.crc", "views.sql"),
    *(".anonspark-abc", "data/year=2026/part-00000.parquet", "metrics/README.md"),
)


@_change
def file_added(draw: random.Random, release: Path) -> tuple[str, str]:
    """Add a file, which is listed or not."""
    path = release / draw.choice(_ADDED)
    if path.exists():
        raise Nothing
    contents = [b"", NAME.encode(), b"<!doctype html>\n<title>Release</title>" + b" " * 9]
    if path.suffix == ".parquet":
        contents.append(encode_table(pa.table({"name": [NAME]})))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(draw.choice(contents))
    return f"file: {path.relative_to(release)}", draw.choice(["listed", "not listed"])


@_change
def file_gone(draw: random.Random, release: Path) -> tuple[str, str]:
    """Remove, empty, rename or cut a file."""
    name = draw.choice([file["path"] for file in read_manifest(release)["files"]])
    path, how = release / name, draw.choice(["removed", "emptied", "renamed", "cut"])
    content = path.read_bytes()
    path.unlink()
    if how == "renamed":
        path.with_name(f"x{path.name}").write_bytes(content)
    elif how != "removed":
        path.write_bytes(content[: draw.randrange(len(content)) if how == "cut" else 0])
    return f"file: {name}", f"{how}, {draw.choice(['listed', 'not listed'])}"


# Bytes of Parquet files ---------------------------------------------------------------------------


@_change
def parquet_bytes(draw: random.Random, release: Path) -> tuple[str, str]:
    """Change a bit of a Parquet file."""
    path = draw.choice(sorted(release.rglob("*.parquet")))
    before, content = pq.read_table(path), bytearray(path.read_bytes())
    offset = draw.randrange(4, len(content) - 8)
    content[offset] ^= 1 << draw.randrange(8)
    damage(path, bytes(content))
    changed = _changed_values(release, path, before)
    return changed or f"bytes: {path.relative_to(release)}", f"flipped at {offset}"


def _changed_values(release: Path, path: Path, before: pa.Table) -> str | None:
    """Return the column of which a bit was a value, or None if no value is another one."""
    folder = path.parent.relative_to(release).as_posix()
    try:
        after = pq.read_table(path)
        names = [name for name in before.column_names if not before[name].equals(after[name])]
    except (pa.ArrowException, OSError, KeyError):
        return None
    if folder == "data" or not names:
        return folder if names else None
    # Sums of parts are compared as far as they are exact.
    if folder != "metrics/risk" and pa.types.is_floating(before[names[0]].type):
        pairs = zip(before[names[0]].to_pylist(), after[names[0]].to_pylist(), strict=True)
        if all(None not in pair and math.isclose(*pair, rel_tol=1e-12) for pair in pairs):
            return SAME
    return _subject(f"{folder}: {names[0]}", folder, before, after)


# The forger -------------------------------------------------------------------------------------


def forge(draw: random.Random, release: Path, kind: str | None = None) -> Forgery:
    """Change one thing in a release, and repair what says the same.

    Raises
    ------
    Nothing
        If the release has not what would be changed.
    """
    kind = kind or draw.choice(sorted(CHANGES))
    # Some change a file before the first one is written anew.
    show_unchanged(release)
    for checksum in release.rglob(".*.crc"):
        checksum.unlink()
    subject, detail = CHANGES[kind](draw, release)
    if kind.startswith("record"):
        repair_counts(release)
    if not detail.endswith("not listed"):
        list_files(release, explained=False)
    if not kind.startswith(("text", "file")) and draw.random() < 0.95:
        repair_texts(release)
        list_files(release, explained=False)
    if kind == "manifest_spelling":
        path = release / "manifest.json"
        damage(path, _SPELLINGS[detail](path.read_text()).encode())
    return Forgery(kind, subject, detail)


def repair_texts(release: Path) -> None:
    """Write README.md and what lies with it as this manifest would have it."""
    try:
        manifest = Manifest(read_manifest(release))
        schema = read_table(release, "data").schema.remove_metadata()
        contents = sidecar_contents(manifest, schema, files_of(release))
        for name, content in contents.items():
            if (release / name).exists():
                rewrite(release / name, content)
    except (Nothing, AnonsparkError, KeyError, TypeError, ValueError, AttributeError, OSError):
        pass


def repair_counts(release: Path) -> None:
    """Let manifest and metrics say what is measured in the records."""
    list_files(release, explained=False)
    try:
        measured = audit_release(LocalEngine(), str(release)).as_dict()
    except (AnonsparkError, OSError, ValueError):
        return
    document = read_manifest(release)
    figures = {
        "rows_published": measured["rows"],
        "published_classes": measured["classes"],
        "published_min_class_size": measured["smallest"],
    }
    before = document["summary"].get("rows_published")
    if document["summary"].get("rows_in") is not None and before is not None:
        figures["rows_in"] = document["summary"]["rows_in"] + measured["rows"] - before
    document["published"]["rows"] = measured["rows"]
    document["fingerprints"]["output"] = measured["fingerprint"]
    document["summary"].update(figures)
    save_manifest(release, document)
    for name, value in (figures | {"output_fingerprint": measured["fingerprint"]}).items():
        _set_column(release, "metrics/summary", name, value)
    _repair_measured(release, measured)


def _repair_measured(release: Path, measured: dict[str, Any]) -> None:
    try:
        risk, privacy = read_table(release, "metrics/risk"), read_table(release, "metrics/privacy")
    except Nothing:
        return
    by_attacker = {row["attacker"]: row for row in measured["risk"]}
    rows = risk.to_pylist()
    for row in rows:
        if row["round"] is None and row["attacker"] in by_attacker:
            row.update({k: v for k, v in by_attacker[row["attacker"]].items() if k in row})
    save_table(release, "metrics/risk", pa.Table.from_pylist(rows, schema=risk.schema))
    rows = privacy.to_pylist()
    for row in rows:
        if row["criterion"] == "k":
            row["measured"] = measured["smallest"]
        for one in measured["criteria"]:
            if (one["attribute"], one["criterion"]) == (row["attribute"], row["criterion"]):
                row["measured"] = one["measured"]
    save_table(release, "metrics/privacy", pa.Table.from_pylist(rows, schema=privacy.schema))


# What comes of it ---------------------------------------------------------------------------------


def verified(
    release: Path, original: Path | None = None, engine: Engine | None = None
) -> Verification | str:
    """Verify a release: return what was measured, or why it was refused."""
    matched = None if original is None else str(original)
    try:
        found = audit_release(engine or LocalEngine(), str(release), original=matched)
    except AnonsparkError as error:
        return f"{type(error).__name__}: {error}"
    return found if found.holds else "\n".join(found.failures)


def keeps_k(release: Path) -> bool:
    """Return whether each tuple of labels is that of k records, counted without the package."""
    document = read_manifest(release)
    table = read_table(release, "data")
    names = document["published"]["quasi_identifier_columns"]
    labels = [tuple(map(repr, row.values())) for row in table.select(names).to_pylist()]
    return min(map(labels.count, labels)) >= int(document["configuration"]["privacy"]["k"])


def is_claimed(found: Verification, subject: str) -> bool:
    """Return whether a verification says itself that it did not prove what was changed."""
    return any(
        subject == one or subject.startswith((f"{one}.", f"{one}: ")) for one in found.claimed
    )


@dataclass(frozen=True)
class Outcome:
    """What came of a forgery.

    Parameters
    ----------
    forgery : Forgery
    verdict : str
        ``refused``; ``claimed``, if what was changed is called unproven; ``other records``, if the
        release is a sound one of other records, which only the original refutes; ``same values``,
        if nothing was changed but how it is written; ``other promise``, if another one is made
        and kept; ``accepted``.
    reason : str
        Why it was refused.
    stranger : int
        Exit code of check_release.py: 0, 1, or 2 where it cannot read the release.
    """

    forgery: Forgery
    verdict: str
    reason: str
    stranger: int

    @property
    def agrees(self) -> bool:
        """Whether check_release.py refuses nothing more, and no less of what concerns it."""
        if self.verdict != "refused":
            return self.stranger != 1
        concerned = self.forgery.subject.removeprefix("file: ") in _FOREIGN
        return not (concerned and self.forgery.kind == "file_added") or self.stranger != 0


_FOREIGN = ("raw.csv", "data/raw.csv", ".hidden", "data/.hidden", "README.md~")


def check_release(release: Path) -> int:
    """Return the exit code of check_release.py, as this version writes it, about a release."""
    with redirect_stdout(io.StringIO()):
        return _stranger()([str(release)])


@cache
def _stranger() -> Callable[[list[str]], int]:
    specification = spec_from_loader(VERIFIER, loader=None)
    module = module_from_spec(specification)
    exec(compile(verifier_text(), VERIFIER, "exec"), vars(module))  # noqa: S102
    main: Callable[[list[str]], int] = module.main
    return main


def try_forgery(
    forgery: Forgery, release: Path, original: Path | None, engine: Engine | None = None
) -> Outcome:
    """Verify a forged release, and say what came of it."""
    found, subject = verified(release, engine=engine), forgery.subject
    matched: Verification | str = "no original"

    def verdict() -> str:
        nonlocal matched
        if isinstance(found, str):
            return "refused"
        if original is not None and subject.startswith(("data", "left_out")):
            matched = verified(release, original, engine)
        if is_claimed(found, subject) and (
            original is None
            or not subject.startswith("left_out")
            or isinstance(matched, str)
            or is_claimed(matched, subject)
        ):
            return "claimed"
        if subject.startswith("manifest: configuration.privacy"):
            return "other promise"
        if subject == SAME:
            return "same values"
        # What a label of a class says of more values than before is true, too.
        if subject == LABEL or (subject == "data" and isinstance(matched, str)):
            return "other records" if keeps_k(release) else "accepted"
        return "accepted"

    named = verdict()
    reason = found if isinstance(found, str) else str(matched)
    return Outcome(forgery, named, reason, check_release(release))
