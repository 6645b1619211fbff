"""The manifest: what a release is, how it was made, and how to check it."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from anonspark._version import __version__
from anonspark.config.privacy import PrivacyOptions
from anonspark.core.extensions import CRITERIA, MODELS, extension, loaded
from anonspark.engine.files import Files, PublishedFile
from anonspark.errors import (
    ConfigurationError,
    DataError,
    EnvironmentProblem,
    GuaranteeError,
    raise_if_limit_reached,
)
from anonspark.kernels.built import version_of_numba
from anonspark.redaction import Redacted, redact_values
from anonspark.release.signatures import SIGNATURE, sign

MANIFEST = "manifest.json"
"""Name of the file that makes a directory a release."""

FORM = 2
"""Manifests of this form list the files of their release, and have every key."""

EXTENSION = re.compile(
    r"anonspark\.(models|criteria)\.[^.\s]{1,80} [A-Za-z0-9][\w.-]{0,80} [A-Za-z0-9][\w.+!-]{0,40}"
)
"""Entry point of another package, and the package's name and version."""

VERSION = r"^\d+(\.\d+){0,3}([.+-]?[A-Za-z0-9]{1,12}){0,3}$"
"""The form of program versions."""

NOT_PROTECTED = (
    "a person whose records two holders have is not protected by the union: the classes that the "
    "person is in can be intersected (Ganta, Kasiviswanathan and Smith 2008)"
)
"""Facts that no union can see, and all readers of one must know."""

_AS_IT_IS = ("coding", "configuration", "files", "holder_column", "parts", "published")


