"""Models and criteria of other packages, which name them as entry points (docs/extending.md).

A package is loaded when a name of it is met that is none of ours, and never before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from anonspark.errors import ConfigurationError

# The room that reads a section registers its key, and is loaded when such a section is met.

_OWNERS: dict[str, Callable[[], Any]] = {}


def register_owner(section: str, load: Callable[[], Any]) -> None:
    """Register the room that reads a section. ``load`` is called when such a section is met."""
    _OWNERS[section] = load


def owner_of(section: str) -> Any:
    """Return the registered reader of a section.

    Raises
    ------
    ConfigurationError
        If no room is registered: an unknown section is never ignored.
    """
    if section not in _OWNERS:
        raise ConfigurationError(
            f"{section}: found a section that no loaded module reads. Import anonspark.sharing "
            "before"
        )
    return _OWNERS[section]()


Group = Literal["anonspark.models", "anonspark.criteria"]
MODELS: Group = "anonspark.models"
CRITERIA: Group = "anonspark.criteria"

_WORDS = {MODELS: "model", CRITERIA: "criterion"}


@dataclass(frozen=True)
class Extension:
    """A model or a criterion of another package.

    Parameters
    ----------
    value : object
        What the entry point names.
    package : str
        Name and version of the package.
    """

    value: Any
    package: str

    def refused(self, group: Group, name: str, problem: str) -> ConfigurationError:
        """Return the error that says why the extension cannot be used."""
        return ConfigurationError(
            f"{group}: the {_WORDS[group]} {name!r} of the installed package {self.package} "
            f"cannot be used: {problem}. Correct the package, or remove it"
        )


_LOADED: dict[tuple[Group, str], Extension] = {}


def names(group: Group) -> list[str]:
    """Return the names in the installed packages, in order. Nothing is loaded."""
    return sorted({point.name for point in entry_points(group=group)})


def loaded(group: Group) -> dict[str, Extension]:
    """Return the extensions that were loaded, by name, in the order of the names."""
    return {name: _LOADED[key, name] for key, name in sorted(_LOADED) if key == group}


def extension(group: Group, name: str) -> Extension | None:
    """Load a model or a criterion of another package, or return None if no package has the name.

    Raises ConfigurationError if it cannot be loaded, or if two packages have it.
    """
    if (group, name) not in _LOADED:
        points = _points(group, name)
        if not points:
            return None
        packages = [_package(point) for point in points]
        if len(points) > 1:
            raise ConfigurationError(
                f"{group}: the {_WORDS[group]} {name!r} is in several installed packages "
                f"({', '.join(packages)}). Expected one. Remove the others"
            )
        try:
            value = points[0].load()
        except Exception as error:
            # The package may raise anything. Its message holds no data, which it does not know.
            raise Extension(None, packages[0]).refused(
                group, name, f"loading {points[0].value} ends with {type(error).__name__}: {error}"
            ) from error
        _LOADED[group, name] = Extension(value, packages[0])
    return _LOADED[group, name]


def any_asked_for() -> bool:
    """Return whether a name was met that is not ours."""
    return _points.cache_info().currsize > 0


@cache
def _points(group: Group, name: str) -> tuple[EntryPoint, ...]:
    """List the entry points with a name, the first of each package on the path, as imports do."""
    # A package that lies in two folders of the path is the first one, as in an import.
    points = reversed([*entry_points(group=group, name=name)])
    return tuple({_package(point): point for point in points}.values())


def _package(point: EntryPoint) -> str:
    return "unknown" if point.dist is None else f"{point.dist.name} {point.dist.version}"
