"""scikit-learn's checks of estimators: all of them, or some each day and the others at night."""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator


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
