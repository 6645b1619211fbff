"""Roles of columns, which pages colour."""

from __future__ import annotations

import re

import pytest

from anonspark.presentation.blocks import Role, Section, Table, cell_text
from anonspark.presentation.card import table_text
from anonspark.presentation.document import render


@pytest.mark.parametrize("name", ["identifier", "quasi-identifier", "sensitive", "insensitive"])
def test_a_role_has_a_colour_on_pages_and_its_name_everywhere(name: str) -> None:
    table = Table("Columns", ("column", "role"), [["age", Role(name)]])
    page = render(
        title="t",
        kind="k",
        subtitle="s",
        opening=Section("a", "A", [table]),
        sections=[],
        footer="",
    )
    assert f'<span class="role role-{name}">{name}</span>' in page
    assert re.search(rf"\.role-{name} {{ border-color: #[0-9a-f]{{6}}; }}", page)
    assert cell_text(Role(name)) == name
    assert name in table_text(table)
