#!/usr/bin/env python3
"""Writes covariate.json: what statsmodels makes of rates over a covariate.

    python3 -m venv venv
    venv/bin/pip install statsmodels==0.15.0 scipy==1.17.1 numpy==2.4.6
    venv/bin/python oracle/covariate.py > oracle/covariate.json

Arms: each arm's own line, the F test of one slope for all against a slope each, and the analysis of
covariance under one slope. Blocks: the line of the block effects over those of the covariate, of which
the intercept is the adjusted effect.
"""

import json
import platform

import numpy
import scipy
import statsmodels
import statsmodels.api as sm

random = numpy.random.default_rng(20261122)
CONFIDENCES = [0.9, 0.95, 0.99]


def coefficient(fit, weights):
    test = fit.t_test(numpy.array(weights, dtype=float))
    return {
        "estimate": float(test.effect[0]),
        "p": float(test.pvalue),
        "intervals": [[c, *map(float, test.conf_int(alpha=1 - c)[0])] for c in CONFIDENCES],
        "degrees_of_freedom": float(fit.df_resid),
    }


def arms_case(arms):
    """Of (values, covariate) of each arm; the covariate centred, so that nothing is ill-conditioned."""
    y = numpy.concatenate([values for values, _ in arms])
    x = numpy.concatenate([covariate for _, covariate in arms])
    arm = numpy.concatenate([[i] * len(values) for i, (values, _) in enumerate(arms)])
    means = numpy.array([numpy.mean(covariate) for _, covariate in arms])
    within = x - means[arm]
    dummies = numpy.array([arm == i for i in range(len(arms))], dtype=float).T
    level = numpy.mean(y)
    separate = sm.OLS(y - level, numpy.column_stack([dummies, dummies * within[:, None]])).fit()
    common = sm.OLS(y - level, numpy.column_stack([dummies, within])).fit()
    f, p, _ = separate.compare_f_test(common)
    own = []
    for values, covariate in arms:
        design = sm.add_constant(numpy.array(covariate) - numpy.mean(covariate))
        own.append(coefficient(sm.OLS(numpy.array(values) - level, design).fit(), [0, 1]))
    adjusted = []
    for i in range(1, len(arms)):
        weights = numpy.zeros(len(arms) + 1)
        weights[i], weights[0], weights[-1] = 1, -1, -(means[i] - means[0])
        adjusted.append(
            {
                "raw": float(numpy.mean(arms[i][0]) - numpy.mean(arms[0][0])),
                "covariate_shift": float(means[i] - means[0]),
                **coefficient(common, weights),
            }
        )
    return {
        "arms": [[list(values), list(covariate)] for values, covariate in arms],
        "slopes": own,
        "interaction": {"f": float(f), "p": float(p)},
        "common_slope": coefficient(common, [0] * len(arms) + [1]),
        "adjusted": adjusted,
    }


def blocks_case(effects, covariate):
    fit = sm.OLS(numpy.array(effects), sm.add_constant(numpy.array(covariate))).fit()
    return {
        "effects": list(effects),
        "covariate": list(covariate),
        "slope": coefficient(fit, [0, 1]),
        "adjusted": coefficient(fit, [1, 0]),
    }


def rounded(values, digits=9):
    return [float(round(v, digits)) for v in values]


def arm(n, level, slope, load, spread, noise):
    covariate = rounded(load + spread * random.standard_normal(n))
    values = rounded(
        level + slope * (numpy.array(covariate) - load) + noise * random.standard_t(3, n)
    )
    return values, covariate


rows = {
    "versions": [
        {
            "python": platform.python_version(),
            "numpy": numpy.__version__,
            "scipy": scipy.__version__,
            "statsmodels": statsmodels.__version__,
        }
    ],
    "arms": [
        arms_case([arm(n, 14.2, s, 16.5, 0.004, 0.006), arm(m, 14.23, t, 16.51, 0.003, 0.006)])
        for n, m, s, t in [
            (3, 3, 0.5, 0.5),
            (3, 8, 0.0, 0.0),
            (5, 5, -0.2, -0.2),
            (5, 5, -8.0, 3.0),
            (8, 12, 1.0, 1.0),
            (40, 30, 1.0, 0.0),
        ]
    ]
    + [
        arms_case([arm(5, 14.2 + i / 100, -0.5, 16.5, 0.003, 0.004) for i in range(5)]),
        arms_case(
            [
                arm(4, 14.2, 1.0, 16.5, 0.02, 0.001),
                arm(7, 14.2, 1.0, 16.6, 0.02, 0.001),
                arm(30, 14.1, 0.9, 16.4, 0.02, 0.001),
            ]
        ),
    ],
    "blocks": [
        blocks_case(*arm(n, level, slope, shift, spread, noise))
        for n, level, slope, shift, spread, noise in [
            (3, -0.2, 0.3, -0.01, 0.01, 0.004),
            (8, -0.21, 0.8, -0.02, 0.01, 0.004),
            (8, 0.0, 1.0, 0.0, 0.003, 0.0005),
            (8, 0.01, 0.0, 0.03, 0.001, 0.01),
            (12, 0.5, -0.2, 0.1, 0.05, 0.02),
            (100, -0.004, 0.2, -0.004, 0.002, 0.003),
        ]
    ],
}
print("{")
print(
    ",\n".join(
        f' "{name}": [\n  ' + ",\n  ".join(map(json.dumps, cases)) + "\n ]"
        for name, cases in rows.items()
    )
)
print("}")
