"""Things in a notebook: their pages, and the line that long calls show."""

import io
import re
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from hushtable import Feature, HushTable, LocalModel, Plan, Schema, Sketch, progress
from hushtable.describe import describe_ledger
from hushtable.display import MOST_ROWS, View, html
from hushtable.kernels import notice
from notebook_pages import Page

LOW, HIGH, TEXT = 17.125, 93.625, "a rare text"


@pytest.fixture(scope="module")
def rows():
    """Rows whose lowest and highest value and whose texts are easily found again."""
    age = np.linspace(LOW, HIGH, 400)
    return pd.DataFrame({"age": age, "ward": [TEXT, *["usual"] * 399]})


@pytest.fixture(scope="module")
def public():
    return Schema([Feature.numeric("age", low=0, high=99), Feature.categorical("ward", ["usual"])])


@pytest.fixture(scope="module")
def things(rows, public):
    plan = Plan.draw(public, n_tables=10, random_state=0)
    sketch = Sketch.from_data(plan, rows)
    mine, theirs = sketch.release(epsilon=1.0), sketch.release(epsilon=1.0)
    fitted = HushTable(n_tables=10, passes=2, random_state=0).fit(rows)
    return {
        "Schema": public,
        "Schema of rows": fitted.plan_.schema,
        "Plan": plan,
        "Plan of rows": fitted.plan_,
        "Sketch": sketch,
        "Sketch of rows": fitted.sketch_,
        "Release": mine + theirs,
        "LocalModel": LocalModel.of(mine + theirs, mine.release_id, mine.counts, sketch.counts),
        "Ledger": mine.ledger,
    }


NAMES = (
    *("Schema", "Schema of rows", "Plan", "Plan of rows", "Sketch", "Sketch of rows"),
    *("Release", "LocalModel", "Ledger"),
)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_stands_by_itself_and_shows_no_value_of_a_row(things, name):
    page = Page(things[name])
    assert set(page.tags) <= {"div", "p", "b", "table", "tr", "th", "td"}
    assert page.sentences
    assert page.cells
    text = " ".join((*page.sentences, *page.cells))
    assert not re.search(r"17\.1|93\.6|a rare text", text)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Schema", "Schema. This schema holds no data of rows"),
        ("Schema of rows", "This schema holds values of rows: texts of ward (2), and the lowest"),
        ("Plan", "This plan discloses nothing about any row."),
        (
            "Plan of rows",
            "This plan discloses something about rows, and nothing can be released under it",
        ),
        ("Sketch", "Raw sketch. This must not leave the site"),
        ("Sketch of rows", "Raw sketch. This must not leave the site"),
        ("LocalModel", "Local model. This must not leave the site"),
        ("Release", "Release. Adding or removing one record changes the probability"),
        ("Ledger", "Ledger. Adding or removing one record changes the probability"),
    ],
)
def test_the_sentence_that_matters_comes_first(things, name, said):
    assert said in Page(things[name]).sentences[0]


def test_pages_say_what_the_officer_signs(things):
    ledger = things["Release"].ledger
    assert Page(things["Release"]).sentences == [
        "Release. " + describe_ledger(ledger)[0],
        *describe_ledger(ledger)[1:],
    ]
    assert "Only its release may leave" in Page(things["Sketch"]).sentences[1]
    assert "It cannot be released either" in Page(things["Sketch of rows"]).sentences[1]
    assert "0 to 99" in Page(things["Schema"]).cells  # public, and shown


def test_texts_of_anybody_s_file_are_escaped_and_cut():
    bad = "<script>alert('x')</script>&\x1b[31m\u202e"
    schema = Schema([Feature.numeric(bad, low=0, high=1, unit="<i>")])
    assert "<script" not in schema._repr_html_()
    page = Page(schema)
    assert "<script>alert('x')</script>&\ufffd[31m\ufffd" in page.cells
    long = Schema([Feature.numeric(f"{j} {'x' * 500}", low=0, high=1) for j in range(100)])
    assert len(long._repr_html_()) < 20_000
    assert Page(long).sentences[-1] == f"and {100 - MOST_ROWS} more"
    assert "and" not in Page(html(View("Schema", ["Said."], {}, ["n"], [["1"]] * 20))).sentences[-1]


# --- progress ---------------------------------------------------------------------------------


