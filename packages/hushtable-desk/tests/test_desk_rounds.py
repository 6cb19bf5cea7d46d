"""A round of three sites, each at its own desk: asked, approved, answered, scored; and what is not.

Each site has a folder of its own with a folder ``round`` in it, which a program that keeps folders
alike (here `Consortium.carry`) carries to all others, as the documentation describes it.
"""

import contextlib
import dataclasses
import shutil
import time
from datetime import timedelta
from types import SimpleNamespace

import numpy as np
import pytest
from markupsafe import escape

import chromium
from desk_helpers import ORIGIN, DeskClient, axe_faults, served
from hushtable import Feature, Plan, Schema
from hushtable.detectors.load import open_model
from hushtable.errors import UsageError
from hushtable_desk.desk import Desk
from hushtable_desk.folder import Folder
from hushtable_desk.rounds import check_inside, find_round, round_folders, sites_of
from hushtable_federation import Book, Coordinator, Keys, Round
from hushtable_federation.clock import now
from hushtable_federation.credentials import BY_DEFAULT
from hushtable_federation.folder.mailbox import Store
from hushtable_federation.folder.round_folder import RoundFolder, rounds
from hushtable_federation.policy import Approval, write_policy
from hushtable_federation.settings import SiteSettings, write_settings
from hushtable_federation.state import RoundState

NAMES = ("east", "north", "south")
SCHEMA = Schema([Feature.numeric(name, low=-5, high=5) for name in "ab"])


class Browser(DeskClient):
    """The browser of the desk of one site."""

    @property
    def asked(self):
        """The only round of the only site."""
        (site,) = sites_of(self.desk.folder)
        (one,) = site.rounds()[0]
        return one

    @property
    def address(self):
        return f"/rounds/{self.asked.key}"


class Consortium:
    """Three sites with an officer each, who know each other, and a coordinator."""

    def __init__(self, folder):
        self.folder = folder
        self.keys = {name: Keys.generate(name) for name in (*NAMES, "lead")}
        self.officers = {name: Keys.generate(f"{name} officer") for name in NAMES}
        self.plan = Plan.draw(SCHEMA, n_tables=5, random_state=0)
        for name, keys in self.keys.items():
            (folder / name / "round").mkdir(parents=True)
            keys.save(folder / name / f"{name}.key")
        for seed, name in enumerate(NAMES):
            self._site(seed, name)

    def _site(self, seed, name):
        here = self.folder / name
        with Book.create(here / f"{name}.book", self.keys[name].card, epsilon=2.0) as book:
            book.trust([self.keys["lead"].card], "coordinator")
            book.trust([self.keys[other].card for other in NAMES])
        write_policy(here / f"{name}.policy.toml", name, 2.0, 1e-6, 1)
        self.set(name, "# fingerprint = \"0000 0000 0000 0000 0000 0000 0000 0000\"",
                 f'fingerprint = "{self.officers[name].card.fingerprint}"')  # fmt: skip
        write_settings(here / f"{name}.toml", name)
        self.set(name, '# rows = "patients.csv"', f'rows = "{name}.csv"', "toml")
        X = np.random.default_rng(seed).normal(size=(100, 2))
        np.savetxt(here / f"{name}.csv", X, delimiter=",", header="a,b", comments="")

    def set(self, name, before, after, kind="policy.toml"):
        """Change a line of a site's policy or file."""
        path = self.folder / name / f"{name}.{kind}"
        text = path.read_text()
        assert before in text
        path.write_text(text.replace(before, after))

    def open(self, title="Vital signs", **terms):
        """Open a round, and put it into the coordinator's folder."""
        asked = {"epsilon": 1.0, "deadline": now() + timedelta(days=1), "least": 3} | terms
        cards = [self.keys[name].card for name in NAMES]
        made = Round.open(self.plan, cards, self.keys["lead"], title=title, **asked)
        made.save(self.folder / "lead" / "round.hush")
        self.lead.post(self.folder / "lead" / "round", self.folder / "lead" / "round.hush")
        self.carry()
        return made

    @property
    def lead(self):
        return Coordinator.open(self.folder / "lead" / "lead.key", self.folder / "lead")

    def carry(self):
        """Carry what is new in any folder of the round to all others."""
        folders = [self.folder / name / "round" for name in self.keys]
        for one in folders:
            for path in one.iterdir():
                for other in folders:
                    if not (other / path.name).exists():
                        shutil.copy(path, other)

    def browser(self, name):
        return Browser(self.folder / name)

    def begin(self, *names):
        """Let sites approve the only round, and take the first step in it."""
        for name in names:
            site = self.browser(name)
            done(site.write(f"{site.address}/approve", key=self.key_of_officer(name)))
            done(site.write(f"{site.address}/answer"))
        self.carry()

    def key_of_officer(self, name):
        """Return the text of the officer's file, which is in no folder of a site."""
        path = self.folder / f"{name} officer.key"
        if not path.exists():
            self.officers[name].save(path)
        return path.read_text()


