"""``hushtable round protect``: keys and a book, encrypted on the disk."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from hushtable.cli.options import argument, option
from hushtable.cli.result import Block, CommandResult
from hushtable.errors import UsageError
from hushtable_federation import at_rest
from hushtable_federation.keys import Keys, passphrase_of
from hushtable_federation.settings import SiteSettings

_Key = Annotated[Path, argument("KEY", "The keys of a site, a coordinator or an officer.")]
_Passphrase = Annotated[
    str,
    option(
        "REF",
        (
            "Where the passphrase is: env:NAME, keyring:SERVICE or file:PATH; never the passphrase "
            "itself."
        ),
    ),
]


def protect(key: _Key, passphrase: _Passphrase) -> CommandResult:
    """Encrypt keys, and the book that belongs to them, with a passphrase.

    The passphrase has 12 or more characters. A reference names where it is stored: in the system's
    keyring, in an environment variable, or in a file, such as a systemd credential. Without the
    passphrase, keys and book are lost: keep a copy elsewhere. Before you run this command, stop
    scheduled runs; afterwards, delete old copies of both files.

    Example:
      hushtable round protect north.key --passphrase keyring:hushtable-north
    """
    keys, book = Keys.load(key), SiteSettings.load(key).book
    reference = passphrase_of(key)
    if reference and reference != passphrase:
        raise UsageError(
            f"{key} is encrypted with the passphrase that {reference} names: give that reference; "
            "for another passphrase, make new keys (hushtable round keygen)"
        )
    secret = at_rest.passphrase(passphrase, key.absolute().parent)
    at_rest.library()  # report what is missing before anything changes
    done = []
    # The keys name how to open the book, so they come first.
    if not reference:
        keys.protect(key, passphrase)
        done.append(key)
    if book.exists() and not at_rest.is_encrypted(book):
        at_rest.encrypt_book(book, secret)
        done.append(book)
    facts: dict[str, Any] = {
        "command": "round protect",
        "encrypted": [str(path) for path in done],
        "passphrase": passphrase,
    }

    def blocks() -> Iterator[Block]:
        for path in done:
            yield f"Encrypted {path}."
        if not done:
            yield f"{key} and its book are encrypted already."
        yield f"The passphrase is stored in {passphrase}. Keep a copy of it elsewhere."

    return CommandResult(facts, blocks())
