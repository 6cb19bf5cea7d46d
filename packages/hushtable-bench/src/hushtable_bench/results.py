"""Results of a long benchmark, kept as Parquet while it runs: what is done is not done again."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hushtable.errors import DataError
from hushtable.files import replacing

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
                table = pq.read_table(path)
                for name in {"note", "found"} - {*table.column_names}:  # files of before
                    blank = pa.nulls(len(table), self.SCHEMA.field(name).type)
                    table = table.append_column(name, blank)
                table = table.select(self.SCHEMA.names)
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
