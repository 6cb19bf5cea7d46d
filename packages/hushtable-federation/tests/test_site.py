"""The front doors: a site's file, each of its errors by line, and a round in Python."""

import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from hushtable import Plan, Sketch, load
from hushtable.cli import main
from hushtable.errors import DataError, FileError, PrivacyError, RoundError, UsageError
from hushtable_federation import Book, Coordinator, Keys, Site, SiteSettings
from hushtable_federation.folder.mailbox import Store
from hushtable_federation.folder.round_folder import RoundFolder, rounds
from hushtable_federation.settings import write_settings
from hushtable_federation.site import NOBODY, SiteRows, Standing
from place_helpers import SCHEMA, Places

pytestmark = pytest.mark.usefixtures("shell")  # messages name options

#: Entries after the line ``key = "north.key"``, and the error: line and words.
WRONG = {
    'polcy = "a"': (
        2,
        "unknown entry 'polcy', misspelt or from a newer version: known entries are approvals, as,",
    ),
    "rows = 7": (2, "rows is 7: needs a text"),
    "threads = 0": (2, "threads is 0: needs 1 or more, or -1"),
    "\nthreads = true": (3, "threads is True"),
    "skip_lines = -1": (2, "needs a whole number, 0 or more"),
    "skip_footer = -1": (2, "needs a whole number, 0 or more"),
    "drop = [1]": (2, "needs a text, or a list of texts"),
    "as = 7": (2, "needs a text, or a list of texts"),
    "[as]\ntsh = 7": (2, "needs a text, or a list of texts"),
    'omop = "patient"': (2, "needs person or visit"),
    'decimal = ";"': (2, "needs , or ."),
    'columns = ["a"]\n# more\ndrop = ["b"]': (4, "columns and drop exclude each other"),
    'cdm = "x"': (2, "cdm needs omop"),
    'query = "select 1"\nomop = "visit"': (2, "leave out the query"),
    'database = "patients"': (2, "the entry database was removed"),
    'key = "again.key"': (2, "not a TOML file"),
}


@pytest.fixture
def places(tmp_path):
    return Places(tmp_path)


@pytest.mark.parametrize("entries", WRONG)
def test_an_entry_that_is_wrong_is_named_with_its_line(tmp_path, entries):
    line, words = WRONG[entries]
    path = tmp_path / "north.toml"
    path.write_text(f'key = "north.key"\n{entries}\n')
    with pytest.raises(FileError, match=re.escape(words)) as raised:
        Site.open(path)
    assert re.search(rf"line {line}\b", str(raised.value)), raised.value
    assert str(path) in str(raised.value)


def test_a_file_without_keys_or_that_is_not_there(tmp_path):
    path = tmp_path / "north.toml"
    with pytest.raises(FileError, match="hushtable round keygen writes"):
        Site.open(path)
    path.write_text('rows = "a.csv"\n')
    with pytest.raises(FileError, match=r"no entry key: .* key = \"north.key\""):
        Site.open(path)
    path.write_text('key = "other.key"\n')
    with pytest.raises(FileError, match=r"is about the keys .*other\.key"):
        Site.open(tmp_path / "north.key")


def test_paths_are_relative_to_the_file_and_urls_are_urls(tmp_path):
    path = tmp_path / "north.toml"
    path.write_text(
        'key = "north.key"\nrows = "a.csv"\nquery = "q.sql"\napprovals = "*.approval"\n'
        'columns = ["a, b", "c"]\nas = { tsh = "number" }\n'
    )
    found = SiteSettings.load(path)
    assert (found.key, found.book) == (tmp_path / "north.key", tmp_path / "north.book")
    assert found.rows == str(tmp_path / "a.csv")
    assert found.results == tmp_path
    assert found.approvals == str(tmp_path / "*.approval")
    assert found.reads == {
        "query": str(tmp_path / "q.sql"), "columns": '"a, b",c', "as_": ["tsh=number"],
    }  # fmt: skip
    path.write_text('key = "north.key"\nrows = "sqlite:///a.db"\nquery = "select 1"\n')
    found = SiteSettings.load(tmp_path / "north.key")
    assert (found.rows, found.reads) == ("sqlite:///a.db", {"query": "select 1"})


def test_the_file_of_keygen_says_nothing_but_the_keys(tmp_path):
    write_settings(tmp_path / "north.toml", "north")
    assert SiteSettings.load(tmp_path / "north.toml").key == tmp_path / "north.key"
    text = (tmp_path / "north.toml").read_text()
    named = {line.split()[1] for line in text.splitlines() if re.match(r"# \w+ = ", line)}
    (tmp_path / "x.toml").write_text("x = 1")
    with pytest.raises(FileError) as raised:
        Site.open(tmp_path / "x.toml")
    known = set(str(raised.value).partition("known entries are ")[2].split(", "))
    assert named == known - {"key", "database"}


