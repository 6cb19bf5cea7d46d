"""``hushtable report``: one HTML file about a model, its rows, its privacy and its sites."""

import glob
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from hushtable import files
from hushtable.cli.options import (
    READS,
    KeptColumns,
    Language,
    ModelReads,
    Rows,
    argument,
    flag,
    option,
    read_counts,
)
from hushtable.cli.result import Block, CommandResult, Facts, Target, listed, size
from hushtable.counts.base import Counts
from hushtable.counts.kinds import counts_from_file
from hushtable.detectors.load import OpenedModel, scoring
from hushtable.errors import FileError, UsageError
from hushtable.files import write_bytes
from hushtable.language import ENGLISH, speaking
from hushtable.progress import watched
from hushtable.report.content import (
    Report,
    RowsToShow,
    Scores,
    Subject,
    gather,
    score_rows,
    sites_of_parts,
)
from hushtable.report.page import check_extra, html
from hushtable.scores.scorer import Ranks


@dataclass(frozen=True)
class PageOptions:
    """Rows on the page, and its language."""

    rows: Annotated[
        int, option("N", "List the N most unusual rows, and the reasons.", min=0, max=1000)
    ] = 0
    ranks: Annotated[
        Path | None,
        option(
            "RANKS", "Rank rows among all sites' rows: merged counts under hushtable plan ranks."
        ),
    ] = None
    values: Annotated[
        bool,
        flag(
            "--values",
            "Also show ranges and categories that were taken from rows (public ones are always "
            "included), and with --rows the values that lower their scores.",
        ),
    ] = False
    language: Language = ENGLISH


def report(
    model: Annotated[
        Path,
        argument("MODEL", "Model of hushtable fit, sketch, release, or the result of a round."),
    ],
    output: Annotated[Path, option("FILE", "Page to write: .html.", "--output", "-o")],
    data: Annotated[
        str | None,
        argument("[DATA]", "Rows to score: a file, a folder, or a glob pattern in quotes."),
    ] = None,
    parts: Annotated[
        str | None,
        option(
            "FILES",
            "Files from the sites that MODEL is the sum of: file, folder, or pattern in quotes.",
        ),
    ] = None,
    reads: ModelReads = READS,
    *,
    chosen: PageOptions,
    columns: KeptColumns,
) -> CommandResult:
    """Write one HTML file for analyst, privacy officer and coordinator.

    The file describes MODEL; with DATA, it adds the distribution of scores, missing values and
    drift; with --parts, who sent what. Without --rows it contains no row's number, score or
    reasons, and without --values, --id and --keep no value of a row. It loads nothing from
    elsewhere and runs no script.

    Example:
      hushtable report model.hush patients.csv --rows 20 --id patient --values -o report.html
      hushtable report all.hush patients.csv --parts "sent/*.hush" -o report.html
    """
    check_page(output)
    rows, ranks = chosen.rows, chosen.ranks
    if data is None and (rows or ranks is not None):
        raise UsageError("--rows and --ranks need rows: give DATA after MODEL")
    _id, names = columns.beside(reads if rows else READS)
    if names and not rows:
        raise UsageError("--id and --keep describe single rows: give --rows with them")
    if len(set(names)) < len(names):
        raise UsageError("--id and --keep name a column twice: name each once")
    others = [path for path in (model, ranks) if path is not None]
    sent = [] if parts is None else _parts(parts, others)
    subject, opened = _open(model, data is not None)
    about: Facts = {"threshold": None if opened is None else opened.threshold, "sites": None}
    scores = None
    with speaking(chosen.language):
        if parts is not None:
            counts = subject.counts
            if not counts.adds and not counts.may_leave:
                raise UsageError(
                    f"{subject.name} is {counts.noun}, not a sum: give the round's result"
                )
            each = {path.name: read_counts(path) for path in sent}
            about["sites"] = sites_of_parts(each, counts, subject.name)
        if data is not None and opened is not None:
            given = Rows(data, reads, opened.reading)
            listed = RowsToShow(rows, chosen.values, tuple(names))
            scores = about["scores"] = _scores(opened, given, listed, ranks)
        made = gather(subject, values=chosen.values, **about)
        target = Target(output)
        with target.writing():
            write_bytes(output, html(made.page).encode("utf-8"), private=True)
    printed = made
    if chosen.language != ENGLISH:
        printed = gather(subject, values=chosen.values, **about)
    facts = {"command": "report", "report": str(output), **_facts(printed, scores)}
    return CommandResult(facts, _blocks(printed, target, subject.name))


def _facts(made: Report, scores: Scores | None) -> dict[str, object]:
    drift = None if scores is None else scores.drift
    return {
        "sections": made.sections,
        "left_out": made.left_out,
        "reasons_to_stay": made.reasons_to_stay,
        "drift": None
        if drift is None or math.isnan(drift.overall)
        else {
            "overall": drift.overall,
            "by_chance_up_to": drift.level,
            "features_beyond_chance": drift.beyond_chance,
        },
    }


def _scores(opened: OpenedModel, rows: Rows, shown: RowsToShow, ranks: Path | None) -> Scores:
    scorer = opened.scorer
    ranked = None if ranks is None else Ranks(read_counts(ranks), scorer)
    reader = rows.open(scorer.plan.schema, shown.kept).repeatable()
    with watched(reader) as watch:
        return score_rows(
            scorer,
            opened.threshold,
            watch.reader,
            shown=shown,
            ranks=ranked,
            usual=opened.usual,
            n_jobs=-1,
        )


def _blocks(made: Report, target: Target, model: str) -> Iterator[Block]:
    yield f"Wrote {target}: {listed(made.sections, most=9)}."
    if not made.reasons_to_stay:
        yield f"It may go wherever {model} may go."
        return
    yield "Keep it where the rows are:"
    for reason in made.reasons_to_stay:
        yield f"  {reason}"


def check_page(output: Path) -> None:
    """Refuse an output that cannot be written, before there is anything to write."""
    if output.suffix != ".html":
        raise UsageError(f"{output}: the name of a report must end in .html")
    Target(output)
    check_extra("a report")


def _open(path: Path, has_rows: bool) -> tuple[Subject, OpenedModel | None]:
    content = files.read(path).expect("detector", "sketch", "release", "local")
    counts: Counts = content.build(counts_from_file)
    subject = Subject(path.name, content.kind, counts, size(path))
    if not counts.plan.purpose.scores_rows:
        if has_rows:
            raise UsageError(f"{path} cannot score rows: leave DATA out")
        return subject, None
    return subject, scoring(content, counts)


def _parts(pattern: str, others: list[Path]) -> list[Path]:
    folder = Path(pattern)
    chosen = (
        sorted(folder.glob("*.hush"))
        if folder.is_dir()
        else sorted(Path(name) for name in glob.glob(pattern, recursive=True))
    )
    apart = [path for path in others if path.is_file()]
    chosen = [path for path in chosen if not any(path.samefile(other) for other in apart)]
    if not chosen:
        raise FileError(f"--parts {pattern}: no such file: check the path")
    return chosen
