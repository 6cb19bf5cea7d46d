"""The models page: a description of each .hush file, and exports."""

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from hushtable import files, plugins
from hushtable.counts.kinds import counts_from_file
from hushtable.counts.periods import Periods
from hushtable.describe import describe_ledger
from hushtable.describe import plan as words
from hushtable.describe.ledger import LEDGER_HEADERS, ledger_lines, ledger_rows
from hushtable.describe.plan import counts_lines, kind_words, plan_lines
from hushtable.errors import HushTableError, PluginError, UsageError
from hushtable.files import Content
from hushtable.language import N_, numerals, spoken
from hushtable.plans.plan import Plan
from hushtable_desk.folder import MODEL, Folder, FolderFile, as_known
from hushtable_desk.language import _
from hushtable_desk.pages import desk_of

#: Kinds of files that score rows and can therefore be exported.
_SCORES = ("detector", "sketch", "release", "local")
#: Lines of a file in the list of all files, each with its heading in English.
_LISTED = {
    "Rows counted": N_("Rows"), "Features": N_("Columns"), "Tables": N_("Tables"),
    "Laid out for": N_("Made for"), "Verdicts": N_("Learned verdicts"),
    "May leave": N_("May leave the site"),
}  # fmt: skip


#: Labels of other facts, and kinds of columns.
_LABELS = (
    N_("Kind"), N_("Plan"), N_("Detector"), N_("Depends on data"), N_("Features"),
    N_("Values of rows"), N_("Laid out for"), N_("Verdicts"), N_("May leave"), N_("Rows counted"),
    N_("Rows a person"), N_("Threshold"), N_("Signed by"), N_("Round"), N_("Submissions"),
    N_("Periods"), N_("Rows, estimated"), N_("numeric"), N_("categorical"),
)  # fmt: skip
#: What separates a fact from its details.
_DETAIL = r" \(|: |, as |, wie "
#: Description of each kind of file; other packages describe their own kinds.
_HOLDS = {
    "plan": N_("a plan: columns and hash functions, and no counts"),
    "sketch": N_("a sketch: exact counts of rows"),
    "release": N_("a release: counts with noise"),
    "increment": N_("an increment: counts of one period, with noise"),
    "periods": N_("the exact counts of a site's periods"),
    "detector": N_("a fitted model"),
    "verdicts": N_("verdicts on rows"),
    "local": N_("a local model: counts of a site and of all others"),
    "home": N_("a home model: scores here and elsewhere"),
}  # fmt: skip


@dataclass(frozen=True)
class ModelFacts:
    """A .hush file for its page; for a broken file, only the error.

    Attributes
    ----------
    holds : str
        Description of the file's content.
    n_rows : str
        Counted rows, in the first pass if there are two.
    lines : dict of str to str
        Its facts by label, as in ``hushtable inspect``.
    sentences : tuple of str
        The privacy cost of its counts for a person, or the purpose of the file.
    columns, rows
        Headers and rows of the table of columns.
    ledger : tuple
        Headers and rows of the table of releases; empty for exact counts.
    scores : bool
        Whether it scores rows and can therefore be exported.
    """

    entry: FolderFile
    holds: str = ""
    n_rows: str = ""
    lines: dict[str, str] | None = None
    sentences: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    ledger: tuple[tuple[str, ...], ...] = ()
    scores: bool = False
    error: str = ""

    @property
    def listed(self) -> list[str]:
        """Facts for the list of all files."""
        texts = [(self.lines or {}).get(label, "") for label in _LISTED]
        return [self.n_rows, *(re.split(_DETAIL, text)[0] for text in texts[1:])]


def model_facts(folder: Folder, entry: FolderFile) -> ModelFacts:
    """Return the facts of a .hush file of a folder; for a broken file, its error.

    The facts are kept until the file changes.
    """
    return _facts(folder.file(entry.name), entry, spoken())


@lru_cache(maxsize=256)
def _facts(path: Path, entry: FolderFile, _language: str) -> ModelFacts:
    try:
        return _read(files.read(path), entry)
    except (HushTableError, OSError) as error:
        return ModelFacts(entry, error=str(as_known(error)).replace(f"{path.parent}/", ""))


