"""Schemas of the metrics tables, as DDL."""

from __future__ import annotations

__all__ = [
    "ATTRIBUTES_SCHEMA",
    "HISTORY_SCHEMA",
    "PRIVACY_SCHEMA",
    "RISK_SCHEMA",
    "ROUNDS_SCHEMA",
    "SUMMARY_SCHEMA",
    "figures_of",
]

# Sums of squares outgrow 64 bits where one class holds billions of records: decimals.
SUMMARY_SCHEMA = (
    "run_id string, model string, k int, rho int, rounds int, "
    "rows_in long, rows_dropped_missing long, rows_published long, rows_suppressed long, "
    "rows_left_out long, "
    "classes long, published_classes long, dm decimal(38,0), gcp_total double, gcp double, "
    "iloss double, aecs double, mean_class_size double, "
    "mean_class_size_with_suppressed double, precision double, loss double, "
    "min_class_size long, max_class_size long, published_min_class_size long, "
    "baseline_classes long, baseline_dm decimal(38,0), baseline_gcp_total double, "
    "baseline_mean_class_size double, rule_a int, rule_b int, rule_c int, "
    "rule_gain_utility int, rule_gain_risk int, rule_gain int, "
    "entropy double, kl_divergence double, "
    "utility_score double, "
    "configuration_fingerprint string, input_fingerprint string, output_fingerprint string, "
    "version string, started timestamp, seconds double"
)

# The table summary of all runs: what tells which of them can be compared comes with each row.
HISTORY_SCHEMA = f"{SUMMARY_SCHEMA}, job string, settings_fingerprint string"

ROUNDS_SCHEMA = (
    "run_id string, round int, rows long, normal_rows long, outlier_rows long, classes long, "
    "classes_total long, dm decimal(38,0), dm_total decimal(38,0), gcp_total double, "
    "gcp_total_cumulative double, gcp_total_if_last double, mean_class_size double, "
    "mean_class_size_with_outliers double, precision double, loss double, height int, levels string"
)

ATTRIBUTES_SCHEMA = (
    "run_id string, position int, attribute string, kind string, weight double, "
    "missing_rows long, generalized_rows long, generalized_share double, ncp_total double, "
    "ncp double, iloss double, loss double, height int, precision double, entropy double"
)

RISK_SCHEMA = (
    "run_id string, round int, attacker string, population boolean, highest double, "
    "average double, at_risk double, lowest double, at_highest double, at_lowest double, "
    "unique double, threshold double, high_highest boolean, high_average boolean, "
    "high_at_risk boolean, high_unique boolean"
)

PRIVACY_SCHEMA = (
    "run_id string, attribute string, criterion string, required double, c double, measured double"
)


_NUMBERS = ("int", "long", "double", "decimal(38,0)")


def figures_of(schema: str) -> tuple[str, ...]:
    """Return the columns of a table that are numbers, in its order."""
    columns = (part.split() for part in schema.split(", "))
    return tuple(name for name, data_type in columns if data_type in _NUMBERS)
