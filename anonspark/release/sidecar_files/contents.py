"""Write the files next to the data: README.md, datapackage.json, the view, the verifier."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa

from anonspark.core.utility_score import columns_text
from anonspark.engine.files import Files, PublishedFile
from anonspark.foreign_text import code_span
from anonspark.release.copies import COPIES
from anonspark.release.manifest import NOT_PROTECTED, Manifest
from anonspark.release.regions import PublishedAttribute, published_attributes
from anonspark.release.sidecar_files.duckdb import quoted
from anonspark.release.sidecar_files.views import VIEW, view_text
from anonspark.release.sidecar_files.wording import about_columns, promises, title_of, type_of
from anonspark.release.typed_names import has_unknown_labels, raw_type_of, typed_names
from anonspark.verifier import VERIFIER, verifier_text

_LEVELLED = ("full-domain", "rho-gain")


def readme(manifest: Manifest, schema: pa.Schema, files: Collection[str]) -> str:
    """Return the page of a release.

    Parameters
    ----------
    manifest : Manifest
        No value of the data is read but what the manifest says.
    schema : pyarrow.Schema
        Of the published records.
    files : collection of str
        Names of the files beside this one.
    """
    parts = [
        f"# {title_of(manifest)}",
        _what_it_is(manifest),
        _columns(manifest, schema),
        _labels(manifest),
        _levels(manifest),
        _counting(manifest, schema, files),
        _limits(manifest),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _what_it_is(manifest: Manifest) -> str:
    rows = int(manifest.published.get("rows", 0))
    made = f"anonspark {manifest.version}".strip()
    text = (
        f"{rows:,} records about people, made by {made}. Records that are alike in all "
        "quasi-identifiers are a class. A reader who knows these values of a person finds at least "
        f"{manifest.k:,} record{'s' * (manifest.k > 1)}.\n\n"
    )
    text += "\n".join(f"- {sentence}" for sentence in promises(manifest))
    if manifest.parts:
        text += (
            f"\n\nIt is the union of {len(manifest.parts)} releases of different holders. Note: "
            f"{NOT_PROTECTED}."
        )
    return text


def _columns(manifest: Manifest, schema: pa.Schema) -> str:
    about = about_columns(manifest, schema)
    lines = ["## Columns", "", "| column | type | role | what it is |", "| --- | --- | --- | --- |"]
    for field in schema:
        one = about[field.name]
        cells = [code_span(field.name), type_of(field.type), one.role, one.meaning]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _labels(manifest: Manifest) -> str:
    """Explain the labels that this release has."""
    attributes = published_attributes(manifest)
    lines = []
    numbers = [one for one in attributes if _is_labelled_range(one)]
    if any(one.kind not in ("date", "timestamp") for one in numbers):
        lines.append("`44` is one value. `[17-25]` are all numbers from 17 to 25, both included.")
    if any(one.kind in ("date", "timestamp") for one in numbers):
        lines.append(
            "`[2020-01-31/2020-03-01]` are all days (or times, in UTC) between, both included."
        )
    rules = {one.rule for one in attributes if one.style != "bounds"}
    if "intervals" in rules:
        lines.append(
            "`[20-25[` are the numbers from 20 to 25 without 25, and `90+` are those from 90 on."
        )
    if "calendar" in rules:
        lines.append(
            "`2020-01`, `2020-Q1`, `2020` and `2020s` are all days of the month, quarter, year or "
            "decade."
        )
    if "prefix" in rules:
        lines.append("`061**` are all codes of five characters that begin with 061.")
    if "keep" in rules:
        lines.append("`E11*` are all codes that begin with E11.")
    if any(one.is_category and one.style != "bounds" for one in attributes):
        lines.append(
            "`{a, b}` is one of these values. A value in double quotes is quoted as in JSON."
        )
    if any(has_unknown_labels(one, manifest) for one in attributes):
        lines.append(
            "The label of a hierarchy stands for a value or for all values of a group. The "
            "hierarchy lists them, and it is not in the release."
        )
    if rules - {None} or any(has_unknown_labels(one, manifest) for one in attributes):
        lines.append("`*` is any value.")
    if not manifest.drops_missing and manifest.style == "interval":
        lines.append("`missing` is no value, `... or missing` a value or none.")
    if manifest.style == "bounds":
        occur = (
            ""
            if any(one.grid for one in attributes)
            else ", and are values that occur in the class"
        )
        lines.append(f"Both bounds are included{occur}. Null where all values are missing.")
    if any(one.bottom is not None or one.top is not None for one in attributes):
        lines.append(
            "The outermost values of some columns are one: `90+` (or `... or later`) are all from "
            "there on, `17 or less` (or `... or earlier`) all up to there."
        )
    share = manifest.summary.get("isolating_ends")
    if share is not None:
        lines.append(
            f"At {share:.1%} of the ends of ranges, the strip as wide as a step of the grid holds "
            "one record of the original. Without a grid a strip is a value."
        )
    if manifest.style == "mean":
        lines.append("A mean does not show how far the values of a class lie apart.")
    if not lines:
        return ""
    return "## Labels\n\n" + "\n".join(f"- {line}" for line in lines)


def _levels(manifest: Manifest) -> str:
    """Point to the levels of a release with one level for each column."""
    if manifest.parts or manifest.configuration["model"]["name"] not in _LEVELLED:
        return ""
    return """## Levels

