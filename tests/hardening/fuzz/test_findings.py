"""What fuzzing found, as clear errors: one test for each fault that was mended."""

import contextlib
import functools
import json
import shutil
import sqlite3

import numpy as np
import pyarrow as pa
import pytest
import seeds
from edits import Program, _packed, edited, relink
from pyarrow import parquet

from hushtable import Feature, LocalModel, Plan, Release, Schema, Sketch, files, load
from hushtable.cli.score import stamp_in
from hushtable.data import understand
from hushtable.data.readers import as_reader
from hushtable.data.understanding import schema_from_data
from hushtable.describe import describe_ledger
from hushtable.errors import DataError, FileError, PlanError, UsageError
from hushtable_federation.book.book import Book
from hushtable_federation.policy import Approval
from hushtable_federation.round import Round


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[feature]]\nkind = []", r"kind \[\]: needs 'numeric'"),
        ("[[feature]]\nkind = 'categorical'\ncategories = ['a']", "the name None"),
        (f"[[feature]]\nname = 'a'\nkind = 'numeric'\nlow = 0\nhigh = {10**400}", "two finite"),
        (f"feature = {'9' * 5_000}", "not a TOML file of a schema"),
        (f"[[feature]]\nname = 0x{'f' * 5_000}\nkind = 'numeric'\nlow = 0\nhigh = 1", "a.toml"),
        (f"feature = {'[' * 9_000}{']' * 9_000}", "nested too deeply"),
    ],
)
def test_schemas(tmp_path, text, message):
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(PlanError, match=message):
        Schema.from_toml(tmp_path / "a.toml")


def with_change(content, change):
    """Return a file with this change of its manifest, whose digests fit."""
    read = files.unpack(content, "a")
    manifest = {k: v for k, v in read.manifest.items() if k not in ("digest", "signature")}
    manifest = json.loads(json.dumps(manifest))
    change(manifest)
    return _packed(manifest, dict(read.arrays), None)


def test_half_a_character_in_an_approval(tmp_path):
    Approval.sign(seeds.round_(), seeds.keys("north")).save(tmp_path / "a")
    said = json.loads((tmp_path / "a").read_text()) | {"round_id": "\ud800"}
    (tmp_path / "a").write_text(json.dumps(said))
    with pytest.raises(FileError, match="not an approval"):
        Approval.load(tmp_path / "a")


def test_the_name_of_a_detector(tmp_path):
    content = with_change(seeds.detector(), lambda m: m.update(detector=["HushTable"]))
    (tmp_path / "a.hush").write_bytes(content)
    with pytest.raises(FileError, match=r"detector \['HushTable'\] is unknown"):
        load(tmp_path / "a.hush")


@pytest.mark.parametrize("share", [False, -1, 0, 2, "1"])
def test_the_share_of_a_round(share):
    content = with_change(seeds.of_rounds()[1], lambda m: m["round"]["terms"].update(share=share))
    with pytest.raises(FileError, match="terms: share="):
        Round.from_bytes(content, "a.hush")


def test_a_delta_at_which_nothing_is_spent():
    """A large delta alone, which allows to publish half the rows."""

    def half(manifest):
        manifest["ledger"]["delta"] = 0.5

    (seed, *_) = seeds.golden("release")
    loaded = files.unpack(with_change(seed, half), "a").build(Release.from_file)
    assert loaded.ledger.epsilon == 0.0
    assert "a factor e^0.0, plus 0.5" in describe_ledger(loaded.ledger)[0]


def test_a_local_model_without_anybody_else():
    def alone(manifest):
        shares = manifest["ledger"]["shares"]
        shares[:] = [share for share in shares if share["release"] == manifest["own"]]

    seed = next(s for s in seeds.golden("local"))
    with pytest.raises(FileError, match="no other site is in this result"):
        files.unpack(with_change(seed, alone), "a").build(LocalModel.from_file)


def test_columns_of_types_that_arrow_does_not_compare():
    schema = Schema([Feature.categorical("a", ["1", "0.5"]), Feature.numeric("b", low=0, high=1)])
    plan = Plan.draw(schema, n_tables=2, random_state=0)
    halves = pa.array([np.float16(1), np.float16(0.5), None], pa.float16())
    rows = pa.table({"a": halves, "b": [0.0, 0.5, 1.0]})
    assert Sketch.from_data(plan, rows) == Sketch.from_data(
        plan, rows.set_column(0, "a", pa.array(["1", "0.5", None]))
    )
    missing = (rows.set_column(1, "b", pa.nulls(3, kind)) for kind in (pa.string(), pa.float64()))
    assert Sketch.from_data(plan, next(missing)) == Sketch.from_data(plan, next(missing))


