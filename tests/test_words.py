"""The script of `make docs` that measures how easy pages are to read."""

import re

import pytest

from places import ROOT, script


@pytest.fixture
def words():
    return script(ROOT / ".ci" / "check_words.py")


@pytest.fixture
def pages(tmp_path):
    """Write a small set of pages; return how to change one."""

    def build(**changed):
        texts = {
            "README.md": "Count the rows.\n",
            "docs/explanation/plan.md": "A plan is fixed.\n",
            "docs/index.md": "```{toctree}\n:caption: Benchmarks\n\nspeed\nPaper <paper>\n```\n",
            "docs/benchmarks/speed.md": "Fast. " * 1501,
            "docs/benchmarks/paper.md": "Long. " * 1501,
            "docs/how-to/messy-tables.md": "Rows. " * 1500,
        }
        for name, text in {**texts, **changed}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return build


@pytest.mark.parametrize(
    ("word", "count"),
    [
        ("row", 1), ("a", 1), ("any", 2), ("made", 1), ("table", 2), ("tables", 2), ("sites", 1),
        ("cases", 2), ("whole", 1), ("signed", 1), ("counted", 2), ("added", 2), ("site's", 1),
        ("releases", 3), ("epsilon", 3), ("Privacy", 3), ("release", 2), ("rules", 1),
        ("hospital", 3), ("station", 2), ("riot", 2), ("mathematics", 4),
    ],
)  # fmt: skip
def test_syllables(words, word, count):
    assert words.syllables(word) == count


def test_reading_ease_is_flesch_s(words):
    # 2 sentences of 3 words, of one syllable each.
    page = words.reading("The cat sat. The dog ran.\n")
    assert page.ease == pytest.approx(206.835 - 1.015 * 3 - 84.6)
    assert page.most == 3
    harder = words.reading("Differential privacy guarantees anonymity universally.")
    assert harder.ease < 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One row. Two\nrows? (Yes.) Done", ["One row", "Two rows", "(Yes", "Done"]),
        ("Epsilon is 0.5 at most.", ["Epsilon is 0.5 at most."]),
        ("- First\n- second\n  line\n\n1. third", ["- First", "- second line", "1. third"]),
        ("# Head\n\n| a | b |\n\nText.", ["Text."]),
        ("```python\ncode = 1\n```\nText.\n\n````text\n```\nmore\n````", ["Text."]),
        ("See [the page](page.md#a). Then stop.", ["See the page", "Then stop."]),
        ("A {term}`plan`, and {term}`tables <table>`.", ["A plan, and tables."]),
        ("It ends. `fit(X)` reads.", ["It ends", "Coding reads."]),
        ("![A picture of it](a.svg)\n\nText.", ["Text."]),
        (":::{note}\nText.\n:::\n(place)=\n", ["Text."]),
    ],
)
def test_sentences_are_what_is_read(words, text, expected):
    assert list(words.sentences(text)) == expected


LONG = " ".join(["row"] * 36) + "."
HARD = "Differential privacy guarantees anonymity universally."


@pytest.mark.parametrize("name", ["README.md", "docs/explanation/plan.md"])
@pytest.mark.parametrize(
    ("text", "said"),
    [(LONG, "a sentence of 36 words; needs 35 at most: row row"), (HARD, "reading ease -")],
)
def test_a_first_page_that_is_hard_is_refused(words, pages, capsys, name, text, said):
    assert words.main(pages(**{name: text}), []) == 1
    assert capsys.readouterr().err.startswith(f"{name}: {said}")


def test_other_pages_may_be_hard(words, pages, capsys):
    assert words.main(pages(**{"docs/explanation/maths.md": LONG + HARD}), []) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "name", ["README.md", "docs/explanation/plan.md", "docs/how-to/messy-tables.md"]
)
def test_a_page_of_over_1500_words_is_refused(words, pages, capsys, name):
    assert words.main(pages(**{name: "Rows. " * 1501}), []) == 1
    assert capsys.readouterr().err == (
        f"{name}: 1,501 words; needs 1,500 at most: split it by what a reader needs\n"
    )


def test_each_page_of_ours_is_short_enough(words, capsys):
    assert words.main(ROOT, []) == 0, capsys.readouterr().err


def test_all_figures(words, pages, capsys):
    words.main(pages(), ["--all"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert lines[0].split() == ["README.md", "3", "words,", "ease", "119,", "longest", "3"]


#: The page of each figure.
FIGURES = {
    **dict.fromkeys(("schema", "plan", "sketch", "release", "round"), "concepts"),
    **dict.fromkeys(("score", "reasons"), "score"),
    "budget": "privacy",
}


def test_concepts_have_80_to_300_words_each(words):
    """Without code and figures."""
    page = (ROOT / "docs/explanation/concepts.md").read_text("utf-8")
    sections = re.split(r"^## ", words.plain(page), flags=re.MULTILINE)[1:]
    found = {text.split()[0].lower(): len(words.WORD.findall(text)) for text in sections}
    assert list(found) == [name for name, page in FIGURES.items() if page == "concepts"]
    assert all(80 <= count <= 300 for count in found.values()), found


def test_figures_are_those_that_the_script_draws():
    drawn = script(ROOT / "docs/figures/concepts.py")
    kept = {path.stem: path.read_text() for path in drawn.HERE.glob("*.svg")}
    assert kept == {name: draw().svg() for name, draw in drawn.FIGURES.items()}
    assert set(FIGURES) == set(drawn.FIGURES)


@pytest.mark.parametrize("figure", FIGURES)
def test_a_figure_is_on_its_page(figure):
    page = (ROOT / "docs/explanation" / f"{FIGURES[figure]}.md").read_text("utf-8")
    assert f":file: ../figures/concepts/{figure}.svg" in page
