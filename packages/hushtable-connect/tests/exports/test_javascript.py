"""JavaScript reads .hush files and JSON by itself, and scores rows to the same bits."""

import base64
import hashlib
import json
import shutil

import numpy as np
import pyarrow as pa
import pytest
import rfc8785

import hushtable
import node
import places
import scored
from hushtable import HushTable, Plan, Release, Sketch, files
from hushtable.counts import rounds
from hushtable.data import read
from hushtable.detectors.load import open_model
from hushtable.errors import FileError
from hushtable.plans.score_rule import ScoreRule
from hushtable_connect.exports import export

pytestmark = [
    pytest.mark.skipif(node.NODE is None, reason="JavaScript runs in node: not installed"),
    # Some of the hostile categories are words for a missing value.
    pytest.mark.filterwarnings("ignore:(?s).*mean that the value is missing"),
]
GOLDEN = places.GOLDEN / "protocol-1"
EVERY_DAY = scored.SETS[:3]


def check(cases, folder):
    """Hold JavaScript's scores, from a .hush file and from JSON, against the library's."""
    tasks = []
    for i, case in enumerate(cases):
        case.detector.save(folder / f"{i}.hush")
        export(case.detector, folder / f"{i}.json")
        tasks += [node.task(folder / f"{i}{suffix}", case) for suffix in (".hush", ".json")]
    for case, *both in zip(cases, *[iter(node.run(tasks))] * 2, strict=True):
        for found in both:
            assert "error" not in found, (case.name, found["error"])
            np.testing.assert_array_equal(found["scores"], case.scores, case.name, strict=True)
            assert found["threshold"] == case.detector.offset_
            assert found["planId"] == case.detector.plan_.plan_id
            outliers = case.scores < case.detector.offset_
            np.testing.assert_array_equal(found["outliers"], outliers)


@pytest.mark.parametrize(
    "detector",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name not in ("two passes", "rs_hash")))
        for name in (*scored.DETECTORS, *scored.OTHERS)
    ],
)
def test_hostile_rows(detector, tmp_path):
    check([scored.mixed(detector, 40)], tmp_path)


def test_a_missing_value_scores_as_the_usual_one(tmp_path):
    check([scored.usual()], tmp_path)


def test_texts_and_names_in_other_spellings(tmp_path):
    case = scored.respelled()
    check([case], tmp_path)
    export(case.detector, tmp_path / "model.json")
    task = node.task(tmp_path / "model.json", case)
    task["rows"] = [{" town\ufe0f": town, "size": size} for town, size in task["rows"]]
    [found] = node.run([task])
    np.testing.assert_array_equal(found["scores"], case.scores, strict=True)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n not in EVERY_DAY)) for n in scored.SETS]
)
def test_labelled_sets(name, data_dir, tmp_path):
    check([scored.of_set(data_dir, name, one) for one in scored.DETECTORS], tmp_path)


def test_golden_files_score_or_are_refused_as_in_the_library():
    paths, expected, tasks = sorted(GOLDEN.rglob("*.hush")), [], []
    for path in paths:
        try:
            scorer = open_model(path).scorer
        except FileError:
            expected.append(None)
            tasks.append({"model": str(path), "rows": []})
            continue
        rows = scored.odd_rows(scorer.plan.schema)
        case = scored.Scored(path.name, None, rows, scorer.score(rows))
        expected.append(case)
        tasks.append(node.task(path, case))
    assert sum(case is not None for case in expected) >= 19
    for path, case, found in zip(paths, expected, node.run(tasks), strict=True):
        if case is None:
            assert found["kind"] == "HushError", path
        else:
            np.testing.assert_array_equal(found.get("scores"), case.scores, str(path))


