"""The rows with the lowest scores as a table: how rare, how certain, their values, and why."""

import contextlib
import heapq
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial

import numpy as np
import pyarrow as pa

from hushtable.data.columns import as_column, texts_column
from hushtable.data.readers import Batch, Reader, no_rows
from hushtable.data.schema import DATE, SINCE, Feature
from hushtable.data.table_scan import LoneNumber, LoneNumbers
from hushtable.errors import UsageError
from hushtable.language import N_, _, ngettext, numeral, numerals
from hushtable.scores.finding import Finding, RowDetails, Scored, explained, with_severities
from hushtable.scores.reasons import TOP, Reason, Reasons
from hushtable.scores.scorer import Ranks, Scorer
from hushtable.scores.typical import (
    DIRECTION_MEANS,
    MEANT,
    USUAL_MEANS,
    and_words,
    numbers_of,
)
from hushtable.scores.usual import COUNTED, SCORED, PassingSample, Usual


class Lowest:
    """Keeps the rows with the lowest scores; of equal scores, those of the earlier file and row.

    Rows with a value far outside everything come before all others: see `Finding.key`.
    """

    def __init__(self, most: int, file: str = "") -> None:
        self.most, self.file = most, file
        #: Rows given to `add`, and how many of them have the highest score of ``rows``.
        self.n_rows = self._ties = 0
        #: Of these, rows that are known by the owner's rules.
        self.n_known = 0
        #: The lowest first.
        self.rows: list[Finding] = []

    def add(self, batch: Scored, start: int) -> None:
        """Add the next batch; ``start`` is the number of its first row."""
        # Of equal scores, the one that was added first is the earlier.
        before, bar = self.rows, self._bar
        below = [
            batch.finding(k, start + i, self.file)
            for k, i in enumerate(batch.lowest.tolist())
            if batch.keys[i] < bar
        ]
        self.rows = heapq.nsmallest(
            self.most, [*before, *below], key=lambda row: (row.key, row.file, row.row)
        )
        self.n_rows += len(batch.scores)
        self.n_known += 0 if batch.ruled is None else int(batch.ruled.known.sum())
        # Fewer than ``most`` rows are below the bar: rows exactly on it were listed before.
        listed = self._ties if self._bar == bar else sum(r.key == self._bar for r in before)
        self._ties = listed + int((batch.keys == self._bar).sum())

    @property
    def _bar(self) -> float:
        return self.rows[-1].key if self.rows and len(self.rows) == self.most else np.inf

    def as_rare(self, score: float) -> int:
        """Return how many of all added rows have at most the score of each of ``rows``."""
        if score == self._bar:
            return sum(row.score < score for row in self.rows) + self._ties
        return sum(row.score <= score for row in self.rows)


#: Metadata key of a table that states among which rows its severities are.
AMONG = b"hushtable.severity_among"
#: Descriptions of the rows among which severities are.
_ALL_SITES = N_("the rows that the ranks count")
#: Meanings of columns of a list, for its reader.
REASON_MEANS = N_(
    "The columns that make the row unusual: first those of the column repair, then others whose "
    "usual values would raise the score."
)
REPAIR_MEANS = N_(
    "The fewest columns, at most three, whose usual values would take the row off this list, and "
    "the severity that the row would then have."
)
INCIDENT_MEANS = N_("Rows with the same number have the same strongest reason.")
#: Names of the columns of a list, except kept ones.
LISTED = (
    "rank", "file", "row", "severity", "score", "error", "outside", "reason_1", "value_1",
    "usual_1", "direction_1", "reason_2", "value_2", "usual_2", "direction_2", "reason_3",
    "value_3", "usual_3", "direction_3", "words", "repair", "incident",
)  # fmt: skip


