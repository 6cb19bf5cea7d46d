"""Files of SPSS, Stata, and SAS: numbers, texts, dates, and labels in place of their codes."""

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc

from hushtable.data.columns import as_texts
from hushtable.data.readers.columnar import feather_file
from hushtable.data.readers.copies import Copy
from hushtable.data.readers.reader import (
    FILE_ROWS,
    Batch,
    FileLayout,
    Reader,
    Unasked,
    column_names,
    unchanged,
)
from hushtable.data.readers.registry import built_in
from hushtable.errors import DataError, MissingExtraError

#: For each function of pyreadstat: the name of the files that it reads, and their endings.
_FILES = {
    "read_sav": ("SPSS", (".sav", ".zsav")),
    "read_por": ("SPSS portable", (".por",)),
    "read_dta": ("Stata", (".dta",)),
    "read_sas7bdat": ("SAS", (".sas7bdat",)),
    "read_xport": ("SAS transport", (".xpt",)),
}
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


def register() -> None:
    """Register the formats, an entry point of `hushtable.readers`."""
    for function, (name, endings) in _FILES.items():
        uses = () if function == "read_por" else ("encoding",)
        built_in(name, endings, partial(statistics_file, function), uses)


def statistics_file(function: str, path: Path, layout: FileLayout) -> Reader:
    """Read a file with a function of pyreadstat; the file is rewritten once in Arrow's format."""
    with unchanged(path):
        rewritten = _Rewritten(path, function, layout.encoding, layout.unasked)
    rows = rewritten.copy.reader(lambda copy: feather_file(copy, FileLayout()))
    names, made = column_names(rewritten.schema), rewritten.columns()
    (copied,) = rows.sources

    def project(columns: list[str]) -> Iterator[Batch]:
        first = 0
        for batch in copied.of(columns).read():
            assert isinstance(batch, pa.RecordBatch)
            arrays = [made[name](batch.column(name), first) for name in columns]
            yield pa.RecordBatch.from_arrays(arrays, columns)
            first += len(batch)

    source = replace(
        copied, read=partial(project, list(names)), project=project, n_rows=rewritten.n_rows,
        place=lambda row: f"row {row + 1}",
    )  # fmt: skip
    return replace(rows, names=names, sources=(source,), found=rewritten.words())


