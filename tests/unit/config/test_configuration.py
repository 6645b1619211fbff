"""The configuration: what it accepts, what it refuses, and in which words."""

from __future__ import annotations

import copy
import json
import pickle
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import jsonschema
import pytest
import yaml
from cases import cases, data_beside
from documents import problems_of, validate_document
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from anonspark.config import (
    Attribute,
    Configuration,
    HierarchyRule,
    InputOptions,
    OutputOptions,
    PrivacyOptions,
    json_schema,
    load_configuration,
    models,
    parse_configuration,
)
from anonspark.config.models import ModelOptions
from anonspark.config.problems import in_words, key_path, nearest
from anonspark.core.grids import UnfitRangeError, bound_numbers, day_of, decimal_places, moment_of
from anonspark.errors import ConfigurationError

# Wherever the options of the default model live: the configuration asks the registry, too.
MondrianOptions = models.options_classes()["su-mondrian"]

CONTRACT: str = data_beside(__file__)["CONTRACT"]

MINIMAL: dict[str, Any] = {
    "input": {"path": "in.parquet"},
    "attributes": {"age": "quasi_identifier"},
    "privacy": {"k": 5},
    "output": {"path": "out"},
}


def changed(path: str, value: Any) -> dict[str, Any]:
    """Return the minimal configuration with one value set at a dotted path."""
    document = copy.deepcopy(MINIMAL)
    section = document
    *sections, key = path.split(".")
    for name in sections:
        section = section.setdefault(name, {})
    section[key] = value
    return document


def file_problems(path: Path, text: str, *overrides: str) -> tuple[str, ...]:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_configuration(path, overrides)
    assert all("\n" not in problem for problem in caught.value.problems)
    return caught.value.problems


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "configuration.yaml"


# What is accepted


def test_the_example_of_the_contract(file: Path) -> None:
    file.write_text(CONTRACT, encoding="utf-8")
    configuration = load_configuration(file)
    assert configuration.input.paths == ("data/adult.csv",)
    assert configuration.input.format == "csv"
    assert configuration.input.options == {"header": "true", "inferSchema": "true"}
    assert configuration.quasi_identifiers == ["age", "workclass", "education"]
    assert configuration.published_as_is == ["income"]
    assert configuration.attributes["ssn"].role == "identifier"
    assert configuration.attributes["education"].order == ["Preschool", "1st-4th", "5th-6th"]
    assert configuration.privacy.k == 5
    assert configuration.model == MondrianOptions()
    assert configuration.output.path == "out/adult"
    assert configuration.execution.task_rows == 250_000


def test_defaults_of_a_minimal_configuration() -> None:
    configuration = parse_configuration(MINIMAL)
    assert configuration.missing == "drop"
    assert configuration.input.format == "parquet"
    assert configuration.input.options == {}
    assert configuration.input.missing_markers == ["", "?"]
    assert configuration.attributes["age"] == Attribute(role="quasi_identifier")
    assert isinstance(configuration.model, MondrianOptions)
    assert configuration.model.name == "su-mondrian"
    assert configuration.evaluate.compare_baseline is False
    assert (configuration.output.mode, configuration.output.style) == ("error", "interval")
    assert (configuration.execution.task_rows, configuration.execution.seed) == (250_000, 0)


@cases(__file__, "path", "value")
def test_odd_values_are_accepted(path: str, value: Any) -> None:
    document = changed(path, value)
    parse_configuration(document)
    validate_document(document)


def test_every_model_is_accepted_by_its_name() -> None:
    # Others need a hierarchy for every quasi-identifier, or an earlier release.
    for name in set(models.options_classes()) - {"full-domain", "rho-gain", "mapping"}:
        parse_configuration(changed("model.name", name))
        validate_document(changed("model.name", name))


def test_input_may_have_several_paths() -> None:
    configuration = parse_configuration(changed("input.path", ["a", "b"]))
    assert configuration.input.paths == ("a", "b")


@pytest.mark.parametrize(
    ("text", "expected"), [("null", "null"), ("'null'", "null"), ("error",) * 2]
)
def test_missing_columns_as_yaml_reads_them(file: Path, text: str, expected: str) -> None:
    file.write_text(yaml.safe_dump(MINIMAL), encoding="utf-8")
    overridden = load_configuration(file, [f"input.missing_columns={text}"])
    assert overridden.input.missing_columns == expected
    assert load_configuration(file).input.missing_columns == "error"
    assert parse_configuration(overridden.model_dump(mode="json")) == overridden
    validate_document(changed("input.missing_columns", yaml.safe_load(text)))


def test_missing_columns_as_nobody_knows_them() -> None:
    with pytest.raises(ConfigurationError, match=r"input\.missing_columns: .*'error'.*'null'"):
        parse_configuration(changed("input.missing_columns", "drop"))


