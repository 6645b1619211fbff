"""Seconds and attacks of training on anonymized records and of federated learning.

    PYTHONPATH=benchmarks .venv/bin/python -m quality.attacks --data ../shared/data

Half of the records of a table are members, in the hands of three holders. The same network is
trained on the pool, by federated averaging, on the anonymized pool (``smondrian``), and by
federated averaging on what the holders anonymized apart. The attackers have the model:

- membership (Yeom et al. 2018): a record is a member if the probability of its own class is high.
  The area under the ROC curve, 0.5 is guessing.
- attribute (Fredrikson et al. 2014): of a record all is known but one attribute. The value is
  guessed that makes the known class most probable, times its share of the members. How often this
  is right for members, and by how much more often than for others.
- release: a record is a member if some class of the release holds its values. The share of members
  that are covered, minus that of others: what the release reveals besides any model.

Prints the Markdown that docs/measured.md has: means over the seeds.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.protocol import Table
from anonspark.pipeline.run import run
from anonspark.utility.evaluation import open_evaluation
from anonspark.utility.learning import LABEL
from anonspark.verification.audit import audit_release
from quality.averaging import train_alone, train_together
from quality.holders import DESCENT, HIDDEN, HOLDERS, KS, ROUNDS, SEED, SEEDS, joined
from quality.network import Examples, Figures, probabilities, start

RECORDS = 20_000
ATTACKED = 2_000
Model = Callable[[Figures], Figures]


@dataclass(frozen=True)
class Problem:
    """A table, the class that is learned, and the attribute that is guessed."""

    file: str
    quasi_identifiers: tuple[str, ...]
    target: str
    positive: str
    guessed: str


PROBLEMS = {
    "Adult": Problem(
        "adult.csv",
        (
            *("age", "workclass", "education", "marital-status", "occupation", "relationship"),
            *("race", "sex", "hours-per-week"),
        ),
        "income",
        ">50K",
        "occupation",
    ),
    "Diabetes": Problem(
        "diabetic_data.csv.gz",
        (
            *("race", "gender", "age", "time_in_hospital", "num_lab_procedures", "insulin"),
            *("num_medications", "number_inpatient", "number_diagnoses"),
        ),
        "readmitted",
        "NO",
        "insulin",
    ),
    "FARS": Problem(
        "fars.csv",
        ("iage", "isex", "ihispanic", "istatenum", "ideathmon"),
        "iinjury",
        "Incapacitating",
        "istatenum",
    ),
    "Car": Problem(
        "car.csv",
        ("buying", "maint", "doors", "persons", "lug_boots", "safety"),
        "class",
        "unacc",
        "safety",
    ),
}


class Split:
    """Members in the hands of three holders, and others, as examples of one feature space."""

    def __init__(self, data: Path, problem: Problem, seed: int, folder: Path) -> None:
        self._problem, self._folder, self._engine = problem, folder, LocalEngine()
        columns = [*problem.quasi_identifiers, problem.target]
        frame = pd.read_csv(data / problem.file, keep_default_na=False)[columns]
        numbers = frame.select_dtypes("number").columns
        frame = frame.astype({name: "str" for name in columns if name not in numbers})
        frame = frame.sample(min(RECORDS, len(frame)), random_state=seed)
        self.numbers = [name for name in problem.quasi_identifiers if name in numbers]
        members, others = frame[: len(frame) // 2], frame[len(frame) // 2 :]
        parts = np.array_split(np.arange(len(members)), HOLDERS)
        self.holders = [f"holder-{number}" for number in range(HOLDERS)]
        frames = {"pool": members, "others": others}
        frames |= {name: members.iloc[rows] for name, rows in zip(self.holders, parts, strict=True)}
        for name, own in frames.items():
            own.to_parquet(folder / f"{name}.parquet")
        self.anonymize("pool", min(KS))
        opened = open_evaluation(
            self._engine, self._path("pool", min(KS)), str(folder / "pool.parquet"), problem.target
        )
        if opened.target is None:
            raise ValueError(f"{problem.target} has no classes to learn")
        self._examples = opened.examples(opened.target)

    def anonymize(self, name: str, k: int) -> float:
        """Make a release, and return how many seconds that took."""
        attributes = {
            column: {
                "role": "quasi_identifier",
                **({} if column in self.numbers else {"type": "text"}),
            }
            for column in self._problem.quasi_identifiers
        }
        document = {
            "input": {"path": str(self._folder / f"{name}.parquet")},
            "attributes": {**attributes, self._problem.target: "sensitive"},
            "privacy": {"k": k},
            "model": {"name": "smondrian"},
            "output": {"path": self._path(name, k), "mode": "overwrite"},
            "execution": {"seed": SEED},
        }
        begun = time.perf_counter()
        run(self._engine, parse_configuration(document), purpose="comparison")
        return time.perf_counter() - begun

    def raw(self, name: str) -> Examples:
        """Return raw records as examples."""
        table = self._engine.published(str(self._folder / f"{name}.parquet"), "parquet")
        return self._read(self._examples.of_records(table, name))

    def anonymized(self, name: str, k: int) -> Examples:
        """Return the records of a release as examples."""
        data = self._engine.published(f"{self._path(name, k)}/data", "parquet")
        return self._read(self._examples.of_release(data))

    def covered(self, name: str, k: int) -> float:
        """Return the share of a part's records that some class of the pool's release holds."""
        population = str(self._folder / f"{name}.parquet")
        found = audit_release(self._engine, self._path("pool", k), population=population)
        linkage = found.linkage["population"]
        return linkage.matched / linkage.records

    def places(self) -> tuple[list[int], list[int]]:
        """Return the features that are numbers, and those of the guessed attribute's values."""
        numbers, guessed, place = [], [], 0
        for axis in self._examples.space.axes:
            width = len(axis.frequent) if axis.scale == "text" else 1
            own = list(range(place, place + width))
            if axis.name == self._problem.guessed:
                guessed = own
            elif axis.scale != "text":
                numbers += own
            place += width + bool(axis.missing)
        return numbers, guessed

    def _path(self, name: str, k: int) -> str:
        return str(self._folder / f"{name}-{k}")

    def _read(self, table: Table) -> Examples:
        collected = table.collect()
        labels = collected.column(LABEL).to_numpy()
        values = collected.column("features").combine_chunks().flatten().to_numpy()
        positive = self._examples.target.classes.index(self._problem.positive)
        return Examples(values.reshape(len(labels), -1), (labels == positive).astype(np.float64))


