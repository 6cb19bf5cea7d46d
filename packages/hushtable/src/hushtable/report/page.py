"""Pages as one HTML file each: a page is a list of sections, and a section a list of blocks.

One template sets them all, with pictures as SVG.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from hushtable.blocks import Block, Items, LabelledValues, Paragraph, TextTable
from hushtable.data.quality import TableQuality, range_words
from hushtable.data.texts.doubt import ColumnUnderstanding
from hushtable.errors import MissingExtraError
from hushtable.language import (
    N_,
    WORDS,
    Catalogue,
    _,
    ngettext,
    numeral,
    numerals,
    percents,
    spoken,
)
from hushtable.scores.outliers import Outliers, rounded_down
from hushtable.scores.reasons import Reason

if TYPE_CHECKING:
    from hushtable.charts.reasons import Pictures


@dataclass(frozen=True)
class Figures:
    """Pictures side by side, each with its caption."""

    kind: ClassVar = "figures"
    figures: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class RowList:
    """The rows with the lowest scores, with their reasons.

    Without ``values``, reasons are names of columns, and no picture is drawn.
    """

    kind: ClassVar = "rows"
    outliers: Outliers
    values: bool = True


#: A text is a paragraph.
PageBlock: TypeAlias = Block | Figures | RowList


@dataclass(frozen=True)
class Section:
    """A part of a page, by its name in the page's address and its title."""

    name: str
    title: str
    blocks: Sequence[PageBlock]
    audience: str = ""


@dataclass(frozen=True)
class Page:
    """A page: what it is, whether it may leave, and its sections."""

    _: KW_ONLY
    title: str
    made_by: str  # the command, and when
    #: The notice whether it may leave: its first sentence, and further texts.
    notice: str
    reasons: Sequence[str]
    may_leave: bool = False
    intro: str = ""
    glance: Mapping[str, str] = field(default_factory=dict)
    sections: Sequence[Section]


#: Columns of a list, whose files have them in English.
COLUMNS = (
    N_("severity"), N_("score"), N_("error"), N_("outside"), N_("reason"), N_("usual"),
    N_("direction"), N_("repair"), N_("incident"),
)  # fmt: skip
#: Kinds of columns.
_KINDS = (
    N_("number"), N_("date"), N_("category"), N_("id"), N_("text"), N_("constant"), N_("empty"),
)  # fmt: skip


def check_extra(what: str = "an HTML page") -> None:
    """Raise `MissingExtraError` unless the library of a page is installed."""
    try:
        import jinja2  # noqa: F401 # of an extra
    except ImportError:
        raise MissingExtraError(what, "Jinja", "report") from None


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
    environment.filters["count"] = numeral
    environment.filters["percent"] = lambda share: percents(f"{round(100.0 * share, 9):g}")
    environment.filters["number"] = lambda x, form: numerals(form % x)
    return environment.get_template(name)


def html(page: Page) -> str:
    """Return a page as HTML that needs nothing but itself.

    It is in the language of `hushtable.language.speaking`, as its texts have to be, too. Names in
    it may come from any file: all are escaped. Raises `MissingExtraError` if Jinja is not
    installed.
    """
    check_extra()
    made: str = template("page.html").render(page=page, version=version("hushtable"), cards=_cards)
    return made


def top_page(outliers: Outliers, model: str, source: str, unit: str) -> str:
    """Return the rows as HTML that needs nothing but itself; all texts in it are escaped.

    Raises `MissingExtraError` if Jinja is not installed.
    """
    sections = [Section("rows", _("The most unusual rows"), [RowList(outliers)])]
    if outliers.incidents:
        groups = []
        for group in outliers.incidents:
            ranks = ", ".join(str(k + 1) for k in group.rows)
            rows = _("%(n)s rows:", n=len(group.rows))
            groups.append(f"{rows} {group.words} ({ranks})")
        sections.insert(0, Section("incidents", _("Similar rows"), [Items(groups)]))
    notes = {_(name): text for name, text in outliers.notes(model).items()}
    sections.append(Section("about", _("How to read this page"), [LabelledValues(notes)]))
    page = Page(
        title=ngettext("%(n)s unusual row", "%(n)s unusual rows", len(outliers.rows)),
        made_by=f"hushtable, {datetime.now(UTC):%Y-%m-%d}",
        intro=_(
            "From %(n)s rows of %(source)s, the most unusual first. Scores are in %(unit)s.",
            n=numeral(outliers.n_rows),
            source=source,
            unit=_(unit),
        ),
        notice=_("Keep this page where the rows are."),
        reasons=[_("It describes rows and contains their values.")],
        sections=sections,
    )
    return html(page)


