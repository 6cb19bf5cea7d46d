"""The German desk on a telephone of 360 pixels: nothing is cut, and rows leave room for others."""

import pytest

import chromium
from chromium import Chromium
from desk_helpers import served
from messy_laboratory import write_laboratory

pytestmark = pytest.mark.skipif(chromium.found() is None, reason="Chromium is not installed")

#: The right ends of tables, of what is chosen in them, and the height of the tallest row.
CUT = """[...document.querySelectorAll("table.stacked :is(td, th, select)")].filter(
    (e) => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth).length"""
TALLEST = """Math.max(...[...document.querySelectorAll("table.stacked tbody tr")].map(
    (e) => e.getBoundingClientRect().height))"""


@pytest.mark.slow
def test_tables_stack_their_cells_and_the_bar_is_one_line(tmp_path):
    write_laboratory(tmp_path / "laboratory.csv", n=600)
    with served(tmp_path) as (address, desk, _), Chromium(tmp_path / "profile") as browser:
        desk.language = "de"
        table = desk.table(desk.folder.tables[0].key)
        table.fit().wait()
        browser.show(address, 360, 700)
        browser.until("document.readyState === 'complete' && !!document.querySelector('.tiles a')")
        for page in ("", "/rows"):
            browser.show(f"{address.partition('/open/')[0]}/t/{table.key}{page}", 360, 700)
            browser.until("document.readyState === 'complete' && !!document.querySelector('main')")
            assert browser.run(CUT) == 0
            assert browser.run(TALLEST) < 400
        header = "document.querySelector('.top').offsetHeight"
        assert browser.run(header) < 60
        assert browser.run("document.querySelector('.judge').offsetHeight") < 60
        assert browser.run("document.querySelector('.judge').scrollWidth") <= 360
        browser.press("n")
        browser.press("x")
        assert browser.run("document.querySelector('#note').offsetWidth") > 300
        top = browser.run("document.querySelector('#note').getBoundingClientRect().bottom")
        assert (
            top <= browser.run("document.querySelector('.judge').getBoundingClientRect().top") + 1
        )
        browser.show(f"{address.partition('/open/')[0]}/t/{table.key}/rows", 1280, 700)
        browser.until("document.readyState === 'complete' && !!document.querySelector('main')")
        assert browser.run(header) < 60
