"""Run mutation testing: make one change in the code at a time, and check whether a test fails.

    python .ci/mutants.py                       judge all mutants, which takes many hours
    python .ci/mutants.py --sample 75           judge 75 of each group, the same ones each time
    python .ci/mutants.py --sample 75 --seed 2  judge 75 others

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

ROOT = Path(__file__).resolve().parent.parent
#: mutmut names a module by its path below one `src`, so it works in a folder that has one, with
#: links to the sources of the packages and to what their tests need.
HERE = ROOT / "mutants"
#: Beginnings of the names of a group's mutants; a mutant is in the first group that fits.
GROUPS = {
    "counts": ("hushtable.counts.",),
    "files": ("hushtable.files.",),
    "privacy": ("hushtable.privacy.",),
    "masks": ("hushtable_federation.masks.",),
    "book": ("hushtable_federation.book.",),
    "protocol": ("hushtable_federation.online.", "hushtable_federation.folder."),
    "rest": ("hushtable_federation.",),
}
NOTICED = ("killed", "timeout", "segfault", "suspicious")
#: A cheap mutant. mutmut has to judge one before there are mutants to choose from.
FIRST = "hushtable_federation.masks.x_decode__mutmut_1"


def settings() -> dict[str, list[str]]:
    """Return the settings of mutmut."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mutmut"]


def lay_out() -> None:
    """Make the folder that mutmut works in."""
    (HERE / "src").mkdir(parents=True, exist_ok=True)
    links = {name: ROOT / name for name in ("pyproject.toml", "tests", *settings()["also_copy"])}
    for name in settings()["source_paths"]:
        links[name] = next(ROOT.glob(f"packages/*/{name}"))
    for name, path in links.items():
        link = HERE / name
        if not link.is_symlink():
            link.symlink_to(path)


def mutmut(*args: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Run mutmut without `PYTHONPATH`, which could give the tests the unchanged code."""
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [str(Path(sys.executable).with_name("mutmut")), *args]
    return subprocess.run(command, cwd=HERE, env=env, text=True, check=True, **options)


def verdicts() -> dict[str, str]:
    """Return the result of each mutant, by name."""
    lines = mutmut("results", "--all", "True", stdout=subprocess.PIPE).stdout.splitlines()
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
    for part in GROUPS:
        of_part = of_group[part]
        size = len(of_part) if sample is None else min(sample, len(of_part))
        found += random.Random(f"{part} {seed}").sample(of_part, size)
    return found


def interval(share: float, n: int, of: int) -> float:
    """Return half the width of a 95% interval (normal, with the finite population's factor)."""
    rest = (of - n) / max(of - 1, 1)
    return float(1.96 * (share * (1 - share) / n * rest) ** 0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, help="mutants of each group at most")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--show", action="store_true", help="print known results, judge none")
    options = parser.parse_args()
    if not options.show:
        lay_out()
        if not (HERE / "mutants" / "mutmut-stats.json").exists():
            mutmut("run", "--max-children", "1", FIRST)
        todo = verdicts()
        wanted = chosen(list(todo), options.sample, options.seed)
        names = [name for name in wanted if todo[name] == "not checked"]
        if names:
            mutmut("run", "--max-children", "1", *names)
    found = verdicts()
    wanted = chosen(list(found), options.sample, options.seed)
    totals, tally = Counter(map(group, found)), defaultdict(Counter)
    for name in wanted:
        tally[group(name)][found[name]] += 1
        if found[name] not in (*NOTICED, "not checked"):
            print(f"{found[name]:12} {name}")
    print(f"\n{'group':12}{'killed':>8}{'judged':>8}{'mutants':>9}   share")
    for part, seen in tally.items():
        judged = seen.total() - seen["not checked"]
        killed = sum(seen[verdict] for verdict in NOTICED)
        if judged:
            share, of = killed / judged, totals[part]
            error = interval(share, judged, of)
            print(f"{part:12}{killed:>8}{judged:>8}{of:>9}   {share:.1%} +- {error:.1%}")


if __name__ == "__main__":
    main()
