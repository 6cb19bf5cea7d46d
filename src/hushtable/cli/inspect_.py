"""``hushtable inspect``: what a .hush file holds."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hushtable.cli._options import Json
from hushtable.cli._output import finish, listed, print_sentences, print_table, shown, size

if TYPE_CHECKING:
    from hushtable.files import Content
    from hushtable.plan import Plan
    from hushtable.privacy.budget import Cost
    from hushtable.privacy.release import Release
    from hushtable.schema import Feature
    from hushtable.sketch import Sketch

__all__ = ["inspect"]


def inspect(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Plan, sketch, release or model.")],
    as_json: Json = False,
) -> None:
    """Show what a .hush file holds, after checking that it is intact.

    \b
    Example:
      hushtable inspect plan.hush
    """  # noqa: D301 (\b keeps the lines of the example apart)
    from hushtable import files
    from hushtable.plan import Plan
    from hushtable.sketch import Sketch, counts_from_file

    content = files.read(file)
    plan = content.build(Plan.from_file)
    sketch: Sketch | None = None
    release: Release | None = None
    if content.kind != "plan":
        counts = content.build(counts_from_file)
        if isinstance(counts, Sketch):
            sketch = counts
        else:
            release = counts
    facts = {"command": "inspect", "file": str(file), **_facts(content, plan, sketch, release)}
    finish(as_json, facts, lambda: _print(file, facts, plan, sketch, release))


def _facts(
    content: "Content", plan: "Plan", sketch: "Sketch | None", release: "Release | None"
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
        "passes": 1 if plan.first_counts is None else 2,
        "tables": plan.family.n_tables,
        "cells": plan.family.n_cells,
        "behind": [spent.to_dict() for spent in plan.behind],
        "design": None if plan.design is None else plan.design.to_dict(),
    }
    if release is not None:
        facts |= {
            "release_id": release.release_id,
            "rows_estimated": release.n_rows,
            "ledger": release.ledger.to_dict(),
            "words": release.ledger.words(),
        }
    features = [feature.to_dict() for feature in plan.schema.features]
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


def _print(
    file: Path,
    facts: dict[str, Any],
    plan: "Plan",
    sketch: "Sketch | None",
    release: "Release | None",
) -> None:
    version = shown(str(facts["writer"].get("hushtable", "unknown")))
    lines = {
        "File": f"{file} ({size(file)})",
        "Kind": f"{facts['kind']}, protocol {facts['protocol']}, written by hushtable {version}",
        "Plan": facts["plan_id"],
        "Detector": facts["detector"] + (", second pass" if facts["passes"] == 2 else ""),
        "Depends on data": _dependence(plan),
        "Tables": f"{facts['tables']:,} ({facts['cells']:,} cells)",
    }
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
    elif facts["kind"] == "detector":
        lines["May leave"] = "no: its threshold may come from local rows; send the release instead"
    for label, value in lines.items():
        print(f"{label:<17}{value}")
    if release is not None:
        _print_ledger(release)
    headers = ["feature", "kind", "range or categories"]
    rows = [[shown(f.name), f.kind, _values(f)] for f in plan.schema.features]
    if sketch is not None:
        headers += ["missing", "outside"]
        for row, counts in zip(rows, sketch.tally.tolist(), strict=True):
            row += [f"{count:,}" for count in counts]
    print()
    print_table(headers, rows, left=3)


def _print_ledger(release: "Release") -> None:
    """Show the ledger: first in words that somebody can sign, then in numbers."""
    ledger = release.ledger
    print("\nWhat this costs a person\n")
    print_sentences(ledger.words(), indent="  ")
    sensitivity = ledger.sensitivity
    lines = {
        "Mechanism": f"{ledger.mechanism}, one scale for all cells of all tables",
        "Noise a cell": f"{ledger.noise_sd:,.4g} counts (standard deviation)",
        "Neighbours": f"{sensitivity.adjacency}, at most {sensitivity.rows_per_person:,} a person",
        "Sensitivity": f"L1 {sensitivity.l1:,}, L2 {math.sqrt(sensitivity.l2_squared):.4g}, "
        f"over {sensitivity.tables:,} tables",
        "Total": f"rho {ledger.rho:.4g}, epsilon {ledger.epsilon:.6g}, delta {ledger.delta:g}",
        "Rows, estimated": f"{release.n_rows:,}",
    }
    print()
    for label, value in lines.items():
        print(f"  {label:<17}{value}")
    print()
    rows = [
        [spent.release[:12], f"{spent.what}, behind the plan", "", _rho(spent.cost)]
        for spent in ledger.behind_plan
    ]
    for share in ledger.shares:
        rows += [
            [spent.release[:12], f"{spent.what}, earlier", "", _rho(spent.cost)]
            for spent in share.earlier
        ]
        own = sensitivity.cost(ledger.mechanism, share.scale)
        what = f"these tables ({shown(share.library)})"
        rows.append([share.release[:12], what, f"{share.scale:g}", _rho(own)])
    print_table(["release", "what", "noise scale", "rho"], rows, left=2)


def _rho(cost: "Cost") -> str:
    return f"{cost.rho:.4g}"


def _dependence(plan: "Plan") -> str:
    if not plan.data_dependent and plan.behind:
        return "through private releases only: their cost counts in every release under it"
    if not plan.data_dependent:
        return "no: drawn from public ranges alone"
    if not plan.schema.public:
        return "yes: the ranges were read off rows"
    return "yes: refined by counts of rows"


def _values(feature: "Feature") -> str:
    if feature.kind == "numeric":
        unit = f" {shown(feature.unit)}" if feature.unit else ""
        return f"{feature.low:.10g} to {feature.high:.10g}{unit}"
    n = len(feature.categories)
    return f"{n:,} categories: {listed(feature.categories)}" if n else "no categories"
