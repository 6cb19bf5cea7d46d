"""The desk in a browser, by mouse and keys: from a file to a sheet, and what axe finds."""

import json
import os
import statistics
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import chromium
from chromium import Chromium
from desk_helpers import WIDE, axe_faults, patients, served
from messy_laboratory import write_laboratory

pytestmark = pytest.mark.skipif(chromium.found() is None, reason="Chromium is not installed")

#: Where pictures for the documentation are written; nowhere if it is empty.
PICTURES = os.environ.get("HUSHTABLE_DESK_PICTURES", "")
#: Seconds of a person, by the keystroke-level model (Card, Moran and Newell, 1980): a key, a click
#: with the mouse, a decision. A row is read for five seconds before it is judged.
KEY, CLICK, DECISION, READ = 0.28, 1.4, 1.35, 5.0

LOADED = "document.readyState === 'complete' && "
ROWS = f"{LOADED}!!document.querySelector('h1[data-number]')"
FOLDER = f"{LOADED}!!document.querySelector('.tiles a')"
FIT = f"{LOADED}!!document.querySelector('#do-fit')"


class Person:
    """Uses a browser, and counts what that takes."""

    def __init__(self, browser):
        self.browser, self.seconds, self.keys, self.clicks = browser, 0.0, 0, 0

    def click(self, selector, then="true"):
        """Click on something, and wait for what follows."""
        self.browser.click(selector)
        self.browser.until(f"{LOADED}{then}")
        self.clicks += 1
        self.seconds += CLICK + DECISION

    def press(self, key):
        """Judge the row: press a key, and wait for the next one."""
        number = self.browser.run("document.querySelector('h1[data-number]')?.dataset.number")
        self.browser.press(key)
        self.browser.until(
            f"document.querySelector('#row h1')?.dataset.number !== {json.dumps(number)}"
        )
        self.keys += 1
        self.seconds += KEY + DECISION + READ

    def picture(self, name, height=860):
        """Keep a picture for the documentation."""
        if PICTURES:
            (Path(PICTURES) / f"{name}.png").write_bytes(self.browser.picture("html", height))


def local(browser, address):
    """Check that a browser asked for nothing elsewhere and complained of nothing."""
    base = address.partition("/open/")[0]
    elsewhere = [one for one in browser.asked if not one.startswith(f"{base}/")]
    assert [one for one in elsewhere if not one.startswith(("data:", "blob:"))] == []
    assert browser.complaints == []


@pytest.mark.slow
def test_from_a_messy_file_to_twenty_judged_rows_and_a_sheet(tmp_path):
    """In less than three minutes of a person; prints the seconds, keys and clicks."""
    folder = tmp_path / "laboratory"
    folder.mkdir()
    write_laboratory(folder / "laboratory.csv")
    with served(folder) as (address, desk, _), Chromium(tmp_path / "profile") as browser:
        browser.show(address, 1280, 860)
        browser.until(FOLDER)
        person = Person(browser)
        person.picture("desk-folder", 400)
        person.click(".tiles a", "!!document.querySelector('#do-fit')")
        person.picture("desk-table")
        person.click("[data-say=missing]", "!!document.querySelector('.decisions')")
        person.click("[value=Ward]", "document.body.textContent.includes('within: Ward')")
        person.click("#do-fit", "!!document.querySelector('h1[data-number]')")
        person.picture("desk-rows")
        for k in range(20):
            person.press("of"[k % 3 == 2])
            person.picture(f"film-{k:02}")
        person.picture("desk-judged")
        person.click(".menu summary")
        sheet = browser.run("document.querySelector('a[href*=xlsx]').href")
        person.click("a[href*=xlsx]")
        content = browser.run(
            f"fetch({json.dumps(sheet)}).then((answer) => answer.arrayBuffer()).then((it) => "
            "String.fromCharCode(...new Uint8Array(it).slice(0, 2)))"
        )
        assert content == "PK"
        person.click("nav a[href$=learned]", "!!document.querySelector('.wide svg')")
        person.picture("desk-learned")
        local(browser, address)
        looked = desk.table(desk.folder.tables[0].key).judging.review.found()["looked_at"]
    print(f"{person.seconds:.0f} s of a person: {person.clicks} clicks, {person.keys} keys")
    assert looked == 20
    assert person.seconds < 180