def test_a_model_section_without_a_name_means_su_mondrian() -> None:
    configuration = parse_configuration(changed("model.rho", 3))
    assert configuration.model == MondrianOptions(name="su-mondrian", rho=3)


def test_options_are_written_as_spark_writes_them() -> None:
    options = {"header": True, "multiLine": False, "maxColumns": 5, "sep": ";"}
    configuration = parse_configuration(changed("input.options", options))
    assert configuration.input.options == {
        "header": "true",
        "multiLine": "false",
        "maxColumns": "5",
        "sep": ";",
    }


def test_missing_markers_are_trimmed_as_the_values_are() -> None:
    configuration = parse_configuration(changed("input.missing_markers", [" NA ", "NA", ""]))
    assert configuration.input.missing_markers == ["NA", ""]


def test_dates_in_an_order_stay_text(file: Path) -> None:
    attribute = "{role: quasi_identifier, order: [2020-01-01, 2021-01-01]}"
    file.write_text(yaml.safe_dump(MINIMAL), encoding="utf-8")
    configuration = load_configuration(file, [f"attributes.day={attribute}"])
    assert configuration.attributes["day"].order == ["2020-01-01", "2021-01-01"]


def test_merge_keys_and_a_byte_order_mark(file: Path) -> None:
    text = (
        "\ufeffinput: {path: a}\nprivacy: {k: 2}\noutput: {path: b}\n"
        "attributes:\n  zip: &text {role: quasi_identifier, type: text}\n"
        "  city: {<<: *text, order: [a, b]}\n"
    )
    file.write_text(text, encoding="utf-8")
    attributes = load_configuration(file).attributes
    assert attributes["city"].type == "text"
    assert attributes["zip"].order is None


def test_the_mapping_given_is_not_changed() -> None:
    document = copy.deepcopy(MINIMAL)
    parse_configuration(document, ["attributes.age.type=number", "model.rho=2"])
    assert document == MINIMAL


def test_frozen_and_picklable() -> None:
    one = {"attribute": "s", "alpha": 0.5}
    document = {**SENSITIVE, "privacy": {"k": 5, "alpha_k_anonymity": one}}
    configuration = parse_configuration(document)
    with pytest.raises(ValidationError, match="frozen"):
        configuration.missing = "error"  # type: ignore[misc]
    with pytest.raises(ValidationError, match="frozen"):
        configuration.model.name = "mondrian"  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(configuration)) == configuration  # noqa: S301


