"""The pages of the folder and of tables, and their writes."""

import io
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from hushtable.data.quality import range_words
from hushtable.data.texts.doubt import ColumnUnderstanding
from hushtable.errors import DataError, HushTableError, UsageError
from hushtable.files import replacing
from hushtable.language import LANGUAGES, N_
from hushtable.report.lists import LISTS
from hushtable.scores.verdict_log import LogInUseError
from hushtable.words.options import Option, button_words, on_page, with_buttons
from hushtable_desk.desk import Desk
from hushtable_desk.folder import LOG, MODEL, TABLES, as_known, key_of
from hushtable_desk.judging import JudgedRows, RowView
from hushtable_desk.language import _
from hushtable_desk.layout import write_list
from hushtable_desk.listing import DIRECTIONS, FACETS, KINDS, ORDERS, Query
from hushtable_desk.tables import KINDS as COLUMN_KINDS
from hushtable_desk.tables import Table, choice_of, choices

#: Seconds that a page waits for work before it shows the progress.
_WAIT = 1.0
#: Bytes of a dropped file at most.
_MOST_BYTES = 4 << 30
#: Types of exports, by ending.
_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "json": "application/json",
}


def routes() -> list[BaseRoute]:
    """Return the routes of the folder and its tables."""
    at = "/t/{key}"
    return [
        Route("/", home),
        Route("/settings", write(settings), methods=["POST"]),
        Route("/files", drop, methods=["POST"]),
        Route(at, table_page),
        Route(f"{at}/say", write(say), methods=["POST"]),
        Route(f"{at}/list", write(own_list), methods=["POST"]),
        Route(f"{at}/fit", write(fit), methods=["POST"]),
        Route(f"{at}/use", write(use), methods=["POST"]),
        Route(f"{at}/job", job),
        Route(f"{at}/rows", rows_page),
        Route(f"{at}/rows/{{number:int}}", rows_page),
        Route(f"{at}/rows/{{number:int}}/verdict", write(verdict), methods=["POST"]),
        Route(f"{at}/rows/{{number:int}}/known", write(known), methods=["POST"]),
        Route(f"{at}/together", write(together), methods=["POST"]),
        Route(f"{at}/undo", write(undo), methods=["POST"]),
        Route(f"{at}/apart", write(apart), methods=["POST"]),
        Route(f"{at}/sort", write(sort), methods=["POST"]),
        Route(f"{at}/find", write(find), methods=["POST"]),
        Route(f"{at}/rows.{{ending}}", export),
    ]


def desk_of(request: Request) -> Desk:
    """Return the desk of a request."""
    desk: Desk = request.app.state.desk
    return desk


def table_of(request: Request) -> Table:
    """Return the table that an address names."""
    return desk_of(request).table(request.path_params["key"])


def write(work: Callable[[Request, dict[str, Any]], Any]) -> Any:
    """Return a handler that passes the JSON object of a write to ``work``, and answers in JSON."""

    async def handler(request: Request) -> Response:
        try:
            body = json.loads(await request.body())
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise UsageError("a write needs a JSON object")
        answer = await run_in_threadpool(work, request, body)
        return JSONResponse(answer or {})

    return handler


# --- the folder -----------------------------------------------------------------------------------


def home(request: Request) -> Response:
    """Show the folder: its tables, models, and recent work."""
    desk = desk_of(request)
    folder = desk.folder
    recent = []
    for log in folder.logs:
        name = log.name.removesuffix(LOG)
        entry = next((file for file in folder.tables if file.name == name), None)
        if entry is not None:
            lines = folder.file(log.name).read_bytes().splitlines()[1:]
            n = len(lines) - 2 * sum(b",undo," in line for line in lines)
            recent.append((entry, n, datetime.fromtimestamp(log.changed, UTC)))
    return desk.page(
        request, "home.html", here="home", tables=folder.tables, models=folder.models,
        recent=recent, endings=TABLES,
    )  # fmt: skip


def settings(request: Request, body: dict[str, Any]) -> None:
    """Set the name of the person who judges, and the language of the pages."""
    desk = desk_of(request)
    who = " ".join(str(body.get("who", desk.who)).split())[:80]
    if who != desk.who:
        desk.who = who
        desk.close()  # the log of another person may be another
    if body.get("language") in LANGUAGES:
        desk.language = body["language"]


