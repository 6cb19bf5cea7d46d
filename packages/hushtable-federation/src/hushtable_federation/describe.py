"""Describe rounds in words: what a round counts, its state, and what follows from it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from shlex import quote
from typing import Any

from hushtable.describe.ledger import describe_ledger, suspicion_words
from hushtable.describe.plan import n_tables
from hushtable.language import N_, numerals, percents
from hushtable.plans.draws import Purpose
from hushtable.privacy.accounting import rounded_up
from hushtable.privacy.ledger import Share
from hushtable_federation.clock import CLOCKS, goes_on, keys_until, now, shown_time
from hushtable_federation.language import _, ngettext
from hushtable_federation.ranges import is_for_ranges, range_words
from hushtable_federation.refusals import Refusal
from hushtable_federation.round import Round
from hushtable_federation.state import Deed, RoundState, RoundTask


def officer_words(round_: Round) -> list[str]:
    """Return what a round requests from each site, in sentences that an officer signs."""
    k, plan = len(round_.sites), round_.plan
    names = plan.schema.names
    what = ngettext("%(n)s column", "%(n)s columns", len(names)) + f" ({_first(names)})"
    ledger = round_.ledger(Share("", round_.site_scale, ""))
    asked = {"until": shown_time(round_.deadline), "lead": round_.coordinator.name, "k": k}
    if round_.place is None:
        asks = _("Until %(until)s, %(lead)s asks %(k)s sites to count their rows by %(what)s.",
                 what=what, **asked)  # fmt: skip
    else:
        asks = _("Until %(until)s, %(lead)s asks %(k)s sites to count their rows of this period by "
                 "%(what)s.", what=what, **asked)  # fmt: skip
    return [
        *(f"{line}." for line in [period_words(round_)] if line),
        asks,
        _leaves(round_, k),
        suspicion_words(ledger),
        describe_ledger(ledger)[1],
        *range_words(round_),
    ]


def _leaves(round_: Round, k: int) -> str:
    plan, terms = round_.plan, round_.terms
    noise = _("noise of %(sd)s (standard deviation) is added to each",
              sd=numerals(f"{round_.site_scale:,.1f}"))  # fmt: skip
    if terms.masked and round_.needed == k:
        noise += _(", and a mask that disappears only in the sum of all %(k)s sites", k=k)
    elif terms.masked:
        noise += _(", and a mask that disappears only in the sum of at least %(least)s of %(k)s "
                   "sites", least=terms.least, k=k)  # fmt: skip
    nothing = _("No row, no number of rows and no score leaves a site.")
    mixed = "" if round_.place is None else _(", which mix those of its periods so far")
    leave = _(
        "Each site sends %(n)s counts, in %(tables)s (%(detector)s)%(mixed)s; %(noise)s.",
        n=numerals(f"{plan.family.n_cells:,}"), tables=n_tables(plan.family.n_histograms),
        detector=plan.detector, mixed=mixed, noise=noise,
    )  # fmt: skip
    return f"{leave} {nothing}"


def period_words(round_: Round) -> str:
    """Return the period of a round, and the cost of all periods; empty outside a stream."""
    place, horizon, terms = round_.place, round_.plan.horizon, round_.terms
    if place is None or horizon is None:
        return ""
    single = terms.rows_per_person == 1 and horizon.participations == 1
    period = place.words(horizon)
    values = {
        "period": f"{period[0].upper()}{period[1:]}", "end": place.end(horizon),
        "epsilon": numerals(f"{rounded_up(terms.epsilon, 6):g}"),
    }  # fmt: skip
    if single:
        return _("%(period)s; until %(end)s, a total of %(epsilon)s for one row", **values)
    return _("%(period)s; until %(end)s, a total of %(epsilon)s for one person", **values)


def round_lines(round_: Round) -> dict[str, str]:
    """Return the terms of a round."""
    terms = round_.terms
    over = _(" (over)") if now() > round_.deadline else ""
    period = period_words(round_).removeprefix(_("Period "))
    opened = _("%(first)s to %(last)s", first=shown_time(round_.opened),
               last=shown_time(round_.deadline))  # fmt: skip
    noise = numerals(f"{round_.site_scale:,.4g}")
    words = (
        _("%(sd)s per site on mixed counts", sd=noise) if period else _("%(sd)s per site", sd=noise)
    )
    masks = _("complete, without masks")
    if terms.masked:
        masks = _("under masks")
    if terms.colluders:
        masks = ngettext(
            "under masks, and enough even if %(n)s site reveals its part",
            "under masks, and enough even if %(n)s sites reveal their parts",
            terms.colluders,
        )
    cost = terms.words()
    if terms.share is not None:
        share = percents(f"{100 * terms.share:g}")
        cost = _("%(cost)s; this round takes %(share)s of it", cost=cost, share=share)
    needs = _("%(n)s of %(k)s sites", n=round_.needed, k=len(round_.sites))
    return {
        _("Round"): f"{round_.round_id[:12]} {round_.title}".rstrip(),
        **({_("Period"): period} if period else {}),
        _("Coordinator"): f"{round_.coordinator.name}, {round_.coordinator.fingerprint}",
        _("Open"): f"{opened}{over}",
        _("Plan"): f"{round_.plan.plan_id[:12]}, {round_.plan.detector}",
        _("Cost"): cost,
        _("Noise"): f"{words}, {masks}",
        _("Needs"): needs,
    }


def _first(names: Sequence[str], most: int = 8) -> str:
    first = ", ".join(names[:most])
    if len(names) <= most:
        return first
    return _("%(names)s and %(n)s more", names=first, n=numerals(f"{len(names) - most:,}"))


#: Placeholder in commands for the file of a result, if its name is not known.
RESULT = "RESULT"
#: Words for the states of a site.
STATES = {
    "awaited": N_("awaited"),
    "ready": N_("rows counted; counts not sent yet"),
    "refused": N_("refused"),
    "twice": N_("signed answers that are not valid, such as two different ones"),
    "in": N_("counts received"),
    "asked": N_("counts received; asked to run the command once more"),
    "helped": N_("counts received; has done what was requested"),
    "summed": N_("in the result"),
    "dropped": N_("left out by the coordinator"),
    "out": N_("not in the sum"),
}
#: By step, what the sites that answered it have done.
HELPED: dict[str, str] = {
    "survivors": N_("signed the list of sites in it"),
    "unmask": N_("helped to remove the masks"),
}
_REFUSALS = {
    Refusal.REQUEST: N_("the request that it got is not valid"),
    Refusal.ROUND: N_("the round is not for this site: other keys, or another plan"),
    Refusal.TIME: N_("by its clock, the round is not open"),
    Refusal.POLICY: N_("its policy does not allow it, or its officer has not signed"),
    Refusal.UNKNOWN: N_("it does not know the coordinator, or too many of the sites"),
    Refusal.BUDGET: N_("its budget is not sufficient"),
    Refusal.ANSWERED: N_("it has already answered a different request"),
    Refusal.ORDER: N_("an earlier step is missing"),
    Refusal.SITES: N_("the list of sites differs from the one that it knows, or is too short"),
    Refusal.SHARES: N_("what it received as sent by another site is not valid"),
    Refusal.UNAVAILABLE: N_("something failed there; its log contains the reason"),
}


def listed(names: Sequence[str], most: int = 8) -> str:
    """Return names for a sentence, safe to print; only the first few if there are many."""
    printable = [name if name.isprintable() else repr(name) for name in names]
    if len(printable) > most:
        return _first(printable, most)
    *first, last = printable or [_("no one")]
    return _("%(names)s and %(last)s", names=", ".join(first), last=last) if first else last


def standing(state: RoundState) -> str:
    """Return how the round stands, in one to three sentences."""
    round_ = state.round
    counted = "in", "asked", "helped", "summed", *(() if state.settled else ("ready",))
    n_in = len([site for site in state.states.values() if site in counted])
    until, at = shown_time(round_.deadline), shown_time(goes_on(round_.deadline))
    values = {
        "n": n_in, "k": len(round_.names), "needed": round_.needed, "left": state.left,
        "lead": state.lead, "until": until, "at": at,
        "minutes": CLOCKS // timedelta(minutes=1),
        "names": listed(state.waits_for),
        "ready": len(state.those("ready")),
        "half": shown_time(keys_until(round_.opened, round_.deadline)),
        "helped": len(state.those("helped")), "what": _(HELPED.get(state.asked, N_("answered"))),
    }  # fmt: skip
    return " ".join(_(sentence, **values) for sentence in _sentences(state))


def _sentences(state: RoundState) -> list[str]:
    if state.phase == "counting" and not state.settled and not state.late:
        return [
            N_("%(ready)s of %(k)s sites have counted their rows."),
            N_("Waiting for %(names)s."),
            N_("No counts are sent before that. From %(half)s on, the next run of round sync by "
               "%(lead)s leaves out the sites that have not run it."),
        ]  # fmt: skip
    if state.phase == "counting":
        return [
            N_("%(n)s of %(k)s sites have answered."),
            N_("The time to answer ended on %(until)s.") if state.late
            else N_("Waiting for %(names)s until %(until)s."),
            N_("The round continues without missing sites at %(at)s: it allows %(minutes)s minutes "
               "for clock errors."),
        ]  # fmt: skip
    over = N_("The time to answer ended on %(until)s, and there is no result.")
    if state.phase == "failed" and state.stopped:
        return [_("Stopped: %(why)s.", why=state.stopped.replace("%", "%%"))]
    if state.phase == "failed" and state.left < state.round.needed:
        return [N_("It cannot end: %(left)s of %(k)s sites are left, and %(needed)s are needed.")]
    return {
        "short": [
            N_("The time to answer ended on %(until)s: %(n)s of %(k)s sites have answered, and "
               "%(needed)s are needed. Nothing that they sent can be read.")
        ],
        "closing": [
            *([over] if state.overdue else []),
            N_("%(n)s of %(k)s sites have answered: %(lead)s can continue."),
        ],
        "unmasking": [
            *([over] if state.overdue else []),
            N_("%(n)s of %(k)s sites are in the sum. %(helped)s of at least %(needed)s have "
               "%(what)s."),
            N_("Waiting for %(names)s."),
        ],
        "done": [N_("Done: the result of %(n)s of %(k)s sites is there.")],
        "failed": [
            N_("The time to answer ended on %(until)s, and there is no result: the sites no longer "
               "keep what is needed to remove the masks.")
        ],
    }[state.phase]  # fmt: skip


def site_words(state: RoundState, name: str) -> str:
    """Return the state of a site."""
    words = _(STATES[state.states[name]])
    refused = state.refused.get(name)
    if state.states[name] == "dropped" and state.amendment.why:
        return f"{words}: {state.amendment.why}"
    return words if refused is None else f"{words}: {_(_REFUSALS.get(refused, str(refused)))}"


# --- who has to do what ---------------------------------------------------------------------------

#: By task, a sentence or two, and the command: none, ``sync``, ``answer`` (with rows), or the
#: options of ``amend``.
_TASKS: dict[Deed, tuple[str, str]] = {
    "answer": (N_("Answer with the site's rows, until %(until)s."), "answer"),
    "resolve": (N_("Resolve why the site refused, and answer until %(until)s."), "answer"),
    "send": (N_("Run this again, without rows: the site can now send its counts."), "sync"),
    "help": (
        N_("Run this once more, without rows: the sum needs this site. It costs nothing."), "sync",
    ),
    "find-book": (
        N_("Find out which book is the newest, and use only that one, because there are two "
           "different answers. %(lead)s continues without the site."), "",
    ),
    "ask-time": (
        N_(
            "The time to answer is over, because the clock of this machine shows %(now)s: check "
            "the clock, or ask %(lead)s for more time."
        ),
        "",
    ),
    "ask-lead": (N_("There is no result, although the time is over: ask %(lead)s."), "sync"),
    "settle": (N_("Run this command: it decides which sites are in the round."), "sync"),
    "remind": (
        N_("Remind %(about)s. For more time, or to go on without a site (--drop SITE):"),
        "--days 3",
    ),
    "ask-reason": (N_("Ask %(about)s for the reason, in the site's log."), ""),
    "extend": (
        N_("Open another round, or ask %(about)s to answer, and extend this one:"), "--days 3",
    ),
    "drop": (
        N_("Nothing until %(after)s; then run this. To continue without %(about)s now:"), "--drop",
    ),
    "drop-twice": (
        N_("Continue without %(about)s, because the answers are not valid:"), "--drop",
    ),
    "continue": (N_("Run this: the sites have answered."), "sync"),
    "remind-again": (N_("Remind %(about)s, and run this again."), "sync"),
    "reopen": (N_("Open another round, and inform the sites."), ""),
    "fetch": (N_("Fetch the result and verify it."), "sync"),
    "wait": (
        N_("Nothing now. Run this again after the others have run it, or once a day."), "sync",
    ),
    "left-out": (
        N_("Nothing: the site is not in the sum. It can fetch the result like the others."), "",
    ),
    "nothing": (N_("Nothing: %(lead)s opens another round."), ""),
}  # fmt: skip


def task_words(state: RoundState, task: RoundTask) -> str:
    """Return a task in a sentence or two."""
    words, _command = _TASKS[task.deed]
    until = state.round.deadline
    return _(
        words, until=shown_time(until), after=shown_time(goes_on(until)), lead=state.lead,
        about=listed(task.about), now=shown_time(state.at),
    )  # fmt: skip


def task_command(task: RoundTask, folder: str, key: str) -> str:
    """Return the command to type for a task; empty if there is none."""
    _words, command = _TASKS[task.deed]
    if command in ("sync", "answer"):
        data = "DATA " if command == "answer" else ""
        return f"hushtable round sync {folder} {data}--key {key}"
    return command and f"hushtable round amend {folder} --key {key} {_changes(task)}"


def _changes(task: RoundTask) -> str:
    _words, command = _TASKS[task.deed]
    if command == "--drop":
        return " ".join(f"--drop {quote(name)}" for name in task.about)
    return command if command.startswith("--") else ""


def task_facts(state: RoundState, task: RoundTask, folder: str, key: str) -> dict[str, Any]:
    """Return a task for machines."""
    return {
        "who": task.who, "words": task_words(state, task),
        "command": task_command(task, folder, key), "needs_person": task.needs_person,
    }  # fmt: skip


def who_words(state: RoundState, who: Sequence[str]) -> str:
    """Return who has to do a task."""
    everyone = {state.lead, *state.round.names}
    return _("Everyone") if everyone <= set(who) else listed(who)


def party_words(state: RoundState, name: str) -> list[str]:
    """Return what a party has to know of a round: how it stands, and what a person there does."""
    odd = state.those("refused", "twice", "dropped", "out")
    about = [site for site in odd if site == name] if name != state.lead else [*state.refused]
    return [
        standing(state),
        *(f"{site}: {site_words(state, site)}." for site in about),
        *(
            task_words(state, task)
            if not (changes := _changes(task))
            else f"{task_words(state, task).rstrip('.:')} (hushtable round amend {changes})."
            for task in state.tasks
            if name in task.who and task.needs_person
        ),
    ]


def amendment_words(state: RoundState) -> str:
    """Return what the coordinator has changed since the round was opened; empty if nothing."""
    made = state.amendment
    if not made.number:
        return ""
    words = _("until %(until)s", until=shown_time(made.deadline))
    if made.dropped:
        words = _("%(until)s, without %(names)s", until=words, names=listed(made.dropped))
    return words + (f": {made.why}" if made.why else "")


def aside_lines(odd: Mapping[str, str], most: int = 5) -> list[str]:
    """Return lines about files that do not count, with the reasons; only the first if many."""
    lines = [f"Ignored: {name}: {why}" for name, why in [*odd.items()][:most]]
    more = len(odd) - most
    return lines + ([f"Ignored: {more:,} more (--json lists them)."] if more > 0 else [])


def damaged_words(n: int) -> str:
    """Return a sentence about files that cannot be used."""
    return f"{'1 file is' if n == 1 else f'{n} files are'} damaged or incomplete, and ignored."


# --- what was done --------------------------------------------------------------------------------

_DONE = {
    "keys": "Counted the rows, and sent a key for this round. No counts were sent.",
    "masked": "Sent this site's counts, with noise and masked. No rows were sent.",
    "submission": "Sent this site's counts, with noise. No rows were sent.",
    "shares": "Sent the sealed shares that remove the masks later.",
    "survivors": "Signed the list of sites in the sum. This costs nothing.",
    "unmask": "Helped to remove the masks from the sum. This costs nothing.",
    "ask-shares": "Asked {n} to send their counts.",
    "ask-survivors": "Asked {n} to sign the list of sites in the sum.",
    "ask-unmask": "Asked {n} to help remove the masks from the sum.",
    "result": "Put the signed result into the folder, for every site.",
}


def done_words(posted: Sequence[str]) -> list[str]:
    """Return what a visit put into the folder, in sentences; ``posted`` as in `Visit`."""
    part = ("keys", "shares") if "masked" in posted else ()  # of a single step for the reader
    sent = Counter(step for step in posted if step not in part)
    sites = {step: "1 site" if n == 1 else f"{n} sites" for step, n in sent.items()}
    return [_DONE.get(step, f"Sent: {step}.").format(n=n) for step, n in sites.items()]


# --- after the result -----------------------------------------------------------------------------


def next_lines(asked: Round, result: Path | str) -> list[str]:
    """Return what to do with a result: sentences, and indented commands."""
    if asked.period is not None:
        before = "" if asked.period == 1 else "EARLIER... "
        return [
            _("Decode it with the results of the earlier periods: the sum of all is a model."),
            f"  hushtable decode {before}{result} -o model.hush",
        ]
    if is_for_ranges(asked):
        return [_("To read the ranges:"), f"  hushtable round ranges {result} -o ranges.csv"]
    if asked.plan.purpose.refines:
        return [_("Continue with: hushtable round next")]
    if asked.plan.purpose is Purpose.GATE:
        return [
            _("Continue with the merged counts of the first pass:"),
            f"  hushtable plan second FIRST --gate {result} -o second.plan.hush",
        ]
    if not asked.plan.purpose.scores_rows:
        return [
            _("At each site, with the model that they rank by:"),
            f"  hushtable score DATA --model MODEL --ranks {result} -o scores.parquet",
        ]
    lines = [_("At each site:"), f"  hushtable score DATA --model {result} -o scores.parquet"]
    if asked.plan.share_of_budget is not None:
        lines += [
            _("Or continue with the second pass, for which there is budget left:"),
            f"  hushtable plan gate {result} -o gate.plan.hush",
        ]
    return lines
