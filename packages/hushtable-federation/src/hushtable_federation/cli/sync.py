"""``hushtable round sync`` and ``amend``: the next step in a folder of rounds, and changes."""

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
)
from hushtable_federation.folder.mailbox import Store, is_private
from hushtable_federation.folder.round_folder import RoundFolder
from hushtable_federation.reports import VisitReport
from hushtable_federation.settings import SiteSettings
from hushtable_federation.site import Site
from hushtable_federation.visits.visit import Visit

_Post = Annotated[
    list[Path] | None,
    option("ROUND", "At the coordinator: a round to put into the folder. May be repeated."),
]
_Results = Annotated[Path | None, option("DIR", "Folder to write results to.", "--output", "-o")]
_Which = Annotated[str, option("ID", "Only this round, given by the first digits of its id.")]
_Unattended = Annotated[
    bool,
    typer.Option(
        "--unattended", help="Run without prompts: answer what the policy allows, refuse the rest."
    ),
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
    """Do whatever is next in a folder of rounds.

    The coordinator and the sites use the same command. It reports what it waits for. Run it as
    often as you like, also from cron (with --unattended, as far as the policy allows). In a masked
    round, a site runs it three times (to send a key for this round, to send its counts, and to help
    remove the masks), and four times if sites are missing. Files in the folder are never changed;
    lost files are written again. Without a shared folder, each party has its own: send the files
    that the command lists as new to all others, who put them into their folders.

    The last line contains the state in one word. Exit codes: 0 waiting or done, nothing to do here;
    1 refused, failed, or over; 2 wrong usage; 3 act or left-out: a person has to act, because the
    round waits for this site's data, a site refused or answered twice, or the result is without
    this site.

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
        "fingerprint": round_folder.round.fingerprint,
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
            yield "New in this folder (send these files to all others if they do not share it):"
            yield "\n".join(f"  {name}" for name in self.new)
        me = self.site.card.name
        asked = [one for one, visit in visited if visit.state == "act" and me in visit.waits_for]
        if any(self.site.card in one.round.sites for one in asked):
            yield "To do here: answer with this site's rows:"
            yield f"  {self._command('DATA ')}"
            return
        states = {visit.state for _, visit in visited}
        if "act" in states:
            yield "To do here: act as described above, then run this command again:"
            yield f"  {self._command()}"
        elif "waiting" in states:
            yield (
                "To do here: nothing now. Run this command again after the others have run it, or "
                "once a day:"
            )
            yield f"  {self._command()}"

    def _of_one(self, round_folder: RoundFolder, visit: Visit) -> Iterator[Block]:
        title = f" {shown(round_folder.round.title)}" if round_folder.round.title else ""
        yield f"Round {round_folder.round.round_id[:12]}{title}: {_STATES[visit.state]}."
        yield f"  Fingerprint of all cards: {round_folder.round.fingerprint}"
        lines = [*done_words(visit.posted), *visit.words]
        lines += [f"Detected: {shown(name)} {why}." for name, why in visit.found_out.items()]
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
    "waiting": "waiting for others",
    "done": "done",
    "act": "a person has to act",
    "left-out": "without this site",
    "over": "the deadline has passed",
    "refused": "refused here",
    "failed": "cannot continue",
}


# --- round amend ----------------------------------------------------------------------------------

_Key = Annotated[Path, option("FILE", "The coordinator's keys, or its file.", "--key")]
_Days = Annotated[
    float | None, option("N", "Number of days from now until the deadline.", min=0, max=3650)
]
_Drop = Annotated[
    list[str] | None,
    option("SITE", "Continue without this site: it is late, away, or has lost its keys."),
]
_Why = Annotated[str, option("TEXT", "The reason, which the sites will see.")]


def amend(
    key: _Key,
    folder: common.FolderArgument = "",
    days: _Days = None,
    drop: _Drop = None,
    why: _Why = "",
    which: _Which = "",
) -> CommandResult:
    """Extend a round in a folder, or go on without a site.

    You sign the change, and the sites see it. You can amend a round until it is decided which sites
    are in the sum. After that, no site can be dropped, and the other sites make up for missing
    ones. Drop a site whose keys are no longer trusted; it gets a new card in the next round.

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
        yield f"It is in {folder or settings.address.folder}. Continue with: hushtable round sync"

    return CommandResult(facts, blocks())
