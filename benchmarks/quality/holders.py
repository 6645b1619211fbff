"""Adult in the hands of three holders: raw and anonymized, trained on together and apart."""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import roc_auc_score

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.protocol import Table
from anonspark.pipeline.run import run
from anonspark.release.originals import open_by_suffix
from anonspark.sharing.holders.union import unite
from anonspark.utility import evaluation
from anonspark.utility.evaluation import open_evaluation
from anonspark.utility.learning import LABEL
from quality.averaging import train_alone, train_together
from quality.csv_tables import Texts, read_adult
from quality.network import Descent, Examples, Figures, probabilities, start

QUASI_IDENTIFIERS = (
    "age", "workclass", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "native-country",
)  # fmt: skip
# Published as they are.
INSENSITIVE = ("capital-gain", "capital-loss", "hours-per-week")
NUMBERS = ("age", "education-num", *INSENSITIVE)
TARGET, POSITIVE = "income", ">50K"
COLUMNS = (*QUASI_IDENTIFIERS, *INSENSITIVE, TARGET)
HIDDEN = (64, 32, 16)
ROUNDS = 15
DESCENT = Descent(rate=0.01, batch=32)
TEST_SHARE = 0.3
HOLDERS = 3
SEEDS = (0, 1, 2)
# Of runs: not the default, which everybody knows, but the same for every measurement.
SEED = 2**40 + 1
KS = (3, 10, 50)
K = 10

Rows = npt.NDArray[np.intp]

TRAININGS = (
    "pooled, raw", "federated, raw", "pooled, anonymized", "union of anonymized",
    "federated, anonymized",
)  # fmt: skip


@dataclass(frozen=True)
class Score:
    """How well a model predicts the test.

    Parameters
    ----------
    accuracy : float
    precision, recall, f1 : float
        Of incomes above 50K; 0 where none is predicted.
    area : float
        Under the ROC curve.
    """

    accuracy: float
    precision: float
    recall: float
    f1: float
    area: float


@dataclass(frozen=True, eq=False)
class Parts:
    """A split: what is tested, and who holds what.

    Parameters
    ----------
    test : ndarray of int
    holders : list of ndarray of int
    """

    test: Rows
    holders: list[Rows]


def random_parts(table: Texts, seed: int) -> Parts:
    """Divide at random: 30% for the test, the rest to three holders equally."""
    test, rest = _test_and_rest(table, seed)
    return Parts(test, np.array_split(rest, HOLDERS))


def parts_by_relationship(table: Texts, seed: int) -> Parts:
    """Draw the test, and divide the rest into married, not in family, and others."""
    test, rest = _test_and_rest(table, seed)
    relationship = np.array(table.column("relationship"))[rest]
    married = np.isin(relationship, ("Husband", "Wife"))
    alone = relationship == "Not-in-family"
    return Parts(test, [rest[married], rest[alone], rest[~married & ~alone]])


def _test_and_rest(table: Texts, seed: int) -> tuple[Rows, Rows]:
    order = np.random.default_rng(seed).permutation(len(table.rows))
    test = round(TEST_SHARE * len(order))
    return order[:test], order[test:]


