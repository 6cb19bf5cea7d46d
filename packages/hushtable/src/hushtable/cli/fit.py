"""``hushtable fit``: rows to a model."""

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any

import typer

from hushtable.cli import options
from hushtable.cli.counts import HUSHTABLE, Detector
from hushtable.cli.options import flag, number, option
from hushtable.cli.output import Target, shown, tally, tally_blocks
from hushtable.cli.progress import watched
from hushtable.cli.result import Block, CommandResult, Paragraph, for_machines, show
from hushtable.cli.rows import (
    READS,
    Reads,
    coverage_blocks,
    note_doubts,
    person_facts,
    persons_blocks,
    understanding_blocks,
    understanding_facts,
)
from hushtable.data.options import RowOptions, first_names, names_in, notes
from hushtable.data.readers import Reader
from hushtable.data.table_shape import shape_words
from hushtable.data.understanding import refuse, understood
from hushtable.describe.plan import texts_of_rows, values_of_rows
from hushtable.errors import UsageError

_Detector = Annotated[Detector, typer.Option(help="Detector to fit.")]
_Passes = Annotated[
    str,
    option(
        "auto|1|2",
        "2 counts the denser rows once more (hushtable): slower, more accurate; auto does, except "
        "with --novelty and --context.",
    ),
]
_Relations = Annotated[
    bool,
    options.flag("--relations", "Judge columns of numbers by what the others predict (hushtable)."),
]
_Novelty = Annotated[
    bool,
    flag(
        "--novelty",
        "The rows are known to be clean: whatever is unlike them is abnormal (hushtable). "
        "Where 3% of them or more are outliers, the default detects better.",
    ),
]
_Contamination = Annotated[str, option("SHARE", "Share of the rows to call outliers, or auto.")]
_KeepText = Annotated[
    str | None,
    option(
        "A,B,...",
        "Keep these columns of text, though they look like identifiers, names or free text: all "
        "their texts are in the model then.",
    ),
]
_Most = Annotated[
    int | None, option("N", "With --person: rows of one person to use at most; 1.", min=1)
]


def fit(
    data: options.Data,
    output: options.Output,
    detector: _Detector = HUSHTABLE,
    tables: options.Tables = 100,
    passes: _Passes = "auto",
    novelty: _Novelty = False,
    context: options.Context = None,
    relations: _Relations = False,
    contamination: _Contamination = "auto",
    seed: options.Seed = None,
    threads: options.Threads = -1,
    reads: Reads = READS,
    keep_text: _KeepText = None,
    person: options.Person = None,
    rows_per_person: _Most = None,
    table: options.Table = False,
) -> CommandResult:
    """Fit a detector to rows and write it as a model.

    Ranges and categories are read off the rows, and are in the model. Texts of files are read as
    the numbers, dates and categories that they say; where that is in doubt, the rows are refused,
    with the options that resolve it; hushtable check shows what is understood. With --omop, the
    ranges are the public ones of the concept set.

    Example:
      hushtable fit patients.csv --drop id,name -o model.hush
    """
    settings: dict[str, Any] = {"n_tables": tables, "n_jobs": threads, "random_state": seed}
    settings["contamination"] = _contamination(contamination)
    settings |= _settings(detector, passes, novelty, context, relations)
    persons = _persons(person, rows_per_person)
    target = Target(output, [data])
    reader = _keeping(reads.open(data, [person] if person else []), names_in(keep_text or ""))
    if table and not for_machines():  # before anything is refused
        reader = reader.repeatable()
        show(*understanding_blocks(understood(reader, None, threads)[0]))
    known, of_omop = _of_omop(reads, reader)
    model, n_rows = _fitted(detector, settings, reader, persons | known)
    refuse(model.understanding_, model.reading_, data, personal=True)
    note_doubts(model.understanding_)
    notes.extend(f"{data}: {words}" for words in shape_words(n_rows, model.understanding_))
    with target.writing():
        model.save(output)
    facts = {"command": "fit", "model": str(output), **_facts(model, n_rows), **of_omop}
    return CommandResult(facts, _blocks(model, facts, target))


