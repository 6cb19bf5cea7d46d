"""How rows are read, according to options of a command, entries of a site's file, or a caller.

Notes for a person on the rows that were opened are added to `notes`. Tested by
``tests/cli/test_reads.py``.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hushtable import plugins
from hushtable.data.calendar import sources
from hushtable.data.history import History
from hushtable.data.labels import fold
from hushtable.data.layout_file import entry, read_entries
from hushtable.data.readers import FileLayout, Reader, Unasked, as_reader, found_name, near_names
from hushtable.data.schema import Schema
from hushtable.data.texts.reading import Reading
from hushtable.data.typed import left_out, open_rows
from hushtable.errors import DataError, UsageError, explain, speaks_shell
from hushtable.language import _, numerals
from hushtable.words.refusals import refusal, refused

if TYPE_CHECKING:
    from hushtable.data.understanding import Understanding

#: Notes for a person on the rows; a command prints them at the end of its work.
notes: list[str] = []


def names_in(option: str) -> list[str]:
    """Split at commas; a name that contains one is in double quotes, as in a CSV file."""
    return [fold(name) for name in next(csv.reader([option], skipinitialspace=True), [])]


def first_names(names: Sequence[str], most: int = 3) -> str:
    """Return names for a sentence; of many, only the first few."""
    more = _(" and %(n)s more", n=numerals(f"{len(names) - most:,}"))
    return ", ".join(names[:most]) + (more if len(names) > most else "")


def person_columns(person: str | None, schema: Schema) -> list[str]:
    """Return the columns to keep next to the features; refuse features if rows are counted."""
    return [] if person is None or found_name(person, schema.names) in schema.names else [person]


#: No options on how rows are read.
_NONE = Reading()


@dataclass(frozen=True)
class RowOptions:
    """Which columns are used, and how they are read, according to options or a site's file."""

    columns: str | None = None
    drop: str | None = None
    missing: str | None = None
    decimal: str | None = None
    dates: str | None = None
    as_: list[str] | None = None
    encoding: str | None = None
    delimiter: str | None = None
    no_header: bool = False
    skip_lines: int | None = None
    skip_below: int | None = None
    skip_footer: int | None = None
    sheet: str | None = None
    query: str | None = None
    member: str | None = None
    independent: bool = False
    time: str | None = None
    zone: str | None = None
    entity: str | None = None
    omop: Literal["person", "visit"] | None = None
    concepts: Path | None = None
    cdm: str | None = None
    listed_units: bool = False
    by: str | None = None
    within: int | None = None

    @classmethod
    def typed(cls, read: Sequence[str] | None = None, **given: Any) -> "RowOptions":
        """Return options as a command takes them.

        ``read`` holds entries ``NAME=VALUE`` and paths of layout files, which other options
        override. Raises `UsageError` or `FileError` if one of them is not valid.
        """
        entries = read_entries(read or [])
        if "as" in entries:
            entries["as_"] = [entries.pop("as")]
        if "concepts" in entries:
            entries["concepts"] = Path(entries["concepts"])
        return cls(**entries | {name: v for name, v in given.items() if v not in (None, [], ())})

    def layout_lines(self) -> list[str]:
        """Return the lines of a layout file with these options."""
        given = {f.name.rstrip("_"): getattr(self, f.name) for f in fields(self)}
        given["as"] = None if self.as_ is None else ",".join(self.as_)
        given["concepts"] = None if self.concepts is None else str(self.concepts.absolute())
        return [entry(name, v) for name, v in given.items() if v is not None and v is not False]

    @cached_property
    def recipe(self) -> Any:
        """How OMOP tables become rows, according to options; None without them."""
        given = {
            "concepts": self.concepts, "cdm": self.cdm, "listed_units": self.listed_units,
            "by": names_in(self.by or ""), "within": self.within,
        }  # fmt: skip
        if self.omop is not None:
            recipe = plugins.extension("omop", "--read omop=...", "connect")
            return recipe(self.omop, *given.values())
        if alone := [name for name, value in given.items() if value not in (None, False, [])]:
            raise UsageError(f"--read {alone[0]}=... needs --read omop=person or --read omop=visit")
        return None

    @property
    def schema(self) -> Schema | None:
        """The public schema of OMOP rows; None for other rows, whose ranges are unknown."""
        if self.recipe is None:
            return None
        columns = None if self.columns is None else names_in(self.columns)
        schema: Schema = self.recipe.schema_of(columns, names_in(self.drop or ""))
        return schema

    @property
    def sources(self) -> list[str]:
        """Sources of the ranges of OMOP rows, one text for each feature of the schema."""
        if self.recipe is None or self.schema is None:
            return []
        sources: list[str] = self.recipe.sources_of(self.schema)
        return sources

    def drawn(self, reader: Reader) -> "RowOptions":
        """Return these options with the OMOP columns that most rows have, if none were named.

        The columns depend on the rows, so they are for a model that stays here.
        """
        if self.recipe is None or self.columns is not None or self.concepts is not None:
            return self
        return replace(self, columns=",".join(self.recipe.drawn(reader)))

    def coverage(self, reader: Reader) -> dict[str, float]:
        """Return the share of OMOP rows that have a value, by concept; nothing for other rows."""
        shares: dict[str, float] = {} if self.recipe is None else self.recipe.coverage(reader)
        return shares

    def beside(self, id_: str | None, keep: str | None) -> tuple[str | None, list[str]]:
        """Return the column that identifies rows, and all columns kept next to the features.

        For OMOP rows, that column is their key, unless another is named.
        """
        if id_ is None and self.recipe is not None:
            id_ = self.recipe.key
        id_ = None if id_ is None else fold(id_)
        return id_, [*([] if id_ is None else [id_]), *names_in(keep or "")]

    @property
    def reading(self) -> Reading:
        """How texts are read, according to options."""
        kinds: dict[str, str] = {}
        for text in [pair for typed in self.as_ or [] for pair in names_in(typed)]:
            name, equals, kind = text.rpartition("=")
            if not equals:
                raise UsageError(f"--as {text}: needs a column and a kind, such as --as tsh=number")
            kinds[name] = kind
        missing, drop = names_in(self.missing or ""), names_in(self.drop or "")
        typed = Reading(tuple(missing), self.decimal, self.dates, kinds, tuple(drop))  # type: ignore[arg-type] # it checks
        time, zone, entity = (name or "" for name in (self.time, self.zone, self.entity))
        return replace(typed, layout=self.layout.kept, time=time, zone=zone, entity=entity)

    @property
    def layout(self) -> FileLayout:
        """How files are laid out, according to options."""
        return FileLayout(
            self.encoding, self.delimiter, False if self.no_header else None, self.skip_lines,
            self.skip_below, self.skip_footer, self.sheet, self.query, self.member,
            self.independent or None,
        )  # fmt: skip

    def opened(
        self,
        data: str,
        model: Reading = _NONE,
        unasked: Unasked | None = None,
        needed: Sequence[str] | None = None,
    ) -> Reader:
        """Open all columns as they are.

        ``model`` states how a model's rows were read; ``unasked``, that no person can be asked. Of
        OMOP tables, only the ``needed`` columns are read; by default, all.
        """
        recipe = self.recipe
        if recipe is not None:
            self.layout.check_used(("independent",), "--read omop=...")
            partial = recipe if needed is None else recipe.of(needed)
            reader: Reader = partial.open(data, self.independent, unasked=unasked)
            return reader
        try:
            layout = replace(self.layout, unasked=unasked)
            return as_reader(data, layout=layout, kept=model.layout)
        except OSError as error:
            scheme, address, _ = data.partition("://")
            name = f"{scheme}://..." if address else data  # which may hold a password
            raise DataError(f"cannot read {name}: {explain(error)}") from error

    def open(
        self,
        data: str,
        keep: Sequence[str] = (),
        model: Reading = _NONE,
        unasked: Unasked | None = None,
        needed: Sequence[str] | None = None,
    ) -> Reader:
        """Open rows with the used columns, which are analysed, and those to keep."""
        if self.columns is not None and self.drop is not None:
            raise UsageError("--columns and --drop exclude each other: give one of them")
        if self.columns is not None:
            needed = [*names_in(self.columns), *keep]
        reading, reader = self.reading, self.opened(data, model, unasked, needed)
        notes.extend(f"{reader.source}: {words}" for words in reader.found)
        columns = None if self.columns is None else names_in(self.columns)
        if columns is not None and len(set(columns)) < len(columns):
            raise UsageError("--columns names a column twice: name each once")
        if columns is None and self.recipe is not None:
            columns = [name for name in reader.names or () if name not in self.recipe.identifiers]
        if reader.names and not keep and reading.dropped.issuperset(columns or reader.names):
            raise UsageError(refusal("none_left", source=reader.source))
        try:
            return chosen(reader, reading, columns, keep)
        except DataError as error:
            raise DataError(
                f"{error} (--columns, --drop, --as, --id, --keep, --person)"
                if speaks_shell()
                else str(error)
            ) from None

    def open_as(
        self,
        data: str,
        schema: Schema,
        reading: Reading | None = None,
        keep: Sequence[str] = (),
        *,
        attended: bool = True,
        history: History | None = None,
    ) -> Reader:
        """Open rows under a schema, and note which columns are left out.

        ``history`` holds readings before these rows: see `open_rows`.
        """
        used = (reading or _NONE).updated(self.reading)
        needed = sources([*schema.names, *keep], used) if schema.named else ()
        unasked = None if attended else Unasked(needed)
        rows = self.open(data, keep, reading or _NONE, unasked, [*schema.names, *keep])
        # For a database, which has no layout to detect.
        return under(replace(rows, unasked=unasked), schema, reading, keep, history)