@pytest.fixture
def those(tmp_path):
    return Consortium(tmp_path)


@pytest.fixture
def quick_noise(monkeypatch):
    """Noise that is drawn fast."""
    rng = np.random.default_rng(1)

    def add_noise(counts, mechanism, scale, *, progress=None):
        return counts + np.rint(rng.normal(0.0, scale, len(counts))).astype(np.int64)

    monkeypatch.setattr("hushtable.privacy.mechanisms.add_noise", add_noise)


def answers(folder, name):
    with Book.open(folder / name / f"{name}.book") as book:
        return len(book.answers())


def done(response):
    assert response.status_code == 200, response.text
    return response.json()


class Person:
    """Someone who looks at a desk in Chromium, and clicks."""

    def __init__(self, browser, opening):
        self.browser, self.address = browser, opening.partition("/open/")[0]
        self.show(opening, "/rounds")

    def show(self, address, landed=""):
        """Go to an address, until the page there, or that which it leads to, is complete."""
        self.browser.show(SimpleNamespace(as_uri=lambda: address), 1000)
        end = landed or address
        self.wait(f"location.href.endsWith('{end}') && document.readyState === 'complete'")

    def wait(self, script):
        """Return what a script finds, as soon as that is something."""
        deadline = time.monotonic() + chromium.SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(AssertionError):  # the next page is on its way
                if found := self.browser.run(script):
                    return found
            time.sleep(0.05)
        raise TimeoutError(script)

    def look(self):
        """Go to the only round."""
        self.show(f"{self.address}/rounds")
        self.show(self.browser.run("document.querySelector('.asked a').href"))

    def give(self, path):
        """Choose a file of keys."""
        found = self.browser._do(
            "Runtime.evaluate", expression="document.querySelector('input[name=key]')"
        )
        node = found["result"]["objectId"]
        self.browser._do("DOM.setFileInputFiles", files=[str(path)], objectId=node)

    def click(self, write):
        """Click the button of a write; return what the page says once it was done."""
        self.browser.click(f"form[data-post$={write}] button")
        return self.wait(
            "(() => { const words = document.getElementById('said').innerText;"
            " return words !== document.querySelector('main').dataset.wait && words; })()"
        )


