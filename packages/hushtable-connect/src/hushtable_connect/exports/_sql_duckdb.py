"""SQL for DuckDB: codes and cells are lists, and loops over them lambdas."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from hushtable.data.schema import Feature
from hushtable.errors import UsageError
from hushtable_connect.exports._sql_content import UNIT, Alternatives, Content, Ints
from hushtable_connect.exports._sql_dialect import Dialect, is_date, number

_WHOLE = "U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?"
_NUMBERS = f"({_WHOLE}|FLOAT|DOUBLE|DECIMAL.*|BOOLEAN)"
_DATES = "(DATE|TIMESTAMP.*)"
_TEXTS = f"({_WHOLE}|VARCHAR|ENUM.*|BOOLEAN|UUID)"


class DuckDB(Dialect):
    """DuckDB's SQL, from 1.3 on."""

    row: ClassVar[str] = "struct_pack(*COLUMNS(d.*))"
    columns: ClassVar[str] = "r.*"

    def check(self, features: Sequence[Feature]) -> None:
        """Raise `UsageError` for names that differ in capitals only: DuckDB takes them for one."""
        seen: dict[str, str] = {}
        for feature in features:
            other = seen.setdefault(feature.name.lower(), feature.name)
            if other != feature.name:
                raise UsageError(
                    f"columns {other!r} and {feature.name!r} differ in capital letters only, and "
                    "no table of DuckDB has both: rename one, and fit again"
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
            # An infinite date has no seconds, as NULL.
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

    def category(self, column: str, feature: Feature) -> str:
        text = f"CAST({self._checked(column, feature, _TEXTS, 'texts')} AS VARCHAR)"
        # Whatever the collation of the column, capitals count.
        text = f"{text} COLLATE C"
        listed = f"list_position({self.texts(feature.categories)}, {text})"
        return (
            f"CASE WHEN {column} IS NULL THEN 0 "
            f"ELSE coalesce({listed}, {len(feature.categories) + 1}) END"
        )

    def side(self, sides: str, place: str) -> str:
        return f"get_bit('{sides}'::BIT, {place}::INTEGER)"

    def total(self, numbers: str) -> str:
        return f"list_sum({numbers})"

    def _looked_up(self, content: Content, codes: str, tables: Ints) -> str:
        """Return the values of the cells of codes, of which each is of one of the tables."""
        # No list of other rows in a lambda: DuckDB would copy it for each element.
        mixed = f"list_transform({codes}, lambda h: {self.step('h', 16, 0)})"
        mixed = f"list_transform({mixed}, lambda h: {self.step('h', 13, 1)})"
        first = self.ints(content.first[tables - 1])
        parts = ", ".join([mixed, codes, first, self.ints(tables)])
        cell = self.cell(content, "x[1]", "x[2]", "x[4]")
        places = f"list_transform(list_zip({parts}), lambda x: x[3] + {cell})"
        return f"list_select({self.ints(content.values)}, {places})"

    def sums(self, content: Content) -> list[str]:
        every = np.arange(1, content.n_tables + 1)
        return [f"{self._looked_up(content, 'c', every)} AS v", "list_sum(v) AS total"]

    def reasons(self, source: str, content: Content, when: str) -> str:
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

    def _gains(self, content: Content, found: Alternatives) -> str:
        """Return what each group gains by the best of its alternatives, in units."""
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