@pytest.mark.usefixtures("quick_noise")
def test_a_round_by_calls_alone_from_rows_that_are_read_as_the_file_says(places):
    """Semicolons, decimal commas, a line above the names, columns that tell persons."""
    pytest.importorskip("opendp")
    round_, box = places.open(least=3), places.folder / "box"
    box.mkdir()
    X = np.loadtxt(places.folder / "north.csv", delimiter=",", skiprows=1)
    lines = [f"{a:.6f};{b:.6f};p{i}".replace(".", ",") for i, (a, b) in enumerate(X)]
    (places.folder / "odd.csv").write_text("\n".join(["Export", "a;b;id", *lines, lines[0]]))
    places.file("north").write_text(
        'key = "north.key"\nrows = "odd.csv"\ndelimiter = ";"\ndecimal = ","\nskip_lines = 1\n'
        'person = "id"\n'
    )
    lead = Coordinator.open(places.folder / "lead.key", places.folder)
    lead.post(box, places.folder / "round.hush")
    for _ in range(3):
        for name in places.names:
            ((_, visit),) = Site.open(places.file(name)).sync(box)
            assert visit.state == "waiting", visit.words
        ((posts, visit),) = lead.sync(box)
    assert visit.state == "done"
    ((posts, visit),) = Site.open(places.file("north")).sync(box)
    assert (visit.state, visit.found_out) == ("done", {})
    result = Site.open(places.file("north")).result(posts.round)
    assert load(result).n_rows
    with places.book("north") as book:
        counts = book.answer(round_.round_id).counts
    assert counts.sum() == 100 * round_.plan.family.n_histograms  # the repeated person counts once
    places.check(round_, result=result.name)


def test_doubt_about_rows_names_the_entry(places):
    (places.folder / "north.csv").write_text("a,b\n1,2\n")
    places.file("north").write_text('key = "north.key"\nrows = "north.csv"\ncolumns = ["a", "z"]\n')
    site = Site.open(places.file("north"))
    plan = Plan.draw(SCHEMA, n_tables=2)
    with (
        site.book() as book,
        pytest.raises(DataError, match=r"north\.toml: each option in this message is an entry"),
    ):
        SiteRows(site.settings, book, NOBODY).open(plan)


def test_rows_that_nobody_named(places):
    places.file("north").write_text('key = "north.key"\n')
    site = Site.open(places.file("north"))
    with (
        site.book() as book,
        pytest.raises(UsageError, match=r"no rows were given: .* \(rows = \.\.\.\)"),
    ):
        SiteRows(site.settings, book, NOBODY).open(Plan.draw(SCHEMA, n_tables=2))


def test_how_a_round_stands_at_a_site_and_a_person_who_refuses_it(places):
    round_, box = places.open(), places.folder / "box"
    box.mkdir()
    Coordinator.open(places.folder / "lead.key").post(box, places.folder / "round.hush")
    north = Site.open(places.file("north"))
    found = Standing.of(north, round_)
    assert found.allows
    assert not found.forbidden
    assert not found.strangers
    assert found.known == {
        "coordinator lead": "known", "site east": "known", "site north": "this site",
        "site south": "known",
    }  # fmt: skip
    assert found.epsilon == pytest.approx(1.0)
    store = Store.open(box, "north")
    (asked,) = rounds(store)
    visit = north.refuse(RoundFolder(asked, store), "the board has not met")
    assert (visit.state, visit.posted) == ("refused", [])
    assert "the board has not met" in (places.folder / "north.log").read_text()
    assert RoundFolder(asked, store).refused("north") == "policy"
    assert not any(b"board" in path.read_bytes() for path in box.iterdir())
    west = Keys.generate("west")
    west.save(places.folder / "west.key")
    with pytest.raises(RoundError, match="'west' takes no part"):
        Site.open(places.folder / "west.key").refuse(RoundFolder(asked, store), "")


def test_a_round_is_forbidden_or_needs_people_to_compare(places):
    round_, north = places.open(), Site.open(places.file("north"))
    policy = places.folder / "north.policy.toml"
    strict = policy.read_text()
    policy.write_text(strict.replace("persons = 1", 'persons = "column"'))
    found = Standing.of(north, round_)
    assert (found.forbidden, found.word, found.epsilon) == (True, "policy", None)
    policy.write_text(strict.replace("[coordinators]", '[coordinators]\nx = "' + "0" * 32 + '"'))
    found = Standing.of(north, round_)
    assert (found.forbidden, found.word, found.strangers) == (True, "unknown", [])
    policy.write_text(strict)
    (places.folder / "north.book").unlink()
    with places.book("north", Book.create, north.card, epsilon=5.0):
        pass
    found = Standing.of(north, round_)
    assert (found.forbidden, found.allows) == (False, False)
    assert {card.name for card in found.strangers} == {"lead", "east", "south"}
    with places.book("north") as book:
        book.set_cap(0.5, 1e-6)
    found = Standing.of(north, round_)
    assert (found.forbidden, found.word) == (True, "budget")


