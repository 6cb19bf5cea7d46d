"""Columns that are bound by others: rows that break what binds them."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from hushtable import Feature, HushTable, Schema, Sketch
from hushtable.cli import main
from hushtable.data.residuals import Relations
from hushtable.errors import DataError, PlanError, PrivacyError, UsageError


def bound(n=6000, d=14, factors=3, seed=0):
    """Rows of d columns that follow from three factors; in 1%, two columns have another row's."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, factors)) @ rng.normal(size=(factors, d))
    X += 0.15 * rng.normal(size=(n, d))
    odd, changed = rng.choice(n, n // 100, replace=False), {}
    for i in odd:
        changed[int(i)] = rng.choice(d, 2, replace=False)
        for j in changed[int(i)]:
            X[i, j] = X[rng.integers(n), j]
    return X, np.isin(np.arange(n), odd), changed


def test_broken_relations_are_found_and_named():
    figures, named = [], []
    for seed in range(4):
        for d in (14, 16):
            X, y, changed = bound(d=d, seed=seed)
            model = HushTable(relations=True, random_state=0).fit(X)
            low = -model.score_samples(X)
            figures.append((roc_auc_score(y, low), average_precision_score(y, low)))
            odd = [i for i in low.argsort()[-60:] if y[i]]
            top = model.explain(X[odd]).argmax(axis=1)
            named += [j in changed[int(i)] for i, j in zip(odd, top, strict=True)]
    auc, ap = np.mean(figures, axis=0)
    print(f"\nrelations: AUC {auc:.3f}, AP {ap:.3f}, column named in {np.mean(named):.1%}")
    assert auc >= 0.97
    assert ap >= 0.85
    assert np.mean(named) >= 0.9


def test_relations_of_an_old_file_take_missing_values_to_be_the_centre():
    weights = np.array([[1.0, -2.0], [-0.5, 1.0]])
    content = Relations((0, 1), np.zeros(2), weights, *np.full((3, 2), 1.0)).to_dict()
    del content["filled"]
    old = Relations.from_dict(content)
    assert old.to_dict() == content
    np.testing.assert_array_equal(old.residuals(np.array([[3.0, np.nan]])), [[3.0, np.nan]])


def test_a_row_has_its_bits_whatever_rows_come_with_it():
    X, _, _ = bound(n=900)
    X[5, 3] = np.nan
    model = HushTable(relations=True, random_state=0).fit(X)
    whole = model.score_samples(X)
    np.testing.assert_array_equal(
        [model.score_samples(X[i : i + 1])[0] for i in range(9)], whole[:9]
    )
    plan = model.plan_
    parts = Sketch.from_data(plan, X[:333]) + Sketch.from_data(plan, X[333:])
    np.testing.assert_array_equal(parts.counts, Sketch.from_data(plan, X).counts)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(14)])
    named = HushTable(relations=True, random_state=0).fit(frame)
    np.testing.assert_array_equal(named.score_samples(frame), whole)
    weighted = HushTable(relations=True, random_state=0).fit(X, sample_weight=np.full(len(X), 1))
    np.testing.assert_array_equal(weighted.score_samples(X), whole)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.column_stack([np.arange(50.0), np.ones(50)]), "1 columns of numbers"),
        (np.random.default_rng(0).normal(size=(20, 30)), "needs at least 90"),
    ],
)
def test_too_little_for_relations_is_refused(X, words):
    with pytest.raises(DataError, match=words):
        HushTable(relations=True).fit(X)


def test_equal_and_constant_columns_have_relations():
    X = np.random.default_rng(0).normal(size=(400, 2))
    X = np.column_stack([X, X[:, 0], np.ones(400), 3.0 * X[:, 1] - X[:, 0]])
    model = HushTable(relations=True, random_state=0).fit(X)
    assert model.plan_.schema.relations.columns == (0, 1, 2, 4)
    odd = X[:1].copy()
    odd[0, 2] += 2.0
    assert model.score_samples(odd)[0] < np.quantile(model.score_samples(X), 0.02)


def test_an_infinity_is_refused_by_its_name():
    X = np.random.default_rng(0).normal(size=(400, 3))
    model = HushTable(relations=True, random_state=0).fit(X)
    X = np.tile(X, (400, 1))  # several batches
    X[150_003, 1] = np.inf
    with pytest.raises(DataError, match="'x1' in row 150003"):
        model.score_samples(X)


def test_what_is_read_off_rows_is_not_released():
    X, _, _ = bound(n=500, d=4)
    model = HushTable(relations=True, random_state=0).fit(X)
    with pytest.raises(PrivacyError, match="public"):
        model.sketch_.release(epsilon=1.0)
    schema = Schema([Feature.numeric(f"x{j}", low=-9, high=9) for j in range(4)])
    with pytest.raises(PlanError, match="not public"):
        Schema(schema.features, relations=model.plan_.schema.relations)
    with pytest.raises(UsageError, match="True or False"):
        HushTable(relations="yes").fit(X)
    with pytest.raises(UsageError, match="leave one of the two out"):
        HushTable(relations=True, context="x0").fit(X)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"weights": [[1.0]]}, "finite numbers for two"),
        ({"columns": [1, 0]}, "in order"),
        ({"columns": ["a", "b"]}, "places of columns"),
        ({"centre": ["a", 0]}, "arrays of numbers"),
        ({"low": [2.0, 0.0]}, "from low to high"),
    ],
)
def test_odd_relations_in_a_file_are_refused(change, words):
    right = Relations((0, 1), np.zeros(2), np.eye(2), np.ones(2), -np.ones(2), np.ones(2)).to_dict()
    assert Relations.from_dict(json.loads(json.dumps(right))).to_dict() == right
    with pytest.raises(PlanError, match=words):
        Relations.from_dict(right | change)


def test_residuals_are_those_of_regressions():
    X, _, _ = bound(n=800, d=5, seed=1)
    relations = HushTable(relations=True, random_state=0).fit(X).plan_.schema.relations
    found = relations.residuals(X)
    fits = (np.abs(found) < 4.0 * np.std(found, axis=0)).all(axis=1)  # about those of the fit
    for j in range(5):
        others = np.delete(X[fits], j, axis=1)
        centred = others - others.mean(axis=0)
        coefficients = np.linalg.lstsq(centred, X[fits][:, j] - X[fits][:, j].mean(), rcond=None)[0]
        error = X[fits][:, j] - X[fits][:, j].mean() - centred @ coefficients
        assert np.corrcoef(error, found[fits][:, j])[0, 1] > 0.98


def test_commands_take_relations(tmp_path):
    X, y, _ = bound(n=2000, d=6)
    path, model = tmp_path / "rows.csv", tmp_path / "model.hush"
    pd.DataFrame(X, columns=list("abcdef")).to_csv(path, index=False)
    assert main(["fit", str(path), "--relations", "--seed", "0", "-o", str(model)]) == 0
    assert main(["score", str(path), "--model", str(model), "-o", str(tmp_path / "s.csv")]) == 0
    assert roc_auc_score(y, -pd.read_csv(tmp_path / "s.csv")["score"]) > 0.9
