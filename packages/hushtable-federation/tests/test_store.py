"""The folder of a round: whole files or none, in a directory and far away."""

import errno
import hashlib
import os
import socket
import stat
import sys
import types
import uuid
from collections import namedtuple

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given
from hypothesis import strategies as st

from hushtable import far
from hushtable.errors import FileError, MissingExtraError
from hushtable_federation import permissions
from hushtable_federation.folder import mailbox
from hushtable_federation.folder.mailbox import Name, Store, intact, name_of, parsed
from hushtable_federation.keys import is_name

ROUND = "0123456789abcdef" * 4
CONTENT = b"good day" * 1_000
NAME = name_of(ROUND, "masked", "St. Mary 2", CONTENT)

Folder = namedtuple("Folder", "url put get remove listed")


def local(tmp_path):
    folder = tmp_path / "round [1] *"
    folder.mkdir()

    def put(name, content):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)

    return Folder(
        str(folder),
        put,
        lambda name: (folder / name).read_bytes(),
        lambda name: (folder / name).unlink(),
        lambda: {path.name for path in folder.iterdir()},
    )


def memory(_):
    return in_fsspec("memory", MemoryFileSystem())


def in_fsspec(protocol, system):
    root = f"/{uuid.uuid4().hex}"
    system.mkdir(root)
    return Folder(
        f"{protocol}:/{root}",
        lambda name, content: system.pipe_file(f"{root}/{name}", content),
        lambda name: system.cat_file(f"{root}/{name}"),
        lambda name: system.rm_file(f"{root}/{name}"),
        lambda: {path.rpartition("/")[2] for path in system.ls(root, detail=False)},
    )


class Renaming(MemoryFileSystem):
    """A backend that renames, and is told to misbehave."""

    protocol = "toyfolder"
    store: dict = {}  # noqa: RUF012
    pseudo_dirs: list = [""]  # noqa: RUF012
    rename_fails = truncates = False
    stale: list | None = None
    refuses: BaseException | None = None

    @classmethod
    def _strip_protocol(cls, path):
        return MemoryFileSystem._strip_protocol(path.removeprefix("toyfolder://"))

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        if type(self).refuses:
            raise type(self).refuses
        if type(self).truncates:
            value = value[:10]
        super().pipe_file(path, value, mode, **kwargs)

    def mv(self, path1, path2, **kwargs):
        if type(self).rename_fails:
            raise FileExistsError(path2)
        self.cp_file(path1, path2)
        self.rm_file(path1)

    def ls(self, path, detail=True, **kwargs):
        found = super().ls(path, detail=detail, **kwargs)
        return found if type(self).stale is None else type(self).stale


@pytest.fixture
def toy(monkeypatch):
    fsspec.register_implementation("toyfolder", Renaming, clobber=True)
    folder = in_fsspec("toyfolder", Renaming())

    def misbehave(**how):
        for name, value in how.items():
            monkeypatch.setattr(Renaming, name, value)

    return folder, Store.open(folder.url), misbehave


@pytest.fixture(params=[local, memory])
def folder(request, tmp_path):
    return request.param(tmp_path)


@pytest.fixture
def store(folder):
    return Store.open(folder.url)


# --- subfolders ---------------------------------------------------------------------------------


def test_a_party_writes_into_its_subfolder_and_others_look_there_first(folder):
    """What others add stands behind it, whatever its name; and no one else is bound to it."""
    folder.put("St. Mary 2/.keep", b"")
    own, other = Store.open(folder.url, "St. Mary 2"), Store.open(folder.url, "lead")
    junk = [b"%d" % i for i in range(300)]
    first = min(junk, key=lambda one: name_of(ROUND, "masked", "St. Mary 2", one))
    for one in junk:
        other.add(name_of(ROUND, "masked", "St. Mary 2", one), one)
    assert (own.add(NAME, CONTENT), own.add(NAME, CONTENT), own.aside) == (True, False, "")
    assert folder.get(f"St. Mary 2/{NAME}") == CONTENT
    assert NAME not in folder.listed()
    assert NAME in other.names()
    names = other.first_of(other.names(), "St. Mary 2")
    assert names[0] == NAME
    assert names[1] == name_of(ROUND, "masked", "St. Mary 2", first)
    assert other.read(NAME, writer="St. Mary 2") == other.read(NAME) == CONTENT
    assert other.damaged == set()


