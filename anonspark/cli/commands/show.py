"""The command ``anonspark show``."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from anonspark.cli.frame import WITH_ENGINE, Call, command
from anonspark.cli.printing import print_text
from anonspark.errors import DataError

if TYPE_CHECKING:
    from anonspark.engine.protocol import Engine
    from anonspark.presentation.terminal import Block
    from anonspark.release.manifest import Manifest
    from anonspark.verification.result import Verification


@command(*WITH_ENGINE)
def show(
    call: Call,
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="Directory of a release.")],
    yaml: Annotated[
        bool,
        typer.Option("--yaml", help="Print only the configuration, and verify nothing."),
    ] = False,
) -> None:
    """Show what is proven of a release, and how to make it again.

    Verifies the release from its own files, and lists what is only claimed. The exit code is 4 if a
    promise does not hold.
    """
    from anonspark.release.again import configuration_text, has_default_seed
    from anonspark.release.manifest import read_manifest
    from anonspark.verification.audit import audit_release

    def read(engine: Engine) -> tuple[Manifest, Verification | None]:
        manifest = read_manifest(engine.files, release)
        return manifest, None if yaml else audit_release(engine, release)

    manifest, found = call.work(read, release, stage="show")
    text = configuration_text(manifest)
    if found is None:
        if text is None:
            raise DataError(f"{release}: {_OF_SEVERAL}, so it has no configuration of its own")
        print_text(text)
        return
    needs_seed = text is not None and not has_default_seed(manifest)
    again = [] if text is None else _commands(release, needs_seed)
    more = {"configuration": manifest.configuration, "again": again}
    call.show(found, lambda one: _blocks(one, manifest, text, again), **more)
    found.require()


_OF_SEVERAL = "it is one of several releases, or a union of them"


def _commands(release: str, needs_seed: bool) -> list[str]:
    """Return the commands that make a release of one run again."""
    path = release.rstrip("/")
    new = shlex.quote(f"output.path={path}-again")
    seed = " --set execution.seed_file=SEED" if needs_seed else ""
    return [
        f"anonspark show {shlex.quote(path)} --yaml > again.yaml",
        f"anonspark run again.yaml --set {new}{seed}",
    ]


def _blocks(
    found: Verification, manifest: Manifest, text: str | None, again: list[str]
) -> Iterator[Block]:
    from anonspark.presentation.blocks import Table, Text
    from anonspark.presentation.verification import verification_card

    yield verification_card(f"{found.release} ({manifest.run_id})", found)
    claims: dict[str, list[str]] = {}
    for claim in found.claimed:
        where, _, name = claim.partition(": ")
        claims.setdefault(where, []).append(name)
    rows = [[where, ", ".join(filter(None, names)) or "all"] for where, names in claims.items()]
    yield Table("Claimed, not proven", (), rows)
    if text is None:
        yield Text(f"How to make it again is not shown, because {_OF_SEVERAL}.")
        return
    fingerprint = manifest.document["fingerprints"]["input"]
    for title, lines in (
        ("Configuration", text.splitlines()),
        (f"To make it again, of an input with the fingerprint {fingerprint}", again),
    ):
        yield Text("")
        yield Text(title, "strong")
        yield from map(Text, lines)
    if "SEED" in again[-1]:
        told = manifest.configuration["execution"]["seed_fingerprint"]
        yield Text(f"SEED is the file of the secret seed with the fingerprint {told}.")
