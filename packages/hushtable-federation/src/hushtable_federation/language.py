"""The words of rounds on pages: their catalogue."""

from hushtable.language import Catalogue

WORDS = Catalogue(__file__, "federation")
_, ngettext = WORDS.say, WORDS.count
