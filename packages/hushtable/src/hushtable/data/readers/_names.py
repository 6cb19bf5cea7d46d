"""Names of columns that are nearly the same, in words for a message."""

import unicodedata
from collections.abc import Iterable, Sequence


def near_names(lacking: Iterable[str], there: Sequence[str]) -> str:
    """Return words on names that differ from others in what nobody sees; empty if none do.

    What nobody sees: how accents are composed in Unicode, blanks, and marks of no width.
    """
    words = []
    for name in lacking:
        same = next((one for one in there if one != name and _plain(one) == _plain(name)), None)
        if same is not None:
            composed = unicodedata.normalize("NFC", same) == unicodedata.normalize("NFC", name)
            how = (
                "in how its accents are composed in Unicode (NFC or NFD)"
                if composed
                else "in blanks or marks that are not visible"
            )
            words.append(f"{same!a} differs from {name!a} only {how}: rename the column")
    return "".join(f"; {one}" for one in words)


def _plain(name: str) -> str:
    """Return a name without blanks and marks of no width, its letters composed."""
    kept = (c for c in name if not c.isspace() and unicodedata.category(c) != "Cf")
    return unicodedata.normalize("NFC", "".join(kept))
