"""Keyed digests that identify rows and persons: samples of rows, and registers of persons."""

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import rfc8785
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.arguments import whole
from hushtable.data.columns import as_numbers, as_texts, filled
from hushtable.data.persons import SAMPLE, PersonsCounted
from hushtable.data.readers import Batch, Reader
from hushtable.data.schema import Feature, Schema
from hushtable.data.typed import open_rows
from hushtable.errors import DataError, PlanError, UsageError
from hushtable.privacy.accounting import Horizon
from hushtable_federation.book.chain import Entry
from hushtable_federation.round import Round

#: Bytes of a row's digest.
DIGEST_BYTES = 16
#: Number of distinct rows below which a sample proves nothing: so few can be alike by chance.
FEW = 64
#: Shared part of the smaller table from which two tables seem to be about the same people.
SHARED = 0.1

Words = NDArray[np.uint64]
_LAST = 2**64 - 1
#: Hashes of texts have only these bits, so that none looks like a missing number.
_TEXT_BITS = 0x3FFF_FFFF_FFFF_FFFF


@dataclass(frozen=True, eq=False)
class RowDigests:
    """A sample of the distinct rows of a table, to compare another table with it."""

    #: Sorted names of the columns; empty for persons.
    features: tuple[str, ...]
    n_rows: int
    #: Keyed digest of all rows, independent of their order: 32 hexadecimal digits.
    whole: str
    #: Hashes of the sampled rows in ascending order, of shape (k,).
    hashes: Words
    #: Their HMAC-SHA256, truncated to 16 bytes: of shape (k, 16).
    values: NDArray[np.uint8]

    @property
    def reach(self) -> int:
        """Return the largest hash up to which every row is in the sample."""
        return int(self.hashes[-1]) if len(self.hashes) == SAMPLE else _LAST

    @property
    def n_distinct(self) -> float:
        """Return the number of distinct rows: exact up to 1,023, accurate to about 3% above."""
        if len(self.hashes) < SAMPLE:
            return float(len(self.hashes))
        return (SAMPLE - 1) * (_LAST / max(1, self.reach))

    @property
    def varied(self) -> bool:
        """Return whether rows are so varied that common rows in two tables cannot be chance."""
        return self.n_distinct >= FEW and 2.0 * self.n_distinct >= self.n_rows

    def shared(self, other: "RowDigests") -> float:
        """Return which share of the smaller table's distinct rows seems to be in the larger one."""
        reach = np.uint64(min(self.reach, other.reach))
        small, large = sorted((self, other), key=lambda rows: rows.n_distinct)
        mine, theirs = (
            {row.tobytes() for row in rows.values[rows.hashes <= reach]} for rows in (small, large)
        )
        return len(mine & theirs) / len(mine) if mine else 0.0

    def same_people(self, other: "RowDigests") -> bool:
        """Return whether a tenth or more of one table seems to be in the other.

        Tables with different columns are never the same. Tables with few distinct rows, or mostly
        repeated rows, are the same only if all rows are.
        """
        if self.features != other.features:
            return False
        if self.varied and other.varied:
            return self.shared(other) >= SHARED
        return self.whole == other.whole

    # --- files ------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Return the digests in the form that the book stores."""
        return rfc8785.dumps({
            "features": list(self.features),
            "n_rows": self.n_rows,
            "whole": self.whole,
            "hashes": self.hashes.astype("<u8").tobytes().hex(),
            "values": self.values.tobytes().hex(),
        })  # fmt: skip

    @classmethod
    def from_bytes(cls, content: bytes) -> "RowDigests":
        """Read back what `to_bytes` wrote; raise `PlanError` on anything else."""
        try:
            read = json.loads(content)
            hashes = np.frombuffer(bytes.fromhex(read["hashes"]), "<u8").astype(np.uint64)
            values = np.frombuffer(bytes.fromhex(read["values"]), np.uint8)
            values = values.reshape(len(hashes), DIGEST_BYTES)
            whole("n_rows", read["n_rows"])
            features = tuple(map(str, read["features"]))
            return cls(features, read["n_rows"], str(read["whole"]), hashes, values)
        except (KeyError, TypeError, ValueError, RecursionError):
            raise PlanError("holds no digests of rows") from None


