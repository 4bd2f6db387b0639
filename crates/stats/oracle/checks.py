#!/usr/bin/env python3
"""Writes checks.json: order effects, autocorrelation, trends and dips.

    python3 -m venv venv && venv/bin/pip install scipy==1.17.1 numpy==2.4.6 diptest==0.12.0
    venv/bin/python oracle/checks.py > oracle/checks.json   # takes a minute

Order effects: least squares with dummy columns for every round, variant and label, outlying slices
drawn in as the documentation says, and every order of the rows tried. Autocorrelation: the sum over
neighbours, and its mean over all orders of each series, which is taken off. Trends: SciPy's
`kendalltau` without ties, all orders with them. Dips: the `diptest` package.
"""

import itertools
import json
import platform

import diptest
import numpy
import scipy
from scipy import stats

random = numpy.random.default_rng(20240917)


def robust_deviation(values):
    return 1.482602218505602 * numpy.median(numpy.abs(values - numpy.median(values)))


def robust_fit(columns, values):
    drawn_in = values.copy()
    for _ in range(11):
        coefficients, *_ = numpy.linalg.lstsq(columns, drawn_in, rcond=None)
        fitted = columns @ coefficients
        residuals = values - fitted
        bound = 3 * robust_deviation(residuals)
        if bound == 0 or numpy.all(numpy.abs(residuals) <= bound):
            break
        last = drawn_in
        drawn_in = fitted + numpy.clip(residuals, -bound, bound)
    else:
        drawn_in = last
    return coefficients, drawn_in - fitted


def nuisance(cells, blocks, variants):
    keys = sorted({("round", b, r) for b, r, _ in cells} | {("variant", b, v) for b, _, v in cells})
    columns = numpy.zeros((len(cells), len(keys)))
    for i, (b, r, v) in enumerate(cells):
        columns[i, keys.index(("round", b, r))] = 1
        columns[i, keys.index(("variant", b, v))] = 1
    return columns


def labelled(blocks, orders, kind):
    """Block, round, variant, label of every slice that counts."""
    for b, (rounds, order) in enumerate(zip(blocks, orders)):
        rates = [dict(row) for row in rounds]
        previous = None
        for r, source in enumerate(order):
            for place, (v, _) in enumerate(rounds[source]):
                label = place if kind == "place" else previous
                if label is not None and rates[r][v] is not None:
                    yield b, r, v, label
                previous = v


def order_effect(blocks, variants, kind):
    recorded = [list(range(len(rounds))) for rounds in blocks]
    rate = {
        (b, r, v): value
        for b, rounds in enumerate(blocks)
        for r, row in enumerate(rounds)
        for v, value in row
        if value is not None
    }
    cells = list(labelled(blocks, recorded, kind))
    places = [cell[:3] for cell in cells]
    coding = numpy.zeros((len(cells), variants - 1))
    for i, (*_, label) in enumerate(cells):
        if label == variants - 1:
            coding[i, :] = -1
        else:
            coding[i, label] = 1
    columns = numpy.hstack([nuisance(places, blocks, variants), coding])
    coefficients, _ = robust_fit(columns, numpy.array([rate[p] for p in places]))
    effects = list(coefficients[-(variants - 1) :])
    effects.append(-sum(effects))

    all_places = sorted(rate)
    columns = nuisance(all_places, blocks, variants)
    _, residuals = robust_fit(columns, numpy.array([rate[p] for p in all_places]))
    residual = dict(zip(all_places, residuals))

    def scores(orders):
        sums, counts = [0.0] * variants, [0] * variants
        for b, r, v, label in labelled(blocks, orders, kind):
            sums[label] += residual[b, r, v]
            counts[label] += 1
        return [abs(s) / max(n, 1) ** 0.5 for s, n in zip(sums, counts)]

    observed = scores(recorded)
    every = [
        max(scores(orders))
        for orders in itertools.product(
            *[list(itertools.permutations(range(len(rounds)))) for rounds in blocks]
        )
    ]
    label = next(i for i, score in enumerate(observed) if score >= max(observed) - 1e-10)
    means = []
    for variant in range(variants):
        mine = []
        for b, rounds in enumerate(blocks):
            previous = None
            for row in rounds:
                for place, (v, _) in enumerate(row):
                    at = place if kind == "place" else previous
                    if v == variant and at is not None:
                        mine.append(effects[at])
                    previous = v
        means.append(numpy.mean(mine))
    return {
        "label": label,
        "effect": float(effects[label] * variants / (variants - 1)),
        "p": float(numpy.mean(numpy.array(every) >= max(observed) - 1e-10)),
        "largest_bias": float(max(means) - min(means)),
        "orders": len(every),
    }


