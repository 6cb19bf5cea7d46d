"""Reasons why rows score low: the features with the largest shares, in words."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hushtable.data.encoding import Codes
from hushtable.data.readers import Batch, taken
from hushtable.data.relations import Relations, numbers_of
from hushtable.data.schema import value_words
from hushtable.plans.families import WEIGHT, Contextual
from hushtable.plans.plan import Plan
from hushtable.plans.score_rule import exact
from hushtable.scores.distributions import Frequencies
from hushtable.scores.explain import Explained, Explainer
from hushtable.scores.scorer import Scorer
from hushtable.scores.typical import (
    Usual,
    UsualValues,
    ValuePhrase,
    cell,
    describe_cell,
    describe_value,
    describe_within,
    number_text,
    plain_type,
    read_value,
    with_name,
)

#: Below how many times as much, and how to say it.
_WORDS = (
    (0.95, "fewer"),
    (1.05, "as many"),
    (1.2, "a tenth more"),
    (1.35, "a quarter more"),
    (1.75, "half again as many"),
    (2.5, "twice as many"),
)
_COUNTED = ("three", "four", "five", "six", "seven", "eight", "nine")


class Crowding:
    """Compares rows with a typical one by how many counted rows share their cells.

    The mean over the tables is that of the logarithm, as in scores; these are smoothed besides,
    and a gap between two of them says less. The counts must be exact: with noise, the small ones,
    which matter here, say little. Of tables that keep features apart, `HushTable`'s for one.
    """

    def __init__(self, scorer: Scorer) -> None:
        family, counts = scorer.plan.family, scorer.row_counts
        logarithms = exact(np.log2(np.maximum(counts, 1)))
        self._sum, self._n_tables = family.summing(logarithms), family.n_tables
        rows = np.add.reduceat(counts, family.offsets[:-1])
        sums = np.add.reduceat(counts * logarithms, family.offsets[:-1])
        #: Mean of the counted rows, in bits.
        self.typical = float((sums / np.maximum(rows, 1)).mean())

    def bits(self, codes: Codes) -> float:
        """Return how far a row, the only one of ``codes``, is below a typical one."""
        return self.typical - float(self._sum(codes)[0]) / self._n_tables


def crowding_words(bits: float) -> str:
    """Return how many similar rows a typical row has, beside a row with ``bits`` fewer."""
    times = 2.0 ** min(bits, 60.0)
    for below, words in _WORDS:
        if times < below:
            return f"{words} similar rows"
    whole = round(times)
    if whole < 10:
        return f"{_COUNTED[whole - 3]} times as many similar rows"
    # Two digits are all that tables tell.
    digits = 2 - len(str(whole))
    return f"about {round(whole, min(digits, 0)):,} times as many similar rows"


#: Rows of a context below which the list states that a row is compared with all rows, too. At as
#: many, both weigh alike.
FEW_OF_CONTEXT = WEIGHT


class ContextRows:
    """Says of a row how many rows of its context were counted, if these are few.

    Of a context whose hash functions are drawn, that is the mean over the tables of the rows in the
    same cell, which may be of other contexts, too. The counts must be exact.
    """

    def __init__(self, scorer: Scorer) -> None:
        family = scorer.plan.family
        assert isinstance(family, Contextual)
        rows = family.rows_of_context(scorer.row_counts).astype(np.float64)
        self._sum, self._n_tables = family.summing(rows), family.n_tables
        self._columns = [(j, scorer.plan.schema.features[j]) for j in family.context_features]

    def few(self, codes: Codes) -> NDArray[np.bool_]:
        """Return of which rows (n,) few of their context were counted."""
        return np.asarray(self._sum(codes) < FEW_OF_CONTEXT * self._n_tables)

    def words(self, rows: Batch, i: int, codes: Codes) -> str:
        """Return it in words, for row i of some rows, the only one of ``codes``; empty if many."""
        counted = float(self._sum(codes)[0]) / self._n_tables
        if counted >= FEW_OF_CONTEXT:
            return ""
        names = [
            f"{feature.name} {describe_cell(feature, cell(rows, j, i), None).text or 'missing'}"
            for j, feature in self._columns
        ]
        if counted < 0.5:
            return f"{', '.join(names)}: no rows counted, so compared with all rows"
        about = f"about {counted:.0f} row{'s' if round(counted) > 1 else ''} counted"
        return f"{', '.join(names)}: {about}, so compared with all rows, too"


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
    #: The value beside what is usual; None where values are kept out.
    phrase: ValuePhrase | None = None
    #: The type of the column that the value is from.
    kind: pa.DataType | None = None

    def facts(self) -> dict[str, Any]:
        """Return the reason for machines."""
        return {"feature": self.feature, "share": self.share, "words": self.words}


def worth_a_word(reasons: list[Reason]) -> list[Reason]:
    """Return the reasons that are worth a word beside the strongest, which is the first.

    A value that most rows have is none by itself, and a missing one only where few are missing.
    """
    return [
        r
        for r in reasons
        if r.share >= WORTH_A_WORD * reasons[0].share
        and not (r.phrase is not None and r.phrase.common)
    ]


#: Standard deviations of a residual beyond which its value is high or low beside the other columns.
_FAR = 2.0
#: Columns of a context that are named.
_NAMED = 2


class RowPhrases:
    """Puts values of rows in words, beside what is usual: in the row's context, or anywhere."""

    def __init__(self, plan: Plan, usual: Usual | None) -> None:
        self._features, self._usual = plan.schema.features, usual
        names, self._relations = plan.schema.names, plan.schema.relations
        self._differences, self._columns = plan.schema.differences, plan.schema.of_rows.names
        self._context = names.index(plan.context[0]) if usual and usual.within else None

    def of(self, rows: Batch, i: int, j: int) -> ValuePhrase:
        """Return the value of column j in row i of some rows, in words."""
        feature, one = self._features[j], cell(rows, j, i)
        if self._relations is not None and j in self._relations.columns:
            return self._beside_others(self._relations, rows, i, j)
        if (phrase := self._beside_predicted(rows, i, j)) is not None:
            return phrase
        usual = self._usual_of(j)
        if self._usual is not None and self._context is not None and j != self._context:
            column = self._features[self._context]
            context = str(read_value(column, cell(rows, self._context, i)))
            if (within := self._usual.within.get(context)) is not None:
                return describe_within(feature, one, within[j], f"{column.name} {context}", usual)
        return describe_cell(feature, one, usual)

    def _beside_others(self, relations: Relations, rows: Batch, i: int, j: int) -> ValuePhrase:
        """Return the value of column j in words, beside the one that the other columns predict."""
        k, names = relations.columns.index(j), self._columns
        X = numbers_of(rows[i : i + 1], relations.columns, names)
        left = float(relations.residuals(X)[0, k])
        if math.isnan(left):
            return describe_cell(self._features[j], cell(rows, j, i), self._usual_of(j))
        others = " and ".join(names[relations.columns[m]] for m in relations.strongest[k])
        far = left / relations.spread[k]
        return self._beside(rows, i, j, others, float(X[0, k]) - left, far)

    def _beside_predicted(self, rows: Batch, i: int, j: int) -> ValuePhrase | None:
        """Return the value of column j beside what the context predicts, if it is far from that."""
        differences = self._differences
        if differences is None or j not in differences.columns:
            return None
        k = differences.columns.index(j)
        far = cell(rows, len(self._columns) + k, i)[0].as_py()
        if far is None or not abs(far) > _FAR:
            return None
        predicted = float(differences.predicted(rows[i : i + 1], self._columns)[k])
        by = [self._columns[place] for place in differences.context]
        named = " and ".join(by) if len(by) <= _NAMED else "its context"
        return self._beside(rows, i, j, named, predicted, far)

    def _beside(
        self, rows: Batch, i: int, j: int, by: str, predicted: float, far: float
    ) -> ValuePhrase:
        """Return the value of column j beside another, ``far`` standard deviations away."""
        feature, one = self._features[j], cell(rows, j, i)
        phrase = describe_cell(feature, one, self._usual_of(j))
        expected = number_text(predicted, feature, plain_type(one), 3)
        words = f"{with_name(feature, phrase.text)}, where by {by} it would be {expected}"
        direction = ("high" if far > 0.0 else "low") if abs(far) > _FAR else ""
        return replace(phrase, words=words, usual=expected, direction=direction, compared=True)

    def _usual_of(self, j: int) -> UsualValues | None:
        return None if self._usual is None else self._usual.values[j]


