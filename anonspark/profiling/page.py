"""A profile as a card and as one page of HTML."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from anonspark._version import __version__
from anonspark.core.figure_text import percent
from anonspark.core.recognition.disguised import MISSING_WORDS
from anonspark.engine.files import Files, require_ours
from anonspark.errors import PublishingError
from anonspark.presentation.blocks import Block, Cell, Chart, Role, Section, Table, Text
from anonspark.presentation.card import Card
from anonspark.presentation.charts import Bars, Series, bar_chart
from anonspark.presentation.document import render
from anonspark.profiling.profile import Profile

ROLES = {
    "identifier": "identifier",
    "quasi_identifier": "quasi-identifier",
    "sensitive": "sensitive",
    None: "not published",
}

SHOWN = 5
"""Sets of each size that are shown."""

_NONE = "No proposed quasi-identifier gives another column away, and none gives it away."

# A dependency with exceptions is never shown as 100%.
_NOT_ALL = 0.9999


def ratio_text(ratio: float) -> str:
    """Return a number from 0 to 1 with four decimals, which are 1.0000 only if it is 1.

    >>> ratio_text(1.0), ratio_text(0.99999)
    ('1.0000', '>0.9999')
    """
    return f"{ratio:.4f}" if ratio == 1 or ratio < 0.99995 else ">0.9999"


def sample_text(profile: Profile) -> str:
    """Say in words by which records sets of columns were measured."""
    if profile.is_sampled:
        return (
            f"a sample of {profile.sample_rows:,} of the {profile.rows:,} rows, drawn by the seed "
            f"{profile.seed}: in a sample more records are unique than in the table"
        )
    return f"all {profile.rows:,} rows"


def measured_text(profile: Profile) -> str:
    """Say of which columns sets were measured."""
    if not profile.measured:
        return ""
    names = ", ".join(profile.measured)
    return f"Sets of {len(profile.measured)} columns, measured in {sample_text(profile)}: {names}"


def no_sets_text(profile: Profile) -> str:
    """Say what a table reveals of which no sets of columns were measured."""
    keys = sum(0 < column.counts.unique == profile.rows for column in profile.columns)
    if keys:
        which = "one column" if keys == 1 else f"each of {keys} columns"
        return f"every record is identified by {which}"
    return "no column was found that identifies records together with others"


def unique_text(profile: Profile) -> list[str]:
    """Say how many records are unique in some set of one, two or three columns."""
    phrases = (
        "one of these columns",
        "at most two columns together",
        "at most three columns together",
    )
    return [
        f"{percent(number, profile.sample_rows, short=True)} of the records are identified by "
        f"{phrase}"
        for number, phrase in zip(profile.uniqueness.unique_by_size, phrases, strict=False)
    ]


def dependency_texts(profile: Profile) -> list[str]:
    """Say which quasi-identifiers give other columns away, and which columns give them away."""
    roles = {column.name: column.role for column in profile.columns}
    return [
        f"{dependency.column} gives {dependency.determines} away"
        + (f" to within {dependency.within:.0%} of its range" if dependency.within else "")
        + (
            " in all records"
            if dependency.exact
            else f" in {percent(min(dependency.holds, _NOT_ALL), short=True)} of the records"
        )
        + _publishing(roles[dependency.column], dependency.determines)
        for dependency in profile.dependencies
    ]


def _publishing(role: str | None, name: str) -> str:
    """Say what publishing a column would reveal of a quasi-identifier that it gives away."""
    if role == "quasi_identifier":
        return ""
    if role is None:
        return f". Published as it is, it would reveal more of {name} than its ranges do"
    return f". Published as it is, it reveals more of {name} than its ranges do"


def roles_texts(profile: Profile) -> list[str]:
    """Say which roles are proposed."""
    names_by_role = {
        words: ", ".join(column.name for column in profile.columns if column.role == role)
        for role, words in ROLES.items()
    }
    return [f"Proposed, {words}: {names}" for words, names in names_by_role.items() if names]


def weights_text(profile: Profile) -> str | None:
    """List the weights of the proposed quasi-identifiers."""
    weights = profile.proposed_weights
    listed = ", ".join(f"{name} {weight:g}" for name, weight in weights.items())
    return f"Weights, with init --weights: {listed}" if len(weights) > 1 else None


def markers_text(profile: Profile) -> str | None:
    """List the words that count as missing, without those that do in any table."""
    counts = [
        f"{column.name}: {' '.join(words)}"
        for column in profile.columns
        if (words := [word for word in column.counts.markers if word in MISSING_WORDS])
    ]
    if not counts:
        return None
    return f"Counted as missing, name them in input.missing_markers: {'; '.join(counts)}"


def unit_text(profile: Profile) -> str | None:
    """Say that people seem to have several records, and which columns may number them."""
    if profile.unit is None:
        names = ", ".join(profile.possible_units or ())
        return f"Who is a person here? {names} may number people or households" if names else None
    unit = next(column for column in profile.columns if column.name == profile.unit)
    return (
        f"{profile.unit} repeats: {unit.counts.distinct:,} values in {profile.rows:,} rows. If it "
        f"is a person, count people: privacy.unit: {profile.unit}"
    )


def profile_card(
    title: str, profile: Profile, charts: Callable[[], Sequence[Chart]] = tuple
) -> Card:
    """Summarize a profile, with values only if the profile has examples."""
    unique = unique_text(profile)
    source = profile.source
    figures: list[tuple[str, Cell]] = [("records", profile.rows), ("columns", len(profile.columns))]
    figures += [(source.format, note) for note in source.notes]
    remarks = [
        markers_text(profile),
        measured_text(profile),
        *unique[:-1],
        *dependency_texts(profile),
        *roles_texts(profile),
        weights_text(profile),
        unit_text(profile),
    ]
    return Card(
        title,
        unique[-1] if unique else no_sets_text(profile),
        None,
        figures,
        [_columns(profile), *_sets(profile)],
        remarks=[text for text in remarks if text],
        charts=charts,
    )


def _columns(profile: Profile) -> Table:
    """Show a row for each column."""
    names = ["column", "kind", "values", "missing", "unique", f"<{profile.k}", "looks like"]
    with_examples = any(column.examples for column in profile.columns)
    rows: list[list[Cell]] = [
        [
            column.name,
            column.kind,
            column.counts.distinct,
            percent(column.counts.missing, profile.rows, short=True),
            percent(column.counts.unique, profile.rows, short=True),
            percent(column.counts.few, profile.rows, short=True),
            column.looks_like or "",
            *([" · ".join(column.examples)] if with_examples else []),
        ]
        for column in profile.columns
    ]
    title = f"Columns: values, and records whose value no one else or fewer than {profile.k} share"
    return Table(title, [*names, *(["examples"] if with_examples else [])], rows)


def _sets(profile: Profile) -> list[Table]:
    """Show the sets of columns that identify the most records."""

    def share(records: int) -> str:
        return percent(records, profile.sample_rows, short=True)

    columns = ["columns", "distinction", "separation", "unique", f"fewer than {profile.k}"]
    tables = []
    for size, title in ((2, "Pairs that identify most"), (3, "Triples that identify most")):
        rows = [
            [" + ".join(group.columns), ratio_text(group.distinction),
             ratio_text(group.separation), share(group.unique), share(group.few)]
            for group in profile.uniqueness.of_size(size)[:SHOWN]
        ]  # fmt: skip
        tables.append(Table(title, columns, rows))
    causing = [
        [" + ".join(group.columns), share(group.minimal_unique)]
        for group in profile.uniqueness.causing(SHOWN)
    ]
    tables.append(Table("Smallest identifying combinations", ["columns", "records"], causing))
    return [table for table in tables if table.rows]


def write_page(files: Files, path: str, profile: Profile) -> None:
    """Write the page to a file, or replace ours. Raises PublishingError if it cannot be written."""
    require_ours(files, "--html", path)
    try:
        files.replace(path, profile_page(profile).encode(), f".{path.rpartition('/')[2]}.writing")
    except OSError as error:
        raise PublishingError(
            f"--html: nothing can be written to {path}. Check the path, permissions and free space"
        ) from error


def profile_page(profile: Profile) -> str:
    """Make the HTML page of a profile, which loads nothing and runs no script.

    It shows values only if the profile has examples.
    """
    remarks = _texts(weights_text(profile), unit_text(profile))
    dependencies = dependency_texts(profile) or [_NONE]
    sections = [
        Section(
            "columns",
            "Columns",
            [_columns(profile), *_texts(markers_text(profile)), _chart(profile)],
        ),
        Section("roles", "Proposed roles", [_roles(profile), *remarks]),
        Section("sets", "Columns together", _sets(profile)),
        Section("dependencies", "Columns that give others away", _texts(*dependencies)),
    ]
    return render(
        title="Profile",
        subtitle=(
            f"{profile.source.path}: {profile.rows:,} rows, {len(profile.columns):,} columns"
        ),
        opening=Section("meaning", "What this means", _meaning(profile)),
        sections=sections,
        footer=f"Made by anonspark {__version__}, before anything was anonymized.",
    )


def _texts(*texts: str | None) -> list[Block]:
    """Return paragraphs of the texts that are not empty."""
    return [Text(text) for text in texts if text]


def _chart(profile: Profile) -> Block:
    """Draw a bar for each column: the share of records that have a rare value."""
    names = [column.name for column in profile.columns]
    shares = [100 * column.counts.few / profile.rows for column in profile.columns]
    title = f"Records whose value fewer than {profile.k} share"
    figures = Table(
        title,
        ["column", "share of records"],
        [
            [column.name, percent(column.counts.few, profile.rows, short=True)]
            for column in profile.columns
        ],
    )
    chart = Bars(
        title,
        names,
        [Series("records", shares)],
        "share of the records (%)",
        "columns",
        limit=100,
        words=[[f"{name}: {share} of the records"] for name, share in figures.rows],
    )
    return bar_chart("few", chart, "A bar for each column: " + title.lower(), figures)


def _roles(profile: Profile) -> Table:
    """Return the table of proposed roles."""
    return Table(
        "Roles that anonspark init would write. Correct them",
        ["column", "role", "because"],
        [[column.name, Role(ROLES[column.role]), column.reason] for column in profile.columns],
    )


def _meaning(profile: Profile) -> list[Block]:
    """Return the figures that the page opens with, the strongest first."""
    *fewer, last = unique_text(profile) or [no_sets_text(profile)]
    return [Text(last, "strong"), *_texts(*fewer, measured_text(profile))]
