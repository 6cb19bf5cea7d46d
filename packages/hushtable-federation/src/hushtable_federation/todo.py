"""Who has to do what in a round, in words."""

from collections.abc import Sequence
from shlex import quote
from typing import NamedTuple

from hushtable_federation.clock import goes_on, shown_time
from hushtable_federation.describe import listed
from hushtable_federation.folder.progress import MISSING, Progress
from hushtable_federation.language import _


class Todo(NamedTuple):
    """A task, and who has to do it."""

    #: Names.
    who: list[str]
    #: A sentence or two.
    words: str
    #: The command to type; empty if there is none.
    command: str = ""
    #: Whether a person has to do it, because no run of ``round sync`` does it alone.
    needs_person: bool = False


def todos(progress: Progress, folder: str = "FOLDER", key: str = "KEY") -> list[Todo]:
    """Return who has to do what now, the most urgent task first."""
    sync = f"hushtable round sync {folder} --key {key}"
    amend = f"hushtable round amend {folder} --key {key}"
    by_phase = {
        "stopped": _stopped,
        "counting": _counting,
        "short": _short,
        "closing": _closing,
        "unmasking": _unmasking,
        "done": _fetch,
    }
    return [one for one in by_phase[progress.phase](progress, sync, amend) if one.who]


def _stopped(progress: Progress, _sync: str, _amend: str) -> list[Todo]:
    lead, names = progress.round.coordinator.name, progress.round.names
    return [
        Todo([lead], _("Open another round, and inform the sites."), needs_person=True),
        Todo(
            [name for name in names if name != lead],
            _("Nothing: %(lead)s opens another round.", lead=lead),
        ),
    ]


def _counting(progress: Progress, sync: str, amend: str) -> list[Todo]:
    until, lead = shown_time(progress.round.deadline), progress.round.coordinator.name
    answer = sync.replace(" --key", " DATA --key")
    refused = progress.those("refused")
    awaited, ready = progress.those("awaited"), progress.those("ready")
    if progress.late:
        return [*_waiting_for_clocks(progress, sync, amend), *_twice(progress, amend)]
    settles = [lead] if progress.lead_settles else []
    steps = [_("Remind %(names)s.", names=listed(awaited))] if awaited else []
    if refused:
        log = _("Ask %(names)s for the reason, in the site's log.", names=listed(refused))
        steps.append(log)
    steps.append(_("For more time, or to go on without a site (--drop SITE):"))
    answers = _("Answer with the site's rows, until %(until)s.", until=until)
    why = _("Resolve why the site refused, and answer until %(until)s.", until=until)
    return [
        Todo(awaited, answers, answer, True),
        Todo(refused, why, answer, True),
        Todo(settles, _("Run this command: it decides which sites are in the round."), sync),
        Todo(ready, _again(progress), sync),
        Todo([lead], " ".join(steps), f"{amend} --days 3", bool(refused)),
        *_twice(progress, amend),
        Todo(progress.those("in"), _after(progress), sync),
        _left_out(progress),
    ]


def _left_out(progress: Progress) -> Todo:
    """Return that the sites that the round continues without have nothing to do."""
    lead = progress.round.coordinator.name
    words = _("Nothing: %(lead)s continues without the site.", lead=lead)
    return Todo(progress.those("dropped", "out"), words)


def _again(progress: Progress) -> str:
    """Return when a site that has counted runs the command again."""
    if progress.settled:
        return _("Run this again, without rows: the site can now send its counts.")
    lead = progress.round.coordinator.name
    return _(
        "Nothing until the other sites or %(lead)s have run the command; then run it again.",
        lead=lead,
    )


def _after(progress: Progress) -> str:
    """Return what a site that has answered waits for."""
    after = shown_time(goes_on(progress.round.deadline))
    if not progress.round.terms.masked:
        return _("Nothing. The result comes after %(after)s.", after=after)
    return _(
        "Nothing. Run this again after the others have answered, or after %(after)s, without rows: "
        "the site is needed once more to remove the masks.",
        after=after,
    )


