"""``hushtable plan draft`` and ``check``: a schema for a person to fill in, and rows against it.

Well-known columns have public ranges and categories by name, for a person to confirm. They are in
``known_columns.toml``, whose header explains how to add to it, and never depend on anyone's rows.
"""

import json
import re
import textwrap
import tomllib
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from itertools import product, takewhile
from pathlib import Path
from typing import Annotated

from hushtable import files
from hushtable.arguments import JsonObject
from hushtable.cli.errors import escaped
from hushtable.cli.options import (
    READS,
    Data,
    Reads,
    argument,
    coverage_blocks,
    note_doubts,
    option,
    understanding_facts,
)
from hushtable.cli.result import (
    MOST_LINES,
    Block,
    CommandResult,
    Paragraph,
    Target,
    TextTable,
    count,
    listed,
    shown,
)
from hushtable.data.check import FeatureCheck, check_rows
from hushtable.data.options import RowOptions, under
from hushtable.data.readers import Reader
from hushtable.data.schema import Feature, Schema
from hushtable.data.texts.decisions import names_identifier
from hushtable.data.texts.doubt import ColumnUnderstanding
from hushtable.data.texts.reading import Reading
from hushtable.data.understanding import understood
from hushtable.describe.plan import values
from hushtable.errors import FileError, PlanError
from hushtable.files import write_bytes
from hushtable.plans.plan import Plan
from hushtable.progress import watched

_HEAD = """\
# This draft holds the names and kinds of the columns. Fill in or confirm every range
# and every list of categories, and remove the "# " from the lines that you complete or
# keep.
#
# Ranges and categories must be public knowledge (a codebook, a data sheet, the law). Do
# not take them from the data, because the plan contains them and goes to every site.
# For well-known column names, the draft proposes some. It knows only the name, so check
# the meaning and the unit of the column. A value beyond its range counts as the nearest
# end; a category that is not listed counts as unseen. If the categories of a column
# are numbers, make its kind "categorical" and list them as text. Columns that look like
# identifiers, names or free text are left out: their lines are comments.
#
# Then check at each site whether its rows fit:
#   hushtable plan check schema.toml DATA
# and, once for all sites, draw the plan:
#   hushtable plan draw schema.toml -o plan.hush
"""


@dataclass(frozen=True)
class _Column:
    name: str
    kind: str
    note: str = ""
    proposals: tuple[JsonObject, ...] = ()
    hint: str = ""
    left_out: str = ""


def draft(
    data: Data,
    output: Annotated[
        Path | None, option("FILE", "Schema file to write; default: print it.", "--output", "-o")
    ] = None,
    reads: Reads = READS,
) -> CommandResult:
    """Draft a schema from the names and types of the columns.

    No range or category is taken from the data. Columns that look like identifiers, names, or free
    text are left out, as comments. Where a name is well known (age, heart_rate, glucose_mmol,
    voltage, weekday), the draft proposes public ranges or categories as comments. A person confirms
    them and fills in the others, which must be public knowledge. With --read omop=person, all
    ranges are filled in from the concept set, with their sources, and the tables and units are
    checked.

    Example:
      hushtable plan draft patients.csv -o schema.toml
    """
    if output is not None and output.exists():
        raise FileError(
            f"{output} exists, and someone may have filled it in: name another file, or remove it"
        )
    target = None if output is None else Target(output, [data])
    reader = reads.open(data)
    columns, drafts, text = _drafted(reader, reads)
    features = [column for column in drafts if not column.left_out]
    left_out = [column.name for column in drafts if column.left_out]
    coverage = reads.coverage(reader)
    if target is not None:
        with target.writing():
            write_bytes(target.path, text.encode())
    facts = {
        "command": "plan draft",
        "schema": None if target is None else str(target.path),
        "features": [{"name": f.name, "kind": f.kind, "proposals": f.proposals} for f in features],
        "left_out": left_out,
        "columns": understanding_facts(columns),
        "toml": text,
    } | ({"coverage": coverage} if coverage else {})

    def blocks() -> Iterator[Block]:
        if target is None:
            yield text.removesuffix("\n")
        else:
            yield from coverage_blocks(coverage)
            yield from _written_blocks(target, features, complete=reads.schema is not None)
            if left_out:
                yield Paragraph([
                    f"Left out, as comments, because they look like identifiers, names or free "
                    f"text: {listed(left_out)}."
                ])  # fmt: skip

    return CommandResult(facts, blocks())


