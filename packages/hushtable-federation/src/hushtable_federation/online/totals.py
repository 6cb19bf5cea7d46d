"""Totals of each site's tables, opened under the masks, to find sites with too many rows.

A mask is a stream of numbers, and a site can reveal its total over a table without the stream. Both
sites of a pair state it. So the total of each table of each site becomes readable, and nothing else
about its counts: how many rows it counted, up to its noise, and that all of its tables count the
same rows. `hushtable_federation.terms.price` computes how much of the round's noise pays for that.

This does not detect counts that a site moves between the cells of a table.
"""

import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hushtable.errors import RoundError
from hushtable_federation.keys import stream
from hushtable_federation.masks import RoundKeys, pairwise_mask
from hushtable_federation.online.messages import Message
from hushtable_federation.online.shares import enough
from hushtable_federation.round import Round

Words = NDArray[np.uint64]
NAME = "totals"
#: Standard deviations that chance exceeds less than once in 10^15 times.
_SIGMAS = 8.0
_WRONG = "stated wrong totals of its masks"


def of_tables(round_: Round, words: Words) -> Words:
    """Return the total of each table, modulo 2^64: of shape (n_tables,)."""
    return np.add.reduceat(words, round_.plan.family.offsets[:-1])


def of_masks(keys: RoundKeys, names: list[str]) -> Words:
    """Return the totals of a site's masks with those on the list: of shape (n_names, n_tables).

    The entries for the site itself are zero.
    """
    round_, pairs = keys.round, keys.pairs()
    found = np.zeros((len(names), round_.plan.family.n_histograms), np.uint64)
    for i, name in enumerate(names):
        if name in pairs:
            found[i] = of_tables(round_, stream(pairs[name], round_.plan.family.n_cells))
    return found


def given(message: Message, round_: Round, n_names: int) -> Words:
    """Return the totals that a site states; raise `RoundError` if they have the wrong form."""
    found = message.arrays.get(NAME)
    shape = n_names, round_.plan.family.n_histograms
    if found is None or found.dtype != np.uint64 or found.shape != shape:
        raise RoundError(f"{message.sender!r} stated no totals of its masks")
    return found


