"""The conformance suite beside the golden files: what any implementation has to compute.

`facts` computes it with this library, for a file that is to join ``conformance.json``.
"""

import json

import numpy as np
import pyarrow as pa
import pytest

import places
from hushtable import Plan, Sketch, files
from hushtable.detectors.load import open_model

FOLDER = places.GOLDEN / "protocol-1"
SUITE = json.loads((FOLDER / "conformance.json").read_text())


def facts(name, rows):
    """Return what a file means: the cells of each row under a plan, or the score of each row."""
    given = SUITE["rows"][rows]
    columns = zip(*given["values"], strict=True)
    table = pa.table(dict(zip(given["columns"], map(pa.array, columns), strict=True)))
    content = files.read(FOLDER / name)
    if content.kind == "plan":
        plan = content.build(Plan.from_file)
        of_rows = (Sketch.from_data(plan, table.slice(i, 1)).counts for i in range(len(table)))
        cells = [np.flatnonzero(counts).tolist() for counts in of_rows]
        return {"rows": rows, "plan_id": plan.plan_id, "cells": cells}
    model = open_model(FOLDER / name)
    found = {"rows": rows, "plan_id": model.scorer.plan.plan_id}
    found["scores"] = model.scorer.score(table).tolist()
    if content.kind == "detector":
        found["threshold"] = float(model.threshold)
    return found


@pytest.mark.parametrize("name", SUITE["files"])
def test_this_library_conforms(name):
    expected = SUITE["files"][name]
    assert facts(name, expected["rows"]) == expected


def test_the_suite_has_every_kind_of_file_and_the_page_names_it():
    kinds = {files.read(FOLDER / name).kind for name in SUITE["files"]}
    assert kinds == {"plan", "sketch", "release", "detector"}
    page = (places.DOCS / "reference" / "file-format.md").read_text()
    assert "tests/golden/protocol-1/README.md" in page
