"""Access to a desk: only one browser of one account of this machine can use it."""

import contextlib
import hmac
import ipaddress
import os
import secrets
import struct
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: The address that a desk listens on.
LOOPBACK = "127.0.0.1"
#: Whether the system reports whose process has a connection: Linux lists the owners. There, a desk
#: also has a host name of its own below localhost, which browsers resolve themselves, so that they
#: send its cookie to no other port.
KNOWS_ACCOUNTS = sys.platform == "linux"
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
    host : str
        The host and port that a request has to name: on Linux, a random name below localhost.
    address : str
        The address to open once in a browser.
    last : float
        The time of the last accepted request, by `time.monotonic`.

    Examples
    --------
    >>> from hushtable_desk import Access
    >>> access = Access(8517)
    >>> access.address.startswith(f"http://{access.host}/open/")
    True
    """

    def __init__(self, port: int, first: str = "/") -> None:
        name = f"{secrets.token_hex(16)}.localhost" if KNOWS_ACCOUNTS else LOOPBACK
        self.host = f"{name}:{port}"
        self._plain = frozenset({f"{LOOPBACK}:{port}", f"localhost:{port}"})
        self._token: str | None = secrets.token_urlsafe(32)
        self._secret = secrets.token_urlsafe(32)
        self._cookie, self._first = f"hushtable-desk-{port}", first
        self.address = f"http://{self.host}/open/{self._token}"
        self.last = time.monotonic()

    def elsewhere(self, host: str | None) -> str:
        """Return why a request to this host is refused; empty if the host is the desk's own.

        The desk's address is given only to a request that names this machine: another page can read
        the answer to a name of its own.
        """
        if host == self.host:
            return ""
        if host in self._plain:
            return f"The desk has another address: http://{self.host}/"
        return "This is not the address of the desk."

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


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())


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

        async def received() -> Message:
            message = await receive()
            # A client that sends a write and leaves at once is not known any more.
            if not message.get("more_body") and not _is_own(request):
                return {"type": "http.disconnect"}
            return message

        app = self._refusal(request) or self._app
        await app(scope, received, guarded)

    def _refusal(self, request: Request) -> Response | None:
        """Return why a request is refused, or the answer to the opening; None if it is accepted."""
        if not _is_own(request):
            return refused("This request is not from a process of the account that runs the desk.")
        if why := self._access.elsewhere(request.headers.get("host")):
            return refused(why)
        site = request.headers.get("sec-fetch-site", "none")
        if request.method == "GET" and request.url.path.startswith("/open/"):
            return self._access.open(request.url.path.removeprefix("/open/"))
        if not self._access.known(request):
            return refused("This browser has not opened the desk.")
        framed = request.headers.get("sec-fetch-dest") in ("iframe", "frame", "embed", "object")
        if site not in ("same-origin", "none") or framed:
            return refused("Another page sent this request.")
        if request.method not in ("GET", "HEAD") and (why := self._no_write(request)):
            return refused(why)
        self._access.last = time.monotonic()
        return None

    def _no_write(self, request: Request) -> str:
        """Return why a write is refused; empty if it is accepted."""
        headers = request.headers
        if headers.get("origin") != f"http://{self._access.host}" or request.method != "POST":
            return "Another page sent this request."
        kind = headers.get("content-type", "").partition(";")[0].strip()
        if kind not in (JSON, BYTES):
            return f"A write needs the type {JSON}."
        size = headers.get("content-length", "")
        if not size.isdecimal() or (kind == JSON and int(size) > MOST_JSON):
            return "A write needs its length, at most a megabyte."
        return ""


#: The files in which Linux lists connections and their owners. A connection to 127.0.0.1 from a
#: socket of IPv6 is in the second one, with mapped addresses.
_CONNECTIONS = Path("/proc/net/tcp"), Path("/proc/net/tcp6")


def _is_own(request: Request) -> bool:
    """Return whether a process of this account sends the request, as far as the system reports."""
    if not KNOWS_ACCOUNTS:
        return True
    client, server = request.client, request.scope.get("server")
    if client is None or server is None:
        return False
    return account_of(client, server, _connections()) == os.getuid()


def _connections() -> Iterator[str]:
    for path in _CONNECTIONS:
        with contextlib.suppress(OSError):  # there is no second one without IPv6
            yield from path.read_text().splitlines()[1:]


def account_of(
    client: tuple[str, int], server: tuple[str, int], connections: Iterable[str]
) -> int | None:
    """Return the number of the account that has the client's end of a connection.

    ``connections`` are the lines of /proc/net/tcp and /proc/net/tcp6. None if no line has both
    ends, or the client has closed its end: Linux then no longer states whose it was.
    """
    ours, theirs = _listed(*client), _listed(*server)
    for line in connections:
        fields = line.split()
        if len(fields) > 9 and fields[1] in ours and fields[2] in theirs and fields[9] != "0":
            return int(fields[7])
    return None


def _listed(host: str, port: int) -> set[str]:
    """Return how Linux lists an end of a connection, alone and as an address mapped to IPv6.

    Nothing if it has no address of a network.
    """
    try:
        address = ipaddress.ip_address(host).packed
    except ValueError:
        return set()
    forms = address, bytes(10) + b"\xff\xff" + address
    return {
        "".join(f"{word:08X}" for (word,) in struct.iter_unpack("=I", form)) + f":{port:04X}"
        for form in forms
    }
