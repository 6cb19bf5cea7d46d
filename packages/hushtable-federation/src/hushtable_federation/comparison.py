"""Compare a site's own rows with the counts of all others in a result.

Under masks, no one sees what a single site sent, and a site that invents rows changes the sum for
all. But each site can examine the result without its own part: the counts of the others, with their
noise. If part of them lies where this site has hardly any rows, these are either a kind of rows
that others have and this site does not, or invented rows. No count can distinguish the two, so a
high share is a reason to ask the others, not a proof.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import pdtr

from hushtable.arguments import whole
from hushtable.counts.base import Noised
from hushtable.counts.release import LocalModel, noise_of_others
from hushtable.errors import RoundError, UsageError
from hushtable.plans.draws import Purpose
from hushtable_federation.book.book import Book
from hushtable_federation.refusals import raise_first
from hushtable_federation.result import implausible
from hushtable_federation.submission import Contribution

#: Share of the others' rows of a kind that a site hardly has, which honest sites stay below: for
#: sites that differ in kind, and for sites that differ only in the number of rows.
LEVEL, ALIKE = 0.3, 0.003
#: A cell counts as such a kind by its content above this many times the site's share of rows, and
#: above this many standard deviations of the noise.
_TIMES, _NOISE = 2.0, 5.0
#: Purposes of the rounds whose results can be compared.
_ABOUT = {
    Purpose.SCORES: "a model's tables, which rows are scored with",
    Purpose.MARGINALS: "the columns (under hushtable plan marginals)",
}
#: The least rows on either side for a verdict.
LEAST_ROWS = 30
#: Standard deviations of error allowed in the estimated number of the others' rows.
SURE = 4.0


@dataclass(frozen=True)
class Comparison:
    """How a site's own rows fit the counts of all others; exact about its rows, so keep it there.

    Attributes
    ----------
    site : str
        Name of the site, from its book.
    own_rows : int
        Rows that the site counted.
    other_sites : int
        Number of other sites in the result.
    other_rows : float
        Their number of rows, estimated from all tables.
    rows_sd : float
        Standard deviation of the noise on ``other_rows``, in rows.
    strange : float or None
        Share of the others' rows, from 0 to 1, of a kind that this site hardly has: above twice its
        own share, and more than by chance. None if there are too few rows to decide.
    level : float
        The highest value of ``strange`` that fits.
    most_rows : int or None
        The most rows that the others may have together, if stated.
    impossible : str or None
        Why the others' counts cannot be counts of rows, if so.

    Examples
    --------
    >>> from hushtable_federation import Comparison, SecureSum
    >>> here = Rehearsal()  # made-up sites and an open round
    >>> result = SecureSum(here.round, here.lead, here.transport()).run()
    >>> found = Comparison.of(result, here.books["north"])
    >>> found.site, found.other_sites
    ('north', 1)
    """

    site: str
    own_rows: int
    other_sites: int
    other_rows: float
    rows_sd: float
    strange: float | None
    level: float = LEVEL
    most_rows: int | None = None
    impossible: str | None = None

    @classmethod
    def of(
        cls, result: Noised, book: Book, *, most_rows: int | None = None, alike: bool = False
    ) -> "Comparison":
        """Subtract a site's part from a result, and compare its exact counts with the rest.

        Parameters
        ----------
        result : Release
            The result of a round about a model's tables.
        book : Book
            The site's book: what it counted, and what it sent.
        most_rows : int, optional
            The most rows that all others together have, as they state.
        alike : bool
            Whether the sites are known to have the same mix of rows, and to differ only in their
            number. Then any difference that chance does not explain does not fit.

        Raises
        ------
        RoundError
            If the site has no part in the result, or no one else has.
        UsageError
            If the result is about one of several periods, or does not count rows in the tables
            of a model.
        """
        if most_rows is not None:
            whole("most_rows", most_rows, 0)
        parts, plan = _parts_beside_others(result, book), result.plan
        own = np.sum([part.counts for part in parts], axis=0)
        rest = result.counts - np.sum([part.sent for part in parts], axis=0)
        mine = {part.share.release for part in parts}
        others = len(result.ledger.shares) - len(mine)
        noise_sd = noise_of_others(result.ledger, mine)
        tables = plan.family.n_histograms
        rows = float(rest.sum()) / tables
        rows_sd = noise_sd * math.sqrt(plan.family.n_cells) / tables
        own_rows = round(float(own.sum()) / tables)
        tells = own_rows >= LEAST_ROWS and rows >= max(LEAST_ROWS, SURE * rows_sd)
        return cls(
            book.site,
            own_rows,
            others,
            rows,
            rows_sd,
            strange_share(own, rest, noise_sd, tables) if tells else None,
            ALIKE if alike else LEVEL,
            most_rows,
            implausible(plan, rest, noise_sd),
        )

    @property
    def strange_rows(self) -> int:
        """Return roughly how many of the others' rows are of a kind that this site hardly has."""
        return 0 if self.strange is None else round(self.strange * self.other_rows)

    @property
    def too_many(self) -> bool:
        """Return whether the others have more rows than ``most_rows``, beyond noise."""
        return self.most_rows is not None and self.other_rows - SURE * self.rows_sd > self.most_rows

    @property
    def fits(self) -> bool | None:
        """Return whether chance and honest differences explain everything; None if unknown."""
        if self.impossible is not None or self.too_many:
            return False
        return None if self.strange is None else self.strange <= self.level

    def words(self) -> list[str]:
        """Return the verdict in sentences, exact about this site's rows: do not send them."""
        sentences = []
        if self.impossible is not None:
            sentences.append(f"The counts of the others are impossible: {self.impossible}.")
        if self.too_many:
            sentences.append(
                f"The others have about {self.other_rows:,.0f} rows, more than the stated limit of "
                f"{self.most_rows:,}."
            )
        if self.strange is None:
            sentences.append(
                f"There are too few rows to compare their kinds: this needs {LEAST_ROWS} here, and "
                f"{max(LEAST_ROWS, SURE * self.rows_sd):,.0f} at the others."
            )
        elif self.strange > self.level:
            sentences.append(
                f"The counts do not fit: the others have about {self.strange_rows:,} rows "
                f"({self.strange:.0%}) of a kind that this site hardly has."
            )
        elif not sentences:
            allowed = "chance" if self.level < LEVEL else "chance and honest differences"
            sentences.append(f"The counts fit: {allowed} can explain them.")
        if self.fits is False:
            sentences.append(
                "Ask the coordinator and the other sites what these rows are before you score "
                "with the result."
            )
        return sentences


