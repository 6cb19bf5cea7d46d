"""A site's own rows beside the counts of all others in a result: whether they fit together.

Under masks no one sees what a single site sent, and a site that invents rows changes the sum for
all. What a site can look at by itself is the result without its own part: the counts of the others,
with their noise. A share of them that lies where this site has hardly a row is either a kind of
rows that others have and this site has not, or invented. No count tells which. So the level is
one that honest, unequal sites stay below (``benchmarks/poison.py`` of hushtable-bench), and what
lies above it is a question to the others, not a proof.
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
from hushtable_federation.layout import Layout, Sealed
from hushtable_federation.round import Round
from hushtable_federation.submission import Contribution

#: Share of the others' rows of a kind that a site has hardly, which honest sites stay below: those
#: that differ in kind, and those that differ in the number of rows alone.
LEVEL, ALIKE = 0.3, 0.003
#: A cell is of such a kind by what it holds beyond so many times this site's share of rows, and
#: beyond so many standard deviations of the noise.
_TIMES, _NOISE = 2.0, 5.0
#: What the rounds are about whose results are compared.
_ABOUT = {
    Purpose.SCORES: "a model's tables, which rows are scored with",
    Purpose.MARGINALS: "the columns (under hushtable plan marginals)",
}
#: Rows on either side without which nothing is said.
LEAST_ROWS = 30
#: Standard deviations by which the others' number of rows is estimated too high or too low.
SURE = 4.0


@dataclass(frozen=True)
class Comparison:
    """How a site's own rows fit the counts of all others; exact numbers of its rows, to stay there.

    Attributes
    ----------
    site : str
        Whose book it is by.
    own_rows : int
        Rows that the site counted.
    other_sites : int
        Parts of others in the result.
    other_rows : float
        Rows in these, as estimated from all tables.
    rows_sd : float
        Standard deviation of the noise on ``other_rows``, in rows.
    strange : float or None
        Share of the others' rows, from 0 to 1, of a kind that this site has hardly: above twice
        its own share, and beyond chance. None if there are too few rows to tell.
    level : float
        Of ``strange``, up to which it fits.
    most_rows : int or None
        Rows that the others may have together, if someone said so.
    impossible : str or None
        Why the others' counts cannot be counts of rows at all, if they cannot.

    Examples
    --------
    >>> from hushtable_federation import Comparison, SecureSum
    >>> from hushtable_federation.rehearsal import Rehearsal
    >>> here = Rehearsal()
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
        """Take a site's part out of a result, and compare its exact counts with what is left.

        Parameters
        ----------
        result : Release or Sealed
            Of a round about the tables of a model. Hidden hash functions are not needed.
        book : Book
            Of the site: what it counted, and what it sent.
        most_rows : int, optional
            Rows that all others together have at most, by what they say; by default what the
            round allows them (``max_rows``), if it bounds them.
        alike : bool
            Whether the sites are known to have the same mix of rows, and to differ in how many
            alone. What chance does not explain then does not fit.

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
        layout = _layout(result)
        parts = _parts(result, book)
        own = np.sum([part.counts for part in parts], axis=0)
        rest = result.counts - np.sum([part.sent for part in parts], axis=0)
        mine = {part.share.release for part in parts}
        others = len(result.ledger.shares) - len(mine)
        most_rows = _allowed(parts, others) if most_rows is None else most_rows
        noise_sd = noise_of_others(result.ledger, mine)
        tables = len(layout.cells)
        rows = float(rest.sum()) / tables
        rows_sd = noise_sd * math.sqrt(layout.n_cells) / tables
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
            layout.implausible(rest, noise_sd),
        )

    @property
    def strange_rows(self) -> int:
        """About how many of the others' rows are of a kind that this site has hardly."""
        return 0 if self.strange is None else round(self.strange * self.other_rows)

    @property
    def too_many(self) -> bool:
        """Whether the others have more rows than ``most_rows``, by more than noise explains."""
        return self.most_rows is not None and self.other_rows - SURE * self.rows_sd > self.most_rows

    @property
    def fits(self) -> bool | None:
        """Whether chance and honest differences allow all of it; None if nothing can be told."""
        if self.impossible is not None or self.too_many:
            return False
        return None if self.strange is None else self.strange <= self.level

    def words(self) -> list[str]:
        """Return the verdict in sentences: exact words about this site's rows, not to be sent."""
        sentences = []
        if self.impossible is not None:
            sentences.append(f"The counts of the others cannot be: {self.impossible}.")
        if self.too_many:
            sentences.append(
                f"The others hold about {self.other_rows:,.0f} rows, and {self.most_rows:,} were "
                "said to be the most: someone counted more."
            )
        if self.strange is None:
            sentences.append(
                f"Too few rows to tell what kind the others' are: it takes {LEAST_ROWS} here, and "
                f"there {max(LEAST_ROWS, SURE * self.rows_sd):,.0f}."
            )
        elif self.strange > self.level:
            sentences.append(
                f"It does not fit: the others' counts hold about {self.strange_rows:,} rows "
                f"({self.strange:.0%}) of a kind that this site has hardly."
            )
        elif not sentences:
            allowed = "chance" if self.level < LEVEL else "chance and honest differences"
            sentences.append(f"It fits what {allowed} allow{'s' if self.level < LEVEL else ''}.")
        if self.fits is False:
            sentences.append(
                "Ask the coordinator and the other sites what these rows are before you score "
                "with the result."
            )
        return sentences


