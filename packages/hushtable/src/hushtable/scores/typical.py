"""Typical rows: their scores, and whether a value is usual, high, low or rare, in words.

All limits are here, and each list, page, report and session asks here: of one value and one account
of what is usual, all of them say the same. What is usual is read off an evenly spaced sample of the
counted rows, by their numbers: the same one for any batches, threads and sources. A row of weight w
stands for w rows.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hushtable.arguments import entries
from hushtable.data.columns import as_numbers, as_texts
from hushtable.data.readers import Batch, Reader, taken
from hushtable.data.schema import DATE, SINCE, Feature, Schema, number_words, value_words
from hushtable.data.weights import Weights
from hushtable.errors import PlanError
from hushtable.files import Content
from hushtable.scores.scorer import Scorer

#: The quantiles that are kept of a numeric feature. Model files have had these since protocol 1,
#: and all words follow them: a number below the first is low, one above the last is high.
QUANTILES = (0.05, 0.5, 0.95)
#: A category that fewer of the rows have is called rare: as few as lie beyond both ends of the
#: middle 90%. Among many, each of which has few, one that has less than half as many as the most
#: frequent.
RARE = 0.1
_MIDDLE = f"the middle {QUANTILES[2] - QUANTILES[0]:.0%}"
#: Meanings of the columns "usual" and "direction" of a list, for its reader.
USUAL_MEANS = (
    f"The{_MIDDLE[3:]} of the rows that the model counted, or their most frequent categories; the "
    "model's range where it does not know those."
)
DIRECTION_MEANS = (
    f"high or low: beyond {_MIDDLE}. rare: a category of fewer than {RARE:.0%} of the rows. "
    "missing: no value. beyond: outside of the model's range or categories. Empty: usual by "
    "itself, odd together with other columns."
)
#: Categories of a feature whose shares are kept: the most frequent.
MOST_CATEGORIES = 20
#: Numbers of a feature that has few, whose shares are kept: yes and no, grades, counts.
FEW_NUMBERS = 10
#: Values that mostly show whether there are more.
_GLANCE = 64
#: Share of the rows from which on a value is no reason for anything.
MAJORITY = 0.5
#: Digits of a value, of what is usual, and of a percentage.
_DIGITS, _USUAL_DIGITS, _PERCENT_DIGITS = 6, 4, 2
#: Categories that are named as the usual ones.
_NAMED = 3


@dataclass(frozen=True)
class UsualValues:
    """The values of a feature among the counted rows."""

    #: The share of rows without a value.
    missing: float
    #: 5%, 50% and 95% quantiles of a numeric feature's values; None if all are missing.
    middle: tuple[float, float, float] | None = None
    #: The share of rows that have each of the most frequent categories; or each number, as `repr`
    #: writes it, of a numeric feature that has ten at most.
    shares: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls, feature: Feature, columns: Sequence[Any], times: NDArray[np.int64]
    ) -> "UsualValues":
        """Read them off the columns of some batches, whose rows stand for ``times`` rows."""
        n_rows = int(times.sum())
        if feature.kind == "numeric":
            parts = [
                c if isinstance(c, np.ndarray) else as_numbers(c, feature.name) for c in columns
            ]
            values = np.repeat(np.concatenate(parts).astype(np.float64), times)
            values = values[~np.isnan(values)]
            missing = 1.0 - len(values) / n_rows
            if not len(values):
                return cls(missing)
            low, middle, high = np.quantile(values, QUANTILES, method="inverted_cdf").tolist()
            return cls(missing, (low, middle, high), _shares_of_few(feature, values, n_rows))
        texts = [text for column in columns for text in as_texts(column, feature.name).to_pylist()]
        found: dict[str | None, int] = {}
        for text, rows in zip(texts, times.tolist(), strict=True):
            found[text] = found.get(text, 0) + rows
        missing = found.pop(None, 0) / n_rows
        # A text that the schema does not list may be of one row alone: none goes into a file.
        listed = [(text, found[text]) for text in feature.categories if text in found]
        most = sorted(listed, key=lambda one: (-one[1], one[0]))[:MOST_CATEGORIES]
        return cls(missing, None, {text: rows / n_rows for text, rows in most})

    @classmethod
    def of_cells(
        cls, feature: Feature, cells: NDArray[Any], ends: Callable[[int, int], tuple[float, float]]
    ) -> "UsualValues | None":
        """Read them off counts of rows; None if there are no rows with a value.

        ``cells`` are equal parts of a range, for which ``ends`` returns the numbers that the
        middle 90% lies between, from the cells of its two ends; or categories, in their order.
        """
        n_rows = float(cells.sum())
        if not n_rows > 0.0:
            return None
        if feature.kind == "numeric":
            below = np.cumsum(cells) / n_rows
            first, _, last = np.searchsorted(below, QUANTILES).tolist()
            low, high = ends(first, min(last, len(cells) - 1))
            return cls(0.0, (low, 0.5 * (low + high), high))
        shares = cells / n_rows
        most = np.argsort(-shares[: len(feature.categories)], kind="stable")[:MOST_CATEGORIES]
        listed = {feature.categories[j]: float(shares[j]) for j in most.tolist() if shares[j]}
        return cls(0.0, None, listed)

    def to_dict(self) -> dict[str, Any]:
        """Return them as a file carries them."""
        middle = {} if self.middle is None else {"middle": list(self.middle)}
        shares = {"shares": self.shares} if self.shares else {}
        return {"missing": self.missing, **middle, **shares}

    @classmethod
    def from_dict(cls, content: Any, feature: Feature) -> "UsualValues":
        """Read back what `to_dict` wrote; raises `PlanError` on anything else."""
        what = f"what is usual of {feature.name!r}"
        said = entries(content, what, {"missing": float}, {"middle": list, "shares": dict})
        middle, shares = said.get("middle"), said.get("shares", {})
        numbers = [said["missing"], *shares.values()]
        shared = all(type(x) in (int, float) and 0.0 <= x <= 1.0 for x in numbers)
        rising = middle is None or (
            len(middle) == 3
            and all(type(x) in (int, float) and math.isfinite(x) for x in middle)
            and sorted(middle) == middle
        )
        if not shared or not rising or len(shares) > MOST_CATEGORIES:
            raise PlanError(f"{what}: needs shares, and three quantiles that rise")
        numeric = feature.kind == "numeric"
        known = _are_few(shares) if numeric else shares.keys() <= {*feature.categories}
        if (middle is not None) > numeric or not known:
            raise PlanError(f"{what}: not of a feature of this kind, with these categories")
        quantiles = (
            None if middle is None else (float(middle[0]), float(middle[1]), float(middle[2]))
        )
        return cls(float(said["missing"]), quantiles, shares)


def _shares_of_few(feature: Feature, values: NDArray[np.float64], n_rows: int) -> dict[str, float]:
    """Return the share of rows that have each number, if there are few, and none is a time."""
    if feature.unit in (DATE, SINCE) or len(np.unique(values[:_GLANCE])) > FEW_NUMBERS:
        return {}
    numbers, rows = np.unique(values + 0.0, return_counts=True)  # no -0.0
    if len(numbers) > FEW_NUMBERS:
        return {}
    return {repr(x): n / n_rows for x, n in zip(numbers.tolist(), rows.tolist(), strict=True)}


def _are_few(shares: dict[str, float]) -> bool:
    """Whether shares are of few numbers, each as `repr` writes it."""

    def is_number(text: str) -> bool:
        with contextlib.suppress(ValueError):
            return math.isfinite(float(text)) and repr(float(text)) == text
        return False

    return len(shares) <= FEW_NUMBERS and all(map(is_number, shares))


@dataclass(frozen=True)
class ValuePhrase:
    """A value in words."""

    #: A number, text, date, time or truth value; None if missing.
    value: Any
    #: The value as people write it; empty if missing.
    text: str
    #: What most of the counted rows have, or the plan's range where that is not known.
    usual: str
    #: "high", "low", "rare", "missing", "beyond" the plan, or nothing of these.
    direction: str
    #: All of it, in a sentence without its full stop.
    words: str
    #: Whether it is known what is usual.
    compared: bool = False
    #: The share of the rows that have this category, or number of few, or none; None if not known.
    share: float | None = None

    @property
    def common(self) -> bool:
        """Whether so many rows have this, or lack a value, that it is no reason for anything."""
        if self.share is None:
            return False
        return self.share > (RARE if self.direction == "missing" else MAJORITY)


def cell(rows: Batch, j: int, i: int) -> pa.Array:
    """Return column j of row i, as an array of one."""
    return pa.array(rows[i : i + 1, j]) if isinstance(rows, np.ndarray) else rows[j].slice(i, 1)


def percent(share: float) -> str:
    """Return a share for people."""
    return f"{number_words(100.0 * share, _PERCENT_DIGITS)}%"


def number_text(x: float, feature: Feature, kind: pa.DataType, digits: int = _DIGITS) -> str:
    """Return a number from a column of type ``kind`` as people write it: dates as dates."""
    types = pa.types
    if _dated(feature, kind):
        return value_words(replace(feature, unit=DATE), x)
    if feature.unit == SINCE:
        return value_words(feature, x)
    if types.is_time(kind) or types.is_duration(kind):
        return str(timedelta(seconds=round(x)))
    if types.is_boolean(kind):
        return "true" if x else "false"
    return number_words(x, digits)


def _dated(feature: Feature, kind: pa.DataType) -> bool:
    return feature.unit == DATE or pa.types.is_date(kind) or pa.types.is_timestamp(kind)


def plain_type(column: pa.Array) -> pa.DataType:
    """Return the type of a column's values."""
    return column.type.value_type if pa.types.is_dictionary(column.type) else column.type


