"""Credentials in addresses, paths and options: nothing that leaves the program holds them."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
import typer
import yaml
from cases import cases, data_beside
from commands import Cli
from helpers import contents, document_file, write_people_of_towns
from hypothesis import assume, given
from hypothesis import strategies as st

import anonspark
from anonspark.cli.application import application
from anonspark.comparison.grid import public_setting, settings_label
from anonspark.config import Configuration, json_schema, parse_configuration
from anonspark.config.loading import load_configuration
from anonspark.errors import AnonsparkError, ConfigurationError, DataError, GuaranteeError
from anonspark.pipeline import plan, run
from anonspark.redaction import REDACTED, is_secret_option, redact, redact_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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

WHOLE: dict[str, Any] = data_beside(__file__)["WHOLE"]


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


ENCODED = f"hdfs://user%3A{PLANTED}@/x?password={PLANTED}"
AUTHORITY = f"me:{PLANTED}@anon"
MOUNTED = f"viewfs://{AUTHORITY}/data"


def document_at(folder: str | Path) -> dict[str, Any]:
    """Return a configuration with every key that takes a path, all of them below a folder."""
    return {
        "input": {
            "path": f"{folder}/input.parquet",
            "options": {"password": PLANTED, "url": f"jdbc:x://h/d?password={PLANTED}"},
        },
        "attributes": {
            "age": {"role": "quasi_identifier", "hierarchy": {"intervals": [5]}},
            "town": {"role": "quasi_identifier", "hierarchy": f"{folder}/towns.csv"},
            "disease": "sensitive",
        },
        "privacy": {
            "k": 3,
            "delta_presence": {"population": f"{folder}/input.parquet", "min": 0.0, "max": 1.0},
        },
        "model": {
            "name": "full-domain",
            "levels": [{"age": 2, "town": 1}],
            "suppression_limit": 0.0,
        },
        "metrics": {"append_to": f"{folder}/history", "job": f"nightly {folder}"},
        "output": {"path": f"{folder}/release", "mode": "overwrite"},
        "execution": {"staging_path": f"{folder}/private"},
    }


PATHS = (
    ("input", "path"),
    ("attributes", "town", "hierarchy"),
    ("privacy", "delta_presence", "population"),
    ("metrics", "append_to"),
    ("output", "path"),
    ("execution", "staging_path"),
)


def require_untold(told: object, what: object) -> None:
    text = str(told)
    place = text.find(PLANTED)
    # What is around it, for the message would be long.
    assert place < 0, f"{what}: ...{text[max(0, place - 200) : place + 60]}..."


def require_untold_in_files(folder: Path) -> None:
    for name, content in contents(folder).items():
        require_untold(name, "a file's name")
        if content is not None and not name.endswith(".yaml"):
            require_untold(content.decode("latin-1"), name)


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Path:
    assert spark is not None
    write_people_of_towns(tmp_path, 200)
    return tmp_path


@pytest.mark.parametrize("key", PATHS, ids=".".join)
def test_a_path_that_cannot_be_reached(folder: Path, key: tuple[str, ...], cli: Cli) -> None:
    path = folder / "configuration.yaml"
    for address, options in ((ADDRESS, ("--debug",)), (ENCODED, ("--log-format", "json"))):
        document = deepcopy(document_at(folder))
        document["input"]["options"] = {}
        section = document
        for name in key[:-1]:
            section = section[name]
        section[key[-1]] = address
        path.write_text(yaml.safe_dump(document, sort_keys=False))
        for words in (("check",), ("run", "--report"), ("clean",)):
            outcome = cli(words[0], path, *words[1:], *options)
            require_untold(outcome.out + outcome.err, (words, key, address))
            if key in (("input", "path"), ("output", "path")) and words[0] != "clean":
                assert outcome.code not in (0, 1), outcome.err
        (path).unlink()
        require_untold_in_files(folder)
        with pytest.raises(AnonsparkError) as refused:
            parse_configuration(document | {"missing": address})
        require_untold(refused.value, key)


REQUIRED: dict[str, tuple[str, ...]] = {
    "profile": ("INPUT",),
    "init": ("INPUT", "--out", "OUT"),
    "run": ("CONFIG",),
    "check": ("CONFIG",),
    "clean": ("CONFIG",),
    "verify": ("RELEASE",),
    "evaluate": ("RELEASE", "--original", "RELEASE"),
    "compare": ("GRID",),
    "report": ("RELEASE",),
    "query": ("RELEASE", "age > 3"),
    "show": ("RELEASE",),
    "mapping": ("RELEASE",),
    "history": ("OUT",),
    "arrange": ("CONFIG", "--target", "disease"),
    "select": ("CONFIG",),
    "distribute": ("PLAN",),
    "union": ("RELEASE", "--out", "OUT"),
    "ledger init": ("LEDGER", "--key-file", "KEY", "--subject", "person"),
    "ledger show": ("LEDGER",),
    "ledger check": ("LEDGER",),
    "ledger withdraw": ("LEDGER", "RELEASE", "--reason", "none", "--by", "me"),
    "ledger unlock": ("LEDGER",),
}
"""Each command with what it needs at least; those that take no path from outside are not here."""
ANY_TEXT = {"--subject", "--record", "--recipient", "--reason", "--by", "--dataset"}
"""Options that take any text, which is no path."""


def commands() -> Iterator[tuple[str, Any]]:
    """Yield each command, with the group before its name if it is in one."""
    group: Any = typer.main.get_command(application)
    for name, one in group.commands.items():
        inner = getattr(one, "commands", None)
        yield from (
            [(name, one)]
            if inner is None
            else ((f"{name} {own}", each) for own, each in inner.items())
        )


COMMANDS = dict(commands())


def planted_arguments() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each command with an address in one of its parameters that is no flag."""
    for name, parameters in REQUIRED.items():
        for parameter in COMMANDS[name].params:
            if getattr(parameter, "is_flag", False):
                continue
            option = parameter.opts[-1]
            if not option.startswith("-"):
                yield name, (ADDRESS, *parameters[1:])
            elif option in parameters:
                place = parameters.index(option)
                yield name, (*parameters[: place + 1], ADDRESS, *parameters[place + 2 :])
            else:
                yield name, (*parameters, option, ADDRESS)


