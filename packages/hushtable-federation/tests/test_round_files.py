"""Files of rounds: the published schema, and golden ones that are read for ever."""

import gc
import json
import shutil
import tracemalloc
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from hushtable import LocalModel, Plan, files
from hushtable.errors import FileError, RoundError
from hushtable_federation import SiteSettings
from hushtable_federation.book.book import Book
from hushtable_federation.folder.mailbox import Store, name_of
from hushtable_federation.folder.round_folder import post_round, rounds
from hushtable_federation.keys import Keys
from hushtable_federation.protocol.messages import Message
from hushtable_federation.refusals import Refusal
from hushtable_federation.result import Collection
from hushtable_federation.round import Round
from hushtable_federation.submission import Submission
from places import DOCS, GOLDEN
from round_helpers import SCHEMA, T0, Online, Site, agent


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
    local.save(tmp_path / "local.hush")
    result.save(tmp_path / "result.hush")
    contents = [file.read_bytes() for file in tmp_path.glob("*.hush")]
    contents += [round_.content, sent["s00"]]
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
    assert kinds == {"local", "message", "release", "round", "submission"}


@pytest.mark.parametrize("folder", sorted(GOLDEN.glob("protocol-*/rounds")), ids=str)
def test_golden_rounds_are_read(folder):
    """Two submissions whose masks cancelled in their sum, as they did before rounds in steps."""
    expected = json.loads((folder / "expected.json").read_text())
    round_ = Round.from_bytes((folder / "round.hush").read_bytes(), "round.hush")
    assert round_.round_id == expected["round_id"]
    words = np.zeros(round_.plan.family.n_cells, np.uint64)
    for file in sorted(folder.glob("*.submission.hush")):
        words += Submission.from_bytes(file.read_bytes(), file, round_, T0).words
    assert words.view(np.int64).tolist() == expected["counts"]
    local = files.read(folder / "local.hush").build(LocalModel.from_file)
    assert local.counts.tolist() == expected["local"]


HIDDEN = GOLDEN / "protocol-1" / "hidden"
WAY_ON = (
    "belongs to rounds with hidden hash functions, which this version does not support, because "
    "noise is what protects rows: draw a plan without a secret"
)


def ways_to_read():
    """Yield golden files of rounds with hidden hash functions, with commands that read them."""
    for name in ("plan", "layout", "round", "sealed", "release", "sketch", "secret"):
        yield name, ("inspect", HIDDEN / f"{name}.hush")
    yield "plan", ("round", "open", HIDDEN / "plan.hush", "a.card", "--key", "a.key")
    yield "plan", ("plan", "check", HIDDEN / "plan.hush", "rows.csv")
    yield "layout", ("round", "open", HIDDEN / "layout.hush", "a.card", "--key", "a.key")
    yield "round", ("round", "show", HIDDEN / "round.hush")
    yield "sealed", ("round", "verify", HIDDEN / "sealed.hush")
    yield "release", ("report", HIDDEN / "release.hush")
    yield "release", ("merge", HIDDEN / "release.hush")
    yield "sealed", ("round", "model", HIDDEN / "sealed.hush", "--book", "s00.book")
    yield "sealed.rounds", ("inspect", GOLDEN / "protocol-1" / "rounds" / "sealed.hush")


@pytest.mark.parametrize(("name", "line"), list(ways_to_read()))
def test_files_of_rounds_with_hidden_hash_functions_are_refused_with_a_way_on(
    refused, tmp_path, monkeypatch, name, line
):
    """Nothing reads them any more; each command says so."""
    monkeypatch.chdir(tmp_path)
    Keys.generate("a").save("a.key")
    Keys.generate("a").card.save("a.card")
    Path("rows.csv").write_text("x0,x1,x2\n1,2,3\n")
    outputs = {"open": ("--epsilon", 1, "-o", "o.hush"), "model": ("-o", "o.hush"),
               "report": ("-o", "o.html"), "merge": ("-o", "o.hush")}  # fmt: skip
    more = next((outputs[word] for word in line if word in outputs), ())
    refused(*line, *more, says=WAY_ON)
    assert not list(tmp_path.glob("o.*"))


