"""``hushtable round model`` and ``compare``: how a site combines a result with its own counts.

Also what a home model holds, and how it scores rows: here and elsewhere.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa

from hushtable import files
from hushtable.cli.drift import ABOVE
from hushtable.cli.options import Output, Rows, argument, flag, option, standing
from hushtable.cli.result import (
    Block,
    CommandResult,
    LabelledValues,
    Paragraph,
    Target,
    TextTable,
    shown,
    size,
)
from hushtable.cli.tables import SCORES, write_tables
from hushtable.counts.base import Noised
from hushtable.counts.release import LocalModel
from hushtable.data.columns import as_column, texts_column
from hushtable.describe.plan import signed_by
from hushtable.errors import UsageError
from hushtable.progress import watched
from hushtable_federation.book.book import Book
from hushtable_federation.clock import shown_time
from hushtable_federation.comparison import Comparison, parts_in
from hushtable_federation.home import WORDS, HomeModel
from hushtable_federation.refusals import raise_first
from hushtable_federation.result import open_result
from hushtable_federation.site import Site

ResultFile = Annotated[Path, argument("RESULT", "Result written by hushtable round sync.")]
_Book = Annotated[
    Path | None,
    option("FILE", "This site's book: its exact counts replace the noised ones that it sent."),
]
_Site = Annotated[
    Path | None,
    option(
        "FILE",
        (
            "This site's file, such as north.toml: combine its own rows with the counts of all "
            "others."
        ),
    ),
]
_Marginals = Annotated[
    Path | None,
    option(
        "RESULT",
        "With --site: the result of the marginals round, so that reasons state what is usual "
        "elsewhere.",
    ),
]


def model(
    result: ResultFile,
    output: Output,
    book: _Book = None,
    site: _Site = None,
    marginals: _Marginals = None,
) -> CommandResult:
    """Make the model that a site scores with from a result.

    With --book, the site's exact counts replace its noised ones (the paper's Algorithm 2). This
    reduces the noise, but such a model holds the site's rows as exact counts, and must never leave
    it. With --site, the output is a home model: the site's own rows next to the counts of all
    others. hushtable score then reports for each row whether it is rare here, and whether it is
    rare elsewhere; with --marginals, also what is usual elsewhere.

    Example:
      hushtable round model result.hush --book north.book -o north.local.hush
      hushtable round model result.hush --site north.toml -o north.home.hush
    """
    target = Target(output, [result, book, site, marginals])
    faults = {
        "--site and --book exclude each other: the site's file names its book": (
            site is not None and book is not None
        ),
        "--marginals is for a home model: give --site, too": (
            site is None and marginals is not None
        ),
        f"{result} is already a model to score with: give --site for a home model, or --book for a "
        "local one": site is None and book is None,
    }
    raise_first(UsageError, faults)
    read = check_one_period(result, open_result(result))
    if site is not None:
        return _home(target, Site.open(site), read, marginals)
    with Book.open(str(book)) as notes:
        answer = parts_in(read, notes)[0]
        at = None if read.seal is None else notes.verified(read.seal.digest)
    made = LocalModel.of(read, answer.share.release, answer.sent, answer.counts)
    target.save(made)
    status, verified = standing(read), None if at is None else shown_time(at)
    if verified is not None:
        status = f"{status.partition(':')[0]}: verified on {verified}."
    facts = {
        "command": "round model", "model": str(output), "local": True,
        "rows": made.n_rows, "noise_sd": made.noise_sd, "signed_by": signed_by(read),
        "verified": verified,
    }  # fmt: skip
    blocks: list[Block] = [
        Paragraph([status]),
        f"About {made.n_rows:,} rows, with noise of {made.noise_sd:,.1f} on each count.",
        f"(In the result, the noise is {read.noise_sd:,.1f}.)",
        f"Wrote {target}. It holds this site's exact counts: it must never leave.",
        f"  hushtable score DATA --model {output} -o scores.parquet",
    ]
    return CommandResult(facts, blocks)


def _home(target: Target, site: Site, opened: Noised, marginals: Path | None) -> CommandResult:
    columns = None if marginals is None else open_result(marginals)
    home = site.model(opened, columns)
    with target.writing():
        home.save(target.path)
    with site.book() as notes:
        counted = Comparison.of(opened, notes).own_rows
    others = len(opened.ledger.shares) - 1
    facts = {
        "command": "round model", "model": str(target.path), "weight": home.weight,
        "rows": home.n_rows, "rows_counted": counted, "rows_elsewhere": home.elsewhere.n_rows,
        "others": others, "noise_sd": home.elsewhere.noise_sd,
    }  # fmt: skip
    blocks: list[Block] = [
        f"{home.n_rows:,} rows here, about {home.elsewhere.n_rows:,} elsewhere, "
        f"with noise of {home.elsewhere.noise_sd:,.1f} on each count."
    ]
    if counted != home.n_rows:
        words = (
            f"The round counted {counted:,} rows of this site, and there are {home.n_rows:,} now. "
            "Rarity at this site refers to the current rows."
        )
        blocks.append(Paragraph([words]))
    if others == 1:
        blocks.append(
            "Only one other site took part: what is reported about elsewhere describes that site."
        )
    if not home.weight:
        blocks.append(
            "This site's rows are not rarer elsewhere than other rows, so they are ranked by "
            "rarity here."
        )
    blocks += [
        f"Wrote {target}. It holds this site's exact counts: it must never leave.",
        f"  hushtable score DATA --model {target.path} -o scores.csv",
    ]
    return CommandResult(facts, blocks)


def check_one_period(path: Path, read: Noised) -> Noised:
    """Return a result; raise `UsageError` if it belongs to one of several periods."""
    if read.ledger.sensitivity.horizon is not None:
        raise UsageError(
            f"{path} belongs to a plan for several periods, which has no local models: decode the "
            "results of all periods so far (hushtable decode), and score with the sum"
        )
    return read


_OwnBook = Annotated[
    Path | None, option("FILE", "This site's book, which records what it counted and what it sent.")
]
_OwnSite = Annotated[
    Path | None,
    option(
        "FILE",
        "Instead of its book, this site's file, such as north.toml, which names the book.",
    ),
]
_MostRows = Annotated[
    int | None,
    option("N", "The most rows that all others together can have, as they state.", min=0),
]
_Alike = Annotated[
    bool,
    flag(
        "--alike",
        "The sites are known to have the same mix of rows: tolerate only differences by chance.",
    ),
]
_Alert = Annotated[bool, flag("--alert", "Exit with code 3 if the counts do not fit.")]


def compare(
    result: ResultFile,
    book: _OwnBook = None,
    site: _OwnSite = None,
    most_rows: _MostRows = None,
    alike: _Alike = False,
    alert: _Alert = False,
) -> CommandResult:
    """Compare a site's rows with the other sites' counts in a result.

    Under masks, no one sees what a single site sent. This command subtracts the site's own part,
    and looks for kinds of rows that this site hardly has, for more rows than stated, and for
    impossible counts. It writes no file, and its output must not leave the site. Exit codes: 0
    done, 1 refused or failed, 2 wrong usage, 3 done, but the counts do not fit (with --alert).

    Example:
      hushtable round compare result.hush --book north.book
      hushtable round compare result.hush --site north.toml
    """
    if (book is None) == (site is None):
        raise UsageError(
            "give either this site's book (--book), or its file, which names the book (--site)"
        )
    read = open_result(result)
    with Site.open(site).book() if site is not None else Book.open(str(book)) as notes:
        check = Comparison.of(read, notes, most_rows=most_rows, alike=alike)
    facts = {
        "command": "round compare",
        "site": check.site,
        "own_rows": check.own_rows,
        "other_sites": check.other_sites,
        "other_rows": check.other_rows,
        "other_rows_sd": check.rows_sd,
        "strange_share": check.strange,
        "strange_rows": None if check.strange is None else check.strange_rows,
        "level": check.level,
        "most_rows": check.most_rows,
        "too_many_rows": check.too_many,
        "impossible": check.impossible,
        "fits": check.fits,
        "signed_by": signed_by(read),
    }
    strange = "-" if check.strange is None else f"{check.strange_rows:,} ({check.strange:.1%})"
    most = "-" if check.most_rows is None else f"{check.most_rows:,}"
    others = "the other site" if check.other_sites == 1 else f"the {check.other_sites} other sites"
    lines = [
        [f"of this site, {shown(check.site)}", f"{check.own_rows:,}", "-"],
        [f"of {others} (+/- {2 * check.rows_sd:,.0f})", f"{check.other_rows:,.0f}", most],
        ["of these, of a kind that this site hardly has", strange, f"{check.level:.1%}"],
    ]
    blocks: list[Block] = [
        Paragraph([standing(read)]),
        "",
        TextTable(["rows", "about", "at most"], lines),
        "",
        Paragraph(check.words()),
        "\nThis output describes this site's rows exactly: do not send it to anyone.",
    ]
    return CommandResult(facts, blocks, ABOVE if alert and check.fits is False else 0)


# --- home models ----------------------------------------------------------------------------------

#: Number of rows to show.
_SHOWN = 5


def inspect_home(path: Path, content: files.Content) -> CommandResult:
    """Show what the file of a home model holds."""
    home = content.build(HomeModel.from_file)
    plan, noise_sd = home.elsewhere.plan, home.elsewhere.noise_sd
    facts = {
        "command": "inspect", "file": str(path), "kind": "home", "rows": home.n_rows,
        "rows_elsewhere": home.elsewhere.n_rows, "noise_sd": noise_sd, "weight": home.weight,
        "plan_id": plan.plan_id, "features": [f.to_dict() for f in plan.schema.features],
    }  # fmt: skip
    lines = {
        "File": f"{path} ({size(path)})",
        "Kind": f"home, protocol {content.manifest['protocol']}",
        "Plan": plan.plan_id,
        "Rows here": f"{home.n_rows:,}",
        "Rows elsewhere": f"about {home.elsewhere.n_rows:,}, with noise of {noise_sd:,.1f}",
        "Weight": f"{home.weight:.2f} for the others' counts in the combined ranking",
        "Features": f"{len(plan.schema):,}",
        "May leave": "no: it holds exact counts, and values of rows",
    }
    return CommandResult(facts, [LabelledValues(lines)])


def score_home(
    model: Path, rows: Rows, kept: Sequence[str], top: int | None, output: Path, no_use: Any
) -> CommandResult:
    """Score rows by a home model, and write all of them or a list of the lowest."""
    if no_use:
        raise UsageError(
            "a home model has two scores, and classifies rows instead of using a threshold: leave "
            "--contamination, --ranks, --explain, and --parts out"
        )
    target = Target(output, [rows.data, model])
    if target.path.suffix not in SCORES:
        raise UsageError(
            f"{output}: the scores of a home model are written as {' or '.join(SCORES)}"
        )
    home = files.read(model).build(HomeModel.from_file)
    home.here.n_jobs = -1
    rows = replace(rows, reading=home.here.reading_)
    reader = rows.open(home.elsewhere.plan.schema, kept).repeatable()
    beside: dict[str, Any] = {}
    with watched(reader) as watch:
        scores = home.scores(watch.reader)
        if kept:
            batches = (pa.record_batch(batch).select([*kept]) for batch in watch.reader.read())
            table = pa.Table.from_batches(batches).combine_chunks()
            beside = {name: table[name].combine_chunks() for name in kept}
        lowest = home.outliers(watch.reader, top or _SHOWN, scores)
    if top is None:
        flagged = np.array([kind != "ordinary" for kind in scores.kinds])
        columns = {
            "row": as_column(np.arange(len(flagged))),
            "score": as_column(scores.score),
            "outlier": as_column(flagged),
            **beside,
            "here": as_column(scores.here),
            "elsewhere": as_column(scores.elsewhere),
            "kind": texts_column(scores.kinds),
        }
        write_tables(target.path, [pa.table(columns)])
    else:
        listed = lowest
        for k, (name, column) in enumerate(beside.items()):
            listed = listed.add_column(1 + k, name, column.take(lowest["row"]))
        write_tables(target.path, [listed])
    kinds = Counter(scores.kinds)
    facts = {
        "command": "score", "rows": len(scores.score), "weight": home.weight, "kinds": dict(kinds),
        "output": str(target.path), "lowest": lowest.to_pylist(),
    }  # fmt: skip
    meanings = [(kind, words, f"{kinds[kind]:,}") for kind, words in WORDS.items()]
    first = [(f"{row['row']:,}", shown(row["words"])) for row in facts["lowest"][:_SHOWN]]
    words = (
        f"Scored {len(scores.score):,} rows, compared with {home.n_rows:,} rows of this site and "
        f"about {home.elsewhere.n_rows:,} rows of all other sites."
    )
    blocks: list[Block] = [
        Paragraph([words]),
        "",
        TextTable(["kind", "meaning", "rows"], meanings, left=2),
        "",
        TextTable(["row", "why"], first, left=2),
        f"\nWrote {target}. It describes this site's rows: keep it where the rows are.",
    ]
    return CommandResult(facts, blocks)
