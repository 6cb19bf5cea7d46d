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
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable.data.columns import as_column, texts_column
from hushtable.data.encoding import Codes
from hushtable.data.passes import Numbered
from hushtable.data.readers import Batch, Reader, no_rows, taken
from hushtable.data.schema import DATE, SINCE, Feature
from hushtable.data.table_scan import LoneNumber, LoneNumbers
from hushtable.errors import DataTypeError, UsageError
from hushtable.language import N_, _, ngettext, numeral, numerals
from hushtable.scores.finding import (
    FAR_FIRST,
    IMPOSSIBLE_FIRST,
    Finding,
    explained,
    far_outside,
    lowest_rows,
    with_severities,
)
from hushtable.scores.reasons import TOP, ContextRows, Reason, Reasons, Top
from hushtable.scores.scorer import Ranks, Scorer
from hushtable.scores.typical import (
    DIRECTION_MEANS,
    MEANT,
    USUAL_MEANS,
    and_words,
    cell,
    describe_cell,
    numbers_of,
)
from hushtable.scores.usual import COUNTED, SCORED, PassingSample, Usual

Floats = NDArray[np.float64]

#: The year 9999 in milliseconds since 1970: calendars end there.
_LAST_DATE = 253402300799999.0


@dataclass(frozen=True)
class RuledRows:
    """Rows that are impossible or known by their owner's rules."""

    #: (n,): number of the first feature with an impossible value, or -1.
    impossible: NDArray[np.int64]
    #: (n,): whether a row is known, so that it is not listed.
    known: NDArray[np.bool_]

    def flagged(self, outliers: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which rows are outliers: impossible ones always are, known ones never."""
        return (outliers | (self.impossible >= 0)) & ~self.known

    def column(self, names: Sequence[str]) -> pa.Array:
        """Return words about each row, given the columns' names; null if there are none."""
        words = texts_column([*(f"{name} is impossible" for name in names), "known"])
        index = np.where(self.known, len(names), self.impossible)
        return words.take(as_column(index, index >= 0))


@dataclass(frozen=True)
class ScoredBatch:
    """A batch of n scored rows, with what `finding` needs of the lowest.

    ``tally`` (d, 2) has the numbers of missing and of outside values of each feature. ``keys`` (n,)
    order the list: they are the ``scores`` (n,), NaN for rows that are not judged, but far below
    all others if a value is far outside everything. ``lowest`` are the numbers in the batch of the
    rows with the lowest keys, lowest first.
    """

    scores: Floats
    tally: NDArray[np.int64]
    keys: Floats
    lowest: NDArray[np.int64]
    #: (n, 3): the rank of each row, and the interval that contains it.
    ranks: Floats | None
    #: As returned by `Reasons.top`; empty if reasons of all rows were not requested.
    top: Top
    #: (n,): names of the columns with outside values, joined by commas; null if there are none.
    outside: pa.Array
    #: The columns to keep, of all rows.
    kept: list[pa.Array]
    #: What the owner's rules state about the rows.
    ruled: "RuledRows | None"
    search: "Search"
    rows: Batch
    far: Floats
    #: Of the lowest rows, in their order: codes, shares (k, d), features, and columns to keep.
    codes: Codes
    shares: Floats | None
    features: "Batch | None"
    kept_values: "Batch | None"

    def finding(self, k: int, row: int, file: str = "") -> Finding:
        """Return what is known of the k-th of the lowest rows, without reasons.

        ``row`` is its number in the ``file``.
        """
        search, i = self.search, int(self.lowest[k])
        scorer, names = search.scorer, search.scorer.plan.schema.names
        at, score = np.array([k]), self.scores[[i]]
        codes, kept = self.codes.take(at), {}
        if isinstance(self.kept_values, pa.RecordBatch):
            values = self.kept_values.slice(k, 1)
            kept = dict(zip(search.keep, values.columns, strict=True))
        evidence = None
        if self.features is not None and self.shares is not None:
            evidence = taken(self.features, at), self.shares[k]
        contexts, rule = search.contexts, ""
        if scorer.rules is not None and self.ruled is not None and self.ruled.impossible[i] >= 0:
            j = int(self.ruled.impossible[i])
            phrase = describe_cell(scorer.plan.schema.features[j], cell(self.rows, j, i), None)
            rule = scorer.rules.words(j, phrase.text)
        return Finding(
            row,
            float(score[0]),
            file,
            error=float(scorer.errors(codes, score)[0]) if search.has_errors else None,
            ranks=search.ranked(codes, score)[0].tolist() if search.ranks else None,
            far=float(self.far[i]),
            rule=rule,
            outside=outside_words(codes, 0, names),
            context="" if contexts is None else contexts.words(self.rows, i, codes),
            moved=float(scorer.moved(codes, score)[0]),
            kept_values=kept,
            evidence=evidence,
        )


def _plain(column: pa.Array, name: str, dates: bool) -> pa.Array:
    """Return a column without views or a dictionary, which differs from batch to batch.

    ``dates`` means that it is a feature of points in time, which count as seconds since 1970.
    """
    if pa.types.is_nested(column.type):
        raise DataTypeError(
            f"column {name!r} has type {column.type}: needs single values to list with scores: "
            "leave it out of those to keep"
        )
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if dates and pa.types.is_floating(column.type):
        milliseconds = pc.round(pc.multiply(column, 1000.0))
        in_calendar = pc.less_equal(pc.abs(milliseconds), _LAST_DATE)
        dated = pc.if_else(in_calendar, milliseconds, None)
        return dated.cast(pa.int64()).cast(pa.timestamp("ms"))
    return column.cast(pa.string()) if pa.types.is_string_view(column.type) else column


def outside_words(codes: Codes, row: int, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the columns in which a row's value is outside, in the plan's order."""
    outside = codes.outside
    return tuple(names[j] for j in outside.features[outside.rows == row].tolist())


def outside_column(codes: Codes, names: Sequence[str]) -> pa.Array:
    """Return, for each row, `outside_words` joined by commas; null for rows without any."""
    outside = codes.outside
    if not len(outside):
        return pa.nulls(len(codes), pa.string())
    order = np.argsort(outside.rows, kind="stable")
    rows, first = np.unique(outside.rows[order], return_index=True)
    listed = [[names[j] for j in f.tolist()] for f in np.split(outside.features[order], first[1:])]
    index = np.full(len(codes), -1)
    index[rows] = np.arange(len(rows))
    texts = texts_column([", ".join(named) for named in listed])
    return texts.take(as_column(index, index >= 0))


class Lowest:
    """Keeps the rows with the lowest scores; of equal scores, those of the earlier file and row.

    Rows with a value far outside everything come before all others: see `Finding.key`.
    """

    def __init__(self, most: int) -> None:
        self.most, self.file = most, ""
        #: Rows given to `add`, and how many of them have the highest score of ``rows``.
        self.n_rows = self._ties = 0
        #: Of these, rows that are known by the owner's rules.
        self.n_known = 0
        #: The lowest first.
        self.rows: list[Finding] = []

    def add(self, batch: ScoredBatch, start: int) -> None:
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
        self.scorer, self.keep, self.ranks = scorer, tuple(keep), ranks
        self._usual, self._every, self._n = usual, every, n
        self.has_errors = scorer.plan.family.n_tables > 1
        self._dates = {f.name for f in scorer.plan.schema.features if f.unit == DATE}
        # The first row after the list shows when a listed row would leave it.
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
    ) -> Iterator[ScoredBatch]:
        """Yield the scored batches of a reader; all its rows are searched once it ends.

        Its columns are the plan's features, and those to keep.
        """
        lowest, start = copy(self._lowest), 0
        lowest.file = file
        if self._signs:
            reader = reader.in_sequence().watched(partial(self._note_signs, file))
        if self._sample is not None:
            reader = self._sample.of(reader)
        scored = partial(self._scored, most=self._n + 1)
        for batch in self.scorer.mapped(reader, scored, n_jobs, self.columns):
            lowest.add(batch, start)
            yield batch
            start += len(batch.scores)
        self._lowest = lowest

    def of_files(self, reader: Reader, *, n_jobs: int | None = None) -> Iterator[ScoredBatch]:
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
        start, features = 0, self.scorer.plan.schema.features
        for batch in batches:
            for j, signs in self._signs.items():
                signs.add(numbers_of(features[j], batch, j), start, file)
            yield batch
            start += len(batch)

    def found(self) -> Outliers:
        """Return the lowest of the rows; there must have been some rows."""
        lowest = self._lowest
        scorer, rows, usual = self.scorer, lowest.rows[: self._n], None
        if self.reasons is not None:
            usual = self._usual
            if self._sample is not None:
                usual = self._sample.usual(scorer.plan.schema, scorer.plan.context)
            # The row after the list shows when a listed row would leave it.
            bar = lowest.rows[self._n].key if len(lowest.rows) > self._n else None
            self.reasons.usual = usual
            rows = explained(rows, self.reasons, bar)
        scores = np.array([row.score for row in rows])
        if self.ranks is not None:
            among, shares = _ALL_SITES, self.ranks.of(scores)
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
            keep=self.keep,
            explained=self.reasons is not None,
            n_rows=lowest.n_rows,
            meaning=scorer.plan.score_words(scorer.sketch.noise_sd),
            n_known=lowest.n_known,
            usual=usual,
            features=scorer.plan.schema.of_rows.features,
            lone=lone,
        )

    def findings(self, rows: Batch) -> list[Finding]:
        """Return what is known of some rows, without reasons yet; they are numbered from 0."""
        batch = self._scored((0, rows, None), len(rows))
        in_order = np.argsort(batch.lowest).tolist()
        return [batch.finding(k, row) for row, k in enumerate(in_order)]

    def _scored(self, item: Numbered, most: int) -> ScoredBatch:
        rows, shares = item[1], None
        if self.reasons is None:
            codes, scores = self.scorer.scored(item)
        else:
            parts = self.reasons.explainer.explained(item)
            codes, scores, shares = parts.codes, parts.scores, parts.shares
        # Lists of detectors without reasons are ordered by their papers' scores alone.
        far = far_outside(self.scorer, None if self.reasons is None else self._usual, rows)
        keys, ruled, rules = scores - FAR_FIRST * far, None, self.scorer.rules
        if rules is not None:
            ruled = RuledRows(rules.impossible(rows), rules.known(rows))
            keys -= IMPOSSIBLE_FIRST * (ruled.impossible >= 0)
            keys[ruled.known] = np.inf  # never listed
        # Only the codes of the lowest rows are kept while other batches are scored.
        lowest, names = lowest_rows(keys, most), self.scorer.plan.schema.names
        kept, kept_values = [], None
        if self.keep:
            assert isinstance(rows, pa.RecordBatch)  # it has names
            kept = [_plain(rows.column(name), name, name in self._dates) for name in self.keep]
            kept_values = taken(pa.RecordBatch.from_arrays(kept, list(self.keep)), lowest)
        top: Top = []
        if self._every and self.reasons is not None and shares is not None:
            top = self.reasons.top(shares)
        features = None
        if shares is not None:
            columns = rows if isinstance(rows, np.ndarray) else rows.select(range(len(names)))
            features = taken(columns, lowest)
        return ScoredBatch(
            scores=scores,
            tally=codes.tally,
            keys=keys,
            lowest=lowest,
            ranks=self.ranked(codes, scores) if self._every and self.ranks else None,
            top=top,
            outside=outside_column(codes, names),
            kept=kept,
            ruled=ruled,
            search=self,
            rows=rows,
            far=far,
            codes=codes.take(lowest),
            shares=None if shares is None else shares[lowest],
            features=features,
            kept_values=kept_values,
        )

    def ranked(self, codes: Codes, scores: Floats) -> Floats:
        """Return the ranks (n, 3) of scores (n,): the rank, and the interval that contains it."""
        assert self.ranks is not None
        ends = self.ranks.between(scores, self.scorer.errors(codes, scores))
        return np.column_stack([self.ranks.of(scores), ends])

    @cached_property
    def contexts(self) -> ContextRows | None:
        """Reports how many rows of a context were counted; None if the model does not know."""
        compared = self.scorer.plan.context and not self.scorer.row_noise
        return ContextRows(self.scorer) if compared else None

    @property
    def columns(self) -> list[str]:
        """Columns that are read after the features: those to keep, and those of rules."""
        rules = [] if self.scorer.rules is None else self.scorer.rules.columns
        return list(dict.fromkeys([*self.keep, *rules]))

    @property
    def n_rows(self) -> int:
        """Number of rows searched."""
        return self._lowest.n_rows