def test_a_strangers_subfolder_is_not_written_to(tmp_path, monkeypatch):
    """Its owner could remove what lies in it: it is read, and never the only place."""
    (tmp_path / "north").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    ours = os.lstat

    def strangers(path, **options):
        found = ours(path, **options)
        is_it = os.path.basename(path) == "north"
        return os.stat_result((*found[:4], 4343 if is_it else found.st_uid, *found[5:10]))

    monkeypatch.setattr(os, "lstat", strangers)
    store = Store.open(tmp_path, "north")
    assert store.add(NAME, CONTENT)
    assert (tmp_path / NAME).read_bytes() == CONTENT
    assert not list((tmp_path / "north").iterdir())
    assert "belongs to someone else" in store.aside
    assert "Ask the person who set the folder up" in store.aside


@pytest.mark.parametrize("lay", ["file", "link", "circle", "pipe"])
def test_what_is_no_subfolder_but_has_its_name(tmp_path, lay):
    (tmp_path / "box").mkdir()
    (tmp_path / "else").mkdir()
    path = tmp_path / "box" / "north"
    make = {
        "file": path.touch, "link": lambda: path.symlink_to(tmp_path / "else"),
        "circle": lambda: path.symlink_to(path), "pipe": lambda: os.mkfifo(path),
    }  # fmt: skip
    make[lay]()
    (tmp_path / "else" / NAME).write_bytes(CONTENT)
    store = Store.open(tmp_path / "box", "north")
    assert store.names() == []
    assert store.add(NAME, CONTENT)
    assert (tmp_path / "box" / NAME).read_bytes() == CONTENT
    assert {one.name for one in (tmp_path / "else").iterdir()} == {NAME}


def test_a_subfolder_that_may_not_be_listed_hinders_nobody(tmp_path, monkeypatch):
    (tmp_path / "north").mkdir()
    scan = os.scandir

    def refuses(path):
        if os.path.basename(path) == "north":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuses)
    store = Store.open(tmp_path)
    store.add(NAME, CONTENT)
    assert store.names() == [NAME]


@pytest.mark.parametrize(
    ("owner", "is_ours"), [({"north": 7}, True), ({"north": 0}, True), ({}, True),
                           ({"north": 8}, False), ({"north": 8, "": 8}, True)],
)  # fmt: skip
def test_owners_of_a_far_subfolder(toy, monkeypatch, owner, is_ours):
    """A server that says whose something is shows it of a file once it is there."""
    box, _, _ = toy
    box.put("north/.keep", b"")
    root, info = box.url.partition("://")[2].strip("/"), Renaming.info

    def owned(self, path, **options):
        below = path.strip("/").removeprefix(root).strip("/")
        of = 7 if below.endswith(".hush") else owner.get(below, 5)
        return info(self, path, **options) | ({"uid": of} if owner else {})

    monkeypatch.setattr(Renaming, "info", owned)
    store = Store.open(box.url, "north")
    assert store.add(NAME, CONTENT)
    assert box.get(f"north/{NAME}") == CONTENT
    assert (NAME in box.listed()) is not is_ours
    assert bool(store.aside) is not is_ours
    assert store.read(NAME) == CONTENT


# --- names --------------------------------------------------------------------------------------


LETTERS = "abcxyzABCXYZ0189_"
SENDERS = st.builds(str.__add__, st.sampled_from(LETTERS), st.text(f"{LETTERS} .-", max_size=63))