def test_two_passes_under_noise(tmp_path):
    pytest.importorskip("opendp", reason="releases need opendp")
    X = np.random.default_rng(0).normal(0.5, 0.1, (4_000, 2)).clip(0, 1)
    names = [hushtable.Feature.numeric(name, low=0, high=1) for name in "ab"]
    terms = {"epsilon": 3.0, "expected_rows": 4_000, "passes": 2}
    plan = Plan.draw(hushtable.Schema(names), random_state=1, **terms)
    first = Sketch.from_data(plan, X).release(3.0)
    gate = Sketch.from_data(rounds.gate(first), X).release(3.0)
    second = Sketch.from_data(rounds.second_pass(first, gate), X).release(3.0)
    assert isinstance(second, Release)
    second.save(tmp_path / "second.hush")
    export(second, tmp_path / "second.json")
    rows = scored.odd_rows(plan.schema)
    case = scored.Scored("noise", None, rows, HushTable.from_counts(second).score_samples(rows))
    tasks = [node.task(tmp_path / name, case) for name in ("second.hush", "second.json")]
    for found in node.run(tasks):
        np.testing.assert_array_equal(found.get("scores"), case.scores)


def test_verdicts_are_in_the_json_only(tmp_path):
    case = scored.mixed("two passes")
    case.detector.learn(case.rows.slice(0, 20), [1] * 5 + [0] * 15)
    case.detector.save(tmp_path / "learned.hush")
    export(tmp_path / "learned.hush", tmp_path / "learned.json")
    tasks = [node.task(tmp_path / name, case) for name in ("learned.hush", "learned.json")]
    refused, found = node.run(tasks)
    assert "learned verdicts" in refused["error"]
    assert "hushtable export MODEL -o model.json" in refused["error"]
    after = case.detector.score_samples(case.rows)
    assert (after != case.scores).any()
    np.testing.assert_array_equal(found["scores"], after)


#: Rules with the rows counted, and the noise.
_RULES = [
    (ScoreRule("log2"), 0, 0.0),
    (ScoreRule("smoothed_log2", 0.05), 12_345, 0.0),
    (ScoreRule("smoothed_log2", 0.2), 50_000_000, 0.0),
    (ScoreRule("pseudocount_log2", 0.05), 0, 0.0),
    (ScoreRule("smoothed_log2", 0.05), 0, 7.95059),
    (ScoreRule("smoothed_log2", 0.05), 0, 1234.5678),
]


def test_logarithms_round_alike_or_are_doubted(tmp_path):
    rng = np.random.default_rng(0)
    large = (2.0 ** rng.uniform(0, 53, 100_000)).astype(np.int64)
    counts = np.concatenate([np.arange(100_000), 2 ** np.arange(53), large])
    signed = np.concatenate([counts, -counts])
    for name, array in (("counts", counts), ("signed", signed)):
        array.astype("<i8").tofile(tmp_path / name)
    tasks = [
        {
            "rule": rule.to_dict(),
            "counts": str(tmp_path / ("signed" if noise else "counts")),
            "rows": rows,
            "noise": noise,
        }
        for rule, rows, noise in _RULES
    ]
    for (rule, rows, noise), found in zip(_RULES, node.run(tasks), strict=True):
        expected = rule.noisy_values(signed, noise) if noise else rule.values(counts, rows)
        doubted = np.isnan(found["scores"])
        assert doubted.sum() <= 1
        np.testing.assert_array_equal(found["scores"][~doubted], expected[~doubted])


# --- what is refused ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A small model of two columns, a number and texts: its .hush file, beside its JSON."""
    path = tmp_path_factory.mktemp("model") / "model.hush"
    rows = {"age": np.arange(40.0) % 23, "ward": ["north", "south"] * 20}
    HushTable(n_tables=4, random_state=0).fit(scored.pa.table(rows)).save(path)
    export(path, path.with_suffix(".json"))
    return path


def test_bad_rows(model):
    bad = {
        "row 0 has 1 values: needs 2": [["north"]],
        'row 1 has no "ward": give null': [{"age": 1, "ward": "north"}, {"age": 1}],
        '"age" in row 0 is "12": needs a finite number': ["12", "north"],
        '"ward" in row 0 is 1.5: needs a text': [1, 1.5],
        'row 0 is "north": needs an array': "north",
    }
    found = node.run([{"model": str(model), "rows": rows} for rows in bad.values()])
    for words, one in zip(bad, found, strict=True):
        assert words in one["error"]
        assert one["kind"] == "HushError"


