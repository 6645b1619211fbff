"""A plan carried out: all of its releases are made, proven together, and published, or none is."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from anonspark._version import __version__
from anonspark.core.columns import ATOM, SUBJECT
from anonspark.core.run_ids import require_run_id
from anonspark.engine.protocol import Engine, Table
from anonspark.errors import (
    ConfigurationError,
    DataError,
    GuaranteeError,
    PublishingError,
)
from anonspark.layers.prepare.snapshot import Snapshot
from anonspark.layers.publish.staging import Staging, find_resumable, open_staging
from anonspark.pipeline.context import Release, Request, RunContext, released_before
from anonspark.pipeline.run import (
    StagedRelease,
    append_figures,
    forget_staging,
    staged_release,
)
from anonspark.pipeline.warnings.release_warning import log_warnings, seed_warnings
from anonspark.progress import InnerProgress, Progress
from anonspark.redaction import Redacted
from anonspark.release.conditions import stated_conditions
from anonspark.sharing.ledger.chain import Key, read_key
from anonspark.sharing.ledger.check import members_of, require_files
from anonspark.sharing.ledger.events import BASE, FAILED, PLANNED, PREPARED, PUBLISHED, REFUSED
from anonspark.sharing.ledger.joint_classes import MembersOf, ReleaseFiles, keep, read_kept
from anonspark.sharing.ledger.ledger import Ledger, find_ledger, open_ledger
from anonspark.sharing.ledger.lock import locked, release_name
from anonspark.sharing.recipients.joint_check import (
    check_jointly,
    coalitions_of,
    require_joint_classes,
    requires_check,
)
from anonspark.sharing.recipients.members import (
    StagedMembers,
    is_published,
    require_known_releases,
    require_presence,
    settle,
    stage_members,
)
from anonspark.sharing.recipients.nested import NestedMaker
from anonspark.sharing.recipients.other_strategy import OtherStrategy
from anonspark.sharing.recipients.plan import Plan, Recipient
from anonspark.sharing.recipients.source import (
    FrozenSource,
    read_source,
    require_places,
    require_rows,
    rows_of,
    source_fingerprint,
)
from anonspark.sharing.recipients.strategy import (
    Independent,
    ReleaseSource,
    Strategy,
    prepare_source,
)

_FROZEN = "frozen"


@dataclass(frozen=True, repr=False)
class Distribution(Redacted):
    """The result of a plan.

    ``coalitions`` are the findings of the joint check, see docs/recipients.md. ``other_strategy``
    is the ``gcp`` of each release made the other way, or None if it cannot be, and empty unless the
    plan asks for it. ``withheld`` counts records by recipient, for whoever carries the plan out:
    releases with a ledger do not have it.
    """

    run_id: str
    releases: dict[str, Release]
    coalitions: list[dict[str, Any]]
    other_strategy: dict[str, float | None] = field(default_factory=dict)
    withheld: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, object]:
        """Return the fields as JSON values."""
        releases = {
            name: {"path": release.path, "summary": release.summary}
            for name, release in self.releases.items()
        }
        return {
            "run_id": self.run_id,
            "releases": releases,
            "coalitions": self.coalitions,
            "other_strategy_gcp": self.other_strategy,
            "withheld": self.withheld,
        }


@dataclass(frozen=True)
class _Prepared:
    """A release that is ready, or published by an earlier attempt.

    ``name`` is that in the ledger. ``members`` is None if the members of classes are not needed,
    ``staged`` if the release is published, ``added`` if the ledger has its members.
    """

    name: str
    recipient: Recipient
    source: ReleaseSource
    members: MembersOf | None
    staged: StagedRelease | None
    added: StagedMembers | None
    published: Release


def distribute(
    engine: Engine,
    plan: Plan,
    *,
    run_id: str | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    table: Table | None = None,
) -> Distribution:
    """Make a release for each recipient of a plan, prove them together, and publish them.

    A run without an id gets a random one. ``resume`` continues a run that was killed, as
    :func:`anonspark.pipeline.run.run`. ``table`` is the source, or None for the base's input.
    Raises ConfigurationError, DataError, GuaranteeError or PublishingError. Then nothing of the
    plan is published, unless the message says that some releases are.

    The source is read once (:func:`~anonspark.sharing.recipients.source.freeze`). Then each release
    costs as much as a run that reads the private copy, with a shuffle of its members. The joint
    check costs a shuffle of all members and one for each coalition.
    """
    files = engine.files
    staging_path = plan.base.execution.staging_path
    if run_id is None and resume:
        run_id = find_resumable(files, plan.output, staging_path)
    run_id = require_run_id(run_id or uuid.uuid4().hex[:12])
    progress = progress or Progress()
    progress.run_id = run_id
    require_places(files, plan)
    log_warnings(seed_warnings(plan.base))
    key = _key_of(plan, run_id)
    ledger = None
    if plan.file.ledger is not None:
        layout, head = find_ledger(files, plan.file.ledger.path, key)
        _require_subject(plan, head)
    with ExitStack() as stack:
        if plan.file.ledger is not None:
            stack.enter_context(locked(files, layout, run_id))
            ledger = open_ledger(files, plan.file.ledger.path, key)
            require_files(ledger)
            ledger.events.remember()
            require_known_releases(files, plan, ledger)
            settle(files, ledger, staging_path, resumed=run_id if resume else None)
        staging = stack.enter_context(
            open_staging(files, plan.output, run_id, staging_path=staging_path, resume=resume)
        )
        stack.enter_context(engine.running(run_id, progress))
        carrying = _PlanRun(engine, plan, run_id, resume, progress, key, ledger, staging, stack)
        return carrying.out(table)


def _key_of(plan: Plan, run_id: str) -> Key:
    """Return the ledger's key, or one for this run alone."""
    if plan.file.ledger is not None:
        return read_key(plan.file.ledger.key_file)
    seed = str(plan.base.execution.seed).encode()
    return Key(hashlib.blake2b(run_id.encode(), key=hashlib.blake2b(seed).digest()).digest())


