"""Readings of entities over time, each beside the earlier readings of its entity.

A reading of 38.5 degrees is usual for one patient at six in the evening, and not for another at
four in the morning. Four columns of a value say how unusual a reading is for its entity; any
detector can take them in place of the value:

=============  ==================================================================================
column         meaning, for a value v
=============  ==================================================================================
``v place``    standard deviations between the reading and the mean of its entity's earlier
               readings in that hour of the day; while these are fewer than two, the mean of all
               its earlier readings
``v change``   difference from the entity's last reading, divided by the usual size of such
               differences
``v spread``   natural logarithm of the standard deviation of the last six readings, this one
               included, divided by that of all readings so far
``since``      binary logarithm of 1 + the seconds since the entity's last reading
=============  ==================================================================================

All columns are causal: they depend on the reading itself and on earlier ones of its entity. Unknown
values are NaN. Places and changes have about a normal distribution if the readings have, however
few came before: they are Student's t, made normal by Wallace (*Bounds on normal approximations to
Student's and the chi-square distributions*, 1959). Standard deviations from means are estimated by
the mean absolute deviation, times sqrt(pi / 2) (Geary, 1935); once five deviations are known, one
of more than three standard deviations counts as three, so that an error in a reading does not make
the next one usual.
"""

import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.data.columns import as_column, as_numbers, is_text
from hushtable.data.labels import LABELS_VERSION, fold
from hushtable.data.persons import ids_of
from hushtable.data.readers import Coupling, Reader, as_reader, is_pandas
from hushtable.data.readers.memory import is_polars
from hushtable.data.readers.reader import as_table
from hushtable.data.schema import SINCE
from hushtable.errors import DataError, FileError, UsageError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_HOURS = 24
#: Readings whose spread is looked at.
_RECENT = 6
#: Of the usual spread: added to that of the last readings, whose logarithm is taken.
_LEAST = 0.01
#: What follows the name of a value in those of its columns, and the last column of all.
_WHAT, SINCE_LAST = ("place", "change", "spread"), "since"


def history_names(values: Sequence[str]) -> list[str]:
    """Return the names of the columns that values have in `history_columns`."""
    return [*(f"{value} {what}" for value in values for what in _WHAT), SINCE_LAST]


def values_behind(names: Sequence[str]) -> list[str]:
    """Return the values whose columns of `history_names` are among these names."""
    behind = (name.rpartition(" ") for name in names if " " in name)
    return list(dict.fromkeys(value for value, _, what in behind if value and what in _WHAT))


def of_history(names: Sequence[str]) -> list[str]:
    """Return the names that columns of `history_names` can have."""
    return [name for name in names if name == SINCE_LAST or values_behind([name])]


def compared_within(entity: str) -> Coupling:
    """Return what couples readings that are compared with earlier ones of their entity."""
    how = f"readings are compared within {entity!r}"
    return Coupling(how, "do not derive a history", fold(entity))


def history_unit(name: str) -> str:
    """Return the unit of a column of `history_names`."""
    return SINCE if name == SINCE_LAST else "" if name.endswith(_WHAT[2]) else "sd"


def history_columns(X: Any, *, entity: str, time: str, values: Sequence[str] | None = None) -> Any:
    """Return readings with columns that compare each with the earlier ones of its entity.

    They depend on the other readings of the entity. `hushtable.Sketch.from_data` counts columns
    with these names for a release only with ``person=``, which has to be the entity.

    Parameters
    ----------
    X : data frame or Arrow object of n rows
        One reading of one entity a row, in any order: see `hushtable.data.readers.as_reader`.
    entity : str
        Column that identifies the entity of a reading: texts or whole numbers.
    time : str
        Column of points in time: timestamps, dates, or numbers of seconds. Readings of an entity at
        the same time stay in the order of the rows. The hour of the day is by the zone of
        timestamps; by UTC for those without one, and for numbers.
    values : sequence of str, optional
        Columns of numbers; by default, all but ``entity`` and ``time``.

    Returns
    -------
    pandas or polars frame, or pyarrow Table
        The rows as they came, followed by float64 columns: ``"v place"``, ``"v change"`` and
        ``"v spread"`` of each value v, and ``"since"``; NaN where nothing is known. A row without
        entity or time has NaN in all of them, and is not in the history of others.

    Raises
    ------
    DataError
        If a column is missing, has a different kind, or has the name of one to be added.
    UsageError
        If the named columns cannot be combined.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from hushtable.history import history_columns
    >>> pulse = [60, 64, 63, 61, 66, 59, 90]
    >>> day = range(0, 7 * 86_400, 86_400)
    >>> readings = pa.table({"patient": ["a"] * 7, "day": day, "pulse": pulse})
    >>> table = history_columns(readings, entity="patient", time="day")
    >>> [round(z, 1) for z in table["pulse place"].to_pylist()]
    [nan, nan, 0.2, -0.7, 1.6, -1.2, 3.3]
    """
    return History(entity=entity, time=time, values=values).update(X)


