"""The usual scores, values and pairs among the rows that a model counted, and bars of charts.

They are read off a sample of rows that are evenly spaced by number: the same sample for any
batches, threads and sources. A row of weight w represents w rows.
"""

import itertools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.counts.base import Counts
from hushtable.counts.verdicts import LearnedModel
from hushtable.data.passes import Weights
from hushtable.data.readers import Batch, Reader, taken
from hushtable.data.residuals import numbers_of as numbers_of_rows
from hushtable.data.schema import Feature, Schema
from hushtable.errors import FileError, PlanError, UsageError
from hushtable.files import Arrays, Content, Part
from hushtable.language import N_
from hushtable.plans.draws import Purpose
from hushtable.plans.families.family import EVERY_ROW_ONCE
from hushtable.privacy.layout import onto_simplex
from hushtable.scores.pairs import PairCounts
from hushtable.scores.scorer import Scorer
from hushtable.scores.typical import BUT, UsualValues, numbers_of, texts_of

#: Up to this many rows are all in the sample; of more, one in 16, up to a maximum. Measured to make
#: a fit slower by at most 3%: rows in memory are copied, because a detector must not hold the
#: caller's rows.
FEW, ONE_IN, MOST = 2_048, 16, 8_192
#: Largest number of values in the sample.
MOST_VALUES = 1 << 22
#: The rows with which values and severities are compared.
COUNTED, SCORED = N_("the rows that the model counted"), N_("the rows that were scored here")
MERGED, ELSEWHERE = N_("the rows of all sites"), N_("the rows of the other sites")
#: Cap on how many times the limit a value is outside everything.
FARTHEST = 1e6
#: One in this many of the counted rows belongs to the rarest.
RARE_ROWS = 100
#: Number of scored rows from which on they define what is usual, if the model does not know.
_LEAST_ROWS = 50

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Least number of sampled rows of a context for its usual values to be known, and the number of
#: contexts, the most frequent, for which they are stored.
_ROWS_WITHIN, _CONTEXTS = 10, 100


#: Parts of a range in a chart, and the largest number of numbers in all charts of contexts.
BARS, _MOST_BARS = 34, 1 << 17


