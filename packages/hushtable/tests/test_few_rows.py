"""Few rows of frames give the same bits as in Arrow's columns, or are refused in the same words."""

import datetime as dt
import pickle
import threading
import warnings
from decimal import Decimal
from functools import cache
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushtable import Feature, HushTable, Plan, Schema, Sketch
from hushtable.data import typed
from hushtable.data.encoding import Encoder
from hushtable.data.readers.reader import FEW_VALUES
from hushtable.data.texts.reading import Reading
from hushtable.data.typed import open_rows
from hushtable.scores import Explainer, Scorer
from hushtable.threads import FEW_ROWS

pytestmark = pytest.mark.filterwarnings("ignore")

SCHEMA = Schema([
    Feature.numeric("n", low=-10, high=60),
    Feature.numeric("t", low=1.6e9, high=1.8e9, unit="date"),
    Feature.categorical("c", ["a", "b", "1", "-3", "true", "é"]),
    Feature.categorical("l", ["Nord", "süd", "", "2"]),
    Feature.categorical("w", ["yes", "no"]),
])  # fmt: skip
NUMBERS = Schema([Feature.numeric(name, low=-10, high=60) for name in "nmk"])
READINGS = [
    Reading(), Reading(kinds={"l": "label"}), Reading(missing=("-9", "a")), Reading(decimal=","),
]  # fmt: skip


@cache
def counted(schema):
    """Return a scorer whose counts are of some rows."""
    rng, n = np.random.default_rng(0), 300
    columns = {}
    for one in schema.features:
        if one.kind == "numeric":
            columns[one.name] = rng.uniform(one.low, one.high, n)
        else:
            columns[one.name] = np.array(one.categories)[rng.integers(0, len(one.categories), n)]
    plan = Plan.draw(schema, n_tables=20, random_state=0)
    return Scorer(Sketch.from_data(plan, pa.table(columns)))


FLOATS = [0.0, -0.0, 1.0, 2.5, -3.0, 59.9, 1e20, float(2**53), 0.1, None]
ODD_FLOATS = [*FLOATS, *FLOATS, float("nan"), float("inf"), -float("inf")]
INTEGERS = [0, 1, 2, 59, 100, None]
LARGE = [*INTEGERS, -3, 2**53, 2**53 + 1, 2**62, -(2**53) - 1]
BOOLS = [True, False, None]
TEXTS = ["a", "b", " a ", "A", "1", "true", "é", "e\u0301", "nord", "Nord", "yes", "Y", None]
ODD_TEXTS = [*TEXTS, "", "  ", "nan", "x\u200b", "5", "2,5", "\ud800", "2026-03-01"]
INSTANTS = [0, 1, -1, 1_700_000_000, 1_700_000_000_123, None, 10**15 + 1, 2**53 + 1]


def instants(values, unit):
    """Return points in time as NumPy has them."""
    return np.array([np.datetime64("NaT") if v is None else v for v in values], f"M8[{unit}]")


def pandas_columns():
    """Return, by name, values and what makes a column of them."""
    found = {
        kind: (INTEGERS[:-1], lambda v, k=kind: pd.Series(v, dtype=k))
        for kind in ("int8", "int16", "uint8", "uint32", "int64", "float16", "uint64")
    }
    for kind in ("float64", "float32"):
        found[kind] = (ODD_FLOATS, lambda v, k=kind: pd.Series(v, dtype=k))
    for kind in ("Int64", "UInt8", "Float64", "Float32"):
        found[kind] = (INTEGERS, lambda v, k=kind: pd.Series(v, dtype=k))
    found["large int64"] = (LARGE[6:], lambda v: pd.Series(v, dtype="int64"))
    found["large Int64"] = (LARGE, lambda v: pd.Series(v, dtype="Int64"))
    found["bool"] = (BOOLS[:2], lambda v: pd.Series(v, dtype=bool))
    found["boolean"] = (BOOLS, lambda v: pd.Series(v, dtype="boolean"))
    found["str"] = (TEXTS, lambda v: pd.Series(v, dtype="str"))
    found["object"] = (ODD_TEXTS, lambda v: pd.Series(v, dtype=object))
    anything = [*ODD_TEXTS, 1, 2.5, True, pd.NA, pd.NaT, Decimal("1.5"), dt.date(2026, 1, 1), b"a"]
    found["anything"] = (anything, lambda v: pd.Series(v, dtype=object))
    for storage in ("python", "pyarrow"):
        kind = pd.StringDtype(storage)
        found[storage] = (TEXTS, lambda v, k=kind: pd.Series(v, dtype=k))
    found["odd python"] = (ODD_TEXTS, lambda v: pd.Series(v, dtype=pd.StringDtype("python")))
    found["category"] = (TEXTS, lambda v: pd.Series(v, dtype="str").astype("category"))
    found["object category"] = (
        ODD_TEXTS, lambda v: pd.Series(v, dtype=object).astype("category")
    )  # fmt: skip
    found["int category"] = (INTEGERS, lambda v: pd.Series(v).astype("category"))
    for unit in ("s", "ms", "us", "ns"):
        found[f"M8[{unit}]"] = (INSTANTS, lambda v, u=unit: pd.Series(instants(v, u)))
        found[f"m8[{unit}]"] = (
            INSTANTS, lambda v, u=unit: pd.Series(instants(v, u).astype(np.int64).view(f"m8[{u}]"))
        )  # fmt: skip
    for zone in ("UTC", "Europe/Berlin"):
        found[zone] = (
            INSTANTS, lambda v, z=zone: pd.Series(instants(v, "us")).dt.tz_localize(z, "NaT", "NaT")
        )  # fmt: skip
    found["Sparse"] = (INTEGERS[:-1], lambda v: pd.Series(v, dtype="Sparse[float64]"))
    found["period"] = (["2026-01", None], lambda v: pd.Series(pd.PeriodIndex(v, freq="M")))
    found["complex"] = ([1j], lambda v: pd.Series(v, dtype=complex))
    arrow = {"int64[pyarrow]": INTEGERS, "string[pyarrow]": TEXTS, "float[pyarrow]": FLOATS}
    for kind, values in arrow.items():
        found[kind] = (values, lambda v, k=kind: pd.Series(v, dtype=k))
    return found


