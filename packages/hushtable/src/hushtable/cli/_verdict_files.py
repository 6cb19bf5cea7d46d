"""Verdicts as files bring them: a column in rows, rows by number or id, a log, or counts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hushtable import files
from hushtable.cli._formulas import original
from hushtable.cli._output import listed
from hushtable.cli._review_log import answers_in, is_log
from hushtable.cli._rows import Rows
from hushtable.counts.verdicts import Verdicts
from hushtable.data.readers import Reader, as_reader
from hushtable.errors import DataError, PlanError, UsageError
from hushtable.plans.families import FINE, OUTLIER, VERDICT
from hushtable.plans.plan import Plan
from hushtable.scores.review import SKIP, named_candidates
from hushtable.scores.scorer import Scorer

_SAID = {OUTLIER: 1, "1": 1, "1.0": 1, FINE: 0, "0": 0, "0.0": 0}
#: Names in a message.
_NAMED = 5


@dataclass(frozen=True)
class VerdictReader:
    """Reads files of verdicts on rows of a model.

    ``rows`` are those that the files name, if they do; ``id_`` is the column of both by which.
    """

    scorer: Scorer
    model: Path
    rows: Rows | None
    own: Rows
    id_: str | None

    @property
    def plan(self) -> Plan:
        """Plan of the model."""
        return self.scorer.plan

    def read(self, path: Path) -> Verdicts:
        """Return the verdicts of a file."""
        if path.suffix == ".hush":
            content = files.read(path).expect("verdicts")
            found = content.build(Verdicts.from_file)
            if found.plan_id != self.plan.first_pass().plan_id:
                difference = self.plan.first_pass().difference(found.plan)
                raise PlanError(
                    f"{path}: these verdicts were counted under another plan than {self.model}, "
                    f"and say nothing of its tables: {difference}"
                )
            return found
        reader = as_reader(str(path))
        names = reader.names or ()
        if VERDICT not in names:
            raise DataError(
                f"{path} has no column {VERDICT!r}: its columns are {list(names)}; needs one that "
                f"says {OUTLIER} or {FINE}"
            )
        if is_log(names):
            return self._of_log(path)
        verdicts = _verdicts(path, _texts(reader, VERDICT))
        if self.rows is None:
            return self._of_own_columns(path, verdicts)
        key = self.id_ or "row"
        # As such a file has it, which may have been a table of scores.
        there = next((name for name in names if original(name) == original(key)), None)
        if there is None:
            raise DataError(
                f"{path} has no column {key!r}, which names rows of {self.rows.data}: its columns "
                f"are {list(names)} (--id NAME; without, the column row, from 0)"
            )
        return self._of_keys(path, _texts(reader, there), verdicts)

    def _of_own_columns(self, path: Path, verdicts: list[int]) -> Verdicts:
        if VERDICT in self.plan.schema.names:
            raise UsageError(
                f"the model has a feature {VERDICT!r}, the name of the column of verdicts: name "
                "rows by number or id, and give --rows"
            )
        reader = replace(self.own, data=str(path)).open(self.plan.schema, [VERDICT])
        return Verdicts.of_rows(self.plan, reader, verdicts)

    def _of_log(self, path: Path) -> Verdicts:
        answers = answers_in(path.read_bytes(), path, self.plan.first_pass().plan_id)
        last = {str(one.row): one.verdict for one in answers}
        said = {row: _SAID[verdict] for row, verdict in last.items() if verdict != SKIP}
        if self.rows is None:
            raise UsageError(f"{path} is a log of hushtable review: give its rows, --rows DATA")
        if not said:
            raise DataError(f"{path} holds no verdict: there is nothing to learn")
        checks = {str(one.row): one.check for one in answers}
        return self._of_numbers(path, said, checks)

    def _of_keys(self, path: Path, keys: list[str | None], verdicts: list[int]) -> Verdicts:
        """Count rows that a file names."""
        said: dict[str, int] = {}
        both: list[str] = []
        for at, (key, verdict) in enumerate(zip(keys, verdicts, strict=True)):
            if key is None:
                raise DataError(f"{path}: row {at} names no row: fill in {self.id_ or 'row'!r}")
            if said.setdefault(key, verdict) != verdict:
                both.append(key)
        if both:
            raise DataError(
                f"{path} has both verdicts on {listed(both, _NAMED)}: leave one of them out (in a "
                "log of hushtable review the last one counts)"
            )
        return self._of_numbers(path, said if self.id_ is None else self._numbers(path, said))

    def _numbers(self, path: Path, said: dict[str, int]) -> dict[str, int]:
        """Return verdicts by the numbers of the rows whose ids a file has."""
        assert self.rows is not None
        assert self.id_ is not None
        reader = self.rows.open(self.plan.schema, [self.id_])
        places: dict[str, int] = {}
        twice: dict[str, None] = {}
        for at, text in enumerate(_texts(reader, self.id_)):
            if text in said and places.setdefault(text, at) != at:
                twice[text] = None
        if twice:
            raise DataError(
                f"{self.rows.data} has {listed(list(twice), _NAMED)} in several rows: verdicts "
                "need ids that name one row; name rows by the column row"
            )
        if lacking := [key for key in said if key not in places]:
            raise DataError(
                f"{path}: {self.rows.data} has no row whose {self.id_!r} is "
                f"{listed(lacking, _NAMED)}: give the rows that were looked at"
            )
        return {str(places[key]): verdict for key, verdict in said.items()}

    def _of_numbers(
        self, path: Path, said: dict[str, int], checks: dict[str, str] | None = None
    ) -> Verdicts:
        """Count rows by their numbers; ``checks`` say which rows a log was of."""
        assert self.rows is not None
        if wrong := [key for key in said if not key.isdecimal() or len(key) > 18]:
            raise DataError(f"{path}: row {wrong[0]!r}: needs the number of a row, from 0")
        by_number = {int(key): verdict for key, verdict in said.items()}
        reader = self.rows.open(self.plan.schema)
        found = named_candidates(self.scorer, reader, by_number)
        if lacking := sorted({*by_number} - {*found.numbers.tolist()}):
            raise DataError(
                f"{path} names row {lacking[0]}, and {self.rows.data} has {found.n_rows:,} rows, "
                "numbered from 0: give the rows that were looked at"
            )
        for k, number in enumerate(found.numbers.tolist()):
            if (checks or {}).get(str(number), found.check(k)) != found.check(k):
                raise DataError(
                    f"{path}: row {number} of {self.rows.data} is not the row that was answered: "
                    "give the rows of that review"
                )
        y = np.array([by_number[number] for number in found.numbers.tolist()], np.int64)
        return Verdicts.of_codes(self.plan, found.codes, y)


def _texts(reader: Reader, name: str) -> list[str | None]:
    """Return a column as texts without blanks around; None where it is empty.

    As the rows had them, also if the file is a table of scores, where no text becomes a formula.
    """
    columns: list[Any] = [batch.column(name) for batch in reader.select([name]).read()]  # type: ignore[union-attr] # has names
    texts = (text for column in columns for text in column.cast(pa.string()).to_pylist())
    return [original(text or "").strip() or None for text in texts]


def _verdicts(path: Path, texts: Sequence[str | None]) -> list[int]:
    """Return verdicts as 1 and 0."""
    if not texts:
        raise DataError(f"{path} has no rows: there is nothing to learn")
    for at, text in enumerate(texts):
        if text not in _SAID:
            got = "is empty" if text is None else f"is {text!r}"
            raise DataError(
                f"{path}: the verdict of row {at} {got}: needs {OUTLIER} (or 1) or {FINE} (or 0) "
                "in each row; leave rows without a verdict out"
            )
    return [_SAID[str(text)] for text in texts]
