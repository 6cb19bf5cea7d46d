"""``hushtable round submit`` and ``resend``: a site's answer by file, and the same file again."""

from pathlib import Path
from typing import Any

from hushtable import files
from hushtable.cli.options import Json, Output
from hushtable.cli.output import Target, finish, tally
from hushtable.cli.rows import person_facts as facts_of
from hushtable.errors import RoundError
from hushtable_federation.cli import _common as common
from hushtable_federation.cli._answering import ANSWERS, Answers, Rows, Screen
from hushtable_federation.clock import stamp
from hushtable_federation.reply import Reply
from hushtable_federation.site import FileAnswer, Site, SiteRows


def submit(
    round_: common.RoundFile,
    output: Output,
    data: Rows = None,
    answers: Answers = ANSWERS,
    as_json: Json = False,
) -> None:
    """Answer a round: count rows, add noise, mask, sign, write a file.

    Shows first what is counted, what will leave and what it costs, and asks. Checks the rows
    against the round before anything is recorded. The site's book keeps what is sent: called
    again, the command writes the same answer, whatever the rows are by now.

    Example:
      hushtable round submit round.hush patients.csv --key north.key -o north.submission.hush
    """
    site = answers.open(data)
    target = Target(output, [round_, site.settings.rows, site.settings.key])
    answers.check_asked(as_json)
    screen = _Submitting(answers, quiet=as_json)
    with target.writing():
        answer = site.submit(common.read_round(round_), screen)
        files.write_bytes(output, answer.content, private=not files.travels("submission"))

    def text() -> None:
        print(f"Wrote {target}: send it to {answer.reply.round.coordinator.name}. Keep the book.")

    finish(as_json, _facts(answer, output), text)


class _Submitting(Screen):
    def report(self, reply: Reply, rows: SiteRows) -> None:
        """Print what was counted, and whether the same was sent before."""
        if reply.earlier is not None and not self._quiet:
            period = reply.round.period
            what = "The round" if period is None else f"Period {period}"
            print(f"{what} was answered before: this is the same answer, noise and all.")
        super().report(reply, rows)


def _facts(answer: FileAnswer, output: Path) -> dict[str, Any]:
    reply = answer.reply
    return {
        "command": "round submit",
        "submission": str(output),
        "round_id": reply.round.round_id,
        **common.period_facts(reply.round),
        "site": reply.keys.card.name,
        "data_set": reply.data_set,
        "again": reply.earlier is not None,
        "epsilon_so_far": reply.epsilon,
        "tally": tally(reply.plan.schema, answer.sketch.tally),
        **facts_of(answer.sketch.persons, answer.nameless),
    }


def resend(
    round_: common.RoundFile,
    key: common.KeyFile,
    output: Output,
    book: common.BookFile = None,
    as_json: Json = False,
) -> None:
    """Write the answer to a round again from the book, bit for bit.

    For a file that was lost on its way. No rows are read. It costs nothing: what is sent is what
    was sent before.

    Example:
      hushtable round resend round.hush --key north.key -o north.submission.hush
    """
    target = Target(output, [round_, key])
    asked, site = common.read_round(round_), Site.open(key, **common.given(book=book))
    name, beside = site.card.name, site.settings.book
    with site.book() as notes:
        answer = notes.answer(asked.round_id)
    if answer is None:
        raise RoundError(
            f"{name!r} never answered round {asked.round_id[:12]}, as {beside} says: "
            "answer it (hushtable round submit)"
        )
    with target.writing():
        files.write_bytes(output, answer.content, private=not files.travels("submission"))
    facts: dict[str, Any] = {
        "command": "round resend",
        "submission": str(output),
        "round_id": asked.round_id,
        **common.period_facts(asked),
        "site": name,
        "made": stamp(answer.made),
    }

    def text() -> None:
        about = "" if asked.period is None else f" about period {asked.period}"
        print(f"The answer{about} of {stamp(answer.made)}, noise and all: nothing more was spent.")
        print(f"Wrote {target}: send it to {asked.coordinator.name}.")

    finish(as_json, facts, text)
