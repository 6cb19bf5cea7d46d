"""All tables and figures of the paper as one Markdown page."""

from collections.abc import Sequence
from pathlib import Path

from hushtable_bench.data import LabelledSet
from hushtable_bench.paper import figures, promises, tables
from hushtable_bench.paper.experiments import EPSILON_OF_PARTICIPANTS, SHARE_OF_OUTLIERS
from hushtable_bench.paper.sets import PaperSet
from hushtable_bench.results import Results

Loaded = Sequence[tuple[PaperSet, LabelledSet, int]]

ACCURACY = "Mean ± standard deviation over the seeds, and the paper's in brackets."
EXPLAINED = f"Further than {promises.TOLERANCE} from the paper, on sets that can be compared:"
TIME = (
    "Seconds to fit and score with one thread: those of LSH iTables, and ratios to them; the "
    "paper's in brackets."
)
#: The last three sections: experiment, title, what the table shows, table.
SECTIONS = (
    (
        "local",
        "Figure 1: local detectors",
        f"A participant holds {SHARE_OF_OUTLIERS:.0%} of the outliers and some of the inliers; "
        "iForest and LODA learn from its rows alone, LSH iTables from the merged tables. All "
        "rows are scored.",
        tables.local_table,
    ),
    (
        "epsilon",
        "Figure 2: two participants with noise",
        "ε is the paper's: of one table by itself. *Really* is the total of one row over "
        "everything that its participant releases.",
        tables.epsilon_table,
    ),
    (
        "participants",
        "Table 4: two to ten participants",
        f"ε = {EPSILON_OF_PARTICIPANTS} as the paper counts it, for one table; *really* is the "
        "total of one row.",
        tables.participants_table,
    ),
)


def markdown(results: Results, loaded: Loaded) -> str:
    """Return the tables for which there are results; the paper's figures stand in brackets."""
    parts = ["# The paper's experiments\n", "## Table 1: data\n", tables.data_table(loaded)]
    if results.select("central"):
        parts += ["\n## Table 2: ROC-AUC\n", f"{ACCURACY}\n", tables.accuracy_table(results)]
        parts += [f"\n{EXPLAINED}\n", promises.explanations(results)]
        parts += ["\nWhat the paper does not have:\n", tables.ours_table(results)]
        times = tables.time_table(results)
        if times.count("\n") > 1:
            parts += ["\n## Table 3: time\n", f"{TIME}\n", times]
    for experiment, title, text, table in SECTIONS:
        if results.select(experiment):
            parts += [f"\n## {title}\n", f"{text}\n", table(results)]
    return "\n".join(parts)


def write(results: Results, loaded: Loaded, folder: Path) -> list[Path]:
    """Write the page and the figures; return the files."""
    page = folder / "paper.md"
    page.write_text(markdown(results, loaded) + "\n")
    files = [page]
    if results.select("local"):
        files += figures.local_figure(results, folder)
    if results.select("epsilon"):
        files += figures.epsilon_figure(results, folder)
    return files