- Every quasi-identifier has one level of its hierarchy for all records of a round, see
  `metrics/rounds`. `metrics/nodes`, if it exists, describes the levels above.
- `anonspark mapping .` prints which value has which label, for who has the hierarchies' files."""


def _is_labelled_range(attribute: PublishedAttribute) -> bool:
    return attribute.style == "interval" and not attribute.is_category and attribute.rule is None


def _counting(manifest: Manifest, schema: pa.Schema, files: Collection[str]) -> str:
    question, sql = _example(manifest, schema)
    text = f"""## How to count

A class covers a region, so a count has an estimate (each class spread evenly over its region) and
bounds that hold for certain: records of classes that lie inside, and of those that may.

With anonspark, in this directory:

```sh
anonspark query . {_for_shell(question)}
```

```python
import anonspark

release = anonspark.read(".")
release.count({question!r})   # estimate, lower, upper
release.to_pandas()           # typed columns next to the labels
```"""
    if "views.sql" in files:
        text += f"""

With DuckDB, in this directory: `duckdb -init views.sql` makes the view `{VIEW}` with typed columns
next to the labels."""
        if sql:
            text += f"\n\n```sql\n{sql}\n```"
    if manifest.data_format == "parquet":
        text += """

With pandas alone: `pandas.read_parquet("data")` reads the labels as they are."""
    if "csv" in manifest.copies:
        text += """

With a spreadsheet or R: `copies` holds the same records as CSV, a file for each file of `data`, in
UTF-8 with a byte order mark (in R `read.csv(..., fileEncoding = "UTF-8-BOM")`). The fields of texts
are in quotes, and an empty field without quotes is a missing value. A text that begins with `=`,
`+`, `-`, `@`, an apostrophe, a tab or a line break, and is no number, has an apostrophe in front of
it, so that no spreadsheet runs it as a formula. So have these signs inside of a text, behind a
semicolon, a tab or a line break (and quotes), where some programs begin a cell. Remove an
apostrophe at each of these places to get the text."""
    return text


def _for_shell(question: str) -> str:
    return "'" + question.replace("'", "'\\''") + "'"


def _example(manifest: Manifest, schema: pa.Schema) -> tuple[str, str]:
    """Return a question, and the same in SQL where bounds have columns."""
    for one in published_attributes(manifest):
        if one.is_category or one.is_code or one.style == "mean":
            continue
        if not _may_be_written(one.name):
            continue
        names = typed_names(one, schema.names, is_opaque=False, may_miss=not manifest.drops_missing)
        first, last = names.get("min"), names.get("max")
        if one.style == "bounds" and one.rule is None:
            first, last = f"{one.name}_min", f"{one.name}_max"
        low, high = ("30", "40")
        if one.kind == "date":
            low, high = "'1980-01-01'", "'1989-12-31'"
        elif one.kind == "timestamp":
            low, high = "'2020-01-01 00:00:00'", "'2020-12-31 23:59:59'"
        bounds = f"{low} and {high}"
        if one.kind == "date":  # A question needs no quotes around a day, so a shell needs fewer.
            bounds = bounds.replace("'", "")
        question = f"{quoted(one.name)} between {bounds}"
        is_open = one.bottom is not None or one.top is not None
        if first is None or last is None or one.rule is not None or is_open:
            # Of rules and open ends null may mean any value, which a comparison would leave out.
            return question, ""
        found = raw_type_of(one, schema)
        if found is not None and pa.types.is_timestamp(found) and found.tz is not None:
            # Whatever the time zone of the session.
            low, high = (f"{text[:-1]}+00'" for text in (low, high))
        first, last = quoted(first), quoted(last)
        present = ""
        if not manifest.drops_missing:
            missing = names.get("missing", f"{one.name}_missing")
            present = f" AND NOT {quoted(missing)}"
        sql = (
            "SELECT\n"
            f"  count(*) FILTER (WHERE {first} >= {low} AND {last} <= {high}{present})"
            " AS at_least,\n"
            f"  count(*) FILTER (WHERE {last} >= {low} AND {first} <= {high}) AS at_most\n"
            f"FROM {VIEW};"
        )
        return question, sql
    name = next(filter(_may_be_written, schema.names), None)
    return "" if name is None else f"{quoted(name)} is not null", ""


def _may_be_written(name: str) -> bool:
    """Return whether a name can stand in a block of code, which it must not end."""
    return name.isprintable() and "`" not in name


