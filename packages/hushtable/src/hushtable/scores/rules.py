"""Rules of a table's owner: values that are impossible or irrelevant, and rows that are known.

They are in a TOML file next to the model, may contain values of rows, and stay there: no model,
count, plan or report of another site contains any part of them. A ``[[column]]`` applies to the
values of one column, a ``[[known]]`` to rows, by some of their columns, which all have to match.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable import far
from hushtable.data.columns import as_column, as_numbers, as_texts, filled, texts_column
from hushtable.data.labels import fold, fold_texts
from hushtable.data.readers import Batch
from hushtable.data.schema import DATE, Feature, Schema
from hushtable.errors import DataError, UsageError
from hushtable.files import replacing
from hushtable.language import _
from hushtable.scores.rule_file import (
    BOUNDS,
    HEADER,
    Match,
    RuleColumns,
    Settings,
    block,
    bounds,
    checked,
    parsed,
)
from hushtable.scores.typical import UsualValues, plain_type, with_name

Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]


class Rules:
    """Rules for the rows that one model scores.

    Read them with `Rules.read`, or `Rules.from_dict`. All methods take batches whose first columns
    are the features of ``schema.of_rows``, in order, as returned by readers under the schema.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable import Feature, Schema
    >>> from hushtable.scores.rules import Rules
    >>> schema = Schema([Feature.numeric(name, low=0, high=120) for name in ("age", "z")])
    >>> content = {"column": [{"name": "z", "impossible": [0]}], "known": [{"age": 41, "z": 3}]}
    >>> rules, rows = Rules.from_dict(content, schema), np.array([[41.0, 3.0], [52.0, 0.0]])
    >>> rules.impossible(rows).tolist(), rules.words(1, "0")
    ([-1, 1], 'z 0: impossible by your rules')
    >>> rules.known(rows).tolist()
    [True, False]
    """

    def __init__(
        self, table: RuleColumns, settings: dict[int, Settings], known: Sequence[frozenset[Match]]
    ) -> None:
        self._table, self._settings, self._rows = table, settings, frozenset(known)
        self._impossible = {
            j: _Impossible.of(table.features[j], said)
            for j, said in sorted(settings.items())
            if said.keys() & {"impossible", *BOUNDS}
        }
        self._limits = {
            j: _Limits.of(said, table.middle(j))
            for j, said in sorted(settings.items())
            if said.keys() & {"only", "ignore_within"}
        }
        self._known = _KnownRows(table, known)

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        schema: Schema,
        usual: Sequence[UsualValues | None] | None = None,
        columns: Sequence[str] | None = None,
    ) -> "Rules":
        """Read the rules for a table from a file.

        Parameters
        ----------
        path : path
            The file, in TOML. An empty file has no rules.
        schema : Schema
            Schema of the model.
        usual : sequence of UsualValues, optional
            What is usual for each feature of the schema, if the model knows (`Usual.values`).
        columns : sequence of str, optional
            Columns of the rows, which known rows may name; None allows any.

        Returns
        -------
        Rules

        Raises
        ------
        UsageError
            If it is not such a file, or if its rules do not fit the table or each other; the
            message names the file, the rule and what it needs.
        OSError
            If the file cannot be read.
        """
        content = parsed(Path(path).read_bytes(), str(path))
        return cls.from_dict(content, schema, usual, columns, str(path))

    @classmethod
    def from_dict(
        cls,
        content: Mapping[str, Any],
        schema: Schema,
        usual: Sequence[UsualValues | None] | None = None,
        columns: Sequence[str] | None = None,
        source: str = "rules",
    ) -> "Rules":
        """Build the rules from a file's content, as TOML reads it; ``source`` names the file.

        The other parameters and the exceptions are those of `read`.
        """
        table = RuleColumns.of(schema, usual, columns)
        return cls(table, *checked(content, table, source))

    @property
    def columns(self) -> list[str]:
        """Names of the columns, other than features, that known rows need; each once."""
        return self._known.columns

    def applied(self, batch: Batch, predicted: Mapping[int, Floats] | None = None) -> Batch:
        """Return the rows for scoring, in which irrelevant values are replaced by usual ones.

        With ``only``, a value on the other side of the median becomes the median; within
        ``ignore_within`` beyond the usual range, it becomes the nearer end of that range. If the
        context of the rows predicts values, the other side is that of the prediction, and no value
        moves past its prediction. Missing values and infinities do not change, and neither do
        columns after the features.

        Parameters
        ----------
        batch : ndarray or pyarrow.RecordBatch
            It is not modified.
        predicted : mapping of int to ndarray of shape (n,), optional
            Predicted values, by the numbers of features.

        Returns
        -------
        ndarray or pyarrow.RecordBatch
            ``batch`` itself if no value changes. Integers become floats if necessary.
        """
        predicted = predicted or {}
        if isinstance(batch, np.ndarray):
            return self._applied_to_matrix(batch, predicted)
        before = batch.columns
        columns = list(before)
        for j, limits in self._limits.items():
            values = as_numbers(columns[j], self._table.features[j].name)
            for places, value in limits.changes(values, predicted.get(j)):
                columns[j] = _with_value(columns[j], places, value)
        if all(new is old for new, old in zip(columns, before, strict=True)):
            return batch
        return pa.RecordBatch.from_arrays(columns, batch.schema.names)

    def _applied_to_matrix(self, X: NDArray[Any], predicted: Mapping[int, Floats]) -> NDArray[Any]:
        changed = X
        for j, limits in self._limits.items():
            for places, value in limits.changes(X[:, j], predicted.get(j)):
                if changed is X:
                    changed = X.copy() if X.dtype.kind == "f" else X.astype(np.float64)
                changed[places, j] = value if isinstance(value, float) else value[places]
        return changed

    @staticmethod
    def restored(ruled: Batch, batch: Batch, places: Bools) -> Batch:
        """Return a batch as changed by `applied`, except at some places (n,), which stay."""
        if isinstance(batch, np.ndarray) or isinstance(ruled, np.ndarray):
            return np.where(places[:, np.newaxis], batch, ruled)
        columns, there = list(ruled.columns), as_column(places)
        for j, (old, new) in enumerate(zip(batch.columns, columns, strict=True)):
            # A column that changed is not encoded as a dictionary.
            if not (pa.types.is_dictionary(new.type) or new.equals(old)):
                same = plain_type(old) == new.type
                before = old.cast(new.type) if same else as_column(as_numbers(old, ""))
                columns[j] = pc.if_else(there, before, new)
        return pa.RecordBatch.from_arrays(columns, batch.schema.names)

    def impossible(self, batch: Batch) -> Ints:
        """Return the number of the first feature of each row (n,) with an impossible value, or -1.

        Use rows as they were read: `applied` may have replaced impossible values.
        """
        found = np.full(len(batch), -1, np.int64)
        for j, one in self._impossible.items():
            found[one.of_column(_column(batch, j)) & (found < 0)] = j
        return found

    def words(self, j: int, text: str) -> str:
        """Return words about an impossible value of feature j, whose written form is ``text``."""
        what = with_name(self._table.features[j], text)
        return _("%(what)s: impossible by your rules", what=what)

    def known(self, batch: Batch) -> Bools:
        """Return which rows (n,) are known.

        A number matches an equal one of any type; a date matches its midnight. A missing value
        matches nothing. In a text column after the features, a number or date matches its usual
        spellings: 17 is "17" or "17.0".

        Parameters
        ----------
        batch : ndarray or pyarrow.RecordBatch
            With `columns` after the features, found by their names.

        Returns
        -------
        ndarray of shape (n,), bool

        Raises
        ------
        DataError
            If one of `columns` is missing.
        """
        return self._known.of(batch)


def rules_path(model: str | os.PathLike[str]) -> Path:
    """Return the path of a model's rules: ``m.rules.toml`` next to ``m.hush``.

    Raises `UsageError` for a URL, because rules stay at the site.
    """
    name = os.fspath(model)
    if far.is_url(name):
        raise UsageError(f"{far.public(name)}: rules are next to a model on this machine: copy it")
    path = Path(name)
    return path.with_name(f"{path.name.removesuffix('.hush')}.rules.toml")


def rules_beside(model: str | os.PathLike[str]) -> Path | None:
    """Return the file of rules next to a model; None if there is none, or the model is remote."""
    if far.is_url(os.fspath(model)):
        return None
    path = rules_path(model)
    return path if path.exists() else None


def add_rule(
    path: str | os.PathLike[str],
    kind: Literal["column", "known"],
    rule: Mapping[str, Any],
    schema: Schema,
    usual: Sequence[UsualValues | None] | None = None,
    columns: Sequence[str] | None = None,
) -> bool:
    """Append a rule to a file, which is created if necessary; existing bytes do not change.

    Parameters
    ----------
    path : path
        The file. It is either replaced as a whole or left unchanged.
    kind : {"column", "known"}
        What the rule applies to.
    rule : mapping
        Its entries, such as ``{"name": "z", "impossible": [0]}`` or ``{"order": 17}``.
    schema, usual, columns
        As in `Rules.read`.

    Returns
    -------
    bool
        Whether the file changed: it does not if it already contains the rule.

    Raises
    ------
    UsageError
        If the rule does not fit the table or the existing rules, or if these cannot be read.
        Nothing is written in this case.
    OSError
        If the file cannot be read or written.
    """
    target = Path(os.path.realpath(path))  # a link stays a link
    found = target.read_bytes() if target.exists() else b""
    before = found or HEADER.encode()
    after = before + block(kind, rule, before)
    try:
        content = parsed(after, str(path))
    except UsageError:
        Rules.from_dict(parsed(before, str(path)), schema, usual, columns, str(path))
        raise
    *earlier, added = content[kind]
    if block(kind, added, before) != block(kind, rule, before):
        raise UsageError(
            f"{path}: {rule!r} becomes {added!r} in a TOML file: add it to the file yourself"
        )
    old = Rules.from_dict(content | {kind: earlier}, schema, usual, columns, str(path))
    where = f"{path}: [[known]] {len(earlier) + 1}"
    if kind == "known" and old._table.matches(added, where) in old._rows:
        return False
    new = Rules.from_dict(content, schema, usual, columns, str(path))
    if new._settings == old._settings and new._rows == old._rows:
        return False
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    with replacing(target) as file:
        file.write(after)
    if mode is not None:
        os.chmod(target, mode)
    return True


@dataclass(frozen=True)
class _Impossible:
    """Values of a feature that are impossible."""

    feature: Feature
    values: NDArray[np.float64] | pa.Array
    below: float
    above: float

    @classmethod
    def of(cls, feature: Feature, said: Settings) -> "_Impossible":
        found = sorted(said.get("impossible", ()))
        values = np.array(found, float) if feature.kind == "numeric" else _texts_of(found)
        return cls(feature, values, *bounds(said))

    def of_column(self, column: Any) -> Bools:
        """Return which values (n,) of a column are impossible."""
        if self.feature.kind == "categorical":
            return np.asarray(_text_places(column, self.feature.name, self.values) >= 0)
        numbers = _numbers(column, self.feature.name, self.feature.unit == DATE)
        with np.errstate(over="ignore"):  # numbers are compared in the column's precision
            found: Bools = (numbers < self.below) | (numbers > self.above)
            if len(self.values):
                found |= np.isin(numbers, _like(self.values, numbers))
        return found


@dataclass(frozen=True)
class _Limits:
    """Numbers of a feature that all count unchanged, and how far beyond they count as the limit."""

    bottom: float = -np.inf
    low: float = -np.inf
    high: float = np.inf
    top: float = np.inf

    @classmethod
    def of(cls, said: Settings, middle: tuple[float, float, float] | None) -> "_Limits":
        assert middle is not None  # `_check_settings` ensures this
        low, median, high = map(float, middle)
        within, only = said.get("ignore_within"), said.get("only")
        found = {}
        if within is not None:
            # 0.7 plus 0.1 is 0.8, although not in floats.
            within += 4.0 * float(np.spacing(max(abs(low), abs(high), within)))
            found = {"bottom": low - within, "low": low, "high": high, "top": high + within}
        if only == "high":
            found |= {"bottom": -np.inf, "low": median}
        if only == "low":
            found |= {"high": median, "top": np.inf}
        return cls(**found)

    def changes(
        self, values: NDArray[Any], predicted: Floats | None = None
    ) -> Iterator[tuple[Bools, float | Floats]]:
        """Yield which values (n,) are replaced, and the replacements, if there are any."""
        low: float | Floats = self.low
        high: float | Floats = self.high
        if predicted is not None:
            low, high = self._around(values, predicted)
        with np.errstate(over="ignore"):
            lower = (values < low) & (values >= self.bottom)
            upper = (values > high) & (values <= self.top)
        for places, value in ((lower, low), (upper, high)):
            if places.any() and (places := places & np.isfinite(values)).any():
                yield places, value

    def _around(self, values: NDArray[Any], predicted: Floats) -> tuple[Floats, Floats]:
        """Return the ends, for each value (n,), that are between it and its prediction."""
        low = np.full(len(values), -np.inf) if self.low == -np.inf else predicted
        high = np.full(len(values), np.inf) if self.high == np.inf else predicted
        if np.isfinite(self.bottom):
            low = np.minimum(self.low, np.fmax(values, predicted))
        if np.isfinite(self.top):
            high = np.maximum(self.high, np.fmin(values, predicted))
        return low, high


# --- columns of batches ---------------------------------------------------------------------------


def _column(batch: Batch, j: int) -> Any:
    return batch[:, j] if isinstance(batch, np.ndarray) else batch.column(j)


def _numbers(column: Any, name: str, dated: bool) -> NDArray[Any]:
    """Return the numbers (n,) of a column; dates to the microsecond, which floats can hold."""
    values = column if isinstance(column, np.ndarray) else as_numbers(column, name)
    return np.round(values, 6) if dated and values.dtype == np.float64 else values


def _like(values: NDArray[np.float64], numbers: NDArray[Any]) -> NDArray[Any]:
    """Return values in the precision of the numbers with which they are compared."""
    return values.astype(numbers.dtype) if numbers.dtype.kind == "f" else values


def _text_places(column: Any, name: str, texts: pa.Array) -> Ints:
    """Return the place of each text (n,) of a column among some texts; -1 if it is not there."""
    if isinstance(column, np.ndarray):
        column = as_column(column)
    index = pc.index_in(fold_texts(as_texts(column, name)), texts, skip_nulls=True)
    return filled(index, -1).astype(np.int64)


def _texts_of(texts: Iterable[str]) -> pa.Array:
    """Return the texts in a rule in the form in which they are looked up."""
    return texts_column([*map(fold, texts)])


def _is_time(kind: pa.DataType) -> bool:
    tests = (pa.types.is_date, pa.types.is_timestamp, pa.types.is_duration, pa.types.is_time)
    return any(test(kind) for test in tests)


def _with_value(column: pa.Array, places: Bools, value: float | Floats) -> pa.Array:
    """Return a column of numbers with a value at some places, of the same type if possible.

    If ``value`` is an array (n,), the result has floats.
    """
    if not isinstance(value, float):
        return as_column(np.where(places, value, as_numbers(column, "")))
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    one = _of_type(value, column.type)
    if one is None:
        column, one = pc.cast(column, pa.float64(), safe=False), as_column(np.array([value]))
    return pc.if_else(as_column(places), one[0], column)


def _of_type(value: float, kind: pa.DataType) -> pa.Array | None:
    """Return a number as an array of one of an Arrow type; None if the type cannot hold it."""
    if _is_time(kind):
        days = {pa.date32(): 1.0 / 86_400.0, pa.date64(): 1e3}
        ticks = days.get(kind) or {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit]
        whole = np.int32 if kind.bit_width == 32 else np.int64
        return as_column(np.array([round(value * ticks)], whole)).cast(kind)
    try:
        one = pc.cast(as_column(np.array([value])), kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return one if pa.types.is_floating(kind) or as_numbers(one, "")[0] == value else None


# --- known rows -----------------------------------------------------------------------------------


def _spellings(match: Match) -> set[str]:
    """Return the spellings of a value in a text column."""
    if isinstance(match.value, str):
        return {match.value}
    if match.kind == "number":
        whole = float(match.value).is_integer()
        return {match.text, f"{match.text}.0"} if whole else {match.text}
    at = datetime(1970, 1, 1) + timedelta(seconds=match.value)
    found = {at.isoformat(sep) for sep in " T"}
    if not (at.second or at.microsecond):
        found |= {at.isoformat(sep, "minutes") for sep in " T"}
    if not (at.hour or at.minute or at.second or at.microsecond):
        found.add(at.date().isoformat())
    return {match.text} | found | {f"{one}Z" for one in found}


class _Lookup:
    """The values of one kind in one column that known rows have to match: each has a code."""

    def __init__(self, matches: Sequence[Match], place: int | None) -> None:
        self.name, self._kind = matches[0].column, matches[0].kind
        self.place = place
        self.codes = {v: code for code, v in enumerate(dict.fromkeys(m.value for m in matches))}
        if self._kind != "text":
            numbers = np.array([*self.codes], np.float64)
            self._order = np.argsort(numbers, kind="stable")
            self._numbers = numbers[self._order]
        spelled = {
            text: self.codes[m.value]
            for m in matches
            if self._kind == "text" or place is None
            for text in _spellings(m)
        }
        self._texts, self._text_codes = _texts_of(spelled), np.array([*spelled.values()])

    def of(self, batch: Batch) -> Ints:
        """Return the code of each row (n,); -1 if it has none of the values."""
        column = self._column(batch)
        if self._are_numbers(column):
            values = _numbers(column, self.name, self._kind == "date")
            with np.errstate(over="ignore"):
                known = _like(self._numbers, values)
            at = np.minimum(np.searchsorted(known, values), len(known) - 1)
            return np.where(known[at] == values, self._order[at], -1)
        at = _text_places(column, self.name, self._texts)
        return np.where(at >= 0, self._text_codes[at], -1)

    def _column(self, batch: Batch) -> Any:
        if self.place is not None:
            return _column(batch, self.place)
        if not isinstance(batch, np.ndarray):
            names = [*map(fold, batch.schema.names)]
            if fold(self.name) in names:
                return batch.column(names.index(fold(self.name)))
        raise DataError(
            f"the rows have no column {self.name!r}, which known rows have to match: add it, or "
            "remove it from the rules"
        )

    def _are_numbers(self, column: Any) -> bool:
        """Whether the values of a column are compared as numbers, and not as texts."""
        if self._kind == "text" or self.place is not None:
            return self._kind != "text"
        kind = plain_type(column)
        # Whole numbers after the features may be too large for floats; their text is exact.
        floats = pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        return floats if self._kind == "number" else _is_time(kind)


class _KnownRows:
    """Finds all known rows at once: rules about the same columns form one tree of codes."""

    def __init__(self, table: RuleColumns, rows: Sequence[frozenset[Match]]) -> None:
        by_column: dict[tuple[str, str], list[Match]] = {}
        alike: dict[tuple[tuple[str, str], ...], list[list[Match]]] = {}
        for row in rows:
            matches = sorted(row, key=lambda m: m[:2])
            alike.setdefault(tuple(m[:2] for m in matches), []).append(matches)
            for m in matches:
                by_column.setdefault(m[:2], []).append(m)
        lookups = {key: _Lookup(some, table.places.get(key[0])) for key, some in by_column.items()}
        self.columns = list(
            dict.fromkeys(one.name for one in lookups.values() if one.place is None)
        )
        self._lookups = list(lookups.values())
        self._trees = []
        for keys, some in alike.items():
            steps, nodes = [], np.zeros(len(some), np.int64)
            for c, one in enumerate(lookups[key] for key in keys):
                codes = np.array([one.codes[matches[c].value] for matches in some])
                branches, nodes = np.unique(nodes * len(one.codes) + codes, return_inverse=True)
                steps.append((one, branches))
            self._trees.append(steps)

    def of(self, batch: Batch) -> Bools:
        """Return which rows (n,) are known."""
        known = np.zeros(len(batch), np.bool_)
        codes = {one: one.of(batch) for one in self._lookups}
        for steps in self._trees:
            rows = np.flatnonzero(codes[steps[0][0]] >= 0)
            nodes = np.zeros(len(rows), np.int64)
            for one, branches in steps:
                found = codes[one][rows]
                wanted = nodes * len(one.codes) + found
                at = np.minimum(np.searchsorted(branches, wanted), len(branches) - 1)
                same = (branches[at] == wanted) & (found >= 0)
                rows, nodes = rows[same], at[same]
            known[rows] = True
        return known