def order_case(variants, rounds_of_blocks, carry_over=0.0, place_effect=0.0, missing=0.0, outlier=None):
    blocks = []
    for number, rounds in enumerate(rounds_of_blocks):
        level = random.normal(14, 0.01, variants)
        block, previous = [], None
        for _ in range(rounds):
            row = []
            shared = random.normal(0, 0.002)
            for place, v in enumerate(random.permutation(variants)):
                value = level[v] + shared + random.normal(0, 0.003)
                if previous == 1:
                    value -= carry_over
                if place == 0:
                    value += place_effect
                if random.uniform() < missing:
                    value = None
                row.append([int(v), None if value is None else float(numpy.round(value, 6))])
                previous = v
            block.append(row)
        blocks.append(block)
    if outlier is not None:
        b, r, place = outlier
        blocks[b][r][place][1] -= 0.4
    return {
        "variants": variants,
        "blocks": blocks,
        "predecessor": order_effect(blocks, variants, "predecessor"),
        "place": order_effect(blocks, variants, "place"),
    }


def autocorrelation_case(series):
    products = squares = expected = 0.0
    for values in series:
        values = numpy.array([numpy.nan if v is None else v for v in values], dtype=float)
        around = values - numpy.nanmean(values)
        counted = ~numpy.isnan(around)
        if counted.sum() < 3:
            continue
        slots = numpy.flatnonzero(counted)
        own = around[counted]

        def neighbours(own):
            placed = numpy.full(len(around), numpy.nan)
            placed[slots] = own
            return numpy.nansum(placed[1:] * placed[:-1])

        orders = [neighbours(numpy.array(p)) for p in itertools.permutations(own)]
        products += neighbours(own)
        expected += numpy.mean(orders)
        squares += (own**2).sum()
    return {"series": series, "correlation": float((products - expected) / squares)}


def trend_case(values):
    tau = stats.kendalltau(range(len(values)), values).statistic
    if len(set(values)) == len(values):
        p = stats.kendalltau(range(len(values)), values, method="exact").pvalue
    else:
        score = lambda v: sum(
            numpy.sign(v[j] - v[i]) for i in range(len(v)) for j in range(i + 1, len(v))
        )
        observed = abs(score(values))
        p = numpy.mean([abs(score(v)) >= observed for v in itertools.permutations(values)])
    return {"values": values, "tau": float(tau), "p": float(p)}


def long_trend_case(values):
    """The normal approximation, whose score SciPy does not correct for continuity."""
    result = stats.kendalltau(range(len(values)), values, method="asymptotic")
    ties = [values.count(v) for v in set(values)]
    n = len(values)
    variance = (n * (n - 1) * (2 * n + 5) - sum(t * (t - 1) * (2 * t + 5) for t in ties)) / 18
    score = stats.norm.isf(result.pvalue / 2) * variance**0.5
    p = 2 * stats.norm.sf((round(score) - 1) / variance**0.5)
    return {"values": values, "tau": float(result.statistic), "p": float(p)}


def rounded(values, digits=6):
    return [float(v) for v in numpy.round(values, digits)]


