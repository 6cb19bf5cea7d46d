"""Keys and books that are encrypted on the disk."""

import hashlib
import json
import shutil
import sqlite3
import threading

import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from cli_helpers import do, hold, make_parties, trust, visit
from hushtable.errors import FileError
from hushtable_federation import at_rest
from hushtable_federation.book.book import Book
from hushtable_federation.keys import Keys, passphrase_of
from hushtable_federation.site import Site

pytest.importorskip("sqlcipher3")
SECRET = "correct horse ' battery \" staple"
WHERE = "env:HUSHTABLE_TEST_PASSPHRASE"
SITES = "north", "south"


@pytest.fixture(autouse=True)
def cheap_keys(request, monkeypatch):
    """Stretch passphrases in milliseconds, except where the cost is what a test looks at."""
    if "real_cost" not in request.fixturenames:
        monkeypatch.setitem(at_rest._COST, "n", 2**10)


@pytest.fixture
def real_cost():
    """Let passphrases be stretched as they are outside tests."""


@pytest.fixture
def here(tmp_path, monkeypatch, capsys):
    """Two sites and a coordinator, whose files are not encrypted yet."""
    monkeypatch.setenv("HUSHTABLE_TEST_PASSPHRASE", SECRET)
    make_parties(tmp_path, *SITES)
    capsys.readouterr()
    return tmp_path


def protect(here, *names):
    for name in names:
        do("round", "protect", here / f"{name}.key", "--passphrase", WHERE)


def open_round(here, name):
    do("round", "open", here / "plan.hush", *(here / f"{site}.card" for site in SITES), "--key",
       here / "lead.key", "--epsilon", 1, "--title", name, "-o", here / f"{name}.hush")  # fmt: skip


def test_a_round_with_encrypted_keys_and_books(here, run):
    """One is answered before they are encrypted, and one after: the book goes on."""
    open_round(here, "may")
    hold(here, "may.hush", *SITES)
    secrets = [Keys.load(here / f"{name}.key") for name in (*SITES, "lead")]
    halves = [half for keys in secrets for half in keys._halves().values()]
    with Book.open(here / "north.book") as book:
        head, titles = book.head, [one.title for one in book.answers()]
    protect(here, *SITES, "lead")
    assert at_rest.is_encrypted(here / "north.book")
    with Book.open(here / "north.book") as book:
        assert (book.head, [one.title for one in book.answers()]) == (head, titles)
    open_round(here, "june")
    hold(here, "june.hush", *SITES, known=True)
    assert run("round", "book", here / "north.book", "--json").json["rounds"][1]["title"] == "june"
    for path in here.iterdir():
        content = path.read_bytes() if path.is_file() else b""
        for half in halves:
            assert half.encode() not in content, path
            assert bytes.fromhex(half) not in content, path
        if path.suffix == ".book":
            assert b"june" not in content
            assert b"SQLite" not in content
            assert path.stat().st_mode & 0o777 == 0o600
        if path.suffix == ".key":
            assert SECRET.encode() not in content
            assert path.stat().st_mode & 0o777 == 0o600


def test_keys_are_sealed_as_other_libraries_read_them(real_cost, here):
    """Under scrypt with the cost that OWASP advises, and ChaCha20-Poly1305."""
    private = Keys.load(here / "north.key")._halves()
    protect(here, "north")
    record = json.loads((here / "north.key").read_text())
    salt, content = bytes.fromhex(record["salt"]), bytes.fromhex(record["sealed"])
    stretched = hashlib.scrypt(
        SECRET.encode(), salt=salt, n=2**17, r=8, p=1, maxmem=2**28, dklen=32
    )
    opened = ChaCha20Poly1305(stretched).decrypt(content[:12], content[12:], b"north")
    assert json.loads(opened) == private


def test_protecting_twice_changes_nothing(here, run):
    protect(here, "north")
    before = [(here / name).read_bytes() for name in ("north.key", "north.book")]
    again = run("round", "protect", here / "north.key", "--passphrase", WHERE)
    assert (again.code, "encrypted already" in again.out) == (0, True)
    other = run("round", "protect", here / "north.key", "--passphrase", "env:OTHER")
    assert (other.code, "give that reference" in other.err) == (2, True)
    assert [(here / name).read_bytes() for name in ("north.key", "north.book")] == before


