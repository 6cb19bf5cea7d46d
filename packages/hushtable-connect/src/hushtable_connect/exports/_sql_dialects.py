"""The engines' dialects of SQL: quoting, types, and tables of cells."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from hushtable.data.labels import BLANKS, MARKS, SELECTORS
from hushtable.data.schema import DATE, Feature
from hushtable.errors import UsageError
from hushtable_connect.exports._sql_content import (
    UNIT,
    Alternatives,
    Ints,
    SqlContent,
    could_be_boolean,
)

#: MurmurHash3's factors minus 2**32, so that a product with 32 bits fits in 64 signed bits.
_FACTORS = (0x85EBCA6B - (1 << 32), 0xC2B2AE35 - (1 << 32))
_EVERY = (1 << 32) - 1


class SqlDialect(ABC):
    """The parts of a statement that differ between engines."""

    #: Text after a subquery that makes the engine compute its columns only once.
    fence: ClassVar[str] = ""
    #: The row of table d as one value, and that value's columns.
    row: ClassVar[str]
    columns: ClassVar[str]

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
    def xor(self, a: str, b: str) -> str:
        """Return an expression for the bits in which two whole numbers differ."""

    @abstractmethod
    def ints(self, values: Iterable[Any]) -> str:
        """Return whole numbers as an array, in brackets."""

    @abstractmethod
    def texts(self, values: Iterable[str]) -> str:
        """Return texts as an array, in brackets."""

    @abstractmethod
    def floats(self, values: Iterable[float]) -> str:
        """Return numbers as an array, in brackets."""

    @abstractmethod
    def array(self, items: Iterable[str], kind: str) -> str:
        """Return expressions as an array of BIGINT or DOUBLE."""

    @abstractmethod
    def error(self, words: str, value: str) -> str:
        """Return an expression that fails with a message that ends with a value, which is text."""

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
    def position(self, text: str, texts: Sequence[str]) -> str:
        """Return the place, from 1, of a text in a list; NULL if the list does not hold it."""

    @abstractmethod
    def composed(self, text: str) -> str:
        """Return a text in Unicode's form NFC."""

    @abstractmethod
    def signs(self, signs: str) -> str:
        """Return the characters of a class of a regular expression, in ASCII."""

    def place(self, column: str, text: str, feature: Feature, *, folds: bool) -> str:
        """Return the place of a category, from a column and its text."""
        listed, unseen = feature.categories, len(feature.categories) + 1
        places = [self.position(text, listed)]
        if folds and "" in listed:
            places.append(self.position(self._folded(text), listed))
        elif folds:  # a blank text is missing, which is place 0
            places.append(f"{self.position(self._folded(text), ('', *listed))} - 1")
        return f"CASE WHEN {column} IS NULL THEN 0 ELSE coalesce({', '.join(places)}, {unseen}) END"

    def _folded(self, text: str) -> str:
        """Return a folded text, as `hushtable.data.labels.fold` does."""
        outer, selectors = self.signs(BLANKS + MARKS), self.signs(SELECTORS)
        text = self.composed(f"regexp_replace({text}, {self.text(f'[{selectors}]')}, '', 'g')")
        return f"regexp_replace({text}, {self.text(f'^[{outer}]+|[{outer}]+$')}, '', 'g')"

    @abstractmethod
    def side(self, sides: str, place: str) -> str:
        """Return the digit, 0 or 1, at a place from 0."""

    @abstractmethod
    def sums(self, content: SqlContent) -> list[str]:
        """Return columns computed from the codes ``c``: v, others that reasons need, and ``total``.

        The total is in units.
        """

    @abstractmethod
    def total(self, numbers: str) -> str:
        """Return the sum of an array of float64, added one after the other."""

    @abstractmethod
    def reasons(self, source: str, content: SqlContent, when: str) -> str:
        """Return a query of r, score, outlier, and, where ``when`` is true, the reason."""

    def step(self, h: str, shift: int, factor: int) -> str:
        """Return a step of fmix32: h ^ h >> shift, times a factor, in 32 bits."""
        return f"({self.shifted(h, shift)} * {_FACTORS[factor]}) & {_EVERY}"

    def shifted(self, h: str, shift: int) -> str:
        """Return h ^ h >> shift."""
        return self.xor(h, f"({h} >> {shift})")

    def cell(self, content: SqlContent, h: str, code: str, table: str) -> str:
        """Return the cell of a table, from 0: the mixed code h, or the code itself."""
        mixed = f"({self.shifted(h, 16)} & {content.mask})"
        if content.n_folded == content.n_tables:
            return mixed
        return f"CASE WHEN {table} <= {content.n_folded} THEN {mixed} ELSE {code} END"

    def share(self, content: SqlContent, gain: str, equal: str, beyond: str) -> str:
        """Return a feature's share of the score that a row lacks, in the library's order."""
        m = number(content.n_tables)
        share = f"{gain} * (scale / {m}) + (rest / {m}) * {equal}"
        if content.margin == 0.0:
            return share
        # Leaves out negligible parts, because PostgreSQL fails when a number underflows.
        lost = (
            f"CASE WHEN lost = 0e0 THEN 0e0 WHEN {beyond} > e * 1e-30 THEN {beyond} / e * lost "
            "ELSE 0e0 END"
        )
        return f"({share}) + {lost}"


