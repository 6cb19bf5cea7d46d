"""Keys under a passphrase, and books that 1.0.0rc1 encrypted."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from hushtable.errors import FileError, UsageError
from hushtable_federation import credentials
from hushtable_federation.book import chain
from hushtable_federation.book.book import Book
from hushtable_federation.keys import Keys, passphrase_of
from hushtable_federation.site import Site

SECRET = "correct horse ' battery \" staple"
WHERE = "env:HUSHTABLE_TEST_PASSPHRASE"
OLD = Path(__file__).parent / "encrypted"
FACTS = json.loads((OLD / "facts.json").read_text())


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("HUSHTABLE_TEST_PASSPHRASE", SECRET)


@pytest.fixture
def old(tmp_path):
    """A book and keys that 1.0.0rc1 encrypted."""
    for name in ("north.key", "north.book"):
        shutil.copy(OLD / name, tmp_path / name)
        (tmp_path / name).chmod(0o600)
    return tmp_path


# --- keys -----------------------------------------------------------------------------------------


def test_keys_are_sealed_as_other_libraries_read_them(tmp_path, run):
    """Under scrypt with the cost that OWASP advises, and ChaCha20-Poly1305."""
    made = run("round", "keygen", "north", "--cap", 2, "--passphrase", WHERE, "--folder", tmp_path)
    assert made.code == 0
    text = (tmp_path / "north.key").read_text()
    assert (tmp_path / "north.key").stat().st_mode & 0o777 == 0o600
    record = json.loads(text)
    salt, content = bytes.fromhex(record["salt"]), bytes.fromhex(record["sealed"])
    stretched = hashlib.scrypt(
        SECRET.encode(), salt=salt, n=2**17, r=8, p=1, maxmem=2**28, dklen=32
    )
    private = json.loads(ChaCha20Poly1305(stretched).decrypt(content[:12], content[12:], b"north"))
    keys = Keys.load(tmp_path / "north.key")
    assert keys.masking.private_bytes_raw().hex() == private["masking"]
    for secret in (*private.values(), SECRET):
        assert secret not in text
    with Site.open(tmp_path / "north.toml").book() as book:
        assert book.site == "north"


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("env:NONE_HERE", "there is no environment variable NONE_HERE"),
        ("env:SHORT", "5 characters: needs 12 or more"),
        (SECRET, "this is not a reference to a secret"),
    ],
)
def test_a_wrong_reference_leaves_nothing(tmp_path, run, monkeypatch, reference, says):
    monkeypatch.setenv("SHORT", "short")
    made = run("round", "keygen", "a", "--cap", 2, "--passphrase", reference, "--folder", tmp_path)
    assert made.code == 1
    assert says in made.err
    assert SECRET not in made.err + made.out
    assert not list(tmp_path.iterdir())


def test_keys_that_were_changed_or_another_passphrase_do_not_open(old, monkeypatch):
    monkeypatch.setitem(credentials._COST, "n", 2**10)
    Keys.generate("south").save(old / "south.key", WHERE)
    assert Keys.load(old / "south.key").card.name == "south"
    record = json.loads((old / "south.key").read_text())
    for changed in (
        {"name": "north"}, {"salt": record["salt"][2:] + "00"}, {"sealed": "00" * 60},
        {"sealed": 7}, {"salt": "x"}, {"passphrase": 3},
    ):  # fmt: skip
        (old / "south.key").write_text(json.dumps(record | changed))
        with pytest.raises(FileError):
            Keys.load(old / "south.key")
    (old / "south.key").write_text(json.dumps(record))
    monkeypatch.setenv("HUSHTABLE_TEST_PASSPHRASE", "another passphrase")
    with pytest.raises(FileError, match="does not open these keys"):
        Keys.load(old / "south.key")


def test_a_file_with_the_passphrase_is_found_from_the_keys_on(tmp_path, monkeypatch):
    monkeypatch.setitem(credentials._COST, "n", 2**10)
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    (tmp_path / "secret").chmod(0o600)
    Keys.generate("north").save(tmp_path / "north.key", "file:secret")
    monkeypatch.chdir("/")
    assert Keys.load(tmp_path / "north.key").card.name == "north"


# --- books ----------------------------------------------------------------------------------------


def test_an_encrypted_book_is_converted_with_all_that_it_holds(old, run):
    pytest.importorskip("sqlcipher3")
    done = run("round", "book", old / "north.book", "--convert", "--json")
    assert done.code == 0
    assert done.json["head"] == FACTS["links"][-1]
    assert (old / "north.book").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in old.iterdir()) == ["north.book", "north.key"]
    with Book.open(old / "north.book", Keys.load(old / "north.key").card) as book:
        assert [entry.link for entry in book.history()] == FACTS["links"]
        assert book.total("all rows") == FACTS["total"]
        assert len(book._register(book.history()[-1])) == 60
        steps = book._db.run("select round_id, step, asked from steps order by 1, 2")
        assert [list(step) for step in steps] == FACTS["steps"]
        blobs = book._db.run("select digest from blobs order by 1")
        assert [digest for (digest,) in blobs] == FACTS["blobs"]
        book.set_cap(12.0, 1e-6)  # it goes on
    assert run("round", "book", old / "north.book", "--json").json["entries"] == 9


def test_other_commands_name_the_one_that_converts(old, run):
    before = {path: path.read_bytes() for path in old.iterdir()}
    done = run("round", "book", old / "north.book")
    assert done.code == 1
    assert f"round book {old / 'north.book'} --convert" in " ".join(done.err.split())
    with pytest.raises(FileError, match="this book is encrypted, or damaged"):
        Book.open(old / "north.book")
    assert {path: path.read_bytes() for path in old.iterdir()} == before
    assert passphrase_of(old / "north.key") == WHERE


def test_what_cannot_be_converted_stays_as_it_was(old, run, monkeypatch):
    sqlcipher = pytest.importorskip("sqlcipher3")
    path, before = old / "north.book", (old / "north.book").read_bytes()
    monkeypatch.setenv("HUSHTABLE_TEST_PASSPHRASE", "another passphrase")
    with pytest.raises(FileError, match="check the passphrase"):
        chain.convert(path)
    monkeypatch.setenv("HUSHTABLE_TEST_PASSPHRASE", SECRET)
    Keys.generate("other").save(old / "other.key")
    with pytest.raises(UsageError, match="names no passphrase"):
        chain.convert(path, old / "other.key")
    with monkeypatch.context() as patch:
        patch.setitem(__import__("sys").modules, "sqlcipher3", None)
        with pytest.raises(UsageError, match="pip install sqlcipher3"):
            chain.convert(path)
    changed = bytearray(before)
    changed[5000] ^= 1
    path.write_bytes(changed)
    with pytest.raises(FileError, match="the book is unchanged"):
        chain.convert(path)
    path.write_bytes(before)
    held = chain._opened(sqlcipher.dbapi2, path, SECRET)
    held.execute("begin immediate")
    monkeypatch.setattr(chain, "_PATIENCE", 0.1)
    with pytest.raises(FileError, match="stop other programs"):
        chain.convert(path)
    held.close()
    assert path.read_bytes() == before
    assert not list(old.glob(".north.book.*"))


def test_a_book_that_is_not_encrypted_is_not_converted(tmp_path, run):
    assert run("round", "keygen", "north", "--cap", 2, "--folder", tmp_path).code == 0
    done = run("round", "book", tmp_path / "north.book", "--convert")
    assert done.code == 2
    assert "is not encrypted: leave out --convert" in done.err
    done = run("round", "book", tmp_path / "north.book", "--key", tmp_path / "north.key")
    assert done.code == 2


def test_a_process_with_the_old_file_open_notes_nothing_in_it(tmp_path, old):
    """Else it would be lost, and a round could be answered twice."""
    pytest.importorskip("sqlcipher3")
    copy = old / "copy.book"
    shutil.copy(old / "north.book", copy)
    copy.chmod(0o600)
    chain.convert(copy, old / "north.key")
    with Book.open(copy) as opened:
        shutil.copy2(copy, old / "new")
        (old / "new").replace(copy)
        with pytest.raises(FileError, match="this file was replaced a moment ago"):
            opened.set_cap(9.0, 1e-6)


def test_the_old_command_names_what_replaces_it(run):
    done = run("round", "protect", "north.key", "--passphrase", WHERE)
    assert done.code == 2
    assert (
        "round protect was removed: encrypt the disk; for keys with a passphrase: round key"
        in " ".join(done.err.split())
    )
