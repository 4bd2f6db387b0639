#!/usr/bin/env python3
"""Writes power.json: the noncentral t, two one-sided t tests, and the power of t tests.

    python3 -m venv venv
    venv/bin/pip install statsmodels==0.15.0 scipy==1.17.1 numpy==2.4.6 mpmath==1.4.1
    venv/bin/python oracle/power.py > oracle/power.json

Probabilities are integrals over the estimated deviation in 30 digits (mpmath); SciPy's nct has to agree
to 1e-7. Powers and sizes are those of statsmodels' TTestPower and TTestIndPower. Welch's power is averaged over how the two variances share their sum (a beta distribution) by
SciPy's quad.
"""

import json
import math
import platform

import mpmath
import numpy
import scipy
import statsmodels
from scipy import integrate, optimize, stats
from statsmodels.stats.power import TTestIndPower, TTestPower

mpmath.mp.dps = 30


def over_deviation(freedom, of_deviation, end=None):
    """The mean of a function of S, S^2 chi-squared over its degrees of freedom, up to an end."""
    n = mpmath.mpf(freedom)
    scale = 2 * (n / 2) ** (n / 2) / mpmath.gamma(n / 2)

    def integrand(s):
        return scale * s ** (n - 1) * mpmath.exp(-n * s * s / 2) * of_deviation(s)

    width = 1 / mpmath.sqrt(2 * n)
    last = 1 + 14 * width if n > 4 else mpmath.mpf(14) / mpmath.sqrt(n)
    last = last if end is None else min(end, last)
    first = max(mpmath.mpf(0), 1 - 14 * width)
    points = [p for p in numpy.linspace(float(first), float(last), 33)]
    points = [mpmath.mpf(p) for p in points]
    if first > 0:
        points = [mpmath.mpf(0)] + points
    return mpmath.quad(integrand, points)


def upper_normal(z):
    return mpmath.erfc(z / mpmath.sqrt(2)) / 2


def noncentral_t(t, freedom, noncentrality):
    t, delta = mpmath.mpf(t), mpmath.mpf(noncentrality)
    return over_deviation(freedom, lambda s: upper_normal(t * s - delta))


def noncentral_case(t, freedom, noncentrality):
    p = float(noncentral_t(t, freedom, noncentrality))
    theirs = float(stats.nct.sf(t, freedom, noncentrality))
    assert abs(theirs - p) <= 1e-7 * max(p, 1e-3), (t, freedom, noncentrality, p, theirs)
    return [t, freedom, noncentrality, p]


def two_one_sided_case(lower, upper, critical, freedom):
    low, high, c = map(mpmath.mpf, (lower, upper, critical))

    def between(s):
        return upper_normal(low + c * s) - upper_normal(high - c * s)

    p = over_deviation(freedom, between, end=(high - low) / (2 * c))
    return [lower, upper, critical, freedom, float(p)]


def t_power(kind, effect, size, compared, confidence):
    alpha = (1 - confidence) / compared
    if kind == "student-t":
        power = TTestPower().power(effect, size, alpha, alternative="two-sided")
    else:
        power = TTestIndPower().power(effect, size, alpha, ratio=1, alternative="two-sided")
    return float(power)


def t_size(kind, effect, compared, confidence):
    alpha = (1 - confidence) / compared
    test = TTestPower() if kind == "student-t" else TTestIndPower()
    size = test.solve_power(effect_size=effect, alpha=alpha, power=0.8, alternative="two-sided")
    return math.ceil(float(numpy.squeeze(size)))


def t_smallest_effect(kind, size, compared, confidence):
    """Near statsmodels' own solution, which is good to 1e-5 only."""
    alpha = (1 - confidence) / compared
    test, name = (TTestPower(), "nobs") if kind == "student-t" else (TTestIndPower(), "nobs1")
    near = test.solve_power(alpha=alpha, power=0.8, alternative="two-sided", **{name: size})
    near = float(numpy.squeeze(near))
    return optimize.brentq(
        lambda effect: t_power(kind, effect, size, compared, confidence) - 0.8,
        0.999 * near,
        1.001 * near,
        xtol=1e-13,
    )


