"""Identities: the keys of a site or coordinator, and the card that it gives to the others.

Each has two key pairs: Ed25519 (RFC 8032) signs the content of its files; X25519 (RFC 7748)
agrees on masks with every other site. The card carries the public halves, signed by the first.
"""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import rfc8785

from hushtable import files
from hushtable.arguments import entries, translate_errors
from hushtable.errors import FileError, MissingExtraError, PrivacyError, RoundError, UsageError
from hushtable_federation.credentials import opened, sealed
from hushtable_federation.permissions import fault_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

#: ASCII only, so that different names do not look alike.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_ .-]{0,63}")


def crypto() -> Any:
    """Return the modules of pyca/cryptography that rounds use, in one namespace."""
    try:
        from hushtable_federation import _crypto
    except ImportError:
        raise MissingExtraError("a round", "cryptography", "federation") from None
    return _crypto


def _of_file(kind: str, digest: str) -> bytes:
    # The bytes to sign for a file: its kind, and the digest of its content.
    return f"hushtable {kind}:{digest}".encode()


def _of_card(name: str, signing: str, masking: str) -> bytes:
    # The bytes to sign for a card: a name, and the public keys to sign and to mask with.
    return b"hushtable card:" + rfc8785.dumps([name, signing, masking])


def grouped(digits: str) -> str:
    """Return digits in groups of four."""
    return " ".join(digits[k : k + 4] for k in range(0, len(digits), 4))


