"""``hushtable round collect``: submissions to the result that every site scores with."""

from pathlib import Path
from typing import Annotated, Any

from hushtable.cli.counts import signed_by, standing
from hushtable.cli.options import Json, Output, option
from hushtable.cli.output import Target, finish, print_sentences, print_table
from hushtable.describe import describe_ledger
from hushtable.errors import RoundError
from hushtable_federation.cli import _common as common
from hushtable_federation.collect import Collection
from hushtable_federation.keys import Keys
from hushtable_federation.report.rounds import next_lines
from hushtable_federation.round import Round

_Key = Annotated[Path | None, option("FILE", "The coordinator's keys, to sign the result with.")]


def collect(
    round_: common.RoundFile,
    submissions: common.Submissions,
    output: Output,
    key: _Key = None,
    as_json: Json = False,
) -> None:
    """Check what the sites sent, add it up, and write the result.

    The sum takes the masks off. A submission that is damaged, forged or meant for another round is
    refused with its reason, and the others go on. A masked round needs all sites; any other makes a
    result of those that are in, if they are enough. Signed with --key, the result names its round
    and the submissions in it, and every site can check it (hushtable round verify).

    Example:
      hushtable round collect round.hush *.submission.hush --key lead.key -o result.hush
    """
    target = Target(output, [round_, *submissions])
    asked = common.read_round(round_)
    keys = None if key is None else common.coordinators_keys(key, asked)
    collection = common.collected(asked, submissions)
    result = result_of(collection, keys)
    target.save(result)
    facts: dict[str, Any] = {
        "command": "round collect",
        "result": str(output),
        **_facts(asked, collection, result),
    }

    def text() -> None:
        print_roster(asked, collection)
        if collection.missing:
            _print_partial(asked, collection)
        print()
        print_sentences(describe_ledger(result.ledger))
        print()
        print_sentences([standing(result)])
        print(f"\nWrote {target}: for every site.")
        print("\n".join(next_lines(asked, output)))

    finish(as_json, facts, text)


def _facts(asked: Round, collection: Collection, result: Any) -> dict[str, Any]:
    ledger = result.ledger
    return {
        "round_id": asked.round_id,
        **common.period_facts(asked),
        **common.state(collection),
        "signed_by": signed_by(result),
        "digest": None if result.seal is None else result.seal.digest,
        "epsilon": ledger.epsilon,
        "delta": ledger.delta,
        "noise_sd": ledger.noise_sd,
        "words": describe_ledger(ledger),
    }


def _print_partial(asked: Round, collection: Collection) -> None:
    print(f"\nA partial result, of {len(collection.accepted)} sites.")
    if asked.period is not None:
        print_sentences([
            "If a site that is missing answered periods before, no sum can be decoded with this "
            "one: ask it, and collect again (after the deadline: hushtable round next --again)."
        ])  # fmt: skip


def result_of(collection: Collection, keys: Keys | None) -> Any:
    """Return the result; where there is none, the reason with those of what was refused."""
    try:
        return collection.result(keys)
    except RoundError as error:
        reasons = "".join(f"\n  {name}: {why}" for name, why in collection.refused)
        raise RoundError(f"{error}." + (f" Refused:{reasons}" if reasons else "")) from None


def print_roster(asked: Round, collection: Collection) -> None:
    """Print whose submission is in; what does not count, and why."""
    rows = [[one.name, one.fingerprint, collection.standing(one.name)] for one in asked.sites]
    print_table(["site", "fingerprint", "submission"], rows, left=3)
    if collection.refused:
        print("\nRefused:")
        print_sentences((f"{name}: {why}" for name, why in collection.refused), indent="  ")
    for name, site in collection.repeated:
        print(f"\n{name} repeats the submission of {site}, and counts once.")
