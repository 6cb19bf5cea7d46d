"""Attacks on the shares of a round, each a test: who lies, what it costs, and who is named.

A round with a liar ends in the exact sum or in none; a site alone is named only if it is proved to
have lied, and of two sites of which either may have, both are named.
"""

import contextlib
import json
import os
import random
import secrets
import sqlite3
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from hushtable.errors import RoundError
from hushtable_federation.book.book import Book
from hushtable_federation.clock import CLOCKS, forgotten
from hushtable_federation.protocol import masks
from hushtable_federation.protocol.messages import Message, ask
from round_helpers import T0, Consortium, Online, signed_anew, total_of

N = 10
NAMES = [f"s{i:02d}" for i in range(N)]


@contextlib.contextmanager
def consortium_in_memory(n):
    """Make sites with books in memory where there is such a folder, and noise drawn fast."""
    rng = np.random.default_rng(1)

    def add_noise(counts, mechanism, scale, *, progress=None):
        return counts + np.rint(rng.normal(0.0, scale, len(counts))).astype(np.int64)

    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=memory) as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("hushtable.privacy.mechanisms.add_noise", add_noise)
        patch.setattr("hushtable_federation.clock.read", lambda: T0)
        made = Consortium(Path(folder), n, cap=20.0, epsilon=0.02)
        yield made
        made.close()


@pytest.fixture(scope="module")
def those():
    with consortium_in_memory(N) as made:
        yield made


class Hostile(Online):
    """A round in which some sites lie, each in its own way, by the name of a method."""

    def __init__(self, those, round_, lies, lost=None, seed=0):
        super().__init__(those, round_, lost)
        self.lies, self.rng = lies, random.Random(seed)
        gone = set().union(*self.lost.values())
        honest = [name for name in those.sites if name not in lies]
        #: An honest site, which stays if one does.
        self.victim = min(honest, key=lambda name: name in gone)

    def answer(self, name, request):
        """Answer as the site does, or as it lies."""
        if name not in self.lies:
            return super().answer(name, request)
        step = Message.read(request, self.consortium.lead.card).step
        lie = getattr(self, self.lies[name])
        if self.lies[name] in DEALING:
            with lie(name) if step == "shares" else contextlib.nullcontext():
                return super().answer(name, request)
        answer = super().answer(name, request)
        if answer is None or step not in ("survivors", "unmask"):
            return answer
        is_refusal = Message.read(answer, self.card(name)).step != step
        return answer if is_refusal else lie(step, name, answer)

    def card(self, name):
        return self.round.card(name)

    def anew(self, name, answer, body=None, arrays=None):
        keys = self.consortium.sites[name].keys
        return signed_anew(self.round, keys, answer, body, arrays)

    # --- a reader, in what it gives ---------------------------------------------------------------

    def giving(self, step, name, answer, change):
        if step != "unmask":
            return answer
        arrays = dict(Message.read(answer, self.card(name)).arrays)
        for part in ("seeds", "keys"):
            arrays[part] = arrays[part].copy()
            for row in arrays[part]:
                row[:] = np.frombuffer(change(row.tobytes()), np.uint8)
        return self.anew(name, answer, arrays=arrays)

    def zeros(self, *answered):
        return self.giving(*answered, lambda given: bytes(len(given)))

    def random_shares(self, *answered):
        return self.giving(*answered, lambda given: b"\0" + self.rng.randbytes(len(given) - 1))

    def shifted(self, *answered):
        return self.giving(*answered, shifted)

    def too_large(self, *answered):
        return self.giving(*answered, lambda given: b"\xff" * 33 + given[33:])

    # --- a dealer ---------------------------------------------------------------------------------

    def deals_a_higher_degree(self, name):
        share = masks.share
        return mock.patch.object(
            masks, "share", lambda secret, threshold, places: share(secret, threshold + 1, places)
        )

    def deals_another_share(self, name):
        """One of the shares, which it signs, is not on the polynomial."""
        share = masks.share
        victim = self.round.names.index(self.victim)

        def off(secret, threshold, places):
            found = share(secret, threshold, places)
            found[victim] = shifted(found[victim])
            return found

        return mock.patch.object(masks, "share", off)

    def deals_other_secrets(self, name):
        share = masks.share
        return mock.patch.object(
            masks, "share", lambda secret, *others: share(secrets.token_bytes(32), *others)
        )

    def seals_nothing(self, name):
        """The row for one reader does not open."""
        seal, n = masks.seal_row, iter(range(N))
        victim = self.round.names.index(self.victim)

        def spoilt(key, row):
            return seal(secrets.token_bytes(32) if next(n) == victim else key, row)

        return mock.patch.object(masks, "seal_row", spoilt)

    def signs_nothing(self, name):
        """The row for one reader opens, and is not signed."""
        seal, n = masks.seal_row, iter(range(N))
        victim = self.round.names.index(self.victim)

        def unsigned(key, row):
            signature = bytes(64) if next(n) == victim else row.signature
            return seal(key, row._replace(signature=signature))

        return mock.patch.object(masks, "seal_row", unsigned)

    # --- a reader that complains ------------------------------------------------------------------

    def complains(self, step, name, answer):
        read = Message.read(answer, self.card(name))
        body = {"list": read.body["list"], "complaints": [self.victim]}
        made = Message.make(self.round, step, self.consortium.sites[name].keys, body)
        return made.content


