"""The page as people see it: opened, clicked through and printed in Chromium."""

import io

import numpy as np
import pytest
from matplotlib.image import imread

import chromium
from hushtable.report import page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        chromium.found() is None, reason="no Chromium here: apt-get install chromium"
    ),
]

PHONE, DESK = 390, 1280

#: The least contrast of a text with what is behind it, over all texts that are shown.
CONTRAST = """(() => {
    const light = (colour) => {
        const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map((part) => {
            const x = part / 255;
            return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const paper = (element) => {
        for (let e = element; e; e = e.parentElement) {
            const colour = getComputedStyle(e).backgroundColor;
            if (colour !== "rgba(0, 0, 0, 0)") return colour;
        }
        return "rgb(255, 255, 255)";
    };
    let least = 21;
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const element = walker.currentNode.parentElement;
        if (!walker.currentNode.data.trim() || !element.getClientRects().length) continue;
        const style = getComputedStyle(element);
        const ink = element.closest("svg") ? style.fill : style.color;
        const [low, high] = [light(ink), light(paper(element))].sort((a, b) => a - b);
        least = Math.min(least, (high + 0.05) / (low + 0.05));
    }
    return least;
})()"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium.Chromium(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def files(tmp_path_factory, of_everything, of_marginals, of_values):
    folder = tmp_path_factory.mktemp("pages")
    pages = {"everything": of_everything, "marginals": of_marginals, "values": of_values}
    for name, report in pages.items():
        (folder / f"{name}.html").write_text(page.html(report.page), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in pages}


@pytest.fixture
def file(files):
    return files["everything"]


@pytest.fixture(autouse=True)
def _quiet(browser, files):
    """No test may leave a complaint in the console, or make the page ask for anything."""
    browser.complaints.clear()
    browser.asked.clear()
    yield
    assert browser.complaints == []
    assert set(browser.asked) <= {"data:,", *(one.as_uri() for one in files.values())}


@pytest.fixture(params=[False, True], ids=["light", "dark"])
def shown(browser, files, request):
    """Show a page, which fits its window and can be read; return whether in the dark."""

    def show(name, width):
        browser.show(files[name], width, dark=request.param)
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.run(CONTRAST) >= 4.5
        return request.param

    return show


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_looks(browser, shown, width):
    dark = shown("everything", width)
    picture = imread(io.BytesIO(browser.picture()))[..., :3]
    assert picture.shape[1] >= width - 20
    paper = picture[2, 2]
    assert (paper.mean() < 0.2) == dark
    written = (np.abs(picture - paper) > 0.3).any(axis=(1, 2))
    assert written.mean() > 0.3, "hardly anything on the page"
    # Bars and curves are there, in the colours of the page.
    sizes = browser.run(
        "[...document.querySelectorAll('svg')].map((s) => [s.clientWidth, s.clientHeight])"
    )
    assert len(sizes) == 1
    assert all(w > 250 and h > 60 for w, h in sizes)
    fills = browser.run(
        "[...document.querySelectorAll('svg path')].map((p) => getComputedStyle(p).fill)"
    )
    expected = "rgb(108, 178, 240)" if dark else "rgb(31, 111, 178)"
    assert expected in fills


@pytest.mark.parametrize(("width", "across"), [(PHONE, 1), (DESK, 4)])
def test_histograms_stand_side_by_side(browser, shown, width, across):
    shown("marginals", width)
    lefts = browser.run(
        "[...document.querySelectorAll('#features figure')]"
        ".map((f) => Math.round(f.getBoundingClientRect().left))"
    )
    assert len(lefts) == 4
    assert len(set(lefts)) == across


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_rows_are_cards(browser, shown, width):
    shown("values", width)
    # Nothing is cut off, and nothing has to be scrolled to.
    edges = browser.run(
        "[...document.querySelectorAll('.rows *')].map((e) => e.getBoundingClientRect().right)"
    )
    assert len(edges) > 50
    assert max(edges) <= width - 16


def test_clicking_through(browser, file):
    browser.show(file, DESK, height=700)
    links = browser.run("[...document.querySelectorAll('nav a')].map((a) => a.hash)")
    assert links == ["#scores", "#features", "#privacy", "#sites", "#file", "#left-out"]
    browser.run("document.documentElement.style.scrollBehavior = 'auto'")
    for link in links:
        browser.click(f"nav a[href='{link}']")
        assert browser.run("location.hash") == link
        top = browser.run(f"document.querySelector('{link}').getBoundingClientRect().top")
        assert -5 <= top < 700, link


def test_keyboard_reaches_all_that_can_be_clicked(browser, file):
    browser.show(file, DESK)
    reached = set()
    for _ in range(30):
        browser.press_tab()
        reached.add(browser.run("document.activeElement.outerHTML.slice(0, 60)"))
    clickable = browser.run(
        "[...document.querySelectorAll('a')].map((e) => e.outerHTML.slice(0, 60))"
    )
    assert set(clickable) <= reached


def test_nothing_of_a_name_runs(browser, file):
    browser.show(file, DESK)
    assert browser.run("document.scripts.length") == 0
    assert browser.run("document.images.length") == 0
    assert browser.run("document.body.textContent.includes('<script>alert(1)</script>')")


def test_paper(browser, file):
    """Print is dark on light, even where the screen is dark, without links."""
    browser.show(file, DESK, dark=True, media="print")
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.run("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert browser.printed().startswith(b"%PDF")
