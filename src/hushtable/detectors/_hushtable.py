"""HushTable: the refined detector."""

from typing import Any, ClassVar

from sklearn.utils.metaestimators import available_if

from hushtable.counts.sketch import Sketch
from hushtable.data.readers import Reader
from hushtable.data.schema import Schema
from hushtable.detectors._base import TableDetector
from hushtable.errors import UsageError
from hushtable.plans.plan import Plan


def _single_pass(self: "HushTable") -> bool:
    if self.passes != 1:
        raise AttributeError("partial_fit needs passes=1: a second pass needs all rows at once")
    return True


class HushTable(TableDetector):
    """Outlier detector over refined, mergeable tables of counts.

    LSH iTables (Li and Pham) with all rows in every table, deep codes (8 to 24 hash functions)
    folded into 256 cells, features weighted by log(1 + kurtosis), a quarter of the cuts at
    quantiles, stratified draws, and the smoothed score log2(c + 0.05 N). With
    ``contamination="auto"`` it flags a few percent of the rows as a rule.

    Parameters
    ----------
    n_tables : int, default=100
        Number of tables, the paper's m. 400 is a little more accurate and four times the work.
    passes : {1, 2}, default=1
        2 counts a second time, only the rows that are denser than average, and scores by both
        counts: more accurate, for one more reading of the data.
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
        passes: int = 1,
        contamination: str | float = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_tables = n_tables
        self.passes = passes
        self.contamination = contamination
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        if self.passes not in (1, 2):
            raise UsageError(f"passes={self.passes!r}: needs 1 or 2")
        super()._check_parameters()

    # Not there at all with two passes, so that scikit-learn's tools do not take it for granted.
    partial_fit = available_if(_single_pass)(TableDetector.partial_fit)

    def _drawn_by(
        self, schema: Schema, reader: Reader, weights: Any, n_rows: int
    ) -> dict[str, Any]:
        return {"marginals": super()._sketch(Plan.marginals(schema), reader, weights)}

    def _sketch(self, plan: Plan, reader: Reader, weights: Any) -> Sketch:
        first = super()._sketch(plan, reader, weights)
        if self.passes == 1:
            return first
        return super()._sketch(plan.second_pass(first), reader, weights)

    @classmethod
    def _parameters_of(cls, plan: Plan) -> dict[str, Any]:
        return {**super()._parameters_of(plan), "passes": 1 if plan.first_counts is None else 2}
