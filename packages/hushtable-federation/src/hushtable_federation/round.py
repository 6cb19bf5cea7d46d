"""A round: what a coordinator requests from sites, on which terms, signed; and how it is opened."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property
from os import PathLike
from typing import Unpack

import rfc8785

from hushtable import files
from hushtable.arguments import entries, is_text, translate_errors
from hushtable.counts.release import check_plan
from hushtable.errors import PlanError, RoundError, UsageError
from hushtable.plans.plan import Plan
from hushtable.privacy.budget import check_public_delta, part_scale
from hushtable.privacy.ledger import Ledger, Pool, Share
from hushtable.privacy.mechanisms import Cost, Sensitivity
from hushtable_federation.clock import CLOCKS, YEARS, now, parsed, shown_time, stamp
from hushtable_federation.keys import Card, Keys, grouped
from hushtable_federation.refusals import raise_first
from hushtable_federation.terms import (
    ENTRIES,
    MAX_SITES,
    PROTOCOL,
    Every,
    StreamPosition,
    TermOptions,
    Terms,
)

#: Types of its entries; coordinator, sites, terms and times are checked where they are built.
_ENTRIES = {
    "title": str, "opened": str, "deadline": str, "coordinator": object, "sites": list[object],
    "terms": object, "previous": list[str],
}  # fmt: skip


@dataclass(frozen=True)
class Round:
    """One collaboration: plan, terms, roster, deadline, signed by the coordinator.

    Attributes
    ----------
    round_id : str
        SHA-256 of everything in it: a round with a different roster, plan, k_min or deadline is a
        different round, and messages for one do not fit the other.
    title : str
        For people.
    opened, deadline : datetime
        UTC, in whole seconds.
    coordinator : Card
        The signer's card.
    sites : tuple of Card
        The roster, sorted by name.
    terms : Terms
        The terms that all parties agree on.
    plan : Plan
        The plan to count under.
    previous : tuple of str
        Ids of the rounds whose results the plan was drawn from.
    content : bytes
        The file.
    place : Place or None
        Under a plan with a horizon: the round's period and stream.

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
    plan: Plan
    previous: tuple[str, ...]
    content: bytes = field(repr=False)
    place: StreamPosition | None = None

    @classmethod
    def open(
        cls,
        plan: Plan,
        sites: Sequence[Card],
        keys: Keys,
        *,
        deadline: datetime,
        title: str = "",
        previous: Sequence[str] = (),
        at: datetime | None = None,
        every: Every | None = None,
        starts: date | None = None,
        **terms: Unpack[TermOptions],
    ) -> "Round":
        """Sign a round; under a plan with a horizon, the round of the first period.

        Parameters
        ----------
        plan : Plan
            The plan to count under.
        sites : sequence of Card
            Cards of the sites that take part.
        keys : Keys
            The coordinator's.
        deadline : datetime
            Time with a time zone, after which no site answers.
        title : str
            For people.
        previous : sequence of str
            Ids of the rounds whose results the plan was drawn from.
        at : datetime, optional
            Time of opening; by default, now.
        every : {"day", "week", "month", "quarter", "year"}, optional
            Length of a period of the plan's horizon, used only in texts.
        starts : date, optional
            A day in the first period; by default, the day of opening.
        **terms
            ``epsilon`` and, if needed, ``delta``, ``adjacency``, ``rows_per_person`` and ``share``,
            as in `Sketch.release`; and how the noise is shared: ``masked`` (default True) states
            whether the sites share it under masks that cancel only in the sum. ``least``: number of
            sites needed for a result; by default, all in a masked round, and 2 otherwise; fewer
            than all needs a folder, or sites online. ``colluders`` (default 0): number of sites
            that may reveal their part of the noise to the reader of the sum without breaking the
            bound.

        Raises
        ------
        UsageError, RoundError, PrivacyError
            If roster, deadline or terms are not valid.
        """
        check_plan(plan)
        if terms.get("share") is None:
            terms["share"] = plan.share_of_budget
        agreed = Terms.agreed(len(sites), **terms)
        check_public_delta(agreed.delta, plan.expected_rows)
        place = StreamPosition.first(plan.horizon, every, starts, at or now())
        return cls._signed(
            plan, sites, keys, agreed, place, title=title, previous=previous, at=at,
            deadline=deadline,
        )  # fmt: skip

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
        """Sign the round for the next period of the stream, with the same plan, terms and sites.

        A site that leaves would end the stream (`hushtable.decoded`), so all sites stay on the
        roster.

        Parameters
        ----------
        keys, deadline, at, title
            As in `open`; by default, the title is that of this round.
        joining : sequence of Card
            Sites that begin with this period.
        again : bool
            Whether to open the same period again, with the same sites.

        Raises
        ------
        UsageError, RoundError
            If this round has no period, has the last one, or was opened by others.
        """
        check_coordinator(self, keys)
        check_protocol(self)
        title = self.title if title is None else title
        horizon, place = self.plan.horizon, self.place
        if horizon is None or place is None:
            raise UsageError(
                "the round has no period, because its plan has no horizon: draw a plan with a "
                "horizon"
            )
        if again and joining:
            raise UsageError(
                "a period is opened again for the same sites only: other sites can join the next "
                "one"
            )
        if again:
            place = replace(place, stream=self.stream)
        else:
            place = place.following(horizon, self.stream)
        return self._signed(
            self.plan, (*self.sites, *joining), keys, self.terms, place, title=title,
            previous=self.previous, at=at, deadline=deadline,
        )  # fmt: skip

    @classmethod
    def _signed(
        cls,
        plan: Plan,
        sites: Sequence[Card],
        keys: Keys,
        terms: Terms,
        place: StreamPosition | None,
        *,
        title: str,
        previous: Sequence[str],
        at: datetime | None,
        deadline: datetime,
    ) -> "Round":
        several = isinstance(previous, Sequence) and not isinstance(previous, str)
        faults = {
            "the deadline needs a time zone": deadline.tzinfo is None,
            f"the deadline is in the year {deadline.year}: give one before {YEARS.stop}": (
                deadline.year not in YEARS
            ),
            f"title={title!r}: needs a text": not is_text(title),
            f"previous={previous!r}: needs a list of ids of rounds": (
                not several or not all(map(is_text, previous))
            ),
        }
        raise_first(UsageError, faults)
        record = {
            "title": title,
            "opened": stamp(at or now()),
            "deadline": stamp(deadline),
            "coordinator": keys.card.to_dict(),
            "sites": [card.to_dict() for card in sorted(sites, key=lambda card: card.name)],
            "terms": terms.to_dict(),
            "previous": list(previous),
            **({} if place is None else place.to_dict()),
        }
        mine, arrays = plan.entries()
        content = files.pack("round", {"round": record} | mine, arrays, keys.sign)
        opened = cls.from_bytes(content, "the round")
        if opened.deadline <= opened.opened:
            raise UsageError(
                f"the deadline {shown_time(opened.deadline)} has passed: give one in the future"
            )
        return opened

    @classmethod
    def from_bytes(cls, content: bytes, path: "str | PathLike[str]") -> "Round":
        """Check and build the round from a file; ``path`` names it in errors.

        Raises
        ------
        FileError
            If it is not an intact file of a round, or its content is not valid.
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
        record = entries(read.manifest.get("round"), "a round", _ENTRIES, ENTRIES)
        terms, plan = Terms.from_dict(record["terms"]), Plan.from_file(read)
        check_plan(plan)
        with translate_errors(PlanError):
            sites = tuple(map(Card.from_dict, record["sites"]))
            coordinator = Card.from_dict(record["coordinator"])
            check_roster(sites, coordinator)
            check_least(terms, sites, coordinator, whole=plan.horizon is not None)
            opened, deadline = parsed(record["opened"]), parsed(record["deadline"])
        with translate_errors(PlanError, "terms"):
            check_public_delta(terms.delta, plan.expected_rows)
        made = cls(
            round_id=read.digest,
            title=record["title"],
            opened=opened,
            deadline=deadline,
            coordinator=coordinator,
            sites=sites,
            terms=terms,
            plan=plan,
            previous=tuple(record["previous"]),
            content=content,
            place=StreamPosition.from_dict(record, plan.horizon),
        )
        made.site_scale  # noqa: B018 (this refuses a budget that is already exhausted)
        return made

    def save(self, path: "str | PathLike[str]") -> None:
        """Write the round atomically to a .hush file, for every site."""
        files.write_bytes(path, self.content, private=not files.travels("round"))

    # --- who ----------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """Return the sorted names of the sites."""
        return [card.name for card in self.sites]

    @cached_property
    def fingerprint(self) -> str:
        """Return 32 digits of a SHA-256 of all cards, which all parties read aloud in one call.

        If they agree, no card was replaced on its way. It covers which party is the coordinator.
        """
        domain = f"hushtable cards, protocol {files.PROTOCOL}"
        cards = [self.coordinator.to_dict(), *(card.to_dict() for card in self.sites)]
        return grouped(hashlib.sha256(rfc8785.dumps([domain, *cards])).hexdigest()[:32])

    def card(self, name: str) -> Card:
        """Return the card of a site; raise `RoundError` if it does not take part."""
        for card in self.sites:
            if card.name == name:
                return card
        raise RoundError(f"{name!r} takes no part in this round: its sites are {self.names}")

    # --- when ---------------------------------------------------------------------------------

    def check_time(self, at: datetime, whose: str) -> None:
        """Raise `RoundError` unless the round is open at ``at``, by ``whose`` clock."""
        faults = {
            f"the round ended on {shown_time(self.deadline)}, and {whose} shows {shown_time(at)}: "
            "ask the coordinator for a new round, or correct the clock": at > self.deadline,
            f"the round was opened on {shown_time(self.opened)}, which is in the future of {whose} "
            f"({shown_time(at)}): correct the clock": at < self.opened - CLOCKS,
        }
        raise_first(RoundError, faults)

    # --- which period -------------------------------------------------------------------------

    @property
    def period(self) -> int | None:
        """Return the round's period, counted from 1; None if the plan has no horizon."""
        return None if self.place is None else self.place.period

    @property
    def stream(self) -> str:
        """Return the id of the first round of its stream, which may be its own."""
        return (self.place.stream if self.place else "") or self.round_id

    @property
    def needed(self) -> int:
        """Return the number of sites needed for a result.

        In a masked round about a period, these are all sites, because leaving out one would end the
        stream.
        """
        whole = self.terms.masked and self.place is not None
        return len(self.sites) if whole else self.terms.least

    # --- what it costs ------------------------------------------------------------------------

    @property
    def sensitivity(self) -> Sensitivity:
        """Return by how much one person changes the counts."""
        return self.terms.sensitivity(self.plan.family.n_histograms, horizon=self.plan.horizon)

    @property
    def pool(self) -> Pool | None:
        """Return how the noise is shared in a masked round."""
        return self.terms.pool(self.stream)

    @cached_property  # each share of a result is compared with it
    def site_scale(self) -> float:
        """Return the scale of the noise that each site adds, in counts."""
        scale = self.terms.scale(self.sensitivity, Cost.total(s.cost for s in self.plan.behind))
        return part_scale(scale, self.terms.k_min) if self.terms.masked else scale

    @property
    def noise_sd(self) -> float:
        """Return the standard deviation of the noise on a cell of the sum, if all sites answer."""
        return self.site_scale * math.sqrt(len(self.sites))

    def ledger(self, share: Share) -> Ledger:
        """Return the ledger of one site's part; all parts add up to the sum's ledger."""
        if share.scale != self.site_scale:
            raise RoundError(
                f"noise of scale {share.scale:g}, but the terms require {self.site_scale:g}: the "
                "part was made for other terms"
            )
        terms, behind = self.terms, self.plan.behind
        return Ledger(
            terms.mechanism, self.sensitivity, terms.delta, (share,), behind, self.pool,
            terms.accounting, self.period,
        )  # fmt: skip


