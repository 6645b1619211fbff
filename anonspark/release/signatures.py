"""Sign a manifest, and find who signed it, by the program ``ssh-keygen`` of OpenSSH.

A manifest lists the SHA-256 of all other files, so that its signature covers the release. Everyone
can check it without this package.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from anonspark.errors import ConfigurationError, EnvironmentProblem

SIGNATURE = "manifest.json.sig"
"""Name of the signature of a release."""

KEY = r"^SHA256:[A-Za-z0-9+/]{43}$"
"""The form of the fingerprint of a key."""

_NAMESPACE = "anonspark"

# ssh-keygen passes over bytes behind the last line, and over one field: what it does not sign could
# hold anything. Of a key of Ed25519 every signature has this form.
_TEXT = re.compile(
    rb"-----BEGIN SSH SIGNATURE-----\n"
    rb"((?:[A-Za-z0-9+/]{70}\n){3}[A-Za-z0-9+/]{28}[AEIMQUYcgkosw048]=)"
    rb"\n-----END SSH SIGNATURE-----\n"
)
_CONTENT = re.compile(
    rb"SSHSIG\0\0\0\x01\0\0\0\x33(\0\0\0\x0bssh-ed25519\0\0\0\x20.{32})"
    rb"\0\0\0\x09anonspark\0\0\0\0\0\0\0\x06sha512\0\0\0\x53\0\0\0\x0bssh-ed25519\0\0\0\x40.{64}",
    re.DOTALL,
)


def sign(content: bytes, key: str) -> bytes:
    """Sign a content with a private key, or with the agent's key for a public one. Deterministic.

    Raises ConfigurationError if the key cannot be used or is none of Ed25519, and
    EnvironmentProblem if OpenSSH is not installed.
    """
    done = _call("sign", "-f", key, "-n", _NAMESPACE, content=content)
    if done.returncode or signing_key(done.stdout) is None:
        lines = done.stderr.decode(errors="replace").splitlines()
        # If others can read the key, only an earlier line says so.
        lines = [line for line in lines if line.startswith("Permissions")] or lines[-1:]
        reason = lines[0].rpartition(": ")[2] if done.returncode else "it is of another type"
        raise ConfigurationError(
            f"output.signing_key: {key} cannot sign ({reason}). Expected a key of Ed25519 that "
            "only you can read (ssh-keygen -t ed25519), or one in the agent (ssh-add), as a key "
            "with a passphrase. Name such a key"
        )
    return done.stdout


def key_name(key: str) -> str:
    """Return the fingerprint of a key after a trial of it. Errors as of :func:`sign`."""
    return signing_key(sign(b"", key)) or ""


def signing_key(signature: bytes) -> str | None:
    """Return the fingerprint of the key that signed, or None if :func:`sign` did not write it.

    >>> signing_key(b"-----BEGIN SSH SIGNATURE-----") is None
    True
    """
    text = _TEXT.fullmatch(signature)
    content = text and _CONTENT.fullmatch(base64.b64decode(text[1]))
    if not content:
        return None
    digest = base64.b64encode(hashlib.sha256(content[1]).digest()).decode()
    return f"SHA256:{digest.rstrip('=')}"


def find_signer(content: bytes, signature: bytes, signers: str) -> str | None:
    """Return the allowed signer who signed a content, or None if no allowed signer did.

    Raises ConfigurationError if there is no file of allowed signers, and EnvironmentProblem if
    OpenSSH is not installed.
    """
    if not Path(signers).is_file():
        raise ConfigurationError(
            f"--signers: {signers} is not a file. Expected a local file with a line for each "
            "signer: a name, and a public key (ssh-keygen(1), ALLOWED SIGNERS). Check the path"
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, SIGNATURE)
        path.write_bytes(signature)
        options = ("-f", signers, "-n", _NAMESPACE, "-s", str(path))
        named = _call("find-principals", *options).stdout.decode(errors="replace").splitlines()
        for name in named:
            if not _call("verify", *options, "-I", name, content=content).returncode:
                return name
    return None


def _call(action: str, *options: str, content: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run ``ssh-keygen`` so that it never prompts, because a run may have no terminal later."""
    program = shutil.which("ssh-keygen")
    if program is None:
        raise EnvironmentProblem(
            "ssh-keygen: not found. Signatures need OpenSSH 8.2 or later. Install it, for example "
            "with apt-get install openssh-client"
        )
    return subprocess.run(  # noqa: S603 - without a shell
        [program, "-Y", action, *options],
        input=content,
        capture_output=True,
        check=False,
        env={**os.environ, "SSH_ASKPASS_REQUIRE": "never"},
        start_new_session=True,
    )
