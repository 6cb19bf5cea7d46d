"""The round: what a coordinator signs, and every site checks before it counts a row."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from os import PathLike
from typing import Any, Unpack

from hushtable import files
from hushtable.arguments import entries
from hushtable.counts.release import check_adjacency
from hushtable.display import Displayed
from hushtable.errors import PlanError, PrivacyError, RoundError, UsageError
from hushtable.plans.plan import Plan
from hushtable.privacy.budget import check_public_delta, part_scale
from hushtable.privacy.ledger import Ledger, Pool, Share
from hushtable.privacy.mechanisms import Cost, Sensitivity
from hushtable_federation.clock import CLOCKS, now, parsed, shown_time, stamp
from hushtable_federation.keys import Card, Keys
from hushtable_federation.layout import Layout
from hushtable_federation.opening import (
    HIDDEN_PERIODS,
    check_asked,
    following,
    pack,
    signed_entries,
)
from hushtable_federation.roster import check_bound, check_coordinator, check_least, check_roster
from hushtable_federation.stream import ENTRIES, Every, Place
from hushtable_federation.terms import Asked, Terms

__all__ = ["CLOCKS", "Round", "now", "shown_time", "stamp"]

#: Kinds of its entries; coordinator, sites, terms and times are checked where they are built.
_ENTRIES = {
    "title": str, "opened": str, "deadline": str, "coordinator": object, "sites": list[object],
    "terms": object, "previous": list[str],
}  # fmt: skip


@dataclass(frozen=True)
class Round(Displayed):
    """One collaboration: plan, terms, roster, deadline, signed by the coordinator.

    Attributes
    ----------
    round_id : str
        SHA-256 of everything in it: a round with another roster, plan, k_min or deadline is
        another round, and what was made for one does not fit the other.
    title : str
        For people.
    opened, deadline : datetime
        UTC, in whole seconds.
    coordinator : Card
        Who signed.
    sites : tuple of Card
        The roster, sorted by name.
    terms : Terms
        What all agree on.
    layout : Layout
        Sizes of the tables.
    plan : Plan or None
        None where the hash functions are hidden from the coordinator: the sites have the plan.
    previous : tuple of str
        Ids of the rounds whose results the plan was drawn from.
    content : bytes
        The file.
    place : Place or None
        Under a plan with a horizon: the period that it is about, and its stream.

    Examples
    --------
    >>> from datetime import UTC, datetime, timedelta
    >>> from hushtable import Feature, Plan, Schema
    >>> from hushtable_federation import Keys, Round
    >>> lead, north, south = (Keys.generate(name) for name in ("lead", "north", "south"))
    >>> plan = Plan.draw(Schema((Feature.numeric("age", low=0, high=120),)), n_tables=10)
    >>> deadline = datetime.now(UTC) + timedelta(days=7)
    >>> cards = [north.card, south.card]
    >>> Round.open(plan, cards, lead, epsilon=1.0, deadline=deadline).names
    ['north', 'south']
    """

    round_id: str
    title: str
    opened: datetime
    deadline: datetime
    coordinator: Card
    sites: tuple[Card, ...]
    terms: Terms
    layout: Layout
    plan: Plan | None
    previous: tuple[str, ...]
    content: bytes
    place: Place | None = None

    @classmethod
    def open(
        cls,
        plan: Plan | Layout,
        sites: Sequence[Card],
        keys: Keys,
        *,
        deadline: datetime,
        title: str = "",
        previous: Sequence[str] = (),
        at: datetime | None = None,
        every: Every | None = None,
        starts: date | None = None,
        **terms: Unpack[Asked],
    ) -> "Round":
        """Sign a round; under a plan with a horizon, that of the first period.

        Parameters
        ----------
        plan : Plan or Layout
            What is counted; only the layout where the hash functions are to stay hidden.
        sites : sequence of Card
            Who takes part.
        keys : Keys
            The coordinator's.
        deadline : datetime
            With a time zone; later, no site answers.
        title : str
            For people.
        previous : sequence of str
            Ids of the rounds whose results the plan was drawn from.
        at : datetime, optional
            When; now by default.
        every : {"day", "week", "month", "quarter", "year"}, optional
            How long a period of the plan's horizon is, for words alone.
        starts : date, optional
            A day in the first period; the day of opening by default.
        **terms
            ``epsilon`` and, if need be, ``delta``, ``adjacency``, ``rows_per_person`` and
            ``share``, as in `Sketch.release`; and how the noise is shared: ``masked`` (default
            True) is whether the sites share it under masks that cancel only in the sum.
            ``least``: sites without which there is no result; by default all in a masked round,
            and 2 otherwise; fewer than all takes a folder, or sites online. ``colluders`` (default
            0): sites that may pass their part of the noise on to the reader of the sum without
            breaking the bound. ``max_rows``: rows of a site at most, which is then checked.

        Raises
        ------
        UsageError, RoundError, PrivacyError
            If roster, deadline or terms cannot be.
        """
        check_asked(plan, deadline, title, previous)
        layout = plan if isinstance(plan, Layout) else Layout.of(plan)
        if terms.get("share") is None:
            terms["share"] = layout.share
        agreed = Terms.agreed(len(sites), cells=layout.cells, **terms)
        check_public_delta(agreed.delta, plan.expected_rows)
        place = Place.first(layout.horizon, every, starts, at or now())
        said = signed_entries(
            title, at or now(), deadline, keys.card, sites, agreed.to_dict(), previous, place
        )
        return cls._signed(said, plan, keys)

    def next(
        self,
        keys: Keys,
        *,
        deadline: datetime,
        joining: Sequence[Card] = (),
        again: bool = False,
        at: datetime | None = None,
        title: str | None = None,
    ) -> "Round":
        """Sign the round of the next period of the stream: same plan, same terms, same sites.

        A site that leaves ends the stream (`hushtable.decoded`), and so stays on the roster.

        Parameters
        ----------
        keys, deadline, at, title
            As in `open`; the title is that of this round by default.
        joining : sequence of Card
            Sites that begin with this period.
        again : bool
            Whether to ask for the same period once more, of the same sites.

        Raises
        ------
        UsageError, RoundError
            If this round is about no period, was that of the last one, or was opened by others.
        """
        check_coordinator(self, keys)
        check_asked(self.plan or self.layout, deadline, self.title if title is None else title, ())
        terms, previous, sites = self.terms.to_dict(), self.previous, (*self.sites, *joining)
        place = following(self.place, self.layout.horizon, self.stream, again, joining)
        said = signed_entries(
            self.title if title is None else title, at or now(), deadline, keys.card, sites, terms,
            previous, place,
        )  # fmt: skip
        return self._signed(said, self.plan or self.layout, keys)

    @classmethod
    def _signed(cls, said: dict[str, Any], plan: Plan | Layout, keys: Keys) -> "Round":
        opened = cls.from_bytes(pack(said, plan, keys), "the round")
        if opened.deadline <= opened.opened:
            raise UsageError(
                f"the deadline {shown_time(opened.deadline)} has passed: give one in the future"
            )
        return opened

    @classmethod
    def from_bytes(cls, content: bytes, path: "str | PathLike[str]") -> "Round":
        """Check and build the round of a file; ``path`` names it in errors.

        Raises
        ------
        FileError
            If it is no intact file of a round, or says what cannot be.
        RoundError
            If the coordinator's signature is not that of the card in it.
        """
        read = files.unpack(content, path).expect("round")
        made = read.build(lambda read: cls._from_file(read, content))
        if not made.coordinator.signed(read):
            raise RoundError(
                f"{path}: the signature is not that of {made.coordinator.name!r}: the round was "
                "forged or edited; get it again from the coordinator"
            )
        return made

    @classmethod
    def _from_file(cls, read: files.Content, content: bytes) -> "Round":
        said = entries(read.manifest.get("round"), "a round", _ENTRIES, ENTRIES)
        terms, layout = Terms.from_dict(said["terms"]), Layout.from_file(read)
        plan = Plan.from_file(read) if "plan" in read.manifest else None
        try:
            sites = tuple(Card.from_dict(card) for card in said["sites"])
            coordinator = Card.from_dict(said["coordinator"])
            check_roster(sites, coordinator)
            check_least(terms, sites, coordinator, by_file=layout.horizon is not None)
            opened, deadline = parsed(said["opened"]), parsed(said["deadline"])
        except (RoundError, ValueError) as error:
            raise PlanError(str(error)) from None
        try:
            check_public_delta(terms.delta, (plan or layout).expected_rows)
        except PrivacyError as error:
            raise PlanError(f"terms: {error}") from None
        about = read.digest, said["title"], opened, deadline
        place = Place.from_dict(said, layout.horizon)
        if place is not None and plan is None:
            raise PlanError(HIDDEN_PERIODS)
        previous = tuple(said["previous"])
        made = cls(*about, coordinator, sites, terms, layout, plan, previous, content, place)
        made.site_scale  # noqa: B018 (a budget that is exhausted already is refused here)
        check_bound(made)
        return made

    def save(self, path: "str | PathLike[str]") -> None:
        """Write the round to a .hush file, atomically: for every site."""
        files.write_bytes(path, self.content, private=not files.travels("round"))

    # --- who ----------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """Names of the sites, sorted."""
        return [card.name for card in self.sites]

    def card(self, name: str) -> Card:
        """Return the card of a site; raises `RoundError` if it takes no part."""
        for card in self.sites:
            if card.name == name:
                return card
        raise RoundError(f"{name!r} takes no part in this round: its sites are {self.names}")

    # --- when ---------------------------------------------------------------------------------

    def check_time(self, at: datetime, whose: str) -> None:
        """Raise `RoundError` unless the round is open; ``whose`` clock says ``at``."""
        if at > self.deadline:
            raise RoundError(
                f"the round ended on {shown_time(self.deadline)}, and {whose} says "
                f"{shown_time(at)}: ask the coordinator for a new round, or correct the clock"
            )
        if at < self.opened - CLOCKS:
            raise RoundError(
                f"the round was opened on {shown_time(self.opened)}, which is in the future of "
                f"{whose} ({shown_time(at)}): correct the clock"
            )

    # --- which period -------------------------------------------------------------------------

    @property
    def period(self) -> int | None:
        """The period that it is about, from 1; None where the plan has no horizon."""
        return None if self.place is None else self.place.period

    @property
    def stream(self) -> str:
        """Id of the first round of its stream, which is its own where no other is."""
        return (self.place.stream if self.place else "") or self.round_id

    @property
    def in_steps(self) -> bool:
        """Whether it goes on without sites that are lost, which takes several steps."""
        return self.terms.masked and self.place is None

    @property
    def needed(self) -> int:
        """Sites without which there is no result.

        Of a masked round about a period, which goes by file, these are all of them.
        """
        by_file = self.terms.masked and self.place is not None
        return len(self.sites) if by_file else self.terms.least

    # --- what it costs ------------------------------------------------------------------------

    @property
    def sensitivity(self) -> Sensitivity:
        """By how much one person changes the counts."""
        check_adjacency(self.layout.detector, self.terms.adjacency)
        return self.terms.sensitivity(len(self.layout.cells), horizon=self.layout.horizon)

    @property
    def pool(self) -> Pool | None:
        """How the noise is shared, in a masked round."""
        return self.terms.pool(self.stream)

    @cached_property  # each share of a result is held against it
    def site_scale(self) -> float:
        """Scale of the noise that each site adds, in counts."""
        scale = self.terms.scale(self.sensitivity, Cost.total(s.cost for s in self.layout.behind))
        return part_scale(scale, self.terms.k_min) if self.terms.masked else scale

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the noise on a cell of the sum, if all sites answer."""
        return self.site_scale * math.sqrt(len(self.sites))

    def ledger(self, share: Share) -> Ledger:
        """Return the ledger of one site's part; those of all sites add up to the sum's."""
        if share.scale != self.site_scale:
            raise RoundError(
                f"noise of scale {share.scale:g}, the terms ask for {self.site_scale:g}: the part "
                "was made for other terms"
            )
        terms, behind = self.terms, self.layout.behind
        return Ledger(
            terms.mechanism, self.sensitivity, terms.delta, (share,), behind, self.pool,
            terms.accounting, self.period,
        )  # fmt: skip
