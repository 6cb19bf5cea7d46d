"""Who may read what is written: exact counts and rows' scores their owner alone, from the start."""

import os
import stat
from pathlib import Path

import numpy as np
import pytest

import places
from cli_helpers import hold
from hushtable import Feature, HushTable, Plan, Schema, Sketch, files, plugins
from hushtable.cli import main
from hushtable_federation.book.book import Book
from hushtable_federation.keys import Keys
from hushtable_federation.round import Round
from strategies import second_pass

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")

SCHEMA = Schema([Feature.numeric("x", low=0, high=1), Feature.numeric("y", low=0, high=1)])
OWNER = 0o600


def mode(path):
    return stat.S_IMODE(Path(path).stat().st_mode)


UMASKS = [0o000, 0o022, 0o077]
EVERY_DAY_ONE = [0o022, *(pytest.param(mask, marks=pytest.mark.slow) for mask in (0o000, 0o077))]


@pytest.fixture(params=UMASKS, ids="umask {:03o}".format)
def public(request):
    """Set a umask; give the mode of a file that may travel."""
    before = os.umask(request.param)
    yield 0o666 & ~request.param
    os.umask(before)


@pytest.fixture
def rows(rng):
    return rng.random((200, 2))


def test_files_of_the_library(tmp_path, rows, public):
    plan = Plan.draw(SCHEMA, n_tables=4, random_state=0)
    sketch = Sketch.from_data(plan, rows)
    release = sketch.release(1.0)
    detector = HushTable(n_tables=4, random_state=0).fit(rows)
    keys = Keys.generate("a")
    travel = {
        "plan": plan,
        "release": release,
        "card": keys.card,
    }
    stay = {
        "sketch": sketch,
        "detector": detector,
        "detector of a release": HushTable.from_counts(release),
        "plan with first counts": second_pass(sketch, rows),
        "plan of the data's ranges": detector.plan_,
        "keys": keys,
    }
    for name, what in (travel | stay).items():
        what.save(tmp_path / name)
        assert mode(tmp_path / name) == (public if name in travel else OWNER), name


#: Of each kind: whether it is meant to travel. A new kind needs a decision here.
DECIDED = {
    "plan": True, "release": True, "round": True, "submission": True, "message": True,
    "increment": True,
    "periods": False, "sketch": False, "detector": False, "local": False, "home": False,
    "verdicts": False,
}  # fmt: skip


@pytest.mark.parametrize("kind", DECIDED)
def test_every_kind_of_file(tmp_path, public, kind):
    """A kind is for its owner alone unless it is meant to travel, and holds nothing of rows."""
    plan = {"data_dependent": False}
    for entries, travels in (
        ({}, DECIDED[kind]),
        ({"plan": plan, "ledger": {}}, DECIDED[kind]),
        ({"plan": plan | {"data_dependent": True}}, False),
    ):
        files.write(tmp_path / "a.hush", kind, entries, {})
        assert mode(tmp_path / "a.hush") == (public if travels else OWNER), entries


def test_every_kind_is_decided():
    kinds = {*files.KINDS, *plugins.points(plugins.KINDS)}
    assert {name: files.kind_of(name).travels for name in kinds} == DECIDED


def test_what_nobody_decided_is_for_the_owner_alone(tmp_path, public):
    files.write_bytes(tmp_path / "a", b"1")
    with files.replacing(tmp_path / "b") as file:
        file.write(b"1")
    assert mode(tmp_path / "a") == mode(tmp_path / "b") == OWNER


def test_files_of_rounds(tmp_path, public):
    golden = places.GOLDEN / "protocol-1" / "rounds"
    content = (golden / "round.hush").read_bytes()
    Round.from_bytes(content, "round").save(tmp_path / "round")
    assert mode(tmp_path / "round") == public


def test_a_local_model(tmp_path, public):
    golden = places.GOLDEN / "protocol-1" / "rounds" / "local.hush"
    content = files.read(golden)
    apart = ("protocol", "kind", "digest", "arrays", "writer")
    entries = {key: value for key, value in content.manifest.items() if key not in apart}
    for kind in ("local", "detector"):
        files.write(tmp_path / kind, kind, entries, content.arrays)
        assert mode(tmp_path / kind) == OWNER, kind


