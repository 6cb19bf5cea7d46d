"""Coupled rows: their features depend on other rows, or on records that rows share."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Coupling:
    """A reason why the features of a row depend on other rows, or on records that rows share.

    If all records with one key belong to one person, they change only that person's rows.
    """

    #: What it is, for messages.
    how: str
    #: How to avoid it, for messages.
    remedy: str
    #: The column of the rows that holds the key; empty if no column does.
    key: str = ""
