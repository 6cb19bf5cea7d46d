"""Bad rows, columns and options, through the command line: a clear error, and nothing lost."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.fixture
def csv(tmp_path):
    def csv(text, name="bad.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return csv


@pytest.fixture
def parquet(tmp_path):
    def parquet(columns):
        pq.write_table(pa.table(columns), tmp_path / "bad.parquet")
        return tmp_path / "bad.parquet"

    return parquet


@pytest.fixture
def readers(site, tmp_path, old):
    """The commands that read rows, without DATA; each would replace a file that is there."""
    scores = tmp_path / "old.csv"
    scores.write_bytes(b"precious")
    return {
        "fit": ["fit", "-o", old],
        "lsh": ["fit", "--detector", "lsh-itables", "-o", old],
        "score": ["score", "--model", site / "model.hush", "-o", scores],
        "score by sketch": ["score", "--model", site / "a.sketch.hush", "-o", scores],
        "sketch": ["sketch", "--plan", site / "plan.hush", "-o", old],
        "marginals": ["sketch", "--plan", site / "marginals.hush", "-o", old],
        "check": ["plan", "check", site / "plan.hush"],
        "check schema": ["plan", "check", site / "schema.toml"],
        "draft": ["plan", "draft"],
    }


COUNTING = ["score", "score by sketch", "sketch", "marginals"]
UNDER_A_PLAN = [*COUNTING, "check", "check schema"]
ALL = ["fit", "lsh", *UNDER_A_PLAN, "draft"]


@pytest.mark.parametrize("command", ALL)
def test_no_file_an_empty_file_or_no_rows(refused, readers, csv, parquet, tmp_path, command):
    arguments = readers[command]
    refused(*arguments, tmp_path / "none.csv", says=["none.csv: no such file", "check the path"])
    refused(*arguments, tmp_path / "none-*.csv", says=["none-*.csv: no such file"])
    refused(*arguments, csv(""), says="bad.csv: the file is empty")
    refused(*arguments, csv("age,income,ward\n"), says="bad.csv has no rows")
    empty = {"age": pa.array([], pa.float64()), "income": pa.array([], pa.float64())}
    refused(*arguments, parquet({**empty, "ward": pa.array([], pa.string())}), says="no rows")


@pytest.mark.parametrize("command", ALL)
def test_files_that_are_no_table(refused, readers, csv, command):
    arguments = readers[command]
    refused(*arguments, csv("1\n", "bad.doc"), says=["ends in", ".csv"])
    refused(*arguments, csv("1\n", "bad.xlsx"), says="bad.xlsx: not a workbook")
    refused(*arguments, csv("no", "bad.parquet"), says="not a readable Parquet file")
    refused(
        *arguments, csv("age,income,ward\n1,2,north\n3\n"), says="line 3 has 1 field, but needs 3"
    )
    refused(
        *arguments, csv("no", "bad.json.gz"), says=["bad.json.gz", "line 1 is not one JSON object"]
    )
    message = refused(*arguments, csv("age,income,ward\n1,2,north\n\x1b[2J\n"))
    assert "\x1b" not in message


def test_no_usable_column(refused, readers, parquet, csv):
    lists = parquet({"age": [[1.0], [2.0]], "income": [[1.0], [2.0]], "ward": ["north", "south"]})
    for command in ALL:
        refused(*readers[command], lists, says=["'age' has type list", "leave it out"])
    for command in ("fit", "lsh", "draft"):
        rows = csv("a,b\n1,2\n3,4\n")
        refused(*readers[command], rows, "--drop", "a,b", code=2, says="no column is left")


@pytest.mark.parametrize("command", UNDER_A_PLAN)
def test_wrong_columns(refused, readers, csv, command):
    arguments = readers[command]
    lacking = csv("age,ward\n50,north\n")
    refused(*arguments, lacking, says=["has no column ['income']", "matched by name"])
    renamed = csv("age,wage,ward\n50,1000,north\n")
    refused(*arguments, renamed, says="has no column ['income']; its other columns are ['wage']")


@pytest.mark.parametrize("command", ALL)
def test_columns_that_are_not_there(refused, readers, csv, command):
    rows = csv("age,income,ward\n50,1000,north\n")
    arguments = readers[command]
    refused(*arguments, rows, "--drop", "id", says=["no column ['id']", "its columns are ['age'"])
    refused(*arguments, rows, "--columns", "age,x", says=["no column ['x']", "'income'"])
    says = "--columns and --drop exclude each other"
    refused(*arguments, rows, "--columns", "age", "--drop", "ward", code=2, says=says)
    refused(*arguments, rows, "--columns", "age,age", code=2, says="names a column twice")
    twice = csv("age,age,ward\n50,51,north\n")
    says = "column 'age' is listed twice in line 1: rename one"
    refused(*arguments, twice, "--drop", "ward", says=says)


@pytest.mark.parametrize("command", UNDER_A_PLAN)
def test_text_in_a_numeric_column(refused, readers, csv, command):
    rows = csv("age,income,ward\n50,1000,north\nold,1000,north\n")
    says = ["column 'age': 'old' in line 3 of", "bad.csv is not a number: correct the value"]
    refused(*readers[command], rows, says=[*says, "--missing old\n"])


@pytest.mark.parametrize("command", ["fit", "lsh", *UNDER_A_PLAN])
@pytest.mark.parametrize("value", ["inf", "-inf"])
def test_infinities(run, refused, readers, csv, command, value):
    rows = csv(f"age,income,ward\n50,1000,north\n50,{value},north\n")
    refused(*readers[command], rows, says=[f"'{value}' in line 3 of", f"--missing {value}\n"])
    if command not in ("fit", "lsh"):  # which need two values
        assert run(*readers[command], rows, "--missing", value).code == 0


def test_values_outside_are_clipped_counted_and_reported(run, readers, csv):
    rows = csv("age,income,ward\n50,1e9,north\n-1,-5,west\n60,1000,south\n")
    for command in ("sketch", "score by sketch"):
        result = run(*readers[command], rows)
        assert result.code == 0
        lines = [line.split() for line in result.out.splitlines()]
        for line in (["age", "0", "1"], ["income", "0", "2"], ["ward", "0", "1"]):
            assert line in lines
        assert "Most rows lie outside in income" in result.out
        assert run(*readers[command], rows, "--json").json["tally"]["income"]["outside"] == 2


def test_a_column_without_a_value_is_reported_where_it_is_counted(run, readers, csv):
    rows = csv("age,income,ward\n50,,north\n-1,,west\n60,,south\n")
    result = run(*readers["sketch"], rows)
    assert "No row has a value in income: does the file have" in result.out


@pytest.mark.parametrize("command", ["fit", "lsh", *UNDER_A_PLAN])
def test_an_identifier_beyond_2_to_the_53_can_be_left_out(run, readers, csv, command):
    rows = csv(f"id,age,income,ward\n{2**60},50,1000,north\n{2**60 + 1},60,1000,south\n")
    assert run(*readers[command], rows, "--drop", "id").code == 0
    assert run(*readers[command], rows, "--columns", "age,income,ward").code == 0


# --- schemas ----------------------------------------------------------------------------------


def test_a_draft_does_not_replace_a_schema(run, refused, site, tmp_path):
    schema = tmp_path / "schema.toml"
    schema.write_text("filled in")
    arguments = ["plan", "draft", site / "rows.csv", "-o", schema]
    refused(*arguments, says=["schema.toml exists", "remove it"])
    schema.unlink()
    assert run(*arguments).code == 0
    assert "[[feature]]" in schema.read_text()


# --- usage ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["fti"], "'fti'"),
        (["fit"], "DATA"),
        (["fit", "ROWS"], "--output"),
        (["fit", "ROWS", "-o", "OLD", "--nothing"], "--nothing"),
        (["fit", "ROWS", "-o", "OLD", "--tables", "0"], "--tables"),
        (["fit", "ROWS", "-o", "OLD", "--tables", "many"], "--tables"),
        (["fit", "ROWS", "-o", "OLD", "--tables", "1.5"], "--tables"),
        (["fit", "ROWS", "-o", "OLD", "--passes", "3"], "needs auto, 1 or 2"),
        (["fit", "ROWS", "-o", "OLD", "--passes", "2", "--detector", "lsh-itables"], "--detector"),
        (
            ["fit", "ROWS", "-o", "OLD", "--novelty", "--detector", "lsh-itables"],
            "--novelty works only",
        ),
        (["fit", "ROWS", "-o", "OLD", "--novelty", "--contamination", "0.2"], "3% of outliers"),
        (["fit", "ROWS", "-o", "OLD", "--novelty", "--passes", "2"], "clean rows"),
        (["plan", "draw", "SCHEMA", "-o", "OLD", "--passes", "2"], "give epsilon"),
        (["plan", "draw", "SCHEMA", "-o", "OLD", "--passes", "3"], "passes=3"),
        (
            ["plan", "draw", "SCHEMA", "-o", "OLD", "--novelty", "--detector", "lsh-itables"],
            "novelty",
        ),
        (["fit", "ROWS", "-o", "OLD", "--contamination", "0.6"], "at most 0.5"),
        (["fit", "ROWS", "-o", "OLD", "--contamination", "few"], "needs auto, or a number"),
        (["fit", "ROWS", "-o", "OLD", "--detector", "forest"], "forest"),
        (["fit", "ROWS", "-o", "ROWS"], "both read and written"),
        (["score", "ROWS", "--model", "MODEL", "-o", "OLD"], ".parquet or .csv"),
        (["score", "ROWS", "--model", "MODEL", "-o", "ROWS"], "both read and written"),
        (["score", "ROWS", "-o", "OLD"], ".parquet or .csv"),
        (["sketch", "ROWS", "-o", "OLD"], "--plan"),
        (["plan", "check", "ROWS"], "DATA"),
        (["merge", "-o", "OLD"], "FILE"),
        (["merge", "A", "A", "-o", "OLD"], "given twice"),
        (["merge", "A", "OLD", "-o", "OLD"], "both read and written"),
        (["plan", "draw", "SCHEMA", "--detector", "lsh-itables", "--marginals", "M", "-o", "OLD"],
         "takes no marginals"),
    ],
)  # fmt: skip
def test_wrong_usage(refused, site, tmp_path, old, arguments, says):
    rows = tmp_path / "rows.csv"
    rows.write_bytes((site / "rows.csv").read_bytes())
    paths = {
        "ROWS": rows,
        "OLD": old,
        "MODEL": site / "model.hush",
        "A": site / "a.sketch.hush",
        "M": site / "marginals.sketch.hush",
        "SCHEMA": site / "schema.toml",
    }
    refused(*(paths.get(argument, argument) for argument in arguments), code=2, says=says)


def test_schemas_that_are_not_finished(refused, site, tmp_path, old):
    schema = tmp_path / "schema.toml"
    schema.write_text('[[feature]]\nname = "a"\nkind = "numeric"\n')
    says = ["schema.toml: ", "'a': low and high not given: fill in"]
    refused("plan", "draw", schema, "-o", old, says=says)
    refused("plan", "check", schema, site / "rows.csv", says=says)
