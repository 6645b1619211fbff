"""The page docs/reproduction.md: what is told about the figures, computed from them."""

# ruff: noqa: E501 - lines of the page

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from printed_figures import Place, printed_figures
from reproduce import (
    TABLES,
    VURAL_TOTALS,
    Experiments,
    Line,
    as_summed_up_by_the_thesis,
    canbay_line,
    cells_table,
    count_verdicts,
    of_round,
    overview,
    table_of,
    vural_line,
    without_rounds,
)

Tables = dict[str, list[Line]]
Printed = Mapping[Place, Mapping[str, str]]

TITLES = {
    "4": "Mondrian and u-Mondrian on Adult",
    "5": "Canon and relaxed Mondrian on Adult",
    "6": "Canon and u-Canon on Adult",
    "7": "SMondrian and Su-Mondrian on Adult copied 10 times",
}
ROWS = {"strict": 30_162, "relaxed": 30_162, "canon": 30_162, "scale": 301_620}

LEARNING = "## Theses on learning"
"""The heading of the section that quality/learning_page.py writes."""

HEAD = """\
# The theses reproduced

Written by `make reproduce`, from the grids in `conf/experiments/` and the printed figures in
`conf/experiments/printed/`. Do not edit it. You need Adult in `$ANONSPARK_DATA` (default
`../shared/data`), which `anonspark fetch adult --out DIR` gets. Figures in `out/reproduction` are used
again as long as code, grids and data are the same. Two theses on models that
learn have [a separate section](#theses-on-learning).

Results for Canbay 2019, if you compute them with `model.published: canbay-2019`:

- **Strict Mondrian without rounds** has every printed figure, to the digit. The print cuts some off instead of rounding them.
- **Strict Mondrian with rounds** has the printed records, classes and DM of round 1. From then on figures
  differ by what the thesis leaves out of its sums (R) and does not name (L). GCP of all rounds is a few
  percent apart.
- **Relaxed Mondrian** has the printed sizes of classes. The print measures GCP in another way (C).
- **Canon** draws at random, in the thesis and here (V).
- **Adult copied 10 times** is cut exactly here, and not in the thesis (X).

You read the tables like this:

| cell | verdict | meaning |
| --- | --- | --- |
| `4553` | equal | ours has the printed digits |
| `3952.61 ≈ 3952.6170` | within the print's rounding | less than one unit of the last printed place apart: the theses cut off figures instead of rounding them |
| `223160 → 223054 (-106)` | better | ours loses less, or has more classes, of the same records and by the same measure |
| the same | differs | in any other way; the letters of the overview explain *why* |

A figure is only *better* if both are about the same number of records and mean the same. If our sums hold records that the print leaves out, and are smaller all the same, they are also better.
GCP of relaxed Mondrian, of Canon and of Adult copied 10 times is never called better, nor is anything
that follows from it: reasons C, V and X. The line *5, remainders left out* compares printed figures
once more and is not counted.
"""

VURAL_HEAD = """\
UEC are utility classes, OEC records without one (the outlier class), ESO the average class size with
the outlier class among the classes. Tables on the data sets CUP and DEMOGRAFIK are left out: both are
public, but not in our data. You find the settings that give the printed figures in
[corrections to the thesis](models.md#corrections-to-the-thesis).
"""


def page(experiments: Experiments, data: Path) -> str:
    """Return the page.

    Parameters
    ----------
    experiments : Experiments
        All results.
    data : Path
        Folder with Adult.
    """
    canbay, vural = printed_figures("canbay-2019"), printed_figures("vural-2017")
    of_canbay = _canbay_tables(experiments, canbay)
    of_vural: Tables = {}
    for place, figures in vural.items():
        of_vural.setdefault(place.table, []).append(vural_line(experiments, place, figures))
    parts = [
        HEAD,
        "## Overview",
        _total({**of_canbay, **of_vural}),
        "### Canbay 2019",
        "\n".join(overview(of_canbay, {name: _why_canbay(name) for name in of_canbay})),
        "### Vural 2017",
        "\n".join(overview(of_vural, {name: _why_vural(name) for name in of_vural})),
        "## Why figures differ",
        *_reasons(experiments, canbay, data),
        "## Tables of Canbay 2019",
        "i is the round, `-` the model without outlier handling. |N| and |O| are its normal and "
        "outlier records, ES classes, DM the discernibility metric, GCP the certainty penalty "
        "(`gcp_total`), AECS the mean class size. `_T` is cumulative. The line *5, remainders left "
        "out* has the fifth of six rounds (reason R).",
        *_sections(of_canbay, lambda name: f"Table {name}: {_title(name, canbay)}"),
        "## Tables of Vural 2017",
        VURAL_HEAD,
        *_sections(of_vural, _vural_title),
    ]
    return _joined(parts)


