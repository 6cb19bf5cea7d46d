"""Reasons why rows score low: the features with the largest shares, in words."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from hushtable.data.encoding import Codes
from hushtable.data.readers import Batch
from hushtable.data.residuals import numbers_of
from hushtable.data.schema import Feature, number_words
from hushtable.language import _, ngettext
from hushtable.plans.families import WEIGHT, Contextual
from hushtable.plans.plan import Plan
from hushtable.scores.explain import Explainer, Repairs
from hushtable.scores.pairs import PairCounts, RarePair
from hushtable.scores.scorer import Scorer
from hushtable.scores.typical import (
    BEYOND,
    UsualValues,
    ValuePhrase,
    cell,
    describe_cell,
    describe_within,
    number_text,
    plain_type,
    read_value,
    with_name,
)
from hushtable.scores.usual import Usual

#: Number of rows of a context below which these are few: its rows are also compared with all rows.
#: At this number, both have the same weight.
FEW_OF_CONTEXT = WEIGHT


class ContextRows:
    """Reports how many rows of a row's context were counted, if these are few.

    If most contexts have few rows, only those with less than half as many are worth a note.

    If the hash functions of the context are drawn, this is the mean over the tables of the rows in
    the same cell, which may include rows of other contexts. The counts must be exact.
    """

    def __init__(self, scorer: Scorer) -> None:
        family = scorer.plan.family
        assert isinstance(family, Contextual)
        rows = family.rows_of_context(scorer.row_counts).astype(np.float64)
        self._sum, self._n_tables = family.summing(rows), family.n_tables
        sizes = rows[: family.offsets[1] : family.cells]  # one for each context of the first table
        usual = float(np.quantile(sizes, 0.5, weights=sizes, method="inverted_cdf"))
        self._noted_below = min(FEW_OF_CONTEXT, 0.5 * usual)
        self._columns = [(j, scorer.plan.schema.features[j]) for j in family.context_features]

    def words(self, rows: Batch, i: int, codes: Codes) -> str:
        """Return a note on row i, the only one of ``codes``; empty if it is not worth one."""
        counted = float(self._sum(codes)[0]) / self._n_tables
        if counted >= self._noted_below:
            return ""
        missing = _("missing")
        names = [
            f"{feature.name} {describe_cell(feature, cell(rows, j, i), None).text or missing}"
            for j, feature in self._columns
        ]
        context = ", ".join(names)
        if counted < 0.5:
            return _("%(context)s: no rows counted, so compared with all rows", context=context)
        return ngettext(
            "%(context)s: about %(n)s row counted, so also compared with all rows",
            "%(context)s: about %(n)s rows counted, so also compared with all rows",
            round(counted),
            context=context,
        )


#: Number of features named for each row.
TOP = 3
#: Part of the strongest reason's gain from which on another reason is put into words.
WORTH_A_WORD = 0.1
#: How many times rarer than expected two values, each usual separately, have to be together to be
#: named as a pair; the same for a row that is not unusual, and if no other value is a reason.
RARER, CALM, TWICE = 4.0, 8.0, 2.0

#: For each rank, the feature (n,) of each row that has it, and its share (n,), in bits.
Top = list[tuple[NDArray[np.int64], NDArray[np.float64]]]


@dataclass(frozen=True)
class Reason:
    """A feature that makes a row's score low."""

    feature: str
    #: The gain in score if this value alone becomes a usual one; if usual values are unknown, its
    #: part of the gap to a typical score. In bits, 0 or more.
    share: float
    #: The value together with what is usual.
    phrase: ValuePhrase
    #: For a pair that is rarer than expected: the column with which the value is rare.
    partner: str = ""
    #: The value, as a number (a date in seconds) or text; None if it is missing.
    value: float | str | None = None
    #: The partner's value, in the same form.
    partner_value: float | str | None = None
    #: The context within which the value is compared, on its own and with the name of its column,
    #: such as ``"ward gyn"``; empty if the value is compared with all rows.
    context: str = ""
    within: str = ""

    @property
    def kind(self) -> str:
        """The words that rows with similar reasons share; empty if nothing stands out."""
        phrase = self.phrase
        if self.partner:
            return self.named
        if not phrase.stands_out:
            return ""
        numbers = phrase.direction in ("high", "low", "missing", "beyond")
        words = f"{self.feature} {_(phrase.direction) if numbers else phrase.text}"
        return (
            _("%(what)s for %(context)s", what=words, context=self.within) if self.within else words
        )

    @property
    def words(self) -> str:
        """The value and what is usual, in words."""
        return self.phrase.words

    @property
    def named(self) -> str:
        """The columns in words."""
        if not self.partner:
            return self.feature
        return _("%(name)s with %(partner)s", name=self.feature, partner=self.partner)

    @property
    def columns(self) -> list[str]:
        """The columns that are named."""
        return [self.feature, *([self.partner] if self.partner else [])]

    def facts(self) -> dict[str, object]:
        """Return the reason in machine-readable form."""
        partner = {"with": self.partner} if self.partner else {}
        return {"feature": self.feature, **partner, "share": self.share, "words": self.words}


