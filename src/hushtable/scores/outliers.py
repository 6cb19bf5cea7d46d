"""The rows with the lowest scores as a table: how rare, how sure, their values, and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hushtable.data.readers import Reader, no_rows
from hushtable.errors import UsageError
from hushtable.scores.details import Details
from hushtable.scores.lowest import Lowest, LowRow
from hushtable.scores.ranks import Ranks
from hushtable.scores.reasons import TOP, Frequencies, Reason, Reasons, worth_a_word
from hushtable.scores.scorer import Scorer
from hushtable.scores.usual import Usual

#: Where a table says which rows its severities are among.
AMONG = b"hushtable.severity_among"
#: The rows that severities are among.
_ALL_SITES, _COUNTED = "the rows that the ranks count", "the rows that the model counted"
_SCORED = "the rows that were scored here"


@dataclass(frozen=True)
class Outliers:
    """The rows with the lowest scores, lowest first.

    Attributes
    ----------
    rows : list of LowRow
        With standard errors, reasons and kept columns.
    severities : list of float
        100 times one minus the share of rows that are as rare, or rarer.
    among : str
        Which rows those are.
    keep : tuple of str
        Names of the kept columns.
    explained : bool
        Whether the model gives reasons.
    n_rows : int
        Rows that were scored.
    """

    rows: list[LowRow]
    severities: list[float]
    among: str
    keep: tuple[str, ...]
    explained: bool
    n_rows: int

    def severity(self, k: int) -> str:
        """Return a row's severity, rounded down: 100 would say that no row is as rare."""
        return f"{int(100.0 * self.severities[k] + 1e-6) / 100:.2f}"

    def reasons(self, row: LowRow) -> list[Reason]:
        """Return the reasons of a row that are worth a word, with their values."""
        return worth_a_word(row.detail.reasons or [])

    def sentence(self, row: LowRow) -> str:
        """Return a row's reasons in words."""
        words = [reason.told.words for reason in self.reasons(row) if reason.told is not None]
        return "; ".join(words) or "no column stands out"

    def table(self) -> pa.Table:
        """Return a table with a line for each row.

        Columns: rank, file (if there are several), row, those kept, severity, score, error,
        outside, and if the model gives reasons, for each of three the column, its value, what is
        usual and the direction, and all in words.
        """
        columns: dict[str, Any] = {"rank": pa.array(range(1, len(self.rows) + 1), pa.int64())}
        if any(row.file for row in self.rows):
            columns["file"] = pa.array([row.file for row in self.rows], pa.string())
        columns["row"] = pa.array([row.row for row in self.rows], pa.int64())
        for k, name in enumerate(self.keep):
            columns[name] = pa.concat_arrays([row.detail.kept[k] for row in self.rows])
        columns["severity"] = pa.array(self.severities, pa.float64())
        columns["score"] = pa.array([row.score for row in self.rows], pa.float64())
        columns["error"] = pa.array([row.detail.error for row in self.rows], pa.float64())
        columns["outside"] = pa.array([outside(row) for row in self.rows], pa.string())
        if self.explained:
            columns |= self._reason_columns()
        return pa.table(columns).replace_schema_metadata({AMONG: self.among.encode()})

    def _reason_columns(self) -> dict[str, pa.Array]:
        columns = {}
        for k in range(TOP):
            found = [reason_facts(self.reasons(row), k) for row in self.rows]
            names = (f"reason_{k + 1}", f"value_{k + 1}", f"usual_{k + 1}", f"direction_{k + 1}")
            for name, values in zip(names, zip(*found, strict=True), strict=True):
                columns[name] = pa.array(values, pa.string())
        columns["words"] = pa.array([self.sentence(row) for row in self.rows], pa.string())
        return columns


def reason_facts(reasons: Sequence[Reason], k: int) -> tuple[str | None, ...]:
    """Return column, value, usual values and direction of the k-th reason, or None each."""
    if k >= len(reasons) or (told := reasons[k].told) is None:
        return (None,) * 4
    return reasons[k].feature, told.text, told.usual, told.direction


def outside(row: LowRow) -> str:
    """Return the names of the columns in which a row lies beyond the plan."""
    return ", ".join(getattr(row.detail, "outside", None) or ())


def find_outliers(
    scorer: Scorer,
    reader: Reader,
    n: int,
    *,
    keep: Sequence[str] = (),
    usual: Usual | None = None,
    ranks: Ranks | None = None,
    frequencies: Frequencies | None = None,
    n_jobs: int | None = None,
) -> Outliers:
    """Find the n rows with the lowest scores in one pass, and what can be said of each.

    ``reader`` has the plan's features as columns, and those to ``keep``. Severities are among the
    rows of ``ranks``, else among those that the model counted, if it knows, else among these.
    Memory stays flat. Raises `DataError` if there are no rows.
    """
    check_number(n)
    values = None if usual is None else usual.values
    try:
        reasons = Reasons(scorer, frequencies=frequencies, usual=values)
    except UsageError:  # of a detector whose tables do not keep features apart
        reasons = None
    errors = scorer.plan.family.n_tables > 1
    details = Details(scorer, n, errors=errors, reasons=reasons, keep=keep)
    lowest = _lowest(details, reader, n, n_jobs)
    if not lowest.rows:
        raise no_rows(reader)
    scores = np.array([row.score for row in lowest.rows])
    if ranks is not None:
        among, shares = _ALL_SITES, ranks.of(scores)
    elif usual is not None:
        among, shares = _COUNTED, usual.as_rare(scores)
    else:
        as_rare = [lowest.as_rare(row.score) for row in lowest.rows]
        among, shares = _SCORED, np.array(as_rare) / lowest.n_rows
    severities = np.round(100.0 * (1.0 - shares), 10).tolist()
    explained = reasons is not None
    return Outliers(lowest.rows, severities, among, tuple(keep), explained, lowest.n_rows)


def check_number(n: Any) -> None:
    """Raise `UsageError` unless n is a number of rows to list."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise UsageError(f"n={n!r}: needs the number of rows to list, 1 or more")


def _lowest(details: Details, reader: Reader, n: int, n_jobs: int | None) -> Lowest:
    """Return the lowest rows; of several files, each row with its file and number in it."""
    lowest, several = Lowest(n), len(reader.parts) > 1
    for part in reader.parts:
        lowest.file, start = part.source if several else "", 0
        for batch in details.batches(part, lambda one: one, n_jobs=n_jobs):
            lowest.add(batch, start)
            start += len(batch.scores)
    return lowest
