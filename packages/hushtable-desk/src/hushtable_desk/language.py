"""The desk's own words: their catalogue, and the language that a browser prefers."""

from starlette.requests import Request

from hushtable.language import ENGLISH, LANGUAGES, Catalogue

WORDS = Catalogue(__file__, "desk")
_ = WORDS.say


def preferred(request: Request) -> str:
    """Return the first language that a browser accepts and the desk has."""
    for part in request.headers.get("accept-language", "").split(","):
        code = part.partition(";")[0].strip().partition("-")[0].lower()
        if code in LANGUAGES:
            return code
    return ENGLISH
