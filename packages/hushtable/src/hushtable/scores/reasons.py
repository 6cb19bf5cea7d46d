"""Reasons why rows score low: the features with the largest shares, in words."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hushtable.counts.base import Counts
from hushtable.data.columns import as_numbers, as_texts
from hushtable.data.encoding import Codes
from hushtable.data.readers import Batch, taken
from hushtable.data.schema import Feature, value_words
from hushtable.errors import FileError, PlanError
from hushtable.plans.draws import Purpose
from hushtable.privacy.layout import onto_simplex
from hushtable.scores.company import Company, company_words
from hushtable.scores.explain import Explained, Explainer
from hushtable.scores.scorer import Scorer
from hushtable.scores.typical import Told, UsualValues, cell, direction, told_value

#: Features named for each row.
TOP = 3
#: Share of a row's strongest reason from which another is put into words.
WORTH_A_WORD = 0.1

#: For each rank, the feature (n,) of each row that has it, and its share (n,), in bits.
Top = list[tuple[NDArray[np.int64], NDArray[np.float64]]]


@dataclass(frozen=True)
class Reason:
    """A feature that makes a row's score low."""

    feature: str
    #: Of what the score falls short by: in bits, above zero.
    share: float
    #: The feature with its value; the name alone where values are kept out.
    words: str
    #: The value, as a number (a date in seconds) or a text; None if it is missing, or kept out.
    value: float | str | None = None
    #: The value in words; empty where values are kept out.
    said: str = ""
    #: The value beside what is usual; None where values are kept out.
    told: Told | None = None
    #: The type of the column that the value is from.
    kind: pa.DataType | None = None

    def facts(self) -> dict[str, Any]:
        """Return the reason for machines."""
        return {"feature": self.feature, "share": self.share, "words": self.words}


def worth_a_word(reasons: list[Reason]) -> list[Reason]:
    """Return the reasons that are worth a word beside the strongest, which is the first."""
    return [r for r in reasons if r.share >= WORTH_A_WORD * reasons[0].share]


class Reasons:
    """Finds the features that lower the scores of rows, and puts them in words.

    With ``values``, the words hold the rows' values; ``frequencies`` add how far out these lie,
    ``usual`` (of each feature) what they lie beside.
    Raises `UsageError` if the model's tables do not keep features apart.
    """

    def __init__(
        self,
        scorer: Scorer,
        *,
        values: bool = True,
        frequencies: "Frequencies | None" = None,
        usual: Sequence[UsualValues] | None = None,
    ) -> None:
        self.explainer = Explainer(scorer)
        self.features = scorer.plan.schema.features
        self._values, self._frequencies, self._usual = values, frequencies, usual
        self._company = None if scorer.row_noise > 0.0 else Company(scorer)

    @property
    def n_top(self) -> int:
        """Features named for each row."""
        return min(TOP, len(self.features))

    def of(
        self, batch: Explained, few: NDArray[np.int64]
    ) -> tuple[Top, Callable[[int], list[Reason]]]:
        """Return the largest shares of a batch, and a function to the reasons of a few rows.

        It takes a place in ``few``. The batch's shares are overwritten.
        """
        rows, left, top = taken(batch.rows, few), batch.shares, []
        every = np.arange(len(left))
        for _ in range(self.n_top):
            best = left.argmax(axis=1)
            top.append((best, left[every, best]))
            left[every, best] = -np.inf

        def reasons(k: int) -> list[Reason]:
            return [
                self._reason(int(best[few[k]]), float(share[few[k]]), rows, k)
                for best, share in top
                if share[few[k]] > 0.0
            ]

        return top, reasons

    def company(self, row: Codes) -> str:
        """Return how much company a typical row has beside one; empty if counts do not tell."""
        return "" if self._company is None else company_words(self._company.bits(row))

    def _reason(self, j: int, share: float, rows: Batch, i: int) -> Reason:
        feature = self.features[j]
        if not self._values:
            return Reason(feature.name, share, feature.name)
        one = cell(rows, j, i)
        value, said = self._value(feature, one)
        words = f"{feature.name} {'is ' if value is None else ''}{said}"
        if self._frequencies is not None:
            words += self._frequencies.words(j, value)
        kind = one.type.value_type if pa.types.is_dictionary(one.type) else one.type
        beside = told_value(feature, value, kind, self._usual_of(j))
        return Reason(feature.name, share, words, value, said, beside, kind)

    def _usual_of(self, j: int) -> UsualValues | None:
        """Return what a feature's values are compared with: the merged rows, if they are given."""
        if self._frequencies is not None:
            return self._frequencies.usual[j]
        return None if self._usual is None else self._usual[j]

    def _value(self, feature: Feature, one: pa.Array) -> tuple[float | str | None, str]:
        """Return a value of a feature, and the value in words; None if it is missing."""
        if feature.kind == "numeric":
            number = float(as_numbers(one, feature.name)[0])
            value = None if math.isnan(number) else number
            return value, value_words(feature, None if value is None else one[0].as_py())
        text = as_texts(one, feature.name)[0].as_py()
        return text, value_words(feature, text)


