"""Pages about rounds, and about the sites behind a result."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from hushtable.blocks import Block, Heading, Items, LabelledValues, Paragraph, TextTable
from hushtable.counts.base import Counts, Noised
from hushtable.errors import HushTableError, UsageError
from hushtable.files import read
from hushtable.language import N_, numerals
from hushtable.report.content import Sites, check_words, same_sum
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
from hushtable_federation.result import Collection, implausible
from hushtable_federation.round import Round
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


def _is_beside(path: Path, result: Noised) -> bool:
    try:
        content = read(path)
    except HushTableError:
        return False  # `Collection.add` states why
    if content.kind == "release":
        return np.array_equal(content.array("counts"), result.counts)
    return content.kind in ("message", "round")


def of_files(round_: Path, parts: Sequence[Path], counts: Counts, name: str) -> Sites:
    """Return the sites of a round by its file and those of its submissions, for ``report``.

    It checks that the result, with the counts in the file ``name``, is the sum of what they sent.
    """
    if not isinstance(counts, Noised):
        raise UsageError(f"{name} contains exact counts, which no round has as its result")
    collection = Collection(Round.from_bytes(round_.read_bytes(), round_))
    for path in parts:
        if not _is_beside(path, counts):
            # Names without folders: not everyone who may read the report may know the folders.
            collection.add(path.name, path)
    asked, pools = collection.round, counts.ledger.pools
    if counts.plan_id != asked.plan.plan_id or any(pool != asked.pool for pool in pools):
        raise UsageError(
            f"{name} is not the result of round {asked.round_id[:12]}: give the round that it "
            "results from"
        )
    n_in, k = len(collection.accepted), len(asked.sites)
    reason = implausible(asked.plan, counts.counts, counts.ledger.noise_sd)
    signed = _("%(n)s of %(k)s sites are in, each with its own valid signature.", n=n_in, k=k)
    checks = [
        check_words(n_in > 0, signed),
        _same_sum(collection, counts, name),
        check_words(True, _("All tables contain the same number of rows, except for the noise."))
        if reason is None
        else check_words(False, _("The counts are impossible: %(reason)s.", reason=reason)),
    ]
    return Sites(n_in, k, False, [Items(checks), *_sites_blocks(collection, n_in)])


#: Where what a site sent is.
STANDINGS = N_("in"), N_("missing"), N_("two different submissions")


def _sites_blocks(collection: Collection, n_in: int) -> Iterator[Block]:
    asked = collection.round
    standings = {card.name: collection.standing(card.name) for card in asked.sites}
    missing = ", ".join(name for name, standing in standings.items() if standing != "in")
    if missing:
        yield Paragraph([_("Missing: %(names)s.", names=missing)], look="strong")
    masked = asked.terms.masked
    headers = [_("site"), _("part"), _("fingerprint"), *([] if masked else [_("rows, estimated")])]
    rows = []
    for card in asked.sites:
        row = [card.name, _(standings[card.name]), card.fingerprint]
        if not masked:
            submission = collection.accepted.get(card.name)
            row.append("" if submission is None else numerals(f"{submission.rows:,}"))
        rows.append(row)
    yield TextTable(headers, rows, 3, _("Sites"))
    if masked:
        words = _(
            "The number of rows of each site is not visible, because its counts arrived under "
            "masks."
        )
        yield Paragraph([words], look="soft")
    if collection.refused:
        yield Heading(_("Refused files"))
        yield Items([f"{name}: {reason}" for name, reason in collection.refused])
    if collection.repeated:
        yield Heading(_("Received twice, counted once"))
        repeats = N_("%(name)s repeats the submission of %(site)s.")
        yield Items([_(repeats, name=name, site=site) for name, site in collection.repeated])
    yield Heading(_("The round"))
    yield Paragraph(officer_words(asked))
    yield LabelledValues(round_lines(asked, n_in))


def _same_sum(collection: Collection, result: Noised, name: str) -> str:
    if collection.round.terms.masked:
        named = {} if result.seal is None else dict(result.seal.submissions)
        same = named == {site: one.digest for site, one in collection.accepted.items()}
        if same:
            words = _("%(name)s names exactly the submissions that are in.", name=name)
            return check_words(True, words)
        words = _("%(name)s names different submissions from those that are in.", name=name)
        return check_words(False, words)
    try:
        again = collection.result()
    except HushTableError as error:
        return check_words(False, _("The sum could not be computed again: %(error)s.", error=error))
    return same_sum(bool(np.array_equal(again.counts, result.counts)), name)
