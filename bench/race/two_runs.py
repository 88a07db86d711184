"""The one statistic of runs that took no turns: ratios of all pairs, and how much samples resemble the one before. It
is that of lib/tune/two_runs.h, and tests/data/sweep_answers.json holds both to the same numbers."""

import functools
import math
import statistics

from intervals import LEVEL, Interval

EXACT_UP_TO = 25  # samples of a run; above, the normal distribution
PAIRS = 10_000    # above, ratios are found by halving and not listed


def orders(first, second):
    """For each u: in how many orders of all samples exactly u pairs have the sample of the first run in front."""
    counts = [1] + [0] * (first * second)
    for k in range(1, first + 1):  # the Gaussian binomial coefficient, factor by factor
        for u in range(len(counts) - 1, second + k - 1, -1):
            counts[u] -= counts[u - second - k]
        for u in range(k, len(counts)):
            counts[u] += counts[u - k]
    return counts


@functools.cache
def rank(first, second):
    """The place of the interval's lower end among the ratios of all pairs in order, counted from 1, and of its upper
    end from the other end. 0: too few samples for an interval of this level."""
    if max(first, second) <= EXACT_UP_TO:
        counts, below = orders(first, second), 0
        for place, count in enumerate(counts):
            below += count
            if 2 * below > (1 - LEVEL) * math.comb(first + second, first):
                return place if 2 * place < len(counts) else 0
        return 0
    reach = statistics.NormalDist().inv_cdf((1 + LEVEL) / 2)
    place = first * second / 2 - reach * math.sqrt(first * second * (first + second + 1) / 12)
    return max(int(place), 0)


def of_ratio(first, second):
    """The median of second[j] / first[i] of all pairs, with its interval (Hodges and Lehmann). Of too few samples for
    an interval of this level, the least and the greatest ratio are the ends."""
    first, second = sorted(first), sorted(second)
    count = len(first) * len(second)
    if count <= PAIRS:
        at = sorted(1.0 if a == b else b / a for a in first for b in second).__getitem__
    else:
        at = functools.partial(found_by_halving, first, second)
    lower, half = max(rank(len(first), len(second)), 1), count // 2
    middle = at(half) if count % 2 else (at(half - 1) + at(half)) / 2
    return Interval(at(lower - 1), middle, at(count - lower))


def found_by_halving(first, second, place):
    """The ratio at this place in the order of all pairs of two runs in order."""
    low, high = second[0] / first[-1], second[-1] / first[0]
    while low < (middle := low + (high - low) / 2) < high:
        if up_to(first, second, middle) > place:
            high = middle
        else:
            low = middle
    return low if up_to(first, second, low) > place else high


def up_to(first, second, ratio):
    """How many pairs have at most this ratio."""
    found = below = 0
    for a in first:
        while below < len(second) and second[below] / a <= ratio:
            below += 1
        found += below
    return found


def widened(ratio, times):
    """The interval that `times` times fewer samples would give."""
    factor = math.sqrt(times)
    low, high = (ratio.middle * (end / ratio.middle) ** factor for end in (ratio.low, ratio.high))
    return Interval(low, ratio.middle, high)


def repetition_of(samples):
    """How many samples, each of which resembles the one before it, say as much as one independent sample."""
    count = len(samples)
    if count < 4:
        return 1.0
    places = centered_places(samples)
    squares = sum(place * place for place in places)
    if squares == 0:
        return 1.0
    neighbours = sum(one * before for one, before in zip(places[1:], places))
    # Less what independent samples easily show.
    correlation = min(max(neighbours / squares - 1 / math.sqrt(count), 0.0), 0.9)
    return (1 + correlation) / (1 - correlation)


def centered_places(samples):
    """Of each sample its place in the order of all, from the middle one; equal samples share the middle of theirs."""
    order = sorted(range(len(samples)), key=samples.__getitem__)
    places, first = [0.0] * len(samples), 0
    while first < len(samples):
        end = first + 1
        while end < len(samples) and samples[order[end]] == samples[order[first]]:
            end += 1
        for i in range(first, end):
            places[order[i]] = (first + end - 1) / 2 - (len(samples) - 1) / 2
        first = end
    return places
