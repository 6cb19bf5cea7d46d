"""Rounds in a folder where whatever can go wrong does: deaths, delays, damage, forgeries, floods.

All of a run follows from its seed. A party that dies loses what it held in memory, at any write;
its next visit begins from its files. A file becomes visible to each reader at a time of its own.
An outsider adds files by the hundred, copies of what is there, and subfolders with parties' names.
"""

import contextlib
import functools
import json
import shutil
from collections import Counter
from datetime import timedelta
from functools import partial

import numpy as np
import pytest

from hushtable import files
from hushtable.errors import HushTableError, RoundError
from hushtable_federation import clock
from hushtable_federation.book.book import Book
from hushtable_federation.book.chain import Database
from hushtable_federation.clock import keys_until
from hushtable_federation.folder import mailbox, round_folder
from hushtable_federation.folder.mailbox import Store, name_of, parsed
from hushtable_federation.folder.round_folder import ASKED, REQUESTS, RoundFolder, post_round
from hushtable_federation.keys import Card, Keys
from hushtable_federation.online.site import OnlineSite
from hushtable_federation.protocol.messages import Message
from hushtable_federation.result import Result
from hushtable_federation.terms import Terms
from hushtable_federation.visits import CoordinatorVisit, SiteVisit
from round_helpers import DEADLINE, T0, UNATTENDED, Consortium

FEWEST, SITES = 3, 20
#: Files of one step and sender that an outsider adds at a time, at least and at most.
FLOOD = 100, 400
#: Sweeps over the parties while things go wrong. After that: a party before the one it waits
#: for does its part a sweep later. So even a round of which nothing is left takes ten: sites
#: draw keys, the coordinator hands them on, sites mask, it lists, sites sign, it asks, sites
#: unmask, it adds up, sites keep the result, nothing moves. A file that was lost may cost one more
#: each way.
WILD, QUIET = 12, 12
STEPS = "keys", "shares", "masked", "survivors", "unmask"


def _otherwise(content, more=0):
    """Return a message written otherwise: what no signature covers can be changed."""
    size = int.from_bytes(content[:8], "little")
    with contextlib.suppress(ValueError):
        header = json.dumps(json.loads(content[8 : 8 + size])).encode() + b" " * (8 * more)
        return len(header).to_bytes(8, "little") + header + content[8 + size :]
    return content + b"%d" % more


class Killed(BaseException):
    """The process ends here."""


class Doom:
    """Ends a process at a write."""

    def __init__(self):
        self.left, self.deaths = 0, 0

    def point(self):
        """Come to a write."""
        if self.left:
            self.left -= 1
            if not self.left:
                self.deaths += 1
                raise Killed


def claims_of(path):
    """Return what the name of a file claims, wherever it lies."""
    return parsed(path.rpartition("/")[2])


class Box:
    """The files of a folder by their paths, and from when on each reader sees them.

    ``parties`` are those that read. Of their names, ``own`` are subfolders that the owner of
    the folder has made, and ``strangers`` those that an outsider has made first.
    """

    def __init__(self, rng, doom, parties, own):
        self.rng, self.doom, self.tick, self.calm = rng, doom, 0, False
        self.files, self.late, self.cut, self.writes = {}, {}, {}, 0
        self.parties, self.own, self.strangers, self.ours = parties, own, set(), set()

    def put(self, name, content, writer=""):
        """Write a file; others see it at once, later, or cut off at first."""
        self.files[name] = content
        self.writes += 1
        if writer:
            self.ours.add(name)
        for reader in () if self.calm else self.parties:
            chance = self.rng.random() * (3 if reader == writer else 1)
            until = self.tick + int(self.rng.integers(1, 4))
            if chance < 0.12:
                self.late[reader, name] = until
            elif chance < 0.15:
                self.cut[reader, name] = until

    def seen(self, reader, name):
        """Return the content as a reader sees it, or None."""
        if name not in self.files or self.late.get((reader, name), 0) > self.tick:
            return None
        content = self.files[name]
        return content[:50] if self.cut.get((reader, name), 0) > self.tick else content

    def settle(self):
        """Show everyone everything from now on."""
        self.calm = True
        self.late.clear(), self.cut.clear()


