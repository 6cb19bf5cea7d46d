"""Write the golden files that the current protocol does not have yet; those it has stay."""

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))
sys.path.insert(0, str(Path(__file__).parents[2] / "packages" / "hushtable" / "tests"))
from test_files import plans, releases, score_digest, stream, stream_plan, table, verdicts

from hushtable import Sketch, files
from hushtable.counts.verdicts import LearnedModel

folder = Path(__file__).parent / f"protocol-{files.PROTOCOL}"
folder.mkdir(exist_ok=True)
index = folder / "expected.json"
expected = json.loads(index.read_text()) if index.exists() else {}


def keep(name, what, **facts):
    if name not in expected:
        what.save(folder / name)
        expected[name] = facts


for name, plan in plans().items():
    sketch = Sketch.from_data(plan, table())
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
keep("gaps-stream.plan.hush", stream_plan(), plan_id=stream_plan().plan_id)
if "stream.plan.hush" not in expected:  # one stream: what it released is in its periods
    made = stream()
    site, window = made["some.periods"], made["window.release"]
    keep("stream.plan.hush", site.plan, plan_id=site.plan.plan_id)
    for name in ("first.increment", "second.increment", "window.release", "some.periods"):
        what = made[name]
        increment = what.increment(len(what)) if what is site else what
        facts = {
            "plan_id": what.plan.plan_id,
            "sum": int(increment.counts.sum()),
            "epsilon": round(increment.ledger.epsilon, 6),
        }
        if what is site:
            rows = [int(one.sum()) for one in site.counts]
            facts |= {"rows": rows, "period": len(site)}
        if what is window:
            facts["release_id"] = window.release_id
        keep(f"{name}.hush", what, **facts)
model, judged = verdicts()
keep(
    "some.verdicts.hush",
    judged,
    plan_id=judged.plan_id,
    scores=score_digest(LearnedModel(model, judged)),
)
index.write_text(json.dumps(expected, indent=1) + "\n")
