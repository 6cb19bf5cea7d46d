"""Rows in files far away, by fsspec: ``s3://``, ``sftp://``, ``https://`` and the like."""

import importlib
from collections.abc import Callable
from pathlib import PurePosixPath
from urllib.parse import parse_qsl, unquote, urlsplit

from hushtable.data.readers._copy import Copy
from hushtable.errors import DataError, MissingExtraError


def public(url: str) -> str:
    """Return a URL without what may be secret: user, password, and what follows the path."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return f"{url.partition('://')[0]}://..."
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def is_known(url: str) -> bool:
    """Whether fsspec knows the kind of a URL."""
    try:
        known = importlib.import_module("fsspec.registry").known_implementations
    except ImportError:
        return False
    return url.partition("://")[0].rpartition("::")[2] in known


def copies(url: str, is_rows: Callable[[PurePosixPath], bool]) -> list[Copy]:
    """Copy every file of rows that a URL, of a file, a folder or a pattern, names.

    ``is_rows`` says whether a file of a name holds rows.
    """
    try:
        core = importlib.import_module("fsspec.core")
    except ImportError:
        raise MissingExtraError(public(url), "fsspec", "remote") from None
    try:
        system, root = core.url_to_fs(url)
        if set("*[") & set(root):
            found = sorted(name for name in system.glob(root) if is_rows(_name(name)))
        elif is_rows(_name(root)):
            found = [root]
        else:
            found = sorted(name for name in system.find(root) if is_rows(_name(name)))
        made = []
        for name in found:
            shown = public(url) if name == root else public(system.unstrip_protocol(name))
            made.append(Copy.of(shown, "".join(_name(name).suffixes[-2:])))
            system.get_file(name, str(made[-1].path))
    except ImportError as error:
        raise DataError(f"{public(url)}: {error}: install what it needs beside fsspec") from None
    except Exception as error:  # each backend has errors of its own
        raise DataError(
            f"{public(url)}: {_said(error, url)}: check the URL, your rights and the network"
        ) from None
    if not made:
        raise DataError(f"{public(url)}: no such file, and no file of rows in it: check the URL")
    return made


def _name(path: str) -> PurePosixPath:
    """Return the last part of a path, which with some backends is a URL with a query."""
    return PurePosixPath(PurePosixPath(path.partition("?")[0]).name)


def _said(error: Exception, url: str) -> str:
    """Return what a backend says, unless it repeats a secret of the URL; its kind always."""
    text, parts = str(error), urlsplit(url)
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    secrets = {password, unquote(password), parts.query, *(v for _, v in parse_qsl(parts.query))}
    secrets |= {user, unquote(user), parts.fragment}
    kind = type(error).__name__
    if not text or any(secret and secret in text for secret in secrets):
        return kind
    return f"{kind}: {text}"
