"""Explain the technical terms of the report."""

from __future__ import annotations

from anonspark.presentation.glossary import Glossary, Term

GLOSSARY = Glossary(
    Term(
        "class",
        "All records with the same published quasi-identifiers. No one can distinguish them by "
        "these.",
        ("classes",),
    ),
    Term(
        "quasi-identifier",
        "A column that others may know of a person, such as age or town, so that several together "
        "single people out. It is published coarser than it was.",
        ("quasi-identifiers",),
    ),
    Term(
        "sensitive attribute",
        "A column whose value must stay private, such as a diagnosis. It is published as it is. "
        "Classes hide whose record it is. Only a criterion such as l-diversity hides the value.",
        ("sensitive attributes",),
    ),
    Term(
        "k-anonymity",
        "Every class has k records or more: no published combination of quasi-identifiers is that "
        "of fewer.",
    ),
    Term(
        "l-diversity",
        "Every class has several different values of a sensitive attribute, so that the class "
        "alone does not reveal the value for sure.",
    ),
    Term(
        "t-closeness",
        "In every class a sensitive attribute is distributed about as in the whole table, so that "
        "a person's class reveals little more. t is the largest distance allowed, 0 to 1.",
    ),
    Term(
        "homogeneous",
        "A class in which all records have the same value of a sensitive attribute: who is known "
        "to be in it is known to have that value.",
    ),
    Term(
        "re-identification",
        "Finding out which record is that of a certain person.",
        ("re-identified",),
    ),
    Term(
        "certainty penalty",
        "The part of an attribute's range that a published value leaves open: 0% is the exact "
        "value, 100% covers the whole range.",
    ),
    Term(
        "linkage attack",
        "Looking for the people of another table among the classes of a release.",
    ),
    Term(
        "truthfulness",
        "Every published value covers the value of the record that it stands for.",
    ),
    Term(
        "suppressed",
        "Published without any quasi-identifier, or not at all.",
        ("suppression",),
    ),
)
"""Explained where they stand, and at the end of the page."""
