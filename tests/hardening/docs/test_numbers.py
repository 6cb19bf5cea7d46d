"""The numbers that pages state are those of the data files in docs/benchmarks/results."""

import csv
import re

import pytest

from places import DOCS, ROOT, script

BENCHMARKS = DOCS / "benchmarks"
RESULTS = BENCHMARKS / "results"
PAGES = sorted(BENCHMARKS.glob("*.md"))
SOURCES = script(BENCHMARKS / "sources.py")
#: A measured number: with a decimal point, a percent sign, or as a fraction.
NUMBER = re.compile(r"(?<![\w./-])(?:\d*\.\d+%?|\d+%|1/\d+)(?![\w/]|\.\d)")
#: Numbers that no one measures: levels of confidence, settings, versions, definitions.
DEFINED = {
    "accuracy.md": {
        "95%", "5%",  # of intervals, of missing values
        "3%",  # of the rows have anomalies
        "2602.03018", "2602.09329",  # papers
        "3.11", "1.9", "3.6",  # versions
        # The paper: a tolerance, the outliers of a participant, a section, an epsilon; what its
        # printed figures give; differences of figures in the table.
        "2.5", "90%", "3.1", "0.01", "2.73", "2.55", "1.5", "0.5",
    },
    "privacy.md": {
        "99.9%",  # confidence
        "0.1",  # an epsilon
        "0.5",  # the AUC of guessing
        "0.014",  # standard error of an AUC of 800 plays with and 800 without
        "1%",  # false positives
    },
    "speed.md": set(),
}  # fmt: skip


#: Numbers on other pages that no block or table of the page has; no one measures these either.
ELSEWHERE = {
    # What an epsilon makes of a suspicion, and a scale of noise: test_suspicion.py computes them.
    "explanation/privacy.md": {"0.2", "42.2"},  # with a version
    # Constants and definitions.
    # An interval, a share of the rows; test_far.py prints the last one.
    "explanation/maths.md": {"0.2"},  # a version
    "explanation/score.md": {"1.96", "90%", "0.0008"},
    "how-to/desk.md": {"1%", "2%"},  # shares that the example draws
    "how-to/omop.md": {"2.0"},  # a version
    # Totals of the paper's mechanism; of comparison.py.
    "how-to/releases.md": {"1.0", "2.0", "0.3%", "30%"},
    # Python; of its words; of data/quality.py.
    "tutorials/one-table.md": {"3.11", "99.75", "90%", "10%", ".9"},
    # Versions, sections, and a paper.
    "how-to/export.md": {"1.15", "1.3", "1.32"},
    "index.md": {"2201.06806"},
    # Measured by the version before, which is no longer here.
    "project/decisions/05-own-masks.md": {"4.8"},
    "install.md": {"3.11", "3.14"},
}  # fmt: skip


