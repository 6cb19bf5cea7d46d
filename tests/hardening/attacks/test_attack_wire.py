"""Attacks on what a site answers online: what refusals say, whom it trusts, who unmasks whom."""

import contextlib
import itertools
import json
import math
import re
from datetime import timedelta
from functools import partial

import numpy as np
import pytest

from hushtable import Feature, Plan, Schema, Sketch
from hushtable.errors import FileError, RoundError
from hushtable_federation.book.book import Book
from hushtable_federation.clock import now
from hushtable_federation.keys import Keys
from hushtable_federation.online.carriers import Memory
from hushtable_federation.online.secure_sum import SecureSum
from hushtable_federation.online.site import OnlineSite
from hushtable_federation.policy import Policy
from hushtable_federation.protocol.messages import Message, ask
from hushtable_federation.refusals import VERSION, Refusal
from hushtable_federation.round import Round
from places import DOCS
from round_helpers import Consortium, Online, send

AGE = Feature.numeric("age", low=0, high=120)
PULSE = Feature.numeric("pulse", low=20, high=250)


@pytest.fixture
def clinics(tmp_path):
    """Three sites with rows in CSV files, as a SuperNode has them, and a coordinator."""
    those = Clinics(tmp_path)
    yield those
    for book in those.books.values():
        book.close()


class Clinics:
    def __init__(self, folder, n=300):
        self.folder, self.lead = folder, Keys.generate("lead")
        self.keys = {name: Keys.generate(name) for name in ("s0", "s1", "s2")}
        self.books = {}
        for i, (name, keys) in enumerate(self.keys.items()):
            self.books[name] = Book.create(folder / f"{name}.book", keys.card, epsilon=3.0)
            self.books[name].trust([self.lead.card], "coordinator")
            others = [one.card for one in self.keys.values() if one is not keys]
            self.books[name].trust(others, "site")
            rng = np.random.default_rng(i)
            self.write(name, [f"{rng.integers(18, 90)},{rng.integers(50, 110)}" for _ in range(n)])

    def write(self, name, rows, head="age,pulse"):
        (self.folder / f"{name}.csv").write_text("\n".join([head, *rows]) + "\n")

    def rows(self, name):
        return (self.folder / f"{name}.csv").read_text().splitlines()[1:]

    def open(self, features=(AGE, PULSE), **terms):
        terms = {"epsilon": 1.0, "least": 2, "deadline": now() + timedelta(days=1)} | terms
        plan = Plan.draw(
            Schema(list(features)), random_state=0, n_tables=5, n_cells=16, min_depth=2, max_depth=4
        )
        return Round.open(plan, [one.card for one in self.keys.values()], self.lead, **terms)

    def agent(self, name, features=(AGE, PULSE)):
        path = str(self.folder / f"{name}.csv")

        def count(round_):
            return Sketch.from_data(round_.plan, path, allow_empty=True)

        policy = Policy(unattended=True, persons=1, features=tuple(features))
        return OnlineSite(self.keys[name], self.books[name], count, policy=policy)

    def run(self, round_, features=(AGE, PULSE)):
        agents = {name: self.agent(name, features) for name in self.keys}
        self.log = []

        def answer(name, request):
            self.log.append((name, agents[name].answer(request)))
            return self.log[-1][1]

        sites = Memory({name: partial(answer, name) for name in agents})
        self.sum = SecureSum(round_, self.lead, sites)
        return self.sum.run()

    def words_of(self, name):
        """Everything that a site said in refusals, as the coordinator reads it."""
        read = [Message.read(a, self.keys[n].card) for n, a in self.log if n == name and is_word(a)]
        return [message.body for message in read]


def is_word(content):
    return b'"step":"refused"' in content or b'\\"step\\":\\"refused\\"' in content


