"""The base of all hash families: the arrays they declare, and how they count and score rows."""

from abc import ABC, abstractmethod
from dataclasses import MISSING, dataclass, field, fields
from functools import cache, cached_property, partial
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hushtable import kernels, plugins
from hushtable.arguments import JsonObject
from hushtable.data.encoding import Codes, NumbersLoop
from hushtable.data.schema import Schema
from hushtable.errors import PlanError, UsageError
from hushtable.files import Arrays
from hushtable.plans.score_rule import Scoring, Summing

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
#: Arguments of a kernel: arrays, numbers, and tuples of them.
Arguments = tuple[Any, ...]
#: Cells that one table may have: a cell is numbered in 16 bits.
MAX_CELLS = 1 << 16

#: Weights of rows that each count once.
EVERY_ROW_ONCE = np.empty(0, np.int64)


class Drawn(NamedTuple):
    """The declaration of an array: see `drawn`."""

    dtype: np.dtype[Any]
    shape: tuple[str, ...]
    low: int | None
    below: int | str | None


def drawn(
    dtype: DTypeLike, *shape: str, low: int | None = None, below: int | str | None = None
) -> Any:
    """Declare an array of a family, as a dataclass field of whole numbers, not converted.

    ``shape`` names the attributes of the family that are its sizes, such as ``"n_tables"``; they
    may follow from arrays declared before. ``low`` is the smallest value, ``below`` one more than
    the largest: a number, or an attribute of the family, as ``"n_features"`` for a feature's index.
    """
    return field(repr=False, metadata={"drawn": Drawn(np.dtype(dtype), shape, low, below)})


def whole_number(low: int, high: int, default: int | None = None) -> Any:
    """Declare a parameter of a family, from ``low`` to ``high``, as a dataclass field.

    A parameter with a default is optional: files leave it out if it has that value.
    """
    metadata = {"numbers": (low, high)}
    return field(metadata=metadata, default=MISSING if default is None else default)


def bounded(name: str, array: NDArray[Any], below: int | None, low: int | None = 0) -> NDArray[Any]:
    """Return the array; raise `PlanError` unless all values are in [``low``, ``below``)."""
    if low is None or below is None:
        ends = np.iinfo(array.dtype)
        low, below = (ends.min if low is None else low), (ends.max + 1 if below is None else below)
    if array.size and not low <= int(array.min()) <= int(array.max()) < below:
        raise PlanError(f"hash functions: {name} must be from {low} to {below - 1}")
    return array


