"""Who may use a desk, and what it gives away: each sentence of the security officer's page."""

import asyncio
import json
import logging
import re
import stat
import sys

import pytest

from desk_helpers import ORIGIN, PORT, DeskClient, StrangeClient, path_of, patients
from hushtable_desk.desk import Desk
from hushtable_desk.folder import Folder
from hushtable_desk.security import HEADERS

PAGES = ("/", "/models", "/static/desk.js")


@pytest.fixture
def stranger(folder):
    """A client without the cookie."""
    return StrangeClient(Desk(folder))


# --- the address and the cookie -------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_given_to_who_has_not_opened_the_desk(stranger, page):
    answer = stranger.get(page)
    assert answer.status_code == 403
    assert "patients" not in answer.text


def test_a_server_may_announce_its_start_and_end(stranger):
    messages = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])
    answers = []

    async def receive():
        return next(messages)

    async def send(message):
        answers.append(message["type"])

    asyncio.run(stranger.app({"type": "lifespan", "state": {}}, receive, send))
    assert answers == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


def test_the_address_works_once(stranger):
    first = stranger.get(path_of(stranger.access.address))
    assert first.status_code == 200
    cookie = first.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert stranger.get("/").status_code == 200
    thief = StrangeClient(stranger.desk, stranger.access)
    assert thief.get(path_of(stranger.access.address)).status_code == 403
    assert thief.get("/").status_code == 403


@pytest.mark.parametrize("token", ["", "x", "%00", "a" * 43, "ä"])
def test_another_token_opens_nothing_and_spends_nothing(stranger, token):
    assert stranger.get(f"/open/{token}").status_code == 403
    assert stranger.get(path_of(stranger.access.address)).status_code == 200


def test_a_guessed_cookie_opens_nothing(stranger):
    stranger.cookies.set(f"hushtable-desk-{PORT}", "guessed")
    assert stranger.get("/").status_code == 403


# --- other pages in the same browser --------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        f"127.0.0.1:{PORT}",
        f"localhost:{PORT}",
        f"desk.localhost:{PORT + 1}",
        f"other.localhost:{PORT}",
        f"[::1]:{PORT}",
    ],
)
def test_a_name_that_was_bound_to_this_machine_reaches_nothing(client, host):
    """DNS rebinding: the browser of the owner asks under another name."""
    assert client.get("/", headers={"Host": host}).status_code == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_page_reads_nothing(client, site):
    assert client.get("/", headers={"Sec-Fetch-Site": site}).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": f"http://127.0.0.1:{PORT}"},
        {"Origin": f"http://desk.localhost:{PORT + 1}"},
        {"Origin": ORIGIN, "Sec-Fetch-Site": "cross-site"},
        {"Origin": ORIGIN, "Sec-Fetch-Site": "same-site"},
    ],
)
def test_another_page_writes_nothing(client, headers):
    assert client.post("/settings", json={"who": "Mallory"}, headers=headers).status_code == 403
    assert client.desk.who == "Ada"


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_form_writes_nothing(client, kind):
    """A form of another page could send these types without asking first."""
    headers = {"Origin": ORIGIN, "Content-Type": kind}
    answer = client.post("/settings", content=b'{"who": "Mallory"}', headers=headers)
    assert answer.status_code == 403
    assert client.desk.who == "Ada"


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods_are_refused(client, method):
    answer = client.request(method, "/", headers={"Origin": ORIGIN, "Content-Length": "0"})
    assert answer.status_code == 403


def test_a_large_or_endless_write_is_refused(client):
    big = b'{"who": "' + b"x" * (1 << 20) + b'"}'
    headers = {"Origin": ORIGIN, "Content-Type": "application/json"}
    assert client.post("/settings", content=big, headers=headers).status_code == 403
    endless = client.post("/settings", content=iter([b"{}"]), headers=headers)
    assert endless.status_code == 403


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b"NaN", b'"x"'])
def test_a_write_that_is_no_object_changes_nothing(client, content):
    headers = {"Origin": ORIGIN, "Content-Type": "application/json"}
    answer = client.post("/settings", content=content, headers=headers)
    assert answer.status_code == 400
    assert "JSON object" in answer.json()["error"]


def test_no_page_may_be_framed_and_none_loads_from_elsewhere(client):
    assert client.get("/", headers={"Sec-Fetch-Dest": "iframe"}).status_code == 403
    answer = client.get("/")
    for name, value in HEADERS.items():
        assert answer.headers[name] == value
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
    for address in re.findall(r'(?:src|href|action)="([^"]*)"', answer.text):
        assert address.startswith(("/", "#")), address


# --- the machine ----------------------------------------------------------------------------------


def test_a_desk_listens_on_the_loopback_address_alone(folder):
    from hushtable_desk.cli import listen_at

    with listen_at(0) as listening:
        assert {one.getsockname()[0] for one in listening} <= {"127.0.0.1", "::1"}
        assert len({one.getsockname()[1] for one in listening}) == 1


