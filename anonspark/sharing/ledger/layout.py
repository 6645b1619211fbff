"""Define the files of a ledger."""

from __future__ import annotations

from dataclasses import dataclass

FORMAT = 1
"""Version of the ledgers that this version writes, and the newest that it reads."""


@dataclass(frozen=True)
class Layout:
    """Addresses inside of a ledger.

    Parameters
    ----------
    path : str
        Qualified address of the ledger.
    """

    path: str

    @property
    def head(self) -> str:
        """The facts about the whole ledger."""
        return f"{self.path}/ledger.json"

    @property
    def events(self) -> str:
        """Directory of the events."""
        return f"{self.path}/events"

    @property
    def lock(self) -> str:
        """File of the process that is at work."""
        return f"{self.path}/lock"

    def event(self, number: int) -> str:
        """Return where an event is."""
        return f"{self.events}/{number:08d}.json"

    def members(self, release: str) -> str:
        """Return the directory of who is in which class of a release."""
        return f"{self.path}/{self.of_release(release)[0]}"

    def classes(self, release: str) -> str:
        """Return the directory of what is published of the classes of a release."""
        return f"{self.path}/{self.of_release(release)[1]}"

    def base(self, generation: int) -> str:
        """Return the directory of a base partition: who is in which atom."""
        return f"{self.path}/{self.of_base(generation)}"

    @staticmethod
    def of_release(release: str) -> tuple[str, str]:
        """Return the directories of members and classes of a release, inside of the ledger."""
        return f"members/{release}", f"classes/{release}"

    @staticmethod
    def of_base(generation: int) -> str:
        """Return the directory of a base partition, inside of the ledger."""
        return f"base/generation={generation}"


def release_name(recipient: str, run_id: str) -> str:
    """Return the name of a release in a ledger."""
    return f"{recipient}-{run_id}"