@dataclass(frozen=True, repr=False)
class Manifest(Redacted):
    """The facts that a release states about itself, by name.

    ``document`` is as JSON has it. Where an earlier version wrote no key, it is what that meant
    then.
    """

    document: dict[str, Any]

    @property
    def configuration(self) -> dict[str, Any]:
        """The configuration of the run, without secrets."""
        return dict(self.document.get("configuration", {}))

    @property
    def published(self) -> dict[str, Any]:
        """The facts about the published records."""
        return dict(self.document["published"])

    @property
    def summary(self) -> Mapping[str, Any]:
        """The figures of the table ``summary``, or nothing."""
        return self.document.get("summary") or {}

    @property
    def run_id(self) -> str:
        """Name of the run. Empty if it is unknown."""
        return str(self.document.get("run_id", ""))

    @property
    def mark(self) -> str:
        """Name of the file that the run had in the release while it lacked its manifest."""
        return f".anonspark-{self.run_id}"

    @property
    def version(self) -> str:
        """The version of anonspark that wrote it. Empty if it is unknown."""
        versions = self.document.get("versions")
        return str(versions.get("anonspark", "")) if isinstance(versions, dict) else ""

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the published records."""
        return str(self.document["fingerprints"]["output"])

    @property
    def signer(self) -> str | None:
        """Fingerprint of the key that signed it, or None without a signature."""
        return self.document.get("signer")

    @property
    def files(self) -> tuple[PublishedFile, ...]:
        """The files of the release."""
        return tuple(PublishedFile(**file) for file in self.document.get("files") or ())

    @property
    def listed_paths(self) -> frozenset[str]:
        """Paths of the files of the release."""
        return frozenset(file.path for file in self.files)

    @property
    def lists_left_out_values(self) -> bool:
        """Whether the release lists the sensitive values of the records that it leaves out."""
        privacy = PrivacyOptions.model_validate(self.configuration["privacy"])
        has_values = self.published.get("left_out_values") == "told"
        return has_values and any(criterion.is_distance for criterion in privacy.criteria)

    @property
    def k(self) -> int:
        """Smallest class size that was required."""
        return int(self.configuration["privacy"]["k"])

    @property
    def about(self) -> Mapping[str, Any]:
        """Title, purpose and contact for the report, or nothing."""
        options: Mapping[str, Any] = self.configuration.get("report") or {}
        return options

    @property
    def style(self) -> str:
        """``output.style``."""
        return str(self.configuration["output"]["style"])

    @property
    def data_format(self) -> str:
        """Format of the published records, as Spark names it."""
        return str(self.configuration["output"].get("format", "parquet"))

    @property
    def input(self) -> Mapping[str, Any]:
        """Format, options and markers of the original. Empty if it is unknown."""
        return self.configuration.get("input") or {}

    @property
    def input_version(self) -> Mapping[str, str]:
        """Options that read the version of the original, beside those of :attr:`input`."""
        return self.document.get("input_version") or {}

    @property
    def missing_markers(self) -> tuple[str, ...]:
        """Texts of the original that mean missing."""
        return tuple(self.input.get("missing_markers", ()))

    @property
    def required(self) -> tuple[str, ...]:
        """Columns of the original without a value in which a record was left out."""
        return self.with_role("quasi_identifier") if self.drops_missing else ()

    @property
    def missing(self) -> str:
        """``missing``: what was done with missing quasi-identifiers."""
        return str(self.configuration.get("missing", "drop"))

    @property
    def copies(self) -> tuple[str, ...]:
        """The further forms of the records: ``csv``, ``iceberg``."""
        return tuple(self.configuration["output"].get("copies") or ())

    @property
    def drops_missing(self) -> bool:
        """Whether records with a missing quasi-identifier were left out."""
        return self.missing == "drop"

    @property
    def recipient(self) -> Mapping[str, Any]:
        """The recipient of a release and its people. Empty for a release of a single run."""
        return self.document.get("recipient") or {}

    @property
    def coding(self) -> Mapping[str, Any]:
        """Name, fingerprint and document of the coding. Empty for a release without one.

        The fingerprint is that of the document.
        """
        return self.document.get("coding") or {}

    @property
    def parts(self) -> Sequence[Mapping[str, Any]]:
        """The releases that a union was made of. Empty for a release of a run."""
        return self.document.get("parts") or ()

    @property
    def holder_column(self) -> str | None:
        """The column of a union that names the holder of a record, or None for other releases."""
        return self.document.get("holder_column")

    @property
    def attributes(self) -> dict[str, Mapping[str, Any]]:
        """The configuration of each attribute, by name."""
        return dict(self.configuration.get("attributes", {}))

    def with_role(self, *roles: str) -> tuple[str, ...]:
        """Return the attributes that have one of some roles.

        >>> attributes = {"age": {"role": "quasi_identifier"}, "pay": {"role": "sensitive"}}
        >>> Manifest({"configuration": {"attributes": attributes}}).with_role("sensitive")
        ('pay',)
        """
        attributes = self.attributes.items()
        return tuple(name for name, options in attributes if options.get("role") in roles)

    @property
    def quasi_identifiers(self) -> list[Mapping[str, Any]]:
        """Name, kind, type and hierarchy of each quasi-identifier."""
        return list(self.published["quasi_identifiers"])

    @property
    def quasi_identifier_columns(self) -> list[str]:
        """Published columns that describe quasi-identifiers."""
        return list(self.published["quasi_identifier_columns"])


def extensions_of(configured: Mapping[str, Any]) -> dict[str, str]:
    """Load the packages of a configuration's model and criteria: return them by entry point."""
    names_by_group = {
        CRITERIA: configured["privacy"],
        MODELS: [configured.get("model", {}).get("name")],
    }
    return {
        f"{group}.{name}": loaded_extension.package
        for group, names in names_by_group.items()
        for name, loaded_extension in loaded(group).items()
        if name in names
    }


def versions(engine: Mapping[str, str], configuration: Mapping[str, Any]) -> dict[str, object]:
    """Return the versions of all software behind a release, including those of the engine.

    The model and the criteria of the configuration may come from other packages. ``extensions``
    names these by entry point.
    """
    packages = extensions_of(configuration)
    return {
        "anonspark": __version__,
        "python": platform.python_version(),
        **engine,
        "pyarrow": pa.__version__,
        "numpy": np.__version__,
        "numba": version_of_numba(),
        **({"extensions": packages} if packages else {}),
    }


def listing(files: Iterable[PublishedFile]) -> list[dict[str, object]]:
    """List the files of a release, in any order, as its manifest does: sorted by path."""
    return [file.as_dict() for file in sorted(files, key=lambda file: file.path)]


def write_manifest(
    files: Files, directory: str, manifest: Mapping[str, object], release: str, key: str | None
) -> None:
    """Write a manifest to a directory, and its signature into the release if there is a key."""
    text = manifest_text(manifest)
    if key is not None:
        files.write_bytes(f"{release}/{SIGNATURE}", sign(text.encode(), key))
    files.write_text(f"{directory}/{MANIFEST}", text)