def test_importing_it_loads_neither_spark_nor_numba() -> None:
    # The models are asked for only when there is a configuration to check.
    code = (
        "import sys, anonspark.config\nsys.exit(not {'pyspark', 'numba'}.isdisjoint(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# What is refused, one problem at a time

KINDS = "'identifier', 'quasi_identifier', 'sensitive' or 'insensitive'"
NAMES = ", ".join(f"'{name}'" for name in list(models.options_classes())[:-1])
NAMES += f" or '{list(models.options_classes())[-1]}'"


ONE_RULE = "Expected exactly one of 'intervals', 'prefix', 'keep' or 'calendar'."
WIDTHS = (
    "Expected widths from fine to coarse, each a multiple of the one before. Correct one of the two"
)
FILE_OR_RULE = (
    "Expected a non-empty text, a mapping with the keys 'intervals', 'origin', 'top', "
    "'prefix', 'keep', 'calendar' or null"
)
WORDS = {
    "KINDS": KINDS, "NAMES": NAMES, "ONE_RULE": ONE_RULE, "WIDTHS": WIDTHS,
    "FILE_OR_RULE": FILE_OR_RULE,
}  # fmt: skip


def spelled(problems: list[str]) -> list[str]:
    """Write out the words in capitals that stand for what many messages list."""
    return [
        re.sub(r"\b[A-Z_]{5,}\b", lambda word: WORDS.get(word[0], word[0]), problem)
        for problem in problems
    ]


@cases(__file__, "written", "expected")
def test_wrong_values_have_their_messages(written: str, expected: list[str]) -> None:
    path, _, value = written.partition(": ")
    assert problems_of(changed(path, yaml.safe_load(value))) == spelled(expected)


@pytest.mark.parametrize("section", ["input", "attributes", "privacy", "output"])
def test_missing_section_is_named(section: str) -> None:
    document = {key: value for key, value in MINIMAL.items() if key != section}
    (problem,) = problems_of(document)
    assert problem.startswith(f"{section}: missing. Expected a mapping")
    assert ("quasi_identifiers: [a, b]" in problem) == (section == "attributes")


def test_a_misspelt_required_section_is_one_problem() -> None:
    document = {key: value for key, value in MINIMAL.items() if key != "privacy"}
    assert problems_of({**document, "privcy": {"k": 5}}) == [
        "privcy: unknown key. Did you mean 'privacy'?"
    ]


@cases(__file__, "style", "missing", "collisions")
def test_generated_columns_must_not_collide(
    style: str, missing: str, collisions: list[str]
) -> None:
    document = changed("output.style", style)
    document["missing"] = missing
    document["attributes"] |= {
        "age_min": "sensitive",
        "age_max": "insensitive",
        "Age_Missing": "sensitive",
    }
    if not collisions:
        parse_configuration(document)
        return
    reported = problems_of(document)
    assert [problem.partition(":")[0] for problem in reported] == [
        f"attributes.{name}" for name in collisions
    ]
    assert all(f"output.style '{style}'" in problem for problem in reported)


def test_what_is_not_published_collides_with_nothing() -> None:
    document = changed("output.style", "bounds")
    document["attributes"]["age_min"] = "identifier"
    parse_configuration(document)


# Hierarchies


def with_hierarchy(hierarchy: Any, **more: Any) -> dict[str, Any]:
    return changed("attributes.b", {"role": "quasi_identifier", "hierarchy": hierarchy, **more})


@cases(__file__, "hierarchy", "kind", "types")
def test_hierarchies_and_their_types(hierarchy: Any, kind: str | None, types: list[Any]) -> None:
    for value_type in (None, "number", "date", "timestamp", "boolean", "text"):
        document = with_hierarchy(hierarchy, type=value_type)
        if value_type in types:
            attribute = parse_configuration(document).attributes["b"]
            assert attribute.hierarchy_kind == kind
            validate_document(document)
            continue
        (problem,) = problems_of(document)
        assert problem.startswith("attributes.b.hierarchy: found a hierarchy together with the ty")


def test_a_rule_as_it_is_read() -> None:
    rule = parse_configuration(with_hierarchy({"intervals": [5, 10]})).attributes["b"].hierarchy
    assert rule == HierarchyRule(intervals=[5.0, 10.0])


def test_a_hierarchy_file_of_a_sensitive_attribute() -> None:
    document = with_hierarchy("b.csv", role="sensitive")
    assert parse_configuration(document).attributes["b"].hierarchy == "b.csv"
    validate_document(document)


@cases(__file__, "written", "expected")
def test_wrong_hierarchies_have_their_messages(written: str, expected: list[str]) -> None:
    told = [f"attributes.b.hierarchy{problem}" for problem in spelled(expected)]
    assert problems_of(with_hierarchy(yaml.safe_load(written))) == told


@pytest.mark.parametrize("width", [0, -5, float("inf"), float("nan"), True, "5"])
def test_widths_that_are_not_positive_are_refused(width: Any) -> None:
    (problem,) = problems_of(with_hierarchy({"intervals": [width]}))
    assert problem.startswith("attributes.b.hierarchy.intervals[0]: found ")
    assert "greater than 0" in problem


@cases(__file__, "written", "expected")
def test_hierarchies_in_the_wrong_place(written: str, expected: list[str]) -> None:
    document = with_hierarchy(**yaml.safe_load(written))
    assert problems_of(document) == [f"attributes.b.hierarchy: {spelled(expected)[0]}"]


def test_a_rule_can_be_set() -> None:
    overrides = ["attributes.age.hierarchy.intervals=[5, 10]", "attributes.age.hierarchy.origin=1"]
    attribute = parse_configuration(MINIMAL, overrides).attributes["age"]
    assert attribute.hierarchy == HierarchyRule(intervals=[5, 10], origin=1)


def test_the_manifest_shows_where_a_hierarchy_comes_from() -> None:
    document = with_hierarchy("s3a://key:hunter2@bucket/b.csv")
    document["attributes"]["c"] = {"role": "quasi_identifier", "hierarchy": {"prefix": [1, 2]}}
    public = parse_configuration(document).public_dict()["attributes"]
    assert public["b"]["hierarchy"] == "s3a://(redacted)@bucket/b.csv"
    assert public["c"]["hierarchy"]["prefix"] == [1, 2]
    fingerprints = {
        parse_configuration(with_hierarchy(one)).fingerprint()
        for one in (None, "b.csv", {"prefix": [1]}, {"prefix": [2]}, {"intervals": [1]})
    }
    assert len(fingerprints) == 5


# All problems at once


def test_everything_is_reported_together(file: Path) -> None:
    text = """\
input: {path: in, fromat: csv}
attributes:
  age: quasi_identifier
  age_min: sensitive
  sex: {role: quasi_identifier, type: date, order: [F, M, F]}
  zip: {role: sensitive, type: numbr}
  Zip: identifier
  age: sensitive
  zip: sensitive
privacy: {k: five}
model: {name: su-mondrain, rho: 0}
output: {style: bounds}
"""
    reported = file_problems(file, text, "nonsense", "execution.seed=x")
    placed = [problem.removeprefix(f"{file}:").split(": ")[:2] for problem in reported]
    assert sorted(start for start, _ in placed if not start[0].isdigit()) == [
        "--set 'nonsense'",
        "execution.seed",
    ]
    assert {key: start for start, key in placed if start[0].isdigit()} == {
        "attributes.age": "8:3",
        "attributes.zip": "9:3",
        "input.fromat": "1:19",
        "attributes.sex.order": "5:45",
        "privacy.k": "10:11",
        "model.name": "11:9",
        # What is missing is missing in its section.
        "output.path": "12:1",
    }
    assert len(placed) == 10


def test_an_unreadable_role_and_type() -> None:
    reported = problems_of(
        changed("attributes.b", {"role": "quasi", "type": "numbr", "order": [1]})
    )
    assert [problem.partition(":")[0] for problem in reported] == [
        "attributes.b.role",
        "attributes.b.type",
        "attributes.b.order[0]",
    ]


def test_an_unreadable_role_is_not_taken_for_no_quasi_identifier() -> None:
    document = changed("attributes", {"age": "quasi", "sex": "sensitive"})
    (problem,) = problems_of(document)
    assert problem.startswith("attributes.age.role: ")


# Duplicate keys


def test_two_roles_for_one_attribute(file: Path) -> None:
    text = CONTRACT.replace("  ssn: identifier", "  ssn: identifier\n  age: sensitive")
    assert file_problems(file, text) == (
        f"{file}:11:3: attributes.age: found two roles for one attribute, on lines 6 and 11. "
        "Expected one role for each attribute. Keep one of them",
    )


def test_all_duplicates_are_reported(file: Path) -> None:
    text = CONTRACT + (
        "privacy: {k: 5, 'k': 6, \"k\": 7}\nmissing: drop\nevaluate: {compare_baseline: true, "
        "compare_baseline: true}\n"
    )
    once = "Expected each key once. Keep one of them"
    assert file_problems(file, text) == (
        f"{file}:25:25: privacy.k: found the key three times, on line 25. {once}",
        f"{file}:27:36: evaluate.compare_baseline: found the key twice, on line 27. {once}",
        f"{file}:26:1: missing: found the key twice, on lines 11 and 26. {once}",
        f"{file}:25:1: privacy: found the key twice, on lines 12 and 25. {once}",
    )


# Overrides


@cases(__file__, "override", "path", "value")
def test_overrides_set_their_value(override: str, path: str, value: Any) -> None:
    result: Any = parse_configuration(MINIMAL, [override])
    for name in path.split("."):
        result = getattr(result, name)
    assert result == value


def test_an_override_expands_the_short_form() -> None:
    configuration = parse_configuration(MINIMAL, ["attributes.age.type=number"])
    assert configuration.attributes["age"] == Attribute(role="quasi_identifier", type="number")


def test_an_override_expands_the_short_form_of_a_model() -> None:
    """It was refused, though init writes model: auto."""
    overrides = ["model.name=mondrian", "model.suppression_limit=0.1"]
    model = parse_configuration({**MINIMAL, "model": "auto"}, overrides).model
    assert (model.name, model.suppression_limit) == ("mondrian", 0.1)


def test_an_override_with_a_dot_in_a_name() -> None:
    overrides = ['attributes."capital.gain".role=sensitive', "attributes.'a=\"b'=insensitive"]
    configuration = parse_configuration(MINIMAL, overrides)
    assert sorted(configuration.published_as_is) == ['a="b', "capital.gain"]


def test_overrides_replace_what_is_missing_or_wrong_and_the_later_wins() -> None:
    document = {**MINIMAL, "privacy": {"k": "five"}, "execution": None}
    overrides = ["privacy.k=7", "privacy.k=3", "execution.seed=4"]
    for own in (document, {key: one for key, one in document.items() if key != "privacy"}):
        configuration = parse_configuration(own, overrides)
        assert (configuration.privacy.k, configuration.execution.seed) == (3, 4)


def test_an_override_of_an_alias_changes_one_place_only(file: Path) -> None:
    text = (
        "input: {path: a}\nprivacy: {k: 2}\noutput: {path: b}\n"
        "attributes: {a: &qi {role: quasi_identifier}, b: *qi}\n"
    )
    file.write_text(text, encoding="utf-8")
    attributes = load_configuration(file, ["attributes.a.type=number"]).attributes
    assert attributes["b"].type is None


@cases(__file__, "override", "beginning")
def test_wrong_overrides_have_their_messages(override: str, beginning: str) -> None:
    (problem,) = problems_of(MINIMAL, override)
    assert problem.startswith(beginning)


def test_a_section_that_an_override_alone_has_is_at_no_place_of_the_file(file: Path) -> None:
    file.write_text(json.dumps(MINIMAL), encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_configuration(file, ["privcy.k=5"])
    assert caught.value.problems == ("privcy: unknown key. Did you mean 'privacy'?",)


# Files


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    cases = {"nowhere.yaml": r"nowhere\.yaml: no such file", ".": "found a directory"}
    for name, told in {**cases, "a\0b": "cannot be read", "bytes": "not UTF-8"}.items():
        with pytest.raises(ConfigurationError, match=told) as caught:
            load_configuration(str(tmp_path / name), ["nonsense"])
        assert len(caught.value.problems) == 2


@cases(__file__, "text", "expected")
def test_files_without_a_configuration(file: Path, text: str, expected: str) -> None:
    (problem,) = file_problems(file, text)
    assert problem.startswith(f"{file}{expected if expected[0] == ':' else f': {expected}'}")


@pytest.mark.parametrize("text", ["a:\n  b: 1\n   c: 2", "a:\n  b: 1\n  c:2\n", "a:\n\tb: 1"])
def test_a_file_that_is_no_yaml_names_the_usual_causes(file: Path, text: str) -> None:
    (problem,) = file_problems(file, text)
    assert problem.endswith(
        ". Usual causes: a line that is indented differently from its neighbours, a missing blank "
        "after a colon, a tab, a text that needs quotes. Correct it"
    )


@pytest.mark.parametrize("tag", ["seq", "map", "set", "omap", "pairs"])
@cases(__file__, "text")
def test_keys_that_are_no_texts(file: Path, tag: str, text: str) -> None:
    (problem,) = file_problems(file, text.format(tag=tag))
    assert re.match(rf"{re.escape(str(file))}:\d+:\d+: not valid YAML: ", problem)
    assert problem.endswith(". Correct it")


@cases(__file__, "text", "expected")
def test_halves_of_characters(file: Path, text: str, expected: str) -> None:
    rest = "attributes: {a: quasi_identifier}\nprivacy: {k: 2}\noutput: {path: y}\n"
    problem, *_ = file_problems(file, f"input: {{{text}}}\n{rest}")
    assert re.match(rf"{re.escape(str(file))}:1:\d+: {re.escape(expected)}", problem)


@pytest.mark.parametrize("text", ["a: &a [*a]", "&a a: *a", "attributes: &a {b: *a}"])
def test_an_alias_to_what_encloses_it(file: Path, text: str) -> None:
    assert file_problems(file, text)


# Fingerprints and the manifest


def test_the_fingerprint_is_that_of_the_meaning(file: Path) -> None:
    file.write_text(CONTRACT, encoding="utf-8")
    configuration = load_configuration(file)
    document = yaml.safe_load(CONTRACT)
    reversed_sections = dict(reversed(document.items()))
    reversed_sections["attributes"] = {
        name: {"role": value} if isinstance(value, str) else value
        for name, value in document["attributes"].items()
    }
    del reversed_sections["model"], reversed_sections["missing"], reversed_sections["execution"]
    assert parse_configuration(reversed_sections).fingerprint() == configuration.fingerprint()
    assert len(bytes.fromhex(configuration.fingerprint())) == 32


def test_the_fingerprint_is_stable() -> None:
    # A new field changes it; anything else that does is a mistake.
    fingerprint = parse_configuration(changed("model.separation", "always")).fingerprint()
    assert fingerprint == "e24482ec071eaab59410565a007b95f9628ea3f0801f6612cb7b3e20e8470f72"


@cases(__file__, "path", "value")
def test_every_change_changes_the_fingerprint(path: str, value: Any) -> None:
    original = parse_configuration(MINIMAL).fingerprint()
    assert parse_configuration(changed(path, value)).fingerprint() != original


def test_the_order_of_the_attributes_is_part_of_the_configuration() -> None:
    names = ["a", "b"]
    one, other = (
        parse_configuration(changed("attributes", dict.fromkeys(order, "quasi_identifier")))
        for order in (names, names[::-1])
    )
    assert one.fingerprint() != other.fingerprint()
    assert one.quasi_identifiers == other.quasi_identifiers[::-1]


def test_the_manifest_shows_no_secrets() -> None:
    document = changed("execution.seed", 1234567890123)
    document["input"] = {
        "path": ["s3a://key:hunter2@bucket/a", "hdfs://me@host/b"],
        "options": {"user": "me", "dbPassword": "hunter2", "fs.s3a.access.key": "hunter2"},
    }
    document["attributes"]["city"] = {"role": "quasi_identifier", "order": ["Ankara", "Bursa"]}
    public = parse_configuration(document).public_dict()
    text = json.dumps(public)
    assert not any(word in text for word in ("1234567890123", "hunter2", "Ankara"))
    assert public["input"]["path"] == ["s3a://(redacted)@bucket/a", "hdfs://me@host/b"]
    assert public["input"]["options"]["user"] == "me"
    assert public["attributes"]["city"]["order_entries"] == 2
    assert public["execution"]["task_rows"] == 250_000
    assert len(public["execution"]["seed_fingerprint"]) == 16
    assert public["model"]["rho"] == 5


def test_the_seed_fingerprint() -> None:
    # printf anonspark-seed:0 | sha256sum
    public = parse_configuration(MINIMAL).public_dict()
    assert public["execution"] == {
        "task_rows": 250_000,
        "seed_fingerprint": "6bd895655eb8f5bf",
        "staging_path": None,
    }


# JSON Schema


def test_the_json_schema_is_valid_and_accepts_the_contract() -> None:
    schema = json_schema()
    json.dumps(schema)
    jsonschema.Draft202012Validator.check_schema(schema)
    validate_document(yaml.safe_load(CONTRACT))
    validate_document(MINIMAL)


@cases(__file__, "path", "value")
def test_the_json_schema_rejects_what_we_reject(path: str, value: Any) -> None:
    document = changed(path, value)
    assert problems_of(document)
    with pytest.raises(jsonschema.ValidationError):
        validate_document(document)


def test_every_key_is_described() -> None:
    schema = json_schema()
    assert schema["description"]
    for section in (schema, *schema["$defs"].values()):
        assert section["description"]
        for key, node in section["properties"].items():
            assert node.get("description"), key


def test_a_hierarchy_that_is_wrong_is_not_told_as_missing() -> None:
    document = changed("model", {"name": "full-domain"})
    document["attributes"] = {"age": {"role": "quasi_identifier", "hierarchy": {"width": 5}}}
    (reported,) = problems_of(document)
    assert reported.startswith("attributes.age.hierarchy.width: unknown key")


# A new model needs no change here


class TreeOptions(ModelOptions):
    """Options of a model that only this test knows."""

    name: Literal["tree"] = Field(default="tree", description="Which model.")
    vantage: Literal["random", "spread"] = Field(description="How.")
    depth: int = Field(default=3, ge=2, description="How deep.")


@pytest.fixture
def _with_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "_OPTIONS", (*models._OPTIONS, TreeOptions))


@pytest.mark.usefixtures("_with_tree")
class TestNewModel:
    def test_its_options_are_accepted_and_kept(self) -> None:
        document = changed("model", {"name": "tree", "vantage": "random"})
        configuration = parse_configuration(document)
        assert configuration.model == TreeOptions(vantage="random")
        assert configuration.public_dict()["model"]["vantage"] == "random"
        validate_document(document)

    def test_its_options_have_messages(self) -> None:
        reported = problems_of(changed("model", {"name": "tree", "depth": 1, "rho": 3}))
        assert reported == [
            "model.vantage: missing. Expected 'random' or 'spread'. Add it",
            "model.depth: found the whole number 1. Expected a whole number of at least 2",
            "model.rho: unknown key. Expected 'name', 'vantage' or 'depth'. Remove it",
        ]

    def test_its_section_needs_its_name(self) -> None:
        document = changed("model", {"vantage": "random"})
        assert problems_of(document)[0].startswith("model.vantage: unknown key")
        with pytest.raises(jsonschema.ValidationError):
            validate_document(document)

    def test_the_default_model_stays(self) -> None:
        validate_document(changed("model", {"rho": 2}))
        assert parse_configuration(MINIMAL).model == MondrianOptions()


# Anything at all

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["quasi_identifier", "sensitive", "identifier", "bounds", "category", "tree"])
)
SECTIONS = (
    Configuration,
    InputOptions,
    Attribute,
    HierarchyRule,
    PrivacyOptions,
    OutputOptions,
    MondrianOptions,
)
KEYS = st.sampled_from(
    [
        *(key for section in SECTIONS for key in section.model_fields),
        *("age", "AGE", "age_min", "[key]"),
    ]
) | st.text(max_size=4)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


