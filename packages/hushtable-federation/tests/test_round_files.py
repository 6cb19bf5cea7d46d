"""Files of rounds: the published schema, and golden ones that are read for ever."""

import gc
import json
import tracemalloc

import jsonschema
import numpy as np
import pytest

from hushtable import LocalModel, Plan, files
from hushtable.errors import RoundError
from hushtable_federation.book.book import Book
from hushtable_federation.hidden import seal_secret
from hushtable_federation.layout import Layout, Sealed
from hushtable_federation.result import Collection
from hushtable_federation.round import Round
from hushtable_federation.submission import Submission
from places import DOCS, GOLDEN
from round_helpers import SCHEMA, T0, Online, Site


@pytest.fixture(scope="module")
def validator():
    path = DOCS / "hush-manifest-1.schema.json"
    return jsonschema.Draft202012Validator(json.loads(path.read_text()))


def test_what_travels_keeps_the_published_schema(consortium, tmp_path, validator, monkeypatch):
    monkeypatch.setattr("hushtable_federation.clock.read", lambda: T0)
    those = consortium(3)
    round_ = those.open(previous=["ab"])
    sent = {name: site.submit(round_) for name, site in those.sites.items()}
    result = those.sum(round_, sent)
    answer = those.sites["s00"].book.answer(round_.round_id)
    local = LocalModel.of(result, answer.share.release, answer.sent, answer.counts)
    layout = Layout.of(those.plan)
    Sealed(layout, result.counts, result.ledger).save(tmp_path / "sealed.hush")
    layout.save(tmp_path / "layout.hush")
    those.open(plan=layout).save(tmp_path / "hidden.hush")
    local.save(tmp_path / "local.hush")
    result.save(tmp_path / "result.hush")
    contents = [file.read_bytes() for file in tmp_path.glob("*.hush")]
    contents += [round_.content, sent["s00"]]
    contents.append(seal_secret(b"s" * 32, those.sites["s00"].keys, those.cards))
    online = Online(those, those.open(title="online"))
    online.run()
    contents += [text for _, _, *both in online.log for text in both]
    kinds = set()
    for content in contents:
        manifest = files.unpack(content, "x").manifest
        validator.validate(manifest)
        kinds.add(manifest["kind"])
        for key in set(manifest) - {"writer"}:
            broken = {k: v for k, v in manifest.items() if k != key}
            assert list(validator.iter_errors(broken)), (manifest["kind"], key)
    assert kinds == {
        "layout", "local", "message", "release", "round", "sealed", "secret", "submission",
    }  # fmt: skip


@pytest.mark.parametrize("folder", sorted(GOLDEN.glob("protocol-*/rounds")), ids=str)
def test_golden_rounds_are_read(folder):
    """Two submissions whose masks cancelled in their sum, as they did before rounds in steps."""
    expected = json.loads((folder / "expected.json").read_text())
    round_ = Round.from_bytes((folder / "round.hush").read_bytes(), "round.hush")
    assert round_.round_id == expected["round_id"]
    words = np.zeros(round_.layout.n_cells, np.uint64)
    for file in sorted(folder.glob("*.submission.hush")):
        words += Submission.from_bytes(file.read_bytes(), file, round_, T0).words
    assert words.view(np.int64).tolist() == expected["counts"]
    sealed = files.read(folder / "sealed.hush").build(Sealed.from_file)
    assert sealed.open(round_.plan).counts.tolist() == expected["counts"]
    local = files.read(folder / "local.hush").build(LocalModel.from_file)
    assert local.counts.tolist() == expected["local"]


@pytest.fixture
def contradicted(consortium, tmp_path):
    """Paths of what four sites sent, and something else of the second."""
    those = consortium(4)
    round_ = those.open(masked=False, least=2)
    sent = {name: site.submit(round_) for name, site in those.sites.items()}
    keys = those.sites["s01"].keys
    other = Book.create(tmp_path / "other.book", keys.card, epsilon=10.0)
    other.trust([those.lead.card], "coordinator")
    other.trust(those.cards)
    twin = Site(keys, other, those.sites["s01"].X)
    sent["again"] = twin.submit(round_)
    other.close()
    for name, content in sent.items():
        (tmp_path / name).write_bytes(content)
    return those, round_, [tmp_path / name for name in sent]


@pytest.mark.parametrize("at_hand", [True, False], ids=["bytes", "paths"])
def test_what_contradicts_itself_is_taken_out_of_the_sum(contradicted, at_hand):
    """Of what is in, the collection keeps the sum and no counts."""
    those, round_, paths = contradicted
    collection = Collection(round_)
    for path in paths:
        collection.add(path.name, path.read_bytes() if at_hand else path, T0)
    assert collection.missing == ["s01"]
    sent = [those.sites[name].sent(round_) for name in collection.accepted]
    for _ in range(2):  # a result changes nothing
        np.testing.assert_array_equal(collection.result().counts, sum(sent))
    rows = [round(counts.sum() / those.plan.family.n_tables) for counts in sent]
    assert [one.rows for one in collection.accepted.values()] == rows


def test_a_file_that_changes_while_it_is_collected_stops_the_result(contradicted):
    """What is taken out of a sum is not read again; what stays in is."""
    _, round_, paths = contradicted
    collection = Collection(round_)
    for path in paths:
        collection.add(path.name, path, T0)
    paths[0].write_bytes(paths[2].read_bytes())
    with pytest.raises(RoundError, match="s00 has changed since it was read"):
        collection.result()


def test_collecting_holds_one_file_at_a_time(consortium, tmp_path, quick_noise):
    """Twelve sites take no more memory than the sum and the file that is being read."""
    those = consortium(12, rows=5)
    cells = 256 * 100
    plan = Plan.draw(SCHEMA, random_state=0, n_tables=100, n_cells=256, min_depth=8, max_depth=8)
    round_ = those.open(plan=plan, masked=False)
    for name, site in those.sites.items():
        (tmp_path / name).write_bytes(site.submit(round_))
    collection = Collection(round_)
    collection.add("s00", tmp_path / "s00", T0)  # what is imported and cached does not count
    gc.collect()
    tracemalloc.start()
    for name in list(those.sites)[1:]:
        collection.add(name, tmp_path / name, T0)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert collection.missing == []
    assert held < 8 * cells
    assert peak < 8 * 8 * cells
    expected = sum(site.sent(round_) for site in those.sites.values())
    np.testing.assert_array_equal(collection.result().counts, expected)
