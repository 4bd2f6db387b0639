#!/usr/bin/env python3
"""Writes sessions.json: what SciPy makes of two sides of sessions.

    python3 -m venv venv && venv/bin/pip install scipy==1.17.1 numpy==2.4.6
    venv/bin/python oracle/sessions.py > oracle/sessions.json

- "ranks": medians of sessions, compared by mannwhitneyu(method="exact") of their logarithms; the Hodges-Lehmann
  estimate is the median of all differences, the interval runs from the k-th smallest to the k-th largest of them with
  the largest k for which the exact distribution of the statistic, counted over all arrangements, errs by no more than
  2.5 % on each side.
- "reruns": one session or more a side and reruns that show the noise between sessions; the interval of the difference
  of the sides' mean log medians by stats.t, and that within the sessions by Satterthwaite's t, which has to be
  ttest_ind's where there is one a side.
"""

import json
import platform
from itertools import combinations

import numpy
import scipy
from scipy import stats

random = numpy.random.default_rng(20261126)


def session(level, noise, count):
    return [float(f"{v:.8g}") for v in level * numpy.exp(random.normal(0, noise, count))]


def side(level, sessions, between, within, count):
    return [
        session(level * float(numpy.exp(random.normal(0, between))), within, count)
        for _ in range(sessions)
    ]


def log_medians(sessions):
    return numpy.log([numpy.median(s) for s in sessions])


def tail(n, m, pairs):
    """The share of all arrangements in which so many pairs or more rise."""
    ranks = range(n + m)
    statistics = [sum(c) - n * (n - 1) // 2 for c in combinations(ranks, n)]
    return sum(s >= pairs for s in statistics) / len(statistics)


def ranks(baseline, variant):
    a, b = log_medians(baseline), log_medians(variant)
    n, m = len(b), len(a)
    test = lambda side: float(stats.mannwhitneyu(b, a, alternative=side, method="exact").pvalue)
    differences = sorted(float(x - y) for x in b for y in a)
    k = max(k for k in range(1, n * m // 2 + 1) if tail(n, m, n * m - k + 1) <= 0.025)
    return {
        "baseline": baseline,
        "variant": variant,
        "two_sided": test("two-sided"),
        "greater": test("greater"),
        "less": test("less"),
        "estimate": float(numpy.median(differences)),
        "interval": [differences[k - 1], differences[-k]],
        "attained": 1 - 2 * tail(n, m, n * m - k + 1),
    }


def reruns(baseline, variant, of_one):
    spread = log_medians(of_one)
    s, freedom = float(numpy.std(spread, ddof=1)), len(of_one) - 1
    difference = float(log_medians(variant).mean() - log_medians(baseline).mean())
    error = s * (1 / len(variant) + 1 / len(baseline)) ** 0.5
    reach = float(stats.t.isf(0.025, freedom)) * error
    between = [difference - reach, difference + reach]
    case = {
        "baseline": baseline,
        "variant": variant,
        "reruns": of_one,
        "standard_deviation": s,
        "estimate": difference,
        "between": between,
        "between_p": float(2 * stats.t.sf(abs(difference) / error, freedom)),
    }
    case["within_estimate"], case["within"], case["within_p"] = within(baseline, variant)
    return case


def within(baseline, variant):
    """Satterthwaite's t of the mean over the sessions of a side, less that of the other."""
    estimate, parts = 0.0, []
    for sign, sessions in [(1, variant), (-1, baseline)]:
        for logs in map(numpy.log, sessions):
            weight = sign / len(sessions)
            estimate += weight * float(logs.mean())
            parts.append((weight**2 * float(logs.var(ddof=1)) / len(logs), len(logs) - 1))
    variance = sum(part for part, _ in parts)
    freedom = variance**2 / sum(part**2 / f for part, f in parts)
    reach = float(stats.t.isf(0.025, freedom)) * variance**0.5
    interval = [estimate - reach, estimate + reach]
    p = float(2 * stats.t.sf(abs(estimate) / variance**0.5, freedom))
    if len(baseline) == len(variant) == 1:
        welch = stats.ttest_ind(numpy.log(variant[0]), numpy.log(baseline[0]), equal_var=False)
        ends = welch.confidence_interval(0.95)
        assert numpy.allclose(interval, [ends.low, ends.high], rtol=1e-9)
        assert numpy.isclose(p, welch.pvalue, rtol=1e-9)
    return estimate, interval, p


rank_cases = [
    ranks(side(1e6, n, 0.02, 0.005, 5), side(1e6 * level, m, 0.02, 0.005, 4))
    for n, m, level in [(4, 4, 1.0), (4, 4, 1.2), (5, 4, 1.03), (4, 7, 0.97), (6, 6, 1.05), (8, 8, 1.0)]
]
rerun_cases = [
    reruns(
        side(1e6, n, between, within, 8),
        side(1e6 * level, m, between, within, 6),
        side(2e6, of_one, between, within, 8),
    )
    for n, m, of_one, between, within, level in [
        (1, 1, 4, 0.02, 0.005, 1.2),
        (1, 1, 9, 0.02, 0.005, 1.02),
        (1, 1, 5, 0.001, 0.03, 1.05),
        (2, 1, 6, 0.02, 0.005, 0.9),
        (1, 3, 12, 0.01, 0.01, 1.0),
    ]
]
versions = {
    "python": platform.python_version(),
    "scipy": scipy.__version__,
    "numpy": numpy.__version__,
}
tables = {"versions": [versions], "ranks": rank_cases, "reruns": rerun_cases}
lines = [
    f' "{table}": [\n  ' + ",\n  ".join(json.dumps(case) for case in cases) + "\n ]"
    for table, cases in tables.items()
]
print("{\n" + ",\n".join(lines) + "\n}")
