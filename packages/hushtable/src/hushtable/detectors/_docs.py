"""Docstrings that the detectors share: a subclass names them, in brackets, where they belong."""

from inspect import cleandoc

_SHARED = {
    "[shared parameters]": """
        contamination : "auto" or float in (0, 0.5], default="auto"
            Where `offset_` lies. A share: that share of the rows of the last `fit` or
            `partial_fit` are outliers. "auto": the mean score, over the tables, of the rarer half
            of the counted rows in each; it needs counts only, so that it is the same for a merged
            detector, and flags at most half of the counted rows.
        n_jobs : int, optional
            Threads; None is one, -1 every core. Counts and scores are the same for any number.
        """,
    "[sample]": """
        n_tables : int, default=100
            Number of tables, the paper's m.
        max_samples : int, default=1000
            Rows sampled for each table, without replacement: s = min(max_samples, n), at most
            65,536.
        """,
    "[attributes]": """
        plan_ : Plan
            Schema, hash functions and score rule.
        sketch_ : Sketch, Release or LocalModel
            The counts; a `Release` where the detector was made from one.
        offset_ : float
            Score below which a row is an outlier, in the unit of the scores.
        n_features_in_ : int
            Number of features seen in `fit`.
        feature_names_in_ : ndarray of str
            Names of the features, where the data had some.
        reading_ : Reading
            How the texts of the columns were read; it holds for later rows.
        understanding_ : tuple of ColumnUnderstanding
            Columns as `fit` understood them; only after `fit`, no file holds it.
        """,
}


def filled(text: str) -> str:
    """Return a docstring with the shared sections in their places."""
    text = cleandoc(text)
    for name, shared in _SHARED.items():
        text = text.replace(name, cleandoc(shared))
    return text
