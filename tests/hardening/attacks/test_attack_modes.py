"""Attacks by other users of the same machine: who may read what is written, and what is taken."""

import contextlib
import os
import signal
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hushtable import HushTable, Plan, Schema, Sketch, files, load
from hushtable.cli import main
from hushtable.errors import FileError, PrivacyError
from hushtable_federation.book.book import Book
from hushtable_federation.folder.mailbox import Store, name_of
from hushtable_federation.hidden import draw_hidden, read_plan, read_secret
from hushtable_federation.keys import Keys
from hushtable_federation.layout import Layout, Sealed
from hushtable_federation.policy import write_policy
from round_helpers import SCHEMA, Consortium

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")

ROUND = "0123456789abcdef" * 4
SIZES = {"n_tables": 5, "n_cells": 16, "min_depth": 2, "max_depth": 4}
TOML = "".join(
    f'[[feature]]\nname = "x{j}"\nkind = "numeric"\nlow = -5.0\nhigh = 5.0\n' for j in range(3)
)


def mode(path):
    return stat.S_IMODE(Path(path).stat().st_mode)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder in which whatever is not written for its owner alone, everyone may read."""
    monkeypatch.chdir(tmp_path)
    before = os.umask(0)
    yield tmp_path
    os.umask(before)


@pytest.fixture
def rows(rng):
    rows = rng.normal(size=(200, 3))
    np.savetxt("rows.csv", rows, delimiter=",", header="x0,x1,x2", comments="")
    return rows


@pytest.fixture
def hidden():
    return draw_hidden(b"s" * 32, SCHEMA, **SIZES)


def run(line, code=0):
    assert main(line.split()) == code, line


# --- a threshold of local rows --------------------------------------------------------------------


def test_a_threshold_of_local_rows_is_for_the_owner_alone(rows):
    """No. 6: the score of one of the site's rows stands in the file of such a detector."""
    schema = Schema(SCHEMA.features, named=False)
    release = Sketch.from_data(Plan.draw(schema, random_state=0, **SIZES), rows).release(1.0)
    detector = HushTable.from_counts(release).set_threshold(rows, 1)
    assert np.isin(detector.offset_, detector.score_samples(rows))
    detector.save("d.hush")
    assert mode("d.hush") == 0o600
    HushTable.from_counts(release).save("none.hush")
    assert mode("none.hush") == 0o600


# --- hidden hash functions ------------------------------------------------------------------------


def test_a_plan_drawn_from_a_secret_is_for_the_sites_alone(rows, capsys):
    """No. 6: anyone who else can read it scores rows, as the coordinator is not to."""
    Path("schema.toml").write_text(TOML)
    run("round secret -o s.secret")
    run("plan draw schema.toml --tables 5 --secret s.secret -o p.hush")
    assert "for the sites only" in capsys.readouterr().out
    assert mode("s.secret") == mode("p.hush") == 0o600
    run("plan draw schema.toml --tables 5 -o open.hush")
    assert mode("open.hush") == 0o666
    run("plan hide p.hush -o layout.hush")
    assert mode("layout.hush") == 0o666
    run("plan marginals schema.toml -o first.hush")
    run("sketch rows.csv --plan first.hush -o first.sketch.hush")
    run("release first.sketch.hush --epsilon 1 -o first.release.hush")
    run("plan draw schema.toml --secret s.secret --marginals first.release.hush -o 2.hush")
    assert mode("first.release.hush") == 0o666
    assert mode("2.hush") == 0o600