class Releases:
    """Raw and anonymized training records of a split, as examples of one feature space.

    Parameters
    ----------
    table : Texts
    parts : Parts
    folder : Path
        Where tables and releases are written.
    """

    def __init__(self, table: Texts, parts: Parts, folder: Path) -> None:
        self._engine = LocalEngine()
        self._folder = folder
        self.pool = np.concatenate(parts.holders)
        self._named = {"pool": self.pool, "test": parts.test}
        self._named |= {f"holder-{number}": own for number, own in enumerate(parts.holders)}
        self.holders = tuple(name for name in self._named if name.startswith("holder"))
        # Agreed on before: orders and ranges are the same for all, and tell nothing.
        self._agreed = {name: _agreed(name, table.column(name)) for name in QUASI_IDENTIFIERS}
        for name, rows in self._named.items():
            self._write(table, rows, self._path(name))
        self._made: set[tuple[str, int]] = set()
        self._examples: evaluation.Examples | None = None

    def raw(self, name: str) -> Examples:
        """Return raw records as examples, their numbers not standardized."""
        return self._read(self._space().of_records(self._open(name), name))

    def anonymized(self, name: str, k: int) -> Examples:
        """Return the release of a part's records as examples, made when it is first asked for."""
        space = self._space()
        if (name, k) not in self._made:
            self._anonymize(name, k)
        data = self._engine.published(f"{self._release(name, k)}/data", "parquet")
        return self._read(space.of_release(data))

    def united(self, k: int) -> Examples:
        """Return the union of the holders' releases as examples; ``anonspark union`` makes it."""
        space = self._space()
        for name in self.holders:
            if (name, k) not in self._made:
                self._anonymize(name, k)
        parts = [self._release(name, k) for name in self.holders]
        unite(self._engine, parts, self._release("union", k), seed=SEED)
        data = self._engine.published(f"{self._release('union', k)}/data", "parquet")
        return self._read(space.of_release(data))

    def numbers(self) -> list[int]:
        """Return the places of the features that are numbers."""
        places, place = [], 0
        for axis in self._space().space.axes:
            if axis.scale == "text":
                place += len(axis.frequent)
            else:
                places.append(place)
                place += 1
            place += bool(axis.missing)
        return places

    def _space(self) -> evaluation.Examples:
        if self._examples is None:
            self._anonymize("pool", K)
            opened = open_evaluation(
                self._engine, self._release("pool", K), str(self._path("pool")), TARGET
            )
            if opened.target is None:
                raise ValueError(f"{TARGET} has no classes to learn")
            self._examples = opened.examples(opened.target)
        return self._examples

    def _anonymize(self, name: str, k: int) -> None:
        coding = self._folder / f"coding-{k}.json"
        if not coding.exists():
            attributes = {**self._agreed, **dict.fromkeys(INSENSITIVE, "insensitive")}
            agreed = {
                "name": "adult-in-three-hands",
                "attributes": attributes | {TARGET: "sensitive"},
                "privacy": {"k": k},
            }
            coding.write_text(json.dumps(agreed))
        document = {
            "coding": str(coding),
            "input": {
                "path": str(self._path(name)),
                "format": "csv",
                "options": {"header": "true", "inferSchema": "true"},
            },
            "model": {"name": "smondrian"},
            "output": {"path": self._release(name, k)},
            "execution": {"seed": SEED},
        }
        run(self._engine, parse_configuration(document))
        self._made.add((name, k))

    def _read(self, examples: Table) -> Examples:
        found = examples.collect()
        labels = found.column(LABEL).to_numpy()
        values = found.column("features").combine_chunks().flatten().to_numpy()
        positive = float(self._space().target.classes.index(POSITIVE))
        own = values.reshape(len(labels), -1).astype(np.float64)
        return Examples(own, (labels == positive).astype(np.float64))

    def _open(self, name: str) -> Table:
        return open_by_suffix(self._engine, str(self._path(name)), name)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.csv"

    def _release(self, name: str, k: int) -> str:
        return str(self._folder / f"{name}-{k}")

    def _write(self, table: Texts, rows: Rows, path: Path) -> None:
        columns = [table.column(name) for name in COLUMNS]
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows([column[row] for column in columns] for row in rows)


def _agreed(name: str, values: Sequence[str]) -> dict[str, Any]:
    """Return what a coding says of a quasi-identifier: all that Adult can have."""
    if name in NUMBERS:
        numbers = [int(value) for value in values]
        own: dict[str, Any] = {"type": "number", "range": [min(numbers), max(numbers)]}
    else:
        own = {"order": sorted(set(values))}
    return {"role": "quasi_identifier", **own}


def joined(parts: Sequence[Examples]) -> Examples:
    """Return the examples of several holders as those of one."""
    return Examples(
        np.concatenate([one.features for one in parts]),
        np.concatenate([one.labels for one in parts]),
    )


