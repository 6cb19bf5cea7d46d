"""Open every page of the built site in Chromium, and refuse faults that a reader would notice.

Each page is opened in a desktop window with the light theme, and in a telephone's window with the
dark theme. It must not be wider than the window, must not write to the console, and must request
only files of the site. axe-core judges contrast, headings, names of links, language, and the rest.
The script needs no network; without Chromium, it prints that it checked nothing.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from chromium import Chromium, found

DESK, TELEPHONE = 1280, 360

#: Checks that axe-core lacks. Parts that scroll or are cut off inside a box do not widen it. The
#: theme lets the whole article scroll, so that it is measured like the page.
LOOK = """(() => {
    const wrong = [], article = document.querySelector(".bd-article-container");
    const widens = (e, box) => e === box
        || (getComputedStyle(e).overflowX === "visible" && widens(e.parentElement, box));
    for (const box of article ? [document.body, article] : [document.body]) {
        const scroller = box === article ? article : document.documentElement;
        if (scroller.scrollWidth <= scroller.clientWidth) continue;
        const end = scroller.getBoundingClientRect().left + scroller.clientWidth + 0.5;
        const wide = [...box.querySelectorAll("*")].filter((e) => e.checkVisibility()
            && e.getBoundingClientRect().right > end && widens(e.parentElement, box));
        const names = wide.slice(0, 3).map((e) => e.outerHTML.slice(0, 80)).join(" and ");
        wrong.push(`is ${scroller.scrollWidth} px wide: ${names}`);
    }
    for (const image of document.images) {
        const name = image.src.split("/").pop().slice(0, 80), alt = image.alt.trim();
        if (!alt && !image.closest(".sphx-glr-thumbcontainer")?.textContent.trim()
            && document.querySelector("main")?.contains(image))
            wrong.push(`has no words for the image ${name}`);
        if (/\\.\\w{3,4}$/.test(alt)) wrong.push(`has a file's name as the words for ${name}`);
        if (!image.naturalWidth) wrong.push(`cannot show the image ${name}`);
    }
    if (document.querySelectorAll("h1").length > 1) wrong.push("has two first headings");
    return wrong;
})()"""

#: Rules of axe-core by window. Those of the first depend on its size and colours. As a page loads,
#: the theme makes scrolling parts reachable by keyboard, so the narrow window comes first.
RULES = {
    (TELEPHONE, "dark"): ["color-contrast", "scrollable-region-focusable"],
    (DESK, "light"): ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"],
}
AXE = """axe.run(document, {
    runOnly: RULES, resultTypes: ["violations"], preload: false, iframes: false,
}).then(({violations}) => violations.flatMap(
    ({id, help, nodes}) => nodes.slice(0, 3).map(({any, html}) => {
        const {fgColor, bgColor} = any[0]?.data ?? {};
        return `${help} [${id}]: ${fgColor ?? ""} ${bgColor ?? ""} ${html.slice(0, 120)}`;
    })
))"""


def faults(browser: Chromium, page: Path, site: Path, axe: str) -> Iterator[str]:
    """Yield the faults of one page, each with the window that shows it."""
    browser.complaints.clear()
    browser.asked.clear()
    browser.show(page, TELEPHONE, dark=True)
    browser.run(axe)
    for (width, theme), rules in RULES.items():
        browser.resize(width, dark=theme == "dark")
        browser.run(f"document.documentElement.dataset.theme = '{theme}'")
        for wrong in [*browser.run(LOOK), *browser.run(AXE.replace("RULES", str(rules)))]:
            yield f"at {width} px, {theme}: {wrong}"
    for line in map(json.loads, browser.complaints):
        words = " ".join(str(part.get("value")) for part in line.get("args", ()))
        if not words.startswith("[PST]: "):  # the theme's message about itself
            yield f"writes to the console: {words or line}"
    for address in browser.asked:
        if not address.startswith((f"{site.as_uri()}/", "data:")):
            yield f"asks for {address}"


def look_at(pages: Iterable[Path], site: Path) -> list[str]:
    """Return the faults of these pages in one browser."""
    axe = (resources.files("axe_core_python") / "axe.min.js").read_text("utf-8")
    with TemporaryDirectory() as profile, Chromium(profile) as browser:
        return [
            f"{page.relative_to(site)} {wrong}"
            for page in pages
            for wrong in faults(browser, page, site, axe)
        ]


def main() -> None:
    """Check the site in the named folder."""
    if found() is None:
        print("No page was checked: Chromium is not installed (apt-get install chromium)")
        return
    site = Path(sys.argv[1]).resolve()
    pages = sorted(p for p in site.rglob("*.html") if "_static" not in p.parts)
    if not pages:
        sys.exit(f"no page in {sys.argv[1]}: run make docs first")
    sys.exit("\n".join(look_at(pages, site)) or 0)


if __name__ == "__main__":
    main()
