"""Pages in other languages: a catalogue of gettext for each package, and numbers as people write.

A command or the desk chooses the language with `speaking`; the functions that make sentences look
it up. Nothing reads the locale of the machine: without a choice, everything is English.
"""

import gettext
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from hushtable.errors import UsageError

#: Languages by their codes, each named in itself.
LANGUAGES = {"en": "English", "de": "Deutsch"}
ENGLISH = "en"
_language = ContextVar("hushtable_language", default=ENGLISH)


def spoken() -> str:
    """Return the code of the language that pages are made in now."""
    return _language.get()


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Make pages in a language; raises `UsageError` if there is no catalogue of it."""
    if language not in LANGUAGES:
        raise UsageError(f"language {language!r}: there is only {', '.join(LANGUAGES)}")
    token = _language.set(language)
    try:
        yield
    finally:
        _language.reset(token)


class Catalogue:
    """The texts of a package: English in its code, and a translation of each in its ``locale``.

    Parameters
    ----------
    package : path
        A file in the package's own folder.
    domain : str
        Name of the catalogues' files.
    """

    def __init__(self, package: str | Path, domain: str) -> None:
        self.folder, self.domain = Path(package).parent / "locale", domain

    def translations(self, language: str) -> gettext.NullTranslations:
        """Return the catalogue of a language; where a text is missing, it is English."""
        return _translations(self.folder, self.domain, language)

    def say(self, text: str, /, **values: object) -> str:
        """Return a text in the language of now, with values in place of ``%(name)s``."""
        # The translation of an empty text would be the head of the catalogue.
        translated = self.translations(spoken()).gettext(text) if text else ""
        return translated % values if values else translated

    def count(self, one: str, many: str, n: int, /, **values: object) -> str:
        """Return a text about ``n`` things, in the language of now; ``%(n)s`` is their number."""
        translated = self.translations(spoken()).ngettext(one, many, n)
        return translated % {"n": numerals(f"{n:,}"), **values}


@cache
def _translations(folder: Path, domain: str, language: str) -> gettext.NullTranslations:
    if language == ENGLISH:
        return gettext.NullTranslations()
    return gettext.translation(domain, folder, [language], fallback=True)


WORDS = Catalogue(__file__, "hushtable")
_, ngettext = WORDS.say, WORDS.count


def N_(text: str) -> str:
    """Mark a text for the catalogue; it is translated where the page shows it."""
    return text


def numerals(text: str) -> str:
    """Return a number that Python has formatted, as people write it."""
    return text.translate(str.maketrans(",.", ".,")) if spoken() == "de" else text


def percents(text: str) -> str:
    """Return a number of percent, which Python has formatted, as people write it."""
    return _("%(n)s%%", n=numerals(text))


def numeral(value: float, digits: int = 0) -> str:
    """Return a number with so many decimals, as people write it."""
    return numerals(f"{value:,.{digits}f}")
