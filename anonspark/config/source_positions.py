"""Find the place of a problem's key in the file of a configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_KEY_PATH = re.compile(r"[a-z][^ /]*\Z|[a-z].*\"")
_LAST_STEP = re.compile(r"""(?:\.?"[^"]*"|\.?'[^']*'|\[\d+\]|\.?[^."'\[\]]+)\Z""")

Positions = Mapping[str, tuple[int, int]]
"""Key path to line and column, both from 1 on."""


@dataclass(frozen=True)
class Places:
    """The places of a file's keys. Two configurations that say the same are equal without them.

    Parameters
    ----------
    path : str
        How messages name the file.
    positions : mapping
        Of its keys and entries.
    replaced : tuple of str
        Key paths of what ``--set`` gave, of which the file says nothing.
    """

    path: str = field(default="", compare=False)
    positions: Positions = field(default_factory=dict, compare=False)
    replaced: tuple[str, ...] = field(default=(), compare=False)

    def key_path_of(self, problem: str) -> str:
        """Return the key path that a problem begins with, as long as there is one."""
        paths = (path for path in self.positions if problem.startswith(f"{path}: "))
        longest = max(paths, key=len, default=None)
        return problem.partition(": ")[0] if longest is None else longest

    def is_of_file(self, head: str) -> bool:
        """Return whether a key path is the file's, and not one of ``--set``."""
        if any(is_within(head, path) for path in self.replaced):
            return False
        return head in self.positions or not any(is_within(path, head) for path in self.replaced)

    def before(self, head: str, *, is_whole: bool) -> str:
        """Return file, line and column of a key, or of what should hold it, to begin a line with.

        Parameters
        ----------
        head : str
            Key path.
        is_whole : bool
            Whether all key paths are of this file, also those that are missing in it.

        Returns
        -------
        str
            Empty where the file says nothing of it.
        """
        position = self._position_of(head, is_whole=is_whole) if self.is_of_file(head) else None
        return "" if position is None else f"{self.path}:{position[0]}:{position[1]}: "

    def placed(self, problem: str) -> str:
        """Return a problem, with its place if it begins with a key that the file has.

        A section alone is no such place: what it lacks may be a default, or stand in a coding.
        """
        head = self.key_path_of(problem)
        keys = (path for path in self.positions if path == head or "." in path)
        if not any(is_within(head, path) for path in keys):
            return problem
        return f"{self.before(head, is_whole=False)}{problem}"

    def _position_of(self, head: str, *, is_whole: bool) -> tuple[int, int] | None:
        if head not in self.positions and not _KEY_PATH.match(head):
            return None
        while head:
            if head in self.positions:
                return self.positions[head]
            shorter = _LAST_STEP.sub("", head)
            if shorter == head:
                return None
            head = shorter
        return self.positions.get("") if is_whole else None


def is_within(head: str, path: str) -> bool:
    """Return whether a key path is another one, or is below it."""
    return head == path or head.startswith((f"{path}.", f"{path}["))
