"""The exceptions that reach a user.

Every message says what was found, what was needed, and what to do next.
"""


class HushTableError(Exception):
    """Root of every error that hushtable raises on purpose.

    Attributes
    ----------
    word : str
        In a round, all that others get to know of it; empty elsewhere.

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


class DataError(HushTableError, ValueError):
    """Rows that cannot be read, or that do not fit the schema."""


class DataTypeError(DataError, TypeError):
    """Rows in a container or of a type that hushtable does not take."""


class PlanError(HushTableError, ValueError):
    """A schema or plan that is incomplete or inconsistent, or two plans that differ."""


class FileError(HushTableError, ValueError):
    """A file that is not an intact file of the expected kind."""


class UsageError(HushTableError, ValueError):
    """A call that asks for something that does not exist or does not go together."""


class PrivacyError(HushTableError, ValueError):
    """A release, or a step towards one, that would break a promise of privacy."""


class RoundError(HushTableError, ValueError):
    """A round that cannot go on, or something that does not belong to it."""


class PluginError(HushTableError, ImportError):
    """A package that adds something to hushtable, and is missing or does not load."""


class MissingExtraError(HushTableError, ImportError):
    """A library that an optional part needs, and that is not installed."""

    def __init__(self, what: str, library: str, extra: str) -> None:
        super().__init__(
            f"{what} needs {library}, which is not installed: pip install 'hushtable[{extra}]'"
        )
