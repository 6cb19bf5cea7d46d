"""Write the golden files that the current protocol does not have yet; those it has stay."""

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from test_files import plans, releases, rows_for, score_digest, verdicts

from hushtable import Sketch, files
from hushtable.counts.learned import LearnedModel

folder = Path(__file__).parent / f"protocol-{files.PROTOCOL}"
folder.mkdir(exist_ok=True)
index = folder / "expected.json"
expected = json.loads(index.read_text()) if index.exists() else {}


def keep(name, what, **facts):
    if name not in expected:
        what.save(folder / name)
        expected[name] = facts


for name, plan in plans().items():
    sketch = Sketch.from_data(plan, rows_for(plan))
    cells = np.flatnonzero(sketch.counts).tolist()
    keep(f"{name}.plan.hush", plan, plan_id=plan.plan_id)
    keep(f"{name}.sketch.hush", sketch, plan_id=plan.plan_id, cells=cells)
for name, release in releases().items():
    keep(
        f"{name}.release.hush",
        release,
        plan_id=release.plan.plan_id,
        release_id=release.release_id,
        sum=int(release.counts.sum()),
        epsilon=round(release.ledger.epsilon, 6),
    )
model, judged = verdicts()
keep(
    "some.verdicts.hush",
    judged,
    plan_id=judged.plan_id,
    scores=score_digest(LearnedModel(model, judged)),
)
index.write_text(json.dumps(expected, indent=1) + "\n")
