"""``hushtable round model``: what a site makes of a result with what only it knows."""

from pathlib import Path
from typing import Annotated, Any

from hushtable.cli.counts import signed_by, standing
from hushtable.cli.options import Json, Output, argument, option
from hushtable.cli.output import Target, finish, print_sentences
from hushtable.counts.base import Counts, Noised
from hushtable.counts.release import LocalModel
from hushtable.errors import RoundError, UsageError
from hushtable_federation.book.book import Book
from hushtable_federation.hidden import read_plan
from hushtable_federation.result import open_result
from hushtable_federation.round import shown_time

_Result = Annotated[Path, argument("RESULT", "Of hushtable round collect.")]
_Book = Annotated[
    Path | None, option("FILE", "This site's book: its exact counts replace what it sent.")
]
_Plan = Annotated[Path | None, option("FILE", "The sites' plan, where the round hid it.")]


def model(
    result: _Result, output: Output, book: _Book = None, plan: _Plan = None, as_json: Json = False
) -> None:
    """Make the model that a site scores with out of a result.

    With --plan, a result with hidden hash functions is opened. With --book, the site's exact counts
    take the place of its noised ones (the paper's Algorithm 2): less noise, but such a model holds
    the site's rows as exact counts, and must never leave it.

    Example:
      hushtable round model result.hush --book north.book -o north.local.hush
    """
    target = Target(output, [result, book, plan])
    if book is None and plan is None:
        raise UsageError(
            f"{result} can be scored with as it is: give --book for a local model, or --plan to "
            "open a result with hidden hash functions"
        )
    read = open_result(result)
    opened = _opened(result, read, plan)
    made: Counts = opened if book is None else _local(opened, book)
    verified = None if book is None else _verified(read, book)
    target.save(made)
    facts: dict[str, Any] = {
        "command": "round model",
        "model": str(output),
        "local": book is not None,
        "rows": made.n_rows,
        "noise_sd": made.noise_sd,
        "signed_by": signed_by(read),
        "verified": verified,
    }

    def text() -> None:
        said = standing(read)
        if verified is not None:
            said = f"{said.partition(':')[0]}: verified on {verified}."
        print_sentences([said])
        print(f"About {made.n_rows:,} rows, with noise of {made.noise_sd:,.1f} on each count.")
        if book is None:
            print(f"Wrote {target}: for the sites, not for the coordinator.")
        else:
            print(f"(In the result: {opened.noise_sd:,.1f}.)")
            print(f"Wrote {target}. It holds this site's exact counts: it must never leave.")
        print(f"  hushtable score DATA --model {output} -o scores.parquet")

    finish(as_json, facts, text)


def _opened(path: Path, read: Noised, plan: Path | None) -> Noised:
    if read.ledger.sensitivity.horizon is not None:
        raise UsageError(
            f"{path} is of a plan for several periods, of which no local models are made: decode "
            "the results of all periods so far (hushtable decode), and score with the sum"
        )
    if not read.hidden:
        return read
    if plan is None:
        raise UsageError(
            f"{path}: the hash functions were hidden from the coordinator: give the plan that the "
            "sites share (--plan)"
        )
    return read.open(read_plan(plan))


def _verified(result: Noised, book: Path) -> str | None:
    """Return when this site verified the result, as its book has it."""
    if result.seal is None:
        return None
    with Book.open(book) as notes:
        at = notes.verified(result.seal.digest)
    return None if at is None else shown_time(at)


def _local(result: Noised, book: Path) -> LocalModel:
    shares = {share.release for share in result.ledger.shares}
    with Book.open(book) as notes:
        for answer in notes.answers():
            if answer.share.release in shares:
                mine = answer.under(result.plan)
                return LocalModel.of(result, mine.share.release, mine.sent, mine.counts)
        raise RoundError(
            f"{notes.site!r} has no part in this result: its book holds no answer to that round"
        )