def shifted(share):
    """Return another share, with all that follows it unchanged."""
    number = (int.from_bytes(share[:33]) + 1) % masks.PRIME
    return number.to_bytes(33) + share[33:]


GIVING = ("zeros", "random_shares", "shifted", "too_large")
#: The dealer is named.
BROKEN = ("deals_a_higher_degree", "deals_another_share", "deals_other_secrets")
#: One of two did it, and no one alone is named.
DISPUTED = ("seals_nothing", "signs_nothing", "complains")
DEALING = (*BROKEN, "seals_nothing", "signs_nothing")
LIES = (*GIVING, *BROKEN, *DISPUTED)


def ends_well(those, lies, lost=None, least=7, seed=0):
    """Run a round with liars: an exact sum or none, and nobody honest is named alone."""
    round_ = those.open(least=least)
    spent = {name: len(site.book.answers()) for name, site in those.sites.items()}
    online, result = Hostile(those, round_, lies, lost, seed), None
    try:
        result = online.run()
    except RoundError as error:
        online.error = str(error)
    tally = online.sum.tally
    assert set(online.sum.found_out) <= set(lies), (lies, lost, online.sum.found_out)
    assert all(set(pair) & set(lies) for pair in tally.disputed)
    if result is not None:
        np.testing.assert_array_equal(result.counts, total_of(those, round_, tally.listed.sites))
        assert not set(lies.values()) & set(DISPUTED)
    for name, site in those.sites.items():
        assert len(site.book.answers()) - spent[name] <= 1
    online.result = result
    return online


@pytest.mark.parametrize("lost", [{}, {"masked": ["s08"]}])
@pytest.mark.parametrize("lie", LIES)
def test_one_liar(those, lie, lost):
    online = ends_well(those, {"s03": lie}, lost, least=8)
    if lie in GIVING:
        assert online.result is not None
        assert set(online.sum.found_out) == {"s03"}
        assert "did not sign" in online.sum.found_out["s03"]
    elif lie in BROKEN:
        assert set(online.sum.found_out) == {"s03"}
        assert "'s03' dealt shares that do not belong together" in online.error
    else:
        assert online.sum.found_out == {}
        (pair,) = online.sum.tally.disputed
        assert set(pair) == {"s03", online.victim}
        assert f"{pair[0]!r} says that the shares of {pair[1]!r}" in online.error
        assert "One of the two is wrong, or what was passed on" in online.error


