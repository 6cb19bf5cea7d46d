"""A round in a folder under seeded chaos: the exact sum or a clear state, one charge."""

import os
import time
from collections import Counter

import numpy as np
import pytest
from chaos import World


@pytest.fixture
def world(tmp_path, monkeypatch):
    """Return what runs share, with noise that is drawn fast."""
    rng = np.random.default_rng(1)

    def add_noise(counts, mechanism, scale, *, progress=None):
        return counts + np.rint(rng.normal(0.0, scale, len(counts))).astype(np.int64)

    monkeypatch.setattr("hushtable.privacy.mechanisms.add_noise", add_noise)
    return World(tmp_path, monkeypatch)


def storm(world, seeds):
    """Run these seeds; return how often each outcome came."""
    outcomes, counts, start = Counter(), Counter(), time.perf_counter()
    for seed in seeds:
        run = world.run(seed)
        try:
            outcomes[run.check()] += 1
        except AssertionError as error:
            raise AssertionError(f"run {seed}, least {run.least}: {error}") from error
        counts += run.counts
    print(f"{sum(outcomes.values())} runs in {time.perf_counter() - start:.0f} s")
    for word, n in (*outcomes.most_common(), *counts.most_common()):
        print(f"{n:8,} {word}")
    return outcomes


def test_some_runs(world):
    outcomes = storm(world, range(3, 6))
    assert outcomes["sum of all"] + outcomes["sum without some"] >= 1


#: HUSHTABLE_CHAOS=500 takes a quarter of an hour.
RUNS = int(os.environ.get("HUSHTABLE_CHAOS", "40"))


@pytest.mark.slow
def test_many_runs(world):
    outcomes = storm(world, range(1000, 1000 + RUNS))
    assert outcomes["sum without some"] > RUNS / 5