def check_page(
    source: str,
    columns: Sequence[ColumnUnderstanding],
    quality: TableQuality,
    words: Sequence[str],
    options: str,
    file: str = "",
) -> str:
    """Return what is read of a table as HTML that needs nothing but itself.

    ``said`` are sentences on what is worth a look, and ``options`` those of the command line that
    settle it; ``file`` says what was found out about the file. Raises `MissingExtraError` if
    Jinja is not installed.
    """
    n_rows, n_columns = numeral(quality.n_rows), numeral(len(columns))
    intro = _("%(n)s rows, %(d)s columns.", n=n_rows, d=n_columns)
    rows = [
        [
            column.name,
            _(column.kind),
            column.evidence,
            range_words(column, glance),
            numeral(glance.n_missing),
            _("many") if glance.n_different is None else numeral(glance.n_different),
        ]
        for column, glance in zip(columns, quality.columns, strict=True)
    ]
    headers = [
        *(_("column"), _("kind"), _("evidence"), _("range or examples"), _("missing")),
        _("distinct"),
    ]
    table = TextTable(headers, rows, 4, _("Columns"))
    sections = [Section("columns", _("Columns"), [table])]
    if words:
        answer = _("To decide the open questions, add: %(options)s", options=options)
        decide = [Paragraph([answer])] if options else []
        sections.insert(0, Section("look", _("To check"), [Items(words), *decide]))
    page = Page(
        title=_("How hushtable reads %(source)s", source=source),
        made_by=_("hushtable check") + f", {datetime.now(UTC):%Y-%m-%d}",
        intro=f"{intro} {file}".rstrip(),
        notice=_("Keep this page where the rows are."),
        reasons=[_("It contains values of rows.")],
        sections=sections,
    )
    return html(page)


# --- rows -----------------------------------------------------------------------------------------


def _cards(block: RowList) -> list[dict[str, Any]]:
    from hushtable.charts.reasons import Pictures  # with Jinja's library for markup

    outliers, draw = block.outliers, Pictures(block.outliers.features, block.outliers.usual)
    incidents = {k: group for group in outliers.incidents for k in group.rows}
    several = any(row.file for row in outliers.rows)
    cards = []
    for k, row in enumerate(outliers.rows):
        error, number = row.error, numeral(row.row)
        place = _("row %(n)s", n=number)
        if several:
            place = _("row %(n)s of %(file)s", n=number, file=row.file)
        incident = incidents.get(k) if block.values else None
        reasons = [_reason(reason, draw, block.values) for reason in row.reasons]
        none = _("No single column is unusual: the row is unusual in many columns together.")
        cards.append(
            {
                "rank": k + 1,
                "kept": [(name, text or "\u2013") for name, text in row.kept.items()],
                "place": place,
                "far": row.far,
                "first_alike": None if incident is None else incident.rows[0] + 1,
                "alike": None if incident is None else _("%(n)s similar", n=len(incident.rows)),
                "severity": numerals(rounded_down(row.severity)),
                "score": numerals(
                    f"{row.score:.2f}" + ("" if error is None else f" ± {error:.2f}")
                ),
                "reasons": reasons,
                "below": _below(outliers, k, block.values),
                "none": none if outliers.explained and not reasons else "",
            }
        )
    return cards


def _below(outliers: Outliers, k: int, values: bool) -> str:
    row = outliers.rows[k]
    words = [outliers.repair(row), row.likeness]
    if row.outside:
        words.append(_("outside the model: %(names)s", names=", ".join(row.outside)))
    if values:
        words.append(row.context)
    return " ".join(f"{text[0].upper()}{text[1:]}." for text in words if text)


def _reason(reason: Reason, draw: "Pictures", values: bool) -> dict[str, Any]:
    words, phrase = reason.words, reason.phrase
    if not values:
        bits = _("%(bits)s bits", bits=numerals(f"{reason.share:.2f}"))
        return {"unusual": reason.named, "rest": f": {bits}", "picture": ""}
    start = len(reason.feature) + len(phrase.text)
    missing = _("%(name)s is missing", name="")
    ends = [at for sign in (", ", ": ", missing) if (at := words.find(sign, start)) >= 0]
    end = min(ends, default=len(words))
    return {"unusual": words[:end], "rest": words[end:], "picture": draw.of(reason)}