@pytest.mark.slow
@pytest.mark.skipif(chromium.found() is None, reason="no Chromium here: apt-get install chromium")
@pytest.mark.usefixtures("quick_noise")
def test_a_round_of_three_sites_in_the_browser(those, tmp_path):
    pytest.importorskip("opendp")
    those.open()
    with contextlib.ExitStack() as stack:
        browser = stack.enter_context(chromium.Chromium(tmp_path / "profile"))
        people = {}
        for name in NAMES:
            opening, _, _ = stack.enter_context(served(tmp_path / name, "/rounds"))
            people[name] = Person(browser, opening)
        people[NAMES[-1]].look()
        base = opening.split("/open")[0]
        path = browser.run("location.pathname")
        assert axe_faults(browser, base, ["/rounds", path]) == []
        for name, person in people.items():
            person.look()
            those.key_of_officer(name)
            person.give(tmp_path / f"{name} officer.key")
            assert "has signed the round." in person.click("approve")
            assert "Counted 100 rows." in person.click("answer")
        for _ in range(3):
            those.carry()
            those.lead.sync(tmp_path / "lead" / "round")
            those.carry()
            for person in people.values():
                person.look()
                person.click("answer")
        for name, person in people.items():
            person.look()
            browser.click("form[data-post$=use] button")
            person.wait("location.pathname === '/models'")
            (model,) = Desk(tmp_path / name).folder.models
            assert open_model(tmp_path / name / model.name).scorer.score(np.zeros((1, 2))).size
        blocked = [one for one in browser.complaints if "Content Security Policy" in one]
        assert not blocked


@pytest.mark.usefixtures("quick_noise")
def test_a_round_of_three_sites_each_at_its_desk(those, tmp_path):
    pytest.importorskip("opendp")
    those.open()
    browsers = {name: those.browser(name) for name in NAMES}
    for name, browser in browsers.items():
        listed = browser.get("/rounds").text
        assert "Vital signs" in listed
        assert "The round is waiting for an answer from this site." in listed
        page = browser.get(browser.address).text
        assert "lead asks 3 sites to count their rows by 2 columns (a, b)." in page
        assert those.keys["lead"].card.fingerprint in page
        assert "The officer has to sign the round before this site can answer." in page
        assert f"{browser.address}/approve" in page
        assert f"{browser.address}/answer" not in page
        assert "all rounds about &#39;all rows&#39; will have cost epsilon 1 of 2" in page

        refused = browser.refused(f"{browser.address}/answer")
        assert "the policy requires the officer's signature" in refused

        key = those.key_of_officer(name)
        said = done(browser.write(f"{browser.address}/approve", key=key))
        assert said["words"] == [f"{name} officer has signed the round."]
        page = browser.get(browser.address).text
        assert "The officer has signed." in page
        assert f"{browser.address}/answer" in page
        said = done(browser.write(f"{browser.address}/answer"))
        words = "Counted the rows, and sent a key for this round. No counts were sent."
        assert words in said["words"]
        assert "Counted 100 rows." in said["words"]
        # The officer's secret is nowhere in the folder.
        secret = those.officers[name]._signing.private_bytes_raw().hex().encode()
        files = [path for path in (tmp_path / name).rglob("*") if path.is_file()]
        assert not any(secret in path.read_bytes() for path in files)

    those.carry()
    for browser in browsers.values():
        assert "Continue" in browser.get(browser.address).text
        said = done(browser.write(f"{browser.address}/answer"))
        assert "Sent this site's counts, with noise and masked. No rows were sent." in said["words"]
        assert "Epsilon 1 of at most 2 is spent." in browser.get("/rounds").text
    those.carry()
    those.lead.sync(tmp_path / "lead" / "round")
    those.carry()
    for browser in browsers.values():
        assert "Help remove the masks" in browser.get(browser.address).text
        done(browser.write(f"{browser.address}/answer"))
    those.carry()
    ((_, visit),) = those.lead.sync(tmp_path / "lead" / "round")
    assert visit.state == "done"
    those.carry()
    for name, browser in browsers.items():
        assert "Fetch the result" in browser.get(browser.address).text
        assert browser.write(f"{browser.address}/use").status_code == 400  # not yet
        done(browser.write(f"{browser.address}/answer"))
        assert "Use this result" in browser.get(browser.address).text
        model = done(browser.write(f"{browser.address}/use"))["model"]
        assert model in [one.name for one in browser.desk.folder.models]
        scores = open_model(tmp_path / name / model).scorer.score(
            np.array([[0.0, 0.0], [5.0, -5.0]])
        )
        assert scores[1] < scores[0]
        assert answers(tmp_path, name) == 1


