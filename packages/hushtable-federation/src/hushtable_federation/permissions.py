"""Which files of a site others can change or read: owners and modes, as sshd checks them."""

import os
import shlex
import stat
from pathlib import Path


def fault_of(path: str | os.PathLike[str], forbidden: int) -> str:
    """Return why a file does not belong to this account alone, and the remedy; empty if it does.

    File and folder have to belong to this account or to root, and no one else may write to the
    folder, where they could replace the file. The sticky bit does not suffice, because a file that
    is missing could be replaced by a link. Of a link, the target counts. Without owners (Windows),
    there is no check.

    Parameters
    ----------
    path : path-like
        The file.
    forbidden : int
        Bits that its mode may not have: 0o022 if others may read it, otherwise 0o077.

    Raises
    ------
    OSError
        If there is no such file, or the system does not report its mode.
    """
    if os.name != "posix":
        return ""
    file = Path(os.path.realpath(path))
    status = os.stat(file)
    mode = stat.S_IMODE(status.st_mode)
    if mode & forbidden:
        may = "read" if mode & forbidden & 0o044 else "write to"
        return f"others may {may} this file (mode {mode:03o}): run chmod 600 on it"
    return _owned(status, "this file", file) or fault_of_folder(file.parent)


def fault_of_folder(folder: Path) -> str:
    """Return why others can replace files in a folder, and the remedy; empty if they cannot."""
    if os.name != "posix":
        return ""
    status = os.stat(folder)
    if owned := _owned(status, "the folder", folder):
        return owned
    if others_may_write(status):
        command = f"run chmod go-w {shlex.quote(str(folder))}, or "
        mend = "" if status.st_mode & stat.S_ISVTX else command
        return (
            f"others may write to the folder (mode {stat.S_IMODE(status.st_mode):o}) and replace "
            f"files in it: {mend}use a folder of its own"
        )
    return ""


def others_may_write(folder: os.stat_result) -> bool:
    """Return whether accounts other than its owner may write to a folder."""
    if os.name != "posix":
        return False
    of_group = folder.st_mode & stat.S_IWGRP and not _is_alone(folder.st_uid, folder.st_gid)
    return bool(folder.st_mode & stat.S_IWOTH or of_group)


def _is_alone(user: int, group: int) -> bool:
    import grp  # each specific to one system
    import pwd

    try:
        owner, members = pwd.getpwuid(user).pw_name, grp.getgrgid(group)
    except KeyError:  # unknown
        return False
    return members.gr_name == owner and set(members.gr_mem) <= {owner}


def _owned(status: os.stat_result, what: str, path: Path) -> str:
    if status.st_uid in (os.geteuid(), 0):
        return ""
    owner, me = _name(status.st_uid), _name(os.geteuid())
    return (
        f"another account ({owner}) owns {what} and can change it: run the command as {owner}, or "
        f"have root run chown {me} {shlex.quote(str(path))}"
    )


def _name(user: int) -> str:
    import pwd  # specific to one system

    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:  # it has only a number
        return str(user)
