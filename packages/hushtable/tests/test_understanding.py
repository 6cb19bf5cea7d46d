"""What columns are taken for, what is refused, and the options that resolve it."""

import re
import warnings

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from hushtable import Feature, HushTable, Schema, load
from hushtable.data import read, understand
from hushtable.data.texts.reading import ColumnReading, Reading
from hushtable.data.typed import open_rows
from hushtable.errors import DataError, UsageError

pytestmark = pytest.mark.usefixtures("shell")  # messages name options

NUMBERS = [f"{x:.2f}" for x in np.random.default_rng(0).normal(5, 1, 60)]


def column(texts, **options):
    [one] = understand(pa.table({"x": texts}), **options)
    return one


@pytest.mark.parametrize(
    ("texts", "kind", "option", "refused"),
    [
        (NUMBERS, "number", "", False),
        ([*NUMBERS, "ERR"], "number", "--missing ERR", True),
        ([*NUMBERS, "-", "?"], "number", "--missing '-,?'", True),
        ([*NUMBERS, "<0.5"], "number", "--as x=number", True),
        ([*NUMBERS, "5.3 H"], "number", "--as x=number", True),
        ([*NUMBERS, "-9999"], "number", "--missing -9999", False),
        ([*NUMBERS, "9999999"], "number", "--missing 9999999", False),
        ([*NUMBERS, "-9999", "88888", "88888"], "number", "--missing -9999,88888", False),
        ([t.replace(".", ",") for t in NUMBERS], "number", "", False),
        ([f"{text}C" for text in NUMBERS], "number", "", False),
        (["12A", "13B", "12A"], "category", "", False),
        (["12,50 S", "3,00 H", "1,25 S"], "number", "--drop x", True),
        (["12,50 DR", "3,00 CR", "1,25 DR"], "number", "--drop x", True),
        (["10:35 AM", "1:05 PM"], "number", "", False),
        (["10:35", "11:05", "11:15", "7"], "number", "--drop x", True),
        (["5 kg", "6", "7 kg"], "number", "--drop x", True),
        ([f"0171/{i:06}" for i in range(90)], "category", "--drop x", True),
        (["20-29", "30-39"], "category", "--as x=category", False),
        (
            [f"{i % 28 + 1:02}.{i % 12 + 1:02}." for i in range(300)],
            "category",
            "--as x=category",
            True,
        ),
        (["1,234", "2,500"], "number", "--decimal ./,", True),
        (["1,234", "2,500.5"], "number", "", False),
        (["12 EUR", "13 USD", "14 EUR"], "number", "--drop x", True),
        (["12%", "13", "14"], "number", "--drop x", True),
        (["2026-05-15", "2026-05-16"], "date", "", False),
        (["15.05.2026", "01.02.2026"], "date", "", False),
        (["05/06/2026", "01/02/2026"], "date", "--dates dmy/mdy", True),
        (["15/06/2026", "01/02/2026"], "date", "", False),
        (["15/06/2026", "01/22/2026"], "date", "--drop x", True),
        (["10:35", "11:05"], "number", "", False),
        (["true", "FALSE", "true"], "number", "", False),
        (["yes", "no", "yes"], "category", "", False),
        (["007", "012", "007"], "category", "", False),
        ([*map(str, range(100, 400, 2)), "07"], "number", "--as x=number", True),
        (["w", "w", "w"], "constant", "", False),
        ([None, None], "empty", "--drop x", True),
        (["", " "], "empty", "--drop x", True),
        (["nan", "NaN"], "empty", "--drop x", True),
        ([f"P-{i:08}" for i in range(60)], "id", "--drop x", False),
        ([f"patient {i} was seen" for i in range(60)], "text", "--drop x", False),
        ([str(i) for i in range(100, 160)], "id", "--drop x", False),
        (np.arange(60.0), "id", "--drop x", False),
        (np.arange(60.0) / 2, "number", "", False),
        (np.zeros(60), "constant", "", False),
        ([*np.linspace(0, 1, 60), -9999.0], "number", "--missing -9999", False),
    ],
)
def test_what_a_column_is(texts, kind, option, refused):
    one = column(texts)
    assert (one.kind, one.option, one.refused) == (kind, option, refused)
    assert bool(one.option) <= bool(one.question)


