"""SQL as the engines have it: quoting, types, and tables of cells."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from hushtable.data.schema import DATE, Feature
from hushtable.errors import UsageError
from hushtable_connect.exports._sql_content import Content

#: MurmurHash3's factors, less 2**32: a product with 32 bits then fits 64 with a sign.
_FACTORS = (0x85EBCA6B - (1 << 32), 0xC2B2AE35 - (1 << 32))
_EVERY = (1 << 32) - 1


class Dialect(ABC):
    """The parts of a statement that differ between engines."""

    #: Behind a subquery, so that its columns are worked out once.
    fence: ClassVar[str] = ""
    #: The row of table d as one value, and its columns again.
    row: ClassVar[str]
    columns: ClassVar[str]

    def identifier(self, name: str, what: str) -> str:
        """Quote a name."""
        _check_text(name, what)
        return '"' + name.replace('"', '""') + '"'

    def text(self, value: str) -> str:
        """Quote a text."""
        _check_text(value, "a category")
        return "'" + value.replace("'", "''") + "'"

    def check(self, features: Sequence[Feature]) -> None:  # noqa: B027 (one engine needs it)
        """Raise `UsageError` if the engine cannot tell these columns apart."""

    @abstractmethod
    def xor(self, a: str, b: str) -> str:
        """Return the bits in which two whole numbers differ."""

    @abstractmethod
    def ints(self, values: Iterable[Any]) -> str:
        """Return whole numbers as an array, in brackets."""

    @abstractmethod
    def texts(self, values: Iterable[str]) -> str:
        """Return texts as an array, in brackets."""

    @abstractmethod
    def floats(self, values: Iterable[float]) -> str:
        """Return numbers as an array, in brackets."""

    @abstractmethod
    def array(self, items: Iterable[str], kind: str) -> str:
        """Return expressions as an array of BIGINT or DOUBLE."""

    @abstractmethod
    def error(self, words: str, value: str) -> str:
        """Return an expression that fails with some words, and a value that is text."""

    @abstractmethod
    def number(self, column: str, feature: Feature) -> str:
        """Return a column as float64; statements fail on a type of which that is not exact."""

    @abstractmethod
    def finite(self, number: str, feature: Feature) -> str:
        """Return a number, NULL if it is NaN; fails if it is infinite."""

    @abstractmethod
    def category(self, column: str, feature: Feature) -> str:
        """Return the place of a category: 0 if missing, K + 1 if it is not listed."""

    @abstractmethod
    def side(self, sides: str, place: str) -> str:
        """Return the digit, 0 or 1, at a place from 0."""

    @abstractmethod
    def sums(self, content: Content) -> list[str]:
        """Return columns made of ``c``, the codes: v or what else reasons need, and the ``total``.

        The total is in units.
        """

    @abstractmethod
    def total(self, numbers: str) -> str:
        """Return the sum of an array of float64, one after the other."""

    @abstractmethod
    def reasons(self, source: str, content: Content, when: str) -> str:
        """Return a query of r, score, outlier and the reason of those rows for which ``when``."""

    def step(self, h: str, shift: int, factor: int) -> str:
        """Return a step of fmix32: h ^ h >> shift, times a factor, in 32 bits."""
        return f"({self.shifted(h, shift)} * {_FACTORS[factor]}) & {_EVERY}"

    def shifted(self, h: str, shift: int) -> str:
        """Return h ^ h >> shift."""
        return self.xor(h, f"({h} >> {shift})")

    def cell(self, content: Content, h: str, code: str, table: str) -> str:
        """Return the cell of a table, from 0: the mixed code h, or the code itself."""
        mixed = f"({self.shifted(h, 16)} & {content.mask})"
        if content.n_folded == content.n_tables:
            return mixed
        return f"CASE WHEN {table} <= {content.n_folded} THEN {mixed} ELSE {code} END"

    def share(self, content: Content, gain: str, equal: str, beyond: str) -> str:
        """Return a feature's share of what a row falls short by, in the library's order."""
        m = number(content.n_tables)
        share = f"{gain} * (scale / {m}) + (rest / {m}) * {equal}"
        if content.margin == 0.0:
            return share
        # What is too small to count is left out: PostgreSQL fails on numbers below all others.
        lost = (
            f"CASE WHEN lost = 0e0 THEN 0e0 WHEN {beyond} > e * 1e-30 THEN {beyond} / e * lost "
            "ELSE 0e0 END"
        )
        return f"({share}) + {lost}"


def number(value: float) -> str:
    """Return a finite number as both engines read it, to the bit: with an exponent."""
    text = repr(float(value))
    return text if "e" in text else text + "e0"


def is_date(feature: Feature) -> bool:
    """Whether a feature is a point in time, in seconds since 1970."""
    return feature.unit == DATE


def _check_text(value: str, what: str) -> None:
    if "\0" in value:
        raise UsageError(f"{what}, {value!r}, holds the character NUL, which no SQL can: rename it")
