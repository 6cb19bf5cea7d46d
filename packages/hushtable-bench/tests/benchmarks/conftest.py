"""The scripts in benchmarks/ import one another as neighbours; the tests import them likewise."""

import sys

import numpy as np
import pytest

from places import BENCH

sys.path.insert(0, str(BENCH / "benchmarks"))


@pytest.fixture(autouse=True)
def results(tmp_path, monkeypatch):
    """Keep the real results."""
    import common

    monkeypatch.setattr(common, "RESULTS", tmp_path / "results")
    return tmp_path / "results"


@pytest.fixture
def cover(rng, tmp_path):
    """A tiny stand-in for cover."""
    folder = tmp_path / "data"
    folder.mkdir()
    X = rng.normal(size=(300, 2))
    X[:3] += 5.0
    np.savez(folder / "10_cover.npz", X=X, y=np.arange(300) < 3)
    return folder / "10_cover.npz"
