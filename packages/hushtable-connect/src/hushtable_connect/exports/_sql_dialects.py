"""The engines' dialects of SQL: quoting, types, and tables of cells."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushtable.data.labels import BLANKS, MARKS, SELECTORS
from hushtable.data.schema import DATE, Feature
from hushtable.errors import UsageError

#: Scores of cells are multiples of one divided by this number.
UNIT = 1 << 20
#: MurmurHash3's factors minus 2**32, so that a product with 32 bits fits in 64 signed bits.
_FACTORS = (0x85EBCA6B - (1 << 32), 0xC2B2AE35 - (1 << 32))
_EVERY = (1 << 32) - 1


@dataclass(frozen=True)
class CellScores:
    """The scores of all cells, in units, and the place of each table's first cell, from 1.

    The first ``n_folded`` tables fold their codes by the ``mask``.
    """

    values: NDArray[np.int64]
    first: NDArray[np.int64]
    mask: int
    n_folded: int


class SqlDialect(ABC):
    """The parts of a statement that differ between engines."""

    #: Text after a subquery that makes the engine compute its columns only once.
    fence: ClassVar[str] = ""
    #: The row of table d as one value, and that value's columns.
    row: ClassVar[str]
    columns: ClassVar[str]

    # Expressions, as formats of their parts.
    #: The bits in which two whole numbers differ.
    xor: ClassVar[str]
    #: Whole numbers as an array; texts as one; expressions of a type as one.
    ints: ClassVar[str]
    texts: ClassVar[str]
    array: ClassVar[str]
    #: An expression that fails with words that end with a value, which is text.
    error: ClassVar[str]
    #: The place, from 1, of a text in an array; NULL if the array does not hold it.
    position: ClassVar[str]
    #: A text in Unicode's form NFC; the code of a character in a regular expression.
    composed: ClassVar[str]
    sign: ClassVar[str]
    #: The digit, 0 or 1, of a text at a place from 0.
    side: ClassVar[str]
    #: The sum of an array of float64, added one after the other.
    total: ClassVar[str]

    def identifier(self, name: str, what: str) -> str:
        """Quote a name."""
        _check_text(name, what)
        return '"' + name.replace('"', '""') + '"'

    def text(self, value: str) -> str:
        """Quote a text."""
        _check_text(value, "a category")
        return "'" + value.replace("'", "''") + "'"

    def check(self, features: Sequence[Feature]) -> None:  # noqa: B027 (one engine needs it)
        """Raise `UsageError` if the engine cannot distinguish these columns."""

    @abstractmethod
    def number(self, column: str, feature: Feature) -> str:
        """Return a column as float64; statements fail on a type for which this is not exact."""

    @abstractmethod
    def finite(self, number: str, feature: Feature) -> str:
        """Return a number, or NULL if it is NaN; the statement fails if it is infinite."""

    @abstractmethod
    def category(self, column: str, feature: Feature, *, folds: bool) -> str:
        """Return the place of a category: 0 if missing, K + 1 if it is not listed.

        If the plan ``folds`` texts, the statement does so, too, by the rules of
        `hushtable.data.labels`.
        """

    @abstractmethod
    def sums(self, cells: CellScores) -> list[str]:
        """Return columns computed from the codes ``c``; the last is their ``total``, in units."""

    def fails(self, words: str, value: str) -> str:
        """Return an expression that fails with a message that ends with a value, which is text."""
        return self.error.format(self.text(words), value)

    def place(self, column: str, text: str, feature: Feature, *, folds: bool) -> str:
        """Return the place of a category, from a column and its text."""
        listed, unseen = feature.categories, len(feature.categories) + 1
        places = [self._position(text, listed)]
        if folds and "" in listed:
            places.append(self._position(self._folded(text), listed))
        elif folds:  # a blank text is missing, which is place 0
            places.append(f"{self._position(self._folded(text), ('', *listed))} - 1")
        return f"CASE WHEN {column} IS NULL THEN 0 ELSE coalesce({', '.join(places)}, {unseen}) END"

    def _position(self, text: str, texts: Sequence[str]) -> str:
        # Case matters, whatever the collation of the column.
        return self.position.format(self.texts.format(", ".join(map(self.text, texts))), text)

    def _folded(self, text: str) -> str:
        outer, selectors = (
            "".join(self.sign.format(ord(sign)) for sign in signs)
            for signs in (BLANKS + MARKS, SELECTORS)
        )
        text = f"regexp_replace({text}, {self.text(f'[{selectors}]')}, '', 'g')"
        text, ends = self.composed.format(text), self.text(f"^[{outer}]+|[{outer}]+$")
        return f"regexp_replace({text}, {ends}, '', 'g')"

    def _list(self, values: Iterable[Any]) -> str:
        return self.ints.format(",".join(str(int(value)) for value in values))

    def _shifted(self, h: str, shift: int) -> str:
        return self.xor.format(h, f"({h} >> {shift})")

    def _step(self, h: str, shift: int, factor: int) -> str:
        return f"({self._shifted(h, shift)} * {_FACTORS[factor]}) & {_EVERY}"

    def _cell(self, cells: CellScores, h: str, code: str, table: str) -> str:
        mixed = f"({self._shifted(h, 16)} & {cells.mask})"
        if cells.n_folded == len(cells.first):
            return mixed
        return f"CASE WHEN {table} <= {cells.n_folded} THEN {mixed} ELSE {code} END"


def number(value: float) -> str:
    """Return a finite number with an exponent, which both engines read exactly."""
    text = repr(float(value))
    return text if "e" in text else text + "e0"


def _check_text(value: str, what: str) -> None:
    if "\0" in value:
        raise UsageError(
            f"{what}, {value!r}, holds the character NUL, which SQL cannot hold: rename it"
        )


def _infinite(feature: Feature) -> str:
    return f"column {feature.name!r}: needs finite numbers, or NULL, got "


_WHOLE = "U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?"
_NUMBERS = f"({_WHOLE}|FLOAT|DOUBLE|DECIMAL.*|BOOLEAN)"
_DATES = "(DATE|TIMESTAMP.*)"
_TEXTS = f"({_WHOLE}|VARCHAR|ENUM.*|BOOLEAN|UUID)"


class DuckDBDialect(SqlDialect):
    """DuckDB's SQL, from version 1.3 on."""

    row: ClassVar[str] = "struct_pack(*COLUMNS(d.*))"
    columns: ClassVar[str] = "r.*"
    xor: ClassVar[str] = "xor({}, {})"
    ints: ClassVar[str] = "('[{}]'::BIGINT[])"
    texts: ClassVar[str] = "([{}]::VARCHAR[])"
    array: ClassVar[str] = "([{}]::{}[])"
    error: ClassVar[str] = "error({} || {})"
    position: ClassVar[str] = "list_position({}, {} COLLATE C)"
    composed: ClassVar[str] = "nfc_normalize({})"
    sign: ClassVar[str] = r"\x{{{:x}}}"
    side: ClassVar[str] = "get_bit('{}'::BIT, {}::INTEGER)"
    total: ClassVar[str] = "list_sum({})"

    def check(self, features: Sequence[Feature]) -> None:
        """Raise `UsageError` for names that differ only in case, which DuckDB equates."""
        names: dict[str, str] = {}
        for feature in features:
            other = names.setdefault(feature.name.lower(), feature.name)
            if other != feature.name:
                raise UsageError(
                    f"columns {other!r} and {feature.name!r} differ only in capital letters, and a "
                    "table of DuckDB cannot have both: rename one, and fit again"
                )

    def number(self, column: str, feature: Feature) -> str:
        if feature.unit == DATE:
            seconds = f"epoch({self._checked(column, feature, _DATES, 'dates')})"
            # Both an infinite date and NULL have no seconds.
            fails = self.fails(_infinite(feature), f"CAST({column} AS VARCHAR)")
            missed = f"{column} IS NOT NULL AND {seconds} IS NULL"
            return f"CASE WHEN {missed} THEN {fails} ELSE {seconds} END"
        checked = self._checked(column, feature, _NUMBERS, "numbers")
        return f"CAST({checked} AS DOUBLE)"

    def _checked(self, column: str, feature: Feature, types: str, what: str) -> str:
        words = f"column {feature.name!r}: needs {what}, got a column of type "
        fails = self.fails(words, f"typeof({column})")
        return f"CASE WHEN typeof({column}) SIMILAR TO '{types}' THEN {column} ELSE {fails} END"

    def finite(self, number: str, feature: Feature) -> str:
        fails = self.fails(_infinite(feature), f"CAST({number} AS VARCHAR)")
        return (
            f"CASE WHEN isnan({number}) THEN NULL WHEN isinf({number}) THEN {fails} "
            f"ELSE {number} END"
        )

    def category(self, column: str, feature: Feature, *, folds: bool) -> str:
        text = f"CAST({self._checked(column, feature, _TEXTS, 'texts')} AS VARCHAR)"
        return self.place(column, text, feature, folds=folds)

    def sums(self, cells: CellScores) -> list[str]:
        # A lambda must not use a list of other rows, which DuckDB would copy for each element.
        mixed = f"list_transform(c, lambda h: {self._step('h', 16, 0)})"
        mixed = f"list_transform({mixed}, lambda h: {self._step('h', 13, 1)})"
        tables = self._list(range(1, len(cells.first) + 1))
        parts = ", ".join([mixed, "c", self._list(cells.first), tables])
        cell = self._cell(cells, "x[1]", "x[2]", "x[4]")
        places = f"list_transform(list_zip({parts}), lambda x: x[3] + {cell})"
        return [f"list_sum(list_select({self._list(cells.values)}, {places})) AS total"]