def with_learning(text: str, section: Sequence[str] | None, before: str) -> str:
    """Return a page with the section on theses on learning at its end, and with today's head.

    Parameters
    ----------
    text : str
        The page, with the section or without.
    section : sequence of str or None
        Its paragraphs; None takes the section that was there before.
    before : str
        The page as it was.
    """
    kept, _, _ = text.partition(f"\n{LEARNING}\n")
    _, heading, rest = before.partition(f"\n{LEARNING}\n")
    _, overview_heading, body = kept.partition("## Overview\n")
    learning = heading + rest if section is None else "\n" + _joined(section)
    return f"{_joined([HEAD])}\n{overview_heading}{body.rstrip()}\n{learning}"


def _joined(parts: Sequence[str]) -> str:
    blocks = (block for part in parts for block in part.strip("\n").split("\n\n"))
    return "\n\n".join(map(_filled, blocks)) + "\n"


def _filled(block: str) -> str:
    """Break the lines of a paragraph or a list."""
    if block.startswith(("|", "#")):
        return block
    items = re.split(r"\n(?=- )", block)
    return "\n".join(
        textwrap.fill(
            " ".join(item.split()),
            100,
            subsequent_indent="  " * item.startswith("- "),
            break_long_words=False,
            break_on_hyphens=False,
        )
        for item in items
    )


def _canbay_tables(experiments: Experiments, printed: Printed) -> Tables:
    tables: Tables = {}
    for place, figures in printed.items():
        lines = tables.setdefault(place.table, [])
        lines.append(canbay_line(experiments, place, figures))
        if place.round == "5":
            more = as_summed_up_by_the_thesis(experiments, place, figures)
            if more is not None:
                lines.append(more)
    return tables


def _total(tables: Tables) -> str:
    found = count_verdicts([line for lines in tables.values() for line in lines])
    total = sum(found.values())
    return (
        f"{total:,} figures: {found['equal']:,} are equal, {found['rounding']:,} within the print's "
        f"rounding, {found['better']:,} are better, {found['differs']:,} differ. The letters stand "
        "for [reasons](#why-figures-differ)."
    )


def _why_canbay(table: str) -> str:
    chapter = TABLES[table]
    first, last = {"strict": (1, 6), "relaxed": (9, 14)}.get(chapter, (1, 6))
    number = int(table.partition(".")[2])
    is_round = table[0] != "5" and (first <= number <= last if table[0] != "7" else number <= 5)
    letters = {"strict": "R, L", "relaxed": "R, C", "canon": "R, V", "scale": "X, R, L"}[chapter]
    if table == "5.1":
        return "C, V, S"
    if table == "5.2":
        return "C"
    slips = {"6.1", "6.2", "6.4", "7.2"}
    if is_round:
        return f"{letters}, S" if table in slips else letters
    return f"{letters}, A" + (", S" if table in {"4.15", "6.7", "6.8"} else "")


def _why_vural(table: str) -> str:
    return {
        "Figures 4-22 to 4-27": "G",
        "4-6": "G",
        "4-7": "P",
    }.get(table, "")


def _title(table: str, printed: Printed) -> str:
    places = [place for place in printed if place.table == table]
    title = TITLES[table[0]]
    if table[0] == "4":
        title += f", {TABLES[table]}"
    if places[-1].round:
        return f"{title}, k = {places[0].k}"
    improvement = next(iter(printed[places[0]])).endswith("%")
    return f"{title}, " + ("improvement in percent" if improvement else "overall")