def under(
    reader: Reader,
    schema: Schema,
    reading: Reading | None = None,
    keep: Sequence[str] = (),
    history: History | None = None,
) -> Reader:
    """Return rows under a schema; note which columns are left out."""
    used = (reading or _NONE).updated(reader.reading)
    known = used.dropped | {used.time, *sources(schema.names, used)}
    further = [name for name in left_out(reader, schema, keep) if name not in known]
    if further:
        are = "it is not a feature" if len(further) == 1 else "they are not features"
        notes.append(f"{reader.source}: left out, because {are}: {first_names(further, 5)}")
    return open_rows(reader, schema, reading, keep, history=history)


def read(
    data: Any,
    *,
    missing: Sequence[str] = (),
    decimal: str | None = None,
    dates: str | None = None,
    kinds: Mapping[str, str] | None = None,
    drop: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    time: str = "",
    zone: str = "",
    entity: str = "",
    **layout: Any,
) -> Reader:
    """Specify how rows are read; other properties are detected, or refused if ambiguous.

    Parameters
    ----------
    data : array, data frame, Arrow object, path or address
        Rows, as every method that takes rows takes them.
    missing : sequence of str
        Texts that are codes for missing values, such as ``["ERR", "-9999"]``.
    decimal : {",", "."}, optional
        Decimal separator.
    dates : {"dmy", "mdy", "ymd"}, optional
        Order of day, month and year.
    kinds : dict of str to {"number", "date", "category", "label", "id"}, optional
        Kinds of columns by name. For a number, ``<0.5`` is read as 0.5, and text that is not a
        number counts as missing; a label is a category in which spellings that differ only by case,
        accents or look-alike letters are the same; an id is left out.
    drop, columns : sequence of str, optional
        Columns to leave out; or those to use, in this order.
    time : str, optional
        Column of points in time. It is replaced by the features hour, weekday, day of the month and
        month, which are cyclic categories: 23 is next to 0, and a month's last day next to the
        first.
    zone : str, optional
        With ``time``, if the times state their zone: the time zone of the clock that counts, such
        as ``"Europe/Berlin"``. Times without a zone are read as local times.
    entity : str, optional
        With ``time``: column that identifies the entity of a reading, such as a patient or a
        machine. Each numeric column is replaced by features that compare a reading with the earlier
        ones of its entity among these rows: see `hushtable.history.history_columns`. Rows in memory
        may be in any order; rows of files must be in time order for each entity.
    **layout
        ``encoding``, ``delimiter``, ``header``, ``skip_lines``, ``skip_below``, ``skip_footer`` of
        a CSV file; ``sheet`` of a workbook; ``member`` of a file with several parts, such as an
        archive;
        ``query`` for a database, and ``independent=True`` to state that each of its rows depends on
        the records of one person only, without which counts of them cannot be released.

    Returns
    -------
    Reader
        Accepted by every method that takes rows.

    Raises
    ------
    DataError
        If there is nothing to read, or a column is not there.
    UsageError
        If an option has an invalid value.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from hushtable import HushTable
    >>> from hushtable.data import read
    >>> table = pa.table({"id": ["a", "b", "c"], "TSH": ["1,2", "0,9", "ERR"]})
    >>> rows = read(table, decimal=",", missing=["ERR"], drop=["id"])
    >>> HushTable(random_state=0).fit(rows).plan_.schema.features[0].high
    1.2
    """
    by_name = {fold(name): kind for name, kind in (kinds or {}).items()}
    reading = Reading(tuple(missing), decimal, dates, by_name, tuple(drop))  # type: ignore[arg-type]
    given = FileLayout(**layout)
    reader = as_reader(data, layout=given)
    reading = replace(reading, layout=given.kept, time=time, zone=zone, entity=entity)
    return chosen(reader, reading, columns)


