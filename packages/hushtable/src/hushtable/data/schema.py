"""Features and schemas: the kinds of the columns, and their public ranges and categories."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from functools import cached_property
from numbers import Real
from os import PathLike
from typing import Any, Literal

from hushtable.arguments import JsonObject, entries, is_text
from hushtable.data.labels import LABELS_VERSION, fold
from hushtable.data.residuals import FAR, Differences, Relations
from hushtable.errors import PlanError
from hushtable.language import N_, _, numerals
from hushtable.privacy.budget import Spent

#: Largest number of categories of a feature. A feature with more is, in practice, an identifier.
MAX_CATEGORIES = 10_000
#: Largest number of features of a schema: they are numbered in 16 bits.
MAX_FEATURES = 65_535


@dataclass(frozen=True, slots=True)
class Feature:
    """One column: numeric with a range, or categorical with its categories.

    Make one with `Feature.numeric` or `Feature.categorical`. Any feature may be missing in
    any row.

    Attributes
    ----------
    name : str
        Name of the column.
    kind : {"numeric", "categorical"}
        Kind of its values.
    low, high : float
        Range of a numeric feature, in its own unit; values outside are clipped to it.
    categories : tuple of str
        Categories of a categorical feature; any other value counts as unseen.
    unit : str
        Unit of a numeric feature, for people; empty if unknown.
    cyclic : bool
        Whether the categories are cyclic, like those of `hushtable.data.calendar`: the last is next
        to the first, and neighbouring categories are similar.
    neutral : bool
        Whether a missing number counts as a usual one, and not as rare or frequent in itself, as in
        a history, which is unknown at first.
    usual : float or str or None
        The value that a missing value counts as, if that is public knowledge: a number in the
        range, or one of the categories. Hash functions of `HushTable` and `LSHiTables` use it, like
        ``neutral``.
    written : callable or None
        Returns a number with some digits as its column in a file is written, which no plan states;
        None if that is unknown.

    Examples
    --------
    >>> from hushtable import Feature
    >>> Feature.numeric("age", low=0, high=120, unit="year").high
    120.0
    >>> Feature.categorical("ward", ["north", "south"]).categories
    ('north', 'south')
    """

    name: str
    kind: Literal["numeric", "categorical"]
    low: float = 0.0
    high: float = 0.0
    categories: tuple[str, ...] = ()
    unit: str = ""
    cyclic: bool = False
    neutral: bool = False
    usual: float | str | None = None
    written: Callable[[float, int | None], str] | None = field(
        default=None, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if not is_text(self.name) or not self.name:
            raise PlanError(
                f"a column has the name {self.name!r}: give it a name, or leave the column out"
            )
        if not is_text(self.unit):
            raise PlanError(f"feature {self.name!r}: unit {self.unit!r}: needs a text")
        if type(self.cyclic) is not bool or (self.cyclic and self.kind != "categorical"):
            raise PlanError(
                f"feature {self.name!r}: cyclic {self.cyclic!r}: needs true or false, of categories"
            )
        if type(self.neutral) is not bool or (self.neutral and self.kind != "numeric"):
            raise PlanError(
                f"feature {self.name!r}: neutral {self.neutral!r}: needs true or false, of numbers"
            )
        if self.kind == "numeric":
            self._check_range()
        elif self.kind == "categorical":
            self._check_categories()
        else:
            raise PlanError(
                f"feature {self.name!r}: kind {self.kind!r}: needs 'numeric' or 'categorical'"
            )

    def _check_range(self) -> None:
        try:
            low, high = float(self.low), float(self.high)
        except (TypeError, ValueError, OverflowError):  # a whole number that no float holds
            raise PlanError(
                f"feature {self.name!r}: range [{self.low!r:.80}, {self.high!r:.80}]: needs two "
                "finite numbers"
            ) from None
        if not math.isfinite(high - low):
            finite = math.isfinite(low) and math.isfinite(high)
            width = (
                "its width, high - low, is not finite: narrow the range, or leave the column out"
            )
            raise PlanError(
                f"feature {self.name!r}: range [{low}, {high}]: "
                + (width if finite else "needs two finite numbers")
            )
        if low > high:
            raise PlanError(f"feature {self.name!r}: low {low} is above high {high}: swap them")
        # -0.0 and 0.0 are the same range, and must give the same plan id.
        object.__setattr__(self, "low", low + 0.0)
        object.__setattr__(self, "high", high + 0.0)
        if self.usual is not None:
            if not isinstance(self.usual, Real) or not low <= self.usual <= high:
                raise PlanError(
                    f"feature {self.name!r}: usual {self.usual!r:.80}: needs a number in its "
                    f"range, {low} to {high}: correct it, or leave it out"
                )
            object.__setattr__(self, "usual", float(self.usual) + 0.0)

    def _check_categories(self) -> None:
        single = isinstance(self.categories, str | Mapping)
        listed = isinstance(self.categories, Iterable) and not single
        categories = tuple(self.categories) if listed else ()
        if not listed or not all(map(is_text, categories)):
            raise PlanError(f"feature {self.name!r}: categories must be a list of texts")
        if len(set(categories)) < len(categories):
            twice = _twice(categories)
            raise PlanError(f"feature {self.name!r}: category {twice!r} is listed twice")
        if len(categories) > MAX_CATEGORIES:
            raise PlanError(
                f"feature {self.name!r} has {len(categories):,} categories: a plan takes at most "
                f"{MAX_CATEGORIES:,}; leave identifiers out, or group rare categories"
            )
        object.__setattr__(self, "categories", categories)
        if self.usual is not None and self.usual not in categories:
            raise PlanError(
                f"feature {self.name!r}: usual {self.usual!r:.80}: needs one of its categories: "
                "correct it, or leave it out"
            )

    @classmethod
    def numeric(
        cls,
        name: str,
        *,
        low: float,
        high: float,
        unit: str = "",
        neutral: bool = False,
        usual: float | None = None,
    ) -> "Feature":
        """Make a numeric feature with values in [low, high], in ``unit``; its name is folded."""
        return cls(_folded(name), "numeric", low, high, (), unit, False, neutral, usual)

    @classmethod
    def categorical(
        cls,
        name: str,
        categories: Iterable[str],
        *,
        cyclic: bool = False,
        usual: str | None = None,
    ) -> "Feature":
        """Make a categorical feature with the given categories, in order if they are cyclic.

        Name and categories are folded: see `hushtable.data.labels.fold`.
        """
        # Any iterable is accepted: __post_init__ makes a tuple of it.
        made = cls(name, "categorical", categories=categories, cyclic=cyclic, usual=usual)  # type: ignore[arg-type]
        return made.folded()

    def folded(self) -> "Feature":
        """Return the feature with its name and categories folded, like rows of new plans.

        Raises
        ------
        PlanError
            If two categories become equal.
        """
        categories = tuple(map(fold, self.categories))
        if len(set(categories)) < len(categories):
            one = _twice(categories)
            written = [text for text in self.categories if fold(text) == one]
            raise PlanError(
                f"feature {self.name!r}: the categories {' and '.join(map(ascii, written))} are "
                "the same, because they differ only in surrounding blanks, in invisible marks, or "
                "in how accents are composed: list it once"
            )
        usual = fold(self.usual) if isinstance(self.usual, str) else self.usual
        return replace(self, name=_folded(self.name), categories=categories, usual=usual)

    @property
    def constant(self) -> bool:
        """Whether the feature can take one value only (missing values aside)."""
        return self.low == self.high if self.kind == "numeric" else len(self.categories) <= 1

    def widened(self, share: float) -> "Feature":
        """Return the feature with its range widened on both sides, by a share of its width.

        For a range of one point, the width is its distance from 0, but at least 1.
        """
        if self.kind != "numeric":
            return self
        more = share * (self.high - self.low or max(abs(self.low), 1.0))
        low, high = self.low - more, self.high + more
        return replace(self, low=low, high=high) if math.isfinite(high - low) else self

    def to_dict(self) -> JsonObject:
        """Return the feature as JSON and TOML carry it."""
        usual = {} if self.usual is None else {"usual": self.usual}
        if self.kind == "categorical":
            listed = {"name": self.name, "kind": self.kind, "categories": list(self.categories)}
            return listed | ({"cyclic": True} if self.cyclic else {}) | usual
        content: JsonObject = {"name": self.name, "kind": self.kind}
        content |= {"low": self.low, "high": self.high}
        content |= {"unit": self.unit} if self.unit else {}
        return content | ({"neutral": True} if self.neutral else {}) | usual

    @classmethod
    def from_dict(cls, content: JsonObject) -> "Feature":
        """Read back what `to_dict` wrote; raises `PlanError` on anything else."""
        if not isinstance(content, dict):
            raise PlanError(f"a feature must be a table, not {type(content).__name__}")
        name, kind = content.get("name"), content.get("kind")
        kinds = {"numeric": ["low", "high"], "categorical": ["categories"]}
        if not isinstance(kind, str) or kind not in kinds:
            raise PlanError(f"feature {name!r}: kind {kind!r}: needs 'numeric' or 'categorical'")
        needed = kinds[kind]
        missing = [key for key in needed if key not in content]
        if missing:
            what = "the public range" if kind == "numeric" else "its public categories"
            raise PlanError(f"feature {name!r}: {' and '.join(missing)} not given: fill in {what}")
        unknown = set(content) - {"name", "kind", "unit", "cyclic", "neutral", "usual", *needed}
        if unknown:
            raise PlanError(f"feature {name!r}: unknown entries {sorted(unknown)}")
        for key in ("low", "high", *(["usual"] if kind == "numeric" else [])):
            if type(content.get(key, 0)) not in (int, float):
                raise PlanError(f"feature {name!r}: {key} {content[key]!r} is not a number")
        return cls(**{"name": name, **content})


@dataclass(frozen=True)
class Schema:
    """The features of a plan with their ranges and categories.

    Parameters
    ----------
    features : sequence of Feature
        At least one, with distinct names, in the order of the columns.
    public : bool, default=True
        Whether the ranges and categories were known without looking at the data. A schema
        that was derived from the data has False, and so does every plan drawn from it.
    named : bool, default=True
        Whether the names come from the data; False for a matrix without column names.
    paid : tuple of Spent
        Private releases that the ranges were derived from (`Release.ranges`). Every release under
        this schema must count them. Such ranges are as good as public.
    relations : Relations, optional
        Numeric columns that are judged by their residuals from the others. They are derived from
        rows, so a schema with them is not public; or from private releases, which are then among
        ``paid``.
    differences : Differences, optional
        Predictions of columns by the context: the last features are the differences from these.
        They are also derived from rows. See `with_differences`.
    labels : int, default=1
        Version of the rules by which texts are compared with categories: see
        `hushtable.data.labels.fold`. 0 (compared as written) applies to plans without this entry.

    Examples
    --------
    >>> from hushtable import Feature, Schema
    >>> age = Feature.numeric("age", low=0, high=120)
    >>> Schema([age, Feature.categorical("ward", ["north", "south"])]).names
    ['age', 'ward']
    """

    features: tuple[Feature, ...]
    public: bool = True
    named: bool = True
    paid: tuple[Spent, ...] = ()
    relations: Relations | None = None
    differences: Differences | None = None
    labels: int = LABELS_VERSION

    def __repr__(self) -> str:
        return f"Schema({len(self)} features, public={self.public})"

    def __post_init__(self) -> None:
        features = tuple(self.features) if isinstance(self.features, Iterable) else ()
        object.__setattr__(self, "features", features)
        if not features or not all(isinstance(feature, Feature) for feature in features):
            raise PlanError("a schema needs at least one Feature, and nothing else")
        if len(features) > MAX_FEATURES:
            raise PlanError(f"{len(features):,} features: a schema takes at most {MAX_FEATURES:,}")
        if len(set(self.names)) < len(features):
            twice = _twice(self.names)
            raise PlanError(f"feature {twice!r} is listed twice: rename one of the columns")
        self._check_labels()
        if self.relations is not None:
            if self.public and not self.paid:
                raise PlanError(
                    "a schema with relations, which are derived from rows, is not public"
                )
            places, n = self.relations.columns, len(features)
            if any(j >= n or features[j].kind != "numeric" for j in places):
                raise PlanError("relations: only numeric columns can have relations")
        if self.differences is not None:
            self._check_differences(self.differences)

    def _check_labels(self) -> None:
        if type(self.labels) is not int or not 0 <= self.labels <= LABELS_VERSION:
            raise PlanError(
                f"labels {self.labels!r}: this version knows rules 0 to {LABELS_VERSION} for "
                "comparing texts: update hushtable"
            )
        if not self.categorical_names:  # there is nothing to compare
            object.__setattr__(self, "labels", LABELS_VERSION)
        for feature in self.features if self.labels else ():
            for text in feature.categories:
                if fold(text) != text:
                    raise PlanError(
                        f"feature {feature.name!r}: no row can have the category {text!a}, because "
                        "texts are folded: make the feature with Feature.categorical"
                    )

    def _check_differences(self, differences: Differences) -> None:
        if self.public:
            raise PlanError("a schema with differences, which are derived from rows, is not public")
        n = len(self.features) - len(differences.columns)
        columns, added = self.features[: max(n, 0)], self.features[max(n, 0) :]
        places = {*differences.context, *differences.columns}
        inside = n > 0 and max(places) < n and not {*differences.context} & {*differences.columns}
        right = inside and (
            differences.in_groups or all(columns[j].kind == "numeric" for j in differences.columns)
        )
        if not right or added != _features_of(differences, columns):
            raise PlanError("differences: must be of numeric columns, and be the last features")
        for place, points in zip(differences.context, differences.points, strict=True):
            if isinstance(next(iter(points), ""), str) != (columns[place].kind != "numeric"):
                raise PlanError(
                    "differences: a context has points of a different kind than its column"
                )

    def with_differences(self, differences: Differences) -> "Schema":
        """Return the schema with a feature for each of the differences, after all others."""
        added = _features_of(differences, self.features)
        features = self.features + added
        return replace(self, features=features, public=False, differences=differences)

    def __getstate__(self) -> dict[str, Any]:
        """Return the pickled state, without values that follow from the rest."""
        return {attribute.name: getattr(self, attribute.name) for attribute in fields(self)}

    @cached_property
    def of_rows(self) -> "Schema":
        """The schema of the columns that rows have, without the differences."""
        if self.differences is None:
            return self
        columns = self.features[: len(self.features) - len(self.differences.columns)]
        return replace(self, features=columns, differences=None)

    def __len__(self) -> int:
        return len(self.features)

    @property
    def names(self) -> list[str]:
        """Names of the features, in order."""
        return list(self._names)

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(feature.name for feature in self.features)

    @cached_property
    def categorical_names(self) -> frozenset[str]:
        """Names of the categorical features."""
        return frozenset(f.name for f in self.features if f.kind == "categorical")

    def read_as(self, columns: Mapping[str, Any]) -> "Schema":
        """Return the schema with how columns are read, by name, which writes their numbers."""
        if not columns:
            return self
        features = tuple(
            replace(feature, written=columns[feature.name].written)
            if feature.name in columns
            else feature
            for feature in self.features
        )
        return replace(self, features=features)

    def widened(self, share: float) -> "Schema":
        """Return the schema with all ranges widened on both sides, by a share of their width."""
        return replace(self, features=tuple(feature.widened(share) for feature in self.features))

    def difference(self, other: "Schema") -> str:
        """Describe how two schemas differ."""
        if self.names != other.names:
            return f"features {self.names} against {other.names}"
        for a, b in zip(self.features, other.features, strict=True):
            if a != b and not (self.public and other.public):
                # Ranges and categories derived from rows are values of rows: no message shows them.
                return (
                    f"feature {a.name!r} has a different kind, range or categories, derived "
                    "from rows"
                )
            if a != b:
                return f"feature {a.name!r}: {a.to_dict()} against {b.to_dict()}"
        if self.labels != other.labels:
            return f"texts are compared by rules {self.labels} against {other.labels}"
        return "one schema is public, the other was derived from data"

    def to_dict(self) -> JsonObject:
        """Return the schema as JSON carries it."""
        content: JsonObject = {
            "public": self.public,
            "named": self.named,
            "features": [feature.to_dict() for feature in self.features],
        }
        if self.labels and self.categorical_names:
            content["labels"] = self.labels
        if self.relations is not None:
            content["relations"] = self.relations.to_dict()
        if self.differences is not None:
            content["differences"] = self.differences.to_dict()
        return content | ({"paid": [spent.to_dict() for spent in self.paid]} if self.paid else {})

    @classmethod
    def from_dict(cls, content: JsonObject) -> "Schema":
        """Read back what `to_dict` wrote; raises `PlanError` on anything else."""
        needed = {"features": list, "public": bool, "named": bool}
        optional = {"paid": list, "relations": dict, "differences": dict, "labels": int}
        entries(content, "a schema", needed, optional)
        features = tuple(Feature.from_dict(feature) for feature in content["features"])
        paid = tuple(Spent.from_dict(spent) for spent in content.get("paid", ()))
        found = content.get("relations")
        relations = None if found is None else Relations.from_dict(found)
        found = content.get("differences")
        differences = None if found is None else Differences.from_dict(found)
        public, named, version = content["public"], content["named"], content.get("labels", 0)
        return cls(features, public, named, paid, relations, differences, version)

    @classmethod
    def from_toml(cls, path: "str | PathLike[str]") -> "Schema":
        """Read a public schema from a TOML file with one ``[[feature]]`` table per column.

        Private releases that its ranges were derived from are in ``[[paid]]`` tables.

        Raises
        ------
        PlanError
            If the file is not such a schema; the message names the feature and the entry.
        OSError
            If the file cannot be read.
        """
        import tomllib

        try:
            with open(path, "rb") as file:
                content = tomllib.load(file)
            unknown = set(content) - {"feature", "paid"}
            if unknown or not isinstance(content.get("feature"), list):
                raise PlanError(
                    f"{path}: needs one [[feature]] table for each column and nothing else; "
                    f"got {sorted(content) or 'an empty file'}"
                )
            features = tuple(Feature.from_dict(one).folded() for one in content["feature"])
            paid = content.get("paid", [])
            if not isinstance(paid, list) or not all(isinstance(one, dict) for one in paid):
                raise PlanError(
                    "paid: needs one [[paid]] table for each release, as they were written"
                )
            # TOML has no null value.
            spent = tuple(Spent.from_dict({"pure_epsilon": None} | one) for one in paid)
            return cls(features, paid=spent)
        except PlanError:
            raise
        except ValueError as error:  # this includes a number too long to print
            raise PlanError(f"{path}: not a TOML file of a schema: {error}") from None
        except RecursionError:
            raise PlanError(
                f"{path}: nested too deeply: needs one [[feature]] per column"
            ) from None


def _features_of(differences: Differences, columns: Sequence[Feature]) -> tuple[Feature, ...]:
    names = differences.names([feature.name for feature in columns])
    return tuple(Feature.numeric(n, low=-FAR, high=FAR, unit="sd", neutral=True) for n in names)


def _folded(name: Any) -> Any:
    return fold(name) if isinstance(name, str) else name


def _twice(names: Iterable[str]) -> str:
    return next(name for name, times in Counter(names).items() if times > 1)


#: The unit of a feature that holds points in time, as seconds since 1970-01-01 UTC.
DATE = "date"
#: Text in place of a missing value.
MISSING = N_("missing")

#: The unit of a feature that holds the time since an earlier reading: log2 (1 + seconds).
SINCE = "log2 s"
_EPOCH = datetime(1970, 1, 1)


def value_words(feature: Feature, value: float | str | None, digits: int | None = None) -> str:
    """Return one value of a feature in words: a number with its unit, a date, or a category.

    None or NaN stands for missing.
    """
    if value is None or value != value:
        return _(MISSING)
    if isinstance(value, str):
        return value
    number = number_of(feature, float(value), digits)
    return number if feature.unit in ("", DATE, SINCE) else f"{number} {feature.unit}"


def number_of(feature: Feature, x: float, digits: int | None = None) -> str:
    """Return a number of a feature as its column is written, without its unit."""
    if feature.written is None and feature.unit in (DATE, SINCE):
        return point_in_time(x) if feature.unit == DATE else _duration(x)
    return (feature.written or number_words)(x, digits)


_LENGTHS = {"day": 86_400.0, "hour": 3_600.0, "minute": 60.0, "second": 1.0}


def _duration(x: float) -> str:
    seconds = max(0.0, 2.0 ** min(x, 100.0) - 1.0)
    # A value just below a whole unit, because of rounding, is that unit.
    word = next((w for w, size in _LENGTHS.items() if seconds >= 0.999 * size), "second")
    number = number_words(seconds / _LENGTHS[word], 2 if seconds < 100.0 * _LENGTHS[word] else 4)
    return f"{number} {_(word if number == '1' else f'{word}s')}"


#: Units of lengths of time, of one and of several.
LENGTHS = (
    N_("day"), N_("days"), N_("hour"), N_("hours"), N_("minute"), N_("minutes"), N_("second"),
    N_("seconds"),
)  # fmt: skip


def range_words(feature: Feature, most: int = 3) -> str:
    """Return the range of a feature in words, or how many categories it has, and the first few."""
    if feature.kind == "numeric":
        low, high = number_of(feature, feature.low, 10), value_words(feature, feature.high, 10)
        return _("%(low)s to %(high)s", low=low, high=high)
    n = len(feature.categories)
    if not n:
        return _("no categories")
    names = ", ".join(feature.categories[:most])
    if n > most:
        names = _("%(names)s and %(n)s more", names=names, n=numerals(f"{n - most:,}"))
    return _("%(n)s categories: %(names)s", n=numerals(f"{n:,}"), names=names)


def number_words(x: float, digits: int | None = None) -> str:
    """Return a number with this many significant digits, without an exponent if possible."""
    return numerals(number_digits(x, digits).replace(",", ""))


def number_digits(x: float, digits: int | None = None, decimals: int = 0) -> str:
    """Return a number with this many significant digits, and with at least so many ``decimals``.

    By default, it has up to nine digits if these are all, and otherwise six. It has a comma between
    thousands, and no exponent if possible.
    """
    digits = digits or (9 if float(f"{x:.9g}") == x else 6)
    if not math.isfinite(x) or (x != 0.0 and not 1e-4 <= abs(x) < 1e15):
        return f"{x:.{digits}g}"
    more = digits - 1 - math.floor(math.log10(abs(x))) if x else 0
    whole, _, fraction = f"{x:,.{max(decimals, more)}f}".partition(".")
    fraction = fraction.rstrip("0").ljust(decimals, "0")
    return f"{whole}.{fraction}" if fraction else whole


def point_in_time(seconds: float) -> str:
    """Return seconds since 1970-01-01 as a date in ISO 8601, with a time of day unless midnight."""
    try:
        then = _EPOCH + timedelta(seconds=round(seconds))
    except (OverflowError, ValueError):
        # No calendar reaches that far: the value appears as it is in the data.
        return f"{seconds:.10g} s since 1970" if math.isfinite(seconds) else str(seconds)
    return then.isoformat(" ", "seconds" if then.second else "minutes").removesuffix(" 00:00")
