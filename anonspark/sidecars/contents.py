"""Write the files next to the data: README.md, datapackage.json, the view, the verifier."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib import resources

import pyarrow as pa
from jinja2 import Environment, StrictUndefined, Template

from anonspark.core.model_scores import columns_text
from anonspark.engine.files import Files, PublishedFile
from anonspark.foreign_text import code_span
from anonspark.labels.regions import PublishedAttribute, published_attributes
from anonspark.labels.typed_names import has_unknown_labels, raw_type_of, typed_names
from anonspark.release.copies import COPIES
from anonspark.release.manifest import NOT_PROTECTED, Manifest
from anonspark.sidecars.duckdb import quoted
from anonspark.sidecars.views import VIEW, view_text
from anonspark.sidecars.wording import about_columns, promises, title_of, type_of
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
    attributes = published_attributes(manifest)
    about = about_columns(manifest, schema)
    in_labels = [one for one in attributes if one.style != "bounds"]
    question, sql = _example(manifest, schema)
    summary = manifest.summary
    return _template().render(
        title=title_of(manifest),
        rows=f"{int(manifest.published.get('rows', 0)):,}",
        made=f"anonspark {manifest.version}".strip(),
        promises=promises(manifest),
        k=f"{manifest.k:,} record{'s' * (manifest.k > 1)}",
        parts=len(manifest.parts),
        not_protected=NOT_PROTECTED,
        columns=[
            (code_span(one.name), type_of(one.type), about[one.name].role, about[one.name].meaning)
            for one in schema
        ],
        are_times=[one.kind in ("date", "timestamp") for one in attributes if _is_range(one)],
        rules={one.rule for one in in_labels} - {None},
        has_sets=any(one.is_category for one in in_labels),
        has_groups=any(has_unknown_labels(one, manifest) for one in attributes),
        has_grid=any(one.grid for one in attributes),
        has_open_ends=any((one.bottom, one.top) != (None, None) for one in attributes),
        isolating=summary.get("isolating_ends"),
        style=manifest.style,
        drops_missing=manifest.drops_missing,
        has_levels=not manifest.parts and manifest.configuration["model"]["name"] in _LEVELLED,
        question=question,
        quoted_question=repr(question),
        has_views="views.sql" in files,
        view=VIEW,
        sql=sql,
        is_parquet=manifest.data_format == "parquet",
        has_csv="csv" in manifest.copies,
        kept_columns=columns_text(summary),
        left_out=[summary.get(name) for name in ("rows_dropped_missing", "rows_left_out")],
        verifier=VERIFIER,
        signer=manifest.signer,
    )


@cache
def _template() -> Template:
    """Return the template of the page. Every character of it counts: verify compares the bytes."""
    environment = Environment(  # noqa: S701 - Markdown, whose values are quoted where they come from
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    source = resources.files("anonspark.sidecars").joinpath("readme.md.j2")
    return environment.from_string(source.read_text(encoding="utf-8"))


def _is_range(attribute: PublishedAttribute) -> bool:
    return attribute.style == "interval" and not attribute.is_category and attribute.rule is None


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
