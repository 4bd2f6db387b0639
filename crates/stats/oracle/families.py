#!/usr/bin/env python3
"""Writes families.json: BCa intervals, max-T and Dunnett's test.

    python3 -m venv venv && venv/bin/pip install scipy==1.17.1 numpy==2.4.6
    venv/bin/python oracle/families.py > oracle/families.json   # takes minutes

BCa: the draws of the Rust code are made here again (PCG-XSH-RR 64/32 by its paper), and SciPy's
`bootstrap` computes the interval from them. Max-T: all arrangements, by the textbook's t. Dunnett:
the double integral by Gauss-Legendre over the deviation itself and the common normal, which agrees
with SciPy's randomised `dunnett` within its error.
"""

import itertools
import json
import platform
from types import SimpleNamespace

import numpy
import scipy
from scipy import special, stats

random = numpy.random.default_rng(20240524)
MASK = (1 << 64) - 1
STREAM = 0x0A02BDBF7BB3C0A7


class Generator:
    """PCG-XSH-RR 64/32 (O'Neill 2014)."""

    def __init__(self, seed):
        self.increment = (STREAM << 1 | 1) & MASK
        self.state = (seed + self.increment) & MASK
        self.step()

    def step(self):
        self.state = (self.state * 6364136223846793005 + self.increment) & MASK

    def next(self):
        old = self.state
        self.step()
        word = ((old >> 18 ^ old) >> 27) & 0xFFFFFFFF
        turn = old >> 59
        return (word >> turn | word << (-turn & 31)) & 0xFFFFFFFF

    def below(self, bound):
        top = 0xFFFFFFFF
        usable = top - top % bound
        while True:
            number = self.next()
            if number < usable:
                return number % bound


STATISTICS = {
    "mean": lambda x, axis: numpy.mean(x, axis=axis),
    "median": lambda x, axis: numpy.median(x, axis=axis),
    "standard_deviation": lambda x, axis: numpy.std(x, axis=axis, ddof=1),
    "difference_of_means": lambda x, y, axis: numpy.mean(x, axis=axis) - numpy.mean(y, axis=axis),
}


def bca_case(samples, name, seed, count, confidence):
    statistic = STATISTICS[name]
    generator = Generator(seed)
    drawn = []
    for _ in range(count):
        resampled = [numpy.array([s[generator.below(len(s))] for _ in s]) for s in samples]
        drawn.append(float(statistic(*resampled, axis=-1)))
    result = stats.bootstrap(
        tuple(numpy.array(s) for s in samples),
        statistic,
        n_resamples=0,
        bootstrap_result=SimpleNamespace(bootstrap_distribution=numpy.array(drawn)),
        confidence_level=confidence,
        method="BCa",
    )
    interval = result.confidence_interval
    return {
        "samples": samples,
        "statistic": name,
        "seed": seed,
        "count": count,
        "confidence": confidence,
        "interval": [float(interval.low), float(interval.high)],
    }


def sign_flip_case(effects):
    effects = numpy.array(effects)
    blocks = effects.shape[1]

    def t(values):
        with numpy.errstate(divide="ignore"):
            return numpy.abs(values.mean(axis=-1)) / (values.std(axis=-1, ddof=1) / blocks**0.5)

    observed = t(effects)
    all_t = numpy.array(
        [t(effects * numpy.array(signs)) for signs in itertools.product([1, -1], repeat=blocks)]
    )
    order = numpy.argsort(-observed)
    adjusted, largest = numpy.zeros(len(effects)), 0.0
    for step, number in enumerate(order):
        maxima = all_t[:, order[step:]].max(axis=1)
        largest = max(largest, float(numpy.mean(maxima >= observed[number] * (1 - 1e-10))))
        adjusted[number] = largest
    return {"effects": effects.tolist(), "adjusted": adjusted.tolist()}


