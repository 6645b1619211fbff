"""A YAML document that knows where in its file each key stands, and what came from variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from anonspark.config.places import Places, Positions, is_within
from anonspark.config.problems import Location, found, key_path
from anonspark.errors import ConfigurationError

# Shorter values of variables are words that stand in messages anyway.
_SHORTEST = 4


class FromVariable(NamedTuple):
    """A value that was made of variables.

    Attributes
    ----------
    location : tuple of str and int
    value : object
    shown : str
        What stands in the file.
    """

    location: Location
    value: Any
    shown: str


class Document(dict[str, Any]):
    """The mapping of a YAML file.

    Parameters
    ----------
    content : mapping
    path : str
        How messages name the file.
    positions : mapping
        Of its keys and entries.
    variables : sequence of FromVariable
    concealed : mapping of str to str
        Values of variables to their names.
    unset : mapping of str to sequence of str
        Key paths at which a variable is missing, and what is said of it.
    """

    def __init__(
        self,
        content: Mapping[str, Any],
        path: str = "",
        positions: Positions | None = None,
        variables: Sequence[FromVariable] = (),
        concealed: Mapping[str, str] | None = None,
        unset: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        super().__init__(content)
        self.path, self.positions = path, positions or {}
        self.variables, self.concealed, self.unset = variables, concealed or {}, unset or {}

    def with_content(self, content: Mapping[str, Any]) -> Document:
        """Return another mapping that was made of it, which stands nowhere in the file."""
        return Document(content, variables=self.variables, concealed=self.concealed)

    def places(self, overridden: Sequence[Location] = ()) -> Places:
        """Return where its keys stand, but of what was replaced."""
        replaced = tuple(key_path(location) for location in overridden)
        return Places(self.path, self.positions, replaced)

    @contextmanager
    def telling(
        self, overridden: Sequence[Location] = (), *, is_whole: bool = True
    ) -> Iterator[None]:
        """Say of the problems of a ``with`` block where in the file they are.

        Parameters
        ----------
        overridden : sequence of tuple
            What was replaced, so that the file says nothing of it.
        is_whole : bool
            Whether all key paths are of this file, also those that are missing in it.
        """
        try:
            yield
        except ConfigurationError as error:
            if type(error) is not ConfigurationError:
                raise  # it can be read through Spark alone
            told = self.told(error.problems, overridden, is_whole=is_whole)
            raise ConfigurationError(*told) from None

    def told(
        self,
        problems: Sequence[str],
        overridden: Sequence[Location] = (),
        *,
        is_whole: bool = True,
    ) -> list[str]:
        """Return problems with file, line and column, without the values of variables."""
        places = self.places(overridden)
        told = []
        for problem in problems:
            head = places.key_path_of(problem)
            if places.is_of_file(head) and problem not in self.unset.get(head, [problem]):
                continue  # what it would hold is not known
            where = places.before(head, is_whole=is_whole)
            told.append(f"{where}{self._concealed(problem, head)}")
        return list(dict.fromkeys(told))

    def still_wrong(self, problems: Sequence[str], overridden: Sequence[Location]) -> list[str]:
        """Return problems without those of variables that only stand in what was replaced."""
        replaced = [key_path(location) for location in overridden]
        unneeded = {
            problem
            for place, said in self.unset.items()
            for problem in said
            if any(is_within(place, path) for path in replaced)
        }
        return [problem for problem in problems if problem not in unneeded]

    def _concealed(self, text: str, head: str) -> str:
        # The variable of the place itself first: others may have the same value.
        for one in sorted(self.variables, key=lambda one: key_path(one.location) != head):
            if not isinstance(one.value, Mapping | list) and one.value is not None:
                text = text.replace(found(one.value), f"a value of {one.shown}")
        return without_values(text, self.concealed)


def without_values(text: str, names: Mapping[str, str]) -> str:
    """Return a text with the names of variables in the place of their values, but of short ones.

    Parameters
    ----------
    text : str
    names : mapping of str to str
        Values to names.
    """
    for value in sorted(names, key=len, reverse=True):
        if len(value) >= _SHORTEST:
            text = text.replace(value, names[value])
    return text