SERIALS = [f"{day:02}.05.2026" for day in range(1, 20)]


@pytest.mark.parametrize(
    ("texts", "kind", "lost", "example"),
    [
        ([*NUMBERS, "ERR", "ERR", "n.b."], "number", 3, "'ERR' in row 60 and 1 more"),
        ([*NUMBERS, "<0.5", "ERR"], "number", 1, "'ERR' in row 61"),
        ([*NUMBERS, *(f"bad {i}" for i in range(200))], "number", 200, "rows with other texts"),
        (["12", "13", "\u00bd"], "number", 1, "in row 2"),
        ([*SERIALS, "451230", "451240"], "date", 2, "'451230' in row 19"),
        ([*SERIALS, "15/mai"], "date", 1, "'15/mai' in row 19"),
        (["05/15/2026", "01/22/2026", "22.05.2026"], "date", 1, "'22.05.2026' in row 2"),
    ],
)
def test_what_an_asked_kind_loses_is_counted_and_shown(texts, kind, lost, example):
    one = column(texts, kinds={"x": kind}, dates="mdy" if texts[0][0] == "0" else None)
    if lost == len(texts) - 1:
        assert one.refused
    values = "value becomes" if lost == 1 else "values become"
    assert one.question.startswith(f"as requested, {lost} {values} missing: ")
    assert example in one.question
    rows = read(pa.table({"x": texts}), kinds={"x": kind}, dates=one.reading.dates)
    with pytest.warns(UserWarning, match=f"^x: as requested, {lost} value") as caught:
        detector = HushTable(n_tables=5, random_state=0).fit(rows)
    assert caught[0].filename == __file__  # it names the caller's line
    assert detector.sketch_.tally[0, 0] == lost


@pytest.mark.parametrize(
    ("texts", "option", "words"),
    [
        (
            [*SERIALS, "45123", "45124", "n/a"],
            "--as x=date",
            r"'45123' in row 19.*Excel counts them: 45123 is 2023-07-16; .* lose 1 of 22 values",
        ),
        ([*SERIALS, *(f"{d}/mai" for d in range(1, 18))], "--as x=date", "lose 17 of 36 values"),
        ([*NUMBERS, "<0.5", "ERR"], "--as x=number", "lose 1 of 62 values.*'ERR' in row 61"),
        ([*NUMBERS, "<0.5"], "--as x=number", "'<0.5' in row 60$"),
        (["20.8%", "22", "31%"], "--drop x", "convert them to one unit; leave the column out"),
    ],
)
def test_a_remedy_says_what_it_loses(texts, option, words):
    one = column(texts)
    assert (one.option, one.refused) == (option, True)
    assert re.search(words, one.question), one.question


@pytest.mark.parametrize("n", [1, 300])
def test_times_of_two_and_of_three_parts_are_on_two_scales(n):
    short = [f"{46 + i % 9}:{i % 60:02}" for i in range(n)]
    one = column([*short, "1:04:38", "1:25:43"])
    assert (one.option, one.refused) == ("--drop x", True)
    assert (
        f"'1:04:38' in row {n}, so those of two, such as '46:00' in row 0, may be" in one.question
    )
    assert not column([f"0:{text}" for text in short] + ["1:04:38"]).refused
    assert not column(["10:35", "11:20 am", "9h05", "7:15 Uhr"]).refused


QUARTERS = [f"{9 + i % 6}.{i % 4 * 15:02}" for i in range(60)]


@pytest.mark.parametrize(
    ("texts", "name", "asked"),
    [
        (QUARTERS, "Uhrzeit", True),
        (["08.30", *QUARTERS], "x", True),
        (QUARTERS, "x", False),
        ([*QUARTERS, "9.75"], "Uhrzeit", False),
        (QUARTERS[:50], "Uhrzeit", False),
    ],
)
def test_numbers_that_may_be_times_of_day_are_asked_about(texts, name, asked):
    [one] = understand(read(pa.table({name: texts})))
    assert one.question.startswith("none has more than 59 hundredths: if they are" * asked)
    assert (one.kind, one.refused) == ("number", asked)


