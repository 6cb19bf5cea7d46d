"""The displays: what they hold is what the library says; what they draw is what they hold."""

import builtins
import inspect

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import IsolationForest

from hushtable import HushTable, HushTableError, plots
from hushtable.plots import EpsilonDisplay, ExplanationDisplay, ScoreDisplay, binned

matplotlib.use("Agg")
from matplotlib import pyplot


@pytest.fixture(autouse=True)
def _closed():
    yield
    pyplot.close("all")


@pytest.fixture
def detector(X):
    return HushTable(random_state=0, n_tables=20).fit(X)


def bars(ax):
    return sorted((bar.get_x(), bar.get_height()) for bar in ax.patches)


def test_scores_of_a_detector(detector, X):
    display = ScoreDisplay.from_estimator(detector, X, bins=20)
    scores = detector.score_samples(X)
    np.testing.assert_array_equal(display.counts, np.histogram(scores, display.edges)[0])
    outliers = display.edges[:-1] < detector.offset_
    assert display.counts[outliers].sum() == (detector.predict(X) == -1).sum() > 0
    assert display.threshold == detector.offset_
    assert display.figure_ is display.ax_.figure
    drawn = [height for _, height in bars(display.ax_)]
    np.testing.assert_array_equal(drawn, display.counts)
    assert display.ax_.get_xlabel() == "score, bits (low is abnormal)"


def test_any_detector_of_scikit_learn(X):
    forest = IsolationForest(n_estimators=10, random_state=0).fit(X)
    display = ScoreDisplay.from_estimator(forest, X)
    assert (
        display.counts[display.edges[:-1] < forest.offset_].sum() == (forest.predict(X) == -1).sum()
    )
    assert display.ax_.get_xlabel() == "score (low is abnormal)"


@given(
    st.lists(st.floats(-50, 50), min_size=1, max_size=60),
    st.one_of(st.floats(-60, 60), st.just(float("nan"))),
    st.integers(1, 12),
)
def test_every_row_is_on_its_side_of_the_threshold(scores, threshold, bins):
    counts, edges = binned(scores, threshold, bins)
    assert counts.sum() == len(scores)
    assert len(edges) == len(counts) + 1
    assert len(counts) <= bins + 1
    assert (np.diff(edges) > 0).all()
    inside = min(scores) < threshold <= max(scores)
    if inside:
        assert threshold in edges
        outliers = counts[edges[:-1] < threshold].sum()
        assert outliers == (np.array(scores) < threshold).sum()


def test_no_threshold(rng):
    display = ScoreDisplay.from_predictions(rng.normal(size=100))
    assert len(display.counts) == 10
    assert not display.ax_.lines
    assert display.ax_.get_legend() is None


def widths(ax):
    return [bar.get_width() for bar in ax.patches]


def labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_reasons_of_a_row(detector, X):
    display = ExplanationDisplay.from_estimator(detector, X, row=7, n_features=2)
    shares, names = detector.explain(X)[7], detector.plan_.schema.names
    order = np.argsort(-shares, kind="stable")
    assert display.features == [names[j] for j in order[:2]]
    np.testing.assert_array_equal(display.shares, shares[order[:2]])
    assert labels(display.ax_.yaxis) == display.features
    assert widths(display.ax_) == display.shares.tolist()
    assert display.ax_.yaxis_inverted()
    assert display.ax_.get_xlabel() == "share of the shortfall, bits"


def test_importances(detector, X):
    display = ExplanationDisplay.from_estimator(detector, X)
    importances = detector.importances(X)
    assert widths(display.ax_) == sorted(importances, reverse=True)
    assert display.ax_.get_xlabel() == "mean size of the share, bits"


def test_shares_of_either_sign_have_their_colours():
    display = ExplanationDisplay(["a", "b" * 40, "c"], [2.0, 0.25, -0.5]).plot()
    assert widths(display.ax_) == [2.0, 0.25, -0.5]
    assert labels(display.ax_.yaxis) == ["a", "b" * 27 + "…", "c"]
    first, second, last = [bar.get_facecolor() for bar in display.ax_.patches]
    assert first == second != last


def test_a_row_that_is_none(detector, X):
    for row in (-1, len(X)):
        with pytest.raises(HushTableError, match="needs the number of one of"):
            ExplanationDisplay.from_estimator(detector, X, row=row)


def test_accuracy_against_epsilon():
    display = EpsilonDisplay.from_values(
        [1.0, 0.1], {"ours": [[0.8, 0.9], [0.7, 0.7]], "theirs": [0.6, 0.5]}, levels={"ours": 0.9}
    )
    np.testing.assert_array_equal(display.epsilons, [0.1, 1.0])
    ours, level, theirs = display.ax_.lines
    np.testing.assert_allclose(ours.get_ydata(), [0.7, 0.85])
    np.testing.assert_array_equal(level.get_ydata(), [0.9, 0.9])
    np.testing.assert_array_equal(theirs.get_ydata(), [0.5, 0.6])
    # The runs of one system differ: it alone has a band, one standard deviation wide.
    (band,) = display.ax_.collections
    assert band.get_paths()[0].vertices[:, 1].max() == pytest.approx(0.9)
    assert ours.get_color() == level.get_color() != theirs.get_color()
    said = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert said == ["ours", "ours, no noise", "theirs"]
    assert labels(display.ax_.xaxis) == ["0.1", "1"]


def test_epsilons_that_are_none():
    for epsilons in ([], [0.0, 1.0], 1.0):
        with pytest.raises(HushTableError, match="numbers above 0"):
            EpsilonDisplay.from_values(epsilons, {})
    with pytest.raises(HushTableError, match=r"ours: \(2,\) values for 1 epsilons"):
        EpsilonDisplay.from_values([1.0], {"ours": [0.8, 0.9]})
    with pytest.raises(HushTableError, match="names that have values"):
        EpsilonDisplay.from_values([1.0], {"ours": [0.8]}, levels={"yours": 0.9})


@pytest.mark.parametrize("scores", [[], [[1.0]], [float("nan")], 3.0])
def test_scores_that_are_none(scores):
    with pytest.raises(HushTableError, match="a finite number for each row"):
        ScoreDisplay.from_predictions(scores)


def test_without_matplotlib(monkeypatch):
    real = builtins.__import__

    def refuse(name, *arguments, **options):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *arguments, **options)

    display = ScoreDisplay.from_predictions([1.0, 2.0])
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(
        HushTableError, match=r"ScoreDisplay.plot needs matplotlib.*: pip install matplotlib"
    ):
        display.plot()


@pytest.mark.parametrize("name", plots.__all__)
def test_docstrings_match_signatures(name):
    cls = getattr(plots, name)
    methods = [m for n, m in inspect.getmembers(cls, callable) if not n.startswith("_")]
    for function in (cls, *methods):
        documented = inspect.getdoc(function)
        for parameter in inspect.signature(function).parameters:
            assert parameter == "self" or f"\n{parameter} : " in documented, (function, parameter)


@pytest.mark.parametrize("name", ["NoiseDisplay", "RankedOutliersDisplay", "VerdictsDisplay"])
def test_a_removed_display_states_what_to_do(name):
    with pytest.raises(ImportError, match=f"plots.{name} was removed: .*coming-from-rc1.md"):
        getattr(plots, name)
