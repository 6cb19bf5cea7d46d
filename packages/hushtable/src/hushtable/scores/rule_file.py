"""The file of a table's rules: read, checked against the table and against each other, and written.

See `hushtable.scores.rules`, the only module that uses it.
"""

import difflib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from hushtable.arguments import is_text
from hushtable.data.labels import fold
from hushtable.data.readers import found_name, near_names
from hushtable.data.schema import DATE, SINCE, Feature, Schema, value_words
from hushtable.errors import UsageError
from hushtable.scores.typical import MAJORITY, UsualValues

#: Header of a file that `add_rule` creates.
HEADER = """\
# Rules for this table. They stay next to the model and never leave this site.
#
# [[column]]                    # values of one column, with any of the lines below "name"
# name = "creatinine"
# impossible = [0, 999]         # numbers, texts or dates
# impossible_below = 0.1
# impossible_above = 40
# only = "high"                 # or "low": values on the other side of the median do not matter
# ignore_within = 0.2           # up to 0.2 beyond the usual range does not matter
#
# [[known]]                     # rows that are known: all the given columns have to match
# order = 17
"""
BOUNDS = ("impossible_below", "impossible_above")
_SETTINGS = ("impossible", *BOUNDS, "only", "ignore_within")
_LENGTHS = {"day": 86_400.0, "hour": 3_600.0, "minute": 60.0, "second": 1.0}
_LENGTH = re.compile(r"(\d{1,9}(?:\.\d+)?) (day|hour|minute|second)s?")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]|$)")

#: The settings of a column's rules, by name; numbers are converted to the model's.
Settings: TypeAlias = dict[str, Any]


class Match(NamedTuple):
    """A value that a known row must have in a column."""

    column: str
    #: "number", "date" (in seconds) or "text".
    kind: str
    value: float | str
    #: The value as the rule writes it, for a column after the features.
    text: str = ""


# --- files ----------------------------------------------------------------------------------------


def parsed(text: bytes, source: str) -> dict[str, Any]:
    """Return the content of a file's bytes; raise `UsageError` if they are not TOML in UTF-8."""
    import tomllib

    try:
        return tomllib.loads(text.decode("utf-8-sig"))  # an editor's byte order mark is not text
    except UnicodeDecodeError as error:
        line = text[: error.start].count(b"\n") + 1
        raise UsageError(f"{source}: line {line} is not UTF-8: save the file as UTF-8") from None
    except RecursionError:
        raise UsageError(f"{source}: nested too deeply: needs [[column]] and [[known]]") from None
    except ValueError as error:  # a number that is too long raises one, too
        last = f"at the end, line {len(text.splitlines())}"
        what = str(error).replace("at end of document", last)
        raise UsageError(f"{source}: not TOML: {what}: correct it there") from None


def block(kind: str, rule: Mapping[str, Any], before: bytes) -> bytes:
    """Return the text of a rule to append to a file."""
    if kind not in ("column", "known"):
        raise UsageError(f"kind={kind!r}: needs 'column' or 'known'")
    lines = [
        f"{name if _BARE.fullmatch(name) else _in_toml(name)} = {_in_toml(value)}"
        for name, value in rule.items()
    ]
    start = [""] if before.endswith(b"\n") else ["", ""]
    end = "\r\n" if b"\r\n" in before else "\n"
    return end.join([*start, f"[[{kind}]]", *lines, ""]).encode()


def _in_toml(value: Any) -> str:
    """Return a value in TOML; raise `UsageError` if a rule cannot contain it."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_in_toml, value))}]"
    if is_text(value):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, int | float) and _is_finite(value):
        return repr(value)
    raise UsageError(f"{value!r}: a rule needs a number, text, date, true or false")


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


# --- values ---------------------------------------------------------------------------------------


def _seconds(value: Any) -> float | None:
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


def _length(value: Any) -> float | None:
    """Return a length of time, such as "5 days", in seconds; None for anything else."""
    found = _LENGTH.fullmatch(value) if isinstance(value, str) else None
    return float(found[1]) * _LENGTHS[found[2]] if found else None


def _number(feature: Feature, value: Any, where: str) -> float:
    """Return a value of a numeric feature in the model's form; raise `UsageError` otherwise."""
    found, needed = None, "a finite number"
    if feature.unit == DATE:
        found, needed = _seconds(value), "a date, such as 2026-01-31"
    elif feature.unit == SINCE:
        found, needed = _length(value), 'a length of time, such as "30 days"'
        found = None if found is None else math.log2(1.0 + found)
    elif type(value) in (int, float) and _is_finite(value):
        found = float(value) + 0.0
    if found is None:
        raise UsageError(
            f"{where} {value!r:.80}: needs {needed}, like the values of {feature.name!r}"
        )
    return found


