"""Take the masks off a sum: from shares, the sites' own masks and those with sites left out."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hushtable.errors import RoundError
from hushtable_federation.masks import mask, seal, shamir
from hushtable_federation.masks.dealing import Dealing
from hushtable_federation.round import Round

#: Choices of givers for a secret of a dealer who lies, where decoding does not find it.
_MOST_TRIES = 2_000
#: A secret by its dealer and the site whose mask with the dealer it is the key of.
Secret = tuple[str, str]


@dataclass
class Unmasking:
    """Finds all that masks the sum of some sites of a round.

    Attributes
    ----------
    round : Round
        Of the sites.
    dealings : mapping of str to Dealing
        By site, the public part of what it dealt.
    shares : mapping of str to mapping of Secret to int
        By site, the shares that it gives, and was dealt.
    sites : list of str
        Of whom the sum is.
    liars : dict of str to str
        By site found out to have dealt shares of another key, words for people.
    """

    round: Round
    dealings: Mapping[str, Dealing]
    shares: Mapping[str, Mapping[Secret, int]]
    sites: list[str]
    liars: dict[str, str] = field(default_factory=dict)
    _found: dict[Secret, bytes] = field(default_factory=dict, init=False, repr=False)

    def masks(self) -> NDArray[np.uint64]:
        """Return what masks the sum, of shape (n_cells,); raises `RoundError` without it."""
        n_cells = self.round.layout.n_cells
        out = [name for name in self.round.names if name not in self.sites]
        total = np.zeros(n_cells, np.uint64)
        for name in self.sites:
            total += mask.stream(self.secret(name, name), n_cells)
            pairs = {other: self.secret(name, other) for other in out}
            total += mask.pairwise_mask(name, pairs, n_cells)
        return total

    def secret(self, dealer: str, other: str) -> bytes:
        """Return the key of a site's own mask, or of its mask with another; as `masks` raises."""
        if (dealer, other) not in self._found:
            self._found[dealer, other] = self._put_together(dealer, other)
        return self._found[dealer, other]

    def _put_together(self, dealer: str, other: str) -> bytes:
        """Put together a secret from as many shares as are needed.

        Each giver has shown that it was dealt its share. So where these are not of the secret that
        the dealer committed to, it is the dealer's doing, and of readers in league with it. What
        was tried and did not fit reveals nobody's secret.
        """
        names = [name for name in self.shares if (dealer, other) in self.shares[name]]
        names.sort(key=lambda name: (name == dealer, name in self.liars))
        given = {seal.place(self.round, name): self.shares[name][dealer, other] for name in names}
        least = self.round.terms.least
        if len(given) < least:
            raise RoundError(
                f"no sum: {len(given)} sites gave shares behind the masks of {dealer!r}, and "
                f"{least} are needed. More answers may mend it; else open a new round"
            )
        j = self.round.names.index(other)
        for secret, sure in _candidates(given, least):
            if secret is not None and (sure or self.dealings[dealer].fits(j, secret)):
                return secret
            self.liars[dealer] = "dealt shares of another key of its mask than it committed to"
        raise RoundError(
            f"no sum: {dealer!r} dealt shares that are not of one key: more than "
            f"{(len(given) - least) // 2} of {len(given)} are wrong. Open a new round without it"
        )


def _candidates(given: Mapping[int, int], least: int) -> Iterator[tuple[bytes | None, bool]]:
    """Yield what may be a secret, and whether it is, even if the dealer committed to another.

    Decoding finds it among as many wrong shares as half of those beyond ``least``; trying, among
    more of them where the givers are few.
    """
    choices = _choices(list(given), least)
    yield shamir.combine({place: given[place] for place in next(choices)}), False
    yield shamir.decode(given, least), True
    for choice in itertools.islice(choices, _MOST_TRIES):
        yield shamir.combine({place: given[place] for place in choice}), False


def _choices(givers: list[int], least: int) -> Iterator[tuple[int, ...]]:
    """Yield givers, as many as are needed: the first ones, then others with few left out."""
    seen = set()
    for n_out in range(len(givers) - least + 1):
        for out in itertools.combinations(givers, n_out):
            choice = tuple(itertools.islice((one for one in givers if one not in out), least))
            if choice not in seen:
                seen.add(choice)
                yield choice
