#!/usr/bin/env python3
"""Quantiles of chi-squared, for the test in src/detectable.rs.

Each is found by inverting the regularised incomplete gamma function in 30 digits, which shares
nothing with the method of the library under test. Run it and keep what it prints:

    python3 oracle/chi_squared.py > oracle/chi_squared.json
"""

import json

import mpmath

mpmath.mp.dps = 30


def quantile(probability, degrees_of_freedom):
    half = mpmath.mpf(degrees_of_freedom) / 2
    p = mpmath.mpf(str(probability))

    def above(x):
        return mpmath.gammainc(half, 0, x / 2, regularized=True) - p

    high = mpmath.mpf(1)
    while above(high) < 0:
        high *= 2
    return mpmath.findroot(above, (mpmath.mpf(0), high), solver="anderson", tol=1e-40)


cases = [(0.2, k) for k in (1, 2, 5, 7, 10, 30, 100, 500)] + [(0.05, 7), (0.01, 15)]
print(
    json.dumps(
        {
            "made_with": f"mpmath {mpmath.__version__}",
            "cases": [
                {
                    "probability": p,
                    "degrees_of_freedom": k,
                    "quantile": float(quantile(p, k)),
                }
                for p, k in cases
            ],
        },
        indent=1,
    )
)
