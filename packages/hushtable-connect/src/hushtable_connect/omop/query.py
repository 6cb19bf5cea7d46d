"""Queries to a CDM, in SQL that both PostgreSQL and DuckDB run.

Numbers are ids of concepts. Names of columns and of the schema are quoted; nothing else is
inserted.
"""

from collections.abc import Sequence
from typing import Literal

from hushtable_connect.omop.concepts import ConceptSet

RowOf = Literal["person", "visit"]

#: Tables that the queries read, and their columns.
TABLES = {
    "person": ("person_id", "gender_concept_id", "year_of_birth"),
    "measurement": (
        "measurement_id", "person_id", "measurement_concept_id", "measurement_date",
        "measurement_datetime", "value_as_number", "unit_concept_id", "visit_occurrence_id",
    ),
    "visit_occurrence": ("visit_occurrence_id", "person_id", "visit_start_date"),
}  # fmt: skip
KEYS = {"person": "person_id", "visit": "visit_occurrence_id"}
#: Tables that have one row for each key.
ONE_ROW = {"person": "person_id", "visit_occurrence": "visit_occurrence_id"}

_SEX = """\
CASE WHEN p.gender_concept_id = 8507 THEN 'male'
       WHEN p.gender_concept_id = 8532 THEN 'female'
       WHEN p.gender_concept_id <> 0 THEN CAST(p.gender_concept_id AS VARCHAR) END AS sex"""


def quoted(name: str) -> str:
    """Return a name quoted for SQL, whatever characters it holds."""
    return '"' + name.replace('"', '""') + '"'


def rows_query(row_of: RowOf, concepts: ConceptSet, schema: str, within: int | None = None) -> str:
    """Return the query for the rows.

    For each concept, a person's row has the latest value: the present state. A visit's row has the
    first value: the state on arrival, before treatment. Both are measured values, and each reading
    returns the same ones: of several values at one moment, the one with the highest (or lowest)
    id. A value without a date counts only if there is no other. With ``within``, only values from
    that many days before the person's latest one count, and none without a date; they do not
    depend on other persons.

    A person or visit with several rows in its own table is left out, and so is a measurement that
    names another person's visit: each row depends on the records of one person.
    """
    cdm = quoted(schema)
    names = ",\n  ".join(f"w.{quoted(concept.name)}" for concept in concepts)
    if row_of == "person":
        key, visits, also, person, year = "person_id", "", "", "w.person_id", "w.year"
    else:
        key = "visit_occurrence_id"
        visits = f"""
JOIN (SELECT {key}, person_id, MIN(visit_start_date) AS visit_start_date
  FROM {cdm}.visit_occurrence GROUP BY {key}, person_id HAVING COUNT(*) = 1) AS v
  ON v.{key} = w.{key} AND v.person_id = w.person_id"""
        also, person = "\n  v.person_id AS person_id,", "v.person_id"
        year = "EXTRACT(YEAR FROM v.visit_start_date)"
    return f"""\
WITH {_wide(row_of, concepts, cdm, within)}
SELECT w.{key} AS {key},{also}
  CAST({year} - p.year_of_birth AS DOUBLE PRECISION) AS age,
  {_SEX},
  {names}
FROM wide AS w{visits}
JOIN (SELECT person_id, MIN(gender_concept_id) AS gender_concept_id,
    MIN(year_of_birth) AS year_of_birth
  FROM {cdm}.person GROUP BY person_id HAVING COUNT(*) = 1) AS p ON p.person_id = {person}
ORDER BY w.{key}, w.person_id"""


def _wide(row_of: RowOf, concepts: ConceptSet, cdm: str, within: int | None) -> str:
    if row_of == "person":
        keys, each, order = "person_id", "m.person_id", "DESC"
    else:
        keys, order = "visit_occurrence_id, person_id", "ASC"
        each = "m.visit_occurrence_id, m.person_id"
    listed = ",\n    ".join(
        f"({number}, {concept}, {unit})"
        for number, one in enumerate(concepts)
        for concept in one.concepts
        for unit in one.units
    )
    columns = ",\n    ".join(
        f"MAX(CASE WHEN feature = {number} THEN value END) AS {quoted(one.name)}"
        for number, one in enumerate(concepts)
    )
    days, recent = "", ""
    if within is not None:
        day = "CAST(m.measurement_date AS DATE)"
        days = f"\n    MAX({day}) OVER (PARTITION BY {each}) - {day} AS days,"
        recent = f" AND days <= {within}"
    return f"""\
listed (feature, concept, unit) AS (VALUES
    {listed}),
numbered AS (
  SELECT {each}, listed.feature, CAST(m.value_as_number AS DOUBLE PRECISION) AS value,
    EXTRACT(YEAR FROM m.measurement_date) AS year,{days}
    ROW_NUMBER() OVER (PARTITION BY {each}, listed.feature
      ORDER BY m.measurement_date {order} NULLS LAST,
        m.measurement_datetime {order} NULLS LAST, m.measurement_id {order}) AS place
  FROM {cdm}.measurement AS m
  JOIN listed ON listed.concept = m.measurement_concept_id AND listed.unit = m.unit_concept_id
  WHERE m.value_as_number IS NOT NULL AND m.{KEYS[row_of]} IS NOT NULL),
wide AS (
  SELECT {keys}, MAX(year) AS year,
    {columns}
  FROM numbered WHERE place = 1{recent} GROUP BY {keys})"""


#: The query for the schema that is used if none is named.
SCHEMA = "SELECT CAST(current_schema() AS VARCHAR) AS name"


def columns_query(tables: Sequence[str]) -> str:
    """Return the query for the columns that exist, in all schemas, and whether a table has them.

    Otherwise, it is a view, or a table of another server.
    Names are as in the database, which decides whether case matters.
    """
    names = ", ".join(f"'{table}'" for table in tables)
    return f"""\
SELECT CAST(c.table_schema AS VARCHAR) AS cdm, CAST(c.table_name AS VARCHAR) AS name,
  CAST(c.column_name AS VARCHAR) AS field, t.table_type = 'BASE TABLE' AS is_table
FROM information_schema.columns AS c
JOIN information_schema.tables AS t ON t.table_catalog = c.table_catalog
  AND t.table_schema = c.table_schema AND t.table_name = c.table_name
WHERE LOWER(CAST(c.table_name AS VARCHAR)) IN ({names})
ORDER BY 1, 2, 3"""


def keys_query(table: str, schema: str) -> str:
    """Return the query for the number of rows of a table of `ONE_ROW`, and of its keys."""
    key = ONE_ROW[table]
    return (
        f"SELECT COUNT({key}) AS n_rows, COUNT(DISTINCT {key}) AS n_keys "
        f"FROM {quoted(schema)}.{table}"
    )


def units_query(concepts: ConceptSet, schema: str, named: bool) -> str:
    """Return the query for the units of the concepts' measurements; ``named`` adds names."""
    cdm, ids = quoted(schema), ", ".join(str(id_) for c in concepts for id_ in c.concepts)
    name = "MAX(c.concept_name)" if named else "''"
    join = f"LEFT JOIN {cdm}.concept AS c ON c.concept_id = m.unit_concept_id" if named else ""
    return f"""\
SELECT m.measurement_concept_id AS concept, COALESCE(m.unit_concept_id, 0) AS unit,
  COUNT(*) AS n, CAST({name} AS VARCHAR) AS name
FROM {cdm}.measurement AS m
{join}
WHERE m.value_as_number IS NOT NULL AND m.measurement_concept_id IN ({ids})
GROUP BY 1, 2 ORDER BY 1, 2"""
