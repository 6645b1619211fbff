"""Sections of the report about the promise and the run: proof, gates, columns, configuration."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from math import isfinite

from anonspark.config.variables import configuration_yaml
from anonspark.core.figure_text import figure_text
from anonspark.core.labels import KIND_WORDS
from anonspark.layers.evaluate.small_counts import COUNTS
from anonspark.presentation.blocks import Block, Cell, Code, Role, Section, Table, Text, Verdict
from anonspark.presentation.charts import Bars, Series, bar_chart
from anonspark.reporting.evidence import Disclosure, Evidence, Row
from anonspark.verification.attacks.truthfulness import Truthfulness
from anonspark.verification.proof.criteria import MeasuredCriterion
from anonspark.verification.proof.unit_criteria import MeasuredUnits

_ROLES = {
    "identifier": "not published",
    "quasi_identifier": "generalized",
    "sensitive": "published as it is",
    "insensitive": "published as it is",
}

# Shown in place of a figure that would tell a count of few people.
_WITHHELD = "withheld"


def guarantee(evidence: Evidence) -> Section:
    """Show what was required, what was measured, and how to repeat the proof."""
    proof, rules = evidence.verification, evidence.rules
    required, smallest, units = proof.k, proof.published.smallest, proof.units
    rows: list[list[str | Verdict]] = [
        [
            "k-anonymity: records in the smallest class",
            f"at least {required:,}",
            rules.count(smallest),
            Verdict(smallest >= required),
        ]
    ]
    if units:
        rows += _units_rows(units, required, rules)
    rows += map(_criterion_row, proof.criteria)
    rows += _presence_rows(evidence)
    same = proof.published.fingerprint == evidence.manifest.fingerprint
    rows.append(
        [
            "the files are those that were published",
            "the manifest's fingerprint",
            "the same" if same else "another one",
            Verdict(same),
        ]
    )
    rows += _attack_rows(evidence)
    blocks: list[Block] = [
        Text(_verdict(evidence), "good" if evidence.holds else "bad"),
        Table(
            "Requirements, and measurements in the published files",
            ("requirement", "required", "measured", "verdict"),
            rows,
        ),
        Text(_measured_how(evidence, units)),
        Code(_command(evidence), "Command that proves the guarantee"),
        Text(
            "k-anonymity means that no published combination of quasi-identifiers is that of fewer "
            f"than k {'people' if units else 'records'}. The ends of a range may be values of real "
            "people. k-anonymity does not hide a sensitive value that most records of a class "
            "share. It does not protect columns that are published as they are, nor people whose "
            "records are in several releases."
        ),
    ]
    return Section("guarantee", "Guarantee and proof", blocks)


def _verdict(evidence: Evidence) -> str:
    """Say whether the guarantee holds, and whether the release may be used."""
    if evidence.holds:
        whom = "records of others" if evidence.verification.units else "others"
        return (
            f"The guarantee holds: every published record shares its quasi-identifiers with at "
            f"least {evidence.verification.k - 1:,} {whom}, and every other requirement is met."
        )
    if evidence.only_untrue:
        return (
            "Every class keeps what was required of it, but that its records are those of the "
            "original was not shown. The original that was given may be another table than the one "
            "that the release was made of. If it is that one, the release must not be used."
        )
    return (
        "The guarantee does not hold. The release must not be used. Run anonspark verify to see "
        "what is wrong with it."
    )


def _measured_how(evidence: Evidence, units: MeasuredUnits | None) -> str:
    """Say which files the proof was measured from, and who can repeat it."""
    if evidence.proven_by_run:
        text = "Measured by the run in the files that it had written, before it published them. "
        text += "Everyone who has the files can repeat the proof"
        if evidence.original is None:
            return f"{text}:"
        return f"{text}, and with the original also test for truthfulness and a linkage attack:"
    if units is None or not units.not_published:
        return (
            "Measured for this report from the published files only. It does not rely on anything "
            "the run reported. Everyone who has the files can repeat the proof:"
        )
    return (
        "Measured for this report from the published files, except for the people: the column "
        "that identifies them is not published, and the run counted them before it published. "
        "Everyone who has the files can repeat the rest of the proof:"
    )


def _command(evidence: Evidence) -> str:
    command = f"anonspark verify {shlex.quote(evidence.release)}"
    if evidence.original is not None:
        command += f" --original {shlex.quote(evidence.original)}"
    return command


def _units_rows(
    units: MeasuredUnits, required: int, rules: Disclosure
) -> Iterator[list[str | Verdict]]:
    """Yield rows of the report: the fewest people of a class, and of all who share their classes.

    The second has no bound: an attacker who knows which records are of the same person is left with
    so many people.
    """
    source = ", as the run counted" if units.not_published else ""
    yield [
        f"k-anonymity: people of the class that has the fewest{source}",
        f"at least {required:,}",
        rules.count(units.fewest),
        Verdict(units.fewest >= required),
    ]
    if units.fewest_agreeing is not None:
        yield [
            "people who agree in the classes of all records, the fewest",
            "not bounded",
            rules.count(units.fewest_agreeing),
            "",
        ]


def _criterion_row(case: MeasuredCriterion) -> list[str | Verdict]:
    criterion = case.criterion
    what = criterion.type.measured.format(bound=figure_text(criterion.bound))
    limit = criterion.bound if criterion.recursive_c is None else criterion.recursive_c
    measured = figure_text(case.measured) if isfinite(case.measured) else "unbounded"
    return [
        f"{criterion.attribute}: {what}",
        f"{criterion.type.bound} {figure_text(limit)}",
        measured,
        Verdict(not case.violating_classes),
    ]


def _presence_rows(evidence: Evidence) -> list[list[str | Verdict]]:
    presence = evidence.verification.presence
    bounds = evidence.manifest.configuration["privacy"].get("delta_presence")
    if not presence or not bounds:
        return []
    return [
        [
            "delta-presence: how sure an attacker can be that a person is in the release",
            f"{figure_text(bounds.get('min', 0.0))} to {figure_text(bounds.get('max', 1.0))}",
            f"{figure_text(presence.smallest)} to {figure_text(presence.largest)}",
            Verdict(presence.holds),
        ]
    ]


def _attack_rows(evidence: Evidence) -> list[list[str | Verdict]]:
    """Show the attacks with the original: truthfulness and linkage."""
    rows: list[list[str | Verdict]] = []
    rules = evidence.rules
    truth = evidence.verification.truthfulness
    if truth:
        rows.append(
            [
                "truthfulness: records without a counterpart, except those left out",
                "0",
                _untruthful(truth, evidence),
                Verdict(truth.holds),
            ]
        )
    # A person with several records is attacked with each of them.
    whom = "records" if evidence.people else "people"
    for name, attack in evidence.verification.linkage.items():
        counts = {f"{whom} with fewer than {rules.k:,} candidates": attack.fewer_than_k}
        # With k = 1 nobody was promised to be one of several.
        if rules.k >= 2:
            counts["records alone in their class that match one record of it"] = attack.singled_out
        rows += [
            [f"linkage attack with the {name}: {what}", "0", rules.count(count), Verdict(not count)]
            for what, count in counts.items()
        ]
    return rows


def _untruthful(truth: Truthfulness, evidence: Evidence) -> str:
    """Write how many records of the original or the release do not fit, and how many may not."""
    if evidence.withholds_values:
        # They include those that were left out.
        return "0" if truth.holds else _WITHHELD
    counts = {
        "originals": truth.unpaired_originals,
        "published records": truth.unpaired_published,
    }
    parts = [f"{evidence.rules.count(count)} {what}" for what, count in counts.items() if count]
    text = ", ".join(parts) or "0"
    unknown = truth.not_proven
    return f"{text}. {evidence.rules.count(unknown)} not proven" if unknown else text


def gates(evidence: Evidence) -> Section | None:
    """Show the quality gates of the configuration, or return None if it has none."""
    bounds = evidence.manifest.document.get("gates") or []
    if not bounds:
        return None
    rows = [_gate_row(evidence, bound) for bound in bounds]
    all_hold = all(holds for _, holds in rows)
    return Section(
        "gates",
        "Quality gates",
        [
            Text(
                "All quality gates hold." if all_hold else "A quality gate does not hold.",
                "good" if all_hold else "bad",
            ),
            Table(
                "Bounds that the configuration sets, and the figures of the release",
                ("figure", "bound", "measured", "missed by", "verdict"),
                [row for row, _ in rows],
            ),
        ],
    )


def _gate_row(evidence: Evidence, gate: Row) -> tuple[list[str | Verdict], bool]:
    """Return a gate as cells, and whether it holds."""
    name, figure = str(gate["metric"]), gate.get("found")
    low, high = gate.get("min"), gate.get("max")
    bounds = [
        f"{word} {figure_text(bound)}"
        for word, bound in (("at least", low), ("at most", high))
        if bound is not None
    ]
    if figure is None and gate.get("withheld"):
        return [name, ", ".join(bounds), _WITHHELD, "", Verdict(True)], True
    if figure is None:
        return [name, ", ".join(bounds), "not measured", "", Verdict(False)], False
    missed = ""
    shown, exact = _gate_figure(evidence, name, float(figure))
    for bound, way in ((low, "too low"), (high, "too high")):
        beyond = 0.0 if bound is None else (figure - bound) * (-1 if way == "too low" else 1)
        if beyond > 0:
            missed = f"{figure_text(beyond)} {way}" if exact else way
    return [name, ", ".join(bounds), shown, missed, Verdict(not missed)], not missed


def _gate_figure(evidence: Evidence, name: str, figure: float) -> tuple[str, bool]:
    """Write the figure of a gate as far as the report may show it, and whether that is exact.

    A count of 1 to k - 1 records is not written, nor one that all but so few have. With several
    attributes, missing values are rounded as where the report lists them: minus the records that
    were dropped, their exact sum would show how many lack two values.
    """
    rules, metric = evidence.rules, name.rpartition(".")[2]
    if metric in ("generalized_rows", "generalized_share"):
        counted = evidence.counted_rows
        generalized = figure if metric == "generalized_rows" else figure * counted
        if rules.hides(round(generalized)):
            return f"{rules.few} records", False
        if rules.hides(round(counted - generalized)):
            return f"all but {rules.few} records", False
    elif name in COUNTS and evidence.counts.get(name, figure) is None:
        return _WITHHELD, False
    elif metric == "missing_rows" and rules.hides(figure):
        return rules.few, False
    if metric == "missing_rows" and len(evidence.attributes) > 1:
        return f"about {rules.rounded(figure):,}", False
    return figure_text(figure), True


def published(evidence: Evidence) -> Section:
    """Show how many records and which columns were published."""
    rules, counts = evidence.rules, evidence.counts
    published = evidence.rows
    dropped = counts.get("rows_dropped_missing", 0)
    left_out = counts.get("rows_left_out", 0)
    total = counts.get("rows_in", published)
    # Either all records without a class are left out, or none is.
    suppressed = counts.get("rows_suppressed", 0) if left_out == 0 else 0
    rows = [
        ["records of the input", _WITHHELD if total is None else f"{total:,}"],
        ["left out because a quasi-identifier is missing", rules.count(dropped)],
        ["left out because the model suppressed them", rules.count(left_out)],
        ["published with all quasi-identifiers suppressed", rules.count(suppressed)],
    ]
    if evidence.manifest.parts:
        rows = [
            [f"records of the release {part['run_id']}", f"{part['rows']:,}"]
            for part in evidence.manifest.parts
        ]
    rows += [
        ["records published", f"{published:,}"],
        ["classes by published values", f"{evidence.verification.published.classes:,}"],
    ]
    configured = evidence.manifest.attributes
    kinds = {
        identifier["name"]: identifier["kind"] for identifier in evidence.manifest.quasi_identifiers
    }
    columns: list[list[Cell]] = [
        [
            name,
            Role(str(attribute["role"]).replace("_", "-")),
            _ROLES.get(attribute["role"], ""),
            KIND_WORDS.get(kinds.get(name, ""), ""),
        ]
        for name, attribute in sorted(
            configured.items(), key=lambda item: list(_ROLES).index(item[1]["role"])
        )
    ]
    style = evidence.manifest.style
    return Section(
        "published",
        "What was published",
        [
            Table("Records", ("what", "records"), rows),
            Table("Columns by role", ("column", "role", "in the release", "kind"), columns),
            Text(f"Quasi-identifiers show what a class covers (output.style: {style}). Columns "
                 "of the input that are not listed here were neither read nor published."),
        ],
    )  # fmt: skip


def decision(evidence: Evidence) -> Section | None:
    """Show the statements of the officer, or return None without a decision."""
    stated = evidence.decision
    if stated is None:
        return None
    statements = {title: getattr(stated, name) for name, title in stated.titles().items()}
    *_, of_columns = statements
    reasons = dict.fromkeys(evidence.manifest.attributes) | (statements.pop(of_columns) or {})
    statements |= {f"Role of the column {name}": reason for name, reason in reasons.items()}
    rows = [["Fingerprint of the release", evidence.manifest.fingerprint]]
    rows += [[title, statement or ""] for title, statement in statements.items()]
    text = "The person who decides states this. Only the fingerprint is measured."
    return Section("decision", "Decision", [Text(text), Table("Decision", ("", ""), rows)])


def timings(evidence: Evidence) -> Section | None:
    """Show how long each stage of the run took."""
    seconds = evidence.manifest.document.get("seconds") or {}
    if not seconds:
        return None
    labels, values = list(seconds), [float(value) for value in seconds.values()]
    chart = bar_chart(
        "timings",
        Bars(
            "Seconds of each stage",
            labels,
            [Series("seconds", values)],
            "seconds (s)",
            "stage",
            words=[
                [f"{label}: {value:,.1f} seconds"]
                for label, value in zip(labels, values, strict=True)
            ],
        ),
        f"Bar chart: seconds of {len(labels)} stages of the run, {sum(values):,.1f} together.",
        Table(
            "Seconds of each stage",
            ("stage", "seconds"),
            [[label, f"{value:,.1f}"] for label, value in zip(labels, values, strict=True)],
        ),
    )
    return Section("timings", "Time it took", [chart])


def configuration(evidence: Evidence) -> Section:
    """Show the configuration, fingerprints and versions."""
    manifest = evidence.manifest.document
    prints = [[name, str(value)] for name, value in manifest["fingerprints"].items()]
    versions = [[name, str(value)] for name, value in manifest.get("versions", {}).items()]
    run = [
        ["run", str(manifest.get("run_id", ""))],
        ["started (UTC)", str(manifest.get("started", ""))],
    ]
    text = configuration_yaml(_without_values(manifest["configuration"]), width=88)
    return Section(
        "configuration",
        "Configuration and fingerprints",
        [
            Table("Run", ("what", "value"), run),
            Table("Fingerprints: equal where the content is", ("of", "fingerprint"), prints),
            Table("Versions", ("of", "version"), versions),
            Text("Configuration, with all defaults:"),
            Code(text, "Configuration"),
        ],
    )


def _without_values(configuration: Row) -> dict[str, object]:
    """Return the configuration without the values that orders of attributes list."""
    plain: dict[str, object] = dict(configuration)
    plain["attributes"] = {
        name: {
            key: f"({len(value):,} values)" if key == "order" and isinstance(value, list) else value
            for key, value in attribute.items()
        }
        for name, attribute in configuration.get("attributes", {}).items()
    }
    return plain
