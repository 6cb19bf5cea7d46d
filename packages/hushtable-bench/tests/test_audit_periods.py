"""Audits of a stream: periods stand, and what goes wrong over periods is found."""

from contextlib import contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pytest

from hushtable import Feature, Periods, Plan, Schema, Sketch, load
from hushtable.errors import UsageError
from hushtable.privacy import Horizon
from hushtable.privacy.mechanisms import add_noise
from hushtable_bench.systems.audit import _mixed, apart, audit_periods

#: A correct stream fails a test at this confidence once in ten million runs.
SURE = 1 - 1e-7
SCHEMA = Schema([Feature.numeric(f"x{j}", low=0, high=1) for j in range(16)])
CLAIM = {"epsilon": 4.0, "delta": 1e-6}
ONE, THREE = Horizon.of(12), Horizon.of(12, participations=3, apart=4)


def columns(planted):
    return patch.object(Horizon, "columns", property(planted))


def one_period():
    """Charge once for all periods, with the noise for one: forget that rows stay in later ones."""
    return columns(lambda horizon: np.array(horizon.factor[:1]))


def one_period_less():
    """Make the noise for a person in one period, although there are rows in two."""
    right = Horizon.columns.fget
    return columns(lambda horizon: right(replace(horizon, participations=1)))


@contextmanager
def noise_again():
    """Draw new noise each time that a period is requested."""
    mixed, kept, latest = Horizon.mixed, Periods.increment, {}

    def noted(horizon, counts):
        latest[len(counts)] = mixed(horizon, counts)
        return latest[len(counts)]

    def increment(site, period):
        honest = kept(site, period)
        counts = add_noise(latest[period], honest.ledger.mechanism, site.share.scale)
        return replace(honest, counts=counts)

    with patch.object(Horizon, "mixed", noted), patch.object(Periods, "increment", increment):
        yield


class Stream:
    """A plan of deep tables, and persons who share no cell of it."""

    def __init__(self, horizon):
        deep = {"n_tables": 2, "n_cells": 256, "min_depth": 16, "max_depth": 16}
        laid = {"epsilon": 4.0, "expected_rows": 50, "random_state": 0}
        self.plan = Plan.draw(SCHEMA, horizon=horizon, **laid, **deep)
        rng = np.random.default_rng(1)
        self.rows, self.others = apart(self.plan, rng.random((800, 16))), rng.random((50, 16))

    def publish(self, months):
        """Release each month from a site's file to an increment's file; request each twice."""
        with TemporaryDirectory() as folder:
            path, kept, published = f"{folder}/increment.hush", f"{folder}/site.hush", []
            Periods(self.plan, **CLAIM).save(kept)
            for month in months:
                site, sketch = load(kept), Sketch.from_data(self.plan, month)
                site.release(sketch).save(path)
                first = load(path)
                site.save(kept)
                site.release(sketch, period=len(site)).save(path)
                again = load(path)
                # Repeating the same increment reveals nothing more.
                same = np.array_equal(first.counts, again.counts)
                published += [first] if same else [first, again]
            return published

    def audit(self, releases, publish=None, confidence=0.95, **more):
        """Audit with so many releases of the stream, with the persons and without, each."""
        finding = audit_periods(
            publish or self.publish, self.plan, self.others, self.rows, trials=releases,
            confidence=confidence, **CLAIM, **more,
        )  # fmt: skip
        print(finding.words())
        return finding


@pytest.fixture(scope="module")
def one():
    return Stream(ONE)


def test_a_stream_stands(one):
    finding = one.audit(4, confidence=SURE)
    assert not finding.rejects, finding.words()
    # Far from blind: the best attack on Gaussian noise of this epsilon has an area of .726.
    assert finding.auc == pytest.approx(0.726, abs=0.08)


@pytest.mark.slow
def test_noise_for_one_period_is_found(one):
    """One charge for twelve periods, and noise as if rows were in the release of one."""
    with one_period():
        assert one.audit(16).rejects


@pytest.mark.slow
def test_a_person_in_a_period_more_is_found(one):
    assert one.audit(4, periods=(1, 2)).rejects


@pytest.mark.slow
def test_noise_that_is_drawn_again_is_found(one):
    with noise_again():
        assert one.audit(12).rejects


@pytest.mark.slow
def test_noise_for_a_person_in_one_period_is_found_where_two_are_allowed():
    with one_period_less():
        assert Stream(Horizon.of(12, 2, 6)).audit(40).rejects


@pytest.mark.slow
@pytest.mark.parametrize("horizon", [ONE, THREE], ids=["one", "three"])
def test_thousands_of_trials_come_near_the_claim(horizon):
    """So near that noise of nine tenths of the scale would be found, and the right one stands."""
    stream = Stream(horizon)
    finding = stream.audit(80, confidence=SURE)
    assert not finding.rejects
    assert finding.bound > 3.0


@pytest.mark.slow
@pytest.mark.parametrize(("periods", "releases"), [((1, 4, 7, 10), 40), ((1, 2, 3), 12)])
def test_more_periods_or_closer_ones_than_a_horizon_allows_are_found(periods, releases):
    assert Stream(THREE).audit(releases, periods=periods).rejects


@pytest.mark.slow
def test_one_period_from_an_old_copy_of_the_file_is_found(one, tmp_path):
    """A copy from before a release draws new noise: one period is there twice, the others once."""

    def publish(months):
        site = Periods(one.plan, **CLAIM)
        site.save(tmp_path / "old.hush")
        sketches = [Sketch.from_data(one.plan, month) for month in months]
        again = load(tmp_path / "old.hush").release(sketches[0])
        return [*map(site.release, sketches), again]

    assert one.audit(60, publish).rejects


def test_rows_of_known_people_are_no_help(one):
    """All that others add is known: what is left without the persons is noise alone."""

    def exact(months):
        site = Periods(one.plan, **CLAIM)
        site.share = type(site.share)(site.share.release, 1e-9, site.share.library)
        counts = [Sketch.from_data(one.plan, month) for month in months]
        return [site.release(sketch) for sketch in counts]

    assert one.audit(1, exact).auc == 1.0


def test_how_often_rows_are_in_each_increment():
    horizon = Horizon((4, 2, 1, 0))
    assert _mixed(horizon, {1}).tolist() == [4, 2, 1, 0]
    assert _mixed(horizon, {2, 4}).tolist() == [0, 4, 2, 5]
    for horizon, chosen in ((ONE, {1}), (THREE, {1, 5, 9})):
        assert (_mixed(horizon, chosen) == horizon.columns).all()


def test_an_audit_of_periods_says_what_it_needs(one):
    other = Plan.draw(SCHEMA, epsilon=1.0, expected_rows=50, horizon=12, random_state=1)
    exact = Plan.draw(SCHEMA, random_state=0, n_tables=2)

    def elsewhere(months):
        return [Periods(other, **CLAIM).release(Sketch.zero(other))]

    with pytest.raises(UsageError, match="no horizon: attack its releases with audit_neighbours"):
        audit_periods(one.publish, exact, one.others, one.rows, **CLAIM)
    with pytest.raises(UsageError, match="increment of another plan"):
        one.audit(1, elsewhere)
    for periods in ((), (1, 1), (0,), (13,)):
        with pytest.raises(UsageError, match="period"):
            one.audit(1, periods=periods)
