"""The command ``hushtable bench``: its cases, and one run of a case.

A case is a function that takes some of the command's options. It measures, hands tables, targets
and files to a `CaseRun`, and returns what this makes of them. A case exists because a page quotes
its figures.
"""

import dataclasses
import inspect
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from hushtable.cli.options import argument, flag, option
from hushtable.cli.result import CommandResult
from hushtable.errors import MissingExtraError, UsageError
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

Protocol: TypeAlias = Literal["unsupervised", "novelty", "published"]
#: By name, the module of each case, and what it measures.
CASES = {
    "adbench": ("cases", "Compare our detectors with PyOD's and scikit-learn's."),
    "attacks": ("cases", "Attack releases: neighbours, membership, sums."),
    "contexts": ("contexts", "Measure what contexts and relations find."),
    "explain": ("explanations", "Measure whether explanations name what is unusual."),
    "gaps": ("gaps", "Measure what a missing value should count as."),
    "joining": ("joining", "Measure what a site gains by the counts of others."),
    "paper": ("cases", "Run the paper's experiments, and print its figures beside ours."),
    "privacy": ("cases", "Measure what privacy costs, and what audits find."),
    "rows": ("privacy", "Measure what noise costs by the number of rows."),
    "speed": ("speed", "Compare CPU seconds and memory with other tools."),
    "verdicts": ("cases", "Measure what an analyst's verdicts on a few rows are worth."),
}
#: Cases that were removed, and what to do instead.
_REMOVED = {
    "oddbench": "call hushtable bench adbench --protocol published",
    "sites": "hushtable bench privacy measures the noise that a sum has",
    **dict.fromkeys(
        ("advice", "beyond", "faults", "ranks", "reasons"),
        "it is no longer measured (docs/project/coming-from-rc1.md)",
    ),
}


def bench(
    case: Annotated[
        str | None, argument("CASE", "What to measure; without it, all are listed.")
    ] = None,
    data: Annotated[
        Path | None,
        option("FOLDER", "Data sets; default: $HUSHTABLE_DATA. Some cases fetch public tables."),
    ] = None,
    gaps: Annotated[Path | None, option("FOLDER", "Labelled sets that come with gaps.")] = None,
    seeds: Annotated[
        int | None, option("N", "Seeds of each system, and of what is drawn.", min=1)
    ] = None,
    max_rows: Annotated[
        int | None, option("N", "Rows of each set at most, drawn once.", min=10)
    ] = None,
    protocol: Annotated[
        Protocol | None,
        option(
            "NAME",
            "adbench: unsupervised fits to all rows; novelty to half of the normal ones, and "
            "judges the rest; published to the training rows that the files name, and judges "
            "their test rows.",
        ),
    ] = None,
    only: Annotated[
        str | None,
        option(
            "NAME,...",
            "paper: some of central (Tables 2, 3), local (Figure 1), epsilon (Figure 2), "
            "participants (Table 4). speed: entries whose names contain this.",
        ),
    ] = None,
    quick: Annotated[
        bool, flag("--quick", "A glimpse in a minute: few seeds, small sets.")
    ] = False,
    output: Annotated[Path, option("FOLDER", "Where results are kept.", "--output", "-o")] = FOLDER,
) -> CommandResult:
    """Measure what the docs promise.

    A case prints its tables as Markdown. It takes some of the options, with defaults of its own,
    and refuses others. The folder receives tables as CSV, and figures as SVG and PNG. Long cases
    keep their results there while they run: called again, they go on where they stopped. Exit code
    1 says that a set was left out or a promise missed.

    Example:
      hushtable bench
      hushtable bench adbench --data labelled-sets -o results
    """
    if case is None:
        lines = {name: line for name, (_, line) in CASES.items()}
        return CommandResult({"cases": lines}, [f"{name:10}{line}" for name, line in lines.items()])
    if case in _REMOVED:
        raise UsageError(f"hushtable bench {case} was removed: {_REMOVED[case]}")
    if case not in CASES:
        raise UsageError(f"hushtable bench {case}: needs one of {', '.join(CASES)}")
    run = getattr(import_module(f"hushtable_bench.{CASES[case][0]}"), case)
    options = {
        "data": data, "gaps": gaps, "seeds": seeds, "max_rows": max_rows, "protocol": protocol,
        "only": only, "quick": quick or None,
    }  # fmt: skip
    given = {name: value for name, value in options.items() if value is not None}
    takes = [name for name in inspect.signature(run).parameters if name in options]
    if foreign := [name for name in given if name not in takes]:
        known, other = (
            ", ".join(f"--{one.replace('_', '-')}" for one in names) for names in (takes, foreign)
        )
        raise UsageError(f"hushtable bench {case} takes no {other}: it takes {known}")
    result: CommandResult = run(**given, output=output)
    return result


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
            "targets": [dataclasses.asdict(item) | {"met": item.met} for item in self.targets],
            "left_out": self.left_out,
            "files": [str(file) for file in files],
        }
        blocks = [*map(str, self.page), f"\n{environment_line(PACKAGES)}"]
        if self.targets:
            blocks.append(f"\n{verdict_table(self.targets)}")
        blocks += [f"\nLeft out: {item}. {reason}" for item, reason in self.left_out.items()]
        blocks.append(f"\nWrote {', '.join(map(str, files))}.")
        missed = self.left_out or not all(target.met for target in self.targets)
        return CommandResult(facts, blocks, 1 if missed else 0)


def progress(message: str) -> None:
    """Say on stderr how far the run is; stdout is for Markdown that can be pasted."""
    print(message, file=sys.stderr, flush=True)
