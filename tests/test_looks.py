"""Colours that the report, docs, figures and terminal share, and the look at all pages."""

import re
import sys

import pytest

from hushtable import progress
from hushtable_bench import figures
from places import ROOT, script

STATIC = ROOT / "docs" / "_static"


def tables_of_colours(path, prefix):
    """Return the first two tables of colours of a style sheet: in the light, and in the dark."""
    blocks = re.findall(r"\{([^{}]*)\}", path.read_text())
    tables = [dict(re.findall(rf"--{prefix}(\w+): (#\w{{6}})", block)) for block in blocks]
    return [table for table in tables if table][:2]


REPORT = tables_of_colours(ROOT / "packages/hushtable/src/hushtable/report" / "style.css", "")
SITE = tables_of_colours(STATIC / "site.css", "hush-")


def light_of(colour):
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((light_of(one), light_of(other)))
    return (high + 0.05) / (low + 0.05)


def test_site_has_the_colours_of_the_report():
    assert [len(table) for table in REPORT] == [9, 9]
    assert SITE == REPORT


@pytest.mark.parametrize("table", REPORT, ids=["light", "dark"])
@pytest.mark.parametrize("ink", ["ink", "soft", "rows", "flag", "good", "bad"])
def test_letters_can_be_read(table, ink):
    assert min(contrast(table[ink], table[paper]) for paper in ("paper", "panel")) >= 4.5


def test_figures_and_terminal_have_the_colours_of_the_report():
    light, _ = REPORT
    assert (light["rows"], light["flag"]) == (figures.ROWS, figures.FLAG)
    assert light["rows"] == progress.BLUE
    assert contrast(figures.THIRD, "#ffffff") >= 4.5


def test_kept_figures_have_the_colours_of_the_code():
    found = set()
    for path in (ROOT / "docs" / "figures").glob("*.svg"):
        found |= set(re.findall(r"#[0-9a-f]{6}", path.read_text()))
    ours = {figures.ROWS, figures.FLAG, figures.THIRD}
    greys = {"#000000", "#333333", "#404040", "#666666", "#ffffff"}
    assert found == ours | greys | {"#e69f00", "#cc79a7"}  # and of the paper's two other systems


def test_logos_have_the_colours_of_the_report():
    of_both = []
    for name, table in zip(("logo.svg", "logo-dark.svg"), REPORT, strict=True):
        used = set(re.findall(r"#\w{6}", (STATIC / name).read_text()))
        assert used == {table["rows"], table["flag"]}
        of_both += used
    assert set(re.findall(r"#\w{6}", (STATIC / "favicon.svg").read_text())) == set(of_both)


SOUND = """<!doctype html><html lang="en"><head><title>Sound</title>
<meta name="viewport" content="width=device-width, initial-scale=1"></head>
<body><main><h1>A page</h1><p>Words</p><!-- here --></main></body></html>"""

#: What is put into a sound page, and what is said of it; of axe's own rules, a few.
FAULTS = {
    "wide": ("<pre>" + "x" * 200 + "</pre>", "at 360 px, dark: is "),
    "wide-desk": ("<div style='width:1300px'>Wide</div>", "at 1280 px, light: is "),
    "console": ("<script>console.warn('oh')</script>", "writes to the console: oh"),
    "broken-script": ("<script>nothing.at.all</script>", "writes to the console: {"),
    "gone": ("<img src='gone.png' alt='A cat'>", "cannot show the image gone.png"),
    "outside": ("<img src='http://127.0.0.1:9/a.gif' alt='A cat'>", "asks for http://127.0.0.1:9/"),
    "above": ("<script src='../elsewhere.js'></script>", "/elsewhere.js"),
    "no-words": ("<img src='a.svg' alt=''>", "has no words for the image a.svg"),
    "no-alt": ("<img src='a.svg'>", "[image-alt]"),
    "file-name": ("<img src='a.svg' alt='figures/a.svg'>", "has a file's name as the words"),
    "two-heads": ("<h1>Another</h1>", "has two first headings"),
    "pale": ("<p style='color:#999'>Pale</p>", "at 1280 px, light: Elements must have sufficient"),
    "dark": (
        "<style>@media (prefers-color-scheme: dark) { p { color: #bbb } }</style>",
        "at 360 px, dark: Elements must have sufficient color contrast",
    ),
}


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """Return what is said of each page of a site of faults."""
    pytest.importorskip("axe_core_python")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path])
        check_pages = script(ROOT / ".ci" / "check_pages.py")
    if check_pages.found() is None:
        pytest.skip("no Chromium here: apt-get install chromium")
    site = tmp_path_factory.mktemp("site")
    (site / "a.svg").write_text((STATIC / "logo.svg").read_text())
    for name, (fault, _) in {"sound": ("", ""), **FAULTS}.items():
        (site / f"{name}.html").write_text(SOUND.replace("<!-- here -->", fault))
    pages = sorted(site.glob("*.html"))
    lines = check_pages.look_at(pages, site)
    return {
        page.stem: [line for line in lines if line.startswith(f"{page.name} ")] for page in pages
    }


@pytest.mark.slow
def test_sound_page_is_let_through(seen):
    assert seen["sound"] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_page_with_a_fault_is_refused(seen, name):
    assert any(FAULTS[name][1] in line for line in seen[name]), seen[name]
