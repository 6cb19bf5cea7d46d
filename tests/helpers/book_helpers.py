"""Books that someone changed from outside."""

import contextlib
import hashlib
import json
import sqlite3

import rfc8785


def run(path, *statements):
    """Change the file behind the book's back; each statement is a text, or text and values."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(*((statement,) if isinstance(statement, str) else statement))
        db.commit()


def entries(path):
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute("select n, kind, content, link from entries order by n").fetchall()


def relink(path):
    """Make the links right again, as someone who knows the format can."""
    previous = ""
    for n, kind, content, _ in entries(path):
        text = "\0".join(("hushtable book", previous, str(kind), str(content)))
        previous = hashlib.sha256(text.encode()).hexdigest()
        run(path, ("update entries set link = ? where n = ?", (previous, n)))


def edit(path, n, **change):
    """Change what an entry says, without a trace in the links."""
    content = json.loads(entries(path)[n - 1][2])
    text = rfc8785.dumps(content | change).decode()
    run(path, ("update entries set content = ? where n = ?", (text, n)))
