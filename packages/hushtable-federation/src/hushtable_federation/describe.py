"""Rounds in words: what a round asks, how far it is, and who has to do what."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from hushtable.describe import describe_ledger
from hushtable.describe.plan import n_tables
from hushtable.describe.views import release_view
from hushtable.display import View
from hushtable.plans.draws import Purpose
from hushtable.plans.plan import Plan
from hushtable.privacy.accounting import rounded_up
from hushtable.privacy.ledger import Share
from hushtable_federation.clock import CLOCKS, goes_on, keys_until, now, shown_time
from hushtable_federation.folder.progress import MISSING, Progress
from hushtable_federation.folder.round_folder import ASK, RoundFolder
from hushtable_federation.ranges import is_for_ranges, range_words
from hushtable_federation.refusals import Refusal
from hushtable_federation.result import Result
from hushtable_federation.round import Round
from hushtable_federation.visit import Visit


def officer_words(round_: Round, plan: Plan | None) -> list[str]:
    """Return what a round asks of each site, in sentences that an officer signs.

    The plan that would be counted by is None where its hash functions are hidden and not given.
    """
    layout, terms, k = round_.layout, round_.terms, len(round_.sites)
    what = "the columns of a plan that is hidden here"
    if plan is not None:
        names = plan.schema.names
        what = _listed(names, " column" if len(names) == 1 else " columns")
    noise = f"noise of {round_.site_scale:,.1f} (standard deviation) is added to each"
    if terms.masked:
        least = "all" if round_.needed == k else f"at least {terms.least} of"
        noise += f", and a mask that only the sum of {least} {k} sites is free of"
    ledger = round_.ledger(Share("", round_.site_scale, ""))
    rows, mixed, nothing = "rows", "", "No row leaves, no number of rows and no score."
    if terms.max_rows is not None:
        nothing = (
            "No row and no score leaves; about how many rows a site has can be read (the totals of "
            "its tables, with its noise)."
        )
    if round_.place is not None:
        rows, mixed = "rows of this period", "; they mix those of its periods so far"
    return [
        *(f"{line}." for line in [period_words(round_)] if line),
        f"Until {shown_time(round_.deadline)}, {round_.coordinator.name} asks {k} sites to count "
        f"their {rows} by {what}.",
        f"From each site, {layout.n_cells:,} counts leave, in {n_tables(len(layout.cells))} "
        f"({layout.detector}){mixed}; {noise}. {nothing}",
        *describe_ledger(ledger)[:2],
        *_gains(plan, k),
        *range_words(round_, plan),
    ]


def _gains(plan: Plan | None, sites: int) -> list[str]:
    """Return what a site is to gain by a round about a model's tables, in sentences."""
    if plan is None or plan.design is None or not plan.purpose.scores_rows:
        return []
    return plan.design.peer_words(sites)[1:]


def period_words(round_: Round) -> str:
    """Return which period a round is about, and what all of them cost; empty outside a stream."""
    place, horizon, terms = round_.place, round_.layout.horizon, round_.terms
    if place is None or horizon is None:
        return ""
    one = terms.rows_per_person == 1 and horizon.participations == 1
    return (
        f"P{place.words(horizon)[1:]}; until {place.end(horizon)}, a total of "
        f"{rounded_up(terms.epsilon, 6):g} for one {'row' if one else 'person'}"
    )


def round_lines(round_: Round, n_accepted: int | None = None) -> dict[str, str]:
    """Return the terms of a round, and how many sites are in, where that is known."""
    terms = round_.terms
    hidden = ", hash functions hidden from the coordinator" if round_.plan is None else ""
    over = " (over)" if now() > round_.deadline else ""
    period = period_words(round_).removeprefix("Period ")
    return {
        "Round": f"{round_.round_id[:12]} {round_.title}".rstrip(),
        **({"Period": period} if period else {}),
        "Coordinator": f"{round_.coordinator.name}, {round_.coordinator.fingerprint}",
        "Open": f"{shown_time(round_.opened)} to {shown_time(round_.deadline)}{over}",
        "Plan": f"{round_.layout.plan_id[:12]}, {round_.layout.detector}{hidden}",
        "Cost": terms.words(),
        "Noise": f"{round_.site_scale:,.4g} a site{' on mixed counts' if period else ''}, "
        + (f"under masks, k_min {terms.k_min}" if terms.masked else "the whole, no masks"),
        "Needs": f"{round_.needed} of {len(round_.sites)} sites"
        + ("" if n_accepted is None else f"; {n_accepted} are in"),
    }


