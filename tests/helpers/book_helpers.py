"""Books that someone changed from outside, and books of version 1."""

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


OLD = (
    "create table site (name text not null, signing text not null, epsilon real not null, "
    "delta real not null)",
    "create table known (name text primary key, card text not null, since text not null)",
    "create table answers (round_id text primary key, data_set text not null, title text not null, "
    "made text not null, counts blob not null, sent blob not null, share text not null, "
    "spent text not null)",
    "create table steps (round_id text not null, step text not null, asked text not null, "
    "answer blob not null, kept text not null, primary key (round_id, step))",
    "pragma user_version = 1",
)


def old_book(path, card, answers=(), cards=(), cap=10.0):
    """Write a book of version 1, as hushtable 0.1 wrote it."""
    path.touch(mode=0o600)
    run(
        path,
        *OLD,
        ("insert into site values (?, ?, ?, ?)", (card.name, card.signing, cap, 1e-6)),
        *(
            ("insert into known values (?, ?, ?)",
             (one.name, json.dumps(one.to_dict()), "2027-03-01T12:00:00Z"))
            for one in cards
        ),
        *(
            ("insert into answers values (?, ?, ?, ?, ?, ?, ?, ?)",
             (a.round_id, a.data_set, a.title, a.made.strftime("%Y-%m-%dT%H:%M:%SZ"),
              a.counts.astype("<i8").tobytes(), a.sent.astype("<i8").tobytes(),
              json.dumps(a.share.to_dict()), json.dumps(a.spent.to_dict())))
            for a in answers
        ),
        ("insert into steps values ('ab', 'keys', 'cd', ?, '{}')", (b"answer",)),
    )  # fmt: skip
    return path
