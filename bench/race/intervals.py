"""The one statistic of every race: a median, and an interval that holds for any distribution of the noise. It is that of
lib/tune/statistics.h, and tests/data/intervals.json holds both to the same numbers."""

import collections
import math
import statistics

LEVEL = 0.95
FEWEST = 6  # samples with an interval of that level: the least and the greatest of six, 96.9 %

Interval = collections.namedtuple("Interval", "low middle high")


def rank(samples):
    """The place of the interval's lower end among the samples in order, counted from 1, and of its upper end from the
    other end: how many samples are below the true median is binomial with p = 1/2. 0: fewer than FEWEST."""
    below = 0
    for k in range(samples // 2 + 1):
        below += math.comb(samples, k)
        if 2 * below > (1 - LEVEL) * 2**samples:
            return k
    return 0


def of_median(samples):
    """The median with its interval; of fewer than FEWEST, the least and the greatest are the ends."""
    ordered = sorted(samples)
    place = max(rank(len(ordered)), 1)
    return Interval(ordered[place - 1], statistics.median(ordered), ordered[-place])


def of_ratio(first, second):
    """Of second / first in paired rounds: what disturbs both sides of a round is in no ratio."""
    return of_median([1.0 if a == b else b / a for a, b in zip(first, second)])
