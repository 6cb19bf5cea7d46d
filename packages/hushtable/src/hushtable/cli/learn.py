"""``hushtable learn``: train a model with verdicts from files."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa

from hushtable import files
from hushtable.cli.options import READS, ModelReads, Output, Rows, argument, flag, option
from hushtable.cli.result import Block, CommandResult, Facts, Paragraph, Target, count, listed
from hushtable.counts.base import coupling_words
from hushtable.counts.verdicts import FINE, OUTLIER, VERDICT, Verdicts, check_takes_verdicts
from hushtable.data.labels import fold
from hushtable.data.readers import Reader, as_reader
from hushtable.data.spreadsheets import original
from hushtable.describe import plan as words
from hushtable.detectors.load import learned_detector, open_model
from hushtable.errors import DataError, PlanError, UsageError
from hushtable.scores.review import apart, judged_candidates
from hushtable.scores.scorer import Scorer
from hushtable.scores.verdict_log import SKIP, answers_in, is_log

_SAID = {OUTLIER: 1, "1": 1, "1.0": 1, FINE: 0, "0": 0, "0.0": 0}
#: Number of names in a message.
_NAMED = 5


@dataclass(frozen=True)
class VerdictReader:
    """Reads files of verdicts on rows of a model.

    ``rows`` are the rows that the files name, if they name rows; ``id_`` is the column of both that
    identifies rows.
    """

    scorer: Scorer
    model: Path
    rows: Rows | None
    own: Rows
    id_: str | None

    def read(self, path: Path) -> Verdicts:
        """Return the verdicts of a file."""
        if path.suffix == ".hush":
            content = files.read(path).expect("verdicts")
            earlier = content.build(Verdicts.from_file)
            if earlier.plan_id != self.scorer.plan.first_pass().plan_id:
                difference = self.scorer.plan.first_pass().difference(earlier.plan)
                raise PlanError(
                    f"{path}: these verdicts were counted under a different plan than "
                    f"{self.model}, so they do not apply to its tables: {difference}"
                )
            return earlier
        reader = as_reader(str(path))
        names = reader.names or ()
        if VERDICT not in names:
            raise DataError(
                f"{path} has no column {VERDICT!r}: its columns are {list(names)}; it needs a "
                f"column that holds {OUTLIER} or {FINE}"
            )
        if is_log(names):
            return self._of_log(path)
        verdicts = read_verdicts(path, read_texts(reader, VERDICT))
        if self.rows is None:
            if VERDICT in self.scorer.plan.schema.names:
                raise UsageError(
                    f"the model has a feature {VERDICT!r}, which is also the name of the column of "
                    "verdicts: identify rows by number or id, and give --rows"
                )
            rows = replace(self.own, data=str(path)).open(self.scorer.plan.schema, [VERDICT])
            return Verdicts.of_rows(self.scorer.plan, rows, verdicts)
        key = self.id_ or "row"
        # As written in such a file, which may have been a table of scores.
        column = next((name for name in names if original(name) == original(key)), None)
        if column is None:
            raise DataError(
                f"{path} has no column {key!r}, which identifies rows of {self.rows.data}: its "
                f"columns are {list(names)} (--id NAME; without --id, the column row, numbered "
                "from 0)"
            )
        return self._of_keys(path, read_texts(reader, column), verdicts)

    def _of_log(self, path: Path) -> Verdicts:
        answers = answers_in(path.read_bytes(), path, self.scorer.plan.first_pass().plan_id)
        last = {str(answer.row): answer.verdict for answer in answers}
        verdicts = {row: _SAID[verdict] for row, verdict in last.items() if verdict != SKIP}
        if self.rows is None:
            raise UsageError(
                f"{path} is a log of hushtable review: give the rows of that review "
                "with --rows DATA"
            )
        if not verdicts:
            raise DataError(f"{path} holds no verdicts: there is nothing to learn")
        checks = {str(answer.row): answer.check for answer in answers}
        return self._of_numbers(path, verdicts, checks)

    def _of_keys(self, path: Path, keys: list[str | None], verdicts: list[int]) -> Verdicts:
        by_key: dict[str, int] = {}
        both: list[str] = []
        for at, (key, verdict) in enumerate(zip(keys, verdicts, strict=True)):
            if key is None:
                raise DataError(
                    f"{path}: row {at} does not identify a row: fill in {self.id_ or 'row'!r}"
                )
            if by_key.setdefault(key, verdict) != verdict:
                both.append(key)
        if both:
            raise DataError(
                f"{path} has contradictory verdicts on {listed(both, _NAMED)}: remove one of them "
                "(in a log of hushtable review, the last one counts)"
            )
        return self._of_numbers(path, by_key if self.id_ is None else self._numbers(path, by_key))

    def _numbers(self, path: Path, verdicts: dict[str, int]) -> dict[str, int]:
        assert self.rows is not None
        assert self.id_ is not None
        reader = self.rows.open(self.scorer.plan.schema, [self.id_])
        places: dict[str, int] = {}
        twice: dict[str, None] = {}
        for at, text in enumerate(read_texts(reader, self.id_)):
            if text in verdicts and places.setdefault(text, at) != at:
                twice[text] = None
        if twice:
            raise DataError(
                f"{self.rows.data} has {listed(list(twice), _NAMED)} in several rows: verdicts "
                "need ids that identify a single row; identify rows by the column row instead"
            )
        if lacking := [key for key in verdicts if key not in places]:
            raise DataError(
                f"{path}: {self.rows.data} has no row whose {self.id_!r} is "
                f"{listed(lacking, _NAMED)}: give the rows that were reviewed"
            )
        return {str(places[key]): verdict for key, verdict in verdicts.items()}

    def _of_numbers(
        self, path: Path, verdicts: dict[str, int], checks: dict[str, str] | None = None
    ) -> Verdicts:
        assert self.rows is not None
        by_number: dict[int, int] = {}
        for key, verdict in verdicts.items():
            if not key.isdecimal() or len(key) > 18:
                raise DataError(
                    f"{path}: row {key!r} is not the number of a row: number rows from 0"
                )
            if by_number.setdefault(int(key), verdict) != verdict:
                raise DataError(
                    f"{path} has contradictory verdicts on row {key}: remove one of them"
                )
        reader = self.rows.open(self.scorer.plan.schema)
        by_row = {row: (checks or {}).get(str(row), "") for row in by_number}
        candidates = judged_candidates(self.scorer, reader, by_row, path)
        y = np.array([by_number[number] for number in candidates.numbers.tolist()], np.int64)
        coupled = coupling_words(self.scorer.plan, reader, None)
        return Verdicts.of_codes(self.scorer.plan, candidates.codes, y, coupled)


def read_texts(reader: Reader, name: str) -> list[str | None]:
    """Return a column as texts, folded; None where it is empty.

    Texts are as in the rows, even if the file is a table of scores, where formulas are escaped.
    """
    columns: list[Any] = [batch.column(name) for batch in reader.select([name]).read()]  # type: ignore[union-attr] # has names
    texts = (text for column in columns for text in column.cast(pa.string()).to_pylist())
    return [fold(original(text or "")) or None for text in texts]


def read_verdicts(path: Path, texts: Sequence[str | None]) -> list[int]:
    """Return verdicts as 1 and 0."""
    if not texts:
        raise DataError(f"{path} has no rows: there is nothing to learn from")
    for at, text in enumerate(texts):
        if text not in _SAID:
            got = "is empty" if text is None else f"is {text!r}"
            raise DataError(
                f"{path}: the verdict of row {at} {got}: each row needs {OUTLIER} (or 1) or {FINE} "
                "(or 0); remove rows without a verdict"
            )
    return [_SAID[str(text)] for text in texts]


@dataclass(frozen=True)
class NamedRows:
    """The rows that files of verdicts name, and the column of both that identifies them."""

    rows: Annotated[str | None, option("DATA", "Rows that VERDICTS refer to by number or id.")] = (
        None
    )
    id_: Annotated[
        str | None,
        option(
            "NAME",
            "Column by which VERDICTS identify rows; without it, the column row holds "
            "their number from 0.",
            "--id",
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.id_ is not None and self.rows is None:
            raise UsageError("--id identifies rows of --rows: give both")
        if self.rows == "-":
            raise UsageError("--rows -: standard input can be read once only: give a file")


def learn(
    model: Annotated[
        Path, argument("MODEL", "Model of hushtable fit, or a merged sketch or release.")
    ],
    verdicts: Annotated[
        list[Path],
        argument(
            "VERDICTS",
            "Files with a column verdict (outlier or fine) that have the model's columns or "
            "identify rows of --rows; logs of hushtable review; files written by --verdicts-only.",
        ),
    ],
    output: Output,
    forget: Annotated[bool, flag("--forget", "Forget these verdicts instead.")] = False,
    only: Annotated[
        bool,
        flag(
            "--verdicts-only",
            "Write the verdicts without the model, to be learned elsewhere: where the same rows "
            "may be kept.",
        ),
    ] = False,
    reads: ModelReads = READS,
    *,
    named: NamedRows,
) -> CommandResult:
    """Learn from verdicts (outlier or fine) in a file.

    Rows like confirmed outliers then score lower, and rows like fine ones score higher. The output
    is a model for hushtable score. Verdicts add up: verdicts from several files, days and people
    count as if they came in one file. They are exact counts of few rows, from which the rows can be
    read: keep the verdicts and the model where the rows are.

    Example:
      hushtable learn model.hush looked-at.csv -o learned.hush
      hushtable learn model.hush looked-at.csv --rows patients.csv --id "Patient ID" -o learned.hush
    """
    if forget and only:
        raise UsageError(
            "--forget changes a model, but --verdicts-only writes none: give only one of them"
        )
    target = Target(output, [model, named.rows, *verdicts])
    scorer, _, reading, _ = open_model(model, named.id_)
    check_takes_verdicts(scorer.plan.detector, scorer.plan.score, scorer.plan.family)
    labelled = Rows("", reads, reading)
    rows = None if named.rows is None else replace(labelled, data=named.rows)
    reader = VerdictReader(scorer, model, rows, labelled, named.id_)
    given = sum((reader.read(path) for path in verdicts), start=Verdicts.zero(scorer.plan))
    before = apart(scorer.sketch)[1]
    after = before - given if forget else before + given
    if only:
        target.save(given)
    else:
        target.save(learned_detector(model, after))
    facts: dict[str, object] = {
        "command": "learn",
        "verdicts" if only else "model": str(output),
        **words.learned(given),
        "forgotten": forget,
        "total": {"outliers": after.n_outliers, "fine": after.n_fine},
        "plan_id": given.plan_id,
    }
    return CommandResult(facts, _blocks(facts, given, target, only=only))


def _blocks(facts: Facts, given: Verdicts, target: Target, *, only: bool) -> Iterator[Block]:
    did = "Forgot" if facts["forgotten"] else "Counted" if only else "Learned"
    yield f"{did} {count(given.n_outliers, 'outlier')} and {given.n_fine:,} fine."
    if n := facts["contradictory"]:
        yield Paragraph([
            f"Up to {count(n, 'pair')} of rows that are alike in every table have contradictory "
            "verdicts, which cancel each other.",
        ])  # fmt: skip
    total = facts["total"]
    if not only and total != {"outliers": given.n_outliers, "fine": given.n_fine}:
        yield (
            f"In total the model has learned {total['outliers']:,} outliers and "
            f"{total['fine']:,} fine rows."
        )
    yield f"Wrote {target}. It contains verdicts on rows: keep it where the rows are."
