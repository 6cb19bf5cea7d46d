"""``hushtable sketch``: rows to counts under a plan."""

from pathlib import Path
from typing import Annotated, Any

from hushtable import files
from hushtable.cli._options import Data, Json, Output, Person, Threads, option
from hushtable.cli._output import Target, finish, print_tally, tally
from hushtable.cli._persons import facts_of, kept, print_persons
from hushtable.cli._progress import watched
from hushtable.cli._rows import READS, Reads
from hushtable.counts.sketch import Sketch
from hushtable.errors import UsageError
from hushtable.plans.plan import Plan

_Plan = Annotated[Path, option("FILE", "Plan of hushtable plan draw.")]
_Most = Annotated[
    int | None, option("N", "With --person: rows of one person to count at most; 1.", min=1)
]


def sketch(
    data: Data,
    plan: _Plan,
    output: Output,
    person: Person = None,
    rows_per_person: _Most = None,
    threads: Threads = -1,
    reads: Reads = READS,
    as_json: Json = False,
) -> None:
    """Count rows under a plan and write the counts as a sketch.

    A sketch holds exact counts. It is not private: keep it, and send its release.

    Example:
      hushtable sketch patients.csv --drop id,name --plan plan.hush -o site.sketch.hush
    """
    if person is None and rows_per_person is not None:
        raise UsageError("--rows-per-person goes with --person, the column that tells persons")
    target = Target(output, [data, plan])
    drawn = files.read(plan).expect("plan").build(Plan.from_file)
    reader = reads.open_as(data, drawn.schema, keep=kept(person, drawn.schema))
    most: Any = {} if rows_per_person is None else {"rows_per_person": rows_per_person}
    with watched(reader, quiet=as_json) as watch:
        counted = Sketch.from_data(drawn, watch.reader, n_jobs=threads, person=person, **most)
    target.save(counted)
    facts = {
        "command": "sketch",
        "sketch": str(output),
        "rows": counted.n_rows,
        "plan_id": drawn.plan_id,
        "tally": tally(drawn.schema, counted.tally),
        **facts_of(counted.persons),
    }

    def text() -> None:
        print(f"Counted {counted.n_rows:,} rows under plan {drawn.plan_id[:12]}.")
        print_persons(counted.persons)
        print_tally(drawn.schema, counted.tally, counted.n_rows if person else watch.rows)
        print(f"Wrote {target}. It holds exact counts and is not private: keep it here.")
        if not drawn.data_dependent:
            print("What may leave is its release:")
            which = "" if drawn.horizon is None else " --periods site.periods.hush"
            print(f"  hushtable release {output}{which} --epsilon 1 -o site.hush")

    finish(as_json, facts, text)
