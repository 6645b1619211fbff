"""Define the result of a verification."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from anonspark.errors import GuaranteeError
from anonspark.redaction import Redacted, redact
from anonspark.release.risk import Floats, Sizes
from anonspark.verification.attacks.presence import Presence
from anonspark.verification.proof.classes import PublishedClasses
from anonspark.verification.proof.criteria import MeasuredCriterion
from anonspark.verification.proof.unit_criteria import MeasuredUnits

if TYPE_CHECKING:
    # A run measures none of these.
    from anonspark.verification.attacks.ends import Ends
    from anonspark.verification.attacks.linkage import Linkage
    from anonspark.verification.attacks.loss import Loss
    from anonspark.verification.attacks.truthfulness import Truthfulness
    from anonspark.verification.proof.sensitive_figures import SensitiveFigures


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


@dataclass(frozen=True, repr=False)
class Verification(Redacted):
    """The result of a verification by the files of a release.

    Parameters
    ----------
    release : str
        Where it is.
    k : int
        Class size that was required.
    quasi_identifier_columns : list of str
        Published columns that classes were formed by.
    published : PublishedClasses
        Counted from the files.
    criteria : list of MeasuredCriterion
        The criteria beyond k that were required, measured in the files.
    sensitive : list of SensitiveFigures
        Of every sensitive attribute.
    risk : list of dict
        Rows as those of the table ``risk``: attackers, figures, and whether each is high.
    units : MeasuredUnits or None
        Those of the classes. None where records count.
    presence : Presence or None
        What an attacker learns of who is in the release. None where that was not required.
    truthfulness : Truthfulness or None
        How the originals lie in the published regions. None without them.
    loss : Loss or None
        What the labels lose of the original. None without it.
    ends : Ends or None
        Which ends of ranges isolate one record of the original. None without it.
    linkage : dict of str to Linkage
        The linkage attack with the ``original`` and with a ``population``.
    linkage_with_values : dict of str to (Linkage or None)
        The same with the original for an attacker who also knows values that are published as they
        are: ``insensitive`` ones, and with the sensitive ones. None was not measured.
    classes_not_covered : int or None
        Classes with more records than the population has in their region. None without one.
    failures : list of str
        What does not hold, one sentence each.
    warnings : list of str
        What holds, but may mean less than it seems to.
    tried : list of MeasuredCriterion
        Criteria that were not required, and how many classes violate them.
    suppressed : int or None
        Records that are left out, as all of their quasi-identifiers are suppressed. None if these
        are unknown.
    columns_published, columns_in : int or None
        Columns that are published, and those of the input, as the run counted them. None without
        a manifest that says it.
    claimed : list of str
        What was not proven but claimed: keys of the manifest, columns of tables
        (``metrics/rounds: loss``).
    signature : Signature or None
        Who signed the release. None without a signature.
    weights : tuple of int64 and float64 ndarray, or None
        Records and sampling weights of each class. None without weights.
    """

    release: str
    k: int
    quasi_identifier_columns: list[str]
    published: PublishedClasses
    criteria: list[MeasuredCriterion]
    sensitive: list[SensitiveFigures]
    risk: list[dict[str, object]]
    units: MeasuredUnits | None = None
    presence: Presence | None = None
    truthfulness: Truthfulness | None = None
    loss: Loss | None = None
    ends: Ends | None = None
    linkage: dict[str, Linkage] = field(default_factory=dict)
    linkage_with_values: dict[str, Linkage | None] = field(default_factory=dict)
    classes_not_covered: int | None = None
    failures: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    tried: list[MeasuredCriterion] = field(default_factory=list)
    suppressed: int | None = None
    columns_published: int | None = None
    columns_in: int | None = None
    claimed: list[str] = field(default_factory=list)
    signature: Signature | None = None
    weights: tuple[Sizes, Floats] | None = field(default=None, compare=False)

    @property
    def holds(self) -> bool:
        """Return whether nothing failed."""
        return not self.failures

    @property
    def only_untrue(self) -> bool:
        """Return whether nothing failed but truthfulness: the original may be another table."""
        truth = self.truthfulness
        return truth is not None and bool(self.failures) and self.failures == truth.describe()

    def require(self) -> Verification:
        """Return this verification where everything holds.

        Raises
        ------
        GuaranteeError
            With everything that does not.
        """
        if self.failures:
            raise GuaranteeError("\n".join(self.failures))
        return self

    def as_dict(self) -> dict[str, object]:
        """Return all figures as plain values, for JSON. Infinite ones are null."""
        presence = None
        if self.presence is not None:
            presence = {
                name: value for name, value in vars(self.presence).items() if name != "counts"
            }
        published = {
            name: getattr(self.published, name)
            for name in ("rows", "classes", "smallest", "largest", "fingerprint")
        }
        return {
            "release": redact(self.release),
            "holds": self.holds,
            "failures": list(map(redact, self.failures)),
            "warnings": list(map(redact, self.warnings)),
            "k": self.k,
            "quasi_identifier_columns": self.quasi_identifier_columns,
            "suppressed": self.suppressed,
            "columns_published": self.columns_published,
            "columns_in": self.columns_in,
            **published,
            "sizes": [list(pair) for pair in sorted(self.published.sizes.items())],
            "unique_records": self.published.sizes.get(1, 0),
            "criteria": [one.as_dict() for one in self.criteria],
            "sensitive": [one.as_dict() for one in self.sensitive],
            "units": None
            if self.units is None
            else {
                "unit": list(self.units.unit),
                "fewest": self.units.fewest,
                "classes": [list(pair) for pair in sorted(self.units.classes.items())],
                "proven": not self.units.not_published,
                "fewest_agreeing": self.units.fewest_agreeing,
                "alone": self.units.alone,
            },
            "risk": self.risk,
            "presence": presence,
            "truthfulness": _described(
                self.truthfulness, "unpaired_originals", "unpaired_published", "holds"
            ),
            "loss": _described(self.loss),
            "ends": _described(self.ends),
            "linkage": {
                name: _described(one, "unmatched", "holds") for name, one in self.linkage.items()
            },
            "linkage_with_values": {
                name: _described(one, "unmatched") for name, one in self.linkage_with_values.items()
            },
            "classes_not_covered": self.classes_not_covered,
            "claimed": self.claimed,
            "signature": _described(self.signature),
        }


def _described(one: Any, *more: str) -> dict[str, object] | None:
    """Return the figures of a result and some that follow from them, None without one."""
    return None if one is None else {**asdict(one), **{name: getattr(one, name) for name in more}}
