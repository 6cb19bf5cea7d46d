"""A desk for tests: its application by itself, or behind a server."""

import asyncio
import contextlib
import re
import socket
import threading
import time
from functools import cache
from importlib import resources
from typing import ClassVar
from urllib.parse import quote

import httpx
import numpy as np
import pandas as pd
import uvicorn

from hushtable_desk.app import build_app
from hushtable_desk.cli import listen_at
from hushtable_desk.desk import Desk
from hushtable_desk.security import Access

PORT = 8517
HOST = f"desk.localhost:{PORT}"
ORIGIN = f"http://{HOST}"


@cache
def _connection():
    """Return a connection of this process, and its listener: the system lists whose it is."""
    listening = socket.create_server(("127.0.0.1", 0))
    return socket.create_connection(listening.getsockname()), listening


class _InProcess(httpx.BaseTransport):
    """Gives requests to an application of this process, as a server that accepted a connection."""

    def __init__(self, client):
        async def accepted(scope, receive, send):
            mine, its = client.ends
            await client.app(scope | {"client": mine, "server": its}, receive, send)

        self._transport = httpx.ASGITransport(accepted)

    def handle_request(self, request):
        async def answered():
            stream = httpx.ByteStream(request.read())
            copied = httpx.Request(
                request.method, request.url, headers=request.headers, stream=stream
            )
            response = await self._transport.handle_async_request(copied)
            body = await response.aread()
            return httpx.Response(response.status_code, headers=response.headers, content=body)

        return asyncio.run(answered())


class StrangeClient(httpx.Client):
    """A browser that has not opened a desk."""

    def __init__(self, desk, access=None):
        self.desk, self.access = desk, access or Access(PORT)
        self.access.host = HOST
        self.app = build_app(desk, self.access)
        self.ends = [_connection()[0].getsockname(), _connection()[0].getpeername()]
        super().__init__(transport=_InProcess(self), base_url=ORIGIN)


class DeskClient(StrangeClient):
    """A browser that opened a desk: it has the cookie, and says where its writes come from."""

    def __init__(self, folder, who="Ada"):
        super().__init__(Desk(folder, who))
        opened = self.get(path_of(self.access.address))
        assert opened.status_code == 200, opened.text

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.desk.close()
        self.close()

    def write(self, address, **said):
        """Send a write as the desk's own pages do."""
        return self.post(address, json=said, headers={"Origin": ORIGIN})

    def drop(self, name, content=b"a;b\n1;2\n"):
        """Drop a file on the page of the folder."""
        headers = {"Origin": ORIGIN, "Content-Type": "application/octet-stream"}
        return self.post("/files", content=content, headers=headers | {"X-File-Name": quote(name)})

    def refused(self, address, **said):
        """Return the words with which a write is refused."""
        answer = self.write(address, **said)
        assert answer.status_code == 400, answer.text
        return answer.json()["error"]

    def key(self, name):
        """Return what stands for a table in addresses."""
        return next(one.key for one in self.desk.folder.tables if one.name == name)

    def fit(self, name):
        """Fit a model to a table, wait for it, and return the table's address."""
        at = f"/t/{self.key(name)}"
        answer = self.write(f"{at}/fit")
        assert answer.status_code == 200, answer.text
        job = self.desk.table(self.key(name)).job
        job.wait()
        assert job.error == ""
        return at


class Browser:
    """A browser that has opened a desk on a folder; `close_all` closes those of a test."""

    opened: ClassVar[list[Desk]] = []

    def __init__(self, folder):
        self.client = DeskClient(folder)
        self.desk = self.client.desk
        self.opened.append(self.desk)

    @classmethod
    def close_all(cls):
        """Let go of all logs of verdicts."""
        while cls.opened:
            cls.opened.pop().close()

    def get(self, path, status=200):
        """Return a page's text."""
        answer = self.client.get(path)
        assert answer.status_code == status, answer.text
        return answer.text

    def post(self, path, content=None, status=200):
        """Return the answer to a write."""
        answer = self.client.write(path, **(content or {}))
        assert answer.status_code == status, answer.text
        return answer.json()


def path_of(address):
    """Return the path of a desk's address."""
    return "/" + address.split("/", 3)[3]


def words(page):
    """Return the text of a page's main part, without marks and pictures."""
    main = re.search(r"<main.*</main>", page, re.DOTALL)[0]
    return " ".join(
        re.sub(r"<[^>]*>", " ", re.sub(r"<svg.*?</svg>", " ", main, flags=re.DOTALL)).split()
    )


def no_style_or_script(page):
    """Check that a page has nothing that its policy blocks."""
    assert not re.search(r"<style|<script(?! src)|<[^>]*\s(style|on\w+)=", page)


#: What does not fit: a page that is wider than the window.
WIDE = "document.documentElement.scrollWidth > innerWidth"
AXE = """axe.run(document, {resultTypes: ["violations"]}).then(({violations}) => violations.flatMap(
    ({id, help, nodes}) => nodes.slice(0, 3).map(({html, any}) =>
        `${help} [${id}] ${JSON.stringify(any[0]?.data ?? 0).slice(0, 99)}: ${html.slice(0, 160)}`)
))"""


def axe_faults(browser, base, pages):
    """Return what axe finds on pages at 360 and 1,280 pixels, dark and light, and what is too wide.

    Nothing where axe-core is not installed.
    """
    try:
        axe = (resources.files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
    except ModuleNotFoundError:
        return []
    found = []
    for page in pages:
        for width, dark in ((360, True), (360, False), (1280, True), (1280, False)):
            browser.show(f"{base}{page}", width, 900, dark)
            browser.run(axe)
            found += [f"{page} at {width}, {dark=}: {one}" for one in browser.run(AXE)]
            if browser.run(WIDE):
                found.append(f"{page} at {width} is too wide")
    return found


@contextlib.contextmanager
def served(folder, first="/"):
    """Serve a desk on a free port while the body runs; gives its address, the desk and the port."""
    with listen_at(0) as listening:
        port = listening[0].getsockname()[1]
        access = Access(port, first)
        desk = Desk(folder, "Ada")
        config = uvicorn.Config(
            build_app(desk, access), log_config=None, access_log=False, lifespan="off"
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": listening})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.02)
            yield access.address, desk, port
        finally:
            server.should_exit = True
            thread.join()
            desk.close()


def patients(n=400, seed=0):
    """Return rows of patients with ids; the first six have a pulse or a weight that is odd."""
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame({
        "id": [f"P{i:03}" for i in range(n)],
        "ward": rng.choice(["north", "south", "west"], n),
        "pulse": rng.normal(75, 8, n).round(1),
        "weight": rng.normal(70, 9, n).round(1),
    })  # fmt: skip
    rows.loc[:3, "pulse"] = [160.0, 158.0, 20.0, 155.0]
    rows.loc[4:5, "weight"] = [7.0, 700.0]
    return rows
