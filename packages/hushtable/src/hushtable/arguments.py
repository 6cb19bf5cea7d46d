"""Checks of arguments that many calls take, and of the content of JSON files, with one wording."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, field, fields
from functools import cache
from inspect import cleandoc
from types import UnionType
from typing import Any, ClassVar, Self, TypeAlias, get_args, get_origin, get_type_hints

import numpy as np

from hushtable.errors import PlanError, UsageError

#: Name of an entry, and its kind: a type of JSON, ``float`` for any number, ``list[str]``,
#: ``str | None``, or ``object`` for anything that the caller checks itself.
Kinds = Mapping[str, Any]
#: An object of JSON, or a table of TOML: its entries by name.
JsonObject: TypeAlias = dict[str, Any]


def entries(
    content: object,
    what: str,
    needed: Kinds,
    optional: Kinds | None = None,
    *,
    error: type[Exception] = PlanError,
) -> JsonObject:
    """Return content, parsed from JSON, if it is an object with these entries of these kinds.

    Otherwise raise ``error``, which names ``what`` it should be.
    """
    kinds = {**(optional or {}), **needed}
    if isinstance(content, dict):
        off = {*(set(needed) - set(content)), *(set(content) - set(kinds))}
        off |= {name for name in set(content) & set(kinds) if not _fits(content[name], kinds[name])}
        if not off:
            return content
        wrong = f" (missing, unknown or of another kind: {', '.join(sorted(map(str, off)))})"
    else:
        wrong = ""
    raise error(f"{what} needs the entries {sorted(needed)}, each of its kind{wrong}")


@contextmanager
def translate_errors(error: type[Exception], what: str = "") -> Iterator[None]:
    """Raise errors about a value in the body as this error; ``what`` names the value."""
    try:
        yield
    except error:
        raise
    except ValueError as wrong:
        raise error(f"{what}: {wrong}" if what else str(wrong)) from None


def is_digest(value: object) -> bool:
    """Whether this is a SHA-256 in hexadecimal digits."""
    return isinstance(value, str) and re.fullmatch(r"[0-9a-f]{64}", value) is not None


def _fits(value: object, kind: object) -> bool:
    if get_origin(kind) is UnionType:
        return any(_fits(value, item) for item in get_args(kind))
    if get_origin(kind) is list:
        (inner,) = get_args(kind)
        return isinstance(value, list) and all(_fits(item, inner) for item in value)
    if kind is float:  # a number in JSON; True is not a number
        return type(value) in (int, float)
    return kind is object or type(value) is kind or (kind is type(None) and value is None)


_ALWAYS = {"always": True}


def always(default: object) -> Any:
    """Declare a field of a `Stored` dataclass that JSON contains even with this default."""
    return field(default=default, metadata=_ALWAYS)


class Stored:
    """A dataclass that is stored in JSON: its fields state the entries and their kinds.

    Fields of numbers, texts, truth values, tuples of them, and others with ``to_dict`` and
    ``from_dict`` are entries. One that has its default is left out, unless it is declared by
    `always`, and so is None.
    """

    __slots__ = ()

    stored_as: ClassVar[str]  # what its JSON should be, in errors

    def to_dict(self) -> JsonObject:
        """Return it in the form stored in JSON."""
        described: Any = type(self)
        return {
            name: _in_json(getattr(self, name))
            for name, (_, default) in _entries_of(described).items()
            if getattr(self, name) != default
        }

    @classmethod
    def from_dict(cls, content: object) -> Self:
        """Read back what `to_dict` wrote; raises `PlanError` on anything else."""
        described: Any = cls
        known = _entries_of(described)
        kinds = {name: _kind(hint) for name, (hint, _) in known.items()}
        needed = {name: kinds[name] for name, (_, default) in known.items() if default is MISSING}
        given = entries(content, cls.stored_as, needed, kinds)
        with translate_errors(PlanError, cls.stored_as):
            return cls(**{name: _built(known[name][0], value) for name, value in given.items()})


@cache
def _entries_of(cls: Any) -> dict[str, tuple[Any, Any]]:
    """Return the type of each field, and the default with which it is left out, or `MISSING`."""
    hints = get_type_hints(cls)
    defaults = {f.name: MISSING if f.metadata == _ALWAYS else f.default for f in fields(cls)}
    return {name: (hints[name], default) for name, default in defaults.items()}


def _in_json(value: object) -> Any:
    if isinstance(value, tuple):
        return [_in_json(item) for item in value]
    return value.to_dict() if hasattr(value, "to_dict") else value


def _inner(hint: object) -> Any:
    if get_origin(hint) not in (tuple, UnionType):
        return None
    return next(kind for kind in get_args(hint) if kind is not type(None))


def _kind(hint: object) -> Any:
    if (inner := _inner(hint)) is None:
        return hint if hint in (str, int, float, bool) else object
    return list[_kind(inner)] if get_origin(hint) is tuple else _kind(inner)  # type: ignore[misc]


def _built(hint: Any, value: Any) -> Any:
    if (inner := _inner(hint)) is not None:
        if get_origin(hint) is tuple:
            return tuple(_built(inner, item) for item in value)
        return _built(inner, value)
    if hasattr(hint, "from_dict"):
        return hint.from_dict(value)
    return float(value) if hint is float else value


#: Largest number of rows, or of anything counted like them: above it, sums might not be exact.
MOST = 2**40


def whole(name: str, value: Any, low: int = 1, high: int = MOST) -> int:
    """Return a whole number from low to high; raise `UsageError` otherwise."""
    number = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not number or not low <= value <= high:
        range_ = f", {low} or more" if high == MOST else f" from {low:,} to {high:,}"
        raise UsageError(f"{name}={value!r}: needs a whole number{range_}")
    return int(value)


def generator(random_state: Any) -> "np.random.Generator":
    """Return the generator for a seed: anything that ``numpy.random.default_rng`` takes.

    Raises `UsageError` if it is not a seed.
    """
    seed = random_state
    if isinstance(seed, np.random.RandomState):
        seed = seed.randint(2**31)
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise UsageError(
            f"random_state={seed!r}: needs a whole number, 0 or more, or a NumPy Generator; "
            "None draws again each time"
        ) from None


def fill_docs(cls: type, shared: Mapping[str, str]) -> None:
    """Insert shared sections into the docstrings of a class and its methods, at their names."""
    for thing in (cls, *vars(cls).values()):
        function = getattr(thing, "__func__", thing)  # for a class method
        text = getattr(function, "__doc__", None) or ""
        if callable(function) and any(name in text for name in shared):
            text = cleandoc(text)
            for name, section in shared.items():
                text = text.replace(name, cleandoc(section))
            function.__doc__ = text


def is_text(value: object) -> bool:
    """Whether this is text that a file can hold."""
    if not isinstance(value, str):
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:  # an unpaired surrogate
        return False
    return True