def test_a_round_with_hidden_hash_functions_in_a_folder_stops_no_other(consortium, tmp_path):
    """It is set aside like a file of another version."""
    those = consortium(2)
    box = tmp_path / "box"
    box.mkdir(mode=0o700)
    content, plain = (HIDDEN / "round.hush").read_bytes(), those.open()
    round_id = json.loads(files.manifest_text(content, "round"))["digest"]
    store = Store.open(box)
    store.add(name_of(round_id, "round", "lead", content), content)
    post_round(store, plain)
    assert [one.round_id for one in rounds(store)] == [plain.round_id]


def test_a_site_does_not_answer_a_request_for_hidden_hash_functions(consortium):
    those = consortium(2)
    site = those.sites["s00"]
    request = files.pack("message", {}, {"round": np.frombuffer(
        (HIDDEN / "round.hush").read_bytes(), np.uint8)}, those.lead.sign)  # fmt: skip
    answer = Message.read(agent(site).answer(request), site.keys.card)
    assert answer.body == {"word": Refusal.REQUEST.value}
    assert not site.book.answers()


def test_a_book_that_answered_rounds_with_hidden_hash_functions_keeps_its_chain(tmp_path, run):
    """Two rounds at epsilon 1 were answered, the first of them with hidden hash functions."""
    path = tmp_path / "s00.book"
    shutil.copy(HIDDEN / "s00.book", path)
    path.chmod(0o600)
    hidden = files.manifest_text((HIDDEN / "round.hush").read_bytes(), "round")
    with Book.open(path) as book:
        assert book.head == "117d4cee4117e2ab7f72bf6bf68d9dfab48493adf09825c3606b0c8994ac9f86"
        first, second = book.answers()
        assert first.round_id == json.loads(hidden)["digest"]
        spent = book.total("all rows")
        assert spent == pytest.approx(1.4547, abs=1e-4)  # of both rounds
    shown = run("round", "book", path, "--json").json
    assert [one["round_id"] for one in shown["rounds"]] == [first.round_id, second.round_id]
    # Further rounds add to both.
    with Book.open(path) as book:
        more = replace(book.spent("all rows")[-1], release="another")
        assert book.total("all rows", more) > spent


def test_the_site_s_file_names_no_shared_plan(tmp_path):
    (tmp_path / "a.toml").write_text('key = "a.key"\nplan = "plan.hush"\n')
    with pytest.raises(FileError, match=r"a\.toml, line 2: the entry plan .*" + WAY_ON):
        SiteSettings.load(tmp_path / "a.toml")


@pytest.mark.parametrize(
    "line",
    [
        "plan draw schema.toml --secret x -o p.hush",
        "round next a.hush b.hush --key k --secret x -o p.hush",
        "round next a.hush b.hush --key k --layout x -o p.hush",
        "round next a.hush b.hush --key k --plan x -o p.hush",
        "round show a.hush --plan x",
        "round model a.hush --plan x -o m.hush",
        "round ranges a.hush --plan x -o r.csv",
    ],
)
def test_options_for_hidden_hash_functions_are_refused_with_a_way_on(refused, line):
    refused(*line.split(), code=2, says=["was removed", WAY_ON])


def test_a_bound_on_rows_is_refused_with_a_way_on(refused):
    line = "round open plan.hush a.card --key k --epsilon 1 --days 3 --max-rows 100 -o r.hush"
    says = ["was removed", "max_rows, a bound on the rows of a site, was dropped", "open the round"]
    refused(*line.split(), code=2, says=says)


@pytest.mark.parametrize("line", ["plan hide p.hush -o l.hush", "round secret -o s.hush"])
def test_commands_for_hidden_hash_functions_are_refused_with_a_way_on(refused, line):
    refused(*line.split(), code=2, says="was removed: noise is what protects rows")


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


def test_a_file_that_changes_while_it_is_collected_stops_the_result(contradicted):
    """What is taken out of a sum is not read again; what stays in is."""
    _, round_, paths = contradicted
    collection = Collection(round_)
    for path in paths:
        collection.add(path.name, path, T0)
    paths[0].write_bytes(paths[2].read_bytes())
    with pytest.raises(RoundError, match="'s00' has changed since it was read"):
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
