"""Keep the catalogues of the desk: every text of its pages, in each language.

    python .ci/catalogue.py            print missing and superfluous texts; exit code 1 if any
    python .ci/catalogue.py --update   bring the catalogues up to date, and compile them

A new language needs the file locale/CODE/LC_MESSAGES/desk.po, and a line in language.py.
"""

import argparse
import io
import sys
from collections.abc import Iterator
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

DESK = Path(__file__).parents[1] / "packages" / "hushtable-desk" / "src" / "hushtable_desk"
METHODS = [("**.py", "python"), ("templates/**.html", "jinja2.ext.babel_extract")]
OPTIONS = {"templates/**.html": {"trimmed": "true", "trim_blocks": "true", "lstrip_blocks": "true"}}
KEYWORDS = {"_": None, "N_": None, "gettext": None, "ngettext": (1, 2)}


def template() -> Catalog:
    """Return all texts of the pages, each with its place."""
    found = Catalog(project="hushtable-desk", charset="utf-8")
    texts = extract_from_dir(DESK, METHODS, OPTIONS, keywords=KEYWORDS)
    for name, _, message, comments, context in sorted(texts, key=lambda one: (one[0], one[1])):
        found.add(message, None, [(name, 1)], auto_comments=comments, context=context)
    return found


def catalogues() -> Iterator[tuple[Path, Catalog]]:
    """Yield each catalogue with its path."""
    for path in sorted(DESK.glob("locale/*/LC_MESSAGES/desk.po")):
        with path.open("rb") as file:
            yield path, read_po(file, locale=path.parts[-3])


def compiled(catalogue: Catalog) -> bytes:
    """Return a catalogue in the form that gettext reads."""
    file = io.BytesIO()
    write_mo(file, catalogue)
    return file.getvalue()


def faults() -> Iterator[str]:
    """Yield the faults of the catalogues."""
    needed = {message.id for message in template() if message.id}
    for path, catalogue in catalogues():
        name = path.parts[-3]
        there = {message.id for message in catalogue if message.id}
        yield from (f"{name} lacks {text!r}" for text in sorted(map(str, needed - there)))
        yield from (
            f"{name} has {text!r}, which is on no page" for text in sorted(map(str, there - needed))
        )
        for message in catalogue:
            said = message.string if isinstance(message.string, tuple) else (message.string,)
            if message.id and (message.fuzzy or not all(said)):
                yield f"{name} does not translate {message.id!r}"
            yield from (f"{name}: {message.id!r}: {error}" for error in message.check(catalogue))
        if path.with_suffix(".mo").read_bytes() != compiled(catalogue):
            yield f"{name} is not compiled: python .ci/catalogue.py --update"


def update() -> None:
    """Bring all catalogues up to date, and compile them."""
    needed = template()
    for path, catalogue in list(catalogues()):
        catalogue.update(needed, no_fuzzy_matching=True)
        catalogue.obsolete.clear()
        with path.open("wb") as file:
            write_po(
                file, catalogue, omit_header=False, no_location=True, width=98, sort_output=True
            )
        path.with_suffix(".mo").write_bytes(compiled(catalogue))


def main() -> int:
    parser = argparse.ArgumentParser(description="Keep the catalogues of the desk.")
    parser.add_argument("--update", action="store_true", help="bring them up to date")
    if parser.parse_args().update:
        update()
    wrong = list(faults())
    for fault in wrong:
        print(fault, file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