@pytest.mark.slow
def test_sixty_rows_are_judged_by_keys_alone(tmp_path):
    patients(400).to_csv(tmp_path / "patients.csv", index=False)
    with served(tmp_path) as (address, desk, _), Chromium(tmp_path / "profile") as browser:
        browser.show(address, 1280)
        browser.until(FOLDER)
        _by_keys(browser, ".tiles a")
        browser.until(FIT)
        _by_keys(browser, "#do-fit")
        browser.until(ROWS)
        person = Person(browser)
        for k in range(60):
            person.press("ofs"[k % 3])
        last = browser.run("document.querySelector('h1[data-number]').dataset.number")
        browser.press("u")
        browser.until(f"document.querySelector('h1[data-number]').dataset.number !== '{last}'")
        assert browser.run("document.querySelectorAll('#row .dot').length") == 10
        browser.press("?")
        browser.until("document.querySelector('#keys').open")
        browser.press("Escape", 27)
        browser.until("!document.querySelector('#keys').open")
        browser.press("n")
        for letter in "odd":
            browser.press(letter)
        assert browser.run("document.querySelector('#note').value") == "odd"
        browser.press("Escape", 27)
        first = browser.run("document.querySelector('h1[data-number]').dataset.number")
        browser.press("ArrowDown", 40)
        browser.until(f"document.querySelector('h1[data-number]').dataset.number !== '{first}'")
        browser.run("history.back()")
        browser.until(f"document.querySelector('h1[data-number]').dataset.number === '{first}'")
        table = desk.table(desk.folder.tables[0].key)
        assert len(table.judging.review.last()) == 59
        local(browser, address)


def _by_keys(browser, selector):
    """Reach something by the Tab key, and press Enter there."""
    for _ in range(80):
        browser.press_tab()
        if browser.run(f"document.activeElement.matches({json.dumps(selector)})"):
            browser.press("\r", 13)
            return
    raise AssertionError(f"the Tab key does not reach {selector}")


def test_two_tabs_and_a_verdict_from_an_old_page(tmp_path):
    """Both tabs write one log; what one judged, the other may judge again."""
    patients(100).to_csv(tmp_path / "patients.csv", index=False)
    with served(tmp_path) as (address, desk, _), Chromium(tmp_path / "profile") as browser:
        browser.show(address, 1280)
        browser.until(FOLDER)
        browser.click(".tiles a")
        browser.until(FIT)
        browser.click("#do-fit")
        browser.until(ROWS)
        number = int(browser.run("document.querySelector('h1[data-number]').dataset.number"))
        table = desk.table(desk.folder.tables[0].key)
        table.judging.answer(number, "fine", "", "in another tab")
        Person(browser).press("o")
        assert table.judging.review.last()[number].verdict == "outlier"


