"""``hushtable round compare``: whether a site's own rows fit under what the others sent."""

from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable.cli.counts import signed_by, standing
from hushtable.cli.drift import ABOVE
from hushtable.cli.options import Json, argument, option
from hushtable.cli.output import finish, print_sentences, print_table, shown
from hushtable_federation.book.book import Book
from hushtable_federation.comparison import Comparison
from hushtable_federation.result import open_result

_Result = Annotated[Path, argument("RESULT", "Of hushtable round collect.")]
_Book = Annotated[Path, option("FILE", "This site's book: what it counted, and what it sent.")]
_MostRows = Annotated[
    int | None,
    option("N", "Rows of all others together at most, by what they say.", min=0),
]
_Alike = Annotated[
    bool,
    typer.Option(
        "--alike",
        help="The sites are known to have the same mix of rows: allow for chance alone.",
    ),
]
_Alert = Annotated[bool, typer.Option("--alert", help="Exit with code 3 if it does not fit.")]


def compare(
    result: _Result,
    book: _Book,
    most_rows: _MostRows = None,
    alike: _Alike = False,
    alert: _Alert = False,
    as_json: Json = False,
) -> None:
    """Compare a site's rows with what all others in a result counted.

    Under masks nobody sees what one site sent. This takes the site's own part out, and looks for
    rows of a kind that it has hardly, for more of them than were said, and for counts that cannot
    be. It writes no file, and what it prints must not leave the site. Exit codes: 0 done, 1
    refused or failed, 2 wrong usage, 3 done, and with --alert: does not fit.

    Example:
      hushtable round compare result.hush --book north.book
    """
    read = open_result(result)
    with Book.open(book) as notes:
        found = Comparison.of(read, notes, most_rows=most_rows, alike=alike)
    facts: dict[str, Any] = {
        "command": "round compare",
        "site": found.site,
        "own_rows": found.own_rows,
        "other_sites": found.other_sites,
        "other_rows": found.other_rows,
        "other_rows_sd": found.rows_sd,
        "strange_share": found.strange,
        "strange_rows": None if found.strange is None else found.strange_rows,
        "level": found.level,
        "most_rows": found.most_rows,
        "too_many_rows": found.too_many,
        "impossible": found.impossible,
        "fits": found.fits,
        "signed_by": signed_by(read),
    }

    def text() -> None:
        print_sentences([standing(read)])
        print()
        _print(found)
        print("\nThis describes this site's rows exactly: do not send it to anybody.")

    finish(as_json, facts, text)
    if alert and found.fits is False:
        raise typer.Exit(ABOVE)


def _print(found: Comparison) -> None:
    strange = "-" if found.strange is None else f"{found.strange_rows:,} ({found.strange:.1%})"
    most = "-" if found.most_rows is None else f"{found.most_rows:,}"
    others = "the other site" if found.other_sites == 1 else f"the {found.other_sites} other sites"
    lines = [
        [f"of this site, {shown(found.site)}", f"{found.own_rows:,}", "-"],
        [f"of {others} (+/- {2 * found.rows_sd:,.0f})", f"{found.other_rows:,.0f}", most],
        ["of these, of a kind that this site has hardly", strange, f"{found.level:.1%}"],
    ]
    print_table(["rows", "about", "at most"], lines)
    print()
    print_sentences(found.words())
