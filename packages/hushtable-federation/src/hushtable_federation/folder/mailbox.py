"""The files of rounds in one folder, a directory or far away: append-only, named by their content.

A name says which round, step and sender a file claims to be of, and the digest of its content. So
a file that is cut off or only half there is told from a whole one, and writing twice does no harm.
"""

import contextlib
import errno
import hashlib
import importlib
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from hushtable import far, files
from hushtable.errors import FileError
from hushtable_federation.credentials import BY_DEFAULT, FolderAddress
from hushtable_federation.keys import is_name

#: Bytes of a file at most, if the caller sets no other bound.
MOST = 1 << 30
#: Digits of an identity or digest in a name. Far more than chance needs; a sender with hours to
#: spare can make two files of one name, so that what is signed has to hold the whole digest.
_DIGITS = 16
# Only a sender's name may hold dots: what stands before and after it has none. With the ending
# of a temporary file it is 143 bytes at most, which every file system in use allows.
_FORM = re.compile(r"([0-9a-f]{16})\.([a-z][a-z0-9-]{0,23})\.(.+)\.([0-9a-f]{16})\.hush")


class Name(NamedTuple):
    """The claims of a file's name: nothing that anyone signed."""

    round_id16: str
    step: str
    sender: str
    digest16: str


def name_of(round_id: str, step: str, sender: str, content: bytes) -> str:
    """Return the name of a file.

    Parameters
    ----------
    round_id : str
        Hexadecimal digits, 16 or more.
    step : str
        Up to 24 small letters, digits and hyphens, beginning with a letter.
    sender : str
        As on the sender's card.
    content : bytes
        All that the file holds.

    Raises
    ------
    FileError
        If one of them has another form.
    """
    name = f"{round_id[:_DIGITS]}.{step}.{sender}.{_digest(content)}.hush"
    if parsed(name) != (round_id[:_DIGITS], step, sender, _digest(content)):
        raise FileError(
            f"round {round_id!a}, step {step!a}, sender {sender!a}: these make no name of a file: "
            "give the round's whole identity, a step of small letters, and the name on the card"
        )
    return name


def parsed(name: str) -> Name | None:
    """Return what the name of a file claims; None if it is no name of a file of a round."""
    if not name.endswith(".hush"):  # most of a million foreign files
        return None
    found = _FORM.fullmatch(name)
    return Name(*found.groups()) if found and is_name(found[3]) else None


def intact(name: str, content: bytes) -> bool:
    """Whether a file holds all that its name says; one cut off or half copied does not."""
    claims = parsed(name)
    return claims is not None and claims.digest16 == _digest(content)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGITS]


class Mailbox(Protocol):
    """Where files lie. What fails raises `FileError`.

    A file in the folder itself is given by its name, one in a subfolder as ``SUBFOLDER/NAME``.
    """

    where: str

    def look(self, wanted: Callable[[str], bool]) -> tuple[list[str], int]:
        """Return the plain files whose names are wanted, and the number of all others.

        Subfolders that have a name as on a card are looked through, too. Hidden files are in
        neither.
        """

    def subfolder(self, name: str) -> bool | None:
        """Whether a subfolder is one to write to; None if there is none of this name.

        One that a stranger made is not: the stranger could remove what lies in it.
        """

    def load(self, name: str, most: int) -> bytes | None:
        """Return a file's content; None if it is too large, no plain file, or may not be read.

        Raises `FileNotFoundError` if there is no such file, but is the folder.
        """

    def save(self, name: str, content: bytes) -> None:
        """Write a file, whole before it has its name wherever the place can do that."""


