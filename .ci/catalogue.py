"""Keep the catalogues of the packages: every text of their pages, in each language.

    python .ci/catalogue.py            print missing and superfluous texts; exit code 1 if any
    python .ci/catalogue.py --update   bring the catalogues up to date, and compile them

A package has catalogues if it has a folder locale/CODE/LC_MESSAGES. A new language needs one more
file in each of these, and a line in hushtable/language.py.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import read_mo, write_mo
from babel.messages.pofile import read_po, write_po

PACKAGES = Path(__file__).parents[1] / "packages"
METHODS = [("**.py", "python"), ("**.html", "jinja2.ext.babel_extract")]
OPTIONS = {"**.html": {"trimmed": "true", "trim_blocks": "true", "lstrip_blocks": "true"}}
KEYWORDS = {"_": None, "N_": None, "gettext": None, "ngettext": (1, 2)}


def sources() -> list[Path]:
    """Return the folders of the code that has catalogues."""
    return sorted(path.parent for path in PACKAGES.glob("*/src/*/locale"))


def template(source: Path) -> Catalog:
    """Return all texts of a package's pages, each with its place."""
    found = Catalog(project=source.parents[1].name, charset="utf-8")
    texts = extract_from_dir(source, METHODS, OPTIONS, keywords=KEYWORDS)
    for name, _, message, comments, context in sorted(texts, key=lambda one: (one[0], one[1])):
        found.add(message, None, [(name, 1)], auto_comments=comments, context=context)
    return found


def catalogues(source: Path) -> Iterator[tuple[Path, Catalog]]:
    """Yield each catalogue of a package with its path."""
    for path in sorted(source.glob("locale/*/LC_MESSAGES/*.po")):
        with path.open("rb") as file:
            yield path, read_po(file, locale=path.parts[-3])


def translations(catalogue: Catalog) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return each text, with its plural if any, and its translation, without the header."""
    return {forms(one.id): forms(one.string) for one in catalogue if one.id}


def forms(text: str | Sequence[str]) -> tuple[str, ...]:
    """Return a text, or its singular and plural."""
    return (text,) if isinstance(text, str) else tuple(text)


def faults(source: Path) -> Iterator[str]:
    """Yield the faults of the catalogues of a package."""
    needed = {message.id for message in template(source) if message.id}
    for path, catalogue in catalogues(source):
        name = f"{path.stem}, {path.parts[-3]}"
        there = {message.id for message in catalogue if message.id}
        yield from (f"{name} lacks {text!r}" for text in sorted(map(str, needed - there)))
        yield from (
            f"{name} has {text!r}, which is on no page" for text in sorted(map(str, there - needed))
        )
        for message in catalogue:
            if message.id and (message.fuzzy or not all(forms(message.string))):
                yield f"{name} does not translate {message.id!r}"
            yield from (f"{name}: {message.id!r}: {error}" for error in message.check(catalogue))
        # Not the bytes, which another version of Babel writes differently.
        with path.with_suffix(".mo").open("rb") as file:
            compiled = translations(read_mo(file))
        if compiled != translations(catalogue):
            yield f"{name} is not compiled: python .ci/catalogue.py --update"


def update(source: Path) -> None:
    """Bring all catalogues of a package up to date, and compile them."""
    needed = template(source)
    for path, catalogue in list(catalogues(source)):
        catalogue.update(needed, no_fuzzy_matching=True)
        catalogue.obsolete.clear()
        with path.open("wb") as file:
            write_po(
                file, catalogue, omit_header=False, no_location=True, width=98, sort_output=True
            )
        with path.with_suffix(".mo").open("wb") as file:
            write_mo(file, catalogue)


def main() -> int:
    parser = argparse.ArgumentParser(description="Keep the catalogues of the packages.")
    parser.add_argument("--update", action="store_true", help="bring them up to date")
    if parser.parse_args().update:
        for source in sources():
            update(source)
    wrong = [fault for source in sources() for fault in faults(source)]
    for fault in wrong:
        print(fault, file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
