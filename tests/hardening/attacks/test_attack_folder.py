"""Attacks by anyone who may add files to the folder of a round, and cannot delete or change any.

E_flood: 16 junk files a site, whose names sort first, hid the sites' own messages: no round ended.
E_second_answer: the same files hid a site's own answer from its restored book: it answered again.
"""

import json
import os
import shutil
from datetime import timedelta

import numpy as np
import pytest

from folder_helpers import Clock, Folder
from hushtable import Plan, Sketch
from hushtable_federation.book.book import Book
from hushtable_federation.folder.mailbox import Store, name_of
from hushtable_federation.protocol.messages import Message
from round_helpers import SCHEMA, T0, Consortium


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


@pytest.fixture
def make(tmp_path, clock, monkeypatch):
    """Return what makes a round in a folder; its noise is drawn fast."""
    rng = np.random.default_rng(1)

    def add_noise(counts, mechanism, scale, *, progress=None):
        return counts + np.rint(rng.normal(0.0, scale, len(counts))).astype(np.int64)

    monkeypatch.setattr("hushtable.privacy.mechanisms.add_noise", add_noise)
    made = []

    def make(k=3, **terms):
        one = Consortium(tmp_path, k)
        made.append(one)
        if terms.pop("period", False):
            terms["plan"] = Plan.draw(
                SCHEMA, epsilon=1.0, expected_rows=9_000, horizon=3, n_tables=5, n_cells=16,
                random_state=1,
            )  # fmt: skip
            for site in one.sites.values():
                site.X = np.repeat(site.X, 2, axis=0)
        return Folder(one, one.open(**terms))

    yield make
    for one in made:
        one.close()


# --- what an outsider can make ------------------------------------------------------------------


def noise(here, step, sender, i):
    return b"junk %d" % i


def bomb(here, step, sender, i):
    """A manifest that takes long to read, if anyone does."""
    text = json.dumps({"kind": "message", "digest": "0" * 64, "n": i, "deep": [{}] * 20_000})
    header = json.dumps({"__metadata__": {"hushtable": text}}).encode()
    return len(header).to_bytes(8, "little") + header


def forged(here, step, sender, i):
    """A message by the keys of another party of the round."""
    other = here.consortium.sites["s02" if sender != "s02" else "s01"].keys
    return Message.make(here.round, "shares", other, {"n": i}).content


def replayed(here, step, sender, i):
    """What another party signed, in a form that no one has written."""
    found = here.names()
    content = found[i % len(found)].read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8 : 8 + size]) | {}).encode() + b" " * (8 + i)
    return len(header).to_bytes(8, "little") + header + content[8 + size :]


