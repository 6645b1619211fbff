"""Opening a release, or a table of another tool, together with what is required of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from anonspark.config import Configuration
from anonspark.engine.files import Files
from anonspark.engine.protocol import Engine, Table
from anonspark.errors import ConfigurationError, DataError, GuaranteeError
from anonspark.release.manifest import MANIFEST, Manifest, read_manifest
from anonspark.release.originals import open_by_suffix
from anonspark.release.signatures import SIGNATURE, find_signer, signing_key
from anonspark.verification.claims.claim import Claim, claim_of_configuration, claim_of_manifest
from anonspark.verification.claims.roles import Roles, claim_of_roles, leave_out_suppressed
from anonspark.verification.proof.release_files import audit_table_files, changed_sidecar_files
from anonspark.verification.result import Signature


@dataclass(frozen=True)
class OpenedRelease:
    """Published records, and what they are verified against.

    ``path`` is the release or the table of another tool, ``where`` the path of its records. A table
    of another tool has no manifest. ``configuration`` is what is required instead of its promise.
    """

    path: str
    where: str
    data: Table
    claim: Claim
    manifest: Manifest | None
    configuration: Configuration | None = None
    signature: Signature | None = None

    def rows(self, engine: Engine) -> int:
        """Count the records. One job."""
        with engine.reading((self.where,), key=""):
            return self.data.count()


def open_release(
    engine: Engine,
    release: str,
    configuration: Configuration | None = None,
    *,
    roles: Roles | None = None,
    matched: bool = False,
    signers: str | None = None,
) -> OpenedRelease:
    """Open a release, check its files, and find what it has to keep.

    Parameters and errors are those of :func:`anonspark.verification.audit.audit_release`. With
    ``matched`` labels will be compared with values of other tables, which takes all hierarchies.
    """
    files = engine.files
    release = release.rstrip("/")
    manifest: Manifest | None = None
    if files.exists(f"{release}/{MANIFEST}") or (configuration is None and roles is None):
        manifest = _manifest(files, release)
        if roles is not None:
            raise ConfigurationError(
                f"{', '.join(roles.options)}: found for a release with a manifest, which "
                "sets them. Leave them out, or require more with --config"
            )
    claim: Claim | None = None
    signature = None
    if manifest is None:
        if signers is not None:
            raise ConfigurationError(
                "--signers: found for a table without a manifest, which no one signed. Leave it out"
            )
        audit_table_files(engine, release)
    else:
        signature = audit_signature(files, release, manifest, signers)
        claim = claim_of_manifest(
            engine, release, manifest, matched=matched and configuration is None
        )
    where = release if manifest is None else f"{release}/data"
    changed: list[str] = []
    with engine.reading((where,), key=""):
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
            data, claim = leave_out_suppressed(data, claim, roles)
    claim = replace(claim, failures=(*claim.failures, *changed))
    return OpenedRelease(release, where, data, claim, manifest, configuration, signature)


def _manifest(files: Files, release: str) -> Manifest:
    """Read a manifest. Its absence names the options for a table of another tool."""
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


_REMEDY = "Do not use the release before its publisher has explained that"


def audit_signature(
    files: Files, release: str, manifest: Manifest, signers: str | None
) -> Signature | None:
    """Return the signature of a release, or None if it is not signed and need not be.

    ``signers`` is a local file of the allowed signers: without it only the form is checked. Raises
    GuaranteeError if the signature is not by the manifest's key, or not by an allowed signer.
    """
    path, key = f"{release}/{SIGNATURE}", manifest.signer
    if not files.exists(path):
        if key is None and signers is None:
            return None
        raise GuaranteeError(f"{path}: not there, so the release is not signed. {_REMEDY}")
    signature, content = (
        files.read_part(name, 0, files.size(name)) for name in (path, f"{release}/{MANIFEST}")
    )
    if key is None or signing_key(signature) != key:
        raise GuaranteeError(
            f"{path}: not a signature by the key that the manifest names. {_REMEDY}"
        )
    if signers is None:
        return Signature(key)
    signer = find_signer(content, signature, signers)
    if signer is None:
        text = f"{path}: not a signature of this manifest by a key of {signers}"
        raise GuaranteeError(f"{text} (its key is {key}). {_REMEDY}")
    return Signature(key, signer)