@dataclass(frozen=True)
class RowReasons:
    """Why a row has its score.

    Attributes
    ----------
    reasons : list of Reason
        At most three: first those of ``repaired``, then others whose usual values would raise the
        score.
    repaired : list of str
        The fewest columns, at most three, whose usual values would make the row no longer unusual;
        empty if usual values are unknown.
    score : float
        The score that the row would then have.
    enough : bool
        Whether it would no longer be unusual.
    """

    reasons: list[Reason] = field(default_factory=list)
    repaired: list[str] = field(default_factory=list)
    score: float = 0.0
    enough: bool = False

    def facts(self) -> dict[str, object]:
        """Return the reasons in machine-readable form."""
        facts: dict[str, object] = {"reasons": [reason.facts() for reason in self.reasons]}
        if self.repaired:
            repaired = {"columns": self.repaired, "score": self.score, "enough": self.enough}
            facts["repaired"] = repaired
        return facts


#: Standard deviations of a residual beyond which its value is high or low given the other columns.
_FAR = 2.0
#: Largest number of columns of a context that are named.
_NAMED = 2


class RowPhrases:
    """Describes the values of one of some rows with what is usual: in its context, or among all.

    With the ``pairs`` of these rows, it also finds those that are rare together.
    """

    def __init__(
        self, plan: Plan, usual: Usual | None, rows: Batch, i: int, pairs: "RowPairs | None" = None
    ) -> None:
        self.i, self._rows, self._pairs = i, rows, pairs
        self._schema, self._usual = plan.schema, usual
        self._columns = plan.schema.of_rows.names
        self._known = dict[int, ValuePhrase]()
        self._context_column = -1
        #: The row's context if its usual values are known, on its own and with the name of its
        #: column; otherwise empty.
        self.context = self.within = ""
        if usual is not None and usual.within:
            self._context_column = j = plan.schema.names.index(plan.context[0])
            if (context := str(self.value(j))) in usual.within:
                self.context, self.within = context, f"{plan.schema.names[j]} {context}"

    def value(self, j: int) -> float | str | None:
        """Return the value of column j, as a number or text; None if it is missing."""
        return read_value(self._schema.features[j], cell(self._rows, j, self.i))

    def phrase(self, j: int) -> ValuePhrase:
        """Return the value of column j in words."""
        if j not in self._known:
            self._known[j] = self._beside_predicted(j) or self._beside_usual(j)
        return self._known[j]

    def far(self, j: int) -> bool:
        """Whether the value of column j is far outside everything."""
        usual = self._usual_of(j)
        return usual is not None and usual.far is not None and usual.is_far(self.value(j))

    def distance(self, j: int) -> float:
        """Return how far the value of column j is from the usual; 0 if most rows have it."""
        phrase = self.phrase(j)
        return 0.0 if phrase.common else phrase.distance

    def usual_values(self) -> list[float | str | None]:
        """Return the usual value of each feature that would replace the row's own.

        It is the prediction of the context or of the other columns, or the usual value of the row's
        context, or of all rows; None if it is unknown.
        """
        assert self._usual is not None
        known = self._usual.within[self.context] if self.context else self._usual.values
        values = [None if usual is None else usual.typical for usual in known]
        differences, row = self._schema.differences, self._rows[self.i : self.i + 1]
        if differences is not None:
            predicted = differences.predicted(row, self._schema.of_rows.features)[:, 0].tolist()
            for j, value in zip(differences.columns, predicted, strict=True):
                values[j] = self._read(j, value)
        return values

    def pair(self, j: int, rarer: float) -> RarePair | None:
        """Return a value, usual on its own, and the one of its row with which it is rarest.

        None if the pair is not more than ``rarer`` times rarer than expected.
        """
        if self._pairs is None or not self.phrase(j).alone:
            return None
        times = self._pairs.rarer(self.i, j)
        partners = [k for k in np.flatnonzero(times > rarer).tolist() if self.phrase(k).alone]
        best = max(partners, key=lambda k: times[k], default=None)
        if best is None:
            return None
        # A value that many rows share is what the other one is compared within.
        shared = self.phrase(j).shared and not self.phrase(best).shared
        return RarePair(*((best, j) if shared else (j, best)), float(times[best]))

    def reason(self, j: int, share: float, pair: RarePair | None = None) -> Reason:
        """Return the value of column j, alone or in a pair, as a reason with this share."""
        name = self._columns[j]
        partner = "" if pair is None else self._columns[pair.partner]
        phrase = self.phrase(j)
        if pair is not None and self._pairs is not None:
            phrase = self._pairs.phrase(self.i, pair, phrase, self.phrase(pair.partner))
        beside = None if pair is None else self.value(pair.partner)
        value = self.value(j)
        return Reason(name, share, phrase, partner, value, beside, self.context, self.within)

    def _beside_usual(self, j: int) -> ValuePhrase:
        feature, value, usual = (
            self._schema.features[j],
            cell(self._rows, j, self.i),
            self._usual_of(j),
        )
        if self._usual is not None and self.context and j != self._context_column:
            within = self._usual.within[self.context][j]
            return describe_within(feature, value, within, self.within, usual)
        return describe_cell(feature, value, usual)

    def _beside_predicted(self, j: int) -> ValuePhrase | None:
        """Return the value of column j and what other columns predict; None if they do not.

        The context's prediction counts only if the value is far from it.
        """
        relations, differences = self._schema.relations, self._schema.differences
        row, d = self._rows[self.i : self.i + 1], len(self._columns)
        if relations is not None and j in relations.columns:
            k = relations.columns.index(j)
            X = numbers_of(row, relations.columns, self._columns)
            left = float(relations.residuals(X)[0, k])
            if math.isnan(left):
                value = cell(self._rows, j, self.i)
                return describe_cell(self._schema.features[j], value, self._usual_of(j))
            others = [self._columns[relations.columns[m]] for m in relations.strongest[k]]
            far, predicted = left / relations.spread[k], float(X[0, k]) - left
            return self._beside(j, _(" and ").join(others), predicted, far)
        if differences is None or j not in differences.columns:
            return None
        k = differences.columns.index(j)
        away = cell(self._rows, d + k, self.i)[0].as_py()
        if away is None or not abs(away) > _FAR:
            return None
        predicted = float(differences.predicted(row, self._schema.of_rows.features)[k, 0])
        by = [self._columns[place] for place in differences.context]
        named = _(" and ").join(by) if len(by) <= _NAMED else _("its context")
        return self._beside(j, named, predicted, away)

    def _beside(self, j: int, by: str, predicted: float, far: float) -> ValuePhrase:
        """Return the value of column j and another, ``far`` standard deviations away."""
        feature, written = self._schema.features[j], cell(self._rows, j, self.i)
        phrase, value = describe_cell(feature, written, self._usual_of(j)), self._read(j, predicted)
        expected = (
            value
            if isinstance(value, str)
            else number_text(value, feature, plain_type(written), digits=3)
        )
        words = _(
            "%(what)s, where by %(columns)s it would be %(expected)s",
            what=with_name(feature, phrase.text),
            columns=by,
            expected=expected,
        )
        share, side = phrase.share, ""
        if abs(far) > _FAR:
            share = None  # the value is a reason here, even if many of all rows have it
            side = "high" if far > 0.0 else "low"
            side = "rare" if isinstance(value, str) else side
        return replace(
            phrase,
            words=words,
            usual=expected,
            direction=side,
            compared=True,
            share=share,
            distance=abs(far),
        )

    def _read(self, j: int, predicted: float) -> float | str:
        feature = self._schema.features[j]
        return predicted if feature.kind == "numeric" else feature.categories[round(predicted)]

    def _usual_of(self, j: int) -> UsualValues | None:
        return None if self._usual is None else self._usual.values[j]


