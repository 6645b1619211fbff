"""Opening a release, or a table of another tool, together with what is required of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from anonspark.config import Configuration
from anonspark.engine.files import Files
from anonspark.engine.protocol import Engine, Table
from anonspark.errors import ConfigurationError, DataError, GuaranteeError
from anonspark.release.manifest import MANIFEST, Manifest, read_manifest
from anonspark.release.originals import open_by_suffix
from anonspark.verification.claims import Claim, claim_of_configuration, claim_of_manifest
from anonspark.verification.release_files import audit_table_files, changed_sidecar_files
from anonspark.verification.roles import Roles, claim_of_roles, leave_out_suppressed
from anonspark.verification.signature import Signature, audit_signature


@dataclass(frozen=True)
class OpenedRelease:
    """Published records, and what they are verified against.

    Parameters
    ----------
    path : str
        The release, or the table of another tool.
    where : str
        Where its records are.
    data : Table
        The records.
    claim : Claim
    manifest : Manifest or None
        None for a table of another tool.
    configuration : Configuration or None
        What was to be required instead of the manifest's promise.
    signature : Signature or None
    """

    path: str
    where: str
    data: Table
    claim: Claim
    manifest: Manifest | None
    configuration: Configuration | None = None
    signature: Signature | None = None

    def rows(self, engine: Engine) -> int:
        """Return the number of records. One job."""
        with self.reading(engine):
            return self.data.count()

    @contextmanager
    def reading(self, engine: Engine, paths: Sequence[str] | None = None) -> Iterator[None]:
        """Report the files that cannot be read, and their other errors, where reading fails.

        Parameters
        ----------
        engine : Engine
        paths : sequence of str or None
            What is read. None for the records.
        """
        own = (self.where,) if paths is None else tuple(paths)
        looked_at = None if self.manifest is None else self.where
        failures_first = _telling_first(engine, self.claim.failures, looked_at)
        with failures_first, engine.reading(own, key=""):
            yield


def open_release(
    engine: Engine,
    release: str,
    configuration: Configuration | None = None,
    *,
    roles: Roles | None = None,
    matched: bool = False,
    signers: str | None = None,
) -> OpenedRelease:
    """Open a release, and look at its files.

    Parameters
    ----------
    engine : Engine
    release : str
        The directory that ``output.path`` named, or a table of another tool.
    configuration : Configuration or None
        What to require. Without it, what the release's manifest promises.
    roles : Roles or None
        What to require of a table without a manifest, where there is no configuration.
    matched : bool
        Whether labels will be compared with other tables' values, which takes all hierarchies.
    signers : str or None
        Local file of those who may have signed it. None does not check a signature.

    Raises
    ------
    ConfigurationError, DataError, GuaranteeError
        See :func:`anonspark.verification.audit.audit_release`.
    """
    files = engine.files
    release = release.rstrip("/")
    manifest: Manifest | None = None
    if files.exists(f"{release}/{MANIFEST}") or (configuration is None and roles is None):
        manifest = _manifest(files, release)
        if roles is not None:
            raise ConfigurationError(
                f"{', '.join(roles.options)}: found for a release with a manifest, which "
                "says the same. Leave them out, or require more with --config"
            )
    claim: Claim | None = None
    signature = None
    if manifest is None:
        if signers is not None:
            raise ConfigurationError(
                "--signers: found for a table without a manifest, which no one signed. Leave it out"
            )
        failures = tuple(audit_table_files(engine, release))
    else:
        claim = claim_of_manifest(
            engine, release, manifest, matched=matched and configuration is None
        )
        signature, unsigned = audit_signature(files, release, manifest, signers)
        claim = replace(claim, failures=(*claim.failures, *unsigned))
        failures = claim.failures
    where = release if manifest is None else f"{release}/data"
    failures_first = _telling_first(engine, failures, None if manifest is None else where)
    changed: list[str] = []
    with failures_first, engine.reading((where,), key=""):
        if manifest is None:
            data = open_by_suffix(engine, release, "release")
        else:
            data = engine.published(where, manifest.data_format)
            changed = changed_sidecar_files(release, manifest, data.schema)
        if configuration is not None:
            claim = claim_of_configuration(
                engine, configuration, data.schema.names, claim, matched=matched
            )
        elif claim is None:
            claim = claim_of_roles(roles or Roles(), data.schema)
        if manifest is None:
            # Classes are formed by what is written: 01234 and 1234 are two values.
            data = open_by_suffix(engine, release, "release", texts=claim.columns)
            data, claim = leave_out_suppressed(data, replace(claim, failures=failures), roles)
    claim = replace(claim, failures=(*claim.failures, *changed))
    return OpenedRelease(release, where, data, claim, manifest, configuration, signature)


@contextmanager
def _telling_first(
    engine: Engine, failures: Sequence[str], looked_at: str | None
) -> Iterator[None]:
    """Report the errors in files because of which records cannot be read.

    Parameters
    ----------
    engine : Engine
    failures : sequence of str
    looked_at : str or None
        Where the records are, if each of their files was compared with a list: what is wrong with
        the files there is among the failures. A reader, who stops at the first
        one and does not know which are listed, has nothing to add.

    Raises
    ------
    GuaranteeError
    """
    unreadable: tuple[type[Exception], ...] = (DataError, ConfigurationError, *engine.failures)
    try:
        yield
    except unreadable as error:
        if not failures:
            raise
        problems = [str(error)] if isinstance(error, DataError) else []
        own = (f"{looked_at}: ", f"release: {looked_at}: ", f"release: cannot read {looked_at} as ")
        if looked_at is not None and problems and problems[0].startswith(own):
            problems = []
        raise GuaranteeError("\n".join([*failures, *problems])) from error


def _manifest(files: Files, release: str) -> Manifest:
    try:
        return read_manifest(files, release)
    except DataError as error:
        if files.exists(f"{release}/{MANIFEST}"):
            raise
        raise DataError(
            *error.problems,
            "of a table of another tool, name the columns that people could be recognized by with "
            "--quasi-identifier, or its configuration with --config",
        ) from error
