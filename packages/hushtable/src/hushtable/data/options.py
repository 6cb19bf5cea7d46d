"""How rows are read, as options of a command, entries of a site's file, or a caller say.

What someone should know of the rows that were opened is added to `notes`. Tested by
``tests/cli/test_reads.py``.
"""

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hushtable import plugins
from hushtable.data.calendar import sources
from hushtable.data.history import History
from hushtable.data.labels import fold
from hushtable.data.readers import FileLayout, Reader, Unasked, as_reader, found_name, near_names
from hushtable.data.schema import Schema
from hushtable.data.texts.reading import Reading
from hushtable.data.typed import left_out, open_rows
from hushtable.errors import DataError, UsageError, explain

if TYPE_CHECKING:
    from hushtable.data.understanding import Understanding

#: What someone should know of the rows; a command prints it when it has done its work.
notes: list[str] = []


def names_in(option: str) -> list[str]:
    """Split at commas; a name that holds one stands in double quotes, as in a CSV file."""
    return [fold(name) for name in next(csv.reader([option], skipinitialspace=True), [])]


def first_names(names: Sequence[str], most: int = 3) -> str:
    """Return names for a sentence, the first few of many."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _recipe(omop: Any, *given: Any) -> Any:
    """Return the recipe that options ask for, with what it reads; None without one."""
    if omop is None:
        names = ("--concepts", "--cdm", "--listed-units", "--by", "--within")
        if alone := [
            name for name, one in zip(names, given, strict=True) if one not in (None, False, [])
        ]:
            raise UsageError(f"{alone[0]} goes with --omop person or --omop visit")
        return None
    return plugins.extension("omop", "--omop", "connect")(omop, *given)


def person_columns(person: str | None, schema: Schema) -> list[str]:
    """Return the columns to keep beside the features; a feature is refused where it is counted."""
    return [] if person is None or found_name(person, schema.names) in schema.names else [person]


#: What columns are called that --join makes.
_OF_JOIN = re.compile(
    r"(.+\.)?(count|(count|distinct|first|last|max|mean|median|min|share|std|sum)_.+)"
)
#: Nothing is known of how rows are read.
_NONE = Reading()


@dataclass(frozen=True)
class RowOptions:
    """Which columns of rows are used, and how they are read, as options or a site's file say."""

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
    skip_footer: int | None = None
    sheet: str | None = None
    query: str | None = None
    member: str | None = None
    time: str | None = None
    zone: str | None = None
    entity: str | None = None
    omop: Literal["person", "visit"] | None = None
    concepts: Path | None = None
    cdm: str | None = None
    listed_units: bool = False
    by: str | None = None
    within: int | None = None
    join: list[str] | None = None

    @cached_property
    def joins(self) -> Any:
        """Tables whose features are added to the rows, as far as options say."""
        return plugins.extension("join", "--join", "connect")(self.join or ())

    @property
    def joined_files(self) -> list[str]:
        """Files of joined tables: nothing is to be written over them."""
        files: list[str] = self.joins.files if self.join else []
        return files

    @cached_property
    def recipe(self) -> Any:
        """How OMOP tables become rows, as far as options say."""
        by = names_in(self.by or "")
        return _recipe(self.omop, self.concepts, self.cdm, self.listed_units, by, self.within)

    @property
    def schema(self) -> Schema | None:
        """The public schema of OMOP rows; None of others, whose ranges no one knows."""
        if self.recipe is None:
            return None
        columns = None if self.columns is None else names_in(self.columns)
        schema: Schema = self.recipe.schema_of(columns, names_in(self.drop or ""))
        return schema

    @property
    def sources(self) -> list[str]:
        """Where the ranges of OMOP rows are from, a text a feature of the schema."""
        if self.recipe is None or self.schema is None:
            return []
        sources: list[str] = self.recipe.sources_of(self.schema)
        return sources

    def drawn(self, reader: Reader) -> "RowOptions":
        """Return these with the OMOP columns that most rows have, where no one named any.

        They depend on the rows, and are for a model that stays here.
        """
        if self.recipe is None or self.columns is not None or self.concepts is not None:
            return self
        return replace(self, columns=",".join(self.recipe.drawn(reader)))

    def coverage(self, reader: Reader) -> dict[str, float]:
        """Return the share of OMOP rows that have a value, by concept; nothing of other rows."""
        shares: dict[str, float] = {} if self.recipe is None else self.recipe.coverage(reader)
        return shares

    def beside(self, id_: str | None, keep: str | None) -> tuple[str | None, list[str]]:
        """Return the column that tells rows, and all that are kept beside the features.

        Of OMOP rows that column is their key, unless another is named.
        """
        if id_ is None and self.recipe is not None:
            id_ = self.recipe.key
        id_ = None if id_ is None else fold(id_)
        return id_, [*([] if id_ is None else [id_]), *names_in(keep or "")]

    @property
    def reading(self) -> Reading:
        """How texts are read, as far as options say."""
        kinds: dict[str, str] = {}
        for one in [pair for said in self.as_ or [] for pair in names_in(said)]:
            name, equals, kind = one.rpartition("=")
            if not equals:
                raise UsageError(f"--as {one}: needs a column and a kind, such as --as tsh=number")
            kinds[name] = kind
        missing, drop = names_in(self.missing or ""), names_in(self.drop or "")
        said = Reading(tuple(missing), self.decimal, self.dates, kinds, tuple(drop))  # type: ignore[arg-type] # it checks
        time, zone, entity = (name or "" for name in (self.time, self.zone, self.entity))
        return replace(said, layout=self.layout.kept, time=time, zone=zone, entity=entity)

    @property
    def layout(self) -> FileLayout:
        """How files are laid out, as far as options say."""
        header = False if self.no_header else None
        delimiter = {"tab": "\t", "\\t": "\t"}.get(self.delimiter or "", self.delimiter)
        return FileLayout(
            self.encoding,
            delimiter,
            header,
            self.skip_lines,
            self.skip_footer,
            self.sheet,
            self.query,
            self.member,
        )

    def opened(
        self,
        data: str,
        model: Reading = _NONE,
        unasked: Unasked | None = None,
        needed: Sequence[str] | None = None,
    ) -> Reader:
        """Open all columns as they are, with those of joined tables.

        ``model`` says how a model's rows were read; ``unasked``, that no one is here to be asked.
        Of OMOP tables, only the ``needed`` columns are read; by default, all.
        """
        recipe = self.recipe
        if recipe is not None and unasked is not None:
            # One measurement in another unit does not decide whether there is an answer.
            recipe = replace(self, listed_units=True).recipe
        if self.join:
            if recipe is not None or unasked is not None:
                what = "the rows of a round" if recipe is None else "--omop"
                raise UsageError(f"--join does not go with {what}: join the tables before")
            rows = replace(self, join=None).opened(data, model)
            joined: Reader = self.joins.added(rows, model.updated(self.reading))
            return joined
        if recipe is not None:
            self.layout.check_used((), "--omop")
            found: Reader = (recipe if needed is None else recipe.of(needed)).open(data)
            return found
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
        """Open rows with the columns that are used, to be understood, and those to keep."""
        if self.columns is not None and self.drop is not None:
            raise UsageError("--columns and --drop exclude each other: give one of them")
        if self.columns is not None:
            needed = [*names_in(self.columns), *keep]
        reading, reader = self.reading, self.opened(data, model, unasked, needed)
        reading = reading.updated(reader.reading)  # of joined tables
        notes.extend(f"{reader.source}: {words}" for words in reader.found)
        columns = None if self.columns is None else names_in(self.columns)
        if columns is not None and len(set(columns)) < len(columns):
            raise UsageError("--columns names a column twice: name each once")
        if columns is None and self.recipe is not None:
            columns = [name for name in reader.names or () if name not in self.recipe.identifiers]
        if reader.names and not keep and reading.dropped.issuperset(columns or reader.names):
            raise UsageError(f"{reader.source}: no column is left: leave fewer out")
        try:
            return chosen(reader, reading, columns, keep)
        except DataError as error:
            raise DataError(f"{error} (--columns, --drop, --as, --id, --keep, --person)") from None

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
        """Open rows under a schema, and say which columns are left out.

        ``history`` is of readings before these rows: see `open_rows`.
        """
        used = (reading or _NONE).updated(self.reading)
        needed = sources([*schema.names, *keep], used) if schema.named else ()
        unasked = None if attended else Unasked(needed)
        rows = self.open(data, keep, reading or _NONE, unasked, [*schema.names, *keep])
        # Of a database, which has no layout to be found.
        return under(replace(rows, unasked=unasked), schema, reading, keep, history)