@dataclass(frozen=True)
class Usual:
    """The scores of counted rows, (n,) rising, and the values of each feature among them.

    Scores are None if the model has learned from verdicts since, and for rows that it did not
    count. Values far outside everything come first in lists until verdicts are learned.
    ``within`` has the values among the rows of a context, by its value, if the context is
    a single column.
    """

    scores: Floats | None
    values: tuple[UsualValues | None, ...]
    within: dict[str, tuple[UsualValues, ...]] = field(default_factory=dict)
    #: By the number of a feature of many numbers: rows in equal parts of its range (34,).
    bars: dict[int, Ints] = field(default_factory=dict)
    #: The same among the rows of a context.
    bars_within: dict[str, dict[int, Ints]] = field(default_factory=dict)
    pairs: PairCounts | None = None
    #: The rows to which these values belong.
    among: str = COUNTED
    #: Whether the model has learned from verdicts since: they decide about far values, too.
    learned: bool = False
    #: By the number of a feature: the ends of its bars, if they are not those of its range.
    bar_ends: dict[int, tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        schema: Schema,
        batches: Sequence[Batch],
        times: Ints,
        context: Sequence[str] = (),
        scores: Floats | None = None,
        ends: Callable[[int], tuple[float, float]] | None = None,
    ) -> "Usual":
        """Read it off some batches, whose rows represent ``times`` rows.

        ``ends`` are those of all rows, if these are a sample.
        """
        features = schema.features
        values = _values(features, batches, times, ends)
        parts = _parts_of_context(features, context, batches, times)
        within = {c: _values(features, rows, some_times) for c, (rows, some_times) in parts.items()}
        bar_ends = _bar_ends(features, values)
        bars = _bars(features, values, batches, times, bar_ends)
        bars_within = {}
        if len(parts) * len(bars) * BARS <= _MOST_BARS:
            bars_within = {c: _bars(features, values, *part, bar_ends) for c, part in parts.items()}
        pairs = PairCounts.of(schema.of_rows.features, values, batches, times)
        return cls(scores, values, within, bars, bars_within, pairs, bar_ends=bar_ends)

    def without_scores(self, *, learned: bool = False) -> "Usual":
        """Return what stays valid if the scores of rows change, such as by verdicts."""
        return replace(self, scores=None, learned=learned)

    @property
    def rare_below(self) -> float:
        """The highest score of the rarest 1% of the counted rows."""
        assert self.scores is not None
        return float(self.scores[len(self.scores) // RARE_ROWS])

    def far(self, features: Sequence[Feature], rows: Batch) -> Floats:
        """Return how far outside everything a number of each row (n,) is.

        It is the distance from the median, divided by that of the limit; 0 within all limits, and
        for all rows once verdicts are learned.
        """
        distances = np.zeros(len(rows))
        if self.learned:
            return distances
        for j, (feature, usual) in enumerate(zip(features, self.values, strict=True)):
            if usual is not None and usual.far is not None and usual.middle is not None:
                low, high = usual.far
                numbers = numbers_of(feature, rows, j)
                beyond = np.flatnonzero((numbers <= low) | (numbers >= high))
                median = usual.middle[1]
                with np.errstate(over="ignore"):
                    above = numbers[beyond] - median
                    times = np.fmax(above / (high - median), above / (low - median))
                distances[beyond] = np.fmax(distances[beyond], times)
        return np.minimum(distances, FARTHEST)

    def as_rare(self, scores: Floats) -> Floats:
        """Return the share of the counted rows that have each score or a lower one."""
        assert self.scores is not None
        below = np.searchsorted(self.scores, scores, side="right")
        return np.asarray(below / len(self.scores), np.float64)

    def entries(self) -> Part:
        """Return the entries and arrays that a file contains."""
        entries: dict[str, Any] = {"usual": [value.to_dict() for value in self.values if value]}
        arrays = Arrays()
        if self.scores is not None:
            arrays["usual.scores"] = self.scores
        if self.within:
            entries["usual_within"] = {
                context: [value.to_dict() for value in values]
                for context, values in self.within.items()
            }
        if self.bars:
            arrays["usual.bars"] = np.array(list(self.bars.values()), np.uint16)
        if self.bar_ends:
            entries["usual_bar_ends"] = {str(j): list(ends) for j, ends in self.bar_ends.items()}
        if self.bars and self.bars_within:
            within = [list(self.bars_within[context].values()) for context in self.within]
            arrays["usual.bars_within"] = np.array(within, np.uint16)
        if self.pairs is not None:
            entries["usual_cells"] = [value.to_dict() for value in self.pairs.cells]
            arrays["usual.pairs"] = self.pairs.counts
        return entries, arrays

    @classmethod
    def from_file(cls, content: Content, schema: Schema) -> "Usual | None":
        """Build what a file contains, if it has any; raise `PlanError` if it is not valid."""
        if "usual" not in content.manifest:
            return None
        optional = {"usual_within": dict, "usual_bar_ends": dict}
        stated = content.said("usual values", {"usual": list}, optional)
        scores = content.arrays.get("usual.scores")
        if scores is not None:
            right = scores.dtype == np.float64 and scores.ndim == 1 and 0 < len(scores) <= MOST
            if not right or not np.isfinite(scores).all() or (np.diff(scores) < 0.0).any():
                raise PlanError("the scores of counted rows: needs rising float64 numbers")
        values = _of_features(stated["usual"], schema)
        within = {
            context: _of_features(given, schema)
            for context, given in stated.get("usual_within", {}).items()
        }
        charted = _charted(values)
        bars, bars_within = dict[int, Ints](), dict[str, dict[int, Ints]]()
        if (given := content.arrays.get("usual.bars")) is not None:
            bars = dict(zip(charted, _checked(given, (len(charted), BARS)), strict=True))
        if (given := content.arrays.get("usual.bars_within")) is not None:
            given = _checked(given, (len(within), len(charted), BARS))
            bars_within = {
                c: dict(zip(charted, value, strict=True))
                for c, value in zip(within, given, strict=True)
            }
        pairs = PairCounts.from_file(content, schema.of_rows.features)
        learned = scores is None
        wrong = PlanError("the ends of bars: needs two rising numbers each")
        try:
            bar_ends = {
                int(j): (float(low), float(high))
                for j, (low, high) in stated.get("usual_bar_ends", {}).items()
            }
        except (TypeError, ValueError) as error:
            raise wrong from error
        if not all(-math.inf < low < high < math.inf for low, high in bar_ends.values()):
            raise wrong
        return cls(
            scores, values, within, bars, bars_within, pairs, learned=learned, bar_ends=bar_ends
        )


def _charted(values: Sequence[UsualValues]) -> list[int]:
    return [j for j, value in enumerate(values) if value.middle is not None and not value.shares]


def _checked(array: NDArray[Any], shape: tuple[int, ...]) -> Ints:
    if array.dtype != np.uint16 or array.shape != shape:
        raise PlanError(f"bars of charts: needs uint16 of the shape {shape}, not {array.shape}")
    return array.astype(np.int64)


def _of_features(content: object, schema: Schema) -> tuple[UsualValues, ...]:
    if not isinstance(content, list) or len(content) != len(schema):
        raise PlanError(f"what is usual: needs an entry for each of {len(schema)} features")
    return tuple(map(UsualValues.from_dict, content, schema.features))


class _Outermost:
    """The four lowest and the four highest numbers of each column, collected while passes read.

    Passes may have any batches.
    """

    def __init__(self, features: Sequence[Feature], weights: Weights | None) -> None:
        self._features = features
        self._weights = EVERY_ROW_ONCE if weights is None else weights
        #: For `kernels.keep_outermost`.
        self._numbers = np.full((2, len(features), BUT + 1), np.inf)
        self._rows = np.full(self._numbers.shape, -1)
        #: First and last rows of the batches that were processed.
        self._seen = set[tuple[int, int]]()
        self._lock = threading.Lock()

    def add(self, batch: Batch, start: int) -> None:
        span = start, start + len(batch)
        if span in self._seen:
            return
        self._seen.add(span)
        for first, block in self._blocks(batch):
            with self._lock:
                kernels.keep_outermost(
                    block, first, start, self._weights, self._numbers, self._rows
                )

    def _blocks(self, batch: Batch) -> Iterator[tuple[int, NDArray[Any]]]:
        if isinstance(batch, np.ndarray):
            numbers = batch[:, : len(self._features)]
            plain = batch.dtype in (np.float32, np.float64)
            yield 0, numbers if plain else numbers.astype(np.float64)
            return
        for j, feature in enumerate(self._features):
            if feature.kind == "numeric":
                yield j, numbers_of(feature, batch, j)[:, np.newaxis]

    def ends(self, j: int) -> tuple[float, float]:
        """Return the lowest and the highest number of a column, but for three on each side."""
        return self._end(0, j), -self._end(1, j)

    def _end(self, side: int, j: int) -> float:
        finite = np.isfinite(self._numbers[side, j])
        numbers, rows = self._numbers[side, j][finite], self._rows[side, j][finite]
        if len(self._weights):
            numbers = np.repeat(numbers, np.minimum(self._weights[rows], BUT + 1))
        return float(numbers[BUT]) if len(numbers) > BUT else np.inf


class Sample:
    """Evenly spaced rows of those that are counted, collected while a pass reads them.

    Parameters
    ----------
    n_rows : int
        Number of rows that are counted.
    features : sequence of Feature
        Their columns, whose outermost numbers are read off all rows instead of the sample.
    weights : ndarray of shape (n,), int64, optional
        Weights of all rows that are read.
    """

    def __init__(self, n_rows: int, features: Sequence[Feature], weights: Weights | None) -> None:
        total = n_rows if weights is None else int(weights.sum())
        most = min(MOST, max(1, MOST_VALUES // len(features)))
        size = min(total, max(FEW, total // ONE_IN), most)
        self._rows = np.arange(size) * total // size
        self._times = np.ones(size, np.int64)
        if weights is not None:
            rows = np.searchsorted(np.cumsum(weights), self._rows, side="right")
            self._rows, self._times = np.unique(rows, return_counts=True)
        #: Whether a pass has collected each row: another pass may have different batches.
        self._picked = np.zeros(len(self._rows), np.bool_)
        #: The sampled rows of a batch, by the number of its first row.
        self._batches: dict[int, Batch] = {}
        self._found: tuple[Scorer, Usual] | None = None
        self._outermost = _Outermost(features, weights)

    def of(self, reader: Reader) -> Reader:
        """Return a reader of the same rows, which fills the sample while it reads."""
        if reader.n_rows is None:
            reader = reader.in_sequence()
        starts, start = {}, 0
        for source in reader.sources:
            starts[source] = start
            start += source.n_rows or 0
        return reader.watched(lambda part, batches: self._read(batches, starts[part.sources[0]]))

    def _read(self, batches: Iterator[Batch], start: int) -> Iterator[Batch]:
        for batch in batches:
            stop = start + len(batch)
            first, last = np.searchsorted(self._rows, [start, stop])
            if last > first and not self._picked[first]:
                self._picked[first:last] = True
                self._batches[start] = taken(batch, self._rows[first:last] - start)
            self._outermost.add(batch, start)
            yield batch
            start = stop

    @property
    def _sampled(self) -> list[Batch]:
        return [self._batches[start] for start in sorted(self._batches)]

    def numbers(self, schema: Schema) -> dict[str, NDArray[np.float64]]:
        """Return the columns of numbers of the sampled rows by name."""
        columns = [j for j, feature in enumerate(schema.features) if feature.kind == "numeric"]
        if not columns or not self._batches:
            return {}
        X = np.concatenate([numbers_of_rows(b, columns, schema.names) for b in self._sampled])
        return {schema.names[j]: X[:, k] for k, j in enumerate(columns)}

    def usual(self, scorer: Scorer) -> Usual:
        """Return what is usual among the rows of the sample, as a scorer scores them."""
        if self._found is not None and self._found[0] is scorer:
            return self._found[1]
        batches = _in_one(self._sampled)
        parts = [scorer.scored((0, batch, None))[1] for batch in batches]
        scores = np.sort(np.repeat(np.concatenate(parts), self._times))
        plan, ends = scorer.plan, self._outermost.ends
        usual = Usual.of(plan.schema, batches, self._times, plan.context, scores, ends)
        usual = replace(usual, learned=isinstance(scorer.sketch, LearnedModel))
        self._found = scorer, usual
        return usual


def _in_one(batches: list[Any]) -> list[Batch]:
    """Join batches that have the same plain types: each batch costs a call for every column."""
    if isinstance(batches[0], np.ndarray):
        return [np.concatenate(batches)]
    kinds = {batch.schema for batch in batches}
    if len(kinds) > 1 or any(map(pa.types.is_dictionary, batches[0].schema.types)):
        return batches
    return list(pa.Table.from_batches(batches).combine_chunks().to_batches())


class PassingSample:
    """Evenly spaced rows of a source of any length, collected while a pass reads them."""

    def __init__(self, n_columns: int) -> None:
        self._most = min(MOST, max(1, MOST_VALUES // n_columns))
        self._step, self._next = 1, 0
        self._batches: list[tuple[int, Batch]] = []

    def of(self, reader: Reader) -> Reader:
        """Return a reader of the same rows, file after file, which fills the sample."""
        return reader.in_sequence().watched(self._read)

    def _read(self, _part: Reader, batches: Iterator[Batch]) -> Iterator[Batch]:
        for batch in batches:
            start, self._next = self._next, self._next + len(batch)
            picked = np.arange(-start % self._step, len(batch), self._step)
            self._batches.append((len(picked), taken(batch, picked)))
            while sum(n for n, _ in self._batches) > self._most:  # keep every second row
                self._step, first, kept = 2 * self._step, 0, []
                for n, some in self._batches:
                    rows = np.arange(first % 2, n, 2)
                    kept.append((len(rows), taken(some, rows)))
                    first += n
                self._batches = kept
            yield batch

    def usual(self, schema: Schema, context: Sequence[str] = ()) -> Usual | None:
        """Return what is usual among the rows; None if there are few."""
        n_rows = sum(n for n, _ in self._batches)
        if n_rows < _LEAST_ROWS:
            return None
        batches = [batch for n, batch in self._batches if n]
        usual = Usual.of(schema, batches, np.ones(n_rows, np.int64), context)
        return replace(usual, among=SCORED)


def _values(
    features: Sequence[Feature],
    batches: Sequence[Batch],
    times: Ints,
    ends: Callable[[int], tuple[float, float]] | None = None,
) -> tuple[UsualValues, ...]:
    return tuple(
        UsualValues.of(feature, j, batches, times, None if ends is None else ends(j))
        for j, feature in enumerate(features)
    )


def _bars(
    features: Sequence[Feature],
    values: Sequence[UsualValues],
    batches: Sequence[Batch],
    times: Ints,
    bar_ends: dict[int, tuple[float, float]],
) -> dict[int, Ints]:
    bars = {}
    for j in _charted(values):
        feature = features[j]
        numbers = np.concatenate([numbers_of(feature, batch, j) for batch in batches])
        known = ~np.isnan(numbers)
        low, high = bar_ends.get(j, (feature.low, feature.high))
        width = (high - low) / BARS or 1.0
        places = np.clip((numbers[known] - low) / width, 0, BARS - 1).astype(np.int64)
        bars[j] = np.bincount(places, times[known], BARS).astype(np.int64)
    return bars


def _bar_ends(
    features: Sequence[Feature], values: Sequence[UsualValues]
) -> dict[int, tuple[float, float]]:
    """Return the ranges of features without numbers far outside everything, where these differ.

    Such a number would squeeze the bars of all others into one; it counts in an outermost bar.
    """
    ends = {}
    for j in _charted(values):
        low, high, far = features[j].low, features[j].high, values[j].far
        if far is not None and (far[0] > low or far[1] < high):
            ends[j] = max(low, far[0]), min(high, far[1])
    return ends


def _parts_of_context(
    features: Sequence[Feature], context: Sequence[str], batches: Sequence[Batch], times: Ints
) -> dict[str, tuple[list[Batch], Ints]]:
    names = [feature.name for feature in features]
    j = names.index(context[0]) if len(context) == 1 else 0
    if len(context) != 1 or features[j].kind != "categorical":
        return {}
    texts = np.concatenate(
        [np.array(texts_of(features[j], b, j).to_pylist(), object) for b in batches]
    )
    ends = np.cumsum([len(batch) for batch in batches])[:-1]
    sizes = {c: int((texts == c).sum()) for c in features[j].categories}
    parts = {}
    for c in sorted(sizes, key=lambda c: -sizes[c])[:_CONTEXTS]:
        if sizes[c] >= _ROWS_WITHIN:
            inside = np.split(texts == c, ends)
            rows = [taken(b, np.flatnonzero(i)) for b, i in zip(batches, inside, strict=True)]
            parts[c] = rows, times[texts == c]
    return parts


class Frequencies:
    """Relative frequencies of values among the merged rows, feature by feature.

    It needs counts under `Plan.marginals`, else it raises `FileError`, with ``name`` for the file.
    """

    def __init__(self, counts: Counts, name: str) -> None:
        plan = counts.plan
        if plan.purpose is not Purpose.MARGINALS:
            raise FileError(
                f"{name} holds counts of a {plan.detector!r} plan: --marginals takes a merged "
                "sketch or release under hushtable plan marginals"
            )
        if plan.schema.relations is not None:
            raise UsageError(
                f"{name} counts residuals of columns with relations, not values: count under "
                "hushtable plan marginals of a schema without relations"
            )
        self.features, self._name = plan.schema.features, name
        n_rows = max(1.0, float(counts.counts.sum()) / len(self.features))
        #: Rows at the end of a range that count as none: see `UsualValues.of_cells`.
        self._few = (BUT + 0.5 + 5.0 * counts.noise_sd) / n_rows
        #: For each feature, the relative frequency of each cell, with the noise smoothed out: cells
        #: divide a range from low to high, or are categories; the last is for missing values.
        self.cells = []
        for first, last in itertools.pairwise(plan.family.offsets):
            rows = counts.counts[first:last].astype(np.float64)
            if counts.noise_sd > 0.0:
                rows = onto_simplex(rows, n_rows)
            self.cells.append(rows / max(1.0, rows.sum()))

    @cached_property
    def usual(self) -> list[UsualValues | None]:
        """The usual values of each feature among the merged rows."""
        usual = (
            UsualValues.of_cells(
                feature, cells[:-1], partial(_edges, feature, len(cells) - 1), self._few
            )
            for feature, cells in zip(self.features, self.cells, strict=True)
        )
        missing = [float(cells[-1]) for cells in self.cells]
        return [u and replace(u, missing=share) for u, share in zip(usual, missing, strict=True)]

    def check(self, features: Sequence[Feature]) -> None:
        """Raise `PlanError` unless these are the features that were counted."""
        if [(f.name, f.kind) for f in self.features] != [(f.name, f.kind) for f in features]:
            raise PlanError(
                f"{self._name}: the marginals do not belong to the model's features, in its order"
            )

    def beside(self, own: Usual | None) -> Usual:
        """Return what is usual among the merged rows; bars and pairs come from the own rows."""
        if own is None:
            return Usual(None, tuple(self.usual), among=MERGED)
        return replace(own, values=tuple(self.usual), within={}, bars_within={}, among=MERGED)


def _edges(feature: Feature, n_cells: int, first: int, last: int) -> tuple[float, float]:
    width = (feature.high - feature.low) / n_cells
    return feature.low + first * width, min(feature.low + (last + 1) * width, feature.high)
