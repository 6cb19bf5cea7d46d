"""The detectors of other papers: LSH iTables, RS-Hash and ACE."""

from typing import Any, ClassVar, Self

from hushtable.arguments import whole
from hushtable.counts.sketch import Sketch
from hushtable.data.readers import Reader
from hushtable.data.schema import Schema
from hushtable.detectors.base import TableDetector
from hushtable.plans.plan import Plan


class SampledDetector(TableDetector):
    """A detector of which each table counts a random sample of the rows (paper, Algorithm 1)."""

    def __init__(
        self,
        *,
        n_tables: int = 100,
        max_samples: int = 1000,
        contamination: str | float = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_tables = n_tables
        self.max_samples = max_samples
        self.contamination = contamination
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(  # type: ignore[override] # takes no weights
        self,
        X: Any,
        y: Any = None,
        *,
        person: str | None = None,
        rows_per_person: int = 1,
        schema: Schema | None = None,
    ) -> Self:
        """Read ranges off the rows, draw the plan, count a sample in each table.

        Parameters
        ----------
        [rows to fit]
        person, rows_per_person : str and int, optional
            The column that tells persons, and rows of each that are used at most.
        schema : Schema, optional
            Features with their ranges and categories, in place of those read off the rows; other
            columns are left out.

        Raises
        ------
        DataError
            If there are fewer than 2 rows, or a column cannot be used; the message names it.
        """
        rows = self._of_persons(X, person, rows_per_person, None)
        return self._fit(rows, None, schema=schema)

    def _drawn_by(
        self, schema: Schema, reader: Reader, weights: Any, n_rows: int
    ) -> dict[str, Any]:
        return {"max_samples": min(whole("max_samples", self.max_samples), n_rows)}

    def _sketch(self, plan: Plan, reader: Reader, weights: Any) -> Sketch:
        return Sketch.from_data(
            plan,
            reader,
            max_samples=self.max_samples,
            # What drew the plan's functions, which others see, draws no sample without a seed.
            random_state=None if self.random_state is None else self._rng,
            n_jobs=self.n_jobs,
        )


class LSHiTables(SampledDetector):
    """LSH iTables (Li and Pham): hash tables over random-feature LSH, faithful to the paper.

    Each of m tables concatenates l hash functions (Definition 3) and counts a random sample
    of s rows in 2**l cells (Algorithm 1); a row's score is the mean over the tables of
    log2(max(count, 1)) (Algorithm 2). What the paper leaves open is read as what reproduces
    its results: the range of a feature is its minimum and maximum over all rows, l is rounded
    to nearest, features are drawn with replacement, and there is no normalisation.

    Parameters
    ----------
    [sample]
        It also sets the depths: l ~ U(1 + 0.5 log_b(s), log_b(s)) with b = max(2, 1/f) and
        f ~ U(1/sqrt(s), 1 - 1/sqrt(s)) (section 3.3, Parameter settings).
    [shared parameters]
    random_state : int, RandomState or Generator, optional
        Seed of the hash functions and of the samples.

    Attributes
    ----------
    [attributes]

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable import LSHiTables
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> X[0] = 8.0
    >>> detector = LSHiTables(random_state=0).fit(X)
    >>> int(detector.score_samples(X).argmin())
    0
    """

    _detector: ClassVar[str] = "lsh_itables"


class RSHash(SampledDetector):
    """RS-Hash (Sathe and Aggarwal, 2016), as the paper runs it: grids on random subspaces.

    Each of m tables draws a grid of side f on l random features, each on its range from 0 to
    1, and counts a random sample of s rows in a CountMin sketch of 4 x 1000 cells (paper,
    sections 3.1 and 4). A row's score is the mean over the tables of log2(max(count, 1)),
    count being the least of its four cells. The range of a feature is its minimum and maximum
    over all rows, where the paper takes the sample's: the tables could not be shared else.
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
    >>> from hushtable import RSHash
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> X[0] = 8.0
    >>> detector = RSHash(random_state=0).fit(X)
    >>> int(detector.score_samples(X).argmin())
    0
    """

    _detector: ClassVar[str] = "rs_hash"


class RotatedRSHash(SampledDetector):
    """RS-Hash over random rotations of the rows (paper, section 3.1): p-stable LSH for l2.

    Each of m tables multiplies a row, each feature on its range from 0 to 1, with l normal
    vectors a, and takes floor((a.x + b) / w) of each; the widths w = f R differ between the
    tables, and b ~ U(0, w). Counting and scoring are `RSHash`'s. The paper takes the range of
    the projected rows for R, which is not public, and rotates rows in their own units, in
    which the widest feature decides alone; here R is the norm of a, the range itself for one
    feature.

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
    >>> from hushtable import RotatedRSHash
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
