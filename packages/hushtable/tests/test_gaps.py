"""A gap is mostly a usual value: rows that lack one do not come before rows with a gross error."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score

from hushtable import Feature, HushTable, Plan, Schema, Sketch

WARDS = ["A", "B", "C"]


def errors(seed, gaps):
    """Return 1,200 patients, creatinine four times too high in 42, and lacking in some others."""
    rng = np.random.default_rng(seed)
    n = 1200
    rows = pd.DataFrame({
        "age": rng.integers(18, 90, n).astype(float),
        "ward": rng.choice(WARDS, n),
        "creatinine": rng.lognormal(0, 0.3, n).round(2),
        "hb": rng.normal(13.5, 1.5, n).round(1),
    })  # fmt: skip
    wrong = np.zeros(n, bool)
    wrong[rng.choice(n, 42, replace=False)] = True
    rows.loc[wrong, "creatinine"] *= 4
    rows.loc[(rng.random(n) < gaps) & ~wrong, "creatinine"] = np.nan
    return rows, wrong


@pytest.mark.parametrize("gaps", [0.02, 0.05, 0.1])
def test_gaps_do_not_push_gross_errors_down(gaps):
    kept = []
    for seed in range(3):
        found = []
        for share in (0.0, gaps):
            rows, wrong = errors(seed, share)
            scores = HushTable(random_state=seed).fit(rows).score_samples(rows)
            found.append(average_precision_score(wrong, -scores))
        kept.append(found[1] / found[0])
    assert min(kept) >= 0.95, kept  # .22 when a gap had sides of its own in all tables
    print(f"{gaps:.0%} gaps: average precision kept {min(kept):.2f} to {max(kept):.2f}")


SCHEMA = Schema(
    (
        Feature.numeric("x", low=0, high=10),
        Feature.numeric("y", low=0, high=1),
        Feature.categorical("ward", WARDS),
    )
)


def rows_of(missing, n=1000):
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({
        "x": rng.uniform(6, 9, n), "y": rng.random(n),
        "ward": rng.choice(WARDS, n, p=[0.1, 0.2, 0.7]),
    })  # fmt: skip
    for name, share in missing.items():
        rows.loc[rng.random(n) < share, name] = np.nan if name != "ward" else None
    return rows


@pytest.mark.parametrize("missing", [0.0, 0.05, 0.3, 1.0])
def test_a_column_that_a_fifth_of_the_rows_lack_has_sides_of_its_own_in_all_tables(missing):
    marginals = Sketch.from_data(Plan.marginals(SCHEMA), rows_of({"ward": missing}))
    family = Plan.draw(SCHEMA, marginals=marginals, random_state=0).family
    functions = np.flatnonzero(family.feature == 2)
    at = family.subset_at[functions]
    unlike = (family.subsets[at] != family.subsets[at + 3]).mean()
    assert (unlike > 0.35) == (missing > 0.2), unlike


def test_a_gap_costs_a_row_less_than_an_error_and_more_than_nothing():
    rows, _ = errors(0, 0.05)
    detector = HushTable(random_state=0).fit(rows)
    typical = rows[rows.notna().all(axis=1)].median(numeric_only=True)
    row = pd.DataFrame([{**typical, "ward": "A"}] * 3)[list(rows)]
    row.loc[1, "creatinine"], row.loc[2, "creatinine"] = np.nan, 4.0
    usual, gap, error = detector.score_samples(row)
    assert 0.3 < usual - gap < 0.6 * (usual - error)
