"""The paper's other systems as estimators: RS-Hash, rotated RS-Hash, and ACE."""

from typing import Any, ClassVar

from hushtable.data.readers import Reader
from hushtable.data.schema import Schema
from hushtable.detectors import TableDetector
from hushtable.detectors.hushtable import SampledDetector
from hushtable.plans.plan import Plan


class RSHash(SampledDetector):
    """RS-Hash (Sathe and Aggarwal, 2016), as the paper runs it: grids on random subspaces.

    Each of m tables draws a grid of side f on l random features, each on its range from 0 to
    1, and counts a random sample of s rows in a CountMin sketch of 4 x 1000 cells (paper,
    sections 3.1 and 4). A row's score is the mean over the tables of log2(max(count, 1)),
    where count is the least of its four cells. The range of a feature is its minimum and maximum
    over all rows; the paper takes the sample's range, with which tables could not be shared.
    Constant features are left out.

    Parameters
    ----------
    [sample]
        It also sets the grids: f ~ U(1/sqrt(s), 1 - 1/sqrt(s)), and
        l ~ U(1 + 0.5 log_b(s), log_b(s)) with b = max(2, 1/f), rounded to nearest and at most
        the number of features.
    [shared parameters]
    random_state : int, RandomState or Generator, optional
        Seed of the hash functions and of the samples.

    Attributes
    ----------
    [attributes]

    References
    ----------
    S. Sathe and C. C. Aggarwal. Subspace outlier detection in linear time with randomized
    hashing. ICDM 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable_bench import RSHash
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> X[0] = 8.0
    >>> detector = RSHash(random_state=0).fit(X)
    >>> int(detector.score_samples(X).argmin())
    0
    """

    _detector: ClassVar[str] = "rs_hash"


class RotatedRSHash(SampledDetector):
    """RS-Hash over random rotations of the rows (paper, section 3.1): p-stable LSH for l2.

    Each of m tables multiplies a row, each feature scaled to its range from 0 to 1, by l normal
    vectors a, and takes floor((a.x + b) / w) of each; the widths w = f R differ between the
    tables, and b ~ U(0, w). Rows are counted and scored as in `RSHash`. In the paper, R is the
    range of the projected rows, which is not public, and rows are rotated in their own units, so
    that the widest feature dominates. Here R is the norm of a, which for a single feature is the
    range itself.

    Parameters
    ----------
    [sample]
        It also sets the grids: f ~ U(1/sqrt(s), 1 - 1/sqrt(s)), and
        l ~ U(1 + 0.5 log_b(s), log_b(s)) with b = max(2, 1/f), rounded to nearest.
    [shared parameters]
    random_state : int, RandomState or Generator, optional
        Seed of the hash functions and of the samples.

    Attributes
    ----------
    [attributes]

    References
    ----------
    M. Datar, N. Immorlica, P. Indyk and V. S. Mirrokni. Locality-sensitive hashing scheme
    based on p-stable distributions. SoCG 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable_bench import RotatedRSHash
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> X[0] = 8.0
    >>> detector = RotatedRSHash(random_state=0).fit(X)
    >>> int(detector.score_samples(X).argmin())
    0
    """

    _detector: ClassVar[str] = "rotated_rs_hash"


class ACE(TableDetector):
    """ACE (Luo and Shrivastava, 2018): arrays of counts under SimHash, over all rows.

    Each of m tables takes the signs of a row's products with l normal vectors, and counts all
    rows in 2**l cells; a row's score is the mean of its counts. The signs are those of the
    unscaled rows, seen from the origin: angles matter, lengths do not, and features in large
    units dominate. If you do not want this, centre and scale the rows first.

    Parameters
    ----------
    n_tables : int, default=100
        Number of tables (m in the paper).
    n_bits : int, default=15
        Signs of each table (l in the paper); at most 16.
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
    >>> from hushtable_bench import ACE
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
