"""The files of rounds in one folder, local or remote: append-only, named by their content.

A name states the round, step and sender that a file claims, and the digest of its content. So an
incomplete file can be distinguished from a complete one, and writing a file twice does no harm.
"""

import contextlib
import errno
import hashlib
import importlib
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from hushtable import far, files
from hushtable.errors import FileError
from hushtable_federation.credentials import BY_DEFAULT, FolderAddress
from hushtable_federation.keys import is_name
from hushtable_federation.permissions import others_may_write

#: The most bytes of a file, if the caller sets no other bound.
MOST = 1 << 30
#: Digits of an id or digest in a name. They exclude collisions by chance. But with hours of
#: computing, a sender can make two files of one name, so signatures have to cover the whole digest.
_DIGITS = 16
# Only a sender's name may contain dots; the parts before and after it have none. With the suffix of
# a temporary file, a name has at most 143 bytes, which every file system in use allows.
_FORM = re.compile(r"([0-9a-f]{16})\.([a-z][a-z0-9-]{0,23})\.(.+)\.([0-9a-f]{16})\.hush")


class Name(NamedTuple):
    """The claims of a file's name, which are not signed."""

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
        The whole content of the file.

    Raises
    ------
    FileError
        If one of them has the wrong form.
    """
    name = f"{round_id[:_DIGITS]}.{step}.{sender}.{_digest(content)}.hush"
    if parsed(name) != (round_id[:_DIGITS], step, sender, _digest(content)):
        raise FileError(
            f"round {round_id!a}, step {step!a}, sender {sender!a}: these make no valid file name: "
            "give the round's whole id, a step of small letters, and the name on the card"
        )
    return name


def parsed(name: str) -> Name | None:
    """Return the claims of a file's name; None if it is not the name of a file of a round."""
    if not name.endswith(".hush"):  # quickly reject most foreign files
        return None
    match = _FORM.fullmatch(name)
    return Name(*match.groups()) if match and is_name(match[3]) else None


def intact(name: str, content: bytes) -> bool:
    """Return whether the content is what the name claims; that of an incomplete file is not."""
    claims = parsed(name)
    return claims is not None and claims.digest16 == _digest(content)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGITS]


class Mailbox(Protocol):
    """A place that stores files. Failures raise `FileError`.

    A file in the folder itself is given by its name; one in a subfolder as ``SUBFOLDER/NAME``.
    """

    where: str

    def entries(self, folder: str = "") -> list[tuple[str, str]]:
        """Return name and type of every entry: ``"file"``, ``"directory"``, or anything else.

        A link is neither. A subfolder that is gone, or may not be listed, has none.
        """

    def subfolder(self, name: str) -> bool | None:
        """Return whether a subfolder is safe to write to; None if there is none of this name.

        One that a stranger made is not safe: the stranger could remove files in it.
        """

    def load(self, name: str, most: int) -> bytes | None:
        """Return a file's content; None if it is too large, not a plain file, or not readable.

        Raise `FileNotFoundError` if there is no such file, but the folder exists.
        """

    def save(self, name: str, content: bytes) -> None:
        """Write a file; if the place supports it, the file gets its name only when complete."""