def number(value: float) -> str:
    """Return a finite number with an exponent, which both engines read exactly."""
    text = repr(float(value))
    return text if "e" in text else text + "e0"


def is_date(feature: Feature) -> bool:
    """Whether a feature is a point in time, in seconds since 1970."""
    return feature.unit == DATE


def _check_text(value: str, what: str) -> None:
    if "\0" in value:
        raise UsageError(
            f"{what}, {value!r}, holds the character NUL, which SQL cannot hold: rename it"
        )


_WHOLE = "U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?"
_NUMBERS = f"({_WHOLE}|FLOAT|DOUBLE|DECIMAL.*|BOOLEAN)"
_DATES = "(DATE|TIMESTAMP.*)"
_TEXTS = f"({_WHOLE}|VARCHAR|ENUM.*|BOOLEAN|UUID)"


class DuckDBDialect(SqlDialect):
    """DuckDB's SQL, from version 1.3 on."""

    row: ClassVar[str] = "struct_pack(*COLUMNS(d.*))"
    columns: ClassVar[str] = "r.*"

    def check(self, features: Sequence[Feature]) -> None:
        """Raise `UsageError` for names that differ only in case, which DuckDB equates."""
        seen: dict[str, str] = {}
        for feature in features:
            other = seen.setdefault(feature.name.lower(), feature.name)
            if other != feature.name:
                raise UsageError(
                    f"columns {other!r} and {feature.name!r} differ only in capital letters, and a "
                    "table of DuckDB cannot have both: rename one, and fit again"
                )

    def xor(self, a: str, b: str) -> str:
        return f"xor({a}, {b})"

    def ints(self, values: Iterable[Any]) -> str:
        return f"('[{','.join(str(int(value)) for value in values)}]'::BIGINT[])"

    def texts(self, values: Iterable[str]) -> str:
        return f"([{', '.join(map(self.text, values))}]::VARCHAR[])"

    def floats(self, values: Iterable[float]) -> str:
        return f"([{', '.join(map(number, values))}]::DOUBLE[])"

    def array(self, items: Iterable[str], kind: str) -> str:
        return f"([{', '.join(items)}]::{kind}[])"

    def error(self, words: str, value: str) -> str:
        return f"error({self.text(words)} || {value})"

    def number(self, column: str, feature: Feature) -> str:
        if is_date(feature):
            seconds = f"epoch({self._checked(column, feature, _DATES, 'dates')})"
            # Both an infinite date and NULL have no seconds.
            fails = self.error(_infinite(feature), f"CAST({column} AS VARCHAR)")
            missed = f"{column} IS NOT NULL AND {seconds} IS NULL"
            return f"CASE WHEN {missed} THEN {fails} ELSE {seconds} END"
        checked = self._checked(column, feature, _NUMBERS, "numbers")
        return f"CAST({checked} AS DOUBLE)"

    def _checked(self, column: str, feature: Feature, types: str, what: str) -> str:
        words = f"column {feature.name!r}: needs {what}, got a column of type "
        fails = self.error(words, f"typeof({column})")
        return f"CASE WHEN typeof({column}) SIMILAR TO '{types}' THEN {column} ELSE {fails} END"

    def finite(self, number: str, feature: Feature) -> str:
        fails = self.error(_infinite(feature), f"CAST({number} AS VARCHAR)")
        return (
            f"CASE WHEN isnan({number}) THEN NULL WHEN isinf({number}) THEN {fails} "
            f"ELSE {number} END"
        )

    def category(self, column: str, feature: Feature, *, folds: bool) -> str:
        text = f"CAST({self._checked(column, feature, _TEXTS, 'texts')} AS VARCHAR)"
        return self.place(column, text, feature, folds=folds)

    def position(self, text: str, texts: Sequence[str]) -> str:
        # Case matters, whatever the collation of the column.
        return f"list_position({self.texts(texts)}, {text} COLLATE C)"

    def composed(self, text: str) -> str:
        return f"nfc_normalize({text})"

    def signs(self, signs: str) -> str:
        return "".join(f"\\x{{{ord(sign):x}}}" for sign in signs)

    def side(self, sides: str, place: str) -> str:
        return f"get_bit('{sides}'::BIT, {place}::INTEGER)"

    def total(self, numbers: str) -> str:
        return f"list_sum({numbers})"

    def _looked_up(self, content: SqlContent, codes: str, tables: Ints) -> str:
        """Return the values of the cells of codes, one code for each table."""
        # A lambda must not use a list of other rows, which DuckDB would copy for each element.
        mixed = f"list_transform({codes}, lambda h: {self.step('h', 16, 0)})"
        mixed = f"list_transform({mixed}, lambda h: {self.step('h', 13, 1)})"
        first = self.ints(content.first[tables - 1])
        parts = ", ".join([mixed, codes, first, self.ints(tables)])
        cell = self.cell(content, "x[1]", "x[2]", "x[4]")
        places = f"list_transform(list_zip({parts}), lambda x: x[3] + {cell})"
        return f"list_select({self.ints(content.values)}, {places})"

    def sums(self, content: SqlContent) -> list[str]:
        every = np.arange(1, content.n_tables + 1)
        return [f"{self._looked_up(content, 'c', every)} AS v", "list_sum(v) AS total"]

    def reasons(self, source: str, content: SqlContent, when: str) -> str:
        found = content.alternatives()
        moved = f"list_select(c, {self.ints(found.table)})"
        moved = f"list_zip({moved}, {self.ints(found.keep)}, {self.ints(found.flip)})"
        last = [int((found.feature <= j).sum()) for j in range(len(content.features))]
        slices = zip([1, *(end + 1 for end in last)], last, strict=False)
        gains = (f"coalesce(list_sum(a[{a}:{b}]), 0) / {UNIT}e0" for a, b in slices)
        m, names = number(content.n_tables), self.texts(f.name for f in content.features)
        more = ", b" if content.margin else ""
        share = self.share(content, "x[1]", "x[2]", "x[3]")
        stages = {
            "moved": f"list_transform({moved}, lambda x: {self.xor('(x[1] & x[2])', 'x[3]')})",
            "reached": self._looked_up(content, "moved", found.table),
            "a": self._gains(content, found),
            "gain": self.array(gains, "DOUBLE"),
            "gained": "list_sum(gain)",
            "short": f"{m} * ({number(content.typical)} - clipped) - gained",
            "scale": "CASE WHEN short > 0e0 AND gained > 0e0 THEN (gained + short) / gained "
            "ELSE 1e0 END",
            "rest": "CASE WHEN scale > 1e0 THEN 0e0 ELSE short END",
            "shares": f"list_transform(list_zip(gain, {self.floats(content.equal)}{more}), "
            f"lambda x: {share})",
            "most": "list_max(shares)",
            "reason": f"CASE WHEN most > 0e0 THEN {names}[list_position(shares, most)] END",
        }
        for name, made in stages.items():
            made = f"CASE WHEN {when} THEN {made} END AS {name}"
            source = f"SELECT *, {made}\nFROM (\n{source}\n) AS q"
        return source

    def _gains(self, content: SqlContent, found: Alternatives) -> str:
        """Return the gain of each group by the best of its alternatives, in units."""
        sizes = np.diff(found.ends, prepend=0)
        columns = [f"list_select(v, {self.ints(found.groups)})"]
        columns.append(self.ints(content.limits[found.groups - 1]))
        for k in range(int(sizes.max(initial=0))):
            places = np.minimum(found.ends - sizes + 1 + k, found.ends)
            columns.append(f"list_select(reached, {self.ints(places)})")
        best = ", ".join(f"x[{k}]" for k in range(3, len(columns) + 1))
        gain = f"CASE WHEN x[1] < x[2] THEN greatest(x[1], {best}) - x[1] ELSE 0 END"
        return f"list_transform(list_zip({', '.join(columns)}), lambda x: {gain})"


