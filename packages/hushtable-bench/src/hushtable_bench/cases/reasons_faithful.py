"""Judge the reasons of the 20 lowest rows of tables, for the case `reasons`.

A reason has to state what is unusual: the direction, the small share of rows, or the other column.
The strongest column of a row is the one whose value lies farthest from its mean in standard
deviations; for a text or a missing value, a column counts that is 1 in rows with it and 0 in
others. A value within one standard deviation must not be the first reason.

Rows have to leave the list when the named columns are repaired. This module takes the replacement
values from the table itself: the median, or the most frequent value of a column of texts or of at
most ten distinct numbers. A repaired row has to score above the 21st lowest score of the table, and
it must not be in the list of the table in which it replaces the original row.

For comparison, the 20 lowest rows of scikit-learn's IsolationForest (with one-hot texts, and
medians for missing values) are repaired in the same way, in the columns of SHAP's three largest
shares.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest

from hushtable import HushTable

#: Rows of a list, and the most columns that are repaired.
LISTED, MOST_REPAIRED = 20, 3
#: Up to this many distinct numbers, the most frequent one is usual, and not the median.
FEW_NUMBERS = 10
#: Share of the largest distance from which on a column counts as strongest, too.
TIED = 0.999

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FaithfulTable:
    """Judges the reasons of a table's lowest rows: numbers of rows, and of reasons."""

    table: str
    rows: int
    reasons: int
    #: Reasons without a direction, a share of rows, or a partner.
    plain: int
    #: Rows whose first reason is a usual value, and rows without any reason.
    weak: int
    silent: int
    #: Rows whose strongest column is first or in a pair; and rows in which it is named at all.
    first: int
    named: int
    #: Rows that leave the list when repaired: by scores, by the list itself, and by the claim.
    left: int
    unlisted: int
    claimed: int


@dataclass(frozen=True)
class PeerTable:
    """Judges SHAP's shares of a forest's lowest rows: numbers of rows."""

    table: str
    rows: int
    weak: int
    first: int
    named: int
    left: int


def numbers_of(column: "pd.Series[Any]") -> Floats | None:
    """Return a column as numbers, NaN for missing values; None for texts."""
    if pd.api.types.is_datetime64_any_dtype(column):
        return np.where(column.isna(), np.nan, column.astype("int64").to_numpy(float))
    return column.to_numpy(float) if pd.api.types.is_numeric_dtype(column) else None


def distances(frame: pd.DataFrame) -> Floats:
    """Return how far each value is from its column's mean, in standard deviations (n, d)."""
    found = np.zeros(frame.shape)
    for j, name in enumerate(frame.columns):
        column = frame[name]
        if (numbers := numbers_of(column)) is None:
            found[:, j] = _of_share(column.map(column.value_counts(normalize=True)))
        else:
            found[:, j] = np.abs(numbers - np.nanmean(numbers)) / (np.nanstd(numbers) + 1e-30)
        missing = column.isna().to_numpy()
        found[missing, j] = _of_share(missing.mean())
    return found


def _of_share(share: Any) -> Any:
    """Return how many standard deviations from the mean a 1 is, in a column with so many ones."""
    return np.sqrt((1.0 - share) / np.maximum(share, 1e-9))


