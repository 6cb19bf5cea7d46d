"""Registers of a book: of each answer, whom it counted, by keyed digests. Whose budget is used.

A person belongs to one data set of the book, and is counted in no other: what a data set's rounds
cost is what they cost each of its persons. In a stream of rounds about periods, a person is counted
in as many periods as the horizon says, and no more.

Both depend on what was noted of that person alone, never on who else was counted.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hushtable.data.persons import PersonsCounted
from hushtable.errors import UsageError
from hushtable.privacy.accounting import Horizon
from hushtable_federation.book.chain import Entry
from hushtable_federation.book.digests import RowDigests, of_persons
from hushtable_federation.round import Round

Digests = NDArray[np.uint64]
#: Name of the register among what lies beside an answer; and, in the answer, how many are in it.
REGISTER = "persons"


class Period(NamedTuple):
    """A period of a stream: id of the stream, number of the period from 1, and the horizon."""

    stream: str
    number: int
    horizon: Horizon

    @classmethod
    def of(cls, asked: Round) -> "Period | None":
        """Return what a round is about; None where its plan has no horizon."""
        if asked.layout.horizon is None or asked.period is None:
            return None
        return cls(asked.stream, asked.period, asked.layout.horizon)


class Counted(NamedTuple):
    """Whom an answer counts, as its book will know them: a sample, and perhaps the register.

    Both are None where no column tells persons.
    """

    sample: RowDigests | None
    register: Digests | None

    @classmethod
    def of(cls, persons: PersonsCounted | None) -> "Counted":
        """Return what is to be known of the persons of a sketch."""
        if persons is None:
            return NOBODY
        return cls(of_persons(persons) if persons.n_persons else None, persons.register)


#: Where no column tells persons.
NOBODY = Counted(None, None)


def to_bytes(register: Digests) -> bytes:
    """Return a register as the book keeps it."""
    return register.astype("<u8", copy=False).tobytes()


def from_bytes(content: bytes) -> Digests:
    """Read back what `to_bytes` wrote, without a copy; raises `ValueError` on anything else."""
    register = np.frombuffer(content, "<u8")
    if (register[1:] < register[:-1]).any():
        raise ValueError("a register rises")
    return register.astype(np.uint64, copy=False)


def check_registered(persons: PersonsCounted | None) -> None:
    """Raise `UsageError` if nobody is known by whom a person's periods could be counted."""
    if persons is None or persons.register is None:
        raise UsageError(
            "in how many periods a person was counted is known by a column that tells persons: "
            "count with Sketch.from_data(person=..., key=reply.book.persons_key, "
            "known=reply.barred())"
        )


def nameless(answers: Sequence[Entry], data_set: str, period: Period | None) -> int:
    """Return how many answers have no register, whose persons should be left out of this one."""
    others = [one for one in _others(answers, data_set) if REGISTER not in one.content]
    if period is None:
        return len(others)
    about = [one.content for one in answers if one.content.get("stream") == period.stream]
    named = {one["period"] for one in about if REGISTER in one}
    return len(others) + len({one["period"] for one in about} - named - {period.number})


def barred(
    answers: Iterable[Entry],
    read: Callable[[Entry], Digests],
    data_set: str,
    period: Period | None = None,
) -> Digests:
    """Return who may not be counted in a round: sorted digests, each once.

    Parameters
    ----------
    answers : iterable of Entry
        All answers of the book.
    read : callable
        Returns the register of an answer that has one.
    data_set : str
        What the round is about: whom another data set has counted is left out.
    period : Period, optional
        Where the round is about one: left out is who was counted in as many other periods of the
        stream as the horizon allows a person, or in one that is not so far apart as it says.
    """
    known = [one for one in answers if REGISTER in one.content]
    found = [read(one) for one in _others(known, data_set)]
    if period is not None:
        found.append(_used(known, read, period))
    return _together(found)


def _used(answers: Iterable[Entry], read: Callable[[Entry], Digests], period: Period) -> Digests:
    """Return who has no period left, or had one so close to this one."""
    periods: dict[int, list[Digests]] = {}
    for one in answers:
        if one.content.get("stream") == period.stream and one.content["period"] != period.number:
            periods.setdefault(one.content["period"], []).append(read(one))
    most, apart = period.horizon.participations, period.horizon.apart
    if most == 1:
        return _together(list(chain.from_iterable(periods.values())))
    each = {number: _together(registers) for number, registers in periods.items()}
    close = [one for number, one in each.items() if abs(number - period.number) < apart]
    counted = np.sort(np.concatenate([*each.values(), np.empty(0, np.uint64)]))
    again = counted[most - 1 :]  # of whom there are so many, the last is equal to the first
    often = again[again == counted[: len(again)]]
    return _together([*close, often])


def _others(answers: Iterable[Entry], data_set: str) -> list[Entry]:
    return [one for one in answers if one.content["data_set"] != data_set]


def _together(registers: list[Digests]) -> Digests:
    together = np.concatenate([*registers, np.empty(0, np.uint64)])
    together.sort()
    distinct = np.ones(len(together), bool)
    distinct[1:] = together[1:] != together[:-1]
    return together[distinct]
