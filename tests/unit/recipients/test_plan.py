"""Plans: every mistake is told with its key, before any data is touched."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from anonspark.errors import ConfigurationError
from anonspark.recipients.plan import load_plan, parse_plan
from anonspark.recipients.plan_file import PlanFile

PLAN: dict[str, Any] = {
    "base": {
        "input": {"path": "people.parquet"},
        "attributes": {
            "person": {"role": "identifier"},
            "age": {"role": "quasi_identifier"},
            "sex": {"role": "quasi_identifier"},
            "zone": {"role": "insensitive"},
            "illness": {"role": "sensitive"},
            "income": {"role": "sensitive"},
        },
        "privacy": {"k": 5, "l_diversity": {"attribute": "illness", "l": 2}},
    },
    "subject": "person",
    "output": "out",
    "recipients": {
        "labour": {"approved": "yes", "columns": ["age", "illness"]},
        "press": {"approved": "yes", "columns": ["sex", "zone"], "privacy": {"k": 20}},
    },
}


MAPPING = {"name": "mapping", "release": "before", "unfit": "suppress"}


def changed(path: str, value: Any) -> dict[str, Any]:
    """Return the plan with one key replaced; names in the path are parted by slashes."""
    plan = deepcopy(PLAN)
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
    assert plan.strategy == "nested"
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

WRONG = {
    "unknown key": (changed("strategie", "nested"), "strategie: unknown key; did you mean"),
    "no recipients": (changed("recipients", {}), "recipients: "),
    "too many": (
        changed("recipients", {f"r{i}": PLAN["recipients"]["labour"] for i in range(61)}),
        "recipients: ",
    ),
    "bad name": (
        changed("recipients/Labour", PLAN["recipients"]["labour"]),
        "recipients.Labour: is no name of a recipient; expected 1 to 64 lower-case letters",
    ),
    "not approved": (
        changed("recipients/labour", {"columns": ["age"]}),
        "recipients.labour.approved: missing",
    ),
    "past": (changed(LABOUR + "until", "2020-01-01"), "recipients.labour.until: found the day"),
    "no day": (changed(LABOUR + "until", "soon"), "recipients.labour.until: found the text"),
    "not in the base": (
        changed(LABOUR + "columns", ["aeg"]),
        "labour.columns[0]: found the text 'aeg'; expected an attribute of the base; did you mean "
        "'age'",
    ),
    "identifier": (
        changed(LABOUR + "columns", ["age", "person"]),
        "recipients.labour.columns[1]: 'person' is an identifier",
    ),
    "no quasi-identifier": (
        changed(LABOUR + "columns", ["illness"]),
        "recipients.labour.columns: found no quasi_identifier",
    ),
    "twice": (changed(LABOUR + "columns", ["age", "age"]), "found a column twice"),
    "k below the base's": (
        changed(LABOUR + "privacy", {"k": 4}),
        "recipients.labour.privacy.k: found 4; the base requires at least 5; raise it",
    ),
    "weaker criterion": (
        changed(LABOUR + "privacy", {"l_diversity": {"attribute": "illness", "l": 1}}),
        "recipients.labour.privacy.l_diversity: found distinct l-diversity with l = 1",
    ),
    "k of the coalition": (
        changed("collusion", {"k": 6}),
        "collusion.k: found 6, but recipients.labour.privacy.k is 5",
    ),
    "not sensitive": (
        changed("collusion", {"l_diversity": {"attribute": "zone", "l": 2}}),
        "collusion.l_diversity[0].attribute: 'zone' is not sensitive",
    ),
    "nobody colludes": (changed("collusion", {"recipients": 0}), "collusion.recipients"),
    "together twice": (
        changed("collusion", {"together": [["labour", "press"], ["press", "other"]]}),
        "collusion.together[1]: 'press' is in a list before",
    ),
    "ledger without subject": (
        {
            name: one
            for name, one in changed("ledger", {"path": "l", "key_file": "k"}).items()
            if name != "subject"
        },
        "subject: missing; a ledger has to know people again",
    ),
    "ledger of a data set": (
        changed("base/ledger", {"path": "l", "dataset": "d", "limit": 1}),
        "base.ledger: found the ledger of a data set",
    ),
    "records left out night by night": (
        changed("ledger", {"path": "l", "key_file": "k"})
        | {"strategy": "independent"}
        | {"base": changed("base/model", MAPPING)["base"]},
        "base.model.unfit: found suppress; expected merge or refuse in a plan with a ledger",
    ),
    "ledger without a key": (changed("ledger", {"path": "l"}), "ledger.key_file: missing"),
    "subject of another role": (changed("subject", "zone"), "subject: 'zone' has the role"),
    "no nested model": (
        changed("base/model", {"name": "auto"}),
        "base.model.name: found the text 'auto', whose groups cannot be those of all releases",
    ),
    "model of a request": (
        changed(LABOUR + "model", {"name": "canon"}),
        "recipients.labour.model: found a model",
    ),
    "population": (
        changed("base/privacy/delta_presence", {"population": "all", "max": 0.5}),
        "base.privacy.delta_presence: found a population",
    ),
    "pseudonyms": (
        {
            **changed(LABOUR + "output", {"pseudonyms": {"person": "who"}}),
            "set": {"privacy.unit": "person"},
        },
        "recipients.labour.output.pseudonyms: found person; expected none in a plan",
    ),
    "condition on nothing": (
        changed(LABOUR + "where", {"aeg": 3}),
        "recipients.labour.where.aeg: found the text 'aeg'; expected an attribute",
    ),
    "condition on an identifier": (
        changed(LABOUR + "where", {"person": 3}),
        "recipients.labour.where.person: a condition on an identifier",
    ),
    "condition on a sensitive attribute": (
        changed(LABOUR + "where", {"illness": "flu"}),
        "recipients.labour.where.illness: a condition on a sensitive attribute tells it",
    ),
    "empty condition": (changed(LABOUR + "where", {"age": {}}), "recipients.labour.where.age"),
    "empty list": (changed(LABOUR + "where", {"age": []}), "recipients.labour.where.age"),
}


@pytest.mark.parametrize("case", WRONG)
def test_mistakes(case: str) -> None:
    plan, expected = WRONG[case]
    assert expected in problems(plan)


def test_all_mistakes_at_once() -> None:
    plan = changed(LABOUR + "columns", ["aeg", "person"])
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
    assert plan.strategy == "independent"
    assert load_plan(path, only=["press"]).names == ["press"]
    with pytest.raises(ConfigurationError, match="--only: the plan has no recipient"):
        load_plan(path, only=["pres"])


def test_a_stronger_criterion_stands_for_the_base_s() -> None:
    stronger = {"l_diversity": {"attribute": "illness", "l": 3}}
    plan = parse_plan(changed(LABOUR + "privacy", stronger))
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
    plan = changed("output", "${OUT}/all")
    plan["base"]["input"]["path"] = "${IN}/p"
    plan["recipients"]["press"]["metrics"] = {"append_to": "${IN}/runs", "job": "press"}
    if apart:
        (tmp_path / "base.yaml").write_text(yaml.safe_dump(plan["base"]))
        plan["base"] = "base.yaml"
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))
    labour, press = (one.configuration for one in load_plan(tmp_path / "plan.yaml").recipients)
    assert (labour.output.path, labour.input.path) == ("/srv/Tr0ub4dor/all/labour", "/in/p")
    assert press.metrics.append_to == "/in/runs"