def chosen(
    reader: Reader,
    reading: Reading,
    columns: Sequence[str] | None = None,
    keep: Sequence[str] = (),
) -> Reader:
    """Return a reader of the used columns, with this reading, and of the columns to keep."""
    names = list(reader.names or ())
    columns = None if columns is None else [*map(fold, columns)]
    keep = [*map(fold, keep)]
    named = [*(columns or ()), *reading.dropped, *keep]
    if lacking := sorted({name for name in named if name not in names}):
        near = near_names(lacking, names, "write {!a}")
        raise refused("no_column", source=reader.source, lacking=lacking, names=names,
                                near=near)  # fmt: skip
    used = list(columns) if columns is not None else names
    used += [n for n in (reading.time, reading.entity) if n in names and n not in used]
    used = [name for name in used if name not in reading.dropped or name in keep]
    used += [name for name in keep if name not in used]
    if not used and names:
        raise refused("none_left", source=reader.source)
    if used != names:
        reader = reader.select(used)
    return replace(reader, reading=reading)


def understand(data: Any, *, n_jobs: int | None = None, **options: Any) -> "Understanding":
    """Determine the kind of each column of a table, in one pass over all rows.

    Parameters
    ----------
    data : array, data frame, Arrow object, path or address
        Rows, as every method that takes rows takes them.
    n_jobs : int, optional
        Threads; None is one, -1 every core.
    **options
        As `read` takes them.

    Returns
    -------
    Understanding

    Raises
    ------
    DataError
        If the rows cannot be read. A doubt is not an error here.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from hushtable.data import understand
    >>> [one] = understand(pa.table({"cost": ["4,5", "12,25"]}))
    >>> one.evidence
    '2 numbers with a decimal comma'
    """
    # Most callers with options read rows as a model did.
    from hushtable.data.understanding import Understanding, understood

    reader = read(data, **options) if options or not isinstance(data, Reader) else data
    reader = reader.repeatable()
    columns, reading, *_ = understood(reader, None, n_jobs)
    return Understanding(columns, reader.found, reading)