def read_value(feature: Feature, column: pa.Array) -> float | str | None:
    """Return the one value of a column: a number, or a text; None if it is missing."""
    if feature.kind == "numeric":
        x = float(as_numbers(column, feature.name)[0])
        return None if math.isnan(x) else x
    text: str | None = as_texts(column, feature.name)[0].as_py()
    return text


def describe_cell(feature: Feature, column: pa.Array, usual: UsualValues | None) -> ValuePhrase:
    """Put the one value of a column in words."""
    return describe_value(feature, read_value(feature, column), plain_type(column), usual)


def describe_value(
    feature: Feature, value: float | str | None, kind: pa.DataType, usual: UsualValues | None
) -> ValuePhrase:
    """Put a value in words, beside what is usual among the rows that it is compared with.

    It was read from a column of type ``kind``; None if it is missing.
    """
    numeric = feature.kind == "numeric"
    if value is not None:
        if isinstance(value, str):
            return _category_phrase(value, feature, usual)
        return _number_phrase(value, feature, kind, usual)
    common = _usual_range(feature, kind, usual) if numeric else _usual_categories(usual)
    often = f", as in {percent(usual.missing)} of rows" if usual and usual.missing else ""
    what = "no earlier reading" if feature.unit == SINCE else f"{feature.name} is missing"
    compared, share = usual is not None, usual.missing if usual else None
    return ValuePhrase(None, "", common, "missing", f"{what}{often}", compared, share)


