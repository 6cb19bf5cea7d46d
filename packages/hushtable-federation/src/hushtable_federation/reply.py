"""The site's side of a round: check, count, add noise, write it down, send."""

import secrets
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.sketch import Sketch, check_counts
from hushtable.errors import DataError, RoundError, UsageError
from hushtable.plans.plan import Plan
from hushtable.privacy import mechanisms
from hushtable.privacy.accounting import rounded_up
from hushtable.privacy.budget import Spent, check_public_delta
from hushtable.privacy.ledger import Share
from hushtable_federation.book.book import ALL_ROWS, Book
from hushtable_federation.book.digests import (
    NOBODY,
    Period,
    PersonsSeen,
    RowDigests,
    check_registered,
)
from hushtable_federation.clock import now
from hushtable_federation.keys import Card, Keys
from hushtable_federation.policy import CONFIRMED, Approval, Policy, Role, check_officer
from hushtable_federation.refusals import Refusal, Refused, refusing
from hushtable_federation.round import Round
from hushtable_federation.submission import Contribution, charged, cost


def trust(book: Book, round_: Round, cards: Sequence[Card], how: str | None = None) -> None:
    """Take cards for true from now on, each in the roles that it has in a round.

    For a person who compared their fingerprints, or got the cards from their owners. A card that
    is not in the round is that of a site. ``how`` is as for `Book.trust`. Raises `UsageError` if
    the round has another card under the same name.
    """
    roles = {"site": round_.sites, "coordinator": (round_.coordinator,)}
    inside = {card.name: card for those in roles.values() for card in those}
    for card in cards:
        if inside.get(card.name, card) != card:
            raise UsageError(
                f"the card of {card.name!r} has the fingerprint {card.fingerprint}, and in this "
                f"round {inside[card.name].fingerprint}: ask {card.name!r} itself which of the two "
                "is its own"
            )
    for role, those in roles.items():
        book.trust([card for card in cards if card in those], role, how)
    book.trust([card for card in cards if card.name not in inside], how=how)


def check_attended(sketch: Sketch, most: int | None, outside_too: bool) -> None:
    """Raise `DataError` if there are more rows than a round allows, or most lie outside a range.

    Parameters
    ----------
    sketch : Sketch
        Of the rows.
    most : int or None
        Rows that the round lets a site count.
    outside_too : bool
        Whether the person has said that the rows are as they should be.
    """
    if most is not None and sketch.n_rows > most:
        raise DataError(
            f"{sketch.n_rows:,} rows, and the round lets a site count {most:,}: the totals would "
            "show it, and no sum be made. Nothing was recorded or spent. Give a part that was "
            "drawn by chance, or ask the coordinator for a round that allows more"
        )
    odd = [name for name, rows in sketch.outside().items() if 2 * rows > sketch.n_rows]
    if odd and not outside_too:
        raise DataError(
            f"most rows lie outside the round's range, or its categories, in "
            f"{', '.join(map(repr, odd[:3]))}: have the rows another unit than the round, or other "
            "names? Nothing was recorded or spent. Correct the file, or give --outside-too if the "
            "rows are as they should be"
        )


