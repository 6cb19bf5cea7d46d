"""A folder in this machine's file system, which may be a disk that others share, too."""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from hushtable import files
from hushtable.errors import FileError
from hushtable_federation.keys import is_name

#: A pipe, a device or a link in a circle that a stranger laid out is not waited for.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
#: Of one file, not of the folder: the others can still be read.
_OF_ONE_FILE = {errno.EACCES, errno.EPERM, errno.EISDIR, errno.ELOOP, errno.ENXIO}
#: Of one subfolder: a stranger's, or one that went or was replaced meanwhile.
_OF_ONE_FOLDER = _OF_ONE_FILE | {errno.ENOENT, errno.ENOTDIR}

_ADVICE = {
    errno.ENOENT: "check the path; create the folder, or mount it, and call again",
    errno.ENOTDIR: "give a folder",
    errno.EISDIR: "a folder has the name of a file of the round: rename it, then call again",
    **dict.fromkeys(
        (errno.EACCES, errno.EPERM, errno.EROFS),
        "ask whoever looks after the folder for the right to list, read and write in it",
    ),
    **dict.fromkeys(
        (errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "free some space there, then call again"
    ),
}
_OTHERWISE = "look whether the folder can be reached, then call again"


def _others_may_replace(folder: os.stat_result) -> bool:
    """Whether others may remove and rename what we have in a folder: it has no sticky bit."""
    if os.name != "posix" or folder.st_mode & stat.S_ISVTX:
        return False
    of_group = folder.st_mode & stat.S_IWGRP and not _is_alone(folder.st_uid, folder.st_gid)
    return bool(folder.st_mode & stat.S_IWOTH or of_group)


def _is_alone(user: int, group: int) -> bool:
    """Whether a group is the one that many systems make for each user, and has no other member."""
    import grp  # of one system each
    import pwd

    try:
        owner, found = pwd.getpwuid(user).pw_name, grp.getgrgid(group)
    except KeyError:  # nobody can tell
        return False
    return found.gr_name == owner and set(found.gr_mem) <= {owner}


class Directory:
    """A folder in this machine's file system; see `hushtable_federation.folder.store.Place`."""

    def __init__(self, where: str) -> None:
        self.where = where
        if not where or "\0" in where:
            raise FileError(f"{where!a}: no path of a folder: give one")
        with self._words():
            os.scandir(where).close()  # also whether we may list it
            found = os.stat(where)
        self._device = found.st_dev
        if _others_may_replace(found):
            raise FileError(
                f"{where}: others may write to this folder (mode {stat.S_IMODE(found.st_mode):o}) "
                "and replace files of yours in it: let its owner run chmod +t on it (chmod 3770 "
                "for the folder of a group), then call again; a network drive that keeps no modes "
                "is mounted with dir_mode=0700"
            )
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
        """Whether a subfolder was made by this user, or by whoever owns the folder.

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
            said = os.strerror(error.errno) if error.errno else type(error).__name__
            advice = _ADVICE.get(error.errno or 0, _OTHERWISE)
            raise FileError(f"{self.where}: {said}: {advice}") from None