@given(
    st.text("0123456789abcdef", min_size=16, max_size=64),
    st.builds(str.__add__, st.sampled_from("amz"), st.text("az09-", max_size=23)),
    SENDERS.filter(is_name)
    | st.sampled_from(["a.0123456789abcdef", "x.hush", "a.masked.b", "a.", "CON", "a.."]),
    st.binary(max_size=99),
)
def test_a_name_says_what_it_was_made_of(round_id, step, sender, content):
    name = name_of(round_id, step, sender, content)
    digest = hashlib.sha256(content).hexdigest()[:16]
    assert parsed(name) == Name(round_id[:16], step, sender, digest)
    assert intact(name, content)
    assert not intact(name, content + b"x")
    # Room for the name of a temporary file, also on file systems that encrypt names.
    assert len(f".{name}.01234567.part") <= 143


@pytest.mark.parametrize(
    "name",
    [
        "", ".hush", "notes.txt", f".{NAME}", f".{NAME}.01234567.part", f"{NAME}.part", f"x/{NAME}",
        f"../{NAME}", NAME.upper(), NAME + "\n", NAME.replace("St.", "S\n"),
        NAME.replace("St. Mary 2", " "), NAME.replace("St. Mary 2", "a/b"),
        NAME.replace("St. Mary 2", "c:d"), NAME.replace("St. Mary 2", "caf\u00e9"),
        NAME.replace("St. Mary 2", "m" * 65), NAME.replace(".hush", " (1).hush"),
        NAME.replace(".masked.", ".MASKED."), NAME.replace(".masked.", f".{'m' * 25}."),
        NAME[1:], "\ud800" + NAME,
    ],
)  # fmt: skip
def test_other_names_are_foreign(name):
    assert parsed(name) is None
    assert not intact(name, CONTENT)


@pytest.mark.parametrize(
    ("round_id", "step", "sender"),
    [("0" * 15, "keys", "a"), ("g" * 16, "keys", "a"), (ROUND, "a.b", "a"), (ROUND, "keys", "a/b")],
)
def test_no_name_is_made_of_what_has_another_form(round_id, step, sender):
    with pytest.raises(FileError, match="these make no valid file name"):
        name_of(round_id, step, sender, b"")


# --- in every folder ----------------------------------------------------------------------------


@pytest.mark.parametrize("left", [b"", CONTENT[:100], CONTENT + b"x", bytes(len(CONTENT))])
def test_a_damaged_file_is_not_read_and_is_healed(store, folder, left):
    folder.put(NAME, left)
    assert store.names() == [NAME]
    assert store.read(NAME) is None
    assert store.damaged == {NAME}
    assert folder.get(NAME) == left, "reading changed it"
    other = Store.open(folder.url)
    assert store.add(NAME, CONTENT) is True
    assert store.damaged == set()
    assert store.read(NAME) == CONTENT
    folder.put(NAME, left)
    assert other.read(NAME) is None
    folder.put(NAME, CONTENT)  # it arrived late
    assert other.read(NAME) == CONTENT
    assert other.damaged == set()
    folder.put(NAME, left)
    assert other.read(NAME) is None
    folder.remove(NAME)
    assert other.read(NAME) is None
    assert other.damaged == set()


def test_a_folder_named_like_a_file_of_the_round(store, folder):
    folder.put(f"{NAME}/x", b"")
    assert store.names() == []
    assert store.read(NAME) is None
    assert store.damaged == {NAME}


def test_a_file_that_is_too_large_is_not_read(store, folder):
    folder.put(NAME, CONTENT)
    assert store.read(NAME, most=len(CONTENT)) == CONTENT
    assert store.read(NAME, most=len(CONTENT) - 1) is None
    assert store.damaged == {NAME}


