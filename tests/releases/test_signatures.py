"""A signed release: everyone checks it with OpenSSH alone, and no byte of it can be changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from commands import Cli, command
from helpers import configuration_file, document_file, write_people_of_towns, write_table
from holders import anonymize, write_coding
from test_check_release import check
from test_distribute import plan_of

from anonspark.engine.local.files import LocalFiles
from anonspark.release.layout import REPORT_KIND
from anonspark.reporting.build_report import write_report

SIGNATURE = "manifest.json.sig"


def ssh_keygen(*arguments: object, content: bytes = b"") -> bytes:
    words = ["ssh-keygen", *map(str, arguments)]
    return subprocess.run(words, input=content, capture_output=True, check=True).stdout


def make_key(path: Path, passphrase: str = "", kind: str = "ed25519") -> Path:
    ssh_keygen("-q", "-t", kind, "-N", passphrase, "-C", "", "-f", path)
    return path


def allow(signers: Path, key: Path) -> Path:
    public = key.with_suffix(".pub").read_text()
    signers.write_text(f"# comment\n{key.name}@example.org,{key.name} {public}")
    return signers


def sign(folder: Path, key: str, purpose: str = "anonspark") -> None:
    """Sign the manifest by hand."""
    (folder / "release" / SIGNATURE).unlink(missing_ok=True)
    ssh_keygen("-Y", "sign", "-f", folder / key, "-n", purpose, folder / "release/manifest.json")


def edit(folder: Path, old: str, new: str) -> None:
    path = folder / "release" / "manifest.json"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with two keys, a file that allows one, and a configuration."""
    allow(tmp_path / "signers", make_key(tmp_path / "office"))
    make_key(tmp_path / "other")
    write_people_of_towns(tmp_path, 60)
    attributes = {"age": "quasi_identifier", "town": "quasi_identifier"}
    output = {"mode": "overwrite", "signing_key": str(tmp_path / "office")}
    sections: dict[str, Any] = {"output": output, "execution": {"seed": 2**50}}
    configuration_file(tmp_path, attributes=attributes, **sections)
    return tmp_path


Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(folder: Path, cli: Cli) -> Run:
    """Return what runs the configuration, and returns exit code and messages."""

    def of(*arguments: object) -> tuple[int, str]:
        path = folder / "configuration.yaml"
        found = cli("run", path, "-q", *arguments)
        return found.code, found.err

    return of


