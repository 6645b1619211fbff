"""Questions about a drafted configuration, in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from anonspark.foreign_text import visible
from anonspark.profiling.draft import Answers, Role

if TYPE_CHECKING:
    from anonspark.profiling.profile import Profile

_NOBODY = "-"

_QUESTIONS: dict[Role, str] = {
    "identifier": "Identifiers, which say who someone is and are never published",
    "quasi_identifier": "Quasi-identifiers, which others may know and are published as ranges",
    "sensitive": "Sensitive columns, which are published as they are and whose values stay private",
    "insensitive": "Harmless columns, which are published as they are",
}


def ask(profile: Profile, k: int, output: str) -> Answers:
    """Ask for roles, k and the output. The proposal is the default."""
    typer.echo(f"Columns, divided by commas. {_NOBODY} for none.")
    roles: dict[str, Role] = {}
    for role, question in _QUESTIONS.items():
        for name in _ask_columns(profile, role, question, roles):
            roles[name] = role
    unit = None
    if profile.possible_units is not None or profile.unit is not None:
        unit = _ask_unit(profile, roles)
    whom = "records" if unit is None else "people"
    return Answers(
        roles=roles,
        unit=unit,
        k=typer.prompt(f"k: how many {whom} share what is published", k, value_proc=_k),
        output=typer.prompt("Directory of the release", visible(output)),
    )


def _k(text: str) -> int:
    if not str(text).isdigit() or int(text) < 2:
        raise typer.BadParameter("expected a whole number of at least 2")
    return int(text)


def _ask_unit(profile: Profile, roles: dict[str, Role]) -> str | None:
    """Ask for the column that numbers people, which is then an identifier."""
    known = {visible(item.name): item.name for item in profile.columns}

    def column(text: str) -> str | None:
        name = text.strip()
        if name == _NOBODY:
            return None
        if name not in known:
            raise typer.BadParameter(f"there is no column {name!r}")
        if roles.get(known[name], "identifier") != "identifier":
            raise typer.BadParameter(f"{name} has another role already")
        return known[name]

    question = (
        f"Who is a person here: column that numbers people or households, {_NOBODY} if each row is "
        "a person"
    )
    is_free = roles.get(profile.unit or "", "identifier") == "identifier"
    default = visible(profile.unit) if profile.unit is not None and is_free else _NOBODY
    unit: str | None = typer.prompt(question, default, value_proc=column)
    if unit is not None:
        roles[unit] = "identifier"
    return unit


def _ask_columns(profile: Profile, role: Role, question: str, roles: dict[str, Role]) -> list[str]:
    known = {visible(item.name): item.name for item in profile.columns}
    proposed = [visible(item.name) for item in profile.with_role(role) if item.name not in roles]

    def columns(text: str) -> list[str]:
        if text.strip() == _NOBODY:
            names: list[str] = []
        else:
            names = [name.strip() for name in text.split(",") if name.strip()]
        unknown = [name for name in names if name not in known]
        if unknown:
            raise typer.BadParameter(f"there is no column {', '.join(map(repr, unknown))}")
        again = [name for name in names if known[name] in roles]
        if again:
            raise typer.BadParameter(f"{', '.join(again)} has another role already")
        if role == "quasi_identifier" and not names:
            raise typer.BadParameter("expected at least one")
        return [known[name] for name in names]

    default = ", ".join(proposed) or _NOBODY
    answer: list[str] = typer.prompt(question, default, value_proc=columns)
    return answer
