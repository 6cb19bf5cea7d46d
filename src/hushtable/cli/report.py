"""``hushtable report``: one HTML file about a model, its rows, its privacy and its sites."""

import glob
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable import files
from hushtable.cli._counts import read_counts, threshold
from hushtable.cli._options import Columns, Drop, Json, Threads
from hushtable.cli._output import Target, finish, listed, size
from hushtable.cli._progress import watched
from hushtable.cli._rows import open_rows
from hushtable.cli.round._common import read_round
from hushtable.counts.local import LocalModel
from hushtable.counts.release import Release
from hushtable.counts.sketch import counts_from_file
from hushtable.errors import FileError, UsageError
from hushtable.federation.collect import Collection, Sealed
from hushtable.files import write_bytes
from hushtable.plans.plan import HISTOGRAMS
from hushtable.report.content import Model, Report, gather
from hushtable.report.page import check_extra, page
from hushtable.report.scores import Scores, passes, score_rows
from hushtable.report.sites import Sites, sites_of_parts, sites_of_round
from hushtable.scores.ranks import Ranks
from hushtable.scores.scorer import Scorer

__all__ = ["check_page", "report", "write_page"]

_KINDS = ("detector", "sketch", "release", "local", "sealed")


def report(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="Model of hushtable fit, sketch, release, or the result of a round.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Page to write: .html.")
    ],
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="[DATA]",
            help="Rows to score, in CSV or Parquet: a file, a folder, or a pattern in quotes.",
        ),
    ] = None,
    rows: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            max=1000,
            help="Name the N rows with the lowest scores, and why they have them; 0 is none.",
        ),
    ] = 0,
    ranks: Annotated[
        Path | None,
        typer.Option(
            metavar="RANKS",
            help="Merged counts under hushtable plan ranks: say how rare scores are among the rows "
            "of all sites.",
        ),
    ] = None,
    parts: Annotated[
        str | None,
        typer.Option(
            metavar="FILES",
            help="What the sites sent and MODEL adds up: a file, a folder, or a pattern in quotes.",
        ),
    ] = None,
    round_: Annotated[
        Path | None,
        typer.Option("--round", metavar="ROUND", help="The round that MODEL is the result of."),
    ] = None,
    contamination: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Flag this share of the rows instead of those below the model's threshold.",
        ),
    ] = None,
    values: Annotated[
        bool,
        typer.Option(
            "--values",
            help="Show ranges and categories that were read off rows (by hushtable fit), too: they "
            "are values of rows. Public ones are always shown.",
        ),
    ] = False,
    threads: Threads = -1,
    columns: Columns = None,
    drop: Drop = None,
    as_json: Json = False,
) -> None:
    """Write one HTML file for analyst, privacy officer and coordinator.

    It holds what MODEL tells; with DATA, the distribution of scores, missing values and drift;
    with --parts, who sent what. Without --values no value of a row is in it, and without --rows no
    row's number, score or reasons.
    It loads nothing from elsewhere and runs no script.

    \b
    Example:
      hushtable report all.hush patients.csv --parts "sent/*.hush" -o report.html
    """  # noqa: D301 (\b keeps the lines of the example apart)
    check_page(output)
    _check_options(data, rows, contamination, ranks, parts, round_)
    others = [path for path in (model, ranks, round_) if path is not None]
    sent = [] if parts is None else _parts(parts, others)
    subject, scorer, offset = _open(model)
    sites = None if parts is None else _sites(subject, sent, round_)
    scores: Scores | None = None
    if data is not None:
        if scorer is None:
            raise UsageError(f"{model} scores no rows: leave {data} out")

        ranked = None if ranks is None else Ranks(read_counts(ranks), scorer)
        reader = open_rows(data, columns, drop, scorer.plan.schema).repeatable()
        with watched(reader, passes=passes(scorer.sketch, rows), quiet=as_json) as watch:
            scores = score_rows(
                scorer,
                math.nan if offset is None else offset,
                watch.reader,
                contamination=contamination,
                n_shown=rows,
                ranks=ranked,
                n_jobs=threads,
            )

    made = gather(subject, threshold=offset, scores=scores, sites=sites, values=values)
    target = write_page(made, output)
    facts = {
        "command": "report",
        "report": str(output),
        "sections": made.sections,
        "left_out": made.left_out,
        "reasons_to_stay": made.reasons_to_stay,
        "drift": _drift(scores),
    }

    def text() -> None:
        print(f"Wrote {target}: {listed(made.sections, most=9)}.")
        if made.reasons_to_stay:
            print("Keep it where the rows are:")
            for reason in made.reasons_to_stay:
                print(f"  {reason}")
        else:
            print(f"It may go wherever {subject.name} may go.")

    finish(as_json, facts, text)


