"""``hushtable inspect``: what a .hush file holds."""

from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable import files
from hushtable.cli._options import Json
from hushtable.cli._output import finish, print_sentences, print_table, shown, size
from hushtable.cli._signed import signed_by, signed_lines
from hushtable.counts.local import LocalModel
from hushtable.counts.release import Release
from hushtable.counts.sketch import Sketch, counts_from_file
from hushtable.data.schema import Schema
from hushtable.federation.collect import Sealed
from hushtable.files import Content
from hushtable.plans.plan import Plan
from hushtable.report.words import (
    LEDGER_HEADERS,
    dependence,
    ledger_lines,
    ledger_rows,
    texts_of_rows,
    values,
    values_of_rows,
)

__all__ = ["inspect"]


def inspect(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Plan, sketch, release or model.")],
    with_values: Annotated[
        bool,
        typer.Option(
            "--values",
            help="Show ranges and categories that were read off rows, too: they are values of "
            "rows. Public ones are always shown.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what a .hush file holds, after checking that it is intact.

    \b
    Example:
      hushtable inspect plan.hush
    """  # noqa: D301 (\b keeps the lines of the example apart)
    content = files.read(file)
    if content.kind in ("round", "submission", "sealed", "layout", "message"):
        _finish_of_a_round(file, content, as_json)
        return
    plan = content.build(Plan.from_file)
    sketch: Sketch | None = None
    release: Release | LocalModel | None = None
    if content.kind != "plan":
        counts = content.build(counts_from_file)
        if isinstance(counts, Sketch):
            sketch = counts
        else:
            release = counts
    told = with_values or plan.schema.public
    facts = {"command": "inspect", "file": str(file)}
    facts |= _facts(content, plan, sketch, release, told)
    finish(as_json, facts, lambda: _print(file, facts, plan, sketch, release, told))


def _finish_of_a_round(file: Path, content: Content, as_json: bool) -> None:
    """Show what belongs to a round: as it is written, nothing of it is secret."""
    entries = content.manifest
    facts: dict[str, Any] = {"command": "inspect", "file": str(file), "kind": content.kind}
    sealed = None
    if content.kind == "sealed":
        sealed = content.build(Sealed.from_file)
        facts["signed_by"] = signed_by(sealed)
    facts |= {key: entries[key] for key in entries if key not in ("plan", "arrays", "kind")}

    def text() -> None:
        lines = {
            "File": f"{file} ({size(file)})",
            "Kind": f"{content.kind}, protocol {entries['protocol']}",
            "Id": content.digest,
            "Of round": entries.get("round_id"),
            "Of site": entries.get("site"),
            "Plan": entries.get("plan_id"),
        }
        if sealed is not None:
            lines |= signed_lines(sealed)
        for label, value in lines.items():
            if value is not None:
                print(f"{label:<17}{shown(str(value))}")
        advice = {
            "round": f"hushtable round status {file}",
            "submission": f"hushtable round status ROUND {file}",
            "sealed": f"hushtable round model {file} --plan PLAN -o FILE",
            "layout": f"hushtable round open {file} CARD... --key KEY --epsilon E -o FILE",
        }
        if content.kind in advice:
            print(f"\nMore: {advice[content.kind]}")

    finish(as_json, facts, text)


def _facts(
    content: Content,
    plan: Plan,
    sketch: Sketch | None,
    release: Release | LocalModel | None,
    told: bool,
) -> dict[str, Any]:

    writer = content.manifest.get("writer")
    facts: dict[str, Any] = {
        "kind": content.kind,
        "protocol": content.manifest["protocol"],
        # Not covered by the digest, so it may be anything.
        "writer": writer if isinstance(writer, dict) else {},
        "plan_id": plan.plan_id,
        "detector": plan.detector,
        "data_dependent": plan.data_dependent,
        "ranges_public": plan.schema.public,
        "texts": texts_of_rows(plan.schema),
        "passes": 1 if plan.first_counts is None else 2,
        "tables": plan.family.n_tables,
        "cells": plan.family.n_cells,
        "behind": [spent.to_dict() for spent in plan.behind],
        "design": None if plan.design is None else plan.design.to_dict(),
    }
    if isinstance(release, Release):
        facts["release_id"] = release.release_id
        if content.kind == "release":
            facts |= {"signed_by": signed_by(release), "digest": content.digest}
            facts["result"] = content.manifest.get("result")
    if release is not None:
        facts |= {
            "rows_estimated": release.n_rows,
            "noise_sd": release.noise_sd,
            "ledger": release.ledger.to_dict(),
            "words": release.ledger.words(),
        }
    features = _features(plan.schema, told)
    if sketch is not None:
        facts |= {"rows": sketch.n_rows, "sampled": sketch.sampled}
        if plan.first_counts is not None:
            facts["rows_first_pass"] = plan.first_rows
        for feature, (missing, outside) in zip(features, sketch.tally.tolist(), strict=True):
            feature |= {"missing": missing, "outside": outside}
    for key in ("parameters", "offset"):
        if content.kind == "detector":
            facts[key] = content.manifest.get(key)
    return {**facts, "features": features}


def _features(schema: Schema, told: bool) -> list[dict[str, Any]]:
    """Return the features; without ranges and categories if those are not to be shown."""
    found = [feature.to_dict() for feature in schema.features]
    if not told:
        for feature in found:
            for key in ("low", "high", "categories"):
                feature.pop(key, None)
    return found


def _print(
    file: Path,
    facts: dict[str, Any],
    plan: Plan,
    sketch: Sketch | None,
    release: Release | LocalModel | None,
    told: bool,
) -> None:
    version = shown(str(facts["writer"].get("hushtable", "unknown")))
    lines = {
        "File": f"{file} ({size(file)})",
        "Kind": f"{facts['kind']}, protocol {facts['protocol']}, written by hushtable {version}",
        "Plan": facts["plan_id"],
        "Detector": facts["detector"] + (", second pass" if facts["passes"] == 2 else ""),
        "Depends on data": dependence(plan),
        "Tables": f"{facts['tables']:,} ({facts['cells']:,} cells)",
    }
    if of_rows := values_of_rows(plan.schema):
        hint = "" if told else " (--values shows them)"
        lines["Values of rows"] = shown(f"{of_rows}{hint}")
    if sketch is not None:
        lines["Rows counted"] = f"{sketch.n_rows:,}"
        if sketch.sampled:
            lines["Rows counted"] += " in each table, a random sample"
        if plan.first_counts is not None:
            lines["Rows counted"] += f" in the second pass, {plan.first_rows:,} in the first"
    if plan.design is not None:
        design = plan.design
        lines["Laid out for"] = (
            f"epsilon {design.epsilon:g}, delta {design.delta:g}, {design.expected_rows:,} rows"
            + (f", {design.sites} releases" if design.sites > 1 else "")
        )
    if isinstance(facts.get("offset"), int | float):
        lines["Threshold"] = f"{facts['offset']:.4f} {plan.score.unit}: rows below are outliers"
    elif "offset" in facts:
        lines["Threshold"] = "none: the noise leaves none to be told from the counts"
    lines["Features"] = f"{len(plan.schema):,}"
    if sketch is not None:
        lines["May leave"] = "no: it holds exact counts"
    elif facts["kind"] == "release":
        lines["May leave"] = "yes, as the ledger below says"
        lines |= signed_lines(release)
    elif facts["kind"] == "local":
        lines["May leave"] = "no: it holds exact counts of its site"
    elif facts["kind"] == "detector":
        lines["May leave"] = "no: its threshold may come from local rows; send the release instead"
    for label, value in lines.items():
        print(f"{label:<17}{value}")
    if release is not None:
        _print_ledger(release)
    headers = ["feature", "kind", "range or categories"]
    rows = [[shown(f.name), f.kind, shown(values(f, told))] for f in plan.schema.features]
    if sketch is not None:
        headers += ["missing", "outside"]
        for row, counts in zip(rows, sketch.tally.tolist(), strict=True):
            row += [f"{count:,}" for count in counts]
    print()
    print_table(headers, rows, left=3)


def _print_ledger(release: Release | LocalModel) -> None:
    """Show the ledger: first in words that somebody can sign, then in numbers."""
    ledger = release.ledger
    print("\nWhat this costs a person\n")
    print_sentences(ledger.words(), indent="  ")
    lines = ledger_lines(ledger, release.noise_sd) | {"Rows, estimated": f"{release.n_rows:,}"}
    print()
    for label, value in lines.items():
        print(f"  {label:<17}{value}")
    print()
    rows = [[shown(cell) for cell in row] for row in ledger_rows(ledger)]
    print_table(LEDGER_HEADERS, rows, left=2)
