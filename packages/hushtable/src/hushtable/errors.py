"""The exceptions that reach a user.

Every message states what was found, what was needed, and what to do next. None contains a secret of
a URL.
"""

import contextlib
import csv
import errno
import os
import re
import shlex
from collections.abc import Iterator, Sequence

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


_shell = False


@contextlib.contextmanager
def in_shell() -> Iterator[None]:
    """Let messages name the options of commands, and not the arguments in Python."""
    global _shell
    before, _shell = _shell, True
    try:
        yield
    finally:
        _shell = before


def speaks_shell() -> bool:
    """Return whether messages name the options of commands."""
    return _shell


#: Options of commands that state how rows are read. In a sentence, only values of these forms.
OPTION = re.compile(
    r"--(missing|as|drop|decimal|dates)\b(?: ('[^']*'|[^\s=]+=[a-z]+|\d+|[.,](?!\w)|[dmy/]{3,}\b))?"
    r"|--read (?:'(\w+)=([^']*)'|(\w+)=(\.\.\.|[;,|](?!\w)|[\w/+-]+))"
)


def in_python(text: str) -> str:
    """Return a message with arguments of `hushtable.data.read` in the place of options."""
    sentences, add, options = text.partition("\nAdd: ")
    words = OPTION.sub(_in_sentence, sentences)
    if not add:
        return words
    arguments = ", ".join(argument(name, _values(name, value)) for name, value in added(options))
    return f"{words}\nIn Python: hushtable.data.read(data, {arguments})"


def added(options: str) -> Iterator[tuple[str, str]]:
    """Yield the names and values of options as they are typed, the entries of ``--read`` too."""
    words = iter(shlex.split(options))
    for word in words:
        name, value = word.removeprefix("--"), next(words, "")
        if name == "read":
            name, _, value = value.partition("=")
        yield name, value


def as_entries(text: str) -> str:
    """Return a message with entries of ``--read`` in the place of other options."""

    def entry(option: re.Match[str]) -> str:
        return f"--read {option[1]}={option[2] or '...'}" if option[1] else option[0]

    sentences, add, options = text.partition("\nAdd: ")
    added = re.sub(r"--(columns|drop|missing|as|decimal|dates) ", r"--read \1=", options)
    return OPTION.sub(entry, sentences) + add + added


def _in_sentence(option: re.Match[str]) -> str:
    name = option[1] or option[3] or option[5]
    return argument(name, _values(name, (option[2] or option[4] or option[6] or "").strip("'")))


def _values(name: str, value: str) -> list[str]:
    """Return the values of an option as it is typed; none if the value is left open."""
    if value in ("", "..."):
        return []
    return next(csv.reader([value])) if name in ("missing", "as", "drop") else [value]


def argument(name: str, values: Sequence[str]) -> str:
    """Return the argument of `hushtable.data.read` for an option, with its values if there are any.

    Parameters
    ----------
    name : str
        Of the option, as a field of `hushtable.data.options.RowOptions`.
    values : sequence of str
        One, or several for ``missing``, ``as`` and ``drop``.
    """
    if name == "no_header":
        return "header=False"
    keyword = "kinds" if name == "as" else name
    if not values:
        return keyword
    if name == "as":
        return f"{keyword}={dict(value.rpartition('=')[::2] for value in values)}"
    if name in ("missing", "drop"):
        return f"{keyword}={[*values]}"
    [value] = values
    if value.title() in ("True", "False"):
        return f"{keyword}={value.title()}"
    return f"{keyword}={value}" if name.startswith("skip_") else f"{keyword}={value!r}"


#: Why files of rounds with hidden hash functions are refused, and what to do instead.
NO_HIDDEN = (
    "it belongs to rounds with hidden hash functions, which this version does not support, because "
    "noise is what protects rows: draw a plan without a secret (hushtable plan draw), and open a "
    "new round with it (hushtable round open)"
)


#: Why a bound on the rows of a site is refused, and what to do instead.
NO_MAX_ROWS = (
    "max_rows, a bound on the rows of a site, was dropped after version 1.0.0rc1: open the round "
    "without it, and agree on the numbers of rows beforehand"
)


#: Why verdicts of several sites under noise are refused, and what to do instead.
NO_SHARED_VERDICTS = (
    "releases of verdicts were dropped after version 1.0.0rc1: learn from the site's own verdicts "
    "(hushtable learn, detector.learn), which need no noise there"
)


#: Why plans for relations are refused, and what to do instead.
NO_PRIVATE_RELATIONS = (
    "rounds for relations were dropped after version 1.0.0rc1: find relations where the rows are "
    "(hushtable fit --relations); plans that were drawn with released relations still work"
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

    def __str__(self) -> str:
        text = super().__str__()
        return text if _shell or "--" not in text else in_python(text)


class DataError(HushTableError, ValueError):
    """Rows that cannot be read, or that do not fit the schema."""


class MissingColumnError(DataError):
    """Rows without columns that the schema needs; ``columns`` are their names."""

    def __init__(self, words: str, columns: Sequence[str] = ()) -> None:
        super().__init__(words)
        self.columns = columns


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
    """A library that an optional part needs, but that is not installed; with its extra, if any."""

    def __init__(self, what: str, library: str, extra: str = "") -> None:
        package = f"'hushtable[{extra}]'" if extra else library
        super().__init__(f"{what} needs {library}, which is not installed: pip install {package}")


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