def round_view(asked: Round) -> View:
    """Return the view of a round in a notebook."""
    sites = [[card.name, card.fingerprint] for card in asked.sites]
    says, figures = officer_words(asked, asked.plan), round_lines(asked)
    return View("Round", says, figures, ("site", "fingerprint of its keys"), sites)


def result_view(result: Result) -> View:
    """Return the view of a result in a notebook."""
    made, signer = release_view(result.counts), result.coordinator
    signed = {
        "Round": result.seal.round_id[:12],
        "Signed by": f"{signer.name}, {signer.fingerprint}",
        "Sites": _listed(result.sites),
    }
    return View("Result", made.sentences, signed | dict(made.figures), made.headers, made.rows)


def _listed(names: Sequence[str], noun: str = "") -> str:
    more = f" and {len(names) - 8:,} more" if len(names) > 8 else ""
    return f"{len(names):,}{noun} ({', '.join(names[:8])}{more})"


#: Stands for the file of a result in commands, where it is not known which one.
RESULT = "RESULT"
#: What a person calls the states of a site.
STATES = {
    "awaited": "awaited",
    "ready": "rows are counted; counts are not sent yet",
    "refused": "refused",
    "twice": "signed two different answers: neither counts",
    "in": "counts are in",
    "asked": "counts are in; asked to call once more",
    "helped": "counts are in; has done what was asked",
    "summed": "in the result",
    "dropped": "left out by the coordinator",
    "out": "not in the sum",
}
#: By step, what sites have done that answered it.
HELPED: dict[str, str] = {
    "survivors": "signed the list of who is in it",
    "unmask": "helped to take the masks off",
    "without": "helped to leave out who was found out",
}
_REFUSALS = {
    Refusal.REQUEST: "what it was asked is not in order",
    Refusal.ROUND: "the round is not for it: other keys, or another plan",
    Refusal.TIME: "by its clock, the round is not open",
    Refusal.POLICY: "its policy does not allow it, or its officer has not signed",
    Refusal.UNKNOWN: "it does not know the coordinator, or too many of the sites",
    Refusal.BUDGET: "its budget does not suffice",
    Refusal.ANSWERED: "it answered before, to another request",
    Refusal.ORDER: "a step is missing before this one",
    Refusal.SITES: "the list of sites is not the one that it knows, or too short",
    Refusal.SHARES: "what another site is said to have sent does not check out",
    Refusal.UNAVAILABLE: "something failed there; its log says what",
}


class Todo(NamedTuple):
    """A thing to do, and who has to do it."""

    #: Names.
    who: list[str]
    #: A sentence or two.
    words: str
    #: To be typed; empty if nothing is.
    command: str = ""
    #: Whether a person has to do it: no call of ``round sync`` does it by itself.
    needs_person: bool = False


def listed(names: Sequence[str], most: int = 8) -> str:
    """Return names for a sentence, safe to print; the first few of many."""
    shown = [name if name.isprintable() else repr(name) for name in names]
    more = len(shown) - most
    if more > 0:
        return f"{', '.join(shown[:most])} and {more:,} more"
    *first, last = shown or ["no one"]
    return f"{', '.join(first)} and {last}" if first else last


def standing(progress: Progress) -> str:
    """Return where the round stands, in a sentence or two."""
    round_, n = progress.round, len(progress.round.names)
    until = shown_time(round_.deadline)
    n_in = len(progress.those("in", "asked", "helped"))
    if progress.phase == "stopped":
        return f"Stopped: {progress.stopped}."
    if progress.phase == "short" and progress.left < round_.needed:
        return (
            f"It cannot end: {progress.left} of {n} sites are left, and {round_.needed} are needed."
        )
    if progress.phase == "counting":
        names = progress.waits_for if progress.waits_for else progress.those(*MISSING)
        awaited = f"{listed(names)} {'is' if len(names) == 1 else 'are'} awaited"
        if not progress.settled and not progress.late:
            return (
                f"{len(progress.those('ready'))} of {n} sites have counted their rows. "
                f"{_keys_words(round_, awaited)}"
            )
        return f"{n_in} of {n} sites are in. {_until(round_, awaited, progress.late)}"
    if progress.phase == "short":
        return (
            f"The time was over on {until}: {n_in} of {n} sites are in, and {round_.needed} are "
            "needed. Nothing can be read of what they sent."
        )
    if progress.phase == "closing":
        return f"{n_in} of {n} sites are in, which is enough: {round_.coordinator.name} can go on."
    if progress.phase == "unmasking":
        return (
            f"{n_in} of {n} sites are in the sum. {len(progress.those('helped'))} of at least "
            f"{round_.needed} have {HELPED.get(progress.asked, 'answered')}."
        )
    return f"Done: the result of {len(progress.those('summed'))} of {n} sites is there."