def test_an_infinity_is_refused(model, tmp_path):
    text = model.with_suffix(".json").read_text()
    # JSON has no infinity, but reads one.
    (tmp_path / "rows").write_text('[[1e999, "north"], [1, "north"]]')
    task = {"bytes": base64.b64encode(text.encode()).decode(), "rowsFile": str(tmp_path / "rows")}
    assert "in row 0 is Infinity: needs a finite number" in node.run([task])[0]["error"]


def test_texts_for_missing_numbers(tmp_path):
    """In a column of numbers they cannot stand, so that nothing is left to tell a runtime."""
    path = tmp_path / "rows.csv"
    numbers = [(i % 7, None if i % 3 else i % 11) for i in range(90)]
    path.write_text("a,b\n" + "".join(f"{a},{'n.b.' if b is None else b}\n" for a, b in numbers))
    detector = HushTable(n_tables=4, random_state=0).fit(read(path, missing=["n.b."]))
    rows = pa.table(dict(zip("ab", zip(*numbers, strict=True), strict=True)))
    scores = detector.score_samples(rows)
    np.testing.assert_array_equal(scores, detector.score_samples(path), strict=True)
    check([scored.Scored("n.b.", detector, rows, scores)], tmp_path)


def edited(content, old, new):
    assert content.count(old) >= 1
    return content.replace(old, new, 1)


def test_bad_files(model, tmp_path):
    hush, text = model.read_bytes(), model.with_suffix(".json").read_bytes()
    newer = json.loads(text) | {"protocol": 3}
    sentinels = files.read(model).manifest | {"reading": {"missing": ["-9"]}}
    entries = {k: v for k, v in sentinels.items() if k not in ("protocol", "kind", "arrays")}
    for name in ("digest", "writer"):
        del entries[name]
    told = files.pack("detector", entries, files.read(model).arrays)
    bad = {
        "truncated": hush[:-1],
        "not a .hush file": hush[:40],
        "the arrays are not those": hush[:-2] + bytes([hush[-2] ^ 1]) + hush[-1:],
        "the manifest was edited": edited(hush, b"north", b"nurth"),
        "reads": told,
        "neither a .hush file nor JSON": b"age,ward\n1,north\n",
        "this is JSON, but not from hushtable export": b'{"a": 1}',
        "the JSON was edited": edited(text, b"north", b"nurth"),
        "or a truncated one": text[:-9],
        "written with protocol 3": json.dumps(newer).encode(),
    }
    tasks = [{"bytes": base64.b64encode(one).decode(), "rows": []} for one in bad.values()]
    for words, found in zip(bad, node.run(tasks), strict=True):
        assert found.get("kind") == "HushError", words
        assert words in found["error"]


def test_the_reader_is_one_file_without_dependencies(tmp_path):
    source = places.CONNECT / "examples" / "hushtable.mjs"
    shutil.copy(source, tmp_path / "alone.mjs")
    text = source.read_text()
    assert "\nimport " not in text
    assert text.count("import(") == 1  # Node's own, where there is no other
    assert 'import("node:crypto")' in text
    assert "eval(" not in text
    assert "Function(" not in text


def leaves(content, path=()):
    """Yield the path of every entry of JSON, at any depth."""
    entries = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in entries:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from leaves(value, (*path, key))


def test_no_edited_json_scores_wildly_or_crashes(model):
    """Anyone who edits a file can make its digest again: then every entry is checked."""
    text = model.with_suffix(".json").read_text()
    tasks = []
    for path in leaves(json.loads(text)):
        if path[0] in ("digest", "writer"):
            continue
        for odd in (None, -1, 1e300, "x", [], {}, 70_000):
            content = json.loads(text)
            place = content
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = odd
            del content["digest"], content["writer"]
            content["digest"] = hashlib.sha256(rfc8785.dumps(content)).hexdigest()
            encoded = base64.b64encode(rfc8785.dumps(content)).decode()
            tasks.append({"bytes": encoded, "rows": [[3.0, "north"], [1e9, None]]})
    found = node.run(tasks)
    assert sum("error" in one for one in found) > 100
    for one in found:
        if "error" in one:
            assert one["kind"] == "HushError", one
        else:
            assert np.isfinite(one["scores"]).all()
