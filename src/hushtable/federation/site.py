"""The site's side of a round: check, count, add noise, write it down, send."""

import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from hushtable.errors import RoundError, UsageError
from hushtable.federation.book import ALL_ROWS, Answer, Book
from hushtable.federation.digests import RowDigester
from hushtable.federation.keys import Card, Keys
from hushtable.federation.round import Round, now
from hushtable.federation.submission import Submission, masks_of
from hushtable.plan import Plan
from hushtable.privacy import mechanism as noise
from hushtable.privacy.budget import Spent, check_delta
from hushtable.privacy.ledger import Share
from hushtable.privacy.release import check_counts
from hushtable.readers import Reader

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
    new_people : bool
        Whether somebody says that the rows are of people in no other data set of the book.
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
        new_people: bool = False,
        at: datetime | None = None,
    ) -> None:
        self.round, self.keys, self.book, self.data_set = round_, keys, book, data_set
        self.new_people = new_people
        self._digester: RowDigester | None = None
        self.at = now() if at is None else at
        if round_.card(keys.card.name) != keys.card:
            raise RoundError(
                f"the round lists {keys.card.name!r} with other keys than these: send the "
                "coordinator the card that belongs to them, and ask for a new round"
            )
        round_.check_time(self.at, "this machine's clock")
        self.new: list[Card] = book.check_cards(round_)
        self.plan = round_.layout.check(_shared_plan(round_, plan))
        self.earlier = book.answer(round_.round_id)
        if self.earlier is None:
            self.epsilon = book.check_cap(data_set, self._spent("to come"))
        else:
            self.epsilon = book.total(data_set)

    def watch(self, reader: Reader) -> Reader:
        """Return a reader of the same rows that notes, as they are counted, whose they seem to be.

        Without it, the book cannot tell rows that were answered for under another name.
        """
        self._digester = self.book.digester(self.plan.schema)
        return self._digester.watch(reader)

    def answer(
        self,
        sketch: "Sketch",
        progress: Callable[[int], None] | None = None,
        pack: Callable[[Answer], bytes] = lambda _: b"",
    ) -> Answer:
        """Draw the noise and write the answer into the book; or return the one in it.

        Parameters
        ----------
        sketch : Sketch
            The site's rows, counted under `plan`.
        progress : callable, optional
            Is told how many more cells have their noise.
        pack : callable, optional
            Returns the file to send, which is written into the book with the answer.
        """
        if sketch.plan.plan_id != self.plan.plan_id:
            raise RoundError(f"counted under another plan: {self.plan.difference(sketch.plan)}")
        terms = self.round.terms
        check_counts(
            "discrete-gaussian", sketch.sampled, terms.rows_per_person, sketch.largest_weight
        )
        check_delta(terms.delta, sketch.n_rows)
        if self.earlier is not None:
            return self.earlier
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
            self.round.content,
        )
        rows = None if self._digester is None else self._digester.digests()
        answer = replace(answer, content=pack(answer))
        return self.book.record(answer, rows, self.new_people)

    def submission(self, sketch: "Sketch", progress: Callable[[int], None] | None = None) -> bytes:
        """Return the file to send, for a round by file; the same one if it was sent before."""
        terms = self.round.terms
        if terms.masked and terms.least < len(self.round.sites):
            raise UsageError(
                f"the round wants {terms.least} of {len(self.round.sites)} sites under masks: that "
                "needs the online form; by file, all sites take part, or none is masked"
            )
        answer = self.answer(sketch, progress, self._pack)
        # Strangers become known once their round is answered: a later change is noticed.
        self.meet()
        # Books of version 1 have no files: the same one is made again.
        return answer.content or self._pack(answer)

    def meet(self) -> None:
        """Take the cards that are new here for those of their names from now on."""
        coordinator, sites = self.round.coordinator, self.round.sites
        with self.book.writing():
            self.book.trust([card for card in self.new if card == coordinator], "coordinator")
            self.book.trust([card for card in self.new if card in sites])

    def _pack(self, answer: Answer) -> bytes:
        masks = masks_of(self.round, self.keys) if self.round.terms.masked else None
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