def welch_power(effect, size, compared, confidence):
    tail = (1 - confidence) / compared / 2
    a = (size - 1) / 2
    ncp = effect * math.sqrt(size / 2)

    def integrand(share):
        freedom = (size - 1) / (share**2 + (1 - share) ** 2)
        critical = stats.t.isf(tail, freedom)
        both = stats.nct.sf(critical, 2 * size - 2, ncp) + stats.nct.cdf(
            -critical, 2 * size - 2, ncp
        )
        return stats.beta.pdf(share, a, a) * both

    return float(2 * integrate.quad(integrand, 0, 0.5, epsabs=1e-12, epsrel=1e-10, limit=400)[0])


noncentral = [
    noncentral_case(t, n, d)
    for t, n, d in [
        (0.0, 1, 0.0),
        (12.706, 1, 5.0),
        (12.706, 1, 40.0),
        (4.3027, 2, -1.0),
        (4.3027, 2, 3.5),
        (3.1824, 3, 2.0),
        (2.3646, 7, 0.0),
        (2.3646, 7, 3.3),
        (2.3646, 7, -3.3),
        (-2.3646, 7, 3.3),
        (5.4079, 7, 8.0),
        (30.0, 7, 2.0),
        (2.2, 11.5, 0.25),
        (2.0, 60, 30.0),
        (2.0, 60, 2.8),
        (9.0, 60, 2.0),
        (1.98, 198, 2.8),
        (1.97, 1000, 6.0),
        (6.0, 1000, -0.5),
    ]
]
two_one_sided = [
    two_one_sided_case(*case)
    for case in [
        (-3.0, 3.0, 1.8946, 7),
        (-1.5, 1.5, 1.8946, 7),
        (-4.0, 4.0, 2.9980, 7),
        (-1.0, 7.0, 1.8946, 7),
        (0.5, 7.0, 1.8946, 7),
        (-40.0, 40.0, 6.3138, 1),
        (-2.93, 2.93, 1.6714, 59),
        (-2.93, 2.93, 1.6460, 1000),
        (-12.0, 3.0, 2.5, 15),
    ]
]
settings = [(1, 0.95), (3, 0.95), (6, 0.95), (1, 0.99)]
powers = [
    {
        "method": kind,
        "effect": effect,
        "size": size,
        "compared": compared,
        "confidence": confidence,
        "power": t_power(kind, effect, size, compared, confidence),
    }
    for kind in ("student-t", "pooled-t")
    for effect, size in [(1.2, 8), (0.3, 8), (0.5, 34), (2.5, 4), (0.0, 10), (0.1, 900), (-1.2, 8)]
    for compared, confidence in settings
] + [
    {
        "method": "welch-t",
        "effect": effect,
        "size": size,
        "compared": compared,
        "confidence": confidence,
        "power": welch_power(effect, size, compared, confidence),
    }
    for effect, size in [(1.5, 5), (2.0, 3), (1.2, 12), (0.5, 70)]
    for compared, confidence in settings[:2]
]
solved = [
    {
        "method": kind,
        "compared": compared,
        "confidence": confidence,
        "effect": effect,
        "size": t_size(kind, effect, compared, confidence),
        "at": at,
        "smallest_effect": t_smallest_effect(kind, at, compared, confidence),
    }
    for kind in ("student-t", "pooled-t")
    for effect, at in [(1.2, 8), (0.7, 20), (0.2, 150), (0.05, 3000)]
    for compared, confidence in settings
]
rows = {
    "versions": [
        {
            "python": platform.python_version(),
            "numpy": numpy.__version__,
            "scipy": scipy.__version__,
            "statsmodels": statsmodels.__version__,
            "mpmath": mpmath.__version__,
        }
    ],
    "noncentral_t": noncentral,
    "two_one_sided": two_one_sided,
    "power": powers,
    "solved": solved,
}
print("{")
print(
    ",\n".join(
        f' "{name}": [\n  ' + ",\n  ".join(map(json.dumps, cases)) + "\n ]"
        for name, cases in rows.items()
    )
)
print("}")
