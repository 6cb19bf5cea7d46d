"""``hushtable round sync`` and ``amend``: what is next in a folder of rounds, and changes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from hushtable.cli.options import option
from hushtable.cli.output import shown
from hushtable.cli.result import Block, CommandResult, Paragraph, for_machines
from hushtable.errors import HushTableError, UsageError
from hushtable_federation.cli import _common as common
from hushtable_federation.cli._answering import ANSWERS, Answers, Rows, Screen
from hushtable_federation.clock import goes_on, now, shown_time, stamp
from hushtable_federation.coordinator import NoRoundError
from hushtable_federation.describe import (
    aside_lines,
    damaged_words,
    done_words,
    next_lines,
    waits_words,
)
from hushtable_federation.folder.mailbox import Store, is_private
from hushtable_federation.folder.round_folder import RoundFolder
from hushtable_federation.reports import VisitReport
from hushtable_federation.settings import SiteSettings
from hushtable_federation.site import Site
from hushtable_federation.visit import Visit

_Post = Annotated[
    list[Path] | None,
    option("ROUND", "At the coordinator: a round to put into the folder. May be repeated."),
]
_Results = Annotated[Path | None, option("DIR", "Where results are written.", "--output", "-o")]
_Which = Annotated[str, option("ID", "One round alone, by the first digits of its id.")]
_Unattended = Annotated[
    bool,
    typer.Option("--unattended", help="No one is here: answer what the policy allows, or refuse."),
]


def sync(
    folder: common.FolderArgument = "",
    data: Rows = None,
    output: _Results = None,
    post: _Post = None,
    which: _Which = "",
    unattended: _Unattended = False,
    answers: Answers = ANSWERS,
) -> CommandResult:
    """Do whatever is to be done next in a folder where rounds live.

    Says what it waits for. For coordinator and sites alike; call it again whenever you like, also
    from cron (--unattended, as far as the policy allows). A masked round takes three visits of a
    site (a key for this round, its counts, its help to take the masks off), and four if sites are
    missing. What was put there is never changed; what got lost is put there again. Where no folder
    is shared, each party has one of its own: send the files that are named as new to all others,
    who put them into theirs.

    The last line says the state in one word. Exit codes: 0 waiting or done, nothing to do here; 1
    refused, failed, or over; 2 wrong usage; 3 act or left-out: a person has to act, since rows are
    asked for, a site refused or answered twice, or the result is without this site.

    Example:
      hushtable round sync /mnt/round --site north.toml
    """
    site = answers.open(data, output)
    common.check_folder(folder, site.settings)
    if data is not None and not unattended:
        answers.check_asked(for_machines())
    screen, report = Screen(answers, quiet=for_machines(), unattended=unattended), VisitReport(site)
    try:
        new = site.lead.post(folder, *common.present(post)) if post else []
        visited = site.sync(folder, which=which, attendant=screen)
    except (HushTableError, OSError) as error:
        if unattended and isinstance(error, NoRoundError):
            return _none_yet(site, report, str(error))
        report.failed(error)
        if unattended and not for_machines():
            print(report.line())
        raise
    store = visited[0][0].store
    new += store.written
    facts = {
        "command": "round sync",
        "folder": store.where,
        "name": site.card.name,
        "state": report.of(visited).state,
        "not_written": report.not_written,
        "aside": store.aside,
        "new_files": new,
        "rounds": [_facts(round_folder, visit, screen) for round_folder, visit in visited],
    }
    summary = _Summary(store, site, answers, output, new)
    blocks = [*summary.blocks(visited), report.line(visited)]
    return CommandResult(facts, blocks, report.exit_code)


def _none_yet(site: Site, report: VisitReport, words: str) -> CommandResult:
    """Return what a timer learns that calls before the first round is there."""
    facts = {
        "command": "round sync",
        "name": site.card.name,
        "state": report.of([]).state,
        "not_written": report.not_written,
        "rounds": [],
    }
    return CommandResult(facts, [Paragraph([words]), report.line()], report.exit_code)


# --- for people and machines ----------------------------------------------------------------------


def _facts(round_folder: RoundFolder, visit: Visit, screen: Screen) -> dict[str, Any]:
    return {
        "round_id": round_folder.round.round_id,
        "title": round_folder.round.title,
        **common.period_facts(round_folder.round),
        "state": visit.state,
        "posted": visit.posted,
        "waits_for": visit.waits_for,
        "exit_code": visit.exit_code,
        "needs_person": visit.needs_person,
        "deadline": stamp(round_folder.round.deadline),
        "goes_on": stamp(goes_on(round_folder.round.deadline)),
        "amendments": round_folder.amendment.number,
        "words": visit.words,
        "found_out": visit.found_out,
        "set_aside": round_folder.odd,
        "counted": screen.counted.get(round_folder.round.round_id),
    }


@dataclass
class _Summary:
    """Says what was done, who is awaited, what to do, and when to call again."""

    store: Store
    site: Site
    answers: Answers
    output: Path | None
    new: Sequence[str]

    def blocks(self, visited: Sequence[tuple[RoundFolder, Visit]]) -> Iterator[Block]:
        for round_folder, visit in visited:
            yield from self._of_one(round_folder, visit)
        if self.store.aside:
            yield Paragraph([f"{shown(self.store.aside)}."])
        if self.store.damaged:
            yield damaged_words(len(self.store.damaged))
        if self.new and is_private(self.store.where):
            yield "New in this folder, to be sent to all others if they do not see it:"
            yield "\n".join(f"  {name}" for name in self.new)
        me = self.site.card.name
        asked = [one for one, visit in visited if visit.state == "act" and me in visit.waits_for]
        if any(self.site.card in one.round.sites for one in asked):
            yield "To do here: answer, with this site's rows:"
            yield f"  {self._command('DATA ')}"
            return
        states = {visit.state for _, visit in visited}
        if "act" in states:
            yield "To do here: what is said above. Then call again:"
            yield f"  {self._command()}"
        elif "waiting" in states:
            yield "To do here: nothing now. Call again when the others have called, or each day:"
            yield f"  {self._command()}"

    def _of_one(self, round_folder: RoundFolder, visit: Visit) -> Iterator[Block]:
        title = f" {shown(round_folder.round.title)}" if round_folder.round.title else ""
        yield f"Round {round_folder.round.round_id[:12]}{title}: {_STATES[visit.state]}."
        me = self.site.card.name
        lines = [*done_words(visit.posted), *visit.words, *waits_words(round_folder, visit, me)]
        lines += [f"Found out: {shown(name)} {why}." for name, why in visit.found_out.items()]
        lines += aside_lines(round_folder.odd)
        yield Paragraph(map(shown, lines), indent="  ")
        result = self.site.result(round_folder.round)
        if visit.state == "done" or (visit.state == "left-out" and result.exists()):
            yield "\n".join(f"  {line}" for line in next_lines(round_folder.round, result))

    def _command(self, data: str = "") -> str:
        option, path = "--key", self.site.settings.key
        if self.answers.site is not None:
            option, path = "--site", self.answers.site
        there = "" if self.output is None else f" -o {quote(str(self.output))}"
        where = f"{quote(self.store.where)} "
        if not data and self.site.settings.address.folder:
            where = ""
        return f"hushtable round sync {where}{data}{option} {quote(str(path))}{there}"


_STATES = {
    "waiting": "waits for others",
    "done": "done",
    "act": "a person has to act",
    "left-out": "without this site",
    "over": "the time is over",
    "refused": "refused here",
    "failed": "cannot go on",
}


# --- round amend ----------------------------------------------------------------------------------

_Key = Annotated[Path, option("FILE", "The coordinator's keys, or its file.", "--key")]
_Days = Annotated[float | None, option("N", "Days from now until the deadline.", min=0, max=3650)]
_Drop = Annotated[
    list[str] | None, option("SITE", "Go on without this site: late, away, or with lost keys.")
]
_Why = Annotated[str, option("TEXT", "The reason, which the sites see.")]


def amend(
    key: _Key,
    folder: common.FolderArgument = "",
    days: _Days = None,
    drop: _Drop = None,
    why: _Why = "",
    which: _Which = "",
) -> CommandResult:
    """Extend a round in a folder, or go on without a site.

    The sites see what you signed. Until it is decided who is in the sum: from then on, no one can
    be dropped, and what is missing is made up for by the others. A site whose card is revoked is
    dropped, and gets a new card in the next round.

    Example:
      hushtable round amend /mnt/round --key lead.key --days 3 --drop north --why "server down"
    """
    if days is None and not drop:
        raise UsageError("nothing to amend: give --days, --drop, or both")
    settings = SiteSettings.load(key)
    common.check_folder(folder, settings)
    lead = Site(settings).lead
    deadline = None if days is None else common.days_on(days)
    asked, made = lead.amend(folder, which=which, deadline=deadline, drop=drop or (), why=why)
    facts: dict[str, Any] = {
        "command": "round amend",
        "round_id": asked.round_id,
        "number": made.number,
        "deadline": stamp(made.deadline),
        "dropped": list(made.dropped),
        "why": made.why,
    }

    def blocks() -> Iterator[Block]:
        over = " (over)" if now() > made.deadline else ""
        yield f"Round {asked.round_id[:12]}, amendment {made.number}:"
        yield f"  until {shown_time(made.deadline)}{over}"
        if made.dropped:
            yield f"  without {', '.join(map(shown, made.dropped))}"
        yield f"It lies in {folder or settings.address.folder}. Go on with: hushtable round sync"

    return CommandResult(facts, blocks())
