"""The desk's own words in other languages: one catalogue of gettext for each."""

import gettext
from functools import cache
from pathlib import Path

from starlette.requests import Request

#: Languages by their codes, each named in itself.
LANGUAGES = {"en": "English", "de": "Deutsch"}
_FOLDER = Path(__file__).parent / "locale"


@cache
def translations(language: str) -> gettext.NullTranslations:
    """Return the catalogue of a language; where a text is missing, it is English."""
    if language == "en":
        return gettext.NullTranslations()
    return gettext.translation("desk", _FOLDER, [language], fallback=True)


def N_(text: str) -> str:
    """Mark a text for the catalogue; it is translated where it is shown."""
    return text


def numeral(language: str, value: float, digits: int = 0) -> str:
    """Return a number as people write it in a language."""
    text = f"{value:,.{digits}f}"
    return text.translate(str.maketrans(",.", ".,")) if language == "de" else text


def preferred(request: Request) -> str:
    """Return the first language that a browser asks for and the desk has."""
    for part in request.headers.get("accept-language", "").split(","):
        code = part.partition(";")[0].strip().partition("-")[0].lower()
        if code in LANGUAGES:
            return code
    return "en"