class StreamHistory:
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
    policy : Policy, optional
        The site's; by default one that allows what a person confirms: no one is known but whom
        the book knows.
    data_set : str
        Which rows: rounds about the same people's rows share one budget, so that a name of its
        own is for rows of other people only.
    plan : Plan, optional
        The plan that the sites share, for rounds that hide it.
    at : datetime, optional
        The time; now by default.
    approval : Approval, optional
        The officer's, where the policy demands it.
    attended : bool, default=True
        Whether a person looks at the round and at what is said of the rows.

    Attributes
    ----------
    plan : Plan
        Under which the rows are to be counted.
    epsilon : float
        What the site's rows will have cost after it, over all rounds in the book.
    earlier : Contribution or None
        What was contributed before, to it or about the same period, and will be sent again.

    Raises
    ------
    RoundError, PlanError, PrivacyError
        If the round is not for this site, over, about another plan, against the policy, breaks
        the cap, or comes with keys other than those the site knows; each with the `word` that
        may travel. None of it depends on rows.

    Examples
    --------
    >>> from hushtable_federation import Reply
    >>> from hushtable_federation.rehearsal import Rehearsal
    >>> here = Rehearsal(masked=False)
    >>> reply = Reply(here.round, here.keys["north"], here.books["north"])
    >>> content = reply.answer(reply.counted(here.sketches["north"]), None).content
    >>> print(f"{reply.epsilon:.2f}")
    1.00
    """

    def __init__(
        self,
        round_: Round,
        keys: Keys,
        book: Book,
        *,
        policy: Policy | None = None,
        data_set: str = ALL_ROWS,
        plan: Plan | None = None,
        at: datetime | None = None,
        approval: Approval | None = None,
        attended: bool = True,
    ) -> None:
        self.round, self.keys, self.book, self.data_set = round_, keys, book, data_set
        self.policy = CONFIRMED if policy is None else policy
        self.at = now() if at is None else at
        self._attended = attended
        with refusing(Refusal.ROUND):
            if round_.card(keys.card.name) != keys.card:
                raise RoundError(
                    f"the round lists {keys.card.name!r} with other keys than these: send the "
                    "coordinator the card that belongs to them, and ask for a new round"
                )
        with refusing(Refusal.TIME):
            round_.check_time(self.at, "this machine's clock")
        given = plan if round_.plan is None else round_.plan
        if given is None:
            raise UsageError(
                "the hash functions of this round are hidden from the coordinator: name the plan "
                "that the sites share in the site's file (plan = ...)"
            )
        with refusing(Refusal.ROUND):
            self.plan = round_.layout.check(given)
            # Of hidden hash functions, only the sites know for how many rows they were laid out.
            check_public_delta(round_.terms.delta, self.plan.expected_rows)
        self.policy.check(round_, self.plan, attended=attended)
        check_officer(self.policy.officer, approval, round_)
        self.strangers: list[tuple[Role, Card]] = self._strangers()
        self.past = StreamHistory(book, round_, data_set)
        self.epsilon = self._check_cost()

    @property
    def earlier(self) -> Contribution | None:
        """The answer that was given before, and will be sent again."""
        return self.past.answer

    def _strangers(self) -> list[tuple[Role, Card]]:
        roles: tuple[Role, ...] = ("coordinator", "site")
        known = {role: self.book.known(role) for role in roles}
        return self.policy.strangers(self.round, self.keys.card, known)

    def _check_cost(self) -> float:
        if self.earlier is not None or self.past.paid:
            return self.book.total(self.data_set)
        with refusing(Refusal.BUDGET):
            after = self.book.check_cap(self.data_set, cost(self.round, "to come"))
        most = self.policy.total_epsilon
        if after > most * (1.0 + 1e-9):
            raise Refused(
                Refusal.BUDGET,
                f"this round would take {self.data_set!r} to epsilon {rounded_up(after):g}, "
                f"and the policy allows {most:g} in all: {self.book.smaller(self.data_set, most)}",
            )
        return after

    # --- who --------------------------------------------------------------------------------

    @property
    def new(self) -> list[Card]:
        """Who is not known here: compare their fingerprints."""
        return list(dict.fromkeys(card for _, card in self.strangers))

    def trust(self, cards: Sequence[Card]) -> None:
        """Take these cards for true from now on, in the roles that they have in this round.

        For a person who compared their fingerprints, or got them from their owners.
        """
        trust(self.book, self.round, cards, "asked")
        self.strangers = self._strangers()

    def check_known(self) -> None:
        """Raise `Refused` if too many are still unknown; see `Policy.check_strangers`."""
        self.policy.check_strangers(self.round, self.strangers)

    def check_persons(self, told: bool) -> None:
        """Raise `Refused` if no one but the round says how many rows a person has at most.

        ``told`` is whether a column tells persons, by which the rows of each are counted.
        """
        if self.earlier is None:
            self.policy.check_persons(told, self.round.terms.rows_per_person)

    def barred(self) -> NDArray[np.uint64]:
        """Return who may not be counted, for ``known`` of `hushtable.Sketch.from_data`.

        Persons whom this site has counted under another data set, or, in a stream, in as many
        periods as a person may have: sorted digests of shape (n,), under the book's key.
        """
        return self.book.barred(self.data_set, Period.of(self.round))

    # --- the answer -------------------------------------------------------------------------

    def counted(self, sketch: Sketch, *, outside_too: bool = False) -> NDArray[np.int64]:
        """Return the counts of a sketch, as they are sent, if they fit the round.

        Nothing is recorded before.

        Parameters
        ----------
        sketch : Sketch
            The site's rows, counted under `plan`.
        outside_too : bool
            Whether to go on although most rows lie outside the ranges of a column.

        Raises
        ------
        RoundError, PrivacyError, DataError
            If they were counted under another plan, hold samples, weigh more than a person's
            rows, or mostly lie outside. The last depends on rows, and is a question to the person
            at the site; without a person it is not asked.
        """
        if sketch.plan.plan_id != self.plan.plan_id:
            raise RoundError(f"counted under another plan: {self.plan.difference(sketch.plan)}")
        terms = self.round.terms
        self.check_persons(sketch.rows_per_person is not None)
        # Of `Sketch.zero`, which counted no one's rows, no persons can be registered.
        nobody = sketch.rows_per_person == 0
        if self.plan.horizon is not None and self.policy.persons == "column" and not nobody:
            check_registered(sketch.persons)
        check_counts(sketch, terms.mechanism, terms.rows_per_person)
        if self._attended and self.earlier is None:
            check_attended(sketch, terms.max_rows, outside_too)
        return self.round.layout.sent(sketch.counts, self.plan)

    def answer(
        self,
        counts: NDArray[np.int64],
        masks: NDArray[np.uint64] | None,
        *,
        rows: RowDigests | None = None,
        new_people: bool = False,
        persons: PersonsSeen = NOBODY,
    ) -> Contribution:
        """Draw the noise, sign, and write it into the book; or return what is in it.

        Which of the two depends on the book alone: what was contributed is sent again, bit for
        bit, whatever the rows are by now.

        Parameters
        ----------
        counts : ndarray of shape (n_cells,), int64
            As `counted` returned them.
        masks : ndarray of shape (n_cells,), uint64, or None
            What hides them, in a masked round.
        rows : RowDigests, optional
            By which the book knows the rows again under another name.
        new_people : bool
            Whether the rows are other people's, although the book seems to know them.
        persons : PersonsSeen
            By which the book knows the persons again, whatever their rows are.
        """
        if self.earlier is not None:
            return self._again(self.earlier, masks)
        self.check_known()
        release, scale = secrets.token_hex(32), self.round.site_scale
        mixed, mechanism = self.past.mixed(counts), self.round.terms.mechanism
        sent = mechanisms.add_noise(mixed, mechanism, scale)
        with self.book.writing():
            # Another process may have answered meanwhile.
            self.past.check_still()
            self._check_cost()
            if persons.register is not None:
                self.book.check_register(persons.register, self.barred())
            # The first step has looked, too; since then, another set-up of this site may have
            # answered about the same rows.
            for some in (rows, persons.sample):
                if some is not None:
                    self.book.check_people(self.data_set, some, new_people)
            share, spent = self.past.paid or charged(
                self.round, release, self.book.spent(self.data_set)
            )
            about = self.round.round_id, self.round.title, self.data_set, self.at
            noised = Contribution(
                *about, counts, sent, share, spent, self.round.content,
                stream=self.round.stream, period=self.round.period, register=persons.register,
            )  # fmt: skip
            if self.policy.digest:
                self.book.note_policy(self.policy.digest)
            sealed = noised.sealed(self.round, self.keys, masks)
            return self.book.record(sealed, rows, new_people, persons.sample)

    def _again(self, earlier: Contribution, masks: NDArray[np.uint64] | None) -> Contribution:
        """Return the answer that was given; to another round about the same period, its counts.

        In that, they go under other masks, with the same noise.
        """
        if earlier.round_id == self.round.round_id:
            return earlier
        self.check_known()
        asked = self.round
        same = replace(
            earlier, round_id=asked.round_id, title=asked.title, made=self.at, round=asked.content,
            content=b"",
        )  # fmt: skip
        return self.book.record(same.sealed(asked, self.keys, masks))

    @property
    def cost_words(self) -> str:
        """The cost to the site's rows; what leaves, `describe.officer_words` says."""
        if self.past.paid:
            first = min(self.past.periods)
            return f"Nothing more: all periods were paid for with the answer to period {first}."
        return (
            f"With it, all rounds about {self.data_set!r} will have cost epsilon "
            f"{rounded_up(self.epsilon):g} of {self.book.epsilon:g}, the cap (delta "
            f"{self.book.delta:g})."
            + ("" if self.round.period is None else " That pays for all periods.")
        )
