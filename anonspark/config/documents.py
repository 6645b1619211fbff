"""A YAML document that knows where in its file each key stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from anonspark.config.problems import Location, key_path
from anonspark.config.source_positions import Places, Positions, is_within
from anonspark.errors import ConfigurationError


class Document(dict[str, Any]):
    """The mapping of a YAML file.

    Parameters
    ----------
    content : mapping
    path : str
        How messages name the file.
    positions : mapping
        Of its keys and entries.
    unset : mapping of str to sequence of str
        Key paths at which a variable is missing, and what is said of it.
    """

    def __init__(
        self,
        content: Mapping[str, Any],
        path: str = "",
        positions: Positions | None = None,
        unset: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        super().__init__(content)
        self.path, self.positions, self.unset = path, positions or {}, unset or {}

    def places(self, overridden: Sequence[Location] = ()) -> Places:
        """Return where its keys stand, but of what was replaced."""
        replaced = tuple(key_path(location) for location in overridden)
        return Places(self.path, self.positions, replaced)

    @contextmanager
    def telling(
        self, overridden: Sequence[Location] = (), *, is_whole: bool = True
    ) -> Iterator[None]:
        """Add the places in the file to the problems of a ``with`` block.

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
            problems = self._placed(error.problems, overridden, is_whole=is_whole)
            raise ConfigurationError(*problems) from None

    def _placed(
        self, problems: Sequence[str], overridden: Sequence[Location], *, is_whole: bool
    ) -> list[str]:
        """Return problems with file, line and column."""
        places = self.places(overridden)
        placed = []
        for problem in problems:
            head = places.key_path_of(problem)
            if places.is_of_file(head) and problem not in self.unset.get(head, [problem]):
                continue  # what it would hold is not known
            placed.append(f"{places.before(head, is_whole=is_whole)}{problem}")
        return list(dict.fromkeys(placed))

    def still_wrong(self, problems: Sequence[str], overridden: Sequence[Location]) -> list[str]:
        """Return problems without those of variables that only stand in what was replaced."""
        replaced = [key_path(location) for location in overridden]
        unneeded = {
            problem
            for key, messages in self.unset.items()
            for problem in messages
            if any(is_within(key, path) for path in replaced)
        }
        return [problem for problem in problems if problem not in unneeded]
