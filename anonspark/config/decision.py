"""The decision about a release: what an officer states of it, for its report."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from anonspark.config.problems import validated
from anonspark.config.section import Section
from anonspark.config.yaml_reading import read_document
from anonspark.errors import ConfigurationError

# A number, such as a year, is a statement as well.
_Statement = Annotated[str, Field(strict=False, coerce_numbers_to_str=True)] | None


class Decision(Section):
    """What the program cannot measure. Everything that is not stated is left blank."""

    recipients: _Statement = None
    """Recipients, and what they use the release for"""

    attackers: _Statement = None
    """Who may attack: deliberately, by recognizing a person, after a data breach"""

    attempt: _Statement = None
    """How likely an attempt of each of them is, and why"""

    threshold: _Statement = None
    """Threshold of the risk, and the reason for it"""

    controls: _Statement = None
    """Controls: contract, access, retention, what to do after an incident"""

    singling_out: _Statement = None
    """WP216: can a person be singled out?"""

    linkability: _Statement = None
    """WP216: can records of a person be linked?"""

    inference: _Statement = None
    """WP216: can a value of a person be inferred?"""

    residual_risk: _Statement = None
    """Residual risk that is accepted, and why"""

    name: _Statement = None
    """Name of the person who decides"""

    qualification: _Statement = None
    """Qualification of this person"""

    date: _Statement = None
    """Date"""

    valid_until: _Statement = None
    """Valid until, and what makes it void earlier"""

    columns: dict[str, _Statement] | None = None
    """Reason for the role of each column"""

    @classmethod
    def titles(cls) -> dict[str, str]:
        """Return the words of each key, in the order of the keys.

        >>> Decision.titles()["date"]
        'Date'
        """
        described = cls.model_json_schema()["properties"]
        return {name: described[name].get("description", name) for name in cls.model_fields}


def read_decision(path: str) -> Decision:
    """Read the file of a decision. Raises ConfigurationError if it is missing or has other keys."""
    expected = "keys as anonspark init --decision writes them"
    document, problems = read_document(path, "a decision", expected)
    decision = validated(Decision, document, problems)
    if decision is None or problems:
        raise ConfigurationError(*(f"--decision: {problem}" for problem in problems))
    return decision
