"""Take the masks off a sum: from shares, the survivors' own masks and the lost sites' pairs."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushtable.errors import RoundError
from hushtable.federation.masks import agree, mask, seal, shamir
from hushtable.federation.round import Round

#: Choices of who is believed: enough for 3 liars among 50.
_MOST_TRIES = 20_000


@dataclass(frozen=True)
class Unmasking:
    """Finds all that masks the sum of the survivors.

    By site, ``keys`` are the public keys of its pairwise masks, and ``commitments`` the hashes
    of its own mask, of those that dealt shares.
    """

    round: Round
    keys: Mapping[str, str]
    commitments: Mapping[str, str]
    survivors: list[str]

    def masks(self, shares: Mapping[str, list[bytes]]) -> NDArray[np.uint64]:
        """Return the survivors' own masks, and their pairs with lost sites.

        By site that gives them, the shares of the secrets are in the order of `commitments`.
        """
        n_cells = self.round.layout.n_cells
        total = np.zeros(n_cells, np.uint64)
        for name, secret in self._secrets(shares).items():
            if name in self.survivors:
                total += mask.stream(secret, n_cells)
                continue
            key = agree.private_key(secret)
            agreed = {
                other: agree.mask_key(self.round, key, self.keys[other], name, other)
                for other in self.survivors
            }
            # What the survivors added for this site is what it would have taken away.
            total -= mask.pairwise_mask(name, agreed, n_cells)
        return total

    def _secrets(self, shares: Mapping[str, list[bytes]]) -> dict[str, bytes]:
        """Put together the secrets of the sites from as many shares as are needed.

        Some givers may lie: others are tried in their place, until each secret is the one that
        its site stands by. What was tried and did not fit reveals nobody's secret.
        """
        names = list(self.commitments)
        choices = _choices(list(shares), self.round.terms.least)
        for givers in itertools.islice(choices, _MOST_TRIES):
            # One secret first: most wrong choices end there.
            for some in (names[:1], names):
                places = {seal.place(self.round, one): shares[one][: len(some)] for one in givers}
                try:
                    secrets = dict(zip(some, shamir.combine(places, 32), strict=True))
                except ValueError:
                    break
                if not all(self._fits(name, secret) for name, secret in secrets.items()):
                    break
            else:
                return secrets
        raise RoundError(
            "no sum: the shares behind the masks do not fit: too many sites gave wrong ones, or a "
            "site dealt wrong ones; open a new round"
        )

    def _fits(self, name: str, secret: bytes) -> bool:
        """Whether a secret is the one that the site itself stands by."""
        if name in self.survivors:
            return seal.commitment(self.round, name, secret) == self.commitments[name]
        return agree.public_key(agree.private_key(secret)) == self.keys[name]


def _choices(givers: list[str], least: int) -> Iterator[tuple[str, ...]]:
    """Yield givers, as many as are needed: the first ones, then others with few left out."""
    seen = set()
    for n_out in range(len(givers) - least + 1):
        for out in itertools.combinations(givers, n_out):
            choice = tuple(itertools.islice((one for one in givers if one not in out), least))
            if choice not in seen:
                seen.add(choice)
                yield choice
