"""``hushtable round keygen``: keys, card and book of a party."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from hushtable.cli.options import Delta, argument, option
from hushtable.cli.output import Target
from hushtable.cli.result import Block, CommandResult
from hushtable.errors import PrivacyError, UsageError
from hushtable_federation.book.book import Book
from hushtable_federation.cli._common import PersonsOption, stated_persons
from hushtable_federation.keys import Keys, check_name
from hushtable_federation.passphrase import read_passphrase
from hushtable_federation.permissions import fault_of_folder
from hushtable_federation.policy import Persons, policy_beside, write_policy
from hushtable_federation.settings import write_settings

_Name = Annotated[str, argument("NAME", "Your name, as others see it.")]
_Cap = Annotated[
    float | None,
    option("E", "For a site: the epsilon that all rounds together may cost a person in its rows."),
]
_Passphrase = Annotated[
    str,
    option(
        "REF",
        (
            "Encrypt the keys with the passphrase that is there: env:NAME, keyring:SERVICE or "
            "file:PATH; never the passphrase itself."
        ),
    ),
]
_Folder = Annotated[Path, option("DIR", "Folder to write the files to.", "--folder")]


def keygen(
    name: _Name,
    cap: _Cap = None,
    delta: Delta = 1e-6,
    persons: PersonsOption = "column",
    folder: _Folder = Path(),
    passphrase: _Passphrase = "",
) -> CommandResult:
    """Make the keys of a site (with --cap) or of a coordinator.

    NAME.key is secret. NAME.card is its public half: give it to the coordinator, and read its
    fingerprint to them on the phone. With --cap: NAME.book records what the site answers and what
    that costs, and is as secret as the rows; NAME.policy.toml states whom the site answers, and
    about what: review it. NAME.toml states where the folder of rounds is, where the rows are, and
    how to read them: fill it in.

    With --passphrase, commands find the passphrase by this reference, which NAME.key holds. It has
    12 or more characters, and without it, the keys are lost. The book is not encrypted by it:
    encrypt the disk.

    Example:
      hushtable round keygen north --cap 2
    """
    check_name(name)
    files = {kind: folder / f"{name}.{kind}" for kind in ("key", "card")}
    if cap is not None:
        files["policy"] = policy_beside(files["key"])
        files["book"] = folder / f"{name}.book"
    files["site"] = folder / f"{name}.toml"
    keys = _made(name, files, cap, delta, stated_persons(persons), passphrase)
    facts: dict[str, Any] = {
        "command": "round keygen",
        "name": name,
        "fingerprint": keys.card.fingerprint,
        "files": {kind: str(path) for kind, path in files.items()},
    }

    def blocks() -> Iterator[Block]:
        yield f"Keys of {name}. Fingerprint: {keys.card.fingerprint}\n"
        yield f"  {files['key']}   secret: back it up, and never share it"
        if cap is not None:
            yield f"  {files['book']}  secret: back it up; cap: epsilon {cap:g}, delta {delta:g}"
            yield f"  {files['policy']}  whom this site answers, and about what: review it"
        what = "where the rounds are" + (", where the rows are" if cap is not None else "")
        yield f"  {files['site']}  {what}: fill it in"
        yield f"  {files['card']}  give it to the coordinator"

    return CommandResult(facts, blocks())


def _made(
    name: str,
    files: dict[str, Path],
    cap: float | None,
    delta: float,
    persons: Persons,
    passphrase: str,
) -> Keys:
    folder = files["key"].parent
    if folder.is_dir() and (fault := fault_of_folder(folder.resolve())):
        raise PrivacyError(f"{folder}: keys are not safe here: {fault}")
    keys = _begun(files, cap, delta)
    for kind, path in files.items():
        if path.exists() and kind not in ("policy", "site") and (keys is None or kind == "card"):
            raise UsageError(
                f"{path} exists, and keys are never overwritten: use these keys, or give another "
                "name"
            )
    targets = {kind: Target(path) for kind, path in files.items()}
    if keys is None:
        keys = Keys.generate(name)
        if passphrase:
            read_passphrase(passphrase, folder.absolute())  # before anything is written
        if cap is not None:
            with targets["book"].writing():
                Book.create(files["book"], keys.card, epsilon=cap, delta=delta).close()
        with _held(files, keys, cap), targets["key"].writing():
            keys.save(files["key"], passphrase)
    if cap is not None:
        Book.open(files["book"], keys.card).close()  # not a file of a concurrent call
        if not files["policy"].exists():
            with targets["policy"].writing():
                write_policy(files["policy"], name, cap, delta, persons)
    if not files["site"].exists():
        with targets["site"].writing():
            write_settings(files["site"], name, site=cap is not None)
    targets["card"].save(keys.card)
    return keys


def _begun(files: dict[str, Path], cap: float | None, delta: float) -> Keys | None:
    # A call may have been interrupted before it wrote its last file, the card.
    # The first file is the book. A book without keys beside it and without entries is useless, so
    # it is deleted.
    if files["card"].exists() or (cap is not None and not files["book"].exists()):
        return None
    keys = Keys.load(files["key"]) if files["key"].exists() else None
    if cap is None:
        return keys
    with Book.open(files["book"], None if keys is None else keys.card) as book:
        unused, terms = book.unused, (book.epsilon, book.delta)
        if keys is None and unused:
            # Under its lock, because a concurrent call may be about to write the keys of this book.
            with book.writing(), Book.open(files["book"]) as now:
                if now.head == book.head and not files["key"].exists():
                    files["book"].unlink()
    return keys if unused and terms == (cap, delta) else None


@contextlib.contextmanager
def _held(files: dict[str, Path], keys: Keys, cap: float | None) -> Iterator[None]:
    # No other call may delete the new book as abandoned.
    if cap is None:
        yield
        return
    with Book.open(files["book"], keys.card) as book, book.writing():
        Book.open(files["book"], keys.card).close()  # still there, now that we hold the lock
        yield
