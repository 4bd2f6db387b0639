#!/usr/bin/env python3
"""Writes two_samples.json: what SciPy and exact arithmetic make of two independent samples.

    python3 -m venv venv && venv/bin/pip install scipy==1.17.1 numpy==2.4.6 mpmath==1.4.1
    venv/bin/python oracle/two_samples.py > oracle/two_samples.json

Means, variances and degrees of freedom are computed in fractions and the tail of t in 40 digits
(mpmath's integral of the density); SciPy's ttest_ind has to agree to 1e-6 relative, and to 1e-9
where the mean is not large. The samples of a million values follow from their index, as the Rust
test makes them, too.
"""

import json
import platform
from fractions import Fraction
from itertools import combinations

import mpmath
import numpy
import scipy
from scipy import stats

mpmath.mp.dps = 40
CONFIDENCES = [0.9, 0.95, 0.99]
random = numpy.random.default_rng(20240522)


def upper_tail_of_t(t, freedom):
    t, n = mpmath.mpf(t), mpmath.mpf(freedom)
    if t < 0:
        return 1 - upper_tail_of_t(-t, freedom)
    if n < 1e4:
        if t * t < n:
            return (1 - mpmath.betainc(0.5, n / 2, 0, t * t / (n + t * t), regularized=True)) / 2
        return mpmath.betainc(n / 2, 0.5, 0, n / (n + t * t), regularized=True) / 2
    scale = mpmath.exp(mpmath.loggamma((n + 1) / 2) - mpmath.loggamma(n / 2)) / mpmath.sqrt(
        n * mpmath.pi
    )
    density = lambda x: (1 + x * x / n) ** (-(n + 1) / 2)
    return scale * mpmath.quad(density, [t, t + 1, t + 3, t + 8, t + 20, t + 60])


def mp(fraction):
    return mpmath.mpf(fraction.numerator) / fraction.denominator


def moments(values):
    exact = [Fraction(v) for v in values]
    n = len(exact)
    mean = sum(exact) / n
    return n, mean, sum((v - mean) ** 2 for v in exact)


def t_results(first, second, shift):
    """From (count, mean, sum of squared deviations) of both sides."""
    (n, mean_a, squares_a), (m, mean_b, squares_b) = first, second
    difference = mean_a - mean_b
    a, b = squares_a / (n - 1) / n, squares_b / (m - 1) / m
    welch = a + b, (a + b) ** 2 / (a**2 / (n - 1) + b**2 / (m - 1))
    pooled = (squares_a + squares_b) / (n + m - 2) * (Fraction(1, n) + Fraction(1, m)), Fraction(
        n + m - 2
    )
    results = {"shift": shift, "difference": float(difference)}
    for name, (variance, freedom) in [("welch", welch), ("pooled", pooled)]:
        error = mpmath.sqrt(mp(variance))
        t = mp(difference - Fraction(shift)) / error
        tail = upper_tail_of_t(abs(t), mp(freedom))
        reach = [error * mpmath.mpf(stats.t.isf((1 - c) / 2, float(freedom))) for c in CONFIDENCES]
        results[name] = {
            "standard_error": float(error),
            "degrees_of_freedom": float(freedom),
            "t": float(t),
            "p": float(2 * tail),
            "greater": float(tail if t > 0 else 1 - tail),
            "less": float(1 - tail if t > 0 else tail),
            "intervals": [
                [c, float(mp(difference) - r), float(mp(difference) + r)]
                for c, r in zip(CONFIDENCES, reach)
            ],
        }
    return results


def t_case(a, b, shift):
    results = t_results(moments(a), moments(b), shift)
    tolerance = 1e-9 if abs(a[0]) < 1e4 else 1e-4
    for name, equal in [("welch", False), ("pooled", True)]:
        p = stats.ttest_ind(numpy.array(a) - shift, b, equal_var=equal).pvalue
        assert abs(p - results[name]["p"]) <= tolerance * p, (a, b, name, p, results[name])
    return {"sample": a, "reference": b, **results}


