"""How the columns of a table are read; a model keeps this and applies it to later files."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal, TypeAlias
from zoneinfo import available_timezones

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable.arguments import JsonObject, entries
from hushtable.data.columns import as_texts, decoded, is_text, null, scalar, texts_column
from hushtable.data.labels import fold, fold_texts, key, merged
from hushtable.data.readers import KEPT
from hushtable.data.schema import number_digits, point_in_time
from hushtable.data.texts import dates, numbers
from hushtable.data.texts.dates import ORDERS, PIVOT, Order, of_day, seconds
from hushtable.data.texts.missing import named_numbers, without_named, without_numbers
from hushtable.data.texts.shapes import LONGEST
from hushtable.data.texts.words import answers, side
from hushtable.errors import PlanError, UsageError
from hushtable.files import Content
from hushtable.language import _

#: Kinds of columns that a person may request; an "id" is not modelled. A "label" is a category in
#: which spellings that differ only by case, accents or look-alike letters are the same.
ASKED = ("number", "date", "category", "label", "id")
Form: TypeAlias = Literal["number", "date", "time", "boolean", "category", "label", "answer"]
_KINDS = ("number", "date", "time", "boolean", "category", "label", "answer")
_CATEGORIES = ("category", "label", "answer")
#: A day as Excel counts them, from 1954 to 2064, and the one that is 1970-01-01.
SERIAL, _SERIAL_OF_1970 = r"^[2-5]\d{4}(?:\.\d+)?$", 25_569.0
SERIALS = (20_000.0, 60_000.0)
_TRUE, _FALSE = "true", "false"


def form_of(kind: pa.DataType) -> Form:
    """Return how values of an Arrow type, which is no text, are read and written."""
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return "date"
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        return "time"
    return "boolean" if pa.types.is_boolean(kind) else "number"


@dataclass(frozen=True)
class ColumnReading:
    """How the texts of one column become values.

    Numbers have a ``decimal`` separator, and may all have one ``unit``. Dates have an order of day,
    month and year; names of months have a ``language``, and years of two digits a ``pivot``, from
    which on they belong to the last century. With
    ``lenient``, text that is not a number counts as missing, because a person requested this. For a
    "label", or an "answer" (yes or no), any spelling counts as the category of the schema with the
    same key or meaning.
    """

    kind: Form
    decimal: numbers.Decimal = "."
    dates: Order = "dmy"
    unit: str = ""
    lenient: bool = False
    language: str = ""
    pivot: int = PIVOT
    #: A text of the column with 9 for each digit, which values are written like: see `like`.
    form: str = ""

    def __post_init__(self) -> None:
        if self.kind not in _KINDS or self.decimal not in numbers.DECIMALS:
            raise PlanError(f"a column cannot be read as {self.kind!r} with {self.decimal!r}")
        if self.dates not in ORDERS:
            raise PlanError(f"dates {self.dates!r}: needs one of {list(ORDERS)}")

    @property
    def is_category(self) -> bool:
        """Whether texts stay texts."""
        return self.kind in _CATEGORIES

    @property
    def takes_plain_numbers(self) -> bool:
        """Whether numbers as computers write them can be read as they are."""
        return self.kind == "number" and self.decimal == "."

    def categories(self, texts: Mapping[str, int]) -> list[str]:
        """Return the sorted categories of folded texts, given the number of rows with each."""
        if self.kind == "label":
            return merged(texts)
        return answers(texts) if self.kind == "answer" else sorted(texts)

    def texts(self, column: pa.Array, categories: Sequence[str] = ()) -> pa.Array:
        """Return the texts (n,) of a column, folded, each as its category.

        Blank texts are null, unless they are a category. A column of another type stays as it is,
        unless several spellings are one category. Texts that repeat are dictionary-encoded.
        """
        if not is_text(column.type):
            if self.kind == "category":
                return column
            column = as_texts(column, "")
        if len(column) >= _MANY and not pa.types.is_dictionary(column.type):
            column = plain_texts(column)
            if 2 * pc.count_distinct(column.slice(0, _SOME)).as_py() <= _SOME:
                column = column.dictionary_encode()
        if pa.types.is_dictionary(column.type):
            values = plain_texts(column.dictionary)
            folded = self.texts(values, categories)
            return column if folded is values else folded.take(column.indices)
        texts = fold_texts(plain_texts(column)) if "" in categories else without_blanks(column)
        if self.kind == "category" or not categories:
            return texts
        sort = key if self.kind == "label" else side
        known = {sort(c): c for c in reversed(categories)} | {c: c for c in categories}
        known.pop(None, None)
        encoded = texts.dictionary_encode()
        different = encoded.dictionary.to_pylist()
        written = [known.get(text, known.get(sort(text), text)) for text in different]
        return texts_column(written).take(encoded.indices) if written != different else texts

    def to_dict(self) -> JsonObject:
        """Return the reading as JSON carries it, without entries that have no effect."""
        content = asdict(self)
        usual = {name: getattr(ColumnReading, name) for name in ("language", "pivot", "form")}
        return {name: value for name, value in content.items() if usual.get(name, ...) != value}

    def values(self, texts: pa.Array) -> NDArray[np.float64]:
        """Return the values (n,) of texts, in seconds for dates; NaN for null and for no value."""
        if self.kind == "number":
            if self.takes_plain_numbers and (plain := numbers.plain(texts)) is not None:
                return plain
            unit = None if self.lenient else self.unit
            return numbers.values(texts, self.decimal, unit, lenient=self.lenient)
        if self.kind == "date":
            result = seconds(texts, self.dates, self.language, self.pivot)
            if not self.lenient:
                return result
            is_serial = pc.match_substring_regex(pc.utf8_trim_whitespace(texts), SERIAL)
            if not pc.any(is_serial).as_py():
                return result
            # Where there are no dates, days as Excel counts them.
            days = numbers.plain(pc.if_else(is_serial, texts, null(pa.string())))
            assert days is not None
            return np.where(np.isnan(result), (days - _SERIAL_OF_1970) * 86_400.0, result)
        if self.kind == "time":
            return of_day(texts)
        small = pc.utf8_lower(fold_texts(texts))
        either = pc.is_in(small, value_set=texts_column([_TRUE, _FALSE]))
        known = pc.if_else(either, small, null(pa.string()))
        truth = pc.cast(pc.cast(known, pa.bool_()), pa.float64())
        return np.asarray(np.from_dlpack(pc.coalesce(truth, scalar(float("nan")))))

    def like(self, texts: Sequence[str]) -> "ColumnReading":
        """Return the same reading, which writes values as these texts of the column are written.

        With the decimals that all numbers have, and the separators of the longest of those with the
        fewest decimals; dates and times as the shortest, which is not padded if any is not.
        """
        values = self.values(texts_column(texts)).tolist()
        forms = {re.sub(r"\d", "9", text) for text, x in zip(texts, values, strict=True) if x == x}
        sizes = {
            form: (len(self._signs(form)[1]), -len(form)) if self.kind == "number" else (len(form),)
            for form in sorted(forms)
        }
        return replace(self, form=min(sizes, key=sizes.__getitem__, default=""))

    def _signs(self, form: str) -> tuple[str, ...]:
        # The separator of thousands, and the decimals: if there are more, the number was computed.
        pattern = r"(?:9([^9\n])999)*(?:\n(9{1,6}))?[^9\n]*\Z"
        return tuple(re.findall(pattern, form.replace(self.decimal, "\n"))[0])

    def written(self, value: float, digits: int | None = None) -> str:
        """Return a value as the texts of the column are written, or else as words write it.

        A number has the ``digits`` of `hushtable.data.schema.number_digits`.
        """
        if self.kind in ("date", "time"):
            return _point(self, value)
        if self.kind == "boolean":
            return _("true") if value else _("false")
        group, decimals = self._signs(self.form[:LONGEST])
        return number_digits(value, digits, len(decimals)).translate(
            {ord(","): group, ord("."): self.decimal}
        )


@lru_cache(maxsize=1 << 12)
def _point(how: ColumnReading, value: float) -> str:
    order = how.dates if how.kind == "date" else None
    with suppress(OverflowError):
        text = dates.like(how.form[:LONGEST], value, order)
        if how.values(texts_column([text]))[0] == round(value):  # the form has all of its parts
            return text
    return (
        point_in_time(value)
        if order
        else "-" * (value < 0) + dates.like("9:99:99", abs(value), None)
    )


#: Number of rows from which encoding texts pays off, if at most half of them are different.
_MANY, _SOME = 1_024, 128
#: Number of texts up to which Python finishes before Arrow has begun.
_FEW = 64


def plain_texts(column: pa.Array) -> pa.Array:
    """Return texts as Arrow's plain strings, however they are stored."""
    column = decoded(column)
    return column if column.type == pa.string() else pc.cast(column, pa.string())


