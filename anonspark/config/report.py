"""The section ``report``: what the report of a release says of its purpose."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from anonspark.config.section import Section

_Line = Annotated[str, Field(min_length=1, max_length=200)]


class ReportOptions(Section):
    """The title, purpose and contact in the report. They do not change the release."""

    title: _Line | None = None
    """Title of the report. null: the name of the release's directory."""

    purpose: Annotated[str, Field(min_length=1, max_length=2000)] | None = None
    """What the release is for, in a sentence or two, on top of the report."""

    contact: _Line | None = None
    """Who answers questions about the release: a name, an address."""
