"""Keep the finished parts of a run, in files that appear as a whole, to resume it.

::

    state/attempt-1.json            a process took the run over. Created exclusively
    state/attempt-1.ended           it has ended by itself
    state/identity-input.txt, ...   fingerprints in which the attempts must agree
    state/input-version.txt         options that read the version of the input
    state/kept-frozen.json, ...     facts of other directories that all attempts share
    state/round-1.json              the round's result and its directory
"""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from anonspark.engine.files import Files
from anonspark.engine.processes import process_identity
from anonspark.errors import ConfigurationError, PublishingError
from anonspark.layers.evaluate.metrics import RoundResult


@dataclass(frozen=True)
class FinishedRound:
    """A round that is done.

    ``last`` says whether all its groups were kept whole, so that no round follows. ``path`` is its
    directory below that of the rounds.
    """

    result: RoundResult
    last: bool
    path: str


@dataclass(frozen=True)
class RunState:
    """The state of a run, shared by all attempts at it, in the files of ``directory``.

    ``attempt`` is the number of this process's attempt: 1, 2, ... ``token`` is of this process
    alone, because the numbers begin anew if the directory was removed.
    """

    files: Files
    directory: str
    attempt: int
    token: str = ""

    @classmethod
    def claim(cls, files: Files, directory: str) -> RunState:
        """Become the newest attempt at a run, so that an older one that still works gives up.

        Raises PublishingError if the newest attempt works on this machine, or another was quicker.
        """
        newest = newest_attempt(files, directory)
        if is_at_work(files, directory):
            raise PublishingError(
                f"run id: a process of this machine is at work on the run in {directory}. Wait "
                "until it has ended, or stop it"
            )
        claimed = cls(files, directory, newest + 1, uuid.uuid4().hex)
        process = {
            "token": claimed.token,
            "host": socket.gethostname(),
            "process": process_identity(os.getpid()),
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        try:
            files.create_text(_attempt_file(directory, newest + 1), json.dumps(process))
        except FileExistsError as error:
            raise PublishingError(
                f"run id: another process has taken over the run in {directory}. Only one can"
            ) from error
        return claimed

    @property
    def is_newest(self) -> bool:
        """Return whether no other process has taken over the run or removed its directory."""
        if newest_attempt(self.files, self.directory) != self.attempt:
            return False
        text = self.files.read_text(_attempt_file(self.directory, self.attempt))
        return self.token in text

    def require_newest(self) -> None:
        """Raise PublishingError if another process has taken the run over."""
        if not self.is_newest:
            raise PublishingError(
                "run id: another process has taken this run over, with --resume, or removed its "
                "staging directory. This one ends and leaves the release to it"
            )

    def require_identity(self, identity: Mapping[str, str]) -> None:
        """Check that the earlier attempts had the same configuration, input and version.

        ``identity`` maps names to fingerprints. Those stored before are compared, the others are
        stored. Raises ConfigurationError that names the differences.
        """
        changed = []
        for name, value in identity.items():
            path = f"{self.directory}/identity-{name}.txt"
            if not self.files.exists(path):
                self.files.write_atomically(path, value)
            elif self.files.read_text(path) != value:
                changed.append(name)
        if changed:
            raise ConfigurationError(
                f"--resume: found another {' and another '.join(changed)} than the run in "
                f"{self.directory} was started with. Expected the same, because its finished "
                "rounds would not fit. Undo the change, or remove the run's staging with anonspark "
                "clean and start anew"
            )

    def first_input_version(self, value: str) -> str:
        """Return the version of the input that the first attempt stored, or else store this one."""
        path = f"{self.directory}/input-version.txt"
        if self.files.exists(path):
            return self.files.read_text(path)
        self.files.write_atomically(path, value)
        return value

    def facts_of(self, name: str) -> str | None:
        """Return the facts that an attempt stored of a shared directory, or None."""
        path = self._kept_file(name)
        return self.files.read_text(path) if self.files.exists(path) else None

    def keep(self, name: str, text: str) -> None:
        """Note that a directory that all attempts share is complete, and facts that they need.

        Raises PublishingError if another process has taken the run over.
        """
        self.require_newest()
        self._sync(f"kept/{name}")
        self.files.write_atomically(self._kept_file(name), text)

    def forget(self, name: str) -> None:
        """Forget a shared directory, to write it again. No attempt relies on it meanwhile."""
        self.files.delete(self._kept_file(name))

    def _kept_file(self, name: str) -> str:
        return f"{self.directory}/kept-{name}.json"

    def finished_round(self, number: int) -> FinishedRound | None:
        """Return a round that an attempt has finished, or None if none has."""
        path = self._round_file(number)
        if not self.files.exists(path):
            return None
        document = json.loads(self.files.read_text(path))
        result: dict[str, Any] = document["result"]
        for name in ("penalty", "penalty_if_last"):
            result[name] = Decimal(result[name])
        return FinishedRound(RoundResult(**result), document["last"], document["path"])

    def forget_round(self, number: int) -> None:
        """Forget a round whose records are gone, to compute it again."""
        self.files.delete(self._round_file(number))

    def finish_round(self, finished: FinishedRound) -> None:
        """Store a round: from now on no attempt computes it again.

        Raises PublishingError if another process has taken the run over.
        """
        self.require_newest()
        self._sync(f"rounds/round={finished.result.number}/{finished.path}")
        text = json.dumps(asdict(finished), default=str, indent=2)
        self.files.write_atomically(self._round_file(finished.result.number), text)

    @property
    def rounds_finished(self) -> int:
        """Number of the rounds that no attempt computes again."""
        number = 0
        while self.files.exists(self._round_file(number + 1)):
            number += 1
        return number

    def end(self) -> None:
        """Note that this process is no longer at work."""
        self.files.write_text(_ended_file(self.directory, self.attempt), "")

    def _sync(self, path: str) -> None:
        # A power cut must not leave a note of records that are lost.
        self.files.sync_tree(f"{self.directory.rpartition('/')[0]}/{path}")

    def _round_file(self, number: int) -> str:
        return f"{self.directory}/round-{number}.json"


def _attempt_file(directory: str, attempt: int) -> str:
    return f"{directory}/attempt-{attempt}.json"


def _ended_file(directory: str, attempt: int) -> str:
    return f"{directory}/attempt-{attempt}.ended"


def newest_attempt(files: Files, directory: str) -> int:
    """Return the number of the newest attempt, or 0 without any."""
    names = (path.rpartition("/")[2] for path in files.children(directory))
    numbers = (
        name.removeprefix("attempt-").removesuffix(".json")
        for name in names
        if name.startswith("attempt-") and name.endswith(".json")
    )
    return max((int(number) for number in numbers if number.isdecimal()), default=0)


def is_at_work(files: Files, directory: str) -> bool:
    """Return whether the newest attempt is a process of this machine that has not ended.

    Processes of other machines are not visible.
    """
    newest = newest_attempt(files, directory)
    if not newest or files.exists(_ended_file(directory, newest)):
        return False
    try:
        document = json.loads(files.read_text(_attempt_file(directory, newest)))
    except ValueError:  # killed before it had written
        return False
    identity: str | None = document["process"]
    if identity is None or document["host"] != socket.gethostname():
        return False
    return process_identity(int(identity.split()[1])) == identity
