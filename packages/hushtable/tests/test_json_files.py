"""JSON in all its forms: arrays, objects that hold lists, objects within objects."""

import gzip
import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushtable.cli import main
from hushtable.data.readers import FileLayout, Unasked, as_reader, json_files
from hushtable.errors import DataError, DataTypeError

pytestmark = pytest.mark.usefixtures("shell")  # messages name options

ROWS = [
    {"age": 30, "ward": "no{rth}"},
    {"age": 40.5, "ward": 'so"u[th\\'},
    {"age": None, "ward": "é"},
]


def saved(path, content):
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def rows_of(path, columns=None, **layout):
    reader = as_reader(path, layout=FileLayout(**layout))
    reader = reader if columns is None else reader.select(columns)
    return [row for batch in reader.read() for row in batch.to_pylist()]


@pytest.fixture
def small_windows(monkeypatch):
    monkeypatch.setattr(json_files, "_WINDOW", 7)
    monkeypatch.setattr(json_files, "_BLOCK", 64)


FORMS = {
    "array": json.dumps(ROWS),
    "pretty array": json.dumps(ROWS, indent=2).replace("\n", "\r\n"),
    "one line each": "[\n" + ",\n".join(map(json.dumps, ROWS)) + "\n]\n",
    "lines": "\n".join(map(json.dumps, ROWS)),
    "with a mark": "\ufeff" + "\n".join(map(json.dumps, ROWS)),
}


@pytest.mark.parametrize("windows", ["small", "large"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.ndjson", "a.json.gz"])
def test_forms(tmp_path, request, windows, form, name):
    if windows == "small":
        request.getfixturevalue("small_windows")
    content = FORMS[form].encode()
    path = saved(tmp_path / name, gzip.compress(content) if "gz" in name else content)
    assert rows_of(path) == ROWS
    assert rows_of(path, ["ward"]) == [{"ward": row["ward"]} for row in ROWS]
    reader = as_reader(path)
    assert reader.place(1) == ("object 2" if content.startswith(b"[") else "line 2")
    assert reader.source == str(path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (json.dumps({"meta": {"n": [1, 2]}, "data": ROWS}), r"\)\['data'\]"),
        (json.dumps({"a": {"b": ROWS, "c": []}}), r"\['a.b'\].*\)\['a'\]\['b'\]"),
        ("\n".join(json.dumps(row, indent=1) for row in ROWS), "one complete object per line; was"),
        (json.dumps(ROWS[0], indent=1), "one object over several lines, and no list"),
        ("".join(map(json.dumps, ROWS)), "is not one JSON object.*one complete object per line"),
    ],
)
def test_other_json_is_refused_with_a_way(tmp_path, content, says):
    with pytest.raises(DataError, match=says):
        rows_of(saved(tmp_path / "a.json", content))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("form", ["array", "lines"])
def test_encodings_with_a_mark(tmp_path, encoding, form):
    text = FORMS[form].replace("\\u00e9", "é").removeprefix("\ufeff")
    assert rows_of(saved(tmp_path / "a.json", text.encode(encoding))) == ROWS


NESTED = [
    {"id": 1, "v": {"amount": 2.5, "at": {"x": "a"}}, "w": None},
    {"id": 2, "v": {"amount": 3, "at": None}, "w": {"y": True}},
    {"id": 3, "w": {}, "late": {"z": 1}},
]
FLAT = [
    {"id": 1, "v.amount": 2.5, "v.at.x": "a", "w.y": None, "late.z": None},
    {"id": 2, "v.amount": 3.0, "v.at.x": None, "w.y": True, "late.z": None},
    {"id": 3, "v.amount": None, "v.at.x": None, "w.y": None, "late.z": 1},
]


@pytest.mark.parametrize("block", [1 << 22, 64])  # in one block, and in several
def test_objects_within_objects_become_columns_with_dotted_names(tmp_path, monkeypatch, block):
    monkeypatch.setattr(json_files, "_BLOCK", block)
    lines = saved(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in NESTED))
    array = saved(tmp_path / "a.json", json.dumps(NESTED))
    for path in (lines, array):
        assert rows_of(path) == FLAT
        assert rows_of(path, ["late.z", "v.at.x"]) == [
            {"late.z": row["late.z"], "v.at.x": row["v.at.x"]} for row in FLAT
        ]
    unasked = FileLayout(unasked=Unasked(["v.amount", "w.y"]))
    read = [row for batch in as_reader(array, layout=unasked).read() for row in batch.to_pylist()]
    assert read == [
        {"v.amount": "2.5", "w.y": None}, {"v.amount": "3", "w.y": "true"},
        {"v.amount": None, "w.y": None},
    ]  # fmt: skip


