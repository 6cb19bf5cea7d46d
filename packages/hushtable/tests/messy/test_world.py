"""Exports of other countries and programs come right, or are refused with a way out."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import world_judge
from world_judge import WORLD, asked, choice, judge, lost, merged, scores_of
from world_tables import Written


def some(names):
    """Mark three of four for the slow run."""
    return [
        pytest.param(name, marks=[pytest.mark.slow] * (at % 4 > 0)) for at, name in enumerate(names)
    ]


def export(name):
    """Return a case, or skip where its writer is not installed."""
    for module in WORLD[name].needs:
        pytest.importorskip(module)
    return WORLD[name]


@pytest.mark.parametrize("name", some(WORLD))
def test_an_export_comes_right_or_is_refused_with_a_way_out(name, tmp_path):
    case = export(name)
    found = judge(case, tmp_path)
    assert found.verdict in case.must.split(" or "), found


@pytest.mark.parametrize("name", WORLD)
def test_world_writers(name, tmp_path):
    """Each file, read back by other means, is its twin: a wrong writer blames no reader."""
    _, written = export(name).write(tmp_path)
    twin, read = written.twin, written.back()
    assert len(read) == len(twin) == 400
    for column, values in twin.items():
        found = read[column]
        if values.dtype.kind in "if":
            numbers = pd.to_numeric(found).astype(float)
            np.testing.assert_allclose(numbers, values.astype(float), 1e-9, err_msg=column)
        else:
            texts = [[None if pd.isna(one) else str(one) for one in side]
                     for side in (found, values)]  # fmt: skip
            assert texts[0] == texts[1], column


@pytest.mark.parametrize("name", some(WORLD))
def test_a_clean_twin_raises_no_question(name, tmp_path):
    case = export(name)
    _, written = case.write(tmp_path)
    for twin in (written.twin, *written.also):
        assert len(scores_of(twin, case, {}, tmp_path)) == 400


def test_few_exports_may_be_refused():
    assert len(WORLD) == 78
    assert sum(case.must != "right" for case in WORLD.values()) <= 12


def judged(change, folder, name="swiss_francs"):
    """Judge an export against another twin."""

    def make(path):
        written = WORLD[name].make(path)
        return Written(change(written.twin), written.back)

    return judge(replace(WORLD[name], make=make), folder)


def test_the_judge_condemns_a_silent_change(tmp_path):
    def wrong(twin):
        return twin.assign(
            Umsatz=twin["Umsatz"].where(twin["Umsatz"] < 2000, twin["Umsatz"] / 1000)
        )

    assert judged(lambda twin: twin, tmp_path).verdict == "right"
    assert judged(wrong, tmp_path).verdict == "silent"
    assert judged(lambda twin: twin[1:], tmp_path).detail == "400 rows, not 399"


def test_the_judge_condemns_a_refusal_that_helps_nobody(tmp_path, monkeypatch):
    monkeypatch.setattr(world_judge, "run", lambda *_: (1, "hushtable: error: no table"))
    assert judge(WORLD["swiss_francs"], tmp_path).verdict == "silent"
    said = "hushtable: error: no table: save it as CSV"
    monkeypatch.setattr(world_judge, "run", lambda *_: (1, said))
    assert judge(WORLD["swiss_francs"], tmp_path).verdict == "refused"


def test_the_judge_sees_which_columns_a_remedy_leaves_out():
    columns = ["day", "site name", "stats.amount"]
    written = Written(pd.DataFrame(columns=columns), pd.DataFrame)
    case = replace(WORLD["swiss_francs"], spare=("day",))
    options = {"--drop": "day,amount", "--as": "column 2=id"}
    assert lost(case, written, options) == {"site name", "stats.amount"}
    assert lost(case, written, {"--columns": "SITE NAME"}) == {"stats.amount"}
    assert choice({"--columns": "amount,day"}, columns)[1] == ["stats.amount", "day"]


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("no remedy", {}),
        ("Add: --drop a\nAdd: --as 'b c=id' --no-header", {"--as": "b c=id", "--no-header": ""}),
        ("Add: --as a=number or --drop a", {"--as": "a=number"}),
        ("Add: --missing -9,-8 --dates dmy/mdy", {"--missing": "-9,-8", "--dates": "dmy"}),
    ],
)
def test_the_judge_types_the_last_remedy_and_its_first_alternative(message, options):
    assert asked(message) == options


def test_remedies_are_typed_together():
    old = {"--drop": "a,b", "--decimal": ","}
    new = {"--drop": "b,c", "--decimal": ".", "--missing": "x"}
    assert merged(old, new) == {"--drop": "a,b,c", "--decimal": ".", "--missing": "x"}