class Reasons:
    """Finds the features that lower the scores of rows, and puts them in words.

    With ``values``, the words hold the rows' values; ``frequencies`` add how far out these lie,
    ``usual`` what they lie beside.
    Raises `UsageError` if the model's tables do not keep features apart.
    """

    def __init__(
        self,
        scorer: Scorer,
        *,
        values: bool = True,
        frequencies: Frequencies | None = None,
        usual: Usual | None = None,
    ) -> None:
        self.explainer = Explainer(scorer)
        self.features = scorer.plan.schema.of_rows.features
        self._values, self._frequencies = values, frequencies
        self._phrases = RowPhrases(scorer.plan, usual)
        self._crowding = None if scorer.row_noise > 0.0 else Crowding(scorer)

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

    def crowding(self, row: Codes) -> str:
        """Return how many similar rows a typical row has; empty for counts with noise."""
        return "" if self._crowding is None else crowding_words(self._crowding.bits(row))

    def _reason(self, j: int, share: float, rows: Batch, i: int) -> Reason:
        feature = self.features[j]
        if not self._values:
            return Reason(feature.name, share, feature.name)
        one = cell(rows, j, i)
        value = read_value(feature, one)
        exact = one[0].as_py() if feature.kind == "numeric" and value is not None else value
        words = f"{feature.name} {'is ' if value is None else ''}{value_words(feature, exact)}"
        phrase = self._phrases.of(rows, i, j)
        # Of the merged rows, the words describe more rows.
        if self._frequencies is not None:
            words += self._frequencies.words(j, value)
            phrase = describe_value(feature, value, plain_type(one), self._frequencies.usual[j])
        return Reason(feature.name, share, words, value, phrase, plain_type(one))