class Store:
    """Files of rounds in one folder: a directory, or a remote folder by fsspec.

    Files that others wrote are never changed or removed. If there is a subfolder with a party's
    name, that party writes there, and the others look there first for its files: if no one else may
    write there, files that others add cannot take their place.

    Parameters
    ----------
    place : Place
        Where the files are stored.
    me : str
        Name of the party that writes; without it, subfolders are not used for writing.

    Attributes
    ----------
    where : str
        The folder, for messages: a URL appears without user and password.
    damaged : set of str
        Names of files in the folder that could not be used when last read: incomplete, too large,
        or not readable. A later attempt may find them complete.
    written : list of str
        Files that this party wrote since it opened the folder, those in a subfolder as
        ``SUBFOLDER/NAME``.
    aside : str
        Why this party writes into the folder itself although a subfolder has its name, as a
        message; empty if it does not.

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
        #: By name of a file, the subfolders that contain it; "" for the folder itself.
        self._folders: dict[str, list[str]] = {}
        self.where = place.where
        self.damaged: set[str] = set()
        self.written: list[str] = []
        self.aside = ""

    @classmethod
    def open(
        cls, folder: str | os.PathLike[str], me: str = "", address: FolderAddress = BY_DEFAULT
    ) -> "Store":
        """Open an existing folder.

        Parameters
        ----------
        folder : str or path-like
            A directory, or a URL that fsspec knows (``sftp``, ``webdavs``, ``s3``, ``abfs``, ...).
            If empty, that of the address.
        me : str
            Name of the party that writes.
        address : FolderAddress
            How to reach a URL, if it is that of the folder.

        Raises
        ------
        FileError
            If it is not a folder, or cannot be reached.
        MissingExtraError
            If it is a URL, but fsspec is not installed.
        """
        where = os.fspath(folder) or address.folder
        if "://" not in where:
            return cls(Directory(where), me)
        return cls(Remote(where, address if address.folder == where else BY_DEFAULT), me)

    def names(self) -> list[str]:
        """Return the sorted names of the files that may belong to a round.

        Folders, links, hidden and temporary files, and files with other names are left out. No file
        is opened. A name that was just added may be missing from the list of a remote folder.
        """
        self._folders = {}
        for name, kind in self._place.entries():
            if kind == "file" and parsed(name):
                self._folders.setdefault(name, []).append("")
            elif kind == "directory" and is_name(name):
                for file, of in self._place.entries(name):
                    if of == "file" and parsed(file):
                        self._folders.setdefault(file, []).append(name)
        return sorted(self._folders)

    def first_of(self, names: Iterable[str], writer: str) -> list[str]:
        """Return the listed names, those in the subfolder of a writer first."""
        return sorted(names, key=lambda name: (writer not in self._folders.get(name, ()), name))

    def read(self, name: str, most: int = MOST, *, writer: str = "") -> bytes | None:
        """Return the content of a file, if it is what the name claims.

        Parameters
        ----------
        name : str
            Of the file.
        most : int
            Limit in bytes: a larger file is not read.
        writer : str
            Whose subfolder is searched first; by default, the folder itself. Complete copies
            elsewhere are accepted, too.

        Returns
        -------
        bytes or None
            None if there is no such file (any more), or if it is now in ``damaged``.

        Raises
        ------
        FileError
            If the folder cannot be reached, so that it is unknown whether the file is there.
        """
        self.damaged.discard(name)
        if parsed(name) is None:  # a name in someone's message, which may point outside the folder
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
        """Write a file, unless it exists with the same content.

        It goes into the subfolder of the party that writes, or into the folder itself if there is
        no usable subfolder. A file of this name with other content is incomplete or damaged, and is
        replaced.

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
            raise FileError(
                f"{name!a}: this name does not match the content to write: use the name that "
                "`name_of` returns"
            )
        self.damaged.discard(name)
        own = self._place.subfolder(self._me) if self._me and not self.aside else None
        if own is False:
            self.aside = (
                f"The subfolder {self._me!r} belongs to someone else, who could remove files in "
                "it, so this site's files are in the folder itself. Ask the person who set the "
                "folder up"
            )
        if own:
            try:
                return self._added(self._me, name, content)
            except FileError as error:
                self.aside = f"{error}. This site's files are in the folder itself"
        return self._added("", name, content)

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


#: Do not wait for a pipe, a device or a circular link that a stranger made.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
#: Errors of one file, not of the folder: the others can still be read.
_OF_ONE_FILE = {errno.EACCES, errno.EPERM, errno.EISDIR, errno.ELOOP, errno.ENXIO}
#: Errors of one subfolder: a stranger's, or one that was removed or replaced in the meantime.
_OF_ONE_FOLDER = _OF_ONE_FILE | {errno.ENOENT, errno.ENOTDIR}

