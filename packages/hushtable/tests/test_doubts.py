"""Doubts are data: one table of sentences, and options as each place names them."""

import pyarrow as pa
import pytest

from hushtable.data import read, understand
from hushtable.data.options import RowOptions
from hushtable.data.understanding import refuse, schema_from_data
from hushtable.errors import DataError, in_shell
from hushtable.language import _, speaking
from hushtable.words.doubts import _COMPOSED, _EVIDENCE, _SENTENCES, doubt_words
from hushtable.words.options import on_page, typed_options, way

OPTIONS = [("missing", "a,b"), ("as", "x y=number"), ("drop", "z"), ("missing", "pain:99")]


def column(texts):
    """The understanding of one column of texts beside numbers."""
    beside = [f"{k % 7}" for k in range(len(texts))]
    return understand(pa.table({"x": texts, "beside": beside})).columns[0]


def test_options_are_named_as_they_are_typed():
    assert typed_options(OPTIONS) == (
        "missing=['a,b', 'pain:99'], kinds={'x y': 'number'}, drop=['z']"
    )
    assert way([]) == ""
    assert way(OPTIONS[2:3], before=[("drop", "id")]) == (
        "\nIn Python: hushtable.data.read(data, drop=['id', 'z'])"
    )
    either = [("decimal", ","), ("decimal", "."), ("dates", "mdy"), ("dates", "dmy")]
    assert typed_options([*either, ("skip_lines", "2")]) == (
        "decimal='./,', dates='dmy/mdy', skip_lines=2"
    )
    with in_shell():
        assert typed_options(OPTIONS) == "--missing '\"a,b\",pain:99' --as 'x y=number' --drop z"
        assert typed_options([*either, ("skip_lines", "2")]) == (
            "--decimal ./, --dates dmy/mdy --read skip_lines=2"
        )
        assert way([("decimal", ",")]) == "\nAdd: --decimal ,"


def test_a_page_names_its_buttons_in_its_language():
    one = column(["05/11/2026", "01/02/2026"])
    with on_page():
        assert one.question.endswith("(“day, month, year” or “month, day, year”)")
        with speaking("de"):
            assert one.question.endswith("(„Tag, Monat, Jahr“ oder „Monat, Tag, Jahr“)")
    assert one.question.endswith("(dates='dmy' or dates='mdy')")
    assert one.doubt.options == (("dates", "dmy"), ("dates", "mdy"))
    assert (one.doubt.column, one.doubt.kind, one.doubt.example) == (
        "x", "either_order", "05/11/2026",
    )  # fmt: skip


def test_each_sentence_is_translated():
    with speaking("de"):
        assert [key for key, text in _EVIDENCE.items() if _(text) == text] == []
        same = {key for key, text in _SENTENCES.items() if _(text) == text}
        assert same == {"reading", "texts", "identifiers"}  # the evidence, which is translated
    assert not _COMPOSED.keys() & _SENTENCES.keys()
    with pytest.raises(KeyError):
        doubt_words("no such kind", {})


def test_equal_doubts_are_one_line():
    table = {name: ["1.5", "?", "2.5"] * 20 for name in ("a", "b", "c")} | {
        "d": ["1.5", "ERR"] * 30
    }
    seen = understand(pa.table(table))
    with pytest.raises(DataError) as error:
        refuse(seen.columns, seen.reading, "rows")
    lines = str(error.value).splitlines()
    assert [line.split(":")[0] for line in lines[1:3]] == ["  a, b and c", "  d"]
    assert lines[-1] == "In Python: hushtable.data.read(data, missing=['?', 'ERR'])"


@pytest.mark.parametrize(
    ("texts", "kind", "options"),
    [
        # More than a tenth of the rows hold values with digits, which an option would lose.
        ([*map(str, range(20))] * 3 + ["22-23", "24-25"] * 9, "exceptions", [("as", "x=category")]),
        ([f"{k}.5" for k in range(60)] + ["?"] * 30, "exceptions", [("missing", "?")]),
        ([f"{k},5" for k in range(60)] + ["1,066,000"], "exceptions", []),
        ([f"{k}.5" for k in range(60)] + ["<5", "5.3 H"], "exceptions", [("as", "x=number")]),
        (["(7)", "8", "9", "(12)", "9"] * 12, "brackets", []),
        (["5", "agree", "3", "neutral", "1", "disagree"] * 10, "likert", [("as", "x=category")]),
        (["1 - never", "2", "5 - always", "3"] * 10, "likert", [("as", "x=category")]),
        ([f"{k}.5 ± 0.4" for k in range(60)], "foreign", [("drop", "x")]),
        (["12.3 ± 0.4", "11.8 ± 0.4"] * 30, "foreign", [("as", "x=category")]),
    ],
)
def test_an_option_was_tried_before_it_is_proposed(texts, kind, options):
    one = column(texts)
    assert (one.doubt.kind, list(one.options), one.refused) == (kind, options, True)


def test_a_word_among_numbers_is_no_scale():
    assert column([*"12345"] * 12 + ["ERR"]).doubt.kind == "exceptions"
    assert column(["1 - never", "2 - at times", "3 - always"] * 10).doubt is None


def test_zeros_far_from_all_others_are_asked_about():
    values = [120.0 + k % 37 for k in range(300)]
    values[::20] = [0.0] * 15
    [one] = understand(pa.table({"pressure": values})).columns
    assert (one.doubt.kind, one.options, one.asked) == ("codes", (("missing", "0"),), True)
    values[:180] = [0.0] * 180  # in most rows, they are what is usual
    assert understand(pa.table({"pressure": values})).columns[0].doubt is None
    assert (
        understand(pa.table({"count": [float(k % 40) for k in range(300)]})).columns[0].doubt
        is None
    )


def test_codes_in_many_rows_stay_an_option():
    texts = [f"{20 + k % 37},{k % 10}" for k in range(300)]
    texts[::4] = ["-999"] * 75
    one = column(texts)
    assert (one.doubt.kind, one.options) == ("codes", (("missing", "-999"),))


def test_a_doubt_without_an_option_shows_rows_of_the_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x;y\n" + "".join(f"{k},5;{k}\n" for k in range(60)) + "1,066,000;7\n8,5;9\n")
    with pytest.raises(DataError) as error:
        schema_from_data(read(path))
    assert "line 62" in str(error.value)
    assert "the rows from there on: '1,066,000;7', '8,5;9'" in str(error.value)
    assert "In Python" not in str(error.value)


def test_options_as_typed_are_read_again(tmp_path):
    path = tmp_path / "a.csv"
    rows = [f"{k % 9}{'.5' * (k < 9)},{90 + k}\n" for k in range(60)]
    path.write_text("".join(["pain,pulse\n", *rows, *["99,99\n"] * 8]))
    [pain, _pulse] = understand(path).columns
    assert pain.options == (("missing", "pain:99"),)
    again = understand(RowOptions(missing="pain:99").open(str(path)))
    assert [one.doubt for one in again if one.name == "pain"] == [None]
