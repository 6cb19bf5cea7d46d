"""A folder far away: SFTP, WebDAV, an object store, or whatever else fsspec reaches."""

import contextlib
import importlib
import secrets
from collections.abc import Callable
from typing import Any

from hushtable import far
from hushtable.errors import FileError
from hushtable_federation.keys import is_name

_ADVICE = (
    "check the URL, your rights, the network and the space there; create the folder if it is not "
    "there yet (in an object store: put any file into it)"
)


class Remote:
    """A folder far away; see `hushtable_federation.folder.store.Place`."""

    def __init__(self, url: str) -> None:
        self.where = far.public(url)
        self._url = url
        if far.is_chain(url):  # such as a cache, which would go on giving what was read once
            raise FileError(f"{self.where}: several URLs in one: give that of the folder itself")
        with self._words():
            # A connection of its own: one that broke is not handed to whoever opens it again.
            self._system, self._root = far.connect(url, skip_instance_cache=True)
            base = importlib.import_module("fsspec").AbstractFileSystem
            # Elsewhere it copies and deletes. Those are object stores, where a file is there whole
            # or not at all.
            self._renames = type(self._system).mv is not base.mv
            if self._system.info(self._root)["type"] == "file":
                raise FileError(f"{self.where}: a file: give the URL of a folder")

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
                f"{self.where}: the subfolder {folder!r} is somebody else's, who could remove what "
                "lies there: ask whoever set the folder up"
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
        return far.reaching(self._url, FileError, _ADVICE)
