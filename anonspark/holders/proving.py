"""The proof of a union: its parts by themselves, and what is true of all their records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import xor

from anonspark.core.fingerprints import table_fingerprint
from anonspark.engine.protocol import Engine, Table
from anonspark.errors import GuaranteeError
from anonspark.holders.form import Form
from anonspark.holders.parts import Part
from anonspark.verification.audit import audit_opened, audit_table
from anonspark.verification.claims import claim_of_description
from anonspark.verification.classes import PublishedClasses
from anonspark.verification.criteria import MeasuredCriterion
from anonspark.verification.opening import OpenedRelease
from anonspark.verification.result import Verification

# The t that a message names is enough for the union: it is rounded up.
_DIGITS, _ROUNDING = 10_000, 1e-6


def prove_parts(
    engine: Engine, parts: Sequence[Part], opened: Sequence[OpenedRelease]
) -> list[Verification]:
    """Prove each part as ``anonspark verify`` does; costs as of that.

    Raises
    ------
    GuaranteeError
        If one does not keep its promise.
    """
    proofs = []
    for part, one in zip(parts, opened, strict=True):
        proof = audit_opened(engine, one)
        if proof.failures:
            # What fails may be a count of few people, or the name of a column that is too many.
            raise GuaranteeError(
                f"union: {part.path} does not keep its own promise; nothing was published; its "
                f"holder has to put it right: anonspark verify {part.path} tells what is wrong"
            )
        proofs.append(proof)
    return proofs


def fingerprint_of(proofs: Sequence[PublishedClasses]) -> str:
    """Return the fingerprint of the records of several releases together; no job."""
    return table_fingerprint(
        sum(one.rows for one in proofs),
        sum(one.hash_sum for one in proofs),
        reduce(xor, (one.hash_xor for one in proofs)),
    )


def prove_union(engine: Engine, staged: Table, form: Form, expected: str, out: str) -> Verification:
    """Measure the staged records of a union, and check that all of the coding holds.

    Parameters
    ----------
    engine : Engine
    staged : Table
        Read from the staged files.
    form : Form
    expected : str
        Fingerprint of the records of all parts.
    out : str
        Where the union goes, for messages.

    Returns
    -------
    Verification

    Raises
    ------
    GuaranteeError
        If records are others than those of the parts, or a criterion does not hold.

    Notes
    -----
    One pass with a shuffle of class sizes; two more jobs for each attribute of a criterion.
    """
    claim = claim_of_description(engine, form.manifest, matched=False)
    # Of attributes that no criterion is about nothing is required.
    claim = replace(claim, sensitive=())
    proof = audit_table(staged, claim, name=out, where=out)
    if proof.published.fingerprint != expected:
        raise GuaranteeError(
            f"{out}: the staged union holds other records than its parts: their files changed "
            "while they were read, or records were lost; nothing was published. Try again, and "
            "report it as a bug if that does not help"
        )
    if proof.published.smallest < form.privacy.k:
        raise GuaranteeError(
            f"{out}: a class of the union is smaller than k = {form.privacy.k} of the coding, so a "
            "part was published with a smaller k; nothing was published; let its holder publish "
            "again by the coding"
        )
    advice = [text for one in proof.criteria if (text := _advice(one, form)) is not None]
    if proof.failures:
        raise GuaranteeError("\n".join([*proof.failures, *advice]))
    return proof


def _advice(measured: MeasuredCriterion, form: Form) -> str | None:
    """Say what distance a union needs, and what to do; None where the criterion holds."""
    criterion = measured.criterion
    if not measured.violating_classes or not criterion.is_distance:
        return None
    needed = "no finite bound is enough"
    if math.isfinite(measured.measured):
        enough = math.ceil(measured.measured * _DIGITS - _ROUNDING) / _DIGITS
        needed = f"the union needs {enough:g}"
    where = f"{criterion.type.key} of {criterion.attribute!r}"
    if form.holder_column is not None:
        return (
            f"{where}: {needed}, beside the distribution of each holder's published records; raise "
            "the bound in the coding, or agree on l-diversity instead, and publish again"
        )
    return (
        f"{where}: {needed}: each part is close to its own distribution, not to that of the union; "
        "agree on l-diversity instead, raise the bound in the coding, or publish with "
        "--holder-column, where each part keeps its own guarantee"
    )
