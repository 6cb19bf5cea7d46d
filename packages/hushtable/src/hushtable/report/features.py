"""Features in a report: their ranges or categories, counts, and drift."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hushtable.counts.base import Counts
from hushtable.describe.plan import values
from hushtable.report.scores import Scores

#: Features that the table lists; the JSON of ``hushtable inspect`` has them all.
MOST = 200


@dataclass(frozen=True)
class Features:
    """A table of the plan's features, the first of many.

    Its columns, by header: names, ranges or categories, and where there are any, rows in which a
    value was missing or outside the plan, and the drift beside what chance makes of it.
    """

    columns: Mapping[str, Sequence[str]]
    zeros: Sequence[str]  # headers of columns that would hold zeros only
    tallied: bool  # whether anybody counted what was missing and outside
    doubtful: Sequence[str]  # names of features in which most rows lie outside the plan
    n_features: int  # all of them

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The table, row by row."""
        return list(zip(*self.columns.values(), strict=True))


def features_of(counts: Counts, scores: Scores | None, shown: bool) -> Features:
    """Return the features of the plan of counts, beside other rows where those were scored.

    ``shown`` is whether to show ranges and categories.
    """
    schema = counts.plan.schema
    columns = {
        "feature": schema.names[:MOST],
        "range or categories": [values(f, shown) for f in schema.features[:MOST]],
    }
    tallies = {}
    if counts.tally is not None:
        tallies["rows counted"] = counts.tally
    if scores is not None:
        tallies["these rows"] = scores.tally
    tallied, zeros = bool(tallies), []
    for whose, tally in tallies.items():
        for which, what in enumerate(("missing", "outside")):
            if tally[:, which].any():
                columns[f"{what} in {whose}"] = [f"{n:,}" for n in tally[:MOST, which].tolist()]
            else:
                zeros.append(f"{what} in {whose}")
    drift = None if scores is None else scores.drift
    if drift is not None and drift.features:
        distances = [drift.features.get(name, math.nan) for name in columns["feature"]]
        columns["drift"] = ["" if math.isnan(x) else f"{x:z.4f}" for x in distances]
        levels = [drift.feature_levels.get(name, math.nan) for name in columns["feature"]]
        columns["by chance up to"] = ["" if math.isnan(x) else f"{x:.4f}" for x in levels]
    doubtful: list[str] = []
    if tallies:
        _, newest = tallies.popitem()  # these rows, if there are any
        rows = scores.n_rows if scores is not None else counts.n_rows
        outside = zip(schema.names, newest[:, 1].tolist(), strict=True)
        doubtful = [name for name, n in outside if 2 * n > rows]
    return Features(columns, zeros, tallied, doubtful, len(schema))
