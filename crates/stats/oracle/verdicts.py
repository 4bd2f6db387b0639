#!/usr/bin/env python3
"""Writes verdicts.json: what SciPy, statsmodels and exact arithmetic make of fixed samples.

    python3 -m venv venv && venv/bin/pip install scipy==1.17.1 numpy==2.4.6 statsmodels==0.15.0
    venv/bin/python verdicts.py > verdicts.json

Everything that SciPy has no function for (the Hodges-Lehmann interval, ties) is computed from
its definition in exact fractions: all Walsh averages written out, the null distribution counted
in integers.
"""

import json
import platform
import sys
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy
import scipy
import statsmodels
from scipy import stats
from statsmodels.stats.multitest import multipletests

CONFIDENCES = [0.8, 0.9, 0.95, 0.9833, 0.99]


def signed_rank_counts(n):
    """How many of the 2^n sign patterns give each rank sum."""
    counts = [1]
    for rank in range(1, n + 1):
        longer = counts + [0] * rank
        for total, count in enumerate(counts):
            longer[total + rank] += count
        counts = longer
    return counts


def upper_tail(counts, statistic):
    return Fraction(sum(counts[statistic:]), sum(counts))


def walsh(values):
    exact = [Fraction(v) for v in values]
    return sorted((a + b) / 2 for a, b in combinations_with_replacement(exact, 2))


def median(ordered):
    n = len(ordered)
    return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2


def p_values(values, shift, counts):
    averages = walsh(values)
    above = sum(a > Fraction(shift) for a in averages)
    below = sum(a < Fraction(shift) for a in averages)
    greater, less = upper_tail(counts, above), upper_tail(counts, below)
    return {
        "shift": shift,
        "greater": float(greater),
        "less": float(less),
        "two_sided": float(min(1, 2 * min(greater, less))),
    }


def interval(values, confidence, counts):
    averages = walsh(values)
    alpha = 1 - Fraction(str(confidence))
    rank = 0
    while 2 * Fraction(sum(counts[: rank + 1]), sum(counts)) <= alpha:
        rank += 1
    if rank == 0:
        return {"confidence": confidence, "interval": None}
    attained = 1 - 2 * Fraction(sum(counts[:rank]), sum(counts))
    return {
        "confidence": confidence,
        "interval": [float(averages[rank - 1]), float(averages[-rank]), float(attained)],
    }


def signed_rank_case(values, shifts, scipy_p):
    counts = signed_rank_counts(len(values))
    tests = [p_values(values, shift, counts) for shift in shifts]
    if scipy_p:
        differences = [numpy.array(values) - shift for shift in shifts]
        for test, difference in zip(tests, differences):
            for side, name in [("greater", "greater"), ("less", "less"), ("two-sided", "two_sided")]:
                p = stats.wilcoxon(difference, alternative=side, method="exact").pvalue
                assert abs(p - test[name]) <= 1e-12 * p, (values, side, p, test[name])
                test[name] = float(p)
    return {
        "values": values,
        "tests": tests,
        "estimate": float(median(walsh(values))),
        "intervals": [interval(values, confidence, counts) for confidence in CONFIDENCES],
    }


def student_case(values, shift):
    test = stats.ttest_1samp(values, shift)
    return {
        "values": values,
        "mean": float(numpy.mean(values)),
        "standard_deviation": float(numpy.std(values, ddof=1)),
        "shift": shift,
        "p": float(test.pvalue),
        "intervals": [
            [c, *map(float, test.confidence_interval(c))] for c in CONFIDENCES
        ],
    }


def sign_flip_case(values):
    result = stats.permutation_test(
        (values,), numpy.sum, permutation_type="samples", vectorized=False, n_resamples=numpy.inf
    )
    return {"values": values, "p": float(result.pvalue)}


def components_case(blocks):
    """One-way random effects by the method of moments, in fractions."""
    blocks = [[Fraction(v) for v in rounds] for rounds in blocks]
    total = sum(len(b) for b in blocks)
    grand = sum(sum(b) for b in blocks) / total
    means = [sum(b) / len(b) for b in blocks]
    within = sum((v - m) ** 2 for b, m in zip(blocks, means) for v in b)
    between = sum(len(b) * (m - grand) ** 2 for b, m in zip(blocks, means))
    round_variance = within / (total - len(blocks))
    size = (total - Fraction(sum(len(b) ** 2 for b in blocks), total)) / (len(blocks) - 1)
    block_variance = max(0, (between / (len(blocks) - 1) - round_variance) / size)
    return {
        "blocks": [[float(v) for v in b] for b in blocks],
        "between_blocks": float(block_variance) ** 0.5,
        "between_rounds": float(round_variance) ** 0.5,
    }


def main():
    random = numpy.random.default_rng(20240521)

    def t3(n, centre):
        return [float(round(v, 9)) for v in centre + random.standard_t(3, n)]

    continuous = [
        signed_rank_case(t3(n, 0.4), [0.0, 0.25, -1.5], scipy_p=True) for n in range(3, 31)
    ]
    tied = [
        signed_rank_case(
            [float(v) for v in random.integers(-3, 5, n)], [0.0, 1.0, 0.5, -2.0], scipy_p=False
        )
        for n in range(3, 16)
    ]
    student = [student_case(t3(n, 0.4), 0.1) for n in [2, 3, 4, 5, 6, 8, 10, 12, 20, 30, 100]]
    student.append(student_case([v + 1e7 for v in t3(8, 0.0)], 1e7 + 50.0))
    student.append(student_case(t3(12, 400.0), 0.0))
    holm = []
    for k in range(1, 13):
        p = [float(v) for v in random.uniform(size=k) ** 3]
        if k > 3:
            p[2] = p[0]
        holm.append({"p": p, "adjusted": multipletests(p, method="holm")[1].tolist()})
    json.dump(
        {
            "versions": {
                "python": platform.python_version(),
                "numpy": numpy.__version__,
                "scipy": scipy.__version__,
                "statsmodels": statsmodels.__version__,
            },
            "signed_rank": continuous,
            "signed_rank_ties": tied,
            "student": student,
            "sign_flip": [sign_flip_case(t3(n, 0.5)) for n in range(3, 13)],
            "holm": holm,
            "variance_components": [
                components_case([[float(b) + v for v in t3(n, 0.0)] for b, n in zip(random.normal(0, s, len(sizes)), sizes)])
                for sizes, s in [([10] * 8, 2.0), ([10, 9, 10, 7, 10, 1, 10, 3], 1.0), ([4, 4, 4], 0.0)]
            ],
        },
        sys.stdout,
        indent=1,
    )
    print()


main()
