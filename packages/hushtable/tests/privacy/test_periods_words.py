"""What is said of periods: what the cost covers, what a file holds, and what it does not."""

import re

import numpy as np
import pytest

from hushtable import Feature, Periods, Plan, Schema, Sketch, decoded, drift, files, load
from hushtable.counts import rounds
from hushtable.describe import describe_ledger
from hushtable.describe import plan as words
from hushtable.describe.ledger import ledger_lines
from hushtable.errors import FileError, UsageError
from hushtable.privacy import Horizon
from hushtable.scores.scorer import Scorer

pytest.importorskip("opendp")

SCHEMA = Schema([Feature.numeric("a", low=-6, high=6)])
SMALL = {"epsilon": 1.0, "expected_rows": 2_000, "n_tables": 4, "n_cells": 16, "random_state": 0}


def stream(horizon, months=3, **terms):
    """Return a site's periods and what it released."""
    plan = Plan.draw(SCHEMA, horizon=horizon, **SMALL)
    site, rng = Periods(plan, epsilon=1.0, **terms), np.random.default_rng(0)
    rows = [Sketch.from_data(plan, rng.normal(size=(50, 1))) for _ in range(months)]
    return site, [site.release(one) for one in rows]


@pytest.mark.parametrize(
    ("horizon", "rows", "who"),
    [
        (4, 1, "one record"),
        (4, 3, "all records of one person (up to 3, in one period)"),
        (Horizon.of(6, 2), 1, "all records of one person (one in a period, in up to 2 periods)"),
        (
            Horizon.of(9, 2, 4), 3,
            "all records of one person (up to 3 in a period, in up to 2 periods, 4 or more apart)",
        ),
    ],
)  # fmt: skip
def test_the_words_say_whose_rows_in_which_periods(horizon, rows, who):
    site, increments = stream(horizon, rows_per_person=rows)
    last = site.horizon.periods
    sums = decoded(increments), decoded(increments, window=1), decoded(increments, window=2)
    holds = ("periods 1 to 3", "period 3", "periods 2 to 3")
    said = [f"the decoded sum of {which} of {last}" for which in holds]
    said = [f"the increment of period 3 of {last}", *said]
    for thing, which in zip((increments[-1], *sums), said, strict=True):
        first, second, third, *more = describe_ledger(thing.ledger)
        assert first.startswith(f"Adding or removing {who} changes the probability of anything")
        assert f"that the files of all {last} periods show together" in first
        stated = float(re.search(r"e\^([\d.]+)", first)[1])
        assert stated >= thing.ledger.epsilon  # which is that of all periods
        assert second == f"That is the total over all 4 tables of all {last} periods."
        assert third == f"This file holds {which}; those of the other periods cost nothing more."
        assert not more


def test_two_streams_are_two_costs():
    _, north = stream(4)
    plan = north[0].plan
    other = Periods(plan, epsilon=1.0)
    both = north[0] + other.release(Sketch.zero(plan))
    assert "for one at 2 sites the factor is e^1.4" in describe_ledger(both.ledger)[-1]
    assert both.ledger.epsilon_at(2) > 1.3


def test_a_horizon_of_one_reads_like_one_release():
    _, (increment,) = stream(1, months=1)
    first, second, third = describe_ledger(decoded([increment]).ledger)
    assert "anything that this file shows" in first
    assert second == "That is the total over all 4 tables."
    assert third == "This file holds the decoded sum of period 1 of 1."
    assert "period" not in ledger_lines(increment.ledger, 1.0)["Neighbours"]


def test_lines_state_which_periods_were_released():
    site, increments = stream(4)
    assert words.periods_lines(site) == {"Periods": "3 of 4 released", "Rows counted": "50, 50, 50"}
    assert ledger_lines(increments[-1].ledger, 1.0)["Holds"] == "the increment of period 3 of 4"
    assert words.n_periods(site.horizon) == "4 periods at one total"
    late = Periods(site.plan, epsilon=1.0, start=3)
    assert words.periods_lines(late) == {"Periods": "none of 4 released yet"}
    late.release(Sketch.zero(site.plan))
    assert words.periods_lines(late)["Periods"] == "3 of 4 released, from period 3 on"
    assert words.rows_of_periods(late) == [0]


def test_increments_are_no_counts_of_rows():
    """A mix of periods would score rows, and compare with others, and mean nothing."""
    _, increments = stream(4)
    for use in (
        lambda: Scorer(increments[0]),
        lambda: drift(increments[0], increments[1]),
        lambda: rounds.ranks(increments[0]),
    ):
        with pytest.raises(UsageError, match="hushtable decode"):
            use()
    with pytest.raises(UsageError, match="a second pass cannot follow"):
        rounds.gate(decoded(increments))


# --- files that were damaged on purpose ---------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda said, arrays: said.update(start=5),
        lambda said, arrays: said.update(start=0),
        lambda said, arrays: said["terms"].update(epsilon=0.5),
        lambda said, arrays: said["terms"].update(rows_per_person=2),
        lambda said, arrays: said["terms"].update(mechanism="discrete-laplace"),
        lambda said, arrays: said["terms"].update(more=1),
        lambda said, arrays: arrays.update(counts=arrays["counts"][:2]),
        lambda said, arrays: arrays.update(counts=np.int64(3)),
        lambda said, arrays: arrays.update(counts=-arrays["counts"]),
        lambda said, arrays: arrays.update(counts=arrays["counts"].astype(np.float64)),
        lambda said, arrays: arrays.update(
            counts=np.tile(arrays["counts"], (2, 1)), released=np.tile(arrays["released"], (2, 1))
        ),
        lambda said, arrays: arrays.pop("released"),
        lambda said, arrays: said.pop("ledger"),
    ],
)
def test_periods_that_do_not_fit_are_refused(tmp_path, change):
    site, _ = stream(4)
    site.save(tmp_path / "a.hush")
    content = files.read(tmp_path / "a.hush")
    apart = ("arrays", "digest", "writer", "protocol", "kind")
    said = {key: value for key, value in content.manifest.items() if key not in apart}
    arrays = dict(content.arrays)
    change(said, arrays)
    files.write(tmp_path / "b.hush", "periods", said, {k: np.array(v) for k, v in arrays.items()})
    with pytest.raises(FileError, match=r"b\.hush"):
        load(tmp_path / "b.hush")


def test_a_file_goes_on_where_it_was(tmp_path):
    site, increments = stream(4)
    site.save(tmp_path / "a.hush")
    again = load(tmp_path / "a.hush")
    np.testing.assert_array_equal(again.counts, site.counts)
    assert again.terms == site.terms
    last = again.release(Sketch.zero(site.plan))
    assert decoded([*increments, last]).ledger.shares == increments[0].ledger.shares
