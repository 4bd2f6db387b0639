#!/usr/bin/env python3
"""Writes two_sample_power.json: the power of Student's two-sided t test of two samples of one size.

    python3 -m venv venv && venv/bin/pip install scipy==1.17.1 numpy==2.4.6 statsmodels==0.15.0
    venv/bin/python oracle/two_sample_power.py > oracle/two_sample_power.json

SciPy's non-central t; statsmodels' TTestIndPower has to agree to 1e-6. The numbers of observations are
found by counting up.
"""

import json
import platform

import numpy
import scipy
import statsmodels
from scipy.stats import nct, t
from statsmodels.stats.power import TTestIndPower

CONFIDENCE = 0.95


def power(effect, observations, compared):
    freedom = 2 * (observations - 1)
    alpha = (1 - CONFIDENCE) / compared
    critical = t.isf(alpha / 2, freedom)
    shift = effect * (observations / 2) ** 0.5
    # Neither library can tell the lower tail of a large shift, which is nothing.
    lower = nct.cdf(-critical, freedom, shift) if shift < 6 else 0
    found = nct.sf(critical, freedom, shift) + lower
    other = TTestIndPower().power(effect, observations, alpha)
    assert abs(found - other) < 1e-6 or shift >= 6, (effect, observations, compared, found, other)
    assert 0 < found <= 1
    return found


def observations(effect, compared):
    return next(n for n in range(2, 100000) if power(effect, n, compared) >= 0.8)


powers = [
    (effect, count, compared)
    for effect in (0.1, 0.5, 1, 2, 4)
    for count in (2, 3, 5, 8, 20, 100)
    for compared in (1, 4)
]
numbers = [(effect, compared) for effect in (0.3, 0.7, 1, 1.4, 2, 3, 6) for compared in (1, 2, 5)]

versions = {
    "python": platform.python_version(),
    "numpy": numpy.__version__,
    "scipy": scipy.__version__,
    "statsmodels": statsmodels.__version__,
}
tables = {
    "versions": [versions],
    # Effect, observations on each side, comparisons, power.
    "power": [[e, n, k, float(power(e, n, k))] for e, n, k in powers],
    # Effect, comparisons, observations on each side.
    "observations": [[e, k, observations(e, k)] for e, k in numbers],
}
lines = [
    f' "{name}": [\n' + ",\n".join("  " + json.dumps(case) for case in cases) + "\n ]"
    for name, cases in tables.items()
]
print("{\n" + ",\n".join(lines) + "\n}")
