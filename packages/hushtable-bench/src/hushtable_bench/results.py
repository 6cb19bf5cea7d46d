"""Results of a long benchmark, kept as Parquet while it runs; tables and targets."""

import csv
import os
import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from hushtable.errors import DataError
from hushtable.files import replacing

if TYPE_CHECKING:  # it takes SciPy a second to load
    from hushtable_bench.systems.bounds import Outcome

#: One figure of one run, by the names of the columns.
Row = dict[str, Any]
#: What names a step.
_NAME = ("experiment", "data", "step", "seed")


class Results:
    """Rows of results in a Parquet file; each step of a benchmark adds its rows at once.

    A step is named by an experiment, a data set, a name and a seed. Steps that an earlier run
    of the same version finished are there already. The file is made on the first step.
    """

    SCHEMA = pa.schema([
        ("version", pa.string()),
        ("experiment", pa.string()),
        ("data", pa.string()),
        ("step", pa.string()),
        ("seed", pa.int64()),
        ("system", pa.string()),
        ("setting", pa.float64()),
        ("auc", pa.float64()),
        ("ap", pa.float64()),
        ("seconds", pa.float64()),
        ("total_epsilon", pa.float64()),
        ("note", pa.string()),
        ("found", pa.float64()),
    ])  # fmt: skip

    def __init__(self, path: Path) -> None:
        self._path = path
        self._version = version("hushtable")
        self.rows: list[Row] = []
        if path.exists():
            try:
                table = pq.read_table(path).select(self.SCHEMA.names)
            except (pa.ArrowInvalid, KeyError) as error:
                raise DataError(
                    f"{path} is not the result of this benchmark ({error}): name another folder"
                ) from None
            self.rows = [r for r in table.to_pylist() if r["version"] == self._version]
        self._done = {self._key(row) for row in self.rows}

    @staticmethod
    def _key(row: Row) -> tuple[Any, ...]:
        return tuple(row[part] for part in _NAME)

    def done(self, name: Row) -> bool:
        """Whether the step's rows are there."""
        return self._key(name) in self._done

    def add(self, name: Row, figures: Iterable[Row]) -> None:
        """Add the rows of one step, and write the file: whatever comes later, they are kept."""
        blank = dict.fromkeys(self.SCHEMA.names)
        self.rows += [blank | {"version": self._version} | name | row for row in figures]
        self._done.add(self._key(name))
        with replacing(self._path) as file:
            pq.write_table(pa.Table.from_pylist(self.rows, self.SCHEMA), file)

    def select(self, experiment: str, **equal: Any) -> list[Row]:
        """Return the rows of an experiment, those with the given entries."""
        return [
            row
            for row in self.rows
            if row["experiment"] == experiment and all(row[k] == v for k, v in equal.items())
        ]

    def values(self, experiment: str, column: str, **equal: Any) -> NDArray[np.float64]:
        """Return one column of the rows that `select` finds, by ascending seed."""
        rows = sorted(self.select(experiment, **equal), key=lambda row: int(row["seed"]))
        return np.array([row[column] for row in rows], np.float64)

    def curve(self, experiment: str, data: str, system: str) -> dict[float, NDArray[np.float64]]:
        """Return ROC-AUC in percent of all seeds, by ascending setting."""
        settings = {row["setting"] for row in self.select(experiment, data=data, system=system)}
        return {
            setting: 100 * self.values(
                experiment, "auc", data=data, system=system, setting=setting
            )
            for setting in sorted(settings)
        }  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One step of a benchmark: its name, and how to do it."""

    experiment: str
    data: str
    step: str
    seed: int
    do: Callable[[], list[Row]]

    def run(self, results: Results) -> None:
        """Do it, unless it is done."""
        name = {key: getattr(self, key) for key in _NAME}
        if not results.done(name):
            results.add(name, self.do())


@dataclass(frozen=True)
class ResultTable:
    """A table of figures, which is written as Markdown and as CSV.

    The first ``text`` columns are left-aligned in Markdown, and become one in CSV, the key of a
    row. A dash, for no value, becomes empty in CSV.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[object]]
    text: int = 1

    @property
    def cells(self) -> list[list[str]]:
        """Return the texts of the header and of all rows."""
        return [[str(cell) for cell in row] for row in (self.header, *self.rows)]

    def __str__(self) -> str:
        widths = [max(3, *map(len, column)) for column in zip(*self.cells, strict=True)]
        aligned = [
            [cell.ljust(w) if j < self.text else cell.rjust(w) for j, (cell, w) in enumerate(row)]
            for row in (zip(row, widths, strict=True) for row in self.cells)
        ]
        rule = ["-" * w if j < self.text else "-" * (w - 1) + ":" for j, w in enumerate(widths)]
        return "\n".join("| " + " | ".join(row) + " |" for row in (aligned[0], rule, *aligned[1:]))

    def write(self, path: Path) -> None:
        """Write the table as CSV."""
        k = self.text
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(
                [", ".join(row[:k]), *("" if cell == "-" else cell for cell in row[k:])]
                for row in self.cells
            )