#: Bytes of a name that PostgreSQL keeps; it drops the rest silently.
_LONGEST = 63
_PG_DATES = "date,timestamp,timestamptz"
_PG_TEXTS = "text,varchar,name,smallint,integer,bigint,boolean,uuid"


class PostgreSQL(SqlDialect):
    """PostgreSQL's SQL, from version 13 on, in a database with UTF-8."""

    fence: ClassVar[str] = "\nOFFSET 0"
    # Not d, because a column could have that name.
    row: ClassVar[str] = "coalesce(d.*)"
    columns: ClassVar[str] = "(q.r).*"
    xor: ClassVar[str] = "({} # {})"
    ints: ClassVar[str] = "('{{{}}}'::bigint[])"
    texts: ClassVar[str] = "(ARRAY[{}]::text[])"
    array: ClassVar[str] = "(ARRAY[{}]::{}[])"
    # Without a user-defined function, only a text that is not a number stops a statement.
    error: ClassVar[str] = "CAST({} || {} AS double precision)"
    position: ClassVar[str] = 'array_position({}, {} COLLATE "C")'
    composed: ClassVar[str] = "normalize({}, NFC)"
    sign: ClassVar[str] = r"\u{:04x}"
    side: ClassVar[str] = "get_bit(B'{}', {})"
    total: ClassVar[str] = "(SELECT sum(u.x) FROM unnest({}) AS u(x))"

    def identifier(self, name: str, what: str) -> str:
        if len(name.encode()) > _LONGEST:
            raise UsageError(
                f"{what}, {name!r}, is longer than the {_LONGEST} bytes of a name that PostgreSQL "
                "keeps: rename it"
            )
        return super().identifier(name, what)

    def text(self, value: str) -> str:
        quoted = super().text(value)
        # Works with each setting of standard_conforming_strings.
        return "E" + quoted.replace("\\", "\\\\") if "\\" in quoted else quoted

    def number(self, column: str, feature: Feature) -> str:
        if feature.unit == DATE:
            words = f"column {feature.name!r}: needs dates, got a column of type "
            fails = self.fails(words, f"pg_typeof({column})::text")
            return (
                f"CASE WHEN pg_typeof({column}) = ANY ('{{{_PG_DATES}}}'::regtype[]) "
                f"THEN CAST(EXTRACT(EPOCH FROM {column}) AS double precision) ELSE {fails} END"
            )
        return f"{column} + CAST(0 AS double precision)"

    def finite(self, number: str, feature: Feature) -> str:
        words = f"column {feature.name!r}: needs finite numbers, or NULL, got "
        fails = self.fails(words, f"{number}::text")
        return (
            f"CASE WHEN {number} = 'NaN' THEN NULL WHEN {number} IN ('Infinity', '-Infinity') "
            f"THEN {fails} ELSE {number} END"
        )

    def category(self, column: str, feature: Feature, *, folds: bool) -> str:
        words = f"column {feature.name!r}: needs texts, whole numbers, true or false, got type "
        fails = self.fails(words, f"pg_typeof({column})::text")
        place = self.place(column, f"CAST({column} AS text)", feature, folds=folds)
        return (
            f"CASE WHEN pg_typeof({column}) <> ALL ('{{{_PG_TEXTS}}}'::regtype[]) "
            f"THEN CAST({fails} AS integer) ELSE {place} END"
        )

    def sums(self, cells: CellScores) -> list[str]:
        codes = "unnest(q.c) WITH ORDINALITY AS u(c, t)"
        g = f"SELECT u.*, {self._step('u.c', 16, 0)} AS g FROM {codes} OFFSET 0"
        h = f"SELECT u.*, {self._step('u.g', 13, 1)} AS h FROM ({g}) AS u OFFSET 0"
        place = f"{self._list(cells.first)}[u.t] + {self._cell(cells, 'u.h', 'u.c', 'u.t')}"
        value = f"SELECT {self._list(cells.values)}[{place}] AS v FROM ({h}) AS u"
        return [f"(SELECT CAST(sum(u.v) AS double precision) FROM ({value}) AS u) AS total"]
