"""Finding 7: texts of text columns, and exact extremes, are rows' values; no page shows them.

Attacks on `hushtable fit`, `inspect`, `plan check`, `report` and on the errors about two plans,
with a table that holds what no one may read: names, diagnoses, numbers of patients, notes, and two
numbers that stand out.
"""

import csv
import html
import itertools
import json
import re

import numpy as np
import pytest

from hushtable import Feature, Plan, Schema, Sketch, load
from hushtable.cli import main
from hushtable.counts import rounds
from hushtable.data.readers import as_reader
from hushtable.errors import PlanError
from hushtable.report import page
from hushtable.report.content import RowsToShow, Subject, gather, score_rows
from hushtable.scores.scorer import Scorer

N = 240
FIRST = ["Aroha", "Bronwyn", "Caoimhe", "Dmitri", "Eluned", "Farquhar"]
LAST = ["Okonkwo", "Zbigniew", "Quispe", "Ihimaera", "Vanbrugh", "Xiaoling", "Ystrad", "Jabavu"]
NAMES = [f"{first} {last}" for first, last in itertools.product(FIRST, LAST)]
DIAGNOSES = ["HIV positive", "syphilis", "schizophrenia"]
NOTES = [f"refused treatment on ward {i} after argument with brother" for i in range(30)]
#: Least and greatest of two columns; no other value of theirs has these digits.
EXTREMES = {"income": (17.03125, 123456.789), "lactate": (0.40625, 98.765625)}
WORDS = [*FIRST, *LAST, "HIV", "syphilis", "schizophrenia", "refused treatment", "PT-00"]
NUMBERS = r"(?<![\d.])(17\.03|123[, ]?45[67]|1\.2345|1\.235e|0\.406|98\.7[67])"
SECRET = re.compile("|".join([*WORDS, NUMBERS]))
TEXTS = {"name": len(NAMES), "diagnosis": 3, "patient": N // 3, "note": len(NOTES)}


def columns():
    rng = np.random.default_rng(7)
    numbers = {}
    for name, (low, high) in EXTREMES.items():
        values = rng.uniform(low + 0.3 * (high - low), low + 0.6 * (high - low), N).round(2)
        values[[5, 9]] = low, high
        numbers[name] = values.tolist()
    rows = range(N)
    return {
        "name": [NAMES[i % len(NAMES)] for i in rows],
        "diagnosis": [DIAGNOSES[i % 3] for i in rows],
        "patient": [f"PT-00{7_000_000 + i // 3}" for i in rows],
        "note": [NOTES[i % len(NOTES)] for i in rows],
        **numbers,
    }


def write(path, table):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
    return path


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A folder with the rows, and every file that can be made of them without a public schema."""
    here = tmp_path_factory.mktemp("hospital")
    rows = write(here / "rows.csv", columns())
    keep = ["--as", "name=category,patient=category,note=category"]
    for detector in ("hushtable", "lsh-itables", "ace"):
        words = ["fit", rows, *keep, "--seed", 1, "--tables", 8, "--detector", detector]
        assert main([*map(str, words), "-o", str(here / f"{detector}.hush")]) == 0
    model = load(here / "hushtable.hush")
    model.plan_.save(here / "plan.hush")
    model.sketch_.save(here / "sketch.hush")
    marginals = Plan.marginals(model.plan_.schema)
    Sketch.from_data(marginals, rows).save(here / "marginals.hush")
    for i, part in enumerate((slice(0, 100), slice(100, N))):
        table = {name: values[part] for name, values in columns().items()}
        write(here / f"part{i}.csv", table)
        Sketch.from_data(model.plan_, here / f"part{i}.csv").save(here / f"part{i}.hush")
    Sketch.from_data(rounds.ranks(model.sketch_), rows).save(here / "ranks.hush")
    return here


@pytest.fixture
def run(capsys):
    """Run a command; return its exit code and all that it said."""

    def run(*words):
        capsys.readouterr()
        code = main([str(word) for word in words])
        out, err = capsys.readouterr()
        return code, out + err

    return run


def clean(text):
    found = SECRET.search(html.unescape(text))
    assert not found, text[max(0, found.start() - 200) : found.end() + 50]


OPTIONS = ([], ["--rows", 5], ["--rows", 240])


@pytest.mark.parametrize(
    ("options", "model"),
    [
        pytest.param(
            options, model, id=" ".join(map(str, [model, *options])),
            # Every model without options, and one under each option, tell every day.
            marks=[pytest.mark.slow] if options and model != "hushtable" else [],
        )
        for options in OPTIONS
        for model in ("hushtable", "lsh-itables", "ace", "sketch")
    ],
)  # fmt: skip
def test_no_report_shows_a_value_of_a_row(here, run, tmp_path, model, options):
    """Research finding 7: categories' texts and exact extremes stood beside "No value of any row".

    In tables, figures, words for those who do not see, and what the command prints, with every
    option but ``--values``.
    """
    out = tmp_path / "r.html"
    for extra in ([], ["--json"]):
        code, said = run("report", here / f"{model}.hush", here / "rows.csv", *options, *extra,
                         "-o", out)  # fmt: skip
        assert code == 0, said
        clean(said)
        text = out.read_text(encoding="utf-8")
        clean(text)
        assert "48 categories" in text


def test_no_report_without_rows_of_marginals_or_of_parts_does(here, run, tmp_path):
    """Finding 7, for reports of files alone: histograms, sums and ranks."""
    out = tmp_path / "r.html"
    for words in (
        ["hushtable.hush"],
        ["marginals.hush"],
        ["sketch.hush", "--parts", here / "part*.hush"],
        ["sketch.hush", here / "rows.csv", "--ranks", here / "ranks.hush", "--rows", 9],
    ):
        code, said = run("report", here / words[0], *words[1:], "-o", out)
        assert code == 0, said
        clean(said)
        text = out.read_text(encoding="utf-8")
        clean(text)
        assert "Values of rows." in text
        assert "read off rows" in text


def test_what_was_asked_for_is_shown_and_said(here, run, tmp_path):
    """With ``--values`` the page shows them, and no sentence on it says otherwise."""
    out = tmp_path / "r.html"
    for name in ("hushtable.hush", "marginals.hush"):
        code, said = run("report", here / name, "--values", "-o", out)
        assert code == 0, said
        text = html.unescape(out.read_text(encoding="utf-8"))
        assert "schizophrenia" in text
        assert "17.03125 to 123456.789" in text
        for words in (text, said):
            assert "It shows values of rows: texts of name (48), diagnosis (3)" in words
        assert "Values of rows, except those that the top of this page names." in text
        assert "<li>Values of rows.</li>" not in text


def scaled(factor, rename):
    """Return numbers times a power of two, and texts that sort alike."""
    X = np.random.default_rng(3).normal(size=(300, 2)) * factor
    texts = np.array([f"{rename}{i % 5}" for i in range(300)], object)
    return np.column_stack([X.astype(object), texts])


def read_off(rows):
    X = rows[:, :2].astype(float)
    features = [
        Feature.numeric(f"x{j}", low=low, high=high)
        for j, (low, high) in enumerate(zip(X.min(axis=0), X.max(axis=0), strict=True))
    ]
    return Schema([*features, Feature.categorical("t", sorted(set(rows[:, 2])))], public=False)


@pytest.mark.parametrize("marginals", [False, True])
def test_a_report_is_the_same_whatever_the_values_are(marginals):
    """No place, width or tick of a figure, and no word, tells a range or a text: two tables that
    differ in these only have the same page, to the letter."""
    pages = []
    for rows in (scaled(1.0, "abc"), scaled(1024.0, "xyz")):
        schema = read_off(rows)
        plan = Plan.marginals(schema) if marginals else Plan.draw(schema, random_state=0)
        sketch = Sketch.from_data(plan, rows)
        scores = None
        if not marginals:
            scorer = Scorer(sketch)
            scores = score_rows(scorer, scorer.auto_offset(), as_reader(rows), shown=RowsToShow(5))
        made = gather(Subject("m.hush", "sketch", sketch), scores=scores)
        text = page.html(made.page).replace(plan.plan_id, "ID").replace(made.page.made_by, "NOW")
        pages.append(re.sub(r"#[0-9a-zA-Z_]+", "#", text))
    assert pages[0] == pages[1]


def test_inspect_counts_texts_and_shows_none(here, run):
    """Finding 7, on the owner's screen: a screen is looked at, copied and pasted."""
    for name in ("hushtable", "lsh-itables", "plan", "sketch", "marginals"):
        file = here / f"{name}.hush"
        code, said = run("inspect", file)
        assert code == 0
        clean(said)
        said = " ".join(said.split())
        assert "Values of rows texts of name (48), diagnosis (3), patient (80), note (30), " in said
        assert "and the lowest and highest value of 2 columns" in said
        code, said = run("inspect", file, "--json")
        clean(said)
        facts = json.loads(said)
        assert facts["texts"] == TEXTS
        assert not any({"low", "high", "categories"} & set(one) for one in facts["features"])
        asked = json.loads(run("inspect", file, "--json", "--values")[1])
        assert asked["features"][1]["categories"] == sorted(DIAGNOSES)
        assert asked["features"][4]["high"] == 123456.789
        assert "schizophrenia" in run("inspect", file, "--values")[1]


def test_fit_says_what_the_model_holds(here, run, tmp_path):
    """Finding 7: who hands a model on knows which columns' texts go with it."""
    words = ["fit", here / "rows.csv", "--drop", "name,note", "--as", "patient=category",
             "-o", tmp_path / "m.hush"]  # fmt: skip
    code, said = run(*words)
    assert code == 0, said
    clean(said)
    said = " ".join(said.split())
    assert "It contains values of your rows (texts of diagnosis (3), patient (80), and the" in said
    code, said = run(*words, "--json")
    clean(said)
    assert json.loads(said)["texts"] == {"diagnosis": 3, "patient": 80}


def test_fit_refuses_names_numbers_and_notes_unless_told(here, run, tmp_path):
    """Finding 7: identifiers and free text went into a model unseen, whole."""
    out = tmp_path / "m.hush"
    code, said = run("fit", here / "rows.csv", "-o", out)
    assert code == 1
    assert not out.exists()
    clean(said)
    assert "name: 48 different texts, of 2 words and 15 letters on average: names or" in said
    assert "patient: 80 different texts, most of them long codes" in said
    assert "note: 30 different texts, of 9 words and 56 letters on average" in said
    assert "diagnosis" not in said
    assert "Add: --drop name,patient,note" in said


def test_plan_check_against_a_model_shows_none_of_its_texts(here, run, tmp_path):
    """Finding 7: a colleague's rows are checked against a model, and its values stay in it."""
    other = columns()
    other["diagnosis"], other["income"] = ["none", "nil"] * (N // 2), [1e7 + i for i in range(N)]
    code, said = run("plan", "check", here / "hushtable.hush", write(tmp_path / "o.csv", other))
    assert code == 0
    assert "its 3 categories read off rows. Are they spelled differently?" in " ".join(said.split())
    assert "a range read off rows. Are they in a different unit?" in " ".join(said.split())
    clean(said)


def test_plans_that_differ_say_in_which_column_and_not_in_what(here, run, tmp_path):
    """Finding 7: the error over two models' plans printed all texts and extremes of both."""
    schema = load(here / "plan.hush").schema
    for j in (1, 4):
        features = list(schema.features)
        features[j] = (
            Feature.categorical("diagnosis", DIAGNOSES[:2])
            if j == 1
            else Feature.numeric("income", low=17.03125, high=123456.5)
        )
        other = Plan.draw(Schema(features, public=False), random_state=0)
        Sketch.from_data(other, here / "rows.csv").save(tmp_path / "other.hush")
        with pytest.raises(PlanError, match=features[j].name) as error:
            load(tmp_path / "other.hush") + load(here / "sketch.hush")
        clean(str(error.value))
        both = tmp_path / "other.hush", here / "sketch.hush"
        (tmp_path / "part.hush").write_bytes((here / "part0.hush").read_bytes())
        for words in (["merge", *both], ["report", both[1], "--parts", tmp_path]):
            code, said = run(*words, "-o", tmp_path / "x.html")
            assert code == 1, said
            assert f"feature '{features[j].name}' has a different kind, range or categories" in said
            clean(said)