def test_files_are_for_this_account_alone(client, folder):
    at = client.fit("patients.csv")
    client.write(f"{at}/rows/0/verdict", verdict="outlier")
    client.drop("dropped.csv")
    made = {one.name for one in folder.iterdir()} - {"patients.csv"}
    log, settings = "patients.csv.verdicts.csv", ".hushtable-desk.json"
    assert made == {"patients.hush", log, settings, "dropped.csv"}
    for name in made:
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600, name


# --- the folder -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["../secret.csv", "/etc/passwd.csv", "..", ".", "", "a/b.csv", "a\\b.csv", "a\0.csv"]
)
def test_no_path_leads_out_of_the_folder(client, folder, name):
    (folder.parent / "secret.csv").write_text("a\n1\n")
    with pytest.raises(Exception, match="not a file of the open folder"):
        client.desk.folder.file(name)
    assert client.drop(name if name.endswith(".csv") else f"{name}/.csv").status_code == 400
    at = f"/t/{client.key('patients.csv')}"
    assert client.write(f"{at}/use", model=name).status_code == 400


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (".csv", "not a file of the open folder"),
        (".hidden.csv", "not a file of the open folder"),
        (".hushtable-desk.json", "not a file of the open folder"),
        ("a" * 300 + ".csv", "name too long: use a shorter name"),
        ("ü" * 124 + ".csv", "name too long: use a shorter name"),
    ],
    ids=["ending alone", "hidden", "settings of the desk", "long", "long with its temporary name"],
)
def test_a_dropped_file_with_an_odd_name_is_refused_in_words(client, folder, name, words):
    client.desk.folder.remember("tables", "patients.csv")
    before = {one.name: one.read_bytes() for one in folder.iterdir()}
    answer = client.drop(name, b'{"tables": 7}')
    assert answer.status_code == 400
    assert words in answer.json()["error"]
    assert {one.name: one.read_bytes() for one in folder.iterdir()} == before


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_a_link_out_of_the_folder_is_no_file_of_it(folder):
    (folder.parent / "secret.csv").write_text("a\n1\n")
    (folder / "link.csv").symlink_to(folder.parent / "secret.csv")
    assert [one.name for one in Folder(folder).tables] == ["patients.csv"]


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/%2e%2e/app.py", "/t/../../etc/passwd"]
)
def test_paths_of_the_server_lead_nowhere(client, path):
    answer = client.get(path)
    assert answer.status_code in (400, 404)
    assert "import" not in answer.text


# --- rows -----------------------------------------------------------------------------------------


def test_nothing_of_a_row_is_in_the_log_or_in_an_address(client, caplog, capsys):
    caplog.set_level(logging.DEBUG)
    at = client.fit("patients.csv")
    page = client.get(f"{at}/rows").text
    client.write(f"{at}/rows/0/verdict", verdict="outlier", note="call the ward")
    client.write(f"{at}/find", text="P003")
    addresses = re.findall(r'(?:src|href|action|data-\w+)="([^"]*)"', page)
    for text in ["P000", "P003", "north", "call the ward"]:
        assert not any(text in address for address in addresses), text
        assert text not in caplog.text
    assert "P003" not in capsys.readouterr().err


def test_an_unexpected_failure_says_nothing_of_a_row(client, caplog, monkeypatch):
    at = client.fit("patients.csv")
    monkeypatch.delenv("HUSHTABLE_DEBUG", raising=False)

    def fail(*_):
        raise RuntimeError("P000 has a pulse of 160")

    monkeypatch.setattr("hushtable_desk.judging.JudgedRows.view", fail)
    answer = client.get(f"{at}/rows/0")
    assert answer.status_code == 500
    assert "RuntimeError" in answer.text
    assert "P000 has" not in answer.text + caplog.text


EVIL = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7 * 7 }}",
    "=1+1",
    "'; --",
]


def test_hostile_names_and_values_in_every_column_are_text(tmp_path):
    rows = patients(60)
    rows["ward"] = [EVIL[i % len(EVIL)] for i in range(len(rows))]
    rows["id"] = [f"{EVIL[i % len(EVIL)]} {i}" for i in range(len(rows))]
    rows = rows.rename(columns={"pulse": EVIL[0], "weight": EVIL[1], "ward": EVIL[2]})
    name = "<b>evil & 'x'.csv"
    rows.to_csv(tmp_path / name, index=False)
    with DeskClient(tmp_path) as client:
        assert "<b>evil" not in client.get("/").text
        at = f"/t/{client.key(name)}"
        assert "looks like a row" in client.get(at).text
        client.write(f"{at}/say", name="skip_lines", value="0")
        assert "<script>alert" not in client.get(at).text
        client.fit(name)
        client.write(f"{at}/rows/0/verdict", verdict="outlier", note=EVIL[0])
        for page in (f"{at}/rows", f"{at}/rows/0", f"{at}/learned", at):
            text = client.get(page).text
            assert "<script>alert" not in text, page
            assert "<img" not in text, page
            assert "49" not in re.findall(r"<th[^>]*>([^<]*)</th>", text), page
        table = client.get(f"{at}/rows.csv").text
        assert "\n=1" not in table.replace(",=1", "\n=1")
        assert json.loads(client.get(f"{at}/rows.json").text)["rows"]
