"""Rules of a table's owner: values that are impossible, and rows that are known.

They are in a TOML file next to the model, may contain values of rows, and stay there: no model,
count, plan or report of another site contains any part of them. A ``[[column]]`` states which
values of one column are impossible, a ``[[known]]`` which rows are known, by some of their columns,
which all have to match.
"""

import difflib
import math
import os
import re
import stat
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable import far
from hushtable.arguments import JsonObject
from hushtable.data.columns import as_column, as_numbers, as_texts, texts_column
from hushtable.data.labels import fold, fold_texts
from hushtable.data.layout_file import in_toml
from hushtable.data.readers import Batch, found_name, near_names
from hushtable.data.schema import DATE, SINCE, Feature, Schema, value_words
from hushtable.errors import DataError, UsageError
from hushtable.files import replacing
from hushtable.language import _
from hushtable.scores.typical import MAJORITY, UsualValues, with_name

Bools: TypeAlias = NDArray[np.bool_]

#: Header of a file that `write_rule` creates.
HEADER = """\
# Rules for this table. They stay next to the model and never leave this site.
#
# [[column]]                    # values of one column, with any of the lines below "name"
# name = "creatinine"
# impossible = [0, 999]         # numbers, texts or dates
# impossible_below = 0.1
# impossible_above = 40
#
# [[known]]                     # rows that are known: all the given columns have to match
# order = 17
"""
_SETTINGS = ("impossible", "impossible_below", "impossible_above")
_LENGTHS = {"day": 86_400.0, "hour": 3_600.0, "minute": 60.0, "second": 1.0}
_LENGTH = re.compile(r"(\d{1,9}(?:\.\d+)?) (day|hour|minute|second)s?")
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]|$)")
#: What the usual spellings of a point in time, and of a whole number, do not share.
_SPELLED_DATES: tuple[tuple[str, str], ...] = (
    (r"^(\d{4}-\d\d-\d\d)T", r"\1 "),
    (r"^(\d{4}-\d\d-\d\d.*)(Z|\+00:00)$", r"\1"),
    (r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\.0+$", r"\1"),
    (r"^(\d{4}-\d\d-\d\d \d\d:\d\d):00$", r"\1"),
    (r"^(\d{4}-\d\d-\d\d) 00:00$", r"\1"),
)
_SPELLED_NUMBERS: tuple[tuple[str, str], ...] = (
    (r"^(-?\d+)\.0$", r"\1"),
    (r"^(-?[\d.]+e-)0", r"\1"),
)


class KnownValue(NamedTuple):
    """A value that a known row must have in a column: the number of a feature, or a text."""

    column: str
    #: Whether the rule states a number, which a text column may hold as 17 or 17.0.
    number: bool
    value: float | str


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
        self,
        features: Mapping[str, Feature],
        impossible: "Sequence[_Impossible]",
        known: Sequence[frozenset[KnownValue]],
    ) -> None:
        self._features, self._names = features, list(features)
        self._impossible, self._known = impossible, frozenset(known)
        #: The columns that known rows have to match, with the values of each such row.
        self._alike: dict[tuple[tuple[str, bool], ...], list[list[KnownValue]]] = {}
        for row in self._known:
            values = sorted(row, key=lambda value: value[:2])
            self._alike.setdefault(tuple(value[:2] for value in values), []).append(values)

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        schema: Schema,
        usual: Sequence[UsualValues | None] | None = None,
    ) -> "Rules":
        """Read the rules for a table from a TOML file; an empty one has none.

        ``schema`` is that of the model, and ``usual`` what is usual for each of its features, if
        the model knows. Raises `UsageError` if the rules do not fit the table; the message names
        the file, the rule and what it needs.
        """
        return cls.from_dict(parsed_rules(path), schema, usual, str(path))

    @classmethod
    def from_dict(
        cls,
        content: Mapping[str, Any],
        schema: Schema,
        usual: Sequence[UsualValues | None] | None = None,
        source: str = "rules",
    ) -> "Rules":
        """Build the rules from a file's content, as `read` does; ``source`` names the file."""
        for key, blocks in content.items():
            if key not in ("column", "known"):
                raise UsageError(f"{source}: {key!r}: needs [[column]] and [[known]], nothing else")
            if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
                raise UsageError(f"{source}: {key!r}: needs double brackets: [[{key}]]")
        features = {feature.name: feature for feature in schema.of_rows.features}
        typical = dict(zip(features, usual or (), strict=False))  # without differences
        impossible = []
        for i, block in enumerate(content.get("column", ()), start=1):
            where = f"{source}: [[column]] {i}"
            if not isinstance(block.get("name"), str):
                raise UsageError(f'{where}: needs the name of its column: name = "..."')
            if (name := found_name(block["name"], features)) not in features:
                words = f"{_near(name, [*features])}{near_names([name], [*features])}"
                raise UsageError(f"{where}: no column {name!r}: {words}")
            where = f"{where}, {name!r}"
            impossible.append(_Impossible.of(features[name], block, typical.get(name), where))
        rows = []
        for i, block in enumerate(content.get("known", ()), start=1):
            where = f"{source}: [[known]] {i}"
            if not block:
                raise UsageError(f"{where}: needs at least one column, such as order = 17")
            known = set()
            for written, value in block.items():
                if isinstance(value, dict):
                    raise UsageError(
                        f'{where}: {written}: write a name with dots in quotes: "{written}...." = 1'
                    )
                name = found_name(written, features)
                feature, entry = features.get(name), f"{where}: {name} ="
                if feature is not None and feature.kind == "numeric":
                    known.add(KnownValue(name, True, _number(feature, value, entry)))
                else:
                    number = type(value) in (int, float)
                    known.add(KnownValue(name, number, _text(value, entry)))
            rows.append(frozenset(known))
        return cls(features, impossible, rows)

    @property
    def columns(self) -> list[str]:
        """Names of the columns, other than features, that known rows need; each once."""
        names = dict.fromkeys(name for keys in self._alike for name, _number in keys)
        return [name for name in names if name not in self._features]

    def impossible(self, batch: Batch) -> NDArray[np.int64]:
        """Return the number of the first feature of each row (n,) with an impossible value, or -1.

        Use rows as they were read.
        """
        none = len(self._names)
        first = np.full(len(batch), none)
        for rule in self._impossible:
            j = self._names.index(rule.feature.name)
            first[rule.of_column(_column(batch, j)) & (first > j)] = j
        return np.where(first == none, -1, first)

    def words(self, j: int, text: str) -> str:
        """Return words about an impossible value of feature j, whose written form is ``text``."""
        what = with_name(self._features[self._names[j]], text)
        return _("%(what)s: impossible by your rules", what=what)

    def known(self, batch: Batch) -> Bools:
        """Return which rows (n,) are known.

        A number matches an equal one of any type; a date matches its midnight. A missing value
        matches nothing. In a text column after the features, a number or date matches its usual
        spellings: 17 is "17" or "17.0". Raises `DataError` if one of `columns` is missing.
        """
        known = np.zeros(len(batch), np.bool_)
        for keys, rows in self._alike.items():
            names = [str(k) for k in range(len(keys))]
            pairs = [
                self._compared(batch, name, number, [row[k].value for row in rows])
                for k, (name, number) in enumerate(keys)
            ]
            values = pa.table([values for values, _needed in pairs], names)
            needed = pa.table([needed for _values, needed in pairs], names)
            values = values.append_column("row", as_column(np.arange(len(batch))))
            matching = values.join(needed, names, join_type="left semi", use_threads=False)
            known[matching.column("row").to_numpy()] = True
        return known

    def _compared(
        self, batch: Batch, name: str, number: bool, needed: Sequence[float | str]
    ) -> tuple[pa.Array, pa.Array]:
        feature = self._features.get(name)
        if feature is None:
            patterns = _SPELLED_NUMBERS if number else ()
            if any(_ISO_DATE.match(str(text)) for text in needed):
                patterns = _SPELLED_DATES
            texts = _texts_of(needed)
            return _spelled(_behind(batch, name), patterns), _spelled(texts, patterns)
        column = _column(batch, self._names.index(name))
        if feature.kind == "categorical":
            return _texts(column, name), _texts_of(needed)
        numbers = _numbers(column, feature)
        numbers = (numbers if numbers.dtype.kind == "f" else numbers.astype(np.float64)) + 0.0
        return as_column(numbers), as_column(_like(needed, numbers))


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