def _vural_title(name: str) -> str:
    titles = {
        "4-4": "Table 4-4: most classes as objective, Adult",
        "4-5": "Table 4-5: discernibility as objective, Adult",
        "Figures 4-22 to 4-27": "Figures 4-22 to 4-27: k = 5",
        "4-6": "Table 4-6: k = 5",
        "Figures 4-28 to 4-33": "Figures 4-28 to 4-33: k = 5, l = 2",
        "4-7": "Table 4-7: k = 5, l = 2",
        "Figures 4-34 to 4-39": "Figures 4-34 to 4-39: k = 5, t = 0.2, levels of the thesis",
        "4-8": "Table 4-8: k = 5, t = 0.2",
    }
    return titles[name]


def _sections(tables: Tables, title: Callable[[str], str]) -> Iterator[str]:
    for name, lines in tables.items():
        first = lines[0][0]
        if name in VURAL_TOTALS:
            head = "model"
        elif name.startswith("Figures"):
            head = "round"
        else:
            head = "i" if first == "-" else "k" if first.isdigit() else "k, model"
        yield f"### {title(name)}"
        yield "\n".join(table_of(head, lines))


# Reasons ------------------------------------------------------------------------------------------


def _reasons(experiments: Experiments, printed: Printed, data: Path) -> Iterator[str]:
    yield _remainders(experiments, printed)
    yield _averages(printed)
    yield _other_outliers(experiments, printed)
    yield _cells(experiments, printed, data)
    yield _vantage(experiments, printed)
    yield _tree(experiments, printed)
    yield _slips(printed)
    yield _levels(experiments)
    yield _per_cent(experiments)


def _round_tables(printed: Printed) -> Iterator[tuple[str, int, dict[str, Mapping[str, str]]]]:
    """Return the tables with rounds: name, k, and the lines by round."""
    with_rounds = (place for place in printed if place.round)
    for (table, k), places in groupby(with_rounds, lambda place: (place.table, place.k)):
        yield table, int(k), {place.round: printed[place] for place in places}


def _remainders(experiments: Experiments, printed: Printed) -> str:
    tables = list(_round_tables(printed))
    floors = multiples = more = equal = compared = relaxed = relaxed_equal = 0
    for table, k, lines in tables:
        last = lines["5"]
        floors += int(last["ES"]) == int(last["N"]) // k
        multiples += int(last["DM"]) % k**2 == 0 and int(last["DM"]) // k**2 <= int(last["ES"])
        more += int(last["ES"]) > int(last["DM"]) // k**2
        result = experiments.canbay(TABLES[table], k, rho=6)
        if len(result.rounds) < 6:
            continue
        compared += 1
        ours = of_round(result, 5)
        same = ours["DM_T"] == int(last["DM_T"])
        equal += same
        if TABLES[table] == "relaxed":
            relaxed += 1
            relaxed_equal += same and ours["DM"] == int(last["DM"])
    example = next(lines for table, _, lines in tables if table == "4.12")["5"]
    row = of_round(experiments.canbay("relaxed", 30), 5)
    return f"""### R: remainders of the last round

The last round keeps its groups whole, so that every record is published. The thesis sums it up as if
its groups had k records each: in {multiples} of {len(tables)} tables DM of round 5 is a multiple of
k², and in {floors} of {len(tables)} ES is |N| / k, rounded down, in {more} of them more classes than
that DM has. Table 4.12: |N| = {example["N"]}, ES = {example["ES"]}, but DM = {example["DM"]} =
{int(example["DM"]) // 900} * 30², which are {int(example["DM"]) // 30} records. The other
{int(example["N"]) - int(example["DM"]) // 30} are in no sum. We count all of them: {row["ES"]:.0f}
classes, DM {row["DM"]:.0f}. So ES, DM and AECS of round 5, and all totals, differ.

You can check this: with `rho: 6` the fifth round separates its outliers like the others, and its figures are
those without remainders. DM and its total are then equal to the print in {relaxed_equal} of {relaxed}
relaxed tables, to the unit. Of all {compared} tables (where a sixth round has enough records) DM_T is
equal in {equal}."""