@dataclass(frozen=True)
class Outliers:
    """The rows with the lowest scores, lowest first.

    Attributes
    ----------
    rows : list of Finding
        With severities, standard errors, reasons and kept columns.
    among : str
        The rows of the severities' shares.
    keep : tuple of str
        Names of the kept columns.
    explained : bool
        Whether the model gives reasons.
    n_rows : int
        Number of rows that were scored.
    meaning : str
        What a difference between two scores means.
    """

    rows: list[Finding]
    among: str
    keep: tuple[str, ...]
    explained: bool
    n_rows: int
    meaning: str
    #: Of the scored rows, the number that is known by the owner's rules.
    n_known: int = 0
    #: What values are compared with; None if usual values are unknown.
    usual: Usual | None = None
    #: The columns to which reasons refer.
    features: Sequence[Feature] = ()
    #: The only negative number or zero of a column among the scored rows.
    lone: Sequence[LoneNumber] = ()

    def repair(self, row: Finding) -> str:
        """Return in words which columns to repair so that a row is not listed, and the effect.

        That is its severity then; one that stays the same is left out.
        """
        why, usual = row.why, self.usual
        if why is None or not why.repaired:
            return ""
        names, n = and_words(why.repaired), len(why.repaired)
        if why.enough:
            words = ngettext(
                "with a usual value of %(names)s: not listed",
                "with usual values of %(names)s: not listed",
                n,
                names=names,
            )
        else:
            words = ngettext(
                "with a usual value of %(names)s: still listed",
                "with usual values of %(names)s: still listed",
                n,
                names=names,
            )
        if usual is not None and usual.scores is not None:
            shares = usual.as_rare(np.array([row.score, why.score]))
            now, then = (numerals(rounded_down(100.0 * (1.0 - x))) for x in shares.tolist())
            words += "" if now == then else _(", severity %(severity)s", severity=then)
        return words

    @cached_property
    def incidents(self) -> list["Incident"]:
        """Groups of rows with the same strongest reason, that of the lowest row first."""
        return find_incidents([row.reasons for row in self.rows])

    def notes(self, model: str) -> dict[str, str]:
        """Return notes for a reader of the rows, by headings; ``model`` is the model's name."""
        k, n = numeral(len(self.rows)), numeral(self.n_rows)
        rows = _(
            "%(k)s of %(n)s rows: first those with values far outside, then the lowest scores.",
            k=k,
            n=n,
        )
        rows += f" {known_words(self.n_known)}" if self.n_known else ""
        rows += " " + " ".join(
            [*(lone.words for lone in self.lone), _("Rows are numbered from 0.")]
        )
        when = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
        notes = {
            _("Made"): _(
                "%(when)s by hushtable, with the model %(model)s.", when=when, model=model
            ),
            _("Rows"): rows,
            "rank": _("The place in this list."),
            "severity": _(
                "From 0 to 100: 100 times one minus the share of rows that are as rare or rarer, "
                "among %(rows)s.",
                rows=_(self.among),
            ),
            "score": self.meaning,
            "error": _(
                "One standard error of the score: rows whose scores differ by less may swap places."
            ),
            "outside": _("Columns whose value is outside the ranges or categories of the model."),
        }
        if self.explained:
            usual = _("The model's range, because usual values are unknown.")
            if self.usual is not None:
                usual = _(USUAL_MEANS, rows=_(self.usual.among), **MEANT)
            notes |= {"reason": _(REASON_MEANS), "usual": usual}
            notes |= {"value": _("The row's own value in the column that is the reason.")}
            notes |= {"direction": _(DIRECTION_MEANS, **MEANT), "repair": _(REPAIR_MEANS)}
            notes |= {"words": _("All reasons in words."), "incident": _(INCIDENT_MEANS)}
        stays = _("This describes rows and contains their values: keep it where the rows are kept.")
        return notes | {_("Keep it"): stays}

    def table(self) -> pa.Table:
        """Return a table with a line for each row.

        Columns: rank, file (if there are several), row, the kept columns, severity, score, error
        and outside. If the model gives reasons, each of three has its column, its value, what is
        usual, and the direction, followed by all of them in words, the repair, and the number of
        the incident.
        """
        columns: dict[str, pa.Array] = {"rank": _numbers(range(1, len(self.rows) + 1), np.int64)}
        if any(row.file for row in self.rows):
            columns["file"] = texts_column([row.file for row in self.rows])
        columns["row"] = _numbers([row.row for row in self.rows], np.int64)
        for name in self.keep:
            values = [row.kept_values[name] for row in self.rows]
            if len({value.type for value in values}) > 1:  # files have them in several types
                values = [value.cast(pa.string()) for value in values]
            columns[name] = pa.concat_arrays(values)
        columns["severity"] = _numbers([row.severity for row in self.rows], np.float64)
        columns["score"] = _numbers([row.score for row in self.rows], np.float64)
        columns["error"] = _numbers([row.error for row in self.rows], np.float64)
        columns["outside"] = texts_column([", ".join(row.outside) for row in self.rows])
        if self.explained:
            columns |= self._reason_columns()
        return pa.table(columns).replace_schema_metadata({AMONG: self.among.encode()})

    def _reason_columns(self) -> dict[str, pa.Array]:
        columns: dict[str, pa.Array] = {}
        for k in range(TOP):
            reasons = [row.reasons[k] if k < len(row.reasons) else None for row in self.rows]
            texts = {
                "reason": [reason.feature if reason else None for reason in reasons],
                "value": [reason.phrase.text if reason else None for reason in reasons],
                "usual": [reason.phrase.usual if reason else None for reason in reasons],
                "direction": [reason.phrase.direction if reason else None for reason in reasons],
            }
            columns |= {f"{name}_{k + 1}": texts_column(each) for name, each in texts.items()}
        columns["words"] = texts_column([row.words for row in self.rows])
        columns["repair"] = texts_column([self.repair(row) or None for row in self.rows])
        number = {k: n for n, group in enumerate(self.incidents, 1) for k in group.rows}
        numbers = [number.get(k) for k in range(len(self.rows))]
        columns["incident"] = _numbers(numbers, np.int64)
        return columns


