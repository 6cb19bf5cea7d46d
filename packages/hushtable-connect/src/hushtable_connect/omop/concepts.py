"""Concept sets: the measurements that become columns, with their units and public ranges."""

import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from os import PathLike
from typing import Any, Self

from hushtable.arguments import entries
from hushtable.data.schema import Feature
from hushtable.errors import PlanError

#: Columns of the rows, whose names no concept may have.
TAKEN = ("person_id", "visit_occurrence_id", "age", "sex")
#: Bytes of a name at most; PostgreSQL truncates longer names.
LONGEST = 63
_ENTRIES = {
    "name": str, "concepts": list[int], "unit": str, "units": list[int], "low": float,
    "high": float, "source": str,
}  # fmt: skip
_OPTIONAL = {"usual": float}


@dataclass(frozen=True)
class Concept:
    """A measurement that becomes a column.

    Attributes
    ----------
    name : str
        Name of the column.
    concepts : tuple of int
        ``measurement_concept_id``: one, or several that mean the same quantity.
    unit : str
        Unit in UCUM, for people.
    units : tuple of int
        ``unit_concept_id``: one, or several in which the number is the same.
    low, high : float
        Public range, in that unit; a value beyond counts as its nearest end.
    source : str
        Where the range is published.
    usual : float or None
        The value that replaces a missing value; default: the median if a plan is drawn from
        marginals, else the middle of the range.

    Examples
    --------
    >>> from hushtable_connect.omop import Concept
    >>> Concept("pulse", (3027018,), "/min", (8541, 8483), 0, 350, "MIMIC-Extract").feature.high
    350.0
    """

    name: str
    concepts: tuple[int, ...]
    unit: str
    units: tuple[int, ...]
    low: float
    high: float
    source: str
    usual: float | None = None

    def __post_init__(self) -> None:
        if not self.unit.strip() or not self.units or not all(number > 0 for number in self.units):
            raise PlanError(
                f"concept {self.name!r} has no unit, but its range needs one: give unit, in UCUM, "
                "and units, the unit_concept_id of the rows to use"
            )
        if not self.concepts or not all(number > 0 for number in self.concepts):
            raise PlanError(f"concept {self.name!r}: concepts needs a measurement_concept_id")
        if any(len(set(ids)) < len(ids) for ids in (self.concepts, self.units)):
            raise PlanError(f"concept {self.name!r} lists an id twice: list it once")
        if not self.source.strip():
            raise PlanError(f"concept {self.name!r} has no source: name the source of its range")
        if self.name.lower() in TAKEN or len(self.name.encode()) > LONGEST:
            raise PlanError(
                f"concept {self.name!r}: needs a name of {LONGEST} bytes at most, and none of "
                f"{', '.join(TAKEN)}"
            )
        if not self.feature.high > self.feature.low:
            raise PlanError(f"concept {self.name!r} has a range of one point: needs low below high")

    @cached_property
    def feature(self) -> Feature:
        """The column as a feature of a schema."""
        known: dict[str, Any] = {"neutral": True} if self.usual is None else {"usual": self.usual}
        return Feature.numeric(self.name, low=self.low, high=self.high, unit=self.unit, **known)


@dataclass(frozen=True)
class ConceptSet:
    """Concepts that become columns, in order.

    Parameters
    ----------
    concepts : tuple of Concept
        At least one; no two have the same name, or the same concept in the same unit.

    Examples
    --------
    >>> from hushtable_connect.omop import ConceptSet
    >>> concepts = ConceptSet.common()
    >>> sodium = next(one for one in concepts if one.name == "sodium")
    >>> sodium.low, sodium.high, sodium.unit, sodium.source
    (50, 225, 'mmol/L', 'MIMIC-Extract, variable_ranges.csv')
    """

    concepts: tuple[Concept, ...]

    def __post_init__(self) -> None:
        if not self.concepts:
            raise PlanError("a concept set needs at least one [[concept]]")
        # Databases treat names that differ only in case as one name.
        names = Counter(concept.name.lower() for concept in self.concepts)
        # A concept in two units is two columns.
        ids = Counter(
            f"concept {id_} in unit {unit}"
            for concept in self.concepts
            for id_ in concept.concepts
            for unit in concept.units
        )
        for twice in (key for counts in (names, ids) for key, times in counts.items() if times > 1):
            raise PlanError(f"{twice!r} is in the concept set twice: list it once")

    def __iter__(self) -> Iterator[Concept]:
        return iter(self.concepts)

    @classmethod
    def common(cls) -> Self:
        """Return hushtable's own set: common vital signs and laboratory values."""
        file = resources.files("hushtable_connect.omop") / "concepts.toml"
        return cls._of(file.read_text(encoding="utf-8"))

    @classmethod
    def from_toml(cls, path: "str | PathLike[str]") -> Self:
        """Read a concept set from a TOML file with one ``[[concept]]`` table per column.

        Raises
        ------
        PlanError
            If the file is not a concept set; the message names the concept and what it lacks.
        OSError
            If the file cannot be read.
        """
        with open(path, "rb") as file:
            content = file.read()
        try:
            return cls._of(content.decode("utf-8"))
        except RecursionError:
            raise PlanError(
                f"{path}: the file is nested too deeply: needs [[concept]] tables"
            ) from None
        except ValueError as error:
            raise PlanError(f"{path}: {error}") from None

    @classmethod
    def _of(cls, text: str) -> Self:
        content: dict[str, Any] = tomllib.loads(text)
        if set(content) != {"concept"} or not isinstance(content["concept"], list):
            raise PlanError(
                "needs one [[concept]] table for each column and nothing else; got "
                f"{sorted(content) or 'an empty file'}"
            )
        concepts = []
        for number, entry in enumerate(content["concept"], start=1):
            name = entry.get("name") if isinstance(entry, dict) else None
            what = f"concept {name!r}" if isinstance(name, str) else f"[[concept]] number {number}"
            record = entries(entry, what, _ENTRIES, _OPTIONAL)
            lists = {key: tuple(record[key]) for key in ("concepts", "units")}
            concepts.append(Concept(**{**record, **lists}))
        return cls(tuple(concepts))
