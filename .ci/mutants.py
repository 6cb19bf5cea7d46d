"""Run mutation testing: make one change in the code at a time, and check whether a test fails.

    python .ci/mutants.py                        judge all mutants, which takes many hours
    python .ci/mutants.py --sample 75 [--seed 2] judge 75 of each group; the same of a seed

pyproject.toml names the mutated code and the tests that judge it; tests/mutants.md lists accepted
survivors with the reasons. Results stay in mutants/, so that an interrupted run continues where it
stopped.
"""

import argparse
import os
import random
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: mutmut names a module by its path below one `src`, so it works in a folder that has one, with
#: links to the sources of the packages and to what their tests need.
HERE = ROOT / "mutants"
#: Beginnings of the names of a group's mutants; a mutant is in the first group that fits.
GROUPS = {
    "counts": ("hushtable.counts.",),
    "files": ("hushtable.files.",),
    "privacy": ("hushtable.privacy.",),
    "reading": ("hushtable.data.",),
    "scores": ("hushtable.scores.",),
    "masked sum": ("hushtable_federation.protocol.",),
    "book": ("hushtable_federation.book.",),
    "rest": ("hushtable_federation.",),
    "exports": ("hushtable_connect.exports.",),
    "desk": ("hushtable_desk.",),
}
#: A cheap mutant. mutmut has to judge one before there are mutants to choose from.
FIRST = "hushtable_federation.protocol.masks.x_combine__mutmut_1"


def settings() -> dict[str, list[str]]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mutmut"]


def lay_out() -> None:
    (HERE / "src").mkdir(parents=True, exist_ok=True)
    links = {name: ROOT / name for name in ("pyproject.toml", "tests", *settings()["also_copy"])}
    links |= {name: next(ROOT.glob(f"packages/*/{name}")) for name in settings()["source_paths"]}
    for name, path in links.items():
        if not (HERE / name).is_symlink():
            (HERE / name).symlink_to(path)


def mutmut(*args: str) -> str:
    """Run mutmut without `PYTHONPATH`, which could give the tests the unchanged code."""
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [Path(sys.executable).with_name("mutmut"), *args]
    output = subprocess.PIPE if args[0] == "results" else None
    return subprocess.run(command, cwd=HERE, env=env, text=True, check=True, stdout=output).stdout


def verdicts() -> dict[str, str]:
    lines = mutmut("results", "--all", "True").splitlines()
    return dict(line.strip().split(": ") for line in lines)


def group(name: str) -> str:
    """Return the group of a mutant; raise `StopIteration` if it is in none."""
    return next(part for part, beginnings in GROUPS.items() if name.startswith(beginnings))


def chosen(names: list[str], sample: int | None, seed: int) -> list[str]:
    """Return the mutants to judge: all, or a sample of each group."""
    of_group = defaultdict(list)
    for name in sorted(names):
        of_group[group(name)].append(name)
    found = []
    for part, of_part in of_group.items():
        size = len(of_part) if sample is None else min(sample, len(of_part))
        found += random.Random(f"{part} {seed}").sample(of_part, size)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, help="mutants of each group at most")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    options = parser.parse_args()
    lay_out()
    if not (HERE / "mutants" / "mutmut-stats.json").exists():
        mutmut("run", "--max-children", "1", FIRST)
    found = verdicts()
    wanted = chosen([*found], options.sample, options.seed)
    if names := [name for name in wanted if found[name] == "not checked"]:
        mutmut("run", "--max-children", "1", *names)
        found = verdicts()
    tally = defaultdict(Counter)
    for name in wanted:
        noticed = found[name] in ("killed", "timeout", "segfault", "suspicious")
        tally[group(name)][noticed] += 1
        if not noticed:
            print(f"{found[name]:12} {name}")
    for part, seen in tally.items():
        print(f"{part}: {seen[True]} killed of {seen.total()} judged")


if __name__ == "__main__":
    main()
