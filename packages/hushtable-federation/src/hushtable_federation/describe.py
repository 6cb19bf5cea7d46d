"""Describe rounds in words: what a round counts, its state, and who has to do what."""

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
    """Return what a round requests from each site, in sentences that an officer signs.

    The plan is None if its hash functions are hidden and not given.
    """
    layout, terms, k = round_.layout, round_.terms, len(round_.sites)
    what = "the columns of a plan that is hidden here"
    if plan is not None:
        names = plan.schema.names
        what = _listed(names, " column" if len(names) == 1 else " columns")
    noise = f"noise of {round_.site_scale:,.1f} (standard deviation) is added to each"
    if terms.masked:
        least = "all" if round_.needed == k else f"at least {terms.least} of"
        noise += f", and a mask that disappears only in the sum of {least} {k} sites"
    ledger = round_.ledger(Share("", round_.site_scale, ""))
    rows, mixed, nothing = "rows", "", "No row, no number of rows and no score leaves a site."
    if terms.max_rows is not None:
        nothing = (
            "No row and no score leaves a site, but its approximate number of rows becomes "
            "readable (the totals of its tables, with its noise)."
        )
    if round_.place is not None:
        rows, mixed = "rows of this period", ", which mix those of its periods so far"
    return [
        *(f"{line}." for line in [period_words(round_)] if line),
        f"Until {shown_time(round_.deadline)}, {round_.coordinator.name} asks {k} sites to count "
        f"their {rows} by {what}.",
        f"Each site sends {layout.n_cells:,} counts, in {n_tables(len(layout.cells))} "
        f"({layout.detector}){mixed}; {noise}. {nothing}",
        *describe_ledger(ledger)[:2],
        *_gains(plan, k),
        *range_words(round_, plan),
    ]


def _gains(plan: Plan | None, sites: int) -> list[str]:
    """Return in sentences what a site can gain from a round about a model's tables."""
    if plan is None or plan.design is None or not plan.purpose.scores_rows:
        return []
    return plan.design.peer_words(sites)[1:]


def period_words(round_: Round) -> str:
    """Return the period of a round, and the cost of all periods; empty outside a stream."""
    place, horizon, terms = round_.place, round_.layout.horizon, round_.terms
    if place is None or horizon is None:
        return ""
    one = terms.rows_per_person == 1 and horizon.participations == 1
    return (
        f"P{place.words(horizon)[1:]}; until {place.end(horizon)}, a total of "
        f"{rounded_up(terms.epsilon, 6):g} for one {'row' if one else 'person'}"
    )


def round_lines(round_: Round, n_accepted: int | None = None) -> dict[str, str]:
    """Return the terms of a round and, if known, how many sites have answered."""
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
        "Noise": f"{round_.site_scale:,.4g} per site{' on mixed counts' if period else ''}, "
        + (f"under masks, k_min {terms.k_min}" if terms.masked else "complete, without masks"),
        "Needs": f"{round_.needed} of {len(round_.sites)} sites"
        + ("" if n_accepted is None else f"; {n_accepted} have answered"),
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


#: Placeholder in commands for the file of a result, if its name is not known.
RESULT = "RESULT"
#: Words for the states of a site.
STATES = {
    "awaited": "awaited",
    "ready": "rows counted; counts not sent yet",
    "refused": "refused",
    "twice": "signed two different answers: neither is valid",
    "in": "counts received",
    "asked": "counts received; asked to run the command once more",
    "helped": "counts received; has done what was requested",
    "summed": "in the result",
    "dropped": "left out by the coordinator",
    "out": "not in the sum",
}
#: By step, what the sites that answered it have done.
HELPED: dict[str, str] = {
    "survivors": "signed the list of sites in it",
    "unmask": "helped to remove the masks",
    "without": "helped to leave out a site that sent wrong shares",
}
_REFUSALS = {
    Refusal.REQUEST: "the request that it got is not valid",
    Refusal.ROUND: "the round is not for this site: other keys, or another plan",
    Refusal.TIME: "by its clock, the round is not open",
    Refusal.POLICY: "its policy does not allow it, or its officer has not signed",
    Refusal.UNKNOWN: "it does not know the coordinator, or too many of the sites",
    Refusal.BUDGET: "its budget is not sufficient",
    Refusal.ANSWERED: "it has already answered a different request",
    Refusal.ORDER: "an earlier step is missing",
    Refusal.SITES: "the list of sites differs from the one that it knows, or is too short",
    Refusal.SHARES: "what it received as sent by another site is not valid",
    Refusal.UNAVAILABLE: "something failed there; its log contains the reason",
}


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


