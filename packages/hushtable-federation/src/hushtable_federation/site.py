"""A site of a federation: its keys, book, policy and rows, and one call that does the next step."""

import glob
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hushtable.counts.base import Noised, check_coupled
from hushtable.counts.sketch import Sketch
from hushtable.data.options import RowOptions, notes, person_columns
from hushtable.data.readers import Reader
from hushtable.errors import (
    DataError,
    HushTableError,
    MissingColumnError,
    PlanError,
    PrivacyError,
    RoundError,
    UsageError,
)
from hushtable.plans.draws import Purpose
from hushtable.plans.plan import Plan
from hushtable_federation.book.book import Book
from hushtable_federation.book.digests import Period, RowDigester, RowDigests
from hushtable_federation.clock import now, stamp
from hushtable_federation.coordinator import Coordinator, make_results, visit_rounds
from hushtable_federation.folder.mailbox import Store
from hushtable_federation.folder.round_folder import REFUSED, RoundFolder
from hushtable_federation.keys import Card, Keys
from hushtable_federation.online.site import OnlineSite, Statement
from hushtable_federation.policy import Approval, Policy, Role, load_policy, parties
from hushtable_federation.protocol.messages import Message
from hushtable_federation.refusals import Refusal, Refused, SiteLog, refusing
from hushtable_federation.reply import Reply, trust
from hushtable_federation.round import Round
from hushtable_federation.settings import SiteSettings
from hushtable_federation.submission import cost
from hushtable_federation.visits import SiteVisit, State, Visit

if TYPE_CHECKING:
    from hushtable_federation.home import HomeModel


class Attendant:
    """The person at a site while it answers, or no one: this base class asks and shows nothing.

    Attributes
    ----------
    attended : bool
        Whether a person reviews rounds; without one, the site's policy has to allow unattended
        answers.
    cards : sequence of Card
        Cards that their owners gave: they are trusted from now on.
    statement : Statement
        What the person states about the rows.
    """

    attended = False
    cards: Sequence[Card] = ()
    statement = Statement()

    def confirm(self, reply: Reply) -> None:
        """Show the request, and ask for consent; raise to stop before anything is counted."""

    def report(self, reply: Reply, rows: "SiteRows") -> None:
        """Show what was counted, only at the site."""

    def reading(self, reader: Reader) -> AbstractContextManager[Reader]:
        """Return a reader of the same rows that shows its progress."""
        return nullcontext(reader)


NOBODY = Attendant()


class SiteRows:
    """The rows of a site: read as its settings state, counted, and identified by digests."""

    def __init__(self, settings: SiteSettings, book: Book, attendant: Attendant) -> None:
        self._settings, self._book, self._attendant = settings, book, attendant
        self._reader: Reader | None = None
        self._digester: RowDigester | None = None
        self.sketch: Sketch | None = None

    @cached_property
    def policy(self) -> Policy:
        """Return the site's policy, as it is during this visit."""
        return load_policy(self._settings.policy)

    def open(self, plan: Plan) -> Reader:
        """Open the rows under a plan's schema; raise if they cannot be read."""
        settings, known = self._settings, len(notes)
        if settings.rows is None:
            raise UsageError("no rows were given: name them in the site's file (rows = ...)")
        keep, attended = person_columns(settings.person, plan.schema), self._attendant.attended
        try:
            self._reader = RowOptions(**settings.reads).open_as(
                settings.rows, plan.schema, keep=keep, attended=attended
            )
        except MissingColumnError as error:
            lacking = [name for name in error.columns if name in plan.schema.names]
            if not lacking:
                raise
            raise DataError(f"{error.args[0]}. {_without(lacking, settings)}") from None
        except DataError as error:
            words = error.args[0]
            if "--" not in words or settings.path is None:
                raise
            raise DataError(
                f"{settings.path}: each option in this message is an entry of this file, with _ "
                f"for -: {words}"
            ) from None
        finally:
            if not attended:  # never read
                del notes[known:]
        return self._reader

    def check(self, plan: Plan) -> None:
        """Raise `PrivacyError` if rows depend on records of several persons; no value decides."""
        reader = self.open(plan) if self._reader is None else self._reader
        if self.policy.independent:  # a round's rows are never joined
            reader = replace(reader, coupled=tuple(pair for pair in reader.coupled if pair.key))
        with refusing(Refusal.POLICY):
            check_coupled(plan, reader, self._settings.person)
        self._reader = reader

    def count(self, round_: Round) -> Sketch:
        """Return the sketch of the rows, with at most the rows per person that the round states."""
        plan = round_.plan
        self.check(plan)
        persons: dict[str, Any] = {}
        if self._settings.person is not None:
            persons = {
                "person": self._settings.person,
                "rows_per_person": round_.terms.rows_per_person,
                "key": self._book.persons_key,
                "known": self._book.barred(self._settings.data_set, Period.of(round_)),
            }
        self._digester = self._book.digester(plan.schema)
        assert self._reader is not None
        with self._attendant.reading(self._digester.watch(self._reader)) as reader:
            self.sketch = Sketch.from_data(
                plan,
                reader,
                n_jobs=self._settings.threads,
                allow_empty=True,
                attended=self._attendant.attended,
                **persons,
            )
        return self.sketch

    @property
    def n_read(self) -> int:
        """Return how many rows were read, whether or not they were counted."""
        return 0 if self._digester is None else self._digester.n_rows

    def digests(self) -> RowDigests | None:
        """Return the digests that identify the counted rows later; None if no rows were counted."""
        return self._digester.digests() if self._digester is not None and self.n_read else None


