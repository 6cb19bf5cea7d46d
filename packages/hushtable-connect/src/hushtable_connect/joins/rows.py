"""Features of keys as columns: added to other rows, or as rows of their own."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hushtable.data.columns import as_column
from hushtable.data.labels import fold
from hushtable.data.options import first_names
from hushtable.data.persons import ids_of
from hushtable.data.readers import Batch, Coupling, Reader, near_names
from hushtable.data.readers.reader import slices
from hushtable.data.texts.reading import Reading
from hushtable.errors import DataError
from hushtable_connect.joins.aggregates import KeyedFeatures, arrow_columns
from hushtable_connect.joins.request import JoinRequest


def with_features(rows: Reader, request: JoinRequest, keyed: KeyedFeatures) -> Reader:
    """Append the features of their keys to rows; the rows' order and number stay.

    The rows' keys are read once, and each is held as a number.

    Raises
    ------
    DataError
        If the rows have no column with the key, a feature has the name of a column, or no key has
        features.
    """
    key = request.key
    _check_names(rows, key, keyed)
    rows = rows.repeatable()
    ids = [list(_ids(part, key)) for part in rows.parts]
    matches = _Matches(key, keyed, pa.chunked_array([c for part in ids for c in part], pa.string()))
    if len(matches.ids) and not matches.n_found:
        raise matches.no_match(rows.source)
    # After the features of the keys, add those of a key without features.
    features = {
        name: pa.concat_arrays(
            [column, pa.array([0 if name in keyed.counts else None], column.type)]
        )
        for name, column in keyed.columns.items()
    }
    parts, start = [], 0
    for part, own in zip(rows.parts, ids, strict=True):
        n_rows = sum(map(len, own))
        parts.append(_with_columns(part, key, features, matches.places.slice(start, n_rows)))
        start += n_rows
    found = (*rows.found, *(f"{keyed.source}: {words}" for words in keyed.found))
    return replace(
        rows.with_parts(parts), reading=_reading(rows, keyed),
        found=(*found, *matches.words(rows.source)),
        coupled=(*rows.coupled, *_coupled(request, keyed)),
    )  # fmt: skip


def rows_of_keys(rows: Reader, request: JoinRequest, keyed: KeyedFeatures) -> Reader:
    """Return a row for each key with its features, which replaces the rows that they came from.

    Raises `DataError` if a feature has the name of the key.
    """
    key = request.key
    columns = {key: keyed.keys, **keyed.columns}
    if key in keyed.columns:
        raise DataError(f"the key {key!r} has the name of a feature (--join): rename the column")
    whole = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))

    def read() -> Iterator[Batch]:
        cuts = slices(len(whole), len(columns))
        return (whole.slice(cut.start, cut.stop - cut.start) for cut in cuts)

    return Reader(
        tuple(columns), len(columns), len(whole), read, source=rows.source,
        place=lambda row: f"the row of {key} {keyed.keys[row]}",
        found=keyed.found, reading=_reading(rows, keyed), coupled=tuple(_coupled(request, keyed)),
    )  # fmt: skip


def _coupled(request: JoinRequest, keyed: KeyedFeatures) -> Iterator[Coupling]:
    """Yield what makes the features of rows depend on other rows, and on records that they share.

    Rows with the same key share the table's rows; and a row of a key depends on all its rows.
    """
    names = ", ".join(keyed.columns)
    how = f"{names}: features of {keyed.source} by {request.key!r} (--join)"
    yield Coupling(how, "leave these features out", fold(request.key))
    for one in keyed.coupled:
        yield one.at(fold(request.key_there), fold(request.key))


def _reading(rows: Reader, keyed: KeyedFeatures) -> Reading:
    """Return how rows are read, including the table's reading, for later rows of the same kind."""
    own: Reading = rows.reading or Reading()
    made = keyed.reading
    return replace(own, kinds={**own.kinds, **made.kinds}, columns={**own.columns, **made.columns})


def _check_names(rows: Reader, key: str, keyed: KeyedFeatures) -> None:
    names = rows.names or ()
    if key not in names:
        raise DataError(
            f"{rows.source} has no column {key!r} (--join): its columns are {list(names)}"
            f"{near_names([key], names)}"
        )
    if clash := [name for name in names if name in keyed.columns]:
        raise DataError(
            f"{rows.source} already has a column {clash[0]!r}, which --join would add: give the "
            "table another name (FILE as NAME on ...), or rename the column"
        )


