"""Credentials in addresses and options: nothing that leaves the program holds them."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

import pytest
from cases import cases
from hypothesis import assume, given
from hypothesis import strategies as st

from anonspark.comparison.grid import public_setting, settings_label
from anonspark.config import Configuration, json_schema, parse_configuration
from anonspark.config.loading import load_configuration
from anonspark.errors import AnonsparkError, ConfigurationError, DataError, GuaranteeError
from anonspark.redaction import REDACTED, is_secret_option, redact, redact_options

PLANTED = "Wyvern7gold"


@cases(__file__, "text")
def test_credentials_in_texts(text: str) -> None:
    shown = redact(text.format(PLANTED))
    assert PLANTED not in shown
    assert REDACTED in shown
    # What was redacted stays what it is.
    assert redact(shown) == shown


@cases(__file__, "text")
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert redact(text) == text


@given(
    st.sampled_from(["s3a", "hdfs", "jdbc:mysql", "https"]),
    st.text("abcXYZ019-_.~!$'()*+,;=%&^/@:", min_size=1, max_size=20),
    st.sampled_from(["", "/", "/data/x.csv", ":9000/data"]),
)
def test_any_password(scheme: str, noise: str, rest: str) -> None:
    # The port of a host, and the next address.
    assume(not re.match(r"\d+/", noise) and ":/" not in f":{noise}".replace(":/", "", 1))
    text = redact(f"input.path: nothing is at {scheme}://KEY:{noise}{PLANTED}@host{rest}. Check it")
    assert PLANTED not in text
    assert text.startswith("input.path: nothing is at ")
    assert text.endswith(". Check it")


def test_long_texts_take_no_time() -> None:
    # Of a processor: the machine may be busy.
    start = time.process_time()
    for text in (
        "a://b" * 20_000,
        "x=y " * 50_000,
        "%" * 100_000 + "=",
        "://" * 30_000,
        "@" * 90_000,
    ):
        redact(text)
    assert time.process_time() - start < 20


def test_options() -> None:
    options = {
        "fs.s3a.secret.key": PLANTED,
        "password": PLANTED,
        "sig": PLANTED,
        "kafka.sasl.jaas.config": PLANTED,
        "url": f"jdbc:postgresql://h/db?password={PLANTED}",
        "header": "true",
        "keyspace": "people",
    }
    shown = redact_options(options)
    assert PLANTED not in str(shown)
    assert shown["header"], shown["keyspace"] == ("true", "people")
    assert not any(map(is_secret_option, ("path", "header", "inferSchema", "dbtable", "user")))


@pytest.mark.parametrize("kind", [DataError, ConfigurationError, GuaranteeError, AnonsparkError])
def test_errors_hold_no_credentials(kind: type[AnonsparkError]) -> None:
    error = kind(f"nothing is at s3a://KEY:{PLANTED}@bucket/x")
    assert PLANTED not in f"{error} {error!r} {error.args}"
    assert PLANTED not in str(getattr(error, "problems", ""))


def test_the_log_holds_no_credentials(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("anonspark")
    try:
        raise OSError(f"cannot rename s3a://KEY:{PLANTED}@bucket/x")
    except OSError:
        logger.exception("staged at %s", f"s3a://KEY:{PLANTED}@bucket/x")
    assert PLANTED not in caplog.text
    assert "staged at s3a://(redacted)@bucket/x" in caplog.text
    assert "OSError: cannot rename s3a://(redacted)@bucket/x" in caplog.text


# Every key of the configuration, as its JSON Schema lists them.

WHOLE: dict[str, Any] = {
    "input": {"path": "a.csv", "format": "csv", "options": {"header": "true"}},
    "attributes": {
        "age": {"role": "quasi_identifier", "hierarchy": "ages.csv"},
        "town": {"role": "quasi_identifier", "hierarchy": {"keep": [1]}, "type": "text"},
        "sickness": {"role": "sensitive"},
    },
    "privacy": {
        "k": 2,
        "delta_presence": {"population": "p", "min": 0.0, "max": 0.5, "format": "csv"},
        "l_diversity": [{"attribute": "sickness", "kind": "distinct", "l": 2}],
    },
    "model": {
        "name": "full-domain",
        "levels": [{"age": 1, "town": 1}],
        "suppression_limit": 0.0,
    },
    "output": {"path": "out"},
}


def _leaves(
    node: Mapping[str, Any], schema: Mapping[str, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """Return the path of every key that is no mapping of other keys."""
    if "$ref" in node:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    branches = [*node.get("anyOf", ()), *node.get("oneOf", ())]
    for branch in branches:
        yield from _leaves(branch, schema, path)
    for name, inner in node.get("properties", {}).items():
        # A branch may forbid a key, which another one has.
        if inner is not False:
            yield from _leaves(inner, schema, (*path, name))
    more = node.get("additionalProperties")
    if isinstance(more, Mapping):
        yield from _leaves(more, schema, (*path, _any_name(path)))
    if not branches and "properties" not in node and not isinstance(more, Mapping):
        yield path


def _any_name(path: tuple[str, ...]) -> str:
    names = {"attributes": "age", "options": "url", "gates": "gcp", "drift": "gcp"}
    return names.get(path[-1] if path else "", "any")


SCHEMA = json_schema()
# Texts of the data, by which a release is verified: no paths.
DATA = {("input", "missing_markers"), ("attributes", "age", "order")}
# Names of columns, as the keys of attributes are.
NAMES = {("identifiers",), ("quasi_identifiers",), ("sensitive",), ("insensitive",)}
KEYS = sorted(set(_leaves(SCHEMA, SCHEMA)) - DATA - NAMES)
ADDRESS = f"s3a://KEYID:{PLANTED}@bucket/x"


def test_all_keys_are_planted() -> None:
    """The keys below come from the schema: a new one cannot be forgotten."""
    paths = {
        ("input", "path"),
        ("output", "path"),
        ("execution", "staging_path"),
        ("attributes", "age", "hierarchy"),
        ("privacy", "delta_presence", "population"),
        ("metrics", "append_to"),
        ("metrics", "job"),
        ("input", "options", "url"),
        ("privacy", "delta_presence", "options", "url"),
    }
    assert paths <= set(KEYS)
    assert len(KEYS) > 40


@pytest.mark.parametrize("key", KEYS, ids=".".join)
def test_a_secret_in_any_key_is_not_told(key: tuple[str, ...]) -> None:
    long = f"s3a://{'K' * 40}:{PLANTED}{'x' * 80}@bucket"
    for planted in (ADDRESS, [ADDRESS], long, {"x": ADDRESS}, f"/a?password={PLANTED}"):
        document = deepcopy(WHOLE)
        section = document
        for name in key[:-1]:
            inner = section.get(name)
            section[name] = inner if isinstance(inner, dict) else {}
            section = section[name]
        section[key[-1]] = planted
        _require_untold(document)


def _require_untold(document: dict[str, Any]) -> None:
    told = ""
    try:
        configuration = parse_configuration(document)
    except ConfigurationError as error:
        told = str(error)
    assert PLANTED not in told
    if told:
        return
    public = json.dumps(configuration.public_dict())
    assert PLANTED not in public
    assert PLANTED not in f"{configuration} {configuration!r}"


def test_secret_options_are_not_told() -> None:
    for name in ("password", "fs.s3a.secret.key", "sasToken"):
        for value in (PLANTED, [PLANTED], {"a": PLANTED}):
            document = deepcopy(WHOLE)
            document["input"]["options"][name] = value
            document["privacy"]["delta_presence"]["options"] = {name: value}
            _require_untold(document)
    document["input"]["options"] = {"password": 8675309.25}
    with pytest.raises(ConfigurationError) as refused:
        parse_configuration(document)
    assert "8675309" not in str(refused.value)


@pytest.mark.parametrize(
    "override",
    [
        f"input.path={ADDRESS}",
        f"input.path.a={ADDRESS}",
        f"input.options.password={PLANTED}",
        f"input.options={{password: {PLANTED}}}",
        f"input.options={{password: {PLANTED}",
        f"input.path=[{ADDRESS}",
        f"{ADDRESS}",
        f"password={PLANTED}",
        f"output.mode={ADDRESS}",
    ],
)
def test_a_secret_in_an_override_is_not_told(override: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_configuration(WHOLE, [override, "privacy.k=0"])
    assert PLANTED not in str(refused.value)
    with pytest.raises(ConfigurationError) as refused:
        load_configuration(ADDRESS, [override])
    assert PLANTED not in str(refused.value)


def test_the_seed_is_not_shown() -> None:
    configuration = parse_configuration(WHOLE | {"execution": {"seed": 8675309}})
    assert isinstance(configuration, Configuration)
    assert "8675309" not in f"{configuration!r} {configuration}"


def test_settings_of_a_comparison() -> None:
    settings = {
        "attributes.town.hierarchy": f"s3a://{'K' * 40}:{PLANTED}@bucket",
        "privacy.delta_presence.options.password": PLANTED,
        "privacy.delta_presence.options": {"password": PLANTED},
    }
    assert PLANTED not in settings_label(settings)
    assert PLANTED not in str([public_setting(*one) for one in settings.items()])
