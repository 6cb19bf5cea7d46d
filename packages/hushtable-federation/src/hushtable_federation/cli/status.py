"""``hushtable round status``: the state of a round."""

from pathlib import Path
from shlex import quote
from typing import Annotated, Any

from hushtable import files
from hushtable.cli.errors import NEEDS_PERSON
from hushtable.cli.options import Language, option
from hushtable.cli.result import Block, CommandResult, Paragraph, Target, TextTable, shown
from hushtable.errors import UsageError
from hushtable.language import ENGLISH, speaking
from hushtable.report.page import check_extra
from hushtable_federation import describe
from hushtable_federation.cli import _common as common
from hushtable_federation.clock import now, stamp
from hushtable_federation.coordinator import no_round
from hushtable_federation.credentials import BY_DEFAULT
from hushtable_federation.folder.mailbox import Store
from hushtable_federation.folder.round_folder import RoundFolder, rounds
from hushtable_federation.keys import Card, Keys
from hushtable_federation.pages import page
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
_Html = Annotated[
    Path | None, option("FILE", "Also write the state as an .html page (extra report).")
]


def status(
    folder: common.FolderArgument = "",
    site: _Site = None,
    key: _Key = None,
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
        if html.suffix != ".html":
            raise UsageError(f"--html {html}: needs a name that ends in .html")
        check_extra()
    me = None if settings is None else Keys.load(settings.key).card
    found = [
        RoundState.of(RoundFolder(one, store))
        for one in reversed(rounds(store))
        if (me is None or me == one.coordinator or me in one.sites)
        and one.round_id.startswith(which.lower())
    ]
    if not found:
        raise no_round(store, me, which)
    typed = quote(store.where), "KEY" if settings is None else quote(str(settings.key))
    facts = {
        "command": "round status",
        "folder": store.where,
        "html": None if html is None else str(html),
        "rounds": [
            _facts(state)
            | {"todo": [describe.task_facts(state, one, *typed) for one in _tasks(state, me)]}
            for state in found
        ],
    }
    blocks: list[Block] = []
    for state in found:
        blocks += _blocks(state, me, *typed)
    if store.damaged:
        blocks.append(describe.damaged_words(len(store.damaged)))
    if html is not None:
        target = Target(html)
        with target.writing(), speaking(language):
            files.write_bytes(html, page(found, store.where).encode(), private=True)
        blocks.append(f"Wrote {target}.")
    needed = any(one.needs_person(one.lead if me is None else me.name) for one in found)
    return CommandResult(facts, blocks, NEEDS_PERSON if needed else 0)


def _tasks(state: RoundState, me: Card | None) -> list[RoundTask]:
    if me is None:
        return state.tasks
    return [task._replace(who=[me.name]) for task in state.tasks if me.name in task.who]


def _blocks(state: RoundState, me: Card | None, folder: str, key: str) -> list[Block]:
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
        blocks += describe.next_lines(state.round, describe.RESULT)
    aside = [shown(line) for line in describe.aside_lines(state.odd)]
    return [*blocks, *(Paragraph([line]) for line in aside), ""]


def _facts(state: RoundState) -> dict[str, Any]:
    asked = state.round
    return {
        "round_id": asked.round_id,
        "title": asked.title,
        **common.period_facts(asked),
        "opened": stamp(asked.opened),
        "deadline": stamp(asked.deadline),
        "over": now() > asked.deadline,
        "coordinator": asked.coordinator.to_dict(),
        "sites": asked.names,
        "plan_id": asked.plan.plan_id,
        "terms": asked.terms.to_dict(),
        "site_scale": asked.site_scale,
        **state.facts(),
    }