def dip_case(values):
    return {"values": values, "dip": float(diptest.dipstat(numpy.array(values), allow_zero=False))}


orders = [
    order_case(3, [6]),
    order_case(3, [3, 3, 3]),
    order_case(4, [4, 3], carry_over=0.01),
    order_case(5, [6], carry_over=0.02, place_effect=0.01),
    order_case(3, [4, 3], place_effect=0.02),
    order_case(2, [6, 2]),
    order_case(4, [5], missing=0.15),
    order_case(3, [6], carry_over=0.02, outlier=(0, 3, 1)),
    order_case(4, [3, 3, 2], outlier=(1, 0, 2)),
]
autocorrelations = [
    autocorrelation_case([rounded(random.normal(0, 1, 8))]),
    autocorrelation_case([rounded(numpy.cumsum(random.normal(0, 1, 7))) for _ in range(4)]),
    autocorrelation_case([rounded(random.normal(5, 1, n)) for n in (3, 6, 2, 8)]),
    autocorrelation_case([[1.0, None, 2.5, 3.5, None, 2.0, 1.0], [4.0, 4.5, 3.0, None]]),
]
trends = [trend_case(rounded(random.normal(0, 1, n))) for n in (2, 3, 5, 8, 12, 20, 33)]
trends += [
    trend_case([5.1, 5.2, 5.4, 5.5, 5.8]),
    trend_case([5.0, 4.0, 3.0, 2.0, 1.0, 0.0]),
    trend_case([float(i) + float(e) for i, e in enumerate(rounded(random.normal(0, 4, 25)))]),
    trend_case([1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 4.0]),
    trend_case([2.0, 1.0, 2.0, 1.0, 2.0, 5.0, 1.0, 2.0]),
    trend_case([1.0, 1.0, 1.0, 2.0]),
]
long_trends = [
    long_trend_case([float(i) / 40 + float(e) for i, e in enumerate(rounded(random.normal(0, 1, n)))])
    for n in (34, 100)
] + [long_trend_case([float(v) for v in random.integers(0, 9, 80)])]
dips = [dip_case(rounded(random.uniform(0, 1, n))) for n in (2, 3, 4, 5, 8, 13, 20, 50, 200)]
dips += [dip_case(rounded(random.standard_t(3, n))) for n in (10, 100)]
dips += [
    dip_case(rounded(numpy.concatenate([random.normal(0, 1, n), random.normal(gap, 1, m)])))
    for n, m, gap in ((5, 3, 20), (20, 20, 3), (80, 20, 5), (30, 90, 8))
]
dips += [dip_case([float(v) for v in random.integers(0, top, n)]) for top, n in ((4, 20), (9, 60), (50, 90))]
dips += [dip_case([1.0, 1.0, 1.0]), dip_case([1.0, 2.0]), dip_case([0.0, 0.0, 1.0, 1.0])]
# Values of uniform samples, for the quantiles of the dip under one mode.
quantiles = []
for n in (20, 100, 1000, 5000):
    drawn = [diptest.dipstat(random.uniform(0, 1, n)) * n**0.5 for _ in range(4000)]
    quantiles.append({"count": n, "median": float(numpy.median(drawn)), "p99": float(numpy.quantile(drawn, 0.99))})
tables = {
    "versions": [
        {
            "python": platform.python_version(),
            "numpy": numpy.__version__,
            "scipy": scipy.__version__,
            "diptest": "0.12.0",
        }
    ],
    "order": orders,
    "autocorrelation": autocorrelations,
    "trend": trends,
    "long_trend": long_trends,
    "dip": dips,
    "dip_quantiles": quantiles,
}
print("{")
print(
    ",\n".join(
        f' "{name}": [\n  ' + ",\n  ".join(map(json.dumps, rows)) + "\n ]"
        for name, rows in tables.items()
    )
)
print("}")
