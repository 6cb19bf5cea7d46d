"""Dates and times as people write them, in seconds: since 1970-01-01 UTC, or since midnight."""

from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable.data.texts.numbers import mask

#: Order of day, month and year.
Order: TypeAlias = Literal["dmy", "mdy", "ymd"]
ORDERS: tuple[Order, ...] = ("dmy", "mdy", "ymd")

_DAY = r"(?P<day>\d{1,2})"
#: Eight digits that are a day of a calendar.
COMPACT = r"^(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])$"
_NAMED = r"[A-Za-z]{3,9}"
_HOUR, _SIXTY = r"(?:[01]\d|2[0-3])", r"[0-5]\d"
ZONE = (
    rf"^\d{{4}}-\d{{2}}-\d{{2}}[T ]{_HOUR}:{_SIXTY}(?::{_SIXTY}(?:\.\d{{1,6}})?)?"
    rf"(?:Z|[+-]{_HOUR}:?{_SIXTY})$"
)
#: With "-" for the sign between, the date by the order of its parts.
_DATES: dict[Order, tuple[tuple[str, str], ...]] = {
    "ymd": ((rf"\d{{2}}-\d{{1,2}}-{_DAY}", "%y-%m-%d"),),
    "dmy": (
        (rf"{_DAY}-\d{{1,2}}-\d{{4}}", "%d-%m-%Y"),
        (rf"{_DAY}-\d{{1,2}}-\d{{2}}", "%d-%m-%y"),
    ),
    "mdy": (
        (rf"\d{{1,2}}-{_DAY}-\d{{4}}", "%m-%d-%Y"),
        (rf"\d{{1,2}}-{_DAY}-\d{{2}}", "%m-%d-%y"),
    ),
}
#: The same, where only one order is possible.
_CLEAR = (
    (rf"\d{{6}}{_DAY}", "%Y%m%d"),
    (rf"\d{{4}}-\d{{1,2}}-{_DAY}", "%Y-%m-%d"),
    (rf"{_DAY}-{_NAMED}-\d{{4}}", "%d-%b-%Y"),
    (rf"{_DAY}-{_NAMED}-\d{{2}}", "%d-%b-%y"),
    (rf"{_NAMED}-{_DAY}-\d{{4}}", "%b-%d-%Y"),
)
_TIMES = (
    ("", ""),
    (r" \d{1,2}:\d{2}", " %H:%M"),
    (r" \d{1,2}:\d{2}:\d{2}", " %H:%M:%S"),
    (r" \d{1,2}:\d{2} [AaPp][Mm]", " %I:%M %p"),
    (r" \d{1,2}:\d{2}:\d{2} [AaPp][Mm]", " %I:%M:%S %p"),
)
_CLOCK = (
    r"^(?P<hours>\d{1,3}):(?P<minutes>[0-5]\d)(?::(?P<seconds>[0-5]\d(?:\.\d+)?))?"
    r"(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?$"
)
#: Beginnings of months' names in German and French, and their English ones.
_MONTHS = {
    "janv": "jan", "févr": "feb", "fevr": "feb", "mär": "mar", "mrz": "mar", "mars": "mar",
    "avr": "apr", "mai": "may", "juni": "jun", "juin": "jun", "juli": "jul", "juil": "jul",
    "aoû": "aug", "aou": "aug", "okt": "oct", "dez": "dec", "déc": "dec",
}  # fmt: skip
_NAMED_MONTH = r"^\d{1,2}\.?[ /-]?\pL{3}|^\pL{3}"
#: No date has fewer digits than those of a day and of a year.
_DIGITS = r"\d\D*\d\D*\d"
#: Two numbers of up to two digits, and a year: either may be the day.
_EITHER = r"^(?P<first>\d{1,2})-(?P<second>\d{1,2})-\d{2,4}(?: |$)"


def _plain(texts: pa.Array) -> pa.Array:
    """Write "-" between the parts of a date, and one blank before a time."""
    texts = pc.utf8_trim_whitespace(texts)
    if pc.any(pc.match_substring_regex(texts, _NAMED_MONTH)).as_py():
        texts = pc.utf8_lower(texts)
        for theirs, english in _MONTHS.items():
            texts = pc.replace_substring_regex(texts, rf"{theirs}\pL*\.?", english)
    texts = pc.replace_substring_regex(
        texts, r"^(\w{1,9})(?:[./-]|\. | )(\w{1,9})(?:[./-]|,? )(\w{2,4})", r"\1-\2-\3"
    )
    texts = pc.replace_substring_regex(
        texts, r"^([^\s,]{6,}?\d)(?:[Tt]|, *| +)(\d{1,2}:)", r"\1 \2"
    )
    texts = pc.replace_substring_regex(texts, r"(:\d{2})\.\d+", r"\1")
    return pc.replace_substring_regex(texts, r"(\d) ?([AaPp])\.?([Mm])\.?$", r"\1 \2\3")


