"""Totals below the rows of reports: one mechanism for text files and sheets of workbooks."""

import re
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from hushtable.errors import DataError

#: First words of a line that adds up the rows above it, in reports of several languages.
TOTAL = re.compile(
    r"\W*((grand |sub)?totals?|sums?|(zwischen|gesamt|end)?summen?|gesamt|insgesamt|saldo|somme|"
    r"totaux|totale|suma|average|mean|mittelwert|durchschnitt|moyenne|anzahl|count|"
    r"\d* ?(rows?|records?|zeilen|datens[äa]tze))\b|\*+\s*$",
    re.IGNORECASE,
)


def looks_like_total(
    fields: Sequence[str], always: Sequence[int], above: Callable[[int], pa.Array]
) -> bool:
    """Return whether the last row adds up those above it.

    Parameters
    ----------
    fields : sequence of str
        Of the last row.
    always : sequence of int
        Columns that no other row leaves empty.
    above : callable
        Returns the texts of a column without the last row; asked only where there is a doubt.

    Returns
    -------
    bool
        Whether two of these hold: it leaves one of ``always`` empty; it begins with a word for a
        total; it holds the sum of a column.
    """
    filled = [j for j, field in enumerate(fields) if field.strip()]
    with_gaps = any(not fields[j].strip() for j in always)
    named = bool(filled) and TOTAL.match(fields[filled[0]]) is not None
    if with_gaps and named:
        return True
    return (with_gaps or named) and any(_is_sum(fields[j], above(j)) for j in filled)


def _is_sum(text: str, above: pa.Array) -> bool:
    """Return whether a text is the sum of others, and beyond each of them."""
    from hushtable.data.texts import numbers  # it needs the readers

    for decimal in numbers.DECIMALS:
        values = numbers.values(above, decimal)
        [total] = numbers.values(pa.array([text], pa.string()), decimal)
        n_values = np.count_nonzero(~np.isnan(values))
        if n_values < 2 or n_values < len(above) - above.null_count or np.isnan(total):
            continue
        if abs(total) > np.nanmax(np.abs(values)) and np.isclose(total, np.nansum(values)):
            return True
    return False


def total_refused(where: str, begins: str) -> DataError:
    """Return the error for a last row that looks like a total."""
    return DataError(
        f"{where}, the last, looks like a total, not like a row: it begins {begins!r}. Delete it, "
        "or export without totals"
    )
