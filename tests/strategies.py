"""Hypothesis strategies: schemas, rows that fit them, and ways to cut rows apart."""

import math

import pyarrow as pa
from hypothesis import strategies as st

from hushtable import Feature, Schema

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