BROKEN = {
    "a row with an unquoted comma": (["41,77", "John Smith,HIV pos, refused ARV"], "HIV"),
    "a text in a numeric column": (["41,77", "HIV positive?,80"], "HIV"),
    "an infinity": (["41,77", "inf,80"], "inf"),
    "a ragged row": (["41,77", "97,80,Mrs Miller"], "Miller"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_row_stays_at_home(clinics, case):
    """A3, v1 B to D: the error's text, a whole row, was signed, sent and kept in the state."""
    rows, secret = BROKEN[case]
    clinics.write("s0", clinics.rows("s0")[:200] + rows)
    clinics.run(clinics.open())
    assert clinics.sum.lost == {"s0": "keys: unavailable"}
    assert clinics.words_of("s0") == [{"word": "unavailable"}]
    assert not any(secret.encode() in answer for _, answer in clinics.log)
    assert clinics.books["s0"].answers() == []
    log = clinics.folder / "s0.log"
    assert "Error" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "asked",
    [
        [Feature.numeric("name", low=0, high=1), AGE],
        [Feature.numeric("diagnosis", low=0, high=1)],
        [Feature.numeric("nosuch", low=0, high=1), AGE],
    ],
    ids=["a name", "a diagnosis", "no such column"],
)
@pytest.mark.parametrize("allowed", [False, True])
def test_no_column_is_read_out_through_refusals(clinics, asked, allowed):
    """A_oracle: a coordinator asked for text columns as numbers, and was sent their texts."""
    rows = [f"P{i},flu,{30 + i},80" for i in range(50)]
    clinics.write("s0", ["Alice Smith,HIV,41,77", *rows], "name,diagnosis,age,pulse")
    with pytest.raises(RoundError, match="no sum"):
        clinics.run(clinics.open(asked), asked if allowed else (AGE, PULSE))
    word = "unavailable" if allowed else "policy"
    assert clinics.words_of("s0") == [{"word": word}]
    assert not any(b"Alice" in answer or b"HIV" in answer for _, answer in clinics.log)
    assert clinics.books["s0"].answers() == []


def test_the_exact_number_of_rows_is_not_told(clinics):
    """A_oracle 3, v1 A: with a delta near 1/n, a site refused by its exact number of rows."""
    words = []
    for n in (199, 200, 201):
        clinics.write("s0", clinics.rows("s0")[:n] or ["1,30"])
        with pytest.raises((RoundError, FileError, ValueError)) as caught:
            clinics.run(clinics.open(delta=1 / 200))
        words.append(str(caught.value))
        clinics.write("s0", [f"{i % 100},{60 + i % 50}" for i in range(300)])
    assert len(set(words)) == 1
    assert all(book.answers() == [] for book in clinics.books.values())


@pytest.mark.parametrize("form", ["file", "online"])
def test_two_hundred_invented_sites(tmp_path, form):
    """B2: one true and 200 invented sites cut the noise to a fourteenth, without a question."""
    rng = np.random.default_rng(1)
    north, lead = Keys.generate("north"), Keys.generate("lead")
    invented = [Keys.generate(f"z{i:03d}").card for i in range(200)]
    plan = Plan.draw(Schema([AGE, PULSE]), random_state=0, n_tables=20, n_cells=16, min_depth=2)
    online = form == "online"
    round_ = Round.open(
        plan, [north.card, *invented], lead, epsilon=1.0, deadline=now() + timedelta(days=1),
        least=200 if online else None,
    )  # fmt: skip
    X = np.column_stack([rng.integers(18, 95, 300), rng.normal(75, 9, 300)])
    with Book.create(tmp_path / "north.book", north.card, epsilon=1.0) as book:
        book.trust([lead.card], "coordinator")  # the worst case: the coordinator is known
        policy = Policy(unattended=True, persons=1, features=(AGE, PULSE))
        if online:
            site = OnlineSite(north, book, lambda r: Sketch.from_data(r.plan, X), policy=policy)
            answer = Message.read(site.answer(ask(round_, "keys", lead, {})), north.card)
            assert (answer.step, answer.body) == ("refused", {"word": "unknown"})
        else:
            from hushtable_federation.reply import Reply

            reply = Reply(round_, north, book, policy=policy)
            with pytest.raises(RoundError, match="1 of 201 sites are known here"):
                send(reply, Sketch.from_data(plan, X))
        assert book.answers() == []
        assert book.known("site") == {}


def test_a_known_peer_or_a_stranger_as_coordinator(tmp_path):
    """H2_role: anyone who opened a round was answered."""
    those = Consortium(tmp_path, 3)
    at = {"at": now(), "deadline": now() + timedelta(days=1)}
    Online(those, those.open(**at)).run()
    for keys in (those.sites["s02"].keys, Keys.generate("ministry")):
        round_ = those.open(keys=keys, epsilon=0.5, title=keys.card.name, **at)
        agent = Online(those, round_).agents["s00"]
        answer = Message.read(
            agent.answer(ask(round_, "keys", keys, {})), those.sites["s00"].keys.card
        )
        assert answer.step == "refused"
        assert answer.body["word"] in ("unknown", "policy")
    those.close()


def two_lists(n, least, twice):
    """Whether two different lists of survivors can each find ``least`` signatures.

    By trying all: each of n sites signs one list or none, ``twice`` of them sign both.
    """
    both = set(range(twice))
    sizes = range(least, n + 1)
    for first in itertools.chain.from_iterable(
        itertools.combinations(range(n), size) for size in sizes
    ):
        rest = (set(range(n)) - set(first)) | both
        if len(rest) >= least:
            return True
    return False


@pytest.mark.parametrize("n", range(2, 9))
def test_no_coordinator_unmasks_a_single_site(n):
    """C_split: a coordinator that is a site showed two halves two lists, and got both secrets.

    The rule, 2 least > n + c (+ 1 if the coordinator is a site), is tried against all ways of
    splitting the sites, for every number of colluders.
    """
    lead = Keys.generate("lead")
    plan = Plan.draw(Schema([AGE]), random_state=0, n_tables=2, n_cells=8, min_depth=1, max_depth=2)
    for own in (False, True):
        cards = [Keys.generate(f"s{i}").card for i in range(n - own)]
        cards += [lead.card] if own else []
        for least, c in itertools.product(range(2, n + 1), range(n)):
            if least - 1 - c < 1:
                continue  # no noise is left to count on
            unmasks = two_lists(n, least, min(c + own, n))
            # With all sites needed there is one list alone; no one drops out of it.
            with contextlib.suppress(FileError):
                opened = False
                Round.open(
                    plan, cards, lead, epsilon=1.0, deadline=now() + timedelta(days=1),
                    least=least, colluders=c,
                )  # fmt: skip
                opened = True
            assert opened == (not unmasks), (n, least, c, own)


def test_what_a_single_site_would_be_worth():
    """C_amp: unmasked alone, a part of the noise protects the less the more sites there are."""
    lead, sites = Keys.generate("lead"), [Keys.generate(f"s{i}").card for i in range(5)]
    plan = Plan.draw(Schema([AGE]), random_state=0, n_tables=2, n_cells=8, min_depth=1, max_depth=2)
    terms = {"epsilon": 1.0, "deadline": now() + timedelta(days=1)}
    with pytest.raises(FileError, match="the coordinator is also a site: needs 4 or more"):
        Round.open(plan, [*sites[1:], lead.card], lead, least=3, **terms)
    round_ = Round.open(plan, [*sites[1:], lead.card], lead, least=4, **terms)
    whole = round_.site_scale * math.sqrt(round_.terms.k_min)
    assert round_.site_scale == pytest.approx(whole / math.sqrt(3))


def test_hostile_requests_are_answered_in_one_word(clinics):
    """No request makes a site say more than a word, or raise."""
    agent, round_ = clinics.agent("s0"), clinics.open()
    good = ask(round_, "shares", clinics.lead, {})
    stranger = Keys.generate("lead")
    for request in (
        b"", b"\x00" * 100, good[:-1], good + b"x",
        ask(round_, "shares", stranger, {}), ask(round_, "unmask", clinics.lead, {"sites": 3}),
        ask(round_, "survivors", clinics.lead, {"sites": {"s0": "zz"}}),
        ask(round_, "nothing", clinics.lead, {}),
    ):  # fmt: skip
        answer = Message.read(agent.answer(request), clinics.keys["s0"].card)
        assert answer.step == "refused"
        assert set(answer.body) == {"word"}
        assert answer.body["word"] in set(Refusal)


def test_a_log_that_cannot_be_written_changes_no_answer(clinics, caplog):
    (clinics.folder / "s0.log").mkdir()
    answer = clinics.agent("s0").answer(b"nonsense")
    assert Message.read(answer, clinics.keys["s0"].card).body == {"word": "request"}
    assert "s0.log cannot be written" in caplog.text


def test_the_state_that_a_coordinator_keeps_has_words_only(clinics):
    """A site that says more than a word is noted as garbled, its words nowhere."""
    keys = clinics.keys["s0"]
    round_ = clinics.open()
    body = {"word": "row 17: Ann Lee", "reason": "Ann Lee"}
    sites = {name: clinics.agent(name).answer for name in clinics.keys}
    sites["s0"] = lambda request: Message.make(round_, "refused", keys, body).content
    secure_sum = SecureSum(round_, clinics.lead, Memory(sites))
    secure_sum.run()
    assert secure_sum.lost == {"s0": "keys: garbled"}
    assert "Ann" not in json.dumps([secure_sum.lost, secure_sum.reached])


def test_the_page_of_rounds_has_each_word_and_their_version():
    page = (DOCS / "explanation/threats.md").read_text(encoding="utf-8")
    assert f"This is version {VERSION} of the list" in page
    section = page[page.index("## Refusals") : page.index("### What a refusal tells")]
    listed = re.findall(r"`([a-z]+)`", "".join(re.findall(r"^\| (`.*?) \|", section, re.M)))
    assert sorted(listed) == sorted(Refusal)
