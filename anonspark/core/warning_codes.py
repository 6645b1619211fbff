"""The kinds of warnings that a release may have."""

from __future__ import annotations

from typing import Literal

WarningCode = Literal[
    "blank_rows",
    "codes_as_numbers",
    "column_identifies",
    "delivered_twice",
    "equal_values",
    "exact_ends",
    "gives_away",
    "gives_away_not_told",
    "guessable_seed",
    "homogeneous_classes",
    "identifier_not_told",
    "identifier_repeats",
    "large_block",
    "many_dropped",
    "missing_values",
    "no_criterion",
    "no_protection",
    "order_of_letters",
    "people_alone",
    "people_of_two_holders",
    "people_repeat",
    "rare_values",
    "released_before",
    "seed_file_readable",
    "text_days",
    "text_numbers",
]
"""Names of the kinds, the same in all versions."""
