"""Write the golden files of the current protocol. Run once, when a protocol is new."""

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from test_files import plans, table

from hushtable import Sketch, files

folder = Path(__file__).parent / f"protocol-{files.PROTOCOL}"
folder.mkdir(exist_ok=True)
expected = {}
for name, plan in plans().items():
    sketch = Sketch.from_data(plan, table())
    plan.save(folder / f"{name}.plan.hush")
    sketch.save(folder / f"{name}.sketch.hush")
    expected[f"{name}.plan.hush"] = {"plan_id": plan.plan_id}
    cells = np.flatnonzero(sketch.counts).tolist()
    expected[f"{name}.sketch.hush"] = {"plan_id": plan.plan_id, "cells": cells}
(folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
