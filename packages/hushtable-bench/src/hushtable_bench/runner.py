"""The runner of all commands ``hushtable bench``: their common options, and one run of a case.

A case is a function with the options of a command. It measures, hands tables, targets and files to
a `CaseRun`, and returns what this makes of them. A case exists because a page quotes its figures.
"""

import dataclasses
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from hushtable.cli.options import option
from hushtable.cli.result import CommandResult
from hushtable.errors import MissingExtraError
from hushtable.progress import bar_of_steps
from hushtable_bench.results import (
    Page,
    Promise,
    Results,
    ResultTable,
    environment_line,
    verdict_table,
    write_tables,
)

if find_spec("hushtable_federation") is None:  # it was installed for the paper's systems alone
    raise MissingExtraError("hushtable bench", "hushtable-federation", "bench")

#: Where results are kept by default.
FOLDER = Path("hushtable-bench")
#: Versions that the figures depend on, besides the package's own.
PACKAGES = (
    "opendp", "numba", "numpy", "scipy", "scikit-learn", "pyod", "coniferest", "isotree",
)  # fmt: skip

Sets: TypeAlias = Annotated[
    Path | None, option("FOLDER", "Labelled .npz sets with X and y; by default $HUSHTABLE_DATA.")
]
ResultFolder: TypeAlias = Annotated[
    Path, option("FOLDER", "Where results are kept.", "--output", "-o")
]
Seeds: TypeAlias = Annotated[int, option("N", "Seeds of each system, and of what is drawn.", min=1)]
MaxRows: TypeAlias = Annotated[int, option("N", "Rows of each set at most, drawn once.", min=10)]
Quick: TypeAlias = Annotated[
    bool, typer.Option("--quick", help="A glimpse in a minute: few seeds, small sets.")
]


@dataclass
class CaseRun:
    """One run of a case: collects its page, its targets, and the sets that it had to leave out."""

    name: str
    output: Path = FOLDER
    page: Page = field(default_factory=list)
    targets: list[Promise] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.output.mkdir(parents=True, exist_ok=True)

    def do(self, steps: Iterable[Any], results: Results, label: str) -> None:
        """Do the steps whose results are not kept yet."""
        steps = list(steps)
        for step in bar_of_steps(steps, len(steps), label):
            step.run(results)

    def say(self, *parts: str | ResultTable) -> None:
        """Add paragraphs of Markdown and tables to the page."""
        for part in parts:
            self.page += [part, ""]

    def table(self, columns: Mapping[str, str], items: Iterable[object], text: int = 1) -> None:
        """Add a table: a column's header, and how it writes an item ``t``: ``{t.score:.2f}``."""
        rows = [[form.format(t=item) for form in columns.values()] for item in items]
        self.say(ResultTable(tuple(columns), rows, text))

    def hold(
        self, claim: str, measured: float, needs: str, bound: float, form: str = ".4f"
    ) -> None:
        """Judge a figure by what is promised, as `Promise` does."""
        self.targets.append(Promise(claim, measured, needs, bound, form))

    def finish(self, files: Sequence[Path] = (), name: str = "") -> CommandResult:
        """Return the outcome; its code is 1 if a set was left out or a promise missed.

        ``files`` are those that the case wrote itself; if it wrote none, the tables of the page are
        written as NAME.csv, NAME-2.csv, ...
        """
        files = files or write_tables(self.output, name or self.name, self.page)
        facts = {
            "command": f"bench {self.name}",
            "tables": [part.cells for part in self.page if isinstance(part, ResultTable)],
            "targets": [dataclasses.asdict(one) | {"met": one.met} for one in self.targets],
            "left_out": self.left_out,
            "files": [str(file) for file in files],
        }
        blocks = [*map(str, self.page), f"\n{environment_line(PACKAGES)}"]
        if self.targets:
            blocks.append(f"\n{verdict_table(self.targets)}")
        blocks += [f"\nLeft out: {one}. {reason}" for one, reason in self.left_out.items()]
        blocks.append(f"\nWrote {', '.join(map(str, files))}.")
        missed = self.left_out or not all(target.met for target in self.targets)
        return CommandResult(facts, blocks, 1 if missed else 0)


def progress(message: str) -> None:
    """Say on stderr how far the run is; stdout is for Markdown that can be pasted."""
    print(message, file=sys.stderr, flush=True)
