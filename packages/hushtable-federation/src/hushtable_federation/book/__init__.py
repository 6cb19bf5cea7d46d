"""A site's book: what it has answered and spent, chained so that no change goes unseen."""

from hushtable_federation.book.book import Book

__all__ = ["Book"]
