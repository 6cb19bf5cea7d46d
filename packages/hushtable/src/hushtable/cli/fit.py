"""``hushtable fit``: fit a model to rows."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from hushtable.cli import options
from hushtable.cli.options import (
    HUSHTABLE,
    READS,
    Detector,
    Reads,
    coverage_blocks,
    draw_spelled,
    flag,
    note_doubts,
    number,
    option,
    person_facts,
    persons_blocks,
    understanding_facts,
)
from hushtable.cli.result import (
    Block,
    CommandResult,
    Facts,
    Paragraph,
    Target,
    count,
    for_machines,
    show,
    shown,
    tally,
    tally_blocks,
)
from hushtable.data.options import RowOptions, first_names, names_in, notes
from hushtable.data.quality import followers_words
from hushtable.data.readers import Reader
from hushtable.data.understanding import refuse
from hushtable.describe.plan import texts_of_rows, values_of_rows
from hushtable.errors import UsageError
from hushtable.plans.draws import Draw
from hushtable.progress import watched
from hushtable.words.doubts import shape_words

if TYPE_CHECKING:
    from hushtable.detectors import TableDetector


@dataclass(frozen=True)
class FitSettings:
    """The detector, and its settings."""

    detector: Detector = HUSHTABLE
    tables: Annotated[int, option("M", "Number of tables.", min=1, max=10_000)] = 100
    passes: Annotated[
        str,
        option(
            "auto|1|2",
            "1, 2 or auto. 2 counts the rows in dense regions a second time (hushtable only): "
            "slower, but more accurate. auto means 2, except with --novelty or --context.",
        ),
    ] = "auto"
    novelty: Annotated[
        bool,
        flag(
            "--novelty",
            "The rows are known to be clean, so that everything unlike them is abnormal (hushtable "
            "only). If 3% of the rows or more are outliers, the default detects better.",
        ),
    ] = False
    context: options.Context = None
    relations: Annotated[
        bool,
        options.flag(
            "--relations",
            "Also compare numeric columns with what the other columns predict (hushtable only).",
        ),
    ] = False
    contamination: Annotated[
        str, option("SHARE", "Share of the rows to flag as outliers, or auto.")
    ] = "auto"
    seed: options.Seed = None

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the detector; refuse those that it does not have."""
        share: str | float = self.contamination
        if share != "auto" and not 0.0 < (share := number(self.contamination)) <= 0.5:
            raise UsageError(
                f"--contamination {self.contamination}: needs auto, or a number above 0 and at "
                "most 0.5"
            )
        if self.passes not in ("auto", "1", "2"):
            raise UsageError(f"--passes {self.passes}: needs auto, 1 or 2")
        parameters = {"n_tables": self.tables, "random_state": self.seed, "contamination": share}
        given = {
            "--novelty": self.novelty, "--context": self.context is not None,
            "--passes 2": self.passes == "2", "--relations": self.relations,
        }  # fmt: skip
        if draw_spelled(self.detector).name == HUSHTABLE:
            return parameters | {
                "passes": self.passes if self.passes == "auto" else int(self.passes),
                "novelty": self.novelty,
                "context": None if self.context is None else names_in(self.context),
                "relations": self.relations,
            }
        for name, value in given.items():
            if value:
                raise UsageError(f"{name} works only with --detector hushtable")
        return parameters


def fit(
    data: options.Data,
    output: options.Output,
    reads: Reads = READS,
    person: options.Person = None,
    rows_per_person: options.MostRows = None,
    *,
    settings: FitSettings,
) -> CommandResult:
    """Fit a detector to rows and write it as a model.

    Ranges and categories are taken from the rows, and the model contains them. Text in files is
    recognised as numbers, dates and categories. If a column is ambiguous, the command refuses the
    rows and names the options that resolve it; hushtable check shows how each column is read. With
    --read omop=person, the ranges are the public ranges of the concept set.

    Example:
      hushtable fit patients.csv --drop id,name -o model.hush
    """
    parameters = settings.parameters() | {"n_jobs": -1}
    draw = draw_spelled(settings.detector)
    persons = options.of_persons(person, rows_per_person)
    target = Target(output, [data])
    reader = reads.open(data, [person] if person else [])
    model, n_rows, of_omop = fit_rows(data, reads, reader, draw, parameters, persons)
    with target.writing():
        model.save(output)
    facts = {"command": "fit", "model": str(output), **_facts(model, n_rows), **of_omop}
    return CommandResult(facts, _blocks(model, facts, target))


