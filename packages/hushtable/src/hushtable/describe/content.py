"""Contents of .hush files in labelled lines, for commands and pages, which translate the labels."""

import math
from typing import Any

from hushtable.counts.base import Counts
from hushtable.counts.verdicts import Verdicts
from hushtable.describe import plan as words
from hushtable.files import Content
from hushtable.language import N_, _, numerals
from hushtable.plans.plan import Plan


def kind_words(content: Content) -> str:
    """Describe a file's kind, and what wrote it."""
    writer = content.manifest.get("writer")
    # The digest does not cover this, so it may be anything.
    version = str(writer.get("hushtable", "unknown")) if isinstance(writer, dict) else "unknown"
    return _(
        "%(kind)s, protocol %(protocol)s, written by hushtable %(version)s",
        kind=content.kind,
        protocol=content.manifest["protocol"],
        version=version,
    )


def plan_lines(plan: Plan) -> dict[str, str]:
    """Return lines about a plan."""
    tables, cells = numerals(f"{plan.family.n_tables:,}"), numerals(f"{plan.family.n_cells:,}")
    lines = {
        N_("Plan"): plan.plan_id,
        N_("Detector"): plan.detector + words.kind_of_plan(plan),
        N_("Depends on data"): words.dependence(plan),
        N_("Tables"): _("%(n)s (%(cells)s cells)", n=tables, cells=cells),
        N_("Features"): numerals(f"{len(plan.schema):,}"),
    }
    if of_rows := words.values_of_rows(plan.schema):
        lines[N_("Values of rows")] = of_rows
    if (design := plan.design) is not None:
        laid_out = _(
            "epsilon %(epsilon)s, delta %(delta)s, %(rows)s rows",
            epsilon=numerals(f"{design.epsilon:g}"),
            delta=numerals(f"{design.delta:g}"),
            rows=numerals(f"{design.expected_rows:,}"),
        )
        laid_out += _(", %(n)s releases", n=design.sites) if design.sites > 1 else ""
        laid_out += _(", two passes") if design.passes == 2 else ""
        laid_out += "" if plan.horizon is None else f", {words.n_periods(plan.horizon)}"
        lines[N_("Laid out for")] = laid_out
    return lines


def counts_lines(counts: Counts, kind: str, threshold: Any) -> dict[str, str]:
    """Return lines about counts: rows, verdicts, the threshold of a detector, and use."""
    plan, lines = counts.plan, {}
    if given := words.verdicts(counts):
        lines[N_("Verdicts")] = given
    if isinstance(counts, Verdicts):
        return lines | {N_("May leave"): _("no: rows can be read from it")}
    if counts.ledger is None:
        lines[N_("Rows counted")] = _rows_counted(counts)
        if (most := getattr(counts, "rows_per_person", None)) is not None:
            lines[N_("Rows a person")] = _(
                "%(n)s at most, by a column that identifies persons", n=numerals(f"{most:,}")
            )
    if kind == "detector":
        lines[N_("Threshold")] = threshold_words(threshold, plan.score.unit)
    if not counts.may_leave:
        lines[N_("May leave")] = _("no: it holds exact counts")
    elif kind == "detector":
        lines[N_("May leave")] = _(
            "no: its threshold may come from local rows; send the release instead"
        )
    else:
        lines |= {N_("May leave"): _("yes, as the ledger states")} | signed_lines(counts)
    return lines


def _rows_counted(counts: Counts) -> str:
    plan, line = counts.plan, numerals(f"{counts.n_rows:,}")
    if counts.sampled:
        line += _(" in each table, a random sample")
    if plan.first_counts is not None:
        first = numerals(f"{plan.first_rows:,}")
        if plan.first_noise_sd is not None:
            first = _("about %(n)s", n=first)
        line += _(" in the second pass, %(n)s in the first", n=first)
    return line


def threshold_words(threshold: Any, unit: str) -> str:
    """Return a threshold with what it means; NaN or None if there is none."""
    if isinstance(threshold, int | float) and math.isfinite(threshold):
        line = f"{numerals(f'{threshold:.4f}')} {_(unit)}"
        return _("%(line)s: rows with a lower score are outliers", line=line)
    return _("none: the counts are too noisy to derive one")


def signed_by(counts: Any) -> dict[str, str] | None:
    """Return name and fingerprint of the signer of counts; None if they are not signed."""
    if counts.seal is None:
        return None
    return {
        "name": counts.seal.coordinator.name,
        "fingerprint": counts.seal.coordinator.fingerprint,
    }


def signed_lines(counts: Any) -> dict[str, str]:
    """Return lines about the signer of counts, their round, and the submissions in them."""
    who = signed_by(counts)
    if who is None:
        return {N_("Signed by"): _("no one: anyone could have made or changed it")}
    names = ", ".join(sorted(counts.seal.submissions))
    return {
        N_("Signed by"): f"{who['name']} ({who['fingerprint']})",
        N_("Round"): counts.seal.round_id,
        N_("Submissions"): f"{len(counts.seal.submissions)}: {names}",
    }
