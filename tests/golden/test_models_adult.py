"""What models learn of Adult's income, before and after smondrian."""

from __future__ import annotations

from pathlib import Path

import pytest
from defaults import differences, document_of, measured, printed_rows
from places import REPOSITORY

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.run import run
from anonspark.utility.evaluation import open_evaluation

NAMES = (
    "age", "workclass", "education", "marital-status", "occupation", "race", "sex",
    "native-country", "relationship",
)  # fmt: skip
INSENSITIVE = ("hours-per-week", "capital-gain", "capital-loss")
AREAS = {
    "gradient-boosted trees": 0.9071,
    "logistic regression": 0.9034,
    "random forest": 0.8874,
}


def test_models_of_the_original_and_of_k_10(adult_path: Path, tmp_path: Path) -> None:
    folder = adult_path.parent / "hierarchies"

    def attribute(name: str) -> dict[str, str]:
        full = "full_" if name == "relationship" else ""
        file = str(folder / f"adult_{full}hierarchy_{name}.csv")
        return {"role": "quasi_identifier"} | (
            {} if name in ("age", "sex") else {"hierarchy": file}
        )

    attributes: dict[str, object] = {name: attribute(name) for name in NAMES}
    attributes |= dict.fromkeys(INSENSITIVE, "insensitive") | {"income": "sensitive"}
    document = {
        "input": {
            "path": str(adult_path),
            "format": "csv",
            "options": {"header": "true", "inferSchema": "true"},
        },
        "attributes": attributes,
        "privacy": {"k": 10},
        "model": {"name": "smondrian"},
        "output": {"path": str(tmp_path / "out")},
        "execution": {"seed": 2**40 + 1},
    }
    engine = LocalEngine()
    assert run(engine, parse_configuration(document)).summary["classes"] == 2122
    holdout = str(adult_path.with_name("adult_test.csv"))
    opened = open_evaluation(engine, str(tmp_path / "out"), str(adult_path), "income", holdout)
    found = opened.learning()
    assert found is not None
    assert (found.test_records, found.test_left_out) == (16281, 0)
    assert found.majority == pytest.approx(0.7638, abs=5e-5)
    areas = {
        name: {one.learner: one.roc_auc for one in found.scores if one.trained_on == name}
        for name in ("original", "release")
    }
    # The learners are of scikit-learn, the figures of Spark.
    assert areas["original"] == pytest.approx(AREAS, abs=0.003)
    assert areas["release"]["logistic regression"] == pytest.approx(0.8932, abs=0.003)
    for one in found.differences:
        assert one.roc_auc is not None
        assert one.roc_auc.verdict == "loses"
    assert found.loss is not None
    assert found.loss.loss == pytest.approx(0.0132, abs=0.003)


def test_losses_as_printed(data_directory: Path, tmp_path: Path) -> None:
    document = document_of("Adult", data_directory, "")
    models = ("smondrian", "su-mondrian", "u-canon")
    rows = [
        row
        for model in models
        for row in measured(LocalEngine(), document, 50, model, str(tmp_path / "release"))
    ]
    printed = printed_rows((REPOSITORY / "docs" / "models.md").read_text())
    assert not list(differences({"Adult": rows}, printed))