async def drop(request: Request) -> Response:
    """Write a file that was dropped on the page into the folder, only for this account."""
    folder = desk_of(request).folder
    name = unquote(request.headers.get("x-file-name", ""))
    if not name.lower().endswith((*TABLES, MODEL)) or name.endswith(LOG):
        raise UsageError(
            f"this is not a table or model: needs a file that ends in {', '.join(TABLES)}"
        )
    if int(request.headers["content-length"]) > _MOST_BYTES:
        raise UsageError("this file is too large to be dropped: copy it into the folder")
    folder.file(name)  # refused unless it is a plain name
    path = folder.file(folder.new_name(name))
    with replacing(path, private=True, new=True) as file:
        async for chunk in request.stream():
            await run_in_threadpool(file.write, chunk)
    entry = next(other for other in folder.files(*TABLES, MODEL) if other.name == path.name)
    is_model = path.name.endswith(MODEL)
    return JSONResponse({"address": "/models" if is_model else f"/t/{entry.key}"})


# --- a table --------------------------------------------------------------------------------------


def table_page(request: Request) -> Response:
    """Show how a table was understood, its quality, and the columns that a model would use."""
    desk, table = desk_of(request), table_of(request)
    error, quality = "", None
    columns: Sequence[ColumnUnderstanding] = ()
    ways: Sequence[Option] = ()
    with on_page():
        try:
            columns = table.columns
            quality = table.quality
        except (HushTableError, OSError) as failure:
            sentence, ways = with_buttons(as_known(failure))
            error = desk.without_path(sentence)
        picture = table.picture if error or "layout" in request.query_params else None
        if picture is not None:
            ways = [way for way in ways if not picture.offers(way)]
            if picture.encodings:  # which the page shows as buttons
                error = error.partition("? ")[0] + "?"
        return desk.page(
            request, "table.html", table=table, here="table", error=error, columns=columns,
            quality=quality, choices=choices, button=button_words, kinds=COLUMN_KINDS,
            models=desk.folder.models, found=table.found, writable=desk.folder.writable,
            ways=ways, picture=picture, as_choice=choice_of, range_words=range_words,
        )  # fmt: skip


def say(request: Request, body: dict[str, Any]) -> None:
    """Record a person's decision on a table: an entry of its settings."""
    table_of(request).decide(str(body.get("name")), body.get("value"), str(body.get("column", "")))