def _infinite(feature: Feature) -> str:
    return f"column {feature.name!r}: needs finite numbers, or NULL, got "


#: Bytes of a name that PostgreSQL keeps; it drops the rest silently.
_LONGEST = 63
_EXACT = "smallint,integer,bigint,numeric"
_PG_DATES = "date,timestamp,timestamptz"
_PG_TEXTS = "text,varchar,name,smallint,integer,bigint,boolean,uuid"


class PostgreSQL(SqlDialect):
    """PostgreSQL's SQL, from version 13 on, in a database with UTF-8."""

    fence: ClassVar[str] = "\nOFFSET 0"
    # Not d, because a column could have that name.
    row: ClassVar[str] = "coalesce(d.*)"
    columns: ClassVar[str] = "(q.r).*"

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

    def xor(self, a: str, b: str) -> str:
        return f"({a} # {b})"

    def ints(self, values: Iterable[Any]) -> str:
        return f"('{{{','.join(str(int(value)) for value in values)}}}'::bigint[])"

    def texts(self, values: Iterable[str]) -> str:
        return f"(ARRAY[{', '.join(map(self.text, values))}]::text[])"

    def floats(self, values: Iterable[float]) -> str:
        return f"('{{{','.join(map(number, values))}}}'::double precision[])"

    def array(self, items: Iterable[str], kind: str) -> str:
        kind = {"DOUBLE": "double precision"}.get(kind, kind)
        return f"(ARRAY[{', '.join(items)}]::{kind}[])"

    def error(self, words: str, value: str) -> str:
        # Without a user-defined function, only a text that is not a number stops a statement.
        return f"CAST({self.text(words)} || {value} AS double precision)"

    def number(self, column: str, feature: Feature) -> str:
        if is_date(feature):
            words = f"column {feature.name!r}: needs dates, got a column of type "
            fails = self.error(words, f"pg_typeof({column})::text")
            return (
                f"CASE WHEN pg_typeof({column}) = ANY ('{{{_PG_DATES}}}'::regtype[]) "
                f"THEN CAST(EXTRACT(EPOCH FROM {column}) AS double precision) ELSE {fails} END"
            )
        if not could_be_boolean(feature):
            return f"{column} + CAST(0 AS double precision)"
        # No operator takes both numbers and booleans, so go through texts, which are exact.
        text, of = f"CAST({column} AS text)", f"pg_typeof({column})"
        words = f"column {feature.name!r}: needs numbers, true or false, got a column of type "
        digits = "set extra_float_digits to 1, because fewer digits change numbers: got "
        setting = "current_setting('extra_float_digits')"
        return (
            f"CASE WHEN {of} = ANY ('{{{_EXACT}}}'::regtype[]) "
            f"THEN CAST({text} AS double precision) "
            f"WHEN {of} = 'boolean'::regtype THEN CASE {text} WHEN 'true' THEN 1e0 "
            f"WHEN 'false' THEN 0e0 END "
            f"WHEN {of} NOT IN ('real'::regtype, 'double precision'::regtype) "
            f"THEN {self.error(words, f'{of}::text')} "
            f"WHEN {setting}::integer < 1 THEN {self.error(digits, setting)} "
            f"WHEN {of} = 'real'::regtype THEN CAST({text} AS real) "
            f"ELSE CAST({text} AS double precision) END"
        )

    def finite(self, number: str, feature: Feature) -> str:
        words = f"column {feature.name!r}: needs finite numbers, or NULL, got "
        fails = self.error(words, f"{number}::text")
        return (
            f"CASE WHEN {number} = 'NaN' THEN NULL WHEN {number} IN ('Infinity', '-Infinity') "
            f"THEN {fails} ELSE {number} END"
        )

    def category(self, column: str, feature: Feature, *, folds: bool) -> str:
        words = f"column {feature.name!r}: needs texts, whole numbers, true or false, got type "
        fails = self.error(words, f"pg_typeof({column})::text")
        place = self.place(column, f"CAST({column} AS text)", feature, folds=folds)
        return (
            f"CASE WHEN pg_typeof({column}) <> ALL ('{{{_PG_TEXTS}}}'::regtype[]) "
            f"THEN CAST({fails} AS integer) ELSE {place} END"
        )

    def position(self, text: str, texts: Sequence[str]) -> str:
        return f'array_position({self.texts(texts)}, {text} COLLATE "C")'

    def composed(self, text: str) -> str:
        return f"normalize({text}, NFC)"

    def signs(self, signs: str) -> str:
        return "".join(f"\\u{ord(sign):04x}" for sign in signs)

    def side(self, sides: str, place: str) -> str:
        return f"get_bit(B'{sides}', {place})"

    def total(self, numbers: str) -> str:
        return f"(SELECT sum(u.x) FROM unnest({numbers}) AS u(x))"

    def _looked_up(self, content: SqlContent, source: str) -> str:
        """Return rows of a source with codes c of tables t, adding the values v of their cells."""
        g = f"SELECT u.*, {self.step('u.c', 16, 0)} AS g FROM {source} OFFSET 0"
        h = f"SELECT u.*, {self.step('u.g', 13, 1)} AS h FROM ({g}) AS u OFFSET 0"
        cell = self.cell(content, "u.h", "u.c", "u.t")
        place = f"{self.ints(content.first)}[u.t] + {cell}"
        return f"SELECT u.*, {self.ints(content.values)}[{place}] AS v FROM ({h}) AS u"

    def sums(self, content: SqlContent) -> list[str]:
        own = self._looked_up(content, "unnest(q.c) WITH ORDINALITY AS u(c, t)")
        return [f"(SELECT CAST(sum(u.v) AS double precision) FROM ({own}) AS u) AS total"]

    def reasons(self, source: str, content: SqlContent, when: str) -> str:
        m = number(content.n_tables)
        names = self.texts(f.name for f in content.features)
        beyond = ", q.b" if content.margin else ""
        found = (
            f"SELECT f.*, coalesce(g.gain, 0) / {UNIT}e0 AS gain FROM unnest({names}, "
            f"{self.floats(content.equal)}{beyond}) WITH ORDINALITY "
            f"AS f(name, equal{', beyond' if beyond else ''}, j) "
            f"LEFT JOIN ({self._gains(content)}) AS g ON g.j = f.j"
        )
        scale = (
            "CASE WHEN f.rest > 0 AND f.gained > 0 THEN (f.gained + f.rest) / f.gained ELSE 1 END"
        )
        for column in (
            "sum(f.gain) OVER () AS gained",
            f"{m} * ({number(content.typical)} - q.clipped) - f.gained AS short",
            f"{scale.replace('f.rest', 'f.short')} AS scale",
            "CASE WHEN f.scale > 1 THEN 0 ELSE f.short END AS rest",
            f"{self.share(content, 'f.gain', 'f.equal', 'f.beyond')} AS share",
        ):
            found = f"SELECT f.*, {column} FROM ({found}) AS f OFFSET 0"
        best = f"SELECT f.name FROM ({found}) AS f WHERE f.share > 0 ORDER BY f.share DESC, f.j"
        reason = f"CASE WHEN {when} THEN ({best} LIMIT 1) END AS reason"
        return f"SELECT q.*, {reason}\nFROM (\n{source}\n) AS q"

    def _gains(self, content: SqlContent) -> str:
        """Return a query of features j and the rows' gains by them, in units."""
        found = content.alternatives()
        of = found.of_alternative
        columns = (found.table, found.feature[of] + 1, of, found.keep, found.flip)
        own = self._looked_up(content, "unnest(q.c) WITH ORDINALITY AS u(c, t)")
        moved = (
            f"(SELECT a.j, a.g AS of, o.t, o.v AS own, {self.xor('(o.c & a.keep)', 'a.flip')} AS c "
            f"FROM ({own}) AS o JOIN unnest({', '.join(map(self.ints, columns))}) "
            f"AS a(t, j, g, keep, flip) ON a.t = o.t "
            f"WHERE o.v < {self.ints(content.limits)}[o.t]) AS u"
        )
        best = (
            f"SELECT u.j, greatest(0, max(u.v) - min(u.own)) AS gain "
            f"FROM ({self._looked_up(content, moved)}) AS u GROUP BY u.j, u.of"
        )
        gain = "CAST(sum(u.gain) AS double precision) AS gain"
        return f"SELECT u.j, {gain} FROM ({best}) AS u GROUP BY u.j"
