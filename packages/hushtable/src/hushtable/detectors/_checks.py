"""Check parameters and columns of detectors, in scikit-learn's words."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from hushtable.data.readers import near_names
from hushtable.errors import UsageError


class AnyColumns(BaseEstimator):
    """An estimator of missing values, text, categories and sparse matrices too."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        return tags


def names_message(fitted: set[str], given: set[str]) -> str:
    message = "The feature names should match those that were passed during fit.\n"
    for title, names in (
        ("Feature names unseen at fit time:", sorted(given - fitted)),
        ("Feature names seen at fit time, yet now missing:", sorted(fitted - given)),
    ):
        if names:
            shown = [*names[:5], *(["..."] if len(names) > 5 else [])]
            message += title + "\n" + "".join(f"- {name}\n" for name in shown)
    if near := near_names(sorted(fitted - given), sorted(given - fitted)):
        message += f"{near.removeprefix('; ')}\n"
    if fitted == given:
        message += "Feature names must be in the same order as they were in fit.\n"
    return message


def share_of_rows(contamination: Any) -> float:
    """Return a share of rows to flag; raises `UsageError` if it is none."""
    if (
        isinstance(contamination, bool)
        or not isinstance(contamination, int | float | np.number)
        or not 0.0 < contamination <= 0.5
    ):
        raise UsageError(
            f"contamination={contamination!r}: needs 'auto', or a share above 0 and at most 0.5"
        )
    return float(contamination)


def n_outliers(contamination: Any, n_rows: int) -> float:
    """Return how many of the rows to flag; raises `UsageError` if they are none, or most."""
    if isinstance(contamination, bool) or not isinstance(contamination, int | np.integer):
        return share_of_rows(contamination) * n_rows
    if not 1 <= contamination <= n_rows / 2:
        raise UsageError(
            f"contamination={contamination!r}: as a number of rows it needs 1 or more, and at "
            f"most half of the {n_rows:,} rows"
        )
    return float(contamination)