def _averages(printed: Printed) -> str:
    fits = count = 0
    for table, k, lines in _round_tables(printed):
        overall = {"strict": "4.7", "relaxed": "4.15", "canon": "6.7", "scale": "7.6"}
        name = overall[TABLES[table]]
        place = next(
            one
            for one in printed
            if (one.table, one.k) == (name, str(k))
            and one.model in ("u-Mondrian", "u-Canon", "Su-Mondrian")
        )
        mean = sum(float(lines[str(number)]["AECS"]) for number in range(1, 6)) / 5
        count += 1
        fits += abs(mean - float(printed[place]["AECS"])) < 0.0151
    return f"""### A: averages of averages

AECS of all rounds together is, in the overall tables, the mean of the five rounds' AECS ({fits} of
{count} cells), not the records divided by the classes: Table 4.7, k = 30: (4 * 30 + 42) / 5 = 32.4,
where 30162 / 1005 = 30.01. We divide. The percentages of AECS in the tables of improvements follow
from it."""


def _other_outliers(experiments: Experiments, printed: Printed) -> str:
    changes = []
    equal = count = 0
    shares = []
    first = float(printed[Place("4.2", "10", "1", "u-Mondrian")]["GCP"])
    tried = {
        "density" if "model.reference" in one.settings else one.settings["model.lof_neighbors"]: (
            one.rounds[0]["gcp_total"]
        )
        for one in experiments.results["canbay-2019-neighbors"]
    }
    by_density = tried.pop("density")
    near = min(tried, key=lambda one: abs(tried[one] - first))
    numbers = sorted(tried, key=lambda one: one or 9)
    listed = ", ".join(f"{one or 9}: {tried[one]:.2f}" for one in numbers)
    for table, k, lines in _round_tables(printed):
        if TABLES[table] != "strict":
            continue
        ours = of_round(experiments.canbay("strict", k), 1)
        line = lines["1"]
        count += 1
        equal += (ours["N"], ours["DM"]) == (int(line["N"]), int(line["DM"]))
        changes.append(100 * (ours["GCP"] / float(line["GCP"]) - 1))
        total = of_round(experiments.canbay("strict", k), 5)
        shares.append(100 * (total["GCP_T"] / float(lines["5"]["GCP_T"]) - 1))
    return f"""### L: other normal records

Without rounds every figure of strict Mondrian is equal (GCP cut off in the print), and so are |N|,
|O|, ES and DM of the first round ({equal} of {count} tables). GCP of the first round is
{min(changes):+.1f} to {max(changes):+.1f} % apart: the groups are the same, but in some of them other
k records are normal. The thesis does not name the number of neighbours of the local outlier factor, its treatment of equal records (two of the five columns are mostly zeros), or its rule for ties. The number of neighbours is not the only reason: for k = 10 the print has {first:.2f}, and we get, by number,
{listed} (`reference: density`: {by_density:.2f}), where {near or 9} comes nearest.
From the second round on the tables hold other records, so that strict cuts, which depend on the
values, make other numbers of classes. GCP of all rounds, with all records counted, is
{min(shares):+.1f} to {max(shares):+.1f} % apart."""


