"""ACE: counts under the signs of random projections."""

from typing import Any, ClassVar

from hushtable.data.readers import Reader
from hushtable.data.schema import Schema
from hushtable.detectors._base import TableDetector
from hushtable.plans.plan import Plan


class ACE(TableDetector):
    """ACE (Luo and Shrivastava, 2018): arrays of counts under SimHash, over all rows.

    Each of m tables takes the signs of a row's products with l normal vectors, and counts all
    rows in 2**l cells; a row's score is the mean of its counts. The signs are those of the
    rows as they are, seen from the origin: angles count, lengths do not, and features in large
    units decide. Centre and scale the rows first where that is not meant.

    Parameters
    ----------
    n_tables : int, default=100
        Number of tables, the paper's m.
    n_bits : int, default=15
        Signs of each table, the paper's l; at most 16.
    [shared parameters]
    random_state : int, RandomState or Generator, optional
        Seed of the hash functions.

    Attributes
    ----------
    [attributes]

    References
    ----------
    C. Luo and A. Shrivastava. Arrays of (locality-sensitive) count estimators (ACE): anomaly
    detection on the edge. WWW 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable import ACE
    >>> X = np.random.default_rng(0).normal(loc=5.0, size=(1000, 3))
    >>> X[0] = -5.0
    >>> detector = ACE(random_state=0).fit(X)
    >>> int(detector.score_samples(X).argmin())
    0
    """

    _detector: ClassVar[str] = "ace"

    def __init__(
        self,
        *,
        n_tables: int = 100,
        n_bits: int = 15,
        contamination: str | float = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_tables = n_tables
        self.n_bits = n_bits
        self.contamination = contamination
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _drawn_by(
        self, schema: Schema, reader: Reader, weights: Any, n_rows: int
    ) -> dict[str, Any]:
        return {"n_bits": self.n_bits}

    @classmethod
    def _parameters_of(cls, plan: Plan) -> dict[str, Any]:
        return {**super()._parameters_of(plan), "n_bits": int(plan.family.arrays()["depth"][0])}
