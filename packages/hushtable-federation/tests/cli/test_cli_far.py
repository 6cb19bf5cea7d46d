"""A round over SFTP by command: address, the server's key and login are in each party's file."""

import pytest
from test_host_keys import Server, new_key

from cli_helpers import SCHEMA, do, say, trust, write_rows

pytest.importorskip("paramiko")
SITES = "north", "south"
PASSWORD = "correct horse battery"


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A server that the users' own known_hosts does not know."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LOGIN", PASSWORD)
    (tmp_path / "served").mkdir(mode=0o700)
    made = Server(tmp_path / "served")
    yield made
    made.close()


@pytest.fixture
def here(tmp_path, server):
    here = tmp_path / "here"
    here.mkdir()
    (here / "schema.toml").write_text(SCHEMA)
    do("plan", "draw", here / "schema.toml", "--tables", 5, "--seed", 1, "-o", here / "plan.hush")
    url = f"sftp://ann@127.0.0.1:{server.port}/"
    for seed, name in enumerate((*SITES, "lead")):
        cap = () if name == "lead" else ("--cap", 3, "--persons", "1")
        do("round", "keygen", name, *cap, "--folder", here)
        rows = {} if name == "lead" else {"rows": write_rows(here / f"{name}.csv", 200, seed).name}
        say(here, name, folder=url, host_key=server.fingerprint.split()[-1], login="env:LOGIN",
            results=name, **rows)  # fmt: skip
        (here / name).mkdir()
    do("round", "open", here / "plan.hush", *(here / f"{site}.card" for site in SITES), "--key",
       here / "lead.key", "--epsilon", 1, "--least", 2, "-o", here / "May.hush")  # fmt: skip
    return here


def sync(here, name, *options):
    cards = () if name == "lead" else ("--yes", *trust(here, "lead", *SITES))
    return "round", "sync", "--site", here / f"{name}.toml", *cards, *options


def test_a_round_without_a_folder_in_any_command(here, run, server, monkeypatch):
    assert run(*sync(here, "lead", "--post", here / "May.hush")).code == 0
    state = ""
    for _ in range(6):
        for name in SITES:
            done = run(*sync(here, name))
            assert done.code == 0, done.err
        state = run(*sync(here, "lead"), "--json").json["state"]
        if state == "done":
            break
    assert state == "done"
    for given in (("--site", here / "north.toml"), ("--key", here / "lead.key")):
        done = run("round", "status", *given)
        assert done.code == 0, done.err
        assert "Done: the result of 2 of 2 sites is there" in done.out
    assert set(server.passwords) == {PASSWORD}
    kept = b"".join(path.read_bytes() for path in here.rglob("*") if path.is_file())
    assert PASSWORD.encode() not in kept


def test_another_key_of_the_server(here, run, server):
    known, server.key, server.passwords[:] = server.fingerprint.split()[-1], new_key(), []
    done = run(*sync(here, "north", "--unattended"))
    assert done.code == 1
    assert known in done.err
    assert server.fingerprint.split()[-1] in done.err
    assert done.out.splitlines()[-1] == "State: failed; exit code 1."
    assert server.passwords == []


def test_a_password_in_the_file(here, run, server):
    say(here, "north", folder=server.url)
    done = run(*sync(here, "north"))
    assert done.code == 1
    assert "folder has a password in its URL" in done.err
    assert "login = " in done.err
    assert "secret@" not in done.err
    assert server.passwords == []


def test_a_login_that_is_not_there(here, run, monkeypatch):
    monkeypatch.delenv("LOGIN")
    done = run(*sync(here, "north", "--unattended"))
    assert done.code == 1
    assert "no environment variable LOGIN" in done.err
