"""Who may read what is written: exact counts and rows' scores their owner alone, from the start."""

import os
import stat
from pathlib import Path

import numpy as np
import pytest

from hushtable import Feature, HushTable, Plan, Schema, Sketch, files
from hushtable.cli import main
from hushtable.federation.book import Book
from hushtable.federation.keys import Keys

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")

SCHEMA = Schema([Feature.numeric("x", low=0, high=1), Feature.numeric("y", low=0, high=1)])
OWNER = 0o600


def mode(path):
    return stat.S_IMODE(Path(path).stat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o077], ids="umask {:03o}".format)
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
        "detector of a release": HushTable.from_counts(release),
        "card": keys.card,
    }
    stay = {
        "sketch": sketch,
        "detector": detector,
        "plan with first counts": plan.second_pass(sketch),
        "plan of the data's ranges": detector.plan_,
        "keys": keys,
    }
    for name, what in (travel | stay).items():
        what.save(tmp_path / name)
        assert mode(tmp_path / name) == (public if name in travel else OWNER), name


def test_files_of_rounds(tmp_path, public):
    golden = Path(__file__).parent / "golden" / "protocol-1" / "rounds"
    for name in ("round", "s00.submission", "sealed"):
        files.write_bytes(tmp_path / name, (golden / f"{name}.hush").read_bytes())
        assert mode(tmp_path / name) == public, name


def test_a_local_model(tmp_path, public):
    golden = Path(__file__).parent / "golden" / "protocol-1" / "rounds" / "local.hush"
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
    with files.replacing(path, private=private) as temporary:
        assert mode(temporary) == (OWNER if private else public)
        temporary.write_bytes(b"1")
        assert mode(temporary) == (OWNER if private else public)
    assert mode(path) == (OWNER if private else public)


def test_a_file_that_is_in_the_way_is_not_written_through(tmp_path, monkeypatch):
    """Whoever guesses the temporary file's name cannot have it lead elsewhere."""
    monkeypatch.setattr("secrets.token_hex", lambda _: "guess")
    (tmp_path / ".a.guess.part").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError), files.replacing(tmp_path / "a"):
        pass
    assert os.listdir(tmp_path) == [".a.guess.part"]


def test_files_of_the_commands(tmp_path, rows, public, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savetxt("rows.csv", rows, delimiter=",", header="x,y", comments="")
    for line, written in [
        ("fit rows.csv -o m.hush", "m.hush"),
        ("score rows.csv --model m.hush -o s.csv", "s.csv"),
        ("score rows.csv --model m.hush -o s.parquet", "s.parquet"),
        ("report m.hush rows.csv -o r.html", "r.html"),
    ]:
        assert main(line.split()) == 0, line
        assert mode(written) == OWNER, line