def describe_within(
    feature: Feature,
    column: pa.Array,
    within: UsualValues,
    context: str,
    usual: UsualValues | None,
) -> ValuePhrase:
    """Put the one value of a column in words, beside what is usual in its row's context.

    ``context`` names it, such as ``"ward gyn"``. ``within`` is what is usual there, ``usual`` what
    is usual among all rows; the phrase's own ``usual`` and ``direction`` are those of the context.
    """
    everywhere = describe_cell(feature, column, usual)
    phrase = describe_cell(feature, column, within)
    if phrase.direction in ("high", "low"):
        anywhere = f" (anywhere {everywhere.usual})" if everywhere.compared else ""
        words = (
            f"{with_name(feature, phrase.text)}: {phrase.direction} for {context}, "
            f"where {phrase.usual} is usual{anywhere}"
        )
        return replace(phrase, words=words)
    if phrase.direction == "beyond":
        return everywhere
    return replace(phrase, words=f"{phrase.words}, for {context}")


def direction(feature: Feature, value: float | str | None, usual: UsualValues | None) -> str:
    """Return high, low, rare, missing or beyond; empty for a value that is none of these."""
    if value is None:
        return "missing"
    if isinstance(value, str):
        if value not in feature.categories:
            return "beyond"
        if usual is None:
            return ""
        # One that is not among the most frequent, which are kept, is rarer than those.
        share, most = usual.shares.get(value), max(usual.shares.values(), default=0.0)
        return "rare" if share is None or share < min(RARE, most / 2.0) else ""
    if not feature.low <= value <= feature.high:
        return "beyond"
    if usual is not None and usual.shares:
        return "rare" if usual.shares.get(repr(value + 0.0), 0.0) < RARE else ""
    if usual is None or usual.middle is None or usual.middle[0] <= value <= usual.middle[2]:
        return ""
    return "high" if value > usual.middle[2] else "low"


