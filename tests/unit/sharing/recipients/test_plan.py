"""Plans: mistakes told with their keys, conditions of recipients, and names of atoms."""

from __future__ import annotations

from copy import deepcopy
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from arrow_types import arrow_type
from cases import cases, data_beside

from anonspark.core.columns import ATOM, CLASS_ID, SUBJECT
from anonspark.errors import ConfigurationError
from anonspark.release.conditions import Condition, ConditionFile, stated_conditions
from anonspark.sharing.recipients.base_partition import NameAtoms
from anonspark.sharing.recipients.plan import load_plan, parse_plan
from anonspark.sharing.recipients.plan_file import PlanFile

PLAN: dict[str, Any] = data_beside(__file__)["PLAN"]


def changed(changes: dict[str, Any]) -> dict[str, Any]:
    """Return the plan with keys replaced; names in their paths are parted by slashes."""
    plan = deepcopy(PLAN)
    for path, value in changes.items():
        *steps, last = path.split("/")
        place = plan
        for step in steps:
            place = place.setdefault(step, {})
        place[last] = value
    return plan


def problems(plan: dict[str, Any]) -> str:
    with pytest.raises(ConfigurationError) as failed:
        parse_plan(plan)
    return str(failed.value)


def test_a_plan() -> None:
    plan = parse_plan(PLAN)
    assert plan.names == ["labour", "press"]
    assert plan.file.strategy == "nested"
    assert plan.base.model.name == "smondrian"
    assert plan.demand.k == 5
    labour, press = plan.recipients
    assert labour.configuration.privacy.k == 5
    assert [one.bound for one in labour.configuration.privacy.criteria] == [2]
    # What the base requires of an attribute that is not given needs no proof.
    assert press.configuration.privacy.criteria == ()
    assert list(press.configuration.attributes) == ["sex", "zone"]
    assert press.configuration.output.path == "out/press"
    assert list(plan.source.attributes) == ["age", "sex", "zone", "illness"]


def test_the_order_of_recipients_changes_nothing() -> None:
    plan = deepcopy(PLAN)
    plan["recipients"] = dict(reversed(plan["recipients"].items()))
    assert parse_plan(plan).fingerprint == parse_plan(PLAN).fingerprint


LABOUR = "recipients/labour/"


@cases(__file__, "changes", "expected")
def test_mistakes(changes: dict[str, Any], expected: str) -> None:
    assert expected in problems(changed(changes))


def test_too_many_recipients_and_a_ledger_without_subject() -> None:
    many = {f"r{number}": PLAN["recipients"]["labour"] for number in range(61)}
    assert "recipients: " in problems(changed({"recipients": many}))
    plan = changed({"ledger": {"path": "l", "key_file": "k"}})
    del plan["subject"]
    assert "subject: missing. A ledger has to recognize people" in problems(plan)


def test_all_mistakes_at_once() -> None:
    plan = changed({LABOUR + "columns": ["aeg", "person"]})
    plan["recipients"]["press"]["privacy"] = {"k": 2}
    told = problems(plan)
    for expected in ("columns[0]", "columns[1]", "recipients.press.privacy.k: found 2"):
        assert expected in told


def test_a_key_that_is_there_twice(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text("base: base.yaml\nbase: other.yaml\noutput: out\nrecipients: {}\n")
    with pytest.raises(ConfigurationError, match="found the key twice"):
        load_plan(path)


def test_the_base_lies_beside_the_plan(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(
        "input: {path: people.parquet}\n"
        "attributes: {age: {role: quasi_identifier}, person: {role: identifier}}\n"
        "privacy: {k: 5}\n"
    )
    path = tmp_path / "plan.yaml"
    path.write_text(
        "base: base.yaml\noutput: out\nset: {privacy.k: 6}\n"
        "recipients: {press: {approved: yes indeed, columns: [age]}}\n"
    )
    plan = load_plan(path, ["strategy=independent"])
    assert plan.recipients[0].configuration.privacy.k == 6
    assert plan.file.strategy == "independent"
    assert load_plan(path, only=["press"]).names == ["press"]
    with pytest.raises(ConfigurationError, match="--only: the plan has no recipient"):
        load_plan(path, only=["pres"])


def test_a_stronger_criterion_stands_for_the_base_s() -> None:
    stronger = {"l_diversity": {"attribute": "illness", "l": 3}}
    plan = parse_plan(changed({LABOUR + "privacy": stronger}))
    assert [one.bound for one in plan.recipients[0].configuration.privacy.criteria] == [3]


def test_the_schema_names_every_key() -> None:
    properties = PlanFile.model_json_schema()["properties"]
    assert {"base", "set", "subject", "strategy", "collusion", "ledger", "recipients"} <= set(
        properties
    )
    assert all("description" in one for one in properties.values())


@pytest.mark.parametrize("apart", [False, True])
def test_a_plan_and_its_base_have_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apart: bool
) -> None:
    monkeypatch.setenv("OUT", "/srv/Tr0ub4dor")
    monkeypatch.setenv("IN", "/in")
    plan = changed({"output": "${OUT}/all"})
    plan["base"]["input"]["path"] = "${IN}/p"
    plan["recipients"]["press"]["metrics"] = {"append_to": "${IN}/runs", "job": "press"}
    if apart:
        (tmp_path / "base.yaml").write_text(yaml.safe_dump(plan["base"]))
        plan["base"] = "base.yaml"
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))
    labour, press = (one.configuration for one in load_plan(tmp_path / "plan.yaml").recipients)
    assert (labour.output.path, labour.input.path) == ("/srv/Tr0ub4dor/all/labour", "/in/p")
    assert press.metrics.append_to == "/in/runs"


def test_no_two_plans_or_strata_share_a_name() -> None:
    # Models name their classes by the seed and the place in the tree: alike in every plan.
    classes = pa.RecordBatch.from_pydict(
        {CLASS_ID: pa.array([-5, 0, 7]), SUBJECT: pa.array([b"a", b"b", b"c"])}
    )
    names = [
        name
        for generation, pattern in product(range(20), range(1, 40))
        for batch in NameAtoms(generation, pattern)(iter([classes]))
        for name in batch.column(ATOM).to_pylist()
    ]
    assert len(set(names)) == len(names) == 3 * 20 * 39


def condition_of(keys: dict[str, Any]) -> Condition:
    return Condition("a", ConditionFile.model_validate(keys))


@cases(__file__, "keys", "values", "name", "expected")
def test_conditions(
    keys: dict[str, Any], values: list[Any], name: str, expected: list[int]
) -> None:
    condition, array = condition_of(keys), pa.array(values).cast(arrow_type(name))
    assert condition.problems(array.type) == []
    missing = np.array([one is None for one in values])
    assert condition.holds(array, missing).tolist() == expected


def test_texts_that_are_coded() -> None:
    coded = pa.array(["f", "m", None, "f"]).dictionary_encode()
    condition = condition_of({"in": ["f"]})
    missing = np.array([False, False, True, False])
    assert condition.holds(coded, missing).tolist() == [True, False, False, True]


@cases(__file__, "keys", "name", "told")
def test_conditions_that_do_not_fit(keys: dict[str, Any], name: str, told: str) -> None:
    (problem,) = condition_of(keys).problems(arrow_type(name))
    assert told in problem


def test_what_is_told_of_conditions() -> None:
    other = ConditionFile.model_validate({"in": ["x"], "missing": False})
    told = stated_conditions([condition_of({"min": 3}), Condition("b", other)])
    assert told == {"a": {"min": 3}, "b": {"in": ["x"], "missing": False}}
