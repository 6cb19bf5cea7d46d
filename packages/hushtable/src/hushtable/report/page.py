"""A report as one HTML file: a template, and figures as SVG in the colours of the page."""

import io
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from hushtable.data.quality import TableQuality, range_words
from hushtable.data.texts.doubt import ColumnUnderstanding
from hushtable.describe.ledger import LEDGER_HEADERS
from hushtable.errors import MissingExtraError
from hushtable.language import N_, WORDS, Catalogue, _, numerals, percents, spoken
from hushtable.report.content import Report
from hushtable.scores.outliers import Incident, Outliers, outside
from hushtable.scores.reasons import Reason

if TYPE_CHECKING:
    from markupsafe import Markup

#: Colours in the figures for those of style.css, which change from light to dark.
_COLOURS = {
    "#010203": "var(--rows)",
    "#010204": "var(--flag)",
    "#010205": "var(--ink)",
    "#010206": "var(--soft)",
}
_ROWS, _FLAG, _INK, _SOFT = _COLOURS
#: Inches. On a phone the letters are a little smaller than the page's, on a desk as large.
_WIDTH, _HEIGHT = 4.2, 2.5


#: Columns of a list, whose files have them in English.
COLUMNS = (
    N_("severity"), N_("score"), N_("error"), N_("outside"), N_("reason"), N_("usual"),
    N_("direction"), N_("repair"), N_("incident"),
)  # fmt: skip
#: Kinds of columns.
_KINDS = (
    N_("number"), N_("date"), N_("category"), N_("id"), N_("text"), N_("constant"), N_("empty"),
)  # fmt: skip


class _Drawn(Protocol):
    def plot(self, ax: Any = None) -> Any: ...


def check_extra(what: str = "an HTML page") -> None:
    """Raise `MissingExtraError` unless the library of a page is installed."""
    _check("Jinja", "jinja2", what)


def check_report_extra() -> None:
    """Raise `MissingExtraError` unless the libraries of a report are installed."""
    check_extra("a report")
    _check("matplotlib", "matplotlib", "a report")


def _check(library: str, module: str, what: str) -> None:
    try:
        __import__(module)
    except ImportError:
        raise MissingExtraError(what, library, "report") from None


