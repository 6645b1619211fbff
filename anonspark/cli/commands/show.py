"""The command ``anonspark show``."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from anonspark.cli.command import WITH_ENGINE, Call, Details, command, print_text

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
    details: Details = False,
) -> None:
    """Show what is proven of a release, and how to make it again.

    Verifies the release from its own files, and lists what is only claimed. The exit code is 4 if a
    promise does not hold.
    """
    from anonspark.release.manifest import read_manifest
    from anonspark.release.rerun_configuration import configuration_text
    from anonspark.verification.audit import audit_release

    def read(engine: Engine) -> tuple[Manifest, Verification | None]:
        manifest = read_manifest(engine.files, release)
        return manifest, None if yaml else audit_release(engine, release)

    manifest, proof = call.work(read, release, stage="show")
    text = configuration_text(manifest)
    if proof is None:
        print_text(text)
        return
    path = release.rstrip("/")
    again: list[str] = []
    if not (manifest.parts or manifest.recipient):
        again = [
            f"anonspark show {quote(path)} --yaml > again.yaml",
            f"anonspark run again.yaml --set {quote(f'output.path={path}-again')}",
        ]
    lines = [*text.splitlines(), "", *again]
    call.show(
        proof,
        lambda shown: _blocks(shown, manifest, lines, details=details),
        configuration=manifest.configuration,
        again=again,
    )
    proof.require()


def _blocks(
    proof: Verification, manifest: Manifest, lines: list[str], *, details: bool
) -> Iterator[Block]:
    from anonspark.presentation.blocks import Text
    from anonspark.presentation.verification import verification_card

    yield verification_card(f"{proof.release} ({manifest.run_id})", proof, details=details)
    yield Text("Configuration, and how to make the release again if you can", "strong")
    yield from map(Text, lines)