class View:
    """A folder as one party reaches it; see `hushtable_federation.folder.mailbox.Place`."""

    where = "box"

    def __init__(self, box, reader):
        self.box, self.reader = box, reader

    def entries(self, folder=""):
        """List what is visible, in any order."""
        names = [name for name in self.box.files if self.box.seen(self.reader, name) is not None]
        self.box.rng.shuffle(names)
        paths = [name.rpartition("/") for name in names]
        found = [(name, "file") for of, _, name in paths if of == folder]
        if not folder:
            found += [(of, "directory") for of in dict.fromkeys(of for of, _, _ in paths if of)]
        return found

    def subfolder(self, name):
        """Say whose a subfolder is."""
        return True if name in self.box.own else False if name in self.box.strangers else None

    def load(self, name, most):
        """Return what is visible of a file."""
        content = self.box.seen(self.reader, name)
        if content is None:
            raise FileNotFoundError(name)
        return content if len(content) <= most else None

    def save(self, name, content):
        """Write a file, or die before or after it."""
        self.box.doom.point()
        self.box.put(name, content, self.reader)
        self.box.doom.point()


class World:
    """What many runs share: keys, a plan, rows counted once, and books that have answered nothing.

    ``patch`` is pytest's: writes become points of death, and nothing waits for a disk.
    """

    def __init__(self, folder, patch):
        self.those, self.folder, self.doom = Consortium(folder, SITES, cap=20.0), folder, Doom()
        for site in self.those.sites.values():
            counted = site.sketch(self.those.plan)
            site.sketch = lambda plan, counted=counted: counted
            site.book.close()
            shutil.copy(site.book.path, f"{site.book.path}.new")
        self.strangers = {name: Keys.generate(name) for name in ("lead", *self.those.sites)}
        self.before = {}
        self.at = T0
        patch.setattr(clock, "read", lambda: self.at)
        patch.setattr(Terms, "scale", functools.lru_cache(Terms.scale))
        patch.setattr("os.fsync", lambda _: None)
        # The same bytes are read by twenty parties, again and again.
        for where, name in ((Card, "_verifies"), (files, "unpack"),
                            (round_folder, "is_signed"), (mailbox, "parsed"),
                            (round_folder, "parsed_name")):  # fmt: skip
            patch.setattr(where, name, functools.lru_cache(1 << 15)(getattr(where, name)))
        patch.setattr(Database, "writing", self._doomed(Database.writing))
        patch.setattr(files, "replacing", self._doomed(files.replacing))
        run = Database.run
        slow = "pragma synchronous = extra"
        patch.setattr(
            Database, "run", lambda db, s, v=(): run(db, s.replace(slow, f"{slow[:-5]}off"), v)
        )

    def _doomed(self, write):
        @contextlib.contextmanager
        def doomed(*arguments, **options):
            self.doom.point()
            with write(*arguments, **options) as given:
                yield given
            self.doom.point()

        return doomed

    def run(self, seed):
        """Return the run of a seed, over."""
        one = Run(self, seed)
        one.go()
        # Of books that the next run does not have: their heads would rightly stop it.
        self.before = {
            path: one.box.files[path]
            for path in sorted(one.box.ours)
            if claims_of(path).step != "head"
        }
        return one


