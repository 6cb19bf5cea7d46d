"""The gallery: each example says where its rows come from and where it fails, and runs."""

import ast
import re
import sys
from importlib.metadata import PackageNotFoundError, distribution

import pytest

from places import DOCS

EXAMPLES = sorted((DOCS / "examples").glob("plot_*.py"))
if not EXAMPLES:
    pytest.skip("a source distribution has no gallery", allow_module_level=True)
#: Terms under which the tables may be used and shown.
TERMS = ("CC0", "CC BY 4.0")


def head(path):
    """Return what stands above an example's code."""
    return ast.get_docstring(ast.parse(path.read_text()))


def test_the_gallery_has_eight_examples_on_real_tables_or_more():
    assert sum("made up" not in head(path) for path in EXAMPLES) >= 8


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_says_what_one_learns_whose_the_rows_are_and_where_it_fails(path):
    text, about = path.read_text(), head(path)
    title, line, _, first = about.split("\n")[:4]
    assert len(line) == len(title)
    assert first.startswith("You learn ")
    data = re.search(r"\*Data\*: (.*?)\*How to\*", about, re.DOTALL)
    assert data, "say where the rows come from"
    assert "made up" in data[1] or any(terms in data[1] for terms in TERMS)
    assert re.search(r"^# What (it|the figure) (got wrong|cannot know): ", text, re.MULTILINE)
    assert 30 <= len(text.splitlines()) <= 100


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_links_to_pages_and_to_the_api(path):
    pages = re.findall(r":doc:`(?:[^<`]*<)?/([\w/-]+)>?`", path.read_text())
    assert pages
    for page in pages:
        assert (DOCS / f"{page}.md").exists(), page
    assert re.search(r"\*API\*:\s:(class|func):`hushtable\.", head(path))


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_its_figures_have_titles(path, monkeypatch, tmp_path):
    """A figure's title is its alternative text."""
    plt = pytest.importorskip("matplotlib.pyplot")
    for package in re.findall(r'distribution\("(\w+)"\)', path.read_text()):
        try:
            distribution(package)
        except PackageNotFoundError:
            pytest.skip(f"needs {package}, of the group docs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(DOCS), *sys.path])
    with plt.rc_context({"backend": "agg"}):
        __import__("gallery_style").reset({}, path.name)
        try:
            exec(compile(path.read_text(), path, "exec"), {"__name__": path.stem})
            figures = [plt.figure(number) for number in plt.get_fignums()]
            assert 1 <= len(figures) <= 3
            for figure in figures:
                titles = [ax.get_title(loc) for ax in figure.axes for loc in ("left", "center")]
                assert "".join([figure.get_suptitle(), *titles])
        finally:
            plt.close("all")
