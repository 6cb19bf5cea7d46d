"""What is usual: bars, values far outside everything, and rows that pass."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hushtable
from hushtable import Feature, HushTable, Plan, Schema, Sketch
from hushtable.data.readers import as_reader
from hushtable.errors import PlanError
from hushtable.scores.scorer import Scorer
from hushtable.scores.usual import MOST, PassingSample, Usual, _Outermost


def test_a_far_value_does_not_squeeze_the_bars_of_the_others(rng, tmp_path):
    X = np.append(rng.normal(size=2000), 1e6)[:, np.newaxis]
    detector = HushTable(random_state=0, n_tables=5).fit(X)
    detector.save(tmp_path / "m.hush")
    for usual in (detector._usual_values(), hushtable.load(tmp_path / "m.hush")._usual_values()):
        assert usual.bar_ends[0] == (X.min(), usual.values[0].far[1])
        assert np.count_nonzero(usual.bars[0]) > 10
        assert usual.bars[0].sum() == len(X)
        assert usual.bars[0][-1] == 1
    feature = detector.plan_.schema.features
    reason = detector.outliers(X, n=1).column("words").to_pylist()[0]
    assert "far above" in reason
    content = hushtable.files.read(tmp_path / "m.hush")
    content.manifest["usual_bar_ends"] = {"0": [2.0, 1.0]}
    with pytest.raises(PlanError, match="two rising numbers"):
        Usual.from_file(content, Schema(feature))


def test_verdicts_go_before_far_values(rng):
    X = rng.normal(size=(900, 4))
    X[3, 1] = 30.0
    detector = HushTable(random_state=0).fit(X).learn(X[:6], [0, 0, 0, 0, 0, 1])
    scores = detector.outliers(X, n=50)["score"].to_pylist()
    assert scores == sorted(scores)


@pytest.mark.parametrize("n_rows", [49, 50, 3000, 5 * MOST + 17])
def test_rows_that_pass_are_evenly_spaced_for_any_batches(n_rows, rng, tmp_path):
    X = np.arange(float(n_rows))
    table, schema = pa.table({"a": X}), None
    pq.write_table(table, tmp_path / "a.parquet")
    found = []
    for size in (7 if n_rows < 4000 else 700, 1000, 10**6):
        reader = as_reader(pa.RecordBatchReader.from_batches(
            table.schema, table.to_batches(max_chunksize=size)
        ))  # fmt: skip
        sample = PassingSample(1)
        assert sum(len(batch) for batch in sample.of(reader).read()) == n_rows
        found.append(np.concatenate([b.column(0).to_numpy() for _, b in sample._batches]))
    for one in found[1:]:
        np.testing.assert_array_equal(one, found[0])
    assert len(set(np.diff(found[0]))) <= 1
    assert min(n_rows, MOST // 2) <= len(found[0]) <= MOST
    schema = Schema([HushTable(n_tables=2).fit(X[:, None]).plan_.schema.features[0]])
    assert (sample.usual(schema) is None) == (n_rows < 50)


def test_a_model_without_usual_values_compares_with_the_rows_that_it_scores(rng):
    rows = pd.DataFrame({"pulse": rng.normal(75, 8, 800), "temp": rng.normal(37, 0.4, 800)})
    rows.loc[5, "pulse"] = 240.0
    known = HushTable(random_state=0).fit(rows)
    plan = Plan.draw(known.plan_.schema, random_state=1)
    merged = HushTable.from_counts(Sketch.from_data(plan, rows))
    found = merged._lowest(rows, 3)
    assert found.usual.among == "the rows that were scored here"
    assert "the rows that were scored here" in found.notes("m.hush")["usual"]
    low, high = (
        f"{x:.4g}" for x in np.quantile(rows["pulse"], [0.05, 0.95], method="inverted_cdf")
    )
    assert found.sentence(found.rows[0]).startswith(
        f"pulse 240, usually {low} to {high}: far above"
    )
    assert Scorer(merged.sketch_).rules is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_outermost_numbers_are_those_of_sorting_whatever_the_passes(
    rng, dtype, order, weighted
):
    for n, d in ((3, 2), (4, 1), (65, 3), (700, 20)):
        X = (9.0 * rng.normal(size=(n, d))).round(0)  # with equal numbers
        X[:, 0] = np.sort(X[:, 0])
        X[:, -1] = -np.sort(X[:, -1])
        X = X.astype(dtype, order=order)
        if dtype != np.int16:
            X[rng.random(X.shape) < 0.2] = np.nan
        weights = rng.integers(0, 4, n) if weighted else None
        features = [Feature.numeric(f"x{j}", low=-99, high=99) for j in range(d)]
        by_rows, by_columns = (_Outermost(features, weights) for _ in range(2))
        table = pa.table({f"x{j}": np.ascontiguousarray(X[:, j]) for j in range(d)})
        for step in (n, 7, 64):  # passes with other batches
            for start in range(0, n, step):
                by_rows.add(X[start : start + step], start)
                [batch] = table.slice(start, step).combine_chunks().to_batches()
                by_columns.add(batch, start)
        for j in range(d):
            rising = np.sort(
                np.repeat(X[:, j].astype(np.float64), 1 if weights is None else weights)
            )
            rising = rising[~np.isnan(rising)]
            ends = (rising[3], rising[-4]) if len(rising) > 3 else (np.inf, -np.inf)
            assert by_rows.ends(j) == by_columns.ends(j) == ends
