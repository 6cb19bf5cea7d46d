"""Forms of values that are not read, such as quarters: what they are called, and what to do."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from hushtable.language import N_

#: Shapes of texts to check, as `hushtable.data.texts.column_facts.ColumnFacts` calls them.
FOREIGN_SHAPES = ("other", "date", "flag", "whole", "point", "comma", "1.234", "1,234")
#: Parts of a duration such as 2h 15min, and of one in words such as 2 hours 15 minutes.
_SHORT = r"\d+(?:[.,]\d+)?\s*(?:[hmsdjw]|hr?s?|std|mins?|se[ck]s?)\.?"
_WORDY = r"\d+(?:[.,]\d+)?\s[^\W\d_]+[.,]?"


class ForeignForm(NamedTuple):
    """A form of values that is not read."""

    name: str
    pattern: str
    #: What to do with the values.
    way: str

    def fits(self, text: str) -> bool:
        """Return whether a text has this form."""
        return re.search(self.pattern, text.strip()) is not None


_FORMS = (
    ForeignForm(
        N_("quarters"),
        r"(?i)^(?:\d{4}[-/ ]?Q[1-4]|Q[1-4][-/ ]?\d{4})$",
        N_("write the first day of each, such as 2026-04-01"),
    ),
    ForeignForm(
        N_("weeks of a year"),
        r"(?i)^\d{4}-?W\d{2}(?:-?\d)?$",
        N_("write the first day of each, such as 2026-05-18"),
    ),
    ForeignForm(
        N_("years of an era"),
        r"^(?:(?:令和|平成|昭和|大正|明治|民國|民国)\s*(?:\d|元)|[RHS]\d{1,2}[./-]\d{1,2}[./-]\d)",
        N_("write four-digit years, such as 1978-02-11"),
    ),
    ForeignForm(
        N_("durations with words for units"),
        r"^-?P(?=\d|T\d)(?:\d+[YMWD])*(?:T(?:\d+(?:[.,]\d+)?[HMS])+)?$"
        rf"|^-?{_SHORT}[\s,]*{_SHORT}|^-?{_WORDY}\s(?:[^\W\d_]+\s)?{_WORDY}",
        N_("convert them to numbers of one unit, or to 2:15:00"),
    ),
    ForeignForm(
        N_("angles"),
        r"\d\s*[°º]\s*(?:\d|[NSEWO]$)|^\d+(?:[.,]\d+)? ?[NSEWO]$",
        N_("convert them to degrees, south and west below 0"),
    ),
    ForeignForm(
        N_("numbers with an uncertainty"),
        r"\d\s*(?:±|\+/-|\+-)\s*\d",
        N_("write the uncertainty in a column of its own"),
    ),
    ForeignForm(
        N_("words for powers of ten"),
        r"\d\s?(?:[kKMBG]|MM|[mb]n|Tsd|Mio|Mrd|m[ln][nd]|mil|t[yi]s|тыс|мл[нр]д?|lakh|lac|crore|"
        r"[万萬만億亿억])\.?(?:\s?(?:[A-Z]{3}|[^\w\s]))?$",
        N_("write the numbers in full, such as 1200000"),
    ),
)


def foreign_form(texts: Mapping[str, int]) -> ForeignForm | None:
    """Return the form of most texts, given the number of rows with each; None if it is read."""
    for form in _FORMS:
        rows = sum(n for text, n in texts.items() if form.fits(text))
        if rows and 2 * rows >= sum(texts.values()):
            return form
    return None
