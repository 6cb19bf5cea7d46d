"""The list of unusual rows: its facets, filters, order, and exports."""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from hushtable.language import N_, WORDS, numerals
from hushtable.scores.finding import Finding, as_text
from hushtable.scores.outliers import Outliers
from hushtable.scores.reasons import Reason
from hushtable.scores.typical import cell, describe_cell, read_value
from hushtable.scores.verdict_log import SKIP, Answer

#: Kinds of reasons, each with its sign and its name in English.
KINDS = {
    "rule": ("⊘", N_("impossible")),
    "far": ("▲", N_("far outside")),
    "context": ("◧", N_("context")),
    "history": ("◔", N_("history")),
    "pair": ("✕", N_("combinations")),
    "value": ("△", N_("values")),
    "none": ("·", N_("no single column")),
}
#: Criteria that filter a list, each with its name in English.
FACETS = {
    "reason": N_("Reason"), "column": N_("Column"), "context": N_("Context"),
    "value": N_("Value"), "incident": N_("Similar"), "verdict": N_("Verdict"),
    "who": N_("Judged by"), "opinion": N_("Other verdicts"),
}  # fmt: skip
#: How the last verdict on a row compares with those of other people, in English.
OPINIONS = {
    "theirs": N_("judged by others only"), "same": N_("judged alike"),
    "differs": N_("judged differently"),
}  # fmt: skip
#: Orders of a list, each with its name in English; and directions of an order by a column.
ORDERS = {
    "unusual": N_("most unusual first"), "row": N_("as in the file"), "name": N_("by name"),
}  # fmt: skip
DIRECTIONS = {"up": N_("lowest first"), "down": N_("highest first")}
NEW = "new"
#: Share of all rows below which a category is rare in every context.
_RARE = 0.01
#: Number of values of a facet in the menu, and of columns in which a text is searched.
_MOST, _SEARCHED = 12, 300


@dataclass(frozen=True)
class Line:
    """A row of the list."""

    rank: int
    row: Finding
    number: int
    name: str
    severity: float
    kind: str
    words: str
    context: str
    #: Number of its incident, from 1, and its number of similar rows; 0 if there are none.
    incident: int
    n_alike: int
    column: str
    #: The value that is its strongest reason, with its column; empty if there is none.
    value_words: str
    answer: Answer | None
    #: The last verdicts of other people.
    others: Sequence[Answer] = ()

    @property
    def opinion(self) -> str:
        """How its last verdict compares with those of others, as in `OPINIONS`; or empty."""
        if not self.others:
            return ""
        if self.verdict in (NEW, SKIP):
            return "theirs"
        return "same" if {answer.verdict for answer in self.others} == {self.verdict} else "differs"

    @property
    def sign(self) -> str:
        """The sign of its strongest reason."""
        return KINDS[self.kind][0]

    @property
    def verdict(self) -> str:
        """The last verdict on it, or "new"."""
        return NEW if self.answer is None else self.answer.verdict

    def value(self, facet: str) -> str:
        """Return its value of a facet; empty if it has none."""
        values = {
            "reason": self.kind, "column": self.column, "context": self.context,
            "value": self.value_words, "incident": str(self.incident or ""),
            "verdict": self.verdict, "who": "" if self.answer is None else self.answer.who,
            "opinion": self.opinion,
        }  # fmt: skip
        return values[facet]


@dataclass(frozen=True)
class FacetValue:
    """A value of a facet: its number of rows, and the key that replaces it in an address."""

    value: str
    words: str
    n: int
    key: str
    on: bool


@dataclass(frozen=True)
class Query:
    """The state of a list, as in its address, which holds no values of rows.

    ``chosen`` has, by facet, the key of the chosen value; ``columns`` are the columns to show.
    """

    chosen: Mapping[str, str] = field(default_factory=dict)
    order: str = "unusual"
    columns: tuple[str, ...] = ()

    @classmethod
    def of(cls, params: Mapping[str, str]) -> "Query":
        """Read the state from an address; unknown parts are left out."""
        chosen = {name: params[name] for name in FACETS if params.get(name)}
        order = params.get("order", "unusual")
        columns = tuple(name for name in params.get("columns", "").split("\t") if name)
        return cls(chosen, order, columns)

    @property
    def sorted_by(self) -> tuple[str, str]:
        """The column that orders the list, and the direction; empty for another order."""
        direction, _, column = self.order.partition(":")
        return (column, direction) if direction in DIRECTIONS else ("", "")

    @property
    def parameters(self) -> dict[str, str]:
        """The state in the form of an address."""
        params = dict(self.chosen)
        if self.order != "unusual":
            params["order"] = self.order
        if self.columns:
            params["columns"] = "\t".join(self.columns)
        return params

    def toggled(self, facet: str, key: str) -> "Query":
        """Return the state with a value of a facet chosen, or no longer."""
        chosen = {name: value for name, value in self.chosen.items() if name != facet}
        if self.chosen.get(facet) != key:
            chosen[facet] = key
        return replace(self, chosen=chosen)


