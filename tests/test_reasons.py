"""Reasons of the lowest rows, from rows in memory as from files, with and without values."""

import numpy as np
import pyarrow as pa
import pytest

from hushtable import Feature, Plan, Schema, Sketch
from hushtable.errors import FileError, PlanError
from hushtable.scores.explain import Explainer
from hushtable.scores.reasons import Lowest, Marginals, Reason, Reasons
from hushtable.scores.scorer import Scorer

SCHEMA = Schema([Feature.numeric(name, low=-9, high=9, unit="mm") for name in "abcd"])


@pytest.fixture
def scorer(X):
    return Scorer(Sketch.from_data(Plan.draw(SCHEMA, random_state=0, n_tables=20), X))


def lowest(scorer, rows, n=3, **options):
    reasons = Reasons(scorer, n, **options)
    n_rows = sum(len(scores) for scores, *_ in reasons.batches(rows, n_jobs=2))
    return n_rows, reasons.lowest


def test_they_are_the_explainers(scorer, X):
    rows = np.concatenate([X] * 80)  # several batches
    n_rows, found = lowest(scorer, rows)
    assert n_rows == len(rows)
    scores, shares = scorer.score(X), Explainer(scorer).explain(X)
    first = int(scores.argmin())
    assert [one.row for one in found] == [first, first + len(X), first + 2 * len(X)]
    for one in found:
        assert one.score == scores[first]
        assert [r.share for r in one.reasons] == sorted(shares[first][shares[first] > 0])[::-1][:3]
        assert one.reasons == found[0].reasons


def test_the_same_of_arrays_and_of_arrow(scorer, X):
    table = pa.table(dict(zip("abcd", X.T, strict=True)))
    assert lowest(scorer, X) == lowest(scorer, table)


def test_values_only_where_they_are_wanted(scorer, X):
    (row,) = lowest(scorer, X, n=1)[1]
    j = "abcd".index(row.reasons[0].feature)
    assert row.reasons[0].words == f"{'abcd'[j]} {X[row.row, j]:.6g} mm"
    (bare,) = lowest(scorer, X, n=1, values=False)[1]
    assert [reason.words for reason in bare.reasons] == [r.feature for r in row.reasons]
    odd = np.where(np.arange(4) == 2, np.nan, X[:1])
    missing = [r.words for r in lowest(scorer, odd)[1][0].reasons if r.feature == "c"]
    assert missing == ["c is missing"]


def test_what_is_worth_a_word():
    reasons = [Reason(name, share, name) for name, share in (("a", 2.0), ("b", 0.2), ("c", 0.1))]
    assert [r.feature for r in Lowest(1.0, 0, reasons).telling] == ["a", "b"]
    assert Lowest(1.0, 0, []).telling == []


def test_marginals_are_checked(scorer, X):
    counts = Sketch.from_data(Plan.marginals(SCHEMA), X)
    marginals = Marginals(counts, "m.hush")
    assert all(shares.sum() == pytest.approx(1.0) for shares in marginals.shares)
    marginals.check(SCHEMA.features)
    with pytest.raises(PlanError, match=r"m\.hush: the marginals are not of the model's features"):
        marginals.check(SCHEMA.features[::-1])
    with pytest.raises(FileError, match="marginals takes a merged"):
        Marginals(scorer.sketch, "a.hush")
    assert marginals.words(0, 9.0).endswith("% of the merged rows")
