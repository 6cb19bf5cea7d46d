"""Escapes for characters that a terminal obeys, from whatever file they come."""

import contextlib
import sys
from typing import Any, TextIO
from unicodedata import category


def escaped(text: str, kept: str = "\n\t") -> str:
    """Return a text without characters that a terminal obeys: escapes stand for them.

    Those are control characters, and marks that change the direction of what follows. A file can
    bring them into any text: names, titles, reasons. ``kept`` are left as they are.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in kept or category(c) == "Zs" else ascii(c)[1:-1] for c in text
    )


class _Escaping:
    """A stream of text on which nothing that comes from a file can steer a terminal."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write(escaped(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def escaping() -> contextlib.AbstractContextManager[Any]:
    """Escape, on standard output, what a terminal would obey; tables keep their own style."""
    return contextlib.redirect_stdout(_Escaping(sys.stdout))


def plain_stream() -> TextIO:
    """Return standard output as it is, for what escapes its own texts."""
    stream: Any = sys.stdout
    plain: TextIO = stream.stream if isinstance(stream, _Escaping) else stream
    return plain