def strange_share(
    own: NDArray[np.int64], rest: NDArray[np.int64], noise_sd: float, tables: int
) -> float:
    """Return the share of the others' rows that lies where a site has hardly any.

    The part of each cell above twice the site's share and five standard deviations of the noise,
    as a mean over the tables, less what chance makes of it if the site's rows were drawn from those
    of the others. Of sites alike it is about 0, and of those with nothing in common, nearly 1.

    Parameters
    ----------
    own, rest : ndarray of shape (n_cells,), int64
        Exact counts of the site; counts of the others with noise, of some rows.
    noise_sd : float
        Standard deviation of that noise on a cell.
    tables : int
        Tables, of which each holds every row once.
    """
    own_rows, rest_rows = own.sum() / tables, rest.sum() / tables
    share = np.maximum(rest, 0) / rest_rows
    most = np.maximum(share - _NOISE * noise_sd / rest_rows, 0.0)
    found = np.maximum(most - _TIMES * own / own_rows, 0.0)
    # A cell that has this share of the others' rows holds a Poisson number of the site's. Of the
    # same excess, the mean: a sum over the numbers that leave one, in closed form.
    few, expected = np.floor(most * own_rows / _TIMES), own_rows * share
    below = np.where(few > 0, pdtr(np.maximum(few - 1.0, 0.0), expected), 0.0)
    chance = most * pdtr(few, expected) - _TIMES * share * below
    return max(float((found - chance).sum()) / tables, 0.0)


def others_in(result: Noised, book: Book, purpose: Purpose = Purpose.SCORES) -> LocalModel:
    """Return the counts of all others in a result: without what the site sent, and its noise.

    Raises
    ------
    RoundError
        If the site has no part in the result, or no one else has, or it has several.
    UsageError
        If the result has another purpose, or has its hash functions hidden.
    """
    _layout(result, purpose)
    if result.hidden:
        raise UsageError(
            "the hash functions of this result are hidden: open it with the sites' plan first "
            "(hushtable round model --plan)"
        )
    own, *more = _parts(result, book)
    if more:
        raise RoundError(f"{book.site!r} has {1 + len(more)} parts in this result: needs one")
    return LocalModel.of(result, own.share.release, own.sent, np.zeros_like(own.sent))


def _layout(result: Noised, purpose: Purpose = Purpose.SCORES) -> Layout:
    """Return the layout of a result that can be compared; refuse another."""
    if result.ledger is None:
        raise UsageError(
            "these are exact counts, without noise, and not the result of a round: of counts that "
            "sites exchanged, make a home model with HomeModel.fit(rows, result - own)"
        )
    if result.ledger.sensitivity.horizon is not None:
        raise UsageError(
            "the result is of a plan for several periods, and mixes their counts: compare the "
            "result of a round without periods"
        )
    layout = result.layout if isinstance(result, Sealed) else Layout.of(result.plan)
    if layout.purpose is not purpose:
        raise UsageError(
            f"the result is of a round about {layout.purpose.value}: needs the result of the round "
            f"about {_ABOUT[purpose]}"
        )
    return layout


def _allowed(parts: list[Contribution], others: int) -> int | None:
    """Return how many rows the rounds let all others count together; None without a bound."""
    noted = [Round.from_bytes(part.round, "the book's copy") for part in parts]
    bounds = [asked.terms.max_rows for asked in noted]
    if len(bounds) != 1 or bounds[0] is None:
        return None
    return others * bounds[0]


def _parts(result: Noised, book: Book) -> list[Contribution]:
    """Return what the site contributed to a result; refuse one without it, or without others."""
    shares = {share.release for share in result.ledger.shares}
    parts = [answer for answer in book.answers() if answer.share.release in shares]
    if not parts:
        raise RoundError(
            f"{book.site!r} has no part in this result: its book holds no answer to that round"
        )
    if len(parts) == len(shares):
        raise RoundError(
            f"{book.site!r} alone is in this result: there are no others to compare with; get the "
            "result of a round with other sites"
        )
    return parts if result.hidden else [part.under(result.plan) for part in parts]
