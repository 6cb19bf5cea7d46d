"""``hushtable sketch``: rows to counts under a plan."""

from pathlib import Path
from typing import Annotated

from hushtable import files
from hushtable.cli._options import Data, Json, Output, Threads, option
from hushtable.cli._output import Target, finish, print_tally, tally
from hushtable.cli._progress import watched
from hushtable.cli._rows import READS, Reads
from hushtable.counts.sketch import Sketch
from hushtable.plans.plan import Plan

_Plan = Annotated[Path, option("FILE", "Plan of hushtable plan draw.")]


def sketch(
    data: Data,
    plan: _Plan,
    output: Output,
    threads: Threads = -1,
    reads: Reads = READS,
    as_json: Json = False,
) -> None:
    """Count rows under a plan and write the counts as a sketch.

    A sketch holds exact counts. It is not private: keep it, and send its release.

    Example:
      hushtable sketch patients.csv --drop id,name --plan plan.hush -o site.sketch.hush
    """
    target = Target(output, [data, plan])
    drawn = files.read(plan).expect("plan").build(Plan.from_file)
    reader = reads.open_as(data, drawn.schema)
    with watched(reader, quiet=as_json) as watch:
        counted = Sketch.from_data(drawn, watch.reader, n_jobs=threads)
    target.save(counted)
    facts = {
        "command": "sketch",
        "sketch": str(output),
        "rows": counted.n_rows,
        "plan_id": drawn.plan_id,
        "tally": tally(drawn.schema, counted.tally),
    }

    def text() -> None:
        print(f"Counted {counted.n_rows:,} rows under plan {drawn.plan_id[:12]}.")
        print_tally(drawn.schema, counted.tally, watch.rows)
        print(f"Wrote {target}. It holds exact counts and is not private: keep it here.")
        if not drawn.data_dependent:
            print("What may leave is its release:")
            print(f"  hushtable release {output} --epsilon 1 -o site.hush")

    finish(as_json, facts, text)
