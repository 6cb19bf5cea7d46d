"""The round: what a coordinator signs, and every site checks before it counts a row."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from os import PathLike
from typing import Any, Unpack

from hushtable import files
from hushtable.arguments import is_text
from hushtable.errors import PlanError, PrivacyError, RoundError, UsageError
from hushtable.federation.keys import Card, Keys
from hushtable.federation.layout import Layout
from hushtable.federation.terms import MAX_SITES, Asked, Terms
from hushtable.plans.plan import Plan
from hushtable.privacy.budget import (
    Cost,
    Sensitivity,
    check_public_delta,
    part_scale,
)
from hushtable.privacy.ledger import Ledger, Pool, Share

__all__ = ["CLOCKS", "Round", "now", "shown_time", "stamp"]

#: By how much the clocks of two machines may differ.
CLOCKS = timedelta(minutes=15)
#: What the eye passes over in a name.
_UNSEEN = str.maketrans("", "", " ._-")


@dataclass(frozen=True)
class Round:
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
        entries: dict[str, Any] = {
            "round": {
                "title": title,
                "opened": stamp(at or now()),
                "deadline": stamp(deadline),
                "coordinator": keys.card.to_dict(),
                "sites": [card.to_dict() for card in sorted(sites, key=lambda card: card.name)],
                "terms": agreed.to_dict(),
                "previous": list(previous),
            }
        }
        if isinstance(plan, Plan):
            mine, arrays = plan.entries()
        else:
            mine, arrays = {"layout": layout.to_dict()}, {}
        content = files.pack("round", entries | mine, arrays, keys.sign)
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
        round_ = read.manifest.get("round")
        keys = {"title", "opened", "deadline", "coordinator", "sites", "terms", "previous"}
        if (
            not isinstance(round_, dict)
            or set(round_) != keys
            or not isinstance(round_["title"], str)
            or not isinstance(round_["sites"], list)
            or not isinstance(round_["previous"], list)
            or not all(isinstance(one, str) for one in round_["previous"])
        ):
            raise PlanError(f"a round needs the entries {sorted(keys)}")
        try:
            sites = tuple(Card.from_dict(card) for card in round_["sites"])
            coordinator = Card.from_dict(round_["coordinator"])
            _check_roster(sites, coordinator)
        except RoundError as error:
            raise PlanError(str(error)) from None
        terms = Terms.from_dict(round_["terms"])
        if terms.least > len(sites):
            raise PlanError(f"{len(sites)} sites cannot be at least {terms.least}")
        _check_least(terms, sites, coordinator)
        layout = Layout.from_file(read)
        plan = Plan.from_file(read) if "plan" in read.manifest else None
        try:
            check_public_delta(terms.delta, (plan or layout).expected_rows)
        except PrivacyError as error:
            raise PlanError(f"terms: {error}") from None
        made = cls(
            read.digest,
            round_["title"],
            _time(round_["opened"]),
            _time(round_["deadline"]),
            coordinator,
            sites,
            terms,
            layout,
            plan,
            tuple(round_["previous"]),
            content,
        )
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
        return Ledger(
            self.terms.mechanism,
            self.sensitivity,
            self.terms.delta,
            (share,),
            self.layout.behind,
            self.pool,
        )


def now() -> datetime:
    """Return the time, UTC, in whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)


def stamp(at: datetime) -> str:
    """Return a time as files have it: ISO 8601, UTC, in whole seconds."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def shown_time(at: datetime) -> str:
    """Return a time as people read it."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _time(text: Any) -> datetime:
    try:
        at = datetime.fromisoformat(text)
        if stamp(at) == text:
            return at
    except (TypeError, ValueError, OverflowError):
        pass
    raise PlanError(f"time {text!r}: needs the form 2027-03-31T12:00:00Z")


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


def _check_least(terms: Terms, sites: Sequence[Card], coordinator: Card) -> None:
    """Raise `PlanError` if two lists of who dropped out could each find enough signatures.

    The coordinator may show one list to some sites and another to others, and get both secrets of
    a site that is on one of them only. An honest site signs one list; a site in league with the
    coordinator signs both, and so does the coordinator itself where it is a site. Two lists then
    need ``2 least`` signatures of at most n + c (+ 1).
    """
    if not terms.masked:
        return
    n, colluders = len(sites), terms.colluders
    twice = colluders + (coordinator in sites)
    if 2 * terms.least <= n + twice:
        also = ", and the coordinator is a site itself" if coordinator in sites else ""
        raise PlanError(
            f"at least {terms.least} of {n} sites under masks, {colluders} colluding{also}: needs "
            f"{(n + twice) // 2 + 1} or more"
        )


def _check_roster(sites: Sequence[Card], coordinator: Card) -> None:
    names = [card.name for card in sites]
    if names != sorted(set(names)):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise RoundError(
            f"several cards are those of {twice}: each site needs a name of its own"
            if twice
            else "the roster is not sorted by name"
        )
    if coordinator.name in names and coordinator not in sites:
        raise RoundError(
            f"the coordinator and a site are both named {coordinator.name!r}, with different keys: "
            "each needs a name of its own"
        )
    alike = {name.casefold().translate(_UNSEEN): name for name in names}
    if len(alike) < len(names):
        one = next(name for name in names if alike[name.casefold().translate(_UNSEEN)] != name)
        raise RoundError(
            f"the site {one!r} has a name that looks like another's: names have to differ in more "
            "than spaces, dots, hyphens, underscores and capital letters"
        )
    if len({card.signing for card in sites}) < len(sites) or (
        len({card.masking for card in sites}) < len(sites)
    ):
        raise RoundError(
            "two sites have the same keys: each needs its own (hushtable round keygen)"
        )
    if not 2 <= len(sites) <= MAX_SITES:
        raise RoundError(f"{len(sites)} sites: a round needs 2 to {MAX_SITES:,}")