def test_files_that_are_no_scores(tmp_path):
    parquet.write_table(pa.table({"row": [0]}), tmp_path / "a.parquet")
    whole = (tmp_path / "a.parquet").read_bytes()
    for content in (whole, whole[:20] + b"\xff" * 40 + whole[60:], whole[:4] + whole[-90:]):
        (tmp_path / "a.parquet").write_bytes(content)
        with pytest.raises(UsageError, match="not a file of scores"):
            stamp_in(tmp_path / "a.parquet")


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory):
    """Return what runs a round once; it takes the clock of a test, which no module has."""
    return functools.cache(lambda: seeds.Rehearsal(tmp_path_factory.mktemp("told")))


@pytest.fixture
def over(rehearsed, tmp_path):
    """Return it, and a copy of a site's book at its end."""
    told = rehearsed()
    return told, shutil.copy2(told._book("north", "over"), tmp_path / "north.book")


def read_all(path, round_):
    with Book.open(path) as book:
        book.known()
        book.answers()
        book.step(round_.round_id, "shares")
        book.data_sets()


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("answer", {"share": []}),
        ("answer", {"spent": "not JSON"}),
        ("answer", {"blobs": {"counts": 7}}),
        ("answer", {"made": "yesterday"}),
        ("trust", {"card": {}}),
        ("site", {"epsilon": "a lot"}),
        ("answer", {"data_set": None}),
        ("answer", {"title": 1}),
    ],
)
def test_books_with_other_things_in_them(over, kind, change):
    told, path = over
    with contextlib.closing(sqlite3.connect(path)) as db:
        ((n, text),) = db.execute(
            "select n, content from entries where kind = ? limit 1", (kind,)
        ).fetchall()
        text = json.dumps(json.loads(text) | change)
        db.execute("update entries set content = ? where n = ?", (text, n))
        relink(db)
        db.commit()
    with pytest.raises(FileError, match="restore it"):
        read_all(path, told.round)


@pytest.mark.parametrize("value", ["[", b"\xff", 7])
def test_books_with_other_steps_in_them(over, value):
    told, path = over
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("update steps set kept = ?", (value,))
        db.commit()
    with pytest.raises(FileError, match="it is damaged: restore it"):
        read_all(path, told.round)


def test_books_with_damaged_pages(over):
    told, path = over
    whole = path.read_bytes()
    refused = []
    for at in range(100, len(whole), 1_000):
        path.write_bytes(whole[:at] + b"\xff" * 200 + whole[at + 200 :])
        try:
            read_all(path, told.round)
        except FileError as error:
            refused.append(str(error))
    assert len(refused) > 5
    assert all("restore it" in message for message in refused)


def test_programs_of_edits_get_past_the_digests():
    """Else fuzzing would stop at the door."""
    seed = seeds.golden("sketch")[0]
    untouched = files.unpack(edited(seed, Program(b"")), "a").build(Sketch.from_file)
    assert untouched == files.unpack(seed, "a").build(Sketch.from_file)
    reasons = set()
    for i in range(256):
        try:
            files.unpack(edited(seed, Program(bytes([1, i, i, 7, i]))), "a").build(Sketch.from_file)
        except FileError as error:
            reasons.add(str(error)[:40])
    assert len(reasons) > 10, reasons
    assert not any("arrays are not the ones" in reason for reason in reasons)


def test_a_quotation_mark_in_the_header_that_runs_into_blank_lines(tmp_path):
    (tmp_path / "a.csv").write_text('"1,"2,"2\n\n\n')
    with pytest.raises(DataError, match="has no rows"):
        schema_from_data(as_reader(str(tmp_path / "a.csv")))


def test_a_line_break_within_quotation_marks_among_the_lines_to_leave_out(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b';"b\nyx1"\n;"b\nyx2\n"\n\nx1\n"\n')
    with pytest.raises(DataError, match="1 field, but") as caught:
        schema_from_data(as_reader(str(path)))
    assert "skip_footer" not in str(caught.value)


def test_a_unit_and_a_text_that_is_no_number_beside_it():
    texts = pa.table({"04": ["04comma", "\u00af", "1"]})
    (doubt,) = [column.doubt for column in understand(texts).columns]
    assert doubt.words.endswith("reads the numbers as they are, and any other text as missing")
