"""Rows scored by JavaScript: ``hushtable.mjs`` in one process of Node."""

import base64
import json
import math
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

SCRIPT = Path(__file__).with_name("score.mjs")
NODE = shutil.which("node")


def plain(records: Any) -> Any:
    """Return rows as JSON has them: NaN, which it has not, is null."""
    if isinstance(records, float) and math.isnan(records):
        return None
    if isinstance(records, dict):
        return {name: plain(value) for name, value in records.items()}
    return [plain(one) for one in records] if isinstance(records, list) else records


def run(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what JavaScript makes of tasks: scores as an array, or an error."""
    assert NODE is not None
    given = json.dumps(tasks, allow_nan=False).encode()
    done = subprocess.run([NODE, SCRIPT], input=given, capture_output=True, check=True)
    found = json.loads(done.stdout)
    for one in found:
        if "scores" in one:
            one["scores"] = np.frombuffer(base64.b64decode(one["scores"]), "<f8")
    return found


def task(model: Path, case: Any, **more: Any) -> dict[str, Any]:
    """Return the task to score the rows of a case by a file."""
    return {"model": str(model), "rows": plain(case.records), **more}
