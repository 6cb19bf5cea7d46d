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
    int, option("N", "Sites that never come, or are gone once their counts are there.", min=0)
]
_Late = Annotated[int, option("N", "Sites that come after the deadline.", min=0)]
_Liars = Annotated[int, option("N", "Sites that give wrong shares.", min=0)]
_Killed = Annotated[int, option("N", "Sites killed at a write, which come again.", min=0)]
_Folder = Annotated[
    Path | None, option("DIR", "Keep all files there: a new folder. Otherwise none is kept.")
]
_Tables = Annotated[int, option("M", "Tables of 64 counters.", min=1, max=2000)]
_Seed = Annotated[
    int | None, option("N", "Seed of who is what and comes when, for the same again.", min=0)
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
    """Play a whole round in a folder with invented rows.

    Who does what, at which visit.

    The visits are those of hushtable round sync, in an order of chance, under a clock of the play:
    a deadline after a week passes at once. Nothing of it is real but the time that it takes.

    Example:
      hushtable round rehearse --sites 20 --away 3 --late 2 --liars 1
    """
    cast = Scenario(sites, away, late, liars, killed, tables, seed)
    told = _Timeline(quiet=for_machines())
    if folder is not None:
        try:
            folder.mkdir()
        except FileExistsError:
            raise FileError(f"{folder} is there already: name a new folder") from None
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
            f"{cast.least} sites needed, a week of time. All rows are invented."
        )
        show(Paragraph([sentence]), "")
    play.run()
    return play


class _Timeline:
    """Prints what happens as it does."""

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
        return "Killed at a write into the folder."
    if event.what == "gone":
        return "Is gone, and does not come again."
    visit = event.visit
    if visit.state == "done" and not visit.posted:
        return "Has the result, checked."
    stated = visit.words if visit.state in (*STUCK, "left-out") else []
    found = [f"Found out: {name} {why}." for name, why in visit.found_out.items()]
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
            f"no result after {play.days} days, which is a bug: please report it with the seed"
        )
    n, every = len(facts["in_result"]), facts["each_site"].values()
    out = [one.name for one in play.sites if one.name not in facts["in_result"]]
    without = f", without {listed(out)}" if out else ""
    yield f"\nAfter {play.days} days: the result of {n} of {facts['sites']} sites{without}."
    sure = "equals" if play.exact else "DIFFERS FROM"
    lines = [
        f"It {sure} the sum of what these sites counted with their noise, to the bit.",
        f"Noise on a counter: {facts['noise_sd_measured']:,.1f} measured, "
        f"{facts['noise_sd']:,.1f} promised (standard deviation).",
        *(f"Found out: {shown(name)} {why}." for name, why in play.found_out.items()),
    ]
    most = {key: max(one[key] for one in every) for key in ("visits", "bytes_sent", "bytes_read")}
    seconds, lead = statistics.median(one["seconds"] for one in every), facts["coordinator"]
    lines += [
        f"A site: at most {most['visits']} visits and one to fetch the result, "
        f"{_mb(most['bytes_sent'])} sent ({most['bytes_sent'] / play.vector:.2f} times its "
        f"counts), {_mb(most['bytes_read'])} read; {seconds:.2f} seconds, the median of all.",
        f"The coordinator: {lead['visits']} visits, "
        f"{_mb(lead['bytes_sent'])} sent, {_mb(lead['bytes_read'])} read, "
        f"{lead['seconds']:.2f} seconds.",
    ]
    yield Paragraph(lines)


def _mb(n: int) -> str:
    return f"{n / 1e6:,.2f} MB"
