"""SQL for PostgreSQL: codes are an array, and loops over them subqueries."""

from collections.abc import Iterable
from typing import Any, ClassVar

from hushtable.data.schema import Feature
from hushtable.errors import UsageError
from hushtable_connect.exports._sql_content import UNIT, Content, could_be_boolean
from hushtable_connect.exports._sql_dialect import Dialect, is_date, number

#: Bytes of a name that PostgreSQL keeps; it drops the rest without a word.
_LONGEST = 63
_EXACT = "smallint,integer,bigint,numeric"
_DATES = "date,timestamp,timestamptz"
_TEXTS = "text,varchar,name,smallint,integer,bigint,boolean,uuid"


class PostgreSQL(Dialect):
    """PostgreSQL's SQL, from 12 on."""

    fence: ClassVar[str] = "\nOFFSET 0"
    # Not d, which would be a column of that name.
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
        # Whatever standard_conforming_strings is set to.
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
        # Without a function of one's own, only a text that is no number stops a statement.
        return f"CAST({self.text(words)} || {value} AS double precision)"

    def number(self, column: str, feature: Feature) -> str:
        if is_date(feature):
            words = f"column {feature.name!r}: needs dates, got a column of type "
            fails = self.error(words, f"pg_typeof({column})::text")
            return (
                f"CASE WHEN pg_typeof({column}) = ANY ('{{{_DATES}}}'::regtype[]) "
                f"THEN CAST(EXTRACT(EPOCH FROM {column}) AS double precision) ELSE {fails} END"
            )
        if not could_be_boolean(feature):
            return f"{column} + CAST(0 AS double precision)"
        # No operator takes both numbers and truth: by way of texts, which are exact.
        text, of = f"CAST({column} AS text)", f"pg_typeof({column})"
        words = f"column {feature.name!r}: needs numbers, true or false, got a column of type "
        digits = "set extra_float_digits to 1: fewer digits change numbers, got "
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

    def category(self, column: str, feature: Feature) -> str:
        words = f"column {feature.name!r}: needs texts, whole numbers, true or false, got type "
        fails = self.error(words, f"pg_typeof({column})::text")
        text = f'CAST({column} AS text) COLLATE "C"'
        listed = f"array_position({self.texts(feature.categories)}, {text})"
        return (
            f"CASE WHEN pg_typeof({column}) <> ALL ('{{{_TEXTS}}}'::regtype[]) "
            f"THEN CAST({fails} AS integer) WHEN {column} IS NULL THEN 0 "
            f"ELSE coalesce({listed}, {len(feature.categories) + 1}) END"
        )

    def side(self, sides: str, place: str) -> str:
        return f"get_bit(B'{sides}', {place})"

    def total(self, numbers: str) -> str:
        return f"(SELECT sum(u.x) FROM unnest({numbers}) AS u(x))"

    def _looked_up(self, content: Content, source: str) -> str:
        """Return rows of a source, with codes c of tables t, and the values v of their cells."""
        g = f"SELECT u.*, {self.step('u.c', 16, 0)} AS g FROM {source} OFFSET 0"
        h = f"SELECT u.*, {self.step('u.g', 13, 1)} AS h FROM ({g}) AS u OFFSET 0"
        cell = self.cell(content, "u.h", "u.c", "u.t")
        place = f"{self.ints(content.first)}[u.t] + {cell}"
        return f"SELECT u.*, {self.ints(content.values)}[{place}] AS v FROM ({h}) AS u"

    def sums(self, content: Content) -> list[str]:
        own = self._looked_up(content, "unnest(q.c) WITH ORDINALITY AS u(c, t)")
        return [f"(SELECT CAST(sum(u.v) AS double precision) FROM ({own}) AS u) AS total"]

    def reasons(self, source: str, content: Content, when: str) -> str:
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

    def _gains(self, content: Content) -> str:
        """Return a query of features j and what rows gain by them, in units."""
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
