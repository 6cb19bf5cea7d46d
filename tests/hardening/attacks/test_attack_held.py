"""Attacks that found nothing, and what people stumbled over: kept, so that it stays so."""

import itertools
from datetime import timedelta

import numpy as np
import pandas as pd
import pytest

from hushtable import Feature, Plan, Schema, Sketch
from hushtable.counts import rounds
from hushtable.errors import DataError
from hushtable_federation.clock import now
from round_helpers import T0, Consortium, Online

ODD = Schema(
    [
        Feature.numeric("a", low=-1, high=1),
        Feature.numeric("c", low=2, high=2),
        Feature.categorical("b", ["x", "y", "z"]),
        Feature.numeric("e", low=0, high=1e9),
    ]
)
DETECTORS = ("ace", "hushtable", "lsh_itables", "rotated_rs_hash", "rs_hash")


def odd_rows(rng, n):
    """Rows with missing, outside and unseen values."""
    return pd.DataFrame(
        {
            "a": np.where(rng.random(n) < 0.2, np.nan, rng.normal(0, 2, n)),
            "c": np.full(n, 2.0),
            "b": rng.choice(np.array(["x", "y", "z", "unseen", None], object), n),
            "e": np.where(rng.random(n) < 0.1, np.nan, rng.normal(0, 1e10, n)),
        }
    )


def all_plans(rows):
    plans = [Plan.draw(ODD, detector=name, random_state=1, n_tables=20) for name in DETECTORS]
    plans += [Plan.marginals(ODD), Plan.ranges(ODD, epsilon=5.0, expected_rows=100_000)]
    return plans + [
        rounds.ranks(Sketch.from_data(plan, rows).release(1.0)) for plan in plans[1:5:3]
    ]


def test_a_row_changes_one_cell_of_each_histogram_by_its_weight(rng):
    """sens: for every family, with missing, outside, unseen and weighted rows."""
    rows = odd_rows(rng, 300)
    for plan in all_plans(rows):
        base, offsets = Sketch.from_data(plan, rows).counts, plan.family.offsets
        for _ in range(15):
            weight = int(rng.integers(1, 4))
            more = pd.concat([rows, odd_rows(rng, 1)], ignore_index=True)
            counts = Sketch.from_data(plan, more, sample_weight=[1] * 300 + [weight]).counts
            change = counts - base
            for first, last in itertools.pairwise(offsets):
                assert (change[first:last] != 0).sum() == 1
                assert change[first:last].sum() == weight


@pytest.mark.parametrize(("n", "least"), [(5, 4), pytest.param(20, 15, marks=pytest.mark.slow)])
def test_messages_of_the_online_form_are_small(tmp_path, n, least):
    """M_mail: one site lost after masking; at most 200 kB a step. By folder: test_folder."""
    those = Consortium(tmp_path, n)
    plan = Plan.draw(those.plan.schema, random_state=0, epsilon=1.0, expected_rows=7000)
    round_ = those.open(plan=plan, least=least, at=now(), deadline=now() + timedelta(days=1))
    online = Online(those, round_, {"unmask": ["s00"]})
    result = online.run()
    sent = sum(site.sent(round_) for site in those.sites.values())
    np.testing.assert_array_equal(result.counts, sent)
    assert max(len(content) for line in online.log for content in line[2:]) < 200_000
    those.close()


def test_a_file_in_the_wrong_unit_spends_nothing(tmp_path):
    """submit recorded and wrote first, then said that most rows lie outside: the round was dead."""
    those = Consortium(tmp_path, 2)
    site, round_ = those.sites["s00"], those.open()
    right = site.X
    site.X = right * 100.0
    before = site.book.head
    with pytest.raises(DataError, match=r"outside the round's range.*'x0'.*--outside-too"):
        site.submit(round_)
    assert (site.book.answers(), site.book.head) == ([], before)
    site.X = right
    site.submit(round_, at=T0)
    assert len(site.book.answers()) == 1
    those.close()
