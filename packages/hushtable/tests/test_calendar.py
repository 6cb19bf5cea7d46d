"""Points in time as hours, weekdays, days and months: categories that go round."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from hushtable import Feature, HushTable, Plan, Schema, Sketch, load
from hushtable.cli import main
from hushtable.data import read
from hushtable.data.calendar import PARTS, calendar_features, parts_of
from hushtable.data.texts.reading import Reading
from hushtable.data.typed import open_rows
from hushtable.errors import DataError, PlanError, UsageError


def visits(seed=0, n=8000):
    """Visits by day, of which 1% are at night."""
    rng = np.random.default_rng(seed)
    day = np.datetime64("2026-01-01") + rng.integers(0, 300, n).astype("timedelta64[D]")
    hour, odd = np.clip(rng.normal(13, 2.5, n), 6, 21), rng.choice(n, n // 100, replace=False)
    hour[odd] = rng.uniform(1, 4, len(odd))
    at = day.astype("datetime64[s]") + (hour * 3600).astype("timedelta64[s]")
    amount, items = rng.lognormal(3, 0.5, n), rng.integers(1, 9, n)
    frame = pd.DataFrame({"at": at, "amount": amount, "items": items})
    return frame, np.isin(np.arange(n), odd)


def test_parts_are_those_of_the_calendar():
    start = datetime(1967, 11, 3, 5, 7)
    times = [start + timedelta(hours=37 * k, seconds=k) for k in range(20_000)]
    seconds = np.array([(t - datetime(1970, 1, 1)).total_seconds() for t in times])
    found = {name: part.to_pylist() for name, part in parts_of(seconds).items()}
    assert found["hour"] == [str(t.hour) for t in times]
    assert found["weekday"] == [t.strftime("%A") for t in times]
    assert found["month"] == [t.strftime("%B") for t in times]
    for t, day in zip(times, found["day"], strict=True):
        left = [k for k in range(3) if (t + timedelta(days=k + 1)).day == 1]
        assert day == (("last", "2nd last", "3rd last")[left[0]] if left else str(t.day))
    assert {name: set(texts) for name, texts in found.items()} == {
        name: set(texts) for name, texts in PARTS.items()
    }
    assert parts_of(np.array([np.nan]))["hour"].null_count == 1


def test_visits_at_night_are_found():
    scores = []
    for seed in range(3):
        rows, y = visits(seed)
        low = -HushTable(time="at", random_state=0).fit(rows).score_samples(rows)
        scores.append((roc_auc_score(y, low), average_precision_score(y, low)))
    auc, ap = np.mean(scores, axis=0)
    print(f"\nvisits at night: AUC {auc:.3f}, AP {ap:.3f}")
    assert auc >= 0.99
    assert ap >= 0.45


def test_a_model_keeps_its_time(tmp_path):
    rows, _ = visits(n=500)
    model = HushTable(time="at", context=["hour"], random_state=0).fit(rows)
    assert model.plan_.context == ["hour"]
    model.save(tmp_path / "model.hush")
    again = load(tmp_path / "model.hush")
    np.testing.assert_array_equal(again.score_samples(rows), model.score_samples(rows))
    assert list(again.feature_names_in_) == ["amount", "items", *PARTS]
    kept = again.outliers(rows, n=2, keep=["at"])
    assert kept["at"].tolist() == [rows["at"][i] for i in kept["row"]]
    with pytest.raises(DataError, match="no column 'at'"):
        again.score_samples(rows.drop(columns="at"))


def test_a_circle_is_cut_in_halves():
    """Equation 1 on a circle: hours d apart share a side with probability 1 - 2 d / 24."""
    schema = Schema([feature for feature in calendar_features() if feature.name == "hour"])
    family = Plan.draw(schema, n_tables=400, random_state=0).family
    sides = family.subsets.reshape(-1, 26)[:, 1:-1]
    assert (sides.sum(axis=1) == 12).all()
    for d in range(13):
        same = np.mean(sides == np.roll(sides, d, axis=1))
        assert abs(same - (1 - 2 * d / 24)) < 0.02


def test_the_clock_of_a_place():
    berlin = [datetime(2026, m, 5, 12, tzinfo=ZoneInfo("UTC")) for m in (1, 7)] * 20
    frame = pd.DataFrame({"at": pd.to_datetime(berlin), "x": np.arange(40) % 7 / 4})
    texts = frame.assign(at=[f"{t:%Y-%m-%dT%H:%M}+00:00" for t in berlin])
    for rows in (frame, texts):
        model = HushTable(random_state=0).fit(read(rows, time="at", zone="Europe/Berlin"))
        rows = read(rows, time="at", zone="Europe/Berlin")
        hours = Sketch.from_data(Plan.marginals(model.plan_.schema), rows)
        place = model.plan_.schema.names.index("hour")
        here = hours.counts[hours.plan.family.offsets[place] :][:26]
        assert np.flatnonzero(here[:24]).tolist() == [13, 14]
    with pytest.raises(DataError, match="give the time zone that counts"):
        HushTable(time="at").fit(texts)
    mixed = texts.assign(at=["2026-01-05 12:00", *texts["at"][1:]])
    with pytest.raises(DataError, match="write them all in one way"):
        HushTable().fit(read(mixed, time="at", zone="Europe/Berlin"))


def test_days_without_hours_have_none():
    rows = pd.DataFrame(
        {"day_of": pd.date_range("2026-01-01", periods=90), "x": np.arange(90) % 7 / 4}
    )
    with pytest.warns(UserWarning, match="day_of: it has no hours"):
        model = HushTable(time="day_of").fit(rows)
    assert model.plan_.schema.names == ["x", "weekday", "day", "month"]


TIMES = ["2026-01-05 12:00"] * 5


@pytest.mark.parametrize(
    ("odd", "zone"),
    [("n/a?", ""), ("2026-01-05T12:00+02:00", ""), ("2026-01-05 12:00", "Europe/Berlin")],
)
def test_without_a_person_a_time_in_doubt_is_missing_and_no_refusal(tmp_path, odd, zone):
    """Whether a site answers may not depend on a row: that time alone is missing, and noted."""
    features = [Feature.numeric("x", low=0, high=9), *calendar_features()]
    plan = Plan.draw(Schema(features), n_tables=3, random_state=0)
    times = [f"{one[:10]}T{one[11:]}+01:00" for one in TIMES] if zone else TIMES
    counts = []
    for last in (odd, ""):
        path = tmp_path / "rows.csv"
        pd.DataFrame({"at": [*times, last], "x": range(6)}).to_csv(path, index=False)
        reading = Reading(time="at", zone=zone)
        rows = open_rows(path, plan.schema, reading, attended=False)
        counts.append(Sketch.from_data(plan, rows).counts)
        noted = " ".join(rows.unasked.words)
        assert ("read as missing: 1, the first in line 7" in noted) == bool(last)
    np.testing.assert_array_equal(*counts)
    pd.DataFrame({"at": [*times, odd], "x": range(6)}).to_csv(path, index=False)
    with pytest.raises(DataError):
        list(open_rows(path, plan.schema, Reading(time="at", zone=zone)).read())


def rows_with(**columns):
    return pd.DataFrame({"at": pd.date_range("2026-01-01", periods=9, freq="5h")} | columns)


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        (rows_with(x=1), {"time": "when"}, "no column 'when'"),
        (rows_with(hour=1), {"time": "at"}, "already has a column 'hour'"),
        (rows_with(x=np.arange(9.0)), {"time": "x"}, "needs points in time"),
        (rows_with(x=1), {"time": "at", "zone": "Europe/Berlin"}, "leave the zone out"),
        (rows_with(at=["05/11/2026 10:00", "01/02/2026 11:00", None] * 3), {"time": "at"}, "dates"),
    ],
)
def test_what_is_no_time_is_refused(rows, options, words):
    with pytest.raises(DataError, match=words):
        HushTable().fit(read(rows, **options))


@pytest.mark.parametrize(
    ("options", "words"),
    [({"zone": "UTC"}, "needs time"), ({"time": "at", "zone": "Berlin"}, "is unknown")],
)
def test_a_zone_that_says_nothing_is_refused(options, words):
    with pytest.raises(UsageError, match=words):
        read(rows_with(), **options)


def test_other_bad_input():
    with pytest.raises(UsageError, match="name of a column"):
        HushTable(time=3).fit(rows_with())
    with pytest.raises(UsageError, match="use one"):
        HushTable(time="x").fit(read(rows_with(x=1), time="at"))
    with pytest.raises(DataError, match="no column names"):
        HushTable(time="at").fit(np.zeros((5, 2)))
    with pytest.raises(PlanError, match="cyclic"):
        Feature("x", "numeric", low=0, high=1, cyclic=True)


def test_commands_take_time(tmp_path, capsys):
    rows, y = visits(n=2000)
    path, model = tmp_path / "visits.csv", tmp_path / "model.hush"
    rows.to_csv(path, index=False)
    assert main(["fit", str(path), "--read", "time=at", "--seed", "0", "-o", str(model)]) == 0
    assert main(["score", str(path), "--model", str(model), "-o", str(tmp_path / "s.csv")]) == 0
    scores = pd.read_csv(tmp_path / "s.csv")["score"]
    assert roc_auc_score(y, -scores) > 0.98
    capsys.readouterr()
