"""``hushtable round resend``: the file that a site sent, written again."""

from typing import Any

from hushtable import files
from hushtable.cli.options import Json, Output
from hushtable.cli.output import Target, finish
from hushtable.errors import RoundError
from hushtable_federation.book.book import Book
from hushtable_federation.cli._common import (
    BookFile,
    KeyFile,
    RoundFile,
    book_beside,
    period_facts,
    read_round,
)
from hushtable_federation.keys import Keys
from hushtable_federation.round import stamp


def resend(
    round_: RoundFile, key: KeyFile, output: Output, book: BookFile = None, as_json: Json = False
) -> None:
    """Write the answer to a round again from the book, bit for bit.

    For a file that was lost on its way. No rows are read. It costs nothing: what is sent is what
    was sent before.

    Example:
      hushtable round resend round.hush --key north.key -o north.submission.hush
    """
    target = Target(output, [round_, key])
    asked = read_round(round_)
    keys = Keys.load(key)
    beside = book_beside(key, book)
    with Book.open(beside, keys.card) as notes:
        answer = notes.answer(asked.round_id)
    if answer is None:
        raise RoundError(
            f"{keys.card.name!r} never answered round {asked.round_id[:12]}, as {beside} says: "
            "answer it (hushtable round submit)"
        )
    if not answer.content:
        raise RoundError(
            f"{keys.card.name!r} answered round {asked.round_id[:12]} on {stamp(answer.made)}, and "
            f"{beside} does not hold the file, as that was under an older version: hushtable round "
            "submit writes it again"
        )
    with target.writing():
        files.write_bytes(output, answer.content, private=not files.travels("submission"))
    facts: dict[str, Any] = {
        "command": "round resend",
        "submission": str(output),
        "round_id": asked.round_id,
        **period_facts(asked),
        "site": keys.card.name,
        "made": stamp(answer.made),
    }

    def text() -> None:
        about = "" if asked.period is None else f" about period {asked.period}"
        print(f"The answer{about} of {stamp(answer.made)}, noise and all: nothing more was spent.")
        print(f"Wrote {target}: send it to {asked.coordinator.name}.")

    finish(as_json, facts, text)
