"""A second opinion on exact noise: OpenDP draws what we draw, and tells the same loss.

    .venv/bin/python benchmarks/second_opinion.py

OpenDP gets an environment of its own below ``.peers/``, as the tools of
``benchmarks/side_by_side.py`` do. Both draw 20,000 times: the discrete Laplace law at scale 56, and
the best 2 of the scores 10, 8, 8 and 3 by permute-and-flip at scale 8. Each pair of samples is
compared by a chi-square test. Ends with 1 if a p-value is at most 0.001 or a loss is another.
"""

from __future__ import annotations

import json
import random
import secrets
import subprocess
import sys
from collections import Counter
from collections.abc import Hashable, Sequence
from fractions import Fraction

import numpy as np
from peers import environments
from peers.tool import Tool
from scipy import stats

from anonspark.core.exact_noise import Below, discrete_laplace, permute_and_flip
from anonspark.sharing.selection.mechanisms import scale_of

OPENDP = Tool("opendp", "opendp", "", "3.11", "differential privacy with proofs", None)

DRAWS = 20_000
SCALE, TABLES = 56, 14
SCORES, CHOSEN, SCALE_OF_SCORES = [10, 8, 8, 3], 2, 8
LEAST_P = 0.001

# Whatever is rarer than so many draws of a sample is one bin.
_RARE = 10

THEIRS = """\
import json, sys
import opendp.prelude as dp
dp.enable_features("contrib")
draws, scale, tables, scores, chosen, scale_of_scores = json.loads(sys.argv[1])
number = dp.atom_domain(T=int)
laplace = dp.m.make_laplace(number, dp.absolute_distance(T=int), scale=float(scale))
top = dp.m.make_noisy_top_k(
    dp.vector_domain(number), dp.linf_distance(T=int), dp.max_divergence(),
    k=chosen, scale=float(scale_of_scores),
)
print(json.dumps({
    "noise": [laplace(0) for _ in range(draws)],
    "choices": [list(top(scores)) for _ in range(draws)],
    "loss of noise": laplace.map(tables),
    "loss of choices": top.map(1),
}))
"""


def p_value(ours: Sequence[Hashable], theirs: Sequence[Hashable]) -> float:
    """Return the p-value of two samples being of one law; rare values are one bin."""
    counts = [Counter(ours), Counter(theirs)]
    every = counts[0] + counts[1]
    common = [value for value, number in every.items() if number >= 2 * _RARE]
    table = [[own[value] for value in common] for own in counts]
    rest = [sum(own.values()) - sum(row) for own, row in zip(counts, table, strict=True)]
    if any(rest):
        table = [[*row, others] for row, others in zip(table, rest, strict=True)]
    return float(stats.chi2_contingency(np.array(table), correction=False).pvalue)


def our_choices(below: Below) -> tuple[int, ...]:
    """Choose the best ones, each told the earlier ones."""
    left, found = list(range(len(SCORES))), []
    for _ in range(CHOSEN):
        place = permute_and_flip([SCORES[one] for one in left], 1, SCALE_OF_SCORES, below)
        found.append(left.pop(place))
    return tuple(found)


def compare(seed: int | None = None) -> dict[str, tuple[float, float]]:
    """Return of each comparison what was found and what it has to be: p-values, and losses.

    Parameters
    ----------
    seed : int or None
        Of our draws; None draws as a selection does.

    Raises
    ------
    peers.environments.InstallationError
        If OpenDP cannot be installed.
    """
    environments.install(OPENDP)
    asked = json.dumps([DRAWS, SCALE, TABLES, SCORES, CHOSEN, SCALE_OF_SCORES])
    command = [str(environments.python_of(OPENDP)), "-W", "ignore", "-c", THEIRS, asked]
    theirs = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    below = secrets.randbelow if seed is None else random.Random(seed).randrange  # noqa: S311
    noise = [discrete_laplace(SCALE, 1, below) for _ in range(DRAWS)]
    choices = [our_choices(below) for _ in range(DRAWS)]
    # Of 14 tables that a record is in one cell of each; of scores that change by one up or down.
    loss = Fraction(TABLES, SCALE)
    if scale_of(TABLES, loss) != SCALE:
        raise ValueError("our scale is another")
    return {
        "p of noise": (p_value(noise, theirs["noise"]), LEAST_P),
        "p of choices": (p_value(choices, [tuple(one) for one in theirs["choices"]]), LEAST_P),
        "loss of noise": (theirs["loss of noise"], float(loss)),
        "loss of choices": (theirs["loss of choices"], 2 * CHOSEN / SCALE_OF_SCORES),
    }


def agrees(what: str, found: float, wanted: float) -> bool:
    """Return whether a comparison comes out as it has to."""
    return found > wanted if what.startswith("p of") else abs(found - wanted) < 1e-9


def main() -> int:
    """Compare, and print a line each."""
    found = compare()
    print(f"opendp {environments.version_of(OPENDP)}, {DRAWS:,} draws each")
    for what, (own, wanted) in found.items():
        verdict = "agrees" if agrees(what, own, wanted) else "DIFFERS"
        bound = f"above {wanted}" if what.startswith("p of") else f"expected {wanted}"
        print(f"{what}: {own:.6g}, {bound}: {verdict}")
    return 0 if all(agrees(what, *pair) for what, pair in found.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
