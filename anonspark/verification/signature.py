"""The signature of a release: whose it is, and whether it covers the manifest."""

from __future__ import annotations

from dataclasses import dataclass

from anonspark.engine.files import Files
from anonspark.release.manifest import MANIFEST, Manifest
from anonspark.release.signatures import SIGNATURE, find_signer, signing_key

_REMEDY = "Do not use the release before its publisher has explained that"


@dataclass(frozen=True)
class Signature:
    """The signature of a release.

    Parameters
    ----------
    key : str
        Fingerprint of the public key.
    signer : str or None
        The name that the allowed signers give it. None if it was not checked, or is none of them.
    """

    key: str
    signer: str | None = None


def audit_signature(
    files: Files, release: str, manifest: Manifest, signers: str | None
) -> tuple[Signature | None, list[str]]:
    """Return the signature of a release, and what is wrong with it.

    Parameters
    ----------
    files : Files
    release : str
        Its directory.
    manifest : Manifest
    signers : str or None
        Local file of the allowed signers. None checks the form of a signature only.
    """
    path, key = f"{release}/{SIGNATURE}", manifest.signer
    if not files.exists(path):
        if key is None and signers is None:
            return None, []
        return None, [f"{path}: not there, so the release is not signed. {_REMEDY}"]
    signature, content = (
        files.read_part(name, 0, files.size(name)) for name in (path, f"{release}/{MANIFEST}")
    )
    if key is None or signing_key(signature) != key:
        return None, [f"{path}: not a signature by the key that the manifest names. {_REMEDY}"]
    if signers is None:
        return Signature(key), []
    signer = find_signer(content, signature, signers)
    if signer is None:
        text = f"{path}: not a signature of this manifest by a key of {signers}"
        return Signature(key), [f"{text} (its key is {key}). {_REMEDY}"]
    return Signature(key, signer), []