@pytest.mark.usefixtures("quick_noise")
def test_what_was_sent_cannot_be_refused(places):
    places.open()
    box = places.folder / "box"
    box.mkdir()
    Coordinator.open(places.folder / "lead.key").post(box, places.folder / "round.hush")
    north = Site.open(places.file("north"))
    for name in places.names:
        Site.open(places.file(name)).sync(box)
    ((posts, _),) = north.sync(box)
    with pytest.raises(RoundError, match="what was sent cannot be taken back"):
        north.refuse(posts, "")


def test_who_refuses_after_the_rows_are_counted_sends_nothing_of_them(places):
    """Neither the next visit of a schedule, nor one with someone there."""
    round_ = places.open()
    box = places.folder / "box"
    box.mkdir()
    Coordinator.open(places.folder / "lead.key").post(box, places.folder / "round.hush")
    north = Site.open(places.file("north"))
    ((posts, _),) = north.sync(box)
    with places.book("north") as book:
        assert book.step(round_.round_id, "rows") is not None
    north.refuse(posts, "changed our mind")
    with places.book("north") as book:
        assert book.step(round_.round_id, "rows") is None
    for name in places.names:
        ((_, visit),) = Site.open(places.file(name)).sync(box)
    ((_, visit),) = north.sync(box)
    assert visit.state == "refused"
    assert list(box.glob("*.keys.north.*"))
    assert not list(box.glob("*.masked.north.*"))
    with places.book("north") as book:
        assert book.answers() == []


def test_no_round_for_this_site(places):
    (places.folder / "box").mkdir()
    for party in (Site.open(places.file("north")), Coordinator.open(places.folder / "lead.key")):
        with pytest.raises(UsageError, match="holds no round for"):
            partial(party.sync, places.folder / "box")()


@pytest.mark.slow
def test_any_public_name_may_be_the_first_that_is_imported():
    """Modules that import each other show by the first import alone: each name by itself."""
    code = """
import sys
import hushtable_federation
for name in hushtable_federation.__all__:
    for module in [one for one in sys.modules if one.startswith("hushtable_federation")]:
        del sys.modules[module]
    exec(f"from hushtable_federation import {name}")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def files_of(folder):
    """Return all files below a folder, with what they hold."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("quick_noise")