def _keys_words(round_: Round, awaited: str) -> str:
    """Return until when the first visits of sites are awaited."""
    half = shown_time(keys_until(round_.opened, round_.deadline))
    return (
        f"{awaited}. Nothing of the counts is sent before. From {half} on, the next "
        f"call of {round_.coordinator.name} decides to go on without sites that have not called."
    )


def _until(round_: Round, awaited: str, late: bool) -> str:
    """Return until when someone is awaited, and when the round goes on without them."""
    until, minutes = shown_time(round_.deadline), CLOCKS // timedelta(minutes=1)
    first = f"The time to answer ended on {until}." if late else f"{awaited} until {until}."
    return (
        f"{first} Without who is missing, the round goes on at "
        f"{shown_time(goes_on(round_.deadline))}: {minutes} minutes are allowed for clocks that "
        "differ."
    )


def site_words(progress: Progress, name: str) -> str:
    """Return where a site stands."""
    words = STATES[progress.states[name]]
    refused = progress.refused.get(name)
    return words if refused is None else f"{words}: {_REFUSALS.get(refused, str(refused))}"


def amendment_words(progress: Progress) -> str:
    """Return what the coordinator changed since the round was opened; empty if nothing."""
    made = progress.amendment
    if not made.number:
        return ""
    without = f", without {listed(made.dropped)}" if made.dropped else ""
    return f"until {shown_time(made.deadline)}{without}" + (f": {made.why}" if made.why else "")


def aside_lines(odd: Mapping[str, str], most: int = 5) -> list[str]:
    """Return what to say of files that do not count, by name with the reason; the first of many."""
    lines = [f"Left aside: {name}: {why}" for name, why in [*odd.items()][:most]]
    more = len(odd) - most
    return lines + ([f"Left aside: {more:,} more (--json names them)."] if more > 0 else [])


def damaged_words(n: int) -> str:
    """Return what to say of files that cannot be used."""
    return (
        f"{'1 file is' if n == 1 else f'{n} files are'} damaged or not all there yet: left aside."
    )


# --- what to do -----------------------------------------------------------------------------------


def todos(progress: Progress, folder: str = "FOLDER", key: str = "KEY") -> list[Todo]:
    """Return who has to do what now, the most urgent first."""
    sync = f"hushtable round sync {folder} --key {key}"
    amend = f"hushtable round amend {folder} --key {key}"
    by_phase = {
        "stopped": _stopped, "counting": _counting, "short": _short, "closing": _closing,
        "unmasking": _unmasking,
    }  # fmt: skip
    if progress.phase == "done":
        return [_fetch(progress, sync)]
    return [one for one in by_phase[progress.phase](progress, sync, amend) if one.who]


def _stopped(progress: Progress, _sync: str, _amend: str) -> list[Todo]:
    lead, names = progress.round.coordinator.name, progress.round.names
    return [
        Todo([lead], "Open another round, and tell the sites which one.", needs_person=True),
        Todo([name for name in names if name != lead], f"Nothing: {lead} opens another round."),
    ]


def _counting(progress: Progress, sync: str, amend: str) -> list[Todo]:
    until, lead = shown_time(progress.round.deadline), progress.round.coordinator.name
    after = shown_time(goes_on(progress.round.deadline))
    answer = sync.replace(" --key", " DATA --key")
    refused = progress.those("refused")
    awaited, ready = progress.those("awaited"), progress.those("ready")
    if progress.late:
        return [*_waiting_for_clocks(progress, sync, amend), *_twice(progress, amend)]
    settles = [lead] if progress.lead_settles else []
    again = (
        "Call again, without rows: the site can send its counts."
        if progress.settled
        else f"Nothing until the other sites, or {lead}, have called; then call again."
    )
    steps = [f"Remind {listed(awaited)}."] if awaited else []
    steps += [f"Ask {listed(refused)}: the log beside each book says why."] if refused else []
    return [
        Todo(awaited, f"Answer with the site's rows, until {until}.", answer, True),
        Todo(refused, f"Settle why the site refused, and answer until {until}.", answer, True),
        Todo(settles, "Call: who is in is decided by that.", sync),
        Todo(ready, again, sync),
        Todo([lead], f"{' '.join(steps)} For more time, or to go on without a site (--drop SITE):",
             f"{amend} --days 3", bool(refused)),
        *_twice(progress, amend),
        Todo(progress.those("in"), f"Nothing. Call again once the others are in or after {after}, "
             "without rows: the site is needed once more to take the masks off."
             if progress.round.terms.masked else f"Nothing. The result comes after {after}.", sync),
        Todo(progress.those("dropped", "out"), f"Nothing: {lead} goes on without the site."),
    ]  # fmt: skip


