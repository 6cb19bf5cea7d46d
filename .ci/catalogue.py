"""Keep the catalogues of the packages: every text of their pages, in each language.

    python .ci/catalogue.py            print faults; exit code 1 if there are any
    python .ci/catalogue.py --update   bring the catalogues up to date, and compile them

A package has catalogues if it has a folder locale/CODE/LC_MESSAGES. A new language needs one more
file in each of these, and a line in hushtable/language.py.
"""

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


def template(source: Path) -> Catalog:
    """Return all texts of a package's pages, each with its place."""
    found = Catalog(charset="utf-8")
    texts = extract_from_dir(source, METHODS, OPTIONS, keywords=KEYWORDS)
    for name, _, message, comments, context in sorted(texts, key=lambda one: (one[0], one[1])):
        found.add(message, "", [(name, 1)], auto_comments=comments, context=context)
    return found


def forms(text: str | Sequence[str]) -> tuple[str, ...]:
    """Return a text, or its singular and plural."""
    return (text,) if isinstance(text, str) else tuple(text)


def texts(catalogue: Catalog) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return each text and its translation, without the header."""
    return {forms(one.id): forms(one.string) for one in catalogue if one.id}


def faults(catalogue: Catalog, compiled: Catalog, needed: Catalog) -> Iterator[str]:
    """Yield the faults of a catalogue, and of its compiled form."""
    on_pages, here = texts(needed).keys(), texts(catalogue)
    yield from (f"lacks {text}" for text in on_pages - here.keys())
    yield from (f"has {text}, which is on no page" for text in here.keys() - on_pages)
    for message in catalogue:
        if message.id and (message.fuzzy or not all(forms(message.string))):
            yield f"does not translate {message.id!r}"
        yield from (f"{message.id!r}: {error}" for error in message.check(catalogue))
    # Not the bytes, which another version of Babel writes differently.
    if texts(compiled) != here:
        yield "is not compiled: python .ci/catalogue.py --update"


def main(packages: Path = PACKAGES) -> list[str]:
    """Update the catalogues if that was requested; return their faults."""
    found = []
    for path in sorted(packages.glob("*/src/*/locale/*/LC_MESSAGES/*.po")):
        needed = template(path.parents[3])
        with path.open("rb") as file, path.with_suffix(".mo").open("rb") as compiled:
            catalogue, kept = read_po(file, locale=path.parts[-3]), read_mo(compiled)
        if "--update" in sys.argv:
            catalogue.update(needed, no_fuzzy_matching=True)
            catalogue.obsolete.clear()
            with path.open("wb") as file, path.with_suffix(".mo").open("wb") as compiled:
                write_po(file, catalogue, no_location=True, width=98, sort_output=True)
                write_mo(compiled, catalogue)
        else:
            found += [f"{path.name}: {fault}" for fault in faults(catalogue, kept, needed)]
    return found


if __name__ == "__main__":
    sys.exit("\n".join(main()) or 0)
