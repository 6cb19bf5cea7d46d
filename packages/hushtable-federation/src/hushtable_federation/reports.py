"""The report of a visit for machines: one word, one exit code, lines of a log, and figures."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from hushtable.errors import FileError, HushTableError, MissingExtraError, UsageError, explain
from hushtable_federation.clock import goes_on, now, shown_time, stamp
from hushtable_federation.folder.round_folder import RoundFolder
from hushtable_federation.refusals import Refusal, SiteLog
from hushtable_federation.site import Site
from hushtable_federation.visits import State, Visit

#: All states, the one first that stands for a visit to several rounds.
STATES: tuple[State, ...] = (
    "failed", "refused", "over", "act", "left-out", "waiting", "done",
)  # fmt: skip
#: Of rounds that are not at their end for this party.
_OPEN: tuple[State, ...] = "act", "waiting", "over", "refused", "failed"
Visited = Sequence[tuple[RoundFolder, Visit]]


@dataclass
class VisitReport:
    """How a visit went, as a scheduler, a log and a monitor learn it.

    Parameters
    ----------
    site : Site
        Who makes the visit; its file says where log and figures go.

    Attributes
    ----------
    state : str
        One of `STATES`: of several rounds, the most urgent.
    exit_code : int
        1 where a round cannot go on, or a log or figures could not be written; 2 for wrong usage;
        3 where a person has to act; else 0.
    not_written : list of str
        Why a log or figures could not be written.

    Raises
    ------
    MissingExtraError
        If figures are to be written, and the library is missing: before anything is done.
    """

    site: Site
    state: State = "failed"
    exit_code: int = 1
    not_written: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.site.settings.metrics is not None:
            try:
                import_module("prometheus_client")
            except ImportError:
                raise MissingExtraError("metrics", "prometheus-client", "metrics") from None

    def of(self, visited: Visited) -> "VisitReport":
        """Note how the rounds stand; write what the site's file asks for."""
        visits = [visit for _, visit in visited]
        codes = {visit.exit_code for visit in visits}
        self.exit_code = next((code for code in (1, 3) if code in codes), 0)
        urgent = {visit.state for visit in visits if visit.exit_code == self.exit_code}
        self.state = next((state for state in STATES if state in urgent), "waiting")
        return self._write([self._record(*one) for one in visited], visited)

    def failed(self, error: HushTableError | OSError) -> "VisitReport":
        """Note that the visit as a whole failed, by an error that is reported elsewhere."""
        word = str(getattr(error, "word", None) or "")
        self.exit_code = 2 if isinstance(error, UsageError) else 1
        self.state = "failed" if word in ("", Refusal.UNAVAILABLE) else "refused"
        record = self._base() | {
            "round": "", "title": "", "role": "", "state": self.state, "exit_code": self.exit_code,
            "words": [type(error).__name__, *([word] if word else [])],
        }  # fmt: skip
        return self._write([record], [])

    def line(self, visited: Visited = ()) -> str:
        """Return the status in one line, for people."""
        open_ = [one.round.deadline for one, visit in visited if visit.state in _OPEN]
        ahead = [deadline for deadline in open_ if now() <= goes_on(deadline)]
        until = ""
        if ahead:
            first = min(ahead)
            until = f"; deadline {shown_time(first)}, continues at {shown_time(goes_on(first))}"
        return f"State: {self.state}; exit code {self.exit_code}{until}."

    # --- the log --------------------------------------------------------------------------------

    def _base(self) -> dict[str, Any]:
        return {"time": stamp(now()), "name": self.site.settings.key.stem}

    def _record(self, round_folder: RoundFolder, visit: Visit) -> dict[str, Any]:
        asked, me = round_folder.round, self.site.card
        found = [f"Found out: {name} {why}." for name, why in visit.found_out.items()]
        return self._base() | {
            "round": asked.round_id[:12],
            "title": asked.title,
            "role": "coordinator" if me == asked.coordinator else "site",
            "name": me.name,
            "state": visit.state,
            "exit_code": visit.exit_code,
            "deadline": stamp(asked.deadline),
            "goes_on": stamp(goes_on(asked.deadline)),
            "posted": visit.posted,
            "waits_for": visit.waits_for,
            "words": [] if visit.is_private else [*visit.words, *found],
        }

    def _write(self, records: list[dict[str, Any]], visited: Visited) -> "VisitReport":
        settings = self.site.settings
        log = SiteLog(settings.book.with_suffix(".log"), settings.log)
        try:
            for record in records:
                log.visit(record)
        except FileError as error:
            self._lacks(str(error))
        if settings.metrics is not None:
            try:
                self._write_metrics(settings.metrics, visited)
            except OSError as error:
                self._lacks(f"metrics: {settings.metrics} cannot be written: {explain(error)}")
        return self

    def _lacks(self, words: str) -> None:
        # The visit itself succeeded.
        self.not_written.append(words)
        self.exit_code = self.exit_code if self.exit_code == 2 else 1
        print(f"hushtable: warning: {words}", file=sys.stderr)

    # --- figures --------------------------------------------------------------------------------

    def _write_metrics(self, path: Path, visited: Visited) -> None:
        from prometheus_client import CollectorRegistry, Gauge, write_to_textfile

        registry, name = CollectorRegistry(), self.site.settings.key.stem

        def gauge(what: str, words: str, values: dict[str, float], label: str = "") -> None:
            labels = ["name", label] if label else ["name"]
            made = Gauge(f"hushtable_{what}", words, labels, registry=registry)
            for value, figure in values.items():
                made.labels(*([name, value] if label else [name])).set(figure)

        states = [visit.state for _, visit in visited]
        gauge("last_visit_timestamp_seconds", "When the last visit ended.",
              {"": now().timestamp()})  # fmt: skip
        gauge("last_visit_exit_code", "Exit code of the last visit.", {"": self.exit_code})
        gauge("visit_state", "1 for the state of the last visit.",
              {state: state == self.state for state in STATES}, "state")  # fmt: skip
        if visited:
            gauge("rounds", "Rounds in the folder by state, at the last visit.",
                  {state: states.count(state) for state in STATES}, "state")  # fmt: skip
            gauge("rounds_open", "Rounds that are not at their end for this party.",
                  {"": sum(state in _OPEN for state in states)})  # fmt: skip
            gauge("left_out", "Rounds whose result is, or will be, without this site.",
                  {"": states.count("left-out")})  # fmt: skip
        ends = [one.round.deadline for one, visit in visited if visit.state in _OPEN]
        if ends:
            gauge("next_deadline_timestamp_seconds", "The first deadline of the open rounds.",
                  {"": min(ends).timestamp()})  # fmt: skip
        cap, left = self._budget()
        gauge("epsilon_cap", "Epsilon that all rounds about a set of rows may cost.", cap,
              "data_set")  # fmt: skip
        gauge("epsilon_left", "Epsilon of the cap that is not spent.", left, "data_set")
        write_to_textfile(str(path), registry)
        os.chmod(path, 0o644)  # node_exporter is another user

    def _budget(self) -> tuple[dict[str, float], dict[str, float]]:
        if not self.site.settings.book.exists():
            return {}, {}
        try:
            with self.site.book() as book:
                names = [*dict.fromkeys([self.site.settings.data_set, *book.data_sets()])]
                left = {name: book.epsilon - book.total(name) for name in names}
                return dict.fromkeys(names, book.epsilon), left
        except HushTableError as error:
            self._lacks(f"metrics: no budget: {error}")
            return {}, {}
