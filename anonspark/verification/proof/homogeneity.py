"""Report classes with only one value of a sensitive attribute, and what forbids them."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

import pyarrow.compute as pc

from anonspark.config.privacy import PrivacyOptions
from anonspark.config.problems import key_path
from anonspark.core.criterion import MOST_VALUES, proposed_l
from anonspark.core.figure_text import share_of_records
from anonspark.core.warning_codes import WarningCode
from anonspark.verification.proof.measures import SensitiveValues

MISSING_VALUES = (
    "values are missing, and missing counts for l-diversity and the other criteria as one more "
    "value. Complete them, or ask for a larger l"
)


@dataclass(frozen=True)
class Homogeneity:
    """The values of a sensitive attribute, and the records whose classes show them for sure.

    ``values`` counts the different ones, without missing, or is None if they are more than 50,000
    or cannot be compared. ``largest`` is the share of the records with the most frequent value, or
    without one. ``homogeneous`` counts the records of classes with only one value, or is None
    before there are classes.
    """

    records: int
    values: int | None
    largest: float = 0.0
    homogeneous: int | None = None

    @property
    def proposed_l(self) -> int | None:
        """The l to ask for, or None if values are over 50,000, or cannot be compared."""
        return None if self.values is None else proposed_l(self.values, self.largest)

    def warning(
        self, name: str, privacy: PrivacyOptions, *, is_only: bool
    ) -> tuple[WarningCode, str] | None:
        """Warn of classes that may show, or do show, only one value, or return None.

        The result is a code and a text, without a value and without a count of records below k. It
        is None if a criterion demands something and no class has only one value. ``is_only`` says
        whether there is no other sensitive attribute.
        """
        demanding = {item.attribute for item in privacy.criteria if not item.demands_nothing}
        has_criterion = name in demanding
        if has_criterion and not self.homogeneous:
            return None
        subject = "the criteria allow" if has_criterion else "no criterion forbids"
        text = f"{subject} classes with only one value. {self._finding(privacy.k)}. "
        code: WarningCode = "homogeneous_classes" if has_criterion else "no_criterion"
        return code, text + self._remedy(name, privacy, is_only=is_only)

    def _finding(self, k: int) -> str:
        """Describe which share of the records is affected."""
        if self.values is None:
            return (
                f"It has more than {MOST_VALUES:,} different values, or values that cannot be "
                "compared, so what classes show of it is not measured"
            )
        if self.homogeneous is None:
            share = share_of_records(round(self.largest * self.records), self.records, k)
            return f"{share[:1].upper()}{share[1:]} share its most frequent value"
        if not self.homogeneous:
            return "This release has no such class, but nothing requires that"
        share = share_of_records(self.homogeneous, self.records, k)
        return (
            f"{share[:1].upper()}{share[1:]} lie in such classes. An attacker who knows that a "
            "person is in one of them learns the value"
        )

    def _remedy(self, name: str, privacy: PrivacyOptions, *, is_only: bool) -> str:
        """Propose what to do: the option of l-diversity, if it can help."""
        if self.values is not None and self.values < 2:
            return (
                "Apart from missing values, the attribute has only one value, which no criterion "
                "can hide. Leave it out if it must stay private"
            )
        least = self.proposed_l
        if least is None:
            return (
                "Make it coarser, or make columns of its single values, and require several values "
                "in every class with privacy.l_diversity"
            )
        text = f"Require at least {least} values in every class with privacy.l_diversity"
        if is_only:
            return f"{text} (--set privacy.l_diversity={least}, in Python l={least})"
        # An option would replace a list that exists.
        if any(criterion.type.key == "l_diversity" for criterion in privacy.criteria):
            return f"{text} (add an entry of this attribute with l: {least})"
        option = shlex.quote(f"{key_path(('privacy', 'l_diversity', name))}={least}")
        return f"{text} (--set {option})"


def homogeneity_of(
    values: SensitiveValues | None, records: int, homogeneous: int | None
) -> Homogeneity:
    """Return what classes show of described values, or of values that are too many (None)."""
    if values is None:
        return Homogeneity(records, None)
    # Declared orders list values that no record has.
    present = pc.filter(values.values, values.shares > 0)
    return Homogeneity(
        records,
        len(present) - present.null_count,
        float(values.shares.max(initial=0.0)),
        homogeneous,
    )