def _cells(experiments: Experiments, printed: Printed, data: Path) -> str:
    before, after = [], []
    counted = right = 0
    for table, k, lines in _round_tables(printed):
        if TABLES[table] != "relaxed":
            continue
        result = experiments.canbay("relaxed", k)
        own = without_rounds(result)["GCP"]
        before.append(float(lines["-"]["GCP"]) / own)
        after.append(float(lines["5"]["GCP_T"]) / of_round(result, 5)["GCP_T"])
        for number in range(1, 5):
            ours = of_round(result, number)
            for name in ("N", "O", "ES", "ES_T", "DM", "DM_T"):
                counted += 1
                right += ours[name] == int(lines[str(number)][name])
    table = "\n".join(cells_table(data, printed))
    improvements = [
        100 * (1 - of_round(experiments.canbay("relaxed", k), 5)["GCP_T"]
               / without_rounds(experiments.canbay("relaxed", k))["GCP"])
        for k in (5, 10, 20, 30, 40, 50)
    ]  # fmt: skip
    spans = [
        experiments.find("canbay-2019-relaxed", model__span="data", privacy__k=k).summary
        for k in (5, 50)
    ]
    return f"""### C: relaxed spans are cells

Sizes of relaxed classes only depend on the number of records: {right} of {counted} counts and DM of
rounds 1 to 4 are equal. GCP is not: the print is {min(before):.2f} to {max(before):.2f} times ours
without rounds, {min(after):.2f} to {max(after):.2f} times with them. It is measured in the cells of
the tree, which are wider than the records in them. A plain relaxed Mondrian, apart from the package
(`relaxed_cells` in `benchmarks/reproduce.py`), comes near the print if you measure it like this:

{table}

The rest is not explained. In the bounds of its records this plain tree loses more than ours,
because it shares out records that are equal in the attribute of the cut in the order of the file,
and ours by their other attributes. Ours is measured in the bounds of the records, which are published, so a smaller GCP is not counted as better here. It also changes what rounds gain: measured
in records, relaxed rounds save {min(improvements):.1f} to {max(improvements):.1f} % of GCP, not 16 to
45 % (Table 4.16), and relaxed Mondrian loses less than Canon with random vantage points, not more
(Table 5.2). The tables have `span: cell`. With `span: data` GCP_T is {spans[0]["gcp_total"]:.2f} at
k = 5 and {spans[1]["gcp_total"]:.2f} at k = 50."""


def _vantage(experiments: Experiments, printed: Printed) -> str:
    plain, rounds, left_out, spread = [], [], [], []
    for table, k, lines in _round_tables(printed):
        if TABLES[table] != "canon":
            continue
        result = experiments.canbay("canon", k)
        plain.append(100 * (without_rounds(result)["GCP"] / float(lines["-"]["GCP"]) - 1))
        rounds.append(100 * (of_round(result, 5)["GCP_T"] / float(lines["5"]["GCP_T"]) - 1))
        six = experiments.canbay("canon", k, rho=6)
        if len(six.rounds) == 6:
            without = of_round(six, 5)["GCP_T"]
            left_out.append(100 * (without / float(lines["5"]["GCP_T"]) - 1))
        default = experiments.find("canbay-2019-canon", model__vantage="spread", privacy__k=k)
        spread.append(100 * (default.summary["gcp_total"] / float(lines["5"]["GCP_T"]) - 1))
    second = of_round(experiments.canbay("canon", 5), 2)
    whole = of_round(experiments.canbay("canon", 5), 1)["O"]
    halves, rest = divmod(int(whole), 1024)
    return f"""### V: vantage points drawn at random

Canon cuts at the median distance from a record that is drawn at random, so each draw gives other classes. Our one draw is {min(plain):+.1f} to {max(plain):+.1f} % apart without rounds, and
{min(rounds):+.1f} to {max(rounds):+.1f} % with them, where reasons R and L add to it, and
{min(left_out):+.1f} to {max(left_out):+.1f} % if you leave out remainders, as there. The default,
`vantage: spread`, is {min(spread):+.1f} to {max(spread):+.1f} % apart from the print with rounds.

The halves of the thesis are not always equal: DM without rounds is larger than ours, which is the
smallest that cutting into halves gives. And most groups of exactly 2k records are not cut: in Table
6.1 round 2 has {int(whole) + 1} records, which ten cuts make groups of {halves} and {halves + 1}.
{rest} of our {int(whole)} are in groups of {halves + 1} = 2k that are cut once more (1024 + {rest} =
{second["ES"]:.0f} classes), and all but 6 of those of the thesis are not (1030 classes). All that follows in Table 6.1 differs because of that. Relaxed Mondrian in Table 4.9 has 1490, as here."""


