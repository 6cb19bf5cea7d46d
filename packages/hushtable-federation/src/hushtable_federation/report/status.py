"""Where rounds in a folder stand, as one HTML page: for the coordinator, and on the wall."""

from collections.abc import Sequence
from datetime import timedelta
from shlex import quote
from typing import Any

from hushtable.report.page import check_extra
from hushtable_federation.clock import shown_time
from hushtable_federation.describe import officer_words, round_lines
from hushtable_federation.folder.progress import Progress
from hushtable_federation.report.rounds import (
    HELPED,
    RESULT,
    amendment_words,
    next_lines,
    site_words,
    standing,
    todos,
    who_words,
)

__all__ = ["check_extra", "page"]

#: By state of a site, the class of its cell.
_LOOKS = {"refused": "bad", "out": "bad", "in": "good", "helped": "good", "summed": "good"}


def page(each: Sequence[Progress], folder: str) -> str:
    """Return the page as HTML that needs nothing but itself; all texts in it are escaped.

    Raises `MissingExtraError` if Jinja is not installed.
    """
    check_extra()
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("hushtable.report", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("status.html").render(
        rounds=[_round(progress, folder) for progress in each],
        folder=folder,
        at=shown_time(each[0].at),
    )


def _round(progress: Progress, folder: str) -> dict[str, Any]:
    """Return one round for the template, in texts."""
    round_ = progress.round
    lines, todo = round_lines(round_), todos(progress, quote(folder))
    if amended := amendment_words(progress):
        lines["Amended"] = amended
    return {
        "id": round_.round_id[:12],
        "title": round_.title or f"Round {round_.round_id[:12]}",
        "standing": standing(progress),
        "glance": _glance(progress),
        "todo": [(who_words(progress, one.who), one.words, one.command) for one in todo],
        "sites": [
            (n, site_words(progress, n), _LOOKS.get(progress.states[n], "")) for n in round_.names
        ],
        "after": next_lines(round_, RESULT) if progress.phase == "done" else [],
        "lines": lines,
        "words": officer_words(round_, round_.plan),
        "odd": progress.odd,
    }


def _glance(progress: Progress) -> dict[str, str]:
    """Return a few figures by what they count; the deadline is none once the sites are listed."""
    round_ = progress.round
    n_in = len(progress.those("in", "asked", "helped", "summed"))
    found = {f"of {len(round_.names)} sites are in": n_in, "are needed": round_.needed}
    if progress.phase == "unmasking":
        found |= {f"have {HELPED.get(progress.asked, 'answered')}": len(progress.those("helped"))}
    if progress.phase in ("counting", "short"):
        found |= {"are awaited": len(progress.those("awaited"))}
        found |= {"refused": len(progress.refused)}
    shown = {label: str(n) for label, n in found.items()}
    if progress.phase == "counting":
        shown[f"left, until {shown_time(round_.deadline)}"] = _left(progress)
    return shown


def _left(progress: Progress) -> str:
    hours = max(0, (progress.round.deadline - progress.at) // timedelta(hours=1))
    n, unit = (hours // 24, "day") if hours >= 48 else (hours, "hour")
    return f"{n} {unit}" + ("" if n == 1 else "s")
