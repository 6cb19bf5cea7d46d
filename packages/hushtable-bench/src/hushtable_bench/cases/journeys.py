"""Measure how long people wait: a newcomer from a clone to a list, and five hospitals' month.

`newcomer`: from a fresh clone to a ranked list with the README's commands, and with --sites on to a
signed result of three sites, all on one machine. Nothing is prepared: the clone is new, there is no
environment, and the caches of packages and of compiled kernels are empty (--pip-cache keeps pip's
cache). It needs git, make, Python, and an index of packages. `month`: with mailed files, and in a
folder; the case runs both with the real commands in a temporary folder, and counts commands, files
that people pass on, and calls. Minutes are an assumption, stated below and the same for both;
seconds are measured.
"""

import contextlib
import io
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hushtable.cli import main
from hushtable_bench.results import ResultTable
from hushtable_bench.runner import ROOT, CaseRun

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


OWN_FILE = "mine.csv"
MOST_COMMANDS = 3


#: The text that people fill in, as the README instructs.
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

[[feature]]
name = "ward"
kind = "categorical"
categories = ["a", "b"]
"""
THREE_SITES = ("north", "south", "west")
EACH = "each site"
INSTALL = "pip install ./packages/hushtable ./packages/hushtable-federation"


def commands(begin: str) -> list[tuple[str, str]]:
    """Return the README's commands, with comments, in the block that begins with this text."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(rf"^```sh\n({begin}.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert block is not None
    found = (line.partition("  #") for line in block[1].splitlines())
    return [(command.strip(), comment.strip()) for command, _, comment in found]


def write_rows(path: Path, seed: int = 0, *, named: bool = False) -> None:
    """Write 2,000 rows, the last one unusual; if ``named``, with a column of patients."""
    rng = random.Random(seed)
    rows = [
        f"{rng.uniform(18, 95):.1f},{rng.gauss(75, 9):.0f},{rng.choice('ab')}" for _ in range(1999)
    ]
    lines = ["age,pulse,ward", *rows, "37.0,210,a"]
    if named:
        lines = [f"{f'P{i:04}' if i else 'patient'},{line}" for i, line in enumerate(lines)]
    path.write_text("\n".join(lines) + "\n")


def as_at(site: str, command: str) -> str:
    """Return the command for a site, from the README's command for the first site."""
    swap = {THREE_SITES[0]: site, site: THREE_SITES[0]}
    return re.sub("|".join(swap), lambda found: swap[found[0]], command)


class Newcomer:
    """Someone with a clone, who runs commands and waits for them."""

    def __init__(self, clone: Path, setting: dict[str, str]) -> None:
        self.clone, self.setting = clone, setting
        self.waited: list[tuple[str, float]] = []

    def run(self, command: str, *, show: str = "") -> None:
        """Run a command in the clone, and record its seconds."""
        print(f"$ {command}", flush=True)
        start = time.perf_counter()
        subprocess.run(command, shell=True, cwd=self.clone, env=self.setting, check=True)
        self.waited.append((show or command, time.perf_counter() - start))

    def list_of_one(self, data: Path | None) -> None:
        """Go from the clone to a ranked list of one's own rows."""
        if data is None:
            write_rows(self.clone / OWN_FILE, named=True)
        else:
            shutil.copy(data, self.clone / OWN_FILE)
        path = commands("make demo")
        assert len(path) <= MOST_COMMANDS, path
        for command, _ in path:
            self.run(command)
        assert (self.clone / "top.xlsx").stat().st_size > 0

    def result_of_three(self) -> None:
        """Go on to a signed result of three sites, all in the clone's folder."""
        assert f"`{INSTALL}`" in (ROOT / "README.md").read_text(encoding="utf-8")
        bin_folder = self.clone / ".venv" / "bin"
        self.setting["PATH"] = f"{bin_folder}{os.pathsep}{self.setting['PATH']}"
        self.run(INSTALL.replace("install", "install --quiet"))
        for seed, site in enumerate(THREE_SITES):
            write_rows(self.clone / f"{site}.csv", seed)
        for command, comment in commands("hushtable round keygen"):
            yes = " --yes" if " sync " in command else ""  # it asks, and the reader agrees
            for site in THREE_SITES if comment.startswith(EACH) else THREE_SITES[:1]:
                self.run(as_at(site, command) + yes, show=as_at(site, command))
            if "plan draft" in command:
                (self.clone / "schema.toml").write_text(SCHEMA)
        assert (self.clone / "north-top.xlsx").stat().st_size > 0

    def table(self, title: str) -> ResultTable:
        """Return the commands with their seconds, and clear the list."""
        rows = [(f"`{command[:70]}`", f"{seconds:.1f}") for command, seconds in self.waited]
        rows.append(("all", f"{sum(seconds for _, seconds in self.waited):.1f}"))
        self.waited.clear()
        return ResultTable((title, "seconds"), rows)


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


def newcomer(
    run: CaseRun, *, file: Path | None = None, pip_cache: bool = False, sites: bool = False
) -> None:
    """Clone, run each command, and print its seconds; --file is a CSV, by default simulated."""
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "hushtable"
        hidden = ("NUMBA_CACHE_DIR", "PYTHONPATH", "VIRTUAL_ENV")
        setting = {key: value for key, value in os.environ.items() if key not in hidden}
        if pip_cache:
            asked = [sys.executable, "-m", "pip", "cache", "dir"]
            found = subprocess.run(asked, check=True, capture_output=True, text=True)
            setting["PIP_CACHE_DIR"] = found.stdout.strip()
        setting["XDG_CACHE_HOME"] = str(Path(folder) / "cache")
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
        one = Newcomer(clone, setting)
        one.list_of_one(file)
        tables = [one.table("from a clone to a list")]
        if sites:
            one.result_of_three()
            tables.append(one.table("from there to a signed result of three sites"))
    print()
    run.say(*tables)
