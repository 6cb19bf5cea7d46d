"""Kernels with every index checked: a wrong one is silent otherwise."""

import os
import subprocess
import sys

_SCRIPT = """
import numpy as np
import pyarrow as pa
from hushtable import Feature, HushTable, Plan, Schema, Sketch
from hushtable.scores.explain import Explainer
from hushtable.scores.scorer import Scorer
schema = Schema((
    Feature.numeric("x", low=0, high=1), Feature.categorical("c", ["a", "b", "c"]),
    Feature.numeric("y", low=0, high=1),
))
rng = np.random.default_rng(0)
n = 4500
table = pa.table({
    "x": np.where(rng.random(n) < .1, np.nan, rng.normal(size=n)),
    "c": pa.array(rng.choice(np.array(["a", "b", "c", "z", None]), n)),
    "y": rng.random(n),
})
for draw in DRAWS:
    for m in (1, 3, 4, 9):
        plan = Plan.draw(schema, n_tables=m, random_state=0, **draw)
        Sketch.from_data(plan, table, max_samples=100)
        sketch = Sketch.from_data(plan, table, sample_weight=rng.integers(0, 3, n))
        scorer = Scorer(sketch + Sketch.from_data(plan, table))
        scorer.score(table)
        if plan.family.name == "RandomFeature":
            Explainer(scorer).explain(table)
"""


def run_checked(folder, draws, more=""):
    """Count and score under drawn plans, and run ``more``, with kernels compiled anew."""
    checked = {"HUSHTABLE_JIT": "1", "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(folder)}
    script = _SCRIPT.replace("DRAWS", repr(draws)) + more
    environment = os.environ | checked
    run = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True)
    assert run.returncode == 0, run.stderr.decode()
