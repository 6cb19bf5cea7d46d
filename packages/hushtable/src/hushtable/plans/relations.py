"""Relations between columns by a private release: how often two are both above their medians."""

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.data.residuals import RIDGE, Relations
from hushtable.data.schema import Schema
from hushtable.errors import PlanError, PrivacyError, UsageError
from hushtable.plans.draws import Purpose
from hushtable.plans.families import RandomFeature
from hushtable.plans.plan import PlanCounts
from hushtable.plans.profile import FIRST, Marginals, Profile

Floats = NDArray[np.float64]

#: Largest number of columns: each pair has a table, and a row is in one cell of each.
_MOST = 100
#: Range of the residuals, in standard deviations on each side.
_FAR = 6.0
#: Largest value that noise may require as least eigenvalue of usable correlations.
_ENOUGH = 0.5
#: Least variance of a column's signs, at most 1: below it, almost all rows have one sign, and no
#: other column can be related to it.
_VARIED = 0.05
#: The same under noise, which is multiplied when it is divided by its square root: by at most four.
_VARIED_NOISED = 1.0 / 16.0


def profile_of(marginals: PlanCounts) -> Profile:
    """Return what counts under `Plan.marginals` reveal of the features, or raise `PlanError`."""
    plan = marginals.plan
    if plan.purpose is not Purpose.MARGINALS:
        raise PlanError(
            f"counts of a {plan.detector!r} plan are not marginals: count under "
            "Plan.marginals(schema) first"
        )
    counted = Marginals(marginals.counts, plan.family.offsets, marginals.noise_sd)
    return Profile(plan.schema, counted, FIRST)


def related_columns(schema: Schema) -> list[int]:
    """Return the columns of numbers that vary; raise `UsageError` unless there are 2 to 100."""
    found = [j for j, f in enumerate(schema.features) if f.kind == "numeric" and not f.constant]
    if not 2 <= len(found) <= _MOST:
        raise UsageError(
            f"relations: {len(found):,} columns of numbers that vary; a release needs 2 to "
            f"{_MOST}: leave columns out of the schema, or draw the plan without relations"
        )
    return found


def pairs_of_columns(schema: Schema, profile: Profile) -> RandomFeature:
    """Return a table for each pair of columns of numbers: which are at least their medians."""
    columns = related_columns(schema)
    pairs = np.array(list(itertools.combinations(columns, 2)), np.uint16)
    # The codes of numbers are 1 to LEVELS; the code below a cut of 2 is the lowest.
    cuts = np.clip(np.rint(profile.medians * kernels.LEVELS), 2, kernels.LEVELS).astype(np.uint16)
    feature = pairs.ravel()
    return RandomFeature(
        schema,
        np.full(len(pairs), 2, np.uint8),
        feature,
        cuts[feature],
        np.zeros(len(feature), np.uint8),
        np.empty(0, np.uint8),
        max_cells=4,
    )


def relations_of_pairs(
    schema: Schema, counts: NDArray[np.int64], noise_sd: float, profile: Profile
) -> Relations:
    """Return the relations that follow from the counts of `pairs_of_columns`.

    The correlation of two normal columns is sin(pi q / 2), where q is the covariance of the signs
    of both (Greiner, 1909; Kruskal, Ordinal measures of association, 1958). Outliers count no more
    than other rows. Directions in which the correlations vary by less than their own error are
    assumed to vary by that much, so that they predict no column better than the noise allows.

    Raises
    ------
    PrivacyError
        If there are too few rows for the noise.
    """
    columns = related_columns(schema)
    k, tables = len(columns), counts.reshape(-1, 4).astype(np.float64)
    n_rows = max(1.0, float(tables.sum()) / len(tables))
    signs = np.array([[1, -1, -1, 1], [-1, -1, 1, 1], [-1, 1, -1, 1]]) / n_rows
    both, first, second = signs @ tables.T
    left = np.maximum((1.0 - first**2) * (1.0 - second**2), 0.0)
    least_left = _VARIED_NOISED if noise_sd > 0.0 else _VARIED
    divisor = np.sqrt(np.maximum(left, least_left))
    q = np.where(left > least_left, (both - first * second) / divisor, 0.0)
    correlation = np.eye(k)
    upper = np.triu_indices(k, 1)
    correlation[upper] = np.sin(np.pi / 2.0 * np.clip(q, -1.0, 1.0))
    correlation = correlation + correlation.T - np.eye(k)
    error = np.pi / 2.0 * math.sqrt((2.0 * noise_sd / n_rows) ** 2 + 1.0 / n_rows)
    least = max(RIDGE, error * math.sqrt(k))
    if noise_sd > 0.0 and least > _ENOUGH:
        raise PrivacyError(
            f"about {n_rows:,.0f} rows are too few for the relations of {k} columns under noise of "
            f"{noise_sd:,.0f} counts: leave relations out, or columns"
        )
    return _of_correlations(correlation, least, columns, schema, profile)


def _of_correlations(
    correlation: Floats, least: float, columns: list[int], schema: Schema, profile: Profile
) -> Relations:
    values, vectors = np.linalg.eigh(correlation)
    correlation = (vectors * np.maximum(values, least)) @ vectors.T
    scale = np.sqrt(np.diag(correlation))
    inverse = np.linalg.inv(correlation / np.outer(scale, scale))
    low = np.array([schema.features[j].low for j in columns])
    width = np.array([schema.features[j].high for j in columns]) - low
    spread = profile.spreads[columns] * width
    weights = inverse / np.diag(inverse) * spread / spread[:, np.newaxis]
    np.fill_diagonal(weights, 1.0)
    left = spread / np.sqrt(np.diag(inverse))
    centre = low + profile.medians[columns] * width
    return Relations(tuple(columns), centre, weights, left, -_FAR * left, _FAR * left)