class RowPairs:
    """Pairs of values of some rows, and how much rarer than expected they are."""

    def __init__(self, features: Sequence[Feature], pairs: PairCounts, rows: Batch) -> None:
        self._features, self._pairs, self._rows = features, pairs, rows
        self._places = pairs.place(features, rows)
        self._rarity = dict[int, NDArray[np.float64]]()

    def rarer(self, i: int, j: int) -> NDArray[np.float64]:
        """Return how many times rarer than expected column j of row i is with each column (c,)."""
        if j >= self._places.shape[1]:
            return np.ones(0)
        if i not in self._rarity:
            self._rarity[i] = self._pairs.rarity(self._places[i])
        times: NDArray[np.float64] = self._rarity[i][j]
        return times

    def phrase(
        self, i: int, pair: RarePair, value: ValuePhrase, partner: ValuePhrase
    ) -> ValuePhrase:
        """Put a pair in words."""
        mine, other = (self._features[j] for j in (pair.column, pair.partner))
        rows = self._pairs.given(pair.column, pair.partner, int(self._places[i, pair.partner]))
        kind = plain_type(cell(self._rows, pair.column, i))
        number = read_value(mine, cell(self._rows, pair.column, i))
        usual = self._pairs.cells[pair.column].words(rows, mine, kind, number)
        numeric = other.kind == "numeric"
        such = _("that %(name)s", name=other.name) if numeric else partner.named(other)
        what = _("%(name)s with %(partner)s", name=value.named(mine), partner=partner.named(other))
        if usual:
            what = _("%(what)s: usually %(usual)s for %(such)s", what=what, usual=usual, such=such)
        words = _(
            "%(what)s (each usual, together %(times)s times rarer than expected)",
            what=what,
            times=number_words(pair.times, 2),
        )
        direction = _("with %(partner)s", partner=partner.named(other))
        return replace(value, usual=usual, direction=direction, words=words, share=None)


