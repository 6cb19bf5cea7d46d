"""Options, beginning and end of the benchmark commands."""

import dataclasses
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from hushtable.cli.options import option
from hushtable.cli.output import finish
from hushtable.privacy import mechanisms
from hushtable_bench.data import VARIABLE, data_folder

#: Where results are kept by default.
FOLDER = Path("hushtable-bench")

Sets: TypeAlias = Annotated[
    Path | None, option("FOLDER", "Labelled .npz sets with X and y; by default $HUSHTABLE_DATA.")
]
SetsOrFetched: TypeAlias = Annotated[
    Path | None, option("FOLDER", "The sets; by default $HUSHTABLE_DATA, else fetched once.")
]
ResultFolder: TypeAlias = Annotated[
    Path, option("FOLDER", "Where results are kept.", "--output", "-o")
]


def begin(data: Path | None, output: Path, name: str) -> tuple[Path | None, Any]:
    """Return the folder of the sets, None if they are to be fetched, and the results so far.

    A library that is missing is named now, not in half an hour.
    """
    from hushtable_bench import figures, results  # scipy takes a second to import: not for --help

    folder = data_folder(data) if data is not None or os.environ.get(VARIABLE) else None
    figures.pyplot()
    mechanisms.library()
    output.mkdir(parents=True, exist_ok=True)
    return folder, results.Results(output / name)


def verdicts(targets: Sequence[Any]) -> list[dict[str, Any]]:
    """Return promised figures and whether they are met, for machines."""
    return [dataclasses.asdict(target) | {"met": target.met} for target in targets]


def conclude(
    facts: dict[str, Any],
    page: str,
    targets: Sequence[Any],
    files: Sequence[Path],
    as_json: bool,
    packages: Sequence[str] = ("opendp", "numba", "numpy", "scikit-learn"),
    left_out: Mapping[str, str] | None = None,
) -> None:
    """Print the outcome; exit with 1 if a set was left out or a promise missed."""
    from hushtable_bench import tables  # scipy takes a second to import: not for --help

    def text() -> None:
        print(page)
        tables.print_environment(packages)
        if targets:
            tables.print_targets(targets)
        for name, reason in (left_out or {}).items():
            print(f"\nLeft out: {name}. {reason}")
        print(f"\nWrote {', '.join(map(str, files))}.")

    finish(as_json, facts, text)
    if left_out or not all(target.met for target in targets):
        raise typer.Exit(1)


def without_nan(found: Any) -> Any:
    """Replace NaN, which JSON has no word for, by null."""
    if isinstance(found, dict):
        return {key: without_nan(value) for key, value in found.items()}
    if isinstance(found, list):
        return [without_nan(value) for value in found]
    return None if isinstance(found, float) and math.isnan(found) else found
