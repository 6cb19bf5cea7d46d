"""``plan draft`` proposes by name and type, for a person to confirm; values have no say."""

import re
import tomllib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hushtable import Schema
from hushtable.cli.schema import known_columns


@pytest.fixture
def parquet(tmp_path):
    def parquet(**columns):
        pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
        return tmp_path / "rows.parquet"

    return parquet


def accepted(table, choice):
    """Un-comment the lines of one proposal of a [[feature]] table, as they are."""
    lines, number = [], -1
    for line in table.splitlines():
        number += bool(re.match(r"# (low|categories) = ", line))
        mine = number == choice and re.match(r"# (low|high|unit|categories|   ) ?", line)
        lines.append(line.removeprefix("# ") if mine else line)
    return "\n".join(lines)


def tables(draft):
    """Return the [[feature]] tables of a draft, with the comments in them."""
    return ["[[feature]]" + table.rstrip("\n") for table in draft.split("[[feature]]")[1:]]


@pytest.mark.parametrize("kind", [pa.float64(), pa.string()], ids=str)
def test_every_proposal_loads_once_uncommented(run, parquet, tmp_path, kind):
    columns = {column.names[0]: pa.array([None], kind) for column in known_columns()}
    data, path = parquet(**columns), tmp_path / "schema.toml"
    facts = run("plan", "draft", data, "--json").json
    assert facts["toml"] == run("plan", "draft", data).out
    checked = 0
    for feature, table in zip(facts["features"], tables(facts["toml"]), strict=True):
        assert tomllib.loads(table)["feature"] == [
            {"name": feature["name"], "kind": feature["kind"]}
        ]
        for choice, proposal in enumerate(feature["proposals"]):
            path.write_text(accepted(table, choice), encoding="utf-8")
            (loaded,) = Schema.from_toml(path).features
            said = loaded.to_dict() | {"what": proposal["what"]}
            assert said == {"name": feature["name"], "kind": feature["kind"], **proposal}
            checked += 1
    assert checked > (100 if kind == pa.float64() else 10)


def test_a_draft_fits_a_terminal(run, parquet):
    for kind in (pa.float64(), pa.string()):
        data = parquet(**{column.names[0]: pa.array([None], kind) for column in known_columns()})
        assert max(map(len, run("plan", "draft", data).out.splitlines())) <= 88


def test_one_range_two_units_and_categories(run, parquet):
    rows = parquet(hr=[1], glucose=[2.5], smoker=["no"], gender=[1])
    hr, glucose, smoker, gender = tables(run("plan", "draft", rows).out)
    assert hr.splitlines() == [
        "[[feature]]",
        'name = "hr"',
        'kind = "numeric"',
        "# heart rate, beats per minute; a public range, for you to confirm:",
        "# low = 20",
        "# high = 250",
        '# unit = "beats per minute"',
    ]
    assert '# low = 0\n# high = 1500\n# unit = "mg/dL"\n# or glucose, mmol/L:\n' in glucose
    assert 'kind = "categorical"' in smoker
    assert '# categories = ["no", "yes"]' in smoker
    # Numbers that stand for categories are listed as text, which only that kind takes.
    assert 'kind = "categorical"' in gender
    assert '# categories = ["1", "2"]' in gender


def test_values_have_no_influence(run, parquet):
    """Same names and types, other values: the same draft, to the letter."""
    kinds = {"age": pa.int64(), "temp": pa.float64(), "sex": pa.string(), "other": pa.float32()}
    values = [
        {"age": [50], "temp": [36.6], "sex": ["F"], "other": [1.0]},
        {"age": [-999, 10**9], "temp": [98.6, None], "sex": ["male", "x"], "other": [0.0, 5.0]},
    ]
    drafts = [
        run("plan", "draft", parquet(**{k: pa.array(v, kinds[k]) for k, v in rows.items()})).out
        for rows in values
    ]
    assert drafts[0] == drafts[1]
    assert "heart" not in drafts[0]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array(["old"]), 'kind = "categorical"\n# categories = []\n'),
        (pa.array([True]), 'kind = "numeric"\n# false is 0, true is 1\n# low = \n# high = \n'),
        (pa.array([0], pa.timestamp("s")), "1577836800\n# low = \n# high = \n"),
    ],
)
def test_a_known_name_of_another_type_is_left_to_the_person(run, parquet, values, expected):
    result = run("plan", "draft", parquet(age=values), "--json").json
    assert result["features"][0]["proposals"] == []
    assert result["toml"].endswith(expected)


def test_unknown_names_are_drafted_as_ever(run, parquet):
    result = run("plan", "draft", parquet(storage=[1.5], message=["x"])).out
    assert tables(result) == [
        '[[feature]]\nname = "storage"\nkind = "numeric"\n# low = \n# high = ',
        '[[feature]]\nname = "message"\nkind = "categorical"\n# categories = []',
    ]


def test_the_command_says_how_many_names_it_knew(run, parquet, tmp_path):
    out = tmp_path / "schema.toml"
    said = run("plan", "draft", parquet(hr=[1], x=[2.5]), "-o", out).out
    assert "2 columns." in said
    assert "For 1 well-known name, confirm" in said
    out.unlink()
    assert "well-known" not in run("plan", "draft", parquet(x=[1]), "-o", out).out


@pytest.mark.parametrize(
    ("name", "values", "why"),
    [
        ("patient", [f"p{i}" for i in range(40)], "values look like identifiers"),
        ("note", [f"seen by {i}, then" for i in range(40)], "values look like names or free text"),
        ("patient", ["p1", "p2"] * 20, "name suggests an identifier"),
        ("number", [*range(1000, 1040)], "values look like identifiers"),
    ],
)
def test_identifiers_are_comments_with_the_reason(run, parquet, tmp_path, name, values, why):
    out = tmp_path / "schema.toml"
    rows = parquet(**{name: values, "ward": ["north", "south"] * 20})
    said = run("plan", "draft", rows, "-o", out).out
    assert "1 columns." in said
    assert f"identifiers, names or free text: {name}." in " ".join(said.split())
    draft = out.read_text()
    assert [one["name"] for one in tomllib.loads(draft)["feature"]] == ["ward"]
    first = draft[draft.index("# Left out") :].splitlines()
    assert first[0] == f"# Left out, because its {why}:"
    assert first[1:3] == ["# [[feature]]", f'# name = "{name}"']
    assert "40" not in draft  # every site gets it: it contains no number of rows
    facts = run("plan", "draft", rows, "--json").json
    assert facts["left_out"] == [name]
    assert [one["name"] for one in facts["features"]] == ["ward"]
