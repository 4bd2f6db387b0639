#!/usr/bin/env python3
"""Writes factorial.json: what statsmodels makes of factorial designs.

    python3 -m venv venv && venv/bin/pip install scipy==1.17.1 numpy==2.4.6 statsmodels==0.15.0
    venv/bin/python oracle/factorial.py > oracle/factorial.json

Terms are those of anova_lm(typ=3) with effect coding. Contrasts are differences (of differences)
of predicted means over a grid in which every level of the other factors and every block counts the
same, tested by t_test: this does not use the coefficients' coding.
"""

import itertools
import json
import platform

import numpy
import pandas
import patsy
import scipy
import statsmodels
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

random = numpy.random.default_rng(20240523)
CONFIDENCE = 0.95


def analyse(frame, level_counts, order, blocks):
    names = list(level_counts)
    terms = [c for size in range(1, order + 1) for c in itertools.combinations(names, size)]
    formula = "y ~ " + " + ".join(":".join(f"C({n}, Sum)" for n in t) for t in terms)
    if blocks:
        formula += " + C(block, Sum)"
    centred = frame.assign(y=frame.y - frame.y.mean())
    fit = ols(formula, centred).fit()
    table = anova_lm(fit, typ=3)
    grid = pandas.DataFrame(
        list(
            itertools.product(
                *(range(level_counts[n]) for n in names), sorted(frame.block.unique())
            )
        ),
        columns=[*names, "block"],
    )
    rows = numpy.asarray(patsy.build_design_matrices([fit.model.data.model_spec], grid)[0])
    results = []
    for term in terms:
        row = table.loc[":".join(f"C({n}, Sum)" for n in term)]
        contrasts = []
        for levels in itertools.product(*(range(1, level_counts[n]) for n in term)):
            weights = numpy.zeros(rows.shape[1])
            for corner in itertools.product([0, 1], repeat=len(term)):
                chosen = numpy.ones(len(grid), dtype=bool)
                for name, level, up in zip(term, levels, corner):
                    chosen &= (grid[name] == (level if up else 0)).to_numpy()
                weights += (-1) ** (len(term) - sum(corner)) * rows[chosen].mean(axis=0)
            test = fit.t_test(weights)
            low, high = numpy.ravel(test.conf_int(1 - CONFIDENCE))
            contrasts.append(
                {
                    "levels": list(levels),
                    "estimate": float(numpy.ravel(test.effect)[0]),
                    "interval": [float(low), float(high)],
                    "p": float(test.pvalue),
                }
            )
        results.append(
            {
                "factors": list(term),
                "df": int(row["df"]),
                "sum_sq": float(row["sum_sq"]),
                "f": float(row["F"]),
                "p": float(row["PR(>F)"]),
                "contrasts": contrasts,
            }
        )
    return {
        "responses": frame.y.tolist(),
        "factors": {n: frame[n].tolist() for n in names},
        "blocks": frame.block.tolist() if blocks else None,
        "order": order,
        "residual_df": int(fit.df_resid),
        "residual_sd": float(fit.mse_resid**0.5),
        "terms": results,
    }


def design(
    level_counts, block_count, repeats, dropped, noise, order, blocks=True, mean=0.0, steps=0.3
):
    cells = list(itertools.product(*(range(k) for k in level_counts.values())))
    effects = {cell: float(v) for cell, v in zip(cells, random.normal(0, steps, len(cells)))}
    rows = []
    for block in range(block_count):
        offset = random.normal(0, 0.5)
        for cell in cells:
            for _ in range(repeats):
                y = mean + offset * blocks + effects[cell] + noise * random.standard_t(3)
                rows.append((*cell, block, float(numpy.round(y, 8))))
    frame = pandas.DataFrame(rows, columns=[*level_counts, "block", "y"])
    kept = numpy.sort(random.permutation(len(frame))[: len(frame) - dropped])
    return analyse(frame.iloc[kept].reset_index(drop=True), level_counts, order, blocks)


cases = [
    design({"a": 2, "b": 2}, 3, 1, 0, 0.1, 2),
    design({"a": 2, "b": 2}, 4, 2, 0, 0.1, 2, blocks=False),
    design({"a": 2, "b": 2}, 8, 1, 5, 0.1, 2),
    design({"a": 2, "b": 3}, 5, 1, 0, 0.1, 2),
    design({"a": 2, "b": 3}, 5, 2, 13, 0.1, 2),
    design({"a": 3, "b": 4}, 4, 1, 7, 0.2, 2),
    design({"a": 2, "b": 2, "c": 2}, 4, 1, 0, 0.05, 3),
    design({"a": 2, "b": 2, "c": 2}, 6, 1, 9, 0.05, 3),
    design({"a": 2, "b": 3, "c": 2}, 5, 1, 8, 0.1, 2),
    design({"a": 2, "b": 3, "c": 2, "d": 2}, 3, 1, 6, 0.1, 1),
    design({"a": 3}, 5, 1, 2, 0.3, 1),
    design({"a": 2, "b": 2}, 8, 1, 3, 0.1, 2, mean=1e7, steps=1.0),
    # Effects a thousand times the noise, p far below 1e-12.
    design({"a": 2, "b": 2}, 6, 1, 2, 0.001, 2, steps=1.0),
]
print(
    '{\n "versions": '
    + json.dumps(
        {
            "python": platform.python_version(),
            "numpy": numpy.__version__,
            "scipy": scipy.__version__,
            "statsmodels": statsmodels.__version__,
            "patsy": patsy.__version__,
        }
    )
    + f',\n "confidence": {CONFIDENCE},\n "cases": [\n  '
    + ",\n  ".join(map(json.dumps, cases))
    + "\n ]\n}"
)
