"""``hushtable review`` and ``hushtable learn``: a session at a terminal, its log, and files."""

import csv
import io
import os
import stat
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from cli_helpers import contents, do, write_rows
from hushtable import Verdicts, load
from hushtable.errors import FileError
from hushtable.scores.verdict_log import COLUMNS, VerdictLog


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A folder with rows that have ids, and a model that was fitted without those."""
    here = tmp_path_factory.mktemp("review")
    lines = write_rows(here / "plain.csv", 400).read_text().splitlines()
    ids = ["id", *(f"{i:05}" for i in range(len(lines) - 1))]
    ids[8] = "=1+1"  # of row 7
    pairs = zip(ids, lines, strict=True)
    (here / "rows.csv").write_text("".join(f"{a},{b}\n" for a, b in pairs))
    do("fit", here / "plain.csv", "--seed", 1, "-o", here / "model.hush")
    do("fit", here / "plain.csv", "--seed", 2, "-o", here / "other.hush")
    return here


@pytest.fixture
def review(run, here, tmp_path, monkeypatch):
    """Type answers into a review."""
    monkeypatch.chdir(tmp_path)

    def review(typed, *options, data="rows.csv", model="model.hush"):
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{one}\n" for one in typed)))
        base = ["review", here / data, "--model", here / model, "--id", "id", "--who", "Ann"]
        return run(*base, *options)

    return review


def logged(path="rows.csv.verdicts.csv"):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


# --- a session ------------------------------------------------------------------------------------


def test_a_session_from_the_first_row_to_a_model(review, run, here, tmp_path):
    result = review(["o", "f", "n odd, but right", "s", "q"], "-o", "learned.hush")
    assert result.code == 0, result.err
    assert "Row 7, score" in result.out
    assert "income   199999" in result.out
    assert "high" in result.out
    assert "Reviewed 2 rows: 1 outlier, 1 fine." in result.out
    lines = logged()
    assert tuple(lines[0]) == COLUMNS
    assert [(one["verdict"], one["note"]) for one in lines] == [
        ("outlier", ""), ("fine", ""), ("skip", "odd, but right"),
    ]  # fmt: skip
    assert {one["who"] for one in lines} == {"Ann"}
    assert lines[0]["id"] == "'=1+1"  # which no spreadsheet program runs
    assert (lines[1]["row"], lines[1]["id"]) == (str(int(lines[1]["id"])), lines[1]["id"])
    for name in ("learned.hush", "rows.csv.verdicts.csv"):
        assert stat.S_IMODE(os.stat(name).st_mode) == 0o600
    detector, learned = load(here / "model.hush"), load("learned.hush")
    rows = [here / "plain.csv"]
    table = pa.csv.read_csv(rows[0]).take([int(one["row"]) for one in lines[:2]])
    assert learned.verdicts_ == Verdicts.from_data(detector.plan_, table, [1, 0])
    assert run("score", here / "plain.csv", "--model", "learned.hush", "-o", "s.csv").code == 0


def test_it_fits_80_columns(review):
    out = review(["?", "x", "q"], "--keep", "ward").out
    prompt = "o outlier, f fine, s skip, u undo, n note, q quit, ? help > "
    assert max(len(line.replace(prompt, "")) for line in out.splitlines()) <= 80
    assert len(prompt) < 80
    assert "rescan" in out


def test_it_goes_on_from_the_log(review):
    whole = review(["o", "f", "f", "o", "f"], "--log", "whole.csv", "--json").json
    review(["o", "f"], "-o", "first.hush")
    result = review(["f", "o", "f"], "-o", "second.hush", "--json")
    assert "Continuing from rows.csv.verdicts.csv: 2 answers." in result.err
    fields = ("rows", "looked_at", "outliers", "fine", "skipped", "by_score_alone", "verdicts")
    assert {name: result.json[name] for name in fields} == {name: whole[name] for name in fields}
    assert [one["row"] for one in logged()] == [one["row"] for one in logged("whole.csv")]
    # The log's verdicts are in the model: they count once.
    again = review(
        [], "--log", "whole.csv", "-o", "third.hush", model=os.path.abspath("second.hush")
    )
    assert "5 of them are in the model" in again.out
    assert load("third.hush").verdicts_ == load("second.hush").verdicts_


def test_undo_and_answers_by_number(review):
    typed = ["u", "o", "f", "u", "u", "f 7", "o 399999", "o x", "s", "q"]
    result = review(typed, "-o", "m.hush")
    assert "There is no answer to undo." in result.out
    assert result.out.count("Undone: row") == 2
    assert "row 399999 is not among the 400 lowest" in result.out
    assert "o x: type o alone, or with the number of a row" in result.out
    verdicts = [(one["row"], one["verdict"]) for one in logged()]
    assert verdicts[0] == ("7", "outlier")
    assert [verdict for _, verdict in verdicts[1:4]] == ["fine", "undo", "undo"]
    assert verdicts[4] == ("7", "fine")
    assert load("m.hush").verdicts_.n_fine == load("m.hush").verdicts_.n_rows == 1


def test_it_ends_after_n_rows(review):
    out = review(["f"] * 9, "--n", 3).out
    assert out.count("Row ") == 3
    assert len(logged()) == 3


def test_an_interrupted_session_loses_nothing(review, monkeypatch):
    answers = iter(["o", "f"])

    def interrupted(prompt):
        try:
            return next(answers)
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr("builtins.input", interrupted)
    result = review([], "-o", "m.hush")
    assert result.code == 130
    assert "Interrupted: rows.csv.verdicts.csv and m.hush had already been written." in result.err
    assert load("m.hush").verdicts_.n_rows == len(logged()) == 2


def test_a_model_of_merged_counts_becomes_a_detector(review, site, here):
    result = review(["o", "f"], "-o", "m.hush", model=site / "a.sketch.hush")
    assert result.code == 0, result.err
    assert type(load("m.hush")).__name__ == "HushTable"
    assert load("m.hush").verdicts_.n_rows == 2
    assert "By score alone, the 2 lowest rows would have held 1 of these outliers." in result.out


# --- the log --------------------------------------------------------------------------------------


def test_a_log_that_was_cut_is_reported_and_goes_on(review):
    review(["o", "f", "f"])
    whole, cut = Path("rows.csv.verdicts.csv").read_bytes(), Path("cut.csv")
    for length in range(len(whole) - 120, len(whole), 13):
        cut.write_bytes(whole[:length])
        result = review(["q"], "--log", "cut.csv", "--json")
        assert (
            "cut.csv: truncated in line 4: this was left out, and all other lines were used"
            in result.err
        ), length
        assert (result.json["looked_at"], result.json["model"]) == (2, None)
        assert cut.read_bytes() == whole[:length] + b"\n"
    review(["f"], "--log", "cut.csv")
    result = review(["q"], "--log", "cut.csv", "--json")
    assert result.json["looked_at"] == 3
    assert "truncated in line 4" in result.err


@pytest.mark.parametrize("length", [0, 1, 20, len(",".join(COLUMNS))])
def test_a_log_that_was_cut_in_its_first_line(review, length):
    Path("cut.csv").write_text(",".join(COLUMNS)[:length])
    assert review(["o"], "--log", "cut.csv", "--json").json["outliers"] == 1
    assert len(logged("cut.csv")) == 1


def test_texts_of_people_take_one_line_each(review, here):
    typed = ['n say "what", why', "o", "n\t=cmd()", "f", "q"]
    assert review(typed, "--who", "Ann,\nLee").code == 0
    assert len(logged()) == 2
    assert logged()[0]["note"] == 'say "what", why'
    assert logged()[0]["who"] == "Ann, Lee"
    assert review(["q"], "--json").json["looked_at"] == 2


def test_another_plan_other_rows_and_other_files_are_refused(review, here, tmp_path):
    review(["o", "f"])
    before = contents(tmp_path)
    other = review(["o"], model="other.hush")
    assert (other.code, contents(tmp_path)) == (1, before)
    assert "line 2: this verdict was given under another plan than the model's" in other.err
    lines = (here / "rows.csv").read_text().splitlines()
    (tmp_path / "turned.csv").write_text("\n".join([lines[0], *lines[:0:-1]]) + "\n")
    log = ("--log", "rows.csv.verdicts.csv")
    turned = review(["o"], *log, data=tmp_path / "turned.csv")
    assert "row 7 of" in turned.err
    assert "is not the row that was reviewed" in turned.err
    (tmp_path / "few.csv").write_text("\n".join(lines[:4]) + "\n")
    few = review(["o"], *log, data=tmp_path / "few.csv")
    assert "has 3 rows, numbered from 0" in few.err
    (tmp_path / "no.csv").write_text("a,b\n1,2\n")
    no = review(["o"], "--log", "no.csv")
    assert "no.csv is not a log of hushtable review" in no.err
    assert (tmp_path / "no.csv").read_text() == "a,b\n1,2\n"
    assert [one.code for one in (turned, few, no)] == [1, 1, 1]


def test_two_reviewers_at_once(review, tmp_path):
    review(["o"])
    log = VerdictLog(tmp_path / "rows.csv.verdicts.csv", logged()[0]["plan_id"], "Lee")
    with log.held():
        before = (tmp_path / "rows.csv.verdicts.csv").read_bytes()
        second = review(["o"])
        assert second.code == 1
        assert "another hushtable review or desk uses this log" in second.err
        assert (tmp_path / "rows.csv.verdicts.csv").read_bytes() == before
    assert review(["o"], "--json").json["looked_at"] == 2
    with pytest.raises(FileError, match="cannot write"), VerdictLog(tmp_path, "", "").held():
        pass


def test_what_a_review_refuses(review, run, here, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    base = ["review", "--model", here / "model.hush"]
    assert "rows cannot come from standard input" in run(*base, "-").err
    assert "give --log FILE" in run(*base, "https://user:pw@host/rows.csv").err
    assert (
        "is both the rows and the log"
        in run(*base, here / "rows.csv", "--log", here / "rows.csv").err
    )
    folder = tmp_path / "rows"
    folder.mkdir()
    (folder / "a.csv").write_bytes((here / "rows.csv").read_bytes())
    assert "would lie among the rows" in run(*base, folder, "--log", folder / "v.csv").err
    assert "no column ['no']" in run(*base, here / "rows.csv", "--id", "no").err
    assert "both read and written" in run(*base, here / "rows.csv", "-o", here / "model.hush").err
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]


# --- learn ----------------------------------------------------------------------------------------


@pytest.fixture
def learn(run, here, tmp_path, monkeypatch):
    """Learn a file with this text."""
    monkeypatch.chdir(tmp_path)

    def learn(text, *options, name="v.csv", model="model.hush", out="m.hush"):
        (tmp_path / name).write_text(text)
        return run("learn", here / model, name, *options, "-o", out)

    return learn


def expected(here, numbers, y):
    rows = pa.csv.read_csv(here / "plain.csv").take(numbers)
    return Verdicts.from_data(load(here / "model.hush").plan_, rows, y)


BY_NUMBER = "row,verdict\n7,outlier\n3, fine \n9,0\n12,1\n"


def test_verdicts_by_number_id_and_own_columns_are_the_same(learn, here, tmp_path):
    result = learn(BY_NUMBER, "--rows", here / "rows.csv", "--json")
    assert result.code == 0, result.err
    assert (result.json["outliers"], result.json["fine"]) == (2, 2)
    wanted = expected(here, [7, 3, 9, 12], [1, 0, 0, 1])
    assert load("m.hush").verdicts_ == wanted
    ids = "id,verdict\n=1+1,outlier\n00003,fine\n00009,fine\n00012,outlier\n"
    assert learn(ids, "--rows", here / "rows.csv", "--id", "id").code == 0
    assert load("m.hush").verdicts_ == wanted
    lines = (here / "plain.csv").read_text().splitlines()
    own = [f"{lines[0]},verdict,note"]
    own += [f"{lines[k + 1]},{y},x" for k, y in ((7, 1), (3, "fine"), (9, 0), (12, "outlier"))]
    result = learn("\n".join(own) + "\n")
    assert "Learned 2 outliers and 2 fine." in result.out
    assert "left out, because it is not a feature: note" in result.err
    assert load("m.hush").verdicts_ == wanted
    pq.write_table(pa.table({"row": [7, 3, 9, 12], "verdict": [1, 0, 0, 1]}), "v.parquet")
    do("learn", here / "model.hush", "v.parquet", "--rows", here / "rows.csv", "-o", "m.hush")
    assert load("m.hush").verdicts_ == wanted


def test_a_log_is_learned_as_the_review_would_write_it(review, run, here):
    review(["o", "f", "s", "f", "u", "o", "f 7"], "-o", "reviewed.hush")
    log = ["rows.csv.verdicts.csv", "--rows", here / "rows.csv"]
    assert run("learn", here / "model.hush", *log, "-o", "m.hush").code == 0
    assert load("m.hush").verdicts_ == load("reviewed.hush").verdicts_
    assert (
        "give the rows of that review with --rows DATA"
        in run("learn", here / "model.hush", log[0], "-o", "n").err
    )
    other = run("learn", here / "other.hush", *log, "-o", "n.hush")
    assert "under another plan" in other.err
    with open(log[0], "ab") as file:
        file.write(b"2026-01-01T00:00:00")
    cut = run("learn", here / "model.hush", *log, "-o", "m.hush")
    assert (cut.code, "truncated in line" in cut.err) == (0, True)


def test_verdicts_of_colleagues_add_up_and_are_forgotten(learn, run, here):
    rows = ("--rows", here / "rows.csv")
    learn("row,verdict\n7,1\n3,0\n", *rows, "--verdicts-only", out="monday.hush")
    learn("row,verdict\n9,0\n12,1\n", *rows, "--verdicts-only", out="tuesday.hush")
    assert isinstance(load("monday.hush"), Verdicts)
    assert stat.S_IMODE(os.stat("monday.hush").st_mode) == 0o600
    result = run("learn", here / "model.hush", "monday.hush", "tuesday.hush", "-o", "m.hush")
    assert result.code == 0, result.err
    assert load("m.hush").verdicts_ == expected(here, [7, 3, 9, 12], [1, 0, 0, 1])
    more = learn("row,verdict\n20,0\n", *rows, model=os.path.abspath("m.hush"), out="n.hush")
    assert "In total the model has learned 2 outliers and 3 fine rows." in more.out
    do("learn", "n.hush", "v.csv", *rows, "--forget", "-o", "o.hush")
    assert load("o.hush").verdicts_ == load("m.hush").verdicts_
    do("learn", "m.hush", "monday.hush", "tuesday.hush", "--forget", "-o", "o.hush")
    assert not hasattr(load("o.hush"), "verdicts_")
    never = run("learn", here / "model.hush", "monday.hush", "--forget", "-o", "x.hush")
    assert (never.code, "only verdicts that were learned" in never.err) == (2, True)
    other = run("learn", here / "other.hush", "monday.hush", "-o", "x.hush")
    assert "monday.hush: these verdicts were counted under a different plan" in other.err
    assert not os.path.exists("x.hush")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("row,verdict\n7,yes\n", "the verdict of row 0 is 'yes': each row needs outlier (or 1) or"),
        ("row,verdict\n7,outlier\n8,\n", "the verdict of row 1 is empty"),
        ("row,verdict\n7,nan\n", "the verdict of row 0 is empty"),
        ("row,verdict\n7,skip\n", "is 'skip'"),
        ("row,verdict\n", "no rows"),
        ("", "the file is empty"),
        ("row,note\n7,1\n", "has no column 'verdict': its columns are ['row', 'note']"),
        ("ident,verdict\n7,1\n", "has no column 'row', which identifies rows of"),
        ("row,verdict\n7,1\n,1\n", "row 1 does not identify a row"),
        ("row,verdict\n400,1\n", "names row 400, but"),
        ("row,verdict\n-1,1\n", "row '-1' is not the number of a row"),
        ("row,verdict\n7.5,1\n", "row '7.5' is not the number of a row"),
        ("row,verdict\n7,1\n8,0\n7,0\n8,1\n", "has contradictory verdicts on 7, 8: remove one"),
    ],
)
def test_files_that_are_refused(refused, here, tmp_path, text, words):
    (tmp_path / "v.csv").write_text(text)
    files = [here / "model.hush", tmp_path / "v.csv", "--rows", here / "rows.csv"]
    refused("learn", *files, "-o", tmp_path / "m.hush", says=words)


def test_ids_that_are_refused(refused, here, tmp_path):
    lines = (here / "rows.csv").read_text().splitlines()
    (tmp_path / "rows.csv").write_text("\n".join([*lines, lines[5]]) + "\n")
    learn = ["learn", here / "model.hush", tmp_path / "v.csv", "--rows", tmp_path / "rows.csv",
             "--id", "id", "-o", tmp_path / "m.hush"]  # fmt: skip
    for ids, words in (
        (["00004"], "has 00004 in several rows"),
        (["00009", "absent"], "has no row whose 'id' is absent"),
        ([f"x{i}" for i in range(9)], "is x0, x1, x2, x3, x4 and 4 more: give"),
    ):
        (tmp_path / "v.csv").write_text("id,verdict\n" + "".join(f"{one},1\n" for one in ids))
        refused(*learn, says=words)
    refused(
        *learn[:-3], "no", *learn[-2:], says="v.csv has no column 'no', which identifies rows of"
    )
    (tmp_path / "v.csv").write_text("ident,verdict\n00009,1\n")
    refused(*learn[:-3], "ident", *learn[-2:], says="rows.csv has no column ['ident']")


def test_other_columns_and_models_are_refused(refused, here, site, tmp_path):
    (tmp_path / "v.csv").write_text("age,verdict\n7,1\n")
    learn = ["learn", here / "model.hush", tmp_path / "v.csv", "-o", tmp_path / "m.hush"]
    refused(*learn, says="has no column ['income', 'ward']")
    refused(*learn, "--forget", "--verdicts-only", code=2, says="give only one of them")
    refused(*learn, "--rows", "-", code=2, says="--rows -: standard input can be read once")
    refused(*learn, "--id", "age", code=2, says="--id identifies rows of --rows: give both")
    refused(*learn[:2], site / "plan.hush", *learn[3:], says="holds a plan: give verdicts of")
    refused(*learn[:1], site / "marginals.sketch.hush", *learn[2:], says="which do not score")
    refused(*learn, "-o", here / "model.hush", code=2, says="both read and written")
