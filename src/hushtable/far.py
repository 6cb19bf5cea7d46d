"""Files and folders far away, by fsspec: ``s3://``, ``sftp://``, ``webdavs://`` and the like.

URLs without their secrets, connections, and words for what fails, for all rooms that reach out.
May import errors alone. Tested by ``tests/test_sources.py`` and ``tests/federation/test_store.py``.
"""

import contextlib
import importlib
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from hushtable.errors import HushTableError, MissingExtraError

#: Between the URLs of a chain, such as ``simplecache::s3://bucket/folder``.
_CHAINED = re.compile(r"::(?=[A-Za-z0-9+.-]+://)")
#: fsspec itself does not read host and user off a URL of WebDAV; those with an s are encrypted.
_WEBDAV = {"webdavs": "https", "davs": "https", "webdav": "http", "dav": "http"}


def is_chain(url: str) -> bool:
    """Whether a URL asks for one file system by way of another."""
    return len(_CHAINED.split(url)) > 1


def public(url: str) -> str:
    """Return a URL without what may be secret: user, password, and what follows the path."""
    return "::".join(map(_public, _CHAINED.split(url)))


def _public(url: str) -> str:
    if "://" not in url:  # what stands before a chain
        return url
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


def connect(url: str, **options: Any) -> tuple[Any, str]:
    """Return fsspec's file system of a URL, and the URL's path on it; raises whatever it raises.

    ``options`` go to the file system; `reaching` gives what fails its words.
    """
    try:
        core = importlib.import_module("fsspec.core")
    except ImportError:
        raise MissingExtraError(public(url), "fsspec", "remote") from None
    parts = urlsplit(url)
    if parts.scheme not in _WEBDAV or "base_url" in core.conf.get("webdav", {}):
        system, path = core.url_to_fs(url, **options)
        return system, path
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    options["base_url"] = f"{_WEBDAV[parts.scheme]}://{parts.netloc.rpartition('@')[2]}"
    if user:
        options["auth"] = (unquote(user), unquote(password))
    return core.filesystem("webdav", **options), unquote(parts.path).strip("/")


@contextlib.contextmanager
def reaching(
    url: str,
    error_type: type[HushTableError],
    advice: str = "check the URL, your rights and the network",
) -> Iterator[None]:
    """Make an error of this type, with advice, of whatever a backend raises in the body.

    Our own errors pass as they are. No message repeats a secret of the URL.
    """
    try:
        yield
    except HushTableError:
        raise
    except ImportError as error:
        raise error_type(f"{public(url)}: {error}: install what it needs beside fsspec") from None
    except Exception as error:  # each backend has errors of its own
        raise error_type(f"{public(url)}: {_said(error, url)}: {advice}") from None


def _said(error: Exception, url: str) -> str:
    """Return what a backend says, unless it repeats a secret of the URL; its kind always."""
    text = str(error)
    kind = type(error).__name__
    try:
        secrets = set().union(*(_secrets(urlsplit(part)) for part in _CHAINED.split(url)))
    except ValueError:  # no URL: nobody can tell what in it is secret
        return kind
    if not text or any(secret and secret in text for secret in secrets):
        return kind
    return f"{kind}: {text}"


def _secrets(parts: SplitResult) -> set[str]:
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    said = {user, password, parts.query, parts.fragment}
    return (
        said | {unquote(user), unquote(password)} | {value for _, value in parse_qsl(parts.query)}
    )
