"""Fitted detectors, rows that are hard to score alike, and the library's scores of them.

Every runtime is held against the same: ``for case in everyday(): ... case.rows, case.scores``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hushtable import Feature, HushTable, LSHiTables, Schema
from hushtable.data.calendar import parts_of
from hushtable.data.history import history_names
from hushtable.history import history_columns
from hushtable_bench import ACE, RotatedRSHash, RSHash, data

#: By the name of what they fit.
DETECTORS: dict[str, Any] = {
    "one pass": lambda: HushTable(passes=1, random_state=7),
    "two passes": lambda: HushTable(passes=2, random_state=7),
    "lsh_itables": lambda: LSHiTables(random_state=7),
}
#: Those whose tables are of other families, or whose scores follow another rule.
OTHERS: dict[str, Any] = {
    "novelty": lambda: HushTable(novelty=True, random_state=7),
    "rs_hash": lambda: RSHash(n_tables=20, random_state=7),
    "rotated_rs_hash": lambda: RotatedRSHash(n_tables=20, random_state=7),
    "ace": lambda: ACE(n_tables=8, n_bits=9, random_state=7),
}
#: Labelled sets of $HUSHTABLE_DATA; the first three are for every day.
SETS = (
    "29_Pima", "45_wine", "4_breastw", "15_Hepatitis", "23_mammography", "27_PageBlocks",
    "38_thyroid", "43_WDBC", "47_yeast", "6_cardio",
)  # fmt: skip
#: Columns of `mixed_rows`, by what they hold.
NUMBERS = ("age", 'a "quoted" name', "select", "x; drop table data; --", "naïve ☃")
TEXTS = ("ward", "group'; drop table data; --")
#: A column that holds one value.
CONSTANT = "same"
_WARDS = ("north", "O'Hara", 'the "old" one', "'; drop table data; --", "ünï ☃", "a\\b", "nan ")
_GROUPS = ("a", "b", "%s {0} $1 :x ?", "Ab")
_MOST = 5_000


@dataclass(frozen=True)
class Scored:
    """A fitted detector, rows (n,) that were read from nowhere, and their scores (n,) float64."""

    name: str
    detector: Any
    rows: pa.Table
    scores: Any

    @property
    def records(self) -> list[list[Any]]:
        """The rows as lists of Python values, in the order of the columns; None is missing."""
        columns = [column.to_pylist() for column in self.rows.columns]
        return [list(row) for row in zip(*columns, strict=True)]


def everyday(n_rows: int = 40) -> Iterator[Scored]:
    """Yield cases with categories, in a few seconds; labelled sets are `of_set`'s."""
    for name in (*DETECTORS, *OTHERS):
        yield mixed(name, n_rows)


def mixed(detector: str, n_rows: int = 100) -> Scored:
    """Fit a detector to numbers and categories under hostile names."""
    rows = mixed_rows(600)
    return _scored(detector, f"mixed, {detector}", rows, rows.slice(0, n_rows))


def by_time(n_rows: int = 60) -> Scored:
    """Fit a detector to points in time; the rows have their parts, as an export takes them."""
    rng = np.random.default_rng(7)
    seconds = rng.integers(0, 3 * 365 * 86_400, 600) + 1_700_000_000.0
    cost = rng.lognormal(3.0, 1.0, 600)
    at = pa.array(seconds.astype("M8[s]"))
    model = HushTable(time="at", random_state=7).fit(pa.table({"at": at, "cost": cost}))
    rows = pa.table({"cost": cost, **parts_of(seconds)}).slice(0, n_rows)
    rows = pa.concat_tables([rows, hostile(model.plan_.schema, rows)])
    return Scored("points in time", model, rows, model.score_samples(rows))


def neutral(n_rows: int = 60) -> Scored:
    """Fit a detector to the columns of a history, of which some are missing."""
    rng = np.random.default_rng(7)
    who, at = rng.integers(0, 20, 600), np.arange(600)
    readings = pa.table({"who": who, "at": at, "pulse": rng.normal(70, 9, 600)})
    rows = history_columns(readings, entity="who", time="at").select(history_names(["pulse"]))
    ranges = [(-6, 6), (-6, 6), (-4, 3), (0, 20)]
    features = [
        Feature.numeric(name, low=low, high=high, neutral=True)
        for name, (low, high) in zip(rows.column_names, ranges, strict=True)
    ]
    model = HushTable(random_state=7).fit(rows, schema=Schema(features))
    rows = pa.concat_tables([rows.slice(0, n_rows), hostile(model.plan_.schema, rows)])
    return Scored("a history", model, rows, model.score_samples(rows))


def usual(n_rows: int = 60) -> Scored:
    """Fit a detector to columns with a usual value, of which some are missing."""
    rng = np.random.default_rng(7)
    values = pa.array(rng.normal(4.2, 0.4, 600), mask=rng.random(600) < 0.1)
    sexes = pa.array(rng.choice(["female", "male"], 600), mask=rng.random(600) < 0.1)
    rows = pa.table({"potassium": values, "sex": sexes})
    schema = Schema([
        Feature.numeric("potassium", low=0, high=12, usual=4.1),
        Feature.categorical("sex", ["female", "male"], usual="female"),
    ])  # fmt: skip
    model = HushTable(random_state=7).fit(rows, schema=schema)
    rows = pa.concat_tables([rows.slice(0, n_rows), hostile(model.plan_.schema, rows)])
    return Scored("usual values", model, rows, model.score_samples(rows))