def test_a_book_and_its_journal(tmp_path, public):
    path = tmp_path / "a.book"
    with Book.create(path, Keys.generate("a").card, epsilon=1.0) as book:
        with book.writing():
            book._note("cap", {"epsilon": 2.0, "delta": 1e-6})
            assert {file.name: mode(file) for file in tmp_path.iterdir()} == {
                "a.book": OWNER, "a.book-journal": OWNER
            }  # fmt: skip
        assert mode(path) == OWNER


@pytest.mark.parametrize("private", [True, False])
def test_a_temporary_file_from_its_first_byte(tmp_path, public, private):
    path = tmp_path / "a"
    path.touch()
    path.chmod(0o644)
    with files.replacing(path, private=private) as file:
        (temporary,) = tmp_path.glob(".a.*.part")
        assert mode(temporary) == (OWNER if private else public)
        file.write(b"1")
        file.flush()
        assert mode(temporary) == (OWNER if private else public)
    assert mode(path) == (OWNER if private else public)


def test_a_file_that_is_in_the_way_is_not_written_through(tmp_path, monkeypatch):
    """Anyone who guesses the temporary file's name cannot have it lead elsewhere."""
    monkeypatch.setattr("secrets.token_hex", lambda _: "guess")
    (tmp_path / ".a.guess.part").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError), files.replacing(tmp_path / "a"):
        pass
    assert os.listdir(tmp_path) == [".a.guess.part"]


@pytest.mark.parametrize("public", EVERY_DAY_ONE, indirect=True)
def test_files_of_the_commands(tmp_path, rows, public, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savetxt("rows.csv", rows, delimiter=",", header="x,y", comments="")
    features = (f'[[feature]]\nname = "{c}"\nkind = "numeric"\nlow = 0\nhigh = 1' for c in "xy")
    Path("schema.toml").write_text("\n".join(features))
    for line, *stay in [
        ("fit rows.csv -o m.hush", "m.hush"),
        ("score rows.csv --model m.hush -o s.csv", "s.csv"),
        ("score rows.csv --model m.hush -o s.parquet", "s.parquet"),
        ("report m.hush rows.csv -o r.html", "r.html"),
        ("plan draft rows.csv -o draft.toml", "draft.toml"),
        ("plan draw schema.toml --tables 4 -o plan.hush",),
        ("plan marginals schema.toml -o marginals.hush",),
        ("plan ranks m.hush -o exact.ranks.hush", "exact.ranks.hush"),
        ("sketch rows.csv --plan plan.hush -o sketch.hush", "sketch.hush"),
        ("release sketch.hush --epsilon 1 -o release.hush",),
        ("plan ranks release.hush -o ranks.hush",),
        ("merge sketch.hush -o sum.hush", "sum.hush"),
        ("merge release.hush -o all.hush",),
        (
            "round keygen a --cap 9 --persons 1 --folder .",
            "a.key",
            "a.book",
            "a.policy.toml",
        ),
        (
            "round keygen b --cap 9 --persons 1 --folder .",
            "b.key",
            "b.book",
            "b.policy.toml",
        ),
        ("round keygen lead --folder .", "lead.key"),
        ("round open plan.hush a.card b.card --key lead.key --epsilon 1 -o round.hush",),
        ("round model result.hush --book a.book -o local.hush", "local.hush"),
    ]:
        if "result.hush" in line:
            hold(Path(), "round.hush", "a", "b", rows="rows.csv").rename("result.hush")
            assert {mode(path) for path in Path("round.box").iterdir()} == {public}
        before = set(os.listdir())
        assert main(line.split()) == 0, line
        new = set(os.listdir()) - before
        assert new
        assert new >= set(stay)
        assert {name: mode(name) for name in new} == {
            name: OWNER if name in stay else public for name in new
        }, line
