"""Findings: the facts about an unusual row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hushtable.data.readers import Batch, joined
from hushtable.language import _, numerals
from hushtable.scores.reasons import Reason, Reasons, RowReasons
from hushtable.scores.scorer import Scorer
from hushtable.scores.typical import ValuePhrase
from hushtable.scores.usual import FARTHEST, Usual

Floats = NDArray[np.float64]

#: How far the keys of rows with a value far outside everything are below their scores, for each
#: multiple of the limit; and those of rows with an impossible value, below all others.
FAR_FIRST = float(1 << 20)
IMPOSSIBLE_FIRST = 2.0 * FARTHEST * FAR_FIRST


@dataclass(frozen=True)
class Finding:
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
    remarks : tuple of str
        Values that no score finds: the only negative number, or the only zero, of a column.
    severity : float
        100 times one minus the share of rows that are as rare or rarer; the list or the review
        states among which rows.
    values : mapping of str to ValuePhrase
        In a review, for each feature: the value in words, and what is usual. Reasons come first.
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
    context: str = field(default="", repr=False)
    moved: float = 0.0
    kept_values: Mapping[str, pa.Array] = field(default_factory=dict, repr=False, compare=False)
    evidence: tuple[Batch, NDArray[np.float64]] | None = field(
        default=None, repr=False, compare=False
    )
    remarks: tuple[str, ...] = ()
    severity: float = 0.0
    values: Mapping[str, ValuePhrase] = field(default_factory=dict, repr=False, compare=False)

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
        parts = [self.rule, *(reason.words for reason in self.reasons), *self.remarks]
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

    def facts(self) -> dict[str, object]:
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

    def to_dict(self) -> dict[str, object]:
        """Return row, score, severity, words, kept columns, and the values by column."""
        values = {name: phrase.value for name, phrase in self.values.items()}
        facts = {"row": self.row, "score": self.score, "severity": self.severity}
        return facts | {"words": self.words} | self.kept | values


def as_text(value: pa.Array) -> str:
    """Return a value, given as an array of one, as text; empty if it is missing."""
    text = value.cast(pa.string())[0].as_py()
    return "" if text is None else str(text)


def far_outside(scorer: Scorer, usual: Usual | None, rows: Batch) -> Floats:
    """Return how far outside everything a number of each row (n,) is: see `Usual.far`."""
    if usual is None:
        return np.zeros(len(rows))
    return usual.far(scorer.plan.schema.features, rows)


def explained(findings: Sequence[Finding], reasons: Reasons, bar: float | None) -> list[Finding]:
    """Return findings with their reasons: see `Reasons.of`."""
    evidence = [finding.evidence for finding in findings if finding.evidence is not None]
    if not evidence:
        return list(findings)
    shares = np.stack([share for _row, share in evidence])
    numeric = {feature.name for feature in reasons.features if feature.kind == "numeric"}
    every = reasons.of(joined([row for row, _share in evidence], numeric), shares, bar)
    return [replace(finding, why=why) for finding, why in zip(findings, every, strict=True)]


def with_severities(findings: Sequence[Finding], shares: Floats) -> list[Finding]:
    """Return findings (n,) with their severities, given the shares of rows as rare (n,)."""
    severities = np.round(100.0 * (1.0 - shares), 10).tolist()
    return [replace(finding, severity=x) for finding, x in zip(findings, severities, strict=True)]


def lowest_rows(scores: NDArray[np.float64], most: int) -> NDArray[np.int64]:
    """Return the numbers of the lowest scores, lowest first; of equal ones, the earlier first.

    NaN scores come last.
    """
    if 0 < most < len(scores):
        few = np.flatnonzero(scores <= np.partition(scores, most - 1)[most - 1])
        return few[np.argsort(scores[few], kind="stable")[:most]]
    return np.argsort(scores, kind="stable")[:most]