#: Texts in several spellings of which no one sees the difference, the folded one first.
SPELLINGS = {
    "Z\u00fcrich": [
        "Zu\u0308rich",
        " Z\u00fcrich",
        "Zu\u0308rich\u00a0",
        "\ufeffZ\u00fcrich\u200b",
    ],
    "\u2764": ["\u2764\ufe0f", "\u2764\ufe0e\t"],
    "Bern": ["Bern\u2009", "\u3000Bern\r\n", "Be\ufe0frn"],
}


def respelled() -> Scored:
    """Fit a detector to texts that are folded; the rows have them in other spellings, or blank."""
    names = [*SPELLINGS, "Bern", "Bern"] * 100
    size = np.random.default_rng(7).normal(size=len(names))
    model = HushTable(random_state=7).fit(pa.table({"town": names, "size": size}))
    written = [text for one, others in SPELLINGS.items() for text in (one, *others)]
    written += ["", " \u200b", "bern", "Be rn", "\u00fc", "x"]
    x = np.where(np.arange(len(written)) % 4, 0.1, 9.0)
    rows = pa.table({"town": written, "size": x})
    return Scored("other spellings", model, rows, model.score_samples(rows))


def of_set(folder: Path, name: str, detector: str, n_rows: int = _MOST) -> Scored:
    """Fit a detector to a labelled set, at most 5,000 rows; score so many of them, and others."""
    X = data.load(folder / f"{name}.npz").at_most(_MOST).X
    rows = pa.table({f"x{j}": column for j, column in enumerate(X.T)})
    return _scored(detector, f"{name}, {detector}", rows, rows.slice(0, n_rows))


def _scored(detector: str, name: str, fitted: pa.Table, rows: pa.Table) -> Scored:
    model = (DETECTORS | OTHERS)[detector]().fit(fitted)
    rows = pa.concat_tables([rows, hostile(model.plan_.schema, fitted)])
    return Scored(name, model, rows, model.score_samples(rows))


def mixed_rows(n: int) -> pa.Table:
    """Return rows of numbers, categories and one constant, with missing values in each."""
    rng = np.random.default_rng(20_261_123)
    numbers = rng.lognormal(2.0, 1.0, (n, len(NUMBERS))).round(2)
    numbers[:, 1] *= 1e-300  # far below one, and no whole multiples
    numbers[:, 2] = rng.integers(0, 4, n)
    numbers[:, 4] -= 1e6
    lacking = rng.random((n, len(NUMBERS) + len(TEXTS) + 1)) < 0.03
    columns: dict[str, Any] = {}
    for j, name in enumerate(NUMBERS):
        columns[name] = pa.array(numbers[:, j], mask=lacking[:, j])
    for j, (name, texts) in enumerate(zip(TEXTS, (_WARDS, _GROUPS), strict=True), len(NUMBERS)):
        columns[name] = pa.array(rng.choice(texts, n).tolist(), pa.string(), mask=lacking[:, j])
    columns[CONSTANT] = pa.array(np.full(n, 3.5), mask=lacking[:, -1])
    return pa.table(columns)


def hostile(schema: Schema, rows: pa.Table) -> pa.Table:
    """Return rows of which one value, or all, are missing, at an end, beyond or unseen."""
    features = schema.features
    usual = rows.slice(0, len(features) + 1).to_pylist()
    found = []
    for i, feature in enumerate(features):
        for row in (usual[i], usual[i + 1]):
            found += [row | {feature.name: value} for value in _odd(feature)]
    return pa.Table.from_pylist(found + _all_odd(schema), rows.schema)


def odd_rows(schema: Schema) -> pa.Table:
    """Return rows under a schema of which every value is hard to place."""
    return pa.Table.from_pylist(_all_odd(schema))


def _all_odd(schema: Schema) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    odd = {feature.name: _odd(feature) for feature in schema.features}
    return [{n: v[rng.integers(len(v))] for n, v in odd.items()} for _ in range(60)]


def _odd(feature: Any) -> list[Any]:
    """Return values of a feature that are hard to place."""
    if feature.kind == "categorical":
        return [None, "never seen", "'", *feature.categories]
    low, high = feature.low, feature.high
    span = (high - low) or abs(low) or 1.0
    beyond = [low - 1e-9 * span, high + 0.01 * span, low - 3.0 * span, high + 1e9 * span]
    cuts = [low + span * level / 65_280 for level in (1, 32_640, 65_279)]
    nearest = [np.nextafter(end, side) for end in (low, high, cuts[1]) for side in (-1e308, 1e308)]
    far = [1e300, -1e300, 1.7e308, -1.7e308, 5e-324, -0.0]
    return [None, float("nan"), low, high, *beyond, *cuts, *map(float, nearest), *far]
