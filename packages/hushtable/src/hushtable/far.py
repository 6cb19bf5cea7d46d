"""Remote files and folders, by fsspec: ``s3://``, ``sftp://``, ``webdavs://`` and the like.

URLs without their secrets, connections, and explanations of failures, for all packages that use the
network. May import errors alone. Tested by ``tests/test_sources.py`` and hushtable-federation.
"""

import base64
import contextlib
import hashlib
import importlib
import re
from collections.abc import Iterator
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from hushtable.errors import HushTableError, MissingExtraError

#: Between the URLs of a chain, such as ``simplecache::s3://bucket/folder``.
_CHAINED = re.compile(r"::(?=[A-Za-z0-9+.-]+://)")
#: Checked by `_sftp`, since fsspec takes any key that a server shows.
_SFTP = {"sftp", "ssh"}
#: Where OpenSSH keeps the keys of servers for all users; each user's own are checked first.
_OF_ALL_USERS = "/etc/ssh/ssh_known_hosts"
#: fsspec itself does not read host and user off a URL of WebDAV; those with an s are encrypted.
_WEBDAV = {"webdavs": "https", "davs": "https", "webdav": "http", "dav": "http"}


class HostKeyError(Exception):
    """The key of a server is unknown, or differs from the known one."""


def is_chain(url: str) -> bool:
    """Return whether a URL requests one file system through another."""
    return len(_CHAINED.split(url)) > 1


def is_url(text: str) -> bool:
    """Return whether this begins like a URL; a Windows drive has one letter."""
    return re.match(r"[A-Za-z][\w.+:-]+://", text) is not None