def _number_phrase(
    x: float, feature: Feature, kind: pa.DataType, usual: UsualValues | None
) -> ValuePhrase:
    text, common = number_text(x, feature, kind), _usual_range(feature, kind, usual)
    what = with_name(feature, text)
    ends = _between(feature.low, feature.high, feature, kind)
    side = direction(feature, x, usual)
    if side == "beyond":
        known = f", usually {common}" if usual and usual.middle else ""
        words = f"{what}{known}: beyond the range of {ends}"
    elif usual is None or usual.middle is None:
        words = f"{what}, in a range of {ends}"
    elif usual.shares:
        share = usual.shares.get(repr(x + 0.0))
        often = "in few rows" if share is None else f"as in {percent(share)} of rows"
        words = f"{what}, {often}: rare" if side else f"{what}, {often}"
    else:
        words = (
            f"{what}, usually {common}: {side}" if side else f"{what}, within the usual {common}"
        )
    value: Any = x
    if _dated(feature, kind):
        try:
            value = datetime.fromtimestamp(x, UTC).replace(tzinfo=None)
        except (OverflowError, ValueError, OSError):
            value = x
    elif text in ("true", "false"):
        value = bool(x)
    elif pa.types.is_time(kind) or pa.types.is_duration(kind):
        value = text
    share = usual.shares.get(repr(x + 0.0)) if usual and usual.shares else None
    return ValuePhrase(value, text, common, side, words, usual is not None, share)


def with_name(feature: Feature, text: str) -> str:
    """Return a number of a feature with the feature's name and unit."""
    if feature.unit == SINCE:
        return f"no reading for {text}"
    unit = f" {feature.unit}" if feature.unit and feature.unit != DATE else ""
    return f"{feature.name} {text}{unit}"


def _between(low: float, high: float, feature: Feature, kind: pa.DataType) -> str:
    ends = [number_text(x, feature, kind, _USUAL_DIGITS) for x in (low, high)]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def _usual_range(feature: Feature, kind: pa.DataType, usual: UsualValues | None) -> str:
    """Return the middle 90% of the counted rows' numbers, few numbers, or the plan's range."""
    if usual is not None and usual.shares:
        most = sorted(usual.shares.items(), key=lambda one: -one[1])[:_NAMED]
        return ", ".join(
            f"{number_text(float(x), feature, kind)} ({percent(share)})" for x, share in most
        )
    if usual is None or usual.middle is None:
        return f"{_between(feature.low, feature.high, feature, kind)} (range)"
    return _between(usual.middle[0], usual.middle[2], feature, kind)


