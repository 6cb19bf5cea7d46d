"""The scripts on expectations and on years run through on tiny made-up data."""

import argparse
import json
from functools import partial

import numpy as np
import pytest

import expectations
import periods
import rows


def save_sets(folder, rng, names):
    for name in names:
        X = rng.normal(size=(200, 3))
        X[:20] += 4.0
        np.savez(folder / f"{name}.npz", X=X, y=np.arange(200) < 20)


@pytest.mark.slow
def test_expectations_are_fitted_and_held_to_outcomes(tmp_path, results, capsys, monkeypatch, rng):
    names = "set 0", "set 2"
    assert [expectations.kept_out(name) for name in names] == [False, True]
    save_sets(tmp_path, rng, names)
    monkeypatch.setattr(expectations, "ROWS", (200,))
    monkeypatch.setattr(expectations, "EPSILONS", (0.1, 3.0))
    expectations.main(argparse.Namespace(data=[tmp_path], seeds=1, quick=False))
    printed = capsys.readouterr().out
    assert "Fit on 1 sets" in printed
    assert "1 sets, kept out" in printed
    assert "mostly noise: nothing promised" in printed
    kept = json.loads((results / "expectations.json").read_text())
    assert len(kept["outcomes"]) == 2 * 2


def test_the_fit_finds_the_law_that_outcomes_follow():
    def case(name, signal, lost):
        return expectations.Case(name, 1000, 1.0, signal, lost, lost)

    signals = np.geomspace(25.0, 1000.0, 40)
    law = [case("a", t, expectations.LOSS / t) for t in signals]
    fit = expectations.fitted(law)
    assert (fit.loss, fit.power) == pytest.approx((expectations.LOSS, 1.0), rel=1e-3)
    (target,) = expectations.targets(law)
    assert target.met
    missed = [case("b", t, expectations.LOSS / t + 2.1) for t in signals[:11]]
    (target,) = expectations.targets([*law, *missed])
    assert target.measured == pytest.approx(40 / 51)
    assert not target.met
    noise = [case("c", 5.0, 40.0)]
    assert expectations.targets(noise) == []
    assert "nothing promised" in expectations.table(law + noise)


@pytest.mark.slow
def test_a_stream_is_scored_beside_other_ways(tmp_path, results, capsys, monkeypatch, rng):
    save_sets(tmp_path, rng, ["one", "other"])
    monkeypatch.setattr(rows, "LARGE", 200)
    for name, value in {"TOTAL": 3.0, "MONTHS": 4, "AFTER": (1, 2, 4), "MOST": {4: 50.0}}.items():
        monkeypatch.setattr(periods, name, value)
    monkeypatch.setattr(periods, "_plan", partial(periods._plan, n_tables=10))
    measure = periods.measure_noise
    monkeypatch.setattr(periods, "measure_noise", lambda months: measure(months, rows=400))
    periods.main(argparse.Namespace(data=tmp_path, rows=200, seeds=1, quick=False))
    printed = capsys.readouterr().out
    assert "Mean ROC-AUC of 2 sets" in printed
    kept = json.loads((results / "periods.json").read_text())
    assert len(kept["runs"]) == 2 * len(periods.WAYS) * 3
    assert [one["way"] for one in kept["noise"]] == list(reversed(periods.WAYS))
    by_way = {one["way"]: one["variance"] for one in kept["noise"]}
    assert by_way[periods.ONCE] == 1.0 < by_way[periods.HORIZON] < by_way[periods.AGAIN] < 5.0


def test_other_ways_have_the_noise_that_they_have_elsewhere():
    of = {way: periods.noises(way, 60, 60) for way in (periods.MERGED, periods.TREE, periods.AGAIN)}
    assert list(of.values()) == [60, 28, 60]
    assert periods.noises(periods.TREE, 12, 12) == 10
    assert periods.noises(periods.MERGED, 6, 60) == 6


def test_a_stream_is_judged():
    def run(way, months, auc):
        return periods.Run("a", 10, way, 0, months, auc)

    runs = [run(periods.HORIZON, t, 80.0) for t in periods.AFTER]
    runs += [run(periods.ONCE, t, 82.1 if t == 30 else 81.0) for t in periods.AFTER]
    noise = [periods.Noise(periods.HORIZON, 12, 3.7, 9, 1.0, "")]
    assert [t.met for t in periods.targets(noise, runs)] == [False, True, False, True]
