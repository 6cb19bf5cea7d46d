"""How the columns of a table are read: kept in a model, and applied to later files."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable.data.columns import is_text, null, scalar, texts_column
from hushtable.data.readers import KEPT
from hushtable.data.texts import missing_values, numbers
from hushtable.data.texts.dates import ORDERS, Order, of_day, seconds
from hushtable.entries import entries
from hushtable.errors import PlanError, UsageError
from hushtable.files import Content

#: Kinds of columns that a person may ask for; of "id", nothing is modelled.
ASKED = ("number", "date", "category", "id")
Form: TypeAlias = Literal["number", "date", "time", "boolean", "category"]
_KINDS = ("number", "date", "time", "boolean", "category")
_TRUE, _FALSE = "true", "false"


@dataclass(frozen=True)
class ColumnReading:
    """How the texts of one column become values.

    Numbers have a ``decimal`` sign, and may all have one ``unit`` beside them. Dates have an order
    of day, month and year. With ``lenient``, what is no number is missing: somebody asked for it.
    """

    kind: Form
    decimal: numbers.Decimal = "."
    dates: Order = "dmy"
    unit: str = ""
    lenient: bool = False

    def __post_init__(self) -> None:
        if self.kind not in _KINDS or self.decimal not in numbers.DECIMALS:
            raise PlanError(f"a column cannot be read as {self.kind!r} with {self.decimal!r}")
        if self.dates not in ORDERS:
            raise PlanError(f"dates {self.dates!r}: needs one of {list(ORDERS)}")

    def values(self, texts: pa.Array) -> NDArray[np.float64]:
        """Return the values (n,) of texts, in seconds for dates; NaN for null and for no value."""
        if self.kind == "number":
            if self.decimal == "." and (found := numbers.plain(texts)) is not None:
                return found
            unit = None if self.lenient else self.unit
            return numbers.values(texts, self.decimal, unit, lenient=self.lenient)
        if self.kind == "date":
            return seconds(texts, self.dates)
        if self.kind == "time":
            return of_day(texts)
        small = pc.utf8_lower(pc.utf8_trim_whitespace(texts))
        either = pc.is_in(small, value_set=texts_column([_TRUE, _FALSE]))
        known = pc.if_else(either, small, null(pa.string()))
        truth = pc.cast(pc.cast(known, pa.bool_()), pa.float64())
        return np.asarray(np.from_dlpack(pc.coalesce(truth, scalar(float("nan")))))


def plain_texts(column: Any) -> pa.Array:
    """Return texts as Arrow's plain strings, whichever way it holds them."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column if column.type == pa.string() else pc.cast(column, pa.string())


def without_blanks(texts: pa.Array) -> pa.Array:
    """Return texts without blanks around them; null where nothing else is."""
    texts = pc.utf8_trim_whitespace(texts)
    return pc.if_else(pc.equal(texts, scalar("")), null(texts.type), texts)


@dataclass(frozen=True)
class Reading:
    """How the columns of a table are read.

    What a person said: ``missing`` texts, the ``decimal`` sign, the order of ``dates``, ``kinds``
    of columns, columns to ``drop``. What followed for each column: ``columns``.
    """

    missing: tuple[str, ...] = ()
    decimal: numbers.Decimal | None = None
    dates: Order | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    columns: Mapping[str, ColumnReading] = field(default_factory=dict)
    #: How files are laid out, as far as a person said it: see `Layout.kept`.
    layout: Mapping[str, str | int | bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.decimal not in (None, *numbers.DECIMALS):
            raise UsageError(f"decimal={self.decimal!r}: needs ',' or '.'")
        if self.dates not in (None, *ORDERS):
            raise UsageError(f"dates={self.dates!r}: needs one of {', '.join(ORDERS)}")
        for name, kind in self.kinds.items():
            if kind not in ASKED:
                raise UsageError(f"column {name!r} as {kind!r}: needs one of {', '.join(ASKED)}")

    @property
    def dropped(self) -> frozenset[str]:
        """Names of the columns that are left out."""
        return frozenset(self.drop) | {n for n, kind in self.kinds.items() if kind == "id"}

    def column(self, name: str, unit: str = "") -> ColumnReading:
        """Return how texts of a column, of numbers in a unit, are read."""
        default = ColumnReading(
            "date" if "date" in (unit, self.kinds.get(name)) else "number",
            self.decimal or ".",
            self.dates or "ymd",
            lenient=self.kinds.get(name) == "number",
        )
        return self.columns.get(name, default)

    def updated(self, said: "Reading | None") -> "Reading":
        """Return this reading, with what a person says of other rows in its stead."""
        if said is None:
            return self
        # The same word as before decides no more than it did before.
        decimal = None if said.decimal == self.decimal else said.decimal
        order = None if said.dates == self.dates else said.dates
        columns = {}
        for name, one in self.columns.items():
            kind = said.kinds.get(name, "")
            asked: dict[str, Any] = {}
            if kind in ("number", "date") and kind != self.kinds.get(name):
                asked = {"kind": kind, "lenient": True}
            elif kind and kind != self.kinds.get(name):
                continue
            columns[name] = replace(
                one, decimal=decimal or one.decimal, dates=order or one.dates, **asked
            )
        return Reading(
            tuple(dict.fromkeys((*self.missing, *said.missing))),
            said.decimal or self.decimal,
            said.dates or self.dates,
            {**self.kinds, **said.kinds},
            tuple(dict.fromkeys((*self.drop, *said.drop))),
            {**columns, **said.columns},
            {**self.layout, **said.layout},
        )

    def without_missing(self, column: Any, decimal: numbers.Decimal | None = None) -> Any:
        """Return a column in which what stands for a missing value is null.

        ``decimal`` is its decimal sign, where that is known.
        """
        sign = decimal if is_text(column.type) else self.decimal
        return missing_values.without(column, self.missing, sign)

    def without_numbers(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return a matrix in which what stands for a missing value is NaN."""
        return missing_values.without_numbers(X, self.missing, self.decimal)

    @property
    def absent(self) -> tuple[float, ...]:
        """Numbers that stand for a missing value."""
        return missing_values.named(self.missing, self.decimal or ".")

    def to_dict(self) -> dict[str, Any]:
        """Return the reading as JSON carries it."""
        content = asdict(self)
        content |= {"kinds": dict(self.kinds), "layout": dict(self.layout)}
        content["columns"] = {name: asdict(one) for name, one in self.columns.items()}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in content.items() if v}

    @classmethod
    def from_file(cls, content: Content) -> "Reading":
        """Return how a model's rows were read; raises `PlanError` if its file does not say it."""
        return cls.from_dict(content.manifest.get("reading") or {})

    @classmethod
    def from_dict(cls, content: Any) -> "Reading":
        """Read back what `to_dict` wrote; raises `PlanError` on anything else."""
        optional = {
            "missing": list[str], "decimal": str, "dates": str, "kinds": dict, "drop": list[str],
            "columns": dict, "layout": dict,
        }  # fmt: skip
        said = dict(entries(content, "how rows are read", {}, optional))
        entries(said.get("layout", {}), "the layout of files", {}, KEPT)
        kinds = {"kind": str, "decimal": str, "dates": str, "unit": str, "lenient": bool}
        columns = {
            name: ColumnReading(**entries(one, f"column {name!r}", kinds))
            for name, one in said.pop("columns", {}).items()
        }
        said |= {name: tuple(said.get(name, ())) for name in ("missing", "drop")}
        try:
            return cls(**said, columns=columns)
        except (UsageError, TypeError) as error:
            raise PlanError(str(error)) from None
