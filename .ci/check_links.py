"""Refuse a site with a broken link, or a page that loads something from elsewhere.

This script checks every page of the built site, and the links of the Markdown files that people
read in the repository. It does not open addresses on the network.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[1]
READ_ELSEWHERE = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")


class Page(HTMLParser):
    """The links of a page, the files that it loads, and its anchors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.anchors = {"", "top"}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record the links, loaded files, and anchors of this tag."""
        found = {key: value for key, value in attrs if value is not None}
        self.anchors.update(found[key] for key in ("id", "name") if key in found)
        # A canonical link gives the page's address on the network, and loads nothing.
        if "href" in found and found.get("rel") != "canonical":
            (self.links if tag == "a" else self.loads).add(found["href"])
        if "src" in found:
            self.loads.add(found["src"])


def dead_links(site: Path) -> list[str]:
    """Return the faults of the pages of a built site."""
    found = (path for path in site.rglob("*.html") if "_static" not in path.parts)
    pages = {path.resolve(): Page(path) for path in found}
    wrong = []
    for path, page in sorted(pages.items()):
        name = path.relative_to(site.resolve())
        for link in sorted(page.links | page.loads):
            address = urlsplit(link)
            if address.scheme or address.netloc:
                if link in page.loads and address.scheme != "data":
                    wrong.append(f"{name} loads {link} from elsewhere")
                continue
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            if not target.is_file():
                wrong.append(f"{name}: no such file: {link}")
            elif target in pages and unquote(address.fragment) not in pages[target].anchors:
                wrong.append(f"{name}: no such place: {link}")
    return wrong


def anchors(text: str) -> set[str]:
    """Return the anchors that hosts make from a Markdown file's headings."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {"", *re.findall(r"^\((\S+)\)=$", text, re.MULTILINE)} | {
        heading.replace(" ", "-") for heading in plain
    }


def dead_paths(path: Path) -> list[str]:
    """Return the faults of the links, and of the paths in backticks, of a Markdown file."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    named = re.findall(r"`((?:docs|benchmarks|src|tests|flower|\.ci)/[\w./-]+)`", text)
    wrong = []
    for link in links + named:
        file, _, fragment = link.partition("#")
        target = path.parent / file if file else path
        if not target.exists():
            wrong.append(f"{path.name}: no such file: {link}")
        elif target.suffix == ".md" and fragment not in anchors(target.read_text("utf-8")):
            wrong.append(f"{path.name}: no such place: {link}")
    return wrong


def main() -> None:
    """Check the site in the named folder."""
    wrong = dead_links(Path(sys.argv[1]))
    for name in READ_ELSEWHERE:
        wrong += dead_paths(ROOT / name)
    sys.exit("\n".join(wrong) or 0)


if __name__ == "__main__":
    main()