def listed(names: Sequence[str], most: int = 8) -> str:
    """Return names for a sentence, safe to print; only the first few if there are many."""
    shown = [name if name.isprintable() else repr(name) for name in names]
    more = len(shown) - most
    if more > 0:
        return f"{', '.join(shown[:most])} and {more:,} more"
    *first, last = shown or ["no one"]
    return f"{', '.join(first)} and {last}" if first else last


def standing(progress: Progress) -> str:
    """Return the state of the round, in one or two sentences."""
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
        awaited = f"Waiting for {listed(names)}"
        if not progress.settled and not progress.late:
            return (
                f"{len(progress.those('ready'))} of {n} sites have counted their rows. "
                f"{_keys_words(round_, awaited)}"
            )
        return f"{n_in} of {n} sites have answered. {_until(round_, awaited, progress.late)}"
    if progress.phase == "short":
        return (
            f"The time to answer ended on {until}: {n_in} of {n} sites have answered, and "
            f"{round_.needed} are needed. Nothing that they sent can be read."
        )
    if progress.phase == "closing":
        return f"{n_in} of {n} sites have answered: {round_.coordinator.name} can continue."
    if progress.phase == "unmasking":
        return (
            f"{n_in} of {n} sites are in the sum. {len(progress.those('helped'))} of at least "
            f"{round_.needed} have {HELPED.get(progress.asked, 'answered')}."
        )
    return f"Done: the result of {len(progress.those('summed'))} of {n} sites is there."


def _keys_words(round_: Round, awaited: str) -> str:
    """Return who has yet to make a first visit, and until when."""
    half = shown_time(keys_until(round_.opened, round_.deadline))
    return (
        f"{awaited}. No counts are sent before that. From {half} on, the next run of round sync by "
        f"{round_.coordinator.name} leaves out the sites that have not run it."
    )


def _until(round_: Round, awaited: str, late: bool) -> str:
    """Return who is awaited until when, and when the round continues without them."""
    until, minutes = shown_time(round_.deadline), CLOCKS // timedelta(minutes=1)
    first = f"The time to answer ended on {until}." if late else f"{awaited} until {until}."
    return (
        f"{first} The round continues without missing sites at "
        f"{shown_time(goes_on(round_.deadline))}: it allows {minutes} minutes for clock errors."
    )


def site_words(progress: Progress, name: str) -> str:
    """Return the state of a site."""
    words = STATES[progress.states[name]]
    refused = progress.refused.get(name)
    return words if refused is None else f"{words}: {_REFUSALS.get(refused, str(refused))}"


def amendment_words(progress: Progress) -> str:
    """Return what the coordinator has changed since the round was opened; empty if nothing."""
    made = progress.amendment
    if not made.number:
        return ""
    without = f", without {listed(made.dropped)}" if made.dropped else ""
    return f"until {shown_time(made.deadline)}{without}" + (f": {made.why}" if made.why else "")


def aside_lines(odd: Mapping[str, str], most: int = 5) -> list[str]:
    """Return lines about files that do not count, with the reasons; only the first if many."""
    lines = [f"Ignored: {name}: {why}" for name, why in [*odd.items()][:most]]
    more = len(odd) - most
    return lines + ([f"Ignored: {more:,} more (--json lists them)."] if more > 0 else [])


def damaged_words(n: int) -> str:
    """Return a sentence about files that cannot be used."""
    return f"{'1 file is' if n == 1 else f'{n} files are'} damaged or incomplete, and ignored."


# --- what to do -----------------------------------------------------------------------------------