class Store:
    """Files of rounds in one folder: a directory, or one far away by fsspec.

    Nothing that others wrote is ever changed or removed. If there is a subfolder with a party's
    name, that party writes there, and the others look there first for what it wrote: where no one
    else may write, nothing that others add stands in front of it.

    Parameters
    ----------
    place : Place
        Where the files lie.
    me : str
        Name of the party that writes; without it, nothing is written into a subfolder.

    Attributes
    ----------
    where : str
        The folder, for messages: a URL is without user and password.
    damaged : set of str
        Names of files that lie there and could not be used when last read: cut off, half copied,
        too large, not to be read by us. Another try may find them whole.
    written : list of str
        Files that this party wrote since it opened the folder, those in a subfolder as
        ``SUBFOLDER/NAME``.
    aside : str
        Why this party writes into the folder itself although a subfolder has its name, for people;
        empty if it does not.

    Examples
    --------
    >>> from hushtable_federation.folder.mailbox import Store, name_of
    >>> store = Store.open(".")
    >>> name = name_of("c0ffee0123456789", "hello", "north", b"good day")
    >>> name
    'c0ffee0123456789.hello.north.4cb4551bbb244be4.hush'
    >>> store.add(name, b"good day"), store.add(name, b"good day")
    (True, False)
    >>> store.names() == [name], store.read(name)
    (True, b'good day')
    """

    def __init__(self, place: Mailbox, me: str = "") -> None:
        self._place, self._me = place, me
        self._others: int | None = None
        #: By name of a file, the subfolders where one lies; of the folder itself, "".
        self._folders: dict[str, list[str]] = {}
        self.where = place.where
        self.damaged: set[str] = set()
        self.written: list[str] = []
        self.aside = ""

    @classmethod
    def open(
        cls, folder: str | os.PathLike[str], me: str = "", address: FolderAddress = BY_DEFAULT
    ) -> "Store":
        """Open a folder that is there.

        Parameters
        ----------
        folder : str or path-like
            A directory, or a URL that fsspec knows (``sftp``, ``webdavs``, ``s3``, ``abfs``, ...).
            Empty for that of the address.
        me : str
            Name of the party that writes.
        address : FolderAddress
            How a URL is reached, if it is that of the folder.

        Raises
        ------
        FileError
            If it is no folder, or cannot be reached.
        MissingExtraError
            If it is a URL, and fsspec is not installed.
        """
        where = os.fspath(folder) or address.folder
        if "://" not in where:
            return cls(Directory(where), me)
        return cls(Remote(where, address if address.folder == where else BY_DEFAULT), me)

    def names(self) -> list[str]:
        """Return the names of the files that may be of a round, sorted.

        Folders, links, hidden and temporary files, and files of other names are left out. No file
        is opened. A name that was just added may be missing from the list of a far folder.
        """
        found, self._others = self._place.look(lambda name: parsed(name) is not None)
        self._folders = {}
        for path in found:
            folder, _, name = path.rpartition("/")
            self._folders.setdefault(name, []).append(folder)
        return sorted(self._folders)

    def first_of(self, names: Iterable[str], writer: str) -> list[str]:
        """Return names that were listed, those in the subfolder of a writer first."""
        return sorted(names, key=lambda name: (writer not in self._folders.get(name, ()), name))

    def foreign(self) -> int:
        """Return how many others lay there when the names were last listed, hidden ones aside."""
        if self._others is None:
            self.names()
        return self._others or 0

    def read(self, name: str, most: int = MOST, *, writer: str = "") -> bytes | None:
        """Return what a file holds, if that is what its name says.

        Parameters
        ----------
        name : str
            Of the file.
        most : int
            Bytes: a larger file is not read.
        writer : str
            Whose subfolder is looked into first; by default the folder itself. Copies elsewhere
            do as well, if they are whole.

        Returns
        -------
        bytes or None
            None if there is no such file (any more), or if it is now in ``damaged``.

        Raises
        ------
        FileError
            If the folder cannot be reached: then no one can tell whether the file is there.
        """
        self.damaged.discard(name)
        if parsed(name) is None:  # a name in someone's message, which may lead out of the folder
            return None
        known = self._folders.get(name, [""])
        is_there = False
        for folder in sorted(known, key=lambda folder: (folder != writer, folder)):
            try:
                content = self._place.load(_path(folder, name), most)
            except FileNotFoundError:
                continue
            if content is not None and intact(name, content):
                return content
            is_there = True
        if is_there:
            self.damaged.add(name)
        return None

    def add(self, name: str, content: bytes) -> bool:
        """Write a file, unless it is there with the same content.

        It goes into the subfolder of the party that writes, or into the folder itself if there is
        none, or it cannot be used. A file of this name with another content was cut off or
        damaged, and is replaced.

        Returns
        -------
        bool
            Whether it was written.

        Raises
        ------
        FileError
            If the name does not fit the content, or the file cannot be written.
        """
        if not intact(name, content):
            raise FileError(f"{name!a}: this is not the name of what is to be written there")
        self.damaged.discard(name)
        if self._has_subfolder():
            try:
                return self._added(self._me, name, content)
            except FileError as error:
                self.aside = f"{error}. What was sent lies in the folder itself"
        return self._added("", name, content)

    def _has_subfolder(self) -> bool:
        """Whether this party has a subfolder of its own; note it if a stranger made one."""
        own = self._place.subfolder(self._me) if self._me and not self.aside else None
        if own is False:
            self.aside = (
                f"The subfolder {self._me!r} is someone else's, who could remove what lies there: "
                "what was sent lies in the folder itself. Ask the person who set the folder up"
            )
        return bool(own)

    def _added(self, folder: str, name: str, content: bytes) -> bool:
        path = _path(folder, name)
        try:
            if self._place.load(path, len(content)) == content:
                return False
        except FileNotFoundError:
            pass
        self._place.save(path, content)
        self.written.append(path)
        known = self._folders.setdefault(name, [])
        if folder not in known:
            known.append(folder)
        return True


