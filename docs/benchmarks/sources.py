"""Write the table of all results and their commands, from ``results/sources.toml``.

python docs/benchmarks/sources.py        writes docs/benchmarks/results/index.csv
"""

import csv
import tomllib
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def sources() -> dict[str, dict[str, str]]:
    """Return where each table comes from, by the name of its file, and the machines."""
    return tomllib.loads((RESULTS / "sources.toml").read_text("utf-8"))


def rows() -> list[tuple[str, ...]]:
    """Return the header, and a row for each table."""
    tables = {name: one for name, one in sources().items() if name != "machines"}
    commands = (
        one["command"] if one["command"].startswith("none") else f"`{one['command']}`"
        for one in tables.values()
    )
    found = (
        (f"[{one['title']}]({one['page']})", command, one["machine"])
        for one, command in zip(tables.values(), commands, strict=True)
    )
    return [("result", "command", "machine"), *found]


if __name__ == "__main__":
    with (RESULTS / "index.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows())
