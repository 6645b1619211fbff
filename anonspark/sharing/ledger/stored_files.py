"""Compare the files of a ledger with its events, which list every one of them."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from anonspark.errors import DataError
from anonspark.sharing.ledger.events import BASE
from anonspark.sharing.ledger.ledger import Ledger

# With events that come while others are read, drafts by killed processes, and the checksums of
# Hadoop's local file system.
_OTHERS = re.compile(
    r"lock|ledger\.json|events|members|classes|base|(?:.*/)?\.[^/]*\.crc|"
    r"events/\d{8}\.json|(?:events/\.\d{8}\.json|\.lock)\.[0-9a-f]{16}|"
    r"\.ledger\.json\.writing"
)


def listed_files(ledger: Ledger) -> dict[str, tuple[str, bool]]:
    """Return the SHA-256 of all files that events list, by their path in the ledger.

    With each comes whether a plan can need it: those of releases that count, of the newest base
    partition, and of the one before it, from which a run is gone on with.
    """
    layout, unfinished = ledger.layout, ledger.unfinished
    listings = [
        (directory, release.content["files"][directory.partition("/")[0]], release.counts)
        for release in ledger.releases.values()
        for directory in layout.of_release(release.name)
    ]
    needed = ledger.generation - 1
    listings += [
        (layout.of_base(number), event.content["files"], number >= needed)
        for event in ledger.events.events
        if event.type == BASE
        for number in (event.content["generation"],)
    ]
    return {
        f"{directory}/{file['path']}": (file["sha256"], needs)
        for directory, files, needs in listings
        if directory not in unfinished
        for file in files
    }


def wrong_files(ledger: Ledger, *, needed: bool = False) -> list[str]:
    """Return what is wrong with the files of a ledger, each with its path and what to do.

    Parameters
    ----------
    ledger : Ledger
    needed : bool
        Whether only those that a plan can need are read. The names of all are looked at.

    Notes
    -----
    Files are read for their hashes, on the driver.
    """
    files, layout = ledger.files, ledger.layout
    listed = listed_files(ledger)
    above = {str(parent) for path in listed for parent in PurePosixPath(path).parents}
    unfinished = tuple(f"{directory}/" for directory in ledger.unfinished)
    problems, present = [], set()
    for entry in files.tree(layout.path):
        path, address = entry.path, f"{layout.path}/{entry.path}"
        present.add(path)
        expected = path in above or f"{path}/".startswith(unfinished) or _OTHERS.fullmatch(path)
        if path in listed and entry.kind == "file":
            digest, needs = listed[path]
            if (needs or not needed) and files.sha256(address) != digest:
                problems.append(f"ledger: {address} was changed. Bring it back from a copy")
        elif entry.kind not in ("file", "directory") or not expected:
            problems.append(
                f"ledger: {address} is of no event: it was not put there by anonspark, and you "
                "remove it. Or an older ledger was put back, and you bring the newest one back"
            )
    problems += [
        f"ledger: {layout.path}/{path} is missing. Bring it back from a copy"
        for path in sorted(set(listed) - present)
    ]
    return problems


def require_files(ledger: Ledger) -> None:
    """Check that a ledger has the files that its events list, and no others.

    What releases that no longer count left is not read: it grows with every night, and changes
    nothing.

    Raises
    ------
    DataError
    """
    problems = wrong_files(ledger, needed=True)
    if problems:
        raise DataError(*problems)
