"""The coordinator of rounds: in a folder, over a carrier, and from one round to the next."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from hushtable import files
from hushtable.counts.base import Noised
from hushtable.errors import HushTableError, RoundError, UsageError
from hushtable.plans.draws import Purpose
from hushtable.plans.plan import Plan
from hushtable_federation.credentials import BY_DEFAULT, FolderAddress
from hushtable_federation.folder.coordinator_visit import CoordinatorVisit
from hushtable_federation.folder.mailbox import Store
from hushtable_federation.folder.round_folder import (
    DECIDED,
    Amendment,
    RoundFolder,
    post_round,
    rounds,
)
from hushtable_federation.hidden import draw_hidden
from hushtable_federation.keys import Card, Keys
from hushtable_federation.layout import Layout
from hushtable_federation.online.carriers import Carrier, Nodes
from hushtable_federation.online.secure_sum import SecureSum
from hushtable_federation.online.tally import path_of, read_decided
from hushtable_federation.round import Round, check_coordinator
from hushtable_federation.visit import Visit


def tables_after(
    plan: Plan, result: Noised, *, seed: int | None = None, secret: bytes | None = None
) -> Plan:
    """Draw the tables that follow from the marginals of all sites.

    Parameters
    ----------
    plan : Plan
        Of the marginals.
    result : Release or Sealed
        The marginals of all sites.
    seed : int, optional
        Of the hash functions; fresh entropy by default.
    secret : bytes, optional
        What the sites share: the plan is then hidden, and each of them draws the same, to the bit.

    Raises
    ------
    RoundError, PlanError, UsageError
        If they are no marginals, of another plan, or were not laid out for a budget; or if the
        secret is short.
    """
    if plan.purpose is not Purpose.MARGINALS:
        raise RoundError(f"the plan is of {plan.detector}: tables are drawn from marginals")
    if plan.design is None:
        raise RoundError(
            "the marginals' plan was not laid out for a budget: open the first round with a schema "
            "and --expected-rows"
        )
    marginals, terms = result.open(plan), plan.design.to_dict()
    if secret is None:
        return Plan.draw(plan.schema, marginals=marginals, random_state=seed, **terms)
    return draw_hidden(secret, plan.schema, marginals=marginals, **terms)


def following(
    asked: Round, result: Noised, keys: Keys, deadline: datetime, ranks: float | None = None
) -> Round | None:
    """Sign the round that follows in a campaign whose plans are no secret; None at its end.

    Parameters
    ----------
    asked : Round
        About marginals, or about tables.
    result : Release or Sealed
        Of it.
    keys : Keys
        The coordinator's.
    deadline : datetime
        Of the round that follows.
    ranks : float, optional
        Total epsilon of the whole campaign, where the tables are followed by a round that gives
        rows ranks; it has to leave something for that.

    Raises
    ------
    RoundError, PlanError, UsageError, PrivacyError
        If nothing can be drawn from this result, or no budget is left.
    """
    plan = asked.plan
    if plan is None:
        raise RoundError(
            "the plan of this round is hidden: its sites draw what follows (hushtable round next "
            "ROUND RESULT --secret FILE)"
        )
    if plan.purpose is Purpose.MARGINALS:
        return round_after(asked, tables_after(plan, result), keys, deadline)
    if ranks is None or not plan.purpose.scores_rows:
        return None
    return round_after(asked, Plan.ranks(result.open(plan)), keys, deadline, epsilon=ranks)


def round_after(
    first: Round,
    what: Plan | Layout,
    keys: Keys,
    deadline: datetime,
    *,
    epsilon: float | None = None,
) -> Round:
    """Sign the round that follows in a campaign: of the same sites, on the same terms.

    ``epsilon`` is another total. Raises `RoundError` if the first was opened by others, and what
    `Round.open` raises.
    """
    check_coordinator(first, keys)
    terms = first.terms
    return Round.open(
        what,
        first.sites,
        keys,
        epsilon=terms.epsilon if epsilon is None else epsilon,
        delta=terms.delta,
        deadline=deadline,
        masked=terms.masked,
        least=terms.least,
        colluders=terms.colluders,
        max_rows=terms.max_rows,
        adjacency=terms.adjacency,
        rows_per_person=terms.rows_per_person,
        title=first.title,
        previous=(*first.previous, first.round_id),
    )


def check_drawn_from(layout: Layout, result: Noised) -> Layout:
    """Return a layout if it says that its plan was drawn from a result, at the cost of that.

    Raises `RoundError` otherwise: a round of it would not count what was spent before.
    """
    if not set(result.spent()) <= set(layout.behind):
        raise RoundError(
            f"the plan {layout.plan_id[:12]} was not drawn from this result: get the layout that a "
            "site makes of it (hushtable round next ROUND RESULT --secret FILE --layout FILE)"
        )
    return layout


@dataclass(frozen=True)
class Coordinator:
    """The coordinator of rounds, by its keys.

    Parameters
    ----------
    key : Path
        The coordinator's keys; its decisions are written down in a folder beside them.
    results : Path
        Folder where results are written.
    address : FolderAddress
        Where the rounds live, where no folder is named.

    Examples
    --------
    >>> from hushtable_federation import Coordinator
    >>> lead = Coordinator.open("lead.key")
    >>> lead.post("shared/round-1", "round.hush")  # doctest: +SKIP
    >>> lead.sync("shared/round-1")  # doctest: +SKIP
    """

    key: Path
    results: Path = Path()
    address: FolderAddress = BY_DEFAULT

    @classmethod
    def open(
        cls, key: str | os.PathLike[str], results: str | os.PathLike[str] = "."
    ) -> "Coordinator":
        """Open a coordinator by the file of its keys, which is read where it is needed."""
        return cls(Path(key), Path(results))

    @cached_property
    def keys(self) -> Keys:
        """The coordinator's keys."""
        return Keys.load(self.key)

    # --- in a folder --------------------------------------------------------------------------

    def post(self, folder: str | os.PathLike[str], *paths: str | os.PathLike[str]) -> list[str]:
        """Put files of rounds, which these keys opened, into a folder; return their names there.

        Raises `RoundError` if others opened one of them.
        """
        found = [Round.from_bytes(Path(path).read_bytes(), path) for path in paths]
        for one in found:
            check_coordinator(one, self.keys)
        store = Store.open(folder, self.keys.card.name, self.address)
        for one in found:
            post_round(store, one)
        return store.written

    def sync(
        self, folder: str | os.PathLike[str] = "", *, which: str = ""
    ) -> list[tuple[RoundFolder, Visit]]:
        """Do whatever is to be done next in a folder; see `Site.sync`."""
        store = Store.open(folder, self.keys.card.name, self.address)
        return visit_rounds(store, self.keys.card, which, self.visit)

    def visit(self, round_folder: RoundFolder) -> Visit:
        """Do what is to be done in one round."""
        result = self.results / f"{round_folder.round.round_id[:12]}.result.hush"
        journal = path_of(self.key, round_folder.round)
        return CoordinatorVisit(round_folder, self.keys, journal, result).run()

    def amend(
        self,
        folder: str | os.PathLike[str],
        *,
        which: str = "",
        deadline: datetime | None = None,
        drop: Sequence[str] = (),
        why: str = "",
    ) -> tuple[Round, Amendment]:
        """Extend a round in a folder, or go on without sites; return the round and what holds.

        Raises `RoundError` once it is decided who is in the sum.
        """
        store = Store.open(folder, self.keys.card.name, self.address)
        asked = self._only(store, which)
        journal = path_of(self.key, asked)
        with files.locked(journal):  # two amendments of one number would stop the round
            round_folder = RoundFolder(asked, store)
            if any(True for _ in round_folder.results()):
                raise RoundError(
                    f"round {asked.round_id[:12]} is over: its result is in {store.where}"
                )
            if journal.exists() and read_decided(journal, asked).sites:
                raise RoundError(DECIDED)
            return asked, round_folder.amend(
                self.keys, deadline=deadline, drop=tuple(drop), why=why
            )

    def _only(self, store: Store, which: str) -> Round:
        found = [one for one in rounds(store) if one.round_id.startswith(which.lower())]
        mine = [one for one in found if one.coordinator == self.keys.card]
        if len(mine) != 1:
            what = "no round" if not mine else f"{len(mine)} rounds"
            raise UsageError(
                f"{store.where} holds {what} of {self.keys.card.name!r} to amend: "
                + ("check the folder and the keys" if not mine else "say which one (--which ID)")
            )
        return mine[0]

    # --- over a carrier -----------------------------------------------------------------------

    def run(
        self,
        carrier: Carrier,
        path: str | os.PathLike[str],
        output: str | os.PathLike[str],
        *,
        timeout: float = 600.0,
    ) -> dict[str, Any]:
        """Run one round, or what is left of it; write the result, and in any case how it went.

        Parameters
        ----------
        carrier : Carrier
            Brings requests to the sites.
        path, output : path-like
            Of the round, and of the result. How it went is in a file beside the result,
            ``*.state.json``, and returned.
        timeout : float
            Seconds that a site has in each step.

        Raises
        ------
        HushTableError
            If round, keys or journal cannot be read, or are not of each other. A round that ends
            without a sum raises nothing: ``state["error"]`` says why.
        """
        round_ = Round.from_bytes(Path(path).read_bytes(), path)
        state: dict[str, Any] = {"round_id": round_.round_id}
        nodes = Nodes(carrier, round_, self.keys, timeout)
        secure_sum = self.secure_sum(round_, nodes, timeout)
        try:
            secure_sum.run().save(output)
            state |= {"done": True}
        except HushTableError as error:  # in this side's words: of a site's, one at most is in it
            state |= {"done": False, "error": str(error)}
        state |= {"nodes": sorted(nodes.nodes), "reached": secure_sum.reached}
        state |= {"lost": secure_sum.lost, "refused": nodes.refused}
        text = json.dumps(state, indent=2) + "\n"
        files.write_bytes(Path(output).with_suffix(".state.json"), text.encode())
        return state

    def secure_sum(self, round_: Round, nodes: Nodes, timeout: float) -> SecureSum:
        """Return the sum of a round, which goes on from what was decided before."""
        journal = path_of(self.key, round_)
        return SecureSum(round_, self.keys, nodes, timeout=timeout, journal=journal)