def _category_phrase(text: str, feature: Feature, usual: UsualValues | None) -> ValuePhrase:
    side, words, share = direction(feature, text, usual), f"{feature.name} {text}", None
    if side == "beyond":
        words = f"{words}: none of the {len(feature.categories):,} known"
    elif usual is not None:
        share = usual.shares.get(text)
        often = "in few rows" if share is None else f"in {percent(share)} of rows"
        words = f"{words}, {often}: rare" if side else f"{words}, {often}"
    known = usual is not None
    return ValuePhrase(text, text, _usual_categories(usual), side, words, known, share)


def _usual_categories(usual: UsualValues | None) -> str:
    most = sorted((usual.shares if usual else {}).items(), key=lambda one: -one[1])
    return ", ".join(f"{name} ({percent(share)})" for name, share in most[:_NAMED])


#: All of so many rows are in the sample; of more, one in 16, at most so many. Measured to make a
#: fit slower by 3% at most: rows in memory are copied, since a detector must hold none of the
#: caller's.
FEW, ONE_IN, MOST = 2_048, 16, 8_192
#: Values that it has at most.
MOST_VALUES = 1 << 22
Floats = NDArray[np.float64]


#: Sampled rows of a context from which on its usual values are known, and contexts of which they
#: are kept, the most frequent.
_ROWS_WITHIN, _CONTEXTS = 10, 100


