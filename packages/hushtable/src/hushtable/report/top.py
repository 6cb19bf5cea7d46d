"""The lowest rows as one HTML page: cards on a phone, a table on a desk."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from hushtable.errors import MissingExtraError
from hushtable.scores.outliers import LowRow, Outliers, outside, reason_facts
from hushtable.scores.reasons import TOP


def check_extra() -> None:
    """Raise `MissingExtraError` unless the library of the page is installed."""
    try:
        import jinja2  # noqa: F401 # to see whether it is there
    except ImportError:
        raise MissingExtraError("an HTML page", "Jinja", "report") from None


def about(found: Outliers, model: str) -> dict[str, str]:
    """Return what a reader of the rows needs to know, by headings."""
    rows = f"{len(found.rows):,} of {found.n_rows:,} rows, the lowest scores first."
    notes = {
        "Made": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC by hushtable, with the model {model}.",
        "Rows": f"{rows} Rows are numbered from 0.",
        "severity": "From 0 to 100: 100 times one minus the share of rows that are as rare, or "
        f"rarer, among {found.among}.",
        "score": found.meaning,
        "error": "One standard error of the score: rows whose scores differ by less may change "
        "places.",
        "outside": "Columns whose value lies beyond the ranges or categories of the model.",
    }
    if found.explained:
        notes |= {
            "reason": "The columns that lower the score most, the strongest first.",
            "usual": "The middle 90% of the rows that the model counted, or their most frequent "
            "categories; the model's range where it does not know those.",
            "direction": "high or low: beyond the middle 90%. rare: a category of fewer than 10% "
            "of the rows. missing: no value. beyond: outside of the model's range or "
            "categories. Empty: usual by itself, odd together with other columns.",
        }
    stays = "This describes rows and holds their values: keep it where the rows are."
    return notes | {"Keep it": stays}


def page(found: Outliers, model: str, source: str, unit: str) -> str:
    """Return the rows as HTML that needs nothing but itself; all texts in it are escaped.

    Raises `MissingExtraError` if Jinja is not installed.
    """
    check_extra()
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("hushtable.report", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("top.html").render(
        lines=[_line(found, k, row) for k, row in enumerate(found.rows)],
        keep=found.keep,
        several=any(row.file for row in found.rows),
        beyond=any(outside(row) for row in found.rows),
        explained=found.explained,
        about=about(found, model),
        made=f"{datetime.now(UTC):%Y-%m-%d}",
        source=source,
        n_rows=found.n_rows,
        among=found.among,
        unit=unit,
    )


def _line(found: Outliers, k: int, row: LowRow) -> dict[str, Any]:
    """Return one row for the template, in texts."""
    reasons = [reason_facts(found.reasons(row), j) for j in range(TOP)]
    error = row.detail.error
    return {
        "rank": k + 1,
        "file": row.file,
        "row": f"{row.row:,}",
        "kept": [_text(value) for value in row.detail.kept],
        "severity": found.severity(k),
        "score": f"{row.score:.2f}" + ("" if error is None else f" ± {error:.2f}"),
        "outside": outside(row),
        "reasons": [
            dict(zip(("name", "value", "usual", "direction"), one, strict=True))
            for one in reasons
            if one[0] is not None
        ],
    }


def _text(value: pa.Array) -> str:
    return "" if value.null_count else str(value.cast(pa.string())[0].as_py())
