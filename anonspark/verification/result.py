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
    # Only for types: a run measures none of these.
    from anonspark.verification.attacks.ends import Ends
    from anonspark.verification.attacks.linkage import Linkage
    from anonspark.verification.attacks.loss import Loss
    from anonspark.verification.attacks.truthfulness import Truthfulness
    from anonspark.verification.proof.sensitive_figures import SensitiveFigures


@dataclass(frozen=True)
class Signature:
    """The signature of a release: the fingerprint of the public key, and the name of its owner.

    The name is that of the allowed signers, or None if it was not checked.
    """

    key: str
    signer: str | None = None


@dataclass(frozen=True, repr=False)
class Verification(Redacted):
    """The result of a verification by the files of a release.

    ``risk`` has rows as those of the table ``risk``. ``units`` are the people of classes, or None
    if records count, ``presence`` is None if it was not required, ``truthfulness``, ``loss`` and
    ``ends`` without an original. ``linkage`` is the attack with the ``original`` and with a
    ``population``, ``linkage_with_values`` that with the original for an attacker who also knows
    ``insensitive`` values, and the sensitive ones, too.
    ``classes_not_covered`` counts classes with more records than the population has in their
    region. ``failures`` are what does not hold, one sentence each, ``warnings`` what holds, but may
    mean less than it seems to. ``tried`` are criteria that were not required. ``suppressed`` counts
    records whose quasi-identifiers are all suppressed. ``columns_published`` and ``columns_in`` are
    as the run counted them. ``claimed`` lists what was not proven: keys of the manifest and columns
    of tables (``metrics/rounds: loss``). ``weights`` are records and sampling weights of each
    class. None means unknown or without.
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
    linkage_with_values: dict[str, Linkage] = field(default_factory=dict)
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
        """Whether nothing failed."""
        return not self.failures

    @property
    def only_untrue(self) -> bool:
        """Whether nothing failed but truthfulness: the original may be another table."""
        truth = self.truthfulness
        return truth is not None and bool(self.failures) and self.failures == truth.describe()

    def require(self) -> Verification:
        """Return this verification, or raise GuaranteeError with everything that does not hold."""
        if self.failures:
            raise GuaranteeError("\n".join(self.failures))
        return self

    def as_dict(self) -> dict[str, object]:
        """Return all figures as plain values, for JSON. Infinite ones are null."""
        presence = None if self.presence is None else dict(vars(self.presence))
        if presence is not None:
            del presence["counts"]
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
            "criteria": [measured.as_dict() for measured in self.criteria],
            "sensitive": [measured.as_dict() for measured in self.sensitive],
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
                name: _described(links, "unmatched", "holds")
                for name, links in self.linkage.items()
            },
            "linkage_with_values": {
                name: _described(links, "unmatched")
                for name, links in self.linkage_with_values.items()
            },
            "classes_not_covered": self.classes_not_covered,
            "claimed": self.claimed,
            "signature": _described(self.signature),
        }


def _described(result: Any, *more: str) -> dict[str, object] | None:
    """Return the figures of a result and some properties, or None without a result.

    >>> _described(Signature("SHA256:a"))
    {'key': 'SHA256:a', 'signer': None}
    """
    if result is None:
        return None
    return {**asdict(result), **{name: getattr(result, name) for name in more}}
