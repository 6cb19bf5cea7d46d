"""Take the masks off a sum: from shares, the sites' own masks and those with sites left out."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hushtable.errors import RoundError
from hushtable.federation.masks import mask, seal, shamir
from hushtable.federation.masks.dealing import Dealing
from hushtable.federation.round import Round

#: Choices of who is believed about a secret: enough for 3 liars among 50.
_MOST_TRIES = 20_000
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
        By site, the shares that it gives.
    sites : list of str
        Of whom the sum is.
    liars : dict of str to str
        By site found out to give wrong shares, or to have dealt them, words for people.
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

        Some givers may lie: others are tried in their place, until the secret is the one that its
        dealer committed to. What was tried and did not fit reveals nobody's secret.
        """
        names = [name for name in self.shares if (dealer, other) in self.shares[name]]
        names.sort(key=lambda name: name in self.liars)  # who lied once is asked last
        given = {seal.place(self.round, name): self.shares[name][dealer, other] for name in names}
        least = self.round.terms.least
        j = self.round.names.index(other)
        for choice in itertools.islice(_choices(list(given), least), _MOST_TRIES):
            some = {place: given[place] for place in choice}
            secret = shamir.combine(some)
            fits = self.dealings[dealer].fits(j, secret)
            off = [place for place in given if not _lies_on(some, place, given[place])]
            if secret is not None and (fits or (not off and len(given) > least)):
                if not fits:
                    self.liars[dealer] = "committed to another key of its mask than it dealt"
                for place in off:
                    self.liars[self.round.names[place - 1]] = "gave wrong shares"
                return secret
        raise RoundError(
            f"no sum: the shares behind the masks of {dealer!r} do not fit: too many sites gave "
            "wrong ones, or too few are there. More answers may mend it; else open a new round"
        )


def _lies_on(some: Mapping[int, int], place: int, share: int) -> bool:
    """Whether a share is that of the polynomial through some others."""
    if place in some:
        return some[place] == share
    each = zip(shamir.weights(tuple(some), place), some.values(), strict=True)
    return sum(weight * value for weight, value in each) % shamir.PRIME == share


def _choices(givers: list[int], least: int) -> Iterator[tuple[int, ...]]:
    """Yield givers, as many as are needed: the first ones, then others with few left out."""
    seen = set()
    for n_out in range(len(givers) - least + 1):
        for out in itertools.combinations(givers, n_out):
            choice = tuple(itertools.islice((one for one in givers if one not in out), least))
            if choice not in seen:
                seen.add(choice)
                yield choice
