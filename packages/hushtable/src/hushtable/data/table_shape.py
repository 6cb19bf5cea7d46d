"""The shape of a table: too few rows to judge by, nothing that varies, or one row for each value.

Tested by ``tests/test_quality.py``.
"""

import re
from collections.abc import Iterator, Sequence

import numpy as np

from hushtable.data.table_seen import ColumnSeen, RowsSeen
from hushtable.data.texts.doubt import ColumnUnderstanding
from hushtable.language import _, ngettext, numerals

#: Number of rows below which nothing counts as usual.
_FEW_ROWS = 20
#: Names of columns that state the meaning of the number next to them.
_WHAT = re.compile(
    r"(^|[^a-z])(tests?|analytes?|parameters?|params?|variables?|measures?|measurements?|items?|"
    r"observations?|attributes?|metrics?|indicators?|quantit(y|ies)|sensors?|channels?|loinc|codes?|"
    r"merkmal|messgr[öo](ß|ss)e|untersuchung|kennzahl|param[eè]tres?|mesure|prueba|variabile)"
    r"($|[^a-z])",
    re.IGNORECASE,
)
#: In a table with one row per value: fewest and most kinds of values, and fewest rows of each.
_KINDS, _EACH = (2, 200), 5
#: Mean number of rows per entity from which a column identifies entities.
_PER_ENTITY = 2.0


def shape_words(n_rows: int, columns: Sequence[ColumnUnderstanding]) -> list[str]:
    """Return sentences on a table that shows too little of what is usual."""
    words = []
    if n_rows < _FEW_ROWS:
        words.append(
            ngettext(
                "%(n)s row is too few to determine what is unusual",
                "%(n)s rows are too few to determine what is unusual",
                n_rows,
            )
        )
    elif n_rows < len(columns):
        words.append(
            _(
                "%(n)s rows are few for %(columns)s columns: what is unusual in so many may be "
                "chance",
                n=numerals(f"{n_rows:,}"),
                columns=numerals(f"{len(columns):,}"),
            )
        )
    if columns and n_rows > 1 and all(one.kind in ("constant", "empty") for one in columns):
        words.append(_("no column varies, so no row can be unusual"))
    return words


def one_row_a_value(rows: RowsSeen, copied: set[str]) -> Iterator[tuple[str, str, str]]:
    """Yield pairs of columns in which one states the meaning of the other, with a sentence."""
    if not any(_is_entity(column, rows.n) for column in rows.columns):
        return
    named = [
        column
        for column in rows.columns
        if column.is_text
        and _WHAT.search(column.name)
        and _KINDS[0] <= len(column.labels or ()) <= _KINDS[1]
    ]
    for what in named[:1]:
        labels = [what.named.get(word, "") for word in np.concatenate(what.words).tolist()]
        for value in rows.columns:
            if not value.sample or value.is_date or value.name in copied:
                continue
            groups = _groups(labels, np.concatenate(value.sample))
            if (apart := _far_apart(groups)) is not None:
                (low, of_low), (high, of_high) = apart
                words = _(
                    "%(value)s: the median is %(of_low)s where %(what)s is %(low)s, but "
                    "%(of_high)s where it is %(high)s, so each row seems to hold one of several "
                    "measurements. Compare values within %(what)s (hushtable fit --context)",
                    value=value.name, what=what.name, low=repr(low), high=repr(high),
                    of_low=numerals(f"{of_low:.4g}"), of_high=numerals(f"{of_high:.4g}"),
                )  # fmt: skip
                yield what.name, value.name, words
                return


def _is_entity(column: ColumnSeen, n_rows: int) -> bool:
    if column.labels is not None:
        n = len(column.labels)
    else:
        n = len(np.unique(np.concatenate(column.ids))) if column.ids else 0
    return (column.is_text or column.is_id) and n > _EACH and n_rows >= _PER_ENTITY * n


def _groups(labels: Sequence[str], values: np.ndarray) -> dict[str, np.ndarray]:
    names, codes = np.unique(labels, return_inverse=True)
    known = np.isfinite(values)
    every = {str(name): values[known & (codes == k)] for k, name in enumerate(names) if name}
    return {name: some for name, some in every.items() if len(some) >= _EACH}


def _far_apart(
    groups: dict[str, np.ndarray],
) -> tuple[tuple[str, float], tuple[str, float]] | None:
    if len(groups) < _KINDS[0]:
        return None
    medians = sorted((float(np.median(some)), name) for name, some in groups.items())
    (low, first), (high, last) = medians[0], medians[-1]
    below, above = np.quantile(groups[first], 0.95), np.quantile(groups[last], 0.05)
    spread = max(np.ptp(np.quantile(groups[name], [0.25, 0.75])) for name in (first, last))
    if above > below and high - low > 5 * spread:
        return (first, low), (last, high)
    return None
