"""Totals of each site's tables, opened under the masks: who counted more rows than it may.

A mask is a stream of numbers, and its total over a table can be said without the stream. Both sites
of a pair say it, and have to say the same. So the total of each table of each site can be read, and
nothing else of its counts: how many rows it counted, up to its noise, and that all of its tables
count the same rows. What the round's noise pays for that, `hushtable.federation.terms.price` says.

What cannot be seen so: counts that a site moves between the cells of a table.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hushtable.errors import RoundError
from hushtable.federation.keys import Keys
from hushtable.federation.masks import agree, mask
from hushtable.federation.online.messages import Message
from hushtable.federation.round import Round

Words = NDArray[np.uint64]
NAME = "totals"
#: Standard deviations that chance exceeds less than once in 10^15 times.
_SIGMAS = 8.0


def of_tables(round_: Round, words: Words) -> Words:
    """Return the total of each table, modulo 2^64: of shape (n_tables,)."""
    starts = np.cumsum([0, *round_.layout.cells[:-1]])
    return np.add.reduceat(words, starts)


def of_masks(round_: Round, keys: Keys, names: list[str]) -> Words:
    """Return what a site says of its masks with those on the list: of shape (n_names, n_tables).

    Of itself zeros.
    """
    pairs = agree.roster_keys(round_, keys, agree.ONLINE)
    found = np.zeros((len(names), len(round_.layout.cells)), np.uint64)
    for i, name in enumerate(names):
        if name in pairs:
            found[i] = of_tables(round_, mask.stream(pairs[name], round_.layout.n_cells))
    return found


def given(message: Message, round_: Round, n_names: int) -> Words:
    """Return what a site says of its masks; raises `RoundError` if it is of another form."""
    found = message.arrays.get(NAME)
    shape = n_names, len(round_.layout.cells)
    if found is None or found.dtype != np.uint64 or found.shape != shape:
        raise RoundError(f"{message.sender!r} said no totals of its masks")
    return found


@dataclass
class Opened:
    """The totals of the sites of a list, and who is found out by them.

    Attributes
    ----------
    rows : dict of str to float
        By site, how many rows it counted, up to its noise.
    liars : dict of str to str
        By site, what it did.
    doubtful : list of str
        Sentences about what does not fit, and who may have done it.
    """

    rows: dict[str, float] = field(default_factory=dict)
    liars: dict[str, str] = field(default_factory=dict)
    doubtful: list[str] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        round_: Round,
        sent: Mapping[str, Words],
        own: Mapping[str, bytes],
        outside: Mapping[str, Mapping[str, bytes]],
        said: Mapping[str, Words],
    ) -> "Opened":
        """Open the totals.

        Parameters
        ----------
        round_ : Round
            With a bound on rows.
        sent : mapping of str to ndarray of shape (n_cells,), uint64
            By site of the list, its masked counts.
        own : mapping of str to bytes
            Keys of their own masks.
        outside : mapping of str to mapping of str to bytes
            Keys of their masks with sites that are not on the list.
        said : mapping of str to ndarray of shape (n_sites, n_tables), uint64
            Of those who answered, the totals of their masks with those on the list, sorted.
        """
        opened, names = cls(), sorted(sent)
        n_cells = round_.layout.n_cells
        for i, name in enumerate(names):
            total = of_tables(round_, sent[name])
            total -= of_tables(round_, mask.stream(own[name], n_cells))
            total -= of_tables(round_, mask.pairwise_mask(name, outside[name], n_cells))
            for j, other in enumerate(names):
                if other == name:
                    continue
                mine, theirs = said.get(name), said.get(other)
                if mine is not None and theirs is not None and (mine[j] != theirs[i]).any():
                    if name < other:
                        opened.doubtful.append(f"{name} or {other} says wrong totals of its masks")
                    continue
                either = mine[j] if mine is not None else None if theirs is None else theirs[i]
                if either is not None:
                    total = total - either if name < other else total + either
            opened._judge(round_, name, total.view(np.int64), own_word=name in said)
        if opened.doubtful and opened.liars:  # who disputes with others may make them look so
            opened.doubtful += [f"{name} {why}, it seems" for name, why in opened.liars.items()]
            opened.liars.clear()
        return opened

    def _judge(
        self, round_: Round, name: str, totals: NDArray[np.int64], *, own_word: bool
    ) -> None:
        cells = np.array(round_.layout.cells, float)
        spread = round_.site_scale * np.sqrt(cells)
        weights = 1.0 / spread**2
        rows = float(totals.astype(float) @ weights / weights.sum())
        self.rows[name] = rows
        most = round_.terms.max_rows or 0
        why = ""
        if (np.abs(totals - rows) > _SIGMAS * spread).any():
            why = "sent tables that count different numbers of rows, or other numbers than counts"
        elif not (rows + _SIGMAS / np.sqrt(weights.sum())) >= -1.0 or (
            rows > most + _SIGMAS / np.sqrt(weights.sum())
        ):
            why = f"counted about {rows:,.0f} rows, and the round allows {most:,}"
        if why and own_word:
            self.liars[name] = why
        elif why:
            self.doubtful.append(
                f"{name} {why}, or one of those who answered says wrong totals of its masks with it"
            )