def _drafted(
    reader: Reader, reads: RowOptions
) -> tuple[Sequence[ColumnUnderstanding], list[_Column], str]:
    if reads.schema is not None:
        features = reads.schema.features
        text = "\n".join([reads.recipe.draft_head, *map(_public, features, reads.sources)])
        return (), [_Column(column.name, column.kind) for column in features], text
    columns, *_ = understood(reader, None, -1)
    note_doubts(columns)
    drafts = []
    for column in columns:
        # The draft goes to every site, so the reason contains no number of values or rows.
        left_out = _LEFT_OUT.get(column.kind, "")
        if column.kind == "category" and names_identifier(column.name):
            left_out = "its name suggests an identifier"
        drafts.append(replace(_proposed_column(column), left_out=left_out))
    return columns, drafts, "\n".join([_HEAD, *map(_table, drafts)])


def _written_blocks(
    target: Target, features: Sequence[_Column], *, complete: bool
) -> Iterator[Block]:
    yield f"Wrote {target}: {len(features):,} columns."
    if complete:
        yield Paragraph([
            "All ranges are public, and state where they are published. Every site sees which "
            "columns are listed, so no column was left out because of values in these rows: "
            "choose columns (--columns) by information that does not come from the rows, such as "
            "a laboratory's catalogue.",
            "Continue with",
        ])  # fmt: skip
        yield f"  hushtable plan draw {target.path} -o plan.hush"
        return
    if known := sum(1 for feature in features if feature.proposals):
        yield f"For {count(known, 'well-known name')}, confirm what is proposed."
    yield "Fill in the other ranges and categories, then"
    yield f"  hushtable plan draw {target.path} -o plan.hush"


def _public(feature: Feature, source: str) -> str:
    lines = [f"{entry} = {_quoted(value)}" for entry, value in feature.to_dict().items()]
    return "\n".join([*_comment(source), "[[feature]]", *lines]) + "\n"


_LEFT_OUT = {
    "id": "its values look like identifiers",
    "text": "its values look like names or free text",
}


def _proposed_column(one: ColumnUnderstanding) -> _Column:
    form = "number" if one.reading is None else one.reading.kind
    text = form == "category"
    default = _Column(one.name, "categorical" if text else "numeric", _NOTES.get(form, ""))
    known = known_column(one.name)
    # Dates, times and true/false need no proposal.
    if known is None or form not in ("number", "category"):
        return default
    if lists := known.texts if text else known.codes:
        what = known.what if text else f"{known.what}, as codes"
        offers = tuple({"what": what, "categories": list(one)} for one in lists)
        return replace(default, kind="categorical", proposals=offers, hint=known.note)
    if text:
        return default
    ranges = tuple(
        {"what": one.what or known.what, "low": one.low, "high": one.high, "unit": one.unit}
        for one in known.ranges
    )
    return replace(default, proposals=ranges, hint=known.note if ranges else "")


_NOTES = {
    "boolean": "false is 0, true is 1",
    "date": "in seconds since 1970-01-01: the start of 2020 is 1577836800",
    "time": "in seconds",
}


def _table(column: _Column) -> str:
    lines = ["[[feature]]", f"name = {_quoted(column.name)}", f'kind = "{column.kind}"']
    if column.proposals:
        for number, proposal in enumerate(column.proposals):
            lines += _proposed(proposal, first=number == 0)
        lines += _comment(f"({column.hint})") if column.hint else []
    elif column.kind == "categorical":
        lines += ["# categories = []"]
    else:
        lines += [f"# {column.note}"] if column.note else []
        lines += ["# low = ", "# high = "]
    if column.left_out:
        why = f"Left out, because {column.left_out}:"
        lines = [*_comment(why), *(f"# {line.removeprefix('# ')}" for line in lines)]
    return "\n".join(lines) + "\n"


def _proposed(proposal: JsonObject, first: bool) -> list[str]:
    what = proposal["what"]
    if "categories" in proposal:
        header = f"{what}; public categories, for you to confirm:" if first else "or:"
        listed = ", ".join(map(_quoted, proposal["categories"]))
        return [*_comment(header), *_comment(f"categories = [{listed}]", indent="    ")]
    what = f"{what}, {proposal['unit']}"
    header = f"{what}; a public range, for you to confirm:" if first else f"or {what}:"
    low, high, unit = proposal["low"], proposal["high"], _quoted(proposal["unit"])
    return [*_comment(header), f"# low = {low}", f"# high = {high}", f"# unit = {unit}"]