def test_all_that_is_made_of_a_hidden_plan_stays_hidden(hidden, rows):
    """No. 6: each of these files holds the hash functions, too."""
    hidden.save("p.hush")
    plan = load("p.hush")
    release = Sketch.from_data(plan, rows).release(1.0)
    open_ = Sketch.from_data(replace(plan, hidden=False), rows).release(1.0)
    made = {
        "plan": plan,
        "release": release,
        "sum": release + open_,
        "other sum": open_ + release,
        "ranks": Plan.ranks(release),
        "counts of ranks": Sketch.from_data(Plan.ranks(release), rows).release(2.0),
    }
    for name, what in made.items():
        what.save(name)
        assert mode(name) == 0o600, name
        again = load(name)
        again.save(name)
        assert mode(name) == 0o600, name
    open_.save("open")
    assert mode("open") == 0o666


def test_a_hidden_plan_is_the_same_plan(hidden):
    assert hidden.hidden
    assert replace(hidden, hidden=False).plan_id == hidden.plan_id


def test_what_does_not_say_whether_it_is_hidden_is_refused(hidden):
    entries, arrays = hidden.entries()
    files.write("p.hush", "plan", entries | {"hidden": "no"}, arrays)
    with pytest.raises(FileError, match="hidden='no'"):
        load("p.hush")


def test_a_result_that_was_opened_with_a_hidden_plan(here, hidden):
    """No. 6: also where the file of the plan is of a time before files said it."""
    those = Consortium(here, 2)
    plan = replace(hidden, hidden=False)
    round_ = those.open(plan=Layout.of(plan))
    sent = {name: site.submit(round_, plan=plan) for name, site in those.sites.items()}
    sealed = those.sum(round_, sent)
    those.close()
    assert isinstance(sealed, Sealed)
    sealed.save("sealed.hush")
    sealed.open(plan).save("opened.hush")
    assert (mode("sealed.hush"), mode("opened.hush")) == (0o666, 0o600)
    plan.save("p.hush")
    os.chmod("p.hush", 0o600)
    run("round model sealed.hush --plan p.hush -o m.hush")
    run("round model sealed.hush --plan p.hush --book s00.book -o l.hush")
    assert (mode("m.hush"), mode("l.hush")) == (0o600, 0o600)


def test_a_round_is_not_opened_with_a_hidden_plan(here, hidden):
    """A round holds its plan, and goes to the coordinator's machine and everyone's."""
    those = Consortium(here, 2)
    with pytest.raises(PrivacyError, match="hushtable plan hide"):
        those.open(plan=hidden)
    those.close()


# --- what is taken --------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [0o644, 0o640, 0o604, 0o620, 0o666])
def test_a_secret_that_others_may_read_is_refused(bits):
    """No. 6: it was taken with mode 0644; anyone who has it draws the sites' plan."""
    run("round secret -o s.secret")
    assert len(read_secret("s.secret")) == 32
    Path("other").write_text("of another kind")
    with pytest.raises(FileError, match="this is not a secret"):
        read_secret("other")
    os.chmod("s.secret", bits)
    with pytest.raises(PrivacyError, match=rf"s\.secret: .*mode {bits:03o}.*chmod 600"):
        read_secret("s.secret")
    Path("schema.toml").write_text(TOML)
    run("plan draw schema.toml --secret s.secret -o p.hush", code=1)
    assert not Path("p.hush").exists()


def test_a_missing_secret_is_named(capsys):
    Path("schema.toml").write_text(TOML)
    run("plan draw schema.toml --secret gone.secret -o p.hush", code=1)
    assert "gone.secret" in capsys.readouterr().err