def _require_subject(plan: Plan, head: Mapping[str, Any]) -> None:
    """Refuse a plan that identifies people or records by other columns than the ledger."""
    for key, names, in_ledger in (
        ("subject", plan.file.subject, head["subject"]),
        ("record", plan.file.record, head.get("record", [])),
    ):
        if list(names) != in_ledger:
            raise ConfigurationError(
                f"{key}: found {', '.join(names) or 'none'}. The ledger has "
                f"{', '.join(in_ledger) or 'none'}. Expected the same columns in the same order. "
                "Correct it"
            )


@contextmanager
def _about(recipient: Recipient) -> Iterator[None]:
    """Name the release of errors."""
    key = f"recipients.{recipient.name}"
    try:
        yield
    except (ConfigurationError, DataError) as error:
        raise type(error)(*(f"{key}: {problem}" for problem in error.problems)) from error
    except GuaranteeError as error:
        raise GuaranteeError(f"{key}: {error}") from error


@dataclass
class _PlanRun:
    """A plan while it is carried out. Parameters as of :func:`distribute`."""

    engine: Engine
    plan: Plan
    run_id: str
    resume: bool
    progress: Progress
    key: Key
    ledger: Ledger | None
    staging: Staging
    stack: ExitStack
    frozen: FrozenSource = field(init=False)
    source: str = ""
    subject_types: list[str] = field(default_factory=list)
    other: dict[str, float | None] = field(default_factory=dict)

    def out(self, table: Table | None) -> Distribution:
        """Carry out the plan: freeze the source, make and check all releases, and publish them."""
        identity = {"version": __version__, "plan": self.plan.fingerprint}
        self.staging.state.require_identity(identity)
        coalitions = coalitions_of(self.plan, self.ledger.counted if self.ledger else [])
        with self.progress.stage("freeze the source"):
            frozen = self.frozen = self._read_source(table)
            # Equal fingerprints of two nights would show that no person came or left.
            people = self.plan.file.subject if self.ledger is None else ()
            self.source = source_fingerprint(frozen, people, self.run_id)
            strata = frozen.strata()
        require_rows(self.plan, [rows_of(strata, bit) for bit in range(len(self.plan.recipients))])
        strategy = self._strategy(frozen, strata)
        prepared = [
            self._make(index, recipient, strategy.source(index))
            for index, recipient in enumerate(self.plan.recipients)
        ]
        with self.progress.stage("joint check"):
            checks = self._check(prepared, coalitions)
        if self.plan.file.evaluate.compare_strategies:
            other = OtherStrategy(
                self.engine, self.plan, self.staging, self.progress, self.key, self.run_id
            )
            self.other = other.losses(frozen, strata)
        self._plan_in_ledger(prepared, strategy, checks)
        withheld = {release.recipient.name: release.source.rows_withheld for release in prepared}
        return Distribution(self.run_id, self._publish(prepared), checks, self.other, withheld)

    def _read_source(self, table: Table | None) -> FrozenSource:
        """Return the frozen source, that of an earlier attempt if there is one."""
        state, path = self.staging.state, f"{self.staging.paths.shared}/{_FROZEN}"
        text = state.facts_of(_FROZEN)
        if text is None:
            frozen = read_source(self.engine, self.plan, self.key, path, table)
        else:
            frozen = FrozenSource.again(self.engine, path, json.loads(text))
        self.subject_types = list(frozen.subject_types)
        self._require_subject_types()
        if text is None:
            state.keep(_FROZEN, json.dumps(frozen.as_dict()))
        return frozen

    def _require_subject_types(self) -> None:
        """Raise DataError if the ledger has people of other types, who would not be recognized."""
        types = None if self.ledger is None else self.ledger.subject_types
        if types is not None and types != self.subject_types:
            raise DataError(
                f"subject: found columns of type {', '.join(self.subject_types)}. In the ledger "
                f"they are {', '.join(types)}, whose values have other texts, so no person would "
                "be recognized. Bring the columns to the types of before"
            )

    def _strategy(self, frozen: FrozenSource, strata: Mapping[int, int]) -> Strategy:
        """Return the strategy of the plan."""
        if self.plan.file.strategy == "independent":
            return Independent(frozen, strata)
        maker = NestedMaker(
            self.engine,
            self.plan,
            self.staging,
            self.progress,
            self.key,
            self.ledger,
            self.run_id,
        )
        return maker.make(frozen, strata)

    def _make(self, index: int, recipient: Recipient, source: ReleaseSource) -> _Prepared:
        """Make a release that is ready to publish, unless an earlier attempt has published it."""
        configuration = recipient.configuration
        name = release_name(recipient.name, self.run_id)
        earlier = released_before(self.engine, configuration, self.run_id)
        request = self._request(recipient, source)
        inner = InnerProgress(run_id=self.run_id, outer=self.progress)
        context = RunContext(
            self.engine,
            configuration,
            self.run_id,
            datetime.now(UTC),
            inner,
            "release",
            request,
        )
        if earlier is not None:
            forget_staging(context)
            members = self._members_before(name) if self._asks_for_members else None
            return _Prepared(name, recipient, source, members, None, None, earlier)
        number = f"{index + 1} of {len(self.plan.recipients)}"
        with self.progress.stage(f"release {number}: {recipient.name}", rows=source.rows_requested):
            directory = f"{self.staging.records}/{recipient.name}"
            with _about(recipient):
                snapshot = prepare_source(self.engine, configuration, directory, source)
                staged = self._staged(context, snapshot, source)
            require_presence(staged, recipient, self.frozen)
            if not self._asks_for_members:
                return _Prepared(name, recipient, source, None, staged, None, staged.release)
            staged_members = self._keep_members(staged, recipient, name)
        members = staged_members.members(self.engine)
        return _Prepared(name, recipient, source, members, staged, staged_members, staged.release)

    @property
    def _asks_for_members(self) -> bool:
        """Whether a ledger or the joint check has to know who is in which class."""
        return self.ledger is not None or requires_check(self.plan)

    def _staged(
        self, context: RunContext, snapshot: Snapshot, source: ReleaseSource
    ) -> StagedRelease:
        """Make a release that is not published yet."""
        return self.stack.enter_context(
            staged_release(
                context,
                snapshot=snapshot,
                resume=self.resume,
                make_model=source.make_model,
            )
        )

    def _keep_members(
        self, staged: StagedRelease, recipient: Recipient, name: str
    ) -> StagedMembers:
        """Stage the members of a release's classes, and note that they are complete."""
        path = f"{self.staging.paths.shared}/members-{recipient.name}"
        self.staging.state.forget(f"members-{recipient.name}")
        self.engine.files.delete(path)
        staged_members = stage_members(
            staged.rounds,
            recipient.configuration,
            staged.form.columns,
            self.key,
            path,
            (name, recipient.name),
        )
        self.staging.state.keep(f"members-{recipient.name}", json.dumps(staged_members.as_dict()))
        return staged_members

    def _members_before(self, name: str) -> MembersOf:
        """Return the members of a release that an earlier attempt has published."""
        if self.ledger is not None and name in self.ledger.releases:
            return members_of(self.engine, self.ledger, self.ledger.releases[name])
        recipient = name.removesuffix(f"-{self.run_id}")
        text = self.staging.state.facts_of(f"members-{recipient}")
        if text is None:
            raise PublishingError(
                f"run id: {self.run_id} has published a release of {recipient} before, and what it "
                "gave is not known any more. Expected a new run id. Choose another"
            )
        path = f"{self.staging.paths.shared}/members-{recipient}"
        return StagedMembers.again(json.loads(text), name, recipient, path).members(self.engine)

    def _request(self, recipient: Recipient, source: ReleaseSource) -> Request:
        """Describe in the manifest of a release which recipient and plan it was made for."""
        request, demand = recipient.request, self.plan.demand
        content = {
            "name": recipient.name,
            "purpose": request.purpose,
            "approved": request.approved,
            "until": request.until,
            "run_id": self.run_id,
            "strategy": self.plan.file.strategy,
            "collusion": {
                "k": demand.k,
                # Without attributes that the recipient does not get.
                "l_diversity": {
                    name: number
                    for name, number in demand.diversity.items()
                    if name in recipient.configuration.attributes
                },
            },
            "where": stated_conditions(recipient.conditions),
            "source_fingerprint": self.source,
        }
        return Request(
            content, source.rows_requested, source.rows_withheld, self.ledger is not None
        )

    def _check(
        self, prepared: Sequence[_Prepared], coalitions: Sequence[Sequence[str]]
    ) -> list[dict[str, Any]]:
        """Check all coalitions, and return the figures of each as the ledger records them.

        Earlier releases that count are checked as well. One of the same name is of a killed attempt
        of this run and would count twice. A breach is recorded in the ledger before it is refused.
        """
        members = [release.members for release in prepared if release.members is not None]
        if self.ledger is not None:
            names = {release.name for release in prepared}
            earlier = [release for release in self.ledger.counted if release.name not in names]
            members[:0] = [members_of(self.engine, self.ledger, release) for release in earlier]
        checks = check_jointly(members, self.plan, coalitions)
        try:
            require_joint_classes(checks)
        except GuaranteeError:
            if self.ledger is not None:
                self.ledger.events.append(
                    REFUSED,
                    {
                        "run_id": self.run_id,
                        "recipients": self.plan.names,
                        "plan_fingerprint": self.plan.fingerprint,
                        "checks": checks,
                    },
                )
            raise
        return checks

    def _plan_in_ledger(
        self, prepared: Sequence[_Prepared], strategy: Strategy, checks: Sequence[dict[str, Any]]
    ) -> None:
        """Record all releases in the ledger before any of them is published."""
        if self.ledger is None:
            return
        counted = {release.name for release in self.ledger.counted}
        planned = [
            release
            for release in prepared
            if release.added is not None and release.name not in counted
        ]
        if not planned:
            return
        with self.progress.stage("write into the ledger"):
            atoms = self._new_atoms(strategy, self.ledger)
            self._prepare_ledger([release.name for release in planned], atoms, self.ledger)
            # Atoms first: a release must not be made of atoms that the ledger lacks.
            self._keep_atoms(atoms, self.ledger)
            for release in planned:
                self.ledger.events.append(PLANNED, self._event(release, checks, self.ledger))

    def _prepare_ledger(self, releases: Sequence[str], atoms: Table | None, ledger: Ledger) -> None:
        """Announce what is going to be written: what a killed process leaves has its event."""
        layout = ledger.layout
        directories = [directory for name in releases for directory in layout.of_release(name)]
        if atoms is not None:
            directories.append(layout.of_base(ledger.generation + 1))
        if not ledger.unfinished.issuperset(directories):
            ledger.events.append(PREPARED, {"run_id": self.run_id, "directories": directories})

    def _new_atoms(self, strategy: Strategy, ledger: Ledger) -> Table | None:
        """Return the base partition, or None if an earlier attempt has written the same."""
        if strategy.atoms is None:
            return None
        atoms = strategy.atoms.select([SUBJECT, ATOM])
        last = ledger.last_base
        if last is not None and last.content["run_id"] == self.run_id:
            stored = read_kept(self.engine, ledger.layout.base(ledger.generation), [SUBJECT, ATOM])
            if not any(a.except_all(b).count() for a, b in ((atoms, stored), (stored, atoms))):
                return None
        return atoms

    def _keep_atoms(self, atoms: Table | None, ledger: Ledger) -> None:
        """Write the base partition into the ledger."""
        if atoms is None:
            return
        generation = ledger.generation + 1
        files = keep(self.engine, atoms, ledger.layout.base(generation))
        ledger.events.append(
            BASE,
            {
                "run_id": self.run_id,
                "generation": generation,
                "atoms": atoms.aggregate([ATOM]).count(),
                "persons": sum(file.rows or 0 for file in files),
                "files": [file.as_dict() for file in files],
            },
        )

    def _event(
        self, ready: _Prepared, checks: Sequence[dict[str, Any]], ledger: Ledger
    ) -> dict[str, Any]:
        """Return the event of a release that will be published, and write its files."""
        if ready.added is None or ready.staged is None or ready.members is None:
            raise ValueError("a release without members is planned")
        files = ReleaseFiles(
            keep(self.engine, ready.members.members, ledger.layout.members(ready.name)),
            keep(self.engine, ready.added.classes(self.engine), ledger.layout.classes(ready.name)),
        )
        request, configuration = ready.recipient.request, ready.recipient.configuration
        summary = ready.published.summary
        return {
            "run_id": self.run_id,
            "recipient": ready.recipient.name,
            "release": ready.name,
            "path": self.engine.files.qualified(configuration.output.path).rstrip("/"),
            "format": configuration.output.format,
            "approved": request.approved,
            "until": request.until,
            "purpose": request.purpose,
            "public": request.public,
            "columns": list(request.columns),
            "quasi_identifiers": configuration.quasi_identifiers,
            "published_columns": ready.added.columns,
            "sensitive": ready.added.sensitive,
            "subject_types": self.subject_types,
            "where": stated_conditions(ready.recipient.conditions),
            "privacy": configuration.public_dict()["privacy"],
            "strategy": self.plan.file.strategy,
            "collusion": self.plan.file.collusion.model_dump(mode="json")
            | {"k": self.plan.demand.k},
            "rows": summary["rows_published"],
            "rows_requested": ready.source.rows_requested,
            "rows_withheld": ready.source.rows_withheld,
            "classes": summary["published_classes"],
            "gcp": summary["gcp"],
            **(
                {"other_strategy_gcp": self.other[ready.recipient.name]}
                if ready.recipient.name in self.other
                else {}
            ),
            "plan_fingerprint": self.plan.fingerprint,
            "configuration_fingerprint": summary["configuration_fingerprint"],
            "source_fingerprint": self.source,
            "output_fingerprint": summary["output_fingerprint"],
            "members_fingerprint": files.fingerprint,
            "files": {
                "members": [file.as_dict() for file in files.members],
                "classes": [file.as_dict() for file in files.classes],
            },
            "checks": [row for row in checks if ready.recipient.name in row["recipients"]],
        }

    def _publish(self, prepared: Sequence[_Prepared]) -> dict[str, Release]:
        """Publish one release after the other."""
        published: dict[str, Release] = {}
        try:
            for release in prepared:
                if release.staged is not None:
                    with self.progress.stage(f"publish {release.recipient.name}"):
                        release.staged.publish()
                        append_figures(release.staged.context, release.published)
                    self._record_end(PUBLISHED, release)
                published[release.recipient.name] = release.published
        except BaseException:
            if not self.resume:
                for release in prepared:
                    if release.recipient.name not in published:
                        self._record_end(FAILED, release)
            raise
        return published

    def _record_end(self, event_type: str, ready: _Prepared) -> None:
        """Write the end of a planned release into the ledger."""
        if self.ledger is None or ready.name not in self.ledger.releases:
            return
        release = self.ledger.releases[ready.name]
        if release.state == "planned":
            # It may be published although it failed, as when its figures were not appended.
            event_type = PUBLISHED if is_published(self.engine.files, release) else event_type
            content = {
                "run_id": self.run_id,
                "recipient": release.recipient,
                "release": release.name,
            }
            self.ledger.events.append(event_type, content)
