"""``plan check`` says how rows fit a schema or plan, and writes nothing."""

import pytest

from cli_helpers import contents, write_rows
from places import GOLDEN

SUBMISSION = GOLDEN / "protocol-1" / "rounds" / "s00.submission.hush"


HOSPITAL = """\
id,age,sex,HeartRate,temp,glucose,ward,admitted
1,54,F,71,98.2,6.1,ICU,2024-01-05
2,61,M,88,99.0,5.4,ER,2024-01-06
3,,F,300,101.3,7.7,icu,2024-02-01
"""


@pytest.fixture
def hospital(tmp_path):
    """A hospital's rows, and a schema that they do not quite fit."""
    (tmp_path / "patients.csv").write_text(HOSPITAL)
    (tmp_path / "schema.toml").write_text("""
        [[feature]]
        name = "age"
        kind = "numeric"
        low = 0
        high = 120

        [[feature]]
        name = "sex"
        kind = "categorical"
        categories = ["F", "M"]

        [[feature]]
        name = "HeartRate"
        kind = "numeric"
        low = 20
        high = 250

        [[feature]]
        name = "temp"
        kind = "numeric"
        low = 25
        high = 45
        unit = "degrees Celsius"

        [[feature]]
        name = "glucose"
        kind = "numeric"
        low = 0
        high = 1500
        unit = "mg/dL"

        [[feature]]
        name = "ward"
        kind = "categorical"
        categories = ["ICU", "ER"]
        """)
    return tmp_path


def test_check_says_what_lies_outside(run, hospital):
    before = contents(hospital)
    arguments = ["plan", "check", hospital / "schema.toml", hospital / "patients.csv"]
    result = run(*arguments, "--drop", "id,admitted")
    assert result.code == 0
    assert result.err == (
        "hushtable: ward: 'ICU' (1 row) and 'icu' (1) differ only by case: are they the same "
        "label? If not, add --as ward=category (--as ward=label)\n"
    )
    lines = [line.split() for line in result.out.splitlines()]
    for line in (
        ["age", "33.3%", "-", "-", "-"],
        ["HeartRate", "-", "-", "33.3%", "-"],
        ["temp", "-", "-", "100.0%", "-"],
        ["glucose", "-", "-", "-", "-"],
        ["ward", "-", "-", "-", "33.3%"],
    ):
        assert line in lines
    assert ["sex"] not in [line[:1] for line in lines]
    text = " ".join(result.out.split())
    assert "In the other 1, every value is present and inside." in text
    assert "temp: most values are outside its range, 25 to 45 degrees Celsius." in text
    assert "glucose: 98% of the values use 0.3% of its range, 0 to 1500 mg/dL." in text
    assert "This output describes your rows: keep it here." in text
    assert max(map(len, result.out.splitlines()[1:])) <= 88
    assert contents(hospital) == before, "check wrote a file"

    facts = run(*arguments, "--drop", "id,admitted", "--json").json
    assert (facts["command"], facts["rows"]) == ("plan check", 3)
    found = {one.pop("name"): one for one in facts["features"]}
    assert list(found) == ["age", "sex", "HeartRate", "temp", "glucose", "ward"]
    assert {name: one["finding"] for name, one in found.items() if one["finding"]} == {
        "temp": "outside",
        "glucose": "narrow",
    }
    assert found["HeartRate"]["above"] == found["age"]["missing"] == found["ward"]["unseen"] == 1


def test_check_of_rows_that_fit(run, site):
    result = run("plan", "check", site / "schema.toml", site / "rows.csv")
    assert "In the other 2, every value is present and inside." in result.out
    assert "Check these" not in result.out
    full = run(
        "plan", "check", site / "schema.toml", site / "rows.csv", "--columns", "age,income,ward"
    )
    assert full == result


def test_check_words_every_finding(run, hospital, tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text(
        "age,sex,HeartRate,temp,glucose,ward\n" + ",male,70,36,5,ICU\n,female,70,44,900,ER\n"
    )
    text = " ".join(run("plan", "check", hospital / "schema.toml", rows).out.split())
    assert "age: no row has a value. Is it the right column?" in text
    assert "sex: most values are not among its 2 categories: F, M. Are they spelled" in text
    assert "HeartRate: all values are the same" in text


def test_a_file_without_a_plan_is_refused(refused, site, tmp_path):
    rows = write_rows(tmp_path / "rows.csv", 400)
    refused("plan", "check", SUBMISSION, rows, says="holds a submission without a plan: give the")
    (tmp_path / "plan.bin").write_bytes((site / "plan.hush").read_bytes())
    refused("plan", "check", tmp_path / "plan.bin", rows, says="plan.bin: not a TOML file")


def test_check_cuts_a_long_list(run, tmp_path):
    names = [f"x{i}" for i in range(60)]
    (tmp_path / "rows.csv").write_text(",".join(names) + "\n" + ",".join(["9"] * 60) + "\n")
    table = '[[feature]]\nname = "{}"\nkind = "numeric"\nlow = 0\nhigh = 1\n'
    (tmp_path / "schema.toml").write_text("".join(map(table.format, names)))
    out = run("plan", "check", tmp_path / "schema.toml", tmp_path / "rows.csv").out
    assert out.count("... and 20 more (--json lists all)") == 2