def test_numbers_with_a_decimal_point_beside_columns_with_commas_are_asked_about():
    """It ended in an error of Python's own."""
    commas = [f"{i},5" for i in range(60)]
    table = {"a": commas, "b": ["7", *(f"{i}.25" for i in range(59))], "c": commas}
    assert [one.refused for one in understand(pa.table(table))] == [False, True, False]
    assert (
        "'0.25' in row 1: the other columns have" in understand(pa.table(table)).columns[1].question
    )


def test_a_text_that_other_columns_hold_is_not_taken_out_of_them():
    kinds = ["a", "b", "Unknown"]
    table = {
        "age": ["Unknown", *map(str, range(20, 79))],
        "kind": [kinds[i % 3] for i in range(60)],
    }
    one, other = understand(pa.table(table))
    assert (one.option, one.refused, other.question) == ("--missing age:Unknown", True, "")
    also = {**table, "kind": ["Unknown", *map(str, range(20, 79))]}
    assert [one.option for one in understand(pa.table(also))] == ["--missing Unknown"] * 2


def test_bands_of_numbers_are_kept_as_categories():
    one = column([*map(str, range(12, 22)), "22-23", "24-25", "26-29", "30-34", "50-64", "65+"])
    assert (one.option, one.refused) == ("--as x=category", True)
    assert column([*NUMBERS, "16a"]).option == "--missing 16a"


def test_codes_with_letters_are_not_offered_as_numbers():
    tickets = [str(i * i) if i % 4 else f"A/5 {i * i}" for i in range(200)]
    assert column(tickets).option == "--drop x"
    assert "--as x=number would lose 50 of 200 values" in column(tickets).question
    assert column(["101", "102", "103", "4", "5", "A 6", "x", "<1"] * 9).option == (
        "--as x=category"
    )


def test_a_column_of_days_as_excel_counts_them(tmp_path):
    days = [str(40909 + i % 28) for i in range(60)]
    one = column(days, kinds={"x": "date"})
    assert (one.kind, one.evidence, one.refused) == ("date", "60 days as Excel counts them", False)
    (tmp_path / "a.csv").write_text("\n".join(["x", *days]))
    for source in (pa.table({"x": days}), tmp_path / "a.csv"):  # its rows are kept, once read
        rows = read(source, kinds={"x": "date"})
        [feature] = HushTable(n_tables=5, random_state=0).fit(rows).plan_.schema.features
        ends = np.array([feature.low, feature.high]).astype("datetime64[s]")
        assert ends.astype("datetime64[D]").astype(str).tolist() == ["2012-01-01", "2012-01-28"]
    one = column([*days, "n.b."], kinds={"x": "date"})
    assert one.question == "as requested, 1 value becomes missing: 'n.b.' in row 60"


@pytest.mark.parametrize("texts", [map(str, range(0, 60_000, 7)), ["40909", "n.b.", "7"]])
def test_numbers_that_are_not_all_days_are_not_read_as_days(texts):
    one = column([*texts], kinds={"x": "date"})
    assert (one.refused, one.option) == (True, "--drop x")
    assert re.match("[07] is not a day as Excel counts them", one.question)


def test_words_for_a_missing_value_are_asked_about_where_nothing_says_that_they_are():
    texts = [*("a", "b") * 9, "NA", "NA", "n/a"]
    one = column(texts)
    assert one.question == (
        "'NA' (2 rows) and 'n/a' (1 row): do they mean that the value is missing? If not, add "
        "--as x=category"
    )
    assert (one.option, one.asked, one.refused) == ("--missing NA,n/a", True, False)
    assert not column(texts, kinds={"x": "category"}).question
    assert not column(texts, missing=["NA", "n/a"]).question


@pytest.mark.parametrize("numbers", [NUMBERS, [f"{n}.5" for n in range(40)]])
def test_a_number_that_no_float_holds_is_asked_about(numbers):
    texts = [*numbers, "1E400"]
    one = column(texts)
    assert (one.option, one.refused, one.kind) == ("--missing 1E400", True, "number")
    assert f"'1E400' in row {len(numbers)}" in one.question
    again = read(pa.table({"x": texts}), missing=["1E400"])
    assert HushTable().fit(again).plan_.schema.features[0].high < 1e9