def _numbers(values: Iterable[float | None], kind: type) -> pa.Array:
    numbers = list(values)
    known = np.array([number is not None for number in numbers], np.bool_)
    return as_column(np.array([number or 0 for number in numbers], kind), known)


def rounded_down(severity: float) -> str:
    """Return a severity in words: 100 would mean that no row is as rare."""
    return f"{int(100.0 * severity + 1e-6) / 100:.2f}"


@dataclass(frozen=True)
class Incident:
    """Listed rows with the same strongest reason.

    Attributes
    ----------
    rows : list of int
        Their positions in the list, from 0; the first represents them.
    words : str
        The reasons that they all share.
    """

    rows: list[int]
    words: str


def find_incidents(reasons: Sequence[Sequence[Reason]]) -> list[Incident]:
    """Return the groups of rows, given their reasons, that have the same strongest one."""
    groups: dict[str, list[int]] = {}
    for k, listed in enumerate(reasons):
        if listed and listed[0].kind:
            groups.setdefault(listed[0].kind, []).append(k)
    incidents = []
    for rows in groups.values():
        kinds = [[reason.kind for reason in reasons[k]] for k in rows]
        shared = [kind for kind in kinds[0] if all(kind in listed for listed in kinds)]
        if len(rows) > 1:
            incidents.append(Incident(rows, ", ".join(shared)))
    return incidents


def known_words(n_rows: int) -> str:
    """Describe how many rows were left out because they are known."""
    return ngettext(
        "%(n)s row is known by your rules and not listed.",
        "%(n)s rows are known by your rules and not listed.",
        n_rows,
    )


