"""The option --read: entries that are typed, and layout files."""

import tomllib

import pytest

from hushtable.data.layout_file import in_toml, read_entries
from hushtable.data.options import RowOptions
from hushtable.errors import FileError, UsageError

TABLE = "report\na;b;c\n" + "".join(f"{i},5;{i % 7};x{i % 3}\n" for i in range(60)) + "total;1;\n"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(TABLE, encoding="utf-16")
    return path


TYPED = (
    "--read", "encoding=utf-16", "--read", "skip-lines=1", "--read", "skip_footer=1",
    "--read", "delimiter=;", "--decimal", ",", "--drop", "c", "--as", "b=category",
)  # fmt: skip


def test_a_layout_file_reads_a_table_as_the_options_that_wrote_it(run, table, tmp_path):
    layout = tmp_path / "layout.toml"
    checked = run("check", table, *TYPED, "-o", layout)
    assert checked.code == 0, checked.err
    assert f"--read {layout}" in checked.out
    models = [tmp_path / "typed.hush", tmp_path / "read.hush"]
    for options, model in zip((TYPED, ("--read", layout)), models, strict=True):
        made = run("fit", table, *options, "--seed", 0, "--tables", 9, "-o", model)
        assert made.code == 0, made.err
    assert models[0].read_bytes() == models[1].read_bytes()


def test_a_file_takes_lists_and_tables_and_paths_beside_it(tmp_path):
    (tmp_path / "l.toml").write_text(
        'drop = ["a", "b, c"]\nas = { x = "number" }\nquery = "q.sql"\nskip_lines = 2\n'
    )
    assert read_entries([str(tmp_path / "l.toml"), "sheet=A!B:C"]) == {
        "drop": 'a,"b, c"', "as": "x=number", "query": str(tmp_path / "q.sql"), "skip_lines": 2,
        "sheet": "A!B:C",
    }  # fmt: skip


def test_a_zero_is_an_entry():
    options = RowOptions(skip_lines=0, skip_footer=0, no_header=False)
    assert options.layout_lines() == ["skip_lines = 0", "skip_footer = 0"]


def test_any_text_is_read_back_from_toml():
    text = 'a "b" \\ \x7f\n\u2028 ü 😀'
    assert tomllib.loads(f"{in_toml(text)} = {in_toml([text, 1, True])}") == {text: [text, 1, True]}


def test_a_query_may_contain_what_separates_entries():
    query = "SELECT a, b FROM t WHERE c = 'x=y'"
    assert read_entries([f"query={query}", "independent=true"]) == {
        "query": query,
        "independent": True,
    }


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        (["skip_lines=some"], "needs a whole number, 0 or more"),
        (["within=0"], "needs a whole number, 1 or more"),
        (["no_header=perhaps"], "needs true or false"),
        (["omop=persons"], "needs person or visit"),
        (["sheet="], "needs a text"),
        (["sheet=a", "sheet=b"], "sheet is given twice"),
        (["shet=a"], "no entry of that name: .*sheet, skip_below, skip_footer"),
    ],
)
def test_a_wrong_entry_is_refused_with_what_it_takes(entries, says):
    with pytest.raises(UsageError, match=says):
        read_entries(entries)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("skip_lines = '2'", "skip_lines = '2': needs a whole number"),
        ("header = false", "unknown entry 'header': known entries are as, by,"),
        ("drop = 3", "needs a text, or a list of texts"),
        ("decimal = ';'", "needs , or ."),
        ("= 1", "not a TOML file in UTF-8: .*line 1"),
    ],
)
def test_a_wrong_file_is_refused_with_its_entry(tmp_path, text, says):
    (tmp_path / "l.toml").write_text(text)
    with pytest.raises(FileError, match=f"l.toml: .*{says}"):
        read_entries([str(tmp_path / "l.toml")])


@pytest.mark.parametrize(
    ("option", "now"), [("--skip-lines", "skip_lines=..."), ("--no-header", "no_header=true")]
)
def test_an_earlier_option_says_where_it_went(run, option, now):
    refused = run("fit", "rows.csv", option, "3", "-o", "m.hush")
    assert refused.code == 2
    assert f"fit {option} is now an entry of --read: --read {now}" in refused.err
    assert "--read" not in run("merge", "a.hush", "--time", "at", "-o", "m.hush").err
