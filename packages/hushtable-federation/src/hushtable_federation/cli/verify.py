"""``hushtable round verify``: who signed a result, and whether it is the sum."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from hushtable.cli.options import argument, option
from hushtable.cli.output import shown
from hushtable.cli.result import Block, CommandResult, Paragraph
from hushtable.describe.content import signed_by
from hushtable.errors import RoundError, UsageError
from hushtable_federation.book.book import Book
from hushtable_federation.cli._common import period_facts, present, read_round
from hushtable_federation.clock import now
from hushtable_federation.result import Result
from hushtable_federation.round import Round
from hushtable_federation.signatures import grouped

_Result = Annotated[Path, argument("RESULT", "Result written by hushtable round sync.")]
_Submissions = Annotated[
    list[Path] | None,
    argument(
        "SUBMISSION...", "The files that the sites sent: without masks, they are added up again."
    ),
]
_Round = Annotated[Path | None, option("ROUND", "The round, if no book holds it.", "--round")]
_Book = Annotated[
    Path | None, option("FILE", "This site's book: check that its own answer is in the result.")
]
_Digest = Annotated[
    list[str] | None, option("HEX", "The digest that another site reads aloud. May be repeated.")
]


def verify(
    result: _Result,
    submissions: _Submissions = None,
    round_: _Round = None,
    book: _Book = None,
    digest: _Digest = None,
) -> CommandResult:
    """Check who signed a result, and whether it is the sum.

    The command always checks the signature. With --book or --round, it checks that the round's
    coordinator made the result under the round's terms; with --book, that this site's own answer is
    in it; with all submissions, that the result names them and, in a round without masks, that they
    add up to it. It prints the digest of the result, which has to be the same at all sites. Exit
    code 1 means that a check failed: do not use the result.

    Example:
      hushtable round verify result.hush --book north.book
    """
    given = {str(path): path for path in present(submissions)}
    opened = Result.load(result)
    checks = _Checks(opened, None if round_ is None else read_round(round_))
    checks.signer(book)
    checks.submissions(given)
    for other in digest or []:
        opened.check_digest(other)
        checks.done.append("Another site has the same result.")
    if not digest:
        checks.left.append("Whether the other sites have the same result: compare its digest.")
    if book is not None:
        with Book.open(book) as notes:
            notes.note_verified(opened.seal.digest, opened.seal.round_id)
    facts: dict[str, Any] = {
        "command": "round verify",
        "result": str(result),
        "round_id": opened.seal.round_id,
        **({} if checks.asked is None else period_facts(checks.asked)),
        "signed_by": signed_by(opened.counts),
        "submissions": dict(opened.seal.submissions),
        "digest": opened.seal.digest,
        "round_checked": checks.asked is not None,
        "own_answer": book is not None,
        "recomputed": checks.recomputed,
        "checked": checks.done,
        "not_checked": checks.left,
    }
    return CommandResult(facts, _blocks(result, checks))


def _blocks(path: Path, checks: "_Checks") -> Iterator[Block]:
    seal = checks.result.seal
    known = "Verified" if checks.asked is not None else "Signed by unverified keys"
    yield f"{known}: {path}, of round {seal.round_id[:12]}\n"
    yield Paragraph(checks.done, indent="  ")
    yield "\nNot checked\n"
    yield Paragraph(checks.left or ["Nothing is left to check."], indent="  ")
    yield "\nIts digest, to compare with the other sites (--digest):\n"
    for half in (seal.digest[:32], seal.digest[32:]):
        yield f"  {grouped(half)}"


class _Checks:
    def __init__(self, result: Result, asked: Round | None) -> None:
        self.result, self.asked = result, asked
        self.done: list[str] = []
        self.left: list[str] = []
        self.recomputed = False

    def signer(self, book: Path | None) -> None:
        card = self.result.coordinator
        who = f"{shown(card.name)} ({card.fingerprint})"
        self.done.append(f"Nothing in it has changed since {who} signed it.")
        if book is not None:
            self.book(book)
        elif self.asked is not None:
            self.round(self.asked)
            self.left.append("Whether this site's answer is in it: give --book.")
        else:
            self.left.append(
                f"Whose keys these are: without --book or --round, call {shown(card.name)}, and "
                "compare the fingerprint."
            )

    def round(self, asked: Round) -> None:
        self.result.check_round(asked)
        self.asked = asked
        about = "" if asked.period is None else f" about period {asked.period}"
        self.done.append(
            f"It ends round {asked.round_id[:12]}{about}, which {shown(asked.coordinator.name)} "
            "opened; plan, sites, noise and ledger match its terms."
        )

    def book(self, path: Path) -> None:
        round_id = self.result.seal.round_id
        with Book.open(path) as notes:
            site, answer = notes.site, notes.answer(round_id)
        if answer is None:
            raise RoundError(
                f"{self.result.path} ends round {round_id[:12]}, which {site!r} did not answer: it "
                "belongs to other sites, or to another round; check with hushtable round book"
            )
        noted = Round.from_bytes(answer.round, f"{path}: the round")
        if self.asked is not None and self.asked.round_id != noted.round_id:
            raise RoundError(
                f"--round is round {self.asked.round_id[:12]}, but this is the result of "
                f"{round_id[:12]}, which {site!r} answered: leave out --round"
            )
        self.round(noted)
        self.result.check_own(site, answer.share, answer.content)
        self.done.append(f"The share of {shown(site)} is in its ledger.")
        self.done.append(f"What {shown(site)} sent is in it, unchanged.")

    def submissions(self, given: dict[str, Path]) -> None:
        if not given:
            self.left.append("Whether it is the sum of the submissions: give all of them.")
            return
        if self.asked is None:
            raise UsageError("submissions are checked against their round: give --round or --book")
        self.recomputed = self.result.check_submissions(self.asked, given, now())
        self.done.append("It names the submissions given, unchanged, and no others.")
        if self.recomputed:
            self.done.append("They add up to its counts, to the bit.")
        else:
            self.left.append(
                "Whether the submissions add up to it: their masks are removed only in the last "
                "step of the round."
            )