def _waiting_for_clocks(progress: Progress, sync: str, amend: str) -> list[Todo]:
    """Return what to do between the deadline and the time when the round goes on."""
    round_, missing = progress.round, progress.those(*MISSING)
    lead, after = round_.coordinator.name, shown_time(goes_on(round_.deadline))
    there = progress.those("in")
    drop = "".join(f" --drop {quote(name)}" for name in missing)
    if len(there) >= round_.needed:
        words = f"Nothing until {after}; then call. To go on without {listed(missing)} at once:"
        todo = Todo([lead], words, amend + drop)
    else:
        words = f"Extend the round: {len(there)} sites are in, and {round_.needed} are needed."
        todo = Todo([lead], words, f"{amend} --days 3", needs_person=True)
    return [
        todo,
        Todo(missing, f"The time to answer is over: ask {lead} for more.", needs_person=True),
        Todo(there, f"Nothing until {after}; then call again, once {lead} has called.", sync),
        Todo(progress.those("dropped", "out"), f"Nothing: {lead} goes on without the site."),
    ]


def _twice(progress: Progress, amend: str) -> list[Todo]:
    """Return what to do about sites that signed two answers, as with two copies of a book."""
    lead, names = progress.round.coordinator.name, progress.those("twice")
    drop = "".join(f" --drop {quote(name)}" for name in names)
    words = f"Go on without {listed(names)}, of whom neither answer counts:"
    return [
        Todo([lead] if names else [], words, amend + drop, True),
        Todo(names, "Find out which book is the newest, and call with that one alone: two "
             f"different answers are there. {lead} goes on without the site.", "", True),
    ]  # fmt: skip


def _short(progress: Progress, sync: str, amend: str) -> list[Todo]:
    lead = progress.round.coordinator.name
    if progress.left < progress.round.needed:
        return _stopped(progress, sync, amend)
    missing = progress.those(*MISSING)
    return [
        Todo([lead], f"Extend the round, and ask {listed(missing)} to answer; or open another.",
             f"{amend} --days 3", True),
        Todo(missing, f"Ask {lead} for more time; then answer.",
             sync.replace(" --key", " DATA --key"), True),
        Todo(progress.those("in", "dropped", "out"), f"Nothing until {lead} extends the round."),
    ]  # fmt: skip


def _closing(progress: Progress, sync: str, _: str) -> list[Todo]:
    lead = progress.round.coordinator.name
    follows = (
        "Ask the sites to take the masks off." if progress.round.terms.masked else "Add it up."
    )
    late = progress.those(*MISSING)
    return [
        Todo([lead], follows, sync),
        Todo(progress.those("in"), f"Nothing until {lead} has called.", sync),
        Todo(late, f"Nothing, unless {lead} extends the round: the time is over."),
        Todo(progress.those("dropped", "out"), f"Nothing: {lead} goes on without the site."),
    ]


def _unmasking(progress: Progress, sync: str, _: str) -> list[Todo]:
    lead, asked = progress.round.coordinator.name, progress.those("asked")
    goes_on = lead in progress.waits_for
    return [
        Todo(asked, "Call once more, without rows: the sum needs this site. It costs nothing.",
             sync),
        Todo([lead], "Call: the sites have answered." if goes_on else
             f"Remind {listed(asked)}, and call again.", sync),
        Todo(progress.those("in", "helped"), f"Nothing until {lead} has called.", sync),
        Todo(progress.those("out", "dropped"),
             "Nothing: the site is not in the sum. The result will be there for it as well."),
    ]  # fmt: skip


def _fetch(progress: Progress, sync: str) -> Todo:
    lead, names = progress.round.coordinator.name, progress.round.names
    return Todo(list(dict.fromkeys([lead, *names])), "Fetch the result, checked.", sync)


# --- what was done --------------------------------------------------------------------------------

