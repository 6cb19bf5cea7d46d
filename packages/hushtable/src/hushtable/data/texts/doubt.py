"""A column as it was read, and what a person has to decide before that, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from hushtable.data.texts.reading import ColumnReading
from hushtable.words.doubts import doubt_words
from hushtable.words.options import Option, typed_options

#: Doubts that the command asks about before it fits, although a fit is possible.
_ASKED = ("identifiers", "texts", "codes", "words", "labels")


@dataclass(frozen=True)
class Doubt:
    """A decision that a person has to take before a column is read.

    Attributes
    ----------
    column : str
        Its name.
    kind : str
        A key of the sentences in `hushtable.words.doubts`.
    example : str
        A text of the column that raises the doubt; empty if all do.
    place : str
        Where the example is, such as ``line 19``.
    options : tuple of (str, str)
        What resolves the doubt: fields of `hushtable.data.options.RowOptions` with values, such as
        ``("missing", "pain:999")`` or ``("as", "x=number")``. Each was tried on a sample.
    refused : bool
        Whether `fit` refuses the column until the doubt is resolved.
    facts : dict
        Further values of the sentence.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from hushtable.data import understand
    >>> [one] = understand(pa.table({"level": ["1.5", "2.5", "ERR"]}))
    >>> one.doubt.kind, one.doubt.example, one.doubt.place, one.doubt.options
    ('exceptions', 'ERR', 'row 2', (('missing', 'ERR'),))
    >>> print(one.doubt)
    2 numbers and 'ERR' in row 2
    """

    column: str
    kind: str
    example: str = ""
    place: str = ""
    options: tuple[Option, ...] = ()
    refused: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def asked(self) -> bool:
        """Whether the command asks before it fits, although a fit is possible."""
        return self.kind in _ASKED and not self.refused

    @property
    def words(self) -> str:
        """The doubt as a sentence, in the language of now."""
        facts = {"column": self.column, "text": self.example, "where": self.place, **self.facts}
        return doubt_words(self.kind, facts)

    def __str__(self) -> str:
        return self.words


Kind: TypeAlias = Literal["number", "date", "category", "id", "text", "constant", "empty"]


@dataclass(frozen=True)
class ColumnUnderstanding:
    """One column as it was read.

    Attributes
    ----------
    name : str
        Of the column.
    kind : {"number", "date", "category", "id", "text", "constant", "empty"}
        Where "id" is an identifier and "text" free text.
    evidence : str
        The evidence for its kind.
    doubt : Doubt or None
        What a person should check; None if there is nothing.
    reading : ColumnReading or None
        How its texts become values; None for columns that hold values.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from hushtable.data import understand
    >>> [one] = understand(pa.table({"seen": ["05/11/2026", "01/02/2026"]}))
    >>> one.kind, one.refused, one.doubt.options
    ('date', True, (('dates', 'dmy'), ('dates', 'mdy')))
    >>> one.option
    "dates='dmy/mdy'"
    """

    name: str
    kind: Kind
    evidence: str
    doubt: Doubt | None = None
    reading: ColumnReading | None = None

    @property
    def refused(self) -> bool:
        """Whether `fit` refuses the column until the doubt is resolved."""
        return self.doubt is not None and self.doubt.refused

    @property
    def asked(self) -> bool:
        """Whether the command asks before it fits.

        It asks about identifiers, free text, values that may be codes for missing ones, and labels
        that may be the same.
        """
        return self.doubt is not None and self.doubt.asked

    @property
    def options(self) -> tuple[Option, ...]:
        """Options that resolve the doubt: fields of `RowOptions` with values."""
        return () if self.doubt is None else self.doubt.options

    @property
    def question(self) -> str:
        """The doubt in words; empty if there is nothing to check."""
        return "" if self.doubt is None else self.doubt.words

    @property
    def option(self) -> str:
        """The options as they are typed: in a shell, or as arguments in Python."""
        return typed_options(self.options)