def of_persons(persons: PersonsCounted) -> RowDigests:
    """Return the persons of a table as rows that consist only of a person's id."""
    values = persons.sample.astype(">u8").view(np.uint8).reshape(-1, DIGEST_BYTES)
    digest = hashlib.sha256(b"%d persons:" % persons.n_persons + values.tobytes())
    whole = digest.hexdigest()[: 2 * DIGEST_BYTES]
    return RowDigests((), persons.n_persons, whole, persons.sample[:, 0].copy(), values)


class RowDigester:
    """Makes digests of rows while other code reads them.

    It uses the features of the schema, with their values as read, regardless of the ranges. Keys
    have 32 bytes; digests under different keys cannot be compared.
    """

    def __init__(self, schema: Schema, key: bytes) -> None:
        self._schema, self._key = schema, key
        # Sorted by name, so that the order of a plan's features does not matter.
        self._order = np.argsort(np.array(schema.names, object), kind="stable")
        self._texts = bool(schema.categorical_names)
        self._seed = np.uint64(int.from_bytes(self._mac(b"order")[:8]))
        self._lock = threading.Lock()
        self._all = _Sample(len(schema))
        self._parts = self._unread = self._under_way = 0
        self._failed: DataError | None = None

    def watch(self, reader: Reader) -> Reader:
        """Return a reader of the same rows that digests them as they are read.

        Each pass digests all rows again. `digests` refuses rows that cannot be read, because the
        code that reads them has a better message.
        """
        reader = open_rows(reader, self._schema)
        self._parts = len(reader.parts)
        return reader.watched(self._read)

    @property
    def n_rows(self) -> int:
        """Return how many rows the last pass had."""
        return self._all.n_rows

    def digests(self) -> RowDigests:
        """Return the digests of the rows of the last pass.

        Raise `DataError` if a value could not be used, and `UsageError` if the rows were not read
        completely.
        """
        if self._failed is not None:
            raise self._failed
        digests = self._all
        if not self._parts or self._unread or self._under_way or not digests.n_rows:
            raise UsageError("the rows were not read completely: read them first")
        text = b"%d %d" % (digests.n_rows, digests.total)
        digest = self._mac(b"all rows:" + text)[:DIGEST_BYTES].hex()
        values = digests.values.copy()
        values[values << np.uint64(1) == 0] = 0
        values[values & _ABOVE_SIGN > _INFINITY] = kernels.MISSING_WORD
        macs = b"".join(
            self._mac(b"row:" + row.tobytes())[:DIGEST_BYTES] for row in values.astype("<u8")
        )
        of_rows = np.frombuffer(macs, np.uint8).reshape(-1, DIGEST_BYTES)
        features = tuple(sorted(self._schema.names))
        return RowDigests(features, digests.n_rows, digest, digests.hashes, of_rows)

    # --- a pass -----------------------------------------------------------------------------

    def _read(self, _part: Reader, batches: Iterator[Batch]) -> Iterator[Batch]:
        with self._lock:
            if self._unread == 0:
                self._unread, self._under_way = self._parts, 0
                self._all, self._failed = _Sample(len(self._schema)), None
            self._unread -= 1
            self._under_way += 1
        mine, start = _Sample(len(self._schema)), 0
        for batch in batches:
            try:
                self._add(mine, batch, start)
            except DataError as error:
                self._failed = error
            start += len(batch)
            yield batch
        with self._lock:
            self._all.add(mine.n_rows, mine.total, mine.hashes, mine.values)
            self._under_way -= 1

    def _add(self, sample: "_Sample", batch: Batch, start: int) -> None:
        blocks = self._blocks(batch, start)
        hashes = np.full(len(batch), self._seed)
        for block, order in blocks:
            kernels.fold_words(block, order, hashes)
        total = int(kernels.finish_hashes(hashes))
        small = np.flatnonzero(hashes <= sample.reach)
        rows = small[np.unique(hashes[small], return_index=True)[1][:SAMPLE]]
        values = np.concatenate([block[rows][:, order] for block, order in blocks], axis=1)
        sample.add(len(batch), total, hashes[rows], values)

    def _blocks(self, batch: Batch, start: int) -> list[tuple[Words, NDArray[np.intp]]]:
        if isinstance(batch, np.ndarray) and batch.dtype == np.float64 and not self._texts:
            return [(batch.view(np.uint64), self._order)]
        columns = batch.T if isinstance(batch, np.ndarray) else batch.columns
        features = self._schema.features
        return [
            (self._words(features[j], columns[j], start)[:, np.newaxis], _ALONE)
            for j in self._order
        ]

    def _words(self, feature: Feature, column: Any, start: int) -> Words:
        if feature.kind == "numeric":
            if not isinstance(column, np.ndarray):
                column = as_numbers(column, feature.name, start)
            return np.asarray(column, np.float64).view(np.uint64)
        if isinstance(column, np.ndarray):
            column = pa.array(column, from_pandas=True)
        texts = as_texts(column, feature.name).dictionary_encode()
        known = [self._text(text) for text in texts.dictionary.to_pylist()]
        index = filled(texts.indices, len(known))
        words: Words = np.array([*known, kernels.MISSING_WORD], np.uint64)[index]
        return words

    def _text(self, text: str) -> int:
        digest = hashlib.blake2b(text.encode(), digest_size=8, key=self._key).digest()
        return int.from_bytes(digest) & _TEXT_BITS

    def _mac(self, message: bytes) -> bytes:
        return hmac.digest(self._key, message, "sha256")


