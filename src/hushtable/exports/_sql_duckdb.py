"""SQL for DuckDB: codes and cells are lists, and loops over them lambdas."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from hushtable.data.schema import Feature
from hushtable.errors import UsageError
from hushtable.exports._sql_content import UNIT, Content
from hushtable.exports._sql_dialect import Dialect, is_date, number

#: Values of an array of a fixed size at most.
_LARGEST = 100_000
_WHOLE = "U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?"
_NUMBERS = f"({_WHOLE}|FLOAT|DOUBLE|DECIMAL.*|BOOLEAN)"
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
        texts = [str(int(value)) for value in values]
        # An array of a fixed size is looked up in four times as fast as a list.
        size = len(texts) if 0 < len(texts) <= _LARGEST else ""
        return f"('[{','.join(texts)}]'::BIGINT[{size}])"

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
            return f"epoch({column})"
        checked = self._checked(column, feature, _NUMBERS, "numbers")
        return f"CAST({checked} AS DOUBLE)"

    def _checked(self, column: str, feature: Feature, types: str, what: str) -> str:
        words = f"column {feature.name!r}: needs {what}, got a column of type "
        fails = self.error(words, f"typeof({column})")
        return f"CASE WHEN typeof({column}) SIMILAR TO '{types}' THEN {column} ELSE {fails} END"

    def finite(self, number: str, feature: Feature) -> str:
        words = f"column {feature.name!r}: needs finite numbers, or NULL, got "
        fails = self.error(words, f"CAST({number} AS VARCHAR)")
        return (
            f"CASE WHEN isnan({number}) THEN NULL WHEN isinf({number}) THEN {fails} "
            f"ELSE {number} END"
        )

    def category(self, column: str, feature: Feature) -> str:
        text = f"CAST({self._checked(column, feature, _TEXTS, 'texts')} AS VARCHAR)"
        listed = f"list_position({self.texts(feature.categories)}, {text})"
        return (
            f"CASE WHEN {column} IS NULL THEN 0 "
            f"ELSE coalesce({listed}, {len(feature.categories) + 1}) END"
        )

    def side(self, sides: str, place: str) -> str:
        return f"get_bit('{sides}'::BIT, {place}::INTEGER)"

    def total(self, numbers: str) -> str:
        return f"list_sum({numbers})"

    def _looked_up(self, content: Content, codes: str, table: str) -> str:
        """Return the values of cells; ``table`` is that of code i."""
        mixed = f"list_transform({codes}, lambda h: {self.step('h', 16, 0)})"
        mixed = f"list_transform({mixed}, lambda h: {self.step('h', 13, 1)})"
        cell = self.cell(content, "h", f"{codes}[i]", table)
        place = f"{self.ints(content.first)}[{table}] + {cell}"
        return f"list_transform({mixed}, lambda h, i: {self.ints(content.values)}[{place}])"

    def sums(self, content: Content) -> list[str]:
        return [f"{self._looked_up(content, 'c', 'i')} AS v", "list_sum(v) AS total"]

    def reasons(self, source: str, content: Content, when: str) -> str:
        found = content.alternatives()
        tables, keep, flip = map(self.ints, (found.table, found.keep, found.flip))
        begins = self.ints([1, *(found.ends[:-1] + 1)] if len(found.ends) else [])
        d = range(len(content.features))
        last = [int((found.feature <= j).sum()) for j in d]
        first = [1, *(end + 1 for end in last[:-1])]
        moved = self.xor(f"(c[t] & {keep}[i])", f"{flip}[i]")
        better = f"list_max(a[{begins}[i]:{self.ints(found.ends)}[i]]) - v[t]"
        m, names = number(content.n_tables), self.texts(f.name for f in content.features)
        share = self.share(content, "x", f"{self.floats(content.equal)}[j]", "b[j]")
        stages = [
            f"list_transform({tables}, lambda t, i: {moved}) AS a",
            f"{self._looked_up(content, 'a', f'{tables}[i]')} AS a",
            f"list_transform({self.ints(found.groups)}, lambda t, i: CASE WHEN "
            f"v[t] < {self.ints(content.limits)}[t] THEN greatest(0, {better}) ELSE 0 END) AS a",
            f"list_transform({self.ints(first)}, lambda s, j: "
            f"coalesce(list_sum(a[s:{self.ints(last)}[j]]), 0) / {UNIT}e0) AS a",
            "list_sum(a) AS gained",
            f"{m} * ({number(content.typical)} - clipped) - gained AS rest",
            "CASE WHEN rest > 0e0 AND gained > 0e0 THEN (gained + rest) / gained ELSE 1e0 END "
            "AS scale",
            "CASE WHEN scale > 1e0 THEN 0e0 ELSE rest END AS rest",
            f"list_transform(a, lambda x, j: {share}) AS a",
            f"CASE WHEN list_max(a) > 0e0 THEN {names}[list_position(a, list_max(a))] END "
            "AS reason",
        ]
        for stage in stages:
            made, name = stage.rsplit(" AS ", 1)
            known = f"* EXCLUDE ({name})" if f" {name}\n" in source else "*"
            source = f"SELECT {known}, CASE WHEN {when} THEN {made} END AS {name}\nFROM (\n{source}\n) AS q"
        return source
