"""Write the files next to the data: README.md, datapackage.json, the view, the verifier."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple
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
    """Write README.md of a release from its manifest alone, so that it reveals nothing more.

    ``schema`` is that of the published records, ``files`` the names of those next to the page.
    """
    attributes = published_attributes(manifest)
    about = about_columns(manifest, schema)
    in_labels = [attribute for attribute in attributes if attribute.style != "bounds"]
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
            (code_span(field.name), type_of(field.type), *astuple(about[field.name]))
            for field in schema
        ],
        are_times=[label.kind in ("date", "timestamp") for label in filter(_is_range, attributes)],
        rules={attribute.rule for attribute in in_labels} - {None},
        has_sets=any(attribute.is_category for attribute in in_labels),
        has_groups=any(has_unknown_labels(attribute, manifest) for attribute in attributes),
        has_grid=any(attribute.grid for attribute in attributes),
        has_open_ends=any((label.bottom, label.top) != (None, None) for label in attributes),
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
    """Return whether labels of an attribute are ranges of its values."""
    return attribute.style == "interval" and not attribute.is_category and attribute.rule is None


_EXAMPLE_RANGES = {
    "date": ("'1980-01-01'", "'1989-12-31'"),
    "timestamp": ("'2020-01-01 00:00:00'", "'2020-12-31 23:59:59'"),
}


def _example(manifest: Manifest, schema: pa.Schema) -> tuple[str, str]:
    """Return a question, and the same in SQL if bounds have columns."""
    for attribute in published_attributes(manifest):
        if attribute.is_category or attribute.is_code or attribute.style == "mean":
            continue
        if not _may_be_written(attribute.name):
            continue
        low, high = _EXAMPLE_RANGES.get(attribute.kind, ("30", "40"))
        between = f"{low} and {high}"
        if attribute.kind == "date":  # No quotes are needed there, so a shell needs fewer.
            between = between.replace("'", "")
        question = f"{quoted(attribute.name)} between {between}"
        return question, _count_in_sql(attribute, manifest, schema, low, high)
    name = next(filter(_may_be_written, schema.names), None)
    return "" if name is None else f"{quoted(name)} is not null", ""


def _count_in_sql(
    attribute: PublishedAttribute, manifest: Manifest, schema: pa.Schema, low: str, high: str
) -> str:
    """Write a query of the records that may be in a range, and of those that certainly are."""
    if attribute.rule is not None or (attribute.bottom, attribute.top) != (None, None):
        # Null may mean any value there, which a comparison would leave out.
        return ""
    name, may_miss = attribute.name, not manifest.drops_missing
    names = typed_names(attribute, schema.names, is_opaque=False, may_miss=may_miss)
    ends = names.get("min", f"{name}_min"), names.get("max", f"{name}_max")
    first, last = map(quoted, ends)
    raw_type = raw_type_of(attribute, schema)
    if raw_type is not None and pa.types.is_timestamp(raw_type) and raw_type.tz is not None:
        # Whatever the time zone of the session.
        low, high = (f"{text[:-1]}+00'" for text in (low, high))
    present = f" AND NOT {quoted(names.get('missing', f'{name}_missing'))}" if may_miss else ""
    return (
        "SELECT\n"
        f"  count(*) FILTER (WHERE {first} >= {low} AND {last} <= {high}{present})"
        " AS at_least,\n"
        f"  count(*) FILTER (WHERE {last} >= {low} AND {first} <= {high}) AS at_most\n"
        f"FROM {VIEW};"
    )


def _may_be_written(name: str) -> bool:
    """Return whether a name can stand in a block of code, which it must not end.

    >>> _may_be_written("age"), _may_be_written("a`b")
    (True, False)
    """
    return name.isprintable() and "`" not in name


_MEDIA_TYPES = {"parquet": "application/vnd.apache.parquet", "orc": "application/vnd.apache.orc"}

_HIDDEN = ("_", ".")


def data_package(manifest: Manifest, schema: pa.Schema, files: Sequence[PublishedFile]) -> str:
    """Write the descriptor of a release, which lists the files of the records."""
    records = [file for file in files if file.path.startswith("data/") and _is_seen(file.path)]
    data_format = manifest.data_format.lower()
    resource: dict[str, object] = {
        "name": "data",
        "profile": "data-resource",
        "title": "Published records",
        "path": sorted(file.path for file in records),
        "format": data_format,
        "bytes": sum(file.bytes for file in records),
        "schema": {"fields": _fields(manifest, schema)},
    }
    if data_format in _MEDIA_TYPES:
        resource["mediatype"] = _MEDIA_TYPES[data_format]
    resources = [resource]
    if copies := sorted(file.path for file in files if file.path.startswith(f"{COPIES}/")):
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
    """Return whether readers of tables see a file.

    >>> _is_seen("data/part-0.parquet"), _is_seen("data/_delta_log/0.json")
    (True, False)
    """
    return not any(part.startswith(_HIDDEN) for part in path.split("/"))


def _fields(manifest: Manifest, schema: pa.Schema) -> list[Mapping[str, str]]:
    """Describe the published columns."""
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
    """Return the contents of the files that explain a release, by name.

    They follow from the manifest, without its list of files, from the schema of the records and
    from the other files: neither the name of the run nor a time is in them.
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
    """Write the files of :func:`sidecar_contents` into a release."""
    sidecars = []
    contents = sidecar_contents(Manifest(manifest), schema, written)
    for name, content in sorted(contents.items()):
        files.write_bytes(f"{release}/{name}", content)
        digest = hashlib.sha256(content).hexdigest()
        sidecars.append(PublishedFile(name, len(content), None, digest))
    return sidecars
