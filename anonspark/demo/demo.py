"""The demo: generated people, and the configuration that anonymizes them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml

from anonspark.config import Configuration, parse_configuration
from anonspark.config.variables import configuration_yaml
from anonspark.demo.people import EDUCATION_ORDER, people_of
from anonspark.errors import ConfigurationError
from anonspark.ownership import fault_at
from anonspark.release.regions import OrderedRegion, PublishedAttribute, Region, read_label


def prepare_demo(directory: Path, rows: int) -> tuple[Path, Configuration]:
    """Write generated people and a configuration that anonymizes them.

    Parameters
    ----------
    directory : Path
        Gets ``people-<rows>.parquet`` and ``people.yaml``.
    rows : int
        People to generate.

    Returns
    -------
    path : Path
        The configuration file.
    configuration : Configuration

    Raises
    ------
    ConfigurationError
        If there is another file where it writes.
    """
    people = directory / f"people-{rows}.parquet"
    ranges = {"role": "quasi_identifier", "grid": "auto"}
    document: dict[str, object] = {
        "input": {"path": str(people)},
        "attributes": {
            "person_id": "identifier",
            "birth_date": dict(ranges),
            "sex": "quasi_identifier",
            "postal_code": dict(ranges),
            "education": {"role": "quasi_identifier", "order": list(EDUCATION_ORDER)},
            "income": dict(ranges),
            "capital_gain": dict(ranges),
            "hours_per_week": dict(ranges),
            "diagnosis": "sensitive",
        },
        "missing": "category",
        "privacy": {"k": 10, "l_diversity": 3},
        "model": {"name": "su-mondrian", "rho": 5},
        "evaluate": {"compare_baseline": True},
        "output": {"path": str(directory / "release"), "mode": "overwrite"},
    }
    path = directory / "people.yaml"
    _require_own_configuration(path, document)
    table = pa.Table.from_batches([people_of(0, np.arange(rows))])
    if people.is_symlink() or (people.exists() and not _is_equal(people, table)):
        raise _other_file(people)
    directory.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, people)
    path.write_text(configuration_yaml(document))
    return path, parse_configuration(document)


def find_class(
    people: pa.Table, published: pa.Table, attributes: Sequence[PublishedAttribute]
) -> tuple[pa.Table, pa.Table] | None:
    """Return the people of one class and what is published of them, both by diagnosis.

    Parameters
    ----------
    people, published : pyarrow.Table
    attributes : sequence of PublishedAttribute
        The quasi-identifiers of the release.

    Returns
    -------
    tuple of pyarrow.Table or None
        None if the labels of every class also cover people of other classes.
    """
    names = [one.name for one in attributes]
    for labels in published.group_by(names, use_threads=False).aggregate([]).to_pylist():
        records = published.filter(
            reduce(pc.and_, [pc.equal(published[name], labels[name]) for name in names])
        )
        covered = [
            _covered(people[one.name], read_label(labels[one.name], one)) for one in attributes
        ]
        # The labels cover all people of the class: no more people are these people.
        members = people.filter(reduce(pc.and_, covered))
        if len(members) == len(records):
            return members.sort_by("diagnosis"), records.sort_by("diagnosis")
    return None


def _covered(column: pa.ChunkedArray, region: Region) -> pa.ChunkedArray:
    """Return for each value whether a label stands for it."""
    if isinstance(region, OrderedRegion):
        numbers = column.cast(pa.int32()) if pa.types.is_date(column.type) else column
        (between,) = region.intervals or ()
        return pc.and_(pc.greater_equal(numbers, between.low), pc.less_equal(numbers, between.high))
    values = [*(region.values or ()), *([None] if region.missing else [])]
    return pc.is_in(column, pa.array(values, column.type))


def _require_own_configuration(path: Path, document: dict[str, object]) -> None:
    """Check that a configuration that would be replaced is that of a demo, of any size."""
    if not path.exists() and not path.is_symlink():
        return
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        found = None
    is_own = isinstance(found, dict) and all(
        found.get(key) == document[key] for key in document if key not in ("input", "output")
    )
    if fault_at(path) or not is_own:
        raise _other_file(path)


def _is_equal(path: Path, table: pa.Table) -> bool:
    """Return whether a file holds just this table."""
    try:
        return bool(pq.read_table(path).equals(table))
    except (OSError, pa.ArrowException):
        return False


def _other_file(path: Path) -> ConfigurationError:
    return ConfigurationError(
        f"--out: {path} was not written by the demo, which would replace it. Choose another"
        " directory, or move the file."
    )
