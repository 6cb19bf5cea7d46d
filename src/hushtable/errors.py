"""The exceptions that reach a user.

Every message says what was found, what was needed, and what to do next.
"""

__all__ = ["DataError", "DataTypeError", "FileError", "HushTableError", "PlanError", "UsageError"]


class HushTableError(Exception):
    """Root of every error that hushtable raises on purpose."""


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