def table(name):
    """Return the rows of a data file by their first column."""
    with (RESULTS / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {next(iter(row.values())): row for row in rows}


def prose(text):
    """Return a page without blocks, formulas, code, pictures, addresses, and substitutions."""
    text = re.sub(r"^(`{3,}|:{3,}).*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^\$\$.*?^\$\$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^\|.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)|\{\{.*?\}\}%?|`[^`]*`|\$[^$\n]+\$", "", text)
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_prose_takes_its_numbers_from_data_files(page):
    found = set(NUMBER.findall(prose(page.read_text("utf-8"))))
    assert found == DEFINED[page.name], "write {{ table[row][column] }}, or say what defines it"


def others():
    """Return the pages beside those of the benchmarks."""
    left = {"_build", "generated", "gallery", "benchmarks"}
    found = (page.relative_to(DOCS) for page in DOCS.rglob("*.md"))
    return sorted(str(page) for page in found if not left & {*page.parts})


@pytest.mark.parametrize("name", others())
def test_prose_takes_its_numbers_from_the_page(name):
    """Blocks are run, and what they print is compared; numbers of prose repeat theirs."""
    text = (DOCS / name).read_text("utf-8")
    blocks = re.findall(r"^(`{3,})(.*?)^\1$", text, re.DOTALL | re.MULTILINE)
    tables = re.findall(r"^\|.*$", text, re.MULTILINE)
    shown = " ".join([*(block for _, block in blocks), *tables])
    known = set(re.findall(r"\d*\.\d+%?|\d+%|1/\d+", shown))
    assert set(NUMBER.findall(prose(text))) - known == ELSEWHERE.get(name, set())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_prose_names_cells_that_are_there(page):
    """The build of the documentation refuses others, too, but takes longer."""
    used = re.findall(r'\{\{ (\w+)\["([^"]+)"\]\["([^"]+)"\] \}\}', page.read_text("utf-8"))
    assert len(used) == page.read_text("utf-8").count("{{")
    for name, row, column in used:
        assert table(name)[row][column]


def test_every_table_has_a_source_and_a_page():
    names = {path.stem for path in RESULTS.glob("*.csv")}
    sources = SOURCES.sources()
    machines = sources.pop("machines")
    assert names - {"index"} == set(sources)
    assert {one["machine"] for one in sources.values()} == set(machines)
    pages = {page.name: page.read_text("utf-8") for page in PAGES}
    for name, one in sources.items():
        file, _, anchor = one["page"].partition("#")
        assert f"{{results}} {name}\n" in pages[file], name
        assert one["command"], name
        headings = re.findall(r"^#+ (.*)$", pages[file], re.MULTILINE)
        assert anchor in {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}
    included = re.findall(r"\{results\} (\w+)\n", "".join(pages.values()))
    assert sorted(included) == sorted(names)  # each once


def test_keys_and_columns_are_unique():
    """A page names a cell by its row and column."""
    for path in sorted(RESULTS.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
        assert len({*header}) == len(header), path.name
        assert len({row[0] for row in rows}) == len(rows), path.name
        assert {len(row) for row in rows} == {len(header)}, path.name


def test_the_index_is_that_of_the_sources():
    with (RESULTS / "index.csv").open(encoding="utf-8", newline="") as file:
        found = [tuple(row) for row in csv.reader(file)]
    assert found == SOURCES.rows(), "run python docs/benchmarks/sources.py"


METRICS = ("ROC-AUC", "AP")
#: What the first pages may state: a table, a row, a column. README, section "Measured", and the
#: first page state numbers of these cells alone, at any precision; ROC-AUC in percent or not.
STATED = [
    *(("adbench_10", one, m) for one in ("HushTable", "IsolationForest") for m in METRICS),
    *(("adbench_novelty", one, m) for one in ("HushTable, novelty", "KNN") for m in METRICS),
    *(("fifty", one, m) for one in ("HushTable", "iForest") for m in METRICS),
    *(("privacy", epsilon, "HushTable: ROC-AUC") for epsilon in ("no noise", "1", "0.1")),
    *(("speed", f"cover, 143,024 x 10: IsolationForest, score / {one}, score", "ratio")
      for one in ("HushTable", "LSHiTables")),
    ("attacks", "one release, a row more or less", "epsilon 1"),
    ("verdicts", "HushTable", "found in 60"),
    ("verdicts", "HushTable without feedback", "found in 60"),
]  # fmt: skip
#: Settings that these sentences name, and a paper.
SETTINGS = {"0.1", ".1", "0.3", ".3", "2201.06806"}


def cells():
    """Return the numbers of the cells above: what stands before ± and before a bracket."""
    texts = (re.sub(r" ±.*| \(.*", "", table(name)[row][column]) for name, row, column in STATED)
    return [float(part) for text in texts for part in text.split(" / ")]


def is_stated(number, known):
    """Whether a number of prose is one of the known ones, as far as it is written out."""
    if number.startswith("1/"):
        return any(round(one) == int(number[2:]) for one in known)
    digits = len(number.rstrip("%").partition(".")[2])
    value = float(number.rstrip("%"))
    both = [*known, *(one / 100 for one in known), *(100 * one for one in known)]
    return any(abs(one - value) <= 0.5 * 10**-digits + 1e-9 for one in both)


@pytest.mark.parametrize("name", ["README.md", "docs/index.md"])
def test_first_pages_state_measured_numbers(name):
    text = (ROOT / name).read_text("utf-8")
    if name == "README.md":
        sections = re.findall(r"^## (.*)\n((?:(?!## ).*\n?)*)", text, re.MULTILINE)
        (text,) = [body for title, body in sections if "measured" in title.lower()]
        assert NUMBER.findall(prose(text))
    known = cells()
    others = [
        number
        for number in NUMBER.findall(prose(text))
        if number not in SETTINGS and not is_stated(number, known)
    ]
    assert not others, "no cell of STATED has these: correct them, or name the cell"


@pytest.mark.parametrize(
    ("number", "stated"),
    [(".810", True), ("0.8102", True), ("81%", True), ("1/23", True), (".811", False),
     ("1/24", False), ("80.2", True), ("80.3%", False)],
)  # fmt: skip
def test_a_number_is_compared_as_far_as_it_is_written_out(number, stated):
    assert is_stated(number, [0.8102, 23.1, 80.2]) is stated
