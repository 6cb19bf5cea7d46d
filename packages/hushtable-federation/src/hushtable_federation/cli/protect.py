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

_Key = Annotated[Path, argument("KEY", "Keys of a site, a coordinator or an officer.")]
_Passphrase = Annotated[
    str,
    option("REF", "Where the passphrase is: env:NAME, keyring:SERVICE or file:PATH; never itself."),
]


def protect(key: _Key, passphrase: _Passphrase) -> CommandResult:
    """Encrypt keys, and the book that goes with them, by a passphrase.

    The passphrase has 12 characters or more, and lies where a reference names it: in the system's
    keyring, in a variable of the environment, or in a file, such as one of systemd's credentials.
    Without it, keys and book are lost: keep a copy elsewhere. Stop what runs on a schedule before,
    and delete old copies of both files.

    Example:
      hushtable round protect north.key --passphrase keyring:hushtable-north
    """
    keys, book = Keys.load(key), SiteSettings.load(key).book
    reference = passphrase_of(key)
    if reference and reference != passphrase:
        raise UsageError(
            f"{key} is encrypted by the passphrase that {reference} names: give that one; for "
            "another passphrase, make new keys (hushtable round keygen)"
        )
    secret = at_rest.passphrase(passphrase, key.absolute().parent)
    at_rest.library()  # what is missing is said before anything is changed
    done = []
    # The book is opened by what the keys say: so they come first.
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
        yield f"The passphrase is where {passphrase} says: keep a copy of it elsewhere."

    return CommandResult(facts, blocks())