class Search:
    """Finds the n rows with the lowest scores of several sources, one source after the other.

    Severities are among the rows of ``ranks``; otherwise among those that the model counted, if it
    knows them; otherwise among these rows. With ``explain``, the rows have reasons if the model's
    tables separate features; with ``every``, batches have the ranks and the features with the
    largest shares of all rows. Memory stays flat.
    """

    def __init__(
        self,
        scorer: Scorer,
        n: int,
        *,
        keep: Sequence[str] = (),
        usual: Usual | None = None,
        ranks: Ranks | None = None,
        explain: bool = True,
        every: bool = False,
    ) -> None:
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise UsageError(f"n={n!r}: needs the number of rows to list, 1 or more")
        #: None without ``explain``, and for a detector whose tables mix features.
        self.reasons: Reasons | None = None
        if explain:
            with contextlib.suppress(UsageError):
                self.reasons = Reasons(scorer, usual=usual)
        self._details = RowDetails(
            scorer,
            n + 1,  # the first row after the list shows when a listed row would leave it
            every=every,
            errors=scorer.plan.family.n_tables > 1,
            ranks=ranks,
            reasons=self.reasons,
            # Lists of detectors without reasons are ordered by their papers' scores alone.
            usual=None if self.reasons is None else usual,
            keep=keep,
        )
        self._usual, self._ranks, self._keep, self._n = usual, ranks, tuple(keep), n
        self._lowest = Lowest(n + 1)
        # Points in time and times since have no sign of their own.
        self._signs = {
            j: LoneNumbers(feature.name, feature.written)
            for j, feature in enumerate([] if every else scorer.plan.schema.of_rows.features)
            if feature.kind == "numeric" and feature.unit not in (DATE, SINCE)
        }
        #: If the model knows nothing about such rows: what is usual among these rows themselves.
        unknown = self.reasons is not None and usual is None
        self._sample = PassingSample(len(scorer.plan.schema)) if unknown else None

    def batches(
        self, reader: Reader, file: str = "", *, n_jobs: int | None = None
    ) -> Iterator[Scored]:
        """Yield the scored batches of a reader; all its rows are searched once it ends.

        Its columns are the plan's features, and those to keep.
        """
        lowest, start = copy(self._lowest), 0
        lowest.file = file
        if self._signs:
            reader = reader.in_sequence().watched(partial(self._note_signs, file))
        if self._sample is not None:
            reader = self._sample.of(reader)
        for batch in self._details.batches(reader, n_jobs=n_jobs):
            lowest.add(batch, start)
            yield batch
            start += len(batch.scores)
        self._lowest = lowest

    def of_files(self, reader: Reader, *, n_jobs: int | None = None) -> Iterator[Scored]:
        """Yield the scored batches of all files of a reader, each by its name if there are several.

        Raises `DataError` at the end if there are no rows.
        """
        several = len(reader.parts) > 1
        for part in reader.parts:
            yield from self.batches(part, part.source if several else "", n_jobs=n_jobs)
        if not self.n_rows:
            raise no_rows(reader)

    def find(self, reader: Reader, *, n_jobs: int | None = None) -> Outliers:
        """Search all files of a reader; return the lowest of the rows.

        Raises `DataError` if there are no rows.
        """
        for _batch in self.of_files(reader, n_jobs=n_jobs):
            pass
        return self.found()

    def _note_signs(self, file: str, _part: Reader, batches: Iterator[Batch]) -> Iterator[Batch]:
        start, features = 0, self._details.scorer.plan.schema.features
        for batch in batches:
            for j, signs in self._signs.items():
                signs.add(numbers_of(features[j], batch, j), start, file)
            yield batch
            start += len(batch)

    def found(self) -> Outliers:
        """Return the lowest of the rows; there must have been some rows."""
        lowest = self._lowest
        scorer, rows, usual = self._details.scorer, lowest.rows[: self._n], None
        if self.reasons is not None:
            usual = self._usual
            if self._sample is not None:
                usual = self._sample.usual(scorer.plan.schema, scorer.plan.context)
            # The row after the list shows when a listed row would leave it.
            bar = lowest.rows[self._n].key if len(lowest.rows) > self._n else None
            self.reasons.usual = usual
            rows = explained(rows, self.reasons, bar)
        scores = np.array([row.score for row in rows])
        if self._ranks is not None:
            among, shares = _ALL_SITES, self._ranks.of(scores)
        elif self._usual is not None and self._usual.scores is not None:
            among, shares = COUNTED, self._usual.as_rare(scores)
        else:
            as_rare = [lowest.as_rare(row.score) for row in rows]
            among, shares = SCORED, np.array(as_rare) / lowest.n_rows
        lone = [number for signs in self._signs.values() for number in signs.found()]
        remarks: dict[tuple[str, int], tuple[str, ...]] = {}
        for number in lone:
            place = number.file, number.row
            remarks[place] = (*remarks.get(place, ()), number.remark)
        rows = [
            replace(row, remarks=remarks.get((row.file, row.row), ()))
            for row in with_severities(rows, shares)
        ]
        return Outliers(
            rows=rows,
            among=among,
            keep=self._keep,
            explained=self.reasons is not None,
            n_rows=lowest.n_rows,
            meaning=scorer.plan.score_words(scorer.sketch.noise_sd),
            n_known=lowest.n_known,
            usual=usual,
            features=scorer.plan.schema.of_rows.features,
            lone=lone,
        )

    @property
    def columns(self) -> list[str]:
        """Columns that the rows need after the features."""
        return self._details.columns

    @property
    def n_rows(self) -> int:
        """Number of rows searched."""
        return self._lowest.n_rows
