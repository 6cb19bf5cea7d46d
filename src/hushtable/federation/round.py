"""The round: what a coordinator signs, and every site checks before it counts a row."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from os import PathLike
from typing import Unpack

from hushtable import files
from hushtable.arguments import is_text
from hushtable.counts.releasing import check_adjacency
from hushtable.display import Displayed
from hushtable.entries import entries
from hushtable.errors import PlanError, PrivacyError, RoundError, UsageError
from hushtable.federation.clock import CLOCKS, now, parsed, shown_time, stamp
from hushtable.federation.keys import Card, Keys
from hushtable.federation.layout import Layout
from hushtable.federation.roster import check_least, check_roster
from hushtable.federation.terms import Asked, Terms
from hushtable.plans.plan import Plan
from hushtable.privacy.budget import Cost, Sensitivity, check_public_delta, part_scale
from hushtable.privacy.ledger import Ledger, Pool, Share

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

    Examples
    --------
    >>> from datetime import UTC, datetime, timedelta
    >>> from hushtable import Feature, Plan, Schema
    >>> from hushtable.federation import Keys, Round
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
        **terms: Unpack[Asked],
    ) -> "Round":
        """Sign a round.

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
        **terms
            ``epsilon`` and, if need be, ``delta``, ``adjacency``, ``rows_per_person`` and
            ``share``, as in `Sketch.release`; and how the noise is shared: ``masked`` (default
            True) is whether the sites share it under masks that cancel only in the sum.
            ``least``: sites without which there is no result; by default all in a masked round,
            and 2 otherwise. Fewer than all in a masked round needs the online form, which
            recovers from sites that drop out. ``colluders`` (default 0): sites that may pass
            their part of the noise on to the reader of the sum without breaking the bound: the
            others add the more.

        Raises
        ------
        UsageError, RoundError, PrivacyError
            If roster, deadline or terms cannot be.
        """
        _check_asked(plan, deadline, title, previous)
        layout = plan if isinstance(plan, Layout) else Layout.of(plan)
        if terms.get("share") is None:
            terms["share"] = layout.share
        agreed = Terms.agreed(len(sites), **terms)
        check_public_delta(agreed.delta, plan.expected_rows)
        said = {
            "title": title,
            "opened": stamp(at or now()),
            "deadline": stamp(deadline),
            "coordinator": keys.card.to_dict(),
            "sites": [card.to_dict() for card in sorted(sites, key=lambda card: card.name)],
            "terms": agreed.to_dict(),
            "previous": list(previous),
        }
        if isinstance(plan, Plan):
            mine, arrays = plan.entries()
        else:
            mine, arrays = {"layout": layout.to_dict()}, {}
        content = files.pack("round", {"round": said} | mine, arrays, keys.sign)
        opened = cls.from_bytes(content, "the round")
        if opened.deadline <= opened.opened:
            raise UsageError(
                f"the deadline {shown_time(deadline)} has passed: give one in the future"
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
        said = entries(read.manifest.get("round"), "a round", _ENTRIES)
        terms, layout = Terms.from_dict(said["terms"]), Layout.from_file(read)
        plan = Plan.from_file(read) if "plan" in read.manifest else None
        try:
            sites = tuple(Card.from_dict(card) for card in said["sites"])
            coordinator = Card.from_dict(said["coordinator"])
            check_roster(sites, coordinator)
            check_least(terms, sites, coordinator)
            opened, deadline = parsed(said["opened"]), parsed(said["deadline"])
        except (RoundError, ValueError) as error:
            raise PlanError(str(error)) from None
        try:
            check_public_delta(terms.delta, (plan or layout).expected_rows)
        except PrivacyError as error:
            raise PlanError(f"terms: {error}") from None
        about = read.digest, said["title"], opened, deadline
        previous = tuple(said["previous"])
        made = cls(*about, coordinator, sites, terms, layout, plan, previous, content)
        made.site_scale  # noqa: B018 (a budget that is exhausted already is refused here)
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

    # --- what it costs ------------------------------------------------------------------------

    @property
    def sensitivity(self) -> Sensitivity:
        """By how much one person changes the counts."""
        check_adjacency(self.layout.detector, self.terms.adjacency)
        return self.terms.sensitivity(len(self.layout.cells))

    @property
    def pool(self) -> Pool | None:
        """How the noise is shared, in a masked round."""
        return self.terms.pool(self.round_id)

    @property
    def site_scale(self) -> float:
        """Scale of the noise that each site adds, in counts."""
        before = Cost.total(spent.cost for spent in self.layout.behind)
        scale = self.terms.scale(self.sensitivity, before)
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
            terms.accounting,
        )  # fmt: skip


def _check_asked(
    plan: Plan | Layout, deadline: datetime, title: str, previous: Sequence[str]
) -> None:
    """Raise `UsageError` or `PrivacyError` if a round cannot be opened with these arguments."""
    if deadline.tzinfo is None:
        raise UsageError("the deadline needs a time zone")
    if not is_text(title):
        raise UsageError(f"title={title!r}: needs a text")
    several = isinstance(previous, Sequence) and not isinstance(previous, str)
    if not several or not all(map(is_text, previous)):
        raise UsageError(f"previous={previous!r}: needs a list of ids of rounds")
    if isinstance(plan, Plan) and plan.hidden:
        raise PrivacyError(
            "the plan's hash functions are hidden from the coordinator, and a round holds its "
            "plan: open it with the layout (hushtable plan hide PLAN -o layout.hush)"
        )