def train(holders: Sequence[Examples], numbers: list[int], seed: int, rounds: int) -> Model:
    """Train the network by federated averaging; one holder is plain training."""
    pool = joined(holders)
    center = pool.features[:, numbers].mean(axis=0)
    scale = np.maximum(pool.features[:, numbers].std(axis=0), 1e-9)

    def standardized(features: Figures) -> Figures:
        values = features.copy()
        values[:, numbers] = (values[:, numbers] - center) / scale
        return values

    begun = start(pool.features.shape[1], HIDDEN, np.random.default_rng(seed))
    rngs = [np.random.default_rng([seed, number]) for number in range(len(holders))]
    own = [Examples(standardized(part.features), part.labels) for part in holders]
    if len(own) == 1:
        trained = train_alone(begun, own[0], rounds, DESCENT, rngs[0])
    else:
        trained = train_together(begun, own, rounds, DESCENT, rngs)
    return lambda features: probabilities(trained, standardized(features))


def of_own_class(model: Model, examples: Examples) -> Figures:
    """Return the probability of the class that each record has."""
    chances = model(examples.features)
    return np.where(examples.labels == 1, chances, 1 - chances)


def membership(model: Model, members: Examples, others: Examples) -> float:
    """Return the area under the ROC curve of guessing members by the model's confidence."""
    confidences = np.concatenate([of_own_class(model, part) for part in (members, others)])
    return float(roc_auc_score(np.repeat([1, 0], [len(members), len(others)]), confidences))


