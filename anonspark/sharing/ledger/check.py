"""Check that a ledger is unchanged: events, files, and joint classes of coalitions."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb
from pathlib import PurePosixPath
from typing import Any

from anonspark.core.columns import SUBJECT
from anonspark.engine.protocol import Engine
from anonspark.errors import ConfigurationError, DataError
from anonspark.release.manifest import read_manifest
from anonspark.sharing.ledger.events import BASE, LedgerRelease
from anonspark.sharing.ledger.joint_classes import (
    CLASS,
    RECORDS,
    Demand,
    MembersOf,
    Signatures,
    members_schema,
    read_kept,
)
from anonspark.sharing.ledger.ledger import Ledger

# With events that come while others are read, drafts by killed processes, and the checksums of
# Hadoop's local file system.
_OTHERS = re.compile(
    r"lock|ledger\.json|events|members|classes|base|(?:.*/)?\.[^/]*\.crc|"
    r"events/\d{8}\.json|(?:events/\.\d{8}\.json|\.lock)\.[0-9a-f]{16}|"
    r"\.ledger\.json\.writing"
)


def listed_files(ledger: Ledger) -> dict[str, tuple[str, bool]]:
    """Return the SHA-256 of each file that events list, by its path in the ledger.

    Also returns whether a plan may need it: files of releases that count, of the newest base
    partition, and of the one before, from which a run continues.
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
    """List the faults of a ledger's files, each with its path and a remedy.

    With ``needed`` only files that a plan can need are read, but the names of all are still
    compared. The driver reads files for their hashes.
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
    """Raise DataError unless a ledger has exactly the files that its events list.

    The files of releases that no longer count are not read: they grow with every night, and change
    nothing.
    """
    problems = wrong_files(ledger, needed=True)
    if problems:
        raise DataError(*problems)


MOST_COALITIONS = 1000
"""Coalitions that one plan checks at most."""


def list_coalitions(
    recipients: Collection[str],
    *,
    public: Collection[str],
    together: Sequence[Sequence[str]],
    size: int | None,
    of_plan: Collection[str],
) -> list[tuple[str, ...]]:
    """Return the largest coalitions to check. What holds for them holds for all smaller ones.

    ``recipients`` have a release that counts, or will get one. Releases of ``public`` recipients
    are open to all, so these are in every coalition. ``together`` are groups that always collude,
    and ``size`` is how large a coalition may be, or None for all. Only coalitions with a recipient
    ``of_plan``, who gets a release, can have changed. Members are in the order of their names.
    Raises ConfigurationError for more than :data:`MOST_COALITIONS`.

    >>> list_coalitions("abc", public=[], together=[], size=2, of_plan="a")
    [('a', 'b'), ('a', 'c')]
    """
    public_names = {name for name in recipients if name in public}
    group_of = {name: frozenset(group) for group in together for name in group}
    units = sorted(
        {
            tuple(sorted(group_of.get(name, frozenset([name])) & set(recipients)))
            for name in recipients
            if name not in public_names
        }
    )
    if size is None or len(units) <= size:
        return [tuple(sorted({*public_names, *(name for unit in units for name in unit)}))]
    # If the plan has open data, every recipient gets something new.
    new = units if public_names & {*of_plan} else [unit for unit in units if {*unit} & {*of_plan}]
    number = comb(len(units), size) - comb(len(units) - len(new), size)
    if number > MOST_COALITIONS:
        raise ConfigurationError(
            f"collusion.recipients: {size} of {len(units)} recipients make {number:,} coalitions. "
            f"Expected {MOST_COALITIONS:,} at most. List those who are one in collusion.together, "
            "or set it to all"
        )
    return [
        tuple(sorted({*public_names, *(name for unit in chosen for name in unit)}))
        for chosen in combinations(units, size)
        if any(unit in new for unit in chosen)
    ]


_COUNTED = "found"


@dataclass
class LedgerCheck:
    """The findings about a ledger.

    ``problems`` are what is not as it was, or does not hold, ``releases`` counts those whose files
    were read, ``coalitions`` are rows of
    :meth:`anonspark.sharing.ledger.joint_classes.Signatures.check`.

    >>> LedgerCheck(["ledger: a file is missing"]).holds
    False
    """

    problems: list[str] = field(default_factory=list)
    releases: int = 0
    coalitions: list[dict[str, object]] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def demand_of(ledger: Ledger, k: int | None = None) -> Demand:
    """Return what the newest plan demanded of joint classes, with another k if one is given."""
    newest = max(ledger.counted, key=lambda release: release.number, default=None)
    if newest is None:
        return Demand(k or 1, {})
    collusion = newest.content["collusion"]
    diversity = {criterion["attribute"]: criterion["l"] for criterion in collusion["l_diversity"]}
    return Demand(k or collusion["k"], diversity)


def required_coalitions(
    ledger: Ledger, chosen: Sequence[str] | None = None, size: int | None = None
) -> list[tuple[str, ...]]:
    """Return the coalitions of a ledger: a named one, or all of a size.

    Raises ConfigurationError if a named recipient has no release, or they are too many.
    """
    names = {release.recipient for release in ledger.counted}
    public = {release.recipient for release in ledger.counted if release.public}
    if chosen is not None:
        strangers = sorted(set(chosen) - names)
        if strangers:
            raise ConfigurationError(
                f"--coalition: nothing that counts was given to {', '.join(strangers)}. Expected "
                f"some of {', '.join(sorted(names)) or 'no one'}. Correct it"
            )
        return [tuple(sorted({*chosen, *public}))]
    newest = max(ledger.counted, key=lambda release: release.number, default=None)
    together = [] if newest is None else newest.content["collusion"]["together"]
    return list_coalitions(names, public=public, together=together, size=size, of_plan=names)


def members_of(engine: Engine, ledger: Ledger, release: LedgerRelease) -> MembersOf:
    """Return who is in which class of a release of a ledger. Lazy."""
    columns = members_schema(len(release.sensitive)).names
    table = read_kept(engine, ledger.layout.members(release.name), columns)
    return MembersOf(release.name, release.recipient, table, release.sensitive)


def check_ledger(
    engine: Engine,
    ledger: Ledger,
    coalitions: Sequence[Sequence[str]],
    demand: Demand,
    *,
    with_files: bool = False,
) -> LedgerCheck:
    """Check the files of every release that counts, and the joint classes of coalitions.

    The chain of the ledger's events is sound. ``with_files`` also compares the class tables with
    the published releases. The driver reads all files of the ledger for their hashes. Two shuffles
    of the classes of each release, then as
    :meth:`anonspark.sharing.ledger.joint_classes.Signatures.check`.
    """
    result = LedgerCheck(wrong_files(ledger), len(ledger.counted))
    for release in () if result.problems else ledger.counted:
        wrong = _other_counts(engine, ledger, release)
        if not wrong and with_files:
            wrong = _other_release(engine, ledger, release)
        result.problems += wrong
    if result.problems or not ledger.counted:
        return result
    signatures = Signatures.of(
        [members_of(engine, ledger, release) for release in ledger.counted],
        list(demand.diversity),
        repeated=bool(ledger.record),
    )
    try:
        for coalition in coalitions:
            result.coalitions += signatures.check(coalition, demand)
    finally:
        signatures.release()
    result.problems += [describe_breach(row) for row in result.coalitions if not row["holds"]]
    return result


def describe_breach(row: Mapping[str, Any]) -> str:
    """Describe in a line what does not hold for a coalition."""
    named = ", ".join(row["recipients"])
    if row["attribute"] is None:
        return (
            f"joint check: {row['persons_below']:,} of {row['persons']:,} persons are in joint "
            f"classes of fewer than collusion.k = {row['required']} for {{{named}}} (the smallest: "
            f"{row['smallest']})"
        )
    return (
        f"joint check: {row['persons_below']:,} of {row['persons']:,} persons are in joint classes "
        f"with fewer than {row['required_l']} values of {row['attribute']!r} for {{{named}}} (the "
        f"fewest: {row['smallest_l']})"
    )


def _other_counts(engine: Engine, ledger: Ledger, release: LedgerRelease) -> list[str]:
    """Return a problem if the members of classes are not those that the class table counts."""
    members = read_kept(engine, ledger.layout.members(release.name), [SUBJECT, CLASS])
    counted = members.aggregate([CLASS], count=_COUNTED)
    classes = read_kept(engine, ledger.layout.classes(release.name), [CLASS, RECORDS])
    counts = counted.union(classes.select({CLASS: CLASS, _COUNTED: RECORDS}))
    pairs = counts.aggregate([CLASS, _COUNTED], count="tables")
    differing = sum(
        row["number"]
        for row in pairs.aggregate(["tables"], count="number").collect().to_pylist()
        if row["tables"] != 2
    )
    if differing:
        return [
            f"ledger: the members of {release.name} are not those that its class table counts. "
            "Bring both back from a copy"
        ]
    return []


def _other_release(engine: Engine, ledger: Ledger, release: LedgerRelease) -> list[str]:
    """Return a problem if a class table does not match the published release."""
    path = release.content["path"]
    if not ledger.files.exists(path):
        return [
            f"ledger: release {release.name} is not at {path} any more. If its recipient has it "
            "still, bring it back there, else withdraw it"
        ]
    latest = read_manifest(ledger.files, path)
    manifest = latest.document
    others = [peer for peer in ledger.counted if peer.content["path"] == path]
    if latest.run_id in {peer.content["run_id"] for peer in others} - {release.content["run_id"]}:
        # A later release was published at the same path.
        return []
    names = list(release.content["published_columns"])
    data = engine.published(f"{path}/data", str(release.content["format"])).select(names)
    published = data.with_hashes({CLASS: names}).aggregate([CLASS], count=RECORDS)
    classes = read_kept(engine, ledger.layout.classes(release.name), [CLASS, RECORDS])
    pairs = published.union(classes).aggregate([CLASS, RECORDS], count="tables")
    odd = [
        row["tables"]
        for row in pairs.aggregate(["tables"], count="number").collect().to_pylist()
        if row["tables"] != 2
    ]
    if odd or manifest["fingerprints"]["output"] != release.content["output_fingerprint"]:
        return [
            f"ledger: what is published at {path} is not what was given as {release.name}. See "
            "which of the two was changed"
        ]
    return []