def test_a_column_whose_numbers_are_all_missing_is_refused():
    rows = pa.table({"x": ["999.000"] * 3, "y": ["1.5", "2.5", "3.5"]})
    with pytest.raises(DataError, match="column 'x': as it is read, all its values are missing"):
        HushTable().fit(read(rows, missing=["999"]))


@pytest.mark.parametrize(
    ("odd", "option"),
    [
        (["5.3*", "6.1*"], "--as x=number"),  # their values are kept
        (["#DIV/0!"] * 9, "--missing '#DIV/0!'"),
        ([f"~{n}.5" for n in range(9)], "--drop x"),
    ],
)
def test_no_option_makes_numbers_missing_or_categories(odd, option):
    one = column([*(f"{n}.25" for n in range(40)), *odd])
    assert (one.option, one.refused) == (option, True)


def test_no_option_makes_rows_of_the_words_for_totals():
    texts = [*NUMBERS, "Subtotal", "ERR", "Subtotal"]
    one = column(texts)
    assert one.question.endswith("; delete rows that sum up others")
    assert (one.option, one.refused) == ("--missing ERR", True)
    with pytest.raises(
        DataError,
        match=r"delete rows that sum up others; the rows from there on: 'Subtotal', 'ERR'",
    ):
        HushTable().fit(read(pa.table({"x": texts}), missing=["ERR"]))


@pytest.mark.parametrize("values", [np.arange(9_000), [*map(str, range(9_000))]])
def test_identifiers_state_how_many_numbers_were_compared(values):
    doubt = understand(pa.table({"x": values})).columns[0].question
    found = re.fullmatch(
        "whole numbers, no two of the first ([0-9,]+) equal: identifiers or row numbers", doubt
    )
    assert int(found[1].replace(",", "")) < 9_000
    assert column(values[:600]).question.startswith("600 whole numbers, no two equal: ")


@pytest.mark.parametrize("kind", ["number", "date"])
@pytest.mark.parametrize(
    "texts",
    [
        ["north", "south", "east"],
        ["\u00bd", "\u216b", None],
        ["?", "-", ".."],
        ["x12a4", "x1"],
    ],
)
def test_texts_of_which_none_is_what_somebody_asked_for(texts, kind):
    rows = read(pa.table({"x": texts, "y": range(len(texts))}), kinds={"x": kind})
    words = rf"x: none of its \d texts is a {kind}, for example .* in row 0: .*--as x=category"
    with pytest.raises(DataError, match=words) as refused:
        HushTable().fit(rows)
    assert "inf" not in str(refused.value)
    assert str(refused.value).endswith("Add: --drop x")


def test_other_columns_tell_the_decimal_sign_but_not_the_order_of_dates():
    table = {"a": ["1.234", "2.500"], "b": ["1,5", "2,25"]}
    assert understand(pa.table(table)).columns[0].reading.decimal == ","
    table = {"a": ["01/02/2026", "03/04/2026"], "b": ["15/02/2026", "01/02/2026"]}
    [one] = understand(pa.table(table)).refused
    assert (one.name, one.option) == ("a", "--dates dmy/mdy")


def test_fit_refuses_all_doubts_at_once_and_its_options_resolve_them():
    table = pa.table(
        {"a": [*NUMBERS, "ERR"], "b": [*["5/6/2026"] * 60, "7/8/2026"], "c": [None] * 61}
    )
    with pytest.raises(DataError) as refused:
        HushTable().fit(table)
    message = str(refused.value)
    assert "a: 60 numbers and 'ERR' in row 60" in message
    assert message.endswith("Add: --missing ERR --dates dmy/mdy --drop c")
    rows = read(table, missing=["ERR"], dates="dmy", drop=["c"])
    assert HushTable().fit(rows).plan_.schema.names == ["a", "b"]


def test_one_option_keeps_what_was_said_before():
    table = pa.table({"a": [*NUMBERS, "ERR", "-"]})
    with pytest.raises(DataError, match=r"Add: --missing ERR,-$"):
        HushTable().fit(read(table, missing=["ERR"]))