def test_the_home_model_of_a_site(places, capsys):
    """Its own rows beside the counts of all others; the book stays as it is."""
    round_, box = places.open(least=3), places.folder / "box"
    box.mkdir()
    lead = Coordinator.open(places.folder / "lead.key", places.folder)
    lead.post(box, places.folder / "round.hush")
    for _ in range(3):
        for name in places.names:
            Site.open(places.file(name)).sync(box)
        ((posts, visit),) = lead.sync(box)
    assert visit.state == "done"
    north = Site.open(places.file("north"))
    ((posts, visit),) = north.sync(box)
    result = load(north.result(posts.round))
    before = files_of(places.folder)
    home = north.model(result)
    X = np.loadtxt(places.folder / "north.csv", delimiter=",", skiprows=1)
    assert home.n_rows == len(X)
    with places.book("north") as book:
        mine = book.answer(round_.round_id)
        assert (home.elsewhere.counts == result.counts - mine.sent).all()
    assert home.elsewhere.noise_sd < result.noise_sd
    assert files_of(places.folder) == before  # no message, no entry in a book, no file
    made = str(places.folder / "north.home.hush")
    site = ["round", "model", str(north.result(posts.round)), "--site", str(places.file("north"))]
    assert main([*site, "-o", made]) == 0
    assert "it must never leave" in capsys.readouterr().out
    assert files_of(places.folder) == before | {Path(made): Path(made).read_bytes()}
    np.testing.assert_array_equal(load(made).elsewhere.counts, home.elsewhere.counts)
    rows, out = str(places.folder / "north.csv"), str(places.folder / "scores.csv")
    assert main(["score", rows, "--model", made, "-o", out]) == 0
    assert main(["score", rows, "--model", made, "--top", "20", "-o", out]) == 0
    text = (places.folder / "north.csv").read_text()
    (places.folder / "north.csv").write_text("".join(text.splitlines(keepends=True)[:61]))
    capsys.readouterr()
    assert main([*site, "-o", made]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "The round counted 100 rows of this site, and there are 60 now" in printed
    (places.folder / "north.csv").write_text(text)
    assert main([*site, "-o", made]) == 0
    assert "there are" not in capsys.readouterr().out
    # Rows are read as the site's file says, here and when they are scored.
    text = (places.folder / "north.csv").read_text()
    (places.folder / "north.csv").write_text(text.replace(",", ";").replace(".", ","))
    places.file("north").write_text(f'{places.file("north").read_text()}decimal = ","\n')
    scores = [float(line.split(",")[1]) for line in Path(out).read_text().splitlines()[1:]]
    assert main([*site, "-o", made]) == 0
    assert main(["score", rows, "--model", made, "--top", "20", "-o", out]) == 0
    again = [float(line.split(",")[1]) for line in Path(out).read_text().splitlines()[1:]]
    assert again == pytest.approx(scores)
    capsys.readouterr()
    assert main([*site, "--book", str(places.folder / "north.book"), "-o", made]) == 2
    assert "exclude each other" in capsys.readouterr().err


def finish(places, name, plan):
    """Run a round of all places in a folder of its own; return its round and north's result."""
    places.plan, box = plan, places.folder / name
    round_ = places.open(least=3, title=name)
    box.mkdir()
    lead = Coordinator.open(places.folder / "lead.key", places.folder)
    lead.post(box, places.folder / "round.hush")
    for _ in range(3):
        for site in places.names:
            Site.open(places.file(site)).sync(box)
        lead.sync(box)
    north = Site.open(places.file("north"))
    ((posts, visit),) = north.sync(box)
    assert visit.state == "done"
    return round_, north.result(posts.round)


@pytest.mark.usefixtures("quick_noise")
def test_what_is_systematic_at_a_site_of_a_campaign(places, capsys):
    """Of a round about the columns, and one about the tables: north's b is off by a device."""
    for seed, name in enumerate(places.names):
        X = np.random.default_rng(seed).normal(size=(3000, 2))
        X[:1500, 1] += 3.0 * (name == "north")
        np.savetxt(places.folder / f"{name}.csv", X, delimiter=",", header="a,b", comments="")
    _, marginals = finish(places, "columns", Plan.marginals(SCHEMA))
    plan = Plan.draw(SCHEMA, marginals=load(marginals), n_tables=20, random_state=0)
    _, result = finish(places, "tables", plan)
    north = Site.open(places.file("north"))
    home = north.model(load(result), load(marginals))
    assert home.marginals.noise_sd > 0.0
    made, out = str(places.folder / "h.hush"), str(places.folder / "s.csv")
    model = ["round", "model", str(result), "--site", str(places.file("north"))]
    assert main([*model, "--marginals", str(marginals), "-o", made]) == 0
    rows = str(places.folder / "north.csv")
    assert main(["score", rows, "--model", made, "-o", out]) == 0
    assert "common here, rare elsewhere: b " in " ".join(capsys.readouterr().out.split())
    before = files_of(places.folder)
    compare = ["round", "compare", str(result)]
    assert main([*compare, "--site", str(places.file("north"))]) == 0
    assert "do not send it to anyone" in capsys.readouterr().out
    assert files_of(places.folder) == before
    assert main(compare) == 2
    assert "give either this site's book (--book), or its file" in capsys.readouterr().err
    assert main([*model, "--marginals", str(result), "-o", made]) == 2
    assert "needs the result of the round about the columns" in capsys.readouterr().err
    assert main([*model[:3], "--marginals", str(marginals), "-o", made]) == 2
    assert "give --site, too" in capsys.readouterr().err
    with pytest.raises(UsageError, match="needs the result of the round about a model's tables"):
        north.model(load(marginals))


@pytest.mark.usefixtures("quick_noise")
def test_what_makes_no_home_model(places):
    """Results without noise or without this site; rows that are too few, or of other columns."""
    plan = places.plan
    _, path = finish(places, "tables", plan)
    north = Site.open(places.file("north"))
    X = np.loadtxt(places.folder / "north.csv", delimiter=",", skiprows=1)
    with pytest.raises(UsageError, match="without noise"):
        north.model(Sketch.from_data(plan, X))
    with pytest.raises(RoundError, match="has no part in this result"):
        north.model(Sketch.from_data(plan, X).release(1.0))
    result = load(path)
    for rows, words in ((X[:9], "needs at least 10"), (X[:, :1], "contains all required")):
        header = ",".join("ab"[: rows.shape[1]])
        np.savetxt(places.folder / "north.csv", rows, delimiter=",", header=header, comments="")
        with pytest.raises(DataError, match=words):
            north.model(result)


@pytest.mark.usefixtures("quick_noise")
def test_rows_that_were_counted_twice_make_no_result(places):
    """Two rounds hold each site's rows, and their sum would hold them twice: there is none."""
    plan = places.plan
    first, second = (load(finish(places, name, plan)[1]) for name in ("one", "two"))
    with pytest.raises(PrivacyError, match="would count those rows twice"):
        first + second