@pytest.mark.slow
def test_without_a_script_everything_is_read_and_nothing_judged(tmp_path):
    patients(100).to_csv(tmp_path / "patients.csv", index=False)
    with served(tmp_path) as (address, desk, _), Chromium(tmp_path / "profile") as browser:
        table = desk.table(desk.folder.tables[0].key)
        table.fit().wait()
        browser._do("Emulation.setScriptExecutionDisabled", value=True)
        browser.show(address, 1280)
        time.sleep(0.5)
        browser.show(f"{address.split('/open')[0]}/t/{table.key}/rows", 1280)
        page = browser._do("DOM.getDocument")["root"]["nodeId"]
        text = browser._do("DOM.getOuterHTML", nodeId=page)["outerHTML"]
        assert "Without JavaScript you can read everything here, but you cannot judge rows." in text
        assert "<svg" in text
        assert "data-number" in text


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "de"])
def test_axe_finds_nothing(tmp_path, language):
    """On every page, at 360 and 1,280 pixels, dark and light; and no page is too wide."""
    pytest.importorskip("axe_core_python", reason="axe-core is not installed")
    write_laboratory(tmp_path / "laboratory.csv", n=600)
    doubtful = patients(100).rename(columns={"ward": "ü" * 150})
    doubtful["seen"] = [f"{1 + i % 12:02}/{1 + i % 12:02}/2026" for i in range(100)]
    doubtful.to_csv(tmp_path / "doubts.csv", index=False)
    with served(tmp_path) as (address, desk, _), Chromium(tmp_path / "profile") as browser:
        desk.language = language
        tables = {one.name: desk.table(one.key) for one in desk.folder.tables}
        table = tables["laboratory.csv"]
        table.decide("context", "Ward")
        table.fit().wait()
        judging = table.judging
        for k in range(12):
            judging.answer(judging.next(), "outlier" if k % 3 else "fine", "looked", "Ben")
        number = "Temp"
        judging.write_rule("column", {"name": number, "impossible_above": 1e9}, None)
        browser.show(address, 1280)
        browser.until(FOLDER)
        at, base = f"/t/{table.key}", address.partition("/open/")[0]
        model = desk.folder.models[0].key
        pages = ["/", at, f"{at}?layout", f"/t/{tables['doubts.csv'].key}", f"{at}/rows",
                 f"{at}/rows?order=down:{number}", f"{at}/learned", f"{at}/rules", f"{at}/watch",
                 "/models", f"/models/{model}", "/rounds", "/nothing"]  # fmt: skip
        found = axe_faults(browser, base, pages)
        browser.complaints = [one for one in browser.complaints if "/nothing" not in one]
        local(browser, address)
    assert found == [], "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_text_of_twice_the_size_fits(tmp_path, width):
    """Every page grows with the reader's size of text, and no page becomes too wide."""
    patients(400).to_csv(tmp_path / "patients.csv", index=False)
    with served(tmp_path) as (address, desk, _), Chromium(tmp_path / "profile") as browser:
        table = desk.table(desk.folder.tables[0].key)
        table.fit().wait()
        browser.show(address, width)
        browser.until(FOLDER)
        base = f"{address.partition('/open/')[0]}/t/{table.key}"
        for page in ("", "/rows", "/rules", "/learned", "/watch"):
            browser.show(f"{base}{page}", width)
            browser.until(f"{LOADED}!!document.querySelector('main')")
            high = browser.run("document.querySelector('h1').offsetHeight")
            browser.run("document.documentElement.style.fontSize = '200%'; 0")
            assert browser.run("document.querySelector('h1').offsetHeight") >= 1.9 * high
            assert not browser.run(WIDE), page
            assert browser.run(
                "[...document.querySelectorAll('.judge button, .judge label')].every((one) => "
                "one.getBoundingClientRect().right <= innerWidth)"
            )


@pytest.mark.slow
@pytest.mark.serial
def test_a_million_rows(tmp_path):
    """The list in a second, the next row in a tenth, and memory flat over 1,000 verdicts."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10**6, 20)).round(3)
    X[:60, 3] += 8.0
    X[60:120, 5] -= 9.0
    pa.csv.write_csv(pa.table({f"c{j}": X[:, j] for j in range(20)}), tmp_path / "big.csv")
    with served(tmp_path) as (address, desk, _), Chromium(tmp_path / "profile") as browser:
        table = desk.table(desk.folder.tables[0].key)
        table.fit().wait()
        assert table.job.error == ""
        browser.show(address, 1280)
        browser.until(FOLDER)
        start = time.perf_counter()
        browser.show(f"{address.partition('/open/')[0]}/t/{table.key}/rows", 1280)
        browser.until(ROWS)
        listed = time.perf_counter() - start
        browser.run(_TIMED)
        times = browser.run("judged(100)")
        before = _resident()
        for _ in range(9):
            browser.run("judged(100)")
        grown = _resident() - before
        # No person goes through the browser's history this fast.
        fast = "Throttling navigation"
        browser.complaints = [one for one in browser.complaints if fast not in one]
        local(browser, address)
    median = statistics.median(times)
    print(f"list {listed:.2f} s, next row {median:.0f} ms (median of 100), {grown:+.0f} MB")
    assert listed < 1.0
    assert median < 100.0
    assert grown < 40.0


#: Presses a key, and returns the milliseconds until the next row is drawn.
_TIMED = """window.judged = async (n) => {
    const times = [], section = document.querySelector("#row");
    for (let k = 0; k < n; k++) {
        const start = performance.now();
        const drawn = new Promise((resolve) => new MutationObserver((_, watcher) => {
            watcher.disconnect();
            requestAnimationFrame(() => resolve());
        }).observe(section, {childList: true}));
        const key = k % 3 ? "f" : "o";
        document.body.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
        await drawn;
        times.push(performance.now() - start);
    }
    return times;
}; 0"""


def _resident():
    """Return the megabytes that this process has in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
