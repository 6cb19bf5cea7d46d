"""HushTable: the refined detector."""

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.metaestimators import available_if

from hushtable.counts.base import Counts
from hushtable.counts.passes import both_passes
from hushtable.counts.sketch import Sketch
from hushtable.data.readers import Reader
from hushtable.data.schema import Schema
from hushtable.detectors.base import TableDetector
from hushtable.errors import UsageError
from hushtable.plans.draws import NOVELTY
from hushtable.plans.plan import Plan

#: Share of the width of a range by which it is widened on both sides, for novelty.
WIDER = 0.25
#: Share of outliers that rows may be said to have at most, and still be called clean. From about 3%
#: on, the default detects better: see the docs.
_CLEAN = 0.1


def _adds_rows(self: "HushTable") -> bool:
    if self.passes == 2:
        raise AttributeError('partial_fit needs passes="auto" or 1: two passes need all rows')
    return True


class HushTable(TableDetector):
    """Outlier detector over refined, mergeable tables of counts.

    LSH iTables (Li and Pham) with all rows in every table, deep codes (8 to 24 hash functions)
    folded into 256 cells, features weighted by their kurtosis, cuts at quantiles and in tails,
    stratified draws, and two passes, of which the second counts only the rows that lie dense.
    With ``contamination="auto"`` it flags a few percent of the rows as a rule.

    Parameters
    ----------
    n_tables : int, default=100
        Number of tables, the paper's m. 400 is a little more accurate and four times the work.
    passes : {"auto", 1, 2}, default="auto"
        How often rows are counted. 2: after all rows, those that lie denser than a gate, which
        Otsu's method finds; more accurate as a rule. 1: all rows only; `partial_fit` can add
        more. "auto": 2 by `fit`, 1 by `partial_fit` and for novelty detection. After a `fit`
        with two passes, `partial_fit` continues with the counts of the first pass alone, which
        changes the scale of scores and `offset_`, and warns of it.
    novelty : bool, default=False
        Whether the rows of `fit` are known to be clean, so that whatever is unlike them is
        abnormal: ranges are widened by a quarter on both sides, tables are deeper (24 to 32 hash
        functions, 1,024 cells), features weigh alike, and an empty cell is far below a row. Where
        3% of the rows or more are outliers, the default detects better; a `contamination` above
        0.1 is refused.
    [shared parameters]
    random_state : int, RandomState or Generator, optional
        Seed of the hash functions.

    Attributes
    ----------
    [attributes]

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable import HushTable
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> X[0] = 8.0
    >>> detector = HushTable(random_state=0).fit(X)
    >>> int(detector.score_samples(X).argmin())
    0
    """

    _detector: ClassVar[str] = "hushtable"

    def __init__(
        self,
        *,
        n_tables: int = 100,
        passes: str | int = "auto",
        novelty: bool = False,
        contamination: str | float = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_tables = n_tables
        self.passes = passes
        self.novelty = novelty
        self.contamination = contamination
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        if self.passes not in ("auto", 1, 2):
            raise UsageError(f'passes={self.passes!r}: needs "auto", 1 or 2')
        if not isinstance(self.novelty, bool | np.bool_):
            raise UsageError(f"novelty={self.novelty!r}: needs True or False")
        super()._check_parameters()
        if not self.novelty:
            return
        if self.passes == 2:
            raise UsageError(
                "passes=2 with novelty=True: clean rows are all to be counted, and a second pass "
                'would leave some of them out, which loses accuracy: needs passes="auto" or 1'
            )
        if not isinstance(self.contamination, str) and self.contamination > _CLEAN:
            raise UsageError(
                f"contamination={self.contamination:g} with novelty=True, which is for clean rows: "
                "from 3% of outliers on, novelty=False detects better; to flag so many rows "
                f"nonetheless, set_threshold(X, {self.contamination:g}) after fit"
            )

    # Not there at all with two passes, so that scikit-learn's tools do not take it for granted.
    partial_fit = available_if(_adds_rows)(TableDetector.partial_fit)

    def _so_far(self) -> Counts:
        if (self.plan_.score == NOVELTY) != self.novelty:
            raise UsageError(
                f"this detector was fitted with novelty={not self.novelty}: rows are added to its "
                "counts with the same setting, or fit draws a new plan"
            )
        return self.sketch_.first_pass() if isinstance(self.sketch_, Sketch) else self.sketch_

    def _schema(self, schema: Schema) -> Schema:
        return schema.widened(WIDER) if self.novelty else schema

    def _drawn_by(
        self, schema: Schema, reader: Reader, weights: Any, n_rows: int
    ) -> dict[str, Any]:
        marginals = self._sketch(Plan.marginals(schema), reader, weights)
        return {"marginals": marginals, "novelty": bool(self.novelty)}

    def _sketch_all(self, plan: Plan, reader: Reader, weights: Any) -> Sketch:
        if self.passes == 1 or self.novelty:
            return self._sketch(plan, reader, weights)
        return both_passes(plan, reader, weights, self.n_jobs)

    @classmethod
    def _parameters_of(cls, plan: Plan) -> dict[str, Any]:
        passes = 1 if plan.first_counts is None else 2
        return {**super()._parameters_of(plan), "passes": passes, "novelty": plan.score == NOVELTY}