def test_no_name_leads_out_of_the_folder(store, folder):
    for name in (f"../{NAME}", "notes.txt", f"sub/{NAME}"):
        assert store.read(name) is None
        with pytest.raises(FileError, match="this name does not match the content"):
            store.add(name, CONTENT)
    with pytest.raises(FileError, match="this name does not match the content"):
        store.add(NAME, CONTENT[1:])
    assert folder.listed() == set()


def test_a_folder_that_is_missing_or_a_file(folder, store):
    with pytest.raises(FileError, match=r"create (or mount )?the folder"):
        Store.open(f"{folder.url}/none")
    store.add(NAME, CONTENT)
    with pytest.raises(FileError, match=r"give (a|the URL of a) folder"):
        Store.open(f"{folder.url}/{NAME}")


# --- in a directory -----------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path):
    return Store.open(tmp_path)


def test_the_umask_decides_who_may_read(here, tmp_path):
    before = os.umask(0o027)
    try:
        here.add(NAME, CONTENT)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o640


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
@pytest.mark.parametrize(
    ("mode", "alone", "opens"),
    [
        (0o777, True, False),
        (0o757, True, False),
        (0o2770, False, False),
        (0o2775, False, False),
        (0o2770, True, True),
        (0o755, False, True),
        (0o700, False, True),
        (0o1777, False, True),
        (0o3770, False, True),
    ],
)
def test_a_folder_in_which_others_may_replace_files(tmp_path, monkeypatch, mode, alone, opens):
    """They may where they can write and the sticky bit is not set."""
    monkeypatch.setattr(permissions, "_is_alone", lambda user, group: alone)
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(mode)
    if opens:
        assert Store.open(folder).names() == []
        return
    with pytest.raises(FileError, match=rf"mode {mode:o}\) .*run chmod \+t on it"):
        Store.open(folder)
    folder.chmod(mode | stat.S_ISVTX)  # what the words propose
    assert Store.open(folder).names() == []


@pytest.mark.skipif(os.name != "posix", reason="groups are of POSIX")
@pytest.mark.parametrize(
    ("name", "members", "alone"),
    [("ann", [], True), ("ann", ["ann"], True), ("ann", ["bob"], False), ("users", [], False)],
)
def test_the_group_of_one_user_is_nobody_else(monkeypatch, name, members, alone):
    group = types.SimpleNamespace(gr_name=name, gr_mem=members)
    monkeypatch.setattr("pwd.getpwuid", lambda _: types.SimpleNamespace(pw_name="ann"))
    monkeypatch.setattr("grp.getgrgid", lambda _: group)
    assert permissions._is_alone(1000, 1000) is alone


def lay_socket(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path)


@pytest.mark.parametrize(
    "lay",
    [
        os.mkfifo,
        lambda path: os.symlink("/dev/zero", path),
        lambda path: os.symlink(path, path),
        lay_socket,
    ],
    ids=["pipe", "device", "circle", "socket"],
)
def test_a_stranger_cannot_make_it_wait(here, tmp_path, monkeypatch, lay):
    monkeypatch.chdir(tmp_path)
    lay(NAME)
    assert here.names() == []
    assert here.read(NAME) is None
    assert here.damaged == {NAME}
    assert here.add(NAME, CONTENT) is True
    assert here.names() == [NAME]


def test_a_folder_in_the_way_is_named(here, tmp_path):
    (tmp_path / NAME).mkdir()
    with pytest.raises(FileError, match="a folder has the name of a round's file"):
        here.add(NAME, CONTENT)


@pytest.mark.parametrize("way", ["", "a\0b"])
def test_no_path(way):
    with pytest.raises(FileError, match="not the path of a folder"):
        Store.open(way)


