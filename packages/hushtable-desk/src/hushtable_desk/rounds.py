"""The pages of rounds, and their writes; this module needs the package of rounds."""

from collections.abc import Callable
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from hushtable.describe.plan import column_rows
from hushtable.errors import HushTableError, UsageError
from hushtable_desk.pages import desk_of, write
from hushtable_desk.sites import AskedRound, DeskSite, find_round, sites_of, spending
from hushtable_federation.describe import officer_words, round_lines, site_words
from hushtable_federation.online.site import Statement
from hushtable_federation.policy import parties


def routes() -> list[BaseRoute]:
    """Return the routes of rounds."""
    return [
        Route("/rounds", all_rounds),
        Route("/rounds/{key}", one_round),
        *(
            Route(f"/rounds/{{key}}/{name}", write(partial(_done, work)), methods=["POST"])
            for name, work in _WRITES.items()
        ),
    ]


def all_rounds(request: Request) -> Response:
    """Show the rounds of a site, and its book."""
    desk = desk_of(request)
    sites, wanted = sites_of(desk.folder), request.query_params.get("site")
    chosen = next((one for one in sites if one.key == wanted), sites[0] if sites else None)
    about: dict[str, Any] = {"error": "", "asked": [], "faults": [], "spent": [], "book_error": ""}
    if chosen is not None:
        about |= _about(chosen)
    return desk.page(request, "rounds.html", here="rounds", sites=sites, chosen=chosen, **about)


def _about(chosen: DeskSite) -> dict[str, Any]:
    """Return the facts on a site for its page, or the reason why there are none."""
    found: dict[str, Any] = {}
    try:
        found["asked"], found["faults"] = chosen.rounds()
    except HushTableError as error:
        return {"error": str(error)}
    if not chosen.counts_rows:
        return found
    try:
        found["spent"] = spending(chosen.site)
    except HushTableError as error:
        found["book_error"] = str(error)
    return found


def one_round(request: Request) -> Response:
    """Show a round's request, its cost, the policy's decision, and the possible actions."""
    desk = desk_of(request)
    one = find_round(desk.folder, request.path_params["key"])
    return desk.page(
        request, "round.html", here="rounds", one=one,
        sites=[(name, site_words(one.progress, name)) for name in one.round.names],
        asks=officer_words(one.round), columns=column_rows(one.round.plan),
        parties=parties(one.round), terms=round_lines(one.round), tables=desk.folder.tables,
        **_allowed(one),
    )  # fmt: skip


def _allowed(one: AskedRound) -> dict[str, Any]:
    """Return the results of policy and book for a round, or why they cannot be read."""
    found: dict[str, Any] = {"verdict": "", "standing": None, "spent": None, "error": ""}
    if not one.at.counts_rows:
        return found
    try:
        about = one.at.site.settings.data_set
        found["spent"] = next(s for s in spending(one.at.site) if s.data_set == about)
        if one.is_open:
            found |= {"standing": one.standing, "verdict": one.verdict}
    except HushTableError as error:
        found["error"] = str(error)
    return found


# --- writes ---------------------------------------------------------------------------------------

_Work = Callable[[AskedRound, dict[str, Any]], dict[str, Any]]


def _done(work: _Work, request: Request, said: dict[str, Any]) -> dict[str, Any]:
    """Do the work of a write to the address of a round."""
    return work(find_round(desk_of(request).folder, request.path_params["key"]), said)


def _answer(one: AskedRound, said: dict[str, Any]) -> dict[str, Any]:
    statement = Statement(said.get("new_people") is True, said.get("outside_too") is True)
    compared, rows = (str(said.get(name) or "") for name in ("compared", "rows"))
    return {"words": one.answer(compared, statement, rows)}


def _approve(one: AskedRound, said: dict[str, Any]) -> dict[str, Any]:
    key = said.get("key")
    if not isinstance(key, str) or not key:
        raise UsageError("approval is missing: needs the officer's file of keys")
    return {"words": one.approve(key)}


def _refuse(one: AskedRound, said: dict[str, Any]) -> dict[str, Any]:
    return {"words": one.refuse(str(said.get("why") or ""))}


_WRITES: dict[str, _Work] = {
    "answer": _answer, "approve": _approve, "refuse": _refuse,
    "use": lambda one, said: {"model": one.use(), "go": "/models"},
}  # fmt: skip