def permutation_case(reference, samples):
    groups = [reference, *samples]
    pooled = numpy.concatenate(groups)
    labels = numpy.repeat(range(len(groups)), [len(g) for g in groups])

    def t(labels):
        parts = [pooled[labels == g] for g in range(len(groups))]
        squares = sum(((p - p.mean()) ** 2).sum() for p in parts)
        variance = squares / (len(pooled) - len(groups))
        base = parts[0]
        return [
            abs(p.mean() - base.mean()) / (variance * (1 / len(p) + 1 / len(base))) ** 0.5
            for p in parts[1:]
        ]

    observed = t(labels)
    maxima = numpy.array(
        [max(t(numpy.array(a))) for a in set(itertools.permutations(labels.tolist()))]
    )
    adjusted = [float(numpy.mean(maxima >= o * (1 - 1e-10))) for o in observed]
    return {
        "reference": reference,
        "samples": samples,
        "arrangements": len(maxima),
        "adjusted": adjusted,
    }


def gauss(pieces, points=40):
    nodes, weights = numpy.polynomial.legendre.leggauss(points)
    x, w = [], []
    for low, high in zip(pieces, pieces[1:]):
        x.append((high - low) / 2 * nodes + (high + low) / 2)
        w.append((high - low) / 2 * weights)
    return numpy.concatenate(x), numpy.concatenate(w)


def p_beyond(t, loadings, freedom):
    """P(one |Ti| or more beyond t): 1 - product, so that small ones keep their digits."""
    z, z_weight = gauss(numpy.linspace(-14, 14, 57))
    spread = 1 / (2 * freedom) ** 0.5
    # The integrand lives between where S is likely and where t S is moderate.
    low = min(1.0, (freedom / (freedom + t * t)) ** 0.5)
    s, s_weight = gauss(
        numpy.unique(
            numpy.concatenate(
                [
                    [0.0],
                    numpy.geomspace(low / 1e3, low * max(0.5, 1 - 8 * spread), 12),
                    numpy.linspace(low * max(0.5, 1 - 8 * spread), 1 + 14 * spread, 40),
                ]
            )
        )
    )
    log_density = (
        numpy.log(2)
        + freedom / 2 * numpy.log(freedom / 2)
        - special.gammaln(freedom / 2)
        + (freedom - 1) * numpy.log(s)
        - freedom * s**2 / 2
    )
    inner = numpy.zeros(len(s))
    for i, scale in enumerate(s):
        log_none = numpy.zeros(len(z))
        for loading in loadings:
            rest = (1 - loading**2) ** 0.5
            beyond = stats.norm.sf((t * scale + loading * z) / rest) + stats.norm.sf(
                (t * scale - loading * z) / rest
            )
            with numpy.errstate(divide="ignore"):
                log_none += numpy.log1p(-numpy.minimum(beyond, 1))
        inner[i] = (-numpy.expm1(log_none) * stats.norm.pdf(z)) @ z_weight
    return float((inner * numpy.exp(log_density)) @ s_weight)


def dunnett_case(reference, samples, confidence):
    groups = [numpy.array(g) for g in [reference, *samples]]
    freedom = sum(len(g) for g in groups) - len(groups)
    variance = sum(((g - g.mean()) ** 2).sum() for g in groups) / freedom
    base = groups[0]
    loadings = [(len(g) / (len(g) + len(base))) ** 0.5 for g in groups[1:]]
    errors = [(variance * (1 / len(g) + 1 / len(base))) ** 0.5 for g in groups[1:]]
    differences = [g.mean() - base.mean() for g in groups[1:]]
    p = [p_beyond(abs(d / e), loadings, freedom) for d, e in zip(differences, errors)]
    for d, e in zip(differences, errors):
        if len(samples) == 1:
            exact = 2 * stats.t.sf(abs(d / e), freedom)
            assert abs(p[0] - exact) <= 1e-9 * exact, (p, exact)
    theirs = stats.dunnett(*groups[1:], control=base, rng=numpy.random.default_rng(1)).pvalue
    assert numpy.all(numpy.abs(theirs - p) <= 1e-3), (theirs, p)
    alpha = 1 - confidence
    bracket = (
        stats.t.isf(alpha / 2, freedom) * 0.999,
        stats.t.isf(alpha / 2 / len(samples), freedom) * 1.001,
    )
    critical = scipy.optimize.brentq(
        lambda t: p_beyond(t, loadings, freedom) - alpha, *bracket, xtol=1e-13, rtol=1e-13
    )
    return {
        "reference": reference,
        "samples": samples,
        "confidence": confidence,
        "t": [float(d / e) for d, e in zip(differences, errors)],
        "adjusted_p": p,
        "intervals": [
            [float(d - critical * e), float(d + critical * e)] for d, e in zip(differences, errors)
        ],
    }


