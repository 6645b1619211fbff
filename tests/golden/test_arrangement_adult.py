"""Adult arranged by the income: orders, and what releases keep by them."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.csv
import pytest
from cases import cases, one_by_day

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.run import run
from anonspark.utility.learned_hierarchies import arrange

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
        "evaluate": {"association": {"target": "income"}},
        "output": {"path": str(out)},
        "execution": {"seed": 2**40 + 1},
    }


def arx(adult: Path, name: str) -> str:
    """Return the file of a hierarchy that somebody made by hand."""
    full = "_full" if name == "relationship" else ""
    return str(adult.parent / "hierarchies" / f"adult{full}_hierarchy_{name}.csv")


def frequency_groups(adult: Path, name: str, out: Path) -> str:
    """Write groups of values whose most frequent class has about the same share (Saleh)."""
    table = pyarrow.csv.read_csv(adult)
    pairs = Counter(zip(table[name].to_pylist(), table["income"].to_pylist(), strict=True))
    groups = {}
    for value in {value for value, _ in pairs}:
        own = {income: n for (of, income), n in pairs.items() if of == value}
        income = min(own, key=lambda one: (-own[one], one))
        share = Fraction(100 * own[income], sum(own.values()))
        groups[value] = [
            f"{income} {min(share // rho, 100 // rho - 1)} of {rho}" for rho in (5, 10, 20, 100)
        ]
    # Siblings beside one another.
    in_order = sorted(groups, key=lambda value: (groups[value][::-1], value))
    out.write_text("".join(";".join([one, *groups[one], "*\n"]) for one in in_order))
    return str(out)


@cases(__file__, "form", "gcp", "loss")
def test_what_is_kept(adult_path: Path, tmp_path: Path, form: Any, gcp: float, loss: float) -> None:
    engine, out = LocalEngine(), tmp_path / "release"
    document = document_of(adult_path, out)
    if form in ("ARX", "frequency groups"):
        for name in ATTRIBUTES[1:]:
            if form == "ARX" and name == "sex":
                continue
            own = document["attributes"][name]
            own["hierarchy"] = arx(adult_path, name)
            if form == "frequency groups":
                own["hierarchy"] = frequency_groups(adult_path, name, tmp_path / f"{name}.csv")
    elif form is not None:
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
    assert summary["gcp"] == pytest.approx(gcp, abs=1e-3)
    assert summary["association_loss"] == pytest.approx(loss, abs=5e-3)


@pytest.mark.parametrize("k", one_by_day(50, 5))
def test_a_learned_order_keeps_more_than_that_of_code_points(
    adult_path: Path, tmp_path: Path, k: int
) -> None:
    engine = LocalEngine()
    document = document_of(adult_path, tmp_path / "chance") | {"privacy": {"k": k}}
    chance = run(engine, parse_configuration(document)).summary["association_loss"]
    found = arrange(engine, parse_configuration(document), "income", str(tmp_path / "to"))
    for one in found.attributes:
        document["attributes"][one.name]["order"] = list(one.values)
    document["output"] = {"path": str(tmp_path / "learned")}
    assert run(engine, parse_configuration(document)).summary["association_loss"] <= chance
