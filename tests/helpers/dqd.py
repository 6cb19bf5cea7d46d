"""OHDSI's DataQualityDashboard 2.8.4, as far as thresholds of concepts go, on DuckDB.

Its R package does not run here. Taken over are the names of its file's columns
(``inst/csv/OMOP_CDMv5.4_Concept_Level.csv``), how it reads that file (``R/readThresholdFile.R``),
its SQL (``inst/sql/sql_server/concept_plausible_value_low.sql`` and ``_high.sql``, which differ in
a sign and a name) and its rule (``R/evaluateThresholds.R``). Copyright 2026 Observational Health
Data Sciences and Informatics, Apache License 2.0.
"""

import contextlib
import re

import duckdb
import pandas as pd

HEADER = (
    "cdmTableName,cdmFieldName,conceptId,conceptName,unitConceptId,unitConceptName,"
    "plausibleValueLow,plausibleValueLowThreshold,plausibleValueLowNotes,"
    "plausibleValueHigh,plausibleValueHighThreshold,plausibleValueHighNotes,"
    "plausibleGender,plausibleGenderUseDescendants,plausibleGenderThreshold,"
    "plausibleGenderUseDescendantsThreshold,plausibleGenderNotes,isTemporallyConstant,"
    "isTemporallyConstantThreshold,isTemporallyConstantNotes,validPrevalenceLow,"
    "validPrevalenceLowThreshold,validPrevalenceLowNotes,validPrevalenceHigh,"
    "validPrevalenceHighThreshold,validPrevalenceHighNotes,plausibleUnitConceptIds,"
    "plausibleUnitConceptIdsThreshold,plausibleUnitConceptIdsNotes"
)

SQL = """
SELECT
  num_violated_rows,
  CASE
    WHEN denominator.num_rows = 0 THEN 0
    ELSE 1.0*num_violated_rows/denominator.num_rows
  END AS pct_violated_rows,
  denominator.num_rows AS num_denominator_rows
FROM (
  SELECT
    COUNT_BIG(*) AS num_violated_rows
  FROM
  (
    /*violatedRowsBegin*/
    SELECT
      m.*
    FROM @schema.@cdmTableName m
    {@cohort}?{
      JOIN @cohortDatabaseSchema.@cohortTableName c
        ON m.person_id = c.subject_id
        AND c.cohort_definition_id = @cohortDefinitionId
    }
    WHERE m.@cdmFieldName = @conceptId
      AND m.unit_concept_id = @unitConceptId
      AND m.value_as_number IS NOT NULL
      AND m.value_as_number < @plausibleValueLow
    /*violatedRowsEnd*/
  ) violated_rows
) violated_row_count,
(
  SELECT
    COUNT_BIG(*) AS num_rows
  FROM @schema.@cdmTableName m
  {@cohort}?{
    JOIN @cohortDatabaseSchema.@cohortTableName c
      ON m.person_id = c.subject_id
      AND c.cohort_definition_id = @cohortDefinitionId
  }
  WHERE m.@cdmFieldName = @conceptId
    AND unit_concept_id = @unitConceptId
    AND value_as_number IS NOT NULL
) denominator
"""


def read(path):
    """Return a file of thresholds as the package's own reader does."""
    with open(path, encoding="utf-8") as file:
        assert file.readline().rstrip("\n") == HEADER
    # readr::read_csv(na = c(" ", "")) guesses types; one column is always read as text.
    return pd.read_csv(
        path, na_values=[" ", ""], keep_default_na=False, dtype={"plausibleUnitConceptIds": str}
    )


def rendered(which, check, schema):
    """Return the SQL of a check as SqlRender makes it for DuckDB, without a cohort."""
    sql = re.sub(r"\{@cohort\}\?\{.*?\}", "", SQL, flags=re.DOTALL)
    if which == "High":
        sql = sql.replace("< @plausibleValueLow", "> @plausibleValueHigh")
    values = {name: f"{check[name]:.15g}" for name in ("conceptId", "unitConceptId")}
    values[f"plausibleValue{which}"] = f"{check[f'plausibleValue{which}']:.15g}"
    values |= {"schema": schema} | {name: check[name] for name in ("cdmTableName", "cdmFieldName")}
    for name, value in values.items():
        sql = re.sub(rf"@{name}\b", str(value), sql)
    assert "@" not in sql
    return sql.replace("COUNT_BIG", "COUNT")


def checked(database, path, schema="cdm"):
    """Run all checks of a file; return, by concept's name and side, percentage and verdict."""
    found = {}
    checks = read(path)
    with contextlib.closing(duckdb.connect(str(database), read_only=True)) as connection:
        for which in ("Low", "High"):
            for _, check in checks[checks[f"plausibleValue{which}"].notna()].iterrows():
                sql = rendered(which, check, schema)
                n, share, of = connection.execute(sql).fetchone()
                threshold = check[f"plausibleValue{which}Threshold"]
                failed = n > 0 if pd.isna(threshold) or threshold == 0 else share * 100 > threshold
                assert n <= of
                key = check["conceptName"], int(check["unitConceptId"]), which
                found[key] = float(100 * share), bool(failed)
    return found
