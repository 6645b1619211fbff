"""The commands of ``anonspark ledger``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anonspark.cli.command import Call, Common, command, help_without_command
from anonspark.errors import ConfigurationError, GuaranteeError
from anonspark.foreign_text import visible

if TYPE_CHECKING:
    from anonspark.engine.protocol import Engine
    from anonspark.presentation.terminal import Block
    from anonspark.sharing.ledger.budget import Budget
    from anonspark.sharing.ledger.check import LedgerCheck
    from anonspark.sharing.ledger.events import LedgerRelease
    from anonspark.sharing.ledger.ledger import Ledger

ledger = typer.Typer(
    name="ledger",
    help="Make, show and check a ledger of what was published.",
    invoke_without_command=True,
    rich_markup_mode=None,
)
ledger.callback()(help_without_command)


_SHOWING: tuple[Common, ...] = ("master", "as_json")

Path = Annotated[str, typer.Argument(metavar="PATH", help="Directory of the ledger.")]
Dataset = Annotated[
    str | None, typer.Option(metavar="NAME", help="Name of the data set, of select.")
]
KeyFile = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="File of the key that the ledger was made with."),
]
Coalition = Annotated[
    str | None,
    typer.Option(metavar="NAME,NAME", help="Recipients. Default: all who have a release."),
]
JointK = Annotated[
    int | None, typer.Option("--k", min=2, help="People that every joint class must have.")
]
Colluders = Annotated[
    int | None, typer.Option(min=1, help="How many recipients may collude. Default: all.")
]
ComparesFiles = Annotated[
    bool, typer.Option("--files", help="Also compare with the published releases.")
]
AsNewest = Annotated[
    bool,
    typer.Option(
        "--as-newest",
        help="Accept the ledger as the newest, whatever the file next to its key says.",
    ),
]


def _names(option: str, text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise ConfigurationError(f"{option}: found an empty name. Expected columns. Correct it")
    return names


@ledger.command(
    epilog="Example: anonspark ledger init out/ledger --key-file ledger.key --subject person_id"
)
@command("master")
def init(
    call: Call,
    path: Path,
    key_file: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="Local file of the key. If there is none, a random key is written.",
        ),
    ],
    subject: Annotated[
        str, typer.Option(metavar="COLUMN[,COLUMN...]", help="Columns that identify a person.")
    ],
    record: Annotated[
        str,
        typer.Option(
            metavar="COLUMN[,COLUMN...]",
            help="Columns that identify a record, if people have several.",
        ),
    ] = "",
) -> None:
    """Make a ledger in an empty directory."""
    from pathlib import Path as LocalPath

    from anonspark.sharing.ledger.chain import make_key, read_key
    from anonspark.sharing.ledger.ledger import init_ledger

    columns = _names("--subject", subject)
    records = _names("--record", record) if record else []
    is_new = not LocalPath(key_file).exists()
    key = make_key(key_file) if is_new else read_key(key_file, "--key-file")

    def make(engine: Engine) -> Ledger:
        return init_ledger(engine.files, path, key, columns, records)

    ledger_made = call.work(make, written=(path,))
    lines = [f"Ledger: {ledger_made.layout.path}. Key {key.fingerprint}"]
    if is_new:
        lines.append(
            f"A new key is in {key_file}: keep a copy in another place, because without it "
            f"nothing can be added"
        )
    call.say({}, *lines)


@ledger.command(epilog="Example: anonspark ledger show out/ledger")
@command(*_SHOWING)
def show(
    call: Call,
    path: Path,
    recipient: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this recipient.")
    ] = None,
    dataset: Dataset = None,
) -> None:
    """Show what recipients got, or what was spent of a budget."""
    from anonspark.sharing.ledger.ledger import open_ledger

    def read(engine: Engine) -> tuple[list[Budget], list[LedgerRelease]]:
        budgets = _budgets(engine, path, dataset) if recipient is None else []
        if budgets:
            return budgets, []
        listed = open_ledger(engine.files, path).releases.values()
        return [], [item for item in listed if recipient in (None, item.recipient)]

    budgets, releases = call.work(read, written=(path,))
    if budgets:
        documents = {budget.name: budget.as_dict() for budget in budgets}
        document: Any = documents if dataset is None else documents[dataset]
    else:
        document = list(map(_release_document, releases))
    call.show(document, lambda _: _blocks(budgets, releases))


def _budgets(engine: Engine, path: str, dataset: str | None) -> list[Budget]:
    """Return the budgets of a ledger, none if it lists releases of recipients."""
    from anonspark.config.budget import DATASET
    from anonspark.sharing.ledger.budget import budgets_below, read_budget

    if dataset is not None and DATASET.fullmatch(dataset) is None:
        raise ConfigurationError(
            "--dataset: found what is no name of a data set. Expected letters, digits, dots, "
            "hyphens and underscores. Correct it"
        )
    root = engine.files.qualified(path).rstrip("/")
    paths = [f"{root}/{dataset}"] if dataset is not None else budgets_below(engine.files, root)
    budgets = [budget for path in paths if (budget := read_budget(engine.files, path)) is not None]
    if dataset is not None and not budgets:
        raise ConfigurationError(
            f"--dataset: found no ledger at {paths[0]}. Expected one that anonspark select or run "
            "made. Check path and name"
        )
    return budgets


def _blocks(budgets: list[Budget], releases: list[LedgerRelease]) -> Iterator[Block]:
    from anonspark.sharing.ledger.card import budget_blocks, release_blocks

    for item in budgets:
        yield from budget_blocks(item)
    if not budgets:
        yield from release_blocks(releases, datetime.now(UTC).date())


def _release_document(release: LedgerRelease) -> dict[str, object]:
    unseen = ("number", "previous", "type", "files", "checks")

    def shown(content: Mapping[str, Any]) -> dict[str, object]:
        return {name: value for name, value in content.items() if name not in unseen}

    past = release.is_past(datetime.now(UTC).date())
    state = {"release": release.name, "state": release.state, "time": release.time, "past": past}
    return state | shown(release.content) | {"withdrawn": shown(release.withdrawn)}


@ledger.command(epilog="Example: anonspark ledger check out/ledger --files")
@command(*_SHOWING)
def check(  # noqa: PLR0913 - each parameter is an option of the command
    call: Call,
    path: Path,
    coalition: Coalition = None,
    k: JointK = None,
    recipients: Colluders = None,
    files: ComparesFiles = False,
    key_file: KeyFile = None,
    as_newest: AsNewest = False,
    dataset: Dataset = None,
) -> None:
    """Check the events, files and joint classes of a ledger.

    Of a ledger of budgets, checks entries and sums. The exit code is 4 if a check fails.
    """
    from anonspark.sharing.ledger.card import check_blocks
    from anonspark.sharing.ledger.check import check_ledger, demand_of, required_coalitions
    from anonspark.sharing.ledger.ledger import key_of, open_ledger
    from anonspark.sharing.ledger.lock import locked

    chosen = None if coalition is None else [name.strip() for name in coalition.split(",")]

    def check_files(engine: Engine) -> LedgerCheck | list[Budget]:
        budgets = _budgets(engine, path, dataset)
        if budgets:
            return budgets
        key = key_of(engine.files, path, key_file)
        opened = open_ledger(engine.files, path, key, as_newest=as_newest)
        coalitions = required_coalitions(opened, chosen, recipients)
        checked = check_ledger(engine, opened, coalitions, demand_of(opened, k), with_files=files)
        if as_newest and checked.holds:
            with locked(engine.files, opened.layout, "check"):
                opened.events.remember(older=True)
        return checked

    result = call.work(check_files, written=(path,))
    if isinstance(result, list):
        # Whatever is wrong with one has been raised when it was read.
        entries = "{0.name}: {1:,} entries, which follow from one another"
        call.say(
            {"holds": True, "datasets": [budget.name for budget in result]},
            *(entries.format(budget, len(budget.entries)) for budget in result),
        )
        return

    names = ("holds", "problems", "releases", "coalitions")
    call.show({name: getattr(result, name) for name in names}, lambda _: check_blocks(result))
    if not result.holds:
        raise GuaranteeError("\n".join(result.problems))


@ledger.command(
    epilog="Example: anonspark ledger withdraw out/ledger RELEASE --reason destroyed --by officer"
)
@command("master")
def withdraw(
    call: Call,
    path: Path,
    releases: Annotated[
        list[str],
        typer.Argument(metavar="RELEASE ..", help="Names of releases, as ledger show lists them."),
    ],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Reason why they no longer count.")],
    by: Annotated[str, typer.Option("--by", metavar="TEXT", help="Person who confirms it.")],
    key_file: KeyFile = None,
) -> None:
    """Record that recipients destroyed releases.

    They no longer count.
    """
    from anonspark.sharing.ledger.ledger import withdraw_releases

    def write(engine: Engine) -> None:
        withdraw_releases(engine.files, path, releases, reason=reason, by=by, key_file=key_file)

    call.work(write, written=(path,))
    call.say({}, f"Withdrawn: {', '.join(releases)}")


@ledger.command(epilog="Example: anonspark ledger unlock out/ledger")
@command("master")
def unlock(
    call: Call,
    path: Path,
    yes: Annotated[bool, typer.Option("--yes", help="Remove it without asking.")] = False,
) -> None:
    """Remove the lock of a killed process, after asking."""
    from anonspark.sharing.ledger.ledger import open_ledger
    from anonspark.sharing.ledger.lock import read_lock

    def held(engine: Engine) -> tuple[str, Any]:
        opened = open_ledger(engine.files, path)
        return opened.layout.lock, read_lock(engine.files, opened.layout)

    at, owner = call.work(held, written=(path,))
    if owner is None:
        call.say({}, f"No process holds {at}")
        return
    holder = (
        f"run {owner.get('run_id', 'of an unknown id')} on host {owner.get('host', 'unknown')}, "
        f"since {owner.get('time', 'an unknown time')}"
    )
    if not yes and not typer.confirm(visible(f"{at} is held by {holder}. Is it dead for sure?")):
        return
    call.work(lambda engine: engine.files.delete(at), written=(path,))
    call.say({}, f"Removed {at}")
