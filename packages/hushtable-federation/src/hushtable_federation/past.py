"""A site's past in a stream of rounds: which periods it answered, and what may come next.

What all periods cost is charged with the first answer. So everything here keeps to that: noise is
drawn once for each period, and no two sums of one period differ by a site.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hushtable.errors import RoundError
from hushtable.privacy.composition import Spent
from hushtable.privacy.ledger import Share
from hushtable_federation.book.book import Book
from hushtable_federation.contribution import Contribution
from hushtable_federation.refusals import Refusal, Refused, refusing
from hushtable_federation.round import Round


class Past:
    """The periods that a site answered in the stream of a round; none in any other round.

    Parameters
    ----------
    book : Book
        The site's.
    round_ : Round
        What is asked now.
    data_set : str
        Which rows.

    Attributes
    ----------
    periods : dict of int to str
        By period, the id of the round in which it was answered first.
    answer : Contribution or None
        What was answered to this round, or to another about the same period: it is sent again.

    Raises
    ------
    RoundError
        Unless the round goes on with what was answered before: the same rows, terms, plan,
        coordinator, the next period or one that was answered; in a masked round, of the same sites.
    """

    def __init__(self, book: Book, round_: Round, data_set: str) -> None:
        self._book, self._round = book, round_
        self.periods = self._now()
        self._check(data_set)
        self.answer = book.answer(round_.round_id) or self._same_period()

    def _now(self) -> dict[int, str]:
        asked = self._round
        return {} if asked.period is None else self._book.periods(asked.stream)

    @cached_property
    def first(self) -> Contribution | None:
        """The first answer to the stream, with which all periods were paid."""
        return self._answered(min(self.periods)) if self.periods else None

    @property
    def paid(self) -> tuple[Share, Spent] | None:
        """The site's line of the ledger and the cost, if it has answered before."""
        return None if self.first is None else (self.first.share, self.first.spent)

    def _check(self, data_set: str) -> None:
        if self.first is None or self._round.period is None:
            return
        with refusing(Refusal.ROUND):
            self._check_same(self.first, data_set)
        first, last, asked = min(self.periods), max(self.periods), self._round.period
        if asked > last + 1:
            raise Refused(
                Refusal.ORDER,
                f"the round asks for period {asked}, and this site has answered those up to "
                f"{last}: ask the coordinator to open period {last + 1} again (hushtable round "
                "next --again, from the round of that period). Nothing was recorded or spent",
            )
        if asked < first:
            raise Refused(
                Refusal.ORDER,
                f"the round asks for period {asked}, and this site joined with period {first}: "
                "what it counted before is in no sum. Answer the round of the next period",
            )

    def _check_same(self, first: Contribution, data_set: str) -> None:
        if data_set != first.data_set:
            raise RoundError(
                f"the periods of this stream before were about {first.data_set!r}, not "
                f"{data_set!r}: their budget pays for all of them; name data_set = "
                f"'{first.data_set}' in the site's file"
            )
        noted, asked = Round.from_bytes(first.round, f"{self._book.path}: the round"), self._round
        differing = [
            name
            for name in ("coordinator", "layout", "terms")
            if getattr(noted, name) != getattr(asked, name)
        ]
        if differing:
            raise RoundError(
                f"the round goes on with a stream that this site answered under another "
                f"{' and '.join(differing).replace('layout', 'plan')}: the cost was charged for "
                "those. Ask the coordinator for the round that follows (hushtable round next), or "
                "for a stream of its own. Nothing was recorded or spent"
            )

    def _same_period(self) -> Contribution | None:
        """Return the answer to another round about this period, if there is one.

        In a masked round, only one of the same sites: two sums that differ by one site would show
        its counts under its own part of the noise alone.
        """
        if self._round.period not in self.periods:
            return None
        found = self._answered(self._round.period)
        noted = Round.from_bytes(found.round, f"{self._book.path}: the round")
        if self._round.terms.masked and noted.sites != self._round.sites:
            raise Refused(
                Refusal.SITES,
                f"period {self._round.period} was answered in a round of {noted.names}, and this "
                f"one is of {self._round.names}, or of other keys: two sums of one period that "
                "differ by a site would show its counts. Ask the coordinator for a round of the "
                "same sites (hushtable round next --again). Nothing was recorded or spent",
            )
        return found

    def mixed(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what the site releases of this period before noise: (n_cells,), as given.

        ``counts``, of shape (n_cells,), are those of this period alone. Outside of a stream, they
        are what is released.
        """
        horizon, period = self._round.layout.horizon, self._round.period
        if horizon is None or period is None:
            return counts
        # Of the periods before it joined, a site has counted nothing and sent nothing.
        each = [self._answered(t).counts for t in sorted(self.periods)]
        return horizon.mixed(np.array([*each, counts]))

    def check_still(self) -> None:
        """Raise `RoundError` if another process answered meanwhile; in the book's transaction."""
        if self._now() != self.periods and self._book.answer(self._round.round_id) is None:
            raise RoundError(
                f"period {self._round.period} was answered by another process meanwhile: give the "
                "command again, which sends what was noted"
            )

    def _answered(self, period: int) -> Contribution:
        found = self._book.answer(self.periods[period])
        assert found is not None
        return found
