"""Plans, schemas, counts and files in the words that commands and reports share.

Labels of lines are marked for translation; what displays them translates them.
"""

import math

from hushtable.counts.base import Counts
from hushtable.counts.periods import Periods
from hushtable.counts.verdicts import LearnedModel, Verdicts
from hushtable.data.schema import Feature, Schema, range_words
from hushtable.files import Content
from hushtable.language import N_, _, ngettext, numeral, numerals
from hushtable.plans.draws import NOVELTY, Purpose
from hushtable.plans.plan import Plan
from hushtable.privacy.accounting import Horizon


def values(feature: Feature, shown: bool = True, most: int = 3) -> str:
    """Return a feature's range, or its first few categories.

    In a schema that is not public, these are rows' values: ``shown`` is whether to display them.
    """
    if not shown:
        if feature.kind == "numeric":
            return _("a range read off rows")
        n = numeral(len(feature.categories))
        return _("%(n)s categories read off rows", n=n)
    return range_words(feature, most)


def texts_of_rows(schema: Schema) -> dict[str, int]:
    """Return how many texts from rows a schema contains, by column; none if it is public."""
    if schema.public:
        return {}
    return {f.name: len(f.categories) for f in schema.features if f.kind == "categorical"}


def _columns(n: int) -> str:
    return ngettext("%(n)s column", "%(n)s columns", n)


def values_of_rows(schema: Schema, most: int = 20) -> str:
    """Return which values of rows a schema contains, in words; empty if it is public."""
    if schema.public:
        return ""
    texts = texts_of_rows(schema)
    parts = []
    if texts:
        each = [f"{name} ({numeral(n)})" for name, n in texts.items()]
        named = ", ".join(each[:most])
        if len(each) > most:
            more = numeral(len(each) - most)
            named = _("%(names)s and %(n)s more columns", names=named, n=more)
        parts.append(_("texts of %(names)s", names=named))
    if numeric := len(schema.of_rows) - len(texts):
        columns = _columns(numeric)
        parts.append(_("the lowest and highest value of %(columns)s", columns=columns))
    if schema.differences is not None:
        predicted = _columns(len(schema.differences.columns))
        parts.append(
            _(
                "the median or the most frequent value in each group of %(columns)s",
                columns=predicted,
            )
            if schema.differences.in_groups
            else _(
                "quantiles of the context, and its predictions of %(columns)s", columns=predicted
            )
        )
    return _(", and ").join(parts)


def kind_of_plan(plan: Plan) -> str:
    """Return words to add to the name of a plan's detector: its pass, or its use."""
    if plan.first_counts is not None:
        return _(", second pass") if plan.gate_cell is None else _(", second pass behind a gate")
    if plan.score == NOVELTY:
        return _(", for novelty detection")
    if plan.context:
        return _(", within the context %(names)s", names=", ".join(plan.context))
    return _(" of a second pass") if plan.purpose is Purpose.GATE else ""


def dependence(plan: Plan) -> str:
    """Return whether the plan depends on rows, and through which data."""
    if not plan.data_dependent and plan.behind:
        return _("through private releases only: their cost counts in every release under it")
    if not plan.data_dependent:
        return _("no: drawn from public ranges alone")
    if not plan.schema.public:
        return _("yes: the ranges were read off rows")
    return _("yes: refined by counts of rows")


def learned(counts: Counts) -> dict[str, int]:
    """Return how many verdicts a file of counts holds, for machines; empty if it holds none."""
    given = counts.verdicts if isinstance(counts, LearnedModel) else counts
    if not isinstance(given, Verdicts):
        return {}
    facts = {"outliers": given.n_outliers, "fine": given.n_fine}
    return facts | {"contradictory": given.n_contradictory}


def verdicts(counts: Counts) -> str:
    """Return how many verdicts a file of counts holds, in words; empty if it holds none."""
    facts = learned(counts)
    if not facts:
        return ""
    outliers, fine = (numeral(facts[name]) for name in ("outliers", "fine"))
    words = _("%(outliers)s outliers, %(fine)s fine", outliers=outliers, fine=fine)
    if twice := facts["contradictory"]:
        words += ngettext(
            "; %(n)s pair of rows in the same cells have both verdicts: check which is right",
            "; %(n)s pairs of rows in the same cells have both verdicts: check which is right",
            twice,
        )
    return words


def n_periods(horizon: Horizon) -> str:
    """Return how many periods a plan is for, and in how many of them a person may have rows."""
    many = ngettext("%(n)s period at one total", "%(n)s periods at one total", horizon.periods)
    if horizon.participations == 1:
        return many
    each = _(", each person in at most %(n)s of them", n=horizon.participations)
    return f"{many}{each}{apart_words(horizon)}"


