"""Numbers beside what their context predicts: regressions on a context that is drawn."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from hushtable import Feature, HushTable, Plan, Schema, Sketch
from hushtable.cli import main
from hushtable.data.residuals import FAR, learned_differences
from hushtable.errors import PlanError


def stones(n=4000, seed=0):
    """Stones whose price and width follow from their weight and cut; 1% cost a quarter more."""
    rng = np.random.default_rng(seed)
    carat, cut = rng.gamma(3.0, 0.3, n) + 0.2, rng.choice(["fair", "good", "ideal"], n)
    better = np.select([cut == "good", cut == "ideal"], [500, 900], 0)
    price = (4000 * carat**1.7 + better) * rng.lognormal(0, 0.05, n)
    width = 6.4 * carat ** (1 / 3) + rng.normal(0, 0.05, n)
    odd = rng.choice(n, n // 100, replace=False)
    price[odd] *= 1.25  # as a stone has that weighs an eighth more
    table = {"carat": carat, "cut": cut, "price": price.round(), "width": width.round(2)}
    return pd.DataFrame(table), np.isin(np.arange(n), odd)


@pytest.fixture(scope="module")
def rows():
    return stones()[0]


@pytest.fixture(scope="module")
def model(rows):
    return HushTable(context=["carat", "cut"], random_state=0).fit(rows)


def of_number(name):
    return Feature.numeric(name, low=0.0, high=1.0)


def without(schema):
    """A model's plan as it would be drawn without the differences."""
    return Schema(schema.of_rows.features, public=False)


def test_a_smooth_context_finds_what_pairs_of_cells_do_not():
    figures = []
    for seed in range(3):
        rows, planted = stones(seed=seed)
        model = HushTable(context=["carat", "cut"], random_state=0).fit(rows)
        plan = Plan.draw(
            without(model.plan_.schema), context=["carat", "cut"], random_state=0,
            marginals=Sketch.from_data(Plan.marginals(without(model.plan_.schema)), rows),
        )  # fmt: skip
        pairs = HushTable.from_counts(Sketch.from_data(plan, rows))
        for one in (model, pairs):
            low = -one.score_samples(rows)
            figures += [roc_auc_score(planted, low), average_precision_score(planted, low)]
    auc, ap, auc_of_pairs, ap_of_pairs = np.reshape(figures, (3, 4)).mean(axis=0)
    print(
        f"\nprices by weight: {auc:.3f} / {ap:.3f}, by pairs {auc_of_pairs:.3f} / {ap_of_pairs:.3f}"
    )
    assert auc > auc_of_pairs + 0.1
    assert ap > ap_of_pairs + 0.2


def test_the_column_is_blamed_and_said_beside_its_prediction(rows):
    changed = rows.copy()
    changed.loc[5, ["carat", "cut", "price", "width"]] = 2.0, "ideal", 900.0, 8.06
    model = HushTable(context=["carat", "cut"], random_state=0).fit(changed)
    shares = model.explain(changed.iloc[:9])
    assert shares.shape == (9, 4)
    assert shares.loc[5].idxmax() == "price"
    words = model.outliers(changed, n=200).set_index("row").loc[5, "words"]
    start, _, rest = words.partition("price 900, where by carat and cut it would be ")
    expected = float(rest.split(";")[0])
    assert start == ""
    assert 0.9 < expected / (4000 * 2.0**1.7 + 900) < 1.1
    assert len(model.importances(changed)) == 4
    numbers = changed[["carat", "price"]]
    alone = HushTable(context=["carat"], random_state=0).fit(numbers).outliers(numbers, n=200)
    assert "where by carat it would be" in alone.set_index("row").words[5]


def test_differences_are_those_of_the_regression():
    """Without noise, an additive function is predicted to what the ridges leave."""
    rng = np.random.default_rng(1)
    x, kind = rng.uniform(0, 1, 8000), rng.choice(["a", "b"], 8000)
    y = 3.0 * x + 2.0 * (kind == "b") + 100.0
    table = pa.RecordBatch.from_pydict({"x": x, "kind": kind, "y": y})
    features = [of_number("x"), Feature.categorical("kind", ["a", "b"]), of_number("y")]
    found = learned_differences(lambda: [(table, None)], 8000, [0, 1], [2], features)
    assert found.points[1] == ("a", "b")
    assert len(found.points[0]) == 8
    np.testing.assert_allclose(found.predicted(table, features)[0], y, atol=0.1)
    differences = found.of(table, features)
    assert differences.shape == (1, 8000)
    assert np.abs(differences).max() <= FAR
    # Beyond the ends, the function is constant; what is missing or unknown adds nothing.
    other = pa.RecordBatch.from_pydict(
        {"x": [9.0, 1.0, None, 0.5], "kind": ["a", "a", None, "other"], "y": [0.0] * 4}
    )
    at = found.predicted(other, features)[0]
    assert abs(at[0] - 103.0) < 0.1
    assert abs(at[1] - 103.0) < 0.1
    assert at[2] == found.weights[0, 0]
    unknown = {"x": [0.5], "kind": ["a"], "y": pa.array([None], pa.float64())}
    assert np.isnan(found.of(pa.RecordBatch.from_pydict(unknown), features)).all()


