"""Attacks on hidden hash functions: a coordinator that scores rows by the layout alone."""

import secrets

import numpy as np
import pyarrow as pa
import pytest

from hushtable import Feature, HushTable, LocalModel, Schema, Sketch
from hushtable.errors import PlanError
from hushtable_federation import Comparison, Layout, Result
from hushtable_federation.hidden import draw_hidden
from hushtable_federation.layout import Sealed
from hushtable_federation.reply import Reply
from round_helpers import T0, Consortium

SCHEMA = Schema(
    [
        *(Feature.numeric(f"x{j}", low=-5.0, high=5.0) for j in range(3)),
        Feature.categorical("ward", ["a", "b"]),
    ]
)
#: Rows that lie on one side of every cut, or nearly so.
CORNERS = {
    "low ends": [-5.0, -5.0, -5.0, 0],
    "high ends": [5.0, 5.0, 5.0, 1],
    "missing": [np.nan, np.nan, np.nan, np.nan],
    "beyond the low ends": [-50.0, -50.0, -50.0, 0],
}


class Hidden:
    """Three sites, whose most usual row is the one at a corner; a coordinator with the layout."""

    def __init__(self, folder, corner):
        self.those = Consortium(folder, 3, rows=600)
        self.row = table(np.array([corner]))
        rng = np.random.default_rng(0)
        for site in self.those.sites.values():
            site.X = np.column_stack([site.X, rng.integers(0, 2, 600)])
            site.X[:90] = corner
            site.sketch = lambda plan, X=site.X: Sketch.from_data(plan, table(X))
        parameters = {"epsilon": 1.0, "expected_rows": 1800}
        self.plan = draw_hidden(secrets.token_bytes(32), SCHEMA, **parameters)
        self.round = self.those.open(plan=Layout.of(self.plan))
        sent = {name: self.submit(site) for name, site in self.those.sites.items()}
        path = folder / "sum.hush"
        self.those.sum(self.round, sent).save(path)
        self.sealed = Result.load(path).counts

    def submit(self, site):
        return site.submit(self.round, plan=self.plan)

    def of_coordinator(self, cells):
        """The score of a row by the layout and the result, if these were its cells."""
        scale = 2.0 * self.sealed.ledger.noise_sd
        return float((np.arcsinh(self.sealed.counts[cells] / scale) / np.log(2.0)).mean())


def table(X):
    columns = {f"x{j}": X[:, j] for j in range(3)}
    ward = [None if np.isnan(code) else "ab"[int(code)] for code in X[:, 3]]
    return pa.table(columns | {"ward": ward})


@pytest.fixture(scope="module", params=CORNERS)
def hidden(request, tmp_path_factory):
    made = Hidden(tmp_path_factory.mktemp("hidden"), CORNERS[request.param])
    yield made
    made.those.close()


def test_a_row_at_the_ends_of_all_ranges_is_not_scored_by_the_layout(hidden):
    """hidden_corner.py: cell 0 of each table, whatever the secret; the coordinator's was the score.

    By the cells that any other plan gives the row, too.
    """
    release = hidden.sealed.open(hidden.plan)
    score = float(HushTable.from_counts(release).score_samples(hidden.row)[0])
    starts = np.cumsum([0, *hidden.sealed.layout.cells[:-1]])
    other = draw_hidden(bytes(32), SCHEMA, epsilon=1.0, expected_rows=1800)
    guesses = {
        "first cells": starts,
        "last cells": np.cumsum(hidden.sealed.layout.cells) - 1,
        "those of another secret": np.flatnonzero(Sketch.from_data(other, hidden.row).counts),
        "its own, in the order of the plan": np.flatnonzero(
            Sketch.from_data(hidden.plan, hidden.row).counts
        ),
    }
    for how, cells in guesses.items():
        found = hidden.of_coordinator(cells)
        assert abs(found - score) > 1.0, how
    exact = sum(site.sketch(hidden.plan).counts for site in hidden.those.sites.values())
    np.testing.assert_allclose(release.counts, exact, atol=8 * release.noise_sd)


def test_the_order_differs_from_table_to_table_and_keeps_each_table(hidden):
    layout = hidden.sealed.layout
    ends = np.cumsum(layout.cells)
    natural = np.arange(layout.n_cells)
    sent = layout.sent(natural, hidden.plan)
    tables = [sent[end - n : end] - (end - n) for n, end in zip(layout.cells, ends, strict=True)]
    assert all((np.sort(one) == np.arange(len(one))).all() for one in tables)
    assert len({one.tobytes() for one in tables}) > 0.9 * len(tables)
    first = np.array([one[0] for one in tables if len(one) >= 16])
    assert (first == 0).mean() < 0.25
    np.testing.assert_array_equal(layout.restored(sent, hidden.plan), natural)


def test_a_site_compares_and_models_the_same_whatever_the_order(hidden):
    site = hidden.those.sites["s01"]
    release = hidden.sealed.open(hidden.plan)
    one, other = (Comparison.of(result, site.book) for result in (hidden.sealed, release))
    assert (one.strange, one.own_rows, one.fits) == pytest.approx(
        (other.strange, other.own_rows, other.fits)
    )
    answer = site.book.answer(hidden.round.round_id).under(hidden.plan)
    np.testing.assert_array_equal(answer.counts, site.sketch(hidden.plan).counts)
    model = LocalModel.of(release, answer.share.release, answer.sent, answer.counts)
    others = (s for s in hidden.those.sites.values() if s is not site)
    exact = sum(s.sketch(hidden.plan).counts for s in others) + answer.counts
    np.testing.assert_allclose(model.counts, exact, atol=8 * release.noise_sd)


def test_a_coordinator_cannot_ask_for_the_order_of_the_plan(hidden):
    plain = Layout(**{**vars(hidden.round.layout), "shuffled": False})
    site = hidden.those.sites["s00"]
    with pytest.raises(PlanError, match="in their original order"):
        Reply(hidden.those.open(plan=plain), site.keys, site.book, plan=hidden.plan, at=T0)
    assert "shuffled" not in plain.to_dict()
    assert Layout.from_dict(hidden.round.layout.to_dict()).shuffled


def test_a_result_of_before_opens_in_its_own_order(hidden):
    before = Layout(**{**vars(hidden.sealed.layout), "shuffled": False})
    old = Sealed(before, hidden.sealed.counts, hidden.sealed.ledger)
    np.testing.assert_array_equal(old.open(hidden.plan).counts, old.counts)
