"""What the demo claims."""

import socket

import pytest

from hushtable import Plan, Sketch
from hushtable_federation.cli import demo


@pytest.fixture
def facts(run):
    return run("demo", "--json").json


def test_merged_is_pooled(facts):
    assert facts["merged_equals_pooled"] is True
    for hospital in [*facts["hospitals"], facts["all"]]:
        assert hospital["auc_merged"] == hospital["auc_pooled"]
    for hospital in facts["hospitals"]:
        better = max(hospital["auc_alone"], hospital["auc_merged"])
        assert hospital["auc_home"] > better - 0.03


def test_the_hospital_with_most_outliers_gains_by_merging(facts):
    centre = max(facts["hospitals"], key=lambda hospital: hospital["outliers"])
    assert centre["outliers"] > facts["all"]["outliers"] / 2
    assert centre["rows"] == min(hospital["rows"] for hospital in facts["hospitals"])
    assert centre["auc_alone"] < 0.8
    assert centre["auc_merged"] > centre["auc_alone"] + 0.08
    others = [hospital for hospital in facts["hospitals"] if hospital is not centre]
    assert all(abs(other["auc_merged"] - other["auc_alone"]) < 0.05 for other in others)


def test_every_row_is_at_one_hospital(facts):
    for key in ("rows", "outliers"):
        assert sum(hospital[key] for hospital in facts["hospitals"]) == facts["all"][key]
    assert facts["all"]["outliers"] == 36
    assert facts["all"]["rows"] == 357 + 36


def test_ranges_hold_every_row_and_are_public():
    """Rounded outward from the published minima and maxima: nothing is clipped."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    schema = demo._schema()
    assert schema.names == data.feature_names.tolist()
    assert schema.public
    plan = Plan.marginals(schema)
    assert not plan.data_dependent
    assert not Sketch.from_data(plan, data.data).tally.any()


def test_text(run, facts, monkeypatch):
    def refuse(*_):
        raise AssertionError("the demo opened a socket")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    result = run("demo")
    assert (result.code, result.err) == (0, "")
    rows = [line.split("  ") for line in result.out.splitlines()]
    rows = {row[0]: [cell.strip() for cell in row[1:] if cell.strip()] for row in rows}
    for hospital in facts["hospitals"]:
        aucs = [hospital[f"auc_{which}"] for which in ("alone", "merged", "pooled", "home")]
        assert rows[hospital["hospital"]] == [
            str(hospital["rows"]),
            str(hospital["outliers"]),
            *(f"{auc:.3f}" for auc in aucs),
        ]
    assert "to the bit" in result.out
    assert "Only 36 of the 212 are kept" in result.out
    assert "not private" in result.out
    assert "from hushtable import HushTable" in result.out
    assert "hushtable fit mine.csv -o model.hush" in result.out


def test_fails_if_merged_is_not_pooled(run, monkeypatch):
    monkeypatch.setattr(Sketch, "__eq__", lambda *_: False)
    result = run("demo")
    assert result.code == 1
    assert "merged and pooled counts differ" in result.err
    assert result.out == ""


def test_the_report_of_the_demo_is_refused_in_words(run):
    result = run("demo", "--report", "demo.html")
    assert result.code == 2
    assert "hushtable demo --report was removed: hushtable report writes" in result.err
