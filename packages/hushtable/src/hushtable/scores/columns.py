"""How the columns of a site's rows differ from those of others, of whom there are counts alone.

Each column is compared in two ways:

Values: the largest difference between both distribution functions (Kolmogorov and Smirnov), or
between both shares of a category, of what is outside the plan, or of missing values; from
histograms.

Rows that are alike otherwise: a table's hash functions answer yes or no of one column each. Let a
row's code in a table be c1 with the answer of one function set to yes, and c0 with no. The mean
over the site's rows of n(c1) - n(c0), over that of n(c1) + n(c0), n being counts of others, is what
the others' rows with the same other answers say; the site's own counts, without the row itself, say
another. Half the difference, in the mean over five neighbouring cuts of a column, is the share of
rows that are on the other side than elsewhere. Sums of counts are linear in their noise.

A fault of a device, a unit or a code moves one column, in rows of all kinds. Another mix of cases
moves several columns. So a column is systematic if the largest difference is its own, beyond
chance, and no other column's values differ by more than chance, or a fifth as much. A mix that
moves one column alone, such as the age in a children's hospital, looks the same in all counts.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.base import Counts
from hushtable.data.encoding import Encoder
from hushtable.data.readers import Reader
from hushtable.data.schema import value_words
from hushtable.errors import UsageError
from hushtable.plans.families import RandomFeature
from hushtable.plans.plan import Plan
from hushtable.scores.typical import percent

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Differences that count: of at least so many times the scale of chance, and such a share. Of the
#: largest of one column's, chance is beyond 1.6 in one of a hundred cases (Kolmogorov).
#: Measured: see docs/benchmarks/privacy.md.
_CHANCE, _LEAST = 1.6, 0.03
#: Differences of all other columns' values: chance has larger ones so rarely, or such a part.
_RARELY, _PART = 0.001, 0.2
#: Cuts whose differences are averaged; rows that are compared with rows alike otherwise.
_CUTS, _ROWS = 5, 8_192
#: The part of the site's own counts in a pair of cells that the others' are taken to have at least:
#: noise makes some sums small.
_FLOOR = 0.3


@dataclass(frozen=True)
class ColumnDifference:
    """A column of a site's rows, and of the rows of others.

    Attributes
    ----------
    name : str
        The column.
    alike : float
        Share of rows, from 0 to 1, on the other side of a cut than rows that are alike otherwise.
    values : float
        Largest difference between the shares of both in a range, or of a category.
    here, elsewhere : float
        These shares.
    place : str
        In words, what these rows have: ``"104 or more"``, ``"F"``, ``"missing"``.
    chance : float
        About what chance and noise make of either difference in one of a hundred cases.
    """

    name: str
    alike: float
    values: float
    here: float
    elsewhere: float
    place: str
    chance: float

    @property
    def size(self) -> float:
        """The larger difference."""
        return max(self.alike, self.values)

    @property
    def words(self) -> str:
        """Both shares in words."""
        if self.values < self.chance:
            return f"{self.name} differs from what rows alike otherwise have elsewhere"
        here, elsewhere = percent(self.here), percent(self.elsewhere)
        return f"{self.name} is {self.place} in {here} of the rows here, in {elsewhere} elsewhere"


@dataclass(frozen=True)
class ColumnDifferences:
    """The columns of a site's rows against those of others.

    Attributes
    ----------
    columns : tuple of ColumnDifference
        The largest difference first.
    systematic : ColumnDifference or None
        The one column that differs beyond chance in rows of all kinds, if no other does.
    """

    columns: tuple[ColumnDifference, ...]
    systematic: ColumnDifference | None

    @property
    def differing(self) -> tuple[ColumnDifference, ...]:
        """Columns whose values differ beyond chance, and by a share that matters."""
        return tuple(one for one in self.columns if one.values > max(one.chance, _LEAST))

    @property
    def words(self) -> str:
        """Sentence or two about what is systematic in the rows."""
        if self.systematic is not None:
            return (
                f"Systematic at this site: {self.systematic.words}, and no other column differs: "
                "a device, a unit, a coding habit, or a speciality?"
            )
        some = self.differing
        if not some:
            return "The columns do not differ from elsewhere beyond chance."
        number = f"{len(some)} of {len(self.columns)} columns" if len(some) > 1 else "One column"
        differ = "differ" if len(some) > 1 else "differs"
        return (
            f"{number} {differ} from elsewhere, most of all: {some[0].words}. That is how another "
            "mix of cases looks; a fault beside it cannot be distinguished."
        )


def column_differences(
    rows: Reader, n_rows: int, elsewhere: Counts, here: Counts, marginals: Counts
) -> ColumnDifferences:
    """Compare the columns of a site's rows with those of others.

    Parameters
    ----------
    rows : Reader
        The site's rows, repeatable; with more than 8,192, evenly spaced ones are compared with rows
        that are alike otherwise.
    n_rows : int
        How many there are.
    elsewhere : Counts
        The others' counts under a plan of `HushTable` or `LSHiTables`.
    here, marginals : Counts
        Histograms of the site's rows, and of the others', under one plan of `Plan.marginals`.

    Raises
    ------
    UsageError
        If the tables of the plan do not keep features apart.
    """
    plan = elsewhere.plan
    if not isinstance(plan.family, RandomFeature):
        raise UsageError(
            f"the tables of {plan.detector} do not tell columns apart: needs a plan of HushTable "
            "or LSHiTables, without context"
        )
    size = min(n_rows, _ROWS)
    sample = np.unique(np.arange(size) * n_rows // max(1, size))
    alike = _by_rows_alike(plan, plan.family, elsewhere.counts, rows.take(sample))
    histograms = _Histograms(here, marginals)
    chance, of_sample = histograms.chance(n_rows), histograms.chance(size)
    columns = [
        ColumnDifference(
            feature.name, float(alike[j]), *histograms.largest(j), _CHANCE * float(chance[j])
        )
        for j, feature in enumerate(plan.schema.features)
    ]
    first = int(alike.argmax())
    found = columns[first]
    others = [j for j in range(len(columns)) if j != first]
    level = math.sqrt(-0.5 * math.log(_RARELY / (2 * max(1, len(others)))))
    beyond = found.size > max(_CHANCE * float(of_sample[first]), _LEAST)
    alone = all(columns[j].values < max(level * chance[j], _PART * found.size) for j in others)
    largest_first = tuple(sorted(columns, key=lambda column: -column.size))
    return ColumnDifferences(largest_first, found if beyond and alone else None)


def _by_rows_alike(plan: Plan, family: RandomFeature, others: Ints, rows: Reader) -> Floats:
    """Return the largest difference of each column (d,) in the mean over neighbouring cuts."""
    encoder = Encoder(plan.schema)
    answers = np.concatenate([family.answers(encoder.encode(b)) for b in rows.read()], axis=1)
    difference = np.zeros(len(family.feature))
    end = 0
    for t, depth in enumerate(family.depth.tolist()):
        begin, end = end, end + depth
        cells = others[family.offsets[t] : family.offsets[t + 1]]
        difference[begin:end] = _of_table(family, answers[begin:end], cells.astype(np.float64))
    largest = np.zeros(len(plan.schema))
    for j in range(len(largest)):
        mine = np.flatnonzero(family.feature == j)
        if len(mine):
            near = difference[mine[np.argsort(family.cut[mine], kind="stable")]]
            some = min(_CUTS, len(near))
            largest[j] = np.abs(np.convolve(near, np.full(some, 1.0 / some), "valid")).max()
    return largest


def _of_table(family: RandomFeature, answers: NDArray[np.bool_], others: Floats) -> Floats:
    """Return the difference of each hash function of a table: see the top of this file."""
    depth, n = answers.shape
    bits = 1 << np.arange(depth - 1, -1, -1, dtype=np.int64)
    codes = bits @ answers
    own = np.bincount(family.cells_of(codes, depth), minlength=len(others)) / n
    others = others / max(float(others.sum()), 1.0)
    found = np.zeros(depth)
    for h, bit in enumerate(bits):
        yes, no = (
            np.bincount(family.cells_of(code, depth), minlength=len(others)) / n
            for code in (codes | bit, codes & ~bit)
        )
        # Without each row itself: its cell is that of one of both codes.
        itself = (2.0 * answers[h].mean() - 1.0) / n
        mine, pair = (yes - no) @ own - itself, (yes + no) @ own - 1.0 / n
        theirs, their_pair = (yes - no) @ others, (yes + no) @ others
        least = _FLOOR * pair
        if pair > 0.0:
            found[h] = 0.5 * (mine / pair - theirs / max(their_pair, least))
    return found


class _Histograms:
    """Histograms of both under one plan of marginals."""

    def __init__(self, here: Counts, elsewhere: Counts) -> None:
        self._features, self._offsets = here.plan.schema.features, here.plan.family.offsets
        self._counts = here.counts.astype(np.float64), elsewhere.counts.astype(np.float64)
        self._others = max(1.0, float(self._counts[1].sum()) / len(self._features))
        self._noise_sd = elsewhere.noise_sd

    def chance(self, n_rows: int) -> Floats:
        """Return twice the standard deviation of a share near one half, in each column (d,)."""
        noise = np.diff(self._offsets) * (self._noise_sd / self._others) ** 2
        return np.sqrt(1.0 / max(1, n_rows) + 1.0 / self._others + noise)

    def largest(self, j: int) -> tuple[float, float, float, str]:
        """Return the largest difference in column j, both shares, and what these rows have."""
        feature, cells = self._features[j], slice(self._offsets[j], self._offsets[j + 1])
        here, elsewhere = (_shares(counts[cells]) for counts in self._counts)
        below = (here - elsewhere)[:-1]
        if feature.kind == "numeric":
            below = np.cumsum(below)[:-1]  # of each inner end of a bin
        at = int(np.abs(below).argmax())
        difference, missing = abs(float(below[at])), abs(float(here[-1] - elsewhere[-1]))
        if missing > difference:
            return missing, float(here[-1]), _share(elsewhere[-1]), "missing"
        if feature.kind == "categorical":
            names = (*feature.categories, "none of the known categories")
            return difference, float(here[at]), _share(elsewhere[at]), names[at]
        width = (feature.high - feature.low) / (len(here) - 1)
        end = value_words(feature, feature.low + (at + 1) * width)
        low, place = slice(0, at + 1), f"below {end}"
        if below[at] < 0.0:
            low, place = slice(at + 1, -1), f"{end} or more"
        return difference, float(here[low].sum()), _share(elsewhere[low].sum()), place


def _shares(counts: Floats) -> Floats:
    """Return the share of each cell among rows that have a value, and of missing values last."""
    present, total = max(1.0, counts[:-1].sum()), max(1.0, counts.sum())
    return np.append(counts[:-1] / present, counts[-1] / total)


def _share(noisy: float) -> float:
    return min(max(float(noisy), 0.0), 1.0)
