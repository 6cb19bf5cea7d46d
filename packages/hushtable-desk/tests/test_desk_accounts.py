"""Other accounts of the machine: what the kernel says of a connection decides, not the cookie."""

import contextlib
import errno
import http.server
import json
import os
import re
import socket
import struct
import sys
import threading
import time

import pytest

import chromium
from chromium import Chromium
from desk_helpers import served
from hushtable_desk.security import account_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone lists owners")
#: Who is not the owner of the desk.
NOBODY = 65534
is_root = pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0, reason="needs root, for another account's socket"
)


def opened(port, account=0, family=socket.AF_INET, at="127.0.0.1"):
    """Return a connection to a desk whose socket an account has made, as Linux lists it."""
    os.seteuid(account)
    try:
        made = socket.socket(family)
    finally:
        os.seteuid(0)
    made.settimeout(20)
    made.connect((at, port))
    return made


class Caller:
    """Sends requests to a desk over sockets of any account, with the right host and cookie."""

    def __init__(self, address, port):
        self.host, opening = address.removeprefix("http://").split("/", 1)
        self.port, self.cookie = port, ""
        answer = self.get(f"/{opening}")
        self.cookie = re.search(r"set-cookie: ([^;\r]+)", answer, re.IGNORECASE)[1]

    def _request(self, method, path, body=b"", host=""):
        origin = f"Origin: http://{self.host}\r\nContent-Type: application/json\r\n" * bool(body)
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {host or self.host}\r\nCookie: {self.cookie}\r\n"
            f"{origin}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + body

    def get(self, path, host="", **about):
        """Return the whole answer to a request of an account."""
        with opened(self.port, **about) as connection:
            connection.sendall(self._request("GET", path, host=host))
            return b"".join(iter(lambda: connection.recv(65536), b"")).decode()

    def write(self, who, end, **about):
        """Set the name of the person, and end the connection at once."""
        connection = opened(self.port, **about)
        if end == "reset":
            linger = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        body = json.dumps({"who": who}).encode()
        connection.sendall(self._request("POST", "/settings", body))
        connection.close()


@pytest.fixture
def desk(folder):
    with served(folder) as (address, desk, port):
        caller = Caller(address, port)
        caller.desk = desk
        yield caller


WAYS = {
    "as usual": {},
    "mapped": {"family": socket.AF_INET6, "at": "::ffff:127.0.0.1"},
    "IPv6": {"family": socket.AF_INET6, "at": "::1"},
}


@is_root
@pytest.mark.parametrize("way", WAYS)
def test_another_account_reads_nothing_with_the_right_cookie(desk, way):
    assert "patients.csv" in desk.get("/", **WAYS[way])
    answer = desk.get("/", account=NOBODY, **WAYS[way])
    assert answer.startswith("HTTP/1.1 403")
    assert "patients" not in answer
    assert desk.host not in answer


@is_root
@pytest.mark.parametrize("end", ["reset", "close"])
def test_another_account_writes_nothing_and_leaves_at_once(desk, end):
    for k in range(40):
        desk.write(f"Mallory {k}", end, account=NOBODY)
        time.sleep(0.01)
        assert desk.desk.who == "Ada", k
    assert "patients.csv" in desk.get("/")
    assert desk.desk.who == "Ada"


