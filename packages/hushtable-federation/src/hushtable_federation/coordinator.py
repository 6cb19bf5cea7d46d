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
from hushtable.errors import FileError, HushTableError, RoundError, UsageError, explain
from hushtable.plans.draws import Purpose
from hushtable.plans.plan import Plan
from hushtable_federation.credentials import BY_DEFAULT, FolderAddress
from hushtable_federation.folder.mailbox import Store
from hushtable_federation.folder.round_folder import (
    DECIDED,
    Amendment,
    RoundFolder,
    post_round,
    rounds,
)
from hushtable_federation.keys import Card, Keys
from hushtable_federation.online.carriers import Carrier, Nodes
from hushtable_federation.online.secure_sum import Journal, SecureSum, path_of
from hushtable_federation.round import Round, check_coordinator
from hushtable_federation.visits import CoordinatorVisit, Visit


def tables_after(plan: Plan, result: Noised, *, seed: int | None = None) -> Plan:
    """Draw the tables that follow from the marginals of all sites.

    Parameters
    ----------
    plan : Plan
        The plan of the marginals.
    result : Release
        The marginals of all sites.
    seed : int, optional
        Seed of the hash functions; by default, fresh entropy.

    Raises
    ------
    RoundError, PlanError, UsageError
        If they are not marginals, belong to another plan, or were not designed for a budget.
    """
    if plan.purpose is not Purpose.MARGINALS:
        raise RoundError(f"the plan is of {plan.detector}: tables are drawn from marginals")
    if plan.design is None:
        raise RoundError(
            "the marginals' plan was not designed for a budget: open the first round with a "
            "schema and --expected-rows"
        )
    return Plan.draw(plan.schema, marginals=result, random_state=seed, **plan.design.to_dict())


def round_after(
    first: Round,
    plan: Plan,
    keys: Keys,
    deadline: datetime,
    *,
    epsilon: float | None = None,
) -> Round:
    """Sign the next round of a campaign, with the same sites and terms.

    ``epsilon`` is a different total. Raise `RoundError` if others opened the first round, and what
    `Round.open` raises.
    """
    check_coordinator(first, keys)
    terms = first.terms
    return Round.open(
        plan,
        first.sites,
        keys,
        epsilon=terms.epsilon if epsilon is None else epsilon,
        delta=terms.delta,
        deadline=deadline,
        masked=terms.masked,
        least=terms.least,
        colluders=terms.colluders,
        adjacency=terms.adjacency,
        rows_per_person=terms.rows_per_person,
        title=first.title,
        previous=(*first.previous, first.round_id),
    )


