"""The page of the lowest rows as people see it: on a phone and on a desk."""

import numpy as np
import pandas as pd
import pytest

import chromium
from hushtable import HushTable
from hushtable.data.readers import as_reader
from hushtable.report.page import top_page
from hushtable.scores.outliers import Search
from hushtable.scores.scorer import Scorer


@pytest.mark.slow
@pytest.mark.skipif(chromium.found() is None, reason="no Chromium here")
@pytest.mark.parametrize("dark", [False, True])
def test_cards_on_a_phone_and_on_a_desk(dark, rng, tmp_path):
    rows = pd.DataFrame(rng.normal(size=(300, 4)), columns=["a", "b", "c" * 60, "d"])
    rows["ward"] = np.repeat(["a ward with a long name, and more", "x" * 80, "south"], 100)
    detector = HushTable(random_state=0).fit(rows)
    scorer, usual = Scorer(detector.sketch_), detector._usual_values()
    found = Search(scorer, 20, keep=("ward",), usual=usual).find(as_reader(rows))
    path = tmp_path / "top.html"
    path.write_text(top_page(found, "m.hush", "rows.csv", "bits"))
    with chromium.Chromium(tmp_path / "profile") as browser:
        for width in (390, 1280):
            browser.show(path, width, dark=dark)
            assert browser.run("document.documentElement.scrollWidth") <= width
            # Each picture has its card's room, and texts that can be read.
            sizes = browser.run(
                "[...document.querySelectorAll('figure svg')].map((e) => "
                "[e.getBoundingClientRect().width, e.closest('li').getBoundingClientRect().width])"
            )
            assert len(sizes) >= 20
            assert all(200 <= picture <= card <= width for picture, card in sizes)
        assert browser.complaints == []
        assert browser.asked == [path.as_uri()] * 2
