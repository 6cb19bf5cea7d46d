"""Public tables for the case `reasons`, and rows planted into them.

The FOLDER of --data has tables as published, each as NAME.csv:

diamonds, midwest       ggplot2 (R)
birthwt                 MASS (R)
Hdma                    Ecdat (R)
cars, weather           vega-datasets: cars, seattle-weather
mpg, penguins, taxis    seaborn-data
nyc_taxi                NAB, data/realKnownCause

diabetes, digits, breast cancer, and wine are scikit-learn's, and synthetic rows are drawn with
three noisy columns for each of four factors. A table whose file is absent is left out.

One of these is planted into the numbers of a table, in 1% of the rows, at least ten:

combination    a column takes the value of one of 60 random rows: the row that is farthest away in a
               related column (a rank correlation of .6 or more, if there is one); the value itself
               is in the middle 90%
far            a column takes a value 5 to 8 standard deviations from its mean
ordinary       nothing: 50 random rows do not change
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn import datasets

#: Tables with texts, dates, and missing values; columns that are left out, and dates.
READ = ("diamonds", "cars", "weather", "Hdma", "midwest", "birthwt")
DROPPED, DATES = {"cars": ["Name"], "midwest": ["PID", "county"]}, ("Year", "date")
#: Tables of numbers in files of a folder, and columns of them.
NUMBERS = {
    "diamonds": ["depth", "table", "price", "x", "y", "z", "carat"],
    "mpg": ["mpg", "displacement", "horsepower", "weight", "acceleration", "model_year"],
    "penguins": ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"],
    "taxis": ["fare", "tip", "tolls", "minutes", "distance", "hour"],
    "nyc_taxi": ["value", "diff", "diff2", "hour"],
}
#: Rows of a table of numbers at most.
MOST = 3_000
#: Least rank correlation of related columns; pairs to choose from if none are related; the middle
#: of a column; and random rows, where the farthest one gives its value.
RELATED, STRONGEST, MIDDLE, CANDIDATES = 0.6, 6, (0.05, 0.95), 60
#: Least and greatest distance of a far value in standard deviations; rows that stay as they are.
FAR, ORDINARY = (5.0, 8.0), 50

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


# --- tables ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReasonTables:
    """Tables whose files are in a folder; without a folder, only those of scikit-learn."""

    folder: Path | None

    def absent(self) -> list[str]:
        """Return the files that are not in the folder."""
        names = dict.fromkeys([*READ, *NUMBERS])
        return [f"{name}.csv" for name in names if self._path(name) is None]

    def complete(self, name: str) -> pd.DataFrame | None:
        """Return a whole table; None if its file is absent."""
        if (path := self._path(name)) is None:
            return None
        dates = [name for name in DATES if name in pd.read_csv(path, nrows=0)]
        return pd.read_csv(path, parse_dates=dates).drop(columns=DROPPED.get(name, []))

    def read(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """Yield tables of all kinds of columns; scikit-learn's if there is no folder."""
        if self.folder is None:
            yield from _shipped()
        for name in READ:
            if (frame := self.complete(name)) is not None:
                yield name, frame

    def numbers(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """Yield tables of numbers without missing values, 3,000 rows at most of each."""
        for name, columns in NUMBERS.items():
            if (frame := self.complete(name)) is not None:
                yield name, _few(_derived(name, frame)[columns])
        for name, frame in _shipped():
            yield name, _few(frame)
        rng = np.random.default_rng(0)
        factors = np.repeat(rng.normal(size=(MOST, 4)), 3, axis=1)
        columns = [f"s{j}" for j in range(factors.shape[1])]
        yield (
            "synthetic",
            pd.DataFrame(factors + 0.35 * rng.normal(size=factors.shape), None, columns),
        )

    def _path(self, name: str) -> Path | None:
        path = None if self.folder is None else self.folder / f"{name}.csv"
        return path if path is not None and path.is_file() else None


def _derived(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Add the columns of times and differences."""
    if name == "taxis":
        pickup, dropoff = (pd.to_datetime(frame[which]) for which in ("pickup", "dropoff"))
        minutes = (dropoff - pickup).dt.total_seconds() / 60
        return frame.assign(minutes=minutes, hour=pickup.dt.hour)
    if name == "nyc_taxi":
        at, value = pd.to_datetime(frame["timestamp"]), frame["value"]
        hour = at.dt.hour + at.dt.minute / 60
        return frame.assign(hour=hour, diff=value.diff(), diff2=value.diff(4))
    return frame


def _shipped() -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the tables of numbers that scikit-learn has."""
    diabetes = datasets.load_diabetes(as_frame=True, scaled=False).data
    yield "diabetes", diabetes.drop(columns="sex")
    pixels = datasets.load_digits().data[:, 1::4]
    yield "digits", pd.DataFrame(pixels, columns=[f"p{j}" for j in range(pixels.shape[1])])
    cells = datasets.load_breast_cancer().data[:, :20]
    yield "breast cancer", pd.DataFrame(cells, columns=[f"w{j}" for j in range(cells.shape[1])])


def _few(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows without missing values, a random part of them if they are many."""
    frame = frame.dropna().reset_index(drop=True).astype(float)
    if len(frame) <= MOST:
        return frame
    return frame.sample(MOST, random_state=0).reset_index(drop=True)


# --- planted rows ---------------------------------------------------------------------------------


class PlantedReasons(NamedTuple):
    """A table, some rows, the changed column of each, and how columns are related (d, d)."""

    frame: pd.DataFrame
    rows: Rows
    columns: Rows
    related: Floats


def combinations(frame: pd.DataFrame, seed: int) -> PlantedReasons:
    """Give a column of some rows a usual value that does not fit another column."""
    X, rng, rows = _chosen(frame, seed)
    before, ranks, related = X.copy(), frame.rank(pct=True).to_numpy(), relations(X)
    strongest = np.argsort(related.ravel())[-STRONGEST:]
    columns = np.zeros(len(rows), np.intp)
    for k, i in enumerate(rows):
        a = int(rng.integers(X.shape[1]))
        b = int(related[a].argmax())
        if related[a, b] < RELATED:
            a, b = (int(j) for j in np.unravel_index(rng.choice(strongest), related.shape))
        usual = np.flatnonzero((ranks[:, b] > MIDDLE[0]) & (ranks[:, b] < MIDDLE[1]))
        others = usual[rng.permutation(len(usual))[:CANDIDATES]]
        farthest = others[np.argmax(np.abs(ranks[others, a] - ranks[i, a]))]
        X[i, b], columns[k] = before[farthest, b], b
    changed = X[rows, columns] != before[rows, columns]
    planted = pd.DataFrame(X, columns=frame.columns)
    return PlantedReasons(planted, rows[changed], columns[changed], related)


def far_values(frame: pd.DataFrame, seed: int) -> PlantedReasons:
    """Give a column of some rows a value far from its mean."""
    X, rng, rows = _chosen(frame, seed)
    mean, sd, columns = X.mean(axis=0), X.std(axis=0), np.zeros(len(rows), np.intp)
    for k, i in enumerate(rows):
        j = int(rng.choice(X.shape[1], 1, replace=False)[0])
        X[i, j] = mean[j] + rng.choice([-1, 1], 1)[0] * rng.uniform(*FAR, 1)[0] * sd[j]
        columns[k] = j
    planted = pd.DataFrame(X, columns=frame.columns)
    return PlantedReasons(planted, rows, columns, relations(frame.to_numpy(float)))


def ordinary(frame: pd.DataFrame, seed: int) -> PlantedReasons:
    """Choose rows that do not change."""
    rng, most = np.random.default_rng(seed), min(ORDINARY, len(frame))
    rows = rng.choice(len(frame), most, replace=False)
    return PlantedReasons(frame, rows, np.zeros(most, np.intp), relations(frame.to_numpy(float)))


#: The function that plants each kind of rows.
PLANTED: dict[str, Callable[[pd.DataFrame, int], PlantedReasons]] = {
    "combination": combinations,
    "far": far_values,
    "ordinary": ordinary,
}


def relations(X: Floats) -> Floats:
    """Return the absolute rank correlation of each two columns (d, d), with 0 on the diagonal."""
    related = np.abs(np.nan_to_num(spearmanr(X).statistic))
    np.fill_diagonal(related, 0.0)
    return related


def _chosen(frame: pd.DataFrame, seed: int) -> tuple[Floats, np.random.Generator, Rows]:
    """Return the values, and the rows to change: 1% of them, ten at least."""
    rng, X = np.random.default_rng(seed), frame.to_numpy(float).copy()
    return X, rng, rng.choice(len(X), max(10, len(X) // 100), replace=False)
