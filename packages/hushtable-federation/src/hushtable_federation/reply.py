"""The site's side of a round: check, count, add noise, record, send."""

import secrets
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.sketch import Sketch, check_counts
from hushtable.data.persons import among
from hushtable.errors import DataError, RoundError, UsageError
from hushtable.privacy import mechanisms
from hushtable.privacy.accounting import rounded_up
from hushtable.privacy.budget import Spent, split_history
from hushtable.privacy.ledger import Share
from hushtable_federation.book.book import ALL_ROWS, Book
from hushtable_federation.book.digests import Period, Recognised, check_registered
from hushtable_federation.clock import now
from hushtable_federation.keys import Card, Keys
from hushtable_federation.policy import CONFIRMED, Approval, Policy, Role, check_officer
from hushtable_federation.refusals import Refusal, Refused, raise_first, refusing
from hushtable_federation.round import Round, check_protocol
from hushtable_federation.submission import Contribution, charged, cost


def trust(book: Book, round_: Round, cards: Sequence[Card], how: str | None = None) -> None:
    """Trust cards from now on, each in the roles that it has in a round.

    Call this for a person who compared their fingerprints, or got the cards from their owners. A
    card that is not in the round counts as a site's. ``how`` is as for `Book.trust`. Raise
    `UsageError` if the round has another card under the same name.
    """
    roles = {"site": round_.sites, "coordinator": (round_.coordinator,)}
    inside = {card.name: card for those in roles.values() for card in those}
    for card in cards:
        if inside.get(card.name, card) != card:
            raise UsageError(
                f"the card of {card.name!r} has the fingerprint {card.fingerprint}, and in this "
                f"round {inside[card.name].fingerprint}: ask {card.name!r} directly which of the "
                "two is correct"
            )
    for role, those in roles.items():
        book.trust([card for card in cards if card in those], role, how)
    book.trust([card for card in cards if card.name not in inside], how=how)


