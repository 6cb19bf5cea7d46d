"""The lowest rows and their reasons, from rows in memory as from files, with and without values."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushtable import Feature, Plan, Schema, Sketch
from hushtable.data.readers import as_reader
from hushtable.errors import FileError, PlanError
from hushtable.scores.explain import Explainer
from hushtable.scores.finding import Finding, explained, lowest_rows
from hushtable.scores.outliers import Lowest, Search
from hushtable.scores.reasons import Reasons
from hushtable.scores.scorer import Scorer
from hushtable.scores.usual import Frequencies

SCHEMA = Schema([Feature.numeric(name, low=-9, high=9, unit="mm") for name in "abcd"])


@pytest.fixture
def scorer(X):
    return Scorer(Sketch.from_data(Plan.draw(SCHEMA, random_state=0, n_tables=20), X))


def lowest(scorer, rows, n=3):
    search, kept, n_rows = Search(scorer, n), Lowest(n), 0
    for batch in search.batches(as_reader(rows), n_jobs=2):
        kept.add(batch, n_rows)
        n_rows += len(batch.scores)
    return n_rows, explained(kept.rows, Reasons(scorer), None)


def test_they_are_the_explainers(scorer, X):
    rows = np.concatenate([X] * 80)  # several batches
    n_rows, found = lowest(scorer, rows)
    assert n_rows == len(rows)
    scores, shares = scorer.score(X), Explainer(scorer).explain(X)
    first = int(scores.argmin())
    assert [one.row for one in found] == [first, first + len(X), first + 2 * len(X)]
    for one in found:
        assert one.score == scores[first]
        strongest = sorted(shares[first])[::-1][:3]
        worth_a_word = [share for share in strongest if share >= 0.1 * strongest[0]]
        assert [r.share for r in one.reasons] == worth_a_word
        assert one.reasons == found[0].reasons


def test_values_beside_the_plans_range(scorer, X):
    (row,) = lowest(scorer, X, n=1)[1]
    j = "abcd".index(row.reasons[0].feature)
    value = f"{'abcd'[j]} {X[row.row, j]:.6g} mm"
    assert row.reasons[0].words == f"{value}, in a range of -9 to 9"
    odd = np.where(np.arange(4) == 2, np.nan, X[:1])
    missing = [r.words for r in lowest(scorer, odd)[1][0].reasons if r.feature == "c"]
    assert missing == ["c is missing"]


def test_marginals_are_checked(scorer, X):
    counts = Sketch.from_data(Plan.marginals(SCHEMA), X)
    marginals = Frequencies(counts, "m.hush")
    assert all(cells.sum() == pytest.approx(1.0) for cells in marginals.cells)
    marginals.check(SCHEMA.features)
    with pytest.raises(
        PlanError, match=r"m\.hush: the marginals do not belong to the model's features"
    ):
        marginals.check(SCHEMA.features[::-1])
    with pytest.raises(FileError, match="marginals takes a merged"):
        Frequencies(scorer.sketch, "a.hush")
    assert marginals.beside(None).among == "the rows of all sites"


# --- reasons that convince ------------------------------------------------------------------------


@given(
    st.lists(st.lists(st.sampled_from([0.0, 1.0, 1.5, 2.0]), max_size=9), max_size=6),
    st.integers(0, 7),
    st.integers(1, 3),
)
def test_the_lowest_are_those_of_all_rows_in_any_batches_and_files(batches, most, n_files):
    files = {f"{name}": batches[name::n_files] for name in range(n_files)}
    total, every = Lowest(most), []
    for name, own in files.items():
        total.file, n_rows = name, 0
        for scores in map(np.array, own):
            scores = scores.astype(float)
            total.add(scored(scores, lowest_rows(scores, most)), n_rows)
            every += [(score, name, n_rows + i) for i, score in enumerate(scores.tolist())]
            n_rows += len(scores)
    assert [(row.score, row.file, row.row) for row in total.rows] == sorted(every)[:most]
    scores = np.array([score for score, *_ in every])
    expected = np.argsort(scores, kind="stable")[:most]
    np.testing.assert_array_equal(lowest_rows(scores, most), expected)


def scored(scores, lowest):
    """Return a batch of rows about which only the scores are known."""
    return SimpleNamespace(
        scores=scores, keys=scores, lowest=lowest, ruled=None,
        finding=lambda k, row, file: Finding(row, float(scores[lowest[k]]), file),
    )  # fmt: skip