def test_every_command_is_planted() -> None:
    assert set(COMMANDS) - set(REQUIRED) == {"convert", "demo", "doctor", "schema", "verifier"}
    assert len(list(planted_arguments())) > 30


def test_an_address_in_every_argument(folder: Path, cli: Cli) -> None:
    for name in ("CONFIG", "GRID", "PLAN"):
        (folder / name).write_text("{}")
    for name, words in planted_arguments():
        arguments = [str(folder / word) if word.isupper() else word for word in words]
        for options in (("--debug",), ("--log-format", "json")):
            outcome = cli(*name.split(), *arguments, *options)
            # Of a session that is there the master stays what it is.
            may_go_well = "--master" in arguments or ANY_TEXT & set(arguments)
            assert outcome.code not in ((1,) if may_go_well else (0, 1)), outcome.err
            require_untold(outcome.out + outcome.err, (name, arguments))


@pytest.fixture
def mounted(spark: SparkSession, folder: Path) -> Iterator[Path]:
    """Mount the folder at an address with credentials, which works."""
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    key = f"fs.viewfs.mounttable.{AUTHORITY}.link./data"
    hadoop.set(key, folder.as_uri())
    yield folder
    hadoop.unset(key)


def returned_by(monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str) -> list[object]:
    """Collect what a function returns, which goes on doing what it does."""
    works = getattr(module, name)
    returned: list[object] = []

    def keep(*arguments: Any, **named: Any) -> Any:
        returned.append(works(*arguments, **named))
        return returned[-1]

    monkeypatch.setattr(module, name, keep)
    return returned


# Every command on a mounted file system: a minute on Spark.
@pytest.mark.system
def test_a_run_with_credentials_everywhere(
    spark: SparkSession,
    mounted: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    cli: Cli,
    caplog: pytest.LogCaptureFixture,
) -> None:
    written = tmp_path_factory.mktemp("configurations")
    document = document_at(MOUNTED)
    # The manifest keeps the addresses of these two without credentials, so that nothing could be
    # proven by it.
    document["attributes"]["town"]["hierarchy"] = str(mounted / "towns.csv")
    document["privacy"]["delta_presence"]["population"] = str(mounted / "input.parquet")
    path = document_file(written, document)
    grid = {
        "base": document,
        "axes": {
            "privacy.k": [3],
            "privacy.delta_presence.population": [f"{MOUNTED}/input.parquet"],
            "privacy.delta_presence.options": [{"password": PLANTED}],
        },
        "output": f"{MOUNTED}/comparison",
    }
    document_file(written, grid, "grid.yaml")
    release, original = f"{MOUNTED}/release", f"{MOUNTED}/input.parquet"
    caplog.set_level(logging.INFO)
    plans = returned_by(monkeypatch, plan, "plan_run")
    releases = returned_by(monkeypatch, run, "run")
    for arguments in (
        ("check", path),
        ("check", path, "--plan"),
        ("run", path, "--log-format", "json"),
        ("verify", release, "--original", original),
        ("verify", release, "--json"),
        ("evaluate", release, "--original", original),
        ("report", release, "--original", original),
        ("compare", written / "grid.yaml"),
        ("clean", path),
    ):
        outcome = cli(*arguments)
        assert outcome.code == 0, (arguments, outcome.err)
        require_untold(outcome.out + outcome.err, arguments)
    require_untold(caplog.text, "the log")
    require_untold_in_files(mounted)
    assert (mounted / "release" / "manifest.json").exists()
    for report in ("release", "comparison"):
        assert (mounted / report / "report.html").exists()
    # Who gets them as objects sees no more.
    configuration = parse_configuration(document)
    require_untold(f"{configuration} {configuration!r}", "the configuration")
    assert plans
    require_untold(repr(plans), "the plan")
    assert releases
    require_untold(repr(releases), "the release")
    made = anonspark.anonymize(spark.read.parquet(original), document, staging=f"{MOUNTED}/own")
    require_untold(f"{made!r} {made.verify()!r}", "the interface's release")
    assert PLANTED in made.path
    made.close()
