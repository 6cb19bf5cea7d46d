"""LSH iTables, as in the paper."""

from typing import ClassVar

from hushtable.detectors._sampled import SampledDetector

__all__ = ["LSHiTables"]


class LSHiTables(SampledDetector):
    """LSH iTables (Li and Pham): hash tables over random-feature LSH, faithful to the paper.

    Each of m tables concatenates l hash functions (Definition 3) and counts a random sample
    of s rows in 2**l cells (Algorithm 1); a row's score is the mean over the tables of
    log2(max(count, 1)) (Algorithm 2). What the paper leaves open is read as what reproduces
    its results: the range of a feature is its minimum and maximum over all rows, l is rounded
    to nearest, features are drawn with replacement, and there is no normalisation.

    Parameters
    ----------
    n_tables : int, default=100
        Number of tables, the paper's m.
    max_samples : int, default=1000
        Rows sampled for each table, without replacement: s = min(max_samples, n), at most
        65,536. It also sets the depths: l ~ U(1 + 0.5 log_b(s), log_b(s)) with b = max(2, 1/f) and
        f ~ U(1/sqrt(s), 1 - 1/sqrt(s)) (section 3.3, Parameter settings).
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
