"""Attack every reader with atheris, and say what came of it: ``make fuzz FUZZ_SECONDS=120``.

The seconds are those of all targets together on this machine, without starting up.
"""

import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import inputs
from targets import TARGETS

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[2]


@dataclass(frozen=True)
class Outcome:
    """What fuzzing one target came to."""

    target: str
    inputs: int
    edges: int
    findings: list[str]
    broken: str


def main() -> int:
    """Run; return how many targets have findings, or did not run to their end."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--seconds", type=float, default=120.0)
    asked.add_argument("--seed", type=int, default=0, help="of the choices; 0 is another each time")
    asked.add_argument("--folder", type=Path, default=_ROOT / ".cache" / "fuzz")
    asked.add_argument("--keep", action="store_true", help="write the corpus in the repository")
    asked.add_argument("targets", nargs="*", default=list(TARGETS), metavar="TARGET")
    options = asked.parse_args()
    cores = len(os.sched_getaffinity(0))
    each = max(1, round(options.seconds * cores / len(options.targets)))

    def attack(target: str) -> Outcome:
        return _attack(target, each, options.seed, options.folder)

    with ThreadPoolExecutor(cores) as pool:
        outcomes = list(pool.map(attack, options.targets))
    print(f"\n{'target':<18}{'inputs tried':>14}{'edges':>8}{'findings':>10}")
    for one in outcomes:
        counts = f"{one.inputs:>14,}{one.edges:>8,}{len(one.findings):>10}"
        print(f"{one.target:<18}{counts}  {one.broken}")
    total = sum(one.inputs for one in outcomes)
    failed = sum(bool(one.findings or one.broken) for one in outcomes)
    found = [line for one in outcomes for line in one.findings]
    print(f"{'all':<18}{total:>14,}{'':>8}{len(found):>10}")
    if found:  # again, where the person who reads a log looks first
        print("\n".join(found), f"The inputs lie in {options.folder / 'findings'}.", sep="\n")
    if options.keep:
        for target in options.targets:
            reached = (options.folder / "corpus" / target).glob("*")
            # Those of libFuzzer have a digest as a name; the seeds are made by code.
            new = [path.read_bytes() for path in reached if len(path.name) == 40]
            print(f"{target}: {inputs.keep(target, inputs.kept(target) + new)} kept")
    return failed


def _attack(target: str, seconds: int, seed: int, folder: Path) -> Outcome:
    corpus = folder / "corpus" / target
    corpus.mkdir(parents=True, exist_ok=True)
    for number, one in enumerate(inputs.kept(target) + inputs.findings(target)):
        (corpus / f"kept{number}").write_bytes(one)
    said, code = _worker(target, seconds, seed, folder)
    tried = re.findall(r"number_of_executed_units: (\d+)", said)
    edges = re.findall(r"\bcov: (\d+)", said)
    found = [line for line in said.splitlines() if line.startswith("FINDING")]
    for line in found:
        print(line, flush=True)
    # libFuzzer itself ends on a crash of the process, too much memory, or no end in sight.
    broken = "" if code == 0 and tried else f"ended with code {code}: see {folder / target}.log"
    (folder / f"{target}.log").write_text(said)
    return Outcome(target, int(tried[-1]) if tried else 0, int(edges[-1]) if edges else 0,
                   found, broken)  # fmt: skip


def _worker(target: str, seconds: int, seed: int, folder: Path) -> tuple[str, int]:
    bounds = Path(os.environ.get("NUMBA_CACHE_DIR", _ROOT / ".cache" / "numba")) / "bounds"
    ran = subprocess.run(
        [sys.executable, _HERE / "worker.py", target, str(seconds), str(seed), folder],
        # A kernel that reads or writes beyond its arrays is to say so.
        env={
            **os.environ,
            "NUMBA_BOUNDSCHECK": "1",
            "NUMBA_CACHE_DIR": str(bounds),
            "PYTHONHASHSEED": "0",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    return ran.stdout, ran.returncode


if __name__ == "__main__":
    sys.exit(main())
