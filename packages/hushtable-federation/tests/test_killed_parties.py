"""Parties of a trial that are killed at 50 random moments, each in a round of its own."""

import contextlib
import multiprocessing
import os
import random
import time
from pathlib import Path

import numpy as np
import pytest

from hushtable_federation.book.book import Book
from hushtable_federation.result import Result
from trial_machine import PARTIES, SITES, at_home, cards_in

pytest.importorskip("opendp")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")]

KILLS = 50
#: Processes that have all that a visit imports, so that a kill falls into the visit itself.
PRELOADED = ["hushtable.cli", "hushtable_federation.cli.sync", "opendp.prelude"]


def visit(settings):
    """Make a visit as ``round sync`` does, in a process of its own."""
    from hushtable.cli import main

    with open(os.devnull, "w") as file, contextlib.redirect_stdout(file):
        code = main(["round", "sync", "--site", str(settings), "--unattended", "--json"])
    os._exit(code)


class Trial:
    """A federation in a folder of this machine, whose parties visit in processes of their own."""

    def __init__(self, folder, run):
        self.folder = folder / "trial"
        self.settings = at_home(self.folder, run)
        self.run = run
        self.key = ("--key", self.folder / "lead" / "lead.key")
        schema, self.plan = self.folder / "lead" / "schema.toml", folder / "plan.hush"
        drawn = ("--tables", 20, "-o", self.plan)
        assert run("plan", "draw", schema, *drawn).code == 0
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(PRELOADED)

    def open(self, k):
        """Open a round, post it, and return its id."""
        asked = self.folder / f"{k}.hush"
        terms = ("--epsilon", 0.02, "--least", 2, "-o", asked)
        cards = cards_in(self.folder)
        opened = self.run("round", "open", self.plan, *cards, *self.key, *terms, "--json")
        assert opened.code == 0, opened
        # A folder of its own for each: visits then take the same time in the last as in the first.
        box = self.folder / f"round{k}"
        box.mkdir(mode=0o700)
        for path in self.settings.values():
            lines = [ln for ln in path.read_text().splitlines() if not ln.startswith("folder")]
            path.write_text("\n".join([*lines, f"folder = {str(box)!r}"]) + "\n")
        posted = self.run("round", "sync", "--site", self.settings["lead"], "--post", asked)
        assert posted.code == 0, posted
        return opened.json["round_id"]

    def call(self, name):
        """Make a visit in this process; return its exit code and how the round stands."""
        made = self.run("round", "sync", "--site", self.settings[name], "--unattended", "--json")
        assert made.out, made
        return made.code, made.json["rounds"][0]

    def killed(self, name, after):
        """Make a visit in a process that is killed after so many seconds.

        Returns whether it was, and the seconds that the visit took if it was not.
        """
        began = time.perf_counter()
        process = self._context.Process(target=visit, args=(self.settings[name],))
        process.start()
        process.join(after)
        took = time.perf_counter() - began
        if process.is_alive():
            process.kill()
            process.join()
        assert process.exitcode in (-9, 0), process.exitcode
        return process.exitcode == -9, took


@pytest.fixture
def trial(tmp_path, run):
    return Trial(tmp_path, run)


def test_killed_at_random_moments(trial, capsys):
    """In each round one party is killed, before, in or after what it does at each of its visits."""
    rng, k, moments = random.Random(43), 0, []
    trial.open("warm")
    usual = {name: trial.killed(name, 60.0)[1] for name in PARTIES}
    while len(moments) < KILLS:
        k += 1
        assert k < KILLS, f"only {len(moments)} kills in {k} rounds: {moments}"
        victim = PARTIES[k % len(PARTIES)]
        asked, states = trial.open(k), {}
        for visits in range(12):
            codes = {}
            for name in rng.sample(PARTIES, len(PARTIES)):
                if name == victim and states.get(name, {}).get("state") != "done":
                    # A visit that does something takes longer than one that does nothing.
                    moment = rng.uniform(0.0, 1.3 * usual[name])
                    hit, took = trial.killed(name, moment)
                    if hit:
                        moments.append(f"{victim}, visit {visits}, {moment:.3f} s")
                        with capsys.disabled():  # of a test of minutes, as far as it got
                            print(f"\n{len(moments)}: {moments[-1]}", end="", flush=True)
                    else:
                        usual[name] = took
                codes[name], states[name] = trial.call(name)
            if all(one["state"] == "done" for one in states.values()):
                break
        else:
            pytest.fail(f"{victim}: {moments}: {states}")
        assert set(codes.values()) == {0}
        check_sum(trial, asked)
    with capsys.disabled():
        print(f"\n{len(moments)} kills in {k} rounds", flush=True)


def check_sum(trial, asked):
    """Check the result against all books: the sum to the bit, and each charged once."""
    results = {
        name: Path(trial.folder / name / f"{asked[:12]}.result.hush").read_bytes()
        for name in PARTIES
    }
    assert len(set(results.values())) == 1
    result = Result.load(trial.folder / "lead" / f"{asked[:12]}.result.hush")
    assert list(result.sites) == list(SITES)
    total = np.zeros_like(result.counts.counts)
    for name in SITES:
        book = trial.folder / name / f"{name}.book"
        with Book.open(book) as opened:
            mine = [one for one in opened.answers() if one.round_id == asked]
            assert len(mine) == 1
            total += mine[0].sent
        verified = trial.run("round", "verify", trial.folder / name / f"{asked[:12]}.result.hush",
                             "--book", book)  # fmt: skip
        assert verified.code == 0, verified
    np.testing.assert_array_equal(total, result.counts.counts)