class Frequencies:
    """Relative frequencies of values among the merged rows, feature by feature.

    Of counts under `Plan.marginals`, else `FileError` is raised; ``name`` is theirs, for messages.
    """

    def __init__(self, counts: Counts, name: str) -> None:
        plan = counts.plan
        if plan.purpose is not Purpose.MARGINALS:
            raise FileError(
                f"{name} holds counts of a {plan.detector!r} plan: --marginals takes a merged "
                "sketch or release under hushtable plan marginals"
            )
        self.features, self._name = plan.schema.features, name
        n_rows = max(1.0, float(counts.counts.sum()) / len(self.features))
        #: For each feature, the relative frequency of each cell, with the noise smoothed out: of a
        #: range from low to high, or of the categories; the last cell is that of missing values.
        self.cells = []
        for first, last in itertools.pairwise(plan.family.offsets):
            rows = counts.counts[first:last].astype(np.float64)
            if counts.noise_sd > 0.0:
                rows = onto_simplex(rows, n_rows)
            self.cells.append(rows / max(1.0, rows.sum()))

    @cached_property
    def usual(self) -> list[UsualValues | None]:
        """The usual values of each feature among the merged rows."""
        found = (
            UsualValues.of_cells(feature, cells[:-1], partial(_edges, feature, len(cells) - 1))
            for feature, cells in zip(self.features, self.cells, strict=True)
        )
        missing = [float(cells[-1]) for cells in self.cells]
        return [u and replace(u, missing=share) for u, share in zip(found, missing, strict=True)]

    def check(self, features: Sequence[Feature]) -> None:
        """Raise `PlanError` unless these are the features that were counted."""
        if [(f.name, f.kind) for f in self.features] != [(f.name, f.kind) for f in features]:
            raise PlanError(
                f"{self._name}: the marginals are not of the model's features, in its order"
            )

    def words(self, j: int, value: Any) -> str:
        """Say where a value, a number or a category or None, lies among the merged rows."""
        feature, cells = self.features[j], self.cells[j]
        if value is None:
            return f", as in {_percent(cells[-1])} of the merged rows"
        if feature.kind == "categorical":
            if value not in feature.categories:
                return ", none of the plan's categories"
            same = cells[feature.categories.index(value)]
            return f", as in {_percent(same)} of the merged rows"
        numbers = cells[:-1]
        place = 0.0 if feature.constant else (value - feature.low) / (feature.high - feature.low)
        cell = min(max(math.floor(place * len(numbers)), 0), len(numbers) - 1)
        below, above = float(numbers[:cell].sum()), float(numbers[cell + 1 :].sum())
        if not direction(feature, value, self.usual[j]):
            return ", not far out by itself"
        if below > above:
            return f" is above {_percent(below)} of the merged rows"
        return f" is below {_percent(above)} of the merged rows"


def _edges(feature: Feature, n_cells: int, first: int, last: int) -> tuple[float, float]:
    """Return the outer ends of two of the cells that a range is cut into."""
    width = (feature.high - feature.low) / n_cells
    return feature.low + first * width, min(feature.low + (last + 1) * width, feature.high)


def _percent(share: float) -> str:
    """Return a share, rounded down, and never all: noise may have hidden the last rows."""
    return f"{min(999, math.floor(1000.0 * share + 1e-9)) / 10:g}%"