def strange_share(
    own: NDArray[np.int64], rest: NDArray[np.int64], noise_sd: float, tables: int
) -> float:
    """Return the share of the others' rows that lies where a site has hardly any rows.

    It is the part of each cell above twice the site's share and five standard deviations of the
    noise, averaged over the tables, minus its expected value if the site's rows were drawn from
    those of the others. For similar sites it is about 0, and for sites with nothing in common
    nearly 1.

    Parameters
    ----------
    own, rest : ndarray of shape (n_cells,), int64
        Exact counts of the site; noisy counts of the others.
    noise_sd : float
        Standard deviation of that noise on a cell.
    tables : int
        Number of tables. Each table counts every row once.
    """
    own_rows, rest_rows = own.sum() / tables, rest.sum() / tables
    share = np.maximum(rest, 0) / rest_rows
    most = np.maximum(share - _NOISE * noise_sd / rest_rows, 0.0)
    excess = np.maximum(most - _TIMES * own / own_rows, 0.0)
    # A cell with this share of the others' rows contains a Poisson number of the site's rows. The
    # mean of the same excess is a sum over the numbers that leave an excess, in closed form.
    few, expected = np.floor(most * own_rows / _TIMES), own_rows * share
    below = np.where(few > 0, pdtr(np.maximum(few - 1.0, 0.0), expected), 0.0)
    chance = most * pdtr(few, expected) - _TIMES * share * below
    return max(float((excess - chance).sum()) / tables, 0.0)


def others_in(result: Noised, book: Book, purpose: Purpose = Purpose.SCORES) -> LocalModel:
    """Return the counts of all others in a result, without the site's counts and its noise.

    Raises
    ------
    RoundError
        If the site has no part in the result, or several parts, or no one else has one.
    UsageError
        If the result has another purpose.
    """
    own, *more = _parts_beside_others(result, book, purpose)
    if more:
        raise RoundError(f"{book.site!r} has {1 + len(more)} parts in this result: needs one")
    return LocalModel.of(result, own.share.release, own.sent, np.zeros_like(own.sent))


def parts_in(result: Noised, book: Book) -> list[Contribution]:
    """Return the answers of a site that are in a result; raise `RoundError` if there are none."""
    shares = {share.release for share in result.ledger.shares}
    parts = [answer for answer in book.answers() if answer.share.release in shares]
    if not parts:
        raise RoundError(
            f"{book.site!r} has no part in this result: its book holds no answer to that round"
        )
    return parts


def _parts_beside_others(
    result: Noised, book: Book, purpose: Purpose = Purpose.SCORES
) -> list[Contribution]:
    """Return the answers of a site in a result; raise unless it can be compared with the others."""
    if result.ledger is None:
        raise UsageError(
            "these are exact counts, without noise, and not the result of a round: for counts "
            "that sites exchanged, make a home model with HomeModel.fit(rows, result - own)"
        )
    faults = {
        "the result belongs to a plan for several periods, and mixes their counts: compare the "
        "result of a round without periods": result.ledger.sensitivity.horizon is not None,
        f"the result is from a round about {result.plan.purpose.value}: needs the result of the "
        f"round about {_ABOUT[purpose]}": result.plan.purpose is not purpose,
    }
    raise_first(UsageError, faults)
    parts = parts_in(result, book)
    if len(parts) == len({share.release for share in result.ledger.shares}):
        raise RoundError(
            f"{book.site!r} is the only site in this result, so there are no others to compare "
            "with: get the result of a round with other sites"
        )
    return parts