def test_the_remedy_for_lists_can_be_typed(tmp_path, capsys):
    rows = [
        {"age": i % 11, "a,b": ["i"], "v": {"c d": [1, 2, 3, 4]}, "x": i % 7} for i in range(30)
    ]
    path = saved(tmp_path / "a.json", json.dumps(rows))
    model = str(tmp_path / "m.hush")
    assert main(["fit", str(path), "-o", model]) == 1
    message = capsys.readouterr().err
    assert message.endswith("""Add: --drop '"a,b",v.c d'\n"""), message
    assert main(["fit", str(path), "-o", model, "--drop", '"a,b",v.c d']) == 0
    assert main(["score", str(path), "--model", model, "-o", str(tmp_path / "s.csv")]) == 0
    capsys.readouterr()


def test_numbers_keep_their_digits(tmp_path):
    long, precise = "1" * 400, "0." + "1" * 400
    text = (
        f'[{{"a": {long}, "b": {precise}, "c": 12345678901234567890, "d": {long}.5, "e": 1e999}}]'
    )
    (row,) = rows_of(saved(tmp_path / "a.json", text))
    assert row == {
        "a": long, "b": float(precise), "c": "12345678901234567890", "d": f"{long}.5", "e": "1e999",
    }  # fmt: skip
    (row,) = rows_of(saved(tmp_path / "a.json", f'[{{"a": {"1" * 9999}}}]'))
    assert row == {"a": "1" * 9999}


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[{"a": 1}, {"a": 2', "object 2: the file ends in the middle: was it truncated"),
        ('[\n{"a": 1},\n{"a": 2},', "object 3: .*truncated"),
        ('[{"a": 1}\n', "was it truncated"),
        ('{"data": [{"a": 1}], "x": ', "truncated"),
        ('{"data": [{"a": 1}]', "truncated"),
        ('[{"a": 1}]\n[{"a": 2}]', "there is text after"),
        ('[{"a": 1},\n{"a": 1 "b": 2, "c": "a longer text"}]', "object 2: this is not JSON"),
        ('[{"a": 1}; {"a": 2}]', "object 1: this is not JSON .a comma or the end"),
        ('[{"a": 1}, 5]', "object 2 does not hold an object"),
        ('[{"a": 1}, {"b": 1, "b": 2}]', "object 2 has the key 'b' twice"),
        ('[{"a": 1}, {"b": {"c": 1, "c": 2}}]', "object 2 has the key 'c' twice"),
        ('[{"a.b": 1}, {"a": {"b": 2}}]', r"the keys a > b and a.b would both be the column 'a.b'"),
        ('[{"a": 1}, {"a": {"b": 2}}]', "object 1: 'a' holds a value, but an object elsewhere"),
        (b'[{"a": 1}, {"a": "\xff"}]', "object 2 is not UTF-8"),
        ('[{"a": 1}, {"a": tru', "object 2: .*truncated"),
        ('[{"a": 1},]', "object 2: this is not JSON"),
        (r'[{"a": 1}, {"a": "\ud800"}]', "object 2 is not UTF-8"),
        ("[]", "the list contains no objects"),
        ('[[1, 2], [3, 4]]', r"object 1 does not hold an object: .*per row.*orient='records'"),
        ('{"a": {"0": 1, "1": 2}, "b": {"0": 3, "1": 4}}', r"one object.*orient='records'"),
        ('{"0": {"a": 1, "b": 2}, "1": {"a": 3, "b": 4}}', r"one object.*orient='records'"),
        (json.dumps({"a": {f"x{i}": i for i in range(30)}}), r"one object.*orient='records'"),
        ('{"columns": ["a"], "index": [0, 1], "data": [[1], [2]]}', "holds all rows in one object"),
        ('{"a": [1, 2],\n "b": [3, 4]}', r"no list of objects.*orient='records'"),
        ('[' + '{"a":' * 500 + '1' + '}' * 500 + ']', "nested (?:more than 64|too deep)"),
        ('[{"a":' + '[' * 90_000 + ']' * 90_000 + '}]', "nested too deep|more than 64 deep"),
        ('{"a":' * 90_000 + '1' + '}' * 90_000, "nested (?:more than 64 deep|too deeply)"),
        ('{"b":1}\n{"a":' + '{"a":' * 90_000 + '1' + '}' * 90_001, "line 2: .*nested too deeply"),
        ('{"b":1}\n{"x":"' + '}' * 90_000 + '","a":' + '[' * 90_000 + ']' * 90_000 + '}',
         "line 2: .*nested too deeply"),
    ],
)  # fmt: skip
def test_json_that_is_refused(tmp_path, name, text, says):
    with pytest.raises(DataError, match=rf"(?s){tmp_path}/{name}: .*(?:{says})"):
        rows_of(saved(tmp_path / name, text))


