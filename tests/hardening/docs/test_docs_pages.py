"""The pages are true: what they say to do is done, and what they show is what comes out."""

import re
import shutil
import subprocess
import sys
import warnings

import pytest

from docs_pages import NOT_RUN, PAGES, RANGES
from docs_reader import ROOT, blocks

ALL = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    *sorted(
        str(page.relative_to(ROOT))
        for page in (ROOT / "docs").rglob("*.md")
        if not {"_build", "generated", "gallery"} & {*page.parts}
    ),
]
#: The tutorial has a test file of its own, which looks at what came out. Of the page on OMOP, all
#: but the section on ranges is followed where a PostgreSQL server is, in tests/databases.
FOLLOWED = {"docs/tutorials/several-hospitals.md", "docs/how-to/omop.md"}
SECTIONS = {}
for one in (*PAGES, *FOLLOWED):
    SECTIONS.setdefault(one.partition(": ")[0], []).append(one.partition(": ")[2])


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if p.slow else ()) for n, p in PAGES.items()]
)
def test_the_page_can_be_followed(name, tmp_path, monkeypatch):
    page = PAGES[name]
    path, _, section = name.partition(": ")
    for library in page.needs:
        pytest.importorskip(library, reason=f"{name} needs {library}")
    if "pyspark" in page.needs and shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is not here")
    of_node = any(block.language == "js" for block in blocks(ROOT / path, section))
    if of_node and shutil.which("node") is None:
        pytest.skip("JavaScript runs in node, which is not here")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)  # the page sets it: only for this test
    with warnings.catch_warnings():
        if {"pyspark", "mlflow"} & {*page.needs}:
            warnings.simplefilter("ignore")  # their own
        page.follow(path, tmp_path, section)
    if "matplotlib" in page.needs:
        import matplotlib.pyplot as plt

        plt.close("all")


def test_every_block_is_run_or_listed():
    for name in ALL:
        listed = {line for page, line in NOT_RUN if page == name}
        code = [block for block in blocks(ROOT / name) if block.language in ("python", "sh")]
        if name in SECTIONS:
            first = {block.first for block in code}
            assert listed <= first, f"{name}: listed as not run, and not on the page"
            parts = [blocks(ROOT / name, section) for section in SECTIONS[name]]
            followed = {block.line for part in parts for block in part}
            assert {block.line for block in code} <= followed, f"{name}: in no section"
        else:
            assert {block.first for block in code} == listed, f"{name}: say why not"


@pytest.mark.parametrize(
    ("name", "section", "first", "last"),
    [
        ("carriers", "NVFlare", "hushtable plan draw", "from hushtable_federation.nvflare"),
        ("omop", RANGES, "[[concept]]", "hushtable round ranges result.hush -o later.toml"),
    ],
)
def test_tests_of_a_section_read_all_of_it(name, section, first, last):
    page = ROOT / f"docs/how-to/{name}.md"
    here, everywhere = [*blocks(page, section)], [*blocks(page)]
    assert here[0].first.startswith(first)
    assert here[-1].first.startswith(last)
    assert here == everywhere[everywhere.index(here[0]) : everywhere.index(here[-1]) + 1]


def test_every_block_names_its_language():
    for name in ALL:
        bare = [str(block) for block in blocks(ROOT / name) if not block.language]
        assert not bare, "name a language: sh is run, text is held against what was printed"


#: Pages for people who have a clone.
CLONE = {"CONTRIBUTING.md", "docs/install.md"}


def test_pages_install_by_name():
    for name in {*ALL} - CLONE:
        text = (ROOT / name).read_text(encoding="utf-8")
        assert not re.search(r"install .*\./packages", text), name
        for wanted in re.findall(r"\bpip install ([^\n`]+)", text):
            assert re.match(r"'?hushtable\b|[a-z0-9 -]+$", wanted), f"{name}: pip install {wanted}"


def test_the_tutorial_of_hospitals_needs_as_many_sites_as_its_command_says():
    text = (ROOT / "docs/tutorials/several-hospitals.md").read_text(encoding="utf-8")
    asked = re.findall(r"--least (\d+)", text)
    assert asked == ["3", "3"]  # the sentence, and the command
    assert "All three hospitals are needed (`--least 3`)" in text


#: What makes importing some packages fail, as where they are not installed.
BLOCKED = """
import sys
from importlib.abc import MetaPathFinder


class Blocked(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in {!r}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)


sys.meta_path.insert(0, Blocked())
"""


def test_the_ten_lines_of_the_readme_need_what_make_demo_installs(tmp_path):
    """They stood on pandas, which is in no dependency: here its import fails."""
    without = ["pandas", "polars", "jinja2", "matplotlib", "opendp"]
    (block,) = [block for block in blocks(ROOT / "README.md") if block.language == "python"]
    (tmp_path / "ten.py").write_text(BLOCKED.format(without) + block.text, "utf-8")
    command = [sys.executable, "ten.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (shown,) = [block for block in blocks(ROOT / "README.md") if block.language == "text"]
    assert done.stdout.split() == shown.text.split()