def own_list(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    """Write a list of a JSON file to a file of its own, and open that."""
    folder = desk_of(request).folder
    name = write_list(folder, table_of(request).path, str(body.get("name")))
    return {"address": f"/t/{key_of(name)}"}


def fit(request: Request, body: dict[str, Any]) -> None:
    """Begin to fit a model."""
    table_of(request).fit(clean=body.get("clean") is True)


def use(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    """Score the table with another model of the folder."""
    table = table_of(request)
    table.use(str(body.get("model")))
    return {"address": f"/t/{table.key}/rows"}


def job(request: Request) -> Response:
    """Report the progress of the work on a table."""
    work = table_of(request).job
    facts: dict[str, Any] = {"done": True, "error": ""} if work is None else work.facts
    return JSONResponse(facts | {"error": desk_of(request).without_path(facts["error"])})


# --- unusual rows ---------------------------------------------------------------------------------


def rows_page(request: Request) -> Response:
    """Show the list of unusual rows and one of them, or only this one if a script asks."""
    desk, table = desk_of(request), table_of(request)
    if not table.model:
        return RedirectResponse(f"/t/{table.key}", 303)
    if not table.is_scored:
        work = table.score()
        work.wait(_WAIT)
        if not work.done:
            return desk.page(request, "wait.html", table=table, here="rows")
        if isinstance(work.failure, LogInUseError):
            words = _("Another desk or review judges this table now: end it, or judge beside it.")
            return desk.page(request, "error.html", 400, title=N_("This table is in use"),
                             words=words, apart=f"/t/{table.key}/apart")  # fmt: skip
        if work.error:
            raise DataError(work.error)
    judging, query = table.judging, Query.of(request.query_params)
    number = request.path_params.get("number")
    if request.headers.get("x-part") == "row":
        return desk.page(request, "row.html", **_row_context(table, judging, number))
    lines = judging.listing.chosen(query)
    if number is None:
        number = judging.next(None, _numbers(judging, query))
        if number is None and lines:
            number = lines[0].number
    return desk.page(
        request, "rows.html", here="rows", lines=lines, query=query,
        facets=judging.listing.facets(query), facet_names=FACETS, orders=ORDERS,
        directions=DIRECTIONS, shown=judging.listing.shown(query), search=_search(query),
        kinds=KINDS, **_row_context(table, judging, number),
    )  # fmt: skip


def _row_context(table: Table, judging: JudgedRows, number: int | None) -> dict[str, Any]:
    view: RowView | None = None if number is None else judging.view(number)
    n_similar, similar = judging.listing.similar(-1 if number is None else number)
    return {
        "table": table, "view": view, "similar": similar, "n_similar": n_similar,
        "address": _address(table), "number": number, "found": judging.review.found(),
        "last": judging.last, "n_rows": judging.review.n_rows, "judging": judging,
    }  # fmt: skip


def _numbers(judging: JudgedRows, query: Query) -> list[int] | None:
    """Return the rows that a query selects; None if it selects all."""
    if not query.chosen and query.order == "unusual":
        return None
    return [line.number for line in judging.listing.chosen(query)]


def _address(table: Table) -> Callable[..., str]:
    def address(query: Query, number: int | None = None, ending: str = "") -> str:
        row = "" if number is None else f"/{number}"
        return f"/t/{table.key}/rows{row}{ending}{_search(query)}"

    return address


def _search(query: Query) -> str:
    return f"?{urlencode(query.parameters)}" if query.parameters else ""


def _query(body: dict[str, Any]) -> Query:
    address = body.get("query")
    entries = address.items() if isinstance(address, dict) else ()
    return Query.of({str(name): str(value) for name, value in entries})


def verdict(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    """Record a verdict on a row, and show the next row."""
    desk, judging = desk_of(request), table_of(request).judging
    number, note = request.path_params["number"], str(body.get("note") or "")
    query = _query(body)
    judging.answer(number, str(body.get("verdict")), note, desk.who)
    return _next(request, judging, judging.next(number, _numbers(judging, query)))


def _next(request: Request, judging: JudgedRows, number: int | None) -> dict[str, Any]:
    context = _row_context(table_of(request), judging, number)
    html = desk_of(request).text(request, "row.html", **context)
    last = {str(answer.row): answer.verdict for answer, _ in judging.last}
    return {"number": number, "html": html, "verdicts": last, "found": context["found"]}


def together(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    """Record a verdict on all rows of a filtered list that have none."""
    desk, judging, query = desk_of(request), table_of(request).judging, _query(body)
    if not query.chosen:
        raise UsageError(_("choose which rows to judge together first"))
    lines = judging.listing.chosen(query)
    verdict, note = str(body.get("verdict")), str(body.get("note") or "")
    return {"n": judging.answer_all(lines, verdict, note, desk.who)}


def undo(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    """Take the last verdict back, or those that were recorded together, and show a row of it."""
    judging = table_of(request).judging
    gone = judging.undo(desk_of(request).who)
    if not gone:
        raise UsageError(_("there is no verdict to take back"))
    rows = [answer.row for answer in gone]
    return _next(request, judging, rows[-1]) | {"undone": rows}


def apart(request: Request, body: dict[str, Any]) -> None:
    """Judge in a log of one's own from now on, beside the verdicts of others."""
    table_of(request).judge_apart()


def known(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    """Add a row to those that are known, and show the next row."""
    judging = table_of(request).judging
    judging.add_known(request.path_params["number"])
    return {"number": judging.next(None, None)}


def sort(request: Request, body: dict[str, Any]) -> None:
    """Sort the list by all verdicts, or make it longer."""
    judging = table_of(request).judging
    judging.sort(judging.more if body.get("more") is True else None)


def find(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    """Find rows by name."""
    text = str(body.get("text", ""))
    rows = table_of(request).judging.find(text) if text.strip() else []
    return {"rows": [{"number": number, "name": name} for number, name in rows]}


def export(request: Request) -> Response:
    """Send the list as a file, filtered and sorted as in the address."""
    table, ending = table_of(request), request.path_params["ending"]
    if ending not in _TYPES:
        raise UsageError(f"needs one of {', '.join(_TYPES)}")
    judging = table.judging
    listed = judging.listing.outliers(Query.of(request.query_params))
    if ending == "json":
        rows = [{k: _plain(v) for k, v in row.items()} for row in listed.table().to_pylist()]
        content = json.dumps({"table": table.name, "model": table.model, "rows": rows}, indent=1)
        body = content.encode()
    else:
        file = io.BytesIO()
        unit = judging.model.scorer.plan.score.unit
        LISTS[f".{ending}"](file, listed, table.model, table.name, unit)
        body = file.getvalue()
    name = f"{table.path.stem} unusual.{ending}"
    ascii_name = name.encode("ascii", "replace").decode().replace('"', "'").replace("\\", "_")
    quoted = urlencode({"": name})[1:].replace("+", "%20")
    kept = f"attachment; filename=\"{ascii_name}\"; filename*=UTF-8''{quoted}"
    return Response(body, media_type=_TYPES[ending], headers={"Content-Disposition": kept})


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value != value:
        return None
    return value if isinstance(value, str | int | float | None) else str(value)
