"""What has to be the same bits everywhere: plans, counts, scores, thresholds and explanations.

python tests/golden/bits.py           print them, as this machine computes them
python tests/golden/bits.py --keep    write those that bits.json does not have yet
"""

import hashlib
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from hushtable import Feature, HushTable, Plan, Schema, Sketch, load
from hushtable.plans.draws import draw_of
from hushtable.plans.families import HashFamily

#: The detectors of this package.
DETECTORS = ("hushtable", "lsh_itables")
SCHEMA = Schema(
    (
        Feature.numeric("age", low=0, high=120, unit="year"),
        Feature.categorical("ward", ["a", "b", "é"]),
        Feature.numeric("pulse", low=20.5, high=250),
        Feature.numeric("lactate", low=0.1, high=29.7),
    ),
    labels=0,
)  # as it was before texts were folded
EXPECTED = Path(__file__).with_name("bits.json")


def rows(n=3000):
    """Return rows that no generator draws: missing, unseen, outside, and on the ranges' ends."""
    i = np.arange(n)
    age = (i * 7919 % 1361) / 10.0 - 5.0
    pulse = 20.5 + (i * 104729 % 2311) / 9.0
    lactate = 0.1 + ((i * 1299709 % 997) / 997.0) ** 4 * 29.6
    ward = np.array(["a", "b", "é", "unseen"])[(i * 31 % 97) // 25]
    return pa.table({
        "age": pa.array(age, mask=i % 53 == 0),
        "ward": pa.array(ward, mask=i % 41 == 0),
        "pulse": pa.array(np.where(i % 37 == 0, np.nan, pulse), from_pandas=True),
        "lactate": pa.array(lactate),
    })  # fmt: skip


def digest(array):
    """Return the SHA-256 of an array's little-endian bytes."""
    return hashlib.sha256(array.astype(array.dtype.newbyteorder("<")).tobytes()).hexdigest()


def of_detector(detector, X):
    """Return what a fitted detector says of rows."""
    explained = type(detector.plan_.family).can_gain is not HashFamily.can_gain
    facts = {
        "plan": detector.plan_.plan_id,
        "counts": digest(detector.sketch_.counts),
        "scores": digest(detector.score_samples(X)),
        "offset": repr(float(detector.offset_)),
    }
    return facts | ({"shares": digest(detector.explain(X))} if explained else {})


def of_plan(plan, X, n_jobs):
    """Return what rows become under a plan."""
    sketch = Sketch.from_data(plan, X, n_jobs=n_jobs)
    detector = draw_of(plan.detector).estimator_class().from_counts(sketch, n_jobs=n_jobs)
    return of_detector(detector, X)


def of_draw(name, X, n_jobs=1, **options):
    """Return what rows become with the usual settings of a detector, by name."""
    plan = Plan.draw(SCHEMA, detector=name, random_state=5, **options)
    fitted = draw_of(name).estimator_class()(random_state=5, n_jobs=n_jobs, **options).fit(X)
    return {f"{name} by a plan": of_plan(plan, X, n_jobs), f"{name} fitted": of_detector(fitted, X)}


def facts(n_jobs=1):
    """Return digests of everything, by name."""
    X, found = rows(), {}
    for name in DETECTORS:
        found |= of_draw(name, X, n_jobs)
    for one, settings in {"in one pass": {"passes": 1}, "for novelty": {"novelty": True}}.items():
        fitted = HushTable(random_state=5, n_jobs=n_jobs, **settings).fit(X)
        found[f"hushtable fitted {one}"] = of_detector(fitted, X)
    complete = HushTable(random_state=5, n_jobs=n_jobs).fit(X.drop_null())
    found["hushtable fitted to complete rows"] = of_detector(complete, X.drop_null())
    del found["hushtable fitted to complete rows"]["plan"]  # as before plans noted rules of gaps
    marginals = Sketch.from_data(Plan.marginals(SCHEMA), X, n_jobs=n_jobs)
    drawn = {"marginals": marginals, "random_state": 5}
    for one, tails in {"refined by marginals": False, "refined, with tails": True}.items():
        found[one] = of_plan(Plan.draw(SCHEMA, tails=tails, **drawn), X, n_jobs)
    folding = Plan.draw(replace(SCHEMA, labels=1), random_state=5)
    found["hushtable by a plan that folds texts"] = of_plan(folding, X, n_jobs)
    for name in ("hushtable", "merged"):
        release = load(EXPECTED.parent / "protocol-1" / f"{name}.release.hush")
        detector = HushTable.from_counts(release, n_jobs=n_jobs)
        names = dict(zip(release.plan.schema.names, ("age", "ward", "pulse"), strict=True))
        alike = pa.table({name: X[column] for name, column in names.items()})
        found[f"release {name}"] = of_detector(detector, alike)
    return found


if __name__ == "__main__":
    found = facts()
    if "--keep" in sys.argv[1:]:
        kept = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
        EXPECTED.write_text(json.dumps(found | kept, indent=1) + "\n")
    else:
        print(json.dumps(found))
