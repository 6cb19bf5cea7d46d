"""``hushtable round sync`` and ``status``: the next step of rounds in a folder, and their state."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from hushtable import files
from hushtable.cli.errors import NEEDS_PERSON, check_interrupt
from hushtable.cli.options import Language, argument, flag, option, person_facts, persons_blocks
from hushtable.cli.result import (
    Block,
    CommandResult,
    Paragraph,
    Target,
    TextTable,
    for_machines,
    show,
    shown,
    tally,
    tally_blocks,
)
from hushtable.data.readers import Reader
from hushtable.errors import HushTableError, UsageError
from hushtable.language import ENGLISH, speaking
from hushtable.progress import watched
from hushtable_federation import describe
from hushtable_federation.book.digests import Period
from hushtable_federation.cli import _common as common
from hushtable_federation.cli.show import round_blocks
from hushtable_federation.clock import goes_on, now, shown_time, stamp
from hushtable_federation.coordinator import NoRoundError, no_round
from hushtable_federation.credentials import BY_DEFAULT
from hushtable_federation.describe import aside_lines, damaged_words, done_words, next_lines
from hushtable_federation.folder.mailbox import Store, is_private
from hushtable_federation.folder.round_folder import RoundFolder, rounds
from hushtable_federation.keys import Card, Keys
from hushtable_federation.language import WORDS, _
from hushtable_federation.online.site import Statement
from hushtable_federation.reply import Reply
from hushtable_federation.settings import SiteSettings, site_files
from hushtable_federation.site import Attendant, Site, SiteRows, known_words
from hushtable_federation.state import RoundState, RoundTask
from hushtable_federation.visits import State, Visit

_Rows = Annotated[
    str | None,
    argument("[DATA]", "The rows, if they are not those that the site's file names."),
]
_SiteFile = Annotated[
    Path | None,
    option(
        "FILE",
        "This site's file, written by hushtable round keygen: keys, rows, how to read them. By "
        "default, the only one in this folder.",
        "--site",
    ),
]
_Key = Annotated[
    Path | None,
    option("FILE", "Your keys, if you have no such file: for a coordinator.", "--key"),
]
_Approval = Annotated[
    Path | None, option("FILE", "The officer's approval, written by hushtable round approve.")
]
_Trust = Annotated[
    list[Path] | None,
    option("CARD", "Card that its owner gave you: a new party, or new keys. May be repeated."),
]
_NewPeople = Annotated[
    bool,
    flag("--new-people", "The rows are about different people, although they look alike."),
]
_OutsideToo = Annotated[
    bool, flag("--outside-too", "Continue although most rows lie outside a range.")
]
_Yes = Annotated[bool, flag("--yes", "Send without asking; this does not trust anyone for you.")]
_Post = Annotated[
    list[Path] | None,
    option("ROUND", "At the coordinator: a round to put into the folder. May be repeated."),
]
_Results = Annotated[Path | None, option("DIR", "Folder to write results to.", "--output", "-o")]
_Unattended = Annotated[
    bool,
    flag("--unattended", "Run without prompts: answer what the policy allows, refuse the rest."),
]


@dataclass(frozen=True)
class Answers:
    """Options of the command that answers for a site."""

    site: _SiteFile = None
    key: _Key = None
    approval: _Approval = None
    trust: _Trust = None
    new_people: _NewPeople = False
    outside_too: _OutsideToo = False
    yes: _Yes = False

    def check_asked(self, quiet: bool) -> None:
        """Raise `UsageError` if there is a question, but no one to ask."""
        if not self.yes and (quiet or not sys.stdin.isatty()):
            raise UsageError(
                "there is no terminal to ask at: give --yes to send without a question"
            )

    def open(self, data: str | None, results: Path | None) -> Site:
        """Open the site that the command names, with the settings that its options change."""
        if self.site is not None and self.key is not None:
            raise UsageError("--site and --key exclude each other: the file names the keys")
        path = self.site or self.key
        if path is None:
            paths = site_files(Path())
            if len(paths) != 1:
                what = (
                    f"there are {len(paths)} sites' files" if paths else "there is no site's file"
                )
                raise UsageError(
                    f"there {what} in this folder: name yours (--site NORTH.toml), or a "
                    "coordinator's keys (--key)"
                )
            path = paths[0]
        approvals = None if self.approval is None else escape(str(self.approval))
        return Site.open(path, **common.given(rows=data, results=results, approvals=approvals))


class Screen(Attendant):
    """The person at this terminal, or no one if the command runs unattended."""

    def __init__(self, answers: Answers, *, quiet: bool, unattended: bool) -> None:
        self._answers, self._quiet = answers, quiet
        self.attended = not unattended
        self.cards = common.cards(answers.trust or [])
        self.statement = Statement(answers.new_people, answers.outside_too)
        #: For machines, by the id of the round: what this call counted for it.
        self.counted: dict[str, dict[str, Any]] = {}

    def confirm(self, reply: Reply) -> None:
        """Show the round; ask whether unknown cards are genuine, and whether to send."""
        if not self.attended:
            return
        if not self._quiet:
            pins = reply.policy.pins(reply.book.known)
            here = known_words(reply.round, reply.keys.card, pins)
            show(
                *round_blocks(reply.round, here, reply.beside_cost),
                f"\n{reply.keys.card.name} will send these counts, and nothing else.",
                Paragraph([reply.cost_words]),
            )
        self._answers.check_asked(self._quiet)
        if not self._answers.yes:
            if reply.new:
                names = ", ".join(card.name for card in reply.new)
                print(
                    f"\nNot known here: {names}. In a call of all parties, everyone reads aloud "
                    f"this fingerprint of all cards:\n  {reply.round.fingerprint}"
                )
                if typer.confirm("Have all read the same?"):
                    reply.trust(reply.new)
            typer.confirm("\nSend this?", abort=True)
        reply.check_known()

    @contextmanager
    def reading(self, reader: Reader) -> Iterator[Reader]:
        """Show how many rows are read; the last moment to stop before the site pays and sends."""
        with watched(reader, quiet=self._quiet or not self.attended) as watch:
            yield watch.reader
        check_interrupt()

    def report(self, reply: Reply, rows: SiteRows) -> None:
        """Print the numbers of rows and people counted, and values outside; this stays here."""
        sketch = rows.sketch
        if sketch is None:
            return
        nameless = reply.book.nameless(reply.data_set, Period.of(reply.round))
        self.counted[reply.round.round_id] = {
            "data_set": reply.data_set,
            "epsilon_so_far": reply.epsilon,
            "tally": tally(reply.plan.schema, sketch.tally),
            **person_facts(sketch.persons, nameless),
        }
        if not self._quiet:
            n_rows = sketch.n_rows if sketch.persons else rows.n_read
            show(
                f"Counted {sketch.n_rows:,} rows.",
                Paragraph([f"Not read: {shown(words)}" for words in sketch.unread]),
                *persons_blocks(sketch.persons, nameless),
                *tally_blocks(reply.plan.schema, sketch.tally, n_rows),
            )


# --- the state after a visit ----------------------------------------------------------------------

#: All states, the one first that stands for a visit to several rounds.
STATES: tuple[State, ...] = (
    "failed", "refused", "over", "act", "left-out", "waiting", "done",
)  # fmt: skip
#: Of rounds that are not at their end for this party.
_OPEN: tuple[State, ...] = "act", "waiting", "over", "refused", "failed"
Visited = Sequence[tuple[RoundFolder, Visit]]


def _outcome(visited: Visited) -> tuple[State, int]:
    """Return the most urgent state of a visit to several rounds, and its exit code."""
    states, codes = (
        {getattr(visit, name) for _, visit in visited} for name in ("state", "exit_code")
    )
    code = next((code for code in (1, 3) if code in codes), 0)
    return next(state for state in STATES if state in states), code


def _state_line(state: State, code: int, visited: Visited = ()) -> str:
    open_ = [one.round.deadline for one, visit in visited if visit.state in _OPEN]
    ahead = [deadline for deadline in open_ if now() <= goes_on(deadline)]
    until = ""
    if ahead:
        first = min(ahead)
        until = f"; deadline {shown_time(first)}, continues at {shown_time(goes_on(first))}"
    return f"State: {state}; exit code {code}{until}."


#: No option given.
_ANSWERS = Answers()


def sync(
    folder: common.FolderArgument = "",
    data: _Rows = None,
    output: _Results = None,
    post: _Post = None,
    which: common.Which = "",
    unattended: _Unattended = False,
    answers: Answers = _ANSWERS,
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
    screen = Screen(answers, quiet=for_machines(), unattended=unattended)
    facts: dict[str, Any] = {"command": "round sync"}
    try:
        new = site.lead.post(folder, *common.present(post)) if post else []
        visited = site.sync(folder, which=which, attendant=screen)
    except (HushTableError, OSError) as error:
        if unattended and isinstance(error, NoRoundError):  # before the first round is there
            facts |= {"name": site.card.name, "state": "waiting", "exit_code": 0, "rounds": []}
            return CommandResult(facts, [Paragraph([str(error)]), _state_line("waiting", 0)])
        if unattended and not for_machines():
            print(_state_line("failed", 2 if isinstance(error, UsageError) else 1))
        raise
    store, (state, code) = visited[0][0].store, _outcome(visited)
    new += store.written
    facts |= {
        "folder": store.where,
        "name": site.card.name,
        "state": state,
        "exit_code": code,
        "aside": store.aside,
        "new_files": new,
        "rounds": [_facts(round_folder, visit, screen) for round_folder, visit in visited],
    }
    blocks: list[Block] = [block for one in visited for block in _of_one(site, *one)]
    if store.aside:
        blocks.append(Paragraph([f"{shown(store.aside)}."]))
    if store.damaged:
        blocks.append(damaged_words(len(store.damaged)))
    if new and is_private(store.where):
        words = "New in this folder (send these files to all others if they do not share it):"
        blocks += [words, *(f"  {name}" for name in new)]
    blocks += _to_do(site, visited, answers, output)
    return CommandResult(facts, [*blocks, _state_line(state, code, visited)], code)


def _facts(round_folder: RoundFolder, visit: Visit, screen: Screen) -> dict[str, Any]:
    asked = round_folder.round
    return {
        "round_id": asked.round_id,
        "fingerprint": asked.fingerprint,
        "title": asked.title,
        **common.period_facts(asked),
        "state": visit.state,
        "posted": visit.posted,
        "waits_for": visit.waits_for,
        "exit_code": visit.exit_code,
        "needs_person": visit.needs_person,
        "deadline": stamp(asked.deadline),
        "goes_on": stamp(goes_on(asked.deadline)),
        "amendments": round_folder.amendment.number,
        "words": visit.words,
        "found_out": visit.found_out,
        "set_aside": round_folder.odd,
        "counted": screen.counted.get(asked.round_id),
    }


_STATES = {
    "waiting": "waiting for others",
    "done": "done",
    "act": "a person has to act",
    "left-out": "without this site",
    "over": "the deadline has passed",
    "refused": "refused here",
    "failed": "cannot continue",
}


def _of_one(site: Site, round_folder: RoundFolder, visit: Visit) -> list[Block]:
    asked = round_folder.round
    title = f" {shown(asked.title)}" if asked.title else ""
    lines = [*done_words(visit.posted), *visit.words]
    lines += [f"Detected: {shown(name)} {why}." for name, why in visit.found_out.items()]
    lines += aside_lines(round_folder.odd)
    result = site.result(asked)
    is_there = visit.state == "done" or (visit.state == "left-out" and result.exists())
    return [
        f"Round {asked.round_id[:12]}{title}: {_STATES[visit.state]}.",
        f"  Fingerprint of all cards: {asked.fingerprint}",
        Paragraph(map(shown, lines), indent="  "),
        *(f"  {line}" for line in (next_lines(asked, result) if is_there else [])),
    ]


def _to_do(
    site: Site,
    visited: Sequence[tuple[RoundFolder, Visit]],
    answers: Answers,
    output: Path | None,
) -> list[Block]:
    states, me = {visit.state for _, visit in visited}, site.card
    asked = any(
        visit.state == "act" and me.name in visit.waits_for and me in round_.round.sites
        for round_, visit in visited
    )
    if asked:
        words, data = "answer with this site's rows:", "DATA "
    elif "act" in states:
        words, data = "act as described above, then run this command again:", ""
    elif "waiting" in states:
        words = "nothing now. Run this command again after the others have run it, or once a day:"
        data = ""
    else:
        return []
    where = f"{quote(visited[0][0].store.where)} "
    if not asked and site.settings.address.folder:
        where = ""
    party = f"--key {quote(str(site.settings.key))}"
    if answers.site is not None:
        party = f"--site {quote(str(answers.site))}"
    target = "" if output is None else f" -o {quote(str(output))}"
    return [f"To do here: {words}", f"  hushtable round sync {where}{data}{party}{target}"]


# --- round status ---------------------------------------------------------------------------------

_MyKey = Annotated[
    Path | None,
    option("FILE", "Your keys: show only your rounds, and what you have to do.", "--key"),
]
_MyFile = Annotated[
    Path | None,
    option("FILE", "Your file, which names the folder and the keys: as --key.", "--site"),
]
_Html = Annotated[
    Path | None, option("FILE", "Also write the state as an .html page (extra report).")
]


def status(
    folder: common.FolderArgument = "",
    site: _MyFile = None,
    key: _MyKey = None,
    which: common.Which = "",
    html: _Html = None,
    language: Language = ENGLISH,
) -> CommandResult:
    """Show the state of a round: who has answered, and who has to do what.

    Only signed files count, and you need no keys; the page lists what each party has to do.

    Exit codes: 0 nothing to do except to wait or to run round sync; 1 failed; 2 wrong usage; 3 a
    person has to act: you, with --site or --key; otherwise the coordinator.

    Example:
      hushtable round status /mnt/round --html status.html
    """
    if site is not None and key is not None:
        raise UsageError("--site and --key exclude each other: the file names the keys")
    party = site or key
    settings = None if party is None else SiteSettings.load(party)
    common.check_folder(folder, settings)
    store = Store.open(folder, address=BY_DEFAULT if settings is None else settings.address)
    if html is not None:  # before anything is read
        from hushtable.cli.report import check_page  # it imports reports

        check_page(html)
    me = None if settings is None else Keys.load(settings.key).card
    states = [
        RoundState.of(RoundFolder(round_, store))
        for round_ in reversed(rounds(store))
        if (me is None or me == round_.coordinator or me in round_.sites)
        and round_.round_id.startswith(which.lower())
    ]
    if not states:
        raise no_round(store, me, which)
    typed = quote(store.where), "KEY" if settings is None else quote(str(settings.key))
    facts = {
        "command": "round status",
        "folder": store.where,
        "html": None if html is None else str(html),
        "rounds": [
            {
                "round_id": state.round.round_id,
                "title": state.round.title,
                **common.period_facts(state.round),
                "opened": stamp(state.round.opened),
                "deadline": stamp(state.round.deadline),
                "coordinator": state.round.coordinator.to_dict(),
                "sites": state.round.names,
                "plan_id": state.round.plan.plan_id,
                "terms": state.round.terms.to_dict(),
                "site_scale": state.round.site_scale,
                **state.facts(),
                "todo": [describe.task_facts(state, task, *typed) for task in _tasks(state, me)],
            }
            for state in states
        ],
    }
    blocks: list[Block] = []
    for state in states:
        blocks += _state_blocks(state, me, *typed)
    if store.damaged:
        blocks.append(damaged_words(len(store.damaged)))
    if html is not None:
        target = Target(html)
        with target.writing(), speaking(language):
            files.write_bytes(html, page(states, store.where).encode(), private=True)
        blocks.append(f"Wrote {target}.")
    needed = any(state.needs_person(state.lead if me is None else me.name) for state in states)
    return CommandResult(facts, blocks, NEEDS_PERSON if needed else 0)


def _tasks(state: RoundState, me: Card | None) -> list[RoundTask]:
    if me is None:
        return state.tasks
    return [task._replace(who=[me.name]) for task in state.tasks if me.name in task.who]


def _state_blocks(state: RoundState, me: Card | None, folder: str, key: str) -> list[Block]:
    lines = describe.round_lines(state.round)
    if amended := describe.amendment_words(state):
        lines["Amended"] = amended
    stands = [[name, describe.site_words(state, name)] for name in state.round.names]
    blocks: list[Block] = [
        *(f"{label:<13}{shown(value)}" for label, value in lines.items()),
        "",
        Paragraph([describe.standing(state)]),
        "",
        TextTable(["site", "stands"], stands, left=2),
        "\nWhat to do now:" if me is None else f"\nWhat {shown(me.name)} has to do now:",
    ]
    for task in _tasks(state, me):
        who = "" if me is not None else f"{describe.who_words(state, task.who)}: "
        blocks.append(Paragraph([f"{who}{describe.task_words(state, task)}"], indent="  "))
        if command := describe.task_command(task, folder, key):
            blocks.append(f"    {command}")
    if state.phase == "done":
        blocks += next_lines(state.round, describe.RESULT)
    aside = [shown(line) for line in aside_lines(state.odd)]
    return [*blocks, *(Paragraph([line]) for line in aside), ""]


# --- the page of rounds ---------------------------------------------------------------------------

#: By state of a site, the class of its cell.
_LOOKS = {"refused": "bad", "out": "bad", "in": "good", "helped": "good", "summed": "good"}


def page(each: Sequence[RoundState], folder: str) -> str:
    """Return the page as HTML that needs nothing but itself; all texts in it are escaped.

    It is in the language of `hushtable.language.speaking`. Raises `MissingExtraError` if Jinja is
    not installed.
    """
    from hushtable.report.page import check_extra, template  # not needed for other commands

    check_extra()
    return str(
        template("status.html", "hushtable_federation", WORDS).render(
            rounds=[_round(state, folder) for state in each],
            folder=folder,
            at=shown_time(each[0].at),
        )
    )


def _round(state: RoundState, folder: str) -> dict[str, Any]:
    round_ = state.round
    lines = describe.round_lines(round_)
    if amended := describe.amendment_words(state):
        lines[_("Amended")] = amended
    return {
        "id": round_.round_id[:12],
        "title": round_.title or _("Round %(id)s", id=round_.round_id[:12]),
        "standing": describe.standing(state),
        "todo": [
            (
                describe.who_words(state, t.who),
                describe.task_words(state, t),
                describe.task_command(t, quote(folder), "KEY"),
            )
            for t in state.tasks
        ],
        "sites": [
            (n, describe.site_words(state, n), _LOOKS.get(state.states[n], ""))
            for n in round_.names
        ],
        "after": next_lines(round_, describe.RESULT) if state.phase == "done" else [],
        "lines": lines,
        "words": describe.officer_words(round_),
        "aside": state.odd,
    }