def _untrue(value: Any) -> Any:
    """Return true and false as the numbers that columns of truth values hold."""
    return int(value) if isinstance(value, bool) else value


def _text(value: Any, where: str) -> str:
    """Return a value as the text that a column of categories, or another column, holds for it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | date):
        return fold(str(value))
    if type(value) in (int, float) and _is_finite(value):
        return str(int(value)) if value == int(value) else repr(value)
    raise UsageError(f"{where} {value!r:.80}: needs a text, number, date, true or false")


def _near(name: str, names: Sequence[str]) -> str:
    """Return words that suggest which of some names may be meant."""
    folded = {one.casefold(): one for one in names}
    close = [folded[one] for one in difflib.get_close_matches(name.casefold(), folded)]
    if close:
        return f"did you mean {' or '.join(map(repr, close))}?"
    return f"needs one of {', '.join(map(repr, names[:10]))}{', ...' * (len(names) > 10)}"


@dataclass(frozen=True)
class RuleColumns:
    """The columns to which rules may refer."""

    features: tuple[Feature, ...]
    usual: Sequence[UsualValues | None] | None
    #: Columns of the rows; None if they are unknown.
    columns: frozenset[str] | None
    #: The places of the features, by their names.
    places: dict[str, int] = field(repr=False)

    @classmethod
    def of(
        cls,
        schema: Schema,
        usual: Sequence[UsualValues | None] | None,
        columns: Sequence[str] | None,
    ) -> "RuleColumns":
        """Return those of a schema, and the other columns of the rows: see `Rules.read`."""
        features = schema.of_rows.features
        places = {feature.name: j for j, feature in enumerate(features)}
        return cls(features, usual, None if columns is None else frozenset(columns), places)

    def middle(self, j: int) -> tuple[float, float, float] | None:
        """Return the 5%, 50% and 95% quantiles of a feature, if they are known."""
        usual = None if self.usual is None else self.usual[j]
        return None if usual is None else usual.middle

    def place(self, name: Any, where: str) -> int:
        """Return the place of the feature that a rule names."""
        if not isinstance(name, str):
            raise UsageError(f'{where}: needs the name of its column: name = "..."')
        name = found_name(name, self.places)
        if name not in self.places:
            raise self._unknown(name, where, [*self.places])
        return self.places[name]

    def matches(self, block: Mapping[str, Any], where: str) -> frozenset[Match]:
        """Return the values that a row must have to be known."""
        if not block:
            raise UsageError(f"{where}: needs at least one column, such as order = 17")
        return frozenset(self._match(*entry, where) for entry in block.items())

    def _match(self, name: str, value: Any, where: str) -> Match:
        if isinstance(value, dict):
            raise UsageError(f'{where}: {name}: write a name with dots in quotes: "{name}...." = 1')
        here, name = f"{where}: {name} =", found_name(name, self.places)
        feature = self.features[self.places[name]] if name in self.places else None
        if feature is not None and feature.kind == "numeric":
            kind = "date" if feature.unit == DATE else "number"
            return Match(name, kind, _number(feature, _untrue(value), here))
        text = _text(value, here)
        if feature is not None:
            return Match(name, "text", text)
        if self.columns is not None and name not in self.columns:
            raise self._unknown(name, where, [*self.places, *sorted(self.columns)])
        if (seconds := _seconds(value)) is not None:
            return Match(name, "date", seconds, text)
        kind = "number" if type(value) in (int, float) else "text"
        return Match(name, kind, value if kind == "number" else text, text)

    def _unknown(self, name: str, where: str, names: Sequence[str]) -> UsageError:
        words = _near(name, list(dict.fromkeys(names)))
        return UsageError(f"{where}: no column {name!r}: {words}{near_names([name], names)}")


# --- rules of columns -----------------------------------------------------------------------------


def checked(
    content: Mapping[str, Any], table: RuleColumns, source: str
) -> tuple[dict[int, Settings], list[frozenset[Match]]]:
    """Return the settings of each feature that has some, and what each known row must match.

    ``content`` is the content of a file, as returned by `parsed`. Raises `UsageError` if it does
    not fit the table, or contradicts itself.
    """
    for key, blocks in content.items():
        if key not in ("column", "known"):
            raise UsageError(f"{source}: {key!r}: needs [[column]] and [[known]], nothing else")
        if not isinstance(blocks, list) or not all(isinstance(one, dict) for one in blocks):
            raise UsageError(f"{source}: {key!r}: needs double brackets: [[{key}]]")
    settings: dict[int, Settings] = {}
    for i, said in enumerate(content.get("column", ()), start=1):
        _add_settings(table, settings, said, f"{source}: [[column]] {i}")
    for j, found in settings.items():
        _check_settings(table, j, found, f"{source}: column {table.features[j].name!r}")
    rows: dict[frozenset[Match], int] = {}
    for i, said in enumerate(content.get("known", ()), start=1):
        where = f"{source}: [[known]] {i}"
        first = rows.setdefault(table.matches(said, where), i)
        if first < i:
            raise UsageError(f"{where} repeats [[known]] {first}: delete one of them")
    return settings, list(rows)


def _add_settings(
    table: RuleColumns, settings: dict[int, Settings], block: Mapping[str, Any], where: str
) -> None:
    """Add the settings of a [[column]] to those that others give for the same column."""
    j = table.place(block.get("name"), where)
    feature, where = table.features[j], f"{where}, {block['name']!r}"
    if len(block) < 2:
        raise UsageError(f"{where}: has no settings: needs one of {', '.join(_SETTINGS)}")
    said = settings.setdefault(j, {})
    for key, value in block.items():
        if key == "impossible":
            said.setdefault(key, set()).update(_listed(feature, value, f"{where}: {key}"))
        elif key != "name":
            found = _setting(feature, key, value, where)
            if said.setdefault(key, found) != found:
                raise UsageError(
                    f"{where}: {key} {value!r} contradicts another [[column]] of this name: keep "
                    "one of them"
                )


def _listed(feature: Feature, value: Any, where: str) -> set[float | str]:
    """Return the values that are impossible."""
    if not isinstance(value, list) or not value:
        raise UsageError(f"{where} {value!r:.80}: needs a list of values in brackets, such as [0]")
    if feature.kind == "numeric":
        return {_number(feature, _untrue(one), where) for one in value}
    return {_text(one, where) for one in value}


def _setting(feature: Feature, key: str, value: Any, where: str) -> float | str:
    """Return one setting of a rule in the model's form."""
    where = f"{where}: {key}"
    if key not in _SETTINGS:
        raise UsageError(f"{where} is not a setting: {_near(key, _SETTINGS)}")
    if feature.kind == "categorical":
        raise UsageError(
            f"{where}: the column has categories, not numbers: only impossible = [...] fits it"
        )
    if key == "only":
        if value not in ("high", "low"):
            raise UsageError(f'{where} {value!r:.80}: needs "high" or "low"')
        return str(value)
    if key in BOUNDS:
        return _number(feature, value, where)
    if feature.unit == SINCE:
        raise UsageError(
            f"{where}: does not apply to times since an earlier reading: use impossible_above"
        )
    dated = feature.unit == DATE
    found: Any = _length(value) if dated else value
    if type(found) in (int, float) and _is_finite(found) and found >= 0:
        return float(found)
    needed = 'a length of time, such as "5 days"' if dated else "a finite number, 0 or more"
    raise UsageError(f"{where} {value!r:.80}: needs {needed}")


