"""Few rows of frames give the same bits as in Arrow's columns, or are refused in the same words."""

import warnings
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
from hushtable.data.typed import open_rows
from hushtable.scores import Explainer, Scorer
from hushtable.threads import FEW_ROWS

pytestmark = pytest.mark.filterwarnings("ignore")

NUMBERS = Schema([Feature.numeric(name, low=-10, high=60) for name in "nmk"])


@cache
def counted(schema):
    """Return a scorer whose counts are of some rows."""
    rng, n = np.random.default_rng(0), 300
    columns = {one.name: rng.uniform(one.low, one.high, n) for one in schema.features}
    plan = Plan.draw(schema, n_tables=20, random_state=0)
    return Scorer(Sketch.from_data(plan, pa.table(columns)))


FLOATS = [0.0, -0.0, 1.0, 2.5, -3.0, 59.9, 1e20, float(2**53), 0.1, None]
ODD_FLOATS = [*FLOATS, *FLOATS, float("nan"), float("inf"), -float("inf")]
INTEGERS = [0, 1, 2, 59, 100, None]
LARGE = [*INTEGERS, -3, 2**53, 2**53 + 1, 2**62, -(2**53) - 1]
BOOLS = [True, False, None]
INSTANTS = [0, 1, -1, 1_700_000_000, None, 2**53 + 1]


def pandas_columns():
    """Return, by name, values and what makes a column of them."""
    kinds = dict.fromkeys(
        ("int8", "int16", "uint8", "uint32", "int64", "float16", "uint64"), INTEGERS[:-1]
    )
    kinds |= dict.fromkeys(("float64", "float32"), ODD_FLOATS)
    kinds |= dict.fromkeys(("Int64", "UInt8", "Float64", "Float32", "int64[pyarrow]"), INTEGERS)
    kinds |= {"bool": BOOLS[:2], "boolean": BOOLS, "object": [1, 2.5, True, "5", "a", None]}
    kinds |= {"category": INTEGERS, "Sparse[float64]": INTEGERS[:-1], "complex": [1j]}
    kinds |= dict.fromkeys(("datetime64[us]", "timedelta64[s]", "datetime64[ns, UTC]"), INSTANTS)
    found = {name: (some, lambda v, k=name: pd.Series(v, dtype=k)) for name, some in kinds.items()}
    return found | {"large int64": (LARGE[6:], lambda v: pd.Series(v, dtype="int64"))}


def polars_columns():
    """Return, by name, values and what makes a column of them."""
    kinds = {
        pl.Float64: ODD_FLOATS, pl.Float32: ODD_FLOATS, pl.Int8: INTEGERS, pl.Int64: LARGE,
        pl.UInt64: INTEGERS, pl.UInt16: INTEGERS, pl.Int128: LARGE, pl.Boolean: BOOLS,
        pl.String: ["5", "a", None],
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
    return mock.patch.object(typed, "few_numbers", return_value=None)


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
NUMBER = {"pandas": ["float64", "float32", "int64", "large int64"], "polars": ["Float64"]}


@st.composite
def frames(draw, library, schema):
    """Draw a frame of a few rows, mostly with the columns and types that it should have."""
    columns, make = LIBRARIES[library]
    names = list(schema.names)
    names = draw(st.sampled_from([names] * 4 + [names[::-1], [*names, "more"], names[:-1]]))
    n, made = draw(st.integers(1, 4)), []
    fitting = draw(st.integers(0, 3)) > 0
    for _ in names:
        kind = draw(st.sampled_from(NUMBER[library] if fitting else sorted(columns)))
        values, column = columns[kind]
        some = draw(st.lists(st.sampled_from(values), min_size=n, max_size=n))
        try:
            made.append(column(some))
        except NO_COLUMN:
            made.append(columns[PLAIN[library]][1]([1.0] * n))
    return make(made, names)


@pytest.mark.parametrize("library", LIBRARIES)
@given(data=st.data())
def test_numbers_of_any_types_are_read_as_in_arrows_columns(library, data):
    frame = data.draw(frames(library, NUMBERS))
    scorer = counted(NUMBERS)
    same(lambda: scorer.score(frame), lambda: Explainer(scorer).explain(frame))


def test_numbers_of_several_types_are_one_block_of_floats():
    rng, names = np.random.default_rng(1), ["x", "y", "k", "l"]
    fitted = HushTable(n_tables=20, random_state=0).fit(
        pd.DataFrame(rng.normal(size=(2000, 4)), columns=names)
    )
    for n in (1, FEW_ROWS):
        frame = pd.DataFrame(9 * rng.normal(size=(n, 4)), columns=names)
        frame = frame.astype({"y": np.float32, "k": np.int16, "l": np.int64})
        assert open_rows(frame, fitted.plan_.schema).numeric
        same(lambda x=frame: fitted.score_samples(x))
        frame.loc[0, "l"] = 2**53 + 1
        assert not open_rows(frame, fitted.plan_.schema).numeric
        same(lambda x=frame: fitted.score_samples(x))
