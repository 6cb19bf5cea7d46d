"""What tests of detectors share: scikit-learn's checks, some of them daily; standard errors."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from hushtable.data.encoding import Encoder


def some_checks(*estimators, step=4):
    """Mark the test with every check of each estimator: one in ``step`` daily, the others slow.

    Neighbours begin at another check, so that several of one base class meet most of them daily.
    """
    marks = [
        pytest.param(one, check, marks=[pytest.mark.slow] * bool((at + number) % step),
                     id=f"{type(one).__name__}-{check.func.__name__}-{number}")
        for at, estimator in enumerate(estimators)
        for number, (one, check) in enumerate(estimator_checks_generator(estimator))
    ]  # fmt: skip
    return pytest.mark.parametrize(("estimator", "check"), marks)


def standard_errors(scorer, X):
    """Standard errors table by table; a CountMin table is worth its least value."""
    family, means = scorer.plan.family, scorer.histogram_means()
    codes = Encoder(scorer.plan.schema).encode(X, 0)
    each = family.n_histograms // family.n_tables
    above = []
    for t in range(family.n_tables):
        found = []
        for h in range(t * each, (t + 1) * each):
            # Cells of all others are worth nothing; least values need this one's to be lower.
            values = np.zeros(family.n_cells)
            cells = slice(family.offsets[h], family.offsets[h + 1])
            values[cells] = scorer.values[cells] - 1e6
            found.append(family.sum(codes, values) + 1e6)
        above.append(np.min(found, axis=0) - max(0.0, means[t * each : (t + 1) * each].mean()))
    return np.std(above, axis=0, ddof=1) / np.sqrt(family.n_tables)