class History:
    """Memory of the earlier readings of entities, which can be pickled between two updates.

    Its size is entities x values x (24 hours + a few numbers), whatever the number of readings.

    Parameters
    ----------
    entity, time, values
        As in `history_columns`. Without ``values``, the first update decides.

    Raises
    ------
    UsageError
        If the named columns cannot be combined.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from hushtable.history import History
    >>> history = History(entity="patient", time="day")
    >>> _ = history.update(pa.table({"patient": ["a", "b"], "day": [0, 0], "pulse": [60, 80]}))
    >>> later = history.update(pa.table({"patient": ["a"], "day": [86_400], "pulse": [62]}))
    >>> round(later["since"][0].as_py(), 2)  # 2 ** 16.4 seconds are a day
    16.4
    """

    def __init__(self, *, entity: str, time: str, values: Sequence[str] | None = None) -> None:
        if entity == time:
            raise UsageError(
                f"entity={entity!r} is also the column of the time: name one column that "
                "identifies the entity of a reading, and another that states when it was taken"
            )
        if isinstance(values, str) or (values is not None and not len(values)):
            raise UsageError(
                f"values={values!r}: needs a list of column names, or None for all numbers"
            )
        if odd := [name for name in values or () if name in (entity, time)]:
            raise UsageError(
                f"values: {odd[0]!r} is the column of the entity or of the time: leave it out"
            )
        self.entity, self.time = fold(entity), fold(time)
        self.values = None if values is None else tuple(dict.fromkeys(values))
        self._numbers: dict[str, int] = {}  # of entities: their place in the state
        self._state: _State | None = None
        #: History after the last pass over rows that began here: see `with_history`.
        self.after: History | None = None

    def update(self, X: Any) -> Any:
        """Return readings with the columns of `history_columns`, and keep them as history.

        Parameters
        ----------
        X : data frame or Arrow object of n rows
            Readings: of one entity, none older than those of earlier updates.

        Returns
        -------
        pandas or polars frame, or pyarrow Table
            As `history_columns`.

        Raises
        ------
        DataError
            As `history_columns`, and if a reading is older than the last one of its entity in
            earlier updates. The history is then as it was.
        """
        reader = as_reader(X).repeatable()
        if reader.names is None:
            raise DataError(
                f"{reader.source} has no column names: history needs a data frame or an Arrow "
                "table with named columns for entity and time"
            )
        table = as_table(reader)
        if not len(table):
            raise DataError(f"{reader.source} has no rows: history needs at least one reading")
        values = self._values(table, reader)
        names = history_names(values)
        if clash := [name for name in names if name in table.column_names]:
            raise DataError(
                f"{reader.source} already has a column {clash[0]!r}: rename it, or leave it out"
            )
        columns = {name: table[name].combine_chunks() for name in table.column_names}
        numbers = [finite(columns[v], v, reader.place) for v in values]
        seconds, hours = _times(columns[self.time], self.time)

        def where(row: int) -> str:
            return f"{reader.source}, {reader.place(row)}"

        compared = self.advance(columns[self.entity], seconds, hours, numbers, where)
        self.values = values
        return _beside(X, table, dict(zip(names, compared.T, strict=True)))

    def advance(
        self,
        entities: pa.Array,
        seconds: Floats,
        hours: Integers,
        values: Sequence[Floats],
        where: Callable[[int], str],
    ) -> Floats:
        """Return the columns of readings, and keep them as history.

        Parameters
        ----------
        entities : array of n texts or whole numbers
            The entity of each reading.
        seconds : ndarray of shape (n,), float64
            Since 1970 UTC; NaN where missing.
        hours : ndarray of shape (n,), int64
            Hours of the day, from 0 to 23.
        values : sequence of d ndarrays of shape (n,), float64
            The readings of each column; NaN where missing.
        where : callable
            Returns the place of a row, for messages.

        Returns
        -------
        ndarray of shape (n, 3 d + 1), float64
            In the order of `history_names`.

        Raises
        ------
        DataError
            If a reading is older than the last one of its entity in earlier calls.
        """
        _, texts = ids_of(entities, self.entity, where)
        who, new = self._who(texts)
        usable = np.flatnonzero((who >= 0) & np.isfinite(seconds))
        state = self._state or _State(len(values))
        self._refuse_older(state, who, seconds, usable, where, texts)

        self._numbers |= new
        self._state = state.grown(len(self._numbers))
        columns = np.full((len(texts), 3 * len(values) + 1), np.nan)
        x = np.ascontiguousarray(np.stack(values, axis=1)[usable])
        columns[usable] = self._state.advance(who[usable], seconds[usable], hours[usable], x)
        return columns

    def __repr__(self) -> str:
        values = "" if self.values is None else f" of {', '.join(self.values)}"
        return f"History(entity={self.entity!r}, time={self.time!r}{values})"

    def is_of(self, other: "History") -> bool:
        """Return whether both have the same columns."""
        mine, others = (vars(history) for history in (self, other))
        return all(mine[name] == others[name] for name in ("entity", "time", "values"))

    def copy(self) -> "History":
        """Return an independent copy of the history."""
        copied = deepcopy(self)
        copied.after = None
        return copied

    # --- kept between visits ----------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Return the history as bytes, with the names of the entities."""
        stated: dict[str, Any] = {"entity": self.entity, "time": self.time, "values": self.values}
        stated |= {"names": list(self._numbers), "labels": LABELS_VERSION}
        arrays = {} if self._state is None else vars(self._state)
        file = io.BytesIO()
        text = np.frombuffer(json.dumps(stated).encode(), np.uint8)
        np.savez_compressed(file, allow_pickle=False, said=text, **arrays)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> "History":
        """Return the history that `to_bytes` wrote; raises `FileError` on anything else."""
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
                stated = json.loads(arrays["said"].tobytes())
                history = cls(entity=stated["entity"], time=stated["time"], values=stated["values"])
                # Version 0 of the rules for labels did not fold names.
                names = stated["names"] if stated.get("labels") else [*map(fold, stated["names"])]
                history._numbers = {name: number for number, name in enumerate(names)}
                if len(arrays) > 1:
                    history._state = _State.of(arrays, len(names))
        except (OSError, EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
            raise FileError(f"the history of earlier readings is damaged: {error}") from None
        if len(history._numbers) < len(names):
            raise FileError(
                "the history of earlier readings keeps names apart that are one name now, such as "
                "'a' and 'a ': make it again from its rows"
            )
        return history

    def _values(self, table: pa.Table, reader: Reader) -> tuple[str, ...]:
        check_named(reader, {"entity": self.entity, "time": self.time})
        for name in self.values or ():
            check_named(reader, {"values": name})
        if self.values is not None:
            return self.values
        others = [f for f in table.schema if f.name not in (self.entity, self.time)]
        names = tuple(field.name for field in others if _is_number(field.type))
        if not names:
            kinds = {field.name: str(field.type) for field in others}
            raise DataError(
                f"{reader.source} has no numeric column besides the entity and the time, but "
                f"{kinds}: history needs at least one; convert texts into numbers first"
            )
        return names

    def _who(self, texts: pa.Array) -> tuple[Integers, dict[str, int]]:
        """Return the numbers of the rows' entities (n,), -1 if missing, and the new ones."""
        encoded = texts.dictionary_encode()
        names = encoded.dictionary.to_pylist()
        fresh = [name for name in names if name not in self._numbers]
        new = {name: len(self._numbers) + i for i, name in enumerate(fresh)}
        number = [new[name] if name in new else self._numbers[name] for name in names]
        codes = pc.fill_null(encoded.indices, len(names)).to_numpy(zero_copy_only=False)
        return np.array([*number, -1], np.int64)[codes], new

    def _refuse_older(
        self,
        state: "_State",
        who: Integers,
        seconds: Floats,
        there: Integers,
        where: Callable[[int], str],
        texts: pa.Array,
    ) -> None:
        known = there[who[there] < len(state.time)]
        older = known[seconds[known] < state.time[who[known]]]
        if len(older):
            row = int(older[0])
            late = state.time[who[row]] - seconds[row]
            raise DataError(
                f"{where(row)}: a reading of {texts[row].as_py()!r} is {late:,.0f} s older than "
                f"the last one before it ({len(older):,} such readings): sort the readings by time "
                "first, also across files, or give all of them at once as a frame"
            )


class _State:
    """Sums over the readings of e entities and d values; missing values count in none."""

    def __init__(self, n_values: int) -> None:
        d = n_values
        self.time = np.empty(0)  # of the last reading, in seconds; NaN before the first
        self.n = np.empty((0, d))  # readings
        self.mean, self.squares = np.empty((0, d)), np.empty((0, d))  # and squares about the mean
        self.hour_n, self.hour_mean = np.empty((0, _HOURS, d)), np.empty((0, _HOURS, d))
        #: Deviations from means of hours: how many, and the sum of their sizes.
        self.deviations, self.deviation = np.empty((0, d)), np.empty((0, d))
        self.last, self.change = np.empty((0, d)), np.empty((0, d))  # sum of sizes of changes
        self.recent = np.empty((0, _RECENT, d))  # readings, the last one first

    @classmethod
    def of(cls, arrays: Any, n_entities: int) -> "_State":
        state = cls(arrays["n"].shape[1])
        for name, empty in vars(state).items():
            array = arrays[name]
            if array.dtype != np.float64 or array.shape != (n_entities, *empty.shape[1:]):
                raise ValueError(f"{name} is of shape {array.shape}")
            setattr(state, name, array)
        return state

    def grown(self, n_entities: int) -> "_State":
        grown = _State(self.n.shape[1])
        for name, array in vars(self).items():
            fresh = np.zeros((n_entities - len(array), *array.shape[1:]))
            fresh[:] = np.nan if name == "time" else 0.0
            setattr(grown, name, np.concatenate([array, fresh]))
        return grown

    def advance(self, who: Integers, seconds: Floats, hours: Integers, x: Floats) -> Floats:
        """Return the columns (n, 3 d + 1) of readings ``x`` (n, d), and take them in."""
        n, d = x.shape
        order = np.lexsort((seconds, who))  # keeps the order of rows at the same time
        found, gaps = np.empty((6, n, d)), np.empty(n)
        state = tuple(vars(self).values())
        kernels.compare_readings(order, who, seconds, hours, x, state, found, gaps)
        with np.errstate(all="ignore"):
            spread, usual = found[4:]
            known = usual > 0.0
            spread = np.log(
                np.where(known, spread / np.where(known, usual, 1.0) + _LEAST, spread + 1.0)
            )
            columns = [_normal(*found[:2]), _normal(*found[2:4]), spread]
        by_value = np.stack(columns, axis=2).reshape(n, 3 * d)
        return np.column_stack([by_value, np.log2(1.0 + gaps)])


def _normal(t: Floats, n: Floats) -> Floats:
    """Return Student's t with n degrees of freedom as standard normal; NaN where n < 1."""
    z = np.sqrt(n * np.log1p(t * t / n)) * (8.0 * n + 1.0) / (8.0 * n + 3.0)
    return np.where(n >= 1.0, np.copysign(z, t), np.nan)


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def check_named(reader: Reader, columns: Mapping[str, str]) -> None:
    """Raise `DataError` unless rows have the columns that play these roles."""
    for role, name in columns.items():
        if name not in (reader.names or ()):
            names = list(reader.names or ())
            raise DataError(
                f"{reader.source} has no column {name!r} ({role}): its columns are {names}"
            )


def finite(column: pa.Array, name: str, place: Callable[[int], str]) -> Floats:
    """Return the values (n,) of a column, NaN where missing; raises `DataError`."""
    if is_text(column.type):
        raise DataError(
            f"column {name!r} holds {column.type}, and its history needs numbers: convert it, or "
            "leave it out"
        )
    x = np.asarray(as_numbers(column, name), np.float64)
    if np.isinf(x).any():
        row = int(np.flatnonzero(np.isinf(x))[0])
        raise DataError(
            f"column {name!r} holds {x[row]} in {place(row)}: needs finite numbers; correct the "
            "value or leave it empty"
        )
    return x


def hours_of(clock: Floats) -> Integers:
    """Return the hours of the day (n,) of seconds by the clock of a place."""
    hours = np.floor(np.nan_to_num(clock) / 3600.0) % _HOURS
    return hours.astype(np.int64)


def _times(column: pa.Array, name: str) -> tuple[Floats, Integers]:
    kind = column.type
    stamped = pa.types.is_timestamp(kind)
    if not (stamped or pa.types.is_date(kind) or pa.types.is_null(kind) or _is_number(kind)):
        raise DataError(
            f"time={name!r}: the column holds {kind}, but needs points in time: convert it into "
            "timestamps, dates or numbers of seconds"
        )
    seconds = np.asarray(as_numbers(column, name), np.float64)
    seconds = np.where(np.isfinite(seconds), seconds, np.nan)
    wall = seconds
    if stamped and kind.tz is not None:
        wall = np.asarray(as_numbers(pc.local_timestamp(column), name), np.float64)
    return seconds, hours_of(wall)


def _beside(X: Any, table: pa.Table, columns: dict[str, Floats]) -> Any:
    if is_pandas(X):
        return X.assign(**columns)
    if is_polars(X):
        import polars

        return X.lazy().collect().with_columns([polars.Series(n, c) for n, c in columns.items()])
    for name, column in columns.items():
        table = table.append_column(name, as_column(column))
    return table
