"""The application: every page and write of a desk, and how failures are answered."""

import logging
from collections.abc import Callable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from hushtable.errors import HushTableError
from hushtable_desk import models, pages, watching
from hushtable_desk.desk import Desk
from hushtable_desk.security import Access, Guard

_log = logging.getLogger("hushtable_desk")


def build_app(desk: Desk, access: Access) -> Starlette:
    """Return the application of a desk, guarded by its access.

    Parameters
    ----------
    desk : Desk
    access : Access

    Returns
    -------
    Starlette
        An ASGI application, for a server that listens on the loopback address alone.
    """
    app = Starlette(
        routes=[
            *pages.routes(),
            *models.routes(),
            *watching.routes(),
            Mount("/static", StaticFiles(packages=[("hushtable_desk", "static")])),
        ],
        middleware=[Middleware(Guard, access=access)],
        exception_handlers={
            HushTableError: _known,
            HTTPException: _no_page,
            Exception: _unknown,
        },
    )
    app.state.desk = desk
    return app


def _answer(request: Request, status: int, title: str, words: str) -> Response:
    """Answer a failure: to a script in JSON, to a person as a page."""
    if request.method == "POST":
        return JSONResponse({"error": words}, status)
    desk: Desk = request.app.state.desk
    return desk.page(request, "error.html", status, title=title, words=words)


def _known(request: Request, error: Exception) -> Response:
    return _answer(request, 400, "This cannot be done", str(error))


def _no_page(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _answer(request, error.status_code, "There is no such page", str(error.detail))


def _unknown(request: Request, error: Exception) -> Response:
    # Of a row or an address, nothing is in the log.
    _log.error("unexpected %s in the desk, which is a bug in hushtable", type(error).__name__)
    return _answer(
        request, 500, "Unexpected error",
        f"unexpected {type(error).__name__}, which is a bug in hushtable-desk: please report it",
    )  # fmt: skip


Handler = Callable[[Request], Any]
