"""Contents of .hush files in labelled lines, for commands and pages."""

import math
from typing import Any

from hushtable.counts.base import Counts
from hushtable.counts.verdicts import Verdicts
from hushtable.describe import plan as words
from hushtable.files import Content
from hushtable.language import _, numerals
from hushtable.plans.plan import Plan


def plan_lines(content: Content, plan: Plan) -> dict[str, str]:
    """Return lines about a file's kind, and the plan in it."""
    writer = content.manifest.get("writer")
    # The digest does not cover this, so it may be anything.
    version = str(writer.get("hushtable", "unknown")) if isinstance(writer, dict) else "unknown"
    lines = {
        "Kind": _(
            "%(kind)s, protocol %(protocol)s, written by hushtable %(version)s",
            kind=content.kind, protocol=content.manifest["protocol"], version=version,
        ),
        "Plan": plan.plan_id,
        "Detector": plan.detector + words.kind_of_plan(plan),
        "Depends on data": words.dependence(plan),
        "Tables": _(
            "%(n)s (%(cells)s cells)",
            n=numerals(f"{plan.family.n_tables:,}"), cells=numerals(f"{plan.family.n_cells:,}"),
        ),
        "Features": numerals(f"{len(plan.schema):,}"),
    }  # fmt: skip
    if of_rows := words.values_of_rows(plan.schema):
        lines["Values of rows"] = of_rows
    if (design := plan.design) is not None:
        lines["Laid out for"] = (
            _("epsilon %(epsilon)s, delta %(delta)s, %(rows)s rows",
              epsilon=numerals(f"{design.epsilon:g}"), delta=numerals(f"{design.delta:g}"),
              rows=numerals(f"{design.expected_rows:,}"))
            + (_(", %(n)s releases", n=design.sites) if design.sites > 1 else "")
            + (_(", two passes") if design.passes == 2 else "")
            + ("" if plan.horizon is None else f", {words.n_periods(plan.horizon)}")
        )  # fmt: skip
    return lines


def counts_lines(content: Content, counts: Counts) -> dict[str, str]:
    """Return lines about the counts in a file: rows, verdicts, threshold, and use."""
    plan, lines = counts.plan, {}
    if found := words.verdicts(counts):
        lines["Verdicts"] = found
    if isinstance(counts, Verdicts):
        lines["May leave"] = _("no: rows can be read from it")
        return lines
    if counts.ledger is None:
        lines["Rows counted"] = numerals(f"{counts.n_rows:,}")
        if counts.sampled:
            lines["Rows counted"] += _(" in each table, a random sample")
        if plan.first_counts is not None:
            first = numerals(f"{plan.first_rows:,}")
            if plan.first_noise_sd is not None:
                first = _("about %(n)s", n=first)
            lines["Rows counted"] += _(" in the second pass, %(n)s in the first", n=first)
        if (most := getattr(counts, "rows_per_person", None)) is not None:
            lines["Rows a person"] = _(
                "%(n)s at most, by a column that identifies persons", n=numerals(f"{most:,}")
            )
    if content.kind == "detector":
        lines["Threshold"] = _threshold(content.manifest.get("offset"), plan)
    if not counts.may_leave:
        lines["May leave"] = _("no: it holds exact counts")
    elif content.kind == "detector":
        lines["May leave"] = _(
            "no: its threshold may come from local rows; send the release instead"
        )
    else:
        lines |= {"May leave": _("yes, as the ledger below states")} | signed_lines(counts)
    return lines


def _threshold(offset: Any, plan: Plan) -> str:
    if isinstance(offset, int | float) and math.isfinite(offset):
        line = f"{numerals(f'{offset:.4f}')} {_(plan.score.unit)}"
        return _("%(line)s: rows with a lower score are outliers", line=line)
    return _("none: the counts are too noisy to derive one")


def signed_by(counts: Any) -> dict[str, str] | None:
    """Return name and fingerprint of the signer of counts; None if they are not signed."""
    if counts.seal is None:
        return None
    return {"name": counts.seal.coordinator["name"], "fingerprint": counts.seal.fingerprint}


def signed_lines(counts: Any) -> dict[str, str]:
    """Return lines about the signer of counts, their round, and the submissions in them."""
    who = signed_by(counts)
    if who is None:
        return {"Signed by": _("no one: anyone could have made or changed it")}
    names = ", ".join(sorted(counts.seal.submissions))
    return {
        "Signed by": f"{who['name']} ({who['fingerprint']})",
        "Round": counts.seal.round_id,
        "Submissions": f"{len(counts.seal.submissions)}: {names}",
    }