@dataclass(frozen=True)
class Usual:
    """The scores of counted rows, (n,) rising, and the values of each feature among them.

    Scores are None where the model has learned from verdicts since. ``within`` has the values
    among the rows of a context, by its value, where the context is one column.
    """

    scores: Floats | None
    values: tuple[UsualValues, ...]
    within: dict[str, tuple[UsualValues, ...]] = field(default_factory=dict)

    def without_scores(self) -> "Usual":
        """Return what is left when rows score otherwise."""
        return replace(self, scores=None)

    def as_rare(self, scores: Floats) -> Floats:
        """Return the share of the counted rows that score as low as each score, or lower."""
        assert self.scores is not None
        below = np.searchsorted(self.scores, scores, side="right")
        return np.asarray(below / len(self.scores), np.float64)

    def entries(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what a file carries: manifest entries and arrays."""
        said: dict[str, Any] = {"usual": [one.to_dict() for one in self.values]}
        if self.within:
            said["usual_within"] = {
                context: [one.to_dict() for one in values]
                for context, values in self.within.items()
            }
        return said, {} if self.scores is None else {"usual.scores": self.scores}

    @classmethod
    def from_file(cls, content: Content, schema: Schema) -> "Usual | None":
        """Build what a file carries, if it does; raises `PlanError` if that cannot be."""
        if "usual" not in content.manifest:
            return None
        said = content.said("usual values", {"usual": list}, {"usual_within": dict})
        scores = content.arrays.get("usual.scores")
        if scores is not None:
            _check_scores(scores)
        within = {
            context: _of_features(found, schema)
            for context, found in said.get("usual_within", {}).items()
        }
        return cls(scores, _of_features(said["usual"], schema), within)


def _of_features(found: Any, schema: Schema) -> tuple[UsualValues, ...]:
    if not isinstance(found, list) or len(found) != len(schema):
        raise PlanError(f"what is usual: needs an entry for each of {len(schema)} features")
    return tuple(map(UsualValues.from_dict, found, schema.features))


def _check_scores(scores: NDArray[Any]) -> None:
    right = scores.dtype == np.float64 and scores.ndim == 1 and 0 < len(scores) <= MOST
    if not right or not np.isfinite(scores).all() or (np.diff(scores) < 0.0).any():
        raise PlanError("the scores of counted rows: needs some float64 numbers that rise")


class Sample:
    """Evenly spaced rows of those that are counted, picked up while a pass reads them.

    Parameters
    ----------
    n_rows : int
        Rows that are counted.
    n_columns : int
        Columns that they have.
    weights : ndarray of shape (n,), int64, optional
        Weights of all rows that are read.
    """

    def __init__(self, n_rows: int, n_columns: int, weights: Weights | None) -> None:
        total = n_rows if weights is None else int(weights.sum())
        size = min(total, max(FEW, total // ONE_IN), MOST, max(1, MOST_VALUES // n_columns))
        self._rows = np.arange(size) * total // size
        self._times = np.ones(size, np.int64)
        if weights is not None:
            rows = np.searchsorted(np.cumsum(weights), self._rows, side="right")
            self._rows, self._times = np.unique(rows, return_counts=True)
        #: By the number of its first row, what is sampled of a batch.
        self._batches: dict[int, Batch] = {}
        self._found: tuple[Scorer, Usual] | None = None

    def of(self, reader: Reader) -> Reader:
        """Return a reader of the same rows, which fill the sample as they are read."""
        files, start = [], 0
        if reader.n_rows is not None:
            for part in reader.files:
                files.append(replace(part, read=partial(self._read, part, start)))
                start += part.n_rows or 0
        return replace(reader, read=partial(self._read, reader, 0), files=tuple(files))

    def _read(self, part: Reader, start: int) -> Iterator[Batch]:
        for batch in part.read():
            stop = start + len(batch)
            first, last = np.searchsorted(self._rows, [start, stop])
            if last > first and start not in self._batches:
                self._batches[start] = taken(batch, self._rows[first:last] - start)
            yield batch
            start = stop

    def usual(self, scorer: Scorer) -> Usual:
        """Return what is usual among the rows of the sample, as a scorer scores them."""
        if self._found is not None and self._found[0] is scorer:
            return self._found[1]
        batches = [self._batches[start] for start in sorted(self._batches)]
        parts = [scorer.scored((0, batch, None))[1] for batch in batches]
        scores = np.sort(np.repeat(np.concatenate(parts), self._times))
        features = scorer.plan.schema.features
        within = _within(features, scorer.plan.context, batches, self._times)
        found = Usual(scores, _values(features, batches, self._times), within)
        self._found = scorer, found
        return found


def _values(
    features: Sequence[Feature], batches: Sequence[Batch], times: NDArray[np.int64]
) -> tuple[UsualValues, ...]:
    """Return the usual values of each feature in some batches, whose rows stand for ``times``."""
    return tuple(
        UsualValues.of(
            feature,
            [b[:, j] if isinstance(b, np.ndarray) else b.column(j) for b in batches],
            times,
        )
        for j, feature in enumerate(features)
    )


def _within(
    features: Sequence[Feature],
    context: Sequence[str],
    batches: Sequence[Batch],
    times: NDArray[np.int64],
) -> dict[str, tuple[UsualValues, ...]]:
    """Return the usual values among the rows of each context that has some, if it is one column."""
    names = [feature.name for feature in features]
    j = names.index(context[0]) if len(context) == 1 else 0
    if len(context) != 1 or features[j].kind != "categorical":
        return {}
    found: dict[str, tuple[UsualValues, ...]] = {}
    texts = np.concatenate(
        [np.array(as_texts(b[j], names[j]).to_pylist(), object) for b in batches]
    )
    ends = np.cumsum([len(batch) for batch in batches])[:-1]
    sizes = {c: int((texts == c).sum()) for c in features[j].categories}
    for c in sorted(sizes, key=lambda c: -sizes[c])[:_CONTEXTS]:
        if sizes[c] >= _ROWS_WITHIN:
            inside = np.split(texts == c, ends)
            some = [taken(b, np.flatnonzero(i)) for b, i in zip(batches, inside, strict=True)]
            found[c] = _values(features, some, times[texts == c])
    return found
