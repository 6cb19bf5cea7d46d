"""Secrets by reference: a file says where a password is, and never holds the password itself."""

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hushtable.errors import FileError, MissingExtraError

#: Where `read_secret` finds a secret.
SECRETS = ("env", "keyring", "file")
#: Under which name a keyring has the secret of a service.
USER = "hushtable"
#: Of a URL that has a password; what has digits alone behind its colon has a port.
_PASSWORD = re.compile(r"[A-Za-z][\w+.-]*://[^/@:]*:(?!\d+(/|$))[^@]*@")
_FORMS = "env:NAME, keyring:SERVICE or file:PATH"
_LOGINS = f"agent, key:PATH, {_FORMS}"


def resolved(reference: str, folder: Path) -> str:
    """Return a reference whose path, if it has one, is taken from a folder on."""
    kind, _, where = reference.partition(":")
    if kind not in ("file", "key") or not where or where[0] in "$~":
        return reference
    return f"{kind}:{folder / where}"


def expanded(path: str) -> Path:
    """Return a path with its variables, such as ``$CREDENTIALS_DIRECTORY``, and ``~`` replaced."""
    return Path(os.path.expandvars(path)).expanduser()


def read_secret(reference: str, what: str) -> str:
    """Return a secret that a reference names.

    Parameters
    ----------
    reference : str
        ``"env:NAME"``, a variable of the environment; ``"keyring:SERVICE"``, an entry of the
        system's keyring under the user ``hushtable``; ``"file:PATH"``, a file that others may not
        read, such as ``file:$CREDENTIALS_DIRECTORY/NAME`` of systemd.
    what : str
        What the secret is, for messages.

    Returns
    -------
    str
        The secret, without a line break at its end.

    Raises
    ------
    FileError
        If the reference has another form, or there is no secret; nothing of one is repeated.
    MissingExtraError
        If it is in a keyring, and the library is missing.
    """
    kind, _, where = reference.partition(":")
    if kind not in SECRETS or not where:  # perhaps the secret itself
        raise FileError(f"{what}: this is no reference to a secret: give {_FORMS}")
    readers = {"env": _of_environment, "keyring": _of_keyring, "file": _of_file}
    secret = readers[kind](where, what)
    if not secret:
        raise FileError(f"{what}: {reference} is empty: put the secret there")
    return secret


def _of_environment(name: str, what: str) -> str:
    if name not in os.environ:
        raise FileError(
            f"{what}: there is no variable {name} in the environment: set it where the command is "
            "started, or name another place"
        )
    return os.environ[name]


def _of_keyring(service: str, what: str) -> str:
    try:
        import keyring  # an optional library
    except ImportError:
        raise MissingExtraError(f"{what} in a keyring", "keyring", "keyring") from None
    try:
        secret = keyring.get_password(service, USER)
    except keyring.errors.KeyringError as error:
        raise FileError(
            f"{what}: the system's keyring cannot be read ({error}): unlock it; a service without "
            "a session has none: name a file (file:PATH)"
        ) from None
    if secret is None:
        raise FileError(
            f"{what}: the keyring has nothing for {service!r}: run keyring set {service} {USER}"
        )
    return secret


def _of_file(where: str, what: str) -> str:
    path = expanded(where)
    if "$" in str(path):
        raise FileError(f"{what}: {path}: this variable is not set: set it, or name the path")
    try:
        return _content(path, what).decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise FileError(f"{what}: {path}: not text in UTF-8: write the secret as text") from None


def _content(path: Path, what: str) -> bytes:
    """Read a file with a secret; raise `FileError` if it is closed to us, or open to others."""
    try:
        mode, content = stat.S_IMODE(os.stat(path).st_mode), path.read_bytes()
    except OSError as error:
        raise FileError(
            f"{what}: {path}: {error.strerror}: create the file for the user who runs the command, "
            "mode 600 (chmod 600)"
        ) from None
    if os.name == "posix" and mode & 0o027:  # systemd shows its own as 440, for one user's list
        raise FileError(
            f"{what}: {path}: others may read or change this file (mode {mode:o}): run chmod 600 "
            "on it, and renew the secret if others were there"
        )
    return content


@dataclass(frozen=True)
class FolderAddress:
    """Where the rounds live, and how a folder far away is reached.

    Attributes
    ----------
    folder : str
        A directory, or a URL; empty if it is not named.
    host_key : str
        Of a server for SFTP: ``"SHA256:..."``, the fingerprint of its key, or a path of a
        ``known_hosts`` file. By default, the user's own ``known_hosts`` has to know it.
    login : str
        ``"agent"``, ``"key:PATH"``, or a reference to a password as `read_secret` takes it.
    """

    folder: str = ""
    host_key: str = ""
    login: str = ""

    def options(self) -> tuple[dict[str, Any], str]:
        """Return what the file system of the URL is opened with, and the secret that is in it.

        Raises
        ------
        FileError
            If the login is of no use to this kind of URL, or its secret cannot be read.
        """
        scheme = self.folder.partition("://")[0]
        is_sftp = scheme in ("sftp", "ssh")
        options: dict[str, Any] = {"host_key": self.host_key} if self.host_key else {}
        if self.host_key and not is_sftp:
            raise FileError(f"host_key is for sftp://: {scheme}:// has certificates: leave it out")
        kind, _, where = self.login.partition(":")
        if kind in ("agent", "key"):
            if not is_sftp:
                raise FileError(f"login = {self.login!r} is for sftp://: give {_FORMS}")
            files = {}
            if kind == "key":
                _content(expanded(where), "login")
                files = {"key_filename": str(expanded(where))}
            agent = {"allow_agent": kind == "agent", "look_for_keys": False}
            return options | agent | files, ""
        if not self.login:
            return options, ""
        secret = read_secret(self.login, "login")
        if is_sftp:
            return options | {"password": secret, "allow_agent": False, "look_for_keys": False}, (
                secret
            )
        if scheme in ("webdav", "webdavs", "dav", "davs"):
            return {"auth": (urlsplit(self.folder).username or "", secret)}, secret
        if scheme in ("s3", "s3a"):
            name, colon, key = secret.partition(":")
            if not colon:
                raise FileError("login: a secret for s3:// has the form ACCESS_KEY:SECRET_KEY")
            return {"key": name, "secret": key}, key
        raise FileError(
            f"login is for sftp, webdavs and s3: leave it out, and give {scheme}:// what it reads "
            "from the environment"
        )


#: No folder, and known_hosts and the keys of the user who runs the command.
BY_DEFAULT = FolderAddress()


def unfit_folder(folder: str) -> str:
    """Return why a file may not name this folder, in words; empty if it may."""
    if _PASSWORD.match(folder) is None:
        return ""
    return (
        "folder has a password in its URL, and this file is copied and kept: leave the password "
        f'out, change it, and name where it is (login = "keyring:SERVICE": {_LOGINS})'
    )


def unfit_login(login: str) -> str:
    """Return why this is no login, in words that repeat nothing of it; empty if it is one."""
    kind, _, where = login.partition(":")
    if login == "agent" or (kind in (*SECRETS, "key") and where):
        return ""
    return f"login is no reference: a secret does not belong here; give {_LOGINS}"