def write_rule(
    path: str | os.PathLike[str],
    kind: str,
    rule: Mapping[str, object] | None,
    number: int | None,
    schema: Schema,
    usual: Sequence[UsualValues | None] | None = None,
) -> Rules:
    """Add a rule to the end of a file, or change or remove one; return all rules of the file.

    The file is created if necessary, and either replaced as a whole or left unchanged: also if it
    contains the known row, or could not be read as by `Rules.read`. All other lines stay, including
    comments.

    Parameters
    ----------
    path : path
        The file of rules.
    kind : str
        ``"column"`` or ``"known"``.
    rule : mapping or None
        Entries of the rule: texts, numbers, or lists of them. None removes the rule.
    number : int or None
        Which rule of this kind to change or remove, from 0; None adds one.
    schema, usual
        As for `Rules.read`.

    Raises
    ------
    UsageError
        If the rules would not fit the table, or the file is laid out so that the rule cannot be
        found in its lines.
    """
    target = Path(os.path.realpath(path))  # a link stays a link
    before = (target.read_bytes() if target.exists() else b"") or HEADER.encode()
    content = parsed_rules(path, before)
    rules = list(content.get(kind, ()))
    lines = "".join(f"{in_toml(key)} = {in_toml(value)}\n" for key, value in (rule or {}).items())
    try:
        text = f"[[{kind}]]\n{lines}".encode() if rule else b""
    except UnicodeEncodeError as error:
        raise UsageError(f"{rule!r}: a file of rules cannot contain this text") from error
    if number is None:
        rules.append(rule)
        after = before.removesuffix(b"\n") + b"\n\n" + text
    else:
        rules[number : number + 1] = [rule] if rule else []
        after = _replaced(before, kind, number, text)
    wanted = {name: blocks for name, blocks in (content | {kind: rules}).items() if blocks}
    now = Rules.from_dict(wanted, schema, usual, str(path))
    if number is None and Rules.from_dict(content, schema, usual)._known == now._known != set():
        return now
    if parsed_rules(path, after) != wanted:
        raise UsageError(f"{path}: the rule cannot be found in its lines: change the file itself")
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o600
    with replacing(target) as file:
        file.write(after)
    os.chmod(target, mode)
    return now