def fit_rows(
    data: str,
    reads: RowOptions,
    reader: Reader,
    detector: Draw,
    settings: dict[str, Any],
    persons: dict[str, Any],
) -> tuple["TableDetector", int, dict[str, object]]:
    """Return a fitted detector, the number of its rows, and facts about OMOP columns.

    Refuses columns in doubt, and notes what a person should check.
    """
    of_omop: dict[str, object] = {}
    if reads.recipe is not None:
        coverage = reads.coverage(reader)
        if not for_machines():  # before anything is refused
            show(*coverage_blocks(coverage))
        chosen = reads.drawn(reader)
        notes.append(_columns_words(reads.recipe.few(coverage), chosen.schema, chosen is reads))
        persons, of_omop = persons | {"schema": chosen.schema}, {"coverage": coverage}
    model = detector.estimator_class()().set_params(**settings)
    with watched(reader) as watch, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # such rows are refused below
        model.fit(watch.reader, **persons)
    n_rows = model.sketch_.first_pass().n_rows if "person" in persons else watch.rows
    refuse(model.understanding_, model.reading_, data, personal=True)
    note_doubts(model.understanding_)
    notes.extend(f"{data}: {words}" for words in shape_words(n_rows, model.understanding_))
    if not (settings.get("relations") or settings.get("context")):
        bound = followers_words(model.followers())
        notes.extend([f"{data}: {bound}"] if bound else [])
    return model, n_rows, of_omop


def _columns_words(few: list[str], schema: Any, named: bool) -> str:
    words = (
        f"most rows have no value of {', '.join(few)}"
        if few
        else "most rows have a value of every concept"
    )
    if named:
        more = "; without these columns, the detector finds more in the others" if few else ""
        return f"{words}{more}"
    out = ": left out" if few else ""
    return (
        f"{words}{out}. To confirm the columns that are used, or to choose others: "
        f"--columns {','.join(schema.names)}"
    )


def _facts(model: "TableDetector", n_rows: int) -> dict[str, object]:
    plan = model.plan_
    return {
        "detector": type(model).__name__,
        "rows": n_rows,
        "features": len(plan.schema.of_rows),
        "tables": plan.family.n_tables,
        "cells": plan.family.n_cells,
        "offset": model.offset_,
        "plan_id": plan.plan_id,
        "tally": tally(plan.schema, model.sketch_.tally),
        "texts": texts_of_rows(plan.schema),
        "columns": understanding_facts(model.understanding_),
        **person_facts(model.persons_),
    }


def _blocks(model: "TableDetector", facts: Facts, target: Target) -> Iterator[Block]:
    schema, differences = model.plan_.schema.of_rows, model.plan_.schema.differences
    of_rows = values_of_rows(model.plan_.schema)
    n_texts = len(schema.categorical_names)
    yield (
        f"Fitted {facts['detector']} to {facts['rows']:,} rows: {facts['tables']:,} tables, "
        f"{facts['cells']:,} cells."
    )
    yield from persons_blocks(model.persons_)
    yield (
        f"{count(len(schema) - n_texts, 'numeric column')}, {count(n_texts, 'categorical column')}."
    )
    if model.plan_.context:
        yield (
            f"Rows are compared with rows of the same context: {first_names(model.plan_.context)}."
        )
    if differences is not None:
        n = len(differences.columns)
        columns = "1 column is" if n == 1 else f"{n:,} columns are"
        yield f"{columns} also compared with what the context predicts."
    yield f"Rows that score below {model.offset_:.4g} {model.plan_.score.unit} are outliers."
    yield from tally_blocks(schema, model.sketch_.tally, facts["rows"])
    yield f"Wrote {target}."
    yield Paragraph([
        shown(f"It contains values of your rows ({of_rows}) and exact counts.")
        if of_rows
        else "Its ranges are public. It holds exact counts of your rows.",
        "It also contains typical values: quantiles, and shares of categories or of frequent "
        "numbers.",
        "Keep it where the rows are.",
    ])  # fmt: skip
