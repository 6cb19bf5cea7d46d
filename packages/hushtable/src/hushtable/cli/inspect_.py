"""``hushtable inspect``: show what a .hush file holds."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from hushtable import files, plugins
from hushtable.cli.options import flag, option
from hushtable.cli.result import (
    Block,
    CommandResult,
    LabelledValues,
    Paragraph,
    Target,
    TextTable,
    size,
)
from hushtable.counts.base import Counts
from hushtable.counts.kinds import counts_from_file
from hushtable.counts.periods import Periods
from hushtable.counts.release import Release
from hushtable.describe import describe_ledger
from hushtable.describe import plan as words
from hushtable.describe.ledger import ledger_blocks
from hushtable.describe.plan import counts_lines, kind_words, plan_lines, signed_by
from hushtable.errors import UsageError
from hushtable.files import Content
from hushtable.plans.draws import NOVELTY
from hushtable.plans.plan import Plan


def inspect(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Plan, sketch, release or model.")],
    with_values: Annotated[
        bool,
        flag(
            "--values",
            "Also show ranges and categories that were taken from rows: these are values of rows. "
            "Public ones are always included.",
        ),
    ] = False,
    registry: Annotated[
        Path | None,
        option(
            "FILE",
            "For a release: also write its ledger as a draft for the Differential Privacy "
            "Deployments Registry, a JSON file that marks what a person has to fill in.",
        ),
    ] = None,
) -> CommandResult:
    """Show what a .hush file or a card holds, and whether it is intact.

    Example:
      hushtable inspect plan.hush
    """
    target = None if registry is None else Target(registry, [file])
    if target is None and file.suffix == ".card":
        card: CommandResult = plugins.extension("inspect_card", "a card", "federation")(file)
        return card
    content = files.read(file)
    if target is not None and content.kind != Release.kind:
        raise UsageError(
            f"--registry describes the ledger of a release, but {file} is {content.held}: give a "
            "release (made by hushtable release or hushtable decode)"
        )
    known = files.kind_of(content.kind)
    if known is not None and known.inspect is not None:
        result: CommandResult = known.inspect(file, content)
        return result
    plan = content.build(Plan.from_file)
    kept = content.build(Periods.from_file) if content.kind == "periods" else None
    counts = None if content.kind in ("plan", "periods") else content.build(counts_from_file)
    full = with_values or plan.schema.public
    facts: dict[str, object] = {"command": "inspect", "file": str(file)}
    facts |= _facts(content, plan, counts, full)
    if kept is not None:
        ledger = kept.ledger(max(1, len(kept)))
        facts |= {
            "period": len(kept), "horizon": kept.horizon.to_dict(), "start": kept.start,
            "rows": words.rows_of_periods(kept), "ledger": ledger.to_dict(),
            "words": describe_ledger(ledger)[:2],
        }  # fmt: skip
    left_open: list[str] = []
    if target is not None and isinstance(counts, Release):
        draft = plugins.extension("registry_draft", "--registry", "federation")
        text, left_open = draft(counts)
        with target.writing():
            # It is made to be published, so it is as readable as other files here.
            files.write_bytes(target.path, text.encode(), private=False)
        facts |= {"registry": str(target.path), "registry_left_open": left_open}

    def blocks() -> Iterator[Block]:
        yield from _blocks(file, content, plan, kept or counts, full)
        if target is not None:
            names = ", ".join(place.rpartition(".")[2] for place in left_open)
            yield f"\nWrote {target}, the draft of an entry. Search it for 'TO FILL IN:':"
            yield Paragraph([f"{names}."], indent="  ")

    return CommandResult(facts, blocks())


#: Facts in the order in which they are printed; the signers follow.
_LABELS = (
    *("File", "Kind", "Plan", "Detector", "Depends on data", "Tables", "Values of rows"),
    *("Rows counted", "Verdicts", "Laid out for", "Periods", "Threshold", "Features", "May leave"),
)


def _facts(content: Content, plan: Plan, counts: Counts | None, full: bool) -> dict[str, object]:
    writer = content.manifest.get("writer")
    facts: dict[str, object] = {
        "kind": content.kind,
        "protocol": content.manifest["protocol"],
        # Not covered by the digest, so it may have any value.
        "writer": writer if isinstance(writer, dict) else {},
        "plan_id": plan.plan_id,
        "detector": plan.detector,
        "data_dependent": plan.data_dependent,
        "ranges_public": plan.schema.public,
        "texts": words.texts_of_rows(plan.schema),
        "passes": 1 if plan.first_counts is None else 2,
        "novelty": plan.score == NOVELTY,
        "tables": plan.family.n_tables,
        "cells": plan.family.n_cells,
        "behind": [spent.to_dict() for spent in plan.behind],
        "design": None if plan.design is None else plan.design.to_dict(),
    }
    features = [feature.to_dict() for feature in plan.schema.features]
    for feature in () if full else features:
        for key in ("low", "high", "categories"):
            feature.pop(key, None)
    if counts is not None:
        facts |= _facts_of_counts(content, counts)
        if counts.tally is not None:
            for feature, (missing, outside) in zip(features, counts.tally.tolist(), strict=True):
                feature |= {"missing": missing, "outside": outside}
    if content.kind == "detector":
        facts |= {key: content.manifest.get(key) for key in ("parameters", "offset")}
    return {**facts, "features": features}


def _facts_of_counts(content: Content, counts: Counts) -> dict[str, object]:
    learned = words.learned(counts)
    if counts.ledger is None:
        facts: dict[str, object] = {"rows": counts.n_rows, "sampled": counts.sampled, **learned}
        facts["rows_per_person"] = getattr(counts, "rows_per_person", None)
        if counts.plan.first_counts is not None:
            facts["rows_first_pass"] = counts.plan.first_rows
        return facts
    facts = {"release_id": counts.release_id} if counts.release_id else {}
    if content.kind == Release.kind:
        facts |= {"signed_by": signed_by(counts), "digest": content.digest}
        facts["result"] = content.manifest.get("result")
    if counts.plan.first_counts is not None:
        facts["rows_first_pass_estimated"] = counts.plan.first_rows
    if (period := counts.ledger.period) is not None:
        facts |= {"period": period, "window": counts.ledger.window}
    return (
        facts
        | learned
        | {
            **({} if counts.mixed else {"rows_estimated": counts.n_rows}),
            "noise_sd": counts.noise_sd,
            "ledger": counts.ledger.to_dict(),
            "words": describe_ledger(counts.ledger),
        }
    )


def _blocks(
    file: Path, content: Content, plan: Plan, given: Counts | Periods | None, full: bool
) -> Iterator[Block]:
    lines = dict.fromkeys(_LABELS, "") | {"Kind": kind_words(content)} | plan_lines(plan)
    if isinstance(given, Counts):
        lines |= counts_lines(given, content.kind, content.manifest.get("offset"))
    elif given is not None:
        lines |= words.periods_lines(given) | {"May leave": "no: it holds exact counts"}
    if lines["Values of rows"] and not full:
        lines["Values of rows"] += " (--values shows them)"
    yield LabelledValues(lines | {"File": f"{file} ({size(file)})"})
    if isinstance(given, Periods):
        yield "\nPrivacy cost of all periods for one person\n"
        yield Paragraph(describe_ledger(given.ledger(max(1, len(given))))[:2], indent="  ")
    elif given is not None and given.ledger is not None:
        yield "\nPrivacy cost of this release for one person\n"
        yield Paragraph(describe_ledger(given.ledger), indent="  ")
        for block in ledger_blocks(given.ledger, given, indent="  "):
            yield ""
            yield block
    headers = ["feature", "kind", "range or categories"]
    rows = [[f.name, f.kind, words.values(f, full)] for f in plan.schema.features]
    if isinstance(given, Counts) and given.tally is not None:
        headers += ["missing", "outside"]
        for row, tally in zip(rows, given.tally.tolist(), strict=True):
            row += [f"{count:,}" for count in tally]
    yield ""
    yield TextTable(headers, rows, left=3)