def any_problems(document: dict[str, Any], *overrides: str) -> tuple[str, ...]:
    """Return the problems of a configuration that may have none; let other errors pass."""
    try:
        parse_configuration(document, overrides)
    except ConfigurationError as error:
        return error.problems
    return ()


@given(st.dictionaries(KEYS, ANYTHING, max_size=6))
def test_nothing_but_configuration_errors(document: dict[str, Any]) -> None:
    reported = any_problems({**MINIMAL, **document})
    assert all(len(problem.splitlines()) == 1 for problem in reported)
    assert len(set(reported)) == len(reported)


@given(st.dictionaries(KEYS, ANYTHING, max_size=6))
def test_what_we_accept_the_json_schema_accepts(document: dict[str, Any]) -> None:
    merged = {**MINIMAL, **document}
    if not any_problems(merged):
        validate_document(merged)


@given(st.text(max_size=40))
def test_any_override_is_an_assignment_or_a_problem(override: str) -> None:
    reported = any_problems(MINIMAL, override)
    assert all(len(problem.splitlines()) == 1 for problem in reported)


@given(st.text(min_size=1, max_size=12).filter(lambda name: not {'"', "'"} <= set(name)))
def test_a_key_path_in_a_message_can_be_used_with_set(name: str) -> None:
    written = key_path(("attributes", name))
    assert len(written.splitlines()) == 1
    if name.isprintable():
        configuration = parse_configuration(MINIMAL, [f"{written}=quasi_identifier"])
        assert name in configuration.attributes


