"""Plans, schemas and counts in the words that commands, reports and notebooks share."""

from collections.abc import Sequence

from hushtable.counts.base import Counts
from hushtable.counts.periods import Periods
from hushtable.counts.verdicts import LearnedModel, Verdicts
from hushtable.data.schema import Feature, Schema, range_words
from hushtable.plans.draws import NOVELTY, Purpose
from hushtable.plans.families import TOTALS
from hushtable.plans.plan import Plan
from hushtable.privacy.accounting import Horizon


def values(feature: Feature, shown: bool = True, most: int = 3) -> str:
    """Return a feature's range, or its first few categories.

    In a schema that is not public, these are rows' values: ``shown`` is whether to display them.
    """
    if not shown:
        numeric = feature.kind == "numeric"
        what = "a range" if numeric else f"{len(feature.categories):,} categories"
        return f"{what} read off rows"
    return range_words(feature, most)


def texts_of_rows(schema: Schema) -> dict[str, int]:
    """Return how many texts from rows a schema contains, by column; none if it is public."""
    if schema.public:
        return {}
    return {f.name: len(f.categories) for f in schema.features if f.kind == "categorical"}


def _columns(n: int) -> str:
    return "1 column" if n == 1 else f"{n:,} columns"


def values_of_rows(schema: Schema, most: int = 20) -> str:
    """Return which values of rows a schema contains, in words; empty if it is public."""
    if schema.public:
        return ""
    texts = texts_of_rows(schema)
    parts = []
    if texts:
        named = [f"{name} ({n:,})" for name, n in texts.items()]
        more = f" and {len(named) - most:,} more columns" if len(named) > most else ""
        parts.append(f"texts of {', '.join(named[:most])}{more}")
    if numeric := len(schema.of_rows) - len(texts):
        parts.append(f"the lowest and highest value of {_columns(numeric)}")
    if schema.differences is not None:
        predicted = _columns(len(schema.differences.columns))
        parts.append(f"quantiles of the context, and its predictions of {predicted}")
    return ", and ".join(parts)


def kind_of_plan(plan: Plan) -> str:
    """Return words to add to the name of a plan's detector: its pass, or its use."""
    if plan.first_counts is not None:
        return ", second pass" + ("" if plan.gate_cell is None else " behind a gate")
    if plan.score == NOVELTY:
        return ", for novelty detection"
    if plan.context:
        return f", within the context {', '.join(plan.context)}"
    return " of a second pass" if plan.purpose is Purpose.GATE else ""


def dependence(plan: Plan) -> str:
    """Return whether the plan depends on rows, and through which data."""
    if not plan.data_dependent and plan.behind:
        return "through private releases only: their cost counts in every release under it"
    if not plan.data_dependent:
        return "no: drawn from public ranges alone"
    if not plan.schema.public:
        return "yes: the ranges were read off rows"
    return "yes: refined by counts of rows"


def learned(counts: Counts) -> dict[str, int]:
    """Return how many verdicts a file of counts holds, for machines; empty if it holds none."""
    given = counts.verdicts if isinstance(counts, LearnedModel) else counts
    if isinstance(given, Verdicts):
        found = {"outliers": given.n_outliers, "fine": given.n_fine}
        return found | {"contradictory": given.n_contradictory}
    if given.hidden or given.plan.purpose is not Purpose.VERDICTS:
        return {}
    fine, outliers = given.counts[:TOTALS].tolist()
    return {"outliers": outliers, "fine": fine}


def verdicts(counts: Counts) -> str:
    """Return how many verdicts a file of counts holds, in words; empty if it holds none."""
    found = learned(counts)
    if not found:
        return ""
    given = counts.verdicts if isinstance(counts, LearnedModel) else counts
    about = "" if given.ledger is None else "about "
    words = f"{about}{found['outliers']:,} outliers, {found['fine']:,} fine"
    if twice := found.get("contradictory", 0):
        pairs = "1 pair of rows" if twice == 1 else f"{twice:,} pairs of rows"
        words += f"; {pairs} in the same cells have both verdicts: check which is right"
    return words


def listed(things: Sequence[str]) -> str:
    """Return a list in words, with ``and`` before the last item."""
    *first, last = things
    return f"{', '.join(first)} and {last}" if first else last


def n_periods(horizon: Horizon) -> str:
    """Return how many periods a plan is for, and in how many of them a person may have rows."""
    many = "1 period" if horizon.periods == 1 else f"{horizon.periods} periods"
    if horizon.participations == 1:
        return f"{many} at one total"
    apart = f", {horizon.apart} or more apart" if horizon.apart > 1 else ""
    return f"{many} at one total, each person in at most {horizon.participations} of them{apart}"


def n_tables(n: int) -> str:
    """Return how many tables there are, in words."""
    return "1 table" if n == 1 else f"{n:,} tables"


def periods_lines(periods: Periods) -> dict[str, str]:
    """Return the state of a site's periods, with their exact numbers of rows."""
    last, of, start = len(periods), periods.horizon.periods, periods.start
    if last < start:
        return {"Periods": f"none of {of} released yet"}
    began = f", from period {start} on" if start > 1 else ""
    rows = [f"{n:,}" for n in rows_of_periods(periods)]
    cut = "the last 12 periods: " if len(rows) > 12 else ""
    counted = f"{cut}{', '.join(rows[-12:])}"
    return {"Periods": f"{last} of {of} released{began}", "Rows counted": counted}


def rows_of_periods(periods: Periods) -> list[int]:
    """Return the number of rows of each released period, from the site's first period on."""
    counted = periods.counts[periods.start - 1 :].sum(axis=1)
    return [int(n) for n in counted // periods.plan.family.n_histograms]


def column_rows(plan: Plan) -> list[list[str]]:
    """Return the columns of a plan: name, kind, and its range or all its categories."""
    return [[one.name, one.kind, values(one, most=10_000)] for one in plan.schema.features]
