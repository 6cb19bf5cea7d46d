"""``hushtable inspect``: what a .hush file holds."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hushtable.cli._options import Json
from hushtable.cli._output import finish, listed, print_table, shown, size

if TYPE_CHECKING:
    from hushtable.files import Content
    from hushtable.plan import Plan
    from hushtable.schema import Feature
    from hushtable.sketch import Sketch

__all__ = ["inspect"]


def inspect(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Plan, sketch or model.")],
    as_json: Json = False,
) -> None:
    """Show what a .hush file holds, after checking that it is intact.

    \b
    Example:
      hushtable inspect plan.hush
    """  # noqa: D301 (\b keeps the lines of the example apart)
    from hushtable import files
    from hushtable.plan import Plan
    from hushtable.sketch import Sketch

    content = files.read(file)
    plan = content.build(Plan.from_file)
    sketch = content.build(Sketch.from_file) if content.kind in ("sketch", "detector") else None
    facts = {"command": "inspect", "file": str(file), **_facts(content, plan, sketch)}
    finish(as_json, facts, lambda: _print(file, facts, plan, sketch))


def _facts(content: "Content", plan: "Plan", sketch: "Sketch | None") -> dict[str, Any]:
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


def _print(file: Path, facts: dict[str, Any], plan: "Plan", sketch: "Sketch | None") -> None:
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
    if isinstance(facts.get("offset"), int | float):
        lines["Threshold"] = f"{facts['offset']:.4f} bits: rows below are outliers"
    lines["Features"] = f"{len(plan.schema):,}"
    for label, value in lines.items():
        print(f"{label:<17}{value}")
    headers = ["feature", "kind", "range or categories"]
    rows = [[shown(f.name), f.kind, _values(f)] for f in plan.schema.features]
    if sketch is not None:
        headers += ["missing", "outside"]
        for row, counts in zip(rows, sketch.tally.tolist(), strict=True):
            row += [f"{count:,}" for count in counts]
    print()
    print_table(headers, rows, left=3)


def _dependence(plan: "Plan") -> str:
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