@is_root
def test_the_printed_address_opens_nothing_for_another_account(folder):
    with served(folder) as (address, _, port):
        host, opening = address.removeprefix("http://").split("/", 1)
        with opened(port, account=NOBODY) as connection:
            connection.sendall(f"GET /{opening} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert connection.recv(100).startswith(b"HTTP/1.1 403")
        assert Caller(address, port).cookie


def test_a_sender_that_is_gone_before_the_write_takes_effect(client, monkeypatch):
    """Its account was known when the write began, and is not when all of it has arrived."""
    from hushtable_desk import security

    answers = iter([os.getuid(), None])
    monkeypatch.setattr(security, "account_of", lambda *_: next(answers))
    assert "the connection ended" in client.refused("/settings", who="Mallory")
    assert client.desk.who == "Ada"


def test_a_sender_without_an_address_is_refused(client):
    for end in (None, ("", 0), ("testclient", 1)):
        client.ends[0] = end
        answer = client.get("/")
        assert answer.status_code == 403
        assert "not from a process of the account" in answer.text


@pytest.mark.parametrize(
    ("line", "account"),
    [
        ("0: 0100007F:BEEF 0100007F:1F90 01 0:0 0:0 0 1234 0 77", 1234),
        ("0: 0000000000000000FFFF00000100007F:BEEF 0000000000000000FFFF00000100007F:1F90 01 0:0 "
         "0:0 0 1234 0 77", 1234),
        ("0: 0100007F:BEEF 0100007F:1F91 01 0:0 0:0 0 1234 0 77", None),
        ("0: 0100007F:BEEE 0100007F:1F90 01 0:0 0:0 0 1234 0 77", None),
        ("0: 0100007F:BEEF 0100007F:1F90 05 0:0 0:0 0 0 0 0", None),
        ("0: 0100007F:BEEF", None),
    ],
    ids=["plain", "mapped", "to another port", "from another port", "closed", "cut"],
)  # fmt: skip
def test_a_line_counts_only_with_both_ends_and_an_owner(line, account):
    found = account_of(("127.0.0.1", 0xBEEF), ("127.0.0.1", 0x1F90), [line])
    assert found == account


@pytest.mark.parametrize("at", ["127.0.0.1", "::1"])
def test_whose_connection_it_is(at):
    family = socket.AF_INET6 if ":" in at else socket.AF_INET
    from hushtable_desk.security import _connections

    try:
        server = socket.create_server((at, 0), family=family)
    except OSError:
        pytest.skip("this machine has no such address")
    with server, socket.create_connection(server.getsockname()[:2]) as client:
        ends = client.getsockname()[:2], client.getpeername()[:2]
        assert account_of(*ends, _connections()) == os.getuid()


# --- the host -------------------------------------------------------------------------------------


@is_root
def test_the_plain_address_is_refused_and_names_the_own_one(desk):
    for host in (f"127.0.0.1:{desk.port}", f"localhost:{desk.port}"):
        answer = desk.get("/", host=host)
        assert answer.startswith("HTTP/1.1 403")
        assert f"http://{desk.host}/" in answer
    assert desk.host not in desk.get("/", host=f"evil.example:{desk.port}")


def test_each_desk_has_a_host_of_its_own(folder):
    hosts = set()
    for _ in range(2):
        with served(folder) as (address, _, port):
            name = re.fullmatch(rf"http://([0-9a-f]{{32}})\.localhost:{port}/open/\S+", address)
            hosts.add(name[1])
    assert len(hosts) == 2


def test_no_one_else_listens_at_the_desk_s_port(folder):
    """For a name below localhost, a browser may try the address of IPv6 first."""
    with served(folder) as (_, _, port):
        for family, at in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            with contextlib.closing(socket.socket(family)) as other:
                other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                with pytest.raises(OSError, match="ddress") as found:
                    other.bind((at, port))
                assert found.value.errno in (errno.EADDRINUSE, errno.EADDRNOTAVAIL)


def test_a_system_that_lists_no_owners_is_named_and_keeps_the_plain_address(
    folder, monkeypatch, run
):
    from hushtable_desk import cli, security

    for one in (cli, security):
        monkeypatch.setattr(one, "KNOWS_ACCOUNTS", False)
    monkeypatch.setattr("uvicorn.Server.run", lambda *_, **__: None)
    result = run("desk", folder, "--no-browser")
    assert re.search(r"The desk is at http://127\.0\.0\.1:\d+/open/", result.out)
    assert "open no page of another account's program on 127.0.0.1" in result.out


@pytest.mark.slow
@pytest.mark.skipif(chromium.found() is None, reason="Chromium is not installed")
def test_a_browser_gives_the_cookie_to_no_other_port(folder, tmp_path_factory):
    """A program of another account can show a page on 127.0.0.1, at any port but the desk's."""
    got = []

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            got.append(self.headers.get("cookie"))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    profile = tmp_path_factory.mktemp("profile")
    with (
        served(folder) as (address, _, _),
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as other,
        Chromium(profile) as browser,
    ):
        threading.Thread(target=other.serve_forever, daemon=True).start()
        browser.show(address, 1280)
        browser.until("document.body.textContent.includes('patients.csv')")
        for host in ("127.0.0.1", "localhost", "desk.localhost"):
            browser.show(f"http://{host}:{other.server_port}/", 1280)
        base = address.partition("/open/")[0]
        browser.show(f"{base}/", 1280)
        browser.until("document.body.textContent.includes('patients.csv')")
        other.shutdown()
    assert len(got) >= 3
    assert set(got) == {None}
