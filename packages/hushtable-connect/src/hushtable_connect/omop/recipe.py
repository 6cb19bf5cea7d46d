"""The recipe, which checks a CDM and reads one row per person or visit."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from hushtable.data.readers import Coupling, FileLayout, Reader, Unasked, as_reader
from hushtable.data.schema import Feature, Schema
from hushtable.errors import DataError, UsageError
from hushtable.far import is_url
from hushtable.far import without_user as shown_url
from hushtable_connect.omop import query
from hushtable_connect.omop.concepts import Concept, ConceptSet
from hushtable_connect.omop.ranges import Groups, ThresholdFile

#: Smallest share of rows with a value that a drawn concept needs. In measurements, concepts that
#: 2, 10, or 25% of the rows have found fewer planted errors; those of 50 or 75% found more.
LEAST = 0.5
_DRAFT_HEAD = """\
# Measurements of the OMOP Common Data Model, with public ranges: nothing here comes from the
# data. A value beyond its range counts as the nearest end, and a missing value as the usual value.
# Remove measurements that few persons have, by what you know without looking at the rows.
"""
#: Schemes of URLs of the databases that the recipe's SQL was tested with.
_KNOWN = ("postgresql", "postgres", "duckdb")
#: Of visits.
_SAME_PERSON = Coupling(
    "a person's visits share the person's sex and age",
    "read one row per person (--read omop=person)",
    "person_id",
)
#: The number of units that a message lists at most.
_MOST = 30


@dataclass(frozen=True)
class Recipe:
    """Measurements of a CDM as one row per person or visit.

    Parameters
    ----------
    row_of : {"person", "visit"}
        A person's row has the latest value of each concept, a visit's row the first one.
    concepts : ConceptSet, optional
        Measurements that become columns; default: `ConceptSet.common`.
    cdm : str, optional
        Schema of the database with the CDM's tables; default: the connection's own.
    listed_units : bool, default=False
        Leave out measurements without a unit, or in units that are not listed; by default, they
        are refused.
    by : tuple of {"sex", "age"}
        Give each group of persons its own columns, in place of columns of sex and age.
    within : int, optional
        For persons: how many days before the latest measurement of the set values may be;
        default: no limit.

    Examples
    --------
    >>> from hushtable_connect.omop import Recipe
    >>> recipe = Recipe("visit")
    >>> recipe.key, recipe.schema.public, recipe.schema.features[0].high
    ('visit_occurrence_id', True, 120.0)
    """

    row_of: query.RowOf = "person"
    concepts: ConceptSet = field(default_factory=ConceptSet.common)
    cdm: str | None = None
    listed_units: bool = False
    by: tuple[str, ...] = ()
    within: int | None = None

    def __post_init__(self) -> None:
        if self.row_of not in query.KEYS:
            raise UsageError(f"row_of={self.row_of!r}: needs 'person' or 'visit'")
        self.groups  # noqa: B018 (refused here)
        if self.within is not None and (self.row_of == "visit" or self.within < 1):
            raise UsageError(
                f"within={self.within} for a {self.row_of}: needs 1 day or more for a person; "
                "leave it out for a visit, whose row has the first values"
            )

    @property
    def groups(self) -> Groups:
        """The groups of persons that have their own columns."""
        return Groups(self.by)

    @property
    def thresholds(self) -> ThresholdFile:
        """The file of thresholds for ranges of these columns."""
        return ThresholdFile(self.concepts, self.groups)

    @property
    def key(self) -> str:
        """The column that identifies rows."""
        return query.KEYS[self.row_of]

    @property
    def identifiers(self) -> tuple[str, ...]:
        """Columns of the rows that are not features."""
        return (self.key,) if self.row_of == "person" else (self.key, "person_id")

    @property
    def schema(self) -> Schema:
        """Features with their public ranges, made without reading the data."""
        split = tuple(f for concept in self.concepts for f in self.groups.features(concept))
        if self.by:
            return Schema(split)
        age = Feature.numeric("age", low=0, high=120, unit="years", neutral=True)
        sex = Feature.categorical("sex", ["female", "male"], usual="female")
        return Schema((age, sex, *split))

    @property
    def draft_head(self) -> str:
        """Comment at the top of a schema that is drafted for these rows."""
        return _DRAFT_HEAD

    def schema_of(self, columns: Sequence[str] | None, dropped: Sequence[str]) -> Schema:
        """Return the schema of the columns to use; by default, all."""
        schema = self.schema
        known = {*schema.names, *self.identifiers}
        if unknown := [name for name in [*(columns or ()), *dropped] if name not in known]:
            raise UsageError(
                f"{unknown[0]!r} is not a column of the rows: they have {schema.names}"
            )
        names = schema.names if columns is None else columns
        used = {feature.name: feature for feature in schema.features if feature.name not in dropped}
        return replace(schema, features=tuple(used[name] for name in names if name in used))

    def sources_of(self, schema: Schema) -> list[str]:
        """Return the source of each feature's range, with ids of its concepts and units."""
        known = {
            "age": "years since the year of birth; range: known columns of hushtable",
            "sex": "gender_concept_id 8532 is female, 8507 male; others count as unseen",
        }
        for c in self.concepts:
            concepts, units = (", ".join(map(str, ids)) for ids in (c.concepts, c.units))
            where = f"measurement_concept_id {concepts}; unit_concept_id {units}"
            known |= dict.fromkeys(self.groups.names(c), f"{where}; range: {c.source}")
        return [known[name] for name in schema.names]

    def of(self, names: Sequence[str]) -> "Recipe":
        """Return the recipe of the concepts among these names; if none is, the recipe of all."""
        used = tuple(concept for concept in self.concepts if concept.feature.name in names)
        return replace(self, concepts=ConceptSet(used)) if used else self

    def query(self, cdm: str) -> str:
        """Return the query to a database whose schema ``cdm`` has the tables."""
        rows = query.rows_query(self.row_of, self.concepts, cdm, self.within)
        return self.groups.query(rows, self.row_of, self.concepts) if self.by else rows

    def open(
        self, url: str, independent: bool = False, *, unasked: Unasked | None = None
    ) -> Reader:
        """Check the tables and units of a CDM, and open its rows.

        The rows are read once, and held in memory. Each depends on the records of one person only,
        unless a table of the CDM is a view.

        Parameters
        ----------
        url : str
            The URL of a database of PostgreSQL or DuckDB.
        independent : bool, default=False
            Whether you state this also of rows of views.
        unasked : Unasked, optional
            No person can be asked, and no record may decide whether there is an answer: persons or
            visits that occur twice, and measurements in units that are not listed, are left out.

        Returns
        -------
        Reader
            Its columns are the identifiers and the features of `schema`, with one row per person or
            visit that has a measurement of the set, in the order of the key.

        Raises
        ------
        UsageError
            If this is not the URL of such a database.
        DataError
            If a table or column of the CDM is missing, a person or visit occurs twice, or a
            concept has measurements without a unit or in units that are not listed; the
            message names them and the remedy.
        """
        if not is_url(url) or url.partition("://")[0].lower() not in _KNOWN:
            name = shown_url(url) if is_url(url) else url
            raise UsageError(f"{name}: OMOP tables are read from postgresql:// or duckdb:///")
        cdm, named, of_tables = self._checked_tables(url)
        self._check_keys(url, cdm, unasked)
        leaves = self if unasked is None else replace(self, listed_units=True)
        recipe = leaves._checked_units(url, cdm, named)
        reader = as_reader(url, layout=FileLayout(query=self.query(cdm)))
        # The query sorts all measurements, and its result is small: run it once, not at each
        # of several passes.
        rows = list(reader.read())
        n_rows = sum(len(batch) for batch in rows)
        coupled = () if of_tables or independent else reader.coupled
        coupled += (_SAME_PERSON,) if self.row_of == "visit" else ()
        read = reader.of_batches(lambda: iter(rows), n_rows)
        return replace(read, found=recipe, coupled=coupled)

    def coverage(self, reader: Reader) -> dict[str, float]:
        """Return the share of the rows that have a value of each concept, the highest first."""
        names = [item.name for item in self.concepts if item.name in (reader.names or ())]
        present: Counter[str] = Counter()
        for batch in reader.read():
            assert isinstance(batch, pa.RecordBatch)
            present.update({name: len(batch) - batch[name].null_count for name in names})
        shares = {name: present[name] / max(reader.n_rows or 0, 1) for name in names}
        return dict(sorted(shares.items(), key=lambda item: -item[1]))

    @staticmethod
    def few(coverage: dict[str, float]) -> list[str]:
        """Return the concepts that are missing in most rows."""
        return [name for name, share in coverage.items() if share < LEAST]

    def drawn(self, reader: Reader) -> list[str]:
        """Return the columns to use, without concepts that are missing in most rows.

        They depend on the rows, so use them only for a model that stays where the rows are. For a
        plan, which others see, a person has to choose the columns.

        Raises
        ------
        DataError
            If every concept is missing in most rows; the message names the most frequent ones.
        """
        coverage = self.coverage(reader)
        beside = [name for name in ("age", "sex") if name in (reader.names or ())]
        # In the order of the set.
        few = self.few(coverage)
        names = [c.name for c in self.concepts if c.name in coverage and c.name not in few]
        if not names:
            first = list(coverage.items())[:3]
            raise DataError(
                f"{reader.source}: no concept has a value in half of the rows; the most frequent "
                f"are {', '.join(f'{name} ({share:.0%})' for name, share in first)}. Name the "
                f"columns to use: --columns {','.join([*beside, *(name for name, _ in first)])}"
            )
        return [*beside, *names]

    def _checked_tables(self, url: str) -> tuple[str, bool, bool]:
        cdm = self.cdm or _asked(url, query.SCHEMA)[0]["name"]
        needed = {
            table: columns
            for table, columns in query.TABLES.items()
            if self.row_of == "visit" or table != "visit_occurrence"
        }
        there: dict[str, dict[str, set[str]]] = {}
        views: set[tuple[str, str]] = set()
        for row in _asked(url, query.columns_query([*needed, "concept"])):
            name, column = row["name"], row["field"]
            # For PostgreSQL, "PERSON" and person are two tables.
            if url.lower().startswith("duckdb:"):
                name, column = name.lower(), column.lower()
            there.setdefault(row["cdm"], {}).setdefault(name, set()).add(column)
            if not row["is_table"]:
                views.add((row["cdm"], name))
        tables = there.get(cdm, {})
        if lacking := [table for table in needed if table not in tables]:
            capitals = [name for name in tables if name.lower() in lacking]
            others = [name for name, known in there.items() if needed.keys() <= known.keys()]
            raise DataError(_no_tables(shown_url(url), cdm, lacking, others, capitals))
        for table, columns in needed.items():
            if missing := [name for name in columns if name not in tables[table]]:
                raise DataError(
                    f"{shown_url(url)}: table {table} in schema {cdm!r} has no column {missing}: "
                    "needs a CDM of version 5.2 or later, with names in lower case"
                )
        named = {"concept_id", "concept_name"} <= tables.get("concept", set())
        return cdm, named, views.isdisjoint((cdm, table) for table in needed)

    def _check_keys(self, url: str, cdm: str, unasked: Unasked | None) -> None:
        for table, key in query.ONE_ROW.items():
            if table == "visit_occurrence" and self.row_of == "person":
                continue
            [counts] = _asked(url, query.keys_query(table, cdm))
            more = counts["n_rows"] - counts["n_keys"]
            if more and unasked is not None:
                what = f"table {table} has several rows of one {key}, which is left out"
                unasked.note(what, more, lambda: shown_url(url))
            elif more:
                raise DataError(
                    f"{shown_url(url)}: table {table} in schema {cdm!r} has {counts['n_rows']:,} "
                    f"rows of {counts['n_keys']:,} {key}: needs one row of each. Remove the "
                    "duplicates, or make a view without them (--read cdm=NAME names its schema)"
                )

    def _checked_units(self, url: str, cdm: str, named: bool) -> tuple[str, ...]:
        of: dict[int, list[Concept]] = {}
        for concept in self.concepts:
            for id_ in concept.concepts:
                of.setdefault(id_, []).append(concept)
        measured, other, n_other = set[str](), [], 0
        for row in _asked(url, query.units_query(self.concepts, cdm, named)):
            listed = of[row["concept"]]
            if names := {concept.name for concept in listed if row["unit"] in concept.units}:
                measured |= names
                continue
            name = f" ({row['name']})" if row["name"] else ""
            unit = f"in unit {row['unit']}{name}" if row["unit"] else "without a unit"
            needed = " or ".join(
                f"{' or '.join(map(str, concept.units))} ({concept.unit})" for concept in listed
            )
            other.append(
                f"  {listed[0].name} ({row['concept']}): {row['n']:,} {unit}; needs {needed}"
            )
            n_other += row["n"]
        if other and not self.listed_units:
            raise DataError(_other_units(shown_url(url), other))
        words = [f"left out {n_other:,} measurements in other units or without a unit"] * bool(
            other
        )
        if never := [concept.name for concept in self.concepts if concept.name not in measured]:
            words.append(f"never measured: {', '.join(never)}")
        return tuple(words)


