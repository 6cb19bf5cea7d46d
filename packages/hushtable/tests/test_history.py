"""Readings beside the history of their entity: the columns, what they may not see, refusals."""

import datetime as dt
import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import naive
from hushtable.errors import DataError, UsageError
from hushtable.history import History, history_columns

NAMES = {"entity": "patient", "time": "at"}
COLUMNS = ["place", "change", "spread"]


# --- from the definitions ------------------------------------------------------------------------


def normal(t, n):
    """Wallace's approximation: Student's t with n degrees of freedom as standard normal."""
    if n < 1:
        return math.nan
    z = (8 * n + 1) / (8 * n + 3) * math.sqrt(n * math.log1p(t * t / n))
    return math.copysign(z, t)


def in_columns(place, known, change, changes, spread, usual):
    """Return the three columns of one reading from what the oracle says of it."""
    if not math.isnan(spread):
        spread = math.log(spread / usual + 0.01) if usual > 0 else 0.0
    return normal(place, known), normal(change, changes), spread


def plain(frame, values):
    """Return the columns (n, 3 d + 1) of a frame."""
    columns = np.full((len(frame), 3 * len(values) + 1), np.nan)
    timed = frame.dropna(subset=["patient", "at"]).sort_values("at", kind="stable")
    for _, rows in timed.groupby("patient"):
        hours = (rows["at"] // 3600 % 24).astype(int).tolist()
        for j, name in enumerate(values):
            found = naive.compared(rows[name].tolist(), hours)
            columns[rows.index, 3 * j : 3 * j + 3] = [in_columns(*one) for one in found]
        columns[rows.index[1:], -1] = np.log2(1 + np.diff(rows["at"]))
    return columns


def panel(seed, *, n=400, gaps=0.1):
    """Readings of some patients in any order: ties, runs of one value, missing values, wild ones.

    One patient has a single reading, and one always the same value.
    """
    rng = np.random.default_rng(seed)
    who = rng.choice([*"abcd", "constant"], n)
    who[rng.integers(n)] = "once"
    pulse = np.where(who == "constant", 0.1, rng.normal(70, 9, n).round(1))
    wild = rng.random(n) < 0.03
    pulse[wild & (who != "constant")] *= rng.choice([-50, 1e4], (wild & (who != "constant")).sum())
    heat = rng.integers(36, 39, n).astype(float)
    at = rng.integers(-9, 300, n) * 1800.0
    heat[rng.random(n) < gaps], pulse[rng.random(n) < gaps] = np.nan, np.nan
    at[rng.random(n) < gaps / 3] = np.nan
    patient = np.where(rng.random(n) < gaps / 3, None, who.astype(object))
    return pd.DataFrame({"pulse": pulse, "patient": patient, "at": at, "heat": heat})


def added(result, values=("pulse", "heat")):
    names = [*(f"{v} {what}" for v in values for what in COLUMNS), "since"]
    return np.column_stack([np.asarray(result[name], np.float64) for name in names])


def same(a, b):
    """Whether two arrays are the same bit for bit, with NaN in the same places."""
    return np.array_equal(a, b, equal_nan=True)


@pytest.mark.parametrize("seed", range(8))
def test_the_columns_follow_from_their_definitions(seed):
    frame = panel(seed, gaps=0.1 * (seed % 2))
    found = added(history_columns(frame, **NAMES))
    expected = plain(frame, ["pulse", "heat"])
    assert np.isfinite(expected).mean() > 0.6
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


def test_a_value_that_was_the_same_by_chance_makes_no_other_one_unusual():
    pulse = [60, 64, 62, 61, 61, 62]  # the third is the mean of those before
    readings = {"patient": ["a"] * 6, "at": np.arange(6) * 86_400.0, "pulse": pulse}
    place = history_columns(pa.table(readings), **NAMES)["pulse place"].to_numpy()
    assert np.abs(place[2:]).max() < 1.0


def test_after_a_long_run_of_one_value_another_one_is_unusual():
    for length, known in ((2, False), (5, False), (7, True), (60, True)):
        pulse = [60.0] * length + [61.0]
        readings = {"patient": ["a"] * len(pulse), "at": np.arange(len(pulse)) * 600.0}
        last = added(history_columns(pa.table(readings | {"pulse": pulse}), **NAMES), ["pulse"])[-1]
        assert (last[:2] > 4.0).all() if known else np.isnan(last[1])


def test_of_one_reading_or_a_missing_one_nothing_is_known():
    frame = panel(0)
    found = added(history_columns(frame, **NAMES))
    lost = frame["patient"].isna() | frame["at"].isna()
    assert lost.any()
    assert np.isnan(found[lost | (frame["patient"] == "once")]).all()
    assert np.isnan(found[frame["pulse"].isna(), :3]).all()


# --- what the columns may not depend on -----------------------------------------------------------


def test_later_readings_change_nothing_earlier():
    frame = panel(1)
    before = added(history_columns(frame, **NAMES))
    late = (frame["at"] > 200_000).to_numpy()
    changed = frame.copy()
    changed.loc[late, ["pulse", "heat"]] *= -7.0
    changed.loc[late & (frame["patient"] == "a"), "patient"] = "e"
    after = added(history_columns(changed, **NAMES))
    assert same(before[~late], after[~late])
    assert not same(before[late], after[late])
    assert same(before[~late], added(history_columns(frame[~late], **NAMES)))


@pytest.mark.parametrize("parts", [2, 7])
def test_updates_one_after_the_other_are_as_one_update(parts):
    frame = panel(3).sort_values("at", kind="stable")
    whole = added(history_columns(frame, **NAMES))
    history, found = History(**NAMES), []
    for rows in np.array_split(np.arange(len(frame)), parts):
        found.append(added(history.update(frame.iloc[rows])))
        history = pickle.loads(pickle.dumps(history))
    assert same(np.concatenate(found), whole)


def test_the_order_of_rows_does_not_matter():
    frame = panel(4).drop_duplicates(["patient", "at"])
    order = np.random.default_rng(0).permutation(len(frame))
    whole = added(history_columns(frame, **NAMES))
    assert same(added(history_columns(frame.iloc[order], **NAMES)), whole[order])


def test_the_size_of_a_history_does_not_grow_with_rows():
    history, sizes = History(**NAMES), []
    for day in range(4):
        at = day * 86_400 + 600.0 * np.arange(144)
        history.update(pa.table({"patient": [7] * 144, "at": at, "pulse": at % 37}))
        sizes.append(len(pickle.dumps(history)))
    assert len(set(sizes)) == 1


# --- kinds of frames, entities and times ----------------------------------------------------------


def test_the_kind_of_frame_that_came_in_comes_back():
    frame = panel(5).set_index(np.arange(400) // 2)
    found = history_columns(frame, **NAMES)
    pd.testing.assert_frame_equal(found[list(frame.columns)], frame)
    assert isinstance(history_columns(pl.from_pandas(frame), **NAMES), pl.DataFrame)
    assert isinstance(history_columns(pl.from_pandas(frame).lazy(), **NAMES), pl.DataFrame)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    for other in (pl.from_pandas(frame), table, table.to_batches()[0], table.to_pylist()):
        assert same(added(history_columns(other, **NAMES)), added(found))
    assert isinstance(history_columns(table, **NAMES), pa.Table)
    assert table.schema.names == history_columns(table, **NAMES).column_names[:4]


def test_entities_are_texts_or_whole_numbers():
    frame = panel(6).dropna(subset="patient")
    texts = added(history_columns(frame, **NAMES))
    number = frame["patient"].factorize()[0] + 2**60
    for whose in (number, frame["patient"].astype("category")):
        assert same(added(history_columns(frame.assign(patient=whose), **NAMES)), texts)
    gaps = frame["patient"].where(frame["pulse"].notna()).factorize()[0].astype(float)
    gaps[gaps < 0] = np.nan
    found = added(history_columns(frame.assign(patient=gaps), **NAMES))
    assert np.isnan(found[np.isnan(gaps)]).all()


def test_times_are_timestamps_dates_or_seconds():
    frame = panel(7)
    seconds = added(history_columns(frame, **NAMES))
    stamps = pd.to_datetime(frame["at"], unit="s")
    assert same(added(history_columns(frame.assign(at=stamps), **NAMES)), seconds)
    whole = frame.assign(at=frame["at"] // 86_400 * 86_400)
    days = [None if math.isnan(s) else dt.date(1970, 1, 1) + dt.timedelta(s // 86_400)
            for s in frame["at"]]  # fmt: skip
    of_days = added(history_columns(frame.assign(at=days), **NAMES))
    assert same(of_days, added(history_columns(whole, **NAMES)))


def test_hours_are_by_the_zone_of_timestamps():
    winter = [dt.datetime(2024, 3, day, 6, tzinfo=dt.UTC) for day in (27, 28, 29)]
    summer = [dt.datetime(2024, 4, day, 5, tzinfo=dt.UTC) for day in (1, 2)]
    others = [dt.datetime(2024, 3, day, 12, tzinfo=dt.UTC) for day in (27, 28, 29)]
    at = pa.array([*winter, *summer, *others], pa.timestamp("s", "UTC"))
    pulse = [60.0, 61.0, 62.0, 61.0, 60.0, 90.0, 91.0, 92.0]
    table = pa.table({"patient": ["a"] * 8, "at": at, "pulse": pulse})
    berlin = table.set_column(1, "at", at.cast(pa.timestamp("s", "Europe/Berlin")))
    place, local = (history_columns(t, **NAMES)["pulse place"].to_numpy() for t in (table, berlin))
    assert abs(local[4]) < 1.5  # at 7 by the clock, as all of the mornings
    assert abs(place[3] - local[3]) > 0.1  # at 5 by UTC: against all hours


def test_missing_values_of_one_column_leave_the_others_alone():
    frame = panel(0, gaps=0.0)
    some = frame.assign(heat=frame["heat"].where(np.arange(400) % 3 > 0))
    whole, found = (added(history_columns(f, **NAMES)) for f in (frame, some))
    assert same(found[:, [0, 1, 2, 6]], whole[:, [0, 1, 2, 6]])
    assert not same(found[:, 3:6], whole[:, 3:6])


# --- what is refused ------------------------------------------------------------------------------

GOOD = {"patient": ["a", "b", "a"], "at": [1.0, 2.0, 3.0], "pulse": [60, 70, 80]}


@pytest.mark.parametrize(
    ("changed", "options", "said"),
    [
        ({}, {"entity": "who"}, "no column 'who' (entity): its columns are ['patient', 'at'"),
        ({}, {"time": "when"}, "no column 'when' (time)"),
        ({}, {"values": ["heat"]}, "no column 'heat' (values)"),
        ({"pulse": ["x"] * 3}, {}, "no numeric column besides the entity and the time, but {'pu"),
        ({"pulse": ["x"] * 3}, {"values": ["pulse"]}, "'pulse' holds string, and its history"),
        ({"pulse": [1.0, math.inf, 2.0]}, {}, "'pulse' holds inf in row 1: needs finite numbers"),
        ({"at": ["2024-01-01"] * 3}, {}, "time='at': the column holds string, but needs point"),
        ({"at": [True] * 3}, {}, "time='at': the column holds bool, but needs points in time"),
        (
            {"patient": [0.5, 1.0, 2.0]},
            {},
            "'patient' holds the number 0.5 in the data, row 0",
        ),
        (
            {"patient": [True] * 3},
            {},
            "'patient' has type bool: an id needs texts",
        ),
        ({"since": [1] * 3}, {}, "already has a column 'since': rename it"),
        ({"pulse place": [1] * 3}, {}, "already has a column 'pulse place'"),
        ({name: [] for name in GOOD}, {}, "has no rows: history needs at least one reading"),
    ],
)
def test_bad_readings_are_refused_in_words(changed, options, said):
    with pytest.raises(DataError) as error:
        history_columns(pa.table(GOOD | changed), **(NAMES | options))
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"time": "patient"}, "entity='patient' is also the column of the time"),
        ({"values": "pulse"}, "values='pulse': needs a list of column names"),
        ({"values": []}, "values=[]: needs a list of column names"),
        ({"values": ["pulse", "at"]}, "values: 'at' is the column of the entity or of the time"),
    ],
)
def test_columns_that_do_not_go_together_are_refused(options, said):
    with pytest.raises(UsageError) as error:
        history_columns(pa.table(GOOD), **(NAMES | options))
    assert said in str(error.value)


