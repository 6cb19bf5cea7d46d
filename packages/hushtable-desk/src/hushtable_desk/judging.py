"""The rows of a table, scored by a model: the list, a row, and verdicts on it."""

import contextlib
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from hushtable.charts.reasons import Pictures
from hushtable.data.columns import texts_column
from hushtable.data.options import RowOptions, notes
from hushtable.data.readers import Reader
from hushtable.detectors.load import OpenedModel, open_model
from hushtable.errors import DataError, UsageError
from hushtable.files import remove_leftovers
from hushtable.language import N_, numerals, spoken
from hushtable.plans.plan import Plan
from hushtable.scores.finding import Finding
from hushtable.scores.reasons import Reason
from hushtable.scores.review import MOST, Review
from hushtable.scores.rules import parsed_rules, rules_path
from hushtable.scores.verdict_log import (
    SKIP,
    Answer,
    VerdictLog,
    answers_in,
    plan_of_log,
)
from hushtable_desk.folder import LOG, Folder
from hushtable_desk.language import _
from hushtable_desk.listing import Line, Listing

#: Verdicts and directions of values, with the same names as in the log and in reasons.
WORDS = (
    N_("outlier"), N_("fine"), N_("skip"), N_("new"), N_("high"), N_("low"), N_("rare"),
    N_("missing"), N_("beyond"),
)  # fmt: skip
#: Rows of a list at first, additional rows at a time, and decisions that stay visible.
LISTED, LAST = 100, 10
#: Values of the lowest rows that are kept at most; tables with many columns keep fewer rows.
_MOST_VALUES = 4_000_000
#: Characters of a person's name that no name of a file has.
_NO_NAME = re.compile(r"[^\w .-]")
#: Rows that are listed as similar.
_ALIKE = 4


@dataclass(frozen=True)
class ReasonView:
    """A reason for the page."""

    reason: Reason
    picture: Markup
    share: int


@dataclass(frozen=True)
class AlikeView:
    """A row that is similar to another: its number, its name, and the last verdict on it."""

    number: int
    name: str
    verdict: str
    same: int


@dataclass(frozen=True)
class RowView:
    """A row for the page."""

    row: Finding
    name: str
    reasons: list[ReasonView]
    answer: Answer | None
    history: list[Answer]
    others: list[Answer]
    alike: list[AlikeView]

    @property
    def is_named(self) -> bool:
        """Whether an identifier names the row, and not its number."""
        return self.name != numerals(f"{self.row.row:,}")


