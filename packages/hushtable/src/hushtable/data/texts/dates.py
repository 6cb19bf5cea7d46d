"""Dates and times as people write them, in seconds: since 1970-01-01 UTC, or since midnight.

Each shape of a text, such as ``99.99.9999 99:99`` or ``99 мая 9999``, is parsed once.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable.data.columns import scalar
from hushtable.data.texts.shapes import Shaped, Span, by_shape
from hushtable.data.texts.words import lists, words

#: Years of two digits from this one on belong to the last century, as in POSIX.
PIVOT = 69
#: Number of years without a date between the last and the first year of a column.
_GAP = 5
#: Order of day, month and year.
Order: TypeAlias = Literal["dmy", "mdy", "ymd"]
ORDERS: tuple[Order, ...] = ("dmy", "mdy", "ymd")

#: Eight digits that form a calendar day.
COMPACT = r"^(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])$"
#: A time of day with a point, or a number.
DOTTED = r"^\s*(?:[01]?\d|2[0-3])\.[0-5]\d\s*$"
ZERO_HOUR = r"^\s*0\d\."
#: A time of two or three numbers, without a word that states what they count.
CLOCKS = {2: re.compile(r"\d+:\d\d"), 3: re.compile(r"\d+:\d\d:\d\d(?:[.,]\d+)?")}
#: East Asian characters after year, month, day, hour, minute and second.
_EAST = str.maketrans({
    **dict.fromkeys("年月년월", "-"), **dict.fromkeys("日일号號秒초", " "),
    **dict.fromkeys("時时시点點分분", ":"), "（": "(", "）": ")",
})  # fmt: skip
#: A weekday after a date.
_EAST_WEEKDAY = re.compile("[(（][月火水木金土日一二三四五六월화수목금토일][)）]")
_WORD = re.compile(r"[^\s\d.,/:()+\-]+")
_UTC = frozenset(("z", "utc", "gmt"))

_D, _Y, _S, _L = "9{1,2}", "9{4}", r"(?:\s*[-./,]\s*|\s+)", r"[\s.,/-]*"
#: Dates that have one meaning: digits are 9, a month's name is M. Shapes are in small letters, so
#: no text holds this one.
_CLEAR = (
    rf"(?P<y>{_Y}){_S}(?P<m>{_D}){_S}(?P<d>{_D})",
    r"(?P<y>9{4})(?P<m>99)(?P<d>99)",
    rf"(?P<d>{_D}){_L}(?P<n>M+){_L}(?P<y>{_Y}|99)",
    rf"(?P<n>M+){_L}(?P<d>{_D})[\s.,/-]+(?P<y>{_Y})",
    rf"(?P<y>{_Y}){_L}(?P<n>M+){_L}(?P<d>{_D})",
    rf"(?P<y>{_Y})[-/](?P<m>99)-?",
    rf"(?P<m>{_D})/(?P<y>{_Y})",
    rf"(?P<n>M+){_L}(?P<y>{_Y})",
    rf"(?P<y>{_Y}){_L}(?P<n>M+)",
)
#: The two separators of a date with a two-digit year are the same: 10 3/4 is not a date.
_ONE, _SAME = r"\s*(?P<s>[-./,]|\s)\s*", r"\s*(?P=s)\s*"
_BY_ORDER: dict[Order, tuple[str, ...]] = {
    "ymd": (rf"(?P<y>99){_ONE}(?P<m>{_D}){_SAME}(?P<d>{_D})",),
    "dmy": (
        rf"(?P<d>{_D}){_S}(?P<m>{_D}){_S}(?P<y>{_Y})",
        rf"(?P<d>{_D}){_ONE}(?P<m>{_D}){_SAME}(?P<y>99)",
    ),
    "mdy": (
        rf"(?P<m>{_D}){_S}(?P<d>{_D}){_S}(?P<y>{_Y})",
        rf"(?P<m>{_D}){_ONE}(?P<d>{_D}){_SAME}(?P<y>99)",
    ),
}
_DATES = {
    order: tuple(re.compile(rf"[\s,.()]*{form}(?!9)") for form in (*_CLEAR, *forms))
    for order, forms in _BY_ORDER.items()
}
_CLOCK = re.compile(
    r"(?P<head>[^\d+-]*?)(?P<H>9{1,3}) ?(?P<between>[:.h]) ?(?P<M>99)"
    r"(?:[:.] ?(?P<S>99(?:[.,]9{1,9})?))?"
    r"(?P<tail>[^\d+-]*)(?:(?P<sign>[+-])(?P<ZH>99):?(?P<ZM>99))?"
)
#: The hour alone: with a word, or after an ISO date, where Arrow takes it, too.
_HOURS = re.compile(
    r"(?P<head>[\s,t]*)(?P<H>9{1,2})(?P<tail>\s*(?:[ap]\.?\s?m\.?|uhr)|(?<=^9999-99-99[t ]99))"
)


@dataclass(frozen=True)
class _Time:
    """Positions of the seconds since midnight in texts of one shape."""

    #: Places of numbers, and the seconds of one.
    terms: tuple[tuple[Span, float], ...]
    #: "am" or "pm" of an hour up to 12.
    half: str = ""
    #: Of its zone, as an offset; the sign is part of the shape.
    zone: tuple[tuple[Span, float], ...] = ()
    zoned: bool = False

    def hours_fit(self, texts: Shaped, most: float) -> NDArray[np.bool_]:
        """Return which texts (n,) have an hour below ``most``, and minutes and seconds below 60."""
        fits = np.ones(len(texts), np.bool_)
        for k, (span, _) in enumerate(self.terms):
            values = texts.number(span)
            if k == 0 and self.half:
                fits &= (values >= 1.0) & (values <= 12.0)
            else:
                fits &= values < (most if k == 0 else 60.0)
        for k, (span, _) in enumerate(self.zone):
            fits &= texts.number(span) < (60.0 if k else 24.0)
        return fits

    def microseconds(self, texts: Shaped) -> NDArray[np.int64]:
        """Return the microseconds (n,) since midnight; in UTC for texts that state their zone."""
        total = np.zeros(len(texts), np.int64)
        for k, (span, factor) in enumerate(self.terms):
            values = texts.number(span)
            if k == 0 and self.half:
                values = values % 12.0 + 12.0 * (self.half == "pm")
            total += np.rint(values * factor * 1e6).astype(np.int64)
        for span, factor in self.zone:
            total -= np.rint(texts.number(span) * factor * 1e6).astype(np.int64)
        return total


@dataclass(frozen=True)
class _Date:
    """Positions of a date in texts of one shape; an int is the same value in all of them."""

    year: Span | int
    month: Span | int = 1
    day: Span | int = 1
    time: _Time | None = None
    #: The month's name.
    word: str = ""

    @property
    def short_year(self) -> Span | None:
        """Position of a year of two digits."""
        if not isinstance(self.year, tuple) or self.year[1] - self.year[0] != 2:
            return None
        return self.year

    def seconds(self, texts: Shaped, pivot: int) -> NDArray[np.float64]:
        """Return the seconds (n,) since 1970; NaN where the day or the hour does not exist."""

        def part(where: Span | int) -> NDArray[np.int64]:
            if isinstance(where, int):
                return np.full(len(texts), where, np.int64)
            return texts.number(where).astype(np.int64)

        year, month, day = part(self.year), part(self.month), part(self.day)
        if self.short_year is not None:
            year += np.where(year >= pivot, 1900, 2000)
        exists = (year >= 0) & (year <= 9999) & (month >= 1) & (month <= 12)
        months = np.where(exists, 12 * (year - 1970) + month - 1, 0).astype("datetime64[M]")
        first = months.astype("datetime64[D]").astype(np.int64)
        length = (months + np.timedelta64(1, "M")).astype("datetime64[D]").astype(np.int64) - first
        days = first + day - 1
        exists &= (day >= 1) & (day <= length)
        micro = days * 86_400_000_000
        if self.time is not None:
            exists &= self.time.hours_fit(texts, 24.0)
            micro = micro + self.time.microseconds(texts)
        return np.where(exists, micro / 1e6, np.nan)


def seconds(
    texts: pa.Array, order: Order, language: str = "", pivot: int = PIVOT
) -> NDArray[np.float64]:
    """Return the seconds (n,) since 1970-01-01 UTC of dates in texts; NaN for other texts.

    Dates that begin with a four-digit year, or contain a month's name, are read in any order.
    ``language`` is the language of the names, if known; years of two digits from ``pivot`` on
    belong to the last century.
    """
    if (result := _iso(texts)) is not None:
        return result
    result = np.full(len(texts), np.nan)
    for date, places, shaped in _dates(texts, order, language):
        result[places] = date.seconds(shaped, pivot)
    return result


def like(form: str, value: float, order: Order | None) -> str:
    """Return seconds in place of the numbers of a text, in which digits are 9: see `seconds`.

    They are since 1970-01-01 for dates in this ``order``, or since midnight. Numbers are padded
    with zeros to their places. `OverflowError` means that no calendar reaches that far.
    """
    whole, places = round(value), list[int]()
    hour = whole // 3_600
    if order is not None:
        then = datetime(1970, 1, 1) + timedelta(seconds=whole)
        year = then.year if "9999" in form else then.year % 100
        day = {"y": year, "m": then.month, "d": then.day}
        places = [day[part] for part in ("ymd" if form.startswith("9999") else order)]
        hour = then.hour
    if half := re.search(r"(?i)\b[ap](?=\.?m\b)", form):
        sign = "pP" if hour >= 12 else "aA"
        form = form[: half.start()] + sign[half[0].isupper()] + form[half.end() :]
        hour = (hour + 11) % 12 + 1
    left = iter([*places, hour, whole // 60 % 60, whole % 60])
    return re.sub(
        r"9999(?=9999\b)|(?<=9999)99(?=99\b)|9+",  # eight digits are year, month and day
        lambda run: f"{next(left, 0):0{len(run[0])}}",
        form,
    )


def say_zones(texts: pa.Array) -> NDArray[np.bool_]:
    """Return which texts (n,) are points in time that name their zone."""
    zoned = np.zeros(len(texts), np.bool_)
    for date, places, _ in _dates(texts, "dmy", ""):
        zoned[places] = date.time is not None and date.time.zoned
    return zoned


def month_words(texts: pa.Array) -> set[str]:
    """Return the names of months that dates among texts are written with."""
    return {date.word for date, _, _ in _dates(texts, "dmy", "") if date.word}


def short_years(texts: pa.Array, order: Order) -> set[int]:
    """Return the years of two digits in dates among texts, read in this order of parts."""
    years: set[int] = set()
    texts = texts.filter(pc.invert(pc.match_substring_regex(texts, r"\d{4}")))  # most have four
    for date, _, shaped in _dates(texts, order, ""):
        if date.short_year is not None:
            years.update(shaped.number(date.short_year).astype(int).tolist())
    return years


def pivot_of(years: Collection[int]) -> int | None:
    """Return the first year of two digits that belongs to the last century.

    Years follow one another: the largest gap among them is between the last and the first. None
    if there is no gap of five years.
    """
    if not years:
        return PIVOT
    ordered = sorted(years)
    gaps = [after - before for before, after in pairwise([*ordered, ordered[0] + 100])]
    largest = max(range(len(gaps)), key=gaps.__getitem__)
    first, last = ordered[(largest + 1) % len(ordered)], ordered[largest]
    if gaps[largest] < _GAP:
        return None
    return first if first < PIVOT <= last or first > last else PIVOT


def _dates(
    texts: pa.Array, order: Order, language: str
) -> Iterator[tuple[_Date, NDArray[np.int64], Shaped]]:
    return by_shape(texts, lambda shape: _date(shape, order, language))


def _iso(texts: pa.Array) -> NDArray[np.float64] | None:
    """Return the seconds if all texts are ISO dates or times without a zone."""
    try:
        # First one text alone: Arrow builds an error message for each text that is no date.
        pc.cast(texts.slice(0, 1), pa.timestamp("us"))
        stamps = pc.cast(texts, pa.timestamp("us"))
    except pa.ArrowInvalid:
        return None
    numbers = pc.cast(stamps.cast(pa.int64()), pa.float64(), safe=False)
    values = np.from_dlpack(pc.coalesce(numbers, scalar(float("nan"))))
    return np.asarray(values, np.float64) / 1e6


def of_day(texts: pa.Array) -> NDArray[np.float64]:
    """Return the seconds (n,) of times of day, or of longer times, such as 801:35; or NaN."""
    result = np.full(len(texts), np.nan)
    for time, places, shaped in by_shape(texts, _time):
        fits = time.hours_fit(shaped, np.inf)
        result[places] = np.where(fits, time.microseconds(shaped) / 1e6, np.nan)
    return result


@lru_cache(maxsize=1 << 14)
def _date(shape: str, order: Order, language: str) -> _Date | None:
    for plain, named in _neutral(shape, language):
        for pattern in _DATES[order]:
            match = pattern.match(plain)
            more = match is not None and bool(plain[match.end() :].strip(" .,()"))
            time = _clock(plain, match.end()) if match is not None and more else None
            if match is None or (more and time is None):
                continue
            texts = match.groupdict().items()
            parts = {name: match.span(name) for name, text in texts if text and name != "s"}
            word, month = named[parts["n"][0]] if "n" in parts else ("", 1)
            return _Date(parts["y"], parts.get("m", month), parts.get("d", 1), time, word)
    return None


def _neutral(shape: str, language: str) -> Iterator[tuple[str, dict[int, tuple[str, int]]]]:
    """Yield readings of a shape's words, as long as the shape, with the months by their position.

    A month's name becomes M; weekdays and particles become blanks. A word such as
    "mar" may be a month in one language and a weekday in another.
    """
    plain = _EAST_WEEKDAY.sub("   ", shape).translate(_EAST)
    for weekdays_first in (False, True):
        letters, named, ambiguous = list(plain), {}, False
        for match in _WORD.finditer(plain):
            word, (start, end) = match[0], match.span()
            is_weekday, month = word in words().weekdays, words().month(word, language)
            ambiguous = ambiguous or bool(is_weekday and month)
            behind_digit = start > 0 and plain[start - 1] == "9"
            ignored = lists()["date_particles"] + (lists()["ordinals"] if behind_digit else ())
            if month and not (is_weekday and weekdays_first):
                sign, named[start] = "M", (word, month)
            elif len(word) == 1 and plain[end : end + 1] == "9" and not behind_digit:
                continue  # an era, as in R8.5.15, or a code
            elif is_weekday or word in ignored:
                sign = " "
            else:
                continue
            letters[start:end] = sign * (end - start)
        yield "".join(letters), named
        if not ambiguous:
            return


def _clock(plain: str, at: int = 0) -> _Time | None:
    """Return the position of a time of day after a place of a shape; None if there is none."""
    match = _CLOCK.fullmatch(plain, at) or _HOURS.fullmatch(plain, at)
    if match is None:
        return None
    parts = match.groupdict()
    head, tail = (re.sub(r"[\s.,():']", "", parts[name] or "") for name in ("head", "tail"))
    halves = words().halves
    half = halves.get(tail, "") or halves.get(head, "")
    before, behind = ({"", *lists()[f"{side}_clock"], *halves} for side in ("before", "behind"))
    if at == 0:
        before -= {"t"}
    else:
        behind |= _UTC
    if head not in before or tail not in behind:
        return None
    if at == 0 and parts.get("between") == "." and not (half or head or tail == "uhr"):
        return None  # the day and the month, or a number
    units = {"H": 3600.0, "M": 60.0, "S": 1.0}
    terms = tuple((match.span(k), v) for k, v in units.items() if parts.get(k))
    zone: tuple[tuple[Span, float], ...] = ()
    if parts.get("sign"):
        if at == 0:
            return None
        sign = -1.0 if parts["sign"] == "-" else 1.0
        zone = tuple((match.span(k), sign * v) for k, v in (("ZH", 3600.0), ("ZM", 60.0)))
    return _Time(terms, half, zone=zone, zoned=bool(zone) or tail in _UTC)


@lru_cache(maxsize=1 << 14)
def _time(shape: str) -> _Time | None:
    return _clock(shape.translate(_EAST))
