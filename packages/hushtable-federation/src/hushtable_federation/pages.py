"""The page about rounds in a folder."""

from collections.abc import Sequence
from datetime import timedelta
from shlex import quote
from typing import Any

from hushtable.report.page import check_extra, template
from hushtable_federation.clock import shown_time
from hushtable_federation.describe import (
    ANSWERED,
    HELPED,
    RESULT,
    amendment_words,
    next_lines,
    officer_words,
    round_lines,
    site_words,
    standing,
    task_command,
    task_words,
    who_words,
)
from hushtable_federation.language import WORDS, _, ngettext
from hushtable_federation.state import RoundState

#: By state of a site, the class of its cell.
_LOOKS = {"refused": "bad", "out": "bad", "in": "good", "helped": "good", "summed": "good"}


def page(each: Sequence[RoundState], folder: str) -> str:
    """Return the page as HTML that needs nothing but itself; all texts in it are escaped.

    It is in the language of `hushtable.language.speaking`. Raises `MissingExtraError` if Jinja is
    not installed.
    """
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
    lines = round_lines(round_)
    if amended := amendment_words(state):
        lines[_("Amended")] = amended
    return {
        "id": round_.round_id[:12],
        "title": round_.title or _("Round %(id)s", id=round_.round_id[:12]),
        "standing": standing(state),
        "glance": _glance(state),
        "todo": [
            (who_words(state, t.who), task_words(state, t), task_command(t, quote(folder), "KEY"))
            for t in state.tasks
        ],
        "sites": [(n, site_words(state, n), _LOOKS.get(state.states[n], "")) for n in round_.names],
        "after": next_lines(round_, RESULT) if state.phase == "done" else [],
        "lines": lines,
        "words": officer_words(round_),
        "aside": state.odd,
    }


def _glance(state: RoundState) -> dict[str, str]:
    round_ = state.round
    n_in = len(state.those("in", "asked", "helped", "summed"))
    found = {_("of %(k)s sites are in", k=len(round_.names)): n_in, _("are needed"): round_.needed}
    if state.phase == "unmasking":
        helped = _("have %(what)s", what=_(HELPED.get(state.asked, ANSWERED)))
        found |= {helped: len(state.those("helped"))}
    if state.phase in ("counting", "short"):
        found |= {_("have counted their rows"): len(state.those("ready"))}
        found |= {_("have not answered"): len(state.those("awaited"))}
        found |= {_("have refused"): len(state.refused)}
    shown = {label: str(n) for label, n in found.items()}
    if state.phase == "counting":
        until = shown_time(round_.deadline)
        hours = max(0, (round_.deadline - state.at) // timedelta(hours=1))
        left = ngettext("%(n)s hour", "%(n)s hours", hours)
        if hours >= 48:
            left = ngettext("%(n)s day", "%(n)s days", hours // 24)
        shown[_("left until %(until)s", until=until)] = left
    return shown
