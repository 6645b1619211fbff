"""What a program gives instead of a YAML file."""

from __future__ import annotations

import inspect
import numbers
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

from anonspark.api.tables import GIVEN
from anonspark.config import Configuration, parse_configuration
from anonspark.config.json_schema import known_schema
from anonspark.config.problems import did_you_mean, one_of, places_of
from anonspark.config.reading import TextReader
from anonspark.config.short_forms import ROLE_LISTS, listed_attribute
from anonspark.errors import ConfigurationError, DataError, UnknownKeywordError

_OPTION = re.compile(r"--([a-z][a-z-]*)|^DATA(?=:)")

Names = Sequence[str]

_Function = TypeVar("_Function", bound=Callable[..., Any])

# Names of arguments in other tools and in our YAML file that are too different to be guessed.
_OTHER_NAMES = {
    "qi": "quasi_identifiers", "keyVars": "quasi_identifiers", "sens_att": "sensitive",
    "supp_level": "suppression_limit", "l_diversity": "l", "t_closeness": "t",
}  # fmt: skip


def suggesting(function: _Function) -> _Function:
    """Let a function refuse unknown keywords, with UnknownKeywordError and the nearest known one.

    >>> suggesting(lambda original=None: original)(orginal=3)
    Traceback (most recent call last):
    ...
    anonspark.errors.UnknownKeywordError: ... Did you mean 'original'?
    """
    names = list(inspect.signature(function).parameters)

    @wraps(function)
    def checked(*args: Any, **keywords: Any) -> Any:
        for name in sorted(keywords.keys() - set(names)):
            keys = places_of(name, known_schema()) if "config" in names else []
            remedy = f"Pass {one_of(keys)} in a mapping as config" if keys else ""
            remedy = did_you_mean(
                _OTHER_NAMES.get(name, name), names, remedy or f"Expected {one_of(names)}"
            )
            raise UnknownKeywordError(
                f"{function.__qualname__}: found the unknown keyword {name!r}. {remedy}"
            )
        return function(*args, **keywords)

    return checked  # type: ignore[return-value]


def reading_table(config: Mapping[str, Any]) -> dict[str, object]:
    """Return a configuration that reads the caller's DataFrame, which no condition restricts.

    >>> reading_table({"privacy": {"k": 5}})
    {'privacy': {'k': 5}, 'input': {'path': 'the given DataFrame'}}
    """
    if config.get("input", {}).get("where") is not None:
        raise ConfigurationError(
            "input.where: found together with a DataFrame. Restrict the DataFrame by its own means"
        )
    return {**config, "input": {"path": GIVEN, **config.get("input", {})}}


def configuration_for_table(
    config: Mapping[str, Any] | Configuration,
    path: str,
    read: TextReader,
    *,
    needs_seed: bool = True,
) -> Configuration:
    """Check a configuration that reads the caller's DataFrame and writes to a drawn path."""
    if isinstance(config, Configuration):
        reading_table({"input": {"where": config.input.where}})
        output = config.output.model_copy(update={"path": path, "mode": "error"})
        return config.model_copy(update={"output": output}).with_drawn_output()
    return parse_configuration(
        reading_table(config) | {"output": {**config.get("output", {}), "path": path}},
        read=read,
        needs_seed=needs_seed,
    ).with_drawn_output()


def roles_of(**columns: Names) -> dict[str, str]:
    """Build the section ``attributes`` from the keyword arguments that list columns by role.

    Raises ConfigurationError if an argument is no list of names, or a column is named twice.

    >>> roles_of(quasi_identifiers=["age"], sensitive=["income"])
    {'age': 'quasi_identifier', 'income': 'sensitive'}
    """
    problems: list[str] = []
    roles: dict[str, str] = {}
    for argument, column in columns.items():
        try:
            names = names_of(argument, column)
        except ConfigurationError as error:
            problems += error.problems
            continue
        for name in names:
            if name in roles:
                problems.append(f"{argument}: {name!r} is named twice. Name each column once")
            roles[name] = ROLE_LISTS[argument]
    if problems:
        raise ConfigurationError(*problems)
    return roles