def normal(n, centre, spread=1.0):
    return [float(v) for v in numpy.round(random.normal(centre, spread, n), 6)]


def t3(n, centre):
    return [float(v) for v in numpy.round(centre + random.standard_t(3, n), 6)]


bca = [
    bca_case([t3(8, 1.0)], "mean", 1, 2000, 0.95),
    bca_case([t3(20, 1.0)], "median", 2, 2000, 0.9),
    bca_case([t3(30, 0.0)], "standard_deviation", 3, 1999, 0.95),
    bca_case([[float(v) for v in random.integers(0, 4, 15)]], "mean", 4, 999, 0.99),
    bca_case([t3(12, 1.0), t3(9, 0.0)], "difference_of_means", 5, 2000, 0.95),
    bca_case([t3(3, 1.0), t3(25, 0.0)], "difference_of_means", 2**63 + 11, 2000, 0.8),
]
flips = []
for count, blocks, shared in [
    (1, 6, 0.0),
    (2, 5, 1.0),
    (3, 8, 1.0),
    (4, 8, 3.0),
    (6, 10, 0.5),
    (3, 12, 1.0),
]:
    common = random.standard_t(3, blocks) * shared
    effects = [
        [float(v) for v in numpy.round(common + random.standard_t(3, blocks) + 0.9 * i, 6)]
        for i in range(count)
    ]
    flips.append(sign_flip_case(effects))
flips.append(sign_flip_case([[float(v) for v in random.integers(-2, 5, 8)] for _ in range(4)]))
permutations = [
    permutation_case(t3(3, 0.0), [t3(3, 1.0), t3(2, 3.0)]),
    permutation_case(t3(2, 0.0), [t3(2, 1.0), t3(2, 3.0), t3(2, 0.0)]),
    permutation_case(t3(4, 0.0), [t3(4, 2.0)]),
    permutation_case([1.0, 2.0, 2.0], [[3.0, 3.0, 4.0], [1.0, 2.0, 3.0]]),
]
dunnetts = [
    # Dunnett's own example: blood counts of animals.
    dunnett_case(
        [7.40, 8.50, 7.20, 8.24, 9.84, 8.32],
        [[9.76, 8.80, 7.68, 9.36], [12.80, 9.68, 12.16, 9.20, 10.55]],
        0.95,
    ),
    dunnett_case(normal(8, 0.0), [normal(8, c) for c in (0.5, 0.0, 2.0)], 0.95),
    dunnett_case(
        normal(8, 0.0), [normal(8, c) for c in (0.1, 0.2, 0.3, 0.5, 0.9, 1.4, -2.0, 4.0)], 0.9
    ),
    dunnett_case(normal(3, 0.0), [normal(3, 1.0), normal(2, 5.0)], 0.99),
    dunnett_case(normal(1, 0.0), [normal(2, 1.0), normal(2, 5.0)], 0.95),
    dunnett_case(normal(40, 0.0), [normal(5, 0.3), normal(60, 0.4), normal(10, 0.0)], 0.95),
    dunnett_case(normal(4, 0.0), [normal(100, 0.8), normal(80, 2.5)], 0.95),
    dunnett_case(normal(12, 0.0), [normal(12, 4.0), normal(12, 9.0)], 0.95),
    dunnett_case(normal(500, 0.0), [normal(500, 0.3), normal(400, 0.1)], 0.95),
    dunnett_case(normal(10, 0.0), [normal(7, 1.0)], 0.95),
]
tables = {
    "versions": [
        {
            "python": platform.python_version(),
            "numpy": numpy.__version__,
            "scipy": scipy.__version__,
        }
    ],
    "bca": bca,
    "max_t_sign_flip": flips,
    "max_t_permutation": permutations,
    "dunnett": dunnetts,
}
print("{")
print(
    ",\n".join(
        f' "{name}": [\n  ' + ",\n  ".join(map(json.dumps, rows)) + "\n ]"
        for name, rows in tables.items()
    )
)
print("}")