#: A page of Markdown: paragraphs and tables.
Page: TypeAlias = list[str | ResultTable]


def write_tables(folder: Path, name: str, page: Iterable[object]) -> list[Path]:
    """Write the tables of a page as NAME.csv, NAME-2.csv, ...; return the files."""
    files: list[Path] = []
    for table in (part for part in page if isinstance(part, ResultTable)):
        files.append(folder / (f"{name}-{len(files) + 1}.csv" if files else f"{name}.csv"))
        table.write(files[-1])
    return files


def write_page(folder: Path, name: str, page: Page) -> list[Path]:
    """Write a page as NAME.md and its tables as CSV; return the files."""
    (file := folder / f"{name}.md").write_text("\n".join(map(str, page)) + "\n", "utf-8")
    return [file, *write_tables(folder, name, page)]


def cell(value: float, form: str) -> str:
    """Write a figure, a dash for no value."""
    return f"{value:{form}}" if np.isfinite(value) else "-"


def spread(values: ArrayLike, form: str = ".1f") -> str:
    """Write a mean ± standard deviation, a dash for no values."""
    numbers = np.asarray(values)
    return f"{numbers.mean():{form}} ± {numbers.std():{form}}" if numbers.size else "-"


def judged(finding: "Outcome") -> tuple[str, str, str]:
    """Write a finding's bound on epsilon, the bound if the noise is Gaussian, and the verdict."""
    gaussian = "" if finding.gaussian_bound is None else f"{finding.gaussian_bound:.2f}"
    return f"{finding.lower_bound:.2f}", gaussian, "rejected" if finding.rejects else "stands"


@dataclass(frozen=True)
class Promise:
    """A figure that the project promises, and what this run measured.

    ``needs`` is ``>=``, ``>`` or ``<=``; ``form`` is the format of both figures.
    """

    claim: str
    measured: float
    needs: str
    bound: float
    form: str = ".4f"

    @property
    def met(self) -> bool:
        """Whether the measured figure keeps the promise."""
        compare = {">=": np.greater_equal, ">": np.greater, "<=": np.less_equal}[self.needs]
        return bool(compare(self.measured, self.bound))


def verdict_table(targets: Sequence[Promise]) -> ResultTable:
    """Return a table of each target with its verdict."""
    rows = [
        (
            t.claim, f"{t.measured:{t.form}}", f"{t.needs} {t.bound:{t.form}}",
            "pass" if t.met else "FAIL",
        )
        for t in targets
    ]  # fmt: skip
    return ResultTable(("Must show", "measured", "target", "verdict"), rows)


def environment(packages: Sequence[str]) -> dict[str, str]:
    """Return what the figures depend on besides the code; ``packages`` besides our own."""
    return {
        "processor": f"{os.cpu_count()} cores, {_processor()}",
        "python": platform.python_version(),
        **{package: _version(package) for package in ("hushtable", *packages)},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def environment_line(packages: Sequence[str]) -> str:
    """Return what the figures depend on besides the code, in one line."""
    facts = ", ".join(f"{name} {value}" for name, value in environment(packages).items())
    return f"Measured with {facts}."
