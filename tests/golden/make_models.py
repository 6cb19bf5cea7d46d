"""Models that every later version has to read, and to score by to the same bits.

python tests/golden/make_models.py    writes models that are not there yet; keeps the others
"""

import hashlib
import json
from pathlib import Path

import numpy as np

from hushtable import HushTable, LSHiTables, load

FOLDER = Path(__file__).parent / "protocol-1" / "models"
EXPECTED = FOLDER / "expected.json"


def rows():
    """Return rows that no generator draws, with values missing and far out."""
    i = np.arange(300)
    X = np.stack([(i * 7919 % 101) / 9.0, (i * 104729 % 211) / 21.0 - 5.0, (i * 31 % 7) ** 2.0], 1)
    X[::53, 1] = np.nan
    X[7] = 40.0, -30.0, 99.0
    return X


def facts(path):
    """Return what a model has to say of the rows."""
    model = load(path)
    said = model.score_samples(rows()), model.explain(rows()), np.float64(model.offset_)
    digest = hashlib.sha256(b"".join(np.asarray(a).astype("<f8").tobytes() for a in said))
    return {"plan_id": model.plan_.plan_id, "scores": digest.hexdigest()}


def main():
    FOLDER.mkdir(exist_ok=True)
    kept = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    for name, detector in {
        "two-passes": HushTable(n_tables=6, random_state=1),
        "novelty": HushTable(n_tables=6, novelty=True, random_state=1),
        "lsh-itables": LSHiTables(n_tables=6, random_state=1),
    }.items():
        if f"{name}.hush" not in kept:
            detector.fit(rows()).save(FOLDER / f"{name}.hush")
            kept[f"{name}.hush"] = facts(FOLDER / f"{name}.hush")
    EXPECTED.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
