"""Two pages on more than one row: what the model learned, and the history of an entity."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup
from numpy.typing import NDArray
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from hushtable.data.columns import as_numbers, is_text
from hushtable.data.history import values_behind
from hushtable.data.schema import number_words
from hushtable.data.texts.reading import Reading, plain_texts
from hushtable.errors import UsageError
from hushtable.language import WORDS, numerals
from hushtable_desk.folder import MODEL
from hushtable_desk.judging import JudgedRows
from hushtable_desk.language import _
from hushtable_desk.lines import ChartLine, LineChart
from hushtable_desk.pages import desk_of, table_of, write

#: Rows of both lists, and columns that are listed as moved.
_LISTED, _COLUMNS = 20, 8
#: Drawn columns of a history, its last readings in a table, and readings at most.
_DRAWN, _READINGS, _MOST = 3, 10, 5_000


def routes() -> list[BaseRoute]:
    """Return the routes of both pages."""
    at = "/t/{key}"
    return [
        Route(f"{at}/learned", learned),
        Route(f"{at}/learned/save", write(save), methods=["POST"]),
        Route(f"{at}/rows/{{number:int}}/history", history),
    ]


def learned(request: Request) -> Response:
    """Show the effect of verdicts: the curve, the columns, and the list before and after."""
    table = table_of(request)
    judging = table.judging
    with judging.lock:
        review = judging.review
        curve, alone = review.curve()
        last = review.last()
        places = [
            (k, judging.name_of(k), now, before, last.get(k))
            for k, now, before in review.places(_LISTED)
        ]
        moved = [pair for pair in review.moved_columns()[:_COLUMNS] if pair[1] > 0.0]
    return desk_of(request).page(
        request,
        "learned.html",
        table=table,
        here="learned",
        unit=WORDS.say(judging.model.scorer.plan.score.unit),
        found=review.found(),
        chart=_curve(curve, alone) if len(curve) > 1 else None,
        moved=moved,
        places=places,
        listed=_LISTED,
        verdicts=review.verdicts,
        learned_name=f"{table.model.removesuffix(MODEL)} learned{MODEL}",
    )


def _curve(curve: NDArray[np.int64], alone: NDArray[np.int64]) -> Markup:
    n = len(curve) - 1
    lines = [ChartLine(_("by verdicts"), curve), ChartLine(_("by score alone"), alone)]
    numbers = {"n": n, "found": curve[-1], "alone": alone[-1]}
    words = _(
        "Outliers among %(n)s reviewed rows: %(found)s. Among the %(n)s rows with the lowest "
        "scores without verdicts: %(alone)s of these.",
        **{name: numerals(f"{k:,}") for name, k in numbers.items()},
    )
    across, up = _("reviewed rows"), _("outliers found")
    return LineChart(lines, words, across=across, up=up, steps=True, width=520.0).svg


def save(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    """Write the model with all verdicts into the folder."""
    desk, table = desk_of(request), table_of(request)
    name = " ".join(str(body.get("name", "")).split())
    if not name.endswith(MODEL):
        raise UsageError(f"the name {name!r} does not end in {MODEL}: add the ending")
    if name == table.model:
        raise UsageError(
            f"{name} is the model before learning: give the learned model another name"
        )
    table.judging.save_learned(desk.folder.file(name))
    if body.get("use") is True:
        table.use(name)
        return {"address": f"/t/{table.key}/rows"}
    return {"name": name}


# --- the history of an entity ---------------------------------------------------------------------


def history(request: Request) -> Response:
    """Show the readings of a row's entity: drawn over time, the last ones in a table."""
    judging = table_of(request).judging
    reading: Reading = judging.model.reading
    entity, times, columns = readings(judging, request.path_params["number"])
    now = judging.time_of(request.path_params["number"])
    at = int(np.argmin(np.abs(times - now))) if len(times) and np.isfinite(now) else -1
    drawn = list(columns.items())[:_DRAWN]
    charts = [_line(name, values, times, at, reading) for name, values in drawn]
    order = range(len(times) - 1, max(-1, len(times) - 1 - _READINGS), -1)
    rows = [
        (
            _written(reading, reading.time, times[k]),
            [_written(reading, name, values[k]) for name, values in columns.items()],
            k == at,
        )
        for k in order
    ]
    return desk_of(request).page(
        request, "history.html", entity=entity, charts=[chart for chart in charts if chart],
        names=list(columns), rows=rows, n=len(times),
    )  # fmt: skip


def readings(
    judging: JudgedRows, number: int
) -> tuple[str, NDArray[np.float64], dict[str, NDArray[np.float64]]]:
    """Return a row's entity, and the times and row numbers of its readings, sorted by time.

    At most the last 5,000 readings count. Raises `UsageError` if rows are not readings of an
    entity.
    """
    reading: Reading = judging.model.reading
    if not reading.entity:
        raise UsageError(
            "rows of this table are not readings of an entity over time: fit a model with an entity"
        )
    entity = judging.review.kept(number)[reading.entity]
    values = values_behind(judging.model.scorer.plan.schema.names)
    reader = judging.options.opened(str(judging.path), reading)
    reader = reader.select([reading.entity, reading.time, *values])
    readings = []
    for batch in reader.read():
        assert isinstance(batch, pa.RecordBatch)  # of a file
        whose = pc.fill_null(pc.equal(plain_texts(batch.column(0)), entity), False)
        readings.append(pa.Table.from_batches([batch]).filter(whose))
    table = pa.concat_tables(readings, promote_options="permissive").combine_chunks()
    times = _numbers(reading, reading.time, table)
    order = np.argsort(times, kind="stable")[-_MOST:]
    return entity, times[order], {name: _numbers(reading, name, table)[order] for name in values}


def _numbers(reading: Reading, name: str, table: pa.Table) -> NDArray[np.float64]:
    column = pa.concat_arrays(table.column(name).chunks)
    how = reading.column(name, "date" if name == reading.time else "")
    column = reading.without_missing(column, name, how.decimal)
    numbers = how.values(plain_texts(column)) if is_text(column.type) else as_numbers(column, name)
    return np.asarray(numbers, np.float64)


def _line(
    name: str, values: NDArray[np.float64], times: NDArray[np.float64], at: int, reading: Reading
) -> Markup | None:
    known = np.flatnonzero(np.isfinite(values) & np.isfinite(times))
    if len(known) < 2:
        return None
    marked = np.flatnonzero(known == at).tolist()
    days = (times[known] - times[known[0]]) / 86_400.0
    n, start = numerals(f"{len(known):,}"), _written(reading, reading.time, times[known[0]])
    words = _("%(n)s readings of %(name)s, from %(start)s on", n=n, name=name, start=start)
    line = ChartLine(name, values[known], days, marked)
    return LineChart([line], words, across=_("days")).svg


def _written(reading: Reading, name: str, value: float) -> str:
    how = reading.column(name, "date") if name == reading.time else reading.columns.get(name)
    write = number_words if how is None else how.written
    return write(float(value)) if np.isfinite(value) else ""
