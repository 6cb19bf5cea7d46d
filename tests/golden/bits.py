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
from hushtable.detectors.load import by_draw
from hushtable.plans.draws import DRAWS
from hushtable.plans.families import HashFamily

OPTIONS = {"ace": {"n_bits": 10}}  # fewer cells are quicker
EXPLAINED = [n for n, d in DRAWS.items() if d.family.gaining is not HashFamily.gaining]
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


def of_detector(detector, X, explained):
    """Return what a fitted detector says of rows."""
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
    detector = by_draw()[plan.detector].from_counts(sketch, n_jobs=n_jobs)
    return of_detector(detector, X, plan.detector in EXPLAINED)


def facts(n_jobs=1):
    """Return digests of everything, by name."""
    X, found = rows(), {}
    for name, detector in by_draw().items():
        options = OPTIONS.get(name, {})
        plan = Plan.draw(SCHEMA, detector=name, random_state=5, **options)
        found[f"{name} by a plan"] = of_plan(plan, X, n_jobs)
        fitted = detector(random_state=5, n_jobs=n_jobs, **options).fit(X)
        found[f"{name} fitted"] = of_detector(fitted, X, name in EXPLAINED)
    for one, settings in {"in one pass": {"passes": 1}, "for novelty": {"novelty": True}}.items():
        fitted = HushTable(random_state=5, n_jobs=n_jobs, **settings).fit(X)
        found[f"hushtable fitted {one}"] = of_detector(fitted, X, explained=True)
    complete = HushTable(random_state=5, n_jobs=n_jobs).fit(X.drop_null())
    found["hushtable fitted to complete rows"] = of_detector(complete, X.drop_null(), True)
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
        found[f"release {name}"] = of_detector(detector, alike, explained=True)
    return found


if __name__ == "__main__":
    found = facts()
    if "--keep" in sys.argv[1:]:
        kept = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
        EXPECTED.write_text(json.dumps(found | kept, indent=1) + "\n")
    else:
        print(json.dumps(found))