def todos(progress: Progress, folder: str = "FOLDER", key: str = "KEY") -> list[Todo]:
    """Return who has to do what now, the most urgent task first."""
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
        Todo([lead], "Open another round, and inform the sites.", needs_person=True),
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
        "Run this again, without rows: the site can now send its counts."
        if progress.settled
        else f"Nothing until the other sites or {lead} have run the command; then run it again."
    )
    steps = [f"Remind {listed(awaited)}."] if awaited else []
    steps += [f"Ask {listed(refused)} for the reason, in the site's log."] if refused else []
    return [
        Todo(awaited, f"Answer with the site's rows, until {until}.", answer, True),
        Todo(refused, f"Resolve why the site refused, and answer until {until}.", answer, True),
        Todo(settles, "Run this command: it decides which sites are in the round.", sync),
        Todo(ready, again, sync),
        Todo([lead], f"{' '.join(steps)} For more time, or to go on without a site (--drop SITE):",
             f"{amend} --days 3", bool(refused)),
        *_twice(progress, amend),
        Todo(progress.those("in"), (
            f"Nothing. Run this again after the others have answered, or after {after}, without "
            "rows: the site is needed once more to remove the masks."
        )
             if progress.round.terms.masked else f"Nothing. The result comes after {after}.", sync),
        Todo(progress.those("dropped", "out"), f"Nothing: {lead} continues without the site."),
    ]  # fmt: skip


def _waiting_for_clocks(progress: Progress, sync: str, amend: str) -> list[Todo]:
    """Return what to do between the deadline and the time when the round continues."""
    round_, missing = progress.round, progress.those(*MISSING)
    lead, after = round_.coordinator.name, shown_time(goes_on(round_.deadline))
    there = progress.those("in")
    drop = "".join(f" --drop {quote(name)}" for name in missing)
    if len(there) >= round_.needed:
        words = f"Nothing until {after}; then run this. To continue without {listed(missing)} now:"
        todo = Todo([lead], words, amend + drop)
    else:
        words = f"Extend the round: {len(there)} sites answered, and {round_.needed} are needed."
        todo = Todo([lead], words, f"{amend} --days 3", needs_person=True)
    return [
        todo,
        Todo(missing, f"The time to answer is over: ask {lead} for more time.", needs_person=True),
        Todo(there, f"Nothing until {after}; run this again after {lead} has run it.", sync),
        Todo(progress.those("dropped", "out"), f"Nothing: {lead} continues without the site."),
    ]


