"""``hushtable round book``: what a site has answered, what that cost, and a forecast."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable import files
from hushtable.arguments import is_digest
from hushtable.cli.options import argument, option
from hushtable.cli.output import Target, shown
from hushtable.cli.result import Block, CommandResult, TextTable
from hushtable.errors import MissingExtraError, RoundError, UsageError
from hushtable.plans.plan import Plan
from hushtable.privacy.accounting import rounded_up
from hushtable_federation.book.book import Book
from hushtable_federation.book.chain import Entry
from hushtable_federation.book.file import ROLES
from hushtable_federation.costs import Forecast, forecast, last_rows, totals
from hushtable_federation.keys import Card
from hushtable_federation.round import Round

#: Kinds of pictures, by file suffix.
_PICTURES = (".pdf", ".png", ".svg")


class ForecastTable:
    """Costs of further rounds about some rows; ``path`` names a round or a plan."""

    def __init__(self, notes: Book, path: Path | None, data_set: str | None) -> None:
        self.cap, self.delta = notes.epsilon, notes.delta
        self.data_set = last_rows(notes) if data_set is None else data_set
        self.lines = forecast(notes, None if path is None else _asked(path), self.data_set)
        self.spent = totals(notes, self.data_set)

    def facts(self) -> dict[str, Any]:
        """Return the forecast for machines."""
        return {"data_set": self.data_set, "rounds": [self._facts(one) for one in self.lines]}

    def _facts(self, one: Forecast) -> dict[str, Any]:
        names = ("kind", "what", "epsilon", "allowed", "why_not")
        record = {name: getattr(one, name) for name in names}
        return record | {"of_cap": one.epsilon / self.cap, "how_many": one.more}

    def blocks(self) -> Iterator[Block]:
        """Print the forecast as a table."""
        now = self.spent[-1] if self.spent else 0.0
        yield (
            f"Forecast for {shown(self.data_set)}: epsilon {rounded_up(now):g} of {self.cap:g} is "
            "spent so far.\n"
        )
        rows = [
            [
                one.what,
                "yes" if one.allowed else f"no: {one.why_not}",
                f"{rounded_up(one.epsilon):g}",
                f"{rounded_up(100.0 * one.epsilon / self.cap):g}%",
                "no limit" if one.more is None else f"{one.more:,}",
            ]
            for one in self.lines
        ]
        yield TextTable(
            ["what", "allowed", "epsilon after", "of the cap", "how many"], rows, left=2
        )

    def draw(self, target: Target) -> None:
        """Draw the budget spent, and the forecast of the first line."""
        try:
            from matplotlib.figure import Figure  # of an extra
        except ImportError:
            raise MissingExtraError("--plot", "matplotlib", "report") from None
        from hushtable_federation.plots import BudgetDisplay  # loads NumPy alone

        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        course = self.lines[0].course
        BudgetDisplay.from_values(self.spent, cap=self.cap, course=course, ax=figure.subplots())
        with target.writing(), files.replacing(target.path) as file:
            figure.savefig(file, format=target.path.suffix[1:].lower(), dpi=150)


def picture(path: Path | None, inputs: list[Path | None]) -> Target | None:
    """Return the path of the picture, if requested; refuse early a path that cannot be used."""
    if path is None:
        return None
    if path.suffix.lower() not in _PICTURES:
        raise UsageError(f"--plot {path}: needs a name that ends in {', '.join(_PICTURES)}")
    return Target(path, inputs)


def _asked(path: Path) -> Round | Plan:
    content = files.read(path).expect("round", "plan")
    if content.kind == "round":
        return Round.from_bytes(path.read_bytes(), path)
    return content.build(Plan.from_file)


_File = Annotated[Path, argument("BOOK", "Book written by hushtable round keygen.")]
_Cap = Annotated[float | None, option("E", "Change the epsilon that all rounds together may cost.")]
_Delta = Annotated[float | None, option("D", "Delta of the cap; unchanged by default.")]
_History = Annotated[
    bool, typer.Option("--history", help="List every entry, with its time and its link.")
]
_Asked = Annotated[
    Path | None,
    argument(
        "[ROUND_OR_PLAN]",
        "With --forecast: the round or plan to forecast; by default, the last one.",
    ),
]
_ForecastOption = Annotated[
    bool, typer.Option("--forecast", help="Show what a further round would cost, and how many fit.")
]
_Rows = Annotated[
    str | None, option("NAME", "With --forecast: which rows; by default, those of the last answer.")
]
_Plot = Annotated[
    Path | None, option("FILE", "With --forecast: draw the budget spent as .png, .svg or .pdf.")
]
_Expect = Annotated[
    str | None,
    option(
        "HEAD",
        "A head that you kept elsewhere: check that the book still holds all entries up to it.",
    ),
]
#: Words for how a card was verified.
WORDS = {
    "code": "by the code read in a call",
    "card": "by a card that its owner gave",
    "asked": "fingerprint compared",
}


def book(
    file: _File,
    asked: _Asked = None,
    cap: _Cap = None,
    delta: _Delta = None,
    history: _History = False,
    expect: _Expect = None,
    forecast: _ForecastOption = False,
    data_set: _Rows = None,
    plot: _Plot = None,
) -> CommandResult:
    """Show a site's book: rounds answered, and the budget spent.

    The entries form a hash chain. The head is its last link, and depends on all of them: keep it
    apart from the book, and check with --expect that all entries up to it are still there.

    Example:
      hushtable round book north.book
      hushtable round book north.book round.hush --forecast
    """
    if cap is None and delta is not None:
        raise UsageError("--delta changes a cap: give --cap, too")
    if cap is not None and expect is not None:
        raise UsageError("--expect checks the book as it is: leave out --cap")
    if not forecast and (asked, data_set, plot) != (None, None, None):
        raise UsageError(
            "a round or plan, --data-set and --plot are for a forecast: give --forecast, too"
        )
    target, ahead = picture(plot, [file, asked]), None
    with Book.open(file) as notes:
        expected = None if expect is None else _expected(notes, expect)
        if cap is not None:
            notes.set_cap(cap, notes.delta if delta is None else delta)
        facts = _facts(notes, history)
        if forecast:
            ahead = ForecastTable(notes, asked, data_set)
            facts["forecast"] = ahead.facts()
    if ahead is not None and target is not None:
        ahead.draw(target)
        facts["plot"] = str(target.path)
    if expected is not None:
        facts["expected"] = {"entry": expected, "entries_since": facts["entries"] - expected}

    return CommandResult(facts, _all_blocks(facts, ahead, target))


def _all_blocks(
    facts: dict[str, Any], ahead: ForecastTable | None, target: Target | None
) -> Iterator[Block]:
    yield from _blocks(facts)
    if "history" in facts:
        yield ""
        yield TextTable(["known", "as", "fingerprint", "verified"], _known(facts), left=4)
        yield ""
        yield TextTable(
            ["entry", "when", "kind", "what", "link"],
            [
                [f"{e['entry']:,}", e["at"], e["kind"], shown(e["what"]), e["link"][:12]]
                for e in facts["history"]
            ],
            left=5,
        )
    if ahead is not None:
        yield ""
        yield from ahead.blocks()
    yield f"\n{facts['entries']:,} entries. Keep this head apart from the book:"
    yield f"  {facts['head']}"
    if "expected" in facts:
        expected, since = (facts["expected"][name] for name in ("entry", "entries_since"))
        yield f"The expected head is the link of entry {expected:,}; {since:,} entries follow it."
    if target is not None:
        yield f"\nWrote {target}."


def _expected(notes: Book, head: str) -> int:
    """Return the number of the entry with this link; raise `RoundError` if there is none."""
    link = head.strip().lower()
    if not is_digest(link):
        raise UsageError(
            f"--expect {head[:80]!r}: needs a head as hushtable round book prints it, 64 "
            "hexadecimal digits"
        )
    for entry in notes.history():
        if entry.link == link:
            return entry.n
    raise RoundError(
        f"{notes.path} does not hold the head {link[:12]}...: entries were removed from its end, "
        "or it is an old copy or a different book. Do not answer with it; restore the last backup "
        "that holds this head"
    )


def _facts(notes: Book, history: bool) -> dict[str, Any]:
    entries = notes.history()
    facts: dict[str, Any] = {
        "command": "round book",
        "site": notes.site,
        "cap": {"epsilon": notes.epsilon, "delta": notes.delta},
        "spent": {name: notes.total(name) for name in notes.data_sets()},
        "rounds": [_round(entry) for entry in entries if entry.kind == "answer"],
        "known": {name: card.fingerprint for name, card in notes.known().items()},
        "roles": {role: sorted(notes.known(role)) for role in ROLES},
        "verified": {
            role: {name: notes.ways(name, role) for name in notes.known(role)} for role in ROLES
        },
        "head": notes.head,
        "entries": len(entries),
    }
    if history:
        keys = ("entry", "at", "kind", "what", "link")
        facts["history"] = [
            dict(zip(keys, (e.n, e.content["at"], e.kind, _what(e), e.link), strict=True))
            for e in entries
        ]
    return facts


def _round(entry: Entry) -> dict[str, Any]:
    record = entry.content
    facts = {key: record[key] for key in ("round_id", "title", "data_set", "made")}
    facts |= {key: record["spent"][key] for key in ("what", "rho")}
    return facts | {key: record[key] for key in ("stream", "period") if key in record}


def _what(entry: Entry) -> str:
    """Describe an entry in a few words."""
    record = entry.content
    if entry.kind in ("site", "cap"):
        words = f"cap: epsilon {record['epsilon']:g}, delta {record['delta']:g}"
        return f"{record['name']}, {words}" if entry.kind == "site" else words
    if entry.kind == "trust":
        card = Card.from_dict(record["card"])
        how = f", {WORDS.get(record['how'], record['how'])}" if "how" in record else ""
        return f"{card.name} as {record['role']}, {card.fingerprint}{how}"
    if entry.kind == "rows":
        said_so = ": about new people" if record["new_people"] else ""
        like = f", similar to those of {record['like']}" if record["like"] else ""
        return f"{record['data_set']}{said_so}{like}"
    if entry.kind == "answer":
        title = f" ({record['title']})" if record["title"] else ""
        period = f", period {record['period']}," if "period" in record else ""
        return f"round {record['round_id'][:12]}{title}{period} about {record['data_set']}"
    if entry.kind == "verified":
        return f"result {record['digest'][:12]} of round {record['round_id'][:12]}"
    return f"policy {record['digest'][:12]}"


def _known(facts: dict[str, Any]) -> list[list[str]]:
    """Return a line for each known card and role: how and when it was verified."""
    rows = []
    for role, those in facts["verified"].items():
        for name, ways in those.items():
            words = [f"{WORDS.get(how, shown(how))}, {at}" for how, at in ways.items()]
            rows.append(
                [name, role, facts["known"][name], "; ".join(words) or "how is not recorded"]
            )
    return rows


def _periods(rounds: list[dict[str, Any]], stream: str) -> str:
    """Name the periods of a stream that were answered; they are consecutive."""
    periods = {one["period"] for one in rounds if one.get("stream") == stream}
    first, last = min(periods), max(periods)
    return f"period {first}" if first == last else f"periods {first} to {last}"


def _blocks(facts: dict[str, Any]) -> Iterator[Block]:
    most = facts["cap"]["epsilon"]
    yield f"Book of {facts['site']}. Each set of rows may spend epsilon {most:g} in all, at"
    yield f"delta {facts['cap']['delta']:g}.\n"
    if not facts["rounds"]:
        yield "This site has not answered a round yet."
        return
    rounds: dict[str, list[str]] = {}
    for one in facts["rounds"]:  # list a stream once, because it is paid for once
        round_id, what = one.get("stream", one["round_id"]), one["what"]
        if "period" in one:
            what += f", {_periods(facts['rounds'], round_id)}"
        names = [round_id[:12], shown(one["title"]), shown(one["data_set"])]
        rounds[round_id] = [*names, what, one["made"], f"{rounded_up(one['rho'], 4):g}"]
    yield TextTable(
        ["round", "title", "rows", "what", "answered", "rho"], [*rounds.values()], left=5
    )
    yield ""
    rows = [
        [shown(name), f"{rounded_up(spent):g}", f"{most:g}"]
        for name, spent in facts["spent"].items()
    ]
    yield TextTable(["rows", "epsilon spent", "of at most"], rows)
    yield "\nThe cap is the guarantee; the budget spent so far is a running total."
