"""Plausible ranges of a CDM: columns by sex and age, and thresholds for OHDSI's checks.

A column by sex and age holds a value only in the rows of its group, so each group has its own
histogram. Thresholds are for a concept and a unit, so the histograms of its groups are added up.

The file of thresholds has the format of the DataQualityDashboard for concepts
(``OMOP_CDMv5.4_Concept_Level.csv``, version 2.8.4): one line per concept and unit, with blanks
where nothing is checked.
"""

import csv
import io
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from hushtable.data.schema import Feature
from hushtable.data.spreadsheets import harmless
from hushtable.errors import UsageError
from hushtable_connect.omop.concepts import LONGEST, Concept, ConceptSet
from hushtable_connect.omop.query import RowOf, quoted

#: Ages in years at which a band begins; the last band is open.
BANDS = (0, 18, 45, 65)
_SEXES = ("female", "male")
#: Columns of the file, as the DataQualityDashboard names them.
HEADER = (
    "cdmTableName", "cdmFieldName", "conceptId", "conceptName", "unitConceptId", "unitConceptName",
    "plausibleValueLow", "plausibleValueLowThreshold", "plausibleValueLowNotes",
    "plausibleValueHigh", "plausibleValueHighThreshold", "plausibleValueHighNotes",
    "plausibleGender", "plausibleGenderUseDescendants", "plausibleGenderThreshold",
    "plausibleGenderUseDescendantsThreshold", "plausibleGenderNotes", "isTemporallyConstant",
    "isTemporallyConstantThreshold", "isTemporallyConstantNotes", "validPrevalenceLow",
    "validPrevalenceLowThreshold", "validPrevalenceLowNotes", "validPrevalenceHigh",
    "validPrevalenceHighThreshold", "validPrevalenceHighNotes", "plausibleUnitConceptIds",
    "plausibleUnitConceptIdsThreshold", "plausibleUnitConceptIdsNotes",
)  # fmt: skip


@dataclass(frozen=True)
class Groups:
    """Groups of persons; each group has its own columns.

    Parameters
    ----------
    by : tuple of {"sex", "age"}
        The criteria of the groups; without any, there is one group of all persons.

    Raises
    ------
    UsageError
        If a criterion is unknown or repeated.
    """

    by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not set(self.by) <= {"sex", "age"} or len(set(self.by)) < len(self.by):
            raise UsageError(f"--read by={','.join(self.by)}: needs sex, age, or sex,age")

    def names(self, concept: Concept) -> dict[str, str]:
        """Return the columns of a concept, each with the condition on rows ``r`` that have it."""
        names = {concept.name: ""}
        if "sex" in self.by:
            names = {f"{concept.name} {sex}": f"r.sex = '{sex}'" for sex in _SEXES}
        if "age" in self.by:
            names = {
                f"{name} {band}": " AND ".join(filter(None, (condition, years)))
                for name, condition in names.items()
                for band, years in _bands().items()
            }
        for name in names:
            if len(name.encode()) > LONGEST:
                raise UsageError(f"column {name!r}: needs {LONGEST} bytes at most: rename it")
        return names

    def features(self, concept: Concept) -> list[Feature]:
        """Return the features of a concept, one per group, with its public range."""
        return [replace(concept.feature, name=name) for name in self.names(concept)]

    def query(self, rows: str, row_of: RowOf, concepts: ConceptSet) -> str:
        """Return the query for the columns of all groups, given the query for the rows."""
        keys = ("person_id",) if row_of == "person" else ("visit_occurrence_id", "person_id")
        columns = [f"r.{key} AS {key}" for key in keys]
        for concept in concepts:
            value = f"r.{quoted(concept.name)}"
            columns += [
                f"CASE WHEN {condition} THEN {value} END AS {quoted(name)}"
                for name, condition in self.names(concept).items()
            ]
        listed = ",\n  ".join(columns)
        return f"SELECT {listed}\nFROM (\n{rows}) AS r\nORDER BY r.{keys[0]}"


def _bands() -> dict[str, str]:
    bands = {
        f"{low}-{high - 1}": f"r.age >= {low} AND r.age < {high}"
        for low, high in itertools.pairwise(BANDS)
    }
    return bands | {f"{BANDS[-1]}+": f"r.age >= {BANDS[-1]}"}


@dataclass(frozen=True)
class ThresholdFile:
    """Thresholds of a concept set, for the DataQualityDashboard.

    Parameters
    ----------
    concepts : ConceptSet
        The concepts of the columns.
    groups : Groups
        The groups that the columns are split by.
    """

    concepts: ConceptSet
    groups: Groups

    def ranges(self, found: Sequence[Any], quantiles: Sequence[float]) -> list[tuple[Concept, Any]]:
        """Return the range of each concept that has histograms, for all its groups together.

        The histograms and ranges are those of `hushtable_federation.ranges`.
        Raises `UsageError` if a histogram belongs to no column of the set, or has another public
        range.
        """
        given, ranges = {one.feature.name: one for one in found}, []
        for concept in self.concepts:
            features = self.groups.features(concept)
            parts = [given.pop(one.name) for one in features if one.name in given]
            for part in parts:
                _check_same(part.feature, concept)
            if parts:
                ranges.append((concept, parts[0].merged(parts[1:], concept.name).range(quantiles)))
        if unknown := [name for name in given if name not in ("age", "sex")]:
            raise UsageError(
                f"column {unknown[0]!r} is not a concept of this set: give the set that the "
                "round's schema was drafted from (--read concepts=FILE, --read by=...), or write "
                ".toml or .html"
            )
        return ranges

    def text(self, ranges: Sequence[tuple[Concept, Any]], tolerated: float, about: str) -> str:
        """Return the file, with the ranges that have limits.

        Parameters
        ----------
        ranges : sequence of (Concept, PlausibleRange)
            As `ranges` returns them.
        tolerated : float
            Percentage of a site's values that may lie beyond a threshold.
        about : str
            Text for the notes: the number of sites and the privacy cost.
        """
        lines = io.StringIO()
        writer = csv.DictWriter(lines, HEADER, restval="", lineterminator="\n")
        writer.writeheader()
        for concept, range_ in ranges:
            if not range_.limits:
                continue
            low, high = range_.limits
            shared = {
                "cdmTableName": "MEASUREMENT", "cdmFieldName": "MEASUREMENT_CONCEPT_ID",
                "conceptName": harmless(concept.name), "unitConceptName": harmless(concept.unit),
                **_limit("Low", low, range_, tolerated, about),
                **_limit("High", high, range_, tolerated, about),
            }  # fmt: skip
            for id_ in concept.concepts:
                for unit in concept.units:
                    writer.writerow({**shared, "conceptId": id_, "unitConceptId": unit})
        return lines.getvalue()


def _limit(
    which: Literal["Low", "High"],
    limit: Any,
    of: Any,
    tolerated: float,
    about: str,
) -> dict[str, str]:
    key = f"plausibleValue{which}"
    return {
        key: f"{limit.value:.10g}", f"{key}Threshold": f"{tolerated:g}",
        f"{key}Notes": f"{limit.words(of.feature.unit)}; about {of.values:,} values, {about}",
    }  # fmt: skip


def _check_same(feature: Feature, concept: Concept) -> None:
    if (feature.low, feature.high, feature.unit) == (concept.low, concept.high, concept.unit):
        return
    raise UsageError(
        f"column {feature.name!r} has the range {feature.low:g} to {feature.high:g} "
        f"{feature.unit} in the result, but {concept.low:g} to {concept.high:g} {concept.unit} in "
        "the concept set: give the set that the round's schema was drafted from (--read "
        "concepts=FILE)"
    )