@given(st.permutations(list(MINIMAL)), st.integers(-(2**63), 2**63 - 1))
def test_the_order_of_the_sections_does_not_matter(order: list[str], seed: int) -> None:
    overrides = [f"execution.seed={seed}"]
    shuffled = {key: MINIMAL[key] for key in order}
    one, other = (parse_configuration(d, overrides) for d in (MINIMAL, shuffled))
    assert one == other
    assert one.fingerprint() == other.fingerprint()
    assert one.public_dict() == other.public_dict()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({}, "an empty mapping"),
        ("x" * 100, f"the text '{'x' * 60}...'"),
        ("a\nb", r"the text 'a\nb'"),
        (b"", "a value of type bytes"),
    ],
)
def test_words_for_values(value: object, words: str) -> None:
    assert in_words(value) == words


def test_a_number_too_long_to_be_written() -> None:
    (problem,) = problems_of(changed("privacy.k", -(16**9000)))
    assert problem.startswith("privacy.k: found a whole number of more than 30 digits. ")


def test_nearest_ignores_case_and_gives_up_on_strangers() -> None:
    assert nearest("PRIVACY", ["input", "privacy"]) == "privacy"
    assert nearest("zzz", ["input", "privacy"]) is None
    # What was begun, if only one name begins so.
    assert nearest("micro", ["mondrian", "microaggregation"]) == "microaggregation"
    assert nearest("u-m", ["u-mondrian-1", "u-mondrian-2"]) is None