def test_rows_without_names_are_refused():
    with pytest.raises(DataError, match="has no column names: history needs a data frame"):
        history_columns(np.ones((3, 3)), **NAMES)
    twice = pa.Table.from_arrays([pa.array(c) for c in (*GOOD.values(), [1, 2, 3])],
                                 [*GOOD, "pulse"])  # fmt: skip
    with pytest.raises(DataError, match="pulse"):
        history_columns(twice, **NAMES)


def test_a_reading_older_than_the_history_is_refused_and_changes_nothing():
    history = History(**NAMES)
    history.update(pa.table(GOOD))
    late = pa.table({"patient": ["new", "b", "a"], "at": [0.0, 2.0, 1.5], "pulse": [60, 70, 80]})
    with pytest.raises(DataError, match=r"row 2: a reading of 'a' is 2 s older than the last"):
        history.update(late)
    untouched = History(**NAMES)
    untouched.update(pa.table(GOOD))
    further = pa.table({"patient": ["a", "b"], "at": [3.0, 4.0], "pulse": [61, 75]})
    assert same(*(added(h.update(further), ["pulse"]) for h in (history, untouched)))
    with pytest.raises(DataError, match=r"no column 'pulse' \(values\)"):
        history.update(further.drop_columns("pulse"))


# --- for the tests of detectors ------------------------------------------------------------------