class Trainer:
    """Trains on one split, and tests on its test.

    Parameters
    ----------
    test : Examples
    numbers : sequence of int
        Places of the features to standardize.
    seed : int
    """

    def __init__(self, test: Examples, numbers: Sequence[int], seed: int) -> None:
        self._test, self._numbers, self._seed = test, list(numbers), seed

    def together(self, holders: Sequence[Examples]) -> Score:
        """Train by federated averaging; one holder is plain training."""
        pool = joined(holders)
        center = pool.features[:, self._numbers].mean(axis=0)
        scale = pool.features[:, self._numbers].std(axis=0)

        def standardized(examples: Examples) -> Examples:
            values = examples.features.copy()
            values[:, self._numbers] = (values[:, self._numbers] - center) / scale
            return Examples(values, examples.labels)

        begun = start(pool.features.shape[1], HIDDEN, np.random.default_rng(self._seed))
        rngs = [np.random.default_rng([self._seed, number]) for number in range(len(holders))]
        own = [standardized(one) for one in holders]
        if len(own) == 1:
            model = train_alone(begun, own[0], ROUNDS, DESCENT, rngs[0])
        else:
            model = train_together(begun, own, ROUNDS, DESCENT, rngs)
        test = standardized(self._test)
        return score(test.labels, probabilities(model, test.features))


def score(labels: Figures, chances: Figures) -> Score:
    """Compare predictions with the test's labels; above 0.5 means above 50K."""
    predicted = chances > 0.5
    right = float((predicted & (labels == 1)).sum())
    precision = right / max(float(predicted.sum()), 1)
    recall = right / float(labels.sum())
    return Score(
        accuracy=float((predicted == labels).mean()),
        precision=precision,
        recall=recall,
        f1=2 * precision * recall / (precision + recall) if right else 0.0,
        area=float(roc_auc_score(labels, chances)),
    )


@dataclass(frozen=True)
class Measured:
    """What was measured of one kind of split.

    Parameters
    ----------
    scores : mapping of (training, k) to list of Score
        One for each seed; k is 0 for raw records.
    majority : list of float
        Accuracy of always predicting the most frequent class, for each seed.
    shares : list of list of float
        Share of incomes above 50K of each holder, for each seed.
    """

    scores: Mapping[tuple[str, int], list[Score]]
    majority: list[float]
    shares: list[list[float]]

    def mean(self, training: str, k: int = 0) -> Score:
        """Return the mean over the seeds."""
        return Score(*np.mean([astuple(one) for one in self.scores[training, k]], axis=0).tolist())

    def range(self, training: str, name: str, k: int = 0) -> tuple[float, float]:
        """Return the smallest and largest value of a figure."""
        values = [getattr(one, name) for one in self.scores[training, k]]
        return min(values), max(values)


def measure(
    data: Path, divide: Callable[[Texts, int], Parts], ks: Sequence[int], seeds: Sequence[int]
) -> Measured:
    """Train all models on the splits of some seeds.

    Parameters
    ----------
    data : Path
        Folder of the public data sets.
    divide : callable
        Makes the split of a seed.
    ks : sequence of int
        Of the releases.
    seeds : sequence of int
    """
    table = read_adult(data).complete()
    scores: dict[tuple[str, int], list[Score]] = {}
    majority, shares = [], []
    for seed in seeds:
        with tempfile.TemporaryDirectory(prefix="anonspark-silos-") as folder:
            releases = Releases(table, divide(table, seed), Path(folder))
            test = releases.raw("test")
            trainer = Trainer(test, releases.numbers(), seed)
            raw = [releases.raw(name) for name in releases.holders]
            found = {
                (TRAININGS[0], 0): trainer.together([joined(raw)]),
                (TRAININGS[1], 0): trainer.together(raw),
            }
            for k in ks:
                apart = [releases.anonymized(name, k) for name in releases.holders]
                found[TRAININGS[2], k] = trainer.together([releases.anonymized("pool", k)])
                found[TRAININGS[3], k] = trainer.together([releases.united(k)])
                found[TRAININGS[4], k] = trainer.together(apart)
        for key, one in found.items():
            scores.setdefault(key, []).append(one)
        majority.append(float(1 - test.labels.mean()))
        shares.append([float(one.labels.mean()) for one in raw])
    return Measured(scores, majority, shares)
