"""The exceptions that reach a user.

Every message states what was found, what was needed, and what to do next. None contains a secret of
a URL.
"""

import errno
import os
import re

#: A URL, also with one slash, as paths write it; the parts of it, or of other texts for a database,
#: that can hold a secret: all before the last @, since a password may contain any character, and
#: all after the path.
_URL = re.compile(r"([A-Za-z][\w.+-]{1,30}:/{1,2})(\S+)")
_AFTER_PATH = re.compile(r"[?#]\S*?(?=[.,:;)\]'\"]*$)")
_PASSWORD = re.compile(r"(?i)\b(pwd|password)=[^\s;&'\"]+")


def without_secrets(text: str) -> str:
    """Return a message without user, password, and query of any URL in it."""
    return _PASSWORD.sub(r"\1=...", _URL.sub(_without, text) if ":/" in text else text)


def _without(url: re.Match[str]) -> str:
    if url[1].lower() in ("file:/", "file://", "local://"):
        return url[0]
    return url[1] + _AFTER_PATH.sub("", url[2].rpartition("@")[2])


#: Why files of rounds with hidden hash functions are refused, and what to do instead.
NO_HIDDEN = (
    "it belongs to rounds with hidden hash functions, which this version does not support, because "
    "noise is what protects rows: draw a plan without a secret (hushtable plan draw), and open a "
    "new round with it (hushtable round open)"
)


class HushTableError(Exception):
    """Root of every error that hushtable raises on purpose.

    Attributes
    ----------
    word : str
        In a round, the only information that others receive about it; empty elsewhere.

    Examples
    --------
    >>> from hushtable import Feature, HushTableError
    >>> try:
    ...     Feature.numeric("age", low=120, high=0)
    ... except HushTableError as error:
    ...     print(error)
    feature 'age': low 120.0 is above high 0.0: swap them
    """

    word = ""

    def __init__(self, *words: object) -> None:
        super().__init__(*(without_secrets(w) if isinstance(w, str) else w for w in words))


class DataError(HushTableError, ValueError):
    """Rows that cannot be read, or that do not fit the schema."""


class DataTypeError(DataError, TypeError):
    """Rows in a container or of a type that hushtable does not take."""


class PlanError(HushTableError, ValueError):
    """A schema or plan that is incomplete or inconsistent, or two plans that differ."""


class FileError(HushTableError, ValueError):
    """A file that is not an intact file of the expected kind."""


class UsageError(HushTableError, ValueError):
    """A call with arguments that do not exist or cannot be combined."""


class PrivacyError(HushTableError, ValueError):
    """A release, or a step towards one, that would break a promise of privacy."""


class RoundError(HushTableError, ValueError):
    """A round that cannot go on, or something that does not belong to it."""


class PluginError(HushTableError, ImportError):
    """A package that extends hushtable, and is missing or does not load."""


class MissingExtraError(HushTableError, ImportError):
    """A library that an optional part needs, but that is not installed."""

    def __init__(self, what: str, library: str, extra: str) -> None:
        super().__init__(
            f"{what} needs {library}, which is not installed: pip install 'hushtable[{extra}]'"
        )


_ADVICE = {
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR), "check the path"),
    **dict.fromkeys((errno.EACCES, errno.EPERM), "ask for permission, or use a different folder"),
    errno.EISDIR: "name a file, not a folder",
    errno.EROFS: "use a different folder",
    errno.ENAMETOOLONG: "use a shorter name",
    **dict.fromkeys(
        (errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "free some space, or use a different disk"
    ),
}


def explain(error: OSError) -> str:
    """Describe what the system refused, and what to do about it."""
    what = (os.strerror(error.errno) if error.errno else "") or str(error)
    advice = _ADVICE.get(error.errno or 0)
    return what + (f": {advice}" if advice else "")
