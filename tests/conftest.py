"""Fixtures that several test files share."""

import os
from pathlib import Path

# Before SciPy is imported: scikit-learn's checks of array API input ask for it.
os.environ["SCIPY_ARRAY_API"] = "1"
# Before numba is imported: one cache of compiled kernels for every test run.
os.environ.setdefault(
    "NUMBA_CACHE_DIR", str(Path(__file__).resolve().parents[1] / ".cache" / "numba")
)

import hypothesis
import numpy as np
import pytest

# The first example of a run may compile a kernel, which no deadline should judge.
hypothesis.settings.register_profile("hushtable", deadline=None, max_examples=50)
# For mutation testing: that a test fails is all that counts, not the smallest example of it.
hypothesis.settings.register_profile(
    "mutants",
    deadline=None,
    max_examples=15,
    derandomize=True,
    database=None,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
    report_multiple_bugs=False,
)
hypothesis.settings.load_profile("hushtable")


@pytest.fixture
def rng():
    return np.random.default_rng(20_260_101)


@pytest.fixture
def X(rng):
    """500 rows of 4 features, row 0 far out."""
    X = rng.normal(size=(500, 4))
    X[0] = 8.0
    return X


@pytest.fixture(scope="session")
def data_dir():
    """Folder of labelled sets, where the environment names one."""
    folder = os.environ.get("HUSHTABLE_DATA")
    if not folder:
        pytest.skip("HUSHTABLE_DATA is not set: no labelled data here")
    return Path(folder)
