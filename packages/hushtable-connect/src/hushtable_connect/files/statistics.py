"""Files of SPSS, Stata, and SAS: numbers, texts, dates, and labels in place of their codes."""

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import ipc

from hushtable.data.readers.columnar import feather_file
from hushtable.data.readers.reader import (
    FILE_ROWS,
    Batch,
    Copy,
    FileLayout,
    Reader,
    column_names,
    unchanged,
)
from hushtable.errors import DataError, MissingExtraError

#: Values read at a time: each needs some 50 bytes, and each read has to skip the rows before it.
_VALUES = 3 << 20
#: Seconds from the first day of a program's calendar to 1970, for each function of pyreadstat.
_SPSS, _SAS = 12_219_379_200, 315_619_200
#: For each function: the beginnings of the formats of dates, points in time, and durations.
_DATES = {
    "spss": (r"[AESJ]?DATE\d|MOYR|QYR|WKYR", r"DATETIME|YMDHMS", r"[DM]?TIME\d"),
    "stata": (r"%-?(td|d)", r"%-?t[cC](?!HH)", r"%-?t[cC]HH"),
    "sas": (
        r"(WEEKDAT|MMDDYY|DDMMYY|YYMMDD|DATE\d*$|(IS8601|E8601|B8601)DA)|(DAY|DOWNAME|JULDAY|JULIAN|"
        r"(MMYY|YYMM)[CDNPS]?|MONNAME|MONTH|MONYY|NENGO|QTRR?|WEEKDAY|WEEK[UVW]|WORDDAT[EX]|YEAR|"
        r"YYMON|YYQR?[CDNPS]?)\d*$",
        r"DATETIME|DTDATE|DATEAMPM|MDYAMPM|(IS8601|E8601|B8601)D[TNZ]",
        r"TIME|HHMM|TOD|(IS8601|E8601|B8601)TM",
    ),
}
_PROGRAMS = {
    "read_sav": "spss", "read_por": "spss", "read_dta": "stata", "read_sas7bdat": "sas",
    "read_xport": "sas",
}  # fmt: skip
#: Microseconds of Python's years 1 to 9999, from 1970 on.
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
#: Columns that a message describes at most.
_SAID = 3


def statistics_file(function: str, path: Path, layout: FileLayout) -> Reader:
    """Read a file with a function of pyreadstat; the file is rewritten once in Arrow's format."""
    with unchanged(path):
        rewritten = _Rewritten(path, function, layout.encoding)
    rows = rewritten.copy.reader(lambda copy: feather_file(copy, FileLayout()))
    names, made = column_names(rewritten.schema), rewritten.columns()
    inner = cast(Callable[[list[str]], Callable[[], Iterator[pa.RecordBatch]]], rows.project)

    def project(columns: list[str]) -> Callable[[], Iterator[Batch]]:
        def read() -> Iterator[Batch]:
            first = 0
            for batch in inner(columns)():
                arrays = [made[name](batch.column(name), first) for name in columns]
                yield pa.RecordBatch.from_arrays(arrays, columns)
                first += len(batch)

        return read

    return replace(
        rows,
        names=names,
        n_rows=rewritten.n_rows,
        read=project(list(names)),
        project=project,
        place=lambda row: f"row {row + 1}",
        found=rewritten.words(),
    )


