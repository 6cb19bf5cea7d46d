"""Measure how long people wait in five hospitals' month: with mailed files, and in a folder.

The case runs both with the real commands in a temporary folder, and counts commands, files that
people pass on, and calls. Minutes are an assumption, stated below and the same for both; seconds
are measured.
"""

import contextlib
import io
import itertools
import json
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hushtable.cli import main
from hushtable_bench.runner import CaseRun

#: Minutes of a person.
COMMAND, FILE, CALL_OF_TWO, CALL_OF_ALL = 1.0, 2.0, 5.0, 15.0
MONTH_SCHEMA = """
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
    """Counts in a month so far."""

    commands: int = 0
    files: int = 0
    calls: int = 0
    calls_of_all: int = 0
    seconds: float = 0.0

    def do(self, command):
        """Run a command that must succeed."""
        self.commands += 1
        start = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()) as record:
            code = main(command.split())
        self.seconds += time.perf_counter() - start
        assert code == 0, (command, record.getvalue())
        return record.getvalue()

    @property
    def all_calls(self):
        """Calls between two parties, and calls of all parties."""
        return self.calls + self.calls_of_all

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
    Path("schema.toml").write_text(MONTH_SCHEMA)


def draw(month, sites):
    """Draw the plan."""
    month.do(f"plan draw schema.toml --epsilon 1 --expected-rows {1500 * len(sites)} -o plan.hush")


def later_calls(sites):
    """Return the callers after all first visits, in turn: sites for counts, masks, and the result.

    The last site sent its counts with its first visit, because all keys were there.
    """
    return [*sites[:-1], "lead", *sites, "lead", *sites]


def by_mail(sites):
    """Mail files: each party has its own folder, and sends new files in it to all others."""
    month = Month()
    begin(month, sites)
    month.files += len(sites) + len(sites) * len(sites)  # cards to lead, and to each other
    everyone = ("lead", *sites)
    month.calls = len(list(itertools.combinations(everyone, 2)))
    draw(month, sites)
    cards = " ".join(f"{site}.card" for site in sites)
    month.do(f"round open plan.hush {cards} --key lead.key --epsilon 1 -o round.hush")
    for one in everyone:
        os.mkdir(f"box.{one}")
        os.mkdir(f"out.{one}")

    def call(one, more=""):
        visit = f"round sync box.{one} --key {one}.key -o out.{one} --json {more}"
        new = json.loads(month.do(visit))["new_files"]
        for other in sorted({*everyone} - {one}):
            month.files += bool(new)  # all in one mail
            for name in new:
                shutil.copy(f"box.{one}/{name}", f"box.{other}")

    call("lead", "--post round.hush")
    for site in sites:
        trust = " ".join(f"--trust {other}.card" for other in everyone if other != site)
        month.do(f"round show round.hush --key {site}.key")
        call(site, f"{site}.csv {trust} --yes")
    for one in later_calls(sites):
        call(one)
    for site in sites:
        assert list(Path(f"out.{site}").glob("*.result.hush")), site
    return month


def in_a_folder(sites):
    """Meet once, then call ``round sync``."""
    month = Month(calls_of_all=1)
    begin(month, sites)
    os.mkdir("meeting")
    os.mkdir("round")
    everyone = ",".join(("lead", *sites))
    for one in ("lead", *sites):
        meet = f"round meet meeting --key {one}.key --coordinator lead"
        month.do(f"{meet} --expect {everyone} --json")
    for one in ("lead", *sites):
        record = month.do(f"round meet meeting --key {one}.key --json")
    code = next((word for word in record.split('"') if word.replace(" ", "").isdigit()), "")
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
    for one in later_calls(sites):
        output = "" if one == "lead" else f" -o out.{one}"
        month.do(f"round sync round --key {one}.key{output}")
    for site in sites:
        assert list(Path(f"out.{site}").glob("*.result.hush")), site
    return month


# --- the runs -------------------------------------------------------------------------------------


def month(run: CaseRun, *, sites: int = 5) -> None:
    """Run a month of some hospitals and a coordinator, by mail and in a folder."""
    names = [f"site{i:02d}" for i in range(1, sites + 1)]
    found = []
    for title, way in {"by mail": by_mail, "in a folder": in_a_folder}.items():
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            found.append((title, way(names)))
    run.table(
        {
            "": "{t[0]}", "commands": "{t[1].commands}", "files passed on": "{t[1].files}",
            "calls": "{t[1].all_calls}", "minutes of people": "{t[1].minutes:.0f}",
            "seconds of computers": "{t[1].seconds:.0f}",
        }, found,
    )  # fmt: skip