def _of_omop(reads: RowOptions, reader: Reader) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what `fit` takes of OMOP rows, and what is said of them; nothing of other rows."""
    if reads.recipe is None:
        return {}, {}
    coverage = reads.coverage(reader)
    if not for_machines():  # before anything is refused
        show(*coverage_blocks(coverage))
    chosen = reads.drawn(reader)
    notes.append(_columns_words(reads.recipe.few(coverage), chosen.schema, chosen is reads))
    return {"schema": chosen.schema}, {"coverage": coverage}


def _columns_words(few: list[str], schema: Any, named: bool) -> str:
    """Say which OMOP columns were used, and how to choose others; ``named``: they were chosen."""
    words = (
        f"most rows have no value of {', '.join(few)}"
        if few
        else "most rows have a value of every concept"
    )
    if named:
        more = "; without such columns, more is found in the others" if few else ""
        return f"{words}{more}"
    out = ": left out" if few else ""
    return (
        f"{words}{out}. To confirm the columns that are used, or to choose others: "
        f"--columns {','.join(schema.names)}"
    )


def _settings(
    detector: Detector, passes: str, novelty: bool, context: str | None, relations: bool
) -> dict[str, Any]:
    """Return the settings that one detector has."""
    if passes not in ("auto", "1", "2"):
        raise UsageError(f"--passes {passes}: needs auto, 1 or 2")
    if detector is HUSHTABLE:
        times = passes if passes == "auto" else int(passes)
        names = None if context is None else names_in(context)
        return {"passes": times, "novelty": novelty, "context": names, "relations": relations}
    given = {"--novelty": novelty, "--context": context is not None, "--passes 2": passes == "2"}
    given["--relations"] = relations
    if any(given.values()):
        one = next(name for name, there in given.items() if there)
        raise UsageError(f"{one} needs --detector hushtable")
    return {}


def _persons(person: str | None, most: int | None) -> dict[str, Any]:
    """Return what `fit` takes of persons."""
    if person is None and most is not None:
        raise UsageError("--rows-per-person goes with --person, the column that tells persons")
    return {} if person is None else {"person": person, "rows_per_person": most or 1}


def _keeping(reader: Reader, names: list[str]) -> Reader:
    """Return a reader whose named columns are categories, however they look."""
    if not names:
        return reader
    reader.select(names)  # are they there, and not left out?
    kinds = {**reader.reading.kinds, **dict.fromkeys(names, "category")}
    return replace(reader, reading=replace(reader.reading, kinds=kinds))


def _fitted(
    detector: Detector,
    settings: dict[str, Any],
    reader: Reader,
    given: dict[str, Any],
) -> tuple[Any, int]:
    """Return a detector fitted to the rows, and their number; ``given`` is what `fit` takes."""
    # Imported only once the files are known to be there.
    from hushtable.detectors.load import by_draw

    model = by_draw()[detector.draw]().set_params(**settings)
    with watched(reader) as watch, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what it warns of is refused
        model.fit(watch.reader, **given)
    return model, model.sketch_.first_pass().n_rows if "person" in given else watch.rows


def _facts(model: Any, n_rows: int) -> dict[str, Any]:
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


def _blocks(model: Any, facts: dict[str, Any], target: Target) -> Iterator[Block]:
    schema, differences = model.plan_.schema.of_rows, model.plan_.schema.differences
    of_rows = values_of_rows(model.plan_.schema)
    n_texts = len(schema.categorical_names)
    yield (
        f"Fitted {facts['detector']} to {facts['rows']:,} rows: {facts['tables']:,} tables, "
        f"{facts['cells']:,} cells."
    )
    yield from persons_blocks(model.persons_)
    yield f"{len(schema) - n_texts:,} columns are numeric, {n_texts:,} categorical."
    if model.plan_.context:
        yield f"Rows are compared within their context: {first_names(model.plan_.context)}."
    if differences is not None:
        n = len(differences.columns)
        columns = "1 column is" if n == 1 else f"{n:,} columns are"
        yield f"{columns} compared with what it predicts, too."
    yield f"Rows that score below {model.offset_:.4g} {model.plan_.score.unit} are outliers."
    yield from tally_blocks(schema, model.sketch_.tally, facts["rows"])
    yield f"Wrote {target}."
    yield Paragraph([
        shown(f"It holds values of your rows: {of_rows}; and exact counts.")
        if of_rows
        else "Its ranges are public. It holds exact counts of your rows.",
        "Usual values are in it, too: quantiles, and shares of categories or of few numbers.",
        "Keep it where the rows are.",
    ])  # fmt: skip


def _contamination(value: str) -> str | float:
    if value == "auto":
        return value
    share = number(value)
    if not 0.0 < share <= 0.5:
        raise UsageError(f"--contamination {value}: needs auto, or a share above 0 and at most 0.5")
    return share
