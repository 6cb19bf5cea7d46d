"""The pages of the folder and of tables, and the writes that they send."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from hushtable_desk.desk import Desk


def desk_of(request: Request) -> Desk:
    """Return the desk that a request is to."""
    desk: Desk = request.app.state.desk
    return desk


def routes() -> list[BaseRoute]:
    """Return the routes of the folder and its tables."""
    return [Route("/", home)]


def home(request: Request) -> Response:
    """Show the folder: its tables, models and recent work."""
    return desk_of(request).page(request, "base.html")