def test_a_result_elsewhere_in_the_folder_is_put_beside_the_tables_once(those, tmp_path):
    pytest.importorskip("opendp")
    those.set("north", '# results = "results"', 'results = "results"', "toml")
    (tmp_path / "north" / "results").mkdir()
    for name in NAMES:
        those.set(name, "masks = true", "masks = false")
    those.open(masked=False)
    those.begin(*NAMES)
    those.lead.sync(tmp_path / "lead" / "round")
    those.carry()
    north = those.browser("north")
    done(north.write(f"{north.address}/answer"))
    model = done(north.write(f"{north.address}/use"))["model"]
    assert done(north.write(f"{north.address}/use"))["model"] == model
    assert [one.name for one in north.desk.folder.models] == [model]
    (tmp_path / "north" / "results" / model).write_bytes(b"x")
    assert north.write(f"{north.address}/use").status_code == 400


#: What a policy forbids: a line of it and what replaces it, and the reason.
FORBIDDEN = {
    "epsilon": ("epsilon = 2.0\n", "epsilon = 0.5\n", "the policy allows 0.5 per round"),
    "total": ("epsilon = 2.0\ntotal_epsilon = 2.0", "epsilon = 0.5\ntotal_epsilon = 0.5", "0.5"),
    "column": ("# [[feature]]\n# name = \"age\"\n# kind = \"numeric\"\n# low = 0\n# high = 120",
               '[[feature]]\nname = "a"\nkind = "numeric"\nlow = -1\nhigh = 1', "the range of 'a'"),
    "persons": ("persons = 1", 'persons = "column"', "nothing shows that no person has more"),
    "coordinator": ("[coordinators]", '[coordinators]\nother = "' + "0" * 32 + '"', "not known"),
}  # fmt: skip


@pytest.mark.usefixtures("quick_noise")
@pytest.mark.parametrize("what", FORBIDDEN)
def test_what_the_policy_forbids_no_button_does_and_the_server_refuses(those, tmp_path, what):
    before, after, reason = FORBIDDEN[what]
    those.open()
    those.set("north", before, after)
    north = those.browser("north")
    page = north.get(north.address).text
    assert "Forbidden: this site cannot answer the round." in page
    assert escape(reason) in page
    assert f"{north.address}/answer" not in page
    assert f"{north.address}/approve" not in page
    # Forged, and with the officer's own keys: nothing is signed, counted or noted.
    key = those.key_of_officer("north")
    compared = north.asked.round.fingerprint
    for path, said in (("approve", {"key": key}), ("answer", {"compared": compared})):
        assert path == "answer" or reason in north.refused(f"{north.address}/{path}", **said)
    pytest.importorskip("opendp")
    # Nor if the policy changed after the signature, or after the rows were counted.
    for step, others in (("approve", ()), ("answer", ("east", "south"))):
        those.set("north", after, before)
        done(north.write(f"{north.address}/{step}", key=key))
        those.begin(*others)
        those.set("north", before, after)
        assert reason in north.refused(f"{north.address}/answer", compared=compared)
    assert answers(tmp_path, "north") == 0
    assert not list((tmp_path / "north" / "round").glob("*.masked.north.*"))


def test_without_a_policy_the_page_says_what_is_missing(those, tmp_path):
    those.open()
    (tmp_path / "north" / "north.policy.toml").unlink()
    north = those.browser("north")
    for address in ("/rounds", north.address):
        page = north.get(address)
        assert page.status_code == 200
        assert "there is no policy here" in page.text
    assert "data-post=" not in page.text
    for path in ("approve", "answer"):
        refused = north.refused(f"{north.address}/{path}", key=those.key_of_officer("north"))
        assert "there is no policy here" in refused