@pytest.mark.parametrize("lie", ["deals_other_secrets", "deals_another_share"])
def test_a_dealer_outside_the_sum_is_named_for_its_key(those, lie):
    """It deals shares of another key than the one that the others masked with, and goes."""
    online = ends_well(those, {"s00": lie}, {"masked": ["s00"]})
    assert set(online.sum.found_out) == {"s00"}
    assert online.result is None


def test_as_many_honest_shares_as_needed_are_enough(those):
    """Three of ten give wrong shares, and seven are needed."""
    online = ends_well(those, dict.fromkeys(("s00", "s01", "s02"), "zeros"))
    assert online.result is not None
    assert set(online.sum.found_out) == {"s00", "s01", "s02"}
    online = ends_well(those, dict.fromkeys(("s00", "s01", "s02", "s04"), "zeros"))
    assert "6 sites gave valid shares of 's00', and 7 are needed" in online.error


def test_a_wrong_key_of_a_mask_ends_the_round_and_names_nobody(those):
    """Nobody else has the mask with a site that dealt nothing; the sum shows that it is wrong."""

    def change(step, name, answer):
        if (step, name) != ("unmask", "s03"):
            return answer
        arrays = Message.read(answer, those.sites[name].keys.card).arrays
        pairs = arrays["pairs"] ^ 1
        return signed_anew(round_, those.sites[name].keys, answer, arrays={"pairs": pairs})

    round_ = those.open(least=7)
    online = Online(those, round_, {"shares": ["s09"]}, change)
    with pytest.raises(RoundError, match="the sum is impossible"):
        online.run()
    assert online.sum.found_out == {}


def chances(seed):
    """Draw a round with liars and sites away, of which enough are left."""
    rng = random.Random(seed)
    least = rng.choice([6, 7, 8])
    bad = rng.randint(1, min(3, N - least))
    gone = rng.randint(0, N - least - bad)
    names = rng.sample(NAMES, bad + gone)
    lies = {name: rng.choice(LIES) for name in names[:bad]}
    lost = {}
    for name in names[bad:]:
        lost.setdefault(rng.choice(["shares", "masked", "survivors", "unmask"]), []).append(name)
    return lies, lost, least


@pytest.mark.parametrize("seed", range(4))
def test_liars_and_sites_away(those, seed):
    lies, lost, least = chances(seed)
    ends_well(those, lies, lost, least, seed)


#: HUSHTABLE_LIARS=30 takes minutes.
TENS = int(os.environ.get("HUSHTABLE_LIARS", "8"))


@pytest.mark.slow
@pytest.mark.parametrize("tens", range(1, TENS + 1))
def test_liars_and_sites_away_many_times(tens):
    with consortium_in_memory(N) as those:
        for seed in range(10 * tens + 10, 10 * tens + 20):
            lies, lost, least = chances(seed)
            ends_well(those, lies, lost, least, seed)


# --- thieves of books -------------------------------------------------------------------------


def kept_of(site):
    """Return the raw bytes of a site's book, and what its steps keep."""
    with contextlib.closing(sqlite3.connect(site.book.path)) as db:
        rows = db.execute("select step, kept from steps").fetchall()
    kept = {step: json.loads(text) for step, text in rows}
    return Path(site.book.path).read_bytes(), {s: k for s, k in kept.items() if k and s != "until"}


def stolen_shares(those, site, round_):
    """Return pieces of the shares of others that this site was dealt in a round."""
    found = []
    noted = site.book.step(round_.round_id, "survivors")
    rows = {} if noted is None else noted[2].get("rows", {})
    for dealer, row in rows.items():
        if dealer != site.name:  # in pieces, as the file breaks texts at the ends of its pages
            found += [row[at : at + 32].encode() for at in range(0, len(row) - 32, 32)]
    return found


