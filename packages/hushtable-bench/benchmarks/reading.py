"""One bad value among a million numbers of a CSV file: found, named with its line, at what cost.

python benchmarks/reading.py
python benchmarks/reading.py --rows 100000 --columns 8

The cost is beside the same pass over the file without it. Beside both stands Arrow's reader, which
guesses the types of columns.
"""

import argparse
import statistics
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from common import Target, finish, in_turns, markdown_table, progress, run
from hushtable.data import understand

HIGHEST_COST = 1.1


def write(folder: Path, rows: int, columns: int) -> tuple[Path, Path, int]:
    """Write the table without and with the bad value; return both files, and its line."""
    values = np.random.default_rng(0).normal(size=(rows, columns)).round(4)
    clean, bad = folder / "clean.csv", folder / "bad.csv"
    csv.write_csv(pa.table({f"x{j}": values[:, j] for j in range(columns)}), clean)
    lines, at = clean.read_text().splitlines(), 9 * rows // 10
    fields = lines[at].split(",")
    fields[columns // 2] = "ERR"
    lines[at] = ",".join(fields)
    bad.write_text("\n".join(lines) + "\n")
    return clean, bad, at + 1


def guess(path: Path) -> None:
    """Read a file as Arrow guesses it, a batch at a time."""
    options = csv.ReadOptions(block_size=1 << 22, use_threads=False)
    with csv.open_csv(path, options) as file:
        for _ in file:
            pass


def main(arguments: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory() as folder:
        progress(f"writing {arguments.rows:,} rows")
        clean, bad, line = write(Path(folder), arguments.rows, arguments.columns)
        doubts = understand(bad).doubts
        words = f"'ERR' in line {line} of {bad}"
        assert len(doubts) == 1, doubts
        assert words in doubts[0].doubt, doubts
        progress("reading")
        ways = {
            "Arrow, types guessed": lambda: guess(clean),
            "understood, clean": lambda: understand(clean),
            "understood, one bad value": lambda: understand(bad),
        }
        times = in_turns(ways, arguments.repeats)
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    _, clean_pass, bad_pass = medians.values()
    rows = [[name, f"{taken:.3f}", f"{taken / clean_pass:.2f}"] for name, taken in medians.items()]
    size = f"{arguments.rows:,} rows of {arguments.columns}"
    print(f"{size} columns, the bad value in line {line:,}:\n")
    print(markdown_table(["way", "s", "times the clean pass"], rows))
    print()
    target = Target("a pass with the bad value", bad_pass / clean_pass, "<=", HIGHEST_COST, ".2f")
    return finish([target], "reading", seconds=times)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=9)
    run(parser, main)
