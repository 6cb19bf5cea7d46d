"""``hushtable round status``: the state of a round."""

from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

from hushtable import files
from hushtable.cli.errors import NEEDS_PERSON
from hushtable.cli.options import Language, option
from hushtable.cli.output import Target, shown
from hushtable.cli.result import Block, CommandResult, Paragraph, TextTable
from hushtable.errors import UsageError
from hushtable.language import ENGLISH, speaking
from hushtable.report.page import check_extra
from hushtable_federation.cli._common import FolderArgument, check_folder, period_facts
from hushtable_federation.clock import now, stamp
from hushtable_federation.coordinator import no_round
from hushtable_federation.credentials import BY_DEFAULT
from hushtable_federation.describe import (
    RESULT,
    amendment_words,
    aside_lines,
    damaged_words,
    next_lines,
    round_lines,
    site_words,
    standing,
    task_command,
    task_facts,
    task_words,
    who_words,
)
from hushtable_federation.folder.mailbox import Store
from hushtable_federation.folder.round_folder import RoundFolder, rounds
from hushtable_federation.keys import Card, Keys
from hushtable_federation.pages import page
from hushtable_federation.round import Round
from hushtable_federation.settings import SiteSettings
from hushtable_federation.state import RoundState, RoundTask

_Key = Annotated[
    Path | None,
    option("FILE", "Your keys: show only your rounds, and what you have to do.", "--key"),
]
_Site = Annotated[
    Path | None,
    option("FILE", "Your file, which names the folder and the keys: as --key.", "--site"),
]
_Which = Annotated[
    str | None, option("ID", "Show only this round, given by the first digits of its id.")
]
_Html = Annotated[
    Path | None, option("FILE", "Also write the state as an .html page (extra report).")
]


def status(
    folder: FolderArgument = "",
    site: _Site = None,
    key: _Key = None,
    which: _Which = None,
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
    settings = _reader(site, key)
    check_folder(folder, settings)
    store = Store.open(folder, address=BY_DEFAULT if settings is None else settings.address)
    _check_page(html)
    me = None if settings is None else Keys.load(settings.key).card
    found = [RoundState.of(RoundFolder(one, store)) for one in _wanted(store, me, which)]
    typed = quote(store.where), "KEY" if settings is None else quote(str(settings.key))
    target = None
    if html is not None:
        target = Target(html)
        with target.writing(), speaking(language):
            files.write_bytes(html, page(found, store.where).encode(), private=True)
    facts = {
        "command": "round status",
        "folder": store.where,
        "html": None if html is None else str(html),
        "rounds": [
            {
                **_round_facts(state.round),
                **state.facts(),
                "todo": [task_facts(state, task, *typed) for task in _tasks(state, me)],
            }
            for state in found
        ],
    }

    def blocks() -> Iterator[Block]:
        for state in found:
            yield from _blocks(state, me, *typed)
        if store.damaged:
            yield damaged_words(len(store.damaged))
        if target is not None:
            yield f"Wrote {target}."

    needed = any(one.needs_person(one.lead if me is None else me.name) for one in found)
    return CommandResult(facts, blocks(), NEEDS_PERSON if needed else 0)


def _check_page(html: Path | None) -> None:
    if html is not None:
        if html.suffix != ".html":
            raise UsageError(f"--html {html}: needs a name that ends in .html")
        check_extra()


def _reader(site: Path | None, key: Path | None) -> SiteSettings | None:
    if site is not None and key is not None:
        raise UsageError("--site and --key exclude each other: the file names the keys")
    given = site or key
    return None if given is None else SiteSettings.load(given)


def _wanted(store: Store, me: Card | None, which: str | None) -> list[Round]:
    found = [
        one
        for one in reversed(rounds(store))
        if (me is None or me == one.coordinator or me in one.sites)
        and one.round_id.startswith((which or "").lower())
    ]
    if not found:
        raise no_round(store, me, which)
    return found


def _tasks(state: RoundState, me: Card | None) -> list[RoundTask]:
    if me is None:
        return state.tasks
    return [task._replace(who=[me.name]) for task in state.tasks if me.name in task.who]


def _blocks(state: RoundState, me: Card | None, folder: str, key: str) -> Iterator[Block]:
    lines = round_lines(state.round)
    if amended := amendment_words(state):
        lines["Amended"] = amended
    for label, value in lines.items():
        yield f"{label:<13}{shown(value)}"
    yield ""
    yield Paragraph([standing(state)])
    yield ""
    names = state.round.names
    yield TextTable(["site", "stands"], [[n, site_words(state, n)] for n in names], left=2)
    yield "\nWhat to do now:" if me is None else f"\nWhat {shown(me.name)} has to do now:"
    for task in _tasks(state, me):
        who = "" if me is not None else f"{who_words(state, task.who)}: "
        yield Paragraph([f"{who}{task_words(state, task)}"], indent="  ")
        if command := task_command(task, folder, key):
            yield f"    {command}"
    if state.phase == "done":
        yield "\n".join(next_lines(state.round, RESULT))
    for line in aside_lines(state.odd):
        yield Paragraph([shown(line)])
    yield ""


def _round_facts(asked: Round) -> dict[str, Any]:
    return {
        "round_id": asked.round_id,
        "title": asked.title,
        **period_facts(asked),
        "opened": stamp(asked.opened),
        "deadline": stamp(asked.deadline),
        "over": now() > asked.deadline,
        "coordinator": asked.coordinator.to_dict(),
        "sites": asked.names,
        "plan_id": asked.plan.plan_id,
        "terms": asked.terms.to_dict(),
        "site_scale": asked.site_scale,
    }