@pytest.fixture
def seven(tmp_path, monkeypatch):
    monkeypatch.setattr("hushtable_federation.clock.read", lambda: T0)
    made = Consortium(tmp_path, 7, cap=10.0)
    yield made
    made.close()


@pytest.mark.parametrize("helpers", [[], ["s04", "s05"]])
def test_shares_of_others_are_forgotten_after_the_time_of_a_round(seven, monkeypatch, helpers):
    """thief_of_books.py: of as many books as are needed, a site was read that no one stole from.

    Where the coordinator never says that the round has ended, or there was no sum.
    """
    round_ = seven.open(least=4)
    gone = [name for name in seven.sites if name not in helpers]
    online = Online(seven, round_, {"masked": ["s00"], "unmask": gone})
    with pytest.raises(RoundError, match="are needed"):
        online.run()
    thief = seven.sites["s06"]
    pieces = stolen_shares(seven, thief, round_)
    content, _ = kept_of(thief)
    assert len(pieces) >= 4  # what is looked for is there, before
    assert np.mean([piece in content for piece in pieces]) > 0.8
    monkeypatch.setattr("hushtable_federation.clock.read", lambda: forgotten(round_.deadline))
    Book.open(thief.book.path).close()
    assert kept_of(thief)[1]
    monkeypatch.setattr(
        "hushtable_federation.clock.read", lambda: forgotten(round_.deadline) + CLOCKS
    )
    for site in seven.sites.values():
        Book.open(site.book.path).close()  # for whatever reason
        content, kept = kept_of(site)
        assert kept == {}
        assert not any(piece in content for piece in pieces)


@pytest.mark.parametrize("gone", [["s00"], ["s00", "s01", "s02"]])
def test_shares_of_others_are_forgotten_once_they_were_given(seven, gone):
    round_ = seven.open(least=4)
    seen, forget = [], Book.forget_steps

    def watched(book, *arguments, **options):
        seen.extend(stolen_shares(seven, seven.sites[book.site], round_))
        forget(book, *arguments, **options)

    with mock.patch.object(Book, "forget_steps", watched):
        Online(seven, round_, {"masked": gone}).run()
    assert len(seen) > 20
    for name in set(seven.sites) - set(gone):
        content, kept = kept_of(seven.sites[name])
        assert kept == {}
        assert not any(piece in content for piece in seen)


def test_whoever_asks_after_the_end_gets_what_was_answered_and_no_more(seven):
    round_ = seven.open(least=4)
    online = Online(seven, round_)
    online.run()
    agent, before = online.agents["s01"], online.answers("unmask")["s01"]
    assert agent.answer(online.asked("unmask", "s01")) == before
    for request in (online.asked("shares", "s01"), online.asked("masked", "s01")):
        assert agent.answer(request) == online.answers(ask_of(request, seven))["s01"]
    late = ask(round_, "unmask", seven.lead, {"signed": {}})
    assert Message.read(agent.answer(late), round_.card("s01")).body == {"word": "answered"}
    stranger = ask(round_, "end", seven.sites["s02"].keys, {})
    assert Message.read(agent.answer(stranger), round_.card("s01")).body == {"word": "request"}


def ask_of(request, those):
    return Message.read(request, those.lead.card).step


@pytest.mark.parametrize("when", ["unmask", "masked", "shares"])
def test_an_end_that_comes_early_stops_the_round_alone(seven, when):
    """The coordinator stops its own round; no one's masks come off, and nothing is paid twice."""
    round_ = seven.open(least=4)

    def change(step, name, answer):
        if (step, name) == (when, "s01"):
            online.agents["s01"].answer(ask(round_, "end", seven.lead, {}))
        return answer

    online = Online(seven, round_, change=change)
    if when == "unmask":
        online.run()
    else:
        with contextlib.suppress(RoundError):
            online.run()
        assert online.sum.tally.lost.get("s01", "").endswith("time")
    assert len(seven.sites["s01"].book.answers()) == (when != "shares")
