"""How a site judges a round before it counts anything: who is known, and what is allowed."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hushtable.errors import PlanError, PrivacyError, RoundError
from hushtable_federation.book.book import Book
from hushtable_federation.keys import Card
from hushtable_federation.policy import Role, load_policy, parties
from hushtable_federation.refusals import Refusal, Refused
from hushtable_federation.reply import Reply
from hushtable_federation.round import Round
from hushtable_federation.site import Site
from hushtable_federation.submission import cost


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
            found = cls(known_words(asked, site.card, pins), officer=policy.officer)
            if query:
                found.words.append(f"The rows are the result of this query: {query}")
                if stated:
                    found.words[0] += (
                        "\nThis site states that each of them depends on the records of one "
                        "person only (independent = true)."
                    )
            try:
                if query and not stated:
                    raise Refused(Refusal.POLICY, _NOT_STATED)
                reply = site.reply(asked, book, policy=replace(policy, officer=""))
                reply.check_persons(site.settings.person is not None)
                found.epsilon, found.beside_cost = reply.epsilon, reply.beside_cost
                found.further = _further(book, reply)
                # A card is compared only in roles for which the policy relies on the book.
                out = {card for role, card in reply.strangers if policy.named[role]}
                found.strangers = [card for card in reply.new if card not in out]
                reply.check_known()
                found.words.append(reply.cost_words)
            except (PlanError, PrivacyError, RoundError) as error:
                found.word = Refusal(error.word or Refusal.UNAVAILABLE)
                found.forbidden = not found.strangers
                found.words.append(str(error))
        return found


#: The most further rounds whose totals are listed.
_AHEAD = 6


def _further(book: Book, reply: Reply) -> list[float]:
    one = cost(reply.round, "to come")
    paid = reply.earlier is not None or reply.past.paid
    ahead, totals = [] if paid else [one], [reply.epsilon]
    for k in range(_AHEAD):
        ahead.append(replace(one, release=f"further round {k}"))
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
    found = {}
    for role, card in parties(asked):
        is_known = pins[role].get(card.name) == card.fingerprint
        known = "known" if is_known else "not known here"
        found[f"{role} {card.name}"] = "this site" if card == me else known
    return found