def test_a_disk_that_is_unmounted_is_not_an_empty_folder(here, monkeypatch):
    here.add(NAME, CONTENT)
    monkeypatch.setattr(here._place, "_device", -1)  # now another lies at this path
    name = name_of(ROUND, "keys", "south", b"")
    for use in (here.names, lambda: here.read(name), lambda: here.add(name, b"")):
        with pytest.raises(FileError, match="or mount the folder, and run the command again"):
            use()


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "free some space there"),
        (errno.EDQUOT, "free some space there"),
        (errno.EROFS, "ask the administrator of the folder"),
        (errno.EACCES, "ask the administrator of the folder"),
        (errno.ESTALE, "check that the folder can be reached"),
    ],
)
@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_write_that_fails(here, tmp_path, monkeypatch, number, advice, function):
    def fail(*_):
        raise OSError(number, os.strerror(number), "/secret/path")

    with monkeypatch.context() as patch:
        patch.setattr(os, function, fail)
        with pytest.raises(FileError, match=advice) as caught:
            here.add(NAME, CONTENT)
    assert str(caught.value).startswith(f"{tmp_path}: {os.strerror(number)}: ")
    assert "/secret" not in str(caught.value)
    assert list(tmp_path.iterdir()) == [], "half a file stayed"
    assert here.add(NAME, CONTENT) is True


def test_a_file_that_may_not_be_read_is_one_of_the_damaged(here, monkeypatch):
    here.add(NAME, CONTENT)
    monkeypatch.setattr(mailbox.os, "open", lambda *_: refuse(PermissionError(errno.EACCES, "")))
    assert here.read(NAME) is None
    assert here.damaged == {NAME}


def test_a_disk_that_fails_is_no_missing_file(here, monkeypatch):
    here.add(NAME, CONTENT)
    monkeypatch.setattr(mailbox.os, "open", lambda *_: refuse(OSError(errno.EIO, "")))
    with pytest.raises(FileError, match="check that the folder can be reached"):
        here.read(NAME)


def test_it_does_not_open_what_it_lists(here, monkeypatch):
    here.add(NAME, CONTENT)
    monkeypatch.setattr(mailbox.os, "open", lambda *_: refuse(AssertionError("opened")))
    assert here.names() == [NAME]


def refuse(error):
    raise error


# --- far away -----------------------------------------------------------------------------------


def test_a_backend_that_renames_shows_no_half_file(toy, monkeypatch):
    folder, store, _ = toy
    written = []
    monkeypatch.setattr(
        MemoryFileSystem, "open", lambda self, path, **_: written.append(path) or refuse(OSError())
    )
    with pytest.raises(FileError, match="the free space"):
        store.add(NAME, CONTENT)
    (path,) = written
    assert path.rpartition("/")[2].startswith(f".{NAME}.")
    assert path.endswith(".part")
    assert folder.listed() == set()


@pytest.mark.parametrize("left", [None, b"half"])
def test_a_backend_whose_rename_fails(toy, left):
    folder, store, misbehave = toy
    misbehave(rename_fails=True)
    if left is not None:
        folder.put(NAME, left)
    assert store.add(NAME, CONTENT) is True
    assert store.read(NAME) == CONTENT
    assert folder.listed() == {NAME}


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "full"), PermissionError("no"), EOFError(), RuntimeError("x")]
)
def test_whatever_a_backend_raises_gets_words(toy, error):
    folder, store, misbehave = toy
    misbehave(refuses=error)
    with pytest.raises(FileError, match=f"{type(error).__name__}.*check the URL.*space") as caught:
        store.add(NAME, CONTENT)
    assert caught.value.__cause__ is None
    assert folder.listed() == set()


def test_a_size_that_nobody_says_bounds_what_is_read(toy, monkeypatch):
    folder, store, _ = toy
    folder.put(NAME, CONTENT)
    info = MemoryFileSystem.info

    def unsized(self, path, **options):
        return {**info(self, path, **options), "size": None}

    monkeypatch.setattr(Renaming, "info", unsized)
    assert store.read(NAME) == CONTENT
    assert store.read(NAME, most=len(CONTENT)) == CONTENT
    assert store.read(NAME, most=len(CONTENT) - 1) is None
    assert store.damaged == {NAME}