@dataclass
class OpenedTotals:
    """The totals of the sites on a list, and the sites that they expose.

    Attributes
    ----------
    liars : dict of str to str
        By site, what it did: proved by its own statement, or by more sites than may lie.
    stops : dict of str to str
        By site or group of sites, why there is no result; empty if there is one.
    """

    liars: dict[str, str] = field(default_factory=dict)
    stops: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        round_: Round,
        sent: Mapping[str, Words],
        own: Mapping[str, bytes],
        outside: Mapping[str, Mapping[str, bytes]],
        claims: Mapping[str, Words],
    ) -> "OpenedTotals":
        """Open the totals.

        An honest site's statement gives its own total, regardless of others: if that total is
        impossible, the site lied. If two sites disagree about their mask, the total of both is
        still known, because the mask cancels in it: sites that disagree are judged together.

        Parameters
        ----------
        round_ : Round
            A round with a bound on rows.
        sent : mapping of str to ndarray of shape (n_cells,), uint64
            The masked counts of each site on the list.
        own : mapping of str to bytes
            Keys of the sites' own masks.
        outside : mapping of str to mapping of str to bytes
            Keys of the sites' masks with sites that are not on the list.
        claims : mapping of str to ndarray of shape (n_sites, n_tables), uint64
            For each site that answered, the totals of its masks with those on the list, sorted.
        """
        bare = {}
        for name, words in sent.items():
            total = of_tables(round_, words) - of_tables(round_, stream(own[name], len(words)))
            away = pairwise_mask(name, outside[name], len(words))
            bare[name] = total - of_tables(round_, away)
        opened, pairs = cls(), Pairs(bare, claims)
        opened._name(round_, pairs)
        opened._judge(round_, pairs)
        return opened

    def _name(self, round_: Round, pairs: "Pairs") -> None:
        """Name the sites that certainly lied; replace their statements by those of others."""
        many = max(enough(round_), len(pairs.claims) // 2 + 1)
        own = {name: _odd(round_, 1, pairs.by_own_words(name)) for name in pairs.claims}
        lied = {name for name in own if own[name] or len(pairs.differ[name]) >= many}
        for name in sorted(lied):
            why, wrong = _odd(round_, 1, pairs.by_the_others(name, lied)), _WRONG
            if not why:
                pairs.settle(name, lied)
            elif pairs.differ[name] or pairs.silent:
                pairs.loosen(name)
                wrong = f"{why}, or {wrong}"
            else:
                self.stops[name] = wrong = why
            self.liars[name] = wrong

    def _judge(self, round_: Round, pairs: "Pairs") -> None:
        """Judge the sites, each together with those that cannot be distinguished from it."""
        for group in pairs.groups():
            why = _odd(round_, len(group), pairs.total(group))
            if not why or set(group) & set(self.stops):
                continue
            if pairs.silent:  # any site may have stated wrong totals of masks with these
                if not _odd(round_, len(pairs.names), pairs.total(pairs.names)):
                    continue
                why += f", or one of those that answered {_WRONG} with it"
            together = "" if len(group) == 1 else "together, because it is unknown which of them, "
            self.stops[" and ".join(group)] = together + why


class Pairs:
    """Totals of the mask of each pair of sites, as the two state them.

    Parameters
    ----------
    bare : mapping of str to ndarray of shape (n_tables,), uint64
        For each site on the list, its totals under only these masks.
    claims : mapping of str to ndarray of shape (n_sites, n_tables), uint64
        As for `OpenedTotals.of`.

    Attributes
    ----------
    names : list of str
        The sites, sorted.
    silent : set of str
        Sites that stated nothing.
    differ : dict of str to set of str
        By site, the sites that state different totals of their common mask.
    """

    def __init__(self, bare: Mapping[str, Words], claims: Mapping[str, Words]) -> None:
        self.names, self.claims, self._bare = sorted(bare), claims, bare
        self.silent = set(bare) - set(claims)
        self.differ: dict[str, set[str]] = {name: set() for name in self.names}
        #: The agreed totals of a pair, in order of names; none if they differ, or both are silent.
        self._holds: dict[tuple[str, str], Words] = {}
        for one, other in itertools.combinations(self.names, 2):
            words = [self._word(one, other), self._word(other, one)]
            given = [word for word in words if word is not None]
            if len(given) == 2 and (given[0] != given[1]).any():
                self.differ[one].add(other)
                self.differ[other].add(one)
            elif given:
                self._holds[one, other] = given[0]

    def _word(self, name: str, other: str) -> Words | None:
        return self.claims[name][self.names.index(other)] if name in self.claims else None

    def by_own_words(self, name: str) -> Words:
        """Return a site's totals by its own statement."""
        mine = self.claims[name]
        return self._off(name, {other: mine[i] for i, other in enumerate(self.names)})

    def by_the_others(self, name: str, lied: Collection[str]) -> Words:
        """Return a site's totals by the statements of sites that differ with it and did not lie."""
        words = {other: self.claims[name][i] for i, other in enumerate(self.names)}
        for other in self.differ[name] - set(lied):
            words[other] = self.claims[other][self.names.index(name)]
        return self._off(name, words)

    def settle(self, name: str, lied: Collection[str]) -> None:
        """Accept the statements of sites that differ with a site and did not lie."""
        for other in self.differ[name] - set(lied):
            word = self.claims[other][self.names.index(name)]
            self._holds[min(name, other), max(name, other)] = word

    def loosen(self, name: str) -> None:
        """Discard a site's statements about silent sites."""
        for other in self.silent:
            self._holds.pop((min(name, other), max(name, other)), None)

    def total(self, group: Collection[str]) -> Words:
        """Return the joint totals of some sites, in which the masks between them cancel."""
        found = np.zeros_like(next(iter(self._bare.values())))
        for name in group:
            outside = {
                one: self._holds[min(name, one), max(name, one)]
                for one in self.names
                if one not in group
            }
            found = found + self._off(name, outside)
        return found

    def groups(self) -> list[list[str]]:
        """Return groups of sites that are connected by masks without an agreed total."""
        from scipy.sparse import csr_array  # takes a third of a second, too long for --help
        from scipy.sparse.csgraph import connected_components

        n = len(self.names)
        apart = np.ones((n, n), bool)
        for one, other in self._holds:
            apart[self.names.index(one), self.names.index(other)] = False
        _, labels = connected_components(csr_array(np.triu(apart, 1)), directed=False)
        return [
            [name for name, label in zip(self.names, labels, strict=True) if label == group]
            for group in range(labels.max() + 1)
        ]

    def _off(self, name: str, words: Mapping[str, Words]) -> Words:
        """Remove the masks with others from a site's totals."""
        found = self._bare[name]
        for other, word in words.items():
            if other != name:
                found = found - word if name < other else found + word
        return found


def _odd(round_: Round, n_sites: int, totals: Words) -> str:
    """Return why the joint totals of that many sites are impossible; empty if they are possible."""
    cells = np.diff(round_.plan.family.offsets)
    spread = round_.site_scale * np.sqrt(cells * n_sites)
    weights = 1.0 / spread**2
    signed = totals.view(np.int64).astype(float)
    rows, sd = float(signed @ weights / weights.sum()), 1.0 / np.sqrt(weights.sum())
    most = (round_.terms.max_rows or 0) * n_sites
    if (np.abs(signed - rows) > _SIGMAS * spread).any():
        return "sent tables that count different numbers of rows, or numbers that are not counts"
    if not -1.0 - _SIGMAS * sd <= rows <= most + _SIGMAS * sd:
        return f"counted about {rows:,.0f} rows, and the round allows {most:,}"
    return ""
