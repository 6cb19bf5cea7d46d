"""The adapter in PyOD's company: what PyOD makes of the same scores, and its own helpers."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils import get_tags

from hushtable import HushTable, LSHiTables, PyODAdapter
from hushtable.errors import MissingExtraError, UsageError

pyod_base = pytest.importorskip("pyod.models.base")


class Theirs(pyod_base.BaseDetector):
    """PyOD's own methods over an adapter's scores."""

    def __init__(self, adapter):
        super().__init__(contamination=adapter.contamination)
        self.adapter = adapter
        self.decision_scores_ = adapter.decision_scores_
        self._set_n_classes(None)
        self._process_decision_scores()

    def fit(self, X, y=None):
        raise NotImplementedError

    def decision_function(self, X):
        return self.adapter.decision_function(X)


@pytest.fixture(params=[0.02, 0.1, 0.5])
def ours(request, X):
    detector = HushTable(n_tables=20, random_state=0)
    return PyODAdapter(detector, contamination=request.param).fit(X)


@pytest.fixture
def theirs(ours):
    return Theirs(ours)


def same(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    assert ours.dtype == np.asarray(theirs).dtype
    assert ours.shape == np.asarray(theirs).shape


@pytest.fixture
def new(rng):
    """Rows in the middle, at the edge and far out."""
    return rng.normal(size=(300, 4)) * np.linspace(0.1, 8.0, 300)[:, np.newaxis]


def test_every_method_returns_what_pyod_makes_of_the_scores(ours, theirs, X, new):
    assert ours.threshold_ == theirs.threshold_
    same(ours.labels_, theirs.labels_)
    for rows in (X, new):
        same(ours.predict(rows), theirs.predict(rows))
        same(ours.predict_confidence(rows), theirs.predict_confidence(rows))
        for method in ("linear", "unify"):
            same(ours.predict_proba(rows, method=method), theirs.predict_proba(rows, method=method))
        pairs = zip(
            (*ours.predict(rows, True), *ours.predict_proba(rows, "unify", True)),
            (*theirs.predict(rows, True), *theirs.predict_proba(rows, "unify", True)),
            strict=True,
        )
        for mine, other in pairs:
            same(mine, other)


@pytest.mark.parametrize("T", [2, 8, 32])
def test_rejection_is_pyod_s(ours, theirs, new, T):
    same(
        ours.predict_with_rejection(new, T=T),
        theirs.predict_with_rejection(new, T=T, c_r=0.1),
    )
    assert ours.rejection_threshold_ == theirs.rejection_threshold_


def test_rejection_costs_are_pyod_s(X, new):
    ours = PyODAdapter(HushTable(n_tables=20, random_state=0), contamination=0.1).fit(X)
    labels, found = ours.predict_with_rejection(new, T=8, return_stats=True, c_r=0.1)
    expected, said = Theirs(ours).predict_with_rejection(new, T=8, return_stats=True, c_r=0.1)
    assert (labels == expected).all()
    assert found == said
    assert -2 in labels


def test_probabilities_of_equal_scores_and_unknown_methods(X):
    ours = PyODAdapter(LSHiTables(n_tables=5, random_state=0)).fit(np.ones((40, 2)))
    for method in ("linear", "unify"):
        probabilities = ours.predict_proba(np.ones((3, 2)), method=method)
        assert np.isfinite(probabilities).all()
        assert (probabilities.sum(axis=1) == 1.0).all()
    with pytest.raises(UsageError, match="needs 'linear' or 'unify'"):
        ours.predict_proba(np.ones((3, 2)), method="platt")


def test_fit_predict_returns_the_labels(X):
    ours = PyODAdapter(HushTable(n_tables=20, random_state=0), contamination=0.02)
    labels = ours.fit_predict(X)
    assert (labels == ours.labels_).all()
    assert labels[0] == 1
    assert ours.classes_.tolist() == [0, 1]
    plain = HushTable(n_tables=20, random_state=0).fit(X)
    np.testing.assert_array_equal(ours.decision_scores_, -plain.score_samples(X))
    np.testing.assert_array_equal(ours.decision_function(X), ours.decision_scores_)


def test_an_adapter_is_a_base_detector_and_stays_an_estimator(X):
    ours = PyODAdapter(HushTable(n_tables=20, random_state=3), contamination=0.05)
    again = clone(ours)
    for one in (ours, again, pickle.loads(pickle.dumps(ours.fit(X)))):
        assert isinstance(one, pyod_base.BaseDetector)
        assert one.get_params()["detector__n_tables"] == 20
    again.set_params(contamination=0.2, detector__n_tables=30)
    assert again.fit(X).labels_.sum() == 100


@pytest.mark.slow
def test_importing_hushtable_imports_no_pyod_and_making_an_adapter_does():
    code = """
import sys
import hushtable
from hushtable import PyODAdapter
print("pyod" in sys.modules)
adapter = PyODAdapter()
from pyod.models.base import BaseDetector
print(isinstance(adapter, BaseDetector), issubclass(PyODAdapter, BaseDetector))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "True"]


def test_without_pyod_all_but_the_costs_of_rejection_work(X, monkeypatch):

    monkeypatch.setattr("hushtable.detectors.pyod._base_detector", lambda: None)
    ours = PyODAdapter(HushTable(n_tables=20, random_state=0)).fit(X)
    assert ours.predict_proba(X).shape == (500, 2)
    assert ours.predict_with_rejection(X).shape == (500,)
    with pytest.raises(MissingExtraError, match="pyod"):
        ours.compute_rejection_stats()


@pytest.mark.slow
def test_pyod_s_helpers_take_adapters(X, new):
    from pyod.models.lscp import LSCP
    from pyod.utils.utility import check_detector, score_to_label, standardizer

    pool = [PyODAdapter(HushTable(n_tables=20, random_state=seed)).fit(X) for seed in range(4)]
    for one in pool:
        check_detector(one)
        assert (score_to_label(one.decision_scores_, 0.1) == one.labels_).all()
    scores = standardizer(np.column_stack([one.decision_scores_ for one in pool]))
    assert (scores.argmax(axis=0) == 0).all()
    together = LSCP([clone(one) for one in pool], n_bins=2, random_state=0).fit(X)
    assert together.decision_function(new).shape == (300,)
    assert together.decision_scores_[0] > together.threshold_


def test_the_tag_of_its_kind():
    adapter = PyODAdapter().fit(np.arange(20.0)[:, None])
    assert get_tags(adapter).estimator_type == get_tags(Theirs(adapter)).estimator_type