def names_of(argument: str, value: object) -> tuple[str, ...]:
    """Return names of columns as a tuple, after one pass over the iterable.

    Raises ConfigurationError for a text, a set, and values that are no texts.

    >>> names_of("sensitive", (name for name in ["income"]))
    ('income',)
    """
    if isinstance(value, set | frozenset):
        # Releases depend on the order of the attributes.
        raise ConfigurationError(
            f"{argument}: found a set, whose order is another one in each process. Expected a list "
            "of names of columns"
        )
    if isinstance(value, str):
        kind = "a text"
    elif not isinstance(value, Iterable):
        kind = type(value).__name__
    else:
        names = tuple(value)
        if all(isinstance(name, str) for name in names):
            return tuple(map(str, names))
        kind = "something else than texts in it"
    raise ConfigurationError(f"{argument}: found {kind}. Expected a list of names of columns")


def as_integer(value: Any) -> Any:
    """Return a whole number, also one of numpy, as int, and everything else unchanged."""
    is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    return int(value) if is_integer else value


def whole_number(argument: str, value: object, least: int, most: int | None = None) -> int:
    """Return a whole number as int. Raises ConfigurationError if it is none, or beyond a bound.

    >>> whole_number("k", 5, least=2)
    5
    >>> whole_number("k", 1, least=2)
    Traceback (most recent call last):
    ...
    anonspark.errors.ConfigurationError: k: found 1. Expected a whole number of at least 2
    """
    number = as_integer(value)
    if type(number) is int and least <= number and (most is None or number <= most):
        return number
    kind = str(number) if type(number) in (int, float) else type(value).__name__
    bound = f"of at least {least}" if most is None else f"from {least} to {most}"
    raise ConfigurationError(f"{argument}: found {kind}. Expected a whole number {bound}")


def real_number(argument: str, value: object) -> float:
    """Return a number as float. Raises ConfigurationError if it is none.

    >>> real_number("t", 1)
    1.0
    """
    if isinstance(value, numbers.Real):
        return float(value)
    raise ConfigurationError(f"{argument}: found {type(value).__name__}. Expected a number")


def text_of(argument: str, value: object) -> str:
    """Return a text. Raises ConfigurationError if it is none."""
    if isinstance(value, str):
        return value
    raise ConfigurationError(f"{argument}: found {type(value).__name__}. Expected a text")


def as_path(argument: str, value: object) -> str | None:
    """Return a path as a text, and None as None. Raises ConfigurationError for anything else."""
    if value is None:
        return None
    if isinstance(value, str | os.PathLike):
        return os.fspath(value)
    raise ConfigurationError(
        f"{argument}: found {type(value).__name__}. Expected the path of a directory"
    )


def require_mapping(argument: str, value: object) -> None:
    """Raise ConfigurationError if a document is no mapping, such as the path of a file."""
    if isinstance(value, Mapping):
        return
    hint = "Expected a mapping, as the YAML file holds it"
    if isinstance(value, str | os.PathLike):
        hint += ". Read the file first: yaml.safe_load(open(path))"
    raise ConfigurationError(f"{argument}: found {type(value).__name__}. {hint}")


def require_configuration(value: object) -> None:
    """Raise ConfigurationError if a value is neither a mapping nor a Configuration."""
    if isinstance(value, str | os.PathLike):
        raise ConfigurationError(
            f"config: found {type(value).__name__}. Expected a mapping or a Configuration. Load a "
            "file with anonspark.config.load_configuration(path)"
        )
    if not isinstance(value, Configuration):
        require_mapping("config", value)


