"""Questions about the rows to the person at a site, before anything is recorded or spent.

Without a person they are not asked: whether a site answers must not depend on its rows.
"""

from hushtable.counts.sketch import Sketch
from hushtable.errors import DataError


def check_attended(sketch: Sketch, most: int | None, outside_too: bool) -> None:
    """Raise `DataError` if there are more rows than a round allows, or most lie outside a range.

    Parameters
    ----------
    sketch : Sketch
        Of the rows.
    most : int or None
        Rows that the round lets a site count.
    outside_too : bool
        Whether the person has said that the rows are as they should be.
    """
    if most is not None and sketch.n_rows > most:
        raise DataError(
            f"{sketch.n_rows:,} rows, and the round lets a site count {most:,}: the totals would "
            "show it, and no sum be made. Nothing was recorded or spent. Give a part that was "
            "drawn by chance, or ask the coordinator for a round that allows more"
        )
    odd = [name for name, rows in sketch.outside().items() if 2 * rows > sketch.n_rows]
    if odd and not outside_too:
        raise DataError(
            f"most rows lie outside the round's range, or its categories, in "
            f"{', '.join(map(repr, odd[:3]))}: have the rows another unit than the round, or other "
            "names? Nothing was recorded or spent. Correct the file, or give --outside-too if the "
            "rows are as they should be"
        )