class StreamHistory:
    """The periods that a site answered in the stream of a round; none for other rounds.

    Parameters
    ----------
    book : Book
        The site's.
    round_ : Round
        The round to answer now.
    data_set : str
        Which rows.

    Attributes
    ----------
    periods : dict of int to str
        By period, the id of the round in which the site answered it first.
    answer : Contribution or None
        The answer to this round, or to another about the same period; it is sent again.

    Raises
    ------
    RoundError
        Unless the round continues what the site answered before: the same rows, terms, plan and
        coordinator, and the next period or one that was answered; if masked, also the same sites.
    """

    def __init__(self, book: Book, round_: Round, data_set: str) -> None:
        self._book, self._round = book, round_
        self.periods = self._now()
        self.answer = book.answer(round_.round_id)
        #: The first answer to the stream, which paid for all periods.
        self.first = self._answered(min(self.periods)) if self.periods else None
        if self.first is not None and round_.period is not None:
            self._check(self.first, round_.period, data_set)
            self.answer = self.answer or self._same_period(round_.period)

    def _now(self) -> dict[int, str]:
        return {} if self._round.period is None else self._book.periods(self._round.stream)

    @property
    def paid(self) -> tuple[Share, Spent] | None:
        """Return the site's line of the ledger and the cost, if it has answered before."""
        return None if self.first is None else (self.first.share, self.first.spent)

    def _check(self, answered: Contribution, asked: int, data_set: str) -> None:
        with refusing(Refusal.ROUND):
            self._check_same(answered, data_set)
        first, last = min(self.periods), max(self.periods)
        faults = {
            f"the round is about period {asked}, but this site has answered only up to period "
            f"{last}: ask the coordinator to open period {last + 1} again (hushtable round "
            "next --again, from the round of that period). Nothing was recorded or spent": (
                asked > last + 1
            ),
            f"the round is about period {asked}, but this site joined with period {first}, so "
            "no sum contains its counts from before. Answer the round of the next period": (
                asked < first
            ),
        }
        raise_first(partial(Refused, Refusal.ORDER), faults)

    def _check_same(self, first: Contribution, data_set: str) -> None:
        if data_set != first.data_set:
            raise RoundError(
                f"earlier periods of this stream were about {first.data_set!r}, not {data_set!r}, "
                f"and their budget pays for all periods: name data_set = '{first.data_set}' in the "
                "site's file"
            )
        noted, asked = Round.from_bytes(first.round, f"{self._book.path}: the round"), self._round
        same = {
            "coordinator": noted.coordinator == asked.coordinator,
            "plan": noted.plan.plan_id == asked.plan.plan_id,
            "terms": noted.terms == asked.terms,
        }
        differing = [name for name, is_same in same.items() if not is_same]
        if differing:
            raise RoundError(
                "the round continues a stream that this site answered under another "
                f"{' and '.join(differing)}, for which the cost was "
                "charged. Ask the coordinator for the round that follows (hushtable round next), "
                "or for a new stream. Nothing was recorded or spent"
            )

    def _same_period(self, period: int) -> Contribution | None:
        # In a masked round, only one of the same sites: two sums that differ by one site would
        # reveal its counts under only its own part of the noise.
        if period not in self.periods:
            return None
        answer = self._answered(period)
        noted = Round.from_bytes(answer.round, f"{self._book.path}: the round")
        if self._round.terms.masked and noted.sites != self._round.sites:
            raise Refused(
                Refusal.SITES,
                f"period {period} was answered in a round with {noted.names}, and "
                f"this one has {self._round.names}, or other keys: two sums of one period that "
                "differ by a site would reveal its counts. Ask the coordinator for a round of "
                "the same sites (hushtable round next --again). Nothing was recorded or spent",
            )
        return answer

    def mixed(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what the site releases for this period before noise: (n_cells,), as given.

        ``counts``, of shape (n_cells,), are those of this period alone. Outside a stream, they are
        released as they are.
        """
        horizon, period = self._round.plan.horizon, self._round.period
        if horizon is None or period is None:
            return counts
        # A site has counted and sent nothing for the periods before it joined.
        each = [self._answered(t).counts for t in sorted(self.periods)]
        return horizon.mixed(np.array([*each, counts]))

    def check_still(self) -> None:
        """Raise `RoundError` if another process answered; call in the book's transaction."""
        if self._now() != self.periods and self._book.answer(self._round.round_id) is None:
            raise RoundError(
                f"period {self._round.period} was answered by another process in the meantime: run "
                "the command again, which sends the recorded answer"
            )

    def _answered(self, period: int) -> Contribution:
        answer = self._book.answer(self.periods[period])
        assert answer is not None
        return answer


class Reply:
    """A site's reply to a round, checked in every respect before anything is counted or sent.

    Parameters
    ----------
    round_ : Round
        The coordinator's round.
    keys : Keys
        The site's.
    book : Book
        The site's.
    policy : Policy, optional
        The site's policy; by default, one that allows what a person confirms: only parties in the
        book are known.
    data_set : str
        Name of the rows. Rounds about the same people's rows share one budget, so use a different
        name only for different people's rows.
    at : datetime, optional
        The time; by default, now.
    approval : Approval, optional
        The officer's approval, if the policy requires it.
    attended : bool, default=True
        Whether a person reviews the round and the statements about the rows.

    Attributes
    ----------
    plan : Plan
        The plan to count the rows under.
    epsilon : float
        The total cost to the site's rows after this round, over all rounds in the book.
    earlier : Contribution or None
        The earlier contribution to this round or about the same period, which is sent again.

    Raises
    ------
    RoundError, PlanError, PrivacyError
        If the round is not for this site, is over, is about another plan, violates the policy,
        breaks the cap, or has keys other than those the site knows; each with the `word` that may
        be sent. None of these depends on rows.

    Examples
    --------
    >>> from hushtable_federation import Reply
    >>> here = Rehearsal(masked=False)  # made-up sites and an open round
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
                    f"the round lists {keys.card.name!r} with keys other than these: send the "
                    "coordinator the card that belongs to them, and ask for a new round"
                )
            check_protocol(round_)
        with refusing(Refusal.TIME):
            round_.check_time(self.at, "this machine's clock")
        self.plan = round_.plan
        self.policy.check(round_, self.plan, attended=attended)
        check_officer(self.policy.officer, approval, round_)
        self.strangers: list[tuple[Role, Card]] = self._strangers()
        self.past = StreamHistory(book, round_, data_set)
        self.earlier = self.past.answer
        self.epsilon = self._check_cost()

    def _strangers(self) -> list[tuple[Role, Card]]:
        return self.policy.strangers(self.round, self.keys.card, self.book.known)

    def _check_cost(self) -> float:
        if self.earlier is not None or self.past.paid:
            return self.book.total(self.data_set)
        with refusing(Refusal.BUDGET):
            after = self.book.check_cap(self.data_set, cost(self.round, "to come"))
        most = self.policy.total_epsilon
        if after > most * (1.0 + 1e-9):
            raise Refused(
                Refusal.BUDGET,
                f"this round would raise the total of {self.data_set!r} to epsilon "
                f"{rounded_up(after):g}, and the policy allows {most:g} in total: "
                f"{self.book.smaller(self.data_set, most)}",
            )
        return after

    # --- who --------------------------------------------------------------------------------

    @property
    def new(self) -> list[Card]:
        """Return the parties that are not known here; a person has to check these."""
        return list(dict.fromkeys(card for _, card in self.strangers))

    def trust(self, cards: Sequence[Card]) -> None:
        """Trust these cards from now on, in their roles in this round.

        Call this for a person who compared their fingerprints, or got the cards from their owners.
        """
        trust(self.book, self.round, cards, "asked")
        self.strangers = self._strangers()

    def check_known(self) -> None:
        """Raise `Refused` if too many are still unknown; see `Policy.check_strangers`."""
        self.policy.check_strangers(self.round, self.strangers)

    def check_persons(self, identified: bool) -> None:
        """Raise `Refused` if nothing at this site bounds how many rows a person has.

        ``identified`` states whether a column identifies persons, so that rows are counted.
        """
        if self.earlier is None:
            self.policy.check_persons(identified, self.round.terms.rows_per_person)

    def barred(self) -> NDArray[np.uint64]:
        """Return the persons not to count, for ``known`` of `hushtable.Sketch.from_data`.

        These are persons that this site has counted under another data set or, in a stream, in as
        many periods as a person may be in: sorted digests of shape (n,), under the book's key.
        """
        return self.book.barred(self.data_set, Period.of(self.round))

    # --- the answer -------------------------------------------------------------------------

    def counted(self, sketch: Sketch, *, outside_too: bool = False) -> NDArray[np.int64]:
        """Return the counts of a sketch in the form to send, if they fit the round.

        Nothing is recorded yet.

        Parameters
        ----------
        sketch : Sketch
            The site's rows, counted under `plan`.
        outside_too : bool
            Whether to continue although most rows lie outside the ranges of a column.

        Raises
        ------
        RoundError, PrivacyError, DataError
            If they were counted under another plan, hold samples, weigh more than a person's rows,
            or mostly lie outside. The last check depends on rows, and is a question to the person
            at the site; without a person, it is not made.
        """
        if sketch.plan.plan_id != self.plan.plan_id:
            raise RoundError(f"counted under another plan: {self.plan.difference(sketch.plan)}")
        terms = self.round.terms
        self.check_persons(sketch.rows_per_person is not None)
        # `Sketch.zero` counted no rows, so it has no persons to register.
        nobody = sketch.rows_per_person == 0
        if self.plan.horizon is not None and self.policy.persons == "column" and not nobody:
            check_registered(sketch.persons)
        check_counts(sketch, terms.mechanism, terms.rows_per_person)
        odd = [name for name, rows in sketch.outside().items() if 2 * rows > sketch.n_rows]
        if odd and self._attended and self.earlier is None and not outside_too:
            raise DataError(
                "most rows lie outside the round's range, or its categories, in "
                f"{', '.join(map(repr, odd[:3]))}: the rows may have another unit than the round, "
                "or other category names. Nothing was recorded or spent. Correct the file, or give "
                "--outside-too if the rows are as they should be"
            )
        return sketch.counts

    def answer(
        self,
        counts: NDArray[np.int64],
        masks: NDArray[np.uint64] | None,
        *,
        people: Recognised | None = None,
        new_people: bool = False,
    ) -> Contribution:
        """Draw the noise, sign, and record the answer in the book; or return the recorded one.

        Which of the two depends only on the book: an earlier contribution is sent again, bit for
        bit, even if the rows have changed.

        Parameters
        ----------
        counts : ndarray of shape (n_cells,), int64
            As `counted` returned them.
        masks : ndarray of shape (n_cells,), uint64, or None
            The masks of the counts, in a masked round.
        people : Recognised, optional
            Digests by which the book recognises the rows and persons under another name.
        new_people : bool
            Whether the rows are about different people, although the book seems to know them.
        """
        people = people or Recognised()
        if self.earlier is not None:
            return self._again(self.earlier, masks)
        self.check_known()
        release, scale = secrets.token_hex(32), self.round.site_scale
        mixed, mechanism = self.past.mixed(counts), self.round.terms.mechanism
        sent = mechanisms.add_noise(mixed, mechanism, scale)
        with self.book.writing():
            # Another process may have answered in the meantime.
            self.past.check_still()
            self._check_cost()
            if people.register is not None and among(self.barred(), people.register).any():
                raise RoundError(
                    "some of these persons were counted in another answer of this book in the "
                    "meantime: count the rows again, without the persons that Reply.barred() names"
                )
            share, spent = self.past.paid or charged(
                self.round, release, self.book.spent(self.data_set)
            )
            noised = Contribution(
                self.round.round_id, self.round.title, self.data_set, self.at, counts, sent, share,
                spent, self.round.content, stream=self.round.stream, period=self.round.period,
                register=people.register,
            )  # fmt: skip
            if self.policy.digest:
                self.book.note_policy(self.policy.digest)
            sealed = noised.sealed(self.round, self.keys, masks)
            # The first step checked the rows and persons, too; since then, another installation of
            # this site may have answered about the same ones.
            return self.book.record(sealed, people.samples, new_people)

    def _again(self, earlier: Contribution, masks: NDArray[np.uint64] | None) -> Contribution:
        # The counts of an answer to another round about the same period are sent under other masks,
        # with the same noise.
        asked = self.round
        if earlier.round_id == asked.round_id:
            return earlier
        self.check_known()
        same = replace(
            earlier, round_id=asked.round_id, title=asked.title, made=self.at, round=asked.content,
            content=b"",
        )  # fmt: skip
        return self.book.record(same.sealed(asked, self.keys, masks))

    @property
    def beside_cost(self) -> str:
        """Return what the round's own cost does not contain, in words; empty if it contains all.

        These are earlier answers in the book that the plan does not name, for example because an
        entry was cut from its schema.
        """
        if self.earlier is not None or self.past.paid:
            return ""
        unnamed, _ = split_history(self.round.plan.behind, self.book.spent(self.data_set))
        if not unnamed:
            return ""
        answers = "1 earlier answer" if len(unnamed) == 1 else f"{len(unnamed)} earlier answers"
        return (
            f"without {answers} of this site about {self.data_set!r} that the plan does not name: "
            f"with all, epsilon {rounded_up(self.epsilon):g}"
        )

    @property
    def cost_words(self) -> str:
        """Return the cost to the site's rows, in a sentence."""
        if self.past.paid:
            first = min(self.past.periods)
            return f"No further cost: the answer to period {first} paid for all periods."
        answers = self.book.without_result(self.data_set)
        repeated = (
            f" This includes {', '.join(answers)}, whose result this site has not fetched: a round "
            "costs its budget, whether or not it ended with a sum."
        )
        return (
            f"With this round, all rounds about {self.data_set!r} will have cost epsilon "
            f"{rounded_up(self.epsilon):g} of {self.book.epsilon:g}, the cap (delta "
            f"{self.book.delta:g})."
            + ("" if self.round.period is None else " This pays for all periods.")
            + (repeated if answers else "")
        )