def configuration_of_keywords(
    config: Mapping[str, Any] | Configuration | None,
    roles: Mapping[str, str],
    k: int | None,
    model: str | Mapping[str, Any] | None,
    seed: int | None = None,
    **others: Any,
) -> Mapping[str, Any] | Configuration:
    """Make a configuration from the keywords of a call, or return ``config`` if it is given.

    ``others`` may be ``t`` for every sensitive column, ``suppression_limit``, and ``hierarchies``,
    a path or a rule by column. None counts as absent. Raises ConfigurationError if both ways are
    used, if ``k`` or the quasi-identifiers are missing, or for a value that cannot be used.

    >>> roles = roles_of(quasi_identifiers=["age"])
    >>> configuration_of_keywords(None, roles, k=5, model="canon", seed=1)["model"]
    {'name': 'canon'}
    """
    if config is not None:
        require_configuration(config)
        require_alone(roles, "a configuration", k=k, model=model, seed=seed, **others)
        return config
    missing = []
    if k is None:
        missing.append(
            "k: it is missing. Expected how many records must look alike at least, as in k=5"
        )
    if "quasi_identifier" not in roles.values():
        missing.append(
            "quasi_identifiers: none is named. Expected a list of the columns that others may "
            "know of a person, as in quasi_identifiers=['age', 'city']"
        )
    if missing:
        raise ConfigurationError(*missing)
    attributes = {name: listed_attribute(role) for name, role in roles.items()}
    hierarchies = others.get("hierarchies") or {}
    require_mapping("hierarchies", hierarchies)
    for name, rule in hierarchies.items():
        if name not in roles:
            hint = did_you_mean(name, roles, "Name it in quasi_identifiers")
            raise ConfigurationError(f"hierarchies: {name!r} is no column with a role. {hint}")
        path = os.fspath(rule) if isinstance(rule, os.PathLike) else rule
        attributes[name] = {"role": roles[name], "hierarchy": path}
    privacy: dict[str, object] = {"k": as_integer(k)}
    if (t := others.get("t")) is not None:
        privacy["t_closeness"] = [
            {"attribute": name, "t": real_number("t", t)} for name in sensitive_of(roles, "t")
        ]
    document: dict[str, object] = {
        "attributes": attributes,
        "privacy": privacy,
        # Everybody knows the default seed of a configuration, so another one is drawn.
        "execution": {"seed": secrets.randbits(64) - 2**63 if seed is None else as_integer(seed)},
    }
    section = _model_section(model, others.get("suppression_limit"))
    return document | ({"model": section} if section else {})


def _model_section(model: str | Mapping[str, Any] | None, limit: object) -> dict[str, object]:
    """Return the section ``model`` of two keywords, empty without both.

    >>> _model_section("canon", 0.1)
    {'name': 'canon', 'suppression_limit': 0.1}
    """
    if not isinstance(model, str | Mapping | None):
        raise ConfigurationError(
            f"model: found {type(model).__name__}. Expected the name of a model, or a mapping "
            "with its name and options"
        )
    section: dict[str, object] = {"name": model} if isinstance(model, str) else dict(model or {})
    if limit is not None:
        if "suppression_limit" in section:
            require_alone({}, "the key of model", suppression_limit=limit)
        section["suppression_limit"] = real_number("suppression_limit", limit)
    return section


def sensitive_of(roles: Mapping[str, str], argument: str) -> list[str]:
    """Return the sensitive columns, or refuse an argument about them if there are none."""
    names = [name for name, role in roles.items() if role == "sensitive"]
    if not names:
        raise ConfigurationError(
            f"{argument}: found it without a sensitive column. Name one with sensitive, or leave "
            f"{argument} out"
        )
    return names


def require_alone(roles: Mapping[str, str], document: str, **others: object) -> None:
    """Raise ConfigurationError if keywords are given together with a document that replaces them.

    ``document`` names it in the message. A keyword that is None counts as absent.
    """
    names = [name for name, value in others.items() if value is not None]
    names += [name for name, role in ROLE_LISTS.items() if role in roles.values()]
    if names:
        raise ConfigurationError(
            f"{', '.join(names)}: found together with {document}, which sets them. Leave one "
            "of the two out"
        )


@contextmanager
def named_as_arguments(names: Mapping[str, str] | None = None) -> Iterator[None]:
    """Let errors name arguments of Python instead of options of the command line.

    ``names`` are the arguments that are not called like their options, by option.
    """
    try:
        yield
    except (ConfigurationError, DataError) as error:
        problems = [with_arguments(problem, names) for problem in error.problems]
        if tuple(problems) == error.problems:
            raise
        raise type(error)(*problems) from error


def with_arguments(text: str, names: Mapping[str, str] | None = None) -> str:
    """Replace options of the command line in a sentence as :func:`named_as_arguments` does.

    >>> with_arguments("--joint-k: found 1", {})
    'joint_k: found 1'
    """
    arguments = names or {}

    def argument(option: re.Match[str]) -> str:
        name = option[1] or option[0]
        return arguments.get(option[0], name.replace("-", "_"))

    return _OPTION.sub(argument, text)