def _read(content: Content, entry: FolderFile) -> ModelFacts:
    kind = files.kind_of(content.kind)
    other = "content of an unknown kind" if kind is None else kind.words
    holds, n_rows = _HOLDS.get(content.kind, other), ""
    if kind is not None and kind.inspect is not None:
        lines = {"Kind": f"{content.kind}, protocol {content.manifest['protocol']}"}
        return ModelFacts(entry, holds, "", lines, ("hushtable inspect shows its content.",))
    plan = content.build(Plan.from_file)
    lines, tally, ledger = {"Kind": kind_words(content)} | plan_lines(plan), None, None
    if content.kind == "periods":
        kept = content.build(Periods.from_file)
        lines |= words.periods_lines(kept) | {"May leave": _("no: it holds exact counts")}
    elif content.kind == "plan":
        lines["May leave"] = _("no: it depends on rows") if plan.data_dependent else _("yes")
    else:
        counts = content.build(counts_from_file)
        lines |= counts_lines(counts, content.kind, content.manifest.get("offset"))
        tally, ledger = counts.tally, counts.ledger
        n_rows = "" if counts.mixed else numerals(f"{counts.n_rows:,}")
        n_rows = n_rows if plan.first_counts is None else numerals(f"{plan.first_rows:,}")
        if ledger is not None:
            lines |= {} if counts.mixed else {"Rows, estimated": n_rows}
            lines |= ledger_lines(ledger, counts.noise_sd)
    return ModelFacts(
        entry, holds, n_rows, lines,
        () if ledger is None else tuple(describe_ledger(ledger)), *_columns(plan, tally),
        () if ledger is None else (tuple(LEDGER_HEADERS), *map(tuple, ledger_rows(ledger))),
        content.kind in _SCORES and plan.purpose.scores_rows,
    )  # fmt: skip


def _columns(plan: Plan, tally: Any) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return headers and rows of a table of the columns, without values from rows."""
    headers: tuple[str, ...] = (N_("Column"), N_("Kind"), N_("Range or categories"))
    cells = [
        (col.name, col.kind, words.values(col, plan.schema.public)) for col in plan.schema.features
    ]
    if tally is None:
        return headers, tuple(cells)
    counted = [tuple(numerals(f"{n:,}") for n in each) for each in tally.tolist()]
    rows = tuple((*col, *n) for col, n in zip(cells, counted, strict=True))
    return (*headers, N_("Missing"), N_("Outside")), rows


# --- exports --------------------------------------------------------------------------------------


def export_formats() -> list[tuple[str, str, str]]:
    """Return the installed formats: ending, name, and the reason if it does not load."""
    formats = []
    for point, format_ in plugins.each(plugins.EXPORTS):
        error = str(format_) if isinstance(format_, PluginError) else ""
        formats.append((point.name, "" if error else format_.words, error))  # type: ignore[union-attr] # it loaded
    return formats


# --- pages ----------------------------------------------------------------------------------------


def routes() -> list[BaseRoute]:
    """Return the routes of the models page."""
    return [
        Route("/models", models_page),
        Route("/models/{key}", model_page),
        Route("/models/{key}/export/{ending}", export_page),
    ]


def models_page(request: Request) -> Response:
    """Show all .hush files."""
    desk = desk_of(request)
    facts = [model_facts(desk.folder, entry) for entry in desk.folder.models]
    return desk.page(
        request, "models.html", here="models", models=facts, headings=list(_LISTED.values())
    )


def model_page(request: Request) -> Response:
    """Show one .hush file."""
    desk = desk_of(request)
    facts = model_facts(desk.folder, _entry(desk.folder, request.path_params["key"]))
    return desk.page(
        request, "model.html", here="models", model=facts,
        formats=export_formats() if facts.scores else [],
    )  # fmt: skip


def export_page(request: Request) -> Response:
    """Send a model in another format.

    Raises `UsageError` if the model has no exact export, and `PluginError` if a library that the
    format needs is not installed.
    """
    desk = desk_of(request)
    entry = _entry(desk.folder, request.path_params["key"])
    ending: str = request.path_params["ending"]
    format_ = plugins.find(plugins.EXPORTS, ending)
    if format_ is None:
        raise UsageError("no installed package exports to this format: install hushtable-connect")
    from hushtable_connect.exports import Model  # comes with the formats

    content = format_.write(Model.of(desk.folder.file(entry.name)))
    name = quote(f"{Path(entry.name).stem}.{ending}".encode("utf-8", "surrogateescape"))
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
    return Response(content, media_type="application/octet-stream", headers=headers)


def _entry(folder: Folder, key: str) -> FolderFile:
    """Return a .hush file by its key; raise `UsageError` if there is none."""
    entry = folder.by_key(key)
    if entry is None or not entry.name.lower().endswith(MODEL):
        raise UsageError("this model is no longer in the folder")
    return entry