#: Characters that a reader overlooks in a name.
_UNSEEN = str.maketrans("", "", " ._-")


def check_least(
    terms: Terms, sites: Sequence[Card], coordinator: Card, whole: bool = False
) -> None:
    """Raise `PlanError` if two different lists of dropped sites could both get enough signatures.

    The coordinator could show one list to some sites and another list to others, and get both
    secrets of a site that is on only one of them. An honest site signs one list; a colluding site
    signs both, and so does the coordinator itself if it is a site. Two lists then need ``2 least``
    signatures out of at most n + c (+ 1). A round that needs the ``whole`` roster has only one
    list.
    """
    n = len(sites)
    if terms.least > n:
        raise PlanError(f"{n} sites cannot be at least {terms.least}")
    if not terms.masked or whole:
        return
    colluders = terms.colluders
    twice = colluders + (coordinator in sites)
    if 2 * terms.least <= n + twice:
        also = ", and the coordinator is also a site" if coordinator in sites else ""
        raise PlanError(
            f"at least {terms.least} of {n} sites under masks, {colluders} colluding{also}: needs "
            f"{(n + twice) // 2 + 1} or more"
        )


def check_protocol(round_: Round) -> None:
    """Raise `RoundError` if a masked round has steps that this version does not know."""
    theirs = round_.terms.protocol
    if not round_.terms.masked or theirs == PROTOCOL:
        return
    if theirs > PROTOCOL:
        raise RoundError(
            f"the round is masked by protocol {theirs}, and this version of hushtable knows "
            f"{PROTOCOL}: install a newer version"
        )
    what = "its stream" if round_.period is not None else "it"
    raise RoundError(
        f"the round was opened by version 1.0.0rc1 or earlier, with masks that later versions "
        f"cannot remove: all parties finish {what} with that version (pip install "
        "hushtable-federation==1.0.0rc1), or the coordinator opens it again, which costs its "
        "budget again"
    )


