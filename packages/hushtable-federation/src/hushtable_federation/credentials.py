"""Secrets by reference: a file names where a password is, and never contains the password.

With a passphrase, keys are encrypted by ChaCha20-Poly1305 (RFC 8439) under a key that scrypt (RFC
7914) stretches from it.
"""

import json
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hushtable.errors import FileError, MissingExtraError
from hushtable_federation.permissions import fault_of

#: Where `read_secret` finds a secret.
SECRETS = ("env", "keyring", "file")
#: User name under which a keyring stores the secret of a service.
USER = "hushtable"
#: Matches a URL with a password; only digits after the colon are a port.
_PASSWORD = re.compile(r"[A-Za-z][\w+.-]*://[^/@:]*:(?!\d+(/|$))[^@]*@")
_FORMS = "env:NAME, keyring:SERVICE or file:PATH"
_LOGINS = f"agent, key:PATH, {_FORMS}"


def resolved(reference: str, folder: Path) -> str:
    """Return a reference whose path, if it has one, is relative to a folder."""
    kind, _, where = reference.partition(":")
    if kind not in ("file", "key") or not where or where[0] in "$~":
        return reference
    return f"{kind}:{folder / where}"


def expanded(path: str) -> Path:
    """Return a path with its variables, such as ``$CREDENTIALS_DIRECTORY``, and ``~`` replaced."""
    return Path(os.path.expandvars(path)).expanduser()


def read_secret(reference: str, what: str) -> str:
    """Return the secret that a reference names.

    Parameters
    ----------
    reference : str
        ``"env:NAME"``, an environment variable; ``"keyring:SERVICE"``, an entry of the system's
        keyring under the user ``hushtable``; ``"file:PATH"``, a file that others may not read, such
        as ``file:$CREDENTIALS_DIRECTORY/NAME`` of systemd.
    what : str
        What the secret is, for messages.

    Returns
    -------
    str
        The secret, without a line break at its end.

    Raises
    ------
    FileError
        If the reference is malformed, or there is no secret; messages never repeat a part of it.
    MissingExtraError
        If it is in a keyring, but the library is missing.
    """
    kind, _, where = reference.partition(":")
    if kind not in SECRETS or not where:  # this may be the secret itself
        raise FileError(f"{what}: this is not a reference to a secret: give {_FORMS}")
    if kind == "env":
        if where not in os.environ:
            raise FileError(
                f"{what}: there is no environment variable {where}: set it where the command is "
                "started, or name another place"
            )
        secret = os.environ[where]
    else:
        secret = _of_keyring(where, what) if kind == "keyring" else _of_file(where, what)
    if not secret:
        raise FileError(f"{what}: {reference} is empty: put the secret there")
    return secret


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
            "a session has no keyring: name a file (file:PATH)"
        ) from None
    if secret is None:
        raise FileError(
            f"{what}: the keyring has no entry for {service!r}: run keyring set {service} {USER}"
        )
    return secret


def _of_file(where: str, what: str) -> str:
    path = expanded(where)
    if "$" in str(path):
        raise FileError(f"{what}: {path}: this variable is not set: set it, or name the path")
    try:
        return _content(path, what).decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise FileError(
            f"{what}: {path}: this is not UTF-8 text: write the secret as text"
        ) from None


def _content(path: Path, what: str) -> bytes:
    # systemd reports its own files as 440, for one user's access list.
    of_systemd = str(path.parent) == os.environ.get("CREDENTIALS_DIRECTORY")
    try:
        fault, content = fault_of(path, 0o037 if of_systemd else 0o077), path.read_bytes()
    except OSError as error:
        raise FileError(
            f"{what}: {path}: {error.strerror}: create the file for the user who runs the command, "
            "mode 600 (chmod 600)"
        ) from None
    if fault:
        raise FileError(f"{what}: {path}: {fault}; renew the secret if others had access")
    return content


