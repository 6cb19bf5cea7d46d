"""``hushtable check``: how a table is read, and what to check in it, before any fit."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from hushtable.cli.options import READS, Data, Reads, option, understanding_facts
from hushtable.cli.result import Block, CommandResult, Paragraph, Target, TextTable, count, shown
from hushtable.data.options import notes
from hushtable.data.quality import TableQuality, range_words, understood_with_quality
from hushtable.data.texts.doubt import ColumnUnderstanding
from hushtable.errors import UsageError
from hushtable.files import replacing
from hushtable.words.doubts import ended, questions
from hushtable.words.options import typed_options

#: Exit code of a table in doubt.
IN_DOUBT = 3
#: Findings that need no decision: they do not make a model worse.
_PLAIN = ("constant", "relations")
#: Number of columns and findings to print.
_MOST = 60

_Output = Annotated[
    Path | None,
    option(
        "FILE",
        "Also write a page (.html), or a layout file with the options given here (.toml) for "
        "--read.",
        "--output",
        "-o",
    ),
]


def check(data: Data, output: _Output = None, reads: Reads = READS) -> CommandResult:
    """Show how a table is read, and what you should check.

    For each column: its kind, the evidence for that kind, its range or examples, and how many
    values are missing. For the table: labels that may be the same, values that may mean "missing",
    equal rows, equal columns, totals among the rows, too few rows, and hidden rows and columns of
    a workbook. Exit codes: 0 nothing is in doubt, 1 refused or failed, 2 wrong usage, 3 something
    is in doubt; the last lines then name the options that resolve the doubt.

    Example:
      hushtable check patients.csv
      hushtable check patients.csv --decimal , --missing -999 -o check.html
    """
    if output is not None and output.suffix not in (".html", ".toml"):
        raise UsageError(f"-o {output}: the name must end in .html or .toml")
    target = None if output is None else Target(output, [data])
    reader = reads.open(data).repeatable()
    notes.clear()  # of the file: these are part of the result
    columns, reading, quality = understood_with_quality(reader, -1)
    doubted = [c for c in columns if c.doubt is not None and c.doubt.kind != "reading"]
    options = typed_options([option for c in doubted for option in c.options], reading.options)
    sentences = [*map(ended, questions(doubted)), *(c.words for c in quality.findings)]
    of_file = f"The file: {'; '.join(reader.found)}." if reader.found else ""
    doubts = len(doubted) + sum(c.kind not in _PLAIN for c in quality.findings)
    if target is not None:
        if target.path.suffix == ".toml":
            text = "".join(f"{line}\n" for line in reads.layout_lines())
        else:
            from hushtable.report.page import check_page  # with all that a report needs

            text = check_page(reader.source, columns, quality, sentences, options, of_file)
        with target.writing(), replacing(target.path, private=True) as file:
            file.write(text.encode())
    facts = {
        "command": "check", "table": reader.source, "rows": quality.n_rows, "doubts": doubts,
        "options": options, "columns": _facts(columns, quality),
        "found": list(reader.found),
        "findings": [vars(c) for c in quality.findings],
        **({} if target is None else {"page": str(output)}),
    }  # fmt: skip
    blocks = _blocks(columns, quality, sentences, options, of_file, target)
    return CommandResult(facts, blocks, IN_DOUBT if doubts else 0)


def _facts(
    columns: Sequence[ColumnUnderstanding], quality: TableQuality
) -> list[dict[str, object]]:
    return [
        facts
        | {
            "missing": column.n_missing,
            "different": column.n_different,
            "range": column.range,
            "examples": list(column.examples),
        }
        for facts, column in zip(understanding_facts(columns), quality.columns, strict=True)
    ]


def _blocks(
    columns: Sequence[ColumnUnderstanding],
    quality: TableQuality,
    sentences: Sequence[str],
    options: str,
    of_file: str,
    target: Target | None,
) -> Iterator[Block]:
    yield f"{count(quality.n_rows, 'row')}, {count(len(columns), 'column')}.\n"
    lines = [
        [shown(column.name), column.kind, shown(column.evidence), shown(range_words(column, part)),
         f"{part.n_missing:,}" if part.n_missing else ""]
        for column, part in zip(columns, quality.columns, strict=True)
    ]  # fmt: skip
    yield TextTable(
        ["column", "kind", "evidence", "range or examples", "missing"], lines[:_MOST], left=4
    )
    if len(lines) > _MOST:
        yield f"... and {len(lines) - _MOST:,} more columns (--json has all)"
    if of_file:
        yield ""
        yield Paragraph([shown(of_file)])
    if sentences:
        yield "\nCheck these:\n"
        yield Paragraph(map(shown, sentences[:_MOST]))
    if options:
        yield ""
        yield Paragraph([shown(f"To resolve the doubts, add: {options}")])
    elif not sentences:
        yield "\nNothing is in doubt."
    if target is not None:
        values = "It contains values of your rows: keep it where the rows are."
        use = f"Other commands read the table the same way with --read {target.path}."
        yield f"\nWrote {target}. {use if target.path.suffix == '.toml' else values}"