def test_the_scores_are_those_of_the_clean_table(tmp_path):
    values = np.array([float(text) for text in NUMBERS])
    clean = HushTable(random_state=0).fit(pa.table({"a": values}))
    german = pa.table({"a": [text.replace(".", ",") for text in NUMBERS]})
    dirty = HushTable(random_state=0).fit(german)
    expected = clean.score_samples(pa.table({"a": values}))
    np.testing.assert_array_equal(dirty.score_samples(german), expected)
    # What was decided is in the file, and holds for later rows.
    dirty.save(tmp_path / "m.hush")
    again = load(tmp_path / "m.hush")
    np.testing.assert_array_equal(again.score_samples(german.slice(0, 3)), expected[:3])
    with pytest.raises(DataError, match=r"'x' in row 1 is not a number.*\nAdd: --missing x"):
        again.score_samples(pa.table({"a": ["1,5", "x"]}))


def test_identifiers_warn_once_and_not_where_somebody_decided():
    table = pa.table({"id": [f"P-{i:08}" for i in range(60)], "x": NUMBERS})
    words = r"^columns \['id'\] look like identifiers.*drop=\['id'\]"
    with pytest.warns(UserWarning, match=words) as caught:
        HushTable().fit(table)
    assert caught[0].filename == __file__  # it names the caller's line
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        HushTable().fit(read(table, kinds={"id": "category"}))
        numbered = table.set_column(0, "id", pa.array(range(1000, 1060)))
        HushTable().fit(read(numbered, kinds={"id": "number"}))
        detector = HushTable().fit(read(table, drop=["id"]))
        detector.score_samples(table)  # what was dropped in fit may be there


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"drop": ["y"]}, DataError, "no column"),
        ({"kinds": {"y": "number"}}, DataError, "no column"),
        ({"columns": ["y"]}, DataError, "no column"),
        ({"drop": ["x"]}, DataError, "no column is left"),
        ({"kinds": {"x": "colour"}}, UsageError, "needs one of"),
    ],
)
def test_options_that_do_not_fit_the_rows(options, error, words):
    with pytest.raises(error, match=words):
        understand(pa.table({"x": NUMBERS}), **options)


def test_the_table_names_every_column():
    seen = understand(pa.table({"<b>": NUMBERS, "y": [*NUMBERS[:-1], "ERR"]}))
    assert [one.name for one in seen] == ["<b>", "y"]
    assert len(seen) == 2
    assert len(seen.doubts) == 1
    assert seen.options == "--missing ERR"
    assert "'ERR' in row 59" in str(seen)
    assert repr(seen) == str(seen)


def test_under_a_plan_texts_that_mean_one_thing_only_are_read(tmp_path):
    names = ["day", "moment", "hour", "valid"]
    schema = Schema([Feature.numeric(name, low=0, high=2e9) for name in names])
    (tmp_path / "a.csv").write_text(
        "day,moment,hour,valid\n2026-05-15,2026-05-15T10:00:00Z,10:35,true\n"
    )
    [batch] = open_rows(str(tmp_path / "a.csv"), schema).read()
    expected = [[1778803200.0], [1778839200.0], [38100.0], [1.0]]
    assert [column.to_pylist() for column in batch.columns] == expected
    (tmp_path / "b.csv").write_text("day,moment,hour,valid\n15.05.2026,,,\n")
    with pytest.raises(
        DataError, match=r"'15.05.2026' in line 2 of .* is not a number.*\nAdd: --as day=date"
    ):
        list(open_rows(str(tmp_path / "b.csv"), schema).read())


def test_the_way_out_of_a_unit_that_a_plan_does_not_have(tmp_path):
    """Read alone, the text is a number under each decimal sign: neither is the way."""
    schema = Schema([Feature.numeric("age", low=0, high=100)])
    (tmp_path / "a.csv").write_text("age\n12\n26 Jahre\n")
    with pytest.raises(DataError, match=r"'26 Jahre' in line 3 of .*\nAdd: --as age=number$"):
        list(open_rows(str(tmp_path / "a.csv"), schema).read())
    read = open_rows(str(tmp_path / "a.csv"), schema, Reading(kinds={"age": "number"}))
    assert [column.to_pylist() for batch in read.read() for column in batch] == [[12.0, 26.0]]


@pytest.mark.parametrize("texts", [["5.3", "true"], ["5.3", "10:35"], ["2026-05-15", "7"]])
def test_under_a_plan_numbers_are_no_times_dates_or_truths_besides(texts):
    schema = Schema([Feature.numeric("x", low=0, high=2e9)])
    with pytest.raises(DataError, match="is not a number"):
        list(open_rows(pa.table({"x": texts}), schema).read())