def _limits(manifest: Manifest) -> str:
    lines = [
        "Do not try to find out who a record is about, and do not join it with what would.",
        "Columns that are published as they were are true of single people: a class whose records "
        "agree in one of them shows it of every person in the class.",
        "Counts of few records have wide bounds. Quote the bounds with the estimate.",
    ]
    columns = columns_text(manifest.summary)
    if columns:
        lines.append(f"{columns}. The release holds nothing of the others.")
    left_out = [manifest.summary.get(name) for name in ("rows_dropped_missing", "rows_left_out")]
    if None in left_out:
        lines.append("Records may have been left out. The release does not say how many.")
    elif any(left_out):
        number = sum(int(one or 0) for one in left_out)
        lines.append(f"{number:,} records of the table that it was made of were left out.")
    if manifest.style == "mean":
        lines.append("Of means there are no bounds: every value of a class is possible.")
    lines.append("`anonspark verify .` counts the promises above again, from the files alone.")
    lines.append(
        f"`python {VERIFIER} .` counts them again with Python and pyarrow alone. Compare the file "
        "with what `anonspark verifier` prints before you run it: it may have been changed."
    )
    return "## Limits\n\n" + "\n".join(f"- {line}" for line in lines)


_MEDIA_TYPES = {"parquet": "application/vnd.apache.parquet", "orc": "application/vnd.apache.orc"}

_HIDDEN = ("_", ".")


def data_package(manifest: Manifest, schema: pa.Schema, files: Sequence[PublishedFile]) -> str:
    """Return the descriptor of a release.

    Parameters
    ----------
    manifest : Manifest
    schema : pyarrow.Schema
        Of the published records.
    files : sequence of PublishedFile
        All of the release, in any order. Those of the records are named.
    """
    own = sorted(one.path for one in files if one.path.startswith("data/") and _is_seen(one.path))
    data_format = manifest.data_format.lower()
    resource: dict[str, object] = {
        "name": "data",
        "profile": "data-resource",
        "title": "Published records",
        "path": own,
        "format": data_format,
        "bytes": sum(one.bytes for one in files if one.path in own),
        "schema": {"fields": _fields(manifest, schema)},
    }
    if data_format in _MEDIA_TYPES:
        resource["mediatype"] = _MEDIA_TYPES[data_format]
    resources = [resource]
    if copies := sorted(one.path for one in files if one.path.startswith(f"{COPIES}/")):
        title = "Published records as CSV"
        resources.append(
            {
                "name": COPIES,
                "title": title,
                "path": copies,
                "format": "csv",
                "mediatype": "text/csv",
            }
        )
    descriptor = {
        "profile": "data-package",
        "name": f"release-{manifest.fingerprint[:12]}",
        "title": title_of(manifest),
        "description": "See README.md for what the columns mean and how to count in them.",
        "resources": resources,
    }
    return json.dumps(descriptor, indent=2, ensure_ascii=False) + "\n"


def _is_seen(path: str) -> bool:
    return not any(part.startswith(_HIDDEN) for part in path.split("/"))


def _fields(manifest: Manifest, schema: pa.Schema) -> list[Mapping[str, str]]:
    about = about_columns(manifest, schema)
    return [
        {
            "name": field.name,
            "type": type_of(field.type),
            "description": about[field.name].meaning,
            "role": about[field.name].role,
        }
        for field in schema
    ]


def sidecar_contents(
    manifest: Manifest, schema: pa.Schema, written: Sequence[PublishedFile], *_: str
) -> dict[str, bytes]:
    """Return the files that explain a release, by name: a function of what it says and of its data.

    Parameters
    ----------
    manifest : Manifest
        Of the release. Its list of files is not read.
    schema : pyarrow.Schema
        Of the published records.
    written : sequence of PublishedFile
        What else of the release is written.

    Returns
    -------
    dict of str to bytes
        The same for the same records, configuration and version: neither the name of the run nor a
        time is in them.
    """
    view = view_text(manifest, schema)
    texts = {} if view is None else {"views.sql": view}
    texts["datapackage.json"] = data_package(manifest, schema, written)
    texts["README.md"] = readme(manifest, schema, {*texts, "README.md"})
    return {name: text.encode() for name, text in texts.items()} | {VERIFIER: verifier_text()}


def write_sidecar_files(
    files: Files,
    manifest: dict[str, object],
    schema: pa.Schema,
    written: Sequence[PublishedFile],
    release: str,
) -> list[PublishedFile]:
    """Write the files that explain a release. Parameters as of :func:`sidecar_contents`."""
    found = []
    contents = sidecar_contents(Manifest(manifest), schema, written)
    for name, content in sorted(contents.items()):
        files.write_bytes(f"{release}/{name}", content)
        digest = hashlib.sha256(content).hexdigest()
        found.append(PublishedFile(name, len(content), None, digest))
    return found
