"""A site's book: what it has answered and spent, chained so that no change goes unseen."""

from typing import TYPE_CHECKING

from hushtable.lazy import exports

if TYPE_CHECKING:
    from hushtable_federation.book.book import Book

__all__ = ["Book"]

# On first use, as `submission` imports a module of this package, and the book imports `submission`.
__getattr__, __dir__ = exports(__name__, {"Book": "book"})
