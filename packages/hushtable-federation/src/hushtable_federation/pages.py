"""Pages about rounds, and about the sites behind a result."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from hushtable.counts.base import Counts, Noised
from hushtable.errors import HushTableError, UsageError
from hushtable.report.content import Check, ReportedSite, Sites, same_sum
from hushtable.report.page import check_extra
from hushtable_federation.cli._common import read_round
from hushtable_federation.clock import shown_time
from hushtable_federation.describe import (
    HELPED,
    RESULT,
    amendment_words,
    next_lines,
    officer_words,
    round_lines,
    site_words,
    standing,
    todos,
    who_words,
)
from hushtable_federation.folder.progress import Progress
from hushtable_federation.result import Collection

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
        found |= {"have counted": len(progress.those("ready"))}
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


def of_files(round_: Path, parts: Sequence[Path], counts: Counts, name: str) -> Sites:
    """Return the sites of a round by its file and those of its submissions, for ``report``."""
    if not isinstance(counts, Noised):
        raise UsageError(f"{name} holds exact counts, and no round has such a result")
    collection = Collection(read_round(round_))
    for path in parts:
        # Names without folders: the report may go to people whom the folders are no concern of.
        collection.add(path.name, path)
    return sites_of_round(collection, counts, name)


def sites_of_round(collection: Collection, result: Noised, name: str) -> Sites:
    """Return the sites of a round, and check that its result is the sum of what they sent.

    ``name`` is that of the result's file.
    """
    asked = collection.round
    layout, pools = asked.layout, result.ledger.pools
    if result.plan_id != layout.plan_id or any(pool != asked.pool for pool in pools):
        raise UsageError(
            f"{name} is not the result of round {asked.round_id[:12]}: give the round that was "
            "collected"
        )
    sites = []
    for card in asked.sites:
        submission = collection.accepted.get(card.name)
        rows = None if submission is None else submission.rows
        standing = collection.standing(card.name)
        sites.append(ReportedSite(card.name, standing, rows, card.fingerprint))
    n_in = len(collection.accepted)
    signed = f"{n_in} of {len(asked.sites)} sites are in, each with a signature that is its own."
    checks = [
        Check(n_in > 0, signed),
        _same_sum(collection, result, name),
        _plausible(layout.implausible(result.counts, result.ledger.noise_sd)),
    ]
    terms, asks = round_lines(asked, n_in), officer_words(asked, asked.plan)
    return Sites(sites, False, checks, terms, asks, collection.refused, collection.repeated)


def _same_sum(collection: Collection, result: Noised, name: str) -> Check:
    if collection.round.terms.masked:
        named = {} if result.seal is None else dict(result.seal.submissions)
        same = named == {site: one.digest for site, one in collection.accepted.items()}
        if same:
            return Check(True, f"{name} names what is in, to the bit, and nothing else.")
        return Check(False, f"{name} names other submissions than those that are in.")
    try:
        again = collection.result()
    except HushTableError as error:
        return Check(False, f"The sum could not be made again: {error}.")
    return same_sum(
        bool(np.array_equal(again.counts, result.counts)), name, "submissions that are in"
    )


def _plausible(reason: str | None) -> Check:
    if reason is None:
        return Check(True, "All tables hold the same number of rows, up to the noise.")
    return Check(False, f"The counts cannot be: {reason}.")
