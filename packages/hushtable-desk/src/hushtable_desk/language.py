"""The desk's own texts in other languages: one catalogue of gettext for each."""

import gettext
from functools import cache
from pathlib import Path

from starlette.requests import Request

#: Languages by code; each name is in its own language.
LANGUAGES = {"en": "English", "de": "Deutsch"}
_FOLDER = Path(__file__).parent / "locale"


@cache
def translations(language: str) -> gettext.NullTranslations:
    """Return the catalogue of a language; missing texts are in English."""
    if language == "en":
        return gettext.NullTranslations()
    return gettext.translation("desk", _FOLDER, [language], fallback=True)


def N_(text: str) -> str:
    """Mark a text for the catalogue; the page that displays it translates it."""
    return text


def numeral(language: str, value: float, digits: int = 0) -> str:
    """Return a number in the format of a language."""
    text = f"{value:,.{digits}f}"
    return text.translate(str.maketrans(",.", ".,")) if language == "de" else text


def preferred(request: Request) -> str:
    """Return the first language that a browser accepts and the desk has."""
    for part in request.headers.get("accept-language", "").split(","):
        code = part.partition(";")[0].strip().partition("-")[0].lower()
        if code in LANGUAGES:
            return code
    return "en"
