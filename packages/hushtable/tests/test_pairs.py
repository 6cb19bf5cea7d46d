"""Pairs of values that are usual each, and rare together."""

import re

import numpy as np
import pandas as pd
import pytest

from hushtable import HushTable, files, load
from hushtable.errors import FileError


@pytest.fixture
def people(rng):
    """1,500 rows: weight follows height, and children live in the south alone."""
    height = rng.normal(170, 9, 1500).round()
    south = rng.random(1500) < 0.4
    return pd.DataFrame({
        "height": height,
        "weight": (height - 100 + rng.normal(0, 6, 1500)).round(),
        "children": np.where(south, rng.integers(0, 4, 1500), 0).astype(float),
        "ward": np.where(south, "south", "north"),
    }).astype({"ward": object})  # fmt: skip


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"height": 184.0, "weight": 60.0},
            r"(height 184 with weight 60|weight 60 with height 184)",
        ),
        ({"children": 2.0, "ward": "north"}, r"(children 2 with ward north|ward north with child)"),
    ],
)
def test_a_planted_pair_is_named(people, values, words):
    detector = HushTable(random_state=0).fit(people)
    typical = {"height": 170.0, "weight": 70.0, "children": 0.0, "ward": "north"}
    row = pd.DataFrame([typical | values]).astype({"ward": object})
    table = detector.outliers(row, n=1)
    said = table["words"].item()
    assert re.search(words, said), said
    assert "each usual, together" in said
    assert "times rarer than expected" in said
    assert table["direction_1"].item().startswith("with ")


def test_a_usual_range_excludes_the_value_and_holds_what_it_claims(rng):
    n = 3000
    kind = rng.choice(["A", "B"], n)
    rows = pd.DataFrame()
    for k in range(6):
        # Rows of type A have high numbers, or, in the last column, low or high ones.
        own = rng.poisson(np.where(rng.random(n) < (0.5 if k == 5 else 0.0), 3.0, 26.0))
        odd = rng.random(n) < 0.03
        values = np.where((kind == "A") & ~odd, own, rng.poisson(12.0, n))
        rows[f"x{k}"] = values.astype(float)
    rows["kind"] = pd.Series(kind, dtype=object)
    model = HushTable(random_state=0).fit(rows)
    odd = rows[(kind == "A") & rows[["x0", "x5"]].isin(range(9, 15)).any(axis=1)]
    listed = model.outliers(odd, n=len(odd))["words"]
    pattern = r"(x\d) (\d+) with kind (\w): usually (below|at least) (\d+) for kind \3 \("
    found = {one for words in listed for one in re.findall(pattern, words)}
    assert len(found) >= 5
    for name, value, of, side, end in found:
        partners = rows.loc[rows["kind"] == of, name]
        inside = partners < float(end) if side == "below" else partners >= float(end)
        assert inside.mean() >= 0.9, (name, value, of, side, end)
        assert (float(value) < float(end)) != (side == "below")
        assert float(end) in set(rows[name])
    assert listed.str.contains(r"x5 \d+ with kind A \(each usual, together").any()


def test_a_file_keeps_them_and_refuses_others(people, tmp_path):
    detector = HushTable(random_state=0, n_tables=20).fit(people)
    detector.save(tmp_path / "d.hush")
    expected = detector.outliers(people, n=20)
    pd.testing.assert_frame_equal(load(tmp_path / "d.hush").outliers(people, n=20), expected)
    content = files.read(tmp_path / "d.hush")
    left_out = ("protocol", "kind", "arrays", "digest", "writer")
    entries = {k: v for k, v in content.manifest.items() if k not in left_out}

    def refused(entries, arrays):
        files.write(tmp_path / "e.hush", "detector", entries, arrays)
        with pytest.raises(FileError, match=r"pairs|cells of|bars"):
            load(tmp_path / "e.hush")

    arrays = dict(content.arrays)
    for name in ("usual.pairs", "usual.bars"):
        refused(entries, arrays | {name: arrays[name].astype(np.int64)})
        refused(entries, arrays | {name: arrays[name][:1]})
    cells = entries["usual_cells"]
    for broken in (
        [*cells, {"names": ["x"]}],
        [{"edges": [3.0, 2.0]}, *cells[1:]],
        [{"edges": [3.0]}, *cells[1:]],
        [{"names": ["x"]}, *cells[1:]],
        [{"edges": [1.0, 2.0], "names": ["1.0"]}, *cells[1:]],
        [*cells[:3], {"edges": [1.0, 2.0]}],
    ):
        refused(entries | {"usual_cells": broken}, arrays)
