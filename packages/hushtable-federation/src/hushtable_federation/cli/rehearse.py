"""``hushtable round rehearse``: a whole round in a folder, with invented rows."""

import statistics
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from hushtable.cli.options import option
from hushtable.cli.output import shown
from hushtable.cli.result import Block, CommandResult, Paragraph, for_machines, show
from hushtable.errors import FileError, HushTableError
from hushtable_federation.clock import stamp
from hushtable_federation.describe import done_words, listed
from hushtable_federation.rehearsal import Event, Participant, Play, Scenario
from hushtable_federation.visit import STUCK

_Sites = Annotated[int, option("N", "Sites.", min=2, max=100)]
_Away = Annotated[
    int,
    option(
        "N", "Number of sites that never answer, or disappear after they sent their counts.", min=0
    ),
]
_Late = Annotated[int, option("N", "Number of sites that answer after the deadline.", min=0)]
_Liars = Annotated[int, option("N", "Number of sites that send wrong shares.", min=0)]
_Killed = Annotated[
    int, option("N", "Number of sites that are killed during a write, and start again.", min=0)
]
_Folder = Annotated[
    Path | None, option("DIR", "Keep all files in this new folder. By default, no file is kept.")
]
_Tables = Annotated[int, option("M", "Number of tables of 64 counters.", min=1, max=2000)]
_Seed = Annotated[
    int | None,
    option("N", "Seed for the roles and the order of visits, to repeat the same rehearsal.", min=0),
]


def rehearse(
    sites: _Sites = 20,
    away: _Away = 0,
    late: _Late = 0,
    liars: _Liars = 0,
    killed: _Killed = 0,
    folder: _Folder = None,
    tables: _Tables = 200,
    seed: _Seed = None,
) -> CommandResult:
    """Rehearse a whole round in a folder, with invented rows.

    It shows what each party does at each visit.

    The visits are those of hushtable round sync, in random order and under a simulated clock, so
    that a week until the deadline passes at once. Only the measured computing time is real.

    Example:
      hushtable round rehearse --sites 20 --away 3 --late 2 --liars 1
    """
    cast = Scenario(sites, away, late, liars, killed, tables, seed)
    told = _Timeline(quiet=for_machines())
    if folder is not None:
        try:
            folder.mkdir()
        except FileExistsError:
            raise FileError(f"{folder} exists already: name a new folder") from None
        play = _played(folder, cast, told)
    else:
        with tempfile.TemporaryDirectory() as made:
            play = _played(Path(made), cast, told)
    facts = _facts(play, told)
    return CommandResult(facts, _blocks(play, facts), 0 if play.exact else 1)


def _played(folder: Path, cast: Scenario, told: "_Timeline") -> Play:
    play = Play(folder, cast, told)
    if not told.quiet:
        sentence = (
            f"{cast.sites} sites and a coordinator, {play.vector // 8:,} counters, at least "
            f"{cast.least} sites needed, a deadline after a week. All rows are invented."
        )
        show(Paragraph([sentence]), "")
    play.run()
    return play


class _Timeline:
    """Prints events as they happen."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.lines: list[dict[str, Any]] = []
        self._day = 0

    def __call__(self, event: Event) -> None:
        words = _words(event)
        self.lines.append({"at": stamp(event.at), "name": event.name, "words": words})
        if self.quiet:
            return
        day = f"Day {event.day}" if event.day != self._day else ""
        self._day = event.day
        head, indent = f"{day:<8}{event.name:<8}", " " * 16
        print(textwrap.fill(words, 88, initial_indent=head, subsequent_indent=indent), flush=True)


def _words(event: Event) -> str:
    if event.what == "killed":
        return "Is killed while it writes into the folder."
    if event.what == "gone":
        return "Disappears, and does not return."
    visit = event.visit
    if visit.state == "done" and not visit.posted:
        return "Fetches the result, and verifies it."
    stated = visit.words if visit.state in (*STUCK, "left-out") else []
    found = [f"Detected: {name} {why}." for name, why in visit.found_out.items()]
    return " ".join([*done_words(visit.posted), *stated, *found])


# --- what came of it ------------------------------------------------------------------------------


def _facts(play: Play, told: _Timeline) -> dict[str, Any]:
    result = play.result
    measured, promised = (None, None) if result is None else play.noise
    return {
        "command": "round rehearse",
        "sites": len(play.sites),
        "fates": {one.name: one.fate for one in play.sites},
        "days": play.days,
        "in_result": [] if result is None else result.sites,
        "exact": play.exact,
        "found_out": play.found_out,
        "noise_sd_measured": measured,
        "noise_sd": promised,
        "counters": play.vector // 8,
        "each_site": {one.name: _figures(one) for one in play.sites},
        "coordinator": _figures(play.lead),
        "timeline": told.lines,
    }


def _figures(one: Participant) -> dict[str, Any]:
    return {
        "visits": one.visits,
        "bytes_sent": one.sent,
        "bytes_read": one.read,
        "seconds": round(one.seconds, 3),
    }


def _blocks(play: Play, facts: dict[str, Any]) -> Iterator[Block]:
    if play.result is None:
        raise HushTableError(
            f"no result after {play.days} days: this is a bug, so report it with the seed"
        )
    n, every = len(facts["in_result"]), facts["each_site"].values()
    out = [one.name for one in play.sites if one.name not in facts["in_result"]]
    without = f", without {listed(out)}" if out else ""
    yield f"\nAfter {play.days} days: the result of {n} of {facts['sites']} sites{without}."
    sure = "equals" if play.exact else "DIFFERS FROM"
    lines = [
        f"It {sure} the sum of these sites' counts and noise, bit for bit.",
        f"Noise on each counter: {facts['noise_sd_measured']:,.1f} measured, "
        f"{facts['noise_sd']:,.1f} promised (standard deviation).",
        *(f"Detected: {shown(name)} {why}." for name, why in play.found_out.items()),
    ]
    most = {key: max(one[key] for one in every) for key in ("visits", "bytes_sent", "bytes_read")}
    seconds, lead = statistics.median(one["seconds"] for one in every), facts["coordinator"]
    lines += [
        f"Each site: at most {most['visits']} visits and one to fetch the result, "
        f"{_mb(most['bytes_sent'])} sent ({most['bytes_sent'] / play.vector:.2f} times its "
        f"counts), {_mb(most['bytes_read'])} read; {seconds:.2f} seconds (median of all sites).",
        f"The coordinator: {lead['visits']} visits, "
        f"{_mb(lead['bytes_sent'])} sent, {_mb(lead['bytes_read'])} read, "
        f"{lead['seconds']:.2f} seconds.",
    ]
    yield Paragraph(lines)


def _mb(n: int) -> str:
    return f"{n / 1e6:,.2f} MB"