def _waiting_for_clocks(progress: Progress, sync: str, amend: str) -> list[Todo]:
    """Return what to do between the deadline and the time when the round continues."""
    round_, missing = progress.round, progress.those(*MISSING)
    lead, after = round_.coordinator.name, shown_time(goes_on(round_.deadline))
    there = progress.those("in")
    drop = "".join(f" --drop {quote(name)}" for name in missing)
    if len(there) >= round_.needed:
        words = _(
            "Nothing until %(after)s; then run this. To continue without %(names)s now:",
            after=after,
            names=listed(missing),
        )
        todo = Todo([lead], words, amend + drop)
    else:
        words = _(
            "Extend the round: %(n)s sites answered, and %(needed)s are needed.",
            n=len(there),
            needed=round_.needed,
        )
        todo = Todo([lead], words, f"{amend} --days 3", needs_person=True)
    return [
        todo,
        Todo(
            missing,
            _("The time to answer is over: ask %(lead)s for more time.", lead=lead),
            needs_person=True,
        ),
        Todo(
            there,
            _(
                "Nothing until %(after)s; run this again after %(lead)s has run it.",
                after=after,
                lead=lead,
            ),
            sync,
        ),
        _left_out(progress),
    ]


def _twice(progress: Progress, amend: str) -> list[Todo]:
    """Return what to do about sites that signed two answers, for example with two books."""
    lead, names = progress.round.coordinator.name, progress.those("twice")
    drop = "".join(f" --drop {quote(name)}" for name in names)
    words = _("Continue without %(names)s, because neither answer is valid:", names=listed(names))
    return [
        Todo([lead] if names else [], words, amend + drop, True),
        Todo(
            names,
            _(
                "Find out which book is the newest, and use only that one, because there are two "
                "different answers. %(lead)s continues without the site.",
                lead=lead,
            ),
            "",
            True,
        ),
    ]


def _short(progress: Progress, sync: str, amend: str) -> list[Todo]:
    lead = progress.round.coordinator.name
    if progress.left < progress.round.needed:
        return _stopped(progress, sync, amend)
    missing = progress.those(*MISSING)
    return [
        Todo(
            [lead],
            _(
                "Extend the round, and ask %(names)s to answer; or open another.",
                names=listed(missing),
            ),
            f"{amend} --days 3",
            True,
        ),
        Todo(
            missing,
            _("Ask %(lead)s for more time; then answer.", lead=lead),
            sync.replace(" --key", " DATA --key"),
            True,
        ),
        Todo(
            progress.those("in", "dropped", "out"),
            _("Nothing until %(lead)s extends the round.", lead=lead),
        ),
    ]


def _closing(progress: Progress, sync: str, _amend: str) -> list[Todo]:
    lead = progress.round.coordinator.name
    follows = (
        _("Ask the sites to remove the masks.") if progress.round.terms.masked else _("Add it up.")
    )
    late = progress.those(*MISSING)
    return [
        Todo([lead], follows, sync),
        Todo(progress.those("in"), _("Nothing until %(lead)s has called.", lead=lead), sync),
        Todo(
            late,
            _("Nothing, unless %(lead)s extends the round: the time to answer is over.", lead=lead),
        ),
        _left_out(progress),
    ]


def _unmasking(progress: Progress, sync: str, _amend: str) -> list[Todo]:
    lead, asked = progress.round.coordinator.name, progress.those("asked")
    words = _("Remind %(names)s, and run this again.", names=listed(asked))
    if lead in progress.waits_for:
        words = _("Run this: the sites have answered.")
    return [
        Todo(
            asked,
            _("Run this once more, without rows: the sum needs this site. It costs nothing."),
            sync,
        ),
        Todo([lead], words, sync),
        Todo(
            progress.those("in", "helped"), _("Nothing until %(lead)s has called.", lead=lead), sync
        ),
        Todo(
            progress.those("out", "dropped"),
            _("Nothing: the site is not in the sum. It can fetch the result like the others."),
        ),
    ]


def _fetch(progress: Progress, sync: str, _amend: str) -> list[Todo]:
    everyone = dict.fromkeys([progress.round.coordinator.name, *progress.round.names])
    return [Todo([*everyone], _("Fetch the result and verify it."), sync)]


def who_words(progress: Progress, who: Sequence[str]) -> str:
    """Return who has to do a task."""
    everyone = {progress.round.coordinator.name, *progress.round.names}
    return _("Everyone") if everyone <= set(who) else listed(who)
