"""Histories of entities with many readings: the compiled loop against the oracle, and odd rows."""

import math

import numpy as np
import pyarrow as pa
import pytest

import naive
from hushtable import HushTable, kernels
from hushtable.data.history import History, _State, history_columns
from hushtable.errors import DataError

NAMES = {"entity": "machine", "time": "at"}
ADDED = ["load place", "load change", "load spread", "since"]


def columns(table):
    return np.column_stack([table[name].to_numpy() for name in ADDED])


def same(a, b):
    """Whether two arrays are equal bit for bit, with NaN in the same places."""
    return np.array_equal(a, b, equal_nan=True) and np.array_equal(np.signbit(a), np.signbit(b))


def odd_readings(rng, n):
    """Values (n, 5): numbers, whole numbers, one number and few others, wild ones, tiny ones."""
    some = rng.normal(70.0, 9.0, n)
    wild = np.where(rng.random(n) < 0.05, some * 10.0 ** rng.integers(2, 300, n), some)
    alike = np.where(
        rng.random(n) < 0.03, some, rng.choice([0.1, -0.0, 0.0], n, p=[0.9, 0.05, 0.05])
    )
    x = np.column_stack([some, some.round(-1), alike, wild, some * 5e-324])
    return np.where(rng.random(x.shape) < 0.15, np.nan, x)


@pytest.mark.usefixtures("each_build")
@pytest.mark.parametrize("entities", [1, 2, 7, 150])
def test_the_loop_over_readings_equals_the_oracle(rng, entities):
    n = 1500
    x, who = odd_readings(rng, n), rng.integers(0, entities, n)
    seconds, hours = rng.integers(0, 900, n) * 60.0, rng.integers(0, 24, n) // 8
    order = np.lexsort((seconds, who))
    state = _State(5).grown(entities)
    found, gaps = np.empty((6, n, 5)), np.empty(n)
    kernels.compare_readings(
        order, who, seconds, hours, x, tuple(vars(state).values()), found, gaps
    )
    for one in range(entities):
        rows = order[who[order] == one]
        assert same(gaps[rows], np.diff(seconds[rows], prepend=np.nan))
        for j in range(5):
            expected = np.array(naive.compared(x[rows, j].tolist(), hours[rows].tolist()))
            ours = found[:, rows, j].T
            assert np.array_equal(ours, expected, equal_nan=True), (one, j)


def readings(who, at, load):
    return pa.table({"machine": pa.array(who), "at": np.asarray(at, np.float64), "load": load})


@pytest.mark.parametrize("n", [1000, pytest.param(10**6, marks=pytest.mark.slow)])
@pytest.mark.parametrize("parts", [1, 3])
def test_an_entity_that_comes_back_after_many_rows_of_others(rng, n, parts):
    who = np.concatenate([np.zeros(200, int), rng.integers(1, 40, n), np.zeros(200, int)])
    at, load = np.sort(rng.integers(0, 10**8, len(who))), rng.normal(50.0, 5.0, len(who))
    table, mine = readings(who, at, load), who == 0
    alone = columns(history_columns(table.filter(pa.array(mine)), **NAMES))
    history, step = History(**NAMES), len(who) // parts + 1
    found = [columns(history.update(table.slice(a, step))) for a in range(0, len(who), step)]
    assert same(np.concatenate(found)[mine], alone)
    gap = at[200 + n] - at[199]
    assert alone[200, 3] == np.log2(1.0 + gap)


def test_readings_at_equal_times_stay_in_the_order_of_rows_whatever_is_between(rng):
    who, load = rng.integers(0, 3, 900), rng.normal(size=900)
    at = np.sort(rng.integers(0, 30, 900))  # about ten readings of an entity at each time
    table = readings(who, at, load)
    whole = columns(history_columns(table, **NAMES))
    assert (whole[:, 3] == 0.0).mean() > 0.8
    for one in range(3):
        alone = table.filter(pa.array(who == one))
        assert same(columns(history_columns(alone, **NAMES)), whole[who == one])
    history = History(**NAMES)  # the second part begins at the time at which the first one ends
    middle = int(np.flatnonzero(at == 15)[7])
    parts = [history.update(part) for part in (table.slice(0, middle), table.slice(middle))]
    assert same(np.concatenate([columns(part) for part in parts]), whole)
    table = table.set_column(1, "at", pa.array((3600 * at).astype("datetime64[s]")))
    model = HushTable(random_state=0, **NAMES).fit(table)
    again = HushTable(random_state=0, **NAMES).fit(table.take(np.argsort(who, kind="stable")))
    assert same(model.score_samples(table), again.score_samples(table))


def test_missing_and_infinite_readings_and_times(rng):
    who, at, load = rng.integers(0, 2, 400), np.arange(400.0), rng.normal(size=400)
    load[rng.random(400) < 0.3], at[[5, 90, 300]] = np.nan, [np.nan, np.inf, -np.inf]
    table = readings(who, at, load)
    found = columns(history_columns(table, **NAMES))
    assert np.isnan(found[[5, 90, 300]]).all()  # no time: not in the history of others either
    timed = np.isfinite(at)
    assert same(found[timed], columns(history_columns(table.filter(pa.array(timed)), **NAMES)))
    assert np.isnan(found[np.isnan(load), :3]).all()
    stamped = table.set_column(
        1, "at", pa.array((3600 * np.where(timed, at, np.nan)).astype("datetime64[s]"))
    )
    model = HushTable(random_state=0, **NAMES).fit(stamped)
    assert np.isfinite(model.score_samples(stamped)).all()
    load[17] = -math.inf
    infinite = stamped.set_column(2, "load", pa.array(load))
    for call in (model.score_samples, model.fit):
        with pytest.raises(DataError, match=r"load.* '?-inf'? in row 17"):
            call(infinite)
