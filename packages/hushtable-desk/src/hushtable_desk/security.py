"""Access to a desk: only one browser of one account of this machine can use it."""

import hmac
import os
import secrets
import socket
import struct
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: The only address that a desk listens on.
LOOPBACK = "127.0.0.1"
#: Headers of every answer. Pages load nothing from elsewhere and have no inline scripts or styles,
#: no other page can frame them, and the browser keeps no copy.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
        "object-src 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}
#: Types that a write can have; a form of another page cannot send these.
JSON, BYTES = "application/json", "application/octet-stream"
#: Bytes of a write in JSON at most.
MOST_JSON = 1 << 20

# A page of this desk requests the next one: after a redirect from another site's page, the browser
# would not send a cookie that is only for this site.
_OPENED = """<!DOCTYPE html><html lang="en"><meta charset="utf-8">
<link rel="icon" href="/static/icon.svg">
<meta http-equiv="refresh" content="0;url={}"><title>hushtable desk</title>
<p><a href="{}">Open the desk</a></p></html>"""


class Access:
    """The keys of one desk: a token for the first opening, then the cookie of that browser.

    Parameters
    ----------
    port : int
        The port that the desk listens on.
    first : str
        The path that the token opens.

    Attributes
    ----------
    address : str
        The address to open once in a browser.
    last : float
        The time of the last accepted request, by `time.monotonic`.

    Examples
    --------
    >>> from hushtable_desk import Access
    >>> Access(8517).address.startswith("http://127.0.0.1:8517/open/")
    True
    """

    def __init__(self, port: int, first: str = "/") -> None:
        self.hosts = frozenset({f"{LOOPBACK}:{port}", f"localhost:{port}"})
        self._token: str | None = secrets.token_urlsafe(32)
        self._secret = secrets.token_urlsafe(32)
        self._cookie, self._first = f"hushtable-desk-{port}", first
        self.address = f"http://{LOOPBACK}:{port}/open/{self._token}"
        self.last = time.monotonic()

    def open(self, token: str) -> Response:
        """Exchange the token for the cookie; afterwards the token is worthless."""
        if self._token is None or not _same(token, self._token):
            return refused("This address was used before, or is not the printed address.")
        self._token = None
        response = HTMLResponse(_OPENED.format(self._first, self._first))
        response.set_cookie(self._cookie, self._secret, httponly=True, samesite="strict", path="/")
        return response

    def known(self, request: Request) -> bool:
        """Return whether a request comes from the browser that opened the desk."""
        return _same(request.cookies.get(self._cookie, ""), self._secret)


def _same(given: str, own: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), own.encode())


def refused(why: str) -> Response:
    """Return the answer to a refused request."""
    advice = "Start the desk again: hushtable desk opens it in a browser of this account."
    return PlainTextResponse(f"{why}\n{advice}\n", status_code=403)


class Guard:
    """Accepts requests that `Access` knows, and writes of the desk's own pages, but no others."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no websockets
            await send({"type": "websocket.close", "code": 1008})
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        request = Request(scope)
        app = self._refusal(request) or self._app
        await app(scope, receive, guarded)

    def _refusal(self, request: Request) -> Response | None:
        """Return why a request is refused, or the answer to the opening; None if it is accepted."""
        if request.headers.get("host") not in self._access.hosts:
            return refused("This desk has another address.")
        if _other_account(request):
            return refused("This desk belongs to another account of this machine.")
        site = request.headers.get("sec-fetch-site", "none")
        if request.method == "GET" and (token := _token(request.url.path)) is not None:
            return self._access.open(token)
        if not self._access.known(request):
            return refused("This browser has not opened the desk.")
        if site not in ("same-origin", "none") or _framed(request):
            return refused("Another page sent this request.")
        if request.method not in ("GET", "HEAD") and (why := self._no_write(request)):
            return refused(why)
        self._access.last = time.monotonic()
        return None

    def _no_write(self, request: Request) -> str:
        """Return why a write is refused; empty if it is accepted."""
        headers = request.headers
        own = {f"http://{host}" for host in self._access.hosts}
        if headers.get("origin") not in own or request.method != "POST":
            return "Another page sent this request."
        kind = headers.get("content-type", "").partition(";")[0].strip()
        if kind not in (JSON, BYTES):
            return f"A write needs the type {JSON}."
        size = headers.get("content-length", "")
        if not size.isdecimal() or (kind == JSON and int(size) > MOST_JSON):
            return "A write needs its length, at most a megabyte."
        return ""


def _token(path: str) -> str | None:
    return path.removeprefix("/open/") if path.startswith("/open/") else None


def _framed(request: Request) -> bool:
    return request.headers.get("sec-fetch-dest", "document") in (
        "iframe",
        "frame",
        "embed",
        "object",
    )


#: The files in which Linux lists the owners of connections.
_CONNECTIONS = Path("/proc/net/tcp")


def _other_account(request: Request) -> bool:
    """Return whether another account's process sends the request, if the system knows (Linux)."""
    if sys.platform != "linux" or request.client is None:
        return False
    uid = account_of(request.client, _connections())
    return uid is not None and uid != os.getuid()


def _connections() -> Iterable[str]:
    try:
        return _CONNECTIONS.read_text().splitlines()[1:]
    except OSError:
        return ()


def account_of(client: tuple[str, int], connections: Iterable[str]) -> int | None:
    """Return the number of the account that has the client's end of a connection.

    ``connections`` are the lines of /proc/net/tcp without the first. None if no line has it.
    """
    host, port = client
    try:
        (address,) = struct.unpack("=I", socket.inet_aton(host))
    except OSError:
        return None
    end = f"{address:08X}:{port:04X}"
    for line in connections:
        fields = line.split()
        if len(fields) > 7 and fields[1] == end:
            return int(fields[7])
    return None