@dataclass(frozen=True)
class Coordinator:
    """The coordinator of rounds, with its keys.

    Parameters
    ----------
    key : Path
        File of the coordinator's keys; its decisions are recorded in a folder beside them.
    results : Path
        Folder where results are written.
    address : FolderAddress
        The folder of rounds, if a call names none.

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
        """Open a coordinator by its key file, which is read only when needed."""
        return cls(Path(key), Path(results))

    @cached_property
    def keys(self) -> Keys:
        """Return the coordinator's keys."""
        return Keys.load(self.key)

    # --- in a folder --------------------------------------------------------------------------

    def post(self, folder: str | os.PathLike[str], *paths: str | os.PathLike[str]) -> list[str]:
        """Put rounds that these keys opened into a folder; return their file names there.

        Raise `RoundError` if others opened one of them.
        """
        posted = [Round.from_bytes(Path(path).read_bytes(), path) for path in paths]
        for round_ in posted:
            check_coordinator(round_, self.keys)
        store = Store.open(folder, self.keys.card.name, self.address)
        for round_ in posted:
            post_round(store, round_)
        return store.written

    def sync(
        self, folder: str | os.PathLike[str] = "", *, which: str = ""
    ) -> list[tuple[RoundFolder, Visit]]:
        """Do whatever is next in a folder; see `Site.sync`."""
        store = Store.open(folder, self.keys.card.name, self.address)
        return visit_rounds(store, self.keys.card, which, self.visit)

    def visit(self, round_folder: RoundFolder) -> Visit:
        """Do the next steps of one round."""
        make_results(self.results)
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
        """Extend a round in a folder, or drop sites; return the round and the amendment.

        Raise `RoundError` after it is decided which sites are in the sum.
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
            if Journal(journal, asked).decided().listed.sites:
                raise RoundError(DECIDED)
            return asked, round_folder.amend(
                self.keys, deadline=deadline, drop=tuple(drop), why=why
            )

    def _only(self, store: Store, which: str) -> Round:
        named = [round_ for round_ in rounds(store) if round_.round_id.startswith(which.lower())]
        mine = [round_ for round_ in named if round_.coordinator == self.keys.card]
        if len(mine) != 1:
            what = "no round" if not mine else f"{len(mine)} rounds"
            raise UsageError(
                f"{store.where} holds {what} of {self.keys.card.name!r} to amend: "
                + ("check the folder and the keys" if not mine else "name one (--which ID)")
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
        """Run one round, or the rest of it; write the result and, in any case, a report.

        Parameters
        ----------
        carrier : Carrier
            Brings requests to the sites.
        path, output : path-like
            Paths of the round and of the result. The report is in a file beside the result,
            ``*.state.json``, and is returned.
        timeout : float
            Seconds that a site has in each step.

        Raises
        ------
        HushTableError
            If round, keys or journal cannot be read, or do not belong together. A round that ends
            without a sum raises nothing: ``state["error"]`` contains the reason.
        """
        round_ = Round.from_bytes(Path(path).read_bytes(), path)
        state: dict[str, Any] = {"round_id": round_.round_id}
        nodes = Nodes(carrier, round_, self.keys, timeout)
        journal = path_of(self.key, round_)
        secure_sum = SecureSum(round_, self.keys, nodes, timeout=timeout, journal=journal)
        try:
            secure_sum.run().save(output)
            state |= {"done": True}
        except HushTableError as error:  # in our own words; at most one word is from a site
            state |= {"done": False, "error": str(error)}
        state |= {
            "nodes": sorted(nodes.nodes), "reached": secure_sum.reached, "lost": secure_sum.lost,
            "refused": nodes.refused,
        }  # fmt: skip
        text = json.dumps(state, indent=2) + "\n"
        files.write_bytes(Path(output).with_suffix(".state.json"), text.encode())
        return state


def make_results(folder: Path) -> None:
    """Create the folder for results; raise `FileError` before anything is sent if it cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(
            f"{folder}: this cannot be the folder for the result: {explain(error)} (it is named by "
            "--output, or by results = ... in the site's file)"
        ) from None


def visit_rounds(
    store: Store, card: Card, which: str, visit: Callable[[RoundFolder], Visit]
) -> list[tuple[RoundFolder, Visit]]:
    """Visit each round of a folder that a party takes part in; a failure stops only its round.

    Errors about the folder as a whole are raised. Raise `UsageError` if there is no such round.
    """
    chosen = [
        round_
        for round_ in rounds(store)
        if card in (round_.coordinator, *round_.sites) and round_.round_id.startswith(which.lower())
    ]
    if not chosen:
        raise no_round(store, card, which)
    visited = []
    for round_ in chosen:
        round_folder = RoundFolder(round_, store)
        try:
            visited.append((round_folder, visit(round_folder)))
        except HushTableError as error:
            if len(chosen) == 1:
                raise
            visited.append((round_folder, Visit().end("failed", str(error))))
    return visited


class NoRoundError(UsageError):
    """A folder holds no round yet, which is normal for a party that waits for one."""


def no_round(store: Store, me: Card | None, which: str | None) -> UsageError:
    """Return the error that a folder holds no round for a party, or none at all."""
    named = [
        card
        for round_ in rounds(store)
        for card in (*round_.sites, round_.coordinator)
        if me is not None and card.name == me.name
    ]
    if me is not None and named and not which:
        return UsageError(
            f"{store.where} names {me.name!r} with other keys (fingerprint "
            f"{named[-1].fingerprint}; these keys have {me.fingerprint}): give the keys that it "
            "names, or ask the coordinator for a round with the new card"
        )
    about = f" whose id begins with {which}" if which else ""
    of = "" if me is None else f" for {me.name!r}"
    return (UsageError if which else NoRoundError)(
        f"{store.where} holds no round{about}{of}: check the folder, or wait for the coordinator "
        "to put one there (hushtable round sync --post)"
    )