def bounds(said: Settings) -> tuple[float, float]:
    """Return the numbers below and above which those of a column are impossible."""
    return said.get("impossible_below", -math.inf), said.get("impossible_above", math.inf)


def _check_settings(table: RuleColumns, j: int, said: Settings, where: str) -> None:
    """Raise `UsageError` if a column's rules contradict each other or its usual values."""
    feature, middle = table.features[j], table.middle(j)
    if feature.kind == "categorical":
        usual = None if table.usual is None else table.usual[j]
        shares = {} if usual is None else usual.shares
        share = sum(shares.get(text, 0.0) for text in said["impossible"])
        if share > MAJORITY:
            raise UsageError(
                f"{where}: {share:.0%} of the counted rows would be impossible: correct the rule, "
                "or the rows and the model"
            )
        return
    below, above = bounds(said)
    if below >= above:
        ends = f"{value_words(feature, below)} and above {value_words(feature, above)}"
        raise UsageError(f"{where}: impossible below {ends}: needs the first number to be lower")
    if middle is None:
        if needing := [key for key in ("only", "ignore_within") if key in said]:
            raise UsageError(
                f"{where}: {needing[0]} needs the column's usual values, which this model "
                "does not have: fit the model again, or leave the rule out"
            )
        return
    low, median, high = middle
    if not below <= median <= above or median in said.get("impossible", ()):
        raise UsageError(
            f"{where}: {value_words(feature, median)}, the median of the counted rows, would be "
            "impossible: correct the rule, or the rows and the model"
        )
    only = said.get("only")
    if (only == "high" and above < high) or (only == "low" and below > low):
        words = f"above {value_words(feature, above)}, although {value_words(feature, high)}"
        if only == "low":
            words = f"below {value_words(feature, below)}, although {value_words(feature, low)}"
        raise UsageError(
            f'{where}: only = "{only}", and impossible {words} is usual: leave one of them out'
        )
