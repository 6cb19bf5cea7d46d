"""``hushtable round verify``: whether a result is what the sites sent and its coordinator made."""

from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable.cli._options import Json
from hushtable.cli._output import finish, print_sentences, shown
from hushtable.cli._signed import signed_by
from hushtable.cli.round._common import read_round
from hushtable.errors import FileError, RoundError, UsageError
from hushtable.federation.book.book import Book
from hushtable.federation.result import Result, grouped
from hushtable.federation.round import Round, now

__all__ = ["verify"]


def verify(
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="Of hushtable round collect.")],
    submissions: Annotated[
        list[Path] | None,
        typer.Argument(metavar="SUBMISSION...", help="What the sites sent: add it up again."),
    ] = None,
    round_: Annotated[
        Path | None,
        typer.Option("--round", metavar="ROUND", help="The round, where no book holds it."),
    ] = None,
    book: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="This site's book: find its own answer in the result."),
    ] = None,
    digest: Annotated[
        list[str] | None,
        typer.Option(metavar="HEX", help="The digest that another site reads out; repeatable."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check who signed a result, and whether it is the sum.

    Checks the signature; with --book or --round, that the coordinator of the round made it under
    the round's terms; with --book, that this site's own answer is in it; with all submissions,
    that they add up to it. Prints its digest, which has to be the same at all sites. What was
    refused must not be followed (exit code 1).

    \b
    Example:
      hushtable round verify result.hush --book north.book
    """  # noqa: D301 (\b keeps the lines of the example apart)
    for path in submissions or []:
        if not path.is_file():
            raise FileError(f"{path}: no such file: check the path")
    opened = Result.load(result)
    asked = None if round_ is None else read_round(round_)
    checks = _Checks(opened, asked)
    who = f"{shown(opened.coordinator.name)} ({opened.coordinator.fingerprint})"
    checks.done.append(f"Nothing in it was changed since {who} signed it.")
    if book is not None:
        checks.book(book)
    elif asked is None:
        checks.left.append(
            "Whose keys these are: without --book or --round, compare their fingerprint with "
            f"{shown(opened.coordinator.name)}, on the phone."
        )
    else:
        checks.round(asked)
        checks.left.append("Whether this site's answer is in it: give --book.")
    checks.submissions(submissions or [])
    for other in digest or []:
        opened.check_digest(other)
        checks.done.append("Another site has the same result.")
    if not digest:
        checks.left.append("Whether the other sites have the same result: compare its digest.")
    if book is not None:
        _note(book, opened)
    facts: dict[str, Any] = {
        "command": "round verify",
        "result": str(result),
        "round_id": opened.seal.round_id,
        "signed_by": signed_by(opened.counts),
        "submissions": dict(opened.seal.submissions),
        "digest": opened.seal.digest,
        "round_checked": checks.asked is not None,
        "own_answer": book is not None,
        "recomputed": checks.recomputed,
        "checked": checks.done,
        "not_checked": checks.left,
    }

    def text() -> None:
        known = (
            "Verified" if checks.asked is not None else "Signed, by keys that nobody vouches for"
        )
        print(f"{known}: {result}, of round {opened.seal.round_id[:12]}\n")
        print_sentences(checks.done, indent="  ")
        print("\nNot checked\n")
        print_sentences(checks.left or ["Nothing is left to check."], indent="  ")
        print("\nIts digest, to be compared with the other sites (--digest):\n")
        for half in (opened.seal.digest[:32], opened.seal.digest[32:]):
            print(f"  {grouped(half)}")

    finish(as_json, facts, text)


class _Checks:
    """What was checked of a result, and what was not, in sentences."""

    def __init__(self, result: Result, asked: Round | None) -> None:
        self.result, self.asked = result, asked
        self.done: list[str] = []
        self.left: list[str] = []
        self.recomputed = False

    def round(self, asked: Round) -> None:
        """Check against the round."""
        self.result.check_round(asked)
        self.asked = asked
        self.done.append(
            f"It ends round {asked.round_id[:12]}, which {shown(asked.coordinator.name)} opened; "
            "plan, sites, noise and ledger are what its terms ask for."
        )

    def book(self, path: Path) -> None:
        """Check against what this site answered."""
        round_id = self.result.seal.round_id
        with Book.open(path) as notes:
            site, answer = notes.site, notes.answer(round_id)
        if answer is None:
            raise RoundError(
                f"{self.result.path} ends round {round_id[:12]}, which {site!r} did not answer: it "
                "is the result of others, or of another round; look at hushtable round book"
            )
        content, copy = answer.round, answer.content
        if content:
            noted = Round.from_bytes(content, f"{path}: the round")
            if self.asked is not None and self.asked.round_id != noted.round_id:
                raise RoundError(
                    f"--round is round {self.asked.round_id[:12]}, and this is the result of "
                    f"{round_id[:12]}, which {site!r} answered: leave out --round"
                )
            self.round(noted)
        elif self.asked is not None:
            self.round(self.asked)
        else:
            raise UsageError(
                f"{path} holds no copy of round {round_id[:12]}, which was answered with an "
                "earlier version: give --round"
            )
        self.result.check_own(site, answer.share, copy)
        self.done.append(f"The share of {shown(site)} is in its ledger.")
        if copy:
            self.done.append(f"What {shown(site)} sent is in it, unchanged.")
        else:
            self.left.append(
                f"Whether what {shown(site)} sent is in it unchanged: its book holds no copy; give "
                "the submissions."
            )

    def submissions(self, paths: list[Path]) -> None:
        """Check against what the sites sent."""
        if not paths:
            self.left.append("Whether it is the sum of the submissions: give all of them.")
            return
        if self.asked is None:
            raise UsageError("submissions are checked against their round: give --round or --book")
        given = {str(path): path for path in paths}
        self.recomputed = self.result.check_submissions(self.asked, given, now())
        self.done.append("It names the submissions given, unchanged, and no others.")
        if self.recomputed:
            self.done.append("They add up to its counts, to the bit.")
        else:
            self.left.append(
                "Whether the submissions add up to it: the round goes on without lost sites, and "
                "the masks of that form come off in the last step only, not in the submissions."
            )


def _note(book: Path, result: Result) -> None:
    """Note in the book that the result was verified."""
    with Book.open(book) as notes:
        notes.note_verified(result.seal.digest, result.seal.round_id)