def test_a_coordinator_sees_no_policy_no_rows_and_no_budget(those, tmp_path):
    those.open()
    write_settings(tmp_path / "lead" / "lead.toml", "lead")
    lead = those.browser("lead")
    for address in ("/rounds", lead.address):
        page = lead.get(address)
        assert page.status_code == 200
        assert "Vital signs" in page.text
        for words in ("there is no policy", "Not set: add rows", "Budget spent", "Set of rows"):
            assert words not in page.text


def test_approval_needs_the_keys_of_the_officer(those, tmp_path):
    those.open()
    north = those.browser("north")
    site_key = (tmp_path / "north" / "north.key").read_text()
    wrong = {
        "no file": ({}, "needs the officer's file of keys"),
        "not keys": ({"key": "{}"}, "holds no keys"),
        "a card": ({"key": '{"hushtable": "card"}'}, "holds no keys"),
        "a path": ({"key": str(tmp_path / "north officer.key")}, "holds no keys"),
        "another officer": ({"key": those.key_of_officer("south")}, "is from a different person"),
        "the site's own": ({"key": site_key}, "is from a different person"),
    }
    for said, words in wrong.values():
        assert words in north.refused(f"{north.address}/approve", **said)
    assert not list((tmp_path / "north").glob("*.approval"))
    # A signature over another round, under the name of this one.
    other = Round.open(
        those.plan, [those.keys[name].card for name in NAMES], those.keys["lead"],
        epsilon=1.0, deadline=now() + timedelta(days=2),
    )  # fmt: skip
    path = tmp_path / "north" / f"{north.asked.round.round_id[:12]}.approval"
    Approval.sign(other, those.officers["north"]).save(path)
    assert "The officer has to sign" in north.get(north.address).text
    assert "is for a different round" in north.refused(f"{north.address}/answer")


def test_a_policy_without_an_officer(those):
    those.open()
    officer = those.officers["north"].card.fingerprint
    those.set("north", f'fingerprint = "{officer}"', "")
    north = those.browser("north")
    assert '<p class="policy allowed">' in north.get(north.address).text
    refused = north.refused(f"{north.address}/approve", key=those.key_of_officer("north"))
    assert "names no officer" in refused


def test_a_person_refuses_and_the_reason_stays_here(those, tmp_path):
    those.open()
    north = those.browser("north")
    done(north.write(f"{north.address}/refuse", why="a board has to decide"))
    store = Store.open(tmp_path / "north" / "round")
    (asked,) = rounds(store)
    assert RoundState.of(RoundFolder(asked, store)).refused == {"north": "policy"}
    assert "a board has to decide" in (tmp_path / "north" / "north.log").read_text()
    everything = b"".join(path.read_bytes() for path in (tmp_path / "north" / "round").iterdir())
    assert b"board" not in everything
    # It may change its mind as long as the round is open, but not once it has answered.
    done(north.write(f"{north.address}/approve", key=those.key_of_officer("north")))
    page = north.get(north.address).text
    assert f"{north.address}/answer" in page


@pytest.mark.usefixtures("quick_noise")
def test_what_was_answered_is_not_refused(those, tmp_path):
    pytest.importorskip("opendp")
    those.open()
    north = those.browser("north")
    done(north.write(f"{north.address}/approve", key=those.key_of_officer("north")))
    done(north.write(f"{north.address}/answer"))
    for path in ("refuse", "approve"):
        refused = north.refused(f"{north.address}/{path}", key=those.key_of_officer("north"))
        assert "does not request the rows of this site now" in refused
    # The same key is there again, and the counts once, when those of the others have come.
    done(north.write(f"{north.address}/answer"))
    assert answers(tmp_path, "north") == 0
    those.begin("east", "south")
    for _ in range(2):
        done(north.write(f"{north.address}/answer"))
        assert answers(tmp_path, "north") == 1