def key_of(value: str) -> str:
    """Return the key that replaces a value in an address and reveals nothing of it."""
    return hashlib.sha256(value.encode()).hexdigest()[:8]


@dataclass(frozen=True)
class JudgedOutliers(Outliers):
    """A list with the verdicts on its rows, for an export."""

    answers: Mapping[int, Answer] = field(default_factory=dict)
    others: Mapping[int, Sequence[Answer]] = field(default_factory=dict)

    def table(self) -> pa.Table:
        """Return the table of the list, with verdict, note, person, and time."""
        table = super().table()
        mine = [self.answers.get(row.row) for row in self.rows]
        for name in ("verdict", "note", "who", "when"):
            texts = [None if a is None else getattr(a, name) or None for a in mine]
            label = f"judged {name}" if name in table.column_names else name
            table = table.append_column(label, pa.array(texts, pa.string()))
        if self.others:
            beside = [self.others.get(row.row, ()) for row in self.rows]
            words = [", ".join(f"{a.who}: {a.verdict}" for a in answers) for answers in beside]
            table = table.append_column("other verdicts", pa.array(words, pa.string()))
        return table


class Listing:
    """The rows of a list.

    Parameters
    ----------
    found : Outliers
        The rows, the most unusual first.
    last : callable
        Returns the last verdict on each row that has one.
    others : callable
        Returns the last verdicts of other people on each row that has some.
    id_ : str or None
        The kept column that names rows.
    context : sequence of str
        The columns that rows are compared within.
    """

    def __init__(
        self,
        found: Outliers,
        last: Callable[[], Mapping[int, Answer]],
        others: Callable[[], Mapping[int, Sequence[Answer]]],
        id_: str | None,
        context: Sequence[str],
    ) -> None:
        self.found, self._last, self._others = found, last, others
        self._id = id_ if id_ in found.keep else None
        self._context = list(context)
        self._incident = {k: n for n, one in enumerate(found.incidents, 1) for k in one.rows}
        self._places = {row.row: k for k, row in enumerate(found.rows)}
        #: Verdicts, and the lines with them: a page needs the lines once for each facet.
        self._made: tuple[object, list[Line]] | None = None

    @property
    def lines(self) -> list[Line]:
        """All rows, in order, with the last verdicts on them."""
        last, others = dict(self._last()), self._others()
        if self._made is None or self._made[0] != (last, others):
            lines = [
                replace(self._line(k, row, last.get(row.row)), others=others.get(row.row, ()))
                for k, row in enumerate(self.found.rows)
            ]
            self._made = (last, others), lines
        return self._made[1]

    def _line(self, k: int, row: Finding, answer: Answer | None) -> Line:
        reasons = row.reasons
        first = reasons[0] if reasons else None
        number = self._incident.get(k, 0)
        return Line(
            k + 1, row, row.row, self._name(row), row.severity,
            self._kind(row, first), row.rule or (first.words if first else ""),
            first.within if first else "", number,
            len(self.found.incidents[number - 1].rows) if number else 0,
            WORDS.say(" and ").join(first.columns) if first else "",
            f"{first.feature} {first.phrase.text}"
            if first and not first.partner else "", answer,
        )  # fmt: skip

    def _kind(self, row: Finding, first: Reason | None) -> str:
        if row.rule:
            return "rule"
        if row.far:
            return "far"
        if first is None or not first.kind:
            return "none"
        if first.partner:
            return "pair"
        j = next(k for k, col in enumerate(self.found.features) if col.name == first.feature)
        if self.found.features[j].neutral:  # as for reasons from a history only
            return "history"
        return "value" if self._odd_anywhere(j, first) else "context"

    def _odd_anywhere(self, j: int, first: Reason) -> bool:
        usual = None if self.found.usual is None else self.found.usual.values[j]
        if usual is None or not self._context:
            return True
        if isinstance(first.value, float) and usual.middle is not None:
            return not usual.middle[0] <= first.value <= usual.middle[2]
        if first.value is None:
            return usual.missing < _RARE
        return usual.share(self.found.features[j], first.value) < _RARE

    def _name(self, row: Finding) -> str:
        text = "" if self._id is None else as_text(row.kept_values[self._id])
        return text or numerals(f"{row.row:,}")

    def similar(self, number: int) -> tuple[int, Query]:
        """Return how many rows have a row's strongest reason, and the query for them; 0 if none."""
        place = self._places.get(number, -1)
        incident = self._incident.get(place, 0)
        n = len(self.found.incidents[incident - 1].rows) if incident else 0
        return n, Query().toggled("incident", key_of(str(incident)))

    def rarity(self, line: Line) -> float:
        """Return how rare a row is from 0 to 1, on a logarithmic scale: 1 is a unique row."""
        share = max(1.0 - line.severity / 100.0, 1.0 / self.found.n_rows)
        return math.log(1.0 / share) / max(math.log(self.found.n_rows), 1.0)

    def chosen(self, query: Query) -> list[Line]:
        """Return the rows that a query selects, in its order."""
        lines = [
            line for line in self.lines
            if all(key_of(line.value(f)) == key for f, key in query.chosen.items())
        ]  # fmt: skip
        if query.order == "row":
            lines.sort(key=lambda line: line.number)
        if query.order == "name":
            lines.sort(key=lambda line: (line.name, line.number))
        column, direction = query.sorted_by
        if column in self.columns:
            values = {line.number: self.value(line, column)[0] for line in lines}
            known = [line for line in lines if values[line.number] is not None]
            known.sort(key=lambda line: values[line.number], reverse=direction == "down")
            lines = [*known, *(line for line in lines if values[line.number] is None)]
        return lines

    @property
    def columns(self) -> list[str]:
        """The columns that can order the list: features, and columns that are kept."""
        return [*dict.fromkeys([*(col.name for col in self.found.features), *self.found.keep])]

    def value(self, line: Line, column: str) -> tuple[Any, str]:
        """Return a value of a row, None if it is missing, and the value as text."""
        if column in self.found.keep:
            kept = line.row.kept_values[column]
            value = kept[0].as_py()
            return None if value != value else value, as_text(kept)  # NaN is a missing value
        assert line.row.evidence is not None  # the review kept it
        j = next(k for k, one in enumerate(self.found.features) if one.name == column)
        feature, one = self.found.features[j], cell(line.row.evidence[0], j, 0)
        return read_value(feature, one), describe_cell(feature, one, None).text

    def holds(self, line: Line, text: str) -> bool:
        """Return whether a row's reasons, or one of its values, hold a text."""
        columns = [*self.found.keep, *self.columns][:_SEARCHED]
        texts = (line.words, *(self.value(line, column)[1] for column in columns))
        return any(text.casefold() in part.casefold() for part in texts)

    def shown(self, query: Query) -> list[str]:
        """Return the columns whose values a query shows in each line."""
        return [
            name for name in dict.fromkeys([query.sorted_by[0], *query.columns])
            if name in self.columns
        ]  # fmt: skip

    def facets(self, query: Query) -> dict[str, list[FacetValue]]:
        """Return the values of each facet in the rows that other facets leave, largest first."""
        facets = {}
        for facet in FACETS:
            others = replace(query, chosen={f: k for f, k in query.chosen.items() if f != facet})
            counts = Counter(line.value(facet) for line in self.chosen(others))
            values = [
                FacetValue(value, self._words(facet, value), n, key_of(value),
                           query.chosen.get(facet) == key_of(value))
                for value, n in counts.most_common() if value
            ]  # fmt: skip
            if facet == "value":
                values = [option for option in values if option.n > 1 or option.on]
            values.sort(key=lambda option: not option.on)
            facets[facet] = values[:_MOST]
        return facets

    def _words(self, facet: str, value: str) -> str:
        if facet == "reason":
            return KINDS[value][1]
        if facet == "opinion":
            return OPINIONS[value]
        if facet == "incident":
            return self.found.incidents[int(value) - 1].words
        return value

    def outliers(self, query: Query) -> JudgedOutliers:
        """Return the rows that a query selects, to be exported."""
        lines = self.chosen(query)
        fields = {name: getattr(self.found, name) for name in Outliers.__dataclass_fields__}
        fields["rows"] = [line.row for line in lines]
        return JudgedOutliers(**fields, answers=dict(self._last()), others=self._others())