@pytest.fixture
def verify(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what verifies a release for the signers, and returns exit code and messages."""

    def of(release: Path = folder / "release") -> tuple[int, str]:
        signers = folder / "signers"
        found = command(capsys, "verify", release, "--signers", signers, "-q")
        assert (found.code == 0) == (check(capsys, release, "--signers", str(signers))[0] == 0)
        return found.code, found.err

    return of


def test_who_signed(
    folder: Path, run: Run, verify: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run()[0] == verify()[0] == 0
    release, signers = folder / "release", folder / "signers"
    content = (release / "manifest.json").read_bytes()
    assert b"office" not in content
    of_office = ("-I", "office@example.org", "-n", "anonspark", "-s", release / SIGNATURE)
    ssh_keygen("-Y", "verify", "-f", signers, *of_office, content=content)
    found = command(capsys, "verify", release, "--signers", signers, "--json")
    signature = json.loads(found.out)["signature"]
    assert signature["signer"] == "office@example.org"
    assert signature["key"] in ssh_keygen("-lf", folder / "office").decode()
    assert f"the key {signature['key']}" in (release / "README.md").read_text()
    unchecked = json.loads(command(capsys, "verify", release, "--json").out)["signature"]
    assert unchecked == {"key": signature["key"], "signer": None}
    assert "who signed it (--signers FILE)" in check(capsys, release)[1]


def test_any_change_of_any_file_is_refused(
    folder: Path, run: Run, verify: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--report")[0] == verify()[0] == 0
    release, signers = folder / "release", folder / "signers"
    for path in sorted(one for one in release.rglob("*") if one.is_file()):
        content = path.read_bytes()
        middle = len(content) // 2
        at = range(0, len(content), 5) if path.name == SIGNATURE else (0, middle, len(content) - 1)
        flipped = (content[:i] + bytes([content[i] ^ 1 << i % 7]) + content[i + 1 :] for i in at)
        for changed in flipped:
            path.write_bytes(changed)
            assert check(capsys, release, "--signers", str(signers))[0] != 0, path
        for changed in (content + b"\n", content[:middle] + b"\r" + content[middle:]):
            path.write_bytes(changed)
            assert check(capsys, release, "--signers", str(signers))[0] != 0, path
        assert verify()[0] in (3, 4), path
        path.unlink()
        assert check(capsys, release, "--signers", str(signers))[0] != 0, path
        path.write_bytes(content)
    assert verify()[0] == 0


def claim_other(folder: Path) -> None:
    """Make a release of a stranger: all of it is consistent."""
    names = [ssh_keygen("-lf", folder / key).decode().split()[1] for key in ("office", "other")]
    edit(folder, *names)
    sign(folder, "other")


FORGED: Mapping[str, Callable[[Path], object]] = {
    "without a signature": lambda folder: (folder / "release" / SIGNATURE).unlink(),
    "signed by another key": lambda folder: sign(folder, "other"),
    "signed for another purpose": lambda folder: sign(folder, "office", "git"),
    "made by another key": claim_other,
    "signers without the key": lambda folder: allow(folder / "signers", folder / "other"),
    "no signers": lambda folder: (folder / "signers").write_text(""),
    "changed manifest": lambda folder: edit(folder, '"attempt": 1', '"attempt": 2'),
}


def test_what_no_allowed_signer_signed(folder: Path, run: Run, verify: Run) -> None:
    assert run()[0] == 0
    for name, forge in FORGED.items():
        kept = shutil.copytree(folder, folder.with_name("kept"))
        assert verify()[0] == 0
        forge(folder)
        code, err = verify()
        assert (code, SIGNATURE in err) == (4, True), name
        shutil.copytree(kept, folder, dirs_exist_ok=True)
        shutil.rmtree(kept)
    # A signature that none asked for could hold anything.
    signature = (folder / "release" / SIGNATURE).read_bytes()
    assert run("--set", "output.signing_key=null")[0] == 0
    assert verify()[0] == 4
    (folder / "release" / SIGNATURE).write_bytes(signature)
    code, err = verify()
    assert (code, "not a signature by the key that the manifest names" in err) == (4, True)


def test_a_report_is_signed_again_by_the_same_key(
    folder: Path, run: Run, verify: Run, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run()[0] == 0
    release = folder / "release"

    def report(*arguments: object) -> tuple[int, str]:
        found = cli("report", release, "-q", *arguments)
        return found.code, found.err

    for key in ([], ["--sign", folder / "other"]):
        code, err = report(*key)
        assert (code, "report changes its manifest. Name that key with --sign" in err) == (2, True)
    assert report("--out", folder / "elsewhere.html")[0] == 0
    assert verify()[0] == 0
    office = ("--sign", folder / "office", "--original", folder / "input.parquet")

    page = f"<!doctype html>\n<title>{REPORT_KIND}</title>"
    for stopped in (SIGNATURE, "manifest.json"):
        target = (LocalFiles(), str(release), f"{release}/report.html", page + stopped)
        with monkeypatch.context() as patch:
            patch.setattr(LocalFiles, "replace", _killed_at(stopped))
            with pytest.raises(KeyboardInterrupt):
                write_report(*target, str(office[1]))
        assert verify()[0] == 4
        assert report(*office)[0] == verify()[0] == 0
    edit(folder, '"attempt": 1', '"attempt": 2')
    code, err = report(*office)
    assert (code, "is not what was signed, so it is not signed again" in err) == (4, True)


def _killed_at(end: str) -> Callable[..., None]:
    """Return a write that is killed at a file."""
    replace = LocalFiles.replace

    def replaced(self: LocalFiles, path: str, content: bytes, temporary: str) -> None:
        if path.endswith(end):
            raise KeyboardInterrupt
        replace(self, path, content, temporary)

    return replaced


def test_keys_that_cannot_sign(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """They are refused before any work, and nothing waits for a passphrase."""
    monkeypatch.setenv("SSH_AUTH_SOCK", "")
    shutil.copyfile(folder / "office", folder / "open")
    (folder / "open").chmod(0o644)
    (folder / "office.txt").write_text("Zebediah")
    keys = {
        folder / "open": "Permissions 0644 for",
        make_key(folder / "rsa", kind="rsa"): "of another type",
        make_key(folder / "locked", "passphrase"): "incorrect passphrase",
        folder / "nowhere": "No such file",
        folder / "office.txt": "cannot sign",
    }
    for key, reason in keys.items():
        code, err = run("--sign", key)
        assert code == 2, key
        assert f"output.signing_key: {key} cannot sign" in err
        assert reason in err
        assert "Zebediah" not in err
        assert "BEGIN OPENSSH" not in err
        assert not (folder / "release").exists()
    agent = dict(line.split(";")[0].split("=") for line in _agent())
    monkeypatch.setenv("SSH_AUTH_SOCK", agent["SSH_AUTH_SOCK"])
    try:
        subprocess.run(["ssh-add", "-q", str(folder / "office")], check=True)
        (folder / "office").unlink()
        assert run("--sign", folder / "office.pub")[0] == 0
    finally:
        os.kill(int(agent["SSH_AGENT_PID"]), 15)
    monkeypatch.setenv("PATH", str(folder))
    for found in (run(), _verified(folder, cli)):
        assert found[0] == 6
        assert "ssh-keygen: not found" in found[1]


def _agent() -> list[str]:
    done = subprocess.run(["ssh-agent", "-s"], capture_output=True, check=True, text=True)
    return done.stdout.splitlines()[:2]


def _verified(folder: Path, cli: Cli) -> tuple[int, str]:
    signers = ("--signers", folder / "signers")
    found = cli("verify", folder / "release", *signers, "-q")
    return found.code, found.err


def test_a_run_that_is_published_already(folder: Path, run: Run, verify: Run) -> None:
    once = ("--set", "output.mode=error", "--run-id", "once")
    assert run(*once)[0] == run(*once)[0] == verify()[0] == 0
    code, err = run(*once, "--sign", folder / "other")
    assert (code, "exists already" in err) == (2, True)


def test_plans_unions_and_the_ledger(folder: Path, run: Run, verify: Run, cli: Cli) -> None:
    office = ("--sign", folder / "office", "-q")
    (folder / "plan").mkdir()
    plan = document_file(folder / "plan", plan_of(folder / "plan"))
    cli.ends(0, "distribute", plan, *office, "--report")
    for release in sorted((folder / "plan" / "releases").iterdir()):
        assert verify(release)[0] == 0
    coding = write_coding(folder / "parts", {"k": 2})
    people = {"age": [20, 21, 50, 51], "sex": ["male"] * 4, "illness": ["flu", "cold"] * 2}
    for name, age in (("first", 20), ("second", 30)):
        anonymize(folder / "parts", name, people | {"age": [age] * 4}, coding)
    parts = (folder / "parts/first", folder / "parts/second")
    cli.ends(0, "union", *parts, "--out", folder / "all", *office)
    assert verify(folder / "all")[0] == 0
    assert verify(parts[0])[0] == 4
    together = ("--with", parts[1], "--same-people", "--signers", folder / "signers", "-q")
    assert "not signed" in cli("verify", parts[0], *together).err
    table = write_table(folder / "people.csv", people, "csv")
    options = ("--signers", folder / "signers", "--quasi-identifier", "age")
    assert "no one signed" in cli("verify", table, *options).err
    ledger = folder / "ledger"
    assert run("--set", f"ledger={{path: {ledger}, dataset: towns, limit: 1}}")[0] == 0
    key = ssh_keygen("-lf", folder / "office").decode().split()[1]
    assert any(key in path.read_text() for path in ledger.rglob("*.json"))