def test_a_row_has_its_bits_whatever_rows_come_with_it(rows, model):
    rows = rows.copy()
    rows.loc[3, "price"], rows.loc[4, "carat"], rows.loc[5, "cut"] = np.nan, np.nan, None
    rows.loc[6, "cut"], rows.loc[7, "carat"] = "unknown", 99.0
    whole = model.score_samples(rows)
    assert np.isfinite(whole).all()
    alone = [model.score_samples(rows.iloc[i : i + 1])[0] for i in range(9)]
    np.testing.assert_array_equal(alone, whole[:9])
    np.testing.assert_array_equal(model.score_samples(pa.Table.from_pandas(rows)), whole)
    plan = model.plan_
    parts = Sketch.from_data(plan, rows[:333]) + Sketch.from_data(plan, rows[333:])
    np.testing.assert_array_equal(parts.counts, Sketch.from_data(plan, rows, n_jobs=2).counts)


def parts(batch):
    """The rows in batches of 999."""
    return [(batch[start : start + 999], None) for start in range(0, len(batch), 999)]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("context", [1, 0]), ("context", [0]), ("context", [0, 2]), ("context", [0, "cut"]),
        ("columns", [2]), ("columns", [2, 9]), ("columns", []), ("columns", [1, 2]),
        ("points", [[0.0, 1.0], ["a"]]), ("points", [["a"] * 8, ["x", "y", "z"]]),
        ("points", [["a", "b"], 3]), ("weights", [[1.0]]), ("weights", [["x"]]),
        ("weights", [[float("nan")] * 4] * 12), ("least", [0.0, 1.0]), ("least", [1.0]),
        ("more", 1),
    ],
)  # fmt: skip
def test_differences_that_cannot_be_are_refused(model, name, wrong):
    content = json.loads(json.dumps(model.plan_.schema.to_dict()))
    assert Schema.from_dict(content) == model.plan_.schema
    content["differences"][name] = wrong
    with pytest.raises(PlanError):
        Schema.from_dict(content)


def test_no_row_needs_to_be_complete(rows, model):
    """Each row lacks its price or its width: both are predicted as from complete rows."""
    gaps = rows.copy()
    gaps.loc[::2, "price"], gaps.loc[1::2, "width"] = np.nan, np.nan
    some = HushTable(context=["carat", "cut"], random_state=0).fit(gaps)
    found, whole = (one.plan_.schema.differences for one in (some, model))
    assert found.columns == whole.columns
    batch = pa.RecordBatch.from_pandas(rows, preserve_index=False)
    features = model.plan_.schema.of_rows.features
    a, b = found.of(batch, features), whole.of(batch, features)
    assert min(np.corrcoef(x, y)[0, 1] for x, y in zip(a, b, strict=True)) > 0.9


def test_a_column_of_that_name_is_refused(rows):
    with pytest.raises(PlanError, match="price given context"):
        HushTable(context=["carat"]).fit(rows.assign(**{"price given context": rows["price"]}))


def test_the_command_says_so(tmp_path, rows, capsys):
    rows.to_csv(tmp_path / "stones.csv", index=False)
    file, out = str(tmp_path / "stones.csv"), str(tmp_path / "model.hush")
    assert main(["fit", file, "--context", "carat,cut", "--seed", "0", "-o", out]) == 0
    printed = capsys.readouterr().out
    assert "Rows are compared with rows of the same context: carat, cut.\n" in printed
    assert "2 columns are also compared with what the context predicts.\n" in printed
    assert "3 numeric columns, 1 categorical column.\n" in printed
    scores = str(tmp_path / "scores.csv")
    assert main(["score", file, "--model", out, "--top", "5", "-o", scores]) == 0
    assert "where by carat and cut it would be" in (tmp_path / "scores.csv").read_text()
    assert main(["inspect", out]) == 0
    assert "price given context" in capsys.readouterr().out
