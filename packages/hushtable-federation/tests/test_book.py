"""The site's book: what two processes at once note, budgets, and other versions."""

import sqlite3

import pytest

from hushtable.errors import FileError, PrivacyError
from hushtable_federation.book.book import Book
from hushtable_federation.reply import Reply
from round_helpers import T0, send


def test_who_comes_second_gets_what_was_noted_first(consortium):
    """Between its look into the book and its own note, another process may have answered."""
    those = consortium(2)
    round_, site = those.open(), those.sites["s00"]
    replies = [Reply(round_, site.keys, site.book, at=T0) for _ in range(2)]
    first, second = (send(reply, site.sketch(those.plan)) for reply in replies)
    assert first == second


def test_a_cap_that_was_reached_in_between(consortium):
    those = consortium(2, cap=1.0)
    site = those.sites["s00"]
    rounds = [those.open(title=title) for title in "ab"]
    replies = [Reply(round_, site.keys, site.book, at=T0) for round_ in rounds]
    send(replies[0], site.sketch(those.plan))
    with pytest.raises(PrivacyError, match="cap"):
        send(replies[1], site.sketch(those.plan))
    assert len(site.book.answers()) == 1


def test_a_disk_that_is_full(consortium):
    """SQLite reports a limit of its own like a disk that is full."""
    book = consortium(2).sites["s00"].book
    book._db.run("pragma max_page_count = 1")  # at least the pages that it has

    def fill():
        for k in range(500):
            book.set_cap(2.0 + k / 500, 1e-6)

    with pytest.raises(FileError, match="the disk is full: free some space"):
        fill()


def test_a_book_of_another_version(consortium):
    path = consortium(2).sites["s00"].book.path
    with sqlite3.connect(path) as db:
        db.execute("pragma user_version = 9")
    db.close()
    with pytest.raises(FileError, match="not a book of this version"):
        Book.open(path)


def test_budgets_of_two_sets_of_rows(consortium):
    those = consortium(2)
    site = those.sites["s00"]
    for i, data_set in enumerate(["a", "b", "a"]):
        site.submit(those.open(title=str(i), epsilon=0.5), data_set=data_set)
    assert site.book.data_sets() == ["a", "b"]
    assert len({one.book.persons_key for one in those.sites.values()}) == 2
    assert site.book.total("b") == pytest.approx(0.5, rel=1e-4)
    # Two rounds at .5 compose in zCDP, to less than their sum.
    assert 0.6 < site.book.total("a") < 0.8