_DONE = {
    "keys": "Counted the rows, and sent a key for this round alone. No count has left.",
    "masked": "Sent this site's counts, with noise and masked. No row has left.",
    "submission": "Sent this site's counts, with noise. No row has left.",
    "shares": "Sent what takes the masks off again, sealed.",
    "survivors": "Signed the list of who is in the sum. This costs nothing.",
    "unmask": "Helped to take the masks off the sum. This costs nothing.",
    "without": "Helped to leave out a site that was found out. This costs nothing.",
    "ask-shares": "Asked {n} to send their counts.",
    "ask-survivors": "Asked {n} to sign the list of who is in the sum.",
    "ask-unmask": "Asked {n} to help take the masks off the sum.",
    "ask-without": "Asked {n} to help leave out who was found out.",
    "result": "Put the result into the folder, signed, for every site.",
}


def done_words(posted: Sequence[str]) -> list[str]:
    """Return what a visit put into the folder, in sentences; ``posted`` as in `Visit`."""
    steps = dict.fromkeys(posted)
    if "masked" in steps:
        for one in ("keys", "shares"):  # one thing to a person
            steps.pop(one, None)
    n = Counter(posted)
    counted = {step: "1 site" if n[step] == 1 else f"{n[step]} sites" for step in steps}
    return [_DONE.get(step, f"Sent: {step}.").format(n=counted[step]) for step in steps]


def waits_words(round_folder: RoundFolder, visit: Visit, me: str) -> list[str]:
    """Return for whom a party waits after its visit, and until when."""
    round_, late = round_folder.round, now() > round_folder.round.deadline
    lead = round_.coordinator.name
    if visit.state not in ("waiting", "act") or (me != lead and me in visit.waits_for):
        return []
    asked = round_folder.decided
    without_key = [name for name in round_folder.left() if name not in round_folder.there("keys")]
    asks = round_folder.there(ASK + "shares")
    if round_.terms.masked and without_key and not asks and not late:
        return [_keys_words(round_, f"Awaited: {listed(without_key)}")]
    if me == lead:
        if asked:
            return [f"Awaited: {listed(visit.waits_for)}, to help take the masks off the sum."]
        if not visit.waits_for:
            return []
        return [_until(round_, f"Awaited: {listed(visit.waits_for)},", late)]
    there = {
        *round_folder.there("masked"),
        *round_folder.there("submission"),
        *round_folder.amendment.dropped,
    }
    missing = [name for name in round_.names if name not in there]
    if asked:
        return [f"Awaited: {lead}, who goes on from here."]
    first = (
        _until(round_, f"The counts of {listed(missing)} are awaited", late)
        if missing
        else "Something is there of every site."
    )
    then = f"Then {lead} goes on." if not round_.terms.masked else (
        f"Then {lead} asks each site to call once more, without rows, to take the masks off."
    )  # fmt: skip
    return [first, then]


def who_words(progress: Progress, who: Sequence[str]) -> str:
    """Return for whom a thing to do is."""
    everyone = {progress.round.coordinator.name, *progress.round.names}
    return "Everyone" if everyone <= set(who) else listed(who)


# --- after the result -----------------------------------------------------------------------------


def next_lines(asked: Round, result: Path | str) -> list[str]:
    """Return what a result is for: sentences, and commands that are indented."""
    if asked.period is not None:
        before = "" if asked.period == 1 else "EARLIER... "
        return [
            "Decode it with those of the periods before: the sum of all is a model.",
            f"  hushtable decode {before}{result} -o model.hush",
        ]
    if asked.plan is None and asked.layout.purpose.refines:
        given = f"ROUND {result} --plan PLAN --secret FILE --key SITE.key"
        return [
            "Each draws the plan of the next round from it, and one sends you the layout:",
            f"  hushtable round next {given} -o tables.plan.hush --layout layout.hush",
        ]
    if asked.plan is None:
        return [
            "Each opens it with the plan that they share:",
            f"  hushtable round model {result} --plan plan.hush -o model.hush",
        ]
    if is_for_ranges(asked):
        return ["For whom it is:", f"  hushtable round ranges {result} -o ranges.html"]
    if asked.layout.purpose.refines:
        return ["Go on with: hushtable round next"]
    if asked.layout.purpose is Purpose.GATE:
        return [
            "Go on with the merged counts of the first pass:",
            f"  hushtable plan second FIRST --gate {result} -o second.plan.hush",
        ]
    if not asked.layout.purpose.scores_rows:
        return [
            "At each site, with the model that they rank by:",
            f"  hushtable score DATA --model MODEL --ranks {result} -o scores.parquet",
        ]
    lines = ["At each site:", f"  hushtable score DATA --model {result} -o scores.parquet"]
    if asked.plan.share_of_budget is not None:
        lines += [
            "Or go on with the second pass, for which there is budget left:",
            f"  hushtable plan gate {result} -o gate.plan.hush",
        ]
    return lines
