"""The files of rounds in one folder: append-only, and named by what they hold.

A name says which round, step and sender a file claims to be of, and the digest of its content. So
a file that is cut off or only half there is told from a whole one, and writing twice does no harm.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from hushtable.errors import FileError
from hushtable_federation.folder.directory import Directory
from hushtable_federation.folder.remote import Remote
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
    """The claims of a file's name: nothing that anybody signed."""

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


class Place(Protocol):
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
    name, that party writes there, and the others look there first for what it wrote: where nobody
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
    aside : str
        Why this party writes into the folder itself although a subfolder has its name, for people;
        empty if it does not.

    Examples
    --------
    >>> from hushtable_federation.folder.store import Store, name_of
    >>> store = Store.open(".")
    >>> name = name_of("c0ffee0123456789", "hello", "north", b"good day")
    >>> name
    'c0ffee0123456789.hello.north.4cb4551bbb244be4.hush'
    >>> store.add(name, b"good day"), store.add(name, b"good day")
    (True, False)
    >>> store.names() == [name], store.read(name)
    (True, b'good day')
    """

    def __init__(self, place: Place, me: str = "") -> None:
        self._place, self._me = place, me
        self._others: int | None = None
        #: By name of a file, the subfolders where one lies; of the folder itself, "".
        self._folders: dict[str, list[str]] = {}
        self.where = place.where
        self.damaged: set[str] = set()
        self.aside = ""

    @classmethod
    def open(cls, folder: str | os.PathLike[str], me: str = "") -> "Store":
        """Open a folder that is there.

        Parameters
        ----------
        folder : str or path-like
            A directory, or a URL that fsspec knows (``sftp``, ``webdavs``, ``s3``, ``abfs``, ...).
        me : str
            Name of the party that writes.

        Raises
        ------
        FileError
            If it is no folder, or cannot be reached.
        MissingExtraError
            If it is a URL, and fsspec is not installed.
        """
        where = os.fspath(folder)
        return cls(Remote(where) if "://" in where else Directory(where), me)

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
            If the folder cannot be reached: then nobody can tell whether the file is there.
        """
        self.damaged.discard(name)
        if parsed(name) is None:  # a name in somebody's message, which may lead out of the folder
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
                f"The subfolder {self._me!r} is somebody else's, who could remove what lies there: "
                "what was sent lies in the folder itself. Ask whoever set the folder up"
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
        known = self._folders.setdefault(name, [])
        if folder not in known:
            known.append(folder)
        return True


def _path(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
