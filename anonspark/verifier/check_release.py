"""Counts again what a release of anonspark promises: call `python check_release.py FOLDER`.

This file is made to be read. It only needs Python 3.11 or later and pyarrow, and ssh-keygen for
`--signers FILE`, which says who signed. It takes the promises from manifest.json, and counts
classes, people and sensitive values in data/. It prints no value of the data. Exit code: 0 if all
that it checks holds, 1 if not, 2 if it cannot read the release.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import re
import subprocess
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import dataset
except ImportError:
    print("cannot be read: Python has no pyarrow here. Call: python -m pip install pyarrow")
    sys.exit(2)

MANIFEST, SIGNATURE = "manifest.json", "manifest.json.sig"
METRICS = "metrics/(summary|rounds|classes|attributes|privacy|risk|nodes)"
TEXTS = r"README\.md|datapackage\.json|views\.sql|check_release\.py|report\.html|copies/[^/]+\.csv"
LAYOUT = re.compile(rf"(data|left_out|{METRICS})/(_SUCCESS|part-[^/]*\.(parquet|orc))|{TEXTS}")
SIGNED = (
    rb"-+BEGIN SSH SIGNATURE-+\n(\S{70}\n){3}\S{28}[AEIMQUYcgkosw048]=\n-+END SSH SIGNATURE-+\n"
)
BATCH = 2**16  # records, or rows of counts, that are looked at together
NEVER = """labels: whether they are true (anonspark verify --original), or are labels at all
bytes and metadata that no reader of tables shows, and what other files than those of data/ say
delta-presence, who has which pseudonym, and criteria that take more than these files have"""


class Release:
    """A release: where it is, what its manifest says, and what came out so far."""

    def __init__(self, folder: str, signers: str) -> None:
        """Read the manifest of a release in a folder."""
        self.folder, self.signers = Path(folder), signers
        self.manifest = json.loads((self.folder / MANIFEST).read_text(encoding="utf-8"))
        self.published, configured = self.manifest["published"], self.manifest["configuration"]
        self.privacy, self.attributes = configured["privacy"], configured["attributes"]
        self.format = configured["output"]["format"].lower()
        self.pseudonyms = [*(configured["output"].get("pseudonyms") or {}).values()]
        plain = [name for name, a in self.attributes.items() if a["role"].endswith("sensitive")]
        self.plain = {*plain, *self.pseudonyms}  # columns of values as they came, and pseudonyms
        self.classes: list[str] = self.published["quasi_identifier_columns"]
        self.files = {file["path"]: file for file in self.manifest["files"]}
        self.proven, self.refused, self.not_checked = list[str](), list[str](), NEVER.splitlines()

    def tables(self, below: str = "data/") -> list[Path]:
        """Return the files of a table of the release, that of the records or another one."""
        return [self.folder / name for name in self.files if name.startswith(f"{below}part-")]

    def judge(self, holds: bool, text: str) -> None:
        """Add a sentence to what is proven or to what is refused."""
        (self.proven if holds else self.refused).append(text)


def ssh_keygen(release: Release, *action: str) -> list[str]:
    """Return what ssh-keygen says of the signature of the manifest, nothing if it refuses it."""
    options = ["-f", release.signers, "-n", "anonspark", "-s", str(release.folder / SIGNATURE)]
    manifest = (release.folder / MANIFEST).read_bytes()
    command = ["ssh-keygen", "-Y", *action, *options]
    done = subprocess.run(command, input=manifest, capture_output=True)  # noqa: S603, PLW1510
    return [] if done.returncode else done.stdout.decode(errors="replace").splitlines()


def check_signature(release: Release) -> None:
    """Check who signed the manifest, and so all that it lists, if the allowed signers are given."""
    path, key = release.folder / SIGNATURE, release.manifest.get("signer")
    if path.exists() != bool(key) or (key and not re.fullmatch(SIGNED, path.read_bytes())):
        release.refused.append("the signature is not there, damaged, or not of this release")
    elif release.signers:
        names = ssh_keygen(release, "find-principals") if key else []
        signers = [name for name in names if ssh_keygen(release, "verify", "-I", name)]
        release.judge(bool(signers), f"signed by {signers or 'no one of the allowed signers'}")
    else:
        release.not_checked.append("who signed it (--signers FILE)" if key else "who made it")


def files_below(release: Release, folder: Path) -> Iterator[str]:
    """Yield the names of all files. Refuse links, empty folders, and what is no file."""
    if not (entries := sorted(folder.iterdir())):
        release.refused.append(f"{str(folder)!r} is an empty folder")
    for entry in entries:
        if entry.is_symlink() or not (entry.is_dir() or entry.is_file()):
            release.refused.append(f"{str(entry)!r} is a link, or no file")
        elif entry.is_dir():
            yield from files_below(release, entry)
        else:
            yield entry.relative_to(release.folder).as_posix()


def is_checksum(path: Path) -> bool:
    """Return whether a file is what Hadoop writes beside another one: a CRC of each 512 bytes."""
    other = path.parent / path.name[1:].removesuffix(".crc")
    if path.name != f".{other.name}.crc" or not other.is_file():
        return False
    with other.open("rb") as content:
        parts = iter(lambda: content.read(512), b"")
        sums = b"".join(zlib.crc32(part).to_bytes(4, "big") for part in parts)
    return path.read_bytes() == b"crc\0\0\0\2\0" + sums


def table_of(path: Path) -> Any:
    """Return the table that is in a file, unread, or None where its name says that it has none."""
    ending = path.suffix[1:]
    return dataset.dataset(path, format=ending) if ending in ("parquet", "orc") else None


def check_files(release: Release) -> None:
    """Check that each file has the bytes that the manifest lists, and that there is no other."""
    present = set(files_below(release, release.folder)) - {MANIFEST, SIGNATURE}
    for name in sorted(present - set(release.files)):
        if not is_checksum(release.folder / name):
            release.refused.append(f"{name!r} is not listed in manifest.json")
    for name, file in release.files.items():
        path = release.folder / name
        if name not in present:
            release.refused.append(f"{name!r} is listed in manifest.json and is not there")
            continue
        with path.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        if not LAYOUT.fullmatch(name) or (name.endswith("_SUCCESS") and file["bytes"]):
            release.refused.append(f"{name!r} is no file that a release has")
        elif (path.stat().st_size, digest) != (file["bytes"], file["sha256"]):
            release.refused.append(f"{name!r} has other bytes than manifest.json says")
        elif (table := table_of(path)) and table.count_rows() != file["rows"]:
            release.refused.append(f"{name!r} has other rows than manifest.json says")
    if not release.refused:
        release.proven.append(f"{len(present)} files, and no other, with the listed SHA-256")


def check_columns(release: Release) -> None:
    """Check that the records have the listed columns, and that each of these has a role."""
    columns = release.published["columns"]
    schemas = [table_of(path).schema for path in release.tables()]
    if any(schema != schemas[0] or schema.names != columns for schema in schemas):
        release.refused.append("records have other columns than manifest.json says")
    quasi = [name for name, a in release.attributes.items() if a["role"] == "quasi_identifier"]
    known = {f"{name}{end}" for name in quasi for end in ("", "_min", "_max", "_missing")}
    for column in sorted(set(columns) - release.plain - known):
        release.refused.append(f"the column {column!r} has no role in manifest.json")
    classes = sorted((set(columns) & known) - release.plain)
    release.judge(classes == sorted(release.classes), f"classes are formed by {classes}")


class Numbers:
    """Gives each different value of a column a number. A missing value is one of them."""

    def __init__(self, *, as_text: bool = False) -> None:
        """Begin without values. `as_text` compares them as texts, without blanks at their ends."""
        self.as_text = as_text
        self.values: Any = None

    def of(self, values: pa.Array) -> pa.Array:
        """Return the number of each value."""
        if pa.types.is_nested(values.type):
            texts = [None if value is None else repr(value) for value in values.to_pylist()]
            values = pa.array(texts, pa.string())
        elif pa.types.is_floating(values.type):
            values = pc.add(values, pa.scalar(0.0, values.type))  # -0.0 is 0.0
        if self.as_text:
            values = pc.utf8_trim_whitespace(values.cast(pa.string()))
        known = values.slice(0, 0) if self.values is None else self.values
        self.values = pa.concat_arrays([known, values]).unique()
        return pc.index_in(values, value_set=self.values)


def add_up(table: pa.Table) -> pa.Table:
    """Add up the last column of all rows that agree in the others."""
    *keys, last = table.column_names
    added = table.group_by(keys).aggregate([(last, "sum")])
    return added.select([*keys, f"{last}_sum"]).rename_columns([*keys, last])


def count(release: Release, columns: list[str], *last: Numbers) -> pa.Table:
    """Count the records of each combination of values. `last` numbers the last columns."""
    numbers = [*(Numbers() for _ in columns[len(last) :]), *last]
    names = [*(f"value {index}" for index in range(len(columns))), "records"]
    parts: list[pa.Table] = []
    for path in release.tables():
        for batch in table_of(path).to_batches(columns=columns, batch_size=BATCH):
            numbered = [each.of(c) for each, c in zip(numbers, batch.columns, strict=True)]
            parts.append(add_up(pa.table([*numbered, pa.repeat(1, len(batch))], names)))
            if sum(map(len, parts)) > BATCH + 2 * len(parts[0]):
                parts = [add_up(pa.concat_tables(parts))]
    return add_up(pa.concat_tables(parts))


def check_classes(release: Release) -> tuple[bool, ...]:
    """Count classes, people. Return if nobody has two records in a class, and in the table."""
    k, unit = release.privacy["k"], release.pseudonyms or release.privacy.get("unit") or []
    sizes = count(release, release.classes)["records"]
    rows, smallest = pc.sum(sizes).as_py(), pc.min(sizes).as_py()
    release.judge(rows == release.published["rows"], f"{rows:,} records")
    release.judge(smallest >= k, f"k = {k}: {len(sizes):,} classes of {smallest:,} at least")
    if not unit or not set(unit) <= release.plain:
        release.not_checked += ["that classes are of k people, who are not published"] * bool(unit)
        return (release.published.get("criteria_of_people") is None,) * 2
    numbers = [Numbers(as_text=True) for _ in unit]
    people = count(release, [*release.classes, *unit], *numbers)
    if release.pseudonyms:
        sound = pc.match_substring_regex(numbers[0].values, "^[0-9a-f]{32}$")
        release.judge(pc.all(sound, skip_nulls=False).as_py(), "pseudonyms: 32 hexadecimal digits")
    keys = people.column_names[: len(release.classes)]
    fewest = pc.min(people.group_by(keys).aggregate([("records", "count")])["records_count"])
    release.judge(fewest.as_py() >= k, f"k = {k} people: {fewest} at least in each class")
    return len(people) == rows, len(add_up(people.drop_columns(keys))) == rows


def keeps(asked: dict[str, Any], counts: Counter[int], whole: dict[int, float]) -> bool:
    """Return whether the values of a class keep what is asked. `whole` has all shares, in order."""
    size, largest = counts.total(), sorted(counts.values(), reverse=True)
    gaps = (counts[v] / size - q for v, q in whole.items())
    key = next(key for key in ("l", "t", "alpha", "beta") if key in asked)
    bound, slack = float(asked[key]), 1e-9 * (1 + float(asked[key]))  # sums are rounded
    match asked.get("kind") or asked.get("distance") or key:
        case "distinct":
            return len(counts) >= bound
        case "entropy":
            return math.exp(-sum(n / size * math.log(n / size) for n in largest)) >= bound - slack
        case "recursive":
            rest = sum(largest[int(bound) - 1 :])
            return rest > 0 and largest[0] / rest < float(asked["c"])
        case "alpha":
            return largest[0] / size <= bound + slack
        case "beta":
            return all(n / size / whole[v] - 1 <= bound + slack for v, n in counts.items())
        case "equal":
            return sum(max(n / size - whole[v], 0) for v, n in counts.items()) <= bound + slack
        case "maximum":
            return max(map(abs, gaps)) <= bound + slack
        case "ordered":  # how much has to be moved from each value to the next
            return sum(map(abs, accumulate(gaps))) <= (bound + slack) * (len(whole) - 1)
    raise ValueError("a criterion that is not known")


def left_out(release: Release, name: str, numbers: Numbers) -> Counter[int]:
    """Return how often records that were left out have each value, where the release tells it."""
    counts: Counter[int] = Counter()
    column = table_of(release.tables()[0]).schema.field(name).type
    for path in release.tables("left_out/"):
        rows = table_of(path).to_table(filter=pc.field("attribute") == name)
        texts = rows["value"].combine_chunks()
        if pa.types.is_temporal(column):  # which stand there as numbers
            texts = texts.cast(pa.int32() if pa.types.is_date32(column) else pa.int64())
        values = numbers.of(texts.cast(column)).to_pylist()
        for value, records in zip(values, rows["records"].to_pylist(), strict=True):
            counts[value] += records
    return counts


def check_values(release: Release, name: str, asked: list[dict[str, Any]]) -> None:
    """Check in every class what is asked of a sensitive attribute. In a union, by holder."""
    order = release.attributes[name].get("order") or []
    numbers = Numbers(as_text=bool(order))
    declared = {*numbers.of(pa.array(order, pa.string())).to_pylist()} if order else set()
    table = count(release, [*release.classes, name], numbers)
    *keys, value, records = table.column_names
    by = dict(zip(release.classes, keys, strict=True)).get(release.manifest.get("holder_column"))
    counts: dict[Any, Counter[int]] = defaultdict(lambda: left_out(release, name, numbers))
    for row in add_up(table.select([*filter(None, [by]), value, records])).to_pylist():
        counts[row.get(by)][row[value]] += row[records]
    by_value = pc.array_sort_indices(numbers.values).to_pylist()  # missing ones come last
    values = sorted(by_value) if order else by_value
    wholes = {}
    for key, every in counts.items():
        size = every.total()
        wholes[key] = {n: every[n] / size for n in values if n in declared or every[n]}
    lists = [(value, "list"), (records, "list")]
    broken = [0] * len(asked)
    for batch in table.group_by(keys, use_threads=False).aggregate(lists).to_batches(BATCH):
        for row in batch.to_pylist():
            here = Counter(dict(zip(row[f"{value}_list"], row[f"{records}_list"], strict=True)))
            for index, criterion in enumerate(asked):
                broken[index] += not keeps(criterion, here, wholes[row.get(by)])
    for criterion, number in zip(asked, broken, strict=True):
        release.judge(number == 0, f"{number:,} classes break {criterion}")


def check_promises(release: Release) -> None:
    """Check k, and the criteria beyond it that can be counted in the files."""
    checked, (by_records, once) = defaultdict(list), check_classes(release)
    full = once and (release.published.get("rows_left_out", 0) == 0 or release.tables("left_out/"))
    known = ["l_diversity", "alpha_k_anonymity", *["t_closeness", "beta_likeness"] * bool(full)]
    others = {"k", "unit", "allow_k_1", "allow_alone", "delta_presence"}
    for key in sorted({*release.privacy} - others):
        hidden = not by_records or key not in known  # as those of other packages
        for criterion in release.privacy[key] or []:
            if hidden or criterion.get("distance") == "hierarchical":
                release.not_checked.append(f"{key}: {criterion}")
            else:
                checked[criterion["attribute"]].append(criterion)
    for name, asked in checked.items():
        check_values(release, name, asked)


def main(arguments: list[str]) -> int:
    """Check a release, print what came out, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default=".", help="of the release, this one if none")
    parser.add_argument("--signers", default="", help="a file of allowed signers, as of OpenSSH")
    try:
        release = Release(**vars(parser.parse_args(arguments)))
        if release.manifest["form"] != 2 or release.format not in ("parquet", "orc"):
            print("cannot be read: only manifests of form 2, and records as parquet or orc, can")
            return 2
        for check in (check_signature, check_files, check_columns, check_promises):
            if not release.refused:
                check(release)
    except Exception as error:  # noqa: BLE001 - its text may hold values of the data
        print(f"cannot be read: {type(error).__name__}")
        return 2
    for title in "proven", "refused", "not checked":
        if texts := getattr(release, title.replace(" ", "_")):
            print("\n  ".join([f"{title}:", *texts]).encode("ascii", "backslashreplace").decode())
    print("THE RELEASE DOES NOT HOLD" if release.refused else "all that was checked holds")
    return 1 if release.refused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