def visit_rounds(
    store: Store, card: Card, which: str, visit: Callable[[RoundFolder], Visit]
) -> list[tuple[RoundFolder, Visit]]:
    """Visit each round of a folder that a party takes part in; of several, none hinders another.

    What hinders the folder as a whole is raised. Raises `UsageError` if there is no such round.
    """
    found = [
        one
        for one in rounds(store)
        if card in (one.coordinator, *one.sites) and one.round_id.startswith(which.lower())
    ]
    if not found:
        raise no_round(store, card, which)
    visited = []
    for one in found:
        round_folder = RoundFolder(one, store)
        try:
            visited.append((round_folder, visit(round_folder)))
        except HushTableError as error:
            if len(found) == 1:
                raise
            visited.append((round_folder, Visit(is_private=True).end("failed", str(error))))
    return visited


class NoRoundError(UsageError):
    """A folder holds no round yet, which is no fault of anyone who waits for one."""


def no_round(store: Store, me: Card | None, which: str | None) -> UsageError:
    """Return the error that a folder holds no round for someone, or none at all."""
    named = [
        card
        for one in rounds(store)
        for card in (*one.sites, one.coordinator)
        if me is not None and card.name == me.name
    ]
    if me is not None and named and not which:
        return UsageError(
            f"{store.where} names {me.name!r} with other keys (fingerprint "
            f"{named[-1].fingerprint}; that of these is {me.fingerprint}): give those keys, or ask "
            "the coordinator for a round with the new card"
        )
    about = f" whose id begins with {which}" if which else ""
    of = "" if me is None else f" for {me.name!r}"
    return (UsageError if which else NoRoundError)(
        f"{store.where} holds no round{about}{of}: check the folder, or wait for the coordinator "
        "to put one there (hushtable round sync --post)"
    )