@dataclass(frozen=True, eq=False)
class HashFamily(ABC):
    """Tables of cells. A row falls into exactly one cell of each of a table's histograms.

    Most families have one histogram per table; CountMin sketches have several.

    A family is a frozen dataclass with the decorator `hushtable.plans.families.register`. Its
    arrays are fields made by `drawn`, its parameters fields made by `whole_number`. They are
    checked, copied and made read-only before anything reads them, and files contain them.
    """

    #: The family's name in files.
    name: ClassVar[str]
    #: Whether it counts with the tables of another family.
    of_model: ClassVar[bool] = False

    schema: Schema = field(repr=False)

    def __post_init__(self) -> None:
        for name, (low, high) in self._declared("numbers").items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
                raise PlanError(f"{name}={value!r}: needs a whole number from {low} to {high:,}")
        declared = self._declared("drawn")
        for name, (dtype, shape, *_) in declared.items():
            array, ndim = getattr(self, name), len(shape)
            if not isinstance(array, np.ndarray) or (array.dtype, array.ndim) != (dtype, ndim):
                raise PlanError(f"hash functions: {name} must be {dtype} of {ndim} dimension(s)")
            # A copy, and read-only, because the plan's id identifies its content.
            copied = np.array(array, order="C")
            copied.setflags(write=False)
            object.__setattr__(self, name, copied)
        for name, (_, shape, low, below) in declared.items():
            array, needed = getattr(self, name), tuple(getattr(self, size) for size in shape)
            if array.shape != needed:
                raise PlanError(f"hash functions: {name} has shape {array.shape}: needs {needed}")
            bounded(name, array, getattr(self, below) if isinstance(below, str) else below, low)
        self._check()

    def _check(self) -> None:
        """Raise `PlanError` if arrays are within their bounds but inconsistent."""
        if self.offsets[0] != 0 or (np.diff(self.offsets) < 1).any():
            raise PlanError("hash functions: each histogram needs one cell or more")
        if self.n_histograms % self.n_tables:
            raise PlanError("hash functions: each table needs the same number of histograms")

    @classmethod
    @cache  # once per class, because fields() is slow
    def _declared(cls, kind: str) -> JsonObject:
        return {f.name: f.metadata[kind] for f in fields(cls) if kind in f.metadata}

    @classmethod
    def _optional(cls) -> JsonObject:
        return {
            f.name: f.default
            for f in fields(cls)
            if "numbers" in f.metadata and f.default is not MISSING
        }

    def __getstate__(self) -> dict[str, object]:
        """Leave out of a pickle what can be computed again, such as the kernels' layout."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @property
    @abstractmethod
    def offsets(self) -> Ints:
        """First cell of each histogram in the vector of all cells, and the end of the last."""

    @property
    def n_features(self) -> int:
        """Number of features of the schema."""
        return len(self.schema)

    @property
    def n_tables(self) -> int:
        """Number of tables (m in the paper)."""
        return self.n_histograms

    @property
    def n_histograms(self) -> int:
        """Number of histograms of all tables together: the cells that each row falls into."""
        return len(self.offsets) - 1

    @property
    def n_cells(self) -> int:
        """Number of cells of all tables together."""
        return int(self.offsets[-1])

    @property
    def margin(self) -> int:
        """Distance beyond the ranges, in levels, that costs a row half of its maximum; 0: none."""
        return 0

    def least(self, values: NDArray[Any]) -> float:
        """Return the sum, over the tables, of the smallest of ``values`` (n_cells,) in each."""
        least = np.minimum.reduceat(values, self.offsets[:-1])
        return float(least.reshape(self.n_tables, -1).min(axis=1).sum())

    def parameters(self) -> JsonObject:
        """Return what the family needs besides arrays, in the form stored in JSON."""
        numbers, optional = self._declared("numbers"), self._optional()
        values = {name: getattr(self, name) for name in numbers}
        return {k: v for k, v in values.items() if k not in optional or v != optional[k]}

    def arrays(self) -> Arrays:
        """Return the drawn arrays: everything that a reader in another language needs."""
        return {name: getattr(self, name) for name in self._declared("drawn")}

    @classmethod
    def from_content(cls, schema: Schema, parameters: Any, arrays: Arrays) -> Self:
        """Build the family from `parameters` and `arrays`; raise `PlanError` if they are wrong."""
        numbers, needed = cls._declared("numbers"), cls._declared("drawn")
        lacking, unknown = set(numbers) - set(parameters), set(parameters) - set(numbers)
        if unknown or lacking - set(cls._optional()) or set(arrays) != set(needed):
            raise PlanError(
                f"hash family {cls.name!r} needs the parameters {sorted(numbers)} and the arrays "
                f"{sorted(needed)}, and nothing else"
            )
        return cls(schema=schema, **parameters, **arrays)

    @classmethod
    def json_schema(cls) -> JsonObject:
        """Return the JSON Schema of the family's entry in a manifest."""
        numbers = {
            name: {"type": "integer", "minimum": low, "maximum": high}
            for name, (low, high) in cls._declared("numbers").items()
        }
        return {
            "description": str(cls.__doc__).partition("\n")[0],
            "type": "object",
            "required": ["name", *(name for name in numbers if name not in cls._optional())],
            "properties": {"name": {"const": cls.name}, **numbers},
            "additionalProperties": False,
        }

    @classmethod
    def dtypes(cls) -> set[str]:
        """Return the dtypes of the family's arrays."""
        return {str(array.dtype) for array in cls._declared("drawn").values()}

    def same(self, other: "HashFamily") -> bool:
        """Return whether these are the same hash functions of the same features."""
        mine, theirs = self.arrays(), other.arrays()
        return (
            type(self) is type(other)
            and self.schema.features == other.schema.features
            and self.parameters() == other.parameters()
            and all(np.array_equal(mine[name], theirs[name]) for name in mine)
        )

    def part(self, tables: int) -> "HashFamily":
        """Return the family of the first tables only; of all if it cannot be divided."""
        return self

    @abstractmethod
    def count(self, codes: Codes, counts: Ints, weights: Ints | None = None) -> None:
        """Add every row, ``weights`` (n,) times, to ``counts`` (n_cells,), in every table."""

    def counting_numbers(self) -> NumbersLoop | None:
        """Return a loop that counts like `count`, but without codes, if that is faster.

        Its last arguments are ``counts`` (n_cells,) and ``tally`` (n_features, 2).
        """
        return None

    @abstractmethod
    def count_pairs(self, codes: Codes, rows: Ints, tables: Ints, counts: Ints) -> None:
        """Add, for each pair p, row ``rows[p]`` to ``counts`` in table ``tables[p]`` only."""

    @abstractmethod
    def sum(self, codes: Codes, values: Floats) -> Floats:
        """Return, for each row, the sum over the tables of its cell's ``values`` (n_cells,).

        If a table has several histograms, the smallest of the row's values in them counts.
        """

    def summing(self, values: Floats) -> Summing:
        """Return `sum` of these values, for successive batches of codes."""
        return partial(self.sum, values=values)

    def scoring(self, values: Floats) -> Scoring:
        """Return the scores by these values, for successive batches of codes."""
        margin = self.margin / kernels.LEVELS
        return Scoring(self.summing(values), self.n_tables, self.least(values), margin)

    @property
    def can_gain(self) -> NDArray[np.bool_]:
        """Features (d,) by which a row can gain: see `gains`."""
        raise _no_gains(self.name)

    def gains(self, codes: Codes, values: Floats, limits: Floats) -> tuple[Floats, Floats]:
        """Return `sum` (n,), and what rows would gain by a change of one feature (n, d).

        A row's gain by a feature is the sum, over the tables, of the rise in its value there if
        this feature took the best possible value and all others stayed. A table adds gains only to
        rows whose value in it is below its limit; ``limits`` (n_tables,). Like `can_gain`, it
        raises `UsageError` if a row's cell does not show which feature put it there.
        """
        raise _no_gains(self.name)


