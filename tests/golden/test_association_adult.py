"""What Adult's attributes tell of the income, before and after smondrian."""

from __future__ import annotations

from pathlib import Path

import pytest

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.run import run
from anonspark.utility.association import Association
from anonspark.utility.evaluation import open_evaluation

BEFORE = {
    "age": 0.117597,
    "workclass": 0.021114,
    "education": 0.115348,
    "marital-status": 0.194512,
    "occupation": 0.115115,
    "sex": 0.046206,
    "relationship": 0.205268,
}
WITHOUT_HIERARCHY = ("age", "sex")


def association_of(adult: Path, k: int, out: Path) -> tuple[dict[str, object], Association]:
    folder = adult.parent / "hierarchies"
    attributes: dict[str, object] = {
        name: {"role": "quasi_identifier"}
        | (
            {}
            if name in WITHOUT_HIERARCHY
            else {"hierarchy": str(folder / f"adult_hierarchy_{name}.csv")}
        )
        for name in ("workclass", "education", "marital-status", "occupation", "race", "sex")
    }
    attributes["age"] = {"role": "quasi_identifier", "type": "number"}
    attributes = {"age": attributes.pop("age"), **attributes}
    for name, file in (
        ("native-country", "adult_hierarchy_native-country.csv"),
        ("relationship", "adult_full_hierarchy_relationship.csv"),
    ):
        attributes[name] = {"role": "quasi_identifier", "hierarchy": str(folder / file)}
    attributes["income"] = "sensitive"
    document = {
        "input": {"path": str(adult), "format": "csv", "options": {"header": "true"}},
        "attributes": attributes,
        "privacy": {"k": k},
        "model": {"name": "smondrian"},
        "output": {"path": str(out)},
        "execution": {"seed": 2**40 + 1},
    }
    engine = LocalEngine()
    summary = run(engine, parse_configuration(document)).summary
    found = open_evaluation(engine, str(out), str(adult), "income").association()
    assert found is not None
    return summary, found


@pytest.mark.parametrize(
    ("k", "classes", "gcp", "loss"),
    [(3, 6778, 0.0795, 0.0396), (10, 2122, 0.1860, 0.1129), (50, 420, 0.3843, 0.2674)],
)
def test_association_loss(
    adult_path: Path, tmp_path: Path, k: int, classes: int, gcp: float, loss: float
) -> None:
    summary, found = association_of(adult_path, k, tmp_path / "out")
    assert summary["classes"] == classes
    assert summary["gcp"] == pytest.approx(gcp, abs=5e-5)
    assert found.loss == pytest.approx(loss, abs=2e-3)
    before = {one.name: one.before for one in found.attributes if one.before is not None}
    assert {name: before[name] for name in BEFORE} == pytest.approx(BEFORE, abs=2e-6)
    assert sum(before.values()) == pytest.approx(0.836901, abs=2e-6)
