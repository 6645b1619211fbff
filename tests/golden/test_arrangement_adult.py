"""Adult arranged by the income: orders, and what releases keep by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.run import run
from anonspark.utility.arranging import arrange
from anonspark.utility.evaluation import open_evaluation

ATTRIBUTES = (
    *("age", "workclass", "education", "marital-status", "occupation", "race", "sex"),
    *("native-country", "relationship"),
)
EDUCATION = (
    *("Preschool", "1st-4th", "5th-6th", "9th", "11th", "7th-8th", "10th", "12th", "HS-grad"),
    *("Some-college", "Assoc-acdm", "Assoc-voc", "Bachelors", "Masters", "Doctorate"),
    "Prof-school",
)


def document_of(adult: Path, out: Path) -> dict[str, Any]:
    attributes: dict[str, Any] = {name: {"role": "quasi_identifier"} for name in ATTRIBUTES}
    attributes["age"]["type"] = "number"
    attributes["income"] = {"role": "sensitive"}
    return {
        "input": {"path": str(adult), "format": "csv", "options": {"header": "true"}},
        "attributes": attributes,
        "privacy": {"k": 10},
        "model": {"name": "smondrian"},
        "output": {"path": str(out)},
        "execution": {"seed": 2**40 + 1},
    }


@pytest.mark.parametrize(
    ("form", "gcp", "loss"),
    [(None, 0.094, 0.088), ("hierarchy", 0.185, 0.053), ("order", 0.088, 0.029)],
)
def test_what_is_kept(adult_path: Path, tmp_path: Path, form: Any, gcp: float, loss: float) -> None:
    engine, out = LocalEngine(), tmp_path / "release"
    document = document_of(adult_path, out)
    if form is not None:
        configuration = parse_configuration(document)
        found = arrange(engine, configuration, "income", str(tmp_path / "to"), form=form)
        for one in found.attributes:
            own = document["attributes"][one.name]
            if form == "order":
                own["order"] = list(one.values)
            else:
                own["hierarchy"] = str(tmp_path / "to" / f"{one.name}.csv")
        values = {one.name: one.values for one in found.attributes}
        assert values["education"] == EDUCATION
        occupation = values["occupation"]
        rare = occupation.index("Armed-Forces")
        assert occupation[rare - 1 : rare + 2] == ("Craft-repair", "Armed-Forces", "Sales")
    summary = run(engine, parse_configuration(document)).summary
    association = open_evaluation(engine, str(out), str(adult_path), "income").association()
    assert association is not None
    assert summary["gcp"] == pytest.approx(gcp, abs=1e-3)
    assert association.loss == pytest.approx(loss, abs=5e-3)