def _comment(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, 88, initial_indent="# ", subsequent_indent=f"# {indent}")


def _quoted(text: object) -> str:
    """Return a text, number or list as TOML: JSON, with escapes for unprintable characters.

    TOML requires that for one character; others would control a terminal.
    """
    return "".join(
        c if escaped(c) == c else f"\\U{ord(c):08x}" for c in json.dumps(text, ensure_ascii=False)
    )


def read_schema(path: Path) -> Schema:
    """Read a schema; errors name the file."""
    try:
        return Schema.from_toml(path)
    except PlanError as error:
        # Most messages name the feature only.
        message = str(error)
        raise PlanError(message if str(path) in message else f"{path}: {message}") from None


def check(
    schema: Annotated[
        Path, argument("SCHEMA_OR_PLAN", "Schema in TOML, or a .hush file with a plan in it.")
    ],
    data: Data,
    reads: Reads = READS,
) -> CommandResult:
    """Check rows against a schema or plan, before they are counted.

    Reports which columns have values that are missing or outside, are constant, or use so little of
    their range that the unit may be different. It writes no file. Its output describes the rows:
    keep it where they are. The exit code is 0 whatever it finds.

    Example:
      hushtable plan check plan.hush patients.csv --drop id,name
    """
    wanted, reading = _schema(schema)
    raw = reads.open(data).repeatable()
    columns, *_ = understood(raw, None, -1)
    note_doubts([column for column in columns if column.name in wanted.names])
    reader = under(raw, wanted, reading)
    with watched(reader) as watch:
        checks = check_rows(wanted, watch.reader, n_jobs=-1)
    keys = ("missing", "below", "above", "unseen", "used", "finding")
    features = [
        {
            "name": feature.feature.name,
            "kind": feature.feature.kind,
            **{k: getattr(feature, k) for k in keys},
        }
        for feature in checks
    ]
    facts = {
        "command": "plan check",
        "rows": watch.rows,
        "features": features,
        "columns": understanding_facts(columns),
    }
    return CommandResult(facts, _blocks(checks, reader.source, schema, wanted.public))


def _schema(path: Path) -> tuple[Schema, Reading]:
    if path.suffix != ".hush":
        return read_schema(path), Reading()
    content = files.read(path)
    if "plan" not in content.manifest:
        raise FileError(
            f"{path} holds a {content.kind} without a plan: give the schema, or the sites' plan"
        )
    return content.build(Plan.from_file).schema, content.build(Reading.from_file)


def _blocks(checks: list[FeatureCheck], source: str, schema: Path, public: bool) -> Iterator[Block]:
    odd = [check for check in checks if check.outside or check.missing or check.finding]
    yield (
        f"Checked {checks[0].rows:,} rows of {source} against {schema}: {len(checks):,} features."
    )
    if odd:
        yield "Share of the rows whose value is\n"
        # The worst come first, because a long list is cut.
        odd.sort(key=lambda check: (check.finding is None, -check.outside, -check.missing))
        headers = ["feature", "missing", "below", "above", "not listed"]
        rows = []
        for check in odd:
            counts = check.missing, check.below, check.above, check.unseen
            rows.append([shown(check.feature.name), *(_share(n / check.rows) for n in counts)])
        yield TextTable(headers, rows)
    if len(odd) < len(checks):
        others = f"the other {len(checks) - len(odd):,}" if odd else "all"
        yield f"\nIn {others}, every value is present and inside."
    sentences = [_sentence(check, public) for check in odd if check.finding is not None]
    if sentences:
        yield "\nCheck these:\n"
        yield Paragraph(sentences[:MOST_LINES], indent="  ")
        if len(sentences) > MOST_LINES:
            yield f"  ... and {len(sentences) - MOST_LINES:,} more (--json lists all)"
    yield ""
    yield Paragraph([
        "This output describes your rows: keep it here. Values outside count as the nearest end, "
        "or as unseen. Correct a wrong unit, spelling or column, but do not derive ranges from "
        "these rows."
    ])  # fmt: skip