def _without(lacking: Sequence[str], settings: SiteSettings) -> str:
    option = f"--key {settings.key}" if settings.path is None else f"--site {settings.path}"
    named = ", ".join(map(repr, lacking))
    return (
        f"If this site does not have {named}, ask the coordinator for a plan without it: a round "
        "that is opened again with a schema that does not list it (hushtable round open). Or, if "
        f"the coordinator agrees, add an empty column named {named} to a copy of the rows, and "
        f"visit with it (hushtable round sync FOLDER COPY {option}): all its values are then "
        "counted as missing"
    )


class Site:
    """A site of a federation, as its file ``north.toml`` describes it.

    Parameters
    ----------
    settings : SiteSettings
        The settings of the site.

    Examples
    --------
    >>> from hushtable_federation import Site
    >>> Site.open("north.toml").sync("shared/round-1")  # doctest: +SKIP
    """

    def __init__(self, settings: SiteSettings) -> None:
        self.settings = settings

    @classmethod
    def open(cls, path: str | os.PathLike[str], **changes: Any) -> "Site":
        """Open a site.

        Parameters
        ----------
        path : path-like
            The site's file, or its keys: then the file beside them applies, if there is one.
        **changes
            Settings that replace those in the file.

        Raises
        ------
        FileError
            If an entry of the file is unknown, missing or contradicts another one; the message
            names its line.
        """
        return cls(replace(SiteSettings.load(path), **changes))

    @cached_property
    def keys(self) -> Keys:
        """Return the site's keys."""
        return Keys.load(self.settings.key)

    @property
    def card(self) -> Card:
        """Return the site's card, the public half of its keys."""
        return self.keys.card

    @cached_property
    def lead(self) -> Coordinator:
        """Return the coordinator with these keys."""
        return Coordinator(self.settings.key, self.settings.results, self.settings.address)

    def book(self) -> Book:
        """Open the site's book, a context manager."""
        return Book.open(self.settings.book, self.card)

    # --- visits -------------------------------------------------------------------------------

    def sync(
        self,
        folder: str | os.PathLike[str] = "",
        *,
        which: str = "",
        attendant: Attendant = NOBODY,
    ) -> list[tuple[RoundFolder, Visit]]:
        """Do whatever is next in a folder of rounds.

        Parameters
        ----------
        folder : str or path-like
            A directory, or a URL that fsspec knows; by default, the one in the site's file.
        which : str
            First digits of a round's id; by default, all rounds that this site takes part in.
        attendant : Attendant
            Who is asked before something is sent; by default no one, so the policy decides.

        Returns
        -------
        list of (RoundFolder, Visit)
            Each round with the outcome of the visit. Call again until ``visit.state`` is "done" or
            "left-out".

        Raises
        ------
        UsageError
            If the folder holds no round for this site.
        HushTableError
            Whatever stops the site in its only round; with several rounds, the visit's words report
            it.
        """
        store = Store.open(folder, self.card.name, self.settings.address)
        return visit_rounds(store, self.card, which, partial(self.visit, attendant=attendant))

    def visit(self, round_folder: RoundFolder, attendant: Attendant = NOBODY) -> Visit:
        """Do the next step of one round, as a site and, if this is its coordinator, as that."""
        make_results(self.settings.results)
        visit = Visit()
        if self.card in round_folder.round.sites:
            visit = self._visit(round_folder, attendant)
        if self.card == round_folder.round.coordinator:
            visit = self.lead.visit(round_folder).after(visit)
        return visit

    def _visit(self, round_folder: RoundFolder, attendant: Attendant) -> Visit:
        with self.book() as book:
            trust(book, round_folder.round, attendant.cards, "card")
            rows = SiteRows(self.settings, book, attendant)
            online = self._online(book, rows, attendant)
            begin = None
            if self.settings.rows is not None:
                begin = partial(self._begin, round_folder.round, online, rows, attendant)
            try:
                return SiteVisit(
                    round_folder, self.card, book, begin, online, self.result(round_folder.round)
                ).run()
            except HushTableError as error:
                if attendant.attended:
                    raise
                word = Refusal(error.word or Refusal.UNAVAILABLE)
                return self._refuse(round_folder, book, str(error), word)

    def refuse(self, round_folder: RoundFolder, why: str, word: Refusal = Refusal.POLICY) -> Visit:
        """Refuse to answer a round, when a person decides so; this costs nothing.

        The site may still answer while the round is open, unless it has counted its rows: then it
        forgets these counts and its key for the round, and never sends anything about them.

        Parameters
        ----------
        round_folder : RoundFolder
            The folder of the round.
        why : str
            The reason, for the log beside the book; it is not sent.
        word : Refusal
            The word that the others see, signed.

        Raises
        ------
        RoundError
            If the site does not take part, or has answered: what was sent cannot be taken back.
        """
        asked = round_folder.round
        if self.card not in asked.sites:
            raise RoundError(f"{self.card.name!r} takes no part in round {asked.round_id[:12]}")
        with self.book() as book:
            if book.answer(asked.round_id) is not None:
                raise RoundError(
                    f"this site has answered round {asked.round_id[:12]}, and what was sent cannot "
                    "be taken back: ask the coordinator to continue without the site (hushtable "
                    "round amend --drop)"
                )
            book.forget_steps(asked.round_id)
            return self._refuse(round_folder, book, why, word)

    def _refuse(self, round_folder: RoundFolder, book: Book, why: str, word: Refusal) -> Visit:
        round_id = round_folder.round.round_id
        self._log(book).write(stamp(now()), round_id, "begin", word, why)
        round_folder.add(REFUSED, self.card.name, Message.refuse(round_id, self.keys, word))
        state: State = "failed" if word is Refusal.UNAVAILABLE else "refused"
        return Visit().end(state, f"Refused ({word}): {why}")

    def model(self, result: Noised, marginals: Noised | None = None) -> "HomeModel":
        """Return the site's home model: its own rows next to the counts of all others in a result.

        Nothing is sent, and it costs no epsilon, because the rows are only read locally.

        Parameters
        ----------
        result : Release
            The result of a round about a model's tables, in which this site took part.
        marginals : Release, optional
            The result of the campaign's first round, about the columns: reasons then state what is
            usual elsewhere.

        Raises
        ------
        RoundError
            If the site has no part in a result, or no one else has.
        UsageError
            If the result is about something else.
        """
        # SciPy and scikit-learn take a second to import.
        from hushtable_federation.comparison import others_in
        from hushtable_federation.home import HomeModel

        with self.book() as book:
            others, rows = others_in(result, book), SiteRows(self.settings, book, NOBODY)
            columns = None if marginals is None else others_in(marginals, book, Purpose.MARGINALS)
            home = HomeModel.fit(
                rows.open(result.plan), others, marginals=columns, n_jobs=self.settings.threads
            )
        # Rows to score later are read like those of the site's file.
        home.here.reading_ = RowOptions(**self.settings.reads).reading
        return home

    def result(self, round_: Round) -> Path:
        """Return the path that the result of a round is written to."""
        return self.settings.results / f"{round_.round_id[:12]}.result.hush"

    def _begin(
        self, round_: Round, online: OnlineSite, rows: SiteRows, attendant: Attendant
    ) -> dict[str, bytes]:
        reply = online.reply(round_)
        # Refuse what can be refused without asking a person, then ask.
        has_persons = self.settings.person is not None
        reply.check_persons(has_persons)
        if has_persons and attendant.statement.new_people and reply.earlier is None:
            reply.book.check_others(reply.data_set)
        rows.check(reply.plan)
        attendant.confirm(reply)
        # A person may have taken long, so that the round has to be checked again.
        sent = online.begin(round_, None if attendant.attended else reply)
        attendant.report(reply, rows)
        return sent

    # --- over a carrier -----------------------------------------------------------------------

    def answer(self, request: bytes) -> bytes:
        """Return the signed answer to a coordinator's request, or a signed word of refusal.

        The state is in the site's book, so any process may answer the next request.

        Raises
        ------
        HushTableError, OSError
            If keys, book, policy or approvals cannot be opened, so that nothing can be
            signed.
        """
        with self.book() as book:
            rows = SiteRows(self.settings, book, NOBODY)
            return self._online(book, rows, NOBODY).answer(request)

    # --- what a site answers with -------------------------------------------------------------

    def approvals(self) -> dict[str, Approval]:
        """Return the officer's approvals by round; a named file has to exist."""
        pattern = self.settings.approvals
        paths = glob.glob(pattern)
        if pattern and not paths and not glob.has_magic(pattern):
            paths = [pattern]
        return {approval.round_id: approval for approval in map(Approval.load, paths)}

    def _online(self, book: Book, rows: SiteRows, attendant: Attendant) -> OnlineSite:
        return OnlineSite(
            self.keys,
            book,
            rows.count,
            recognise=rows.digests,
            approvals=self.approvals(),
            statement=attendant.statement,
            log=self._log(book),
            policy=rows.policy,
            data_set=self.settings.data_set,
            attended=attendant.attended,
        )

    def _log(self, book: Book) -> SiteLog:
        return SiteLog(Path(book.path).with_suffix(".log"))


