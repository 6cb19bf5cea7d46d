"""What a month takes five hospitals and a coordinator: by files passed on by hand, and in a folder.

    python benchmarks/month.py [--sites 5]

Plays both with the real commands in a temporary folder, and counts commands, files that people pass
on, and calls. Minutes are an assumption, stated below, the same for both; seconds are measured.
"""

import argparse
import contextlib
import io
import itertools
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hushtable.cli import main

#: Minutes of a person.
COMMAND, FILE, CALL_OF_TWO, CALL_OF_ALL = 1.0, 2.0, 5.0, 15.0
SCHEMA = """
[[feature]]
name = "age"
kind = "numeric"
low = 0
high = 120

[[feature]]
name = "pulse"
kind = "numeric"
low = 20
high = 250
"""


@dataclass
class Month:
    """What was done so far."""

    commands: int = 0
    files: int = 0
    calls: int = 0
    calls_of_all: int = 0
    seconds: float = 0.0

    def do(self, command):
        """Run a command that must succeed."""
        self.commands += 1
        start = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()) as said:
            code = main(command.split())
        self.seconds += time.perf_counter() - start
        assert code == 0, (command, said.getvalue())
        return said.getvalue()

    @property
    def minutes(self):
        """Minutes of people."""
        calls = CALL_OF_TWO * self.calls + CALL_OF_ALL * self.calls_of_all
        return COMMAND * self.commands + FILE * self.files + calls


def begin(month, sites):
    """Make keys and rows."""
    rng = np.random.default_rng(0)
    for site in sites:
        month.do(f"round keygen {site} --cap 2 --persons 1")
        rows = np.column_stack([rng.integers(18, 95, 1500), rng.normal(75, 9, 1500).round()])
        text = "\n".join(f"{a:g},{b:g}" for a, b in rows)
        Path(f"{site}.csv").write_text(f"age,pulse\n{text}\n")
    month.do("round keygen lead")
    Path("schema.toml").write_text(SCHEMA)


def draw(month, sites):
    """Draw the plan."""
    month.do(f"plan draw schema.toml --epsilon 1 --expected-rows {1500 * len(sites)} -o plan.hush")


def by_hand(sites):
    """Pass files on: cards, round, submissions, result."""
    month = Month()
    begin(month, sites)
    month.files += len(sites) + len(sites) * len(sites)  # cards to lead, and to each other
    month.calls = len(list(itertools.combinations([*sites, "lead"], 2)))
    draw(month, sites)
    cards = " ".join(f"{site}.card" for site in sites)
    month.do(f"round open plan.hush {cards} --key lead.key --epsilon 1 -o round.hush")
    for site in sites:
        month.files += 2  # the round here, the submission back
        trust = " ".join(f"--trust {one}.card" for one in (*sites, "lead") if one != site)
        month.do(f"round show round.hush --key {site}.key")
        month.do(
            f"round submit round.hush {site}.csv --key {site}.key {trust} --yes -o {site}.sent.hush"
        )
    sent = " ".join(f"{site}.sent.hush" for site in sites)
    month.do(f"round collect round.hush {sent} --key lead.key -o result.hush")
    for site in sites:
        month.files += 1
        month.do(f"round verify result.hush --book {site}.book")
    return month


def in_a_folder(sites):
    """Meet once, then call ``round sync``."""
    month = Month(calls_of_all=1)
    begin(month, sites)
    os.mkdir("meeting")
    os.mkdir("round")
    everybody = ",".join(("lead", *sites))
    for one in ("lead", *sites):
        meet = f"round meet meeting --key {one}.key --coordinator lead"
        month.do(f"{meet} --expect {everybody} --json")
    for one in ("lead", *sites):
        said = month.do(f"round meet meeting --key {one}.key --json")
    code = next((word for word in said.split('"') if word.replace(" ", "").isdigit()), "")
    for one in ("lead", *sites):
        month.do(f"round meet meeting --key {one}.key --code {code.replace(' ', '')} --json")
    draw(month, sites)
    month.do(
        f"round open plan.hush lead.verified --key lead.key --epsilon 1 --least {len(sites) - 1} "
        "-o round.hush"
    )
    month.do("round sync round --key lead.key --post round.hush")
    for site in sites:
        os.mkdir(f"out.{site}")
        month.do(f"round sync round {site}.csv --key {site}.key --yes -o out.{site}")
    month.do("round sync round --key lead.key")
    for site in sites:
        month.do(f"round sync round --key {site}.key -o out.{site}")
    month.do("round sync round --key lead.key")
    for site in sites:
        month.do(f"round sync round --key {site}.key -o out.{site}")
        assert list(Path(f"out.{site}").glob("*.result.hush")), site
    return month


def run(ways, n_sites):
    """Print what each way took."""
    sites = [f"site{i:02d}" for i in range(1, n_sites + 1)]
    print("|  | commands | files passed on | calls | minutes of people | seconds of computers |")
    print("|---|---|---|---|---|---|")
    for words, way in ways.items():
        here = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                month = way(sites)
            finally:
                os.chdir(here)
        calls = month.calls + month.calls_of_all
        print(
            f"| {words} | {month.commands} | {month.files} | {calls} | {month.minutes:.0f} "
            f"| {month.seconds:.0f} |"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sites", type=int, default=5)
    run({"by hand": by_hand, "in a folder": in_a_folder}, parser.parse_args().sites)
