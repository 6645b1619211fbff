"""Re-identification risk of classes, and the rules that call it high (Vural 2017, section 2.8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from anonspark.config.gates import RiskOptions

Sizes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Attack:
    """The probabilities that an attacker re-identifies records.

    Parameters
    ----------
    attacker : str
        ``prosecutor`` knows that the victim is in the release (one in the records of the class),
        ``journalist`` knows the population (one in those of the class's region), ``marketer`` wants
        as many records as possible, ``outsider`` does not know who was sampled of the population,
        which sampling weights estimate.
    highest : float or None
        Largest probability of any record (R_b).
    average : float
        Share of the records that is expected to be re-identified (R_c).
    at_risk : float or None
        Share of the records whose probability exceeds the threshold (R_a).
    lowest : float or None
        Smallest probability of any record.
    at_highest, at_lowest : float or None
        Share of the records with the largest and with the smallest probability.
    unique : float or None
        Share of the records alone in their class. For the journalist, of those alone in their
        class the share that is alone in the population, too.
    expected : float or None
        Records that are expected to be re-identified. Of the outsider only.
    """

    attacker: str
    average: float
    highest: float | None = None
    at_risk: float | None = None
    lowest: float | None = None
    at_highest: float | None = None
    at_lowest: float | None = None
    unique: float | None = None
    expected: float | None = None


def attacks(sizes: Mapping[int, int], threshold: float) -> list[Attack]:
    """Return the risk from prosecutor, journalist and marketer if the release is the population.

    ``sizes`` has the classes of each size, ``threshold`` the highest acceptable probability (tau).

    >>> [round(attack.average, 3) for attack in attacks({2: 1, 4: 2}, threshold=0.3)]
    [0.3, 0.3, 0.3]
    """
    size, classes = np.array(sorted(sizes.items()), np.int64).T
    return _attacks(size, size, classes, threshold)


def attacks_with_population(sizes: Sizes, population: Sizes, threshold: float) -> list[Attack]:
    """Return the risk from prosecutor, journalist and marketer if the release is a sample.

    ``sizes`` and ``population`` are int64 of shape (classes,): the records of each class (f, at
    least 1), and those of the population in its region (F, at least f). ``threshold`` is the
    highest acceptable probability (tau).

    >>> attacks_with_population(np.array([2, 3]), np.array([10, 20]), 0.2)[1].highest
    0.1
    """
    return _attacks(sizes, population, np.ones(len(sizes), np.int64), threshold)


def individual_risk(sizes: Sizes, population: Floats) -> Floats:
    """Estimate the probability to re-identify a record of each class of a sample, in (0, 1 / f].

    The population of a class is unknown. Sampling weights estimate it, and given the sample it is
    assumed to have a negative binomial distribution (Benedetti and Franconi 1998). For classes of 3
    records and more the mean of its inverse is approximated, as in sdcMicro. Arrays have shape
    (classes,): records of each class (f, at least 1), and sums of their weights (F, raised to f).

    >>> individual_risk(np.array([1, 3]), np.array([10.0, 3.0])).round(4).tolist()
    [0.2558, 0.3333]
    """
    share = sizes / np.maximum(population, sizes)
    rest = 1.0 - share
    approximate = share / (sizes - rest)
    # With a share near 1, `1.0 - risk_alone` below has no digits left.
    exact = (sizes <= 2) & (rest > 1e-4)
    odds = share[exact] / rest[exact]
    risk_alone = odds * -np.log(share[exact])
    risk = approximate.copy()
    risk[exact] = np.where(sizes[exact] == 1, risk_alone, odds * (1.0 - risk_alone))
    return risk


def attack_with_weights(sizes: Sizes, population: Floats, threshold: float) -> Attack:
    """Return the risk from an outsider. See :func:`individual_risk` and :func:`attacks`."""
    risk = individual_risk(sizes, population)
    alone = sizes == 1
    unique = float((1.0 / np.maximum(population[alone], 1.0)).sum()) / max(int(alone.sum()), 1)
    classes = np.ones(len(sizes), np.int64)
    attack = _attack("outsider", sizes, 1.0 / risk, classes, threshold, unique)
    return replace(attack, expected=float((sizes * risk).sum()))


def _attacks(sizes: Sizes, population: Sizes, classes: Sizes, threshold: float) -> list[Attack]:
    """Return the risk of ``classes`` classes of each size and population."""
    alone = sizes == 1
    singletons = int(classes[alone].sum())
    unique_in_both = int(classes[alone & (population == 1)].sum())
    records = int((sizes * classes).sum())
    prosecutor = _attack("prosecutor", sizes, sizes, classes, threshold, singletons / records)
    unique = unique_in_both / max(singletons, 1)
    journalist = _attack("journalist", sizes, population, classes, threshold, unique)
    share_of_population = int(classes.sum()) / int((population * classes).sum())
    return [
        prosecutor,
        replace(journalist, average=max(share_of_population, journalist.average)),
        Attack("marketer", journalist.average),
    ]


def _attack(
    attacker: str,
    sizes: Sizes,
    hidden_among: Sizes | Floats,
    classes: Sizes,
    threshold: float,
    unique: float,
) -> Attack:
    """Return the risk of records by the number of records among which each class is hidden."""
    records = sizes * classes
    total = int(records.sum())
    fewest, most = hidden_among.min().item(), hidden_among.max().item()
    return Attack(
        attacker,
        average=float((records / hidden_among).sum()) / total,
        highest=1 / fewest,
        at_risk=int(records[1 / hidden_among > threshold].sum()) / total,
        lowest=1 / most,
        at_highest=int(records[hidden_among == fewest].sum()) / total,
        at_lowest=int(records[hidden_among == most].sum()) / total,
        unique=unique,
    )


def risk_row(attack: Attack, options: RiskOptions) -> dict[str, object]:
    """Return a row of the table ``risk``: the figures, and whether each is called high."""

    def exceeds(figure: float | None, limit: float) -> bool | None:
        return None if figure is None else figure > limit

    return {
        **vars(attack),
        "threshold": options.threshold,
        "accepted_average": options.average,
        "high_at_risk": exceeds(attack.at_risk, options.at_risk),
        "high_highest": exceeds(attack.highest, options.threshold),
        "high_average": exceeds(attack.average, options.average),
        "high_unique": exceeds(attack.unique, options.unique),
    }