def large_values(size, factor, moved_by):
    """In units of 1/16384, so that every value is a double: 1e7 and -2 to 2 around it."""
    return (
        (numpy.arange(size, dtype=numpy.int64) * factor) % 65537
        - 32768
        + moved_by
        + 10_000_000 * 16384
    )


def large_case(size, moved_by):
    a, b = large_values(size, 7919, moved_by), large_values(size, 104729, 0)

    def exact(values):
        values = [int(v) for v in values]
        n, total, squares = len(values), sum(values), sum(v * v for v in values)
        mean = Fraction(total, n)
        return n, mean / 16384, (squares - mean * total) / 16384**2

    case = {"size": size, "moved_by": moved_by, **t_results(exact(a), exact(b), 0.0)}
    case["mann_whitney"] = rank_results(a - 10_000_000 * 16384, b - 10_000_000 * 16384)
    return case


def rank_results(a, b):
    """For whole numbers in units of 1/16384."""
    a, b = numpy.sort(a), numpy.sort(b)
    result = {"midrank": {}}
    for side, name in [("greater", "greater"), ("less", "less"), ("two-sided", "two_sided")]:
        result["midrank"][name] = float(
            stats.mannwhitneyu(a, b, alternative=side, method="asymptotic").pvalue
        )
    pairs = len(a) * len(b)
    deviation = (pairs / 12 * (len(a) + len(b) + 1)) ** 0.5

    def at_most(d):
        return int(numpy.searchsorted(b, a - d, side="left").astype(numpy.int64).sum())

    def select(rank):
        """The smallest d such that `rank` differences or more are at most d."""
        low, high = int(a[0] - b[-1]), int(a[-1] - b[0])
        while low < high:
            middle = (low + high) // 2
            if pairs - at_most(middle) >= rank:
                high = middle
            else:
                low = middle + 1
        return low / 16384

    # at_most(d) counts b < a - d, that is a - b > d.
    result["estimate"] = (
        select(pairs // 2) / 2 + select(pairs // 2 + 1) / 2
        if pairs % 2 == 0
        else select(pairs // 2 + 1)
    )
    result["intervals"] = []
    for confidence in CONFIDENCES:
        tail = round((1 - confidence) / 2, 12)
        low, high = 1, pairs
        while low < high:
            rank = (low + high + 1) // 2
            if stats.norm.sf((pairs + 1 - rank - 0.5 - pairs / 2) / deviation) <= tail:
                low = rank
            else:
                high = rank - 1
        result["intervals"].append([confidence, select(low), select(pairs + 1 - low)])
    return result


def untied_counts(n, m):
    """How many arrangements have each statistic, by the recursion on the largest value."""
    table = {}
    for i in range(n + 1):
        for j in range(m + 1):
            if i == 0 or j == 0:
                table[i, j] = [1]
                continue
            counts = [0] * (i * j + 1)
            for u, c in enumerate(table[i - 1, j]):
                counts[u + j] += c
            for u, c in enumerate(table[i, j - 1]):
                counts[u] += c
            table[i, j] = counts
    return table[n, m]


def hodges_lehmann(a, b):
    """Estimate and intervals from all differences as doubles, ranks in exact fractions."""
    differences = sorted(float(numpy.float64(x) - numpy.float64(y)) for x in a for y in b)
    counts = untied_counts(len(a), len(b))
    pairs, total = len(differences), sum(counts)
    middle = differences[(pairs - 1) // 2], differences[pairs // 2]
    intervals = []
    for confidence in CONFIDENCES:
        alpha = 1 - Fraction(str(confidence))
        rank, below = 0, 0
        while 2 * Fraction(below + counts[rank], total) <= alpha:
            below += counts[rank]
            rank += 1
        interval = None
        if rank:
            interval = [
                differences[rank - 1],
                differences[-rank],
                float(1 - 2 * Fraction(below, total)),
            ]
        intervals.append({"confidence": confidence, "interval": interval})
    return {"estimate": middle[0] / 2 + middle[1] / 2, "intervals": intervals}


def enumerated_midrank(a, b):
    """All arrangements of the midranks, in whole numbers of half ranks."""
    ranks = [int(r) for r in 2 * stats.rankdata([*a, *b])]
    observed = sum(ranks[: len(a)])
    sums = [sum(chosen) for chosen in combinations(ranks, len(a))]
    greater = Fraction(sum(s >= observed for s in sums), len(sums))
    less = Fraction(sum(s <= observed for s in sums), len(sums))
    return {
        "greater": float(greater),
        "less": float(less),
        "two_sided": float(min(1, 2 * min(greater, less))),
    }


def mann_whitney_case(a, b, method):
    sides = [("greater", "greater"), ("less", "less"), ("two-sided", "two_sided")]
    if method == "enumerated":
        p = enumerated_midrank(a, b)
        resampled = stats.PermutationMethod(n_resamples=numpy.inf)
        for side, name in sides:
            theirs = stats.mannwhitneyu(a, b, alternative=side, method=resampled).pvalue
            assert abs(theirs - p[name]) <= 1e-9 * theirs, (a, b, side, theirs, p)
    else:
        p = {
            name: float(stats.mannwhitneyu(a, b, alternative=side, method=method).pvalue)
            for side, name in sides
        }
    case = {"sample": a, "reference": b, "method": method, "midrank": p}
    if len(a) * len(b) <= 2500:
        case["hodges_lehmann"] = hodges_lehmann(a, b)
    return case


def permutation_case(strata):
    """All arrangements within strata of the sum of deviations from the stratum's mean.

    The values are the decimals as printed, not the doubles nearest to them: sums of different
    values may be equal.
    """
    per_stratum, observed = [], Fraction(0)
    for sample, reference in strata:
        pooled = [Fraction(str(v)) for v in [*sample, *reference]]
        mean = sum(pooled) / len(pooled)
        deviations = [v - mean for v in pooled]
        observed += sum(deviations[: len(sample)])
        per_stratum.append([sum(c) for c in combinations(deviations, len(sample))])
    distribution = {Fraction(0): 1}
    for sums in per_stratum:
        longer = {}
        for total, count in distribution.items():
            for s in sums:
                longer[total + s] = longer.get(total + s, 0) + count
        distribution = longer
    total = sum(distribution.values())
    greater = Fraction(sum(c for s, c in distribution.items() if s >= observed), total)
    less = Fraction(sum(c for s, c in distribution.items() if s <= observed), total)
    p = {
        "greater": float(greater),
        "less": float(less),
        "two_sided": float(min(1, 2 * min(greater, less))),
    }
    if len(strata) == 1 and len(strata[0][0]) > 1:
        for side, name in [("greater", "greater"), ("less", "less"), ("two-sided", "two_sided")]:
            theirs = stats.permutation_test(
                strata[0],
                lambda x, y: numpy.mean(x) - numpy.mean(y),
                alternative=side,
                vectorized=False,
                n_resamples=numpy.inf,
            ).pvalue
            assert abs(theirs - p[name]) <= 1e-9 * theirs, (strata, side, theirs, p)
    weights = [Fraction(len(a) * len(b), len(a) + len(b)) for a, b in strata]
    means = [sum(map(Fraction, a)) / len(a) - sum(map(Fraction, b)) / len(b) for a, b in strata]
    difference = sum(w * d for w, d in zip(weights, means)) / sum(weights)
    return {"strata": strata, "arrangements": total, "difference": float(difference), **p}


def t3(n, centre, digits=9):
    return [float(round(v, digits)) for v in centre + random.standard_t(3, n)]


def whole(n, low, high):
    return [float(v) for v in random.integers(low, high, n)]


sizes = [(3, 3), (3, 7), (4, 4), (5, 5), (8, 8), (12, 5), (20, 20), (30, 100), (1000, 700)]
t_cases = [t_case(t3(n, 0.6), t3(m, 0.0), 0.1) for n, m in sizes]
# Down to p = 1e-12 and below it, and a side without any spread.
for n, m, effect in [
    (5, 5, 400.0),
    (8, 8, 60.0),
    (20, 20, 9.0),
    (100, 80, 1.6),
    (1000, 1000, 0.32),
    (12, 12, 25.0),
]:
    a = [float(v) for v in numpy.round(random.normal(effect, 1, n), 9)]
    b = [float(v) for v in numpy.round(random.normal(0, 1.5, m), 9)]
    t_cases.append(t_case(a, b, 0.0))
t_cases.append(
    t_case(
        [float(v) for v in numpy.round(1e7 + random.normal(0.5, 1, 8), 6)],
        [float(v) for v in numpy.round(1e7 + random.normal(0, 1, 10), 6)],
        0.0,
    )
)
t_cases.append(
    t_case(
        [float(v) for v in numpy.round(1e7 + random.normal(7, 1, 30), 6)],
        [float(v) for v in numpy.round(1e7 + random.normal(0, 1, 30), 6)],
        0.0,
    )
)
t_cases.append(t_case(whole(12, 0, 4), whole(9, 0, 4), 0.0))
t_cases.append(t_case(t3(6, 1.0), [0.75] * 5, 0.25))

mann_whitney = [
    mann_whitney_case(t3(n, 0.8), t3(m, 0.0), "exact")
    for n, m in [
        (1, 1),
        (1, 9),
        (3, 3),
        (3, 4),
        (5, 5),
        (8, 8),
        (10, 6),
        (20, 20),
        (3, 40),
        (50, 50),
        (65, 65),
        (4, 300),
    ]
]
mann_whitney += [
    mann_whitney_case(whole(n, 0, 5), whole(m, -1, 4), "enumerated")
    for n, m in [(3, 3), (4, 4), (5, 5), (6, 8), (8, 6), (9, 9), (2, 12), (12, 2), (10, 10)]
]
mann_whitney.append(mann_whitney_case([1.0] * 6, [1.0] * 7, "enumerated"))
mann_whitney += [
    mann_whitney_case(t3(n, 0.1), t3(m, 0.0), "asymptotic")
    for n, m in [(66, 67), (100, 80), (200, 300)]
]
mann_whitney += [
    mann_whitney_case(whole(n, 0, 12), whole(m, 0, 11), "asymptotic")
    for n, m in [(100, 100), (250, 300)]
]
# SciPy divides 0 by 0 here.
mann_whitney.append(
    {
        "sample": [1.0] * 100,
        "reference": [1.0] * 100,
        "method": "asymptotic",
        "midrank": {"greater": 1.0, "less": 1.0, "two_sided": 1.0},
    }
)

permutations = [
    permutation_case([(t3(n, 0.8, 3), t3(m, 0.0, 3))])
    for n, m in [(1, 1), (3, 3), (4, 4), (5, 7), (7, 5), (8, 8)]
]
permutations.append(permutation_case([(whole(6, 0, 4), whole(7, 0, 3))]))
permutations.append(
    permutation_case(
        [
            (t3(3, 5.0, 2), t3(3, 4.5, 2)),
            (t3(4, -2.0, 2), t3(2, -2.5, 2)),
            (t3(2, 9.0, 2), t3(2, 8.0, 2)),
        ]
    )
)
permutations.append(
    permutation_case(
        [
            ([float(c) + x], [float(c)])
            for c, x in zip(range(0, 80, 10), [0.5, 0.25, -0.125, 0.75, 1.0, 0.5, 0.375, -0.25])
        ]
    )
)
permutations.append(
    permutation_case([([1e7 + v for v in whole(4, 0, 5)], [1e7 + v for v in whole(4, 0, 4)])])
)

rows = {
    "versions": [
        {
            "python": platform.python_version(),
            "numpy": numpy.__version__,
            "scipy": scipy.__version__,
            "mpmath": mpmath.__version__,
        }
    ],
    "t": t_cases,
    "large": [large_case(100_000, 384), large_case(1_000_000, 64), large_case(1_000_000, 192)],
    "mann_whitney": mann_whitney,
    "permutation": permutations,
}
print("{")
print(
    ",\n".join(
        f' "{name}": [\n  ' + ",\n  ".join(map(json.dumps, cases)) + "\n ]"
        for name, cases in rows.items()
    )
)
print("}")
