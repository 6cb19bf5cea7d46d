"""The costs that a site's book records, and their picture."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from hushtable.charts.drawing import FLAG, ROWS, WHOLE, WIDTH, axis, filled, number, text
from hushtable.language import numerals
from hushtable.privacy.accounting import rounded_up
from hushtable_federation.book.book import Book
from hushtable_federation.policy import load_policy
from hushtable_federation.site import Site

#: Height of the picture, the place of its columns, and their number at most.
_HEIGHT, _GROUND, _MOST = 150.0, 130.0, 60


@dataclass(frozen=True)
class Spending:
    """The costs of all rounds about some rows for the people in them.

    Attributes
    ----------
    data_set : str
        Name of the rows.
    rounds : list of dict
        For each answer: ``round_id``, ``title``, ``made``, and ``after``, the total epsilon so far.
    limit : float
        The highest cost of all rounds together, by the book and the policy.
    """

    data_set: str
    rounds: list[dict[str, str]]
    totals: list[float]
    limit: float

    @property
    def spent(self) -> str:
        """The epsilon so far."""
        return numerals(f"{rounded_up(self.totals[-1] if self.totals else 0.0):g}")

    def chart(self, words: str, after: float | None = None) -> Markup:
        """Draw the epsilon after each round, and the limit.

        Parameters
        ----------
        words : str
            Description for people who cannot see the picture.
        after : float, optional
            The epsilon after a round that is not answered yet, whose column is an outline.
        """
        shown = self.totals[-_MOST:]
        figures = "; ".join(numerals(f"{rounded_up(one):g}") for one in shown)
        label = escape(f"{words}: {figures or '0'}; {numerals(f'{self.limit:g}')}")
        parts = "".join(_parts(self.totals, self.limit, after))
        return Markup(
            f'<svg class="spent" viewBox="0 0 {number(WIDTH)} {number(_HEIGHT)}" role="img"'
            f' aria-label="{label}" font-size="12" fill="currentColor">{parts}</svg>'
        )


def _parts(spent: Sequence[float], limit: float, after: float | None) -> Iterator[str]:
    """Yield the columns, each above the earlier cost, the base line, and the limit."""
    first = max(0, len(spent) - _MOST)
    columns = [*spent[first:], *([] if after is None else [after])]
    most = 1.15 * max(limit, *columns, 1e-9)
    step = min(40.0, WIDTH / max(1, len(columns)))
    before = spent[first - 1] if first else 0.0
    for k, total in enumerate(columns):
        left, width = k * step + 0.15 * step, 0.7 * step
        base, top = (_GROUND * (1.0 - one / most) for one in (before, total))
        yield filled(_box(left, base, width, _GROUND), WHOLE)
        if after is not None and k == len(columns) - 1:
            yield (
                f'<path d="{_box(left, top, width, base)}" fill="none" stroke="{ROWS}"'
                ' stroke-dasharray="3 2"/>'
            )
        else:
            yield filled(_box(left, top, width, base), ROWS)
        if k in (0, len(columns) - 1):
            yield text(f"{first + k + 1}", left + width / 2.0, _GROUND + 15.0, anchor="middle")
        before = total
    yield axis(f"M0 {number(_GROUND)}H{number(WIDTH)}")
    y = _GROUND * (1.0 - limit / most)
    yield f'<path d="M0 {number(y)}H{number(WIDTH)}" stroke="{FLAG}" stroke-dasharray="6 4"/>'
    yield text(numerals(f"{limit:g}"), WIDTH, y - 4.0, anchor="end", flagged=True)


def _box(left: float, top: float, width: float, bottom: float) -> str:
    ends = number(left), number(top), number(left + width), number(bottom)
    return "M{0} {1}H{2}V{3}H{0}z".format(*ends)


def spending(site: Site) -> list[Spending]:
    """Return the costs by set of rows, always including the rows of the site's file."""
    policy = load_policy(site.settings.policy)
    with site.book() as book:
        names = list(dict.fromkeys([site.settings.data_set, *book.data_sets()]))
        limit = min(book.epsilon, policy.total_epsilon)
        return [_of(book, name, limit) for name in names]


def _of(book: Book, data_set: str, limit: float) -> Spending:
    course, rounds = book.totals(data_set), []
    answers = [e.content for e in book.history() if e.kind == "answer"]
    about = [one for one in answers if one["data_set"] == data_set]
    for record, after in zip(about, course, strict=True):
        facts = {"round_id": record["round_id"][:12], "title": str(record["title"])}
        rounds.append(
            facts | {"made": str(record["made"]), "after": numerals(f"{rounded_up(after):g}")}
        )
    return Spending(data_set, rounds, course, limit)
