"""``hushtable learn``: verdicts of files to a model that has learned them."""

from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable import files
from hushtable.cli._learned import count, save_learned
from hushtable.cli._options import Json, Output, argument, option
from hushtable.cli._output import Target, finish, print_sentences
from hushtable.cli._rows import READS, Reads, Rows
from hushtable.cli._verdict_files import VerdictReader
from hushtable.cli.score import open_model
from hushtable.counts.kinds import counts_from_file
from hushtable.counts.verdicts import Verdicts
from hushtable.describe import describe_ledger
from hushtable.describe.plan import learned
from hushtable.describe.plan import verdicts as verdicts_words
from hushtable.errors import UsageError
from hushtable.plans.verdicts import check_takes_verdicts
from hushtable.scores.review import apart

_Model = Annotated[
    Path, argument("MODEL", "Model of hushtable fit, or a merged sketch or release.")
]
_Files = Annotated[
    list[Path],
    argument(
        "VERDICTS",
        "Files with a column verdict (outlier or fine), which have the model's columns, or name "
        "rows of --rows; logs of hushtable review; files of --verdicts-only. Or a merged release "
        "under hushtable plan verdicts.",
    ),
]
_Rows = Annotated[str | None, option("DATA", "Rows that VERDICTS name, by number or id.", "--rows")]
_Id = Annotated[
    str | None,
    option(
        "NAME", "Column by which VERDICTS name rows; their number from 0, in row, without.", "--id"
    ),
]
_Forget = Annotated[bool, typer.Option("--forget", help="Forget these verdicts instead.")]
_Only = Annotated[
    bool,
    typer.Option(
        "--verdicts-only",
        help="Write the verdicts alone, without the model: for learn where the same rows may be.",
    ),
]

_ALONE = (
    "a release of verdicts takes the place of all others: give it alone (own verdicts are in it "
    "already; without noise they are in the local model of a round)"
)


def learn(
    model: _Model,
    verdicts: _Files,
    output: Output,
    rows: _Rows = None,
    id_: _Id = None,
    forget: _Forget = False,
    only: _Only = False,
    reads: Reads = READS,
    as_json: Json = False,
) -> None:
    """Learn verdicts, outlier or fine, of a file.

    Rows like confirmed outliers then score lower, and rows like those that are fine higher. The
    output is a model for hushtable score. Verdicts add up: those of several files, days and people
    count as if they came in one. They are exact counts of few rows, from which the rows can be
    read: keep them, and the model, where the rows are.

    Example:
      hushtable learn model.hush looked-at.csv -o learned.hush
      hushtable learn model.hush looked-at.csv --rows patients.csv --id "Patient ID" -o learned.hush
    """
    _check_options(rows, id_, forget=forget, only=only)
    target = Target(output, [model, rows, *verdicts])
    scorer, _, reading, _ = open_model(model, id_)
    check_takes_verdicts(scorer.plan)
    if (shared := _released(verdicts)) is not None:
        if len(verdicts) > 1 or forget or only or rows is not None:
            raise UsageError(_ALONE)
        _learn_shared(model, shared, target, output, as_json)
        return
    own = Rows("", reads, reading, 1, as_json)
    named = None if rows is None else Rows(rows, reads, reading, 1, as_json)
    reader = VerdictReader(scorer, model, named, own, id_)
    given = sum((reader.read(path) for path in verdicts), start=Verdicts.zero(scorer.plan))
    before = apart(scorer.sketch)[1]
    after = before - given if forget else before + given
    if only:
        target.save(given)
    else:
        save_learned(model, after, target)
    facts: dict[str, Any] = {
        "command": "learn",
        "verdicts" if only else "model": str(output),
        **learned(given),
        "forgotten": forget,
        "total": {"outliers": after.n_outliers, "fine": after.n_fine},
        "plan_id": given.plan_id,
    }
    finish(as_json, facts, lambda: _print(facts, given, target, only=only))


def _released(paths: list[Path]) -> Any:
    """Return the release, or local model, of verdicts that is among the files; None without."""
    for path in paths:
        if path.suffix == ".hush":
            content = files.read(path).expect("verdicts", "release", "local")
            if content.kind != Verdicts.kind:
                return content.build(counts_from_file)
    return None


def _learn_shared(model: Path, shared: Any, target: Target, output: Path, as_json: bool) -> None:
    """Write the model that learned from a release of all sites' verdicts."""
    save_learned(model, shared, target)
    facts = {"command": "learn", "model": str(output), **learned(shared)}
    facts |= {"epsilon": shared.ledger.epsilon, "plan_id": shared.plan_id}

    def text() -> None:
        print(f"Learned {verdicts_words(shared)}, of all sites.\n")
        print_sentences(describe_ledger(shared.ledger))
        print(f"\nWrote {target}. Keep it where the model may be.")

    finish(as_json, facts, text)


def _check_options(rows: str | None, id_: str | None, *, forget: bool, only: bool) -> None:
    """Refuse options that do not go together."""
    if id_ is not None and rows is None:
        raise UsageError("--id names rows of --rows: give both")
    if forget and only:
        raise UsageError("--forget changes a model, --verdicts-only writes none: give one of them")
    if rows == "-":
        raise UsageError("--rows -: standard input can be read once only: give a file")


def _print(facts: dict[str, Any], given: Verdicts, target: Target, *, only: bool) -> None:
    did = "Forgot" if facts["forgotten"] else "Counted" if only else "Learned"
    print(f"{did} {count(given.n_outliers, 'outlier')} and {given.n_fine:,} fine.")
    if n := facts["contradictory"]:
        print_sentences([
            f"Up to {count(n, 'pair')} of rows alike in every table have both verdicts, which "
            "cancel each other.",
        ])  # fmt: skip
    total = facts["total"]
    if not only and total != {"outliers": given.n_outliers, "fine": given.n_fine}:
        print(f"All together the model has {total['outliers']:,} and {total['fine']:,}.")
    print(f"Wrote {target}. It holds verdicts on rows: keep it where the rows are.")
