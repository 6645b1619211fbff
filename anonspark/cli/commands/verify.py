"""The command ``anonspark verify``."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from anonspark.cli.command import WITH_ENGINE, Call, Details, command, loads
from anonspark.errors import ConfigurationError

if TYPE_CHECKING:
    from anonspark.config import Configuration
    from anonspark.engine.protocol import Engine
    from anonspark.presentation.terminal import Block
    from anonspark.sharing.pairs.releases import JointVerification
    from anonspark.verification.result import Verification


Original = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="Table that the release was made of. Also checks truth, and attacks by linkage.",
    ),
]
Population = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="Table of people with the quasi-identifiers, which an attacker may have. Also attacks "
        "by linkage with it, and measures the journalist's risk.",
    ),
]
Signers = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Refuse a release that none of them signed: a line for each, with name and public "
        "key (ALLOWED SIGNERS in ssh-keygen(1)).",
    ),
]
RequiredK = Annotated[
    int | None, typer.Option(help="k that a table without manifest must have. Default: 2.")
]
RequiredL = Annotated[
    int | None,
    typer.Option(help="Different values that each --sensitive must have in every class."),
]
RequiredT = Annotated[
    float | None,
    typer.Option(
        help="Largest distance of the values of each --sensitive in a class from those of all "
        "records. Ordered distance, for texts the equal one."
    ),
]
SuppressedText = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help="Text of suppressed values, such as '*'. Records with all quasi-identifiers "
        "suppressed are left out and counted.",
    ),
]
OtherReleases = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        metavar="PUBLISHED",
        help="Another release about the same people. Attacks both together. Can be repeated.",
    ),
]
JointK = Annotated[
    int | None,
    typer.Option(help="With --with: people who should stay alike in both releases together."),
]
SamePeople = Annotated[
    bool,
    typer.Option("--same-people", help="With --with: all releases are about the same people."),
]
Inside = Annotated[
    bool,
    typer.Option(
        "--inside",
        help="With --with: the smaller release has a part of the larger one's people.",
    ),
]
NamesWithoutManifest = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Column of a table without manifest. Can be repeated."),
]


@command(*WITH_ENGINE)
def verify(  # noqa: PLR0913 - each parameter is an option of the command
    call: Call,
    published: Annotated[
        str,
        typer.Argument(
            metavar="PUBLISHED", help="Directory of a release, or a table of another tool."
        ),
    ],
    config: Annotated[
        str | None,
        typer.Option(help="Require this configuration instead of the manifest's promise."),
    ] = None,
    original: Original = None,
    population: Population = None,
    signers: Signers = None,
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="Table that should have the same records.")
    ] = None,
    quasi_identifier: NamesWithoutManifest = None,
    sensitive: NamesWithoutManifest = None,
    k: RequiredK = None,
    l: RequiredL = None,  # noqa: E741
    t: RequiredT = None,
    unit: NamesWithoutManifest = None,
    suppressed: SuppressedText = None,
    others: OtherReleases = None,
    joint_k: JointK = None,
    same_people: SamePeople = False,
    inside: Inside = False,
    details: Details = False,
) -> None:
    """Verify a release from its own files.

    Relies on nothing that the run reported. The exit code is 4 if a promise does not hold.
    """
    from anonspark.sharing.pairs.relation import statement_of
    from anonspark.sharing.pairs.releases import Attack
    from anonspark.verification.claims.roles import Roles, required_roles

    columns = tuple(quasi_identifier or ()), tuple(sensitive or ())
    table_roles = Roles(*columns, k, l, t, tuple(unit or ()), suppressed)
    roles = required_roles(table_roles, None if config is None else "--config")
    relation = statement_of(same_people=same_people, inside=inside)
    if not others and (same_people or inside or joint_k is not None):
        raise ConfigurationError(
            "--joint-k, --same-people, --inside: found without --with, which names the release to "
            "attack with. Add it, or leave them out"
        )
    if others and table is not None:
        raise ConfigurationError("--table: found with --with. Verify each release by itself")
    attack = Attack(relation, joint_k, original, population, signers)

    def prove(
        engine: Engine, configuration: Configuration | None = None
    ) -> Verification | JointVerification:
        from anonspark.sharing.pairs.releases import audit_releases
        from anonspark.verification.audit import audit_release

        if others:
            paths = (published, *others)
            return audit_releases(engine, paths, configuration, roles=roles, attack=attack)
        tables = {"original": original, "population": population, "table": table}
        return audit_release(
            engine, published, configuration, roles=roles, signers=signers, **tables
        )

    paths = (published, *(others or ()), original, population)
    if config is None:
        result = call.work(prove, *paths, stage="verify")
    else:
        load = loads(config, None, needs_seed=False)
        result = call.load(config, load, prove, lambda _: call.work_on(*paths), stage="verify")
    call.show(result, lambda shown: _blocks(shown, details=details), is_answer=False)
    for warning in result.warnings:
        logging.getLogger("anonspark").warning("%s", warning)
    result.require()


def _blocks(result: Verification | JointVerification, *, details: bool) -> Iterator[Block]:
    """Show one release, or each of several and then every two."""
    from anonspark.presentation.blocks import Text
    from anonspark.presentation.verification import verification_card
    from anonspark.sharing.pairs.card import joint_card
    from anonspark.sharing.pairs.releases import JointVerification

    if isinstance(result, JointVerification):
        for proof in result.releases:
            yield verification_card(proof.release, proof, details=details)
        card = joint_card(result)
    else:
        card = verification_card(result.release, result, details=details)
    yield card
    if card.tables:
        # Once more where the eye is, for the tables are long.
        yield Text(card.verdict, card.tone)