def synthetic(seed):
    """Return 500 hourly readings of 30 entities: level, daily rhythm, autocorrelated noise."""
    rng, parts = np.random.default_rng(seed), []
    for entity in range(30):
        t = np.arange(500) * 3600
        level, scale, phase = rng.normal() * 10, np.exp(rng.normal() * 0.5), rng.integers(24)
        noise, last = np.zeros(500), 0.0
        for i in range(500):
            last = noise[i] = 0.7 * last + rng.normal() * 0.5
        v = level + scale * (2 * np.sin(2 * np.pi * ((t / 3600 + phase) % 24) / 24) + noise)
        parts.append(pd.DataFrame({"patient": f"e{entity}", "at": t, "v": v}))
    return pd.concat(parts, ignore_index=True)


class Injection:
    """Places anomalies into a panel, apart from each other and not before the 40th row."""

    def __init__(self, frame, seed):
        self.frame, self.rng, self.n = frame, np.random.default_rng(seed + 5), len(frame)
        self.source = frame["v"].to_numpy()
        self.v, self.who, self.at = self.source.copy(), frame["patient"].to_numpy(), frame["at"]
        self.sd = frame.groupby("patient")["v"].transform("std").to_numpy()
        self.kind, self.dropped = np.full(self.n, "", object), np.zeros(self.n, bool)

    def place(self, kind, length, times, change):
        done = 0
        while done < times:
            a = self.rng.integers(40, self.n - length - 1)
            b = a + length
            if self.who[a - 30] == self.who[b] and not (self.kind[a - 14 : b + 14] != "").any():
                change(a, b)
                self.kind[a:b], done = kind, done + 1

    def shift(self, size):
        def change(a, b):
            self.v[a:b] += self.rng.choice([-1, 1]) * size * self.sd[a]

        return change

    def put(self, value):
        def change(a, b):
            self.v[a:b] = value(a)

        return change

    def of_another(self, a):
        hour = self.at.to_numpy() % 86_400
        others = np.flatnonzero((self.who != self.who[a]) & (hour == hour[a]))
        return self.source[self.rng.choice(others)]

    def drop(self, a, b):
        self.dropped[a : b - 1] = True

    def all(self):
        """Return the frame after all of them, and whether each row is one."""
        self.place("spike", 1, 25, self.shift(4))
        self.place("wrong hour", 1, 25, self.put(lambda a: self.source[a - 12]))
        self.place("other entity", 1, 25, self.put(self.of_another))
        self.place("level shift", 8, 8, self.shift(2))
        self.place("stuck", 8, 8, self.put(lambda a: self.v[a]))
        self.place("gap", 5, 25, self.drop)
        kept = ~self.dropped
        frame = self.frame.assign(v=self.v)[kept].reset_index(drop=True)
        return frame, (self.kind != "")[kept]
