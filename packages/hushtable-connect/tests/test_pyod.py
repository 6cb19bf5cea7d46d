"""The adapter among PyOD's detectors: what PyOD's own methods and helpers do with it."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from hushtable import HushTable

pytest.importorskip("pyod.models.base")
from hushtable_connect.pyod import PyODAdapter


@pytest.fixture
def ours(X):
    return PyODAdapter(HushTable(n_tables=20, random_state=0), contamination=0.02).fit(X)


@pytest.fixture
def new(rng):
    """Rows in the middle, at the edge and far out."""
    return rng.normal(size=(300, 4)) * np.linspace(0.1, 8.0, 300)[:, np.newaxis]


def test_scores_are_the_detector_s_and_high_for_outliers(ours, X, new):
    plain = HushTable(n_tables=20, random_state=0).fit(X)
    np.testing.assert_array_equal(ours.decision_scores_, -plain.score_samples(X))
    np.testing.assert_array_equal(ours.decision_function(new), -plain.score_samples(new))
    assert ours.decision_scores_.argmax() == 0


def test_a_data_frame_is_taken_with_its_categories():
    rows = pd.DataFrame({"x": [1.0, 2.0] * 50 + [9.0], "word": ["a", "b"] * 50 + ["c"]})
    ours = PyODAdapter(HushTable(random_state=0), contamination=0.01).fit(rows)
    assert ours.labels_.argmax() == 100
    assert ours.predict_proba(rows).shape == (101, 2)


def test_a_share_that_is_none_is_refused():
    with pytest.raises(ValueError, match="contamination must be in"):
        PyODAdapter(contamination=0.0)


def test_pyod_s_helpers_take_adapters(ours):
    from pyod.utils.utility import check_detector, score_to_label

    check_detector(ours)
    assert (score_to_label(ours.decision_scores_, 0.02) == ours.labels_).all()


@pytest.mark.slow
def test_a_combination_of_pyod_s_takes_adapters(X, new):
    from pyod.models.lscp import LSCP

    pool = [PyODAdapter(HushTable(n_tables=20, random_state=seed)) for seed in range(4)]
    together = LSCP(pool, n_bins=2, random_state=0).fit(X)
    assert together.decision_function(new).shape == (300,)
    assert together.decision_scores_[0] > together.threshold_


def test_without_pyod_the_extra_is_named():
    code = "import sys; sys.modules['pyod'] = None; import hushtable_connect.pyod"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].endswith(
        "PyODAdapter needs PyOD, which is not installed: pip install 'hushtable[pyod]'"
    )
