"""Trust: whose card a site's people say is true, and as what."""

from collections.abc import Sequence

from hushtable.errors import UsageError
from hushtable_federation.book.book import Book
from hushtable_federation.keys import Card
from hushtable_federation.round import Round


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