@dataclass
class _Rewritten:
    # A copy of a file in which dates and codes are numbers, as in the file.
    path: Path
    function: str
    encoding: str | None
    #: If no person can be asked: then no value may decide how others are read.
    unasked: Unasked | None
    n_rows: int = 0
    #: For each column with labels, the codes that occur, as texts.
    codes: dict[str, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
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
                content: tuple[Mapping[str, list[Any]], Any] = getattr(pyreadstat, self.function)(
                    str(self.path), output_format="dict", disable_datetime_conversion=True,
                    **options,
                )  # fmt: skip
        except UnicodeDecodeError:
            raise DataError(
                f"{self.path}: its texts have another encoding than it states: give it with "
                "--read encoding=NAME, such as cp1252"
            ) from None
        except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError) as error:
            raise DataError(
                f"{self.path}: the file cannot be read ({error}); it may be damaged or cut off: "
                "export it again, or as CSV"
            ) from None
        return content

    def _table(self, columns: Mapping[str, list[Any]]) -> pa.Table:
        arrays = []
        for kind in self.schema:
            array = pa.array(columns[kind.name], from_pandas=True)
            if pa.types.is_string(kind.type):
                array = array.cast(pa.string())
                array = pc.if_else(pc.equal(array, ""), None, array)
            else:
                array = array.cast(kind.type)
            if self._labels(kind.name):
                here = _codes(array.unique()).drop_null().to_pylist()
                self.codes.setdefault(kind.name, set()).update(here)
            arrays.append(array)
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def _labels(self, name: str) -> dict[str, str]:
        found = self.meta.variable_value_labels.get(name, {})
        if not pa.types.is_string(self.schema.field(name).type):
            # Marks of missing values, such as .a of Stata, are letters.
            found = {
                float(code): label for code, label in found.items() if not isinstance(code, str)
            }
        labels = [str(text) for text in found.values()]
        twice = {text for text in labels if labels.count(text) > 1}
        codes = _codes(pa.array([*found])).to_pylist()
        return {
            code: f"{text} ({code})" if text in twice else text
            for code, text in zip(codes, labels, strict=True)
        }

    def _all_labelled(self, name: str) -> bool:
        codes = self.codes.get(name, set())
        return len(codes) > 0 and codes <= self._labels(name).keys()

    def columns(self) -> dict[str, Callable[[pa.Array, int], pa.Array]]:
        return {name: self._values_of(name) for name in self.schema.names}

    def _values_of(self, name: str) -> Callable[[pa.Array, int], pa.Array]:
        if (labels := self._labels(name)) and (
            self.unasked is not None or self._all_labelled(name)
        ):
            codes, texts = (pa.array([*some], pa.string()) for some in (labels, labels.values()))
            return partial(_labelled, codes, texts)
        program = _PROGRAMS[self.function]
        form = self.meta.original_variable_types.get(name)
        kinds = zip(("date", "time", "length"), _DATES[program], strict=True)
        kind = next((kind for kind, begins in kinds if form and re.match(begins, form)), None)
        if kind is None or pa.types.is_string(self.schema.field(name).type):
            return lambda column, _: column
        second = 1e6 if program == "spss" or (program == "sas" and kind != "date") else 1e3
        unit = 86_400e6 if kind == "date" and program != "spss" else second
        start = 0 if kind == "length" else 1e6 * (_SPSS if program == "spss" else _SAS)
        return partial(_dates, f"{self.path}: column {name!r}", kind, unit, start, self.unasked)

    def words(self) -> tuple[str, ...]:
        words = []
        for name, codes in self.codes.items() if self.unasked is None else ():
            here = [f"{k} is {text!r}" for k, text in self._labels(name).items() if k in codes]
            if here and not self._all_labelled(name):
                words.append(f"codes with labels in {name!r}: {', '.join(here[:_SAID])}")
        more = (f"and in {len(words) - _SAID:,} more columns",) if len(words) > _SAID else ()
        return (*words[:_SAID], *more)


def _number(kind: str) -> pa.DataType:
    return pa.int64() if kind.startswith("int") else pa.float64()


def _codes(column: pa.Array) -> pa.Array:
    return pc.utf8_rtrim_whitespace(as_texts(column, ""))


def _labelled(codes: pa.Array, texts: pa.Array, column: pa.Array, _: int) -> pa.Array:
    here = _codes(column)
    return pc.coalesce(texts.take(pc.index_in(here, value_set=codes)), here)


def _dates(
    what: str,
    kind: str,
    unit: float,
    start: float,
    unasked: Unasked | None,
    column: pa.Array,
    first: int,
) -> pa.Array:
    numbers = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    missing = np.isnan(numbers)
    days = np.round(np.where(missing, start / unit, numbers) * unit) - start
    beyond = np.flatnonzero((days < _FIRST) | (days > _LAST))
    if len(beyond) and kind != "length":
        row, words = int(beyond[0]), f"{what} holds a date outside the years 1 to 9999"
        if unasked is None:
            raise DataError(
                f"{words} in row {first + row + 1} ({numbers[row]:g}): correct it, or leave the "
                "column out"
            )
        unasked.note(words, len(beyond), f"row {first + row + 1}".__str__)
        missing[beyond] = True
        days[beyond] = 0.0
    whole = pa.array(days.astype(np.int64), mask=missing)
    if kind == "length":
        return whole.cast(pa.duration("us"))
    stamps = whole.cast(pa.timestamp("us"))
    return pc.floor_temporal(stamps, unit="day").cast(pa.date32()) if kind == "date" else stamps