def _tree(experiments: Experiments, printed: Printed) -> str:
    rows = []
    exact = same = 0
    more: list[str] = []
    ratios = []
    for table, k, lines in _round_tables(printed):
        if TABLES[table] != "scale":
            continue
        ours = without_rounds(experiments.canbay("scale", k))
        single = without_rounds(experiments.canbay("strict", k // 10))
        exact += (
            ours["ES"] == single["ES"]
            and ours["DM"] == 100 * single["DM"]
            and abs(ours["GCP"] - 10 * single["GCP"]) < 0.01
        )
        theirs = lines["-"]
        same += int(theirs["ES"]) == ours["ES"]
        if int(theirs["ES"]) > ours["ES"] and int(theirs["DM"]) < ours["DM"]:
            more.append(str(k))
        ratios.append(float(theirs["GCP"]) / ours["GCP"])
        rows.append(
            f"| {k} | {theirs['ES']} | {ours['ES']:.0f} | {single['ES']:.0f} | {theirs['GCP']} | "
            f"{ours['GCP']:.2f} | {10 * single['GCP']:.2f} |"
        )
    head = (
        "| k | printed ES | ours | one copy, k / 10 | printed GCP | ours | one copy, k / 10, "
        "times 10 |\n| --- | --- | --- | --- | --- | --- | --- |\n"
    )
    return f"""### X: the distributed tree of the thesis is not exact

Ten copies of a table have the medians of one, so an exact tree with 10 k must make the classes of one
copy with k, ten times as large. Ours does, in ES, DM and GCP, for {exact} of {len(rows)} k. The tree
of the thesis does so for {same}:

{head + chr(10).join(rows)}

Its classes are other ones. At k = {", ".join(more)} there are more and smaller of them, so that ES and
DM without rounds are better there. But GCP is {min(ratios):.1f} to {max(ratios):.1f} times that of the
exact tree. The print does not show which part of this comes from its cuts, and which part from its measure (reason C)."""


def _slips(printed: Printed) -> str:
    halves = 30_162**2 / 512
    dm = printed[Place("5.1", "30", "", "Canon")]
    return f"""### S: slips of the print

They are kept as printed.

- Table 5.1, Canon, k = 30: 512 classes of 30162 records have a DM of at least 30162² / 512 =
  {halves:.0f}, but {dm["DM"]} is printed. AECS {dm["AECS"]} means 30162 / {dm["AECS"]} =
  {30_162 / float(dm["AECS"]):.0f} classes. The same DM is in Tables 6.4 and 6.7 and, as a percentage,
  in 6.8.
- Table 4.15, k = 50: AECS is 50.08, the mean of the rounds (reason A) 50.8.
- Table 6.1, round 1: |N| + |O| is 30163, one more than there are records. DM is {102_391}, while 4096
  classes of 5 have {4096 * 25}.
- Table 6.2: GCP of round 1 is 2115.14, its total 2115.15.
- Table 7.2, round 5: ES_T is 1506, the sum 1508, as Table 7.6 has it."""


def _levels(experiments: Experiments) -> str:
    third = next(
        row for row in experiments.vural("Figures 4-22 to 4-27").rounds if row["round"] == 3
    )
    best = experiments.find(
        "vural-2017-k-t", model__t_reference="round", model__levels=None, model__rho=1
    )
    second = next(row for row in best.rounds if row["round"] == 2)
    return f"""### G: a node that is not in the lattice

The third anonymization with k alone (rho = 2: 141 classes, 307 outliers) is at no node of the printed hierarchies. The best one has {third["classes"]} classes and {third["outlier_rows"]} outliers. Table
4-6 follows from it. All other classes and outliers are equal.

With t-closeness the second round of the thesis (608 classes, 4331 outliers) is not the best node:
the search finds {second["classes"]} classes and {second["outlier_rows"]} outliers. Under suppression
t-closeness is not monotone, and pruning, as the tool of the thesis does it, may miss the best node.
The tables below have the levels of the thesis, given by `model.levels`. They are measured against
each round's own records, as there. The release as a whole violates t = 0.2
([t-closeness and rounds](models.md#t-closeness-and-rounds))."""


def _per_cent(experiments: Experiments) -> str:
    result = experiments.vural("Figures 4-28 to 4-33")
    classes = result.summary["classes"]
    first = next(row for row in result.rounds if row["round"] == 1)
    released = 100 * first["normal_rows"] / first["rows"]
    return f"""### P: two slips in Table 4-7

ESO with rounds, 23.18, is 30162 / {classes} = {30_162 / classes:.2f}: without the outlier class,
which the other averages have among the classes (30162 / {classes + 1} = {30_162 / (classes + 1):.2f}).
68.25 % of records in classes without rounds is 68.21 % in the thesis' own Figure 4-28
({released:.5f} %)."""
