"""One runner for the cases of speed, memory and accuracy that the documentation quotes.

``python -m hushtable_bench`` lists the cases; ``python -m hushtable_bench speed --quick`` runs one.
A case is a function that takes a `CaseRun` and its options, in a module of `CASES`.
It measures, and hands tables, targets and figures to the run, which prints and keeps them.
"""

import argparse
import dataclasses
import inspect
import json
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from hushtable.errors import HushTableError
from hushtable_bench import data
from hushtable_bench.results import (
    Promise,
    ResultTable,
    environment,
    environment_line,
    print_targets,
    write_tables,
)

#: Where results are kept by default.
FOLDER = Path("hushtable-bench")
#: The repository that a clone's package lies in; some cases need its other files.
ROOT = Path(__file__).parents[4]
#: Versions that the figures depend on, besides the package's own.
PACKAGES = ("numba", "numpy", "scikit-learn", "pyod", "coniferest", "isotree")
#: By name: the module of the package that has a function of that name.
CASES = {
    "advice": "cases.joining",
    "beyond": "cases.costs",
    "contexts": "cases.contexts",
    "expectations": "cases.costs",
    "explain": "cases.reasons",
    "faults": "cases.joining",
    "gaps": "cases.costs",
    "joining": "cases.joining",
    "joining_released": "cases.joining",
    "oddbench": "adbench",
    "ranks": "cases.costs",
    "reasons": "cases.reasons",
    "rows": "cases.costs",
    "speed": "cases.speed",
}
_HELP = {
    "quick": "small sizes, to see that it runs",
    "data": "folder of labelled sets; by default $HUSHTABLE_DATA",
    "seeds": "seeds of what is drawn",
    "rows": "rows, or rows of each set at most",
    "seen": "count the sets that settings were judged on as well",
}


@dataclass
class CaseRun:
    """One run of a case: prints its tables, and collects its targets and figures."""

    name: str
    output: Path = FOLDER
    targets: list[Promise] = dataclasses.field(default_factory=list)
    figures: dict[str, Any] = dataclasses.field(default_factory=dict)
    tables: list[ResultTable] = dataclasses.field(default_factory=list)

    def say(self, *page: str | ResultTable) -> None:
        """Print paragraphs of Markdown and tables."""
        for part in page:
            print(part, end="\n\n")
        self.tables += [part for part in page if isinstance(part, ResultTable)]

    def table(self, columns: Mapping[str, str], items: Iterable[object], text: int = 1) -> None:
        """Print a table: a column's header, and how it writes an item ``t``: ``{t.score:.2f}``."""
        rows = [[form.format(t=item) for form in columns.values()] for item in items]
        self.say(ResultTable(tuple(columns), rows, text))

    def hold(
        self, claim: str, measured: float, needs: str, bound: float, form: str = ".4f"
    ) -> None:
        """Judge a figure by what is promised, as `Promise` does."""
        self.targets.append(Promise(claim, measured, needs, bound, form))

    def finish(self) -> int:
        """Keep tables as CSV and figures as JSON, print verdicts; return 1 if a target missed."""
        print(f"\n{environment_line(PACKAGES)}")
        self.output.mkdir(parents=True, exist_ok=True)
        write_tables(self.output, self.name, self.tables)
        if self.figures:
            kept = {"environment": environment(PACKAGES), **self.figures}
            text = json.dumps(kept, indent=1, default=dataclasses.asdict)
            (self.output / f"{self.name}.json").write_text(text + "\n")
        return print_targets(self.targets) if self.targets else 0


def case(name: str) -> Callable[..., None]:
    """Return the function of a case."""
    found: Callable[..., None] = getattr(import_module(f"hushtable_bench.{CASES[name]}"), name)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a case, or list them; 1: a target was missed, 2: it cannot run."""
    listing = argparse.ArgumentParser(prog="python -m hushtable_bench", description=__doc__)
    listing.add_argument("case", choices=CASES, metavar="CASE", help=", ".join(CASES))
    listing.formatter_class = argparse.RawDescriptionHelpFormatter
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0].startswith("-"):
        listing.print_help()
        return 0 if given in ([], ["-h"], ["--help"]) else 2
    name = listing.parse_args(given[:1]).case
    do = case(name)
    parser = _parser(name, do)
    options = vars(parser.parse_args(given[1:]))
    run = CaseRun(name, options.pop("output"))
    run.output.mkdir(parents=True, exist_ok=True)
    try:
        do(run, **options)
    except HushTableError as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    return run.finish()


def _parser(name: str, do: Callable[..., None]) -> argparse.ArgumentParser:
    """Make the options of a case from its signature."""
    parser = argparse.ArgumentParser(
        prog=f"python -m hushtable_bench {name}", description=inspect.getdoc(do),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    hints = get_type_hints(do)
    for option in list(inspect.signature(do).parameters.values())[1:]:
        kind = hints[option.name]
        if get_origin(kind) in (Union, types.UnionType):
            kind = next(one for one in get_args(kind) if one is not type(None))
        named: dict[str, Any] = {"default": option.default, "help": _HELP.get(option.name)}
        if kind is bool:
            named["action"] = "store_true"
        elif get_origin(kind) is not None:
            named |= {"nargs": "+", "type": get_args(kind)[0]}
        else:
            named["type"] = (lambda text: int(float(text))) if kind is int else kind  # 1e8 rows
        parser.add_argument(f"--{option.name.replace('_', '-')}", **named)
    parser.add_argument("--output", type=Path, default=FOLDER, help="folder of results")
    return parser


def data_folder(given: Path | None = None) -> Path:
    """Return the folder given, or the variable's, or the one that lies beside the clone."""
    return data.data_folder(given, ROOT.parent / "shared" / "data")


def progress(message: str) -> None:
    """Say on stderr how far the run is; stdout is for Markdown that can be pasted."""
    print(message, file=sys.stderr, flush=True)
