"""``hushtable round sync``: whatever is to be done next in a folder of rounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from hushtable.cli.errors import NEEDS_PERSON, REFUSED
from hushtable.cli.options import Json, argument, option
from hushtable.cli.output import finish, print_sentences, shown
from hushtable.cli.rows import READS, Reads
from hushtable_federation.cli import _common as common
from hushtable_federation.cli._answering import ANSWERS, Answers, Counting
from hushtable_federation.cli._party import Party, result_name
from hushtable_federation.clock import goes_on, stamp
from hushtable_federation.folder.posts import Posts, post_round, rounds
from hushtable_federation.folder.store import Store
from hushtable_federation.folder.visits import Visit
from hushtable_federation.keys import Card, Keys
from hushtable_federation.report.rounds import (
    aside_lines,
    damaged_words,
    done_words,
    next_lines,
    waits_words,
)

Folder = Annotated[str, argument("FOLDER", "Where the round lives: a directory, or a URL.")]
_Data = Annotated[str | None, argument("[DATA]", "At a site: the rows, until it has answered.")]
_Post = Annotated[
    list[Path] | None,
    option("ROUND", "At the coordinator: a round to put into the folder. May be repeated."),
]
_Results = Annotated[Path, option("DIR", "Where results are written.", "--output", "-o")]
_Which = Annotated[str | None, option("ID", "One round alone, by the first digits of its id.")]
_Unattended = Annotated[
    bool,
    typer.Option("--unattended", help="Nobody is here: answer what the policy allows, or refuse."),
]


def sync(
    folder: Folder,
    key: common.KeyFile,
    data: _Data = None,
    output: _Results = Path(),
    post: _Post = None,
    which: _Which = None,
    unattended: _Unattended = False,
    answers: Answers = ANSWERS,
    reads: Reads = READS,
    as_json: Json = False,
) -> None:
    """Do whatever is to be done next in a folder where rounds live.

    Says what it waits for. For coordinator and sites alike; call it again whenever you like, also
    from cron (--unattended, as far as the policy allows). A masked round takes two visits of a
    site, and three if sites are missing. What was put there is never changed; what got lost is put
    there again.

    Exit codes: 0 done, or nothing to do here until others have called; 1 refused or failed: a round
    cannot go on; 2 wrong usage; 3 a person has to act: rows are asked for, a site refused or
    answered twice, or a result is here for the first time that leaves this site out.

    Example:
      hushtable round sync /mnt/round patients.csv --key north.key --person patient
    """
    if data is not None and not unattended:
        answers.check_asked(as_json)
    keys = Keys.load(key)
    store = Store.open(folder, keys.card.name)
    for path in common.present(post):
        post_round(store, common.coordinators_round(path, keys))
    counting = None
    if data is not None:
        counting = Counting(
            data, reads, answers.person, answers.threads, as_json or unattended, not unattended
        )
    party = Party(store, keys, key, output, answers, counting, as_json, unattended)
    found = [one for one in rounds(store) if party.takes_part(one, which)]
    if not found:
        raise common.no_round(store, keys.card, which)
    visited = [party.visit(one, alone=len(found) == 1) for one in found]
    facts = {
        "command": "round sync",
        "folder": store.where,
        "name": keys.card.name,
        "aside": store.aside,
        "rounds": [_facts(posts, visit) for posts, visit in visited],
    }
    told = _Told(store, keys.card, key, output, answers.plan)
    finish(as_json, facts, partial(told.print, visited))
    code = _exit_code([visit for _, visit in visited])
    if code:
        raise typer.Exit(code)


def _exit_code(visits: Sequence[Visit]) -> int:
    """Return the exit code, from which the scheduler that runs the command learns how it went."""
    if any(visit.state == "failed" for visit in visits):
        return REFUSED
    return NEEDS_PERSON if any(visit.needs_person for visit in visits) else 0


# --- what is said ---------------------------------------------------------------------------------


def _facts(posts: Posts, visit: Visit) -> dict[str, Any]:
    return {
        "round_id": posts.round.round_id,
        "title": posts.round.title,
        **common.period_facts(posts.round),
        "state": visit.state,
        "posted": visit.posted,
        "waits_for": visit.waits_for,
        "needs_person": visit.needs_person,
        "deadline": stamp(posts.round.deadline),
        "goes_on": stamp(goes_on(posts.round.deadline)),
        "amendments": posts.amendment.number,
        "words": visit.words,
        "found_out": visit.found_out,
        "set_aside": posts.odd,
    }


@dataclass
class _Told:
    """Tells a person what was done, who is awaited, what to do, and when to call again."""

    store: Store
    me: Card
    key: Path
    output: Path
    plan: Path | None

    def print(self, visited: Sequence[tuple[Posts, Visit]]) -> None:
        for posts, visit in visited:
            self._print_one(posts, visit)
        if self.store.aside:
            print_sentences([f"{shown(self.store.aside)}."])
        if self.store.damaged:
            print(damaged_words(len(self.store.damaged)))
        states = {visit.state for _, visit in visited}
        if "open" in states:
            print("To do here: answer, with this site's rows:")
            print(f"  {self._command('DATA ')}")
        elif "waiting" in states:
            print("To do here: nothing now. Call again when the others have called, or each day:")
            print(f"  {self._command()}")

    def _print_one(self, posts: Posts, visit: Visit) -> None:
        title = f" {shown(posts.round.title)}" if posts.round.title else ""
        print(f"Round {posts.round.round_id[:12]}{title}: {_STATES[visit.state]}.")
        lines = [*done_words(visit.posted), *visit.words, *waits_words(posts, visit, self.me.name)]
        lines += [f"Found out: {shown(name)} {why}." for name, why in visit.found_out.items()]
        lines += aside_lines(posts.odd)
        print_sentences(map(shown, lines), indent="  ")
        if visit.state == "done":
            result = self.output / result_name(posts.round)
            print("\n".join(f"  {line}" for line in next_lines(posts.round, result)))

    def _command(self, data: str = "") -> str:
        there = "" if self.output == Path() else f" -o {quote(str(self.output))}"
        there += "" if self.plan is None else f" --plan {quote(str(self.plan))}"
        where, key = quote(self.store.where), quote(str(self.key))
        return f"hushtable round sync {where} {data}--key {key}{there}"


_STATES = {
    "open": "this site's rows are asked for",
    "waiting": "waits for others",
    "failed": "cannot go on",
    "done": "done",
}