def seconds(texts: pa.Array, order: Order) -> NDArray[np.float64]:
    """Return the seconds (n,) since 1970-01-01 UTC that texts say, NaN for what says none.

    Dates with all digits of the year first, or with a month's name, are read whatever the order.
    """
    found = _iso(texts)
    if found is not None:
        return found
    result = np.full(len(texts), np.nan)
    # Names and notes, which are most of what is tried, are known by this alone.
    likely = mask(pc.match_substring_regex(texts, _DIGITS))
    if likely.any():
        result[likely] = _of_likely(texts.filter(_arrow(likely)), order)
    return result


def _of_likely(texts: pa.Array, order: Order) -> NDArray[np.float64]:
    """Return the seconds (n,) of texts with the digits of a date."""
    result = np.full(len(texts), np.nan)
    zoned = mask(pc.match_substring_regex(texts, ZONE))
    days = pc.utf8_slice_codeunits(texts.filter(_arrow(zoned)), 0, 10)
    zoned[zoned] = np.isfinite(seconds(days, order))
    if zoned.any():
        result[zoned] = _seconds(pc.cast(texts.filter(_arrow(zoned)), pa.timestamp("us", "UTC")))
    left = _plain(texts)
    for date, date_format in (*_CLEAR, *_DATES[order]):
        if not pc.any(pc.match_substring_regex(left, f"^{date}(?: |$)")).as_py():
            continue
        for time, time_format in _TIMES:
            matched = mask(pc.match_substring_regex(left, f"^{date}{time}$"))
            if matched.any():
                some = left.filter(_arrow(matched))
                parsed = pc.strptime(some, date_format + time_format, "s", error_is_null=True)
                day = pc.extract_regex(some, f"^{date}").field("day").cast(pa.int64())
                # The 31st of February would be the 3rd of March.
                exists = pc.equal(pc.day(parsed), day)
                result[matched] = _seconds(pc.if_else(exists, parsed, pa.scalar(None, parsed.type)))
    return result


def _iso(texts: pa.Array) -> NDArray[np.float64] | None:
    """Return the seconds if all texts are ISO dates or times without a zone."""
    try:
        return _seconds(pc.cast(texts, pa.timestamp("us")))
    except pa.ArrowInvalid:
        return None


def _seconds(stamps: Any) -> NDArray[np.float64]:
    ticks = 1e6 if stamps.type.unit == "us" else 1.0
    numbers = pc.cast(stamps.cast(pa.int64()), pa.float64(), safe=False)
    values = np.from_dlpack(pc.coalesce(numbers, pa.scalar(float("nan"))))
    return np.asarray(values, np.float64) / ticks


def of_day(texts: pa.Array) -> NDArray[np.float64]:
    """Return the seconds (n,) that times of day, or durations, such as 10:35 say; else NaN."""
    parts = pc.extract_regex(pc.utf8_trim_whitespace(texts), _CLOCK)
    nothing = pa.scalar(None, pa.string())

    def number(name: str) -> NDArray[np.float64]:
        field = pc.if_else(pc.equal(parts.field(name), ""), "0", parts.field(name))
        field = pc.cast(pc.if_else(parts.is_valid(), field, nothing), pa.float64())
        return np.asarray(np.from_dlpack(pc.coalesce(field, pa.scalar(np.nan))), np.float64)

    hours, half = number("hours"), pc.utf8_lower(parts.field("half"))
    hours = np.where(mask(pc.not_equal(half, "")), hours % 12.0, hours)
    hours += np.where(mask(pc.equal(half, "p")), 12.0, 0.0)
    return np.asarray(hours * 3600.0 + number("minutes") * 60.0 + number("seconds"))


def day_or_month(texts: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first two numbers (n,) of dates with the year last; 0 for all else."""
    found = np.zeros((2, len(texts)), np.int64)
    likely = mask(pc.match_substring_regex(texts, _DIGITS))
    if likely.any():
        parts = pc.extract_regex(_plain(texts.filter(_arrow(likely))), _EITHER)
        for k, name in enumerate(("first", "second")):
            field = pc.if_else(parts.is_valid(), parts.field(name), pa.scalar("0"))
            numbers = pc.coalesce(pc.cast(field, pa.int64()), pa.scalar(0))
            found[k, likely] = np.from_dlpack(numbers)
    return found[0], found[1]


def dotted(text: str) -> bool:
    """Whether a date has dots between its parts: only the day stands first then."""
    return text.count(".") >= 2


def _arrow(chosen: NDArray[np.bool_]) -> pa.Array:
    bits = pa.py_buffer(np.packbits(chosen, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(chosen), [None, bits])