def cut(here, step, sender, i):
    """The first half of a file of the round."""
    content = here.names()[i % len(here.names())].read_bytes()
    return content[: len(content) // 2] + b"%d" % i


MADE = [noise, bomb, forged, replayed, cut]


def flood(here, make_, step, sender, n=20):
    """Write files that sort before most others, and one that has to be named ahead of all."""
    box, i, made = Store.open(here.box), 0, 0
    while made < n:
        i += 1
        content = make_(here, step, sender, i)
        name = name_of(here.round.round_id, step, sender, content)
        if name.split(".")[-2] < "4":
            made += box.add(name, content)


# --- 7: no round is stopped by files ------------------------------------------------------------


@pytest.mark.parametrize("make_", MADE)
@pytest.mark.parametrize("step", ["masked", "shares", "unmask"])
def test_no_flood_hides_what_sites_sent(make, make_, step):
    here = make(least=3)
    for name in here.consortium.sites:
        flood(here, make_, step, name)
    finished(here)


@pytest.mark.parametrize("make_", MADE)
@pytest.mark.parametrize("step", ["ask-unmask", "amend", "result", "refused"])
def test_no_flood_hides_what_the_coordinator_or_a_refusal_says(make, make_, step):
    here = make(least=3)
    senders = ["lead"] if step in ("amend", "result") else list(here.consortium.sites)
    for name in senders:
        flood(here, make_, step, name)
    here.posts().amend(here.lead, deadline=here.round.deadline + timedelta(days=2))
    finished(here)


def test_no_flood_of_submissions_by_file(make):
    here = make(least=3, masked=False)
    for name in here.consortium.sites:
        flood(here, noise, "submission", name, 300)
        here.site(name)
    assert here.visit().state == "done"
    assert here.check().sites == list(here.consortium.sites)


def test_links_pipes_and_folders_with_the_names_of_files_stop_nobody(make):
    """In a real directory; and subfolders with parties' names, one of them a link elsewhere."""
    here = make(least=3)
    elsewhere = here.consortium.folder / "elsewhere"
    elsewhere.mkdir()
    (here.box / "s00").symlink_to(elsewhere)
    (here.box / "s01").mkdir()
    (here.box / "s02").touch()
    os.mkfifo(here.box / "lead")
    lay = {
        "link": lambda path: path.symlink_to("/dev/zero"),
        "circle": lambda path: path.symlink_to(path),
        "pipe": os.mkfifo,
        "folder": lambda path: path.mkdir(),
        "copy": lambda path: path.symlink_to(here.names("round")[0]),
    }
    for step in ("masked", "shares", "head", "unmask"):
        for i, make_ in enumerate(lay.values()):
            for name in here.consortium.sites:
                make_(here.box / name_of(here.round.round_id, step, name, b"%d" % i))
    for i, make_ in enumerate(lay.values()):
        for step in ("amend", "result"):
            make_(here.box / name_of(here.round.round_id, step, "lead", b"%d" % i))
    finished(here)
    assert not list(elsewhere.iterdir())


def finished(here):
    """Have all visit until the round is over, with the sum of all."""
    for _ in range(4):
        here.sites()
        visit = here.visit()
        assert not visit.found_out
    assert visit.state == "done"
    assert here.check().sites == list(here.consortium.sites)
    for name in here.consortium.sites:
        assert here.site(name).state == "done"


def test_what_was_refused_is_read_once_a_visit(make, monkeypatch):
    here = make(least=3)
    for step, sender in (("ask-survivors", "s00"), ("ask-unmask", "s00"), ("masked", "s01")):
        flood(here, noise, step, sender, 40)
    read, counted = Store.read, {}

    def counting(store, name, *more, **options):
        counted[name] = counted.get(name, 0) + 1
        return read(store, name, *more, **options)

    here.sites()
    monkeypatch.setattr(Store, "read", counting)
    for visit in (here.visit, lambda: here.site("s00"), lambda: here.site("s01")):
        counted.clear()
        visit()
        junk = [name for name in counted if (here.box / name).stat().st_size < 10]
        assert junk
        assert {counted[name] for name in junk} == {1}


# --- 1: a restored book -------------------------------------------------------------------------


def restored(here, name, before):
    shutil.copy(before, here.consortium.sites[name].book.path)


@pytest.fixture
def answered(make, tmp_path):
    """Return a folder in which s00 has answered, and its book from before that."""

    def made(**terms):
        here = make(**terms)
        book = here.consortium.sites["s00"].book
        book.close()
        before = shutil.copy(book.path, tmp_path / "before.book")
        here.counted()
        return here, before

    return made


def refuses(here, name="s00"):
    """Check that a site sends nothing, spends nothing, and says why."""
    path = here.consortium.sites[name].book.path
    with Book.open(path) as book:
        spent = book.total("all rows")
    there = {path.name for path in here.names(sender=name)}
    visit = here.site(name)
    assert visit.posted == []
    assert visit.state == "failed", visit
    assert "this book does not know" in " ".join(visit.words)
    assert {path.name for path in here.names(sender=name)} == there
    with Book.open(path) as book:
        assert book.total("all rows") == spent


FORMS = [{"period": True}, {"masked": False}, {"least": 3}]


@pytest.mark.parametrize("n", [16, 300])
@pytest.mark.parametrize("make_", [noise, forged])
@pytest.mark.parametrize("form", FORMS)
def test_a_restored_book_answers_nothing_whatever_hides_its_answer(answered, form, make_, n):
    here, before = answered(**form)
    for step in ("submission", "masked", "shares", "keys", "head"):
        flood(here, make_, step, "s00", n)
    restored(here, "s00", before)
    refuses(here)


@pytest.mark.parametrize(
    ("form", "kept"),
    [*((form, "head") for form in FORMS), (FORMS[2], "shares"), (FORMS[2], "keys")],
)
def test_a_restored_book_answers_nothing_if_its_answer_was_deleted(answered, form, kept):
    here, before = answered(**form)
    for path in here.names(sender="s00"):
        if path.name.split(".")[1] != kept:
            path.unlink()
    assert len(here.names(sender="s00")) == 1
    restored(here, "s00", before)
    refuses(here)


@pytest.mark.parametrize("form", FORMS)
def test_a_restored_book_answers_no_other_round_of_the_folder(answered, form):
    here, before = answered(**form)
    restored(here, "s00", before)
    terms = {name: value for name, value in form.items() if name != "period"}
    other = Folder(here.consortium, here.consortium.open(title="another", **terms))
    refuses(other)


def test_a_restored_book_helps_with_no_list_that_it_helped_with(make, tmp_path):
    """The book from between two steps: it knows the counts, and not that it took the masks off."""
    here = make(least=3)
    here.counted()
    here.visit()
    before = shutil.copy(here.consortium.sites["s00"].book.path, tmp_path / "between.book")
    here.site("s00")
    assert here.names("unmask", "s00")
    restored(here, "s00", before)
    refuses(here)


def test_the_first_book_goes_on(answered):
    """Anyone who has the newest book is not hindered by heads, its own or those of others."""
    here, _ = answered(least=3)
    site = here.consortium.sites["s00"]
    site.book = Book.open(site.book.path)
    head = here.names("head", "s00")[0].read_bytes()
    for sender in ("s01", "s02"):  # copied, as if it were theirs
        Store.open(here.box).add(name_of(here.round.round_id, "head", sender, head), head)
    finished(here)
    for month in ("June", "July"):
        finished(Folder(here.consortium, here.consortium.open(title=month, least=3)))


def test_a_head_does_not_depend_on_rows(make, clock):
    """No number of entries travels: rows that are there are noted, and no rows are not."""
    here = make(least=3)
    here.counted()
    (head,) = here.names("head", "s00")
    said = Message.read(head.read_bytes(), here.consortium.sites["s00"].keys.card)
    assert set(said.body) == {"head"}
    assert not said.arrays
    assert len(said.body["head"]) == 64
    assert head.stat().st_size < 1_000
    with Book.open(here.consortium.sites["s00"].book.path) as book:
        assert said.body["head"] in [entry.link for entry in book.history()]
    assert clock.at == T0


@pytest.mark.parametrize("n", [0, 1])
def test_no_row_or_one_leaves_the_same_files(make, n):
    here = make(least=3)
    site = here.consortium.sites["s00"]
    site.sketch = lambda plan: Sketch.from_data(plan, site.X[:n], allow_empty=True)
    here.counted()  # s01 has 60
    sizes = {path.name.split(".")[1]: path.stat().st_size for path in here.names(sender="s00")}
    other = {path.name.split(".")[1]: path.stat().st_size for path in here.names(sender="s01")}
    assert set(sizes) == set(other) == {"head", "keys", "masked", "shares"}
    assert sizes["head"] == other["head"]