def test_a_hidden_plan_that_others_may_read_is_refused(here, hidden, capsys):
    """No. 6: a site would count, and spend, under functions that the coordinator may know."""
    those = Consortium(here, 2)
    round_ = those.open(plan=Layout.of(hidden), at=None)
    round_.save("round.hush")
    those.sites["s00"].keys.save("s00.key")
    write_policy("s00.policy.toml", "s00", 1.0, 1e-6, 1)
    sent = {name: site.submit(round_, plan=hidden, at=None) for name, site in those.sites.items()}
    those.sum(round_, sent, None).save("sealed.hush")
    Path("box").mkdir(mode=0o755)
    those.lead.save("lead.key")
    run("round sync box --key lead.key --post round.hush")
    those.close()
    hidden.save("p.hush")
    assert read_plan("p.hush").hidden
    os.chmod("p.hush", 0o644)
    np.savetxt("r.csv", those.sites["s00"].X, delimiter=",", header="x0,x1,x2", comments="")
    Path("s00.toml").write_text('key = "s00.key"\nplan = "p.hush"\n')
    for line in (
        "round sync box r.csv --site s00.toml --yes",
        "round model sealed.hush --plan p.hush -o s.hush",
    ):
        run(line, code=1)
        assert "others may read this file (mode 644)" in capsys.readouterr().err
        assert not Path("s.hush").exists()


# --- a temporary file that someone else replaces -------------------------------------------------


def lay_link(name, book):
    os.unlink(name)
    os.symlink(book, name)


def lay_hard_link(name, book):
    os.unlink(name)
    os.link(book, name)


def lay_file(name, book):
    os.unlink(name)
    Path(name).write_bytes(b"of someone else")


def lay_pipe(name, book):
    os.unlink(name)
    os.mkfifo(name)


def lay_folder(name, book):
    os.unlink(name)
    os.mkdir(name)


def lay_nothing(name, book):
    os.unlink(name)


def lay_link_for_the_folder(name, book):
    folder = Path(name).parent
    folder.rename(folder.with_name("moved"))
    folder.symlink_to(book.parent)


@contextlib.contextmanager
def in_time(seconds):
    """Fail what waits for ever, such as for a reader of a pipe."""

    def fail(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


WRITERS = {
    "a file": lambda box: files.write_bytes(box / "a", b"12", private=False),
    "a round's file": lambda box: Store.open(box).add(name_of(ROUND, "keys", "a", b"1"), b"1"),
    "keys": lambda box: Keys.generate("a").save(box / "a.key"),
    "a card": lambda box: Keys.generate("a").card.save(box / "a.card"),
    "a policy": lambda box: write_policy(box / "a.toml", "a", 1.0, 1e-6),
    "a book": lambda box: Book.create(box / "a.book", Keys.generate("a").card, epsilon=1.0),
    "scores": lambda box: run(f"score rows.csv --model m.hush -o {box}/s.csv", 1),
    "scores in Parquet": lambda box: run(f"score rows.csv --model m.hush -o {box}/s.parquet", 1),
    "the lowest rows": lambda box: run(f"score rows.csv --model m.hush --top 2 -o {box}/s.xlsx", 1),
    "a model": lambda box: run(f"fit rows.csv -o {box}/n.hush", 1),
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize(
    "lay",
    [
        *(lay_link, lay_hard_link, lay_file, lay_pipe, lay_folder, lay_nothing),
        lay_link_for_the_folder,
    ],
)
def test_nothing_is_written_through_a_name_that_others_replaced(
    here, rows, monkeypatch, lay, writer
):
    """A drive that all may write to: right after its file was made, its name is another's."""
    if writer in ("scores", "scores in Parquet", "the lowest rows"):
        run("fit rows.csv -o m.hush")
    book, box, opened, hit = here / "home" / "north.book", here / "box", os.open, []
    book.parent.mkdir()
    book.write_bytes(b"the only copy")
    box.mkdir(mode=0o700)

    def open_and_swap(path, flags, *more, **options):
        descriptor = opened(path, flags, *more, **options)
        if str(path).endswith(".part") and not hit:
            hit.append(path)
            lay(path, book)
        return descriptor

    monkeypatch.setattr(os, "open", open_and_swap)
    with contextlib.suppress(FileError), in_time(20):
        WRITERS[writer](box)
    assert hit
    assert book.read_bytes() == b"the only copy"
    left = {path.name for path in (*box.iterdir(), *book.parent.iterdir())} - {"north.book"}
    assert not {name for name in left if not name.endswith(".part")}, "a name for another's file"