def _share(share: float) -> str:
    if share == 0.0:
        return "-"
    return "<0.1%" if share < 0.001 else f"{share:.1%}"


def _sentence(result: FeatureCheck, public: bool) -> str:
    feature = result.feature
    name, allowed = shown(feature.name), shown(values(feature, public))
    if result.finding == "missing":
        return f"{name}: no row has a value. Is it the right column?"
    if result.finding == "constant":
        return f"{name}: all values are the same. Is it the right column?"
    if result.finding == "outside" and feature.kind == "categorical":
        return f"{name}: most values are not among its {allowed}. Are they spelled differently?"
    if result.finding == "outside":
        return (
            f"{name}: most values are outside its range, {allowed}. Are they in a different unit?"
        )
    return (
        f"{name}: 98% of the values use {_share(result.used)} of its range, {allowed}. Are they in "
        "a different unit, or is the range far wider than necessary?"
    )


# --- well-known columns ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Range:
    """A public range of a well-known column, in one unit; numbers are as the file writes them."""

    low: float
    high: float
    unit: str
    what: str = ""
    only_if_named: bool = False


@dataclass(frozen=True)
class KnownColumn:
    """Public knowledge about a column with a well-known name: a table of the file, as written."""

    what: str
    names: Sequence[str]
    ranges: Sequence[Range] = ()
    codes: Sequence[Sequence[str]] = ()
    texts: Sequence[Sequence[str]] = ()
    first_words: Sequence[str] = ()
    last_words: Sequence[str] = ()
    note: str = ""


@cache
def known_columns() -> tuple[KnownColumn, ...]:
    """Return all well-known columns, in the order of the file."""
    return tuple(
        KnownColumn(**entry | {"ranges": [Range(**limits) for limits in entry.get("ranges", ())]})
        for entry in _content()["column"]
    )


def known_column(name: str) -> KnownColumn | None:
    """Return public knowledge about a column with this name; None if there is none.

    The name is as the data has it: ``"hr"``, ``"HeartRate"``, ``"glucose_mmol"``, ``"Temp (F)"``.
    Only the ranges remain whose units the name allows.
    """
    words = _words(name)
    for candidate in _candidates(words):
        for cut in range(len(candidate), 0, -1):
            column = _by_name().get("".join(candidate[:cut]))
            unit = "".join(candidate[cut:])
            if column is None:
                continue
            if unit:
                ranges = [each for each in column.ranges if unit in _spellings().get(each.unit, ())]
            else:
                ranges = [each for each in column.ranges if not each.only_if_named]
            # Codes and texts have no unit: a name with further words means something else.
            if ranges or not unit:
                return replace(column, ranges=ranges)
    for column in known_columns():
        if len(words) > 1 and (words[0] in column.first_words or words[-1] in column.last_words):
            return column
    return None


#: Between small letter and capital, before the last capital of several, and around digits.
_INNER_BOUNDARY = re.compile(
    r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=\d)(?=[^\W\d_])|(?<=[^\W\d_])(?=\d)"
)


def _words(name: str) -> list[str]:
    name = unicodedata.normalize("NFKC", name).replace("%", " percent ")
    return re.findall(r"[^\W_]+", _INNER_BOUNDARY.sub(" ", name).casefold())


def _candidates(words: list[str]) -> Iterator[list[str]]:
    """Yield the words, then fewer: without words such as max, and the digit of a repeat (hr_2)."""
    qualifiers = _content()["qualifiers"]
    numbered = len(words) > 1 and len(words[-1]) == 1 and words[-1].isdecimal()
    for rest in (words, words[:-1]) if numbered else (words,):
        before = len(list(takewhile(qualifiers.__contains__, rest)))
        after = len(list(takewhile(qualifiers.__contains__, reversed(rest))))
        for first, last in product(range(before + 1), range(after + 1)):
            yield rest[first : len(rest) - last]


@cache
def _content() -> JsonObject:
    file = resources.files("hushtable.cli") / "known_columns.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


@cache
def _by_name() -> dict[str, KnownColumn]:
    return {"".join(_words(name)): column for column in known_columns() for name in column.names}


@cache
def _spellings() -> dict[str, frozenset[str]]:
    return {
        unit: frozenset("".join(_words(spelling)) for spelling in spellings)
        for unit, spellings in _content()["units"].items()
    }