@pytest.mark.usefixtures("quick_noise")
def test_strangers_are_known_once_the_fingerprint_of_all_cards_is_compared(those, tmp_path):
    pytest.importorskip("opendp")
    path = tmp_path / "north" / "north.book"
    path.unlink()
    Book.create(path, those.keys["north"].card, epsilon=2.0).close()
    those.open()
    north = those.browser("north")
    done(north.write(f"{north.address}/approve", key=those.key_of_officer("north")))
    page = north.get(north.address).text
    assert "Allowed after all participants have compared the fingerprint of all cards." in page
    fingerprint = north.asked.round.fingerprint
    assert page.count(f'name="compared" value="{fingerprint}"') == 1
    assert "is not known here" in north.refused(f"{north.address}/answer")
    with Book.open(path) as book:
        assert not book.known()
    other = those.keys["lead"].card.fingerprint
    refused = north.write(f"{north.address}/answer", compared=other)
    assert "is not that of this round's cards" in refused.json()["error"]
    done(north.write(f"{north.address}/answer", compared=fingerprint))
    with Book.open(path) as book:
        noted = [one.content for one in book.history() if one.kind == "trust"]
        ways = {(one["card"]["name"], one["role"]): one["how"] for one in noted}
        assert ways["lead", "coordinator"] == "asked"


HOSTILE = "<img src=x onerror=alert(1)>\"'{{ 7 * 7 }}"


def test_hostile_names_are_escaped(those, tmp_path):
    those.open(title=HOSTILE)
    here = tmp_path / "north"
    (here / "round").rename(here / "<b>round")
    (here / "<i>rows.csv").write_text("a,b\n1,2\n")
    those.set("north", 'rows = "north.csv"', 'rows = "<i>rows.csv"\ndata_set = "<u>set"', "toml")
    (here / "<s>.toml").write_text('key = "<s>.key"\nwrong = "<em>"\n')
    (here / "<s>.key").write_text("{}")
    north = those.browser("north")
    site = next(one for one in sites_of(north.desk.folder) if one.name == "north.toml")
    (asked,) = site.rounds()[0]
    bad = next(one for one in sites_of(north.desk.folder) if one.name == "<s>.toml")
    pages = [f"/rounds?site={site.key}", f"/rounds?site={bad.key}", f"/rounds/{asked.key}"]
    for address in pages:
        response = north.get(address)
        assert response.status_code == 200
        for mark in ("<img", "<b>round", "<i>rows", "<u>set", "<s>", "<em>"):
            assert mark not in response.text
        assert "style=" not in response.text
        assert "onclick" not in response.text
    assert "unknown entry" in north.get(pages[1]).text
    assert "{{ 7 * 7 }}" in north.get(pages[2]).text


#: Entries of a site's file that lead out of the folder.
OUTSIDE = {
    "rows": 'rows = "../south/south.csv"',
    "file": 'rows = "file:///etc/passwd"',
    "book": 'book = "../south/south.book"',
    "policy": 'policy = "/etc/policy.toml"',
    "results": 'results = ".."',
    "no URL": 'policy = "x://../../north.policy.toml"',
    "approvals": 'approvals = "../*.approval"',
    "query": 'query = "../q.sql"',
    "concepts": 'omop = "person"\nconcepts = "../concepts.csv"',
}


@pytest.mark.parametrize("entry", OUTSIDE)
def test_a_site_s_file_leads_nowhere_out_of_the_folder(those, entry):
    those.open()
    those.set("north", 'rows = "north.csv"', OUTSIDE[entry], "toml")
    north = those.browser("north")
    page = north.get("/rounds").text
    assert "is outside the open folder" in page
    assert "Vital signs" not in page


LINKS = ("north.csv", "north.book", "north.policy.toml", "north.log", "a/1.csv")