def test_a_configuration_built_in_python_is_checked_as_well() -> None:
    document = {**MINIMAL, "attributes": {"age": "sensitive"}}
    with pytest.raises(ValidationError, match="found no quasi_identifier"):
        Configuration.model_validate(document)


SENSITIVE = changed("attributes", {"age": "quasi_identifier", "s": "sensitive", "n": "insensitive"})


@cases(__file__, "written", "expected")
def test_wrong_criteria_have_their_messages(written: str, expected: list[str]) -> None:
    privacy = {"k": 5, **yaml.safe_load(written)}
    assert problems_of({**SENSITIVE, "privacy": privacy}) == spelled(expected)


def test_a_later_criterion_keeps_the_fingerprint_of_what_does_not_ask_for_it() -> None:
    plain = parse_configuration(SENSITIVE)
    written_out = parse_configuration({**SENSITIVE, "privacy": {"k": 5, "beta_likeness": []}})
    asked = {"attribute": "s", "beta": 2}
    other = parse_configuration({**SENSITIVE, "privacy": {"k": 5, "beta_likeness": asked}})
    assert plain.fingerprint() == written_out.fingerprint() != other.fingerprint()
    assert plain.settings_fingerprint() == written_out.settings_fingerprint()
    assert plain.settings_fingerprint() != other.settings_fingerprint()
    (criterion,) = other.privacy.criteria
    assert (criterion.attribute, criterion.kind, criterion.bound) == ("s", "beta", 2.0)