_ALONE = np.zeros(1, np.intp)
_INFINITY, _ABOVE_SIGN = np.uint64(0x7FF0_0000_0000_0000), np.uint64(2**63 - 1)


class _Sample:
    def __init__(self, columns: int) -> None:
        self.n_rows, self.total = 0, 0
        self.hashes: Words = np.empty(0, np.uint64)
        self.values: Words = np.empty((0, columns), np.uint64)

    @property
    def reach(self) -> np.uint64:
        return self.hashes[-1] if len(self.hashes) == SAMPLE else np.uint64(_LAST)

    def add(self, n_rows: int, total: int, hashes: Words, values: Words) -> None:
        # Only the rows with small hashes are passed in full.
        self.n_rows, self.total = self.n_rows + n_rows, (self.total + total) % 2**64
        found, first = np.unique(np.concatenate([self.hashes, hashes]), return_index=True)
        self.hashes = found[:SAMPLE]
        self.values = np.concatenate([self.values, values])[first[:SAMPLE]]


Digests = NDArray[np.uint64]
#: Name of the register among an answer's attachments, and, in the answer, of its size.
REGISTER = "persons"


class Period(NamedTuple):
    """A period of a stream: id of the stream, number of the period from 1, and the horizon."""

    stream: str
    number: int
    horizon: Horizon

    @classmethod
    def of(cls, asked: Round) -> "Period | None":
        """Return the period of a round; None if its plan has no horizon."""
        if asked.plan.horizon is None or asked.period is None:
            return None
        return cls(asked.stream, asked.period, asked.plan.horizon)


class Recognised(NamedTuple):
    """Digests that the book recognises the people of an answer by, whatever the rows are called.

    Samples of the rows and of the persons, and the register of all persons; each is None if there
    are no rows, or no column identifies persons.
    """

    rows: RowDigests | None = None
    persons: RowDigests | None = None
    register: Digests | None = None

    @classmethod
    def of(cls, rows: RowDigests | None, persons: PersonsCounted | None) -> "Recognised":
        """Return what the book stores about counted rows, and the persons of their sketch."""
        if persons is None:
            return cls(rows)
        return cls(rows, of_persons(persons) if persons.n_persons else None, persons.register)

    @property
    def samples(self) -> list[RowDigests]:
        """Return the samples that there are."""
        return [sample for sample in (self.rows, self.persons) if sample is not None]

    def kept(self) -> dict[str, str | None]:
        """Return the form that is kept between the steps of a round."""
        recognised = {
            "digests": None if self.rows is None else self.rows.to_bytes(),
            "sample": None if self.persons is None else self.persons.to_bytes(),
            "register": None if self.register is None else to_bytes(self.register),
        }
        return {
            k: None if v is None else base64.b64encode(v).decode() for k, v in recognised.items()
        }

    @classmethod
    def of_kept(cls, kept: Mapping[str, Any]) -> "Recognised":
        """Read back what `kept` returned."""
        rows, persons, register = (
            None if kept[name] is None else base64.b64decode(kept[name])
            for name in ("digests", "sample", "register")
        )
        return cls(
            None if rows is None else RowDigests.from_bytes(rows),
            None if persons is None else RowDigests.from_bytes(persons),
            None if register is None else from_bytes(register),
        )


