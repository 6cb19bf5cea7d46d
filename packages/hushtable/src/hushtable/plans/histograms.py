"""Plans of histograms: marginals, ranges and ranks. Their counts do not score rows.

`hushtable.Plan` makes them; here stands how many cells they have, and when they pay.
"""

import numpy as np

from hushtable.data.schema import Schema
from hushtable.errors import PrivacyError, UsageError
from hushtable.plans.counted import Counted
from hushtable.plans.draws import MARGINAL_BINS
from hushtable.plans.families import ScoreHistogram
from hushtable.privacy.layout import PRIVATE_MARGINAL_BINS, RANGE_BINS, Design

#: Cells of a histogram of scores: each carries noise, so that fewer are more accurate under it.
RANK_BINS, PRIVATE_RANK_BINS = 4096, 128


def marginal_bins(schema: Schema, design: Design | None) -> int:
    """Return the cells of a feature's marginal; raises `PrivacyError` where they do not pay."""
    if design is None:
        return MARGINAL_BINS
    if not design.pays_marginals(len(schema)):
        raise PrivacyError(
            f"a first round does not pay: {design.expected_rows:,} rows and {len(schema):,} "
            f"features at epsilon {design.epsilon:g} leave mostly noise in the marginals; "
            "draw the plan in one round, without them"
        )
    return PRIVATE_MARGINAL_BINS


def range_bins(schema: Schema, design: Design | None) -> int:
    """Return the cells of a feature's range; raises `PrivacyError` where none can be found."""
    if design is None:
        raise UsageError("epsilon=None: ranges are found by a private release: give its budget")
    if not design.finds_ranges(len(schema)):
        raise PrivacyError(
            f"ranges cannot be found privately: {design.expected_rows:,} rows and "
            f"{len(schema):,} features at epsilon {design.epsilon:g} do not stand out of the "
            "noise; give public ranges in the schema"
        )
    return RANGE_BINS


def score_histogram(model: Counted) -> ScoreHistogram:
    """Return the histogram of the scores that counts give; raises `UsageError` if they do not."""
    plan = model.plan
    if not plan.purpose.scores_rows:
        raise UsageError(
            f"counts of a {plan.detector!r} plan do not score rows: ranks need a detector's counts"
        )
    scores = model.cell_scores()
    bins = RANK_BINS if model.ledger is None else PRIVATE_RANK_BINS
    value = np.rint(scores * 2.0**20).astype(np.int64)
    return ScoreHistogram(plan.schema, plan.family, value, bins)
