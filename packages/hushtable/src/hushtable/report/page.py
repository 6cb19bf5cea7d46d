"""A report as one HTML file: a template, and figures as SVG in the colours of the page."""

import io
import re
from typing import TYPE_CHECKING, Any, Protocol

from hushtable.describe.ledger import LEDGER_HEADERS
from hushtable.errors import MissingExtraError
from hushtable.report.content import Report

if TYPE_CHECKING:
    from markupsafe import Markup

#: Colours that stand in the figures for those of style.css, which change from light to dark.
_COLOURS = {
    "#010203": "var(--rows)",
    "#010204": "var(--flag)",
    "#010205": "var(--ink)",
    "#010206": "var(--soft)",
}
_ROWS, _FLAG, _INK, _SOFT = _COLOURS
#: Inches. On a phone the letters come out a little smaller than the page's, on a desk as large.
_WIDTH, _HEIGHT = 4.2, 2.5


class _Drawn(Protocol):
    def plot(self, ax: Any = None) -> Any: ...


def check_extra() -> None:
    """Raise `MissingExtraError` unless the libraries of a report are installed."""
    for library, module in (("Jinja", "jinja2"), ("matplotlib", "matplotlib")):
        try:
            __import__(module)
        except ImportError:
            raise MissingExtraError("a report", library, "report") from None


def page(report: Report) -> str:
    """Return the report as HTML that needs nothing but itself.

    Names in it may come from anybody's file: all are escaped. Raises `MissingExtraError` if Jinja
    or matplotlib is not installed.
    """
    check_extra()
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("hushtable.report", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["count"] = "{:,}".format
    environment.filters["percent"] = lambda share: f"{100.0 * share:g}%"
    template = environment.get_template("page.html")
    return template.render(report=report, figure=_figure, ledger_headers=LEDGER_HEADERS)


def _figure(display: _Drawn, words: str, height: float = _HEIGHT) -> "Markup":
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
    with matplotlib.rc_context(look):
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        display.plot(figure.subplots())
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
