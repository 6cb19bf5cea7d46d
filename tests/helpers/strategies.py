"""Hypothesis strategies: schemas, rows that fit them, and ways to cut rows apart."""

import math

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from hushtable import Feature, Plan, Schema, Sketch
from hushtable.counts import rounds
from hushtable.data.encoding import Encoder
from hushtable.data.typed import open_rows
from hushtable.plans.draws import DRAWS, detectors

numbers = st.one_of(
    st.none(),
    st.just(math.nan),
    st.integers(-3, 3).map(float),
    st.floats(-5, 5, width=32),
)
words = st.sampled_from(["a", "b", "c", "d", "é", ""])


@st.composite
def features(draw, name):
    if draw(st.booleans()):
        low = draw(st.integers(-4, 2))
        return Feature.numeric(name, low=low, high=low + draw(st.integers(0, 5)))
    return Feature.categorical(name, draw(st.lists(words, max_size=5, unique=True)))


@st.composite
def schemas(draw, max_features=4):
    n = draw(st.integers(1, max_features))
    return Schema(tuple(draw(features(f"f{j}")) for j in range(n)))


@st.composite
def schemas_and_rows(draw, max_rows=30):
    """A schema, and rows as lists of values: out of range, unseen and missing ones too."""
    schema = draw(schemas())
    columns = [
        numbers if f.kind == "numeric" else st.one_of(st.none(), words) for f in schema.features
    ]
    rows = draw(st.lists(st.tuples(*columns), min_size=1, max_size=max_rows))
    return schema, rows


def as_table(schema, rows):
    """Rows as an Arrow table of the schema's columns."""
    arrays = []
    for j, feature in enumerate(schema.features):
        kind = pa.float64() if feature.kind == "numeric" else pa.string()
        arrays.append(pa.array([row[j] for row in rows], kind))
    return pa.table(arrays, names=schema.names)


def codes_of(schema, table):
    """Return the codes of an Arrow table's rows, as they are read under a schema."""
    [batch] = open_rows(table, schema).read()
    return Encoder(schema).encode(batch)


def tampered(family):
    """Yield (name, array) for each array of a family and each way in which it does not fit."""
    for name, declared in family._declared("drawn").items():
        array = family.arrays()[name]
        yield name, array.astype(np.float32)
        yield name, np.concatenate([array, array])
        info = np.iinfo(array.dtype)
        for bound in (info.min, info.max):
            wrong = array.copy()
            wrong[..., -1:] = bound
            low = info.min if declared.low is None else declared.low
            if array.size and (bound < low or (bound > low and declared.below is not None)):
                yield name, wrong


def second_pass(first, rows):
    """Return the plan that counts dense rows again, after counts of all of them."""
    return rounds.second_pass(first, Sketch.from_data(rounds.gate(first), rows))


def plans_of_every_kind(schema, rows):
    """Return a plan of every registered draw, by name; all are about these rows."""
    plans = {
        name: Plan.draw(schema, detector=name, n_tables=3, random_state=0) for name in detectors()
    }
    terms = {"epsilon": 1.0, "expected_rows": 1_000_000}
    plans |= {"marginals": Plan.marginals(schema), "ranges": Plan.ranges(schema, **terms)}
    counts = Sketch.from_data(plans["hushtable"], rows)
    plans |= {"gate": rounds.gate(counts), "ranks": rounds.ranks(counts)}
    assert set(plans) == set(DRAWS)
    return plans
