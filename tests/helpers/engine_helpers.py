"""Rows with everything that a plan may meet, in files, and a plan for them."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from hushtable import Feature, Plan, Schema

SCHEMA = Schema([
    Feature.numeric("a", low=-4, high=4),
    Feature.categorical("c", ["x", "y", "z"]),
    Feature.numeric("b", low=0, high=100, unit="s"),
])  # fmt: skip


def plans():
    return {
        "hushtable": Plan.draw(SCHEMA, n_tables=20, random_state=0),
        "lsh_itables": Plan.draw(SCHEMA, detector="lsh_itables", n_tables=20, random_state=0),
        "marginals": Plan.marginals(SCHEMA),
    }


def frame(n, seed=0):
    """Rows with missing values, unseen categories, values outside, and a column too many."""
    rng = np.random.default_rng(seed)
    a = rng.normal(0, 2, n)
    a[rng.random(n) < 0.1] = np.nan
    return pd.DataFrame({
        "id": np.arange(n),
        "a": a,
        "c": rng.choice(["x", "y", "z", "new", None], n),
        "b": rng.integers(-10, 120, n),
    })  # fmt: skip


def write_files(folder, sizes):
    """Write Parquet files; return all rows."""
    frames = [frame(n, seed) for seed, n in enumerate(sizes)]
    for i, one in enumerate(frames):
        table = pa.Table.from_pandas(one, preserve_index=False)
        pq.write_table(table, folder / f"part-{i}.parquet")
    return pd.concat(frames, ignore_index=True)
