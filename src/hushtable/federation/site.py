"""The site's side of a round: check, count, add noise, write it down, send."""

import secrets
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from hushtable.errors import RoundError, UsageError
from hushtable.federation.book import ALL_ROWS, Answer, Book, same_rows
from hushtable.federation.keys import Card, Keys
from hushtable.federation.round import Round, now
from hushtable.federation.submission import Submission, masks_of
from hushtable.plan import Plan
from hushtable.privacy import mechanism as noise
from hushtable.privacy.budget import Spent, check_public_delta
from hushtable.privacy.ledger import Share
from hushtable.privacy.release import check_counts

if TYPE_CHECKING:
    from hushtable.sketch import Sketch

__all__ = ["Reply"]


class Reply:
    """A site's reply to a round, checked on every side before anything is counted or sent.

    Parameters
    ----------
    round_ : Round
        What the coordinator asks.
    keys : Keys
        The site's.
    book : Book
        The site's.
    data_set : str
        Which rows: rounds about the same people's rows share one budget, so that a name of its
        own is for rows of other people only.
    plan : Plan, optional
        In a round with hidden hash functions: the plan that the sites share.
    at : datetime, optional
        The time; now by default.

    Attributes
    ----------
    plan : Plan
        Under which the rows are to be counted.
    new : list of Card
        Who is met for the first time: compare their fingerprints.
    epsilon : float
        What the site's rows will have cost after it, over all rounds in the book.
    earlier : Answer or None
        The answer that was given to this round before, and will be sent again.

    Raises
    ------
    RoundError, PlanError, PrivacyError
        If the round is not for this site, over, about another plan, breaks the cap, or comes
        with keys other than those the site knows.
    """

    def __init__(
        self,
        round_: Round,
        keys: Keys,
        book: Book,
        *,
        data_set: str = ALL_ROWS,
        plan: Plan | None = None,
        at: datetime | None = None,
    ) -> None:
        self.round, self.keys, self.book, self.data_set = round_, keys, book, data_set
        self.at = now() if at is None else at
        if round_.card(keys.card.name) != keys.card:
            raise RoundError(
                f"the round lists {keys.card.name!r} with other keys than these: send the "
                "coordinator the card that belongs to them, and ask for a new round"
            )
        round_.check_time(self.at, "this machine's clock")
        self.new: list[Card] = book.check_cards(round_)
        self.plan = round_.layout.check(_shared_plan(round_, plan))
        # Of hidden hash functions, only the sites know for how many rows they were laid out.
        check_public_delta(round_.terms.delta, self.plan.expected_rows)
        self.earlier = book.answer(round_.round_id)
        if self.earlier is None:
            self.epsilon = book.check_cap(data_set, self._spent("to come"))
        else:
            self.epsilon = book.total(data_set)

    def answer(self, sketch: "Sketch", progress: Callable[[int], None] | None = None) -> Answer:
        """Draw the noise and write the answer into the book; or return the one in it.

        Parameters
        ----------
        sketch : Sketch
            The site's rows, counted under `plan`.
        progress : callable, optional
            Is told how many more cells have their noise.
        """
        if sketch.plan.plan_id != self.plan.plan_id:
            raise RoundError(f"counted under another plan: {self.plan.difference(sketch.plan)}")
        terms = self.round.terms
        check_counts(sketch, "discrete-gaussian", terms.rows_per_person)
        if self.earlier is not None:
            return same_rows(self.earlier, self.data_set, sketch.counts)
        scale = self.round.site_scale
        # What the plan was drawn from is counted with it: marginals or ranges, never tables,
        # whatever the coordinator names.
        behind = {
            one.spent.release
            for one in self.book.answers()
            if one.round_id in self.round.previous and one.spent.what in ("marginals", "ranges")
        }
        before = (s for s in self.book.spent(self.data_set) if s.release not in behind)
        share = Share(secrets.token_hex(32), scale, noise.library(), tuple(before))
        self.round.ledger(share)  # checks the terms, before any noise is drawn
        sent = noise.add_noise(sketch.counts, "discrete-gaussian", scale, progress=progress)
        answer = Answer(
            self.round.round_id,
            self.round.title,
            self.data_set,
            self.at,
            sketch.counts,
            sent,
            share,
            self._spent(share.release),
        )
        return self.book.record(answer)

    def submission(self, sketch: "Sketch", progress: Callable[[int], None] | None = None) -> bytes:
        """Return the file to send, for a round by file; the same one if it was sent before."""
        terms = self.round.terms
        if terms.masked and terms.least < len(self.round.sites):
            raise UsageError(
                f"the round wants {terms.least} of {len(self.round.sites)} sites under masks: that "
                "needs the online form; by file, all sites take part, or none is masked"
            )
        answer = self.answer(sketch, progress)
        # Strangers become known once their round is answered: a later change is noticed.
        self.book.trust(self.new)
        masks = masks_of(self.round, self.keys) if terms.masked else None
        return Submission.pack(self.round, self.keys, answer.part(self.round), masks)

    def words(self) -> list[str]:
        """Return sentences that say what will leave, and what it costs."""
        terms, layout = self.round.terms, self.round.layout
        k = len(self.round.sites)
        if terms.masked:
            noise_words = (
                f"noise of {self.round.site_scale:,.1f} (standard deviation) on each, under masks: "
                f"only the sum of all {k} sites can be read, with noise of "
                f"{self.round.noise_sd:,.1f}"
            )
        else:
            noise_words = f"noise of {self.round.site_scale:,.1f} (standard deviation) on each"
        ledger = self.round.ledger(Share("", self.round.site_scale, ""))
        return [
            f"{layout.n_cells:,} counts in {len(layout.cells):,} tables ({layout.detector}), with "
            f"{noise_words}. No row, no number of rows, no score.",
            *ledger.words()[:1],
            f"With it, all rounds about {self.data_set!r} will have cost epsilon "
            f"{self.epsilon:.3g} of {self.book.epsilon:g}, the cap (delta {self.book.delta:g}).",
        ]

    def _spent(self, release: str) -> Spent:
        share = Share(release, self.round.site_scale, "")
        terms = self.round.terms
        return Spent(
            release,
            self.round.layout.detector,
            self.round.ledger(share).cost_of(share),
            terms.adjacency,
            terms.rows_per_person,
        )


def _shared_plan(round_: Round, plan: Plan | None) -> Plan:
    given = round_.plan if plan is None else plan
    if given is None:
        raise UsageError(
            "the hash functions of this round are hidden from the coordinator: give the plan that "
            "the sites share (--plan)"
        )
    return given
