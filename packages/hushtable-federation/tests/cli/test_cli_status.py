"""``hushtable round status`` and ``sync`` in a folder, as people read them."""

import re

import pytest

from cli_helpers import SCHEMA, do, write_rows
from hushtable import files
from hushtable_federation.folder.mailbox import Store, name_of
from hushtable_federation.keys import Keys
from hushtable_federation.protocol.messages import Message
from hushtable_federation.refusals import Refusal
from hushtable_federation.round import Round

SITES = ("east", "north", "south")
#: Names of steps, which mean nothing to people.
STEPS = re.compile(r"\b(masked:|unmask|survivors|without:|ask-\w+|shares)\b")


@pytest.fixture
def here(tmp_path, capsys, monkeypatch):
    """Three sites and a coordinator, a round in the folder ``box``; no one has answered."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    do("plan", "draw", "schema.toml", "--tables", 5, "--seed", 1, "-o", "plan.hush")
    for seed, name in enumerate(SITES):
        do("round", "keygen", name, "--cap", 3, "--persons", "1")
        write_rows(tmp_path / f"{name}.csv", 100, seed)
    do("round", "keygen", "lead")
    do("round", "open", "plan.hush", *(f"{name}.card" for name in SITES), "--key", "lead.key",
       "--epsilon", 1, "--least", 2, "--title", "<b>March</b>", "-o", "r.hush")  # fmt: skip
    (tmp_path / "box").mkdir()
    do("round", "sync", "box", "--key", "lead.key", "--post", "r.hush")
    capsys.readouterr()
    return tmp_path


def flat(text):
    return " ".join(text.split())


def sync(run, here, name, *options):
    (here / name).mkdir(exist_ok=True)
    done = run("round", "sync", "box", "--key", f"{name}.key", "-o", name, *options)
    assert done.code in (0, 3), done.err
    words = re.sub(r"\S+\.hush", "", done.out.partition("Ignored")[0])  # names of files aside
    assert not STEPS.search(words), done.out
    return flat(done.out)


def state(run, *options):
    return run("round", "status", "box", *options, "--json").json["rounds"][0]


def test_who_refused_and_what_does_not_count_is_told_alike_in_all_three(run, here):
    keys = Keys.load(here / "east.key")
    round_ = Round.from_bytes((here / "r.hush").read_bytes(), "r.hush")
    head = round_.round_id[:16]
    from hushtable_federation.folder.mailbox import Store
    from hushtable_federation.folder.round_folder import RoundFolder

    posts = RoundFolder(round_, Store.open("box"))
    posts.add("refused", "east", Message.refuse(round_.round_id, keys, Refusal.BUDGET))
    posts.add("masked", "south", b"<script>alert(1)</script>")
    do("round", "amend", "box", "--key", "lead.key", "--days", 5, "--why", "<i>holidays</i>")
    text = run("round", "status", "box", "--html", "s.html")
    assert text.code == 3, text.err  # the coordinator has to ask why
    facts, page = state(run), (here / "s.html").read_text()
    assert facts["refusals"] == {"east": "budget"}
    assert [one["who"] for one in facts["todo"]] == [
        ["north", "south"],
        ["east"],
        ["lead"],
        ["lead"],
    ]
    assert (facts["amendments"], facts["amended_because"]) == (1, "<i>holidays</i>")
    assert any(name.startswith(f"{head}.masked.south.") for name in facts["set_aside"])
    for words in ("refused: its budget is not sufficient", "Waiting for east, north and south"):
        assert words in flat(text.out)
        assert words in flat(page)
    assert "<i>holidays</i>" in text.out
    for tag in ("<script", "<i>", "<b>"):
        assert tag not in page
    assert "http" not in page.replace("http-equiv", "")
    assert "Nothing on it depends on a row" in page


def test_the_page_is_whole_and_small(run, here):
    written = run("round", "status", "box", "--html", "s.html", "--key", "lead.key")
    assert "Wrote s.html" in written.out
    page = (here / "s.html").read_text()
    assert len(page) < 40_000
    assert "prefers-color-scheme: dark" in page
    assert "--key KEY" in page  # everyone's part, with the keys of no one
    assert "lead.key" not in page


def test_one_of_several_rounds(run, here):
    do("round", "open", "plan.hush", "north.card", "south.card", "--key", "lead.key",
       "--epsilon", 1, "-o", "t.hush")  # fmt: skip
    do("round", "sync", "box", "--key", "lead.key", "--post", "t.hush")
    found = run("round", "status", "box", "--json").json["rounds"]
    assert len(found) == 2
    assert len(run("round", "status", "box", "--key", "east.key", "--json").json["rounds"]) == 1
    one = found[0]["round_id"]
    (only,) = run("round", "status", "box", "--which", one[:8].upper(), "--json").json["rounds"]
    assert only["round_id"] == one
    assert run("round", "status", "box", "--html", "s.html").code == 0
    assert "2 rounds" in (here / "s.html").read_text()


def test_what_is_refused(refused, here):
    (here / "empty").mkdir()
    refused("round", "status", "empty", code=2, says="holds no round: check the folder")
    refused("round", "status", "box", "--which", "0000", code=2, says="whose id begins with 0000")
    refused("round", "status", "r.hush", says="give a folder")
    refused("round", "status", "box", "--html", "s.txt", code=2, says="must end in .html")
    refused("round", "status", "nowhere", says="nowhere")
    do("round", "keygen", "stranger")
    refused("round", "status", "box", "--key", "stranger.key", code=2, says="for 'stranger'")


# --- what strangers put there ---------------------------------------------------------------------


def of_stranger(here, **changes):
    """Put a round of someone else, with odd entries, beside ours."""
    evil = Keys.generate("evil")
    content = files.read(here / "r.hush")
    apart = ("protocol", "kind", "arrays", "digest", "signature", "writer")
    entries = {key: value for key, value in content.manifest.items() if key not in apart}
    entries["round"] = {**entries["round"], "coordinator": evil.card.to_dict(), **changes}
    packed = files.pack("round", entries, content.arrays, evil.sign)
    digest = files.unpack(packed, "it").digest
    Store.open(here / "box").add(name_of(digest, "round", "evil", packed), packed)


@pytest.mark.parametrize(
    "changes",
    [
        {"deadline": "9999-12-31T23:59:59Z"},
        {"deadline": "9000-01-01T00:00:00Z"},
        {"opened": "1000-01-01T00:00:00Z"},
        {"opened": "9999-12-31T23:59:59Z", "deadline": "9999-12-31T23:59:59Z"},
        {"deadline": "8999-12-31T23:59:59Z"},
        {"deadline": "0001-01-01T00:00:00Z"},
        {"deadline": None},
        {"title": "\x1b[2J\x1b[8m\u202e" * 50},
        {"title": "x" * 500_000},
        {"sites": []},
        {"terms": {}},
    ],
    ids=lambda changes: f"{next(iter(changes))}-{str(next(iter(changes.values())))[:12]!r}",
)
def test_no_file_of_a_stranger_makes_status_fail(run, here, changes):
    before, keys = state(run), ([], ["--key", "north.key"], ["--key", "lead.key"])
    codes = [run("round", "status", "box", *key).code for key in keys]
    of_stranger(here, **changes)
    for key, code in zip(keys, codes, strict=True):
        done = run("round", "status", "box", *key)
        assert done.code == code, done.err
        assert "March" in done.out
        assert not set(done.out) & {"\x1b", "\u202e"}
        found = run("round", "status", "box", *key, "--json").json["rounds"]
        assert before["round_id"] in [one["round_id"] for one in found]
