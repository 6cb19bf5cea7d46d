"""Views of the package's objects in a notebook: first the officer's sentence, then the object.

They display what ``hushtable inspect`` displays by default: no range and no category that was read
off rows. Imported when the first object is displayed.
"""

from functools import singledispatch

from hushtable.counts.base import Counts, Noised
from hushtable.counts.periods import Periods
from hushtable.counts.release import LocalModel
from hushtable.counts.sketch import Sketch
from hushtable.counts.verdicts import LearnedModel, Verdicts
from hushtable.data.schema import Schema
from hushtable.describe import plan as words
from hushtable.describe.ledger import LEDGER_HEADERS, describe_ledger, ledger_lines, ledger_rows
from hushtable.display import View
from hushtable.plans.plan import Plan
from hushtable.privacy.ledger import Ledger
from hushtable.scores.finding import Finding

_FEATURES = ("column", "kind", "range or categories")


@singledispatch
def view(thing: object) -> View:
    """Return the view of an object by its class."""
    raise TypeError(f"{type(thing).__name__} has no view")


@view.register
def _(schema: Schema) -> View:
    if schema.public:
        says = ["This schema holds no data of rows: its ranges and categories are public."]
        if schema.paid:
            says = [
                "This schema holds no exact value of any row: its ranges or relations come from "
                "private releases, whose cost counts in every release under it."
            ]
    else:
        says = [
            f"This schema holds values of rows: {words.values_of_rows(schema)}.",
            "Keep it like the rows; nothing can be released under it.",
        ]
    return View("Schema", says, {}, _FEATURES, _features(schema))


def _features(schema: Schema) -> list[list[str]]:
    return [[f.name, f.kind, words.values(f, schema.public)] for f in schema.features]


@view.register
def _(plan: Plan) -> View:
    if plan.data_dependent:
        says = [
            "This plan discloses something about rows, and nothing can be released under it: "
            "keep it like the rows."
        ]
    else:
        says = ["This plan discloses nothing about a row that was not released before."]
        if not plan.behind:
            says = ["This plan discloses nothing about any row."]
    figures = {
        "Plan": plan.plan_id[:12],
        "Detector": plan.detector + words.kind_of_plan(plan),
        "Depends on data": words.dependence(plan),
        "Tables": f"{plan.family.n_tables:,} ({plan.family.n_cells:,} cells)",
    }
    if plan.horizon is not None:
        figures["Periods"] = words.n_periods(plan.horizon)
    return View("Plan", says, figures, _FEATURES, _features(plan.schema))


def _exact(what: str, counts: Counts, last: str) -> View:
    says = [f"This must not leave the site: it holds {what}.", last]
    return View(counts.noun.removeprefix("a ").capitalize(), says, _figures(counts))


@view.register
def _(sketch: Sketch) -> View:
    last = "Only its release may leave: sketch.release(epsilon=...)."
    if sketch.plan.data_dependent or sketch.seeded:
        last = "It cannot be released either: its plan or its samples depend on rows, or on a seed."
    made = _exact("exact counts of rows", sketch, last)
    tallies = sketch.tally.tolist()
    features = zip(_features(sketch.plan.schema), tallies, strict=True)
    rows = [[*feature, *(f"{n:,}" for n in tally)] for feature, tally in features]
    headers = (*_FEATURES, "missing", "outside")
    figures = {"Rows": f"{sketch.n_rows:,}"} | dict(made.figures)
    return View(made.kind, made.sentences, figures, headers, rows)


@view.register
def _(model: LocalModel) -> View:
    return _exact("exact counts of its site's rows", model, "It scores the site's own rows.")


def _figures(counts: Counts) -> dict[str, str]:
    tables = f"{words.n_tables(counts.n_tables)} ({counts.n_cells:,} cells)"
    return {"Plan": counts.plan_id[:12], "Detector": counts.detector, "Tables": tables}


@view.register
def release_view(counts: Noised) -> View:
    """Return the view of counts with noise."""
    made = view(counts.ledger)
    rows = {} if counts.mixed else {"Rows, estimated": f"{counts.n_rows:,}"}
    figures = _figures(counts) | rows | dict(made.figures)
    kind = counts.noun.removeprefix("an ").removeprefix("a ").capitalize()
    return View(kind, made.sentences, figures, made.headers, made.rows)


@view.register
def _(periods: Periods) -> View:
    cost = describe_ledger(periods.ledger(max(1, len(periods))))[:2]
    says = ["This must not leave the site: it holds exact counts of rows.", *cost]
    figures = {"Plan": periods.plan.plan_id[:12], "Terms": periods.terms.words()}
    return View("Periods", says, words.periods_lines(periods) | figures)


@view.register
def _(ledger: Ledger) -> View:
    figures = ledger_lines(ledger, ledger.noise_sd)
    rows = ledger_rows(ledger)
    return View("Ledger", describe_ledger(ledger), figures, LEDGER_HEADERS, rows)


@view.register
def _(row: Finding) -> View:
    says = [f"{row.words}.", "It shows values of a row: clear it before you share the notebook."]
    figures = {"Score": f"{row.score:.4f}", "Severity": f"{row.severity:.2f}"}
    figures |= {name: text for name, text in row.kept.items() if name not in row.values}
    rows = [[name, one.text, one.usual, one.direction] for name, one in row.values.items()]
    headers = ("column", "value", "usual", "")
    return View(f"Row {row.row}", says, figures, headers, rows, _pictures(row))


def _pictures(row: Finding) -> list[str]:
    """Draw the reasons of a row, if the library for markup is installed."""
    try:
        from hushtable.charts.reasons import Pictures
    except ImportError:
        return []
    draw = Pictures(row.features, row.usual).of
    drawn = [draw(reason) for reason in row.reasons]
    return [str(picture) for picture in drawn if picture]


@view.register
def _(verdicts: Verdicts) -> View:
    says = "Keep them like the rows; only a release under a plan of verdicts may leave."
    made = _exact("exact counts of few rows, from which the rows can be read", verdicts, says)
    figures = {"Outliers": f"{verdicts.n_outliers:,}", "Fine": f"{verdicts.n_fine:,}"}
    return made._replace(figures=figures | dict(made.figures))


@view.register
def _(model: LearnedModel) -> View:
    of_model, of_verdicts = view(model.model), view(model.verdicts)
    says = [*of_model.sentences, f"With verdicts. {of_verdicts.sentences[0]}"]
    return of_model._replace(kind=f"{of_model.kind} with verdicts", sentences=says)