def usual_values(frame: pd.DataFrame) -> dict[str, object]:
    """Return the median of each column, or its most frequent value if it has few or texts."""
    found = dict[str, object]()
    for name in frame.columns:
        known = frame[name].dropna()
        if numbers_of(known) is None or known.nunique() <= FEW_NUMBERS:
            found[name] = known.value_counts().index[0]
        else:
            found[name] = known.sort_values().iloc[(len(known) - 1) // 2]
    return found


def repaired(
    frame: pd.DataFrame, row: int, columns: Iterable[str], usual: Mapping[str, object]
) -> pd.DataFrame:
    """Return one row with usual values in place of its own."""
    one = frame.iloc[[row]].copy()
    for name in columns:
        one[name] = pd.Series([usual[name]], one.index).astype(frame[name].dtype)
    return one


def look_through(name: str, frame: pd.DataFrame) -> FaithfulTable:
    """Judge the reasons of the rows with HushTable's lowest scores."""
    detector = HushTable(random_state=0).fit(frame)
    far, usual, names = distances(frame), usual_values(frame), list(frame)
    bar = np.sort(detector.score_samples(frame))[LISTED]
    rows = detector._lowest(frame, LISTED).rows
    sums = np.zeros(9, int)
    for row in rows:
        why, z = row.detail.why, far[row.row]
        strongest = {names[j] for j in np.flatnonzero(z >= TIED * z.max())}
        reasons, one = why.reasons, repaired(frame, row.row, why.repaired, usual)
        plain = [
            r
            for r in reasons
            if not (r.partner or r.phrase.direction or r.phrase.share is not None)
        ]
        weak = reasons and not reasons[0].partner and z[names.index(reasons[0].feature)] < 1.0
        heard = [r for k, r in enumerate(reasons) if k == 0 or r.partner]
        after = pd.concat([frame.iloc[: row.row], one, frame.iloc[row.row + 1 :]])
        listed = {other.row for other in detector._lowest(after, LISTED).rows}
        sums += (
            len(reasons), len(plain), bool(weak), not reasons,
            any(strongest.intersection(r.columns) for r in heard),
            any(strongest.intersection(r.columns) for r in reasons),
            detector.score_samples(one)[0] > bar, row.row not in listed, why.enough,
        )  # fmt: skip
    return FaithfulTable(name, len(rows), *sums.tolist())


class ForestShares:
    """SHAP's shares of the columns in the scores of an IsolationForest."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._levels = {
            name: None
            if numbers_of(frame[name]) is not None
            else sorted(frame[name].dropna().unique())
            for name in frame.columns
        }
        self._medians = {n: float(np.nanmedian(numbers_of(frame[n]))) for n in self._numeric}
        widths = [1 if levels is None else len(levels) for levels in self._levels.values()]
        self._first = np.cumsum([0, *widths[:-1]])
        self._forest = IsolationForest(random_state=0).fit(self._encoded(frame))
        self.scores = self.score(frame)

    @property
    def _numeric(self) -> list[str]:
        return [name for name, levels in self._levels.items() if levels is None]

    def score(self, rows: pd.DataFrame) -> Floats:
        return np.asarray(self._forest.score_samples(self._encoded(rows)), np.float64)

    def shares(self, rows: pd.DataFrame) -> Floats:
        """Return the shares (n, d): high makes a row an outlier."""
        import shap

        shares = -shap.TreeExplainer(self._forest).shap_values(self._encoded(rows))
        return np.asarray(np.add.reduceat(shares, self._first, axis=1), np.float64)

    def _encoded(self, rows: pd.DataFrame) -> Floats:
        parts = []
        for name, levels in self._levels.items():
            if levels is None:
                numbers = numbers_of(rows[name])
                parts.append(np.where(np.isnan(numbers), self._medians[name], numbers)[:, None])
            else:
                values = rows[name].to_numpy(object)
                parts.append((values[:, None] == np.array(levels, object)).astype(float))
        return np.hstack(parts)


def look_through_peer(name: str, frame: pd.DataFrame) -> PeerTable:
    """Judge SHAP's shares of the rows with a forest's lowest scores."""
    forest, far, usual = ForestShares(frame), distances(frame), usual_values(frame)
    order = np.argsort(forest.scores, kind="stable")
    rows, bar = order[:LISTED].tolist(), forest.scores[order[LISTED]]
    shares = forest.shares(frame.iloc[rows])
    sums = np.zeros(4, int)
    for row, blamed in zip(rows, np.argsort(-shares, axis=1, kind="stable"), strict=True):
        top, z = blamed[:MOST_REPAIRED], far[row]
        strongest = z >= TIED * z.max()
        one = repaired(frame, row, frame.columns[top], usual)
        sums += z[top[0]] < 1.0, strongest[top[0]], strongest[top].any(), forest.score(one)[0] > bar
    return PeerTable(name, len(rows), *sums.tolist())
