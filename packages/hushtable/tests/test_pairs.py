"""Pairs of values that are usual each, and rare together."""

import re

import numpy as np
import pandas as pd
import pytest

from hushtable import Feature, HushTable, Schema, files, load
from hushtable.charts.reasons import Pictures
from hushtable.errors import FileError
from hushtable.scores.pairs import CELLS, MOST_COLUMNS, PairCounts
from hushtable.scores.reasons import Reason
from hushtable.scores.typical import ValuePhrase
from hushtable.scores.usual import Usual

SCHEMA = Schema([
    Feature.numeric("height", low=100, high=230),
    Feature.numeric("weight", low=20, high=200),
    Feature.numeric("children", low=0, high=9),
    Feature.categorical("ward", ["north", "south"]),
])  # fmt: skip


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


def counted(rows):
    """Return the pairs of rows, and the cells of each row."""
    import pyarrow as pa

    batch = pa.RecordBatch.from_pandas(rows, preserve_index=False)
    usual = Usual.of(SCHEMA, [batch.slice(0, 700), batch.slice(700)], np.ones(len(rows), np.int64))
    return usual.pairs, usual.pairs.place(SCHEMA.features, batch)


def test_counts_and_rarity_are_those_of_a_loop(people):
    people.loc[:20, "weight"] = np.nan
    pairs, cells = counted(people)
    expected = np.zeros((CELLS, CELLS))
    for a, b in cells[:, [0, 1]]:
        if a >= 0 and b >= 0:
            expected[a, b] += 1
    for k in range(CELLS):
        np.testing.assert_array_equal(pairs.given(0, 1, k), expected[:, k])
        np.testing.assert_array_equal(pairs.given(1, 0, k), expected[k])
    a, b = 7, 0  # tall, and light
    both = expected[a].sum() * expected[:, b].sum() / expected.sum()
    rarity = pairs.rarity(np.array([a, b, 0, 0]))
    assert rarity[0, 1] == rarity[1, 0] == (both + 0.5) / (expected[a, b] + 0.5) > 4.0
    assert (pairs.rarity(np.array([a, -1, 0, 0]))[1] == 1.0).all()


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


@pytest.mark.parametrize(
    ("column", "own", "names"),
    [
        ("height", "below", r"below \d+|\d+ to \d+|at least \d+"),
        ("weight", "at least", r"below \d+|\d+ to \d+|at least \d+"),
        ("children", "2", "[0-3]|others"),
        ("ward", "north", "north|south|others"),
    ],
)
def test_the_picture_of_a_pair_is_what_its_partner_goes_with(people, column, own, names):
    partners = {"height": "weight", "weight": "height", "children": "ward", "ward": "children"}
    values = {"height": 150.0, "weight": 100.0, "children": 2.0, "ward": "north"}
    detector = HushTable(random_state=0, n_tables=5).fit(people)
    usual, features = detector._usual_values(), detector.plan_.schema.of_rows.features
    phrase = ValuePhrase(None, "", "", "", "")
    partner = partners[column]
    reason = Reason(column, 1.0, phrase, partner, values[column], values[partner])
    svg = str(Pictures(features, usual).of(reason))
    flagged = re.findall(r'font-weight="600"[^>]*>([^<]*)', svg)
    assert flagged[0].startswith(own), flagged
    assert flagged[1] in ("0%", "<0.001%") or float(flagged[1].rstrip("%")) < 5.0
    others = re.findall(r"<text[^>]*>([^<]*)", svg)
    assert all(re.fullmatch(rf"{names}|<?[\d.]+%|\d others|&lt;.*", one) for one in others), others


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


def test_independent_columns_have_no_pairs(rng):
    rows = rng.normal(size=(3000, 6))
    found = HushTable(random_state=0).fit(rows).outliers(rows[:300], n=300)
    named = sum("each usual" in words for words in found["words"].to_pylist())
    assert named <= 3


def test_few_rows_and_many_columns(rng):
    few = HushTable(random_state=0).fit(rng.normal(size=(99, 3)))
    assert few._usual_values().pairs is None
    wide = HushTable(random_state=0, n_tables=5).fit(rng.normal(size=(120, MOST_COLUMNS + 9)))
    assert len(wide._usual_values().pairs.cells) == MOST_COLUMNS


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


def test_pairs_of_nothing_are_none():
    assert PairCounts.of([], [], [], np.zeros(0, np.int64)) is None