def test_one_criterion_is_short_for_a_list_of_one() -> None:
    one = {"attribute": "s", "kind": "entropy", "l": 1.5}
    alone = parse_configuration({**SENSITIVE, "privacy": {"k": 5, "l_diversity": one}})
    listed = parse_configuration({**SENSITIVE, "privacy": {"k": 5, "l_diversity": [one, one]}})
    assert alone.privacy.criteria == listed.privacy.criteria
    assert len(alone.privacy.criteria) == 1
    document = {**SENSITIVE, "privacy": {"k": 5, "l_diversity": one}}
    validate_document(document)


def test_the_manifest_shows_the_order_of_a_sensitive_attribute_only() -> None:
    attributes = {
        "age": {"role": "quasi_identifier", "order": ["a", "b"]},
        "s": {"role": "sensitive", "order": ["x", "y"]},
    }
    shown = parse_configuration(changed("attributes", attributes)).public_dict()["attributes"]
    assert "order" not in shown["age"]
    assert shown["age"]["order_entries"] == 2
    assert shown["s"]["order"] == ["x", "y"]


def test_secrets_of_the_population_are_not_shown() -> None:
    presence = {
        "population": "s3a://key:secret@bucket/p",
        "max": 1,
        "options": {"fs.azure.account.key": "abc", "header": "true"},
    }
    document = changed("privacy", {"k": 5, "delta_presence": presence}) | {
        "attributes": {"age": {"role": "quasi_identifier", "hierarchy": {"intervals": [5]}}},
        "model": {"name": "full-domain", "levels": [{"age": 1}], "suppression_limit": 0.0},
    }
    shown = parse_configuration(document).public_dict()["privacy"]["delta_presence"]
    assert shown["population"] == "s3a://(redacted)@bucket/p"
    assert shown["options"] == {"fs.azure.account.key": "(redacted)", "header": "true"}