def test_a_later_word_keeps_the_decimal_sign_of_the_model():
    model = Reading(columns={"x": ColumnReading("number", ",")})
    column = model.updated(Reading(kinds={"x": "number"})).column("x")
    assert column.values(pa.array(["1.234", "1,5", "<0,5", "ERR"])).tolist()[:3] == [1234, 1.5, 0.5]


def test_births_with_two_digits_of_the_year_are_of_one_century():
    texts = [f"{40 + i % 50:02}-{i % 12 + 1:02}-{i % 28 + 1:02}" for i in range(200)]
    one = column(texts, dates="ymd")
    assert one.kind == "date"
    assert one.reading.pivot == 40
    [first] = one.reading.values(pa.array(texts[:1]))
    assert np.datetime64(int(first), "s") == np.datetime64("1940-01-01T00:00:00")


# --- declared types -------------------------------------------------------------------------------

_WARDS = np.random.default_rng(3).choice([3, 11, 27], 500)


def _frames_of_wards(wards: np.ndarray) -> dict[str, object]:
    x = np.random.default_rng(4).normal(size=len(wards))
    pd = pytest.importorskip("pandas")
    texts, plain = wards.astype(str), pl.DataFrame({"ward": wards.astype(str), "x": x})
    return {
        "pandas": pd.DataFrame({"ward": pd.Categorical(wards), "x": x}),
        "pandas with gaps": pd.DataFrame({"ward": pd.Categorical(wards.astype(float)), "x": x}),
        "pandas of texts": pd.DataFrame({"ward": pd.Categorical(texts), "x": x}),
        "polars": plain.with_columns(pl.col("ward").cast(pl.Categorical)),
        "polars enum": plain.with_columns(pl.col("ward").cast(pl.Enum(sorted(set(texts))))),
        "Arrow": pa.table({"ward": pa.array(wards).dictionary_encode(), "x": x}),
    }


@pytest.mark.parametrize("kind", _frames_of_wards(_WARDS))
def test_a_declared_category_of_whole_numbers_is_a_category(kind):
    frame = _frames_of_wards(_WARDS)[kind]
    fitted = HushTable(random_state=0).fit(frame)
    ward = fitted.plan_.schema.features[0]
    assert (ward.kind, ward.categories) == ("categorical", ("11", "27", "3"))
    one, _ = understand(frame)
    assert (one.kind, one.question) == ("category", "")
    # Ward 12 lies between 11 and 27, but nobody has ever been there.
    known, unseen = (_frames_of_wards(np.array([ward] * 2))[kind] for ward in (11, 12))
    assert (fitted.score_samples(unseen) < fitted.score_samples(known) - 2.0).all()


def test_a_declared_category_of_measurements_or_truths_stays_numbers():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"half": pd.Categorical(_WARDS / 2), "odd": pd.Categorical(_WARDS > 3)})
    assert [one.kind for one in understand(frame)] == ["number", "number"]


def test_a_kind_that_a_person_names_holds_for_numbers_too():
    pd = pytest.importorskip("pandas")
    for frame in (pd.DataFrame({"ward": _WARDS}), pa.table({"ward": _WARDS})):
        fitted = HushTable(random_state=0).fit(read(frame, kinds={"ward": "category"}))
        assert fitted.plan_.schema.features[0].categories == ("11", "27", "3")
        scores = [fitted.score_samples(pa.table({"ward": [ward] * 2}))[0] for ward in (11, 12)]
        assert scores[1] < scores[0] - 2.0


def test_a_model_in_which_a_declared_category_is_a_number_reads_it_as_before(tmp_path):
    pd = pytest.importorskip("pandas")
    x = np.random.default_rng(4).normal(size=500)
    before = HushTable(random_state=0).fit(pd.DataFrame({"ward": _WARDS, "x": x}))
    before.save(tmp_path / "old.hush")
    category = pd.DataFrame({"ward": pd.Categorical(_WARDS), "x": x})
    scores = load(tmp_path / "old.hush").score_samples(category)
    np.testing.assert_array_equal(scores, before.score_samples(category.astype(float)))