def template(name: str, package: str = "hushtable.report", texts: Catalogue = WORDS) -> Any:
    """Return a template of a package in the language of now; it escapes all values.

    It may include the files of this folder. ``texts`` is the catalogue of its package.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader(
            [jinja2.PackageLoader(folder, "") for folder in (package, "hushtable.report")]
        ),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        extensions=["jinja2.ext.i18n"],
    )
    environment.policies["ext.i18n.trimmed"] = True
    words: Any = environment
    words.install_gettext_translations(texts.translations(spoken()), newstyle=True)
    environment.globals["language"] = spoken()
    environment.filters["count"] = lambda n: numerals(f"{n:,}")
    environment.filters["percent"] = lambda share: percents(f"{round(100.0 * share, 9):g}")
    environment.filters["number"] = lambda x, form: numerals(form % x)
    return environment.get_template(name)


def page(report: Report) -> str:
    """Return the report as HTML that needs nothing but itself.

    It is in the language of `hushtable.language.speaking`, as `gather` has to be called, too. Names
    in it may come from any file: all are escaped. Raises `MissingExtraError` if Jinja or matplotlib
    is not installed.
    """
    check_report_extra()
    headers = [_(header) for header in LEDGER_HEADERS]
    made: str = template("page.html").render(report=report, figure=svg, ledger_headers=headers)
    return made


def svg(display: _Drawn, words: str, height: float = _HEIGHT) -> "Markup":
    """Return a display as SVG, with words for those who do not see it."""
    import matplotlib
    from cycler import cycler
    from markupsafe import Markup
    from matplotlib.figure import Figure

    look: Any = {
        "axes.edgecolor": _SOFT,
        "axes.labelcolor": _INK,
        "axes.prop_cycle": cycler(color=[_ROWS, _FLAG]),
        "font.sans-serif": ["DejaVu Sans"],  # for the sizes; the page sets the letters
        "font.size": 9.0,
        "grid.color": _SOFT,
        "svg.fonttype": "none",
        "svg.hashsalt": words,  # ids differ from figure to figure
        "text.color": _INK,
        "text.parse_math": False,
        "xtick.color": _SOFT,
        "xtick.labelcolor": _INK,
        "ytick.color": _SOFT,
        "ytick.labelcolor": _INK,
    }
    buffer = io.StringIO()
    with matplotlib.rc_context(look | {"axes.unicode_minus": False}):  # as in texts
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        axes = figure.subplots()
        display.plot(axes)
        for axis in (axes.xaxis, axes.yaxis):
            _localise(axis.get_major_formatter())
        nothing = dict.fromkeys(["Creator", "Date", "Format", "Type"])
        figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    body = buffer.getvalue().partition("</defs>")[2]  # past the header and a style for all pages
    body = re.sub(r'<g id="[^"]*"(/?)>', r"<g\1>", body)
    for stand_in, colour in _COLOURS.items():
        body = body.replace(stand_in, colour)
    size = f"0 0 {72 * _WIDTH:g} {72 * height:g}"
    # Of matplotlib's making, which escapes the texts in it.
    return Markup('<svg viewBox="{}" role="img" aria-label="{}">').format(size, words) + Markup(
        body
    )


def _localise(formatter: Any) -> None:
    """Make a formatter of ticks write numbers as the language of now has them."""
    from matplotlib.ticker import LogFormatter, ScalarFormatter, StrMethodFormatter

    # Others have names.
    if isinstance(formatter, LogFormatter | ScalarFormatter | StrMethodFormatter):
        ticks, own = formatter.format_ticks, vars(formatter)
        own["format_ticks"] = lambda values: [numerals(one) for one in ticks(values)]


def top_page(found: Outliers, model: str, source: str, unit: str) -> str:
    """Return the rows as HTML that needs nothing but itself; all texts in it are escaped.

    Raises `MissingExtraError` if Jinja is not installed.
    """
    check_extra()
    from hushtable.charts.reasons import Pictures  # with Jinja's library for markup

    draw = Pictures(found.features, found.usual).of
    incidents = {k: one for one in found.incidents for k in one.rows}
    made: str = template("top.html").render(
        lines=[_line(found, k, incidents.get(k), draw) for k in range(len(found.rows))],
        incidents=[
            {"n": len(one.rows), "words": one.words, "ranks": [k + 1 for k in one.rows]}
            for one in found.incidents
        ],
        keep=found.keep,
        several=any(row.file for row in found.rows),
        explained=found.explained,
        about={_(name): text for name, text in found.notes(model).items()},
        made=f"{datetime.now(UTC):%Y-%m-%d}",
        source=source,
        n_rows=found.n_rows,
        unit=_(unit),
    )
    return made


def check_page(
    source: str,
    columns: Sequence[ColumnUnderstanding],
    quality: TableQuality,
    said: Sequence[str],
    options: str,
    file: str = "",
) -> str:
    """Return what is read of a table as HTML that needs nothing but itself.

    ``said`` are sentences on what is worth a look, and ``options`` those of the command line that
    settle it; ``file`` says what was found out about the file. Raises `MissingExtraError` if
    Jinja is not installed.
    """
    check_report_extra()
    made: str = template("check.html").render(
        source=source,
        columns=[
            (one, seen, range_words(one, seen))
            for one, seen in zip(columns, quality.columns, strict=True)
        ],
        quality=quality,
        said=said,
        options=options,
        file=file,
        made=f"{datetime.now(UTC):%Y-%m-%d}",
        version=version("hushtable"),
    )
    return made


def _line(
    found: Outliers,
    k: int,
    incident: Incident | None,
    draw: Callable[[Reason], "Markup"],
) -> dict[str, Any]:
    """Return one row for the template, in texts."""
    row = found.rows[k]
    error, beyond = row.detail.error, outside(row)
    repair, alike = found.repair(row), None
    if incident is not None:
        alike = {"n": len(incident.rows), "first": incident.rows[0] + 1}
    outside_of = _("outside the model: %(names)s", names=beyond) if beyond else ""
    below = [repair, outside_of, row.detail.likeness, row.detail.context]
    return {
        "rank": k + 1,
        "file": row.file,
        "row": numerals(f"{row.row:,}"),
        "kept": [_text(value) for value in row.detail.kept],
        "severity": numerals(found.severity(k)),
        "score": numerals(f"{row.score:.2f}" + ("" if error is None else f" ± {error:.2f}")),
        "far": row.detail.far,
        "alike": alike,
        "below": " ".join(f"{said[0].upper()}{said[1:]}." for said in below if said),
        "reasons": [_reason(reason, draw) for reason in found.reasons(row)],
    }


def _reason(reason: Reason, draw: Callable[[Reason], "Markup"]) -> dict[str, Any]:
    """Return a reason for the template: what is unusual, the rest of its words, and its picture."""
    words, phrase = reason.words, reason.phrase
    start = len(reason.feature) + len("" if phrase is None else phrase.text)
    missing = _("%(name)s is missing", name="")
    ends = [at for sign in (", ", ": ", missing) if (at := words.find(sign, start)) >= 0]
    end = min(ends, default=len(words))
    return {"unusual": words[:end], "rest": words[end:], "picture": draw(reason)}


def _text(value: pa.Array) -> str:
    return "\u2013" if value.null_count else str(value.cast(pa.string())[0].as_py())