def without_blanks(column: pa.Array) -> pa.Array:
    """Return texts, folded; null where they are blank."""
    texts = plain_texts(column)
    if len(texts) <= _FEW and all(text and fold(text) == text for text in texts.to_pylist()):
        return texts
    texts = fold_texts(texts)
    blank = pc.equal(texts, scalar(""))
    if not pc.any(blank).as_py():
        return texts
    return pc.if_else(blank, null(texts.type), texts)


@dataclass(frozen=True)
class Reading:
    """How the columns of a table are read.

    Specified by a person: ``missing`` texts, the ``decimal`` separator, the order of ``dates``,
    ``kinds`` of columns, columns to ``drop``. Derived for each column: ``columns``.
    """

    missing: tuple[str, ...] = ()
    decimal: numbers.Decimal | None = None
    dates: Order | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    columns: Mapping[str, ColumnReading] = field(default_factory=dict)
    #: Layout of files, as far as a person specified it: see `Layout.kept`.
    layout: Mapping[str, str | int | bool] = field(default_factory=dict)
    #: The column of points in time whose parts are the features (see `hushtable.data.calendar`),
    #: and the time zone of its clock.
    time: str = ""
    zone: str = ""
    #: The column that identifies the entity of a reading: see `hushtable.data.history`.
    entity: str = ""

    def __post_init__(self) -> None:
        for name in ("time", "entity"):
            if isinstance(value := getattr(self, name), str):
                object.__setattr__(self, name, fold(value))
        object.__setattr__(self, "drop", tuple(map(fold, self.drop)))
        if self.decimal not in (None, *numbers.DECIMALS):
            raise UsageError(f"decimal={self.decimal!r}: needs ',' or '.'")
        if self.dates not in (None, *ORDERS):
            raise UsageError(f"dates={self.dates!r}: needs one of {', '.join(ORDERS)}")
        for name, kind in self.kinds.items():
            if kind not in ASKED:
                raise UsageError(f"column {name!r} as {kind!r}: needs one of {', '.join(ASKED)}")
        if self.zone and not self.time:
            raise UsageError("zone needs time, the column of points in time: name that column")
        if self.entity and not self.time:
            raise UsageError(
                f"entity={self.entity!r} needs time, the column that states when a reading was "
                "taken: name that column"
            )
        if self.entity and self.entity == self.time:
            raise UsageError(
                f"entity={self.entity!r} is also the column of the time: name one column that "
                "identifies the entity of a reading, and another that states when it was taken"
            )
        if self.zone and self.zone not in available_timezones():
            raise UsageError(
                f"zone={self.zone!r} is unknown: needs a name such as 'Europe/Berlin' or 'UTC'"
            )

    @property
    def options(self) -> list[tuple[str, str]]:
        """Options that a person gave: fields of `hushtable.data.options.RowOptions` with values."""
        kinds = [("as", f"{name}={kind}") for name, kind in self.kinds.items()]
        return [*(("missing", x) for x in self.missing), *kinds, *(("drop", x) for x in self.drop)]

    @property
    def dropped(self) -> frozenset[str]:
        """Names of the columns that are left out."""
        return frozenset(self.drop) | {n for n, kind in self.kinds.items() if kind == "id"}

    def column(self, name: str, unit: str = "") -> ColumnReading:
        """Return how the texts of a column, with numbers in a unit, are read."""
        default = ColumnReading(
            "date" if "date" in (unit, self.kinds.get(name)) else "number",
            self.decimal or ".",
            self.dates or "ymd",
            lenient=self.kinds.get(name) == "number",
        )
        return self.columns.get(name, default)

    def category(self, name: str) -> ColumnReading:
        """Return how texts of a column of categories are read."""
        reading = self.columns.get(name)
        if reading is None or not reading.is_category or self.kinds.get(name) == "label":
            return ColumnReading("label" if self.kinds.get(name) == "label" else "category")
        return reading

    def updated(self, other: "Reading | None") -> "Reading":
        """Return this reading, with a person's specification for other rows in its place."""
        if other is None:
            return self
        # The same specification as before decides no more than it did before.
        decimal = None if other.decimal == self.decimal else other.decimal
        order = None if other.dates == self.dates else other.dates
        columns = {}
        for name, reading in self.columns.items():
            kind = other.kinds.get(name, "")
            asked: dict[str, Any] = {}
            if kind in ("number", "date") and kind != self.kinds.get(name):
                asked = {"kind": kind, "lenient": True}
            elif kind and kind != self.kinds.get(name):
                continue
            columns[name] = replace(
                reading, decimal=decimal or reading.decimal, dates=order or reading.dates, **asked
            )
        return Reading(
            tuple(dict.fromkeys((*self.missing, *other.missing))),
            other.decimal or self.decimal,
            other.dates or self.dates,
            {**self.kinds, **other.kinds},
            tuple(dict.fromkeys((*self.drop, *other.drop))),
            {**columns, **other.columns},
            {**self.layout, **other.layout},
            other.time or self.time,
            other.zone or (self.zone if other.time in ("", self.time) else ""),
            other.entity or self.entity,
        )

    def codes(self, name: str) -> tuple[str, ...]:
        """Return the codes for missing values of a column: pain:99 is one of pain alone."""
        prefix = f"{name}:"
        return tuple(text.removeprefix(prefix) for text in self.missing)

    def without_missing(
        self, column: pa.Array, name: str, decimal: numbers.Decimal | None = None
    ) -> pa.Array:
        """Return a column in which codes for missing values are null.

        ``decimal`` is its decimal separator, if known.
        """
        sign = decimal if is_text(column.type) else self.decimal
        return without_named(column, self.codes(name), sign)

    def without_numbers(self, X: np.ndarray, names: Sequence[str]) -> np.ndarray:
        """Return a matrix in which codes for missing values are NaN."""
        for j, name in enumerate(names if any(":" in text for text in self.missing) else ()):
            column = without_numbers(X[:, j : j + 1], self.codes(name), self.decimal)
            if np.isnan(column).any() and X.dtype.kind != "f":
                X = X.astype(np.float64)
            X = np.concatenate([X[:, :j], column, X[:, j + 1 :]], axis=1)
        return without_numbers(X, self.missing, self.decimal)

    @property
    def absent(self) -> tuple[float, ...]:
        """Numbers that are codes for missing values."""
        codes = (text.rpartition(":")[2] for text in self.missing)
        return named_numbers(tuple(codes), self.decimal or ".")

    def to_dict(self) -> JsonObject:
        """Return the reading as JSON carries it."""
        content = asdict(self)
        content |= {"kinds": dict(self.kinds), "layout": dict(self.layout)}
        content["columns"] = {name: reading.to_dict() for name, reading in self.columns.items()}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in content.items() if v}

    @classmethod
    def from_file(cls, content: Content) -> "Reading":
        """Return how a model's rows were read; raises `PlanError` if its file does not state it."""
        return cls.from_dict(content.manifest.get("reading") or {})

    @classmethod
    def from_dict(cls, content: Any) -> "Reading":
        """Read back what `to_dict` wrote; raises `PlanError` on anything else."""
        optional = {
            "missing": list[str], "decimal": str, "dates": str, "kinds": dict, "drop": list[str],
            "columns": dict, "layout": dict, "time": str, "zone": str, "entity": str,
        }  # fmt: skip
        given = dict(entries(content, "how rows are read", {}, optional))
        entries(given.get("layout", {}), "the layout of files", {}, KEPT)
        kinds = {"kind": str, "decimal": str, "dates": str, "unit": str, "lenient": bool}
        more = {"language": str, "pivot": int, "form": str}
        columns = {}
        for name, column in given.pop("columns", {}).items():
            if isinstance(column, dict) and (
                column.get("kind") == "angle" or {"powers", "dotted"} & column.keys()
            ):
                raise PlanError(
                    f"column {name!r} was read as angles, as times such as 9.05, or with words "
                    "such as Mio., which is no longer done: convert it to numbers or to times "
                    "such as 9:05, and fit again"
                )
            columns[name] = ColumnReading(**entries(column, f"column {name!r}", kinds, more))
        given |= {name: tuple(given.get(name, ())) for name in ("missing", "drop")}
        try:
            return cls(**given, columns=columns)
        except (UsageError, TypeError) as error:
            raise PlanError(str(error)) from None
