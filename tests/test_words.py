"""The script of `make docs` that checks the words of pages and sources."""

import pytest

from places import ROOT, script


@pytest.fixture
def words():
    return script(ROOT / ".ci" / "check_words.py")


@pytest.fixture
def pages(tmp_path):
    """Write a small project; return how to change one file."""

    def build(**changed):
        texts = {
            "README.md": "Count the rows.\n",
            "docs/how-to/files.md": "Rows. " * 1500,
            "docs/_build/left.md": "Nobody reads this. " * 1500,
            "packages/core/src/core/data.py": '"""Read `nobody` and data."""\n',
        }
        for name, text in {**texts, **changed}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return build


def test_a_project_without_a_fault(words, pages, capsys):
    assert words.main(pages(), []) == 0
    assert capsys.readouterr() == ("", "")


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
def test_a_banned_construction_is_refused(words, pages, capsys, text, line, found, instead):
    assert words.main(pages(**{"docs/index.md": text}), []) == 1
    assert capsys.readouterr().err == f"docs/index.md:{line}: {found!r}: write {instead}\n"


@pytest.mark.parametrize(
    "text",
    [
        "Who signs a release?", "```sh\nhushtable told\n```", "The word `whoever` is code.",
        "Anyone who signs", "<!-- told -->", "The untoldness of it", "{{ told['x'] }}",
    ],
)  # fmt: skip
def test_code_and_questions_are_not_refused(words, pages, capsys, text):
    assert words.main(pages(**{"docs/index.md": text}), []) == 0, capsys.readouterr().err


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
def test_sources_are_read_too(words, pages, capsys, name, text, line):
    assert words.main(pages(**{f"packages/core/src/core/{name}": text}), []) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"packages/core/src/core/{name}:{line}: ")
    assert said.endswith("write no one, someone, everyone, anyone\n")


def test_names_in_code_are_free(words, pages, capsys):
    assert words.main(pages(**{"packages/core/src/core/a.py": "nobody = told = 1\n"}), []) == 0


def test_the_words_of_every_page(words, pages, capsys):
    words.main(pages(), ["--all"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[0].split() == ["README.md", "3", "words,", "3", "with", "code"]


def test_our_pages_and_sources_have_no_fault(words, capsys):
    assert words.main(ROOT, []) == 0, capsys.readouterr().err


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
