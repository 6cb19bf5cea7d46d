"""A model's tables, in which rows with a verdict count by its sign."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from hushtable.data.encoding import Codes
from hushtable.data.schema import Feature, Schema
from hushtable.entries import entries
from hushtable.errors import DataError, PlanError
from hushtable.files import Arrays
from hushtable.kernels import MISSING_LOW
from hushtable.plans.families._family import Floats, HashFamily, Ints
from hushtable.plans.families.registry import family_from_content, register

#: The column of verdicts, and what it says.
VERDICT = "verdict"
FINE, OUTLIER = "fine", "outlier"
#: Cells before those of the model's tables: how many rows are fine, how many are outliers.
TOTALS = 2


@register
@dataclass(frozen=True, eq=False)
class Labelled(HashFamily):
    """The tables of a model; in their cells, a confirmed outlier counts 1, a row that is fine -1.

    Values are summed with the same signs. The last feature of the schema is the verdict. Before
    the tables of ``model`` comes a histogram of two cells, in which every row counts 1: how many
    are fine, and how many are outliers.
    """

    name: ClassVar[str] = "Labelled"
    of_model: ClassVar[bool] = True

    model: HashFamily = field()

    def _check(self) -> None:
        super()._check()
        if self.model.of_model:
            raise PlanError(f"{self.name} needs a detector's tables, not {self.model.name}")
        if self.schema.features != labelled(self.model.schema).features:
            raise PlanError(f"tables of verdicts need the model's features, then {VERDICT!r}")

    @property
    def offsets(self) -> Ints:
        return np.append(0, self.model.offsets + TOTALS)

    def parameters(self) -> dict[str, Any]:
        model = {"name": self.model.name, **self.model.parameters()}
        return {**super().parameters(), "model": model}

    def arrays(self) -> Arrays:
        return self.model.arrays()

    @classmethod
    def from_content(cls, schema: Schema, parameters: Any, arrays: Arrays) -> Self:
        content = entries(parameters, "tables of verdicts", {"model": dict})
        model = dict(content["model"])
        name = model.pop("name", None)
        if name == cls.name:  # before it is read, however deep it goes
            raise PlanError(f"{cls.name} needs a detector's tables, not {name} again")
        tables = family_from_content(name, model, arrays, unlabelled(schema))
        return cls(schema, tables)

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        found = super().json_schema()
        found["required"].append("model")
        found["properties"]["model"] = {"$ref": "#/$defs/tables"}
        return found

    def count(self, codes: Codes, counts: Ints, weights: Ints | None = None) -> None:
        outlier = self._outliers(codes)
        times = np.ones(len(outlier), np.int64) if weights is None else weights
        np.add.at(counts[:TOTALS], outlier, times)
        self.model.count(self._of_model(codes), counts[TOTALS:], (2 * outlier - 1) * times)

    def count_pairs(self, codes: Codes, rows: Ints, tables: Ints, counts: Ints) -> None:
        raise NotImplementedError("verdicts are counted in all tables, without samples")

    def sum(self, codes: Codes, values: Floats) -> Floats:
        outlier = self._outliers(codes)
        sums = self.model.sum(self._of_model(codes), values[TOTALS:])
        return np.asarray(values[outlier] + (2 * outlier - 1) * sums, np.float64)

    def _outliers(self, codes: Codes) -> Ints:
        """Return 1 for an outlier and 0 for a row that is fine (n,); raises `DataError`."""
        told = codes.codes[self.n_features - 1]
        known = (told == 1) | (told == 2)
        if not known.all():
            row = int(np.flatnonzero(~known)[0])
            got = "is missing" if told[row] == MISSING_LOW else "is neither"
            raise DataError(
                f"{(~known).sum():,} rows have no verdict (the first {got}): the column "
                f"{VERDICT!r} needs {OUTLIER!r} or {FINE!r} in each row; leave others out"
            )
        return np.asarray(told - np.uint16(1), np.int64)

    def _of_model(self, codes: Codes) -> Codes:
        d = self.n_features - 1
        rows = [*range(d), *range(d + 1, 2 * d + 1)] if codes.some_missing else slice(0, d)
        return Codes(codes.codes[rows], codes.tally[:d])


def labelled(schema: Schema) -> Schema:
    """Return a model's schema with the column of verdicts as its last feature."""
    if VERDICT in schema.names:
        raise PlanError(
            f"the model has a feature {VERDICT!r}, the name of the column of verdicts: rename it"
        )
    verdict = Feature.categorical(VERDICT, (FINE, OUTLIER))
    return replace(schema, features=(*schema.features, verdict))


def unlabelled(schema: Schema) -> Schema:
    """Return the schema of the model's features: all but the last."""
    return replace(schema, features=schema.features[:-1])
