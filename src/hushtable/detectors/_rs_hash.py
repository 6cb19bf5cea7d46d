"""RS-Hash, on the features and on random rotations of them."""

from typing import ClassVar

from hushtable.detectors._sampled import SampledDetector

__all__ = ["RSHash", "RotatedRSHash"]


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
    n_tables : int, default=100
        Number of tables, the paper's m.
    max_samples : int, default=1000
        Rows sampled for each table, without replacement: s = min(max_samples, n), at most
        65,536. It also sets the grids: f ~ U(1/sqrt(s), 1 - 1/sqrt(s)), and
        l ~ U(1 + 0.5 log_b(s), log_b(s)) with b = max(2, 1/f), rounded to nearest and at most
        the number of features.
    contamination : "auto" or float in (0, 0.5], default="auto"
        Where `offset_` lies. A share: that share of the rows of the last `fit` or
        `partial_fit` are outliers. "auto": the mean score, over the tables, of the rarer half
        of the counted rows in each; it needs counts only.
    n_jobs : int, optional
        Threads; None is one, -1 every core. Counts and scores are the same for any number.
    random_state : int, RandomState or Generator, optional
        Seed of the hash functions and of the samples.

    Attributes
    ----------
    plan_ : Plan
        Schema, hash functions and score rule.
    sketch_ : Sketch or Release
        The counts; a `Release` where the detector was made from one.
    offset_ : float
        Score below which a row is an outlier, in bits.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the features, where the data had some.

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
    n_tables : int, default=100
        Number of tables, the paper's m.
    max_samples : int, default=1000
        Rows sampled for each table, without replacement: s = min(max_samples, n), at most
        65,536. It also sets the grids: f ~ U(1/sqrt(s), 1 - 1/sqrt(s)), and
        l ~ U(1 + 0.5 log_b(s), log_b(s)) with b = max(2, 1/f), rounded to nearest.
    contamination : "auto" or float in (0, 0.5], default="auto"
        Where `offset_` lies. A share: that share of the rows of the last `fit` or
        `partial_fit` are outliers. "auto": the mean score, over the tables, of the rarer half
        of the counted rows in each; it needs counts only.
    n_jobs : int, optional
        Threads; None is one, -1 every core. Counts and scores are the same for any number.
    random_state : int, RandomState or Generator, optional
        Seed of the hash functions and of the samples.

    Attributes
    ----------
    plan_ : Plan
        Schema, hash functions and score rule.
    sketch_ : Sketch or Release
        The counts; a `Release` where the detector was made from one.
    offset_ : float
        Score below which a row is an outlier, in bits.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the features, where the data had some.

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
