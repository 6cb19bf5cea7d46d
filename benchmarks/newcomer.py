"""The newcomer's path, timed: from a fresh clone to a ranked list, by the README's commands.

Nothing is at hand: a new clone, no environment, empty caches of packages and of compiled kernels
(``--pip-cache`` keeps pip's own). Needs git, make, Python and an index of packages, and nothing of
hushtable.

    python3 benchmarks/newcomer.py [mine.csv]
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

ROOT = Path(__file__).resolve().parent.parent
FILE = "mine.csv"
MOST_COMMANDS = 3


def commands() -> list[str]:
    """Return the commands that the README shows first."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"^```sh\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert block is not None
    return [line.partition("  #")[0].strip() for line in block[1].splitlines()]


def write_rows(path: Path) -> None:
    """Write 2,000 rows, of which the last is odd."""
    rng = random.Random(0)
    rows = [
        f"{rng.gauss(37, 12):.1f},{rng.gauss(75, 9):.0f},{rng.choice('ab')}" for _ in range(1999)
    ]
    path.write_text("\n".join(["age,pulse,ward", *rows, "37.0,210,a"]) + "\n")


def main() -> None:
    """Clone, run each command, and print its seconds."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", nargs="?", type=Path, help="a CSV file; by default made up")
    parser.add_argument("--pip-cache", action="store_true", help="use packages that pip has here")
    options = parser.parse_args()
    path = commands()
    assert len(path) <= MOST_COMMANDS, path
    with tempfile.TemporaryDirectory() as folder:
        clone, cache = Path(folder) / "hushtable", Path(folder) / "cache"
        hidden = ("NUMBA_CACHE_DIR", "PYTHONPATH", "VIRTUAL_ENV")
        setting = {key: value for key, value in os.environ.items() if key not in hidden}
        if options.pip_cache:
            asked = [sys.executable, "-m", "pip", "cache", "dir"]
            found = subprocess.run(asked, check=True, capture_output=True, text=True)
            setting["PIP_CACHE_DIR"] = found.stdout.strip()
        setting["XDG_CACHE_HOME"] = str(cache)
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
        if options.data is None:
            write_rows(clone / FILE)
        else:
            shutil.copy(options.data, clone / FILE)
        times = []
        for command in path:
            print(f"$ {command}", flush=True)
            start = time.perf_counter()
            subprocess.run(command, shell=True, cwd=clone, env=setting, check=True)
            times.append(time.perf_counter() - start)
        rows = len((clone / FILE).read_text().splitlines()) - 1
        scores = (clone / "scores.csv").read_text().splitlines()
        assert len(scores) == rows + 1, "a score for each row"
        print("\n| command | seconds |\n|---|---:|")
        for command, seconds in zip(path, times, strict=True):
            print(f"| `{command}` | {seconds:.1f} |")
        print(f"| all, {rows:,} rows | {sum(times):.1f} |")


if __name__ == "__main__":
    main()