class JudgedRows:
    """Rows to judge: scored by a model, with the log of verdicts on them open.

    Attributes
    ----------
    model_name : str
        Name of the model's file.
    review : Review
        The review, which `hushtable review` can continue.
    """

    def __init__(
        self, folder: Folder, path: Path, model_name: str, model: OpenedModel, review: Review,
        held: contextlib.ExitStack, said: Sequence[str], options: RowOptions,
    ) -> None:  # fmt: skip
        self._folder, self.path, self.model_name = folder, path, model_name
        self.model, self.review = model, review
        self.lock = threading.RLock()
        #: Sentences on the rows and the model, for the reader of the page.
        self.said = list(said)
        self._held, self._stamp, self.options = held, _stamp(path), options
        self._n = LISTED
        #: How many answers each action recorded, the latest last.
        self._together: list[int] = []
        #: The last row that was viewed, as it was displayed.
        self._shown: Finding | None = None
        #: The logs of others as they were read, and their last verdicts by row.
        self._read: tuple[object, dict[int, list[Answer]]] = None, {}
        #: In the language that it was made in.
        self._listing: Listing | None = None
        self._language = ""

    @classmethod
    def of(
        cls, folder: Folder, name: str, model_name: str, options: RowOptions, keep: Sequence[str],
        id_: str | None, who: str, apart: bool, watched: Callable[[Reader], Reader],
    ) -> "JudgedRows":  # fmt: skip
        """Score a table of a folder with a model of the folder, and open its log.

        The log is that of ``who`` if there is one, or if it is to be ``apart`` from others. Raises
        `LogInUseError` if another review or desk has the log open, and `DataError` if the rows do
        not fit the model.
        """
        path, model_path = folder.file(name), folder.file(model_name)
        notes.clear()
        model = open_model(model_path)
        schema, plan = model.scorer.plan.schema, model.scorer.plan
        kept = [col for col in keep if col not in schema.names]
        ruled = [] if model.scorer.rules is None else model.scorer.rules.columns
        reader = options.open_as(
            str(path), schema, model.reading, list(dict.fromkeys([*kept, *ruled]))
        )
        mine = f"{name}.{_NO_NAME.sub('_', who)}"
        if not apart and not (folder.path / f"{mine}{LOG}").is_file():
            mine = name
        log = VerdictLog(_log_of(folder, mine, model_name, plan), plan.first_pass().plan_id, "")
        with contextlib.ExitStack() as stack:
            stack.enter_context(log.held())
            review = Review(
                model.scorer, watched(reader), keep=kept, usual=model.usual,
                most=int(np.clip(_MOST_VALUES // len(schema), LISTED + 1, MOST)), n_jobs=-1,
                log=log, id_=id_ if id_ in kept else None, rules=rules_path(model_path),
            )  # fmt: skip
            return cls(folder, path, model_name, model, review, stack.pop_all(), notes, options)

    def close(self) -> None:
        """Release the log."""
        self._held.close()

    # --- the list ---------------------------------------------------------------------------------

    @property
    def listing(self) -> Listing:
        """The most unusual rows, in the order of the last sorting."""
        with self.lock:
            if self._listing is None or self._language != spoken():
                self._language = spoken()
                lowest = self.review.lowest(self._n)
                context = self.model.scorer.plan.context
                self._listing = Listing(
                    lowest, self.review.last, lambda: self.others, self.review.id_, context
                )
            return self._listing

    @property
    def others(self) -> dict[int, list[Answer]]:
        """The last verdict of each other person on each row that has one, by the row's number."""
        log = self.review.log
        assert log is not None  # see `of`
        plan_id = self.model.scorer.plan.first_pass().plan_id
        logs = [
            file for file in self._folder.logs
            if file.name.startswith(f"{self.path.name}.") and file.name != log.path.name
        ]  # fmt: skip
        with self.lock:
            if self._read[0] != logs:
                by_row: dict[int, list[Answer]] = {}
                for file in logs:
                    path = self._folder.file(file.name)
                    if plan_of_log(path) == plan_id:
                        answers = answers_in(path.read_bytes(), path, plan_id)
                        for answer in {answer.row: answer for answer in answers}.values():
                            if answer.verdict != SKIP:
                                by_row.setdefault(answer.row, []).append(answer)
                self._read = logs, by_row
            return self._read[1]

    def sort(self, n: int | None = None) -> None:
        """Sort all rows by all verdicts so far, or only the kept rows for a longer list."""
        with self.lock:
            self._check_unchanged()
            if n is None:
                self.review.rescan()
            self._n = n or self._n
            self._listing = None

    @property
    def more(self) -> int:
        """The number of rows of a longer list; 0 if there are no more."""
        kept = len(self.review.scores)
        return min(self._n + LISTED, kept) if self._n < kept else 0

    # --- a row ------------------------------------------------------------------------------------

    @cached_property
    def pictures(self) -> Pictures:
        """Draws reasons."""
        return Pictures(self.model.scorer.plan.schema.of_rows.features, self.model.usual)

    def view(self, number: int) -> RowView:
        """Return a row for its page; raise `UsageError` if it is not among the kept rows."""
        with self.lock:
            row = self._shown = self.review.of_row(number)
            reasons = row.reasons
            total = sum(reason.share for reason in reasons) or 1.0
            last = self.review.last()
            alike = [
                AlikeView(k, self.name_of(k), last[k].verdict if k in last else "", same)
                for k, same in self.review.alike(number, _ALIKE)
            ]
            return RowView(
                row,
                self.name_of(number),
                [
                    ReasonView(r, self.pictures.of(r), round(100.0 * r.share / total))
                    for r in reasons
                ],
                last.get(number),
                [answer for answer in self.review.answers if answer.row == number],
                self.others.get(number, []),
                alike,
            )

    def name_of(self, number: int) -> str:
        """Return the name of a row: its identifier or its number."""
        id_ = self.review.id_
        text = self.review.kept(number).get(id_, "") if id_ else ""
        return text or numerals(f"{number:,}")

    def time_of(self, number: int) -> float:
        """Return the time of a row's reading, in seconds since 1970; NaN if it is not known."""
        reading = self.model.reading
        text = self.review.kept(number).get(reading.time, "")
        return float(reading.column(reading.time, "date").values(texts_column([text]))[0])

    def next(self, after: int | None = None, chosen: Sequence[int] | None = None) -> int | None:
        """Return the number of the next row to judge; None if there is none.

        This is the row with the lowest score and no answer, or the first of the ``chosen`` rows of
        a list, from ``after`` on.
        """
        with self.lock:
            if chosen is None:
                return self.review.next_number()
            last = self.review.last()
            at = list(chosen).index(after) + 1 if after is not None and after in chosen else 0
            return next((k for k in [*chosen[at:], *chosen[:at]] if k not in last), None)

    def find(self, text: str, most: int = 20) -> list[tuple[int, str]]:
        """Return numbers and names of rows whose name, reasons or values hold a text.

        Names are those of all kept rows; reasons and values are those of the list.
        """
        text = text.strip()
        with self.lock:
            named = [number for number, _name in self.review.named(self.review.id_, text, most)]
            holds = [line.number for line in self.listing.lines if self.listing.holds(line, text)]
            return [(k, self.name_of(k)) for k in list(dict.fromkeys([*named, *holds]))[:most]]

    # --- verdicts ---------------------------------------------------------------------------------

    def answer(self, number: int, verdict: str, note: str = "", who: str = "") -> None:
        """Record a verdict, which is in the log when this returns."""
        with self.lock:
            self._check_unchanged()
            is_current = self._shown is not None and self._shown.row == number
            row = self._shown if is_current and self._shown else self.review.of_row(number)
            self.review.answer(row, verdict, note, who)
            self._together.append(1)

    def answer_all(self, lines: Sequence[Line], verdict: str, note: str = "", who: str = "") -> int:
        """Record the same verdict on all rows of a list that have none; return their number."""
        with self.lock:
            self._check_unchanged()
            rows = [line.row for line in lines if line.answer is None]
            for row in rows:
                self.review.answer(row, verdict, note, who)
                self._together.append(1)  # if the next one cannot be written
            if rows:
                self._together[-len(rows) :] = [len(rows)]
            return len(rows)

    def undo(self, who: str = "") -> list[Answer]:
        """Take the last verdict back, or all that were recorded together; return them."""
        with self.lock:
            n = self._together.pop() if self._together else 1
            gone = [self.review.undo(who) for _k in range(n)]
            return [row for row in gone if row is not None]

    def add_known(self, number: int) -> None:
        """Write the rule that a row is known, and score all rows with it."""
        if not self.review.id_:
            raise UsageError(
                _("rows have no identifier: choose a column for “%(setting)s” on the "
                          "page of the table, and score again",
                          setting=_("Rows are named by"))
            )  # fmt: skip
        name = self.review.kept(number)[self.review.id_]
        self.write_rule("known", {self.review.id_: name}, None)

    @property
    def rules(self) -> dict[str, Any]:
        """The content of the file of rules next to the model."""
        path = self.review.rules
        return parsed_rules(path) if path and path.exists() else {}

    def write_rule(self, kind: str, rule: Mapping[str, Any] | None, number: int | None) -> None:
        """Add, change or remove a rule, and score all rows with the rules."""
        with self.lock:
            self._check_unchanged()
            self.review.write_rule(kind, rule, number)
            self._listing = None

    @property
    def last(self) -> list[tuple[Answer, str]]:
        """The last decisions, the latest last, each with the name of its row."""
        with self.lock:
            return [(answer, self.name_of(answer.row)) for answer in self.review.answers[-LAST:]]

    @property
    def is_changed(self) -> bool:
        """Whether the file has changed or disappeared since it was read."""
        return _stamp(self.path) != self._stamp

    def _check_unchanged(self) -> None:
        if self.is_changed:
            raise DataError(
                f"{self.path.name} has changed or disappeared since it was read: read it again. "
                "The verdicts so far are in the log"
            )

    # --- exports ----------------------------------------------------------------------------------

    def save_learned(self, path: Path) -> None:
        """Write the model with all verdicts of the log."""
        from hushtable.detectors.load import learned_detector  # imported only when needed

        with self.lock:
            detector = learned_detector(self.path.with_name(self.model_name), self.review.verdicts)
            detector.save(path)
            remove_leftovers(path.parent, path.name)


def _log_of(folder: Folder, name: str, model_name: str, plan: Plan) -> Path:
    log = first = folder.file(f"{name}{LOG}")
    while plan_of_log(first) not in (None, plan.first_pass().plan_id):
        name = f"{name}.{Path(model_name).stem}"
        first = folder.file(f"{name}{LOG}")
    if first != log:
        notes.append(
            f"{log.name} holds verdicts under another model and does not change: verdicts under "
            f"{model_name} are in {first.name}."
        )
    return first


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except FileNotFoundError:
        return -1, -1
    return status.st_size, status.st_mtime_ns
