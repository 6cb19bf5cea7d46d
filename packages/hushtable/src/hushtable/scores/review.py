"""A review: a person judges the rows with the lowest scores, and each verdict changes the rest."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.counts.base import Counts, coupling_words
from hushtable.counts.verdicts import FINE, OUTLIER, LearnedModel, Verdicts, check_takes_verdicts
from hushtable.data.encoding import Codes
from hushtable.data.labels import fold, fold_texts
from hushtable.data.passes import Numbered
from hushtable.data.readers import Batch, Reader, joined, no_rows, taken
from hushtable.data.schema import Feature
from hushtable.errors import DataError, UsageError
from hushtable.scores.explain import Explainer
from hushtable.scores.finding import (
    FAR_FIRST,
    IMPOSSIBLE_FIRST,
    Finding,
    as_text,
    explained,
    far_outside,
    lowest_rows,
    with_severities,
)
from hushtable.scores.outliers import Outliers, Search
from hushtable.scores.reasons import Reasons, RowPhrases
from hushtable.scores.rules import write_rule
from hushtable.scores.scorer import Scorer
from hushtable.scores.usual import SCORED, Usual
from hushtable.scores.verdict_log import ANSWERS, SKIP, UNDO, Answer, VerdictLog

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Candidates:
    """Some rows out of many, with everything that a review needs to know about them.

    Attributes
    ----------
    numbers : ndarray of shape (n,), int64
        Numbers of the rows, from 0, among all that were read.
    rows : ndarray or pyarrow.RecordBatch
        The features, and the columns to keep.
    codes : Codes
        The features, encoded for scoring.
    n_rows : int
        Number of all rows that were read.
    """

    numbers: Ints
    rows: Batch
    codes: Codes
    n_rows: int

    @classmethod
    def of(cls, scorer: Scorer, numbers: Ints, rows: Batch, n_rows: int) -> "Candidates":
        """Encode some of the rows that were read."""
        return cls(numbers, rows, scorer.encode((0, rows, None)), n_rows)

    def check(self, k: int) -> str:
        """Return a check value of the k-th row under the plan, which differs for other rows."""
        values = self.codes.codes[: len(self.codes.tally), k]
        return hashlib.sha256(values.tobytes()).hexdigest()[:16]

    def place(self, number: int) -> int | None:
        """Return the position of a row among these, or None if it is not one of them."""
        places = np.flatnonzero(self.numbers == number)
        return int(places[0]) if len(places) else None


def lowest_candidates(
    scorer: Scorer,
    reader: Reader,
    most: int,
    keep: Sequence[str],
    usual: Usual | None,
    n_jobs: int | None,
) -> Candidates | None:
    """Keep the rows with the lowest scores in one pass, lowest first; None if there are no rows.

    Rows with a value far outside what is ``usual`` are lower than others. With the owner's rules,
    rows with an impossible value are the lowest, and known rows are left out. Memory stays flat: it
    holds at most two times ``most`` rows, besides the batches being processed.
    """
    kept: list[tuple[Ints, Floats, Batch]] = []
    held, n_rows, bar = 0, 0, np.inf

    def few(item: Numbered) -> tuple[int, Ints, Floats, Batch]:
        start, rows, _ = item
        keys = scorer.scored(item)[1] - _first(scorer, usual, rows)
        places = lowest_rows(keys, most)
        places = places[keys[places] < bar]
        if scorer.rules is not None:
            places = places[~scorer.rules.known(taken(rows, places))]
        return len(keys), start + places, keys[places], taken(rows, places)

    for n, numbers, scores, rows in scorer.mapped(reader, few, n_jobs, keep):
        n_rows += n
        kept.append((numbers, scores, rows))
        held += len(numbers)
        if held > 2 * most:
            kept = [_lowest(kept, most, scorer)]
            held, bar = most, float(kept[0][1][-1])
    if not n_rows:
        return None
    numbers, _, rows = _lowest(kept, most, scorer)
    return Candidates.of(scorer, numbers, rows, n_rows)


def _first(scorer: Scorer, usual: Usual | None, rows: Batch) -> Floats:
    """Return by how much the keys of rows (n,) are below their scores: see `Finding.key`."""
    first = FAR_FIRST * far_outside(scorer, usual, rows)
    if scorer.rules is not None:
        first += IMPOSSIBLE_FIRST * (scorer.rules.impossible(rows) >= 0)
    return first


def _lowest(
    parts: list[tuple[Ints, Floats, Batch]], most: int, scorer: Scorer
) -> tuple[Ints, Floats, Batch]:
    numbers, scores = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    order = np.lexsort((numbers, scores))[:most]
    rows = joined([part[2] for part in parts], _numeric(scorer))
    return numbers[order], scores[order], taken(rows, order)


def _numeric(scorer: Scorer) -> set[str]:
    return {feature.name for feature in scorer.plan.schema.features if feature.kind == "numeric"}


def named_candidates(scorer: Scorer, reader: Reader, numbers: Iterable[int]) -> Candidates:
    """Pick rows by their numbers in one pass; numbers without a row are left out."""
    wanted = np.unique(np.fromiter(numbers, np.int64))
    opened = scorer.open(reader)
    batches, at, start = list[Batch](), list[Ints](), 0
    for batch in opened.read():
        here = wanted[slice(*np.searchsorted(wanted, [start, start + len(batch)]))]
        if len(here) or not batches:
            batches.append(taken(batch, here - start))
            at.append(here)
        start += len(batch)
    rows: Batch = (
        joined(batches, _numeric(scorer)) if batches else np.empty((0, len(scorer.plan.schema)))
    )
    picked = np.concatenate(at) if at else wanted[:0]
    return Candidates.of(scorer, picked, rows, start)


def judged_candidates(
    scorer: Scorer, reader: Reader, checks: Mapping[int, str], source: object
) -> Candidates:
    """Pick the rows of earlier answers by their numbers, given their check values.

    Raises `DataError`, which names the ``source`` of the answers, if a row is not there or is
    another one; an empty check value is that of any row.
    """
    candidates = named_candidates(scorer, reader, checks)
    numbers = candidates.numbers.tolist()
    if lacking := sorted(checks.keys() - {*numbers}):
        raise DataError(
            f"{source} names row {lacking[0]}, but {reader.source} has {candidates.n_rows:,} rows, "
            "numbered from 0: give the rows that were reviewed"
        )
    for k, number in enumerate(numbers):
        if checks[number] not in ("", candidates.check(k)):
            raise DataError(
                f"{source}: row {number} of {reader.source} is not the row that was reviewed: "
                "give the rows and the model of that review, or another log"
            )
    return candidates


#: Number of lowest rows that a verdict scores again; the others wait for `Review.rescan`.
MOST = 20_000
#: Number of rows whose shares show what verdicts changed.
_MOVED = 2_000
#: Part of a usual range within which two numbers are about the same.
_ABOUT = 0.1


class Review:
    """Shows rows, the lowest score first, and learns from each verdict immediately.

    As in a list (`Finding.key`), rows with a value that is impossible, or far outside everything,
    come before the others. All rows are scored once. The lowest are kept and scored again after
    each verdict; the others when `rescan` is called. The model itself does not change. With a
    ``log``, an answer is on disk before it counts. The terminal and the desk are two interfaces to
    a review.

    Parameters
    ----------
    scorer : Scorer
        Scorer of a model, with or without verdicts.
    reader : Reader
        Rows with the plan's features as columns, then ``keep``; as `Scorer.open` returns them.
    keep : sequence of str
        Columns to display with each row.
    usual : Usual, optional
        What is known about the rows that the model counted.
    most : int
        Number of rows to keep.
    n_jobs : int, optional
        Threads for scoring all rows.
    log : VerdictLog, optional
        Where answers are written, and from which the review continues: the last answer to each row
        counts, and verdicts that the model has already learned do not count twice. It must be held:
        see `VerdictLog.held`.
    id_ : str, optional
        The kept column by which the log and the rules name rows.
    rules : path, optional
        The file of the owner's rules, next to the model.

    Raises
    ------
    UsageError
        If verdicts cannot change the model's scores.
    DataError
        If there are no rows, or an answer belongs to another row.

    Examples
    --------
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from hushtable import HushTable
    >>> from hushtable.scores import Scorer
    >>> from hushtable.scores.review import Review
    >>> from hushtable.scores.review import VerdictLog
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> X[7, 2] = 9.0
    >>> scorer = Scorer(HushTable(random_state=0).fit(X).sketch_)
    >>> log = VerdictLog(Path("rows.verdicts.csv"), scorer.plan.first_pass().plan_id, "Ada")
    >>> with log.held():
    ...     review = Review(scorer, scorer.open(X), log=log)
    ...     review.answer(review.next(), "outlier")
    >>> review.answers[0].row
    7
    """

    def __init__(
        self,
        scorer: Scorer,
        reader: Reader,
        *,
        keep: Sequence[str] = (),
        usual: Usual | None = None,
        most: int = MOST,
        n_jobs: int | None = None,
        log: VerdictLog | None = None,
        id_: str | None = None,
        rules: Path | None = None,
    ) -> None:
        check_takes_verdicts(scorer.plan.detector, scorer.plan.score, scorer.plan.family)
        self.scorer, self._reader, self._keep = scorer, reader, tuple(keep)
        self._usual, self._most, self._n_jobs = usual, most, n_jobs
        self.log, self.id_, self.rules = log, id_, rules
        self._model, self.before = apart(scorer.sketch)
        #: Verdicts of this review, and of the one that it continues.
        self.learned = Verdicts.zero(scorer.plan)
        self._coupled = coupling_words(scorer.plan, reader, None)
        #: The answers, in order; the last answer to a row counts.
        self.answers: list[Answer] = []
        #: Verdicts of ``answers`` that the model had learned before: they count once.
        self.n_known = 0
        self._codes: dict[int, Codes] = {}
        if log is not None and log.answers:
            self._recall(log)
        self.rescan()

    @property
    def verdicts(self) -> Verdicts:
        """All verdicts: those that the model had learned, and those of the review."""
        return self.before + self.learned

    @property
    def n_rows(self) -> int:
        """Number of rows that were scored."""
        return self._found.n_rows

    # --- rows to judge ------------------------------------------------------------------------

    def rescan(self) -> None:
        """Score all rows again, with all verdicts so far, and keep the lowest."""
        if self._reader.one_shot and hasattr(self, "_found"):
            raise UsageError("these rows can be read only once: give a file, or rows in memory")
        candidates = lowest_candidates(
            self.scorer, self._reader, self._most, self._columns, self._usual, self._n_jobs
        )
        if candidates is None:
            raise no_rows(self._reader)
        self._found: Candidates = candidates
        self._base = self._model_scoring(candidates.codes)
        self._first = _first(self.scorer, self._usual, candidates.rows)
        self._score()

    @property
    def _columns(self) -> list[str]:
        rules = self.scorer.rules
        return list(dict.fromkeys([*self._keep, *(rules.columns if rules else ())]))

    @cached_property
    def _model_scoring(self) -> Callable[[Codes], Floats]:
        return self.scorer.plan.family.scoring(self._model.cell_scores())

    def _score(self) -> None:
        self.scores = self.scorer.scoring(self._found.codes)
        self._made: Search | None = None

    def next(self) -> Finding | None:
        """Return the unanswered row with the lowest score; None if none is left."""
        number = self.next_number()
        return None if number is None else self.of_row(number)

    def next_number(self) -> int | None:
        """Return the number of the row that `next` returns; None if none is left."""
        numbers = self._found.numbers
        waiting = np.where(np.isin(numbers, list(self.last())), np.inf, self.keys)
        return int(numbers[waiting.argmin()]) if np.isfinite(waiting).any() else None

    @property
    def keys(self) -> Floats:
        """The keys that order the kept rows (n,): see `Finding.key`."""
        return self.scores - self._first

    def of_row(self, number: int) -> Finding:
        """Return a row by its number; raise `UsageError` if it is not among those kept."""
        place = self._found.place(number)
        if place is None:
            raise UsageError(
                f"row {number} is not among the {len(self._found.numbers):,} lowest of "
                f"{self.n_rows:,} rows: answer a row that the review shows or lists"
            )
        return self._at(place)

    def kept(self, number: int) -> dict[str, str]:
        """Return the columns to keep of a kept row, as text; empty if it is not kept."""
        place = self._found.place(number)
        if place is None or not self._keep:
            return {}
        row = taken(self._found.rows, np.array([place]))
        assert isinstance(row, pa.RecordBatch)  # it has names
        return {name: as_text(row.column(name)) for name in self._keep}

    def named(self, column: str | None, text: str, most: int) -> list[tuple[int, str]]:
        """Return kept rows by a text that one of their columns contains, or by their numbers.

        Each is given as its number and its text, the lowest first, and those with exactly the text
        before all others; at most ``most`` rows.
        """
        if column is None or isinstance(self._found.rows, np.ndarray):
            number = int(text) if text.isdecimal() and len(text) < 19 else -1
            return [] if self._found.place(number) is None else [(number, f"{number:,}")]
        text, names = fold(text), fold_texts(self._found.rows.column(column).cast(pa.string()))
        matching = pc.fill_null(pc.match_substring(names, text, ignore_case=True), False)
        places = np.flatnonzero(matching.to_numpy(zero_copy_only=False))
        rows = [(int(self._found.numbers[k]), str(names[k].as_py())) for k in places.tolist()]
        return sorted(rows, key=lambda row: row[1] != text)[:most]

    def alike(self, number: int, n: int) -> list[tuple[int, int]]:
        """Return the kept rows that are most similar to one of them, the nearest first.

        Each is given by its number and by the number of columns in which it is about the same. The
        distance of rows is a mean over the columns: of the difference of two numbers, divided by
        the range from the 5% to the 95% quantile, at most 1; of two categories, 1 if they differ;
        and 1 if only one of the values is missing.
        """
        place = self._found.place(number)
        if place is None:
            raise UsageError(
                f"row {number} is not among those kept: choose a row that the review shows"
            )
        codes = self._found.codes.codes[: len(self._spans)]
        away = np.abs(codes.astype(np.float32) - codes[:, [place]]) / self._spans[:, np.newaxis]
        np.minimum(away, 1.0, out=away)
        far = away.sum(axis=0)
        far[place] = np.inf
        nearest = np.argsort(far, kind="stable")[: min(n, len(far) - 1)]
        same = (away[:, nearest] < _ABOUT).sum(axis=0)
        return list(zip(self._found.numbers[nearest].tolist(), same.tolist(), strict=True))

    @cached_property
    def _spans(self) -> NDArray[np.float32]:
        """Usual ranges of the columns (d,), in codes; below 1 for categories."""
        features = self.scorer.plan.schema.of_rows.features
        spans = np.full(len(features), 0.5, np.float32)
        for j, feature in enumerate(features):
            if feature.kind == "numeric" and not feature.constant:
                usual = None if self._usual is None else self._usual.values[j]
                middle = None if usual is None else usual.middle
                share = 1.0
                if middle is not None and middle[2] > middle[0]:
                    share = (middle[2] - middle[0]) / (feature.high - feature.low)
                spans[j] = max(1.0, kernels.LEVELS * share)
        return spans

    def _at(self, k: int) -> Finding:
        rows = taken(self._found.rows, np.array([k]))
        number, score = int(self._found.numbers[k]), self.scores[k]
        [finding] = explained(self._search.findings(rows), self._reasons, None)
        phrases = RowPhrases(self.scorer.plan, self._usual, rows, 0)
        values = {feature.name: phrases.phrase(j) for j, feature in enumerate(self.features)}
        first = [name for reason in finding.reasons for name in reason.columns]
        share = np.count_nonzero(self.scores <= score) / self.n_rows
        return replace(
            finding,
            row=number,
            score=float(score),
            severity=round(float(100.0 * (1.0 - share)), 10),
            values={name: values[name] for name in (*first, *values)},
        )

    @property
    def features(self) -> tuple[Feature, ...]:
        """The columns to which reasons refer."""
        return self.scorer.plan.schema.of_rows.features

    @property
    def _search(self) -> Search:
        if self._made is None:
            self._made = Search(self.scorer, self._most, keep=self._keep, usual=self._usual)
        return self._made

    @property
    def _reasons(self) -> Reasons:
        assert self._search.reasons is not None
        return self._search.reasons

    def lowest(self, n: int) -> Outliers:
        """Return the first n of the kept rows as a list, and all rows with an answer.

        Severities are among the rows that were scored.
        """
        order = np.argsort(self.keys, kind="stable")
        answered = np.isin(self._found.numbers[order[n:]], list(self.last()))
        chosen = np.concatenate([order[:n], order[n:][answered]])
        bar = self.keys[order[n]] if len(order) > n else None
        findings = self._search.findings(taken(self._found.rows, chosen))
        rows = [
            replace(finding, row=int(self._found.numbers[k]), score=float(self.scores[k]))
            for k, finding in zip(
                chosen.tolist(), explained(findings, self._reasons, bar), strict=True
            )
        ]
        rarer = np.searchsorted(np.sort(self.scores), [row.score for row in rows], "right")
        scorer = self.scorer
        return Outliers(
            rows=with_severities(rows, rarer / self.n_rows),
            among=SCORED,
            keep=self._keep,
            explained=True,
            n_rows=self.n_rows,
            meaning=scorer.plan.score_words(scorer.sketch.noise_sd),
            usual=self._usual,
            features=self.features,
        )

    # --- answers ------------------------------------------------------------------------------

    def answer(self, row: Finding, verdict: str, note: str = "", who: str = "") -> None:
        """Record an answer to one of the kept rows: "outlier", "fine" or "skip"."""
        if verdict not in ANSWERS:
            raise UsageError(f"answer {verdict!r}: needs one of {', '.join(ANSWERS)}")
        place = self._found.place(row.row)
        if place is None:
            raise UsageError(
                f"row {row.row} is no longer among those kept since a rescan: answer another"
            )
        answer = Answer(row.row, verdict, note, self._found.check(place), who)
        if self.log is not None:
            answer = self.log.add(answer, row.kept.get(self.id_ or "", ""), row.score)
        self._codes[answer.row] = self._found.codes.take(np.array([place]))
        before = self.last().get(answer.row)
        self.answers.append(answer)
        self._replace(before, answer)

    def undo(self, who: str = "") -> Answer | None:
        """Take back the last answer, and return it; None if there is none."""
        if not self.answers:
            return None
        gone = self.answers[-1]
        if self.log is not None:
            self.log.add(Answer(gone.row, UNDO, check=gone.check, who=who))
        self.answers.pop()
        self._replace(gone, self.last().get(gone.row))
        return gone

    def add_known(self, row: Finding) -> dict[str, str]:
        """Stop listing a row; return the rule, which is written to the file."""
        if not self.id_:
            raise UsageError("a known row needs --id NAME, the column that names rows")
        rule = {self.id_: row.kept[self.id_]}
        self.write_rule("known", rule, None)
        return rule

    def write_rule(self, kind: str, rule: Mapping[str, object] | None, number: int | None) -> None:
        """Add, change or remove a rule of the file, as `hushtable.scores.rules.write_rule` does.

        All rows are scored again.
        """
        if self.rules is None:
            raise UsageError("rules are kept next to a model on this machine: copy it")
        usual = None if self._usual is None else self._usual.values
        schema = self.scorer.plan.schema
        self.scorer = self.scorer.by_rules(
            write_rule(self.rules, kind, rule, number, schema, usual)
        )
        self.rescan()

    def last(self) -> dict[int, Answer]:
        """Return the last answer to each row."""
        return {answer.row: answer for answer in self.answers}

    def _replace(self, gone: Answer | None, now: Answer | None) -> None:
        before = self.learned
        if gone is not None and gone.verdict != SKIP:
            self.learned = self.learned - self._counted(gone)
        if now is not None and now.verdict != SKIP:
            self.learned = self.learned + self._counted(now)
        if self.learned is not before:
            self._relearn()

    def _counted(self, answer: Answer) -> Verdicts:
        y = np.array([int(answer.verdict == OUTLIER)])
        codes = self._codes[answer.row]
        return Verdicts.of_codes(self.scorer.plan, codes, y, self._coupled)

    def _relearn(self) -> None:
        verdicts = self.verdicts
        model = LearnedModel(self._model, verdicts) if verdicts.n_rows else self._model
        self.scorer = self.scorer.with_counts(model)
        if hasattr(self, "_found"):
            self._score()

    def _recall(self, log: VerdictLog) -> None:
        self.answers = list(log.answers)
        last = self.last()
        checks = {number: answer.check for number, answer in last.items()}
        candidates = judged_candidates(self.scorer, self._reader, checks, log.path)
        for k, number in enumerate(candidates.numbers.tolist()):
            self._codes[number] = candidates.codes.take(np.array([k]))
        for answer in last.values():
            if answer.verdict != SKIP:
                counted = self._counted(answer)
                more = counted.outliers > self.before.outliers, counted.fine > self.before.fine
                if not np.any(more):  # the model may have learned it, in every table
                    self.before, self.n_known = self.before - counted, self.n_known + 1
                self.learned = self.learned + counted
        self._relearn()

    # --- results ------------------------------------------------------------------------------

    def found(self) -> dict[str, int]:
        """Return the numbers of rows judged: verdicts, outliers, skipped; and by score alone.

        ``by_score_alone`` is the number of confirmed outliers among as many rows, taken by their
        scores without verdicts.
        """
        counts, alone = self.curve()
        looked, outliers = len(counts) - 1, int(counts[-1])
        return {
            "looked_at": looked, "outliers": outliers, "fine": looked - outliers,
            "skipped": len(self.last()) - looked, "by_score_alone": int(alone[-1]),
        }  # fmt: skip

    def curve(self) -> tuple[Ints, Ints]:
        """Return how many outliers were found in the first 0, 1, 2... judged rows.

        Returns
        -------
        found, alone : ndarray of shape (looked + 1,), int64
            In the order of the verdicts; and the number of these outliers among as many rows, taken
            by their scores without verdicts.
        """
        answers = [answer for answer in self.last().values() if answer.verdict != SKIP]
        hits = [answer.row for answer in answers if answer.verdict == OUTLIER]
        counts = np.cumsum([0, *(answer.verdict == OUTLIER for answer in answers)])
        base = [float(self._model_scoring(self._codes[row])[0]) for row in hits]
        rank = np.searchsorted(np.sort(self._base), np.array(base), "left")
        at = np.searchsorted(np.sort(rank), np.arange(len(answers) + 1), "left")
        return counts.astype(np.int64), at.astype(np.int64)

    def moved_columns(self) -> list[tuple[str, float]]:
        """Return by how many bits verdicts changed the shares of columns, the largest first.

        The values are means over the lowest rows, at most 2,000.
        """
        if not self.verdicts.n_rows:
            return []
        few = taken(self._found.rows, np.arange(min(_MOVED, len(self._found.rows))))
        scorers = self.scorer, self.scorer.with_counts(self._model)
        now, before = (Explainer(scorer).explained((0, few, None)).shares for scorer in scorers)
        bits = np.abs(now - before).mean(axis=0)
        names = self.scorer.plan.schema.of_rows.names
        return [(names[j], float(bits[j])) for j in np.argsort(-bits, kind="stable").tolist()]

    def places(self, n: int) -> list[tuple[int, int, int]]:
        """Return the places of the rows that are first with all verdicts, or were first before.

        Each row has its number, its place with all verdicts, and its place by the model alone,
        from 1.
        """
        now, before = (np.argsort(np.argsort(x, kind="stable")) for x in (self.scores, self._base))
        few = np.flatnonzero((now < n) | (before < n))
        places = [(int(self._found.numbers[k]), int(now[k]) + 1, int(before[k]) + 1) for k in few]
        return sorted(places, key=lambda place: place[1:])


class DetectorReview:
    """A review of rows by a detector, which learns from each answer.

    Attributes
    ----------
    row : Finding or None
        The row to judge: ``row.row`` is its number, ``row.words`` says why it is listed, and
        ``row.to_dict()`` has its values. None if no row is left.
    """

    def __init__(
        self,
        review: Review,
        learned: Callable[[], Verdicts | None],
        learn: Callable[[Verdicts | None], object],
    ) -> None:
        #: What the detector has learned, and how it learns all verdicts again.
        self._learned, self._learn = learned, learn
        self._review, self._known = review, learned()
        self.row: Finding | None = review.next()

    def __iter__(self) -> Iterator[Finding]:
        """Yield the rows to judge; the review skips a row that the loop does not answer."""
        while (row := self.row) is not None:
            yield row
            if self.row is row:
                self.skip()

    def outlier(self, note: str = "") -> Finding | None:
        """Mark the row as an outlier; return the next row."""
        return self._answer(OUTLIER, note)

    def fine(self, note: str = "") -> Finding | None:
        """Mark the row as fine; return the next row."""
        return self._answer(FINE, note)

    def skip(self) -> Finding | None:
        """Give no verdict on the row; return the next row."""
        return self._answer(SKIP)

    def undo(self) -> Finding | None:
        """Take back the last answer; return the row to judge."""
        self._check()
        if self._review.undo() is None:
            raise UsageError("there is no answer to take back")
        return self._go_on()

    def rescan(self) -> Finding | None:
        """Score all rows again with all verdicts so far; return the row to judge."""
        self._review.rescan()
        self.row = self._review.next()
        return self.row

    def found(self) -> dict[str, int]:
        """Return the counts of this review: rows judged, outliers, fine rows, skipped rows.

        ``by_score_alone`` is the number of confirmed outliers among as many rows, taken by their
        scores without verdicts.
        """
        return self._review.found()

    def answered(self) -> dict[int, str]:
        """Return the last answer to each row, by its number: "outlier", "fine" or "skip"."""
        return {row: answer.verdict for row, answer in self._review.last().items()}

    @property
    def verdicts(self) -> Verdicts:
        """All verdicts that the detector has learned."""
        return self._review.verdicts

    def _answer(self, verdict: str, note: str = "") -> Finding | None:
        self._check()
        if self.row is None:
            raise UsageError("no row is left to judge: call rescan(), or review other rows")
        self._review.answer(self.row, verdict, note)
        return self._go_on()

    def _go_on(self) -> Finding | None:
        verdicts = self._review.verdicts
        self._learn(verdicts if verdicts.n_rows else None)
        self._known = self._learned()
        self.row = self._review.next()
        return self.row

    def _check(self) -> None:
        """Refuse to overwrite verdicts that the detector learned elsewhere in the meantime."""
        if self._learned() is not self._known:
            raise UsageError(
                "the detector has learned or forgotten other verdicts since this review began: "
                "start a new one with detector.review(X)"
            )


def apart(model: Counts) -> tuple[Counts, Verdicts]:
    """Return the counts of a model, and the exact verdicts that it has learned."""
    if not isinstance(model, LearnedModel):
        return model, Verdicts.zero(model.plan)
    return model.model, model.verdicts
