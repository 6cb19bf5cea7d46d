"""Reasons by counterfactuals: what a list names is what moves the row; and rows that are alike."""

import json

import numpy as np
import pandas as pd
import pytest

from hushtable import HushTable
from hushtable.scores.outliers import find_incidents
from hushtable.scores.reasons import Reason
from hushtable.scores.typical import ValuePhrase


@pytest.fixture
def orders(rng):
    rows = pd.DataFrame({
        "amount": rng.lognormal(3.5, 0.6, 1200).round(2),
        "hour": rng.normal(14, 3, 1200).round(1),
        "country": rng.choice(["NZ", "AU", "FJ"], 1200, p=[0.7, 0.26, 0.04]),
        "gift": (rng.random(1200) < 0.1) * 1.0,
    }).astype({"country": object})  # fmt: skip
    rows.loc[:3, "amount"] = [4000.0, np.nan, 900.0, 700.0]
    return rows


def usual(rows, name, within=None):
    values = rows[name].dropna()
    if values.nunique() <= 10:
        return values.mode()[0]
    return np.quantile(values, 0.5, method="inverted_cdf")


@pytest.mark.parametrize("options", [{}, {"passes": 1}, {"context": ["country"]}])
def test_a_repair_is_what_scores_say(orders, options):
    detector = HushTable(random_state=0, **options).fit(orders)
    found = detector._lowest(orders, 15)
    bar = detector._lowest(orders, 16).rows[15].score
    names = list(orders)
    for row in found.rows:
        why, here = row.why, orders.iloc[[row.row]].copy()
        among = orders
        if options.get("context"):
            among = orders[orders["country"] == here["country"].item()]
        for name in why.repaired:
            here[name] = usual(orders if name == "country" else among, name)
        if "country" not in why.repaired or not options.get("context"):
            assert detector.score_samples(here)[0] == pytest.approx(why.score)
        assert why.enough == (why.score > bar)
        for reason in why.reasons:
            if reason.feature == "country" and options.get("context"):
                continue
            alone = orders.iloc[[row.row]].copy()
            alone[reason.feature] = usual(
                orders if reason.feature == "country" else among, reason.feature
            )
            gain = detector.score_samples(alone)[0] - row.score
            assert reason.share == pytest.approx(max(gain, 0.0), abs=1e-9)
            assert reason.feature in names
    assert sum(row.why.enough for row in found.rows) >= 13


def test_the_repair_is_in_table_page_and_json(orders):
    from hushtable.report.page import top_page

    detector = HushTable(random_state=0).fit(orders)
    found = detector._lowest(orders, 5)
    repairs = found.table()["repair"].to_pylist()
    assert repairs[0].startswith("with a usual value of amount: not listed, severity ")
    assert f"{repairs[0][0].upper()}{repairs[0][1:]}." in top_page(found, "m.hush", "o.csv", "bits")
    facts = json.loads(json.dumps(found.rows[0].facts()))
    assert facts["repaired"] == {
        "columns": ["amount"], "score": found.rows[0].why.score, "enough": True,
    }  # fmt: skip
    assert facts["far"]


def test_incidents_share_their_strongest_reason():
    def reason(feature, direction, text="7", share=None):
        phrase = ValuePhrase(7.0, text, "1 to 5", direction, "", True, share)
        return Reason(feature, 1.0, phrase)

    high, low, plain = reason("a", "high"), reason("a", "low"), reason("b", "")
    rare = reason("c", "rare", "x", 0.01)
    found = find_incidents([[high, rare], [low], [high, plain], [rare, high], [], [high, rare]])
    assert [(one.rows, one.words) for one in found] == [([0, 2, 5], "a high")]
    assert [(one.rows, one.words) for one in find_incidents([[high, rare], [high, rare]])] == [
        ([0, 1], "a high, c x")
    ]
    assert find_incidents([[plain], [plain]]) == []