@pytest.fixture
def at_once(monkeypatch):
    """Show every state of the line, without waiting for it."""
    monkeypatch.setattr(progress, "SILENT", 0.0)
    monkeypatch.setattr(progress, "EVERY", 0.0)
    monkeypatch.delenv("HUSHTABLE_PROGRESS", raising=False)


def stream(batches):
    """Return matrices as a stream of Arrow, whose length no one knows."""
    names = [f"feature_{j}" for j in range(4)]
    schema = pa.schema([(name, pa.float64()) for name in names])
    some = (pa.record_batch(list(batch.T), schema=schema) for batch in batches)
    return pa.RecordBatchReader.from_batches(schema, some)


def states(err):
    """Return what the line showed, one after the other."""
    return [state.strip() for state in re.split(r"[\r\n]", err) if state.strip()]


def test_a_fit_at_a_prompt_shows_its_passes_and_takes_its_line_away(
    at_once, X, capsys, monkeypatch
):
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    detector = HushTable(n_tables=10, passes=2, contamination=0.1, random_state=0).fit(X)
    err = capsys.readouterr().err
    seen = states(err)
    assert seen[0] == "Fitting: pass 1, 500 of 500 rows, 0 s"
    assert len(seen) > 3  # ranges, marginals, counts, dense rows, threshold: in one line
    assert all(re.fullmatch(r"Fitting: pass \d, 500 of 500 rows, \d s", state) for state in seen)
    assert err.endswith(f"\r{' ' * len(seen[-1])}\r")
    detector.score_samples(X)
    assert states(capsys.readouterr().err) == ["Scoring: pass 1, 500 of 500 rows, 0 s"]
    Sketch.from_data(detector.plan_, stream([X[:100], X[100:]]))
    assert states(capsys.readouterr().err)[-1].startswith("Counting: pass 1, 500 rows")


@pytest.mark.parametrize(
    ("said", "prompt", "shown"),
    [(None, False, False), ("0", True, False), ("1", False, True), ("", True, True)],
)
def test_who_is_shown_progress(at_once, X, capsys, monkeypatch, said, prompt, shown):
    if said is not None:
        monkeypatch.setenv("HUSHTABLE_PROGRESS", said)
    monkeypatch.setattr(progress, "_FORCED", said == "1")
    if prompt:
        monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    HushTable(n_tables=10, random_state=0).fit(X)
    assert ("Fitting" in capsys.readouterr().err) == shown


def test_short_work_shows_nothing_and_failed_work_leaves_nothing(X, capsys, monkeypatch):
    monkeypatch.setattr(progress, "_FORCED", True)
    HushTable(n_tables=10, random_state=0).fit(X)
    assert "rows" not in capsys.readouterr().err
    monkeypatch.setattr(progress, "SILENT", 0.0)

    def broken():
        yield X
        raise RuntimeError("the source broke")

    detector = HushTable(n_tables=10, random_state=0).fit(X)
    capsys.readouterr()
    with pytest.raises(RuntimeError, match="the source broke"):
        Sketch.from_data(detector.plan_, stream(broken()))
    assert capsys.readouterr().err.endswith(" \r")
    assert progress.begin_pass(None) is None


def test_compiling_is_said_above_the_line_and_a_closed_stderr_stops_nothing(
    at_once, capsys, monkeypatch
):
    monkeypatch.setattr(progress, "_FORCED", True)

    @progress.shown("Working")
    def work():
        line = progress.begin_pass(None)
        line.add(1)
        notice.say("Compiling ...")
        line.add(1)

    work()
    first, compiling, second = states(capsys.readouterr().err)
    assert compiling == "Compiling ..."
    assert (first, second) == ("Working: pass 1, 1 rows, 0 s", "Working: pass 1, 2 rows, 0 s")
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", closed := io.StringIO())
        closed.close()
        line = progress.ProgressLine("Working")
        line.add(1)
        line.end()


def test_commands_show_their_own_progress_only(at_once, rows, tmp_path, capsys, monkeypatch):
    from hushtable.cli import main

    monkeypatch.setattr(progress, "_FORCED", True)
    rows.to_parquet(tmp_path / "rows.parquet")
    arguments = ["fit", tmp_path / "rows.parquet", "-o", tmp_path / "m.hush"]
    assert main([str(argument) for argument in arguments]) == 0
    assert "Fitting:" not in capsys.readouterr().err
