"""Open every page of the built site in Chromium, and refuse faults that a reader would notice.

Each page is opened in a desktop window with the light theme, and in a telephone's window with the
dark theme. It must not be wider than the window, must not write to the console, and must request
only files of the site. axe-core judges contrast, headings, names of links, language, and the rest.
Without scripts, every page must show its text and its links. The search must find each term of the
glossary.
The script needs no network; without Chromium, it prints that it checked nothing.
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

from chromium import Chromium, found  # noqa: E402 (its folder is on the path only now)

DESK, TELEPHONE = 1280, 360

#: Checks that axe-core lacks. Parts that scroll or are cut off inside the page do not widen it. The
#: theme lets the whole article scroll, so that it is measured like the page.
LOOK = """(() => {
    const wrong = [], page = document.documentElement, main = document.querySelector("main");
    const inside = (e) => e === document.body
        || (getComputedStyle(e).overflowX === "visible" && inside(e.parentElement));
    const inArticle = (e) => e.matches(".bd-article-container")
        || (getComputedStyle(e).overflowX === "visible" && inArticle(e.parentElement));
    if (page.scrollWidth > innerWidth) {
        const wide = [...document.body.querySelectorAll("*")].filter((e) => e.checkVisibility()
            && e.getBoundingClientRect().right > innerWidth + 0.5 && inside(e.parentElement));
        const names = wide.slice(0, 3).map((e) => e.outerHTML.slice(0, 80)).join(" and ");
        wrong.push(`is ${page.scrollWidth} px wide: ${names}`);
    }
    const article = document.querySelector(".bd-article-container");
    if (article && article.scrollWidth > article.clientWidth) {
        const end = article.getBoundingClientRect().right;
        const wide = [...article.querySelectorAll("*")].filter((e) => e.checkVisibility()
            && e.getBoundingClientRect().right > end + 0.5 && inArticle(e.parentElement));
        const names = wide.slice(0, 3).map((e) => e.outerHTML.slice(0, 80)).join(" and ");
        wrong.push(`has an article of ${article.scrollWidth} px: ${names}`);
    }
    for (const image of document.images) {
        const name = image.src.split("/").pop().slice(0, 80), alt = image.alt.trim();
        const titled = image.closest(".sphx-glr-thumbcontainer")?.textContent.trim();
        if (!alt && !titled && main?.contains(image))
            wrong.push(`has no words for the image ${name}`);
        if (/\\.\\w{3,4}$/.test(alt)) wrong.push(`has a file's name as the words for ${name}`);
        if (!image.naturalWidth) wrong.push(`cannot show the image ${name}`);
    }
    const headings = document.querySelectorAll("h1").length;
    if (headings !== 1) wrong.push(`has ${headings} headings of the first level`);
    if (!document.querySelector("meta[name=viewport]")) wrong.push("sets no viewport");
    return wrong;
})()"""

#: Rules of axe-core by window. Those of the first depend on its size and colours. As a page loads,
#: the theme makes scrolling parts reachable by keyboard, so the narrow window comes first.
RULES = {
    (TELEPHONE, "dark"): ["color-contrast", "scrollable-region-focusable"],
    (DESK, "light"): ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"],
}

#: Parts of every page, which are judged only on the front page.
EVERYWHERE = [[".bd-header"], [".bd-sidebar-primary"], [".bd-footer"]]

AXE = """axe.run({exclude: EXCLUDE}, {
    runOnly: RULES, resultTypes: ["violations"], preload: false, iframes: false,
}).then(({violations}) => violations.flatMap(
    ({id, help, nodes}) => nodes.slice(0, 3).map(({any, html}) => {
        const {contrastRatio, fgColor, bgColor} = any[0]?.data ?? {};
        const colours = contrastRatio ? ` (${fgColor} on ${bgColor})` : "";
        return `${help}${colours} [${id}]: ${html.slice(0, 120)}`;
    })
))"""


def stumbles(browser: Chromium, page: Path, site: Path, axe: str) -> Iterator[str]:
    """Yield the faults of one page, each with the window that shows it."""
    browser.complaints.clear()
    browser.asked.clear()
    browser.show(page, TELEPHONE, dark=True)
    browser.run(axe)
    exclude = [] if page == site / "index.html" else EVERYWHERE
    for (width, theme), rules in RULES.items():
        browser.resize(width, dark=theme == "dark")
        browser.run(f"document.documentElement.dataset.theme = '{theme}'")
        judge = AXE.replace("EXCLUDE", str(exclude)).replace("RULES", str(rules))
        for wrong in [*browser.run(LOOK), *browser.run(judge)]:
            yield f"at {width} px, {theme}: {wrong}"
    for line in map(json.loads, browser.complaints):
        said = " ".join(str(part.get("value")) for part in line.get("args", ()))
        if not said.startswith("[PST]: "):  # the theme's message about itself
            yield f"says to the console: {said or line}"
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
            for wrong in stumbles(browser, page, site, axe)
        ]


def without_scripts(pages: Iterable[Path], site: Path) -> Iterator[str]:
    """Yield the pages that show less of their text, or no links, where scripts do not run."""
    lengths = "document.querySelector('article')?.innerText.length ?? 0"
    links = "[...document.querySelectorAll('nav a')].filter((a) => a.checkVisibility()).length"
    with TemporaryDirectory() as profile, Chromium(profile) as browser:
        for page in pages:
            browser.show(page, DESK)
            full = browser.run(lengths)
            with browser.no_scripts():
                browser.show(page, DESK)
                if browser.run(lengths) < 0.95 * full:
                    yield f"{page.relative_to(site)} shows less without scripts"
                if browser.run(links) < 3:
                    yield f"{page.relative_to(site)} has no navigation without scripts"


def not_found(site: Path) -> Iterator[str]:
    """Yield the terms of the glossary that the search does not find."""
    with TemporaryDirectory() as profile, Chromium(profile) as browser:
        browser.show(site / "reference" / "glossary.html", DESK)
        terms = browser.run(
            "[...document.querySelectorAll('dl.glossary dt')].map((e) => e.firstChild.textContent)"
        )
        for term in terms:
            browser.show(f"{(site / 'search.html').as_uri()}?q={quote(term)}", DESK)
            done = "document.querySelector('#search-results .search-summary')?.textContent.trim()"
            browser.until(f"/matching|did not match/.test({done} ?? '')")
            if not browser.run("document.querySelectorAll('#search-results ul.search li').length"):
                yield f"search.html does not find the term {term!r}"
        if not terms:
            yield "reference/glossary.html has no terms"


def main() -> None:
    """Check the site in the named folder."""
    if found() is None:
        print("No page was checked: Chromium is not installed (apt-get install chromium)")
        return
    site = Path(sys.argv[1]).resolve()
    pages = sorted(p for p in site.rglob("*.html") if "_static" not in p.parts)
    if not pages:
        sys.exit(f"no page in {sys.argv[1]}: run make docs first")
    browsers = min(len(pages), os.cpu_count() or 1, 4)
    with ThreadPoolExecutor(browsers) as pool:
        parts = pool.map(look_at, (pages[k::browsers] for k in range(browsers)), [site] * browsers)
        wrong = sorted(line for part in parts for line in part)
    wrong += [*without_scripts(pages, site), *not_found(site)]
    sys.exit("\n".join(wrong) or 0)


if __name__ == "__main__":
    main()