def _ids(rows: Reader, key: str) -> Iterator[pa.StringArray]:
    """Yield the keys of rows as texts, a batch at a time."""
    start = 0
    for batch in rows.select([key]).read():
        [column] = arrow_columns(batch)
        yield ids_of(column, key, start)[1]
        start += len(column)


@dataclass(frozen=True)
class _Matches:
    """Which keys of rows have features."""

    key: str
    keyed: KeyedFeatures
    ids: pa.ChunkedArray

    @cached_property
    def _found(self) -> pa.ChunkedArray:
        """Numbers of the keys; null for a key without features, and for a missing key."""
        return pc.index_in(self.ids, value_set=self.keyed.keys)

    @property
    def n_found(self) -> int:
        """Rows whose key has features."""
        return len(self._found) - int(self._found.null_count)

    @cached_property
    def places(self) -> pa.Int32Array:
        """Numbers of the keys; for a key without features, the next number; null if missing."""
        none = as_column(np.array([len(self.keyed.keys)], np.int32))[0]
        places = pc.if_else(self.ids.is_valid(), pc.coalesce(self._found, none), self._found)
        return pa.concat_arrays(places.chunks) if len(places) else pa.nulls(0, pa.int32())

    def words(self, source: str) -> Iterator[str]:
        """Yield messages for the user."""
        n_rows, table = len(self.ids), self.keyed.source
        lacking = n_rows - self.n_found - self.ids.null_count
        if lacking:
            have = "has" if lacking == 1 else "have"
            yield f"{lacking:,} of {n_rows:,} rows {have} no row in {table}"
        if self.ids.null_count:
            yield f"{self.ids.null_count:,} of {n_rows:,} rows have no {self.key!r} to join by"
        if again := n_rows - self.ids.null_count - pc.count_distinct(self.ids).as_py():
            have = "has" if again == 1 else "have"
            yield f"{again:,} of {n_rows:,} rows {have} the {self.key!r} of an earlier row"
        used = np.zeros(len(self.keyed.keys), np.bool_)
        used[np.asarray(self._found.drop_null())] = True
        if not used.all():
            n, rows = int((~used).sum()), int(self.keyed.n_rows[~used].sum())
            keys, are = ("1 key", "is") if n == 1 else (f"{n:,} keys", "are")
            yield f"{keys} of {table} ({rows:,} row{'s' * (rows != 1)}) {are} not in {source}"

    def no_match(self, source: str) -> DataError:
        """Return the error for rows without any features."""
        here, there = (_first(keys) for keys in (self.ids, self.keyed.keys))
        table = self.keyed.source
        if not here:
            return DataError(f"{source}: {self.key!r} is missing in every row: --join needs it")
        alike = ""
        if _plain(self.ids) & _plain(self.keyed.keys):
            alike = " They would match in lower case and without leading zeros."
        return DataError(
            f"--join: no {self.key!r} of {source} is in {table}: {first_names(here)} here, "
            f"{first_names(there)} there.{alike} Name the columns that hold the same keys (on "
            f"KEY=KEY_THERE), or write the keys in the same way"
        )


def _first(keys: pa.Array) -> list[str]:
    return [repr(key) for key in pc.unique(keys.drop_null().slice(0, 1000)).to_pylist()]


def _plain(keys: pa.Array) -> set[str]:
    """Return keys without details that often differ between two programs."""
    return {key.lstrip("0").casefold() for key in pc.unique(keys.drop_null()).to_pylist()}


def _with_columns(
    rows: Reader, key: str, features: dict[str, pa.Array], places: pa.Int32Array
) -> Reader:
    """Return rows with features, taken from the places that the rows' keys have."""

    def project(names: Sequence[str]) -> Callable[[], Iterator[Batch]]:
        own = [name for name in names if name not in features]
        some = rows.select(own or [key])

        def read() -> Iterator[Batch]:
            start = 0
            for batch in some.read():
                here = places.slice(start, len(batch))
                start += len(batch)
                if len(here) < len(batch):
                    raise DataError(
                        f"{rows.source}: has more rows than on its first reading: do not change it"
                    )
                there = dict(zip(some.names or (), arrow_columns(batch), strict=True))
                taken = {n: features[n].take(here) for n in names if n in features}
                columns = there | taken
                yield pa.RecordBatch.from_arrays([columns[n] for n in names], list(names))

        return read

    names = [*(rows.names or ()), *features]
    return replace(
        rows, names=tuple(names), n_columns=len(names), read=project(names), project=project,
        numeric=False,
    )  # fmt: skip
