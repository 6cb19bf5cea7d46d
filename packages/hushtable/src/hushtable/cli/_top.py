"""``hushtable score --top``: the lowest rows, with their ids, values and reasons, in a file."""

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, parquet

from hushtable.cli._formulas import harmless_table
from hushtable.cli._output import Target, print_sentences, print_table, shown
from hushtable.cli._sheet import write_sheet
from hushtable.errors import UsageError
from hushtable.files import replacing
from hushtable.report.page import check_extra, top_page
from hushtable.scores.outliers import AMONG, LowRow, Outliers

#: What files of the lowest rows end in.
ENDINGS = (".csv", ".xlsx", ".html", ".parquet")
#: Rows that are printed; the file has all.
_SHOWN = 5
#: Of every file of the lowest rows.
_TAKEN = ("rank", "file", "row", "severity", "score", "error", "outside", "words")


def check_top(output: Path, keep: list[str]) -> None:
    """Refuse what --top cannot write, before any row is read."""
    if output.suffix not in ENDINGS:
        raise UsageError(f"-o {output}: --top needs a name that ends in {', '.join(ENDINGS)}")
    taken = [f"{name}_{k}" for name in ("reason", "value", "usual", "direction") for k in (1, 2, 3)]
    check_names(keep, (*_TAKEN, *taken))
    if output.suffix == ".html":
        check_extra()


def check_names(keep: list[str], taken: tuple[str, ...]) -> None:
    """Refuse to keep a column twice, or one of a name that a column of scores has."""
    for name in keep:
        if keep.count(name) > 1:
            raise UsageError(f"--id, --keep: {name!r} is named twice: name each column once")
        if name in taken:
            raise UsageError(
                f"--id, --keep: the file has a column {name!r} of its own: rename that of the rows"
            )


def write_top(target: Target, found: Outliers, model: Path, source: str, unit: str) -> None:
    """Write the rows in the format that the file's name ends in."""
    with target.writing(), replacing(target.path, private=True) as file:
        if target.path.suffix == ".xlsx":
            write_sheet(file, found, model.name)
        elif target.path.suffix == ".html":
            file.write(top_page(found, model.name, source, unit).encode())
        elif target.path.suffix == ".csv":
            csv.write_csv(harmless_table(found.table()), file)
        else:
            parquet.write_table(found.table(), file)


def top_facts(found: Outliers, output: Path) -> dict[str, Any]:
    """Return what was written for machines."""
    rows = found.table().to_pylist()
    return {
        "command": "score",
        "scores": str(output),
        "rows": found.n_rows,
        "severity_among": found.among,
        "top": [{name: _json(value) for name, value in row.items()} for row in rows],
    }


def _json(value: Any) -> Any:
    if isinstance(value, float) and value != value:
        return None
    return value if isinstance(value, str | int | float | None) else str(value)


def print_top(found: Outliers, target: Target) -> None:
    """Print the first rows, and what the file holds."""
    rows = found.rows[:_SHOWN]
    table = found.table()
    among = table.schema.metadata[AMONG].decode()
    print(f"The {len(found.rows):,} lowest of {found.n_rows:,} scores:\n")
    headers, left = ["rank", *found.keep, "row", "severity", "score"], 1 + len(found.keep)
    lines = [
        [f"{k + 1}", *_kept(row), f"{row.row:,}", found.severity(k), _score(row)]
        for k, row in enumerate(rows)
    ]
    if rows[0].file:
        headers.insert(left, "file")
        for line, row in zip(lines, rows, strict=True):
            line.insert(left, shown(row.file))
        left += 1
    print_table(headers, lines, left=left)
    if found.explained:
        print("\nWhy:\n")
        print_sentences(shown(f"{k + 1}. {found.sentence(row)}.") for k, row in enumerate(rows))
    if len(found.rows) > len(rows):
        print(f"\n... and {len(found.rows) - len(rows):,} more in the file.")
    print()
    print_sentences([f"Severity: 100 times one minus the share of rows as rare, among {among}."])
    print(f"Wrote {target}. It describes rows and holds their values: keep it where they are.")


def _kept(row: LowRow) -> list[str]:
    values = (one.cast(pa.string())[0].as_py() for one in row.detail.kept)
    return ["" if value is None else shown(value) for value in values]


def _score(row: LowRow) -> str:
    error = row.detail.error
    return f"{row.score:.4f}" + ("" if error is None else f" ± {error:.4f}")