def polars_columns():
    """Return, by name, values and what makes a column of them."""
    kinds = {
        pl.Float64: ODD_FLOATS, pl.Float32: ODD_FLOATS, pl.Int8: INTEGERS, pl.Int64: LARGE,
        pl.UInt64: INTEGERS, pl.UInt16: INTEGERS, pl.Int128: LARGE, pl.Boolean: BOOLS,
        pl.String: TEXTS,
    }  # fmt: skip
    return {
        str(kind)[:20]: (values, lambda v, k=kind: pl.Series(v, dtype=k))
        for kind, values in kinds.items()
    }


def pandas_frame(columns, names):
    frame = pd.DataFrame(dict(enumerate(columns)))
    return frame.set_axis(names, axis=1)


def polars_frame(columns, names):
    return pl.DataFrame([one.alias(name) for one, name in zip(columns, names, strict=True)])


LIBRARIES = {
    "pandas": (pandas_columns(), pandas_frame),
    "polars": (polars_columns(), polars_frame),
}


def by_arrow():
    """Let rows be read as Arrow's columns."""
    return mock.patch.object(typed, "few_rows", return_value=None)


def outcome(do):
    """Return what comes of a call: bits, or a refusal in words."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = np.asarray(do()).tobytes()
        except Exception as error:
            found = type(error), str(error)
    return found, [str(one.message) for one in said]


def same(*calls):
    now = [outcome(call) for call in calls]
    with by_arrow():
        assert now == [outcome(call) for call in calls]


#: What pandas, polars and Arrow raise of values that are not a column's.
NO_COLUMN = (TypeError, ValueError, OverflowError)
PLAIN = {"pandas": "float64", "polars": "Float64"}
TEXT = {"pandas": ["str", "object", "python", "category"]}
NUMBER = {"pandas": ["float64", "float32", "int64", "bool", "Int64", "M8[us]", "UTC"],
          "polars": ["Float64"]}  # fmt: skip


@st.composite
def frames(draw, library, schema):
    """Draw a frame of a few rows, mostly with the columns and types that it should have."""
    columns, make = LIBRARIES[library]
    names = list(schema.names)
    names = draw(st.sampled_from([names] * 4 + [names[::-1], [*names, "more"], names[:-1]]))
    n, made = draw(st.integers(1, 4)), []
    fitting = draw(st.integers(0, 3)) > 0
    for name in names:
        fit = TEXT[library] if name in "clw" else NUMBER[library]
        kind = draw(st.sampled_from(fit if fitting else sorted(columns)))
        values, column = columns[kind]
        some = draw(st.lists(st.sampled_from(values), min_size=n, max_size=n))
        try:
            made.append(column(some))
        except NO_COLUMN:
            made.append(columns[PLAIN[library]][1]([1.0] * n))
    return make(made, names)


@given(data=st.data())
def test_rows_of_any_types_are_read_as_in_arrows_columns(data):
    frame = data.draw(frames("pandas", SCHEMA))
    scorer = counted(SCHEMA).by_rules(None)
    scorer._reading = data.draw(st.sampled_from(READINGS))
    same(lambda: scorer.score(frame), lambda: Explainer(scorer).explain(frame))


@pytest.mark.parametrize("library", LIBRARIES)
@given(data=st.data())
def test_numbers_of_any_types_are_read_as_in_arrows_columns(library, data):
    frame = data.draw(frames(library, NUMBERS))
    scorer = counted(NUMBERS)
    same(lambda: scorer.score(frame), lambda: Explainer(scorer).explain(frame))


ONE_OF_EACH = Schema([SCHEMA.features[j] for j in (0, 2, 3)])
ENCODER = Encoder(ONE_OF_EACH)


def encoded(frame, reading):
    """Return the codes of the rows of a frame, and what is outside."""
    rows = open_rows(frame, ONE_OF_EACH, reading)
    placed = rows.sources[0].placed
    (batch,) = rows.read() if placed is None else [placed]
    codes = ENCODER.encode(batch)
    outside = vars(codes.outside).values()
    return b"".join(one.tobytes() for one in (codes.codes, codes.tally, *outside))


@pytest.mark.parametrize(
    "kind",  # the property tests above draw from all of them every day
    [
        pytest.param(kind, marks=[pytest.mark.slow] * (at % 4 > 0))
        for at, kind in enumerate(LIBRARIES["pandas"][0])
    ],
)
def test_each_value_of_each_type_in_the_place_of_each_feature(kind):
    columns, make = LIBRARIES["pandas"]
    values, column = columns[kind]
    plain = columns[PLAIN["pandas"]][1]([2.0])
    for value in values:
        try:
            odd = column([value])
        except NO_COLUMN:
            continue
        for j in range(3):
            frame = make([odd if i == j else plain for i in range(3)], ONE_OF_EACH.names)
            same(*(lambda x=frame, r=one: encoded(x, r) for one in READINGS[:2]))


def everyday(n, seed=1):
    """Return a frame with numbers, texts, a date and a truth value."""
    rng = np.random.default_rng(seed)
    columns = {f"x{j}": rng.normal(size=n) for j in range(5)}
    columns |= {f"k{j}": rng.integers(0, 50, n) for j in range(2)}
    columns |= {f"c{j}": np.array([f"cat{i}" for i in range(20)])[rng.integers(0, 20, n)]
                for j in range(3)}  # fmt: skip
    columns["when"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(
        rng.integers(0, 365 * 86_400, n), unit="s"
    )
    columns["ok"] = rng.random(n) < 0.5
    return pd.DataFrame(columns)


@pytest.fixture(scope="module")
def detector():
    return HushTable(n_tables=20, random_state=0).fit(everyday(2000))


def test_few_rows_of_everyday_frames_are_numbers_at_once(detector):
    for n in (1, FEW_VALUES):
        frame = everyday(n)
        assert open_rows(frame, detector.plan_.schema).sources[0].placed is not None
        for call in (detector.score_samples, detector.predict, detector.decision_function,
                     detector.explain, detector.standard_errors):  # fmt: skip
            same(lambda call=call, x=frame: call(x))
    frame = everyday(FEW_VALUES + 1)
    assert open_rows(frame, detector.plan_.schema).sources[0].placed is None


def test_who_does_more_than_encode_reads_values(detector):
    frame = everyday(5)
    read = open_rows(frame, detector.plan_.schema)
    (batch,) = read.read()
    assert batch.column("c0").to_pylist() == everyday(5)["c0"].tolist()
    (some,) = read.select(["c1", "x0"]).read()
    assert some.schema.names == ["c1", "x0"]
    assert detector.outliers(frame, 2).shape[0] == 2


def test_numbers_of_several_types_are_one_block_of_floats():
    fitted = HushTable(n_tables=20, random_state=0).fit(everyday(2000)[["x0", "x1", "k0", "x2"]])
    for n in (1, FEW_ROWS):
        frame = everyday(n)[["x0", "x1", "k0", "x2"]].astype({"x1": np.float32, "k0": np.int16})
        read = open_rows(frame, fitted.plan_.schema)
        assert read.numeric
        same(lambda x=frame: fitted.score_samples(x))


def test_a_detector_that_has_scored_is_pickled_without_its_categories_places(detector):
    frame = everyday(3)
    before = detector.score_samples(frame)
    assert "places_of_categories" in vars(detector.plan_.schema)
    other = pickle.loads(pickle.dumps(detector))
    assert "places_of_categories" not in vars(other.plan_.schema)
    assert (other.score_samples(frame) == before).all()


def test_threads_may_ask_for_few_rows_at_the_same_time(detector):
    other, frame, found = pickle.loads(pickle.dumps(detector)), everyday(3), []
    asking = [
        threading.Thread(target=lambda: found.append(other.score_samples(frame))) for _ in range(8)
    ]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert len({one.tobytes() for one in found}) == 1
    assert len(found) == 8
