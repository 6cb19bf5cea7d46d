"""Pages in another language: no English is left, numbers are as people write them, and the rest."""

import re
from functools import reduce
from operator import add

import pyarrow as pa
import pytest

from hushtable import HushTable, Plan, Sketch
from hushtable.data.readers import as_reader
from hushtable.errors import UsageError
from hushtable.language import (
    LANGUAGES,
    WORDS,
    Catalogue,
    _,
    ngettext,
    numeral,
    numerals,
    speaking,
    spoken,
)
from hushtable.report import page
from hushtable.report.content import Subject, gather, sites_of_parts
from hushtable.report.lists import LISTS
from hushtable.scores.outliers import Search
from hushtable.scores.scorer import Scorer
from report_helpers import Parsed

#: Words of English pages that no German text has.
ENGLISH = {
    "the", "and", "of", "with", "rows", "row", "usually", "missing", "threshold", "sites", "noise",
    "counts", "similar", "features", "is", "are", "this", "that", "between", "keep", "values",
}  # fmt: skip


def english_in(html):
    """Return the English words of a page, its pictures and labels among them."""
    parsed = Parsed(html)
    # What a reader calls rows that have no file.
    texts = [parsed.text.replace("the data", ""), *(svg["aria-label"] for svg in parsed.all("svg"))]
    words = {word.strip(".,:;()").lower() for text in texts for word in text.split()}
    return words & ENGLISH


@pytest.fixture(scope="module")
def german(sketch, releases, X, score_them):
    """Pages of a sketch with rows and values, and of a release with its sites, in German."""
    with speaking("de"):
        offset, scores = score_them(sketch, X, 5, values=True)
        model = Subject("a.hush", "sketch", sketch, "1.5 MB")
        of_rows = page.html(gather(model, threshold=offset, scores=scores, values=True).page)
        total = reduce(add, releases.values())
        sites = sites_of_parts(releases, total, "all.hush")
        release = Subject("all.hush", "release", total)
        of_release = page.html(
            gather(release, threshold=Scorer(total).auto_offset(), sites=sites).page
        )
    return {"rows": of_rows, "release": of_release}


@pytest.mark.parametrize("which", ["rows", "release"])
def test_a_german_report_has_no_english(german, which):
    assert '<html lang="de">' in german[which]
    assert english_in(german[which]) == set()


def test_reasons_and_numbers_are_german(german):
    text = Parsed(german["rows"]).text
    assert "1,5 MB" in text
    assert re.search(r"üblich -\d,\d+ bis \d,\d+: außerhalb des Bereichs -9 bis 9", text)
    assert not re.search(r"\d\.\d{1,2}\b", text.replace("1.0.0rc2", ""))


def test_a_german_list_has_no_english(sketch, X, tmp_path):
    rows = pa.table(dict(zip(sketch.plan.schema.names, X.T, strict=True)))
    with speaking("de"):
        found = Search(Scorer(sketch), 5).find(as_reader(rows))
        with (tmp_path / "top.html").open("wb") as file:
            LISTS[".html"](file, found, "a.hush", "rows.csv", "bits")
    html = (tmp_path / "top.html").read_text("utf-8")
    assert '<html lang="de">' in html
    assert "5 auffällige Zeilen" in html
    assert english_in(html) - {"missing", "with"} == set()  # names of directions in files


def test_a_german_sheet_keeps_the_names_of_its_columns(sketch, X, tmp_path):
    calamine = pytest.importorskip("python_calamine")
    rows = pa.table(dict(zip(sketch.plan.schema.names, X.T, strict=True)))
    with speaking("de"):
        found = Search(Scorer(sketch), 5).find(as_reader(rows))
        with (tmp_path / "top.xlsx").open("wb") as file:
            LISTS[".xlsx"](file, found, "a.hush", "rows.csv", "bits")
    book = calamine.CalamineWorkbook.from_path(tmp_path / "top.xlsx")
    assert book.sheet_names == ["Ausreißer", "Erläuterung"]
    names, *lines = book.get_sheet_by_name("Ausreißer").to_python()
    assert {"rank", "severity", "words", "direction_1"} <= {*names}
    assert {line[names.index("direction_1")] for line in lines} <= {"high", "low", "beyond", ""}
    assert all("üblich" in line[names.index("words")] for line in lines)


def test_a_text_that_is_missing_is_english(tmp_path):
    words = Catalogue(tmp_path / "__init__.py", "toy")
    with speaking("de"):
        assert WORDS.say("a text that no catalogue has") == "a text that no catalogue has"
        assert words.say("%(n)s rows", n=3) == "3 rows"
        assert words.count("%(n)s thing", "%(n)s things", 2_000) == "2.000 things"
        assert _("") == ""  # not the head of the catalogue


def test_a_language_holds_for_a_while_only():
    assert spoken() == "en"
    with speaking("de"):
        assert (spoken(), _("threshold")) == ("de", "Schwellenwert")
        assert ngettext("%(n)s column", "%(n)s columns", 1) == "1 Spalte"
    assert (spoken(), _("threshold")) == ("en", "threshold")
    with pytest.raises(UsageError, match="'fr': there is only en, de"), speaking("fr"):
        pass


def test_numbers():
    assert numeral(1234.5, 1) == numerals("1,234.5") == "1,234.5"
    with speaking("de"):
        assert numeral(1234.5, 1) == numerals("1,234.5") == "1.234,5"


def test_files_do_not_depend_on_the_language(tmp_path, X):
    """Words are for pages: a site that reads in German sends and keeps the same bytes."""
    for language in LANGUAGES:
        with speaking(language):
            detector = HushTable(n_tables=5, random_state=0).fit(X)
            detector.save(tmp_path / f"{language}.model.hush")
            plan = Plan.draw(detector.plan_.schema, n_tables=5, random_state=0)
            plan.save(tmp_path / f"{language}.plan.hush")
            Sketch.from_data(plan, X).save(tmp_path / f"{language}.sketch.hush")
    for kind in ("model", "plan", "sketch"):
        english, german = (tmp_path / f"{one}.{kind}.hush" for one in ("en", "de"))
        assert english.read_bytes() == german.read_bytes(), kind