def _path(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


#: A pipe, a device or a link in a circle that a stranger laid out is not waited for.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
#: Of one file, not of the folder: the others can still be read.
_OF_ONE_FILE = {errno.EACCES, errno.EPERM, errno.EISDIR, errno.ELOOP, errno.ENXIO}
#: Of one subfolder: a stranger's, or one that went or was replaced meanwhile.
_OF_ONE_FOLDER = _OF_ONE_FILE | {errno.ENOENT, errno.ENOTDIR}

_ADVICE_HERE = {
    errno.ENOENT: "check the path; create the folder, or mount it, and call again",
    errno.ENOTDIR: "give a folder",
    errno.EISDIR: "a folder has the name of a file of the round: rename it, then call again",
    **dict.fromkeys(
        (errno.EACCES, errno.EPERM, errno.EROFS),
        "ask the person who looks after the folder for the right to list, read and write in it "
        "(chmod 3770 for the folder of a group)",
    ),
    **dict.fromkeys(
        (errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "free some space there, then call again"
    ),
}
_OTHERWISE = "look whether the folder can be reached, then call again"


def is_private(where: str) -> bool:
    """Whether a folder is a directory of this machine that no one else may write to."""
    return "://" not in where and os.path.isdir(where) and not _others_may_write(os.stat(where))


def _others_may_replace(folder: os.stat_result) -> bool:
    """Whether others may remove and rename what we have in a folder: it has no sticky bit."""
    return _others_may_write(folder) and not folder.st_mode & stat.S_ISVTX


def _others_may_write(folder: os.stat_result) -> bool:
    if os.name != "posix":
        return False
    of_group = folder.st_mode & stat.S_IWGRP and not _is_alone(folder.st_uid, folder.st_gid)
    return bool(folder.st_mode & stat.S_IWOTH or of_group)


def _too_wide(where: str, mode: int) -> str:
    return (
        f"{where}: others may write to this folder (mode {stat.S_IMODE(mode):o}) and replace files "
        "of yours in it: let its owner run chmod +t on it (chmod 3770 for the folder of a group), "
        "then call again"
    )


def _is_alone(user: int, group: int) -> bool:
    """Whether a group is the one that many systems make for each user, and has no other member."""
    import grp  # of one system each
    import pwd

    try:
        owner, found = pwd.getpwuid(user).pw_name, grp.getgrgid(group)
    except KeyError:  # no one can tell
        return False
    return found.gr_name == owner and set(found.gr_mem) <= {owner}


class Directory:
    """A folder in this machine's file system; see `Mailbox`."""

    def __init__(self, where: str) -> None:
        self.where = where
        if not where or "\0" in where:
            raise FileError(f"{where!a}: no path of a folder: give one")
        with self._words():
            os.scandir(where).close()  # also whether we may list it
            found = os.stat(where)
        self._device = found.st_dev
        if _others_may_replace(found):
            words = _too_wide(where, found.st_mode)
            raise FileError(f"{words}; a network drive that keeps no modes is mounted with "
                            "dir_mode=0700")  # fmt: skip
        self._path = Path(where).absolute()

    def look(self, wanted: Callable[[str], bool]) -> tuple[list[str], int]:
        """Return the plain files that are wanted, and the number of all others."""
        found, others = [], 0
        with self._words():
            self._check()
            with os.scandir(self._path) as entries:
                for entry in entries:
                    inside = []
                    if wanted(entry.name) and entry.is_file(follow_symlinks=False):
                        inside = [entry.name]
                    elif entry.is_dir(follow_symlinks=False) and is_name(entry.name):
                        inside = self._inside(entry.name, wanted)
                    found += inside
                    others += not inside and not entry.name.startswith(".")
        return found, others

    def _inside(self, folder: str, wanted: Callable[[str], bool]) -> list[str]:
        try:
            with os.scandir(self._path / folder) as entries:
                return [
                    f"{folder}/{entry.name}"
                    for entry in entries
                    if wanted(entry.name) and entry.is_file(follow_symlinks=False)
                ]
        except OSError as error:
            if error.errno in _OF_ONE_FOLDER:
                return []
            raise

    def subfolder(self, name: str) -> bool | None:
        """Whether a subfolder was made by this user, or by the owner of the folder.

        No stranger can then put a link in its place, if the folder has the sticky bit.
        """
        with self._words():
            try:
                found = os.lstat(self._path / name)
            except OSError as error:
                if error.errno in _OF_ONE_FOLDER:
                    return None
                raise
            if not stat.S_ISDIR(found.st_mode):
                return None
            me = getattr(os, "geteuid", lambda: 0)()
            return found.st_uid in (me, 0, os.stat(self._path).st_uid)

    def load(self, name: str, most: int) -> bytes | None:
        """Return a file's content; None if it cannot be used, `FileNotFoundError` without one."""
        try:
            descriptor = os.open(self._path / name, _FLAGS)
        except OSError as error:
            if error.errno in _OF_ONE_FILE:
                return None
            with self._words():
                self._check()
                if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                    raise error
            raise FileNotFoundError(name) from None
        try:
            with self._words():
                found = os.fstat(descriptor)
                if not stat.S_ISREG(found.st_mode) or found.st_size > most:
                    return None
                with os.fdopen(descriptor, "rb", closefd=False) as file:
                    return file.read(found.st_size + 1)  # no more, even if it grows meanwhile
        finally:
            os.close(descriptor)

    def save(self, name: str, content: bytes) -> None:
        """Write a file; it has its name once all of it is on the disk."""
        with self._words():
            self._check()
            files.write_bytes(self._path / name, content, private=False)

    def _check(self) -> None:
        """Raise if the folder is gone, also if an empty one below it came to light by that."""
        if os.stat(self._path).st_dev != self._device:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))

    @contextlib.contextmanager
    def _words(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            fault = os.strerror(error.errno) if error.errno else type(error).__name__
            advice = _ADVICE_HERE.get(error.errno or 0, _OTHERWISE)
            raise FileError(f"{self.where}: {fault}: {advice}") from None


_ADVICE_THERE = (
    "check the URL, your rights (chmod 3770 for the folder of a group), the network and the space "
    "there; create the folder if it is not there yet (in an object store: put any file into it)"
)


class Remote:
    """A folder far away; see `Mailbox`."""

    def __init__(self, url: str, address: FolderAddress = BY_DEFAULT) -> None:
        self.where = far.public(url)
        self._url = url
        options, self._secret = address.options()
        if far.is_chain(url):  # such as a cache, which would go on giving what was read once
            raise FileError(f"{self.where}: several URLs in one: give that of the folder itself")
        with self._words():
            # A connection of its own: one that broke is not handed to anyone who opens it again.
            self._system, self._root = far.connect(url, skip_instance_cache=True, **options)
            base = importlib.import_module("fsspec").AbstractFileSystem
            # Elsewhere it copies and deletes. Those are object stores, where a file is there whole
            # or not at all.
            self._renames = type(self._system).mv is not base.mv
            if self._system.info(self._root)["type"] == "file":
                raise FileError(f"{self.where}: a file: give the URL of a folder")
            mode = self._mode()
            if mode & (stat.S_IWGRP | stat.S_IWOTH) and not mode & stat.S_ISVTX:
                raise FileError(_too_wide(self.where, mode))

    def _mode(self) -> int:
        """Return the folder's mode, as a server for SFTP says it; 0 where there is none."""
        sftp = getattr(self._system, "ftp", None)
        found = getattr(sftp, "stat", lambda path: None)(self._root)
        return int(getattr(found, "st_mode", None) or 0)

    def look(self, wanted: Callable[[str], bool]) -> tuple[list[str], int]:
        """Return the plain files that are wanted, and the number of all others."""
        found, others = [], 0
        with self._words():
            self._system.invalidate_cache()
            for path, kind in self._listed(self._root):
                name, inside = path.rpartition("/")[2], []
                if kind == "file" and wanted(name):
                    inside = [name]
                elif kind == "directory" and is_name(name):
                    inside = self._inside(name, wanted)
                found += inside
                others += not inside and not name.startswith(".")
        return found, others

    def _listed(self, folder: str) -> list[tuple[str, str]]:
        """Return path and type of all that lies in a folder."""
        entries = self._system.ls(folder, detail=True)
        paths = [(str(entry["name"]).strip("/"), str(entry["type"])) for entry in entries]
        return [one for one in paths if one[0] != folder.strip("/")]

    def _inside(self, folder: str, wanted: Callable[[str], bool]) -> list[str]:
        try:
            there = self._listed(self._path(folder))
        except (PermissionError, FileNotFoundError, NotADirectoryError):  # a stranger's, or gone
            return []
        names = [path.rpartition("/")[2] for path, kind in there if kind == "file"]
        return [f"{folder}/{name}" for name in names if wanted(name)]

    def subfolder(self, name: str) -> bool | None:
        """Whether there is a subfolder, as far as can be told before something is written."""
        with self._words():
            try:
                return True if self._info(self._path(name))["type"] == "directory" else None
            except (PermissionError, FileNotFoundError):
                return None

    def load(self, name: str, most: int) -> bytes | None:
        """Return a file's content; None if it cannot be used, `FileNotFoundError` without one."""
        with self._words():
            with contextlib.suppress(FileNotFoundError):
                return self._content(self._path(name), most)
            self._system.info(self._root)  # or the folder itself is gone
        raise FileNotFoundError(name)

    def _content(self, path: str, most: int) -> bytes | None:
        try:
            found = self._info(path)
            size = most + 1 if found.get("size") is None else int(found["size"])
            if found["type"] != "file" or (found.get("size") is not None and size > most):
                return None
            content = bytes(self._system.cat_file(path, start=0, end=size)) if size else b""
        except (PermissionError, IsADirectoryError):
            return None
        return content if len(content) <= most else None

    def save(self, name: str, content: bytes) -> None:
        """Write a file; under a temporary name first if the backend can rename."""
        path = self._path(name)
        with self._words():
            if not (self._renames and self._renamed(path, name, content)):
                self._system.pipe_file(path, content)
            with contextlib.suppress(FileNotFoundError):  # not to be seen yet
                found = self._info(path)
                self._check_owner(name, found.get("uid"))
                size = found.get("size")
                if size is not None and size < len(content):
                    raise FileError(
                        f"{self.where}: {size:,} of {len(content):,} bytes of {name} arrived: "
                        "look whether there is space, then call again"
                    )

    def _check_owner(self, name: str, mine: Any) -> None:
        """Raise `FileError` if a file, which is ours, lies in a subfolder that is a stranger's.

        Where a server says of nothing whose it is, it decides alone who removes what.
        """
        folder = name.rpartition("/")[0]
        if not folder or mine is None:
            return
        owners = [self._info(path).get("uid") for path in (self._path(folder), self._root)]
        if owners[0] not in (mine, 0, owners[1]):
            raise FileError(
                f"{self.where}: the subfolder {folder!r} is someone else's, who could remove what "
                "lies there: ask the person who set the folder up"
            )

    def _renamed(self, path: str, name: str, content: bytes) -> bool:
        """Write a file by way of another; return whether that could be renamed."""
        folder, slash, last = name.rpartition("/")
        temporary = self._path(f"{folder}{slash}.{last}.{secrets.token_hex(4)}.part")
        try:
            self._system.pipe_file(temporary, content)
        except BaseException:
            self._remove(temporary)
            raise
        try:
            self._system.mv(temporary, path)
        except Exception:  # not all rename to a name that is taken, by a file to be healed
            self._remove(temporary)
            return False
        return True

    def _remove(self, path: str) -> None:
        with contextlib.suppress(Exception):  # a hidden file that stays does no harm
            self._system.rm_file(path)

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"

    def _info(self, path: str) -> dict[str, Any]:
        self._system.invalidate_cache()
        found: dict[str, Any] = self._system.info(path)
        return found

    def _words(self) -> contextlib.AbstractContextManager[None]:
        return far.reaching(self._url, FileError, _ADVICE_THERE, self._secret)