@dataclass(frozen=True)
class FolderAddress:
    """The folder of rounds, and how to reach a remote one.

    Attributes
    ----------
    folder : str
        A directory or a URL; empty if none is named.
    host_key : str
        For an SFTP server: ``"SHA256:..."``, the fingerprint of its key, or the path of a
        ``known_hosts`` file. By default, the user's own ``known_hosts`` has to contain it.
    login : str
        ``"agent"``, ``"key:PATH"``, or a reference to a password as `read_secret` takes it.
    """

    folder: str = ""
    host_key: str = ""
    login: str = ""

    def options(self) -> tuple[dict[str, Any], str]:
        """Return the options that open the URL's file system, and the secret in them.

        Raises
        ------
        FileError
            If the login does not suit this kind of URL, or its secret cannot be read.
        """
        scheme = self.folder.partition("://")[0]
        is_sftp = scheme in ("sftp", "ssh")
        kind, _, where = self.login.partition(":")
        if self.host_key and not is_sftp:
            raise FileError(
                f"host_key is only for sftp://, and {scheme}:// uses certificates: leave it out"
            )
        if kind in ("agent", "key") and not is_sftp:
            raise FileError(f"login = {self.login!r} is only for sftp://: give {_FORMS}")
        options: dict[str, Any] = {"host_key": self.host_key} if self.host_key else {}
        if not self.login:
            return options, ""
        options |= {"allow_agent": kind == "agent", "look_for_keys": False} if is_sftp else {}
        if kind == "key":
            _content(expanded(where), "login")
            options["key_filename"] = str(expanded(where))
        if kind in ("agent", "key"):
            return options, ""
        secret = read_secret(self.login, "login")
        if is_sftp:
            return options | {"password": secret}, secret
        if scheme in ("webdav", "webdavs", "dav", "davs"):
            return {"auth": (urlsplit(self.folder).username or "", secret)}, secret
        if scheme in ("s3", "s3a"):
            name, colon, key = secret.partition(":")
            if not colon:
                raise FileError("login: a secret for s3:// has the form ACCESS_KEY:SECRET_KEY")
            return {"key": name, "secret": key}, key
        raise FileError(
            "login is only for sftp, webdavs and s3: leave it out, and set the environment "
            f"variables that {scheme}:// uses"
        )


#: No folder; uses known_hosts and the keys of the user who runs the command.
BY_DEFAULT = FolderAddress()


def unfit_folder(folder: str) -> str:
    """Return why a file may not name this folder, in words; empty if it may."""
    if _PASSWORD.match(folder) is None:
        return ""
    return (
        "folder has a password in its URL, and this file may be copied: leave the password "
        f'out, change it, and name where it is (login = "keyring:SERVICE": {_LOGINS})'
    )


def unfit_login(login: str) -> str:
    """Return why this is not a login, without repeating any of it; empty if it is one."""
    kind, _, where = login.partition(":")
    if login == "agent" or (kind in (*SECRETS, "key") and where):
        return ""
    return f"login is not a reference, and a secret does not belong here: give {_LOGINS}"


# --- keys under a passphrase ----------------------------------------------------------------------

#: Cost of scrypt: 128 MB and about half a second, as OWASP advises.
_COST = {"n": 2**17, "r": 8, "p": 1}
_SALT, _NONCE = 16, 12
#: The least number of characters of a passphrase.
_SHORTEST = 12


def read_passphrase(reference: str, folder: Path) -> str:
    """Return the passphrase that a reference names; paths are relative to a folder.

    Raises
    ------
    FileError
        If there is none, or it has fewer than 12 characters.
    """
    passphrase = read_secret(resolved(reference, folder), "passphrase")
    if len(passphrase) < _SHORTEST:
        raise FileError(
            f"passphrase: {reference} has {len(passphrase)} characters: needs {_SHORTEST} or more, "
            "such as five random words"
        )
    return passphrase


def sealed(content: dict[str, str], name: str, reference: str, folder: Path) -> dict[str, str]:
    """Return the encrypted keys for a key file; raise as `read_passphrase` does."""
    salt, nonce = secrets.token_bytes(_SALT), secrets.token_bytes(_NONCE)
    cipher = _cipher(read_passphrase(reference, folder), salt)
    hidden = cipher.encrypt(nonce, json.dumps(content).encode(), name.encode())
    return {"passphrase": reference, "salt": salt.hex(), "sealed": (nonce + hidden).hex()}


def opened(record: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return the keys that `sealed` encrypted.

    Raises
    ------
    FileError
        If the passphrase is missing or does not open the keys; as `read_passphrase` raises.
    """
    from cryptography.exceptions import InvalidTag

    try:
        reference, name = record["passphrase"], record["name"].encode()
        reference.partition(":")  # is a text
        salt, hidden = bytes.fromhex(record["salt"]), bytes.fromhex(record["sealed"])
    except (AttributeError, KeyError, TypeError, ValueError):
        raise FileError(f"{path}: the keys are damaged: restore them from a backup") from None
    cipher = _cipher(read_passphrase(reference, path.parent), salt)
    try:
        content = json.loads(cipher.decrypt(hidden[:_NONCE], hidden[_NONCE:], name))
    except (InvalidTag, ValueError):
        raise FileError(
            f"{path}: the passphrase that {reference} names does not open these keys, or they are "
            "damaged: put the right passphrase there, or restore the keys from a backup"
        ) from None
    return dict(content)


def _cipher(secret: str, salt: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    return ChaCha20Poly1305(Scrypt(salt=salt, length=32, **_COST).derive(secret.encode()))
