"""Bugs on purpose: each has to be found by the tests.

    .venv/bin/python tools/mutants.py [PART OF A NAME ...]

Those of private selection, of what readers report, and at boundaries: each comparison of
:data:`BOUNDARIES` takes the value beside (``<`` becomes ``<=``). Copies the sources and tests, puts
one bug into the copy at a time, and runs the tests that are to find it. Prints a line for each, and
how many were tried, killed, and survived. Those of :data:`EQUIVALENT` change nothing that a test
could see: they are not tried. Ends with 1 if another one survived.
"""

from __future__ import annotations

import ast
import itertools
import os
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np  # noqa: F401 - once for all runs of the tests
import pyarrow.compute
import pyarrow.parquet  # noqa: F401
import pydantic  # noqa: F401
import pytest
import yaml  # noqa: F401

REPOSITORY = Path(__file__).resolve().parents[1]
COPIED = ("anonspark", "tests", "benchmarks", "pyproject.toml")

NOISE, SCORES = "core/exact_noise.py", "core/association.py"
MECHANISMS, WANTED = "sharing/selection/mechanisms.py", "sharing/selection/request.py"
SELECTING, COUNTING, DOMAINS = (
    f"sharing/selection/{name}.py" for name in ("selecting", "counting", "domains")
)
BUDGET, CHAIN, RUN = "sharing/ledger/budget.py", "sharing/ledger/chain.py", "pipeline/run.py"

LAWS = "tests/unit/core/test_exact_noise.py"
RUNS = "tests/unit/sharing/selection/test_mechanisms.py"
COUNTS = "tests/unit/sharing/selection/test_mechanisms.py"
LEDGER = "tests/unit/sharing/ledger/test_budget.py"
COMMAND = "tests/releases/test_select.py -k 'not XML'"
RELEASES = "tests/releases/test_ledgers.py"
VERIFYING, VALUE_TEXTS = "pipeline/verifying.py", "engine/values/value_texts.py"
RECOUNT = "verification/proof/recount.py"
FEW = "tests/unit/test_boundaries_of_k.py"
"""What is shown, kept, counted or refused at k - 1, k and k + 1."""
BEGUN = "tests/releases/test_before_rounds.py"
COUNTED = "tests/guarantees/test_staged_release_is_counted.py -k 'not spark'"
KERNELS, LAYERS, REPORTS = "tests/unit/kernels/", "tests/unit/layers/", "tests/unit/reporting/"
EXCHANGED = f"{KERNELS}test_refinement.py -k 'where_the_exchange'"
PAIRS, PROOFS = "tests/unit/sharing/pairs/", "tests/unit/verification/"


@dataclass(frozen=True)
class Mutant:
    """A bug on purpose.

    Parameters
    ----------
    name : str
    file : str
        Below ``anonspark/``.
    right, wrong : str
        What stands there once, and what takes its place.
    tests : str
        Files of the tests that are to find it, with blanks between them, and options of pytest.
    start : int or None
        Where ``right`` is, in bytes. None where it occurs once.
    """

    name: str
    file: str
    right: str
    wrong: str
    tests: str
    start: int | None = None

    def put_into(self, source: str) -> str:
        """Return the source with the bug."""
        if self.start is None:
            if source.count(self.right) != 1:
                sys.exit(f"{self.name}: found {source.count(self.right)} times in {self.file}")
            return source.replace(self.right, self.wrong)
        content = source.encode()
        stop = self.start + len(self.right.encode())
        return (content[: self.start] + self.wrong.encode() + content[stop:]).decode()


@dataclass(frozen=True)
class Boundaries:
    """Comparisons of a file, each of which is a boundary.

    Parameters
    ----------
    file : str
        Below ``anonspark/``.
    tests : str
        As of a mutant.
    pattern : str
        Regular expression that is in the source of those to be tried, after their function.
    """

    file: str
    tests: str
    pattern: str = ""

    def mutants(self) -> Iterator[Mutant]:
        """Yield a mutant for each operator that has a boundary."""
        source = (REPOSITORY / "anonspark" / self.file).read_text(encoding="utf-8")
        lines = source.encode().splitlines(keepends=True)
        starts = [0, *itertools.accumulate(map(len, lines))]
        seen: Counter[str] = Counter()
        for function, node in _comparisons(ast.parse(source), ""):
            text = " ".join(ast.unparse(node).split())
            if not re.search(self.pattern, f"{function}: {text}"):
                continue
            seen[text] += 1
            again = f" #{seen[text]}" if seen[text] > 1 else ""
            sides = [node.left, *node.comparators]
            for index, operator in enumerate(node.ops):
                if type(operator) not in _BESIDE:
                    continue
                right, wrong = _BESIDE[type(operator)]
                low, high = sides[index], sides[index + 1]
                start = starts[low.end_lineno - 1] + low.end_col_offset  # type: ignore[operator]
                stop = starts[high.lineno - 1] + high.col_offset
                start += source.encode()[start:stop].index(right.encode())
                other = f" (operator {index + 1})" if len(node.ops) > 1 else ""
                name = f"{self.file} {function}: {text}{again} -> {wrong}{other}"
                yield Mutant(name, self.file, right, wrong, self.tests, start)


