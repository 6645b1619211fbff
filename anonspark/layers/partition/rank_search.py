"""Exact values of ranks, by questions that zoom in on the bins that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from anonspark.layers.partition.counting import Histogram, Request
from anonspark.layers.partition.node import Asking


def ask(requests: Sequence[Request]) -> Asking[list[Histogram]]:
    """Ask for histograms."""
    answers = yield list(requests)
    return [answer for answer in answers if isinstance(answer, Histogram)]


def find_rank(request: Request, histogram: Histogram, rank: int) -> Asking[tuple[int, int, int]]:
    """Find the ``rank``-th smallest value exactly, zooming in on the bin that holds it.

    Parameters
    ----------
    request : Request
        What was asked first.
    histogram : Histogram
        Its answer.
    rank : int
        From 1.

    Returns
    -------
    (int, int, int)
        The value, the records below it and the records equal to it.
    """
    (run,) = yield from find_ranks(request, histogram, [rank])
    return run


def find_ranks(
    request: Request, histogram: Histogram, ranks: Sequence[int]
) -> Asking[list[tuple[int, int, int]]]:
    """Find the values of several ranks side by side, in about as many passes as one rank needs.

    Parameters
    ----------
    request, histogram
        See :func:`find_rank`.
    ranks : sequence of int
        From 1, ascending.

    Returns
    -------
    list of (int, int, int)
        As of :func:`find_rank`, by ascending value, each value once.
    """
    runs: set[tuple[int, int, int]] = set()
    waiting = [(histogram, 0, list(ranks))]
    while waiting:
        # Ranks that fall into the same bin are looked for in one histogram of it.
        zoomed: dict[Request, tuple[int, list[int]]] = {}
        for counted, below, own in waiting:
            for rank in own:
                place, smaller = counted.find(rank - below)
                lowest, highest = int(counted.minima[place]), int(counted.maxima[place])
                rows = int(counted.counts[place])
                if lowest == highest:
                    runs.add((lowest, below + smaller, rows))
                    continue
                bin_of_rank = replace(request, lowest=lowest, highest=highest, rows=rows)
                zoomed.setdefault(bin_of_rank, (below + smaller, []))[1].append(rank)
        if not zoomed:
            break
        histograms = yield from ask(list(zoomed))
        waiting = [
            (answer, below, own)
            for answer, (below, own) in zip(histograms, zoomed.values(), strict=True)
        ]
    return sorted(runs)