# --- before it answers ----------------------------------------------------------------------------


@dataclass
class Standing:
    """The judgement of a site's policy and book on a round; nothing is counted, recorded or sent.

    Attributes
    ----------
    known : dict of str to str
        By role and name, such as ``"site south"``: ``"this site"``, ``"known"`` or ``"not known
        here"``.
    words : list of str
        The query that makes the site's rows, if there is one; and what the round would cost, or
        why the site refuses it.
    word : Refusal or None
        The word of the refusal; None if policy and book allow the round.
    forbidden : bool
        Whether it is refused regardless of who is known and of what the officer signs.
    strangers : list of Card
        Cards that the site will know after a person here has compared their fingerprints.
    officer : str
        Fingerprint of the officer who has to sign; empty if no signature is needed.
    epsilon : float or None
        The total cost of all rounds about the rows after this one; None if it is forbidden.
    beside_cost : str
        What the round's own cost does not contain: see `Reply.beside_cost`.
    further : list of float
        The total after this round and after each further one of the same cost, up to the cap.
    """

    known: dict[str, str]
    words: list[str] = field(default_factory=list)
    word: Refusal | None = None
    forbidden: bool = False
    strangers: list[Card] = field(default_factory=list)
    officer: str = ""
    epsilon: float | None = None
    beside_cost: str = ""
    further: list[float] = field(default_factory=list)

    @property
    def allows(self) -> bool:
        """Return whether policy and book allow the round, regardless of the officer's signature."""
        return self.word is None

    @classmethod
    def of(cls, site: Site, asked: Round) -> "Standing":
        """Review a round as a site.

        Raise `FileError` or `PrivacyError` if keys, book or policy cannot be used.
        """
        policy = load_policy(site.settings.policy)
        query = site.settings.query
        stated = policy.independent or bool(site.settings.reads.get("independent"))
        # The approval is checked when the site answers the round.
        with site.book() as book:
            pins = policy.pins(book.known)
            standing = cls(known_words(asked, site.card, pins), officer=policy.officer)
            if query:
                standing.words.append(f"The rows are the result of this query: {query}")
                if stated:
                    standing.words[0] += (
                        "\nThis site states that each of them depends on the records of one "
                        "person only (independent = true)."
                    )
            try:
                if query and not stated:
                    raise Refused(Refusal.POLICY, _NOT_STATED)
                reply = Reply(
                    asked,
                    site.keys,
                    book,
                    policy=replace(policy, officer=""),
                    data_set=site.settings.data_set,
                )
                reply.check_persons(site.settings.person is not None)
                standing.epsilon, standing.beside_cost = reply.epsilon, reply.beside_cost
                standing.further = _further(book, reply)
                # A card is compared only in roles for which the policy relies on the book.
                out = {card for role, card in reply.strangers if policy.named[role]}
                standing.strangers = [card for card in reply.new if card not in out]
                reply.check_known()
                standing.words.append(reply.cost_words)
            except (PlanError, PrivacyError, RoundError) as error:
                standing.word = Refusal(error.word or Refusal.UNAVAILABLE)
                standing.forbidden = not standing.strangers
                standing.words.append(str(error))
        return standing


#: The most further rounds whose totals are listed.
_AHEAD = 6


def _further(book: Book, reply: Reply) -> list[float]:
    spent = cost(reply.round, "to come")
    paid = reply.earlier is not None or reply.past.paid
    ahead, totals = [] if paid else [spent], [reply.epsilon]
    for k in range(_AHEAD):
        ahead.append(replace(spent, release=f"further round {k}"))
        try:
            totals.append(book.check_cap(reply.data_set, *ahead))
        except PrivacyError:  # beyond the cap
            break
    return totals


#: Why a site refuses to count the rows of a query.
_NOT_STATED = (
    "nothing states that each row of the query depends on the records of one person only, without "
    "which the guarantee would not hold: if it is so, state it in the site's file (independent = "
    "true) or in the policy (independent = true under [round])"
)


def known_words(asked: Round, me: Card, pins: dict[Role, Mapping[str, str]]) -> dict[str, str]:
    """Return by role and name of each party whether it is known here, in words.

    ``pins`` are as of `Policy.pins`.
    """
    words = {}
    for role, card in parties(asked):
        is_known = pins[role].get(card.name) == card.fingerprint
        known = "known" if is_known else "not known here"
        words[f"{role} {card.name}"] = "this site" if card == me else known
    return words