@pytest.mark.parametrize("name", LINKS)
def test_a_site_s_file_names_no_link(those, tmp_path, name):
    """Not even one that leads to another file of the folder, and the log of reasons is no link."""
    those.open()
    here = tmp_path / "north"
    rows = "*/1.csv" if "/" in name else "north.csv"
    those.set("north", 'rows = "north.csv"', f'rows = "{rows}"', "toml")
    address = those.browser("north").address
    link, target = here / name, here / "kept"
    link.parent.mkdir(exist_ok=True)
    target.write_bytes(link.read_bytes() if link.exists() else b"kept")
    link.unlink(missing_ok=True)
    link.symlink_to(target)
    before = target.read_bytes()
    north = those.browser("north")
    assert "is a link" in north.get("/rounds").text
    assert north.write(f"{address}/refuse", why="I wrote this").status_code == 400
    assert target.read_bytes() == before


def test_a_new_entry_of_a_site_s_file_is_a_path_until_it_is_marked(tmp_path, monkeypatch):
    """So the desk refuses it, rather than follow it out of the folder."""

    @dataclasses.dataclass(frozen=True)
    class Later(SiteSettings):
        archive: str = ""

    monkeypatch.chdir(tmp_path)
    north = SiteSettings.load(tmp_path / "north.key")
    fields = {one.name: getattr(north, one.name) for one in dataclasses.fields(north)}
    check_inside(Folder(tmp_path), Later(**fields))
    for later in (
        Later(**fields, archive="../archive"),
        Later(**fields | {"reads": {"catalogue": str(tmp_path.parent / "x.csv")}}),
    ):
        with pytest.raises(UsageError, match=r"(archive|catalogue) is outside the open folder"):
            check_inside(Folder(tmp_path), later)


def test_a_desk_reaches_no_folder_that_a_site_s_file_names(those):
    those.open()
    entries = 'rows = "north.csv"\nfolder = "sftp://x/y"\nlogin = "key:/etc/shadow"'
    those.set("north", 'rows = "north.csv"', entries, "toml")
    north = those.browser("north")
    assert "Vital signs" in north.get("/rounds").text
    assert north.asked.at.site.settings.address == BY_DEFAULT


def test_rounds_are_looked_for_below_the_folder_and_behind_no_link(those, tmp_path):
    those.open()
    here = tmp_path / "north"
    (here / "far").mkdir()
    (here / "far" / "link").symlink_to(tmp_path / "south" / "round")
    (here / "deep" / "lead").mkdir(parents=True)
    (post,) = (here / "round").glob("*.round.lead.*")
    shutil.copy(post, here / "deep" / "lead")
    (here / ".hidden").mkdir()
    shutil.copy(post, here / ".hidden")
    shutil.copy(post, here)
    assert round_folders(Desk(here).folder) == ["deep", "round"]


def test_other_addresses_and_writes(those):
    those.open()
    north = those.browser("north")
    assert north.get("/rounds/0123456789ab").status_code == 400
    assert north.write("/rounds/0123456789ab/answer").status_code == 400
    assert north.get(f"{north.address}/answer").status_code in (403, 404, 405)
    origin = {"Origin": ORIGIN, "Content-Type": "application/json"}
    for content in (b"[]", b"{", b"\xff"):
        answer = north.post(f"{north.address}/approve", content=content, headers=origin)
        assert answer.status_code == 400
    assert north.write(f"{north.address}/answer", compared="all").status_code == 400
    assert north.write(f"{north.address}/answer", rows="../south/south.csv").status_code == 400
    other = north.post(f"{north.address}/refuse", json={}, headers={"Origin": "http://evil.test"})
    assert other.status_code == 403
    assert find_round(north.desk.folder, north.asked.key).state == "awaited"


def test_a_folder_without_a_site_s_file(tmp_path):
    page = Browser(tmp_path).get("/rounds")
    assert page.status_code == 200
    assert "The command hushtable round keygen writes one" in page.text
    assert "--" not in page.text
