"""Home models on the command line: scores here and elsewhere, and what such a file holds."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hushtable import files
from hushtable.cli.options import Rows
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
from hushtable.cli.tables import SCORES, write_scores, write_table
from hushtable.data.columns import as_column, texts_column
from hushtable.errors import UsageError
from hushtable.language import numerals
from hushtable.progress import watched
from hushtable.report.content import RowsToShow
from hushtable.report.page import Page, Section, check_extra, html
from hushtable_federation.home import WORDS, HomeModel
from hushtable_federation.language import _

#: Number of rows to show.
_SHOWN = 5


def _refuse(no_use: Any) -> None:
    if no_use:
        raise UsageError(
            "a home model has two scores, and classifies rows instead of using a threshold: leave "
            "--contamination, --threshold, --ranks, --explain, --parts, and --only-counted out"
        )


class _Scored:
    def __init__(self, model: Path, rows: Rows, kept: Sequence[str], n: int) -> None:
        self.home = home = files.read(model).build(HomeModel.from_file)
        home.here.n_jobs = rows.threads
        rows = replace(rows, reading=home.here.reading_)
        reader = rows.open(home.elsewhere.plan.schema, kept).repeatable()
        with watched(reader) as watch:
            self.found = home.scores(watch.reader)
            self.beside: dict[str, Any] = {}
            if kept:
                batches = (pa.record_batch(batch).select([*kept]) for batch in watch.reader.read())
                table = pa.Table.from_batches(batches).combine_chunks()
                self.beside = {name: table[name].combine_chunks() for name in kept}
            self.listed = home.outliers(watch.reader, n, self.found)
        self.kinds, self.source = Counter(self.found.kinds), reader.source

    @property
    def facts(self) -> dict[str, Any]:
        rows, weight = len(self.found.score), self.home.weight
        return {"rows": rows, "weight": weight, "kinds": dict(self.kinds)}

    def with_kept(self) -> Any:
        listed = self.listed
        for k, (name, column) in enumerate(self.beside.items()):
            listed = listed.add_column(1 + k, name, column.take(self.listed["row"]))
        return listed


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
    _refuse(no_use)
    target = Target(output, [rows.data, model])
    if target.path.suffix not in SCORES:
        raise UsageError(
            f"{output}: the scores of a home model are written as {' or '.join(SCORES)}"
        )
    scored = _Scored(model, rows, kept, top or _SHOWN)
    if top is None:
        found, beside = scored.found, scored.beside
        flagged = np.array([kind != "ordinary" for kind in found.kinds])
        columns = [*beside.values(), as_column(found.here), as_column(found.elsewhere)]
        columns.append(texts_column(found.kinds))
        types = [(name, column.type) for name, column in beside.items()]
        types += [("here", pa.float64()), ("elsewhere", pa.float64()), ("kind", pa.string())]
        write_scores(target.path, [(0, found.score, flagged, *columns)], more=types)
    else:
        write_table(target.path, scored.with_kept())
    facts = {
        "command": "score", **scored.facts, "output": str(target.path),
        "lowest": scored.listed.to_pylist(),
    }  # fmt: skip
    return CommandResult(facts, _blocks(scored, target))


def report_home(
    model: Path, rows: Rows, shown_rows: RowsToShow, output: Path, no_use: Any
) -> CommandResult:
    """Write a page about a site's rows compared with the rows of all other sites."""
    _refuse(no_use)
    target = Target(output, [rows.data, model])
    check_extra("a report")
    scored = _Scored(model, rows, shown_rows.kept, max(1, shown_rows.n))
    text = html(_page(scored, shown_rows))
    with target.writing():
        files.write_bytes(target.path, text.encode("utf-8"), private=True)
    facts = {"command": "report", "report": str(output), **scored.facts}
    words = [f"Wrote {target}. It describes your rows exactly: keep it where the rows are."]
    return CommandResult(facts, [Paragraph(words)])


def _page(scored: _Scored, shown_rows: RowsToShow) -> Page:
    home = scored.home
    reasons = [_("It describes them exactly.")]
    if shown_rows.n:
        reasons = [_("It describes them exactly and lists single rows.")]
    if home.one_other:
        reasons.append(
            _("There is only one other site: every statement about “elsewhere” is about that site.")
        )
    kinds = [
        [_(kind), _(words), numerals(f"{scored.kinds[kind]:,}")] for kind, words in WORDS.items()
    ]
    table = TextTable([_("kind"), _("meaning"), _("rows")], kinds, 2, _("Kinds of rows"))
    sections = [Section("map", _("Rows"), [table])]
    if shown_rows.n:
        headers = [*shown_rows.kept, _("row"), _("reason")]
        rows = [
            [
                *("" if row[name] is None else str(row[name]) for name in shown_rows.kept),
                numerals(f"{row['row']:,}"),
                row["words"] if shown_rows.values else _(WORDS[row["kind"]]),
            ]
            for row in scored.with_kept().slice(0, shown_rows.n).to_pylist()
        ]
        title = _("Most unusual rows")
        sections.append(Section("rows", title, [TextTable(headers, rows, len(headers), title)]))
    elsewhere = _(
        "According to the counts of all other sites: the result of a round without the counts of "
        "this site."
    )
    if home.elsewhere.noise_sd:
        elsewhere = _(
            "According to the counts of all other sites: the result of a round without the counts "
            "of this site, with noise of %(noise)s on each count.",
            noise=numerals(f"{home.elsewhere.noise_sd:,.1f}"),
        )
    meanings = {
        _("here"): _("According to a model of the site's own rows, which it counts exactly."),
        _("elsewhere"): elsewhere,
        _("weight"): _(
            "%(weight)s, from 0 to 1: how much a row that is rare only elsewhere counts in the "
            "order of the rows.",
            weight=numerals(f"{home.weight:.2f}"),
        ),
    }
    sections.append(Section("about", _("How to read this page"), [LabelledValues(meanings)]))
    return Page(
        title=_("Here and elsewhere"),
        made_by=f"hushtable, {datetime.now(UTC):%Y-%m-%d}",
        intro=_(
            "%(n)s rows of %(source)s, compared with %(here)s rows of this site and about "
            "%(elsewhere)s rows of all other sites.",
            n=numerals(f"{len(scored.found.score):,}"),
            source=scored.source,
            here=numerals(f"{home.n_rows:,}"),
            elsewhere=numerals(f"{home.elsewhere.n_rows:,}"),
        ),
        notice=_("Keep this page where the rows are."),
        reasons=reasons,
        sections=sections,
    )


def _blocks(scored: _Scored, target: Target) -> list[Block]:
    home, kinds = scored.home, scored.kinds
    words = [
        f"Scored {sum(kinds.values()):,} rows, compared with {home.n_rows:,} rows of this site and "
        f"about {home.elsewhere.n_rows:,} rows of all other sites."
    ]
    rows = scored.listed.slice(0, _SHOWN).to_pylist()
    blocks: list[Block] = [
        Paragraph(words),
        "",
        TextTable(
            ["kind", "meaning", "rows"],
            [(kind, words, f"{kinds[kind]:,}") for kind, words in WORDS.items()],
            left=2,
        ),
        "",
        TextTable(
            ["row", "why"], [(f"{one['row']:,}", shown(one["words"])) for one in rows], left=2
        ),
    ]
    blocks.append(f"\nWrote {target}. It describes this site's rows: keep it where the rows are.")
    return blocks
