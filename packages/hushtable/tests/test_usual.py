"""What is usual: bars, values far outside everything, and rows that pass."""

import numpy as np
import pyarrow as pa
import pytest

import hushtable
from hushtable import Feature, HushTable, Schema
from hushtable.data.readers import as_reader
from hushtable.errors import PlanError
from hushtable.scores.usual import PassingSample, Sample, Usual, _Outermost


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


@pytest.mark.parametrize("n_rows", [49, 50])
def test_fifty_rows_that_pass_are_enough(n_rows):
    sample = PassingSample(1)
    list(sample.of(as_reader(pa.table({"a": np.arange(float(n_rows))}))).read())
    assert (sample.usual(Schema([Feature.numeric("a", low=0, high=50)])) is None) == (n_rows < 50)


def test_a_sample_of_rows_is_picked_once_whatever_the_batches():
    X, sizes = np.arange(3_000.0)[:, np.newaxis], iter((1_000, 700))
    rows = as_reader(X)

    def read():
        size = next(sizes)
        return iter([X[start : start + size] for start in range(0, len(X), size)])

    sample = Sample(len(X), [Feature.numeric("a", low=0, high=3_000)], None)
    reader = sample.of(rows.of_batches(read, len(X)))
    for _ in range(2):
        list(reader.read())
    np.testing.assert_array_equal(np.concatenate(sample._sampled), X[sample._rows])


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
