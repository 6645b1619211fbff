"""Su-Mondrian and its proof on an engine of lists: the thesis' figures, and nothing of Spark."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import reduce
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest
from data_sets import ADULT
from toy_engine import ToyEngine

from anonspark.config.models import MondrianOptions
from anonspark.config.privacy import PrivacyOptions
from anonspark.core.columns import PAYLOAD_HASH, RECORD_HASH, quasi_identifier_column
from anonspark.core.criteria import Criteria
from anonspark.core.encoding import QuasiIdentifier
from anonspark.engine.protocol import Table
from anonspark.layers.evaluate.metrics import sum_up
from anonspark.layers.generalize.classes import Generalizer
from anonspark.layers.prepare.snapshot import Snapshot
from anonspark.models.blockwise import BlockwiseModel, FormGroups
from anonspark.models.choosing import release_one_block
from anonspark.models.model import Task
from anonspark.models.registry import create_model
from anonspark.pipeline.rounds import StagedRounds, run_rounds
from anonspark.progress import Progress
from anonspark.release.derived_figures import Totals
from anonspark.staged.records import PACKED, PackRecords, Records
from anonspark.verification.audit import audit_table
from anonspark.verification.claims.claim import Claim

PUBLISHED = {"split": "strict", "cut": "published", "span": "cell", "separation": "always"}


@pytest.fixture(scope="module")
def snapshot(adult_path: Path) -> Snapshot:
    """Return Adult as layer 1 prepares it, in three tasks."""
    table = pc.read_csv(adult_path)
    columns, quasi_identifiers = [], []
    for name in ADULT.quasi_identifiers:
        column = table[name].combine_chunks()
        if pa.types.is_string(column.type):
            categories = tuple(sorted(column.unique().to_pylist()))
            bounds = (0, len(categories) - 1)
            one = QuasiIdentifier(name, "category", pa.string(), *bounds, categories=categories)
        else:
            bounds = (min(column.to_pylist()), max(column.to_pylist()))
            one = QuasiIdentifier(name, "integer", pa.int64(), *bounds)
        columns.append(column)
        quasi_identifiers.append(one)
    hashes = pa.array(np.random.default_rng(0).permutation(len(table)).astype(np.int64) << 32)
    names = [quasi_identifier_column(place) for place in range(len(columns))]
    rows = pa.table([*columns, hashes, hashes], [*names, RECORD_HASH, PAYLOAD_HASH])
    engine = ToyEngine()
    packed = engine.spread(rows, 3).map_batches(PackRecords(), PACKED)
    return Snapshot(
        records=Records(packed, rows.schema),
        rows_read=len(rows),
        rows=len(rows),
        missing=(0,) * len(names),
        quasi_identifiers=tuple(quasi_identifiers),
        criteria=Criteria(1),
        hierarchies={},
        origin="",
        fingerprint="",
        open_records=no_records,
    )


def no_records(_: Sequence[str]) -> AbstractContextManager[Table]:
    raise NotImplementedError("rounds read what is staged")


class State:
    """What a run has finished: nothing of another attempt."""

    attempt = 1

    def finished_round(self, _: int) -> None:
        return None

    def finish_round(self, _: object) -> None:
        pass

    def forget_round(self, _: int) -> None:
        pass


def model_of(snapshot: Snapshot, k: int, task_rows: int, **options: Any) -> BlockwiseModel:
    generalizer = Generalizer(snapshot.quasi_identifiers, "interval", shows_missing=False)
    task = Task(generalizer, Criteria(k), 0, task_rows)
    return cast("BlockwiseModel", create_model(MondrianOptions(**options), task))


def run(snapshot: Snapshot, model: BlockwiseModel) -> StagedRounds:
    engine = ToyEngine()
    rows = snapshot.records.packed.collect()
    records = Records(engine.table(rows), snapshot.records.schema)
    own = Snapshot(**{**vars(snapshot), "records": records})
    return run_rounds(
        model,
        own,
        model.task.criteria,
        model.task.generalizer.columns(),
        staging=cast("Any", SimpleNamespace(rounds="rounds", state=State())),
        files=cast("Any", SimpleNamespace(delete=engine.places.pop)),
        progress=Progress(),
    )


def totals_of(staged: StagedRounds, snapshot: Snapshot) -> Totals:
    return reduce(Totals.__add__, sum_up(staged.classes, snapshot.quasi_identifiers))


@pytest.mark.parametrize("task_rows", [8_000, 10**9])
def test_smondrian_is_the_thesis_to_the_last_digit(snapshot: Snapshot, task_rows: int) -> None:
    model = model_of(snapshot, 5, task_rows, name="smondrian", **PUBLISHED)
    total = totals_of(run(snapshot, model), snapshot)
    assert (total.classes, total.squares) == (4553, 207996)
    assert float(total.penalty) == pytest.approx(3952.62, abs=0.005)


@pytest.mark.parametrize(
    ("separation", "refine", "rounds"), [("adaptive", 0, 3), ("always", 0, 3), ("adaptive", 1, 1)]
)
def test_su_mondrian_is_that_of_one_block(
    snapshot: Snapshot, separation: str, refine: int, rounds: int
) -> None:
    """With many tasks and several rounds, every record is published once and loses as much."""
    options = {"separation": separation, "refine": refine, "rho": 3}
    model = model_of(snapshot, 10, 8_000, name="su-mondrian", **options)
    staged = run(snapshot, model)
    assert len(staged.results) == rounds
    whole = snapshot.records.rows().collect()
    published = staged.finished.rows(PAYLOAD_HASH).collect()
    assert sorted(published[PAYLOAD_HASH].to_pylist()) == sorted(whole[PAYLOAD_HASH].to_pylist())
    forming = FormGroups({}, model.group_former, model.task.generalizer, model.task.criteria)
    contents = forming.contents(whole)
    classes = release_one_block(model, contents)
    penalties = model.task.generalizer.penalty(contents.codes[classes.order], classes.starts)
    total = totals_of(staged, snapshot)
    assert total.classes == len(classes.starts) - 1
    assert sorted(np.diff(classes.starts).tolist()) == sorted(
        size for size, n in total.sizes.items() for _ in range(n)
    )
    assert float(total.penalty) == pytest.approx(penalties.sum(), rel=1e-9)


def test_nothing_of_spark_is_loaded() -> None:
    code = (
        "import sys, anonspark.pipeline.rounds, anonspark.models.registry, "
        "anonspark.models.choosing, anonspark.layers.publish.writing, "
        "anonspark.layers.publish.class_table, anonspark.verification.audit; "
        "print(*(name for name in sys.modules if name.split('.')[0] in ('pyspark', 'py4j')))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == ""


def test_a_release_is_verified_without_spark() -> None:
    ages = [20, 21, 22, 23, 40, 41, 42, 43]
    people = {
        "age": ages,
        "sex": ["f"] * 4 + ["m"] * 4,
        "sickness": ["flu", "flu", "gout", None] * 2,
    }
    labels = {"age": ["[20-23]"] * 4 + ["[40-43]"] * 4, "sex": people["sex"]}
    engine = ToyEngine()
    original = engine.spread(pa.table(people), 3)
    release = engine.spread(pa.table({**labels, "sickness": people["sickness"][::-1]}), 2)
    claim = Claim(
        PrivacyOptions(k=4, l_diversity={"attribute": "sickness", "l": 3}),
        ["age", "sex"],
        ("age", "sex"),
        sensitive=("sickness",),
    )
    found = audit_table(release, claim, original=original)
    # Whose sickness is whose is not told, and all of a class are there.
    assert found.failures == []
    assert (found.published.classes, found.published.smallest) == (2, 4)
    assert found.criteria[0].measured == 3.0
    assert (found.truthfulness.matched, found.linkage["original"].smallest_candidates) == (8, 4)
    assert (found.loss.dm, found.loss.gcp_total) == (32, None)
    wrong = engine.spread(pa.table({**labels, "sickness": ["flu"] * 8}), 2)
    failures = "\n".join(audit_table(wrong, claim, original=original).failures)
    assert "truthfulness" in failures
    assert "violate" in failures