def manifest_text(manifest: Mapping[str, object]) -> str:
    """Write a manifest as readable JSON, without credentials.

    The sections of :data:`_AS_IT_IS` are not searched for them: ``configuration`` has none, columns
    and files keep their names, a coding is public, and a union repeats the manifests of its parts.

    >>> print(manifest_text({"run_id": "a"}), end="")
    {
      "form": 2,
      "run_id": "a"
    }
    """
    manifest = {"form": FORM, **manifest}
    document = {
        key: value if key in _AS_IT_IS else redact_values(value) for key, value in manifest.items()
    }
    return _json(document)


def _json(document: Mapping[str, Any]) -> str:
    """Write JSON with the indentation and the line end that every manifest has."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def read_manifest(files: Files, release: str) -> Manifest:
    """Read the manifest of a release. Every key that anonspark reads is there and of its type.

    Raises DataError if there is none, and GuaranteeError if it is damaged or not one of
    anonspark's, so that what it states cannot be relied on.
    """
    path = f"{release.rstrip('/')}/{MANIFEST}"
    if not files.exists(path):
        raise DataError(
            f"{release}: no {MANIFEST} there, so it is not a complete release. Give the directory "
            "that output.path named"
        )
    # Imported late: publishing reads no manifest, and its form takes as long to load as the rest.
    from anonspark.release.manifest_form import in_order, manifest_problems

    try:
        text = files.read_text(path)
        document = json.loads(
            text, object_pairs_hook=_each_key_once, parse_constant=_no_such_number
        )
    # OSError: Hadoop refuses a changed file of which it has a checksum.
    except (ValueError, RecursionError, OSError, ConfigurationError) as error:
        raise_if_limit_reached(error)
        raise GuaranteeError(
            f"{path}: not a manifest of anonspark, or it cannot be read. The file is damaged: "
            "restore it, or publish the release again"
        ) from error
    _require_extensions(path, document)
    problems = manifest_problems(document)
    if not problems and text != _json(in_order(document)):
        problems = ["its bytes are not those that anonspark writes of what it says"]
    if problems:
        raise GuaranteeError("\n".join(_refusal(path, document, problem) for problem in problems))
    return Manifest(document)


def sound_manifest(files: Files, release: str) -> Manifest | None:
    """Return the manifest of a release, or None if there is none, or one that cannot be read."""
    try:
        return read_manifest(files, release)
    except (DataError, GuaranteeError):
        return None


def _refusal(path: str, document: Any, problem: str) -> str:
    """Describe why a manifest is refused: it is damaged, or of another version."""
    form = document.get("form") if isinstance(document, dict) else FORM
    if form != FORM:
        return (
            f"{path}: not a manifest of anonspark that this version reads, which are of form "
            f"{FORM}. A version before 0.1 or a later one wrote it: use that version, or publish "
            "the release again"
        )
    version = Manifest(document).version if isinstance(document, dict) else __version__
    if version != __version__ and re.fullmatch(VERSION, version):
        return (
            f"{path}: was written by anonspark {version}, and this is {__version__}, which knows "
            f"something else: {problem}. Verify it with that version or a later one, or publish "
            "the release again"
        )
    return (
        f"{path}: not a manifest of anonspark. The file is damaged: {problem}. Restore it, or "
        "publish the release again"
    )


def _require_extensions(path: str, document: Any) -> None:
    """Refuse a release of packages that are not installed, if it has the form of one."""
    versions = document.get("versions") if isinstance(document, dict) else None
    packages = versions.get("extensions") if isinstance(versions, dict) else None
    absent = [
        f"{path}: {point} is that of the package {package}, which is not installed here. Without "
        "it the release cannot be checked. Install it, if you trust it"
        for point, package in (packages.items() if isinstance(packages, dict) else ())
        if EXTENSION.fullmatch(f"{point} {package}") and extension(*point.rsplit(".", 1)) is None
    ]
    if absent:
        raise EnvironmentProblem("\n".join(absent))


def _no_such_number(name: str) -> float:
    """Refuse NaN and infinity, which Python's reader of JSON would accept."""
    raise ValueError(f"{name} is no number of JSON")


def _each_key_once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a mapping with a key twice, of which readers would see either value.

    >>> _each_key_once([("k", 5), ("k", 2)])
    Traceback (most recent call last):
    ValueError: a key stands there twice
    """
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise ValueError("a key stands there twice")
    return mapping
