"""The newcomer's path, timed: from a fresh clone to a ranked list, by the README's commands.

Then on to a signed result of three sites, which one machine plays (``--sites``).

Nothing is at hand: a new clone, no environment, empty caches of packages and of compiled kernels
(``--pip-cache`` keeps pip's own). Needs git, make, Python and an index of packages, and nothing of
hushtable.

    python3 benchmarks/newcomer.py [mine.csv] [--sites]
"""

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FILE = "mine.csv"
MOST_COMMANDS = 3


#: What people fill in where the README says so.
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
SITES = ("north", "south", "west")
EACH = "each site"
INSTALL = "pip install ./packages/hushtable ./packages/hushtable-federation"


def commands(begin: str) -> list[tuple[str, str]]:
    """Return the README's commands in the block that begins so, each with its comment."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(rf"^```sh\n({begin}.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert block is not None
    found = (line.partition("  #") for line in block[1].splitlines())
    return [(command.strip(), comment.strip()) for command, _, comment in found]


def write_rows(path: Path, seed: int = 0) -> None:
    """Write 2,000 rows, of which the last is odd."""
    rng = random.Random(seed)
    rows = [
        f"{rng.uniform(18, 95):.1f},{rng.gauss(75, 9):.0f},{rng.choice('ab')}" for _ in range(1999)
    ]
    path.write_text("\n".join(["age,pulse,ward", *rows, "37.0,210,a"]) + "\n")


def as_at(site: str, command: str) -> str:
    """Return what is typed at a site, where the README shows what is typed at the first."""
    swap = {SITES[0]: site, site: SITES[0]}
    return re.sub("|".join(swap), lambda found: swap[found[0]], command)


class Newcomer:
    """Somebody with a clone, who runs commands and waits for them."""

    def __init__(self, clone: Path, setting: dict[str, str]) -> None:
        self.clone, self.setting = clone, setting
        self.waited: list[tuple[str, float]] = []

    def run(self, command: str, *, show: str = "") -> None:
        """Run a command in the clone, and note its seconds."""
        print(f"$ {command}", flush=True)
        start = time.perf_counter()
        subprocess.run(command, shell=True, cwd=self.clone, env=self.setting, check=True)
        self.waited.append((show or command, time.perf_counter() - start))

    def list_of_one(self, data: Path | None) -> None:
        """Go from the clone to a ranked list of one's own rows."""
        if data is None:
            write_rows(self.clone / FILE)
        else:
            shutil.copy(data, self.clone / FILE)
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
        for seed, site in enumerate(SITES):
            write_rows(self.clone / f"{site}.csv", seed)
        for command, comment in commands("hushtable round keygen"):
            yes = " --yes" if " submit " in command else ""  # it asks, and the reader agrees
            for site in SITES if comment.startswith(EACH) else SITES[:1]:
                self.run(as_at(site, command) + yes, show=as_at(site, command))
            if "plan draft" in command:
                (self.clone / "schema.toml").write_text(SCHEMA)
        assert (self.clone / "all.hush").stat().st_size > 0

    def table(self, title: str) -> str:
        """Return what was waited for, and forget it."""
        lines = ["", f"| {title} | seconds |", "|---|---:|"]
        lines += [f"| `{command[:70]}` | {seconds:.1f} |" for command, seconds in self.waited]
        lines.append(f"| all | {sum(seconds for _, seconds in self.waited):.1f} |")
        self.waited.clear()
        return "\n".join(lines)


def main() -> None:
    """Clone, run each command, and print its seconds."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", nargs="?", type=Path, help="a CSV file; by default made up")
    parser.add_argument("--pip-cache", action="store_true", help="use packages that pip has here")
    parser.add_argument("--sites", action="store_true", help="go on to a result of three sites")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "hushtable"
        hidden = ("NUMBA_CACHE_DIR", "PYTHONPATH", "VIRTUAL_ENV")
        setting = {key: value for key, value in os.environ.items() if key not in hidden}
        if options.pip_cache:
            asked = [sys.executable, "-m", "pip", "cache", "dir"]
            found = subprocess.run(asked, check=True, capture_output=True, text=True)
            setting["PIP_CACHE_DIR"] = found.stdout.strip()
        setting["XDG_CACHE_HOME"] = str(Path(folder) / "cache")
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
        newcomer = Newcomer(clone, setting)
        newcomer.list_of_one(options.data)
        tables = [newcomer.table("from a clone to a list")]
        if options.sites:
            newcomer.result_of_three()
            tables.append(newcomer.table("from there to a signed result of three sites"))
        print("\n".join(tables))


if __name__ == "__main__":
    main()
