"""The page about rounds in a folder."""

from collections.abc import Sequence
from shlex import quote
from typing import Any

from hushtable.report.page import check_extra, template
from hushtable_federation.clock import shown_time
from hushtable_federation.describe import (
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
from hushtable_federation.language import WORDS, _
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
