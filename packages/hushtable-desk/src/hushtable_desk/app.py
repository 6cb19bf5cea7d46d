"""The application: every page and write of a desk, and the answers to failures."""

import logging
import os

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from hushtable.errors import HushTableError
from hushtable.language import N_, speaking
from hushtable.words.options import with_buttons
from hushtable_desk import learning, models, pages, rules, watching
from hushtable_desk.desk import Desk
from hushtable_desk.folder import as_known
from hushtable_desk.language import _, preferred
from hushtable_desk.security import Access, Guard

_log = logging.getLogger("hushtable_desk")


def build_app(desk: Desk, access: Access) -> Starlette:
    """Return the application of a desk, guarded by its access.

    Parameters
    ----------
    desk : Desk
        The folder whose tables and rounds the pages show.
    access : Access
        Decides which requests are answered.

    Returns
    -------
    Starlette
        An ASGI application, for a server that listens only on the loopback address.

    Examples
    --------
    >>> from hushtable_desk import Access, Desk, build_app
    >>> app = build_app(Desk("."), Access(8517))
    >>> app.state.desk.folder.tables
    []
    """
    rounds: list[BaseRoute] = []
    if desk.has_rounds:
        from hushtable_desk.rounds import routes  # needs their package

        rounds = routes()
    app = Starlette(
        routes=[
            *pages.routes(),
            *learning.routes(),
            *rules.routes(),
            *rounds,
            *models.routes(),
            *watching.routes(),
            Mount("/static", StaticFiles(packages=[("hushtable_desk", "static")])),
        ],
        middleware=[Middleware(Guard, access=access), Middleware(_Contained)],
        exception_handlers={
            HushTableError: _known,
            OSError: _known,
            HTTPException: _no_page,
            ClientDisconnect: _left,
        },
    )
    app.state.desk = desk
    return app


def _answer(request: Request, status: int, title: str, words: str) -> Response:
    """Answer a failure, in JSON to a script and as a page to a person."""
    if request.method == "POST":
        return JSONResponse({"error": words}, status)
    desk: Desk = request.app.state.desk
    return desk.page(request, "error.html", status, title=title, words=words)


def _known(request: Request, error: Exception) -> Response:
    assert isinstance(error, HushTableError | OSError)
    desk: Desk = request.app.state.desk
    sentence, _ways = with_buttons(as_known(error))
    return _answer(request, 400, N_("This cannot be done"), desk.without_path(sentence))


def _no_page(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = _("The desk has no page at this address.")
    if error.status_code != 404:
        words = str(error.detail)
    return _answer(request, error.status_code, N_("Page not found"), words)


def _left(request: Request, error: Exception) -> Response:
    words = "the connection ended before the whole request arrived: send it again"
    return _answer(request, 400, N_("This cannot be done"), words)


class _Contained:
    """Answers an unexpected failure; the log gets only its kind, and no values of rows."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, in the language of its page."""
        if scope["type"] != "http":  # a server's start and end
            await self._app(scope, receive, send)
            return
        desk: Desk = scope["app"].state.desk
        with speaking(desk.language or preferred(Request(scope))):
            try:
                await self._app(scope, receive, send)
            except Exception as error:
                if os.environ.get("HUSHTABLE_DEBUG"):
                    raise
                kind = type(error).__name__
                _log.error("unexpected %s, which is a bug in hushtable-desk", kind)
                words = f"unexpected {kind}, which is a bug in hushtable-desk: report it"
                response = _answer(Request(scope), 500, N_("Unexpected error"), words)
                await response(scope, receive, send)
