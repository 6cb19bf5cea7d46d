"""The watch page of a table: rows since the last visit, and months compared with earlier ones."""

import hashlib
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from markupsafe import Markup
from numpy.typing import NDArray
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from hushtable import HushTable
from hushtable.data.columns import as_numbers, is_text
from hushtable.data.readers import Reader
from hushtable.data.schema import DATE, Feature, Schema
from hushtable.data.texts.doubt import ColumnUnderstanding
from hushtable.data.texts.reading import plain_texts
from hushtable.errors import DataError, HushTableError, UsageError
from hushtable.language import N_, spoken
from hushtable_desk.judging import JudgedRows
from hushtable_desk.language import _
from hushtable_desk.lines import ChartLine, LineChart
from hushtable_desk.listing import Line
from hushtable_desk.listing import key_of as column_key
from hushtable_desk.pages import desk_of, table_of, write
from hushtable_desk.tables import Table

if TYPE_CHECKING:
    from hushtable_desk.changes import Change

Ints = NDArray[np.int64]

_MONTHS = (
    N_("Jan"), N_("Feb"), N_("Mar"), N_("Apr"), N_("May"), N_("Jun"), N_("Jul"), N_("Aug"),
    N_("Sep"), N_("Oct"), N_("Nov"), N_("Dec"),
)  # fmt: skip
#: Years side by side, rows of the table of months, and the width of their charts.
_YEARS, _LAST, _WIDTH = 4, 12, 640.0
#: Month of rows without a point in time.
_UNDATED = np.iinfo(np.int64).min
#: Earlier rows that are compared at most.
_EARLIER = 200_000
#: Bytes that identify a file of lines, to which rows are appended.
_BEGINNING, _OF_LINES = 1 << 16, (".csv", ".tsv", ".txt", ".jsonl", ".ndjson")


# --- since the last visit -------------------------------------------------------------------------


@dataclass(frozen=True)
class SinceVisit:
    """Rows that are new in a table since someone last marked its rows as seen.

    Attributes
    ----------
    when : str
        Day and time of that visit (UTC, ISO 8601); empty before the first one.
    rows : int
        Rows that the table had then.
    n_rows : int
        Rows that the table has now.
    new : list of Line
        The listed unusual rows among the new ones, the most unusual first.
    is_other : bool
        Whether the file begins differently, so that none of its rows is known to be old.
    """

    when: str
    rows: int
    n_rows: int
    new: list[Line]
    is_other: bool = False

    @classmethod
    def of(cls, table: Table, judging: JudgedRows) -> "SinceVisit":
        """Return the new rows of a table."""
        kept = table.folder.remembered("visits", table.name)
        when, rows, n_rows = str(kept.get("when", "")), kept.get("rows", 0), judging.review.n_rows
        if not isinstance(rows, int) or not when:
            return cls("", 0, n_rows, [])
        began, is_other = kept.get("begins"), False
        if isinstance(began, list) and began and table.path.is_file():
            is_other = began != _beginning(table.path, began[0])
        old = 0 if is_other or n_rows < rows else rows
        new = [line for line in judging.listing.lines if line.number >= old]
        return cls(when, rows, n_rows, new, is_other)

    @property
    def n_new(self) -> int:
        """Rows after those of the visit."""
        return max(0, self.n_rows - self.rows)


def _beginning(path: Path, length: int) -> list[Any]:
    """Return the number of bytes that identify a file, at most ``length``, and their digest."""
    try:
        with path.open("rb") as file:
            content = file.read(length)
    except FileNotFoundError:
        return []
    return [len(content), hashlib.sha256(content).hexdigest()]


# --- months ---------------------------------------------------------------------------------------


class MonthLine(NamedTuple):
    """A month in the table of months: its name, rows, unusual ones, and their share."""

    month: str
    rows: int
    unusual: int
    share: float
    #: Share in the same month of the year before; NaN if that has no rows.
    before: float