def guessed_right(model: Model, examples: Examples, places: list[int], shares: Figures) -> float:
    """Return how often the most probable value of an attribute is a record's own."""
    chances = []
    for place in places:
        features = examples.features.copy()
        features[:, places] = 0
        features[:, place] = 1
        chances.append(of_own_class(model, Examples(features, examples.labels)))
    guesses = (np.array(chances) * shares[:, None]).argmax(axis=0)
    return float((examples.features[:, places].argmax(axis=1) == guesses).mean())


def measure(
    data: Path, problem: Problem, seed: int, k: int, rounds: int
) -> Iterator[tuple[str, list[float]]]:
    """Yield the figures of each training: seconds, area of the test, and those of the attacks."""
    with tempfile.TemporaryDirectory(prefix="anonspark-attacks-") as folder:
        split = Split(data, problem, seed, Path(folder))
        numbers, places = split.places()
        members, others = split.raw("pool"), split.raw("others")
        raw = [split.raw(name) for name in split.holders]
        pool_seconds = split.anonymize("pool", k)
        apart_seconds = sum(split.anonymize(name, k) for name in split.holders)
        apart = [split.anonymized(name, k) for name in split.holders]
        covered = split.covered("pool", k) - split.covered("others", k)
        nan = float("nan")
        trainings = {
            "pooled": ([members], nan, nan),
            "federated": (raw, nan, nan),
            "pooled, anonymized": ([split.anonymized("pool", k)], pool_seconds, covered),
            "federated, anonymized": (apart, apart_seconds, nan),
        }
        rows = np.random.default_rng(seed).permutation(min(len(members), len(others)))[:ATTACKED]
        shares = members.features[:, places].mean(axis=0)
        for training, (holders, anonymizing, of_release) in trainings.items():
            begun = time.perf_counter()
            model = train(holders, numbers, seed, rounds)
            seconds = time.perf_counter() - begun
            right = [
                guessed_right(model, part.of(rows), places, shares) for part in (members, others)
            ]
            area = float(roc_auc_score(others.labels, model(others.features)))
            secrecy = [membership(model, members, others), right[0], right[0] - right[1]]
            yield training, [anonymizing, seconds, area, *secrecy, of_release]


def table(
    data: Path, problems: Sequence[str], seeds: Sequence[int], ks: Sequence[int], rounds: int
) -> Iterator[str]:
    """Yield the lines of the table."""
    yield (
        "| table | k | training | anonymizing, s | training, s | area | membership | "
        "attribute | more than of others | release |"
    )
    yield "| --- | ---: | --- |" + " ---: |" * 7
    for name in problems:
        for k in ks:
            figures: dict[str, list[list[float]]] = {}
            for seed in seeds:
                for training, row in measure(data, PROBLEMS[name], seed, k, rounds):
                    figures.setdefault(training, []).append(row)
            for training, measured in figures.items():
                if "anonymized" not in training and k != ks[0]:
                    continue
                means = np.mean(measured, axis=0)
                formats = (".1f", ".1f", ".3f", ".3f", ".3f", "+.3f", ".3f")
                cells = [
                    "" if np.isnan(mean) else format(mean, form)
                    for mean, form in zip(means, formats, strict=True)
                ]
                of = k if "anonymized" in training else ""
                yield f"| {name} | {of} | {training} | {' | '.join(cells)} |"


def main() -> None:
    """Train, attack and print the table."""
    logging.disable(logging.WARNING)
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the public data sets")
    parser.add_argument("--tables", nargs="+", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--ks", type=int, nargs="+", default=[10, 50])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    for line in table(options.data, options.tables, options.seeds, options.ks, options.rounds):
        print(line, flush=True)


if __name__ == "__main__":
    main()
