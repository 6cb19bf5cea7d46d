"""Exports of other countries and programs come right, or are refused with a way out."""

import numpy as np
import pandas as pd
import pytest
from world_judge import WORLD, judge


def some(names):
    """Mark three of four for the slow run."""
    return [
        pytest.param(name, marks=[pytest.mark.slow] * (at % 4 > 0)) for at, name in enumerate(names)
    ]


def made(name, folder):
    """Write a file, or skip where its writer is not installed."""
    for module in WORLD[name].needs:
        pytest.importorskip(module)
    return WORLD[name].write(folder)


@pytest.mark.parametrize("name", WORLD)
def test_world_writers(name, tmp_path):
    """Each file, read back by other means, is its twin."""
    _, written = made(name, tmp_path)
    twin, read = written.twin, written.back()
    assert len(read) == len(twin) == 400
    for column, values in twin.items():
        found = read[column]
        if values.dtype.kind in "if":
            np.testing.assert_allclose(
                pd.to_numeric(found).astype(float), values.astype(float), 1e-9, err_msg=column
            )
        else:
            texts = [None if pd.isna(value) else str(value) for value in found]
            assert texts == [None if pd.isna(value) else str(value) for value in values], column


@pytest.mark.parametrize("name", some(WORLD))
def test_an_export_comes_right_or_is_refused_with_a_way_out(name, tmp_path):
    for module in WORLD[name].needs:
        pytest.importorskip(module)
    found = judge(WORLD[name], tmp_path)
    assert found.verdict in WORLD[name].must.split(" or "), found


def test_few_exports_may_be_refused():
    assert len(WORLD) == 80
    assert sum(case.must != "right" for case in WORLD.values()) <= 12