def under(
    reader: Reader,
    schema: Schema,
    reading: Reading | None = None,
    keep: Sequence[str] = (),
    history: History | None = None,
) -> Reader:
    """Return rows under a schema; which columns are left out is noted."""
    used = (reading or _NONE).updated(reader.reading)
    known = used.dropped | {used.time, *sources(schema.names, used)}
    further = [name for name in left_out(reader, schema, keep) if name not in known]
    if further:
        are = "it is no feature" if len(further) == 1 else "they are no features"
        notes.append(f"{reader.source}: left out, as {are}: {first_names(further, 5)}")
    try:
        return open_rows(reader, schema, reading, keep, history=history)
    except DataError as error:
        raise DataError(f"{error}{_of_join(schema.names, reader.names or ())}") from None


def _of_join(needed: Sequence[str], there: Sequence[str]) -> str:
    """Return words on columns that --join made for a model, and that are not there."""
    made = [name for name in needed if name not in there and _OF_JOIN.fullmatch(name)]
    if not made:
        return ""
    table = made[0].partition(".")[0]
    name = f"FILE as {table} on KEY: ..." if "." in made[0] else "on KEY: ..."
    return f"; if --join made {made[0]!r} for the model, give it again: --join '{name}'"


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
    """Say how rows are to be read; what is not said is found out, or refused where in doubt.

    Parameters
    ----------
    data : array, data frame, Arrow object, path or address
        Rows, as every method that takes rows takes them.
    missing : sequence of str
        Texts that stand for a missing value, such as ``["ERR", "-9999"]``.
    decimal : {",", "."}, optional
        Sign before the decimals.
    dates : {"dmy", "mdy", "ymd"}, optional
        Order of day, month and year.
    kinds : dict of str to {"number", "date", "category", "label", "id"}, optional
        Kinds of columns by name. As a number, ``<0.5`` is 0.5, and what is no number is missing;
        a label is a category of which spellings that differ only by case, accents or look-alike
        letters are one; an id is left out.
    drop, columns : sequence of str, optional
        Columns to leave out; or those to use, in this order.
    time : str, optional
        Column of points in time. Its hour, weekday, day of the month and month are features in its
        place, as categories that go round: 23 is beside 0, a month's last day beside the first.
    zone : str, optional
        With ``time``, where the times say their zone: the place by whose clock, such as
        ``"Europe/Berlin"``. Times without a zone are taken as the clock showed them.
    entity : str, optional
        With ``time``: column that says whose reading a row is, such as a patient or a machine. In
        place of each column of numbers, its features compare a reading with the earlier ones of
        its entity among these rows: see `hushtable.history.history_columns`. Rows in memory may be
        in any order; those of files have to be in the order of time, for each entity.
    **layout
        ``encoding``, ``delimiter``, ``header``, ``skip_lines``, ``skip_footer`` of a CSV file;
        ``sheet`` of a workbook; ``member`` of a file with several parts, such as an archive;
        ``query`` to a database.

    Returns
    -------
    Reader
        Taken by every method that takes rows.

    Raises
    ------
    DataError
        If there is nothing to read, or a column is not there.
    UsageError
        If an option has no such value.

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
    """Return a reader of the columns that are used, to be read so, and of those to keep."""
    names = list(reader.names or ())
    columns = None if columns is None else [*map(fold, columns)]
    keep = [*map(fold, keep)]
    named = [*(columns or ()), *reading.dropped, *keep]
    if lacking := sorted({name for name in named if name not in names}):
        near = near_names(lacking, names)
        raise DataError(f"{reader.source} has no column {lacking}: its columns are {names}{near}")
    used = list(columns) if columns is not None else names
    used += [n for n in (reading.time, reading.entity) if n in names and n not in used]
    used = [name for name in used if name not in reading.dropped or name in keep]
    used += [name for name in keep if name not in used]
    if not used and names:
        raise DataError(f"{reader.source}: no column is left: leave fewer out")
    if used != names:
        reader = reader.select(used)
    return replace(reader, reading=reading)


def understand(data: Any, *, n_jobs: int | None = None, **options: Any) -> "Understanding":
    """Say what each column of a table is, by one pass over all rows.

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
        If the rows cannot be read. A doubt is no error here.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from hushtable.data import understand
    >>> [one] = understand(pa.table({"cost": ["4,5", "12,25"]}))
    >>> one.evidence
    '2 numbers with a decimal comma'
    """
    # Most of those that need options read rows as a model did.
    from hushtable.data.understanding import Understanding, understood

    reader = read(data, **options) if options or not isinstance(data, Reader) else data
    reader = reader.repeatable()
    columns, reading, _ = understood(reader, None, n_jobs)
    return Understanding(columns, reader.found, reading)