@dataclass
class _Rewritten:
    """A copy of a file in which dates and codes are numbers, as in the file."""

    path: Path
    function: str
    encoding: str | None
    n_rows: int = 0
    #: For each column with labels, the codes that occur.
    codes: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    #: The same for columns of texts.
    texts: dict[str, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make the copy."""
        self.copy = Copy.of(str(self.path), ".arrow")
        _, self.meta = self._read(metadataonly=True)
        kinds = self.meta.readstat_variable_types
        self.schema = pa.schema(
            [(name, pa.string() if kinds[name] == "string" else _number(kinds[name])) for name in
             self.meta.column_names]
        )  # fmt: skip
        if not kinds:
            raise DataError(f"{self.path}: the file has no columns: needs 1 or more")
        if len(kinds) < len(self.meta.column_names):
            raise DataError(
                f"{self.path}: the file has two columns of the same name: rename one of them"
            )
        at_a_time = max(1, _VALUES // len(kinds))
        with ipc.new_file(str(self.copy.path), self.schema) as file:
            while True:
                columns, _ = self._read(row_offset=self.n_rows, row_limit=at_a_time)
                table = self._table(columns)
                file.write_table(table, max_chunksize=FILE_ROWS)
                self.n_rows += len(table)
                if len(table) < at_a_time:
                    break

    def _read(self, **options: Any) -> tuple[Mapping[str, list[Any]], Any]:
        try:
            import pyreadstat
        except ModuleNotFoundError:
            raise MissingExtraError(f"{self.path}: this file", "pyreadstat", "files") from None
        if self.encoding is not None:
            options["encoding"] = self.encoding
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # Dates are not converted, because durations of more than a day would lose the days.
                found: tuple[Mapping[str, list[Any]], Any] = getattr(pyreadstat, self.function)(
                    str(self.path), output_format="dict", disable_datetime_conversion=True,
                    **options,
                )  # fmt: skip
        except UnicodeDecodeError:
            raise DataError(
                f"{self.path}: its texts have another encoding than it states: give it with "
                "--encoding NAME, such as cp1252"
            ) from None
        except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError) as error:
            raise DataError(
                f"{self.path}: the file cannot be read ({error}); it may be damaged or cut off: "
                "export it again, or as CSV"
            ) from None
        return found

    def _table(self, columns: Mapping[str, list[Any]]) -> pa.Table:
        arrays = []
        for kind in self.schema:
            array = pa.array(columns[kind.name], from_pandas=True)
            if pa.types.is_string(kind.type):
                array = array.cast(pa.string())
                array = pc.if_else(pc.equal(array, ""), None, array)
                if self._text_labels(kind.name):
                    here = set(pc.utf8_rtrim_whitespace(array).drop_null().unique().to_pylist())
                    self.texts[kind.name] = self.texts.get(kind.name, set()) | here
            else:
                array = array.cast(kind.type)
                if self._labels(kind.name):
                    here = array.drop_null().unique().to_numpy(zero_copy_only=False)
                    before = self.codes.get(kind.name, np.empty(0))
                    self.codes[kind.name] = np.union1d(before, here.astype(np.float64))
            arrays.append(array)
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def _labels(self, name: str) -> dict[float, str]:
        """Return the labels of a column's numbers, by number."""
        found = self.meta.variable_value_labels.get(name, {})
        # Marks of missing values, such as .a of Stata, are letters.
        return {float(code): str(text) for code, text in found.items() if not isinstance(code, str)}

    def _text_labels(self, name: str) -> dict[str, str]:
        """Return the labels of a column's texts, which may be padded with blanks."""
        found = self.meta.variable_value_labels.get(name, {})
        return {code.rstrip(): str(text) for code, text in found.items() if isinstance(code, str)}

    def _all_labelled(self, name: str) -> bool:
        """Whether each code that occurs has a label."""
        codes = self.codes.get(name, np.empty(0))
        return len(codes) > 0 and set(codes.tolist()) <= self._labels(name).keys()

    def columns(self) -> dict[str, Callable[[pa.Array, int], pa.Array]]:
        """Return, for each column, the function that makes values of the numbers in the copy."""
        return {name: self._values_of(name) for name in self.schema.names}

    def _values_of(self, name: str) -> Callable[[pa.Array, int], pa.Array]:
        if self._all_labelled(name):
            codes, labels = self.codes[name], self._labels(name)
            texts = [labels[code] for code in codes.tolist()]
            return partial(_labelled, codes, _each_once(texts, [f"{code:g}" for code in codes]))
        if (here := self.texts.get(name)) and here <= self._text_labels(name).keys():
            some = sorted(here)
            texts = [self._text_labels(name)[code] for code in some]
            return partial(_relabelled, pa.array(some), _each_once(texts, some))
        program = _PROGRAMS[self.function]
        form = self.meta.original_variable_types.get(name)
        kinds = zip(("date", "time", "length"), _DATES[program], strict=True)
        kind = next((kind for kind, begins in kinds if form and re.match(begins, form)), None)
        if kind is None or pa.types.is_string(self.schema.field(name).type):
            return lambda column, _: column
        second = 1e6 if program == "spss" or (program == "sas" and kind != "date") else 1e3
        unit = 86_400e6 if kind == "date" and program != "spss" else second
        start = 0 if kind == "length" else 1e6 * (_SPSS if program == "spss" else _SAS)
        return partial(_dates, f"{self.path}: column {name!r}", kind, unit, start)

    def words(self) -> tuple[str, ...]:
        """Return messages on columns in which only some of the values have a label."""
        some = {
            name: {code: text for code, text in self._labels(name).items() if code in codes}
            for name, codes in self.codes.items()
            if not self._all_labelled(name)
        }
        found = [
            f"numbers with labels in {name!r}: "
            + ", ".join(f"{code:g} is {text!r}" for code, text in list(here.items())[:_SAID])
            for name, here in some.items()
            if here
        ]
        for name, texts in self.texts.items():
            labels = self._text_labels(name)
            known = sorted(texts & labels.keys())
            if 0 < len(known) < len(texts):
                listed = ", ".join(f"{code!r} is {labels[code]!r}" for code in known[:_SAID])
                found.append(f"texts with labels in {name!r}: {listed}")
        more = (f"and in {len(found) - _SAID:,} more columns",) if len(found) > _SAID else ()
        return (*found[:_SAID], *more)


def _number(kind: str) -> pa.DataType:
    return pa.int64() if kind.startswith("int") else pa.float64()


def _each_once(texts: Sequence[str], codes: Sequence[str]) -> pa.Array:
    """Return labels, with the code after those that several codes have."""
    twice = {text for text in texts if texts.count(text) > 1}
    both = zip(texts, codes, strict=True)
    named = [f"{text} ({code})" if text in twice else text for text, code in both]
    return pa.array(named, pa.string())


def _relabelled(codes: pa.Array, texts: pa.Array, column: pa.Array, _: int) -> pa.Array:
    """Return the label of each text."""
    return texts.take(pc.index_in(pc.utf8_rtrim_whitespace(column), value_set=codes))


def _labelled(codes: NDArray[np.float64], texts: pa.Array, column: pa.Array, _: int) -> pa.Array:
    """Return the label of each code."""
    numbers = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    places = pa.array(np.searchsorted(codes, numbers), mask=np.isnan(numbers))
    return texts.take(places)


def _dates(
    what: str, kind: str, unit: float, start: float, column: pa.Array, first: int
) -> pa.Array:
    """Convert numbers of a unit to dates, points in time, or durations, in microseconds."""
    numbers = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    missing = np.isnan(numbers)
    found = np.round(np.where(missing, start / unit, numbers) * unit) - start
    if kind != "length" and ((found < _FIRST) | (found > _LAST)).any():
        row = int(np.flatnonzero((found < _FIRST) | (found > _LAST))[0])
        raise DataError(
            f"{what} holds a date outside the years 1 to 9999 in row {first + row + 1} "
            f"({numbers[row]:g}): correct it, or leave the column out"
        )
    whole = pa.array(found.astype(np.int64), mask=missing)
    if kind == "length":
        return whole.cast(pa.duration("us"))
    stamps = whole.cast(pa.timestamp("us"))
    return pc.floor_temporal(stamps, unit="day").cast(pa.date32()) if kind == "date" else stamps
