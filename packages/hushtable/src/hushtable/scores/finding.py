"""A finding: the facts about one unusual row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from hushtable.data.readers import Batch
from hushtable.data.schema import Feature
from hushtable.display import Displayed
from hushtable.language import _, numerals, percents
from hushtable.scores.reasons import Reason, RowReasons
from hushtable.scores.typical import ValuePhrase
from hushtable.scores.usual import FARTHEST, Usual

#: How far the keys of rows with a value far outside everything are below their scores, for each
#: multiple of the limit; and those of rows with an impossible value, below all others.
FAR_FIRST = float(1 << 20)
IMPOSSIBLE_FIRST = 2.0 * FARTHEST * FAR_FIRST


@dataclass(frozen=True)
class Finding(Displayed):
    """Facts about one unusual row, which lists, pages, and reviews put into words.

    What was not requested is None or empty.

    Attributes
    ----------
    row : int
        Number of the row in its file, from 0.
    score : float
        In the unit of the plan's score rule; low is abnormal.
    file : str
        File of the row; empty if there is only one file.
    why : RowReasons or None
        The reasons, and which values would make the row usual.
    error : float or None
        Standard error of the score.
    ranks : list of float or None
        Share of the rows of all sites that are at least as rare, and the interval that contains it.
    far : float
        How far outside everything a value is: see `Usual.far`; 0 if no value is.
    rule : str
        The value that is impossible by the owner's rules, in words.
    outside : tuple of str
        Names of the columns with a value outside the plan's range or categories.
    crowding : str
        How many more similar rows a typical row has than this one, in words.
    context : str
        A note that few rows of the row's context were counted, in words.
    moved : float
        Bits that verdicts on rows subtracted from the score; negative if they added some, and 0 if
        it is less than the ordinary spread of scores.
    kept_values : mapping of str to pyarrow.Array
        For each column to keep, the row's value as an array of one.
    evidence : tuple or None
        The row's values, and the share of each feature in the score (d,), from which the reasons
        are found.
    severity : float
        In a review: 100 times one minus the share of rows as rare.
    values : mapping of str to ValuePhrase
        In a review, for each feature: the value in words, and what is usual. Reasons come first.
    usual, features
        In a review: what the values are compared with, and the columns that reasons refer to.
    """

    row: int
    score: float
    file: str = ""
    why: RowReasons | None = field(default=None, repr=False)
    error: float | None = None
    ranks: list[float] | None = None
    far: float = 0.0
    rule: str = ""
    outside: tuple[str, ...] = ()
    crowding: str = field(default="", repr=False)
    context: str = field(default="", repr=False)
    moved: float = 0.0
    kept_values: Mapping[str, pa.Array] = field(default_factory=dict, repr=False, compare=False)
    evidence: tuple[Batch, NDArray[Any]] | None = field(default=None, repr=False, compare=False)
    severity: float = 0.0
    values: Mapping[str, ValuePhrase] = field(default_factory=dict, repr=False, compare=False)
    usual: Usual | None = field(default=None, repr=False, compare=False)
    features: Sequence[Feature] = field(default=(), repr=False, compare=False)

    @property
    def key(self) -> float:
        """The key that orders lists: the score, but far below all others if a value is far off."""
        return self.score - FAR_FIRST * self.far - IMPOSSIBLE_FIRST * bool(self.rule)

    @property
    def reasons(self) -> list[Reason]:
        """The reasons in their order; empty if they were not requested."""
        return [] if self.why is None else self.why.reasons

    @property
    def kept(self) -> dict[str, str]:
        """For each column to keep, the value as text; empty if it is missing."""
        return {name: as_text(value) for name, value in self.kept_values.items()}

    @property
    def words(self) -> str:
        """Why the row scores low, in a sentence without a full stop."""
        return self.sentence()

    def sentence(self, remarks: Sequence[str] = ()) -> str:
        """Return why the row scores low, with further remarks, without a full stop."""
        parts = [self.rule, *(reason.words for reason in self.reasons), *remarks]
        parts += [self.likeness, self.context]
        return "; ".join(filter(None, parts)) or _("no column stands out")

    @property
    def likeness(self) -> str:
        """The effect of verdicts on the score, in words; empty if it is small."""
        if not self.moved:
            return ""
        bits = numerals(f"{abs(self.moved):.1f}")
        if self.moved > 0.0:
            return _("like rows that were confirmed as outliers (%(bits)s bits)", bits=bits)
        return _("like rows that were judged fine (%(bits)s bits)", bits=bits)

    @property
    def rank_words(self) -> list[str]:
        """The rank and its interval, for a table; empty if unknown."""
        if self.ranks is None:
            return []
        rank, low, high = (percents(f"{100.0 * share:.2f}") for share in self.ranks)
        return [rank, _("%(low)s and %(high)s", low=low, high=high)]

    def facts(self) -> dict[str, Any]:
        """Return the finding in machine-readable form."""
        ranks = self.ranks
        return {
            **({"file": self.file} if self.file else {}),
            "row": self.row,
            "score": self.score,
            **({} if ranks is None else {"rank": ranks[0], "between": ranks[1:]}),
            **({} if self.why is None else self.why.facts()),
            **({"outside": list(self.outside)} if self.outside else {}),
            **({"far": True} if self.far else {}),
            **({"rule": self.rule} if self.rule else {}),
            **({"moved": self.moved} if self.moved else {}),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return row, score, severity, words, kept columns, and the values by column."""
        values = {name: phrase.value for name, phrase in self.values.items()}
        facts = {"row": self.row, "score": self.score, "severity": self.severity}
        return facts | {"words": self.words} | self.kept | values


def as_text(value: pa.Array) -> str:
    """Return a value, given as an array of one, as text; empty if it is missing."""
    text = value.cast(pa.string())[0].as_py()
    return "" if text is None else str(text)