def without_user(url: str) -> str:
    """Return a URL without possible secrets, if a password may contain any characters."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{re.split('[?#]', rest.rpartition('@')[2])[0]}"


def public(url: str) -> str:
    """Return a URL without possible secrets: user, password, and anything after the path."""
    return "::".join(map(_public, _CHAINED.split(url)))


def _public(url: str) -> str:
    if "://" not in url:  # the part before a chain
        return url
    try:
        parts = urlsplit(url)
    except ValueError:
        return f"{url.partition('://')[0]}://..."
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def is_known(url: str) -> bool:
    """Return whether fsspec knows the kind of a URL."""
    try:
        known = importlib.import_module("fsspec.registry").known_implementations
    except ImportError:
        return False
    return url.partition("://")[0].rpartition("::")[2] in known


def connect(url: str, **options: object) -> tuple[Any, str]:
    """Return fsspec's file system of a URL, and the URL's path on it; raises whatever it raises.

    ``options`` go to the file system; `reaching` explains failures.
    """
    try:
        core = importlib.import_module("fsspec.core")
    except ImportError:
        raise MissingExtraError(public(url), "fsspec", "remote") from None
    if is_chain(url) and _SFTP & {urlsplit(part).scheme for part in _CHAINED.split(url)}:
        raise HostKeyError(
            "several URLs in one: give the URL of the server itself, so that its key can be checked"
        )
    parts = urlsplit(url)
    if parts.scheme in _SFTP:
        checked = _sftp()
        return checked(**checked._get_kwargs_from_urls(url), **options), checked._strip_protocol(
            url
        )
    if parts.scheme not in _WEBDAV or "base_url" in core.conf.get("webdav", {}):
        system, path = core.url_to_fs(url, **options)
        return system, path
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    options.setdefault("auth", (unquote(user), unquote(password)) if user else None)
    options["base_url"] = f"{_WEBDAV[parts.scheme]}://{parts.netloc.rpartition('@')[2]}"
    return core.filesystem("webdav", **options), unquote(parts.path).strip("/")


@cache
def _sftp() -> Any:
    """Return fsspec's file system for SFTP, only for servers whose keys are known.

    Its option ``host_key`` is a fingerprint, or a file in place of the user's ``known_hosts``.
    """
    base = importlib.import_module("fsspec.implementations.sftp").SFTPFileSystem
    paramiko = importlib.import_module("paramiko")

    class Unknown(paramiko.MissingHostKeyPolicy):  # type: ignore[misc, name-defined] # no stubs
        def __init__(self, host_key: str) -> None:
            self.host_key = host_key

        def missing_host_key(self, client: object, hostname: str, key: object) -> None:
            _check_named(hostname, key, self.host_key)

    class Checked(base):  # type: ignore[misc, valid-type] # a class of fsspec
        def _connect(self) -> None:
            self.client = paramiko.SSHClient()
            host_key = self.ssh_kwargs.pop("host_key", "")
            try:
                _load_known(self.client, host_key)
            except paramiko.hostkeys.InvalidHostKey as error:
                raise HostKeyError(
                    f"known_hosts has a line that cannot be read: remove {error.line!r}"
                ) from None
            self.client.set_missing_host_key_policy(Unknown(host_key))
            try:
                self.client.connect(self.host, **self.ssh_kwargs)
                self.ftp = self.client.open_sftp()
            except paramiko.BadHostKeyException as error:
                self.client.close()
                name = self.host
                if (port := self.ssh_kwargs.get("port", 22)) != 22:
                    name = f"[{name}]:{port}"
                raise _changed(name, error.key, error.expected_key, host_key) from None
            except BaseException:
                self.client.close()
                raise

    return Checked


def _load_known(client: Any, host_key: str) -> None:
    """Load the keys of known servers: none if there is a fingerprint."""
    if host_key.startswith("SHA256:"):
        return
    if host_key:
        try:
            client.load_host_keys(host_key)
        except OSError as error:
            raise HostKeyError(
                f"host_key names {host_key}, which cannot be read ({error.strerror}): "
                "name a known_hosts file, or the fingerprint of the server's key (SHA256:...)"
            ) from None
        return
    client.load_system_host_keys()
    with contextlib.suppress(OSError):
        client.load_system_host_keys(_OF_ALL_USERS)


def _check_named(hostname: str, key: object, host_key: str) -> None:
    fingerprint = _fingerprint(key)
    if not host_key:
        raise HostKeyError(
            f"the server's key is not known here, and was not accepted: {fingerprint}. Compare it "
            f"with the key that its administrator states, then run {_accepting(hostname)} once "
            "and answer yes"
        )
    if fingerprint.split()[1] == host_key.rstrip("="):
        return
    if host_key.startswith("SHA256:"):
        raise HostKeyError(
            f"the server's key is {fingerprint}, but host_key names {host_key}. Someone else may "
            "be impersonating it, or the server has several keys: check with its administrator, "
            "and give the key that it uses"
        )
    raise HostKeyError(
        f"the server's key is {fingerprint}, but {host_key} has none for this server: check it "
        "with the administrator, and add it there, or give its fingerprint (host_key)"
    )


def _changed(hostname: str, key: object, known: object, host_key: str) -> HostKeyError:
    remedy = (
        f"run ssh-keygen -R '{hostname}', then {_accepting(hostname)} and answer yes"
        if not host_key
        else f"replace its line in {host_key}"
    )
    return HostKeyError(
        f"the server's key differs from the known one: it is {_fingerprint(key)}, but "
        f"{_fingerprint(known)} is known. Someone else may be impersonating it. Ask its "
        f"administrator; if the key did change, {remedy}"
    )


def _fingerprint(key: Any) -> str:
    digest = base64.b64encode(hashlib.sha256(key.asbytes()).digest()).decode().rstrip("=")
    return f"{key.get_name()} SHA256:{digest}"


def _accepting(hostname: str) -> str:
    host, _, port = hostname.strip("[").partition("]:")
    return f"sftp -P {port} {host}" if port else f"sftp {host}"


@contextlib.contextmanager
def reaching(
    url: str,
    error_type: type[HushTableError],
    advice: str = "check the URL, your rights and the network",
    secret: str = "",
) -> Iterator[None]:
    """Turn anything that a backend raises in the body into an error of this type, with advice.

    Our own errors pass as they are. No message repeats a secret of the URL, or ``secret``.
    """
    try:
        yield
    except HushTableError:
        raise
    except HostKeyError as error:
        raise error_type(f"{public(url)}: {error}") from None
    except ImportError as error:
        raise error_type(
            f"{public(url)}: {error}: install its requirements in addition to fsspec"
        ) from None
    except Exception as error:  # each backend has its own errors
        raise error_type(f"{public(url)}: {_said(error, url, secret)}: {advice}") from None


def _said(error: Exception, url: str, also: str) -> str:
    """Return a backend's message, unless it repeats a secret of the URL; always its type."""
    text = str(error)
    kind = type(error).__name__
    try:
        parts = [urlsplit(part) for part in _CHAINED.split(url)]
    except ValueError:  # not a URL: its secret parts are unknown
        return kind
    secrets = {also}
    for one in parts:
        user, _, password = one.netloc.rpartition("@")[0].partition(":")
        secrets |= {user, password, unquote(user), unquote(password), one.query, one.fragment}
        secrets |= {value for _, value in parse_qsl(one.query)}
    if not text or any(secret and secret in text for secret in secrets):
        return kind
    return f"{kind}: {text}"
