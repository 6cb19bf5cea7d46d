"""Costs of further rounds to the people in a site's rows, according to its book."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from hushtable.display import Displayed
from hushtable.errors import PrivacyError, RoundError, UsageError
from hushtable.plans.plan import Plan
from hushtable.privacy.accounting import GAUSSIAN
from hushtable.privacy.budget import ReleaseTerms, Spent
from hushtable.privacy.ledger import Ledger, Share
from hushtable.privacy.mechanisms import Cost
from hushtable_federation.book.book import ALL_ROWS, Book
from hushtable_federation.book.chain import Entry
from hushtable_federation.round import Round

#: The most rounds of one kind that are counted, and those whose course is computed.
MOST, AHEAD = 9999, 6
#: A name that no rows can have, to compute the cost to people who are not in the book.
_NOBODY = ""
_CAP, _TERMS = "beyond the cap", "earlier rounds had other terms"


@dataclass(frozen=True)
class Forecast(Displayed):
    """A possible further round, and what it would cost.

    Attributes
    ----------
    kind : str
        ``"round"``, ``"again"``, ``"people"``, ``"site"`` or ``"rows"``; under a horizon also
        ``"period"`` and ``"resend"``.
    what : str
        Description of the round.
    epsilon : float
        The total after it, at the delta of the book's cap.
    why_not : str
        Why the book would refuse it; empty if it would not.
    more : int or None
        How many such rounds the cap allows, 9,999 at most; None if they cost nothing more.
    course : tuple of float
        Totals after one, two ... such rounds: up to six, or up to the first that is refused.

    Examples
    --------
    >>> from hushtable_federation import Forecast
    >>> Forecast("again", "the same round", 1.45, "", more=2, course=(1.45, 1.83)).allowed
    True
    """

    kind: str
    what: str
    epsilon: float
    why_not: str
    more: int | None
    course: tuple[float, ...]

    @property
    def allowed(self) -> bool:
        """Return whether the book would allow it."""
        return not self.why_not


def forecast(
    book: Book, asked: Round | Plan | None = None, data_set: str | None = None
) -> list[Forecast]:
    """Return possible next rounds for a site, and what each would cost the people in its rows.

    Nothing is recorded. The totals are those of `Book.total`, and a round is allowed if it passes
    `Book.check_cap`; the site's policy may refuse more.

    Parameters
    ----------
    book : Book
        The site's.
    asked : Round or Plan, optional
        The round or plan to forecast: a round, whose signature is not checked here, or a plan that
        was designed for a budget. By default, the last round that was answered.
    data_set : str, optional
        Name of the rows; by default, those of the last answer, or all rows before the first answer.

    Returns
    -------
    list of Forecast

    Raises
    ------
    RoundError, UsageError
        If no round was answered and none is given, or the plan was not designed for a budget.

    Examples
    --------
    >>> from hushtable_federation import Reply, forecast
    >>> from hushtable_federation.rehearsal import Rehearsal
    >>> here = Rehearsal(masked=False)
    >>> book = here.books["north"]
    >>> reply = Reply(here.round, here.keys["north"], book)
    >>> _ = reply.answer(reply.counted(here.sketches["north"]), None)
    >>> [f"{one.what}: {one.epsilon:.2f}" for one in forecast(book)][0]
    'the round again, or next month: 1.45'
    """
    data_set = last_rows(book) if data_set is None else data_set
    asked = _last(book, data_set) if asked is None else asked
    one = _cost(asked)
    plan = asked.plan if isinstance(asked, Round) else asked
    if plan.horizon is not None:
        return _periods(book, data_set, asked, one, plan.horizon.periods)
    answered = isinstance(asked, Round) and book.answer(asked.round_id) is not None
    again = ("again", "the round again, or next month") if answered else ("round", "this round")
    found = [
        _forecast(book, data_set, again, one),
        _forecast(book, _NOBODY, ("people", "the round, about other people"), one),
    ]
    if isinstance(asked, Round):
        site = "site", "the round with one more site"
        found.append(_forecast(book, data_set, site, _cost(_with_site(asked))))
    return [*found, _twice(book, data_set, one)]


def _answers(book: Book, data_set: str | None = None) -> list[Entry]:
    """Return the entries of the answers about these rows, or about all rows."""
    return [
        entry
        for entry in book.history()
        if entry.kind == "answer" and data_set in (None, entry.content["data_set"])
    ]


def last_rows(book: Book) -> str:
    """Return the name of the rows in the last answer."""
    answers = _answers(book)
    return str(answers[-1].content["data_set"]) if answers else ALL_ROWS


def totals(book: Book, data_set: str) -> list[float]:
    """Return the epsilon of these rows after each answer, at the delta of the cap."""
    spent: dict[Spent, None] = {}
    found = []
    for entry in _answers(book, data_set):
        spent[Spent.from_dict(entry.content["spent"])] = None
        found.append(Cost.total(one.cost for one in spent).epsilon(book.delta))
    return found


def _last(book: Book, data_set: str) -> Round:
    """Return the last round answered about these rows; raise `RoundError` if there is none."""
    answers = _answers(book, data_set)
    answer = book.answer(answers[-1].content["round_id"]) if answers else None
    if answer is None:
        raise RoundError(
            f"no round was answered about {data_set!r}: name the round or the plan to forecast "
            "(hushtable round book BOOK ROUND --forecast)"
        )
    return Round.from_bytes(answer.round, f"round {answer.round_id[:12]}")


# --- one round ------------------------------------------------------------------------------------


def _cost(asked: Round | Plan) -> Spent:
    """Return what an answer costs a person in the rows, according to its ledger."""
    about = "to come"
    if isinstance(asked, Round):
        ledger = asked.ledger(Share(about, asked.site_scale, ""))
        return ledger.as_spent(asked.plan.detector, about)[-1]
    if asked.design is None:
        raise UsageError(
            "the plan was not designed for a budget: name the round that uses it, or draw it with "
            "--epsilon and --expected-rows"
        )
    terms = ReleaseTerms(asked.design.epsilon, asked.design.delta, share=asked.share_of_budget)
    unit = terms.sensitivity(asked.family.n_histograms, horizon=asked.horizon)
    scale = terms.scale(unit, Cost.total(spent.cost for spent in asked.behind))
    ledger = Ledger(
        terms.mechanism, unit, terms.delta, (Share(about, scale, ""),), asked.behind,
        accounting=GAUSSIAN, period=None if asked.horizon is None else 1,
    )  # fmt: skip
    return ledger.as_spent(asked.detector, about)[-1]


def _with_site(asked: Round) -> Round:
    """Return the round as it would be with one more site, only to compute its costs."""
    terms = asked.terms
    if terms.masked and terms.least == len(asked.sites):
        terms = replace(terms, least=terms.least + 1, k_min=terms.k_min + 1)
    return replace(asked, terms=terms)


def _forecast(book: Book, data_set: str, what: tuple[str, str], one: Spent) -> Forecast:
    """Return the totals of rounds of this cost."""
    try:
        epsilon = book.total(data_set, one)
    except PrivacyError:  # costs of rounds under different terms cannot be added
        return Forecast(*what, book.total(_NOBODY, one), _TERMS, 0, ())

    def fits(n: int) -> bool:
        return _passes(lambda: book.check_cap(data_set, *_copies(one, n)))

    course = [epsilon]
    while len(course) < AHEAD and fits(len(course)):
        course.append(book.total(data_set, *_copies(one, len(course) + 1)))
    allowed = fits(1)
    return Forecast(*what, epsilon, "" if allowed else _CAP, _largest(fits), tuple(course))


def _twice(book: Book, data_set: str, one: Spent) -> Forecast:
    """Return what all rounds cost a person with twice the rows in each, under the same noise."""
    rows = 2 * one.rows_per_person
    what = "rows", f"{rows} rows per person, the same noise"
    wider = [_with_rows(spent, rows) for spent in (*book.spent(data_set), one)]
    if len(wider) == 1:
        return _forecast(book, _NOBODY, what, wider[0])
    alike = [spent for spent in wider if spent.adjacency == one.adjacency]
    return Forecast(*what, book.total(_NOBODY, *alike), _TERMS, 0, ())


def _with_rows(spent: Spent, rows: int) -> Spent:
    """Return the cost to a person with that many rows: every count shifts in proportion."""
    shift = max(1.0, rows / spent.rows_per_person)
    cost = Cost(shift**2 * spent.cost.rho, shift * spent.cost.pure)
    return replace(spent, cost=cost, rows_per_person=rows)


def _copies(one: Spent, n: int) -> list[Spent]:
    """Return that many distinct releases of the same cost."""
    return [replace(one, release=f"{one.release} {i}") for i in range(n)]


def _largest(fits: Callable[[int], bool]) -> int:
    """Return the largest number from 0 to `MOST` that fits; most often it is small."""
    low, high = 0, 1
    while high <= MOST and fits(high):
        low, high = high, 2 * high
    high = min(high, MOST + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _passes(check: Callable[[], object]) -> bool:
    try:
        check()
    except PrivacyError:
        return False
    return True


# --- under a horizon ------------------------------------------------------------------------------


def _periods(
    book: Book, data_set: str, asked: Round | Plan, one: Spent, periods: int
) -> list[Forecast]:
    """Return what the periods of a horizon cost: one cost for all of them."""
    if not _paid(book, data_set, asked):
        first = "round", f"the first of {periods} periods, which pays for all"
        return [_forecast(book, data_set, first, one), _twice(book, data_set, one)]
    now = book.total(data_set)
    free = [("resend", "the same period again, as it was sent")]
    if not (isinstance(asked, Round) and asked.period == periods):
        free = [("period", "the next period"), *free, ("site", "a site that joins")]
    again = "again", f"all {periods} periods again, with new noise"
    return [
        *(Forecast(*what, now, "", None, (now,) * AHEAD) for what in free),
        _forecast(book, data_set, again, one),
        _twice(book, data_set, one),
    ]


def _paid(book: Book, data_set: str, asked: Round | Plan) -> bool:
    """Return whether an answer about these rows has paid for all periods of a round's stream."""
    return isinstance(asked, Round) and any(
        entry.content.get("stream") == asked.stream for entry in _answers(book, data_set)
    )