def with_range(bounds: Any, **keys: Any) -> dict[str, Any]:
    return {
        "input": {"path": "a"},
        "attributes": {"x": {"role": "quasi_identifier", "range": bounds} | keys},
        "privacy": {"k": 2},
        "output": {"path": "b"},
    }


@cases(__file__, "bounds", "keys")
def test_declared_ranges_are_accepted(bounds: Any, keys: dict[str, Any]) -> None:
    document = with_range(bounds, **keys)
    assert parse_configuration(document).attributes["x"].range == bounds
    validate_document(document)


@cases(__file__, "bounds", "keys", "told")
def test_wrong_ranges_have_their_messages(bounds: Any, keys: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_configuration(with_range(bounds, **keys))
    found = [one for one in refused.value.problems if one.startswith("attributes.x.range")]
    assert len(found) == 1
    assert told in found[0]


def test_a_declared_range_changes_the_fingerprint() -> None:
    plain = with_range(None)
    del plain["attributes"]["x"]["range"]
    without = parse_configuration(plain)
    assert parse_configuration(with_range(None)).fingerprint() == without.fingerprint()
    found = {
        parse_configuration(with_range(bounds)).fingerprint() for bounds in ([0, 1], [0.0, 1.0])
    }
    assert len(found) == 1
    other = parse_configuration(with_range([0, 2]))
    for name in ("fingerprint", "input_fingerprint", "settings_fingerprint"):
        assert getattr(other, name)() != getattr(without, name)()
    assert other.public_dict()["attributes"]["x"]["range"] == [0, 2]


def test_the_published_algorithm_shares_records_where_no_grid_is_named() -> None:
    """Else a comparison could not have both: its cells share what was prepared."""
    prepared = {}
    for grid in ("none", "auto"):
        document = with_range(None, grid=grid)
        plain, published = (
            parse_configuration(document | {"model": {"name": "u-canon", **options}})
            for options in ({}, {"published": "canbay-2019"})
        )
        prepared[grid] = plain.input_fingerprint() == published.input_fingerprint()
    assert prepared == {"none": True, "auto": False}


def test_a_range_can_be_set() -> None:
    configuration = parse_configuration(with_range(None), ["attributes.x.range=[5, 10]"])
    assert configuration.attributes["x"].range == [5, 10]


def test_where_bounds_lie() -> None:
    assert day_of("1970-01-02") == 1
    assert moment_of("1970-01-02") == 86_400_000_000
    assert moment_of("1970-01-01 00:00:01.5") == moment_of("1970-01-01T02:00:01.5+02:00")
    assert moment_of("0001-01-01") < moment_of("9999-12-31 23:59:59.999999")
    for text in ("1970-1-1", "1970-02-30", "1970-01-01 10:00"):
        with pytest.raises(UnfitRangeError):
            day_of(text)
    assert bound_numbers("decimal", [0.1, 1]) == [Fraction(1, 10), 1]
    assert bound_numbers("float", [0.1, 1]) == [Fraction(0.1), 1]
    single = float(bound_numbers("float", [0.1, 1], single=True)[0])
    assert single == pytest.approx(0.1)
    assert single != 0.1
    # What the type cannot hold is what it holds at most.
    assert bound_numbers("float", [0, 1e300], single=True)[1] == 2**128 - 2**104
    assert bound_numbers("float", [0, 10**400])[1] < 2**1024
    assert decimal_places([1, 0.25]) == 2
    assert decimal_places([1e-7, 1e22]) == 7
