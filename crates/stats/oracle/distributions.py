#!/usr/bin/env python3
"""Writes distributions.json: tail probabilities and quantiles of normal, t, chi-squared and F.

    python3 -m venv venv && venv/bin/pip install scipy==1.17.1 numpy==2.4.6 mpmath==1.4.1
    venv/bin/python oracle/distributions.py > oracle/distributions.json

The probability of each point is SciPy's and is checked here against the incomplete beta, gamma and
error functions of mpmath in 40 digits: where the two differ by more than 1e-11 relative, mpmath's
stands and the case says so ("corrected": how far SciPy was off). The points are SciPy's quantiles
of round probabilities, so that they reach down to 1e-12 on both sides.
"""

import json
import platform

import mpmath
import numpy
import scipy
from scipy import stats

mpmath.mp.dps = 40

PROBABILITIES = [0.5, 0.3, 0.1, 0.05, 0.025, 0.01, 1e-3, 1e-5, 1e-7, 1e-9, 1e-10, 1e-11, 1e-12]


def exact_normal(x):
    return mpmath.erfc(mpmath.mpf(x) / mpmath.sqrt(2)) / 2


def beta(a, b, x):
    """The regularised incomplete beta function, from the side of the smaller argument."""
    a, b, x = map(mpmath.mpf, (a, b, x))
    return mpmath.betainc(a, b, 0, x, regularized=True)


def exact_t(x, freedom):
    x, freedom = mpmath.mpf(x), mpmath.mpf(freedom)
    if x * x < freedom:
        centre = beta(0.5, freedom / 2, x * x / (freedom + x * x))
        return (1 - centre) / 2
    return beta(freedom / 2, 0.5, freedom / (freedom + x * x)) / 2


def exact_chi_squared(x, freedom):
    half, x = mpmath.mpf(freedom) / 2, mpmath.mpf(x) / 2
    return mpmath.gammainc(half, x, regularized=True), mpmath.gammainc(half, 0, x, regularized=True)


def exact_f(x, first, second):
    x, first, second = map(mpmath.mpf, (x, first, second))
    lower = beta(first / 2, second / 2, first * x / (first * x + second))
    return 1 - lower, lower


def probability(scipys, exact):
    exact = float(exact)
    off = abs(scipys - exact) / exact
    if off > 1e-11:
        return {"p": exact, "corrected": float(off)}
    return {"p": float(scipys)}


cases = {"normal": [], "t": [], "chi_squared": [], "f": []}
for p in PROBABILITIES:
    x = float(stats.norm.isf(p))
    cases["normal"].append({"x": x, **probability(stats.norm.sf(x), exact_normal(x))})
for freedom in [1, 2, 2.5, 3, 4, 5, 7.3, 10, 18.25, 30, 100, 998, 1e4, 199998, 1e6, 1999998]:
    for p in PROBABILITIES:
        x = float(stats.t.isf(p, freedom))
        exact = exact_t(x, freedom) if freedom < 1e5 else None
        if exact is None:
            # mpmath's series is out of breath here; the density is integrated instead.
            n = mpmath.mpf(freedom)
            log_scale = mpmath.loggamma((n + 1) / 2) - mpmath.loggamma(n / 2)
            scale = mpmath.exp(log_scale) / mpmath.sqrt(n * mpmath.pi)
            density = lambda t: (1 + t * t / n) ** (-(n + 1) / 2)
            exact = scale * mpmath.quad(density, [x, x + 1, x + 3, x + 8, x + 20, x + 60])
        cases["t"].append({"df": freedom, "x": x, **probability(stats.t.sf(x, freedom), exact)})
for freedom in [1, 2, 3, 5, 7, 10, 30, 99, 500, 5000]:
    for p in PROBABILITIES:
        x = float(stats.chi2.isf(p, freedom))
        upper, _ = exact_chi_squared(x, freedom)
        y = float(stats.chi2.ppf(p, freedom))
        _, lower = exact_chi_squared(y, freedom)
        cases["chi_squared"] += [
            {
                "df": freedom,
                "tail": "upper",
                "x": x,
                **probability(stats.chi2.sf(x, freedom), upper),
            },
            {
                "df": freedom,
                "tail": "lower",
                "x": y,
                **probability(stats.chi2.cdf(y, freedom), lower),
            },
        ]
for first in [1, 2, 3, 5, 12, 40]:
    for second in [1, 2, 4, 7, 16, 60, 500, 10000]:
        for p in PROBABILITIES:
            x = float(stats.f.isf(p, first, second))
            upper, _ = exact_f(x, first, second)
            cases["f"].append(
                {"df": [first, second], "x": x, **probability(stats.f.sf(x, first, second), upper)}
            )
print(
    '{\n "versions": '
    + json.dumps(
        {
            "python": platform.python_version(),
            "numpy": numpy.__version__,
            "scipy": scipy.__version__,
            "mpmath": mpmath.__version__,
        }
    )
)
for name, rows in cases.items():
    print(f' ,"{name}": [\n  ' + ",\n  ".join(json.dumps(row) for row in rows) + "\n ]")
print("}")