def _replaced(content: bytes, kind: str, number: int, text: bytes) -> bytes:
    """Return a file in which a rule has another text; comments behind it stay."""
    parts = re.split(rb"(?m)^(?=[ \t]*\[\[)", content)
    header = re.compile(rb"[ \t]*\[\[[ \t]*" + kind.encode() + rb"[ \t]*\]\]")
    places = [k for k, part in enumerate(parts) if header.match(part)]
    if number < len(places):
        part = parts[places[number]]
        behind = re.search(rb"(?:^[ \t]*(?:#.*)?\r?\n)*\Z", part, re.MULTILINE)
        assert behind is not None  # it matches the empty text at the end
        parts[places[number]] = text + part[behind.start() :]
    return b"".join(parts)


def parsed_rules(path: str | os.PathLike[str], text: bytes | None = None) -> JsonObject:
    """Return the content of a file of rules, or of its ``text`` if that is already read.

    Raises `UsageError` if it is not TOML.
    """
    import tomllib

    text = Path(path).read_bytes() if text is None else text
    try:
        return tomllib.loads(text.decode("utf-8-sig"))  # an editor's byte order mark is not text
    except RecursionError:
        raise UsageError(f"{path}: nested too deeply: needs [[column]] and [[known]]") from None
    except ValueError as error:  # for another encoding, and a number that is too long, too
        raise UsageError(f"{path}: not TOML in UTF-8: {error}: correct it there") from None


@dataclass(frozen=True)
class _Impossible:
    feature: Feature
    values: list[float | str]
    below: float
    above: float

    @classmethod
    def of(
        cls,
        feature: Feature,
        block: Mapping[str, object],
        usual: UsualValues | None,
        where: str,
    ) -> "_Impossible":
        for key in block.keys() - {"name", *_SETTINGS}:
            if key in ("only", "ignore_within"):
                raise UsageError(f"{where}: {_way_without(key, block[key], feature, usual)}")
            raise UsageError(f"{where}: {key} is not a setting: {_near(key, _SETTINGS)}")
        if len(block) < 2:
            raise UsageError(f"{where}: has no settings: needs one of {', '.join(_SETTINGS)}")
        listed = block.get("impossible", [])
        if not isinstance(listed, list) or ("impossible" in block and not listed):
            raise UsageError(
                f"{where}: impossible {listed!r:.80}: needs a list of values in brackets, such "
                "as [0]"
            )
        here = f"{where}: impossible"
        if feature.kind == "categorical":
            if others := sorted(block.keys() - {"name", "impossible"}):
                raise UsageError(
                    f"{where}: {others[0]}: the column has categories, not numbers: only "
                    "impossible = [...] fits it"
                )
            texts = [_text(value, here) for value in listed]
            share = sum(usual.shares.get(text, 0.0) for text in {*texts}) if usual else 0.0
            if share > MAJORITY:
                raise UsageError(
                    f"{where}: {share:.0%} of the counted rows would be impossible: correct the "
                    "rule, or the rows and the model"
                )
            return cls(feature, [*texts], -math.inf, math.inf)
        numbers = [_number(feature, value, here) for value in listed]
        below, above = (
            _number(feature, block[key], f"{where}: {key}") if key in block else unbounded
            for key, unbounded in (("impossible_below", -math.inf), ("impossible_above", math.inf))
        )
        if below >= above:
            ends = f"{value_words(feature, below)} and above {value_words(feature, above)}"
            raise UsageError(
                f"{where}: impossible below {ends}: needs the first number to be lower"
            )
        median = None if usual is None or usual.middle is None else usual.middle[1]
        if median is not None and (not below <= median <= above or median in numbers):
            raise UsageError(
                f"{where}: {value_words(feature, median)}, the median of the counted rows, would "
                "be impossible: correct the rule, or the rows and the model"
            )
        return cls(feature, [*numbers], below, above)

    def of_column(self, column: object) -> Bools:
        if self.feature.kind == "categorical":
            matching = pc.is_in(_texts(column, self.feature.name), _texts_of(self.values))
            return np.asarray(matching.to_numpy(zero_copy_only=False), np.bool_)
        numbers = _numbers(column, self.feature)
        with np.errstate(over="ignore"):
            beyond: Bools = (numbers < self.below) | (numbers > self.above)
        return beyond | np.isin(numbers, _like(self.values, numbers))