_ADVICE_HERE = {
    errno.ENOENT: "check the path; create or mount the folder, and run the command again",
    errno.ENOTDIR: "give a folder",
    errno.EISDIR: "a folder has the name of a round's file: rename it, then run the command again",
    **dict.fromkeys(
        (errno.EACCES, errno.EPERM, errno.EROFS),
        "ask the administrator of the folder for the right to list, read and write in it (chmod "
        "3770 for a group's folder)",
    ),
    **dict.fromkeys(
        (errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
        "free some space there, then run the command again",
    ),
}
_OTHERWISE = "check that the folder can be reached, then run the command again"


def is_private(where: str) -> bool:
    """Return whether a folder is a local directory that no one else may write to."""
    return "://" not in where and os.path.isdir(where) and not others_may_write(os.stat(where))


def _too_wide(where: str, mode: int) -> str:
    return (
        f"{where}: others may write to this folder (mode {stat.S_IMODE(mode):o}) and replace your "
        "files in it: have its owner run chmod +t on it (chmod 3770 for a group's folder), then "
        "run the command again"
    )


def _type_of(entry: os.DirEntry[str]) -> str:
    if entry.is_file(follow_symlinks=False):
        return "file"
    return "directory" if entry.is_dir(follow_symlinks=False) else "other"


class Directory:
    """A folder in this machine's file system; see `Mailbox`."""

    def __init__(self, where: str) -> None:
        self.where = where
        if not where or "\0" in where:
            raise FileError(f"{where!a}: this is not the path of a folder: give one")
        with self._words():
            os.scandir(where).close()  # this also checks that we may list it
            status = os.stat(where)
        self._device = status.st_dev
        if others_may_write(status) and not status.st_mode & stat.S_ISVTX:
            words = _too_wide(where, status.st_mode)
            raise FileError(
                f"{words}; mount a network drive that does not store modes with dir_mode=0700"
            )
        self._path = Path(where).absolute()

    def entries(self, folder: str = "") -> list[tuple[str, str]]:
        """Return name and type of every entry."""
        with self._words():
            self._check()
            try:
                with os.scandir(self._path / folder) as items:
                    return [(entry.name, _type_of(entry)) for entry in items]
            except OSError as error:
                if folder and error.errno in _OF_ONE_FOLDER:
                    return []
                raise

    def subfolder(self, name: str) -> bool | None:
        """Return whether a subfolder was made by this user, or by the owner of the folder.

        If so, and if the folder has the sticky bit, no stranger can replace it by a link.
        """
        with self._words():
            try:
                status = os.lstat(self._path / name)
            except OSError as error:
                if error.errno in _OF_ONE_FOLDER:
                    return None
                raise
            if not stat.S_ISDIR(status.st_mode):
                return None
            me = getattr(os, "geteuid", lambda: 0)()
            return status.st_uid in (me, 0, os.stat(self._path).st_uid)

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
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode) or status.st_size > most:
                    return None
                with os.fdopen(descriptor, "rb", closefd=False) as file:
                    return file.read(
                        status.st_size + 1
                    )  # read no more, even if it grows in the meantime
        finally:
            os.close(descriptor)

    def save(self, name: str, content: bytes) -> None:
        """Write a file; it gets its name when all of it is on the disk."""
        with self._words():
            self._check()
            files.write_bytes(self._path / name, content, private=False)

    def _check(self) -> None:
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
    "check the URL, your rights (chmod 3770 for a group's folder), the network and the free "
    "space; create the folder if it does not exist (in an object store: put any file into it)"
)


