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

    _recipe: ClassVar[str] = "lsh_itables"
