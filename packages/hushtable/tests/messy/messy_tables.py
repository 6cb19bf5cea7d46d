"""Clean tables under the messy files: what every value is, and which rows are outliers.

Numbers are rounded to the digits that a file shows, so that a right reading gives the same bits.
"""

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

N_ROWS = 600
N_ODD = 12


@dataclass(frozen=True)
class Column:
    """A column as a careful person would read it."""

    name: str
    #: number, date, category, truth, id, text, constant or empty.
    kind: str
    #: (n,) float64 with NaN, datetime64[s] with NaT, or texts with None.
    values: np.ndarray
    digits: int = 0

    @property
    def missing(self) -> np.ndarray:
        return pd.isna(self.values)


@dataclass(frozen=True, eq=False)
class Table:
    """Columns, and for each row whether it is an outlier: 0.0, 1.0, or NaN for no row of data."""

    columns: tuple[Column, ...]
    odd: np.ndarray
    #: False where the numbers may differ from the file's in the last bit, as percent do.
    exact: bool = True

    def __len__(self) -> int:
        return len(self.odd)

    def __getitem__(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def pick(self, *names: str) -> "Table":
        return replace(self, columns=tuple(self[name] for name in names))

    def map(self, change: Callable[[Column], Column]) -> "Table":
        return replace(self, columns=tuple(map(change, self.columns)))

    def put(self, name: str, **fields: Any) -> "Table":
        """Change one column."""
        return self.map(lambda one: replace(one, **fields) if one.name == name else one)

    def renamed(self, names: Iterable[str]) -> "Table":
        pairs = zip(self.columns, names, strict=True)
        return replace(self, columns=tuple(replace(one, name=name) for one, name in pairs))

    def added(self, *columns: Column) -> "Table":
        return replace(self, columns=(*self.columns, *columns))

    def without(self, name: str, rows: Any) -> "Table":
        """Make values of one column missing."""
        return self.put(name, values=_emptied(self[name].values, rows))

    def scaled(self, name: str, factor: float) -> "Table":
        return replace(self.put(name, values=self[name].values * factor), exact=False)

    def with_empty_row(self, at: int) -> "Table":
        """Insert a row without values, such as a row of units."""

        def longer(column: Column) -> Column:
            values = np.insert(column.values, at, column.values[0])
            return replace(column, values=_emptied(values, at))

        return replace(self.map(longer), odd=np.insert(self.odd, at, np.nan))


def _emptied(values: np.ndarray, rows: Any) -> np.ndarray:
    values = values.copy()
    values[rows] = {"f": np.nan, "M": np.datetime64("NaT")}.get(values.dtype.kind)
    return values


def number(name: str, values: Any, digits: int = 0) -> Column:
    """Round to the digits that are written, and to the float that they are read as."""
    texts = np.char.mod(f"%.{digits}f", np.asarray(values, float))
    return Column(name, "number", np.where(texts == "nan", "nan", texts).astype(float), digits)


def date(name: str, values: Any) -> Column:
    return Column(name, "date", np.asarray(values, "datetime64[s]"))


def texts(name: str, kind: str, values: Iterable[Any]) -> Column:
    return Column(name, kind, np.array([None if v is None else str(v) for v in values], object))


def days(rng: np.random.Generator, n: int, low_days: bool = False) -> np.ndarray:
    """Days of the first half of 2026; of the first twelve of each month where both orders fit."""
    months = rng.integers(0, 6, n).astype("timedelta64[M]") + np.datetime64("2026-01", "M")
    return months.astype("datetime64[D]") + rng.integers(0, 12 if low_days else 28, n)


def _odd(rng: np.random.Generator, n: int) -> np.ndarray:
    odd = np.zeros(n)
    odd[rng.choice(n, N_ODD, replace=False)] = 1.0
    return odd


@cache
def labs(n: int = N_ROWS) -> Table:
    """Blood values of a hospital; the outliers have three values far off."""
    rng = np.random.default_rng(1)
    odd = _odd(rng, n)
    far = odd == 1
    table = Table(
        (
            texts("Patient", "id", 10_200_345 + rng.permutation(7 * n)[:n]),
            texts("Geschlecht", "category", rng.choice(["m", "w"], n)),
            number("Alter", rng.integers(18, 96, n)),
            texts("Station", "category", rng.choice(["Chirurgie", "Gynäkologie", "Innere"], n)),
            number("Kalium", rng.normal(4.3, 0.4, n) + 1.7 * far, 1),
            number("TSH", rng.lognormal(0.4, 0.5, n) + 6 * far * rng.random(n), 2),
            number("Größe", rng.normal(171, 9, n), 1),
            number("Ferritin", rng.lognormal(6.2, 0.8, n) + 1500 * far, 1),
            date("Abnahme", days(rng, n)),
        ),
        odd,
    )
    gaps = rng.choice(np.flatnonzero(~far), (2, n // 40), replace=False)
    return table.without("TSH", gaps[0]).without("Größe", gaps[1])


@cache
def payments(n: int = N_ROWS) -> Table:
    """Lines of a bank account; the outliers are large payments out."""
    rng = np.random.default_rng(2)
    odd = _odd(rng, n)
    amounts = rng.choice([-1, -1, -1, 1], n) * rng.lognormal(4.6, 1.1, n)
    amounts = np.where(odd == 1, -rng.uniform(800, 4_000, n), amounts).round(2)
    kinds = rng.choice(["Dauerauftrag", "Kartenzahlung", "Überweisung"], n)
    words = ["Rechnung", "Miete", "Einkauf", "Rate", "Beitrag", "Strom"]
    purposes = [f"{rng.choice(words)} {i:05d} vom Kunden {rng.integers(1e6)}" for i in range(n)]
    return Table(
        (
            date("Buchungstag", np.sort(days(rng, n))),
            texts("IBAN", "id", (f"DE{k % 90 + 10}37040044{k:010d}" for k in rng.permutation(n))),
            texts("Verwendungszweck", "text", purposes),
            texts("Art", "category", kinds),
            number("Betrag", amounts, 2),
            number("Saldo", 80_000 + rng.normal(0, 9_000, n), 2),
            texts("Währung", "constant", ["EUR"] * n),
        ),
        odd,
    )


@cache
def sensors(n: int = N_ROWS) -> Table:
    """Readings of three devices, one each ten minutes; the outliers shake and run hot."""
    rng = np.random.default_rng(3)
    odd = _odd(rng, n)
    far = odd == 1
    start = np.datetime64("2026-03-01T00:00:00", "s")
    return Table(
        (
            date("time", start + 600 * np.arange(n)),
            texts("device", "category", rng.choice(["north", "roof", "south"], n)),
            number("temperature", rng.normal(4, 6, n) + 18 * far, 2),
            number("humidity", rng.uniform(20, 95, n), 1),
            number("pressure", rng.normal(1013, 8, n), 1),
            number("vibration", rng.gamma(2.0, 0.05, n) + 0.25 * far, 4),
        ),
        odd,
    )


@cache
def orders(n: int = N_ROWS) -> Table:
    """Orders of a shop; the outliers are dear and heavily discounted."""
    rng = np.random.default_rng(4)
    odd = _odd(rng, n)
    far = odd == 1
    noon = days(rng, n).astype("datetime64[s]") + 60 * rng.integers(0, 1440, n)
    return Table(
        (
            texts("order", "id", (uuid.UUID(bytes=rng.bytes(16)) for _ in range(n))),
            date("ordered", noon),
            number("quantity", rng.integers(1, 30, n)),
            number("price", rng.lognormal(6.5, 0.9, n) + 3_000 * far, 2),
            number("discount", rng.uniform(0, 30, n) + 15 * far, 1),
            number("margin", rng.normal(80, 60, n), 2),
            texts("country", "category", rng.choice(["AT", "CH", "DE", "FR"], n)),
        ),
        odd,
    )


@cache
def labelled(path: str, digits: int = 4) -> Table:
    """A labelled set of ``HUSHTABLE_DATA``: its numbers, and an identifier for each row."""
    with np.load(path) as file:
        X, y = np.asarray(file["X"], float), file["y"]
    keep = [j for j in range(X.shape[1]) if len(np.unique(X[:, j])) > 2]
    names = [f"value {j + 1}" for j in range(len(keep))]
    ids = 4_000_017 + np.random.default_rng(5).permutation(9 * len(X))[: len(X)]
    columns = [number(name, X[:, j], digits) for name, j in zip(names, keep, strict=True)]
    return Table((texts("patient id", "id", ids), *columns), y.astype(float))