def _twice(progress: Progress, amend: str) -> list[Todo]:
    """Return what to do about sites that signed two answers, for example with two books."""
    lead, names = progress.round.coordinator.name, progress.those("twice")
    drop = "".join(f" --drop {quote(name)}" for name in names)
    words = f"Continue without {listed(names)}, because neither answer is valid:"
    return [
        Todo([lead] if names else [], words, amend + drop, True),
        Todo(names, (
            "Find out which book is the newest, and use only that one, because there are two "
            f"different answers. {lead} continues without the site."
        ), "", True),
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
    follows = "Ask the sites to remove the masks." if progress.round.terms.masked else "Add it up."
    late = progress.those(*MISSING)
    return [
        Todo([lead], follows, sync),
        Todo(progress.those("in"), f"Nothing until {lead} has called.", sync),
        Todo(late, f"Nothing, unless {lead} extends the round: the time to answer is over."),
        Todo(progress.those("dropped", "out"), f"Nothing: {lead} continues without the site."),
    ]


def _unmasking(progress: Progress, sync: str, _: str) -> list[Todo]:
    lead, asked = progress.round.coordinator.name, progress.those("asked")
    goes_on = lead in progress.waits_for
    return [
        Todo(asked, "Run this once more, without rows: the sum needs this site. It costs nothing.",
             sync),
        Todo([lead], "Run this: the sites have answered." if goes_on else
             f"Remind {listed(asked)}, and run this again.", sync),
        Todo(progress.those("in", "helped"), f"Nothing until {lead} has called.", sync),
        Todo(progress.those("out", "dropped"),
             "Nothing: the site is not in the sum. It can fetch the result like the others."),
    ]  # fmt: skip


def _fetch(progress: Progress, sync: str) -> Todo:
    lead, names = progress.round.coordinator.name, progress.round.names
    return Todo(list(dict.fromkeys([lead, *names])), "Fetch the result and verify it.", sync)


# --- what was done --------------------------------------------------------------------------------

_DONE = {
    "keys": "Counted the rows, and sent a key for this round. No counts were sent.",
    "masked": "Sent this site's counts, with noise and masked. No rows were sent.",
    "submission": "Sent this site's counts, with noise. No rows were sent.",
    "shares": "Sent the sealed shares that remove the masks later.",
    "survivors": "Signed the list of sites in the sum. This costs nothing.",
    "unmask": "Helped to remove the masks from the sum. This costs nothing.",
    "without": "Helped to leave out a site that sent wrong shares. This costs nothing.",
    "ask-shares": "Asked {n} to send their counts.",
    "ask-survivors": "Asked {n} to sign the list of sites in the sum.",
    "ask-unmask": "Asked {n} to help remove the masks from the sum.",
    "ask-without": "Asked {n} to help leave out a site that sent wrong shares.",
    "result": "Put the signed result into the folder, for every site.",
}


def done_words(posted: Sequence[str]) -> list[str]:
    """Return what a visit put into the folder, in sentences; ``posted`` as in `Visit`."""
    steps = dict.fromkeys(posted)
    if "masked" in steps:
        for one in ("keys", "shares"):  # a single step for the reader
            steps.pop(one, None)
    n = Counter(posted)
    counted = {step: "1 site" if n[step] == 1 else f"{n[step]} sites" for step in steps}
    return [_DONE.get(step, f"Sent: {step}.").format(n=counted[step]) for step in steps]


def waits_words(round_folder: RoundFolder, visit: Visit, me: str) -> list[str]:
    """Return whom a party waits for after its visit, and until when."""
    round_, late = round_folder.round, now() > round_folder.round.deadline
    lead = round_.coordinator.name
    if visit.state not in ("waiting", "act") or (me != lead and me in visit.waits_for):
        return []
    asked = round_folder.decided
    without_key = [name for name in round_folder.left() if name not in round_folder.there("keys")]
    asks = round_folder.there(ASK + "shares")
    if round_.terms.masked and without_key and not asks and not late:
        return [_keys_words(round_, f"Waiting for {listed(without_key)}")]
    if me == lead:
        if asked:
            return [f"Waiting for {listed(visit.waits_for)} to help remove the masks from the sum."]
        if not visit.waits_for:
            return []
        return [_until(round_, f"Waiting for {listed(visit.waits_for)}", late)]
    there = {
        *round_folder.there("masked"),
        *round_folder.there("submission"),
        *round_folder.amendment.dropped,
    }
    missing = [name for name in round_.names if name not in there]
    if asked:
        return [f"Waiting for {lead} to continue."]
    first = (
        _until(round_, f"Waiting for the counts of {listed(missing)}", late)
        if missing
        else "Every site has sent its file."
    )
    then = f"Then {lead} continues." if not round_.terms.masked else (
        f"Then {lead} asks each site to run the command once more, without rows, to remove the "
        "masks."
    )  # fmt: skip
    return [first, then]


def who_words(progress: Progress, who: Sequence[str]) -> str:
    """Return who has to do a task."""
    everyone = {progress.round.coordinator.name, *progress.round.names}
    return "Everyone" if everyone <= set(who) else listed(who)


# --- after the result -----------------------------------------------------------------------------


def next_lines(asked: Round, result: Path | str) -> list[str]:
    """Return what to do with a result: sentences, and indented commands."""
    if asked.period is not None:
        before = "" if asked.period == 1 else "EARLIER... "
        return [
            "Decode it with the results of the earlier periods: the sum of all is a model.",
            f"  hushtable decode {before}{result} -o model.hush",
        ]
    if asked.plan is None and asked.layout.purpose.refines:
        given = f"ROUND {result} --plan PLAN --secret FILE --key SITE.key"
        return [
            "Each site draws the plan of the next round from it, and one site sends you the "
            "layout:",
            f"  hushtable round next {given} -o tables.plan.hush --layout layout.hush",
        ]
    if asked.plan is None:
        return [
            "Each site opens it with the shared plan:",
            f"  hushtable round model {result} --plan plan.hush -o model.hush",
        ]
    if is_for_ranges(asked):
        return ["To read the ranges:", f"  hushtable round ranges {result} -o ranges.html"]
    if asked.layout.purpose.refines:
        return ["Continue with: hushtable round next"]
    if asked.layout.purpose is Purpose.GATE:
        return [
            "Continue with the merged counts of the first pass:",
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
            "Or continue with the second pass, for which there is budget left:",
            f"  hushtable plan gate {result} -o gate.plan.hush",
        ]
    return lines