def apart_words(horizon: Horizon) -> str:
    """Return how far apart the periods of a person are; empty if they may follow each other."""
    return _(", %(n)s or more apart", n=horizon.apart) if horizon.apart > 1 else ""


def n_tables(n: int) -> str:
    """Return how many tables there are, in words."""
    return ngettext("%(n)s table", "%(n)s tables", n)


def periods_lines(periods: Periods) -> dict[str, str]:
    """Return the state of a site's periods, with their exact numbers of rows."""
    last, of, start = len(periods), periods.horizon.periods, periods.start
    if last < start:
        return {"Periods": _("none of %(of)s released yet", of=of)}
    began = _(", from period %(n)s on", n=start) if start > 1 else ""
    rows = [numeral(n) for n in rows_of_periods(periods)]
    cut = _("the last 12 periods: ") if len(rows) > 12 else ""
    released = _("%(n)s of %(of)s released", n=last, of=of)
    return {"Periods": f"{released}{began}", "Rows counted": f"{cut}{', '.join(rows[-12:])}"}


def rows_of_periods(periods: Periods) -> list[int]:
    """Return the number of rows of each released period, from the site's first period on."""
    counted = periods.counts[periods.start - 1 :].sum(axis=1)
    return [int(n) for n in counted // periods.plan.family.n_histograms]


def column_rows(plan: Plan) -> list[list[str]]:
    """Return the columns of a plan: name, kind, and its range or all its categories."""
    return [[f.name, f.kind, values(f, most=10_000)] for f in plan.schema.features]


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
    tables, cells = numeral(plan.family.n_tables), numeral(plan.family.n_cells)
    lines = {
        N_("Plan"): plan.plan_id,
        N_("Detector"): plan.detector + kind_of_plan(plan),
        N_("Depends on data"): dependence(plan),
        N_("Tables"): _("%(n)s (%(cells)s cells)", n=tables, cells=cells),
        N_("Features"): numeral(len(plan.schema)),
    }
    if of_rows := values_of_rows(plan.schema):
        lines[N_("Values of rows")] = of_rows
    if (design := plan.design) is not None:
        laid_out = _(
            "epsilon %(epsilon)s, delta %(delta)s, %(rows)s rows",
            epsilon=numerals(f"{design.epsilon:g}"),
            delta=numerals(f"{design.delta:g}"),
            rows=numeral(design.expected_rows),
        )
        laid_out += _(", %(n)s releases", n=design.sites) if design.sites > 1 else ""
        laid_out += _(", two passes") if design.passes == 2 else ""
        laid_out += "" if plan.horizon is None else f", {n_periods(plan.horizon)}"
        lines[N_("Laid out for")] = laid_out
    return lines


def counts_lines(counts: Counts, kind: str, threshold: object) -> dict[str, str]:
    """Return lines about counts: rows, verdicts, the threshold of a detector, and use."""
    plan, lines = counts.plan, {}
    if given := verdicts(counts):
        lines[N_("Verdicts")] = given
    if isinstance(counts, Verdicts):
        return lines | {N_("May leave"): _("no: rows can be read from it")}
    if counts.ledger is None:
        lines[N_("Rows counted")] = _rows_counted(counts)
        if (most := getattr(counts, "rows_per_person", None)) is not None:
            lines[N_("Rows a person")] = _(
                "%(n)s at most, by a column that identifies persons", n=numeral(most)
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
    plan, line = counts.plan, numeral(counts.n_rows)
    if counts.sampled:
        line += _(" in each table, a random sample")
    if plan.first_counts is not None:
        first = numeral(plan.first_rows)
        if plan.first_noise_sd is not None:
            first = _("about %(n)s", n=first)
        line += _(" in the second pass, %(n)s in the first", n=first)
    return line


def threshold_words(threshold: object, unit: str) -> str:
    """Return a threshold with what it means; NaN or None if there is none."""
    if isinstance(threshold, int | float) and math.isfinite(threshold):
        line = f"{numerals(f'{threshold:.4f}')} {_(unit)}"
        return _("%(line)s: rows with a lower score are outliers", line=line)
    return _("none: the counts are too noisy to derive one")


def signed_by(counts: Counts) -> dict[str, str] | None:
    """Return name and fingerprint of the signer of counts; None if they are not signed."""
    if counts.seal is None:
        return None
    return {
        "name": counts.seal.coordinator.name,
        "fingerprint": counts.seal.coordinator.fingerprint,
    }


def signed_lines(counts: Counts) -> dict[str, str]:
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
