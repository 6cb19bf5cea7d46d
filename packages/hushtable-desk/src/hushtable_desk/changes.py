"""Changes in the columns of a table: tests of new rows against earlier ones."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import stats

from hushtable.data.columns import as_numbers, as_texts
from hushtable.data.schema import Feature, value_words
from hushtable.language import percents
from hushtable_desk.language import _

#: Probability that a table in which nothing changed has a change, at most.
BY_CHANCE = 0.005
#: Rows of each side from which on columns are compared; least expected rows of a category.
FEWEST, _EXPECTED = 20, 5.0


class Change(NamedTuple):
    """A column that changed beyond chance: its name, and a sentence."""

    column: str
    words: str


def changes(
    features: Sequence[Feature],
    before: pa.Table,
    after: pa.Table,
    unusual: tuple[NDArray[np.bool_], NDArray[np.bool_]],
) -> list[Change]:
    """Return the columns whose values, or missing values, differ between two sets of rows.

    Numbers are compared by the two-sample test of Kolmogorov and Smirnov, categories by the
    chi-squared test, shares by Fisher's exact test. If both sets are samples of independent rows
    from one distribution, the result is empty with a probability of 1 - `BY_CHANCE` or more
    (Bonferroni over all tests).

    Parameters
    ----------
    features : sequence of Feature
        Columns to compare.
    before, after : pyarrow.Table
        Earlier and new rows, with these columns.
    unusual : pair of ndarrays of shape (n_before,) and (n_after,), bool
        Which of the rows are unusual; their share is compared as well.

    Returns
    -------
    list of Change
        The most significant first; the column of the share of unusual rows is empty.
    """
    if min(len(before), len(after)) < FEWEST:
        return []
    tests = [_share_test(*unusual)]
    words = [_shares("", *unusual)]
    columns = [""]
    for feature in features:
        sides = [side.column(feature.name).combine_chunks() for side in (before, after)]
        absent = [np.asarray(side.is_null(nan_is_null=True)) for side in sides]
        tests.append(_share_test(*absent))
        words.append(_shares(feature.name, *absent))
        compare = _numbers if feature.kind == "numeric" else _categories
        p, text = compare(feature, *(side.drop_null() for side in sides))
        tests.append(p)
        words.append(text)
        columns += [feature.name, feature.name]
    order = np.argsort(tests, kind="stable")
    shifted = [int(k) for k in order if tests[k] * len(tests) <= BY_CHANCE]
    return [Change(columns[k], words[k]) for k in shifted]


def _share_test(before: NDArray[np.bool_], after: NDArray[np.bool_]) -> float:
    n, m = int(before.sum()), int(after.sum())
    if n + m in (0, len(before) + len(after)):
        return 1.0
    return float(stats.fisher_exact([[n, len(before) - n], [m, len(after) - m]]).pvalue)


def _shares(column: str, before: NDArray[np.bool_], after: NDArray[np.bool_]) -> str:
    now, earlier = (percents(f"{100 * side.mean():.1f}") for side in (after, before))
    if not column:
        return _("%(now)s of the rows are unusual; before, %(earlier)s.", now=now, earlier=earlier)
    return _(
        "%(column)s is missing in %(now)s of the rows; before, in %(earlier)s.",
        column=column, now=now, earlier=earlier,
    )  # fmt: skip


def _numbers(feature: Feature, before: pa.Array, after: pa.Array) -> tuple[float, str]:
    a, b = (np.asarray(as_numbers(side, feature.name), np.float64) for side in (before, after))
    a, b = a[np.isfinite(a)], b[np.isfinite(b)]
    if min(len(a), len(b)) < FEWEST:
        return 1.0, ""
    p = float(stats.ks_2samp(a, b, method="asymp").pvalue)
    earlier, now = (value_words(feature, float(np.median(side))) for side in (a, b))
    template = _("%(column)s is spread differently: its median is %(now)s; before, %(earlier)s.")
    if np.median(b) > np.median(a):
        template = _("%(column)s is higher: its median is %(now)s; before, %(earlier)s.")
    elif np.median(b) < np.median(a):
        template = _("%(column)s is lower: its median is %(now)s; before, %(earlier)s.")
    return p, template % {"column": feature.name, "now": now, "earlier": earlier}


def _categories(feature: Feature, before: pa.Array, after: pa.Array) -> tuple[float, str]:
    if min(len(before), len(after)) < FEWEST:
        return 1.0, ""
    texts = [pc.cast(as_texts(side, feature.name), pa.string()) for side in (before, after)]
    names = pc.unique(pa.chunked_array(texts))
    places = [np.asarray(pc.index_in(side, names)) for side in texts]
    counts = np.array([np.bincount(side, minlength=len(names)) for side in places], np.float64)
    shares = counts / counts.sum(axis=1, keepdims=True)
    least = counts.sum(axis=0) * counts.sum(axis=1).min() / counts.sum()
    rare = least < _EXPECTED
    table = np.column_stack([counts[:, ~rare], counts[:, rare].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] < 2:
        return 1.0, ""
    p = float(stats.chi2_contingency(table).pvalue)
    k = int(np.argmax(np.abs(shares[1] - shares[0])))
    earlier, now = (percents(f"{100 * side[k]:.1f}") for side in shares)
    return p, _(
        "%(column)s: “%(value)s” is in %(now)s of the rows; before, in %(earlier)s.",
        column=feature.name, value=names[k].as_py(), now=now, earlier=earlier,
    )  # fmt: skip
