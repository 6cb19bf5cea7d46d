"""Texts that may identify single rows: identifiers, names, free text."""

import re
from collections.abc import Sequence

#: Rows, or different texts, up to which a column is taken for categories, however they look.
FEW = 20
#: Letters of a text, on average, above which it is more than the name of a category.
_LONG = 30
#: Like a number of a patient or an order, a hash, a date written out.
_CODE = re.compile(r"(?=(?:\D*\d){3})\S{8,}")


def looks(texts: Sequence[str], n_values: int) -> str:
    """Say what is doubtful about the different texts of a column; nothing if they are few."""
    n = len(texts)
    different = f"{n:,} different texts"
    if n_values > FEW and 2 * n > n_values:
        return f"{different} in {n_values:,} rows: identifiers, names or free text"
    if n <= FEW:
        return ""
    if 2 * sum(_CODE.fullmatch(text) is not None for text in texts) > n:
        return f"{different}, most of them long codes with digits: identifiers"
    words = sum(len(text.split()) for text in texts) / n
    letters = sum(map(len, texts)) / n
    if words >= 2.0 or letters > _LONG:
        return (
            f"{different}, of {words:.2g} words and {letters:.0f} letters on average: names or "
            "free text"
        )
    return ""