def test_a_kill_between_keys_and_book_is_mended_by_the_next_call(here, run, monkeypatch):
    def dies(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(at_rest, "encrypt_book", dies)
        assert run("round", "protect", here / "north.key", "--passphrase", WHERE).code == 130
    assert passphrase_of(here / "north.key") == WHERE
    with Book.open(here / "north.book"):  # as it was
        assert not at_rest.is_encrypted(here / "north.book")
    protect(here, "north")
    assert at_rest.is_encrypted(here / "north.book")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (None, "there is no environment variable HUSHTABLE_TEST_PASSPHRASE"),
        ("short", "5 characters: needs 12 or more"),
        ("another passphrase", "does not open these keys"),
    ],
)
def test_a_passphrase_that_opens_nothing(here, run, monkeypatch, given, says):
    open_round(here, "may")
    box = here / "box"
    box.mkdir()
    do(*visit(here, box, "lead", "--post", here / "may.hush"))
    protect(here, "north")
    before = {path: path.read_bytes() for path in here.iterdir() if path.is_file()}
    monkeypatch.delenv("HUSHTABLE_TEST_PASSPHRASE")
    if given is not None:
        monkeypatch.setenv("HUSHTABLE_TEST_PASSPHRASE", given)
    done = run(*visit(here, box, "north", *trust(here, "lead", "south"), rows="north.csv"))
    assert done.code == 1
    assert says in done.err
    assert SECRET not in done.err
    assert "Traceback" not in done.err
    assert {path: path.read_bytes() for path in before} == before


def test_a_reference_is_no_passphrase(here, run):
    done = run("round", "protect", here / "north.key", "--passphrase", SECRET)
    assert done.code == 1
    assert "this is not a reference to a secret" in done.err
    assert SECRET not in done.err + done.out
    assert Keys.load(here / "north.key").card.name == "north"


def test_a_file_with_the_passphrase_is_found_from_the_keys_on(here, monkeypatch, tmp_path):
    (here / "secret").write_text(f"{SECRET}\n")
    (here / "secret").chmod(0o600)
    do("round", "protect", here / "north.key", "--passphrase", "file:secret")
    monkeypatch.chdir("/")
    assert Keys.load(here / "north.key").card.name == "north"
    with Site.open(here / "north.toml").book() as book:
        assert book.site == "north"


def test_keys_that_were_changed_do_not_open(here):
    protect(here, "north")
    record = json.loads((here / "north.key").read_text())
    for changed in (
        {"name": "south"}, {"salt": record["salt"][2:] + "00"}, {"sealed": "00" * 60},
        {"sealed": 7}, {"salt": "x"}, {"passphrase": 3},
    ):  # fmt: skip
        (here / "north.key").write_text(json.dumps(record | changed))
        with pytest.raises(FileError):
            Keys.load(here / "north.key")


def test_an_encrypted_book_without_its_keys_or_changed_is_refused(here):
    protect(here, "north", "south")
    apart = here / "apart"
    apart.mkdir()
    shutil.copy2(here / "north.book", apart / "north.book")
    with pytest.raises(FileError, match="not a book of this version, or it is damaged"):
        Book.open(apart / "north.book")
    content = bytearray((here / "north.book").read_bytes())
    content[5000] ^= 1
    (here / "north.book").write_bytes(content)
    with pytest.raises(FileError, match="does not open this book, or the book is damaged"):
        Book.open(here / "north.book")


def test_a_process_with_the_old_file_open_notes_nothing_in_it(here):
    """Else it would be lost, and a round could be answered twice."""
    with Book.open(here / "north.book") as old:
        protect(here, "north")
        with pytest.raises(FileError, match="this file was replaced a moment ago"):
            old.set_cap(9.0, 1e-6)
    with Book.open(here / "north.book") as book:
        assert book.epsilon == 3.0


def test_a_book_that_is_being_written_to_is_waited_for(here):
    held, done = sqlite3.connect(here / "north.book", isolation_level=None), []
    held.execute("begin immediate")
    work = threading.Thread(target=lambda: done.append(protect(here, "north")))
    work.start()
    work.join(1.0)
    assert not at_rest.is_encrypted(here / "north.book")
    held.execute("rollback")
    work.join(20.0)
    assert done == [None]
    assert at_rest.is_encrypted(here / "north.book")


def test_a_full_disk_leaves_the_book_as_it_was(here, monkeypatch):
    before = (here / "north.book").read_bytes()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hushtable_federation.at_rest.files.write_bytes", full)
    with pytest.raises(FileError, match="free some space"):
        at_rest.encrypt_book(here / "north.book", SECRET)
    assert (here / "north.book").read_bytes() == before
    assert not list(here.glob(".north.book.*"))


def test_a_passphrase_with_a_zero_byte_is_refused_before_anything_changes(here, run):
    (here / "pw").write_bytes(b"five random words\0 and more")
    (here / "pw").chmod(0o600)
    before = [(here / f"north.{kind}").read_bytes() for kind in ("key", "book")]
    done = run("round", "protect", here / "north.key", "--passphrase", "file:pw")
    assert done.code == 1
    assert "has a zero byte" in done.err
    assert [(here / f"north.{kind}").read_bytes() for kind in ("key", "book")] == before