class Run:
    """One round, from its first visit until nothing moves any more."""

    def __init__(self, world, seed):
        self.world, self.those = world, world.those
        self.rng, self.seed = np.random.default_rng(seed), seed
        self.names = list(self.those.sites)[: self.rng.integers(FEWEST, SITES + 1)]
        k = len(self.names)
        self.least = int(self.rng.integers(k // 2 + 1, k + 1))
        cards = [self.those.sites[name].keys.card for name in self.names]
        self.round = self.those.open(least=self.least, title=f"run {seed}", cards=cards)
        self.folder = world.folder / f"run{seed}"
        self.folder.mkdir()
        parties = ["lead", *self.names]
        own = {name for name in parties if self.rng.random() < 0.5}
        self.box = Box(self.rng, world.doom, parties, own if self.rng.random() < 0.5 else set())
        world.at, world.doom.left = T0, 0
        for name in self.names:
            shutil.copy(f"{self.those.sites[name].book.path}.new", self.book(name))
        away = self.rng.permutation(self.names)[: self.rng.integers(0, k - self.least + 1)]
        self.away = {str(name): int(self.rng.integers(0, 5)) for name in away}
        self.lose_journal, self.unhealed = self.rng.random() < 0.3, self.rng.random() < 0.1
        self.amends = int(self.rng.integers(0, 6)) if self.rng.random() < 0.25 else -1
        self.over = int(self.rng.integers(4, WILD))
        self.half = int(self.rng.integers(2, self.over))
        self.lead, self.refused, self.words, self.counts = None, "", [], Counter()
        self.found_out, self.states, self.said = set(), {}, set()
        post_round(Store(View(self.box, "lead")), self.round)

    def book(self, name):
        return self.folder / f"{name}.book"

    @property
    def gone(self):
        return {name for name, tick in self.away.items() if tick <= self.box.tick}

    @property
    def journal(self):
        return self.folder / "journal.json"

    # --- visits -------------------------------------------------------------------------------

    def visit(self, name, doomed):
        """Have a party visit, perhaps for its last time in this process."""
        doom = self.world.doom
        doom.left = int(self.rng.integers(1, 25)) if doomed else 0
        self.counts["visits"] += 1
        try:
            posts = RoundFolder(self.round, Store(View(self.box, name), name))
            done = self._lead(posts) if name == "lead" else self._site(name, posts)
        except Killed:
            self.counts["deaths"] += 1
            return
        finally:
            doom.left = 0
        self.states[name] = done.state
        if name == "lead":
            self.lead = done
        self.said |= set(done.words)
        self.found_out |= set(done.found_out)

    def _site(self, name, posts):
        site = self.those.sites[name]
        with Book.open(self.book(name), site.keys.card) as book:
            online = OnlineSite(site.keys, book, site.count, policy=UNATTENDED)
            begin, output = partial(online.begin, posts.round), self.folder / f"{name}.hush"
            return SiteVisit(posts, site.keys.card, book, begin, online, output).run()

    def _lead(self, posts):
        if self.lose_journal and not self.box.calm and self.rng.random() < 0.3:
            self.journal.unlink(missing_ok=True)
            # No one moves to another machine before the folder shows what the first one wrote.
            for hidden in (self.box.late, self.box.cut):
                for reader, file in list(hidden):
                    if reader == "lead" and claims_of(file).step.startswith("ask-"):
                        del hidden[reader, file]
        output = self.folder / "lead.hush"
        return CoordinatorVisit(posts, self.those.lead, self.journal, output).run()

    # --- a run --------------------------------------------------------------------------------

    def go(self):
        """Sweep over the parties, wildly and then quietly."""
        for sweep in range(WILD):
            self.box.tick = sweep
            self._time(sweep)
            for name in self._order():
                if self.rng.random() < 0.75 and self.states.get(name) != "done":
                    self.visit(name, self.rng.random() < 0.3)
                if self.rng.random() < 0.15:
                    self._mischief()
            if self.lead is not None and self.lead.state == "done" and sweep > 4:
                break
        self.box.tick = WILD
        self.world.at = max(self.world.at, DEADLINE + timedelta(days=30))
        self.box.settle()
        for self.sweeps in range(1, QUIET + 1):
            before = self.box.writes, self.states.copy()
            for name in self._order():
                if self.states.get(name) != "done":
                    self.visit(name, False)
            self.quiet = before == (self.box.writes, self.states)
            if self.quiet:
                break
        self.counts[f"ended in {self.sweeps} quiet sweeps"] += 1
        self.end = self.lead

    def _order(self):
        here = [name for name in ("lead", *self.names) if name not in self.gone]
        return [str(name) for name in self.rng.permutation(here)]

    def _time(self, sweep):
        if sweep == self.half:
            self.world.at = keys_until(self.round.opened, self.round.deadline) + timedelta(hours=1)
        if sweep == self.over:
            self.world.at = DEADLINE + timedelta(hours=1)
        if sweep == self.amends:
            posts = RoundFolder(self.round, Store(View(self.box, "lead"), "lead"))
            how = {"deadline": DEADLINE + timedelta(days=3)}
            if self.rng.random() < 0.5 and self.least < len(self.names):
                how["drop"] = (str(self.rng.choice(self.names)),)
            if posts.asks(*ASKED):
                with pytest.raises(RoundError, match="already decided"):
                    posts.amend(self.those.lead, **how)
            else:
                posts.amend(self.those.lead, **how)
            self.visit("lead", False)

    # --- what strangers and disks do ----------------------------------------------------------

    def _mischief(self):
        kinds = (
            self._cut_off, self._copied, self._replayed, self._forged, self._foreign, self._form,
            self._flooded, self._flooded_with_copies, self._made_subfolder, self._moved,
        )  # fmt: skip
        kind = kinds[self.rng.integers(len(kinds))]
        kind()
        self.counts[kind.__name__.strip("_")] += 1

    def _any(self, files_=None):
        names = sorted(self.box.ours if files_ is None else files_)
        return names[self.rng.integers(len(names))]

    def _cut_off(self):
        name = self._any()
        claims = claims_of(name)
        ours = claims.step == "round" or (claims.sender in self.away and not self.unhealed)
        if not ours and not (claims.step.startswith("ask-") and self.lose_journal):
            self.box.files[name] = self.box.files[name][: self.rng.integers(0, 200)]

    def _put(self, step, sender, content):
        name = name_of(self.round.round_id, step, sender, content)
        path = self._path(name)
        if path not in self.box.files:  # an outsider changes nothing that is there
            self.box.put(path, content)
            self.counts["files of the outsider"] += 1

    def _path(self, name):
        """Return where an outsider puts a file: not into the subfolder of a party."""
        folders = ["", "", "", "a stranger", *sorted(self.box.strangers)]
        folder = folders[self.rng.integers(len(folders))]
        return f"{folder}/{name}" if folder else name

    def _flooded(self):
        """Junk of one step and sender: some of it sorts before what it is to hide."""
        step, sender = self._target()
        for i in range(self.rng.integers(*FLOOD)):
            self._put(step, sender, b"%d of run %d" % (i, self.seed))

    def _flooded_with_copies(self):
        """What others signed, each time in another form, as if it were of one step and sender."""
        step, sender = self._target()
        content = self.box.files[self._any()]
        for i in range(int(self.rng.integers(*FLOOD)) // 4):
            self._put(step, sender, _otherwise(content, i))

    def _target(self):
        asks = (f"ask-{step}" for step in REQUESTS)
        steps = *STEPS, *asks, "amend", "result", "head", "refused"
        step = str(self.rng.choice(steps))
        sender = "lead" if step in ("amend", "result") else str(self.rng.choice(self.names))
        return step, sender

    def _made_subfolder(self):
        """One with a party's name, unless that has one: what lies in it can be removed again."""
        name = str(self.rng.choice(self.box.parties))
        if name not in self.box.own:
            self.box.strangers.add(name)
        for path in [one for one in self.box.files if one.startswith("s00/")]:
            if "s00" in self.box.strangers and path not in self.box.ours:
                del self.box.files[path]

    def _moved(self):
        """A whole copy, or a half one, of a file in a subfolder."""
        path = self._any()
        content = self.box.files[path]
        name = path.rpartition("/")[2]
        there = f"{self.rng.choice(['a stranger', *sorted(self.box.strangers)])}/{name}"
        if there not in self.box.files:
            self.box.put(there, content[: self.rng.choice([len(content), len(content) // 2])])

    def _copied(self):
        """The same file, as if it were of another step or party."""
        one, other = claims_of(self._any()), self._any()
        self._put(one.step, one.sender, self.box.files[other])

    def _replayed(self):
        """A file of the round before, as if it were of this one."""
        if self.world.before:
            name = self._any(self.world.before)
            claims = claims_of(name)
            if claims.sender in self.names:
                self._put(claims.step, claims.sender, self.world.before[name])

    def _forged(self):
        sender = str(self.rng.choice(["lead", *self.names]))
        keys = self.world.strangers[sender]
        step = str(self.rng.choice(STEPS))
        body = {"sites": {}, "complaints": [sender], "word": "policy"}
        content = Message.make(self.round, step, keys, body).content
        if sender == "lead":
            amend = {"number": 1, "deadline": "2027-03-01T12:00:00Z", "dropped": [], "why": ""}
            self._put("amend", sender, Message.make(self.round, "amend", keys, amend).content)
            self._put(f"ask-{step}", str(self.rng.choice(self.names)), content)
        else:
            self._put(step, sender, content)

    def _foreign(self):
        self._put("masked", str(self.rng.choice(self.names)), self.rng.bytes(99))

    def _form(self):
        """The same message, written otherwise: what no signature covers can be changed."""
        name = self._any()
        claims = claims_of(name)
        self._put(claims.step, claims.sender, _otherwise(self.box.files[name]))

    # --- what has to hold ---------------------------------------------------------------------

    def check(self):
        """Check all that has to hold; return the outcome in a word."""
        assert self.quiet, f"it does not come to an end: {self.end}, {self.states}"
        assert not self.found_out, self.found_out
        blamed = [one for one in self.said if "two different" in one or "does not know" in one]
        assert not blamed, blamed
        sent = self._books()
        self._one_answer_a_step()
        state = self.end.state
        alive = set(self.names) - set(self.away)
        if state == "done":
            self._sum(sent, alive)
            whole = len(Result.load(self.folder / "lead.hush").sites) == len(self.names)
            return "sum of all" if whole else "sum without some"
        listed = self._listed()
        if state in ("over", "failed"):
            assert not listed
            assert len(self._present()) < self.least, self.end
            return "too few before the deadline"
        assert state in ("waiting", "act")
        assert listed
        assert self.end.waits_for
        assert set(self.end.waits_for) <= set(self.away), self.end
        if "are missing from the folder" in " ".join(self.end.words):
            assert self.unhealed
            return "a file of a party that is away is damaged"
        if len(alive & set(listed)) >= self.least:
            # Of a site that drew a key and dealt nothing, all in the sum give the key of a mask.
            assert self._undealt()
            assert set(listed) - alive
            return "not all after the list"
        return "too few after the list"

    def _books(self):
        """Return what each site sent, by its book, which was charged for it once."""
        sent = {}
        for name in self.names:
            with Book.open(self.book(name)) as book:
                given = book.answers()
                assert len(given) <= 1
                assert len(book.spent("all rows")) == len(given)
                if given:
                    sent[name] = given[0].sent
        return sent

    def _one_answer_a_step(self):
        """No party signed two different things in a step."""
        said, cards = {}, {card.name: card for card in self.those.cards}
        for file, content in self.box.files.items():
            claims = claims_of(file)
            card = cards.get(claims.sender)
            if card is None or claims.step.startswith("ask-"):
                continue
            with contextlib.suppress(HushTableError):
                read = files.unpack(content, file)
                if read.manifest.get("round_id") != self.round.round_id or not card.signed(read):
                    continue
                step = read.manifest.get("step", read.kind)
                if step != "refused":
                    assert said.setdefault((card.name, step), read.digest) == read.digest, file
        assert said

    def _sum(self, sent, alive):
        result = Result.load(self.folder / "lead.hush")
        result.check_round(self.round)
        assert len(result.sites) >= self.least
        assert (result.counts.counts == sum(sent[name] for name in result.sites)).all()
        for name in sorted(alive):
            is_in = name == "lead" or name in Result.load(self.folder / "lead.hush").sites
            ended = "done" if is_in else "left-out"
            assert self.states[name] == ended, (name, self.states[name])
            with Book.open(self.book(name)) as book:
                assert book.verified(result.seal.digest)

    def _decided(self):
        nothing = {"keys": {}, "listed": {"sites": {}, "others": {}}}
        return json.loads(self.journal.read_text()) if self.journal.exists() else nothing

    def _listed(self):
        return self._decided()["listed"]["sites"]

    def _undealt(self):
        decided = self._decided()
        listed = decided["listed"]
        # A journal that was lost is read from the requests, which may not state the keys.
        keys = decided["keys"] or self.names
        return set(keys) - set(listed["sites"]) - set(listed["others"])

    def _present(self):
        """Return of whom all that a round begins with is there, whole and in time."""
        there = {step: set() for step in ("shares", "masked")}
        for file, content in self.box.files.items():
            claims = claims_of(file)
            if claims.step in there and claims.sender in self.names:
                with contextlib.suppress(HushTableError):
                    read = files.unpack(content, file)
                    if read.manifest.get("round_id") == self.round.round_id and self.those.sites[
                        claims.sender
                    ].keys.card.signed(read):
                        there[claims.step].add(claims.sender)
        dropped = RoundFolder(self.round, Store(View(self.box, "lead"))).amendment.dropped
        return there["shares"] & there["masked"] - set(dropped)