def to_bytes(register: Digests) -> bytes:
    """Return a register in the form that the book stores."""
    return register.astype("<u8", copy=False).tobytes()


def from_bytes(content: bytes) -> Digests:
    """Read back what `to_bytes` wrote, without a copy; raise `ValueError` on anything else."""
    register = np.frombuffer(content, "<u8")
    if (register[1:] < register[:-1]).any():
        raise ValueError("a register rises")
    return register.astype(np.uint64, copy=False)


def check_registered(persons: PersonsCounted | None) -> None:
    """Raise `UsageError` if there are no person ids to count a person's periods with."""
    if persons is None or persons.register is None:
        raise UsageError(
            "to know in how many periods a person was counted, a column has to identify persons: "
            "count with Sketch.from_data(person=..., key=reply.book.persons_key, "
            "known=reply.barred())"
        )


def nameless(answers: Sequence[Entry], data_set: str, period: Period | None) -> int:
    """Return how many answers lack a register, although their persons should be left out here."""
    others = [answer for answer in _others(answers, data_set) if REGISTER not in answer.content]
    if period is None:
        return len(others)
    about = [answer.content for answer in answers if answer.content.get("stream") == period.stream]
    named = {answer["period"] for answer in about if REGISTER in answer}
    return len(others) + len({answer["period"] for answer in about} - named - {period.number})


def barred(
    answers: Iterable[Entry],
    read: Callable[[Entry], Digests],
    data_set: str,
    period: Period | None = None,
) -> Digests:
    """Return the persons not to count in a round: sorted digests, each once.

    ``read`` returns the register of an answer that has one. Not to be counted are persons whom a
    different data set has counted; and, in a round about a period, persons who were counted in as
    many other periods of the stream as the horizon allows, or in a period closer than it allows.
    """
    known = [answer for answer in answers if REGISTER in answer.content]
    registers = [read(answer) for answer in _others(known, data_set)]
    if period is not None:
        registers.append(_used(known, read, period))
    return _together(registers)


def _used(answers: Iterable[Entry], read: Callable[[Entry], Digests], period: Period) -> Digests:
    periods: dict[int, list[Digests]] = {}
    for old in answers:
        if old.content.get("stream") == period.stream and old.content["period"] != period.number:
            periods.setdefault(old.content["period"], []).append(read(old))
    most, apart = period.horizon.participations, period.horizon.apart
    if most == 1:
        return _together(list(chain.from_iterable(periods.values())))
    each = {number: _together(registers) for number, registers in periods.items()}
    close = [old for number, old in each.items() if abs(number - period.number) < apart]
    counted = np.sort(np.concatenate([*each.values(), np.empty(0, np.uint64)]))
    again = counted[most - 1 :]  # if a digest occurs that often, the last one equals the first
    often = again[again == counted[: len(again)]]
    return _together([*close, often])


def _others(answers: Iterable[Entry], data_set: str) -> list[Entry]:
    return [answer for answer in answers if answer.content["data_set"] != data_set]


def _together(registers: list[Digests]) -> Digests:
    together = np.concatenate([*registers, np.empty(0, np.uint64)])
    together.sort()
    distinct = np.ones(len(together), bool)
    distinct[1:] = together[1:] != together[:-1]
    return together[distinct]