class Reasons:
    """Finds the features that lower the scores of rows, and describes them in words.

    ``usual`` is what the rows' values are compared with; it may be set later. Raises `UsageError`
    if the model's tables do not separate features.
    """

    def __init__(self, scorer: Scorer, *, usual: Usual | None = None) -> None:
        self.explainer, self._scorer = Explainer(scorer), scorer
        self.features = scorer.plan.schema.of_rows.features
        self.usual = usual

    @property
    def n_top(self) -> int:
        """Number of features named for each row."""
        return min(TOP, len(self.features))

    def top(self, shares: NDArray[np.float64]) -> Top:
        """Return the features with the largest shares (n, d) of each row."""
        left, top = shares.copy(), []
        every = np.arange(len(left))
        for _rank in range(self.n_top):
            best = left.argmax(axis=1)
            top.append((best, left[every, best]))
            left[every, best] = -np.inf
        return top

    def of(
        self, rows: Batch, shares: NDArray[np.float64], bar: float | None = None
    ) -> list[RowReasons]:
        """Return the reasons of some rows, which have these shares (n, d).

        A row is no longer unusual if its score rises above ``bar``: the score of the first row
        after a list, or by default the highest score of the rarest 1% of the counted rows.
        """
        plan, pairs = self._scorer.plan, None
        if (
            self.usual is not None
            and self.usual.pairs is not None
            and plan.schema.relations is None
        ):
            pairs = RowPairs(self.features, self.usual.pairs, rows)
        every = [RowPhrases(plan, self.usual, rows, i, pairs) for i in range(len(rows))]
        if self.usual is None:
            return [self._by_share(*one) for one in zip(every, shares, strict=True)]
        if bar is None:
            known = self.usual.scores is not None
            bar = self.usual.rare_below if known else self.explainer.typical
        repairs = Repairs(self._scorer, rows, [row.usual_values() for row in every])
        return [
            self._by_repair(row, repairs, one, bar) for row, one in zip(every, shares, strict=True)
        ]

    def _by_share(self, row: RowPhrases, shares: NDArray[np.float64]) -> RowReasons:
        order = np.argsort(-shares, kind="stable")[: self.n_top].tolist()
        least = max(0.0, WORTH_A_WORD * shares[order[0]])
        gains = {
            j: float(shares[j])
            for j in order
            if shares[j] > 0.0 and shares[j] >= least and not row.phrase(j).common
        }
        # Many rows that are not unusual have a rare pair somewhere, by chance.
        return RowReasons(self._named(row, gains, calm=True))

    def _by_repair(
        self, row: RowPhrases, repairs: Repairs, shares: NDArray[np.float64], bar: float
    ) -> RowReasons:
        """Return the features that repair the row, followed by those that would help alone.

        For a row that is not unusual, return those with the largest shares.
        """
        far = [j for j in range(len(self.features)) if row.far(j)]
        if repairs.scores[row.i] > bar and not far:
            return self._by_share(row, shares)
        repair = repairs.find(row.i, shares, bar, row.distance, far)
        gains = {j: max(repair.alone[j], 0.0) for j in repair.columns}
        weights = {j: gain * row.distance(j) for j, gain in repair.alone.items() if j not in gains}
        least = WORTH_A_WORD * max(gains.values(), default=0.0)
        for j in sorted(weights, key=lambda j: -weights[j]):
            phrase, gain = row.phrase(j), repair.alone[j]
            if phrase.stands_out and (gain > least or phrase.direction == BEYOND):
                gains[j] = max(gain, 0.0)
        reasons = self._named(row, gains) or self._together(row, repair.alone)
        if not reasons:  # what stands out most of the largest shares
            order = [j for j in np.argsort(-shares, kind="stable").tolist() if shares[j] > 0.0]
            odd = [j for j in order[: 2 * self.n_top] if row.phrase(j).stands_out]
            odd.sort(key=lambda j: -row.distance(j))
            reasons = self._named(row, {j: max(repair.alone.get(j, 0.0), 0.0) for j in odd})
        repaired = [self.features[j].name for j in repair.columns]
        return RowReasons(reasons, repaired, repair.score, repair.enough)

    def _together(self, row: RowPhrases, gains: dict[int, float]) -> list[Reason]:
        most = [j for j in sorted(gains, key=lambda j: -gains[j])[: self.n_top] if gains[j] > 0.0]
        pairs = [(pair, gains[j]) for j in most if (pair := row.pair(j, TWICE)) is not None]
        if not pairs:
            return []
        pair, gain = max(pairs, key=lambda item: item[0].times)
        return [row.reason(pair.column, gain, pair)]

    def _named(
        self, row: RowPhrases, gains: dict[int, float], *, calm: bool = False
    ) -> list[Reason]:
        """Return reasons for the features with the largest gains; each column is named once.

        For a row that is not unusual, pairs after the first feature have to be rarer.
        """
        reasons, named = list[Reason](), set[str]()
        for k, (j, gain) in enumerate(gains.items()):
            if len(reasons) < self.n_top and self.features[j].name not in named:
                pair = row.pair(j, CALM if calm and k else RARER)
                named_first = j if pair is None else pair.column
                reason = row.reason(named_first, gain, pair)
                if reason.partner or row.phrase(j).stands_out:
                    reasons.append(reason)
                    named |= {*reason.columns}
        return reasons