def check_roster(sites: Sequence[Card], coordinator: Card) -> None:
    """Raise `RoundError` if two sites share a name or keys, or there are too few or too many."""
    names = [card.name for card in sites]
    twice = sorted({name for name in names if names.count(name) > 1})
    alike = {name.casefold().translate(_UNSEEN): name for name in names}
    hidden = [name for name in names if alike[name.casefold().translate(_UNSEEN)] != name]
    keys = {card.signing for card in sites}, {card.masking for card in sites}
    faults = {
        f"several cards have the name {twice}: each site needs a different name": twice,
        "the roster is not sorted by name": names != sorted(names),
        f"the coordinator and a site are both named {coordinator.name!r}, with different keys: "
        "each needs a different name": coordinator.name in names and coordinator not in sites,
        f"the site {', '.join(map(repr, hidden[:1]))} has a name that looks like another's: names "
        "have to differ in more than spaces, dots, hyphens, underscores and capital letters": (
            hidden
        ),
        "two sites have the same keys: each needs its own (hushtable round keygen)": (
            min(map(len, keys)) < len(sites)
        ),
        f"{len(sites)} sites: a round needs 2 to {MAX_SITES:,}": (not 2 <= len(sites) <= MAX_SITES),
    }
    raise_first(RoundError, faults)


def check_coordinator(round_: "Round", keys: Keys) -> None:
    """Raise `RoundError` unless these are the keys that opened the round."""
    if keys.card != round_.coordinator:
        raise RoundError(
            f"these are the keys of {keys.card.name!r} ({keys.card.fingerprint}), but the round "
            f"was opened by {round_.coordinator.name!r} ({round_.coordinator.fingerprint}): the "
            "sites follow only its coordinator; give the --key that opened it"
        )