def test_not_all_columns_are_proposed_to_be_dropped(tmp_path):
    with pytest.raises(DataError, match=r"'a' holds a list.*orient='records'\)$"):
        rows_of(saved(tmp_path / "a.json", '{"a": [1, 2, 3, 4], "b": [1, 2, 3, 4]}'))
    with pytest.raises(DataError, match=r"'a' holds a list.*\nAdd: --drop a$"):
        rows_of(saved(tmp_path / "b.json", '{"a": [1, 2, 3, 4], "b": 1}'))


def test_a_row_of_objects_is_a_row(tmp_path):
    text = '{"from": {"lon": 1, "lat": 2}, "to": {"lon": 3, "lat": 4}}'
    row = {"from.lon": 1, "from.lat": 2, "to.lon": 3, "to.lat": 4}
    assert rows_of(saved(tmp_path / "a.json", text)) == [row]


def test_a_line_of_many_lists_is_not_deep(tmp_path):
    line = json.dumps({"a": 1, "b": [[i, "]" * 9] for i in range(500)]})
    assert rows_of(saved(tmp_path / "a.jsonl", f"{line}\n" * 3), ["a"]) == [{"a": 1}] * 3


def test_an_object_larger_than_can_be_held(tmp_path, monkeypatch):
    monkeypatch.setattr(json_files, "_LONGEST", 1 << 21)
    text = json.dumps([{"a": 1}, {"a": "x" * (1 << 22)}])
    with pytest.raises(DataError, match="object 2 is larger than 2 MB: write smaller ones"):
        rows_of(saved(tmp_path / "a.json", text))


@pytest.mark.usefixtures("small_windows")
def test_a_list_larger_than_its_largest_object_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(json_files, "_LONGEST", 40)
    assert len(rows_of(saved(tmp_path / "a.json", json.dumps(ROWS * 9, indent=1)))) == 27


@pytest.mark.slow
def test_many_columns_fail_quickly(tmp_path, capsys):
    row = json.dumps({f"c{i}": i for i in range(100_000)})
    path = saved(tmp_path / "a.json", f"[{row},{row}]")
    assert main(["fit", str(path), "-o", str(tmp_path / "m.hush")]) == 1
    assert "65,535" in capsys.readouterr().err


@pytest.mark.slow
def test_memory_is_flat(tmp_path):
    row = json.dumps({f"c{i}": i / 7 for i in range(10)})
    with (tmp_path / "a.json").open("w") as file:
        file.write("[" + f"{row},\n" * 500_000 + f"{row}]")
    code = (
        "import sys\nfrom hushtable.data.readers import as_reader\n"
        "print(sum(len(batch) for batch in as_reader(sys.argv[1]).read()))\n"
        "print(open('/proc/self/status').read().partition('VmHWM:')[2].split()[0])"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "a.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows, kilobytes = map(int, done.stdout.split())
    assert rows == 500_001
    assert kilobytes < 400_000, f"{(tmp_path / 'a.json').stat().st_size / 1e6} MB were read"


VALUES = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=5)
OBJECTS = st.recursive(
    st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), VALUES | inner, max_size=3),
    max_leaves=6,
)


def flat(row, outer=""):
    found = {}
    for key, value in row.items():
        name = f"{outer}.{key}" if outer else key
        found |= flat(value, name) if isinstance(value, dict) else {name: value}
    return found


@given(st.lists(OBJECTS, min_size=1, max_size=6), st.sampled_from([None, 2]))
def test_every_value_is_as_it_was_written_or_refused(tmp_path_factory, rows, indent):
    path = tmp_path_factory.mktemp("json") / "a.json"
    try:
        found = rows_of(saved(path, json.dumps(rows, indent=indent)))
    except DataError as error:
        if "an object elsewhere" in str(error) or "no columns" in str(error):
            return
        raise
    expected = [flat(row) for row in rows]
    assert len(found) == len(rows)
    for there, row in zip(found, expected, strict=True):
        for name in there.keys() | row.keys():
            value, read = row.get(name), there.get(name)
            if isinstance(value, bool) and not isinstance(read, bool):
                value = str(value).lower()
            assert read == (str(value) if isinstance(read, str) and value is not None else value)


def test_lists_of_another_length_are_refused_by_line(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1, "b": [1, 2]}\n{"a": 2, "b": [1, 2, 3, 4]}\n')
    with pytest.raises(DataTypeError, match=r"line 2: 'b' holds a list.*\nAdd: --drop b"):
        list(as_reader(path).read())
