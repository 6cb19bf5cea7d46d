"""A site's book: what it has answered and spent, chained so that changes are detected."""

from typing import TYPE_CHECKING

from hushtable.lazy import exports

if TYPE_CHECKING:
    from hushtable_federation.book.book import Book

__all__ = ["Book"]

# Imported on first use: `submission` imports a module of this package, and the book `submission`.
__getattr__, __dir__ = exports(__name__, {"Book": "book"})