@dataclass(frozen=True)
class Months:
    """The rows of a table by month.

    Attributes
    ----------
    months : ndarray of shape (n_rows,), int64
        Month of each row, counted from January 1970.
    unusual : ndarray of shape (n_rows,), bool
        Which rows score below the model's threshold, or are listed if there is none.
    """

    months: Ints
    unusual: NDArray[np.bool_]

    @cached_property
    def n_undated(self) -> int:
        """Rows without a point in time."""
        return int(np.count_nonzero(self.months == _UNDATED))

    @cached_property
    def counts(self) -> dict[int, tuple[int, int]]:
        """Rows and unusual rows of each month that has rows, in order."""
        dated = self.months != _UNDATED
        months, place = np.unique(self.months[dated], return_inverse=True)
        rows = np.bincount(place, minlength=len(months))
        unusual = np.bincount(place, self.unusual[dated], len(months)).astype(np.int64)
        both = zip(rows.tolist(), unusual.tolist(), strict=True)
        return dict(zip(months.tolist(), both, strict=True))

    @property
    def last(self) -> int:
        """The last month that has rows."""
        return max(self.counts)

    @property
    def lines(self) -> list[MonthLine]:
        """The last months, the latest first."""
        return [
            MonthLine(_month(m), *self.counts[m], self._share(m), self._share(m - 12))
            for m in [*self.counts][: -_LAST - 1 : -1]
        ]

    def _share(self, month: int) -> float:
        rows, unusual = self.counts.get(month, (0, 0))
        return unusual / rows if rows else math.nan

    def chart(self, words: str, up: str, *, share: bool = False) -> Markup:
        """Draw a line of months for each of the last years: their rows, or their unusual share."""
        years = list(dict.fromkeys(m // 12 for m in reversed(self.counts)))[:_YEARS]
        lines = []
        for year in years:
            months = [m for m in self.counts if m // 12 == year]
            y = [self._share(m) if share else self.counts[m][0] for m in months]
            lines.append(ChartLine(str(1970 + year), y, [m % 12 for m in months]))
        chart = LineChart(
            lines,
            words,
            labels=[*map(_, _MONTHS)],
            up=up,
            share=share,
            from_zero=True,
            width=_WIDTH,
        )
        return chart.svg

    def before(self) -> tuple[Ints, str]:
        """Return the row numbers to compare with the last month, and the kind of comparison."""
        dated = (self.months != _UNDATED) & (self.months < self.last)
        same = np.flatnonzero(dated & (self.months % 12 == self.last % 12))
        if len(same):
            return same, "same"
        return np.flatnonzero(dated), "all"


def _month(number: int) -> str:
    return f"{_(_MONTHS[number % 12])} {1970 + number // 12}"


def counted_months(table: Table, judging: JudgedRows, column: ColumnUnderstanding) -> Months:
    """Return the rows of a table by the month in a column of dates.

    Columns of time do not make a row unusual here, since each month has values of them that no
    earlier month has: if the table's model has such features, one without them is fitted.
    """
    rows, months, start = _opened(table, judging, [column.name]), [], 0
    for batch in rows.read():
        if isinstance(batch, np.ndarray):
            raise DataError(f"{table.name} has no column {column.name!r}")
        months.append(_month_numbers(batch.column(column.name), column, start))
        start += len(batch)
    scorer, threshold = judging.review.scorer, judging.model.threshold
    schema, context = scorer.plan.schema, scorer.plan.context
    watched = watched_features(schema, context)
    if 0 < len(watched) < len(schema):
        part = rows.select([feature.name for feature in watched])
        part = replace(part, reading=None, keep=())  # their values are read already
        detector = HushTable(context=list(context) or None, random_state=0, n_jobs=-1)
        detector.fit(part, schema=Schema(watched, public=False))
        scores, threshold = detector.score_samples(part), float(detector.offset_)
    else:
        scores = scorer.score(_opened(table, judging), n_jobs=-1)
    if math.isnan(threshold):
        listed = [line.number for line in judging.listing.lines]
        unusual = np.isin(np.arange(len(scores)), listed)
    else:
        unusual = scores < threshold
    return Months(np.concatenate(months), unusual)


def watched_features(schema: Schema, context: Sequence[str] = ()) -> tuple[Feature, ...]:
    """Return the features but for points in time and their parts, which stay in a context."""
    return tuple(
        feature
        for feature in schema.features
        if feature.name in context or (feature.unit != DATE and not feature.cyclic)
    )


def _opened(table: Table, judging: JudgedRows, keep: Sequence[str] = ()) -> Reader:
    """Open the scored rows with further columns beside the features."""
    schema, rules = judging.model.scorer.plan.schema, judging.review.scorer.rules
    ruled = [] if rules is None else rules.columns
    beside = [name for name in dict.fromkeys([*keep, *ruled]) if name not in schema.names]
    options = replace(table.said, drop=(), context=()).options()
    return options.open_as(str(table.path), schema, judging.model.reading, beside)


def _month_numbers(column: Any, day: ColumnUnderstanding, start: int) -> Ints:
    """Return months (n,) since 1970; `_UNDATED` if there is no point in time."""
    if is_text(column.type):
        texts = plain_texts(column)
        if day.reading is None:
            raise DataError(f"column {day.name!r} holds texts, not dates: choose a column of dates")
        seconds = day.reading.values(texts)
    else:
        seconds = np.asarray(as_numbers(column, day.name, start), np.float64)
    dated = np.isfinite(seconds)
    whole = np.floor(np.where(dated, seconds, 0.0)).astype("datetime64[s]")
    return np.where(dated, whole.astype("datetime64[M]").astype(np.int64), _UNDATED)


# --- changes in the last month --------------------------------------------------------------------


@dataclass(frozen=True)
class MonthChanges:
    """Changes in the last month beyond chance, compared with earlier rows.

    ``against`` is "same" for the same month of earlier years, "all" for all earlier rows.
    ``is_enough`` states whether there are enough rows to compare.
    """

    month: str
    n_rows: int
    n_before: int
    against: str
    is_enough: bool
    changes: list["Change"]

    @classmethod
    def of(cls, table: Table, judging: JudgedRows, months: Months) -> "MonthChanges":
        """Compare the last month of a table with the rows before it."""
        from hushtable_desk.changes import FEWEST, changes  # loads statistical tests

        last = np.flatnonzero(months.months == months.last)
        before, against = months.before()
        # Of very many earlier rows, evenly spaced ones are sufficient and faster.
        before = before[:: max(1, -(-len(before) // _EARLIER))]
        changed: list[Change] = []
        is_enough = min(len(before), len(last)) >= FEWEST
        if is_enough:
            reader = _opened(table, judging)
            features = watched_features(judging.model.scorer.plan.schema)
            earlier, now = (_table(reader.take(rows)) for rows in (before, last))
            unusual = months.unusual[before], months.unusual[last]
            changed = changes(features, earlier, now, unusual)
        return cls(_month(months.last), len(last), len(before), against, is_enough, changed)


def _table(reader: Reader) -> pa.Table:
    names = list(reader.names or ())
    batches = (
        pa.RecordBatch.from_arrays([pa.array(column) for column in batch.T], names)
        if isinstance(batch, np.ndarray)
        else batch
        for batch in reader.read()
    )
    return pa.Table.from_batches(batches)


# --- cached counts --------------------------------------------------------------------------------

_lock = threading.Lock()
#: Months and changes by scored rows (of one state of a file), column of dates, rules, and language.
_seen: WeakKeyDictionary[JudgedRows, dict[Any, tuple[Months, MonthChanges]]] = WeakKeyDictionary()


def months_and_changes(
    table: Table, judging: JudgedRows, dates: ColumnUnderstanding
) -> tuple[Months, MonthChanges | None]:
    """Return the rows of a table by month and the changes in the last; the first call counts."""
    key = dates.name, dates.reading, id(judging.review.scorer), spoken()
    with _lock:
        cached = _seen.setdefault(judging, {})
        if key not in cached:
            if judging.is_changed:
                raise DataError(
                    f"{table.name} has changed or disappeared since it was read: read it again"
                )
            months = counted_months(table, judging, dates)
            if not months.counts:
                return months, None
            cached[key] = months, MonthChanges.of(table, judging, months)
        return cached[key]


def dates_of(table: Table) -> list[ColumnUnderstanding]:
    """Return the columns of dates with a known order of day and month, the model's time first."""
    dates = [column for column in table.columns if column.kind == "date" and not column.refused]
    return sorted(dates, key=lambda column: column.name != table.said.time)


# --- pages ----------------------------------------------------------------------------------------


def routes() -> list[BaseRoute]:
    """Return the routes of the watch page."""
    return [
        Route("/t/{key}/watch", watch_page),
        Route("/t/{key}/seen", write(seen), methods=["POST"]),
        Route("/t/{key}/read-again", write(read_again), methods=["POST"]),
    ]


def watch_page(request: Request) -> Response:
    """Show the new rows of a table."""
    desk, table = desk_of(request), table_of(request)
    judging = table.judging
    dates = dates_of(table)
    asked = request.query_params.get("time")
    chosen = next((column for column in dates if column.name == asked), dates[0] if dates else None)
    months, changed, error = None, None, ""
    if chosen is not None:
        try:
            months, changed = months_and_changes(table, judging, chosen)
        except HushTableError as failed:
            error = str(failed)
    return desk.page(
        request, "watch.html", table=table, here="watch", visit=SinceVisit.of(table, judging),
        is_changed=judging.is_changed, is_gone=not table.path.is_file(), dates=dates,
        chosen=chosen, months=months, changed=changed, error=error,
        has_threshold=not math.isnan(judging.model.threshold),
        column_key=column_key,
    )  # fmt: skip


def seen(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    """Save the number of rows that someone has seen, and the beginning of the table's file."""
    table, rows = table_of(request), body.get("rows")
    if not isinstance(rows, int) or isinstance(rows, bool):
        raise UsageError("needs the number of rows that were seen")
    if not 0 <= rows <= table.judging.review.n_rows:
        raise UsageError(f"{table.name} has fewer than {rows:,} rows: read it again")
    when = datetime.now(UTC).isoformat(timespec="seconds")
    known = table.path.suffix.lower() in _OF_LINES and not table.judging.is_changed
    begins = _beginning(table.path, _BEGINNING) if known else []
    table.folder.remember("visits", table.name, rows=rows, when=when, begins=begins)
    return {"rows": rows}


def read_again(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    """Read a table's file again for the next page."""
    table = table_of(request)
    if not table.path.is_file():
        raise DataError(f"{table.name} no longer exists: put it back, or open another table")
    table.close()
    return {"read": True}