def _way_without(key: str, value: object, feature: Feature, usual: UsualValues | None) -> str:
    low, median, high = "its lower", "its median", "upper end"
    if usual is not None and usual.middle is not None:
        low, median, high = (value_words(feature, x) for x in usual.middle)
    way = f"raise lower values to {median}"
    if key == "ignore_within":
        way = f"change values up to {value} beyond {low} to {high} to the nearer of these"
    elif value == "low":
        way = f"lower higher values to {median}"
    return (
        f"{key} is no longer read: delete this line, and {way} in the rows before they are "
        "scored (in pandas, by clip), or answer fine to such rows in a review"
    )


# --- values of rules ------------------------------------------------------------------------------


def _near(name: str, names: Sequence[str]) -> str:
    folded = {other.casefold(): other for other in names}
    if close := difflib.get_close_matches(name.casefold(), folded, n=1):
        return f"did you mean {folded[close[0]]!r}?"
    return f"needs one of {', '.join(map(repr, names[:10]))}{', ...' * (len(names) > 10)}"


def _number(feature: Feature, value: object, where: str) -> float:
    needed = "a finite number"
    if feature.unit == DATE:
        needed = "a date, such as 2026-01-31"
        if (seconds := _seconds(value)) is not None:
            return seconds
    elif feature.unit == SINCE:
        needed = 'a length of time, such as "30 days"'
        if isinstance(value, str) and (length := _LENGTH.fullmatch(value)):
            return math.log2(1.0 + float(length[1]) * _LENGTHS[length[2]])
    elif isinstance(value, int | float) and abs(value) <= sys.float_info.max:
        return float(value) + 0.0  # no -0.0
    raise UsageError(f"{where} {value!r:.80}: needs {needed}, like the values of {feature.name!r}")


def _seconds(value: object) -> float | None:
    """Return a date, or its text in ISO 8601, as seconds since 1970-01-01 UTC; otherwise None."""
    if isinstance(value, str) and _ISO_DATE.match(value):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        return None
    return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()


def _text(value: object, where: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | date):
        return fold(str(value))
    if isinstance(value, int | float) and abs(value) <= sys.float_info.max:
        return str(int(value)) if value == int(value) else repr(value)
    raise UsageError(f"{where} {value!r:.80}: needs a text, number, date, true or false")


# --- columns of batches ---------------------------------------------------------------------------


def _column(batch: Batch, j: int) -> Any:
    return batch[:, j] if isinstance(batch, np.ndarray) else batch.column(j)


def _behind(batch: Batch, name: str) -> pa.Array:
    if not isinstance(batch, np.ndarray):
        names = [fold(other) for other in batch.schema.names]
        if fold(name) in names:
            return batch.column(names.index(fold(name)))
    raise DataError(
        f"the rows have no column {name!r}, which known rows have to match: add it, or remove it "
        "from the rules"
    )


def _numbers(column: object, feature: Feature) -> NDArray[Any]:
    """Return the numbers (n,) of a column; dates to the microsecond, which floats can hold."""
    values = column if isinstance(column, np.ndarray) else as_numbers(column, feature.name)
    return np.round(values, 6) if feature.unit == DATE and values.dtype == np.float64 else values


def _like(values: Sequence[float | str], numbers: NDArray[Any]) -> NDArray[Any]:
    with np.errstate(over="ignore"):
        return np.array(values, numbers.dtype if numbers.dtype.kind == "f" else np.float64)


def _texts(column: object, name: str) -> pa.Array:
    column = as_column(column) if isinstance(column, np.ndarray) else column
    return fold_texts(as_texts(column, name)).cast(pa.string())


def _texts_of(values: Sequence[float | str]) -> pa.Array:
    return texts_column([str(value) for value in values])


def _spelled(column: pa.Array, patterns: Sequence[tuple[str, str]]) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp(column.type.unit))  # in UTC
    elif pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    texts = _texts(column, "")
    for pattern, plain in patterns:
        texts = pc.replace_substring_regex(texts, pattern, plain)
    return texts