def check_page(output: Path) -> None:
    """Refuse what could not be written, before there is anything to write."""
    if output.suffix != ".html":
        raise UsageError(f"{output}: a report needs a name that ends in .html")
    Target(output)
    check_extra()


def write_page(made: Report, output: Path) -> Target:
    """Write a report as HTML, atomically."""
    html = page(made)
    target = Target(output)
    with target.writing():
        write_bytes(output, html.encode("utf-8"), private=True)
    return target


def _drift(scores: Scores | None) -> dict[str, Any] | None:
    """Return the drift for machines; null where none is known."""
    if scores is None or scores.drift is None or math.isnan(scores.drift.overall):
        return None
    found = scores.drift
    return {
        "overall": found.overall,
        "by_chance_up_to": found.level,
        "features_beyond_chance": found.beyond_chance,
    }


def _check_options(
    data: str | None,
    rows: int,
    contamination: float | None,
    ranks: Path | None,
    parts: str | None,
    round_: Path | None,
) -> None:
    if data is None and (rows or contamination is not None or ranks is not None):
        raise UsageError(
            "--rows, --ranks and --contamination are about rows: give DATA after MODEL"
        )
    if contamination is not None and not 0.0 < contamination <= 0.5:
        raise UsageError(f"--contamination {contamination}: needs a share above 0, at most 0.5")
    if round_ is not None and parts is None:
        raise UsageError("--round needs what the sites sent: give --parts")


def _open(path: Path) -> tuple[Model, Scorer | None, float | None]:
    """Read a file of counts; also how it scores, and its threshold, if it does."""
    content = files.read(path)
    if content.kind not in _KINDS:
        raise FileError(
            f"{path} holds a {content.kind}: give a model of hushtable fit, a sketch, a release, "
            "or the result of a round"
        )
    if content.kind == "sealed":
        sealed = content.build(Sealed.from_file)
        return Model(path.name, content.kind, sealed, size(path)), None, None
    counts = content.build(counts_from_file)
    subject = Model(path.name, content.kind, counts, size(path))
    if counts.plan.detector in HISTOGRAMS:
        return subject, None, None
    scorer = Scorer(counts)
    return subject, scorer, threshold(content, scorer)


def _parts(pattern: str, others: list[Path]) -> list[Path]:
    """Return the files that a path, folder or pattern names, without those that are no part."""
    folder = Path(pattern)
    found = (
        sorted(folder.glob("*.hush"))
        if folder.is_dir()
        else sorted(Path(name) for name in glob.glob(pattern, recursive=True))
    )
    apart = [path for path in others if path.is_file()]
    found = [path for path in found if not any(path.samefile(other) for other in apart)]
    if not found:
        raise FileError(f"--parts {pattern}: no such file: check the path")
    return found


def _sites(subject: Model, parts: list[Path], round_: Path | None) -> Sites:

    counts: Any = subject.counts
    if isinstance(counts, LocalModel):
        raise UsageError(f"{subject.name} is a local model, and no sum: give the round's result")
    if round_ is None:
        if isinstance(counts, Sealed):
            raise UsageError(f"{subject.name} is the result of a round: give --round")
        return sites_of_parts(
            {path.name: read_counts(path) for path in parts}, counts, subject.name
        )
    if not isinstance(counts, Release | Sealed):
        raise UsageError(f"{subject.name} holds exact counts, and no round has such a result")
    collection = Collection(read_round(round_))
    for path in parts:
        # Names without folders: the report may go to people whom the folders are no concern of.
        collection.add(path.name, path)
    return sites_of_round(collection, counts, subject.name)
