"""Messy files come right, or are refused with the option that makes them right; none is silent."""

import messy_labelled
import numpy as np
import pytest
from messy_clean import CLEAN
from messy_corpus import in_order, readers, verdict
from messy_files import CASES, Case, Cells, Style
from messy_judge import command_line, judge
from messy_tables import N_ODD, labelled, sensors

from hushtable import data

pytestmark = pytest.mark.usefixtures("shell")  # messages name options


def some(names):
    """Mark three of four for the slow run."""
    return [
        pytest.param(name, marks=[pytest.mark.slow] * (at % 4 > 0)) for at, name in enumerate(names)
    ]


@pytest.mark.parametrize("name", some(in_order()))
def test_a_messy_file_comes_right_or_says_how(name, tmp_path):
    verdict(CASES[name], tmp_path)


@pytest.mark.parametrize("name", some(name for name, case in in_order().items() if case.command))
def test_the_command_line_comes_right_or_says_how(name, tmp_path, run):
    case = CASES[name]
    command_line(case, case.file(tmp_path), run, tmp_path)


@pytest.mark.parametrize("name", some(CLEAN))
def test_a_clean_file_raises_no_alarm(name, tmp_path, run):
    case = CLEAN[name]
    file = case.file(tmp_path)
    seen = data.understand(file.path, **(
        {"drop": file.given[1].split(",")} if file.given else {}
    ))  # fmt: skip
    assert not seen.refused, str(seen)
    assert not list(seen.doubts), str(seen)
    assert judge(case, file, readers()).steps == 0
    result = run("fit", file.path, *file.given, "--seed", 0, "-o", tmp_path / "model.hush")
    assert (result.code, result.err) == (0, "")


def test_every_column_stands_in_the_table_of_what_was_understood(tmp_path):
    case = CASES["empty_and_constant_columns"]
    file = case.file(tmp_path)
    seen = data.understand(file.path)
    assert [one.name for one in seen] == file.table.names
    for one in seen:
        assert one.name in str(seen)
        assert one.name in seen._repr_html_()
        assert 0.0 <= one.confidence <= 1.0
        assert one.evidence


def test_the_line_is_right_below_notes_of_several_lines(tmp_path):
    """A row is not a line: texts in quotes hold line breaks."""
    table = CASES["texts_with_line_breaks"].table().pick("Verwendungszweck", "Betrag", "Saldo")
    notes = [f"{text}\nzweite Zeile" for text in table["Verwendungszweck"].values]
    table = table.put("Verwendungszweck", values=np.array(notes, object))
    cells = Cells(table, Style()).put("Betrag", {400: "storniert"})
    file = cells.write(tmp_path / "notes.csv", bad={"Betrag": ["storniert"]})
    judge(Case("notes", None, None, "refused"), file, readers())


def test_decisions_hold_for_later_files(tmp_path, run):
    """What was said for the first file is not asked again for the next."""
    case = CASES["dashes_and_question_marks"]
    first = case.file(tmp_path)
    options = command_line(case, first, run, tmp_path)
    assert options
    lines = first.lines()
    later = tmp_path / "later.csv"
    later.write_text("\n".join([lines[0], *lines[1:60], ""]), encoding="utf-8")
    scores = tmp_path / "later-scores.csv"
    result = run("score", later, "--model", tmp_path / "model.hush", "-o", scores)
    assert result.code == 0, result.err
    assert len(scores.read_text().splitlines()) == 60


@pytest.mark.slow
@pytest.mark.parametrize("habit", messy_labelled.HABITS, ids=lambda habit: habit.__name__)
@pytest.mark.parametrize("name", messy_labelled.SETS)
def test_labelled_sets_keep_their_accuracy(name, habit, data_dir, tmp_path):
    table = labelled(str(data_dir / f"{name}.npz"))
    judge(Case(name, habit, None), habit(table, tmp_path), readers(), n_tables=100)


@pytest.mark.slow
def test_one_err_at_line_900000_of_a_million(tmp_path):
    table = sensors(1_000_000).pick("temperature", "humidity", "vibration")
    assert table.odd.sum() == N_ODD
    cells = Cells(table, Style()).put("humidity", {899_998: "ERR"})
    file = cells.write(tmp_path / "million.csv", bad={"humidity": ["ERR"]})
    assert file.lines()[899_999].split(",")[1] == "ERR"
    found = judge(Case("million", None, None, "refused"), file, readers())
    assert found.options == "--missing ERR"