def test_one_file_that_may_not_be_read_far_away(toy, monkeypatch):
    folder, store, _ = toy
    folder.put(NAME, CONTENT)
    monkeypatch.setattr(Renaming, "cat_file", lambda *_, **__: refuse(PermissionError("no")))
    assert store.read(NAME) is None
    assert store.damaged == {NAME}


def test_a_far_folder_that_vanishes(toy):
    folder, store, _ = toy
    root = "/" + folder.url.rpartition("/")[2]
    Renaming.pseudo_dirs.remove(root)
    for use in (store.names, lambda: store.read(NAME)):
        with pytest.raises(FileError, match=r"FileNotFoundError.*create the folder"):
            use()


def test_lists_are_not_kept(toy, monkeypatch):
    _, store, _ = toy
    forgotten = []
    monkeypatch.setattr(Renaming, "invalidate_cache", lambda self, path=None: forgotten.append(1))
    for use in (store.names, lambda: store.read(NAME)):
        use()
        assert forgotten.pop()


def test_without_fsspec(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'hushtable\[remote\]'"):
        Store.open("memory://x")
    with pytest.raises(FileError, match=r"Not a directory|No such file"):
        Store.open("/none/there")


def test_no_secret_of_a_url_is_said(monkeypatch):
    def fails(*_, **__):
        raise OSError("who: secret refused at host")

    monkeypatch.setattr(far, "connect", fails)
    with pytest.raises(FileError, match=r"^sftp://host/x: OSError: check") as caught:
        Store.open("sftp://who:secret@host/x?token=abc")
    assert "secret" not in str(caught.value)
    chain = "simplecache::sftp://who:secret@host/x"
    with pytest.raises(FileError, match="combines several URLs") as caught:
        Store.open(chain)
    assert "secret" not in str(caught.value)
    with pytest.raises(FileError, match="OSError: check") as caught, far.reaching(chain, FileError):
        raise OSError("secret refused")
    assert "secret" not in str(caught.value)
    assert far.public(chain) == "simplecache::sftp://host/x"
    assert far.public("zip://a.csv::s3://k:secret@b/x?t=1") == "zip://a.csv::s3://b/x"


def test_no_backend_for_a_url():
    with pytest.raises(FileError, match=r"^none://x: ValueError: Protocol not known"):
        Store.open("none://x")


def test_where_webdav_is_found(monkeypatch):
    asked = {}

    class Dav(MemoryFileSystem):
        protocol = "webdav"

        def __init__(self, base_url, auth=None):
            super().__init__()
            asked.update(base_url=base_url, auth=auth)

        def info(self, path, **_):
            return {"name": path, "type": "directory", "size": 0}

    fsspec.register_implementation("webdav", Dav, clobber=True)
    try:
        place = mailbox.Remote("davs://who:a%40b@host:8443/dav/a%20b/")
    finally:
        fsspec.register_implementation("webdav", "webdav4.fsspec.WebdavFileSystem", clobber=True)
    assert asked == {"base_url": "https://host:8443", "auth": ("who", "a@b")}
    assert (place.where, place._path("x")) == ("davs://host:8443/dav/a%20b/", "dav/a b/x")


def test_a_file_is_added_once(store, folder):
    other = Store.open(folder.url)
    assert store.names() == other.names() == []
    assert store.read(NAME) is None
    assert store.add(NAME, CONTENT) is True
    assert store.add(NAME, CONTENT) is False
    assert store.read(NAME) == CONTENT == folder.get(NAME)
    assert store.names() == other.names() == [NAME]
    assert other.read(NAME) == CONTENT
    assert other.add(NAME, CONTENT) is False
    assert folder.listed() == {NAME}, "a temporary file stayed"
    assert store.damaged == set()
    folder.remove(NAME)
    assert store.read(NAME) is None