def _no_gains(name: str) -> UsageError:
    return UsageError(
        f"{name} tables do not show which feature makes a row rare: explanations need HushTable "
        "or LSHiTables"
    )


class KernelFamily(HashFamily):
    """A family whose loops are compiled: count_NAME, count_pairs_NAME, sum_NAME of a module."""

    _loops: ClassVar[str]
    _kernels: ClassVar[Any] = kernels

    @abstractmethod
    def _arguments(self, codes: Codes) -> Arguments:
        """Return what the kernels take between the codes of these rows and their own arguments."""

    def _run(self, loop: str, codes: Codes, *rest: object) -> None:
        kernel = getattr(self._kernels, f"{loop}_{self._loops}")
        kernel(codes.codes, *self._arguments(codes), *rest)

    def count(self, codes: Codes, counts: Ints, weights: Ints | None = None) -> None:
        weights = EVERY_ROW_ONCE if weights is None else weights
        self._run("count", codes, weights, counts)

    def count_pairs(self, codes: Codes, rows: Ints, tables: Ints, counts: Ints) -> None:
        self._run("count_pairs", codes, rows, tables, counts)

    def sum(self, codes: Codes, values: Floats) -> Floats:
        totals = np.empty(len(codes))
        self._run("sum", codes, values, totals)
        return totals


Family = TypeVar("Family", bound=type[HashFamily])

#: Every family that a plan may have. Files, the JSON Schema and the tests use this list.
FAMILIES: dict[str, type[HashFamily]] = {}


def register(family: Family) -> Family:
    """Add a hash family, as a decorator of its class: plans of it can then be read.

    Raises `UsageError` if another family has the same name.
    """
    if FAMILIES.setdefault(family.name, family) is not family:
        raise UsageError(f"hash family {family.name!r} is registered already: rename one")
    return family


def family_from_content(
    name: object, parameters: object, arrays: Arrays, schema: Schema
) -> HashFamily:
    """Build the family described by `HashFamily.parameters` and `HashFamily.arrays`.

    Raises `PlanError` if the name is unknown, or if parameters or arrays do not fit that family.
    """
    family = plugins.registered(FAMILIES, name)
    if family is None:
        raise PlanError(plugins.unknown("hash family", name, FAMILIES))
    return family.from_content(schema, parameters, arrays)


@dataclass(frozen=True, eq=False)
class Concatenated(KernelFamily):
    """Tables of ``depth[t]`` hash functions each; the arrays of functions are laid end to end."""

    depth: NDArray[np.uint8] = drawn(np.uint8, "n_tables", low=1)

    @property
    def n_tables(self) -> int:
        # At least one, so that the check fails if there are no depths at all.
        return max(1, len(self.depth))

    @property
    def n_functions(self) -> int:
        """Number of hash functions of all tables together."""
        return int(self.depth.sum(dtype=np.int64))

    @cached_property
    def _first(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(self.depth, dtype=np.int64)])
