"""The script of `make lint` that checks words, links, and names of classes; figures of concepts."""

import pytest

from places import ROOT, script


@pytest.fixture
def faults(tmp_path):
    """Return a function that checks a small project with these files."""
    words = script(ROOT / ".ci" / "check_words.py")

    def check(**files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return [*words.faults(tmp_path)]

    return check


SOUND = {
    "README.md": "Count the [rows](docs/a.md#all-rows).\n",
    "docs/a.md": "# All rows\nRows.",
    "docs/_build/left.md": "Nobody reads this. ",
    "packages/core/src/core/data.py": '"""Read `nobody` and data."""\nnobody = told = 1\n',
}


def test_a_project_without_a_fault(faults):
    assert faults(**SOUND) == []


@pytest.mark.parametrize(
    ("text", "line", "found", "instead"),
    [
        ("A round is dear.", 1, "dear", "expensive"),
        ("The dearest site", 1, "dearest", "expensive"),
        ("One.\n\nWhoever signs", 3, "Whoever", "anyone who"),
        ("as it is\nsaid there", 1, "is said", "the active voice: the page states"),
        ("ten rows, of which two", 1, "of which", "a new sentence, or 'including'"),
        ("- One.\n\nIt ends. Who signs first waits.", 3, "Who signs first waits.", "anyone who"),
        ("what we were told", 1, "told", "stated, reported, known; distinguished"),
        ("See [who told it](a.md).", 1, "told", "stated, reported, known; distinguished"),
        ("for rows (e.g. patients)", 1, "e.g.", "for example, that is"),
    ],
)
def test_a_banned_construction_is_refused(faults, text, line, found, instead):
    wrong = faults(**SOUND, **{"docs/index.md": text})
    assert wrong == [f"docs/index.md:{line}: {found!r}: write {instead}"]


@pytest.mark.parametrize(
    "text",
    [
        "Who signs a release?", "```sh\nhushtable told\n```", "The word `whoever` is code.",
        "Anyone who signs", "<!-- told -->", "The untoldness of it", "{{ told['x'] }}",
    ],
)  # fmt: skip
def test_code_and_questions_are_not_refused(faults, text):
    assert faults(**SOUND, **{"docs/index.md": text}) == []


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.py", 'def f():\n    """Do it.\n\n    Nobody waits.\n    """\n', 4),
        ("a.py", "x = 1  # nobody reads x\n", 1),
        ("a.py", 'y = f"nobody has {x}"\n', 1),
        ("a.html", "<p>{% trans %}Nobody waits{% endtrans %}</p>", 1),
        ("a.toml", "# Nobody reads this.\n", 1),
    ],
)
def test_sources_are_read_too(faults, name, text, line):
    (wrong,) = faults(**{f"packages/core/src/core/{name}": text})
    assert wrong.startswith(f"packages/core/src/core/{name}:{line}: ")
    assert wrong.endswith("write no one, someone, everyone, anyone")


@pytest.mark.parametrize(
    ("name", "text", "wrong"),
    [
        ("a.py", '"""What is cut."""\n', "write a docstring that does not begin with What"),
        ("a.py", "class A:\n    pass\nclass A:\n    pass\n", "rename one"),
        (
            "a.py",
            'import_module("hushtable.data")\n',
            "imports hushtable.data by name",
        ),
    ],
)
def test_sources_have_rules_of_their_own(faults, name, text, wrong):
    (found,) = faults(**{f"packages/core/src/core/{name}": text})
    assert wrong in found


@pytest.mark.parametrize("link", ["docs/gone.md", "docs/a.md#no-rows"])
def test_a_dead_link_is_refused(faults, link):
    wrong = faults(**{**SOUND, "SECURITY.md": f"See [this]({link})."})
    assert len(wrong) == 1
    assert wrong[0].startswith(f"SECURITY.md: no such file or place: {link}")


#: The page of each figure.
FIGURES = {
    **dict.fromkeys(("schema", "plan", "sketch", "release", "round", "score", "reasons"), "score"),
    "budget": "privacy",
}


def test_figures_are_those_that_the_script_draws():
    drawn = script(ROOT / "docs/figures/concepts.py")
    kept = {path.stem: path.read_text() for path in drawn.HERE.glob("*.svg")}
    assert kept == {name: draw().svg() for name, draw in drawn.FIGURES.items()}
    assert set(FIGURES) == set(drawn.FIGURES)


def test_the_architecture_is_that_of_the_imports():
    drawn = script(ROOT / "docs/figures/architecture.py")
    assert (drawn.HERE / "architecture.svg").read_text() == drawn.svg()


@pytest.mark.parametrize("figure", FIGURES)
def test_a_figure_is_on_its_page(figure):
    page = (ROOT / "docs/explanation" / f"{FIGURES[figure]}.md").read_text("utf-8")
    assert f":file: ../figures/concepts/{figure}.svg" in page