_BESIDE = {ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">")}


def _comparisons(node: ast.AST, function: str) -> Iterator[tuple[str, ast.Compare]]:
    """Yield comparisons with the functions that they are in, in the order of the source."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        function = f"{function}.{node.name}".strip(".")
    if isinstance(node, ast.Compare):
        yield function, node
    for child in ast.iter_child_nodes(node):
        yield from _comparisons(child, function)


MUTANTS = [
    # Noise.
    Mutant("noise of another scale", NOISE, "(u + t * v) // s", "(u + t * v) // (s + 1)", LAWS),
    Mutant(
        "u is never refused",
        NOISE,
        "if not _bernoulli_of_at_most_one(u, t, below):",
        "if not _bernoulli_of_at_most_one(0, t, below):",
        LAWS,
    ),
    Mutant("zero comes twice", NOISE, "if negative and y == 0:", "if False:", LAWS),
    Mutant("noise goes one way", NOISE, "return -y if negative else y", "return y", LAWS),
    Mutant("coins turned over", NOISE, "return j % 2 == 1", "return j % 2 == 0", LAWS),
    Mutant("coins off by one", NOISE, "    j = 1\n", "    j = 2\n", LAWS),
    Mutant("steps of exp too long", NOISE, "a -= b", "a -= 2 * b", LAWS),
    Mutant(
        "exp of what is left only",
        NOISE,
        "            return False\n        a -= b",
        "            pass\n        a -= b",
        LAWS,
    ),
    Mutant(
        "no permutation", NOISE, "chosen = below(len(indices))", "chosen = len(indices) - 1", LAWS
    ),
    Mutant(
        "permutation not uniform",
        NOISE,
        "chosen = below(len(indices))",
        "chosen = min(below(len(indices)), below(len(indices)))",
        LAWS,
    ),
    Mutant(
        "compared with the worst", NOISE, "best = max(scores)", "best = sorted(scores)[-2]", LAWS
    ),
    Mutant(
        "chance of floats",
        MECHANISMS,
        "cell + discrete_laplace(scale.numerator, scale.denominator, below)",
        "cell + round(np.random.default_rng().laplace(0, float(scale)))",
        RUNS,
    ),
    Mutant(
        "empty cells without noise",
        MECHANISMS,
        "cell + discrete_laplace(scale.numerator, scale.denominator, below)",
        "cell + (discrete_laplace(scale.numerator, scale.denominator, below) if cell else 0)",
        RUNS,
    ),
    Mutant(
        "other and missing without noise",
        MECHANISMS,
        "for row in table.tolist()",
        "for row in table.tolist()[:-2]\n            ] + table.tolist()[-2:",
        RUNS,
    ),
    Mutant(
        "all cells have one noise",
        MECHANISMS,
        "    return [\n        np.array(",
        "    drawn = discrete_laplace(scale.numerator, scale.denominator, below)\n"
        "    return [table + drawn for table in tables] or [\n        np.array(",
        RUNS,
    ),
    Mutant(
        "a seed for noise",
        SELECTING,
        "below: Below = secrets.randbelow",
        "below: Below = __import__('random').Random(0).randrange",
        LAWS,
    ),
    # Scores and widths.
    Mutant("width halved", SCORES, "WIDTH_OF_GINI = 2 * UNITS", "WIDTH_OF_GINI = UNITS", LAWS),
    Mutant(
        "chi-square itself under top",
        MECHANISMS,
        "else gini_score(table)\n",
        "else int(256 * chi_square(table))\n",
        RUNS,
    ),
    Mutant(
        "records at most, one too few",
        SCORES,
        "UNITS * _largest_change(records_at_most - 1)",
        "UNITS * _largest_change(records_at_most - 2)",
        LAWS,
    ),
    Mutant(
        "width without what rounding adds",
        SCORES,
        "_largest_change(records_at_most - 1)) + 2",
        "_largest_change(records_at_most - 1))",
        LAWS,
    ),
    Mutant(
        "records beyond the bound are scored in full",
        SCORES,
        "if records_at_most is None or total <= records_at_most:",
        "if total:",
        LAWS,
    ),
    Mutant(
        "gini rounded up",
        SCORES,
        "UNITS * sum(cell * cell for cell in row) // total",
        "-(-UNITS * sum(cell * cell for cell in row) // total)",
        LAWS,
    ),
    Mutant(
        "information rounded up",
        SCORES,
        "math.floor(UNITS * math.fsum(terms))",
        "math.ceil(UNITS * math.fsum(terms))",
        LAWS,
    ),
    Mutant(
        "negative cells are kept",
        SCORES,
        "return np.maximum(np.concatenate(parts), 0)",
        "return np.concatenate(parts)",
        LAWS,
    ),
    # Composition.
    Mutant(
        "scaled by the chosen number",
        WANTED,
        "scale_of(len(self.candidates), self.of_a_record)",
        "scale_of(self.settings.selection.count, self.of_a_record)",
        COMMAND,
    ),
    Mutant(
        "every choice has all of epsilon",
        MECHANISMS,
        "epsilon / count / width_of(",
        "epsilon / width_of(",
        RUNS,
    ),
    Mutant(
        "replaced as added",
        MECHANISMS,
        'steps = 2 if neighbors == "replace" else 1',
        "steps = 1",
        RUNS,
    ),
    Mutant(
        "a person as a record", MECHANISMS, "epsilon / (steps * records)", "epsilon / steps", RUNS
    ),
    Mutant(
        "rows per person forgotten",
        WANTED,
        "options.neighbors, options.rows_per_person)",
        "options.neighbors)",
        COMMAND,
    ),
    Mutant(
        "tables of the chosen for nothing",
        WANTED,
        "return self.epsilon + self.of_tables +",
        "return self.epsilon +",
        COMMAND,
    ),
    # Bins that are drawn.
    Mutant(
        "each level of cuts has all of epsilon",
        MECHANISMS,
        "rate = epsilon / levels / (2 * right)",
        "rate = epsilon / (2 * right)",
        RUNS,
    ),
    Mutant(
        "a cut's score changes one way only",
        MECHANISMS,
        "rate = epsilon / levels / (2 * right)",
        "rate = epsilon / levels / right",
        RUNS,
    ),
    Mutant(
        "the smaller change of a cut's score",
        MECHANISMS,
        "rate = epsilon / levels / (2 * right)",
        "rate = epsilon / levels / (2 * left)",
        RUNS,
    ),
    Mutant(
        "levels of cuts rounded down",
        MECHANISMS,
        "levels = (quantiles - 1).bit_length()",
        "levels = max(1, quantiles.bit_length() - 1)",
        RUNS,
    ),
    Mutant(
        "shares of a quantile exchanged",
        MECHANISMS,
        "-abs(right * before - left * (records - before))",
        "-abs(left * before - right * (records - before))",
        RUNS,
    ),
    Mutant(
        "a cut one row too high",
        MECHANISMS,
        "middle = start + 1 + permute",
        "middle = start + 2 + permute",
        RUNS,
    ),
    Mutant(
        "bins that end an edge too late",
        DOMAINS,
        "self.edges[cut - 1] for cut in cuts",
        "self.edges[cut] for cut in cuts",
        RUNS,
    ),
    Mutant(
        "bins for nothing",
        WANTED,
        "return self.epsilon + self.of_tables + sum(self.of_bins.values())",
        "return self.epsilon + self.of_tables",
        COMMAND,
    ),
    Mutant(
        "bins of a person as of a record",
        SELECTING,
        "query.loss_of_a_record(query.of_bins[candidate.name])",
        "query.of_bins[candidate.name]",
        COMMAND,
    ),
    # Counting.
    Mutant(
        "a target that is not declared counts",
        COUNTING,
        "left_out = classes >= self.target.other",
        "left_out = classes > self.target.other",
        COUNTS,
    ),
    Mutant("one record of a person too many", COUNTING, "ranks < most", "ranks <= most", COUNTS),
    Mutant(
        "any records of a person",
        COUNTING,
        "np.lexsort((table[_KEY].to_numpy(), people))",
        "np.argsort(people, kind='stable')",
        COUNTS,
    ),
    Mutant(
        "records of nobody count",
        COUNTING,
        "(classes != _LEFT_OUT) & np.asarray(people.is_valid())",
        "classes != _LEFT_OUT",
        COUNTS,
    ),
    Mutant("edges belong to the bin below", DOMAINS, 'side="right"', 'side="left"', COUNTS),
    Mutant(
        "other values are missing",
        DOMAINS,
        "np.where(is_declared, self._rows[positions], self.other)",
        "np.where(is_declared, self._rows[positions], self.missing)",
        COUNTS,
    ),
    # The ledger.
    Mutant(
        "charged after the draw",
        SELECTING,
        "        entry = charge(",
        "        _draw(wanted, counts, below)\n        entry = charge(",
        COMMAND,
    ),
    Mutant(
        "half is charged",
        SELECTING,
        "query.limit, query.charged, content)",
        "query.limit, query.charged / 2, content)",
        COMMAND,
    ),
    Mutant(
        "the largest loss is the sum",
        BUDGET,
        "_append(files, budget, new, budget.spent + loss)",
        "_append(files, budget, new, max(budget.spent, loss))",
        LEDGER,
    ),
    Mutant(
        "twice the limit",
        BUDGET,
        "if self.spent + loss > self.limit:",
        "if self.spent + loss > 2 * self.limit:",
        LEDGER,
    ),
    Mutant(
        "less than the limit",
        BUDGET,
        "if self.spent + loss > self.limit:",
        "if self.spent + loss >= self.limit:",
        LEDGER,
    ),
    Mutant(
        "relations turned over",
        BUDGET,
        'epsilon / 2 if self.neighbors == "add_remove" else epsilon * 2',
        'epsilon * 2 if self.neighbors == "add_remove" else epsilon / 2',
        LEDGER,
    ),
    Mutant(
        "another unit is taken",
        BUDGET,
        "if limit.unit != self.unit:",
        "if limit.unit is None:",
        LEDGER,
    ),
    Mutant(
        "another limit is taken",
        BUDGET,
        "if limit.limit is not None and limit.limit != self.limit:",
        "if limit.limit is None and False:",
        LEDGER,
    ),
    Mutant(
        "the chain is not checked",
        CHAIN,
        "if stated != (number, digests[-1]):",
        "if stated[0] != number:",
        LEDGER,
    ),
    Mutant(
        "sums are not checked",
        BUDGET,
        "if loss >= 0 and sums == (spent, spent + loss) else None",
        "if loss >= 0 else None",
        LEDGER,
    ),
    Mutant(
        "an entry is written over",
        CHAIN,
        "    create_whole(files, path, text)\n",
        "    files.write_atomically(path, text)\n",
        LEDGER,
    ),
    Mutant(
        "releases are listed after they are published",
        RUN,
        "if (register := register_of(context)) is not None:\n"
        "                register.list_staged(context, staged.release)\n"
        "            release = staged.publish()\n",
        "release = staged.publish()\n"
        "            if (register := register_of(context)) is not None:\n"
        "                register.list_staged(context, staged.release)\n",
        RELEASES,
    ),
    # What a run counts again before it publishes.
    Mutant("records are not counted again", VERIFYING, "published.rows != rows", "False", COUNTED),
    Mutant(
        "more records are as good",
        VERIFYING,
        "published.rows != rows",
        "published.rows < rows",
        COUNTED,
    ),
    Mutant("people are not counted again", RECOUNT, "failures += units.broken(k)", "pass", COUNTED),
    Mutant("promises are not required", VERIFYING, "    if broken:", "    if False:", COUNTED),
    Mutant(
        "the smallest class may have k - 1 records",
        RECOUNT,
        "published.smallest < k",
        "published.smallest < k - 1",
        f"{COUNTED} {FEW}",
    ),
    # What is compared.
    Mutant(
        "whole numbers beside floats are taken as they come",
        VALUE_TEXTS,
        "changed = pc.or_(changed, pc.invert(pc.or_(same, both_null)))",
        "pass",
        "tests/unit/engine/values/test_value_texts.py",
    ),
    Mutant(
        "floats beside others, too",
        VALUE_TEXTS,
        "pa.types.is_floating(data_type) and pa.types.is_floating(target)",
        "pa.types.is_floating(data_type) or pa.types.is_floating(target)",
        "tests/unit/engine/values/test_value_texts.py",
    ),
    Mutant(
        "ends of rules are not rounded",
        "sharing/pairs/classes.py",
        'compared_as == "float" and attribute.rule is not None',
        "False",
        f"{PAIRS}test_pair_bounds.py",
    ),
    Mutant(
        "all ends are rounded",
        "sharing/pairs/classes.py",
        'compared_as == "float" and attribute.rule is not None',
        'compared_as == "float"',
        f"{PAIRS}test_pair_bounds.py",
    ),
    Mutant(
        "columns that are no attributes are logged",
        "engine/values/csv_reader.py",
        "published = self.attributes is None or name in self.attributes",
        "published = True",
        "tests/unit/engine/values/test_grammar.py -k stay",
    ),
    Mutant(
        "no column is logged where attributes are unknown",
        "engine/values/csv_reader.py",
        "published = self.attributes is None or name in self.attributes",
        "published = self.attributes is not None and name in self.attributes",
        "tests/unit/engine/values/test_grammar.py -k stay",
    ),
    Mutant(
        "a rounded share is cut off",
        "core/figure_text.py",
        "int(some / k + 0.5)",
        "int(some / k)",
        FEW,
    ),
    Mutant(
        "a rounded share above 1",
        "core/figure_text.py",
        "/ records, 1.0)",
        "/ records, 2.0)",
        FEW,
    ),
    Mutant(
        "missing values beside few",
        "layers/evaluate/small_counts.py",
        "*(dropped - count for count in missing), ",
        "",
        FEW,
    ),
    Mutant(
        "k people with the most records",
        "layers/prepare/unit_counts.py",
        "int(largest[: k - 1].sum())",
        "int(largest[:k].sum())",
        FEW,
    ),
    Mutant(
        "a recipient of whom nothing is withheld is refused",
        "sharing/recipients/strategy.py",
        "if source.rows_withheld and granted < k:",
        "if granted < k:",
        FEW,
    ),
    # Exchanges of records. A run counts what they made once more: test_refined_releases.py.
    *(
        Mutant(f"refinement: {name}", f"kernels/{file}.py", right, wrong, EXCHANGED)
        for name, file, right, wrong in (
            ("who leaves stays counted", "criteria", "if i != leaving:", "if True:"),
            (
                "who enters is not counted",
                "criteria",
                "if entering >= 0:\n        record",
                "if False:\n        record",
            ),
            (
                "the size is that of before",
                "criteria",
                "after = size - int64(leaving >= 0) + int64(entering >= 0)",
                "after = size",
            ),
            (
                "counts of before are kept",
                "criteria",
                "after)\n    clear_counts(counts, present, distinct)",
                "after)",
            ),
            (
                "only who gives is judged",
                "group_exchange",
                "    ) and satisfies_after(checker, values, members[second], sizes[second], "
                "other_index, record)",
                "    )",
            ),
            (
                "only who gets is judged",
                "group_exchange",
                "satisfies_after(\n        checker, values, members[first], sizes[first], index, "
                "other\n    ) and ",
                "",
            ),
            (
                "one equal value is enough",
                "group_exchange",
                "(values[record] == values[other]).all()",
                "(values[record] == values[other]).any()",
            ),
            ("a group of k gives", "group_exchange", "if sizes[a] > k and", "if sizes[a] >= k and"),
            ("who moves is lost", "group_exchange", "sizes[partner] += 1", "pass"),
        )
    ),
]


def some(file: str, *names: str) -> str:
    """Return some tests of a file: of kernels as plain Python those that do not take long."""
    return " ".join(f"{KERNELS}{file}::test_{name}" for name in names)


BOUNDARIES = [
    # Small counts.
    Boundaries("layers/evaluate/small_counts.py", FEW),
    Boundaries("core/figure_text.py", FEW, "^rounded_share: "),
    Boundaries("core/figure_text.py", FEW, "^share_of_records: .*k$"),
    Boundaries("reporting/evidence.py", f"{FEW} {REPORTS}test_report_figures.py"),
    Boundaries("reporting/marginals.py", f"{FEW} {REPORTS}test_report_figures.py", "k$"),
    Boundaries("reporting/bins.py", f"{FEW} {REPORTS}test_report_figures.py", "k$"),
    Boundaries(
        "reporting/risk_sections.py", f"{FEW} {REPORTS}test_report_figures.py", "size_bins: .*k$"
    ),
    Boundaries(
        "pipeline/warnings/published_values.py",
        f"{FEW} tests/unit/pipeline/test_warning_figures.py",
        "^published_value_warnings",
    ),
    Boundaries(
        "pipeline/warnings/release_warning.py",
        f"{FEW} tests/unit/pipeline/test_warning_figures.py",
        "k",
    ),
    # Gates, and what a run refuses.
    Boundaries("layers/evaluate/gates.py", f"{FEW} {LAYERS}test_gates.py -k 'not groups_of_11'"),
    Boundaries("layers/prepare/unit_counts.py", FEW),
    Boundaries("layers/prepare/inspection.py", FEW, "^require_enough_rows"),
    Boundaries("sharing/recipients/strategy.py", FEW),
    Boundaries("sharing/recipients/joint_check.py", FEW),
    Boundaries("sharing/ledger/joint_classes.py", FEW),
    Boundaries(
        "sharing/ledger/check.py",
        f"{FEW} tests/unit/sharing/ledger/test_budget.py",
        "^(?!listed_files)",
    ),
    Boundaries("sharing/recipients/nested.py", FEW, "_stays"),
    Boundaries("sharing/recipients/plan.py", "tests/unit/sharing/recipients/test_plan.py", r"k\b"),
    Boundaries("profiling/draft.py", FEW, "k$"),
    Boundaries("profiling/counting.py", FEW, "k$"),
    Boundaries("verifier/check_release.py", FEW, "check_classes: .*k$"),
    Boundaries("pipeline/rounds.py", FEW, "may_show_values"),
    Boundaries("core/atom_reuse.py", f"{FEW} tests/unit/core/test_atom_reuse.py"),
    # Criteria.
    Boundaries(
        "core/criteria.py",
        f"{FEW} {KERNELS}test_criteria.py",
        "^(?!address_of|enough_pairs|matched_)",
    ),
    Boundaries("core/criterion.py", f"{FEW} {KERNELS}test_criteria.py"),
    Boundaries(
        "kernels/criteria.py",
        f"{KERNELS}test_criteria.py {KERNELS}test_merging.py -k 'not looked_at_together'",
        "^(?!_judge_elsewhere|satisfies_after)",
    ),
    Boundaries(
        "kernels/criteria.py",
        some(
            "test_refinement.py",
            "the_first_record_is_one_of_the_records",
            "a_changed_group_is_judged_as_the_reference_judges_it",
        ),
        "^satisfies_after",
    ),
    # Cuts.
    Boundaries("layers/partition/cutting.py", f"{FEW} {LAYERS}test_partition.py"),
    Boundaries("layers/partition/median_cut.py", f"{FEW} {LAYERS}test_partition.py"),
    Boundaries("kernels/merging.py", f"{KERNELS}test_merging.py -k 'not looked_at_together'"),
    Boundaries(
        "kernels/mondrian.py",
        some(
            "test_mondrian.py",
            "choice_of_the_boundary",
            "a_boundary_further_out_whose_side_is_just_large_enough",
            "same_groups_as_the_reference",
            "random_tables_against_the_reference",
            "zero_inflated_column_is_cut_by_the_balanced_rule_only",
            "fewer_than_2k_records_stay_together",
        ),
        r"\bk$|needed|2 \* k",
    ),
    Boundaries(
        "kernels/order_cutting.py",
        some(
            "test_microaggregation.py",
            "an_order_is_cut_at_the_lowest_cost",
            "of_equal_costs_the_last_group_of_an_order_is_the_smallest",
            "of_equal_costs_one_is_always_taken",
            "two_groups_of_large_k_that_no_multiple_of_the_unit_divides_are_not_cut",
            "records_are_cut_where_it_costs_least",
            "equal_records_are_cut_into_groups_of_k",
            "few_records",
        ),
        r"\bk$|cost",
    ),
    Boundaries(
        "kernels/separation.py",
        some(
            "test_separation.py",
            "same_records_as_the_reference",
            "same_records_as_the_reference_under_criteria",
            "same_records_as_the_reference_without_ties",
            "sums_of_neighbor_distances_count_duplicates",
            "groups_of_k_records_stay_whole",
        )
        + " "
        + some("test_local_outlier_factor.py", "equals_the_reference_with_records_repeated"),
        "k$|reach|neighbors$|shortest|violated",
    ),
    # Labels.
    Boundaries(
        "core/labels.py",
        f"{FEW} tests/unit/core/test_figures.py tests/unit/labels/test_regions.py",
    ),
    Boundaries("layers/generalize/classes.py", f"{FEW} {LAYERS}test_generalize.py"),
    Boundaries("labels/class_bounds.py", f"{FEW} tests/unit/labels/test_axes.py"),
    # Verification.
    Boundaries(
        "verification/proof/measures.py",
        f"{FEW} {PROOFS}test_measures.py {KERNELS}test_criteria.py",
    ),
    Boundaries("verification/proof/unit_criteria.py", FEW),
    Boundaries("verification/attacks/linkage.py", f"{FEW} {REPORTS}test_first_page.py"),
    Boundaries(RECOUNT, FEW),
    Boundaries("verification/proof/homogeneity.py", FEW),
    Boundaries("verification/proof/criteria.py", f"{FEW} {REPORTS}test_first_page.py"),
    # The joint check.
    Boundaries("sharing/pairs/classes.py", f"{FEW} {PAIRS}test_pair_bounds.py", "^(?!_collect)"),
    Boundaries("sharing/pairs/figures.py", f"{FEW} {PAIRS}test_pair_bounds.py"),
    Boundaries("sharing/pairs/original.py", f"{FEW} {PAIRS}test_pair_bounds.py"),
    # Publishing.
    Boundaries("layers/publish/file_assignment.py", f"{FEW} {LAYERS}test_class_table.py"),
    Boundaries("layers/publish/staging.py", f"{FEW} {BEGUN} tests/guarantees/test_resume.py"),
]

ROUNDING = "no figure is exactly the bound and what rounding may add to it"
EQUIVALENT: dict[str, str] = {
    "sharing/pairs/classes.py compatible_pairs: pairs > _MOST_VISITED -> >=": (
        "a limit of effort: one pair more or less is of no account"
    ),
    "layers/evaluate/gates.py GateResult._needed_k: risk < 1.02 * bound -> <=": (
        "what counts as rounded: no figure is 1.02 times a bound"
    ),
    "sharing/pairs/original.py count_pair_candidates: bounded.second < counts[1] -> <=": (
        "of two pairs with one number that of people in both releases is the last, and is taken"
    ),
    "layers/publish/file_assignment.py divide: largest <= most -> <": (
        "no class is found to be larger"
    ),
    "sharing/pairs/original.py _type_of_labels: table.num_rows > _MOST_LABELS -> >=": (
        "a limit of effort: one label more or less is of no account"
    ),
    "sharing/pairs/figures.py _with_absences: of_absence >= 0 -> >": (
        "absences are numbered after the classes, of which there is one at least"
    ),
    "sharing/pairs/original.py count_pair_candidates: bounded.first < counts[0] -> <=": (
        "the numbers of pairs of someone absent from the first release are no pair's"
    ),
    "sharing/pairs/figures.py _absences: records > 0 -> >=": (
        "an absence of no record is bounded by 0"
    ),
    "layers/generalize/classes.py _mean: np.abs(whole) < 2 ** 53 -> <=": (
        "2^53 and less than 1 more are one float"
    ),
    "layers/generalize/classes.py _exact_means: "
    "np.abs(members).max(initial=0.0) > 2.0 ** 900 -> >=": (
        "a factor that is a power of two changes no digit"
    ),
    "labels/class_bounds.py Bounds.fine: ends[1] - ends[0] > _SMALLEST_GAP -> >=": ROUNDING,
    "verification/proof/measures.py matched_values: matched < most -> <=": (
        "more values than asked for count as so many"
    ),
    "verification/proof/measures.py matched_values: matched[index] + len(owners) >= most -> >": (
        "more values than asked for count as so many"
    ),
    "verification/attacks/linkage.py CountCandidates.__call__: inside[single_classes] > 0 -> >=": (
        "classes without records of the table are left out afterwards"
    ),
    "verification/proof/criteria.py satisfies: figures >= criterion.limit - slack -> >": ROUNDING,
    "verification/proof/criteria.py satisfies: figures <= criterion.limit + slack -> <": ROUNDING,
    "sharing/pairs/classes.py _comparison: ordered <= {'integer'} -> <": (
        "whole numbers are compared as decimals, with the same result"
    ),
    "sharing/pairs/classes.py _comparison: ordered <= {'integer', 'decimal', 'float'} -> <": (
        "two releases have two kinds at most"
    ),
    "sharing/pairs/figures.py bound_unknowns: rounds < _MOST_ROUNDS -> <=": (
        "a limit of effort: bounds hold after any number of rounds"
    ),
    "layers/partition/median_cut.py MedianCut.__call__: node.rows < max(2 * self.criteria.k, 2)"
    " -> <=": "a node that is left whole here is cut by the kernel of its task",
    "layers/partition/median_cut.py MedianCut.__call__: lowest[chosen] < highest[chosen] -> <=": (
        "an attribute with one value has no boundary: it is looked for in vain"
    ),
    "layers/partition/median_cut.py _children: len(boundary.keys) > 1 -> >=": (
        "a bound is lower by one value, and is measured again before it is used"
    ),
    "kernels/criteria.py _hierarchical_distance: parent >= 0 -> >": (
        "node 0 is a value, and no value is above another one"
    ),
    "kernels/criteria.py judge: kind >= LEAST_ADDRESS -> >": "no function is at that address",
    "kernels/criteria.py judge: tail > 0 -> >=": (
        "a quotient by 0 is infinite in plain Python, and machine code raises an error"
    ),
    "kernels/criteria.py judge: entropy >= np.log(bound) - TOLERANCE -> >": ROUNDING,
    "kernels/criteria.py judge: largest / size <= bound + TOLERANCE -> <": ROUNDING,
    "kernels/criteria.py judge: distance <= bound + TOLERANCE -> <": ROUNDING,
    "kernels/criteria.py judge: counts[value] / size > most * (1.0 + TOLERANCE) -> >=": ROUNDING,
    "sharing/ledger/check.py list_coalitions: len(units) <= size -> <": (
        "of as many units as are combined there is one combination: all"
    ),
    "reporting/marginals.py _marginal: 0 < special[1] < k -> <= (operator 1)": (
        "of no record the others are multiplied by 1"
    ),
    "kernels/separation.py neighbor_distance_sums: distances[i] < reach[a] -> <=": (
        "records at the distance of the last one are counted at that distance either way"
    ),
    "kernels/separation.py separate_outliers: size <= k -> <": (
        "of a group of k records all are normal: it is measured for nothing"
    ),
}
"""Mutants that change nothing that a test could see, and why."""


def copy_to(folder: Path) -> None:
    """Copy what the tests need."""
    for name in COPIED:
        source = REPOSITORY / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", ".pytest_cache")
            shutil.copytree(source, folder / name, ignore=ignored)
        else:
            shutil.copy(source, folder / name)


def passes(folder: Path, tests: str, *, pure: bool, no_bug: bool = False) -> bool:
    """Return whether the tests pass on what is in a folder, with kernels as plain Python or not.

    They run in a copy of this process, which has imported what takes long, and nothing of ours.
    """
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if not child:
            code = 3
            try:
                for stream in (1, 2):
                    os.dup2(output.fileno(), stream)
                code = _run_tests(folder, tests, pure=pure)
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        output.seek(0)
        # 2: a module of the tests cannot be imported. Below 0: the process was ended.
        if code > 2 or (code and no_bug):
            sys.exit(f"{tests} fail without any bug:\n{output.read().decode()[-4000:]}")
    return code == 0


def _run_tests(folder: Path, tests: str, *, pure: bool) -> int:
    """Run tests in this process, and return the exit code of pytest."""
    os.chdir(folder)
    os.environ["PYTHONPATH"] = sys.path[0] = str(folder)
    # Byte code is kept from one run to the next.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    # The same examples each time. The data sets lie beside the repository.
    os.environ["CI"] = "true"
    os.environ.setdefault("ANONSPARK_DATA", str(REPOSITORY.parent / "shared" / "data"))
    if pure:
        os.environ["NUMBA_DISABLE_JIT"] = "1"
    # What never ends ends the process: a failure in it would be tried again, to show a smaller one.
    limits = ("--timeout=120", "--timeout-method=thread")
    return int(pytest.main(["-q", "-x", *limits, "-p", "no:cacheprovider", *shlex.split(tests)]))


_SECONDS = itertools.count(1)


def write(path: Path, source: str) -> None:
    """Write a source, with a time that no other one had: byte code is kept by size and second."""
    path.write_text(source, encoding="utf-8")
    seconds = next(_SECONDS)
    os.utime(path, (seconds, seconds))


def is_pure(mutant: Mutant) -> bool:
    """Return whether a mutant is tried without machine code, which was made without it."""
    return mutant.file.startswith("kernels/")


def list_mutants() -> list[Mutant]:
    """Return all mutants. End the process if a source has no place for one any more."""
    mutants = [
        *MUTANTS,
        *itertools.chain.from_iterable(boundaries.mutants() for boundaries in BOUNDARIES),
    ]
    names = [mutant.name for mutant in mutants]
    if forgotten := [name for name in EQUIVALENT if name not in names]:
        sys.exit("\n".join(["equivalent, but not there any more:", *forgotten]))
    for mutant in MUTANTS:
        mutant.put_into((REPOSITORY / "anonspark" / mutant.file).read_text(encoding="utf-8"))
    if empty := [each.file for each in BOUNDARIES if not any(each.mutants())]:
        sys.exit("\n".join(["no boundaries any more:", *empty]))
    return mutants


def main(parts: list[str]) -> int:
    """Try all mutants, or those whose names have one of some parts."""
    mutants = list_mutants()
    wanted = [
        mutant
        for mutant in mutants
        if mutant.name not in EQUIVALENT
        and (not parts or any(part in mutant.name for part in parts))
    ]
    survivors = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        folder = Path(place)
        copy_to(folder)
        right = set()
        for mutant in wanted:
            if (way := (mutant.tests, is_pure(mutant))) not in right:
                passes(folder, mutant.tests, pure=is_pure(mutant), no_bug=True)
                right.add(way)
            path = folder / "anonspark" / mutant.file
            source = path.read_text(encoding="utf-8")
            write(path, mutant.put_into(source))
            start = time.monotonic()
            survived = passes(folder, mutant.tests, pure=is_pure(mutant))
            write(path, source)
            outcome = "SURVIVED" if survived else "killed"
            print(f"{outcome} ({time.monotonic() - start:.0f} s): {mutant.name}", flush=True)  # noqa: T201
            if survived:
                survivors.append(mutant.name)
    print(  # noqa: T201
        f"tried {len(wanted)}, killed {len(wanted) - len(survivors)}, survived {len(survivors)}"
        f"; equivalent and not tried: {len(EQUIVALENT)}"
    )
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