@dataclass(frozen=True)
class Card:
    """Public half of a party's keys: name, and keys to check signatures and agree on masks.

    Attributes
    ----------
    name : str
        Up to 64 letters from A to Z, digits, spaces, dots, hyphens and underscores.
    signing : str
        Ed25519 public key, 64 hexadecimal digits.
    masking : str
        X25519 public key, 64 hexadecimal digits.
    signature : str
        Signature over the other three, by the signing key, so that no one can replace the masking
        key in a card.

    Examples
    --------
    >>> from hushtable_federation import Card, Keys
    >>> Keys.generate("north").card.save("north.card")
    >>> Card.load("north.card").name
    'north'
    """

    name: str
    signing: str
    masking: str
    signature: str

    def __post_init__(self) -> None:
        check_name(self.name)
        for text, digits in ((self.signing, 64), (self.masking, 64), (self.signature, 128)):
            if not isinstance(text, str) or not re.fullmatch(f"[0-9a-f]{{{digits}}}", text):
                raise RoundError(f"the card of {self.name!r} has no keys in hexadecimal digits")
        if not self._verifies(self.signature, _of_card(self.name, self.signing, self.masking)):
            raise RoundError(
                f"the card of {self.name!r} was edited, or its keys do not belong together: get it "
                "again from its owner"
            )

    def _verifies(self, signature: str, message: bytes) -> bool:
        from hushtable_federation._crypto import Ed25519PublicKey, InvalidSignature  # takes a while

        try:
            public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(self.signing))
            public.verify(bytes.fromhex(signature), message)
        except (InvalidSignature, ValueError):
            return False
        return True

    def signed(self, content: files.Content) -> bool:
        """Return whether the owner of this card signed the file."""
        signature = content.signature
        return isinstance(signature, str) and self.signs(content.kind, content.digest, signature)

    def signs(self, kind: str, digest: str, signature: str) -> bool:
        """Return whether the owner of this card signed this digest, for this kind of file."""
        return self._verifies(signature, _of_file(kind, digest))

    @cached_property
    def fingerprint(self) -> str:
        """Return 32 digits of a SHA-256 of the public keys, to compare on the phone."""
        return grouped(hashlib.sha256(bytes.fromhex(self.signing + self.masking)).hexdigest()[:32])

    # --- files ------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, str]:
        """Return the card for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Any) -> "Card":
        """Read back what `to_dict` wrote; raise `RoundError` on anything else."""
        names = [field.name for field in fields(cls)]
        return cls(**entries(content, "a card", dict.fromkeys(names, object), error=RoundError))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the card as JSON, for the coordinator and the other sites."""
        write_json(path, "card", self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Card":
        """Read a card; raise `FileError` if the file holds none."""
        with translate_errors(FileError, str(path)):
            return cls.from_dict(read_json(path, "card"))


class Keys:
    """Both halves of a party's keys, which never leave their owner.

    Attributes
    ----------
    card : Card
        The public halves.

    Examples
    --------
    >>> from hushtable_federation import Keys
    >>> keys = Keys.generate("north")
    >>> keys.save("north.key")
    >>> Keys.load("north.key").card == keys.card
    True
    """

    def __init__(
        self, name: str, signing: "Ed25519PrivateKey", masking: "X25519PrivateKey"
    ) -> None:
        self._signing, self.masking = signing, masking
        ours, pair = (key.public_key().public_bytes_raw().hex() for key in (signing, masking))
        signature = signing.sign(_of_card(check_name(name), ours, pair)).hex()
        self.card = Card(name, ours, pair, signature)

    @classmethod
    def generate(cls, name: str) -> "Keys":
        """Draw new keys from the system's secure random numbers."""
        c = crypto()
        return cls(name, c.Ed25519PrivateKey.generate(), c.X25519PrivateKey.generate())

    def sign(self, kind: str, digest: str) -> str:
        """Return the signature of a digest, as `hushtable.files.pack` needs it."""
        return self._signing.sign(_of_file(kind, digest)).hex()

    # --- files ------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], passphrase: str = "") -> None:
        """Write the keys to a new file that only its owner can read.

        Parameters
        ----------
        path : path
            The file.
        passphrase : str
            Where the passphrase that encrypts them is: ``"env:NAME"``, ``"keyring:SERVICE"`` or
            ``"file:PATH"``, relative to the file's folder. Empty for keys that are not encrypted.

        Raises
        ------
        UsageError
            If the file exists, because keys are never overwritten.
        FileError, MissingExtraError
            If there is no passphrase, or it is too short.
        """
        content = {
            "signing": self._signing.private_bytes_raw().hex(),
            "masking": self.masking.private_bytes_raw().hex(),
        }
        if passphrase:
            content = sealed(content, self.card.name, passphrase, Path(path).absolute().parent)
        record = {"hushtable": "keys", "name": self.card.name, **content}
        with new_private(path) as file:
            file.write(json.dumps(record).encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Keys":
        """Read the keys.

        Raises
        ------
        FileError
            If the file is missing or holds no keys.
        PrivacyError
            If others may read the file.
        """
        try:
            refuse_open(path, "keys")
        except PrivacyError:
            with contextlib.suppress(FileError):
                name = read_json(path, "card").get("name")
                raise UsageError(
                    f"{path}: this is a card, for others: give the keys of {name!r}"
                ) from None
            raise
        try:
            return cls.from_bytes(Path(path).read_bytes(), path)
        except PermissionError:
            raise FileError(
                f"{path}: the user who runs this command may not read these keys: run it as their "
                "owner, and run chmod 600 on the file"
            ) from None

    @classmethod
    def from_bytes(cls, text: bytes, path: str | os.PathLike[str]) -> "Keys":
        """Read the keys from a file's content; ``path`` names it in errors.

        Raise `FileError` if it holds none. The file's permissions are not checked.
        """
        content, c = parsed_json(text, path, "keys", "keygen"), crypto()
        if "sealed" in content:
            content |= opened(content, Path(path).absolute())
        try:
            return cls(
                content["name"],
                c.Ed25519PrivateKey.from_private_bytes(bytes.fromhex(content["signing"])),
                c.X25519PrivateKey.from_private_bytes(bytes.fromhex(content["masking"])),
            )
        except (KeyError, TypeError, ValueError):
            raise FileError(
                f"{path}: the keys are damaged: restore the file from a backup, or make new ones"
            ) from None


def passphrase_of(path: str | os.PathLike[str]) -> str:
    """Return the reference to the passphrase of a key file; empty if it is not encrypted.

    Raise `FileError` if the file holds no keys.
    """
    reference = parsed_json(Path(path).read_bytes(), path, "keys", "keygen").get("passphrase", "")
    return reference if isinstance(reference, str) else ""


def is_name(name: str) -> bool:
    """Return whether a card may have this name."""
    return _NAME.fullmatch(name) is not None and name == name.strip()


def check_name(name: Any) -> str:
    """Return a name that is valid in file names and tables; raise `RoundError` otherwise."""
    if not isinstance(name, str) or not is_name(name):
        raise RoundError(
            f"name {name!a}: needs 1 to 64 letters from A to Z, digits, spaces, dots, hyphens or "
            "underscores, beginning with a letter, digit or underscore (no other letters, because "
            "some look like these)"
        )
    return name


@contextlib.contextmanager
def new_private(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a private temporary file, open for writing; it becomes ``path`` if the body succeeds.

    Only its owner can read it. If something fails, ``path`` is not created. Raise `UsageError` if
    the file exists, because secrets are never overwritten.
    """
    try:
        with files.replacing(Path(path), private=True, new=True) as file:
            yield file
    except FileExistsError:
        raise UsageError(
            f"{path} exists, and is never overwritten: use it, or give another name"
        ) from None


def refuse_open(path: str | os.PathLike[str], what: str) -> None:
    """Raise if a key file, or one that belongs to it, is missing or open to others."""
    try:
        fault = fault_of(path, 0o077)
    except FileNotFoundError:
        raise FileError(
            f"{path}: there is no file with {what} here. Check the path, or restore it from a "
            "backup; if it is lost, make new keys (hushtable round keygen) and send the new card "
            "to the coordinator: rounds that were opened with the old one cannot be answered"
        ) from None
    if fault:
        raise PrivacyError(f"{path}: {fault}; if others may have read it, make new keys")


def write_json(path: str | os.PathLike[str], kind: str, content: dict[str, Any]) -> None:
    """Write a file of this kind that others may read."""
    text = json.dumps({"hushtable": kind, **content}, indent=2)
    files.write_bytes(path, text.encode(), private=not files.travels(kind))


def read_json(path: str | os.PathLike[str], what: str, command: str = "keygen") -> dict[str, Any]:
    """Read back what `write_json` or `Keys.save` wrote; raise `FileError` on anything else."""
    return parsed_json(Path(path).read_bytes(), path, what, command)


def parsed_json(
    text: bytes, path: str | os.PathLike[str], what: str, command: str
) -> dict[str, Any]:
    """Return the content of such a file; ``path`` names it in errors."""
    if not files.SMALL.allows(text):
        raise files.too_large(path, f"the {what}")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or content.pop("hushtable", None) != what:
        raise FileError(f"{path}: holds no {what} of hushtable round {command}, or a damaged one")
    return content