def _asked(url: str, sql: str) -> list[dict[str, Any]]:
    batches: Any = as_reader(url, layout=FileLayout(query=sql)).read()
    return [row for batch in batches for row in batch.to_pylist()]


def _no_tables(
    source: str, cdm: str, lacking: Sequence[str], others: Sequence[str], capitals: Sequence[str]
) -> str:
    if capitals:
        do = (
            f"it has {', '.join(map(repr, capitals))} in capital letters: make views of them, "
            "with their columns in lower case (--read cdm=NAME names the views' schema)"
        )
    elif others:
        do = f"they are in schema {' and '.join(map(repr, others))} (--read cdm={others[0]})"
    else:
        do = (
            "name the schema of the CDM (--read cdm=NAME), give the user the right to read them, "
            "or read a "
            "database without a CDM with --read query=..."
        )
    return f"{source}: schema {cdm!r} has no tables {', '.join(lacking)} of the OMOP CDM: {do}"


def _other_units(source: str, lines: Sequence[str]) -> str:
    more = [f"  and {len(lines) - _MOST:,} more"] if len(lines) > _MOST else []
    return "\n".join([
        f"{source}: concepts of the set are measured in units that it does not list:",
        *lines[:_MOST],
        *more,
        "Convert them in a view of measurement (--read cdm=NAME names its schema); or list a unit "
        "in which "
        "the number is the same (--read concepts=FILE); or leave these measurements out "
        "(--read listed_units=true).",
    ])  # fmt: skip