class Remote:
    """A remote folder; see `Mailbox`."""

    def __init__(self, url: str, address: FolderAddress = BY_DEFAULT) -> None:
        self.where = far.public(url)
        self._url = url
        options, self._secret = address.options()
        if far.is_chain(url):  # such as a cache, which would return outdated content
            raise FileError(
                f"{self.where}: this combines several URLs: give only the URL of the folder itself"
            )
        with self._words():
            # Use a new connection, so that a broken one is not reused.
            self._system, self._root = far.connect(url, skip_instance_cache=True, **options)
            base = importlib.import_module("fsspec").AbstractFileSystem
            # Other backends copy and delete. Those are object stores, in which a file is always
            # complete.
            self._renames = type(self._system).mv is not base.mv
            if self._system.info(self._root)["type"] == "file":
                raise FileError(f"{self.where}: this is a file: give the URL of a folder")
            mode = self._mode()
            if mode & (stat.S_IWGRP | stat.S_IWOTH) and not mode & stat.S_ISVTX:
                raise FileError(_too_wide(self.where, mode))

    def _mode(self) -> int:
        sftp = getattr(self._system, "ftp", None)
        status = getattr(sftp, "stat", lambda path: None)(self._root)
        return int(getattr(status, "st_mode", None) or 0)

    def entries(self, folder: str = "") -> list[tuple[str, str]]:
        """Return name and type of every entry."""
        path = self._path(folder) if folder else self._root
        with self._words():
            if not folder:
                self._system.invalidate_cache()
            try:
                listing = self._system.ls(path, detail=True)
            except (PermissionError, FileNotFoundError, NotADirectoryError):
                if not folder:
                    raise
                return []  # a stranger's, or removed
        paths = [(str(entry["name"]).strip("/"), str(entry["type"])) for entry in listing]
        return [(name.rpartition("/")[2], kind) for name, kind in paths if name != path.strip("/")]

    def subfolder(self, name: str) -> bool | None:
        """Return whether there is a subfolder, as far as is known before writing to it."""
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
            info = self._info(path)
            size = most + 1 if info.get("size") is None else int(info["size"])
            if info["type"] != "file" or (info.get("size") is not None and size > most):
                return None
            content = bytes(self._system.cat_file(path, start=0, end=size)) if size else b""
        except (PermissionError, IsADirectoryError):
            return None
        return content if len(content) <= most else None

    def save(self, name: str, content: bytes) -> None:
        """Write a file; first under a temporary name, if the backend can rename."""
        path = self._path(name)
        with self._words():
            if not (self._renames and self._renamed(path, name, content)):
                self._system.pipe_file(path, content)
            with contextlib.suppress(FileNotFoundError):  # not visible yet
                info = self._info(path)
                self._check_owner(name, info.get("uid"))
                size = info.get("size")
                if size is not None and size < len(content):
                    raise FileError(
                        f"{self.where}: {size:,} of {len(content):,} bytes of {name} arrived: "
                        "check the free space, then run the command again"
                    )

    def _check_owner(self, name: str, mine: Any) -> None:
        # If a server does not report owners, it alone decides who may remove files.
        folder = name.rpartition("/")[0]
        if not folder or mine is None:
            return
        owners = [self._info(path).get("uid") for path in (self._path(folder), self._root)]
        if owners[0] not in (mine, 0, owners[1]):
            raise FileError(
                f"{self.where}: the subfolder {folder!r} belongs to someone else, who could remove "
                "files in it: ask the person who set the folder up"
            )

    def _renamed(self, path: str, name: str, content: bytes) -> bool:
        folder, slash, last = name.rpartition("/")
        temporary = self._path(f"{folder}{slash}.{last}.{secrets.token_hex(4)}.part")
        try:
            self._system.pipe_file(temporary, content)
        except BaseException:
            self._remove(temporary)
            raise
        try:
            self._system.mv(temporary, path)
        except (
            Exception
        ):  # not all backends can rename to an existing name, that of a damaged file to repair
            self._remove(temporary)
            return False
        return True

    def _remove(self, path: str) -> None:
        with contextlib.suppress(Exception):  # a hidden file that remains does no harm
            self._system.rm_file(path)

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"

    def _info(self, path: str) -> dict[str, Any]:
        self._system.invalidate_cache()
        return dict(self._system.info(path))

    def _words(self) -> contextlib.AbstractContextManager[None]:
        return far.reaching(self._url, FileError, _ADVICE_THERE, self._secret)
