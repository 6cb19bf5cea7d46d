"""Books of version 1, without a chain: what they say becomes the first entries of one."""

import json
from datetime import datetime
from typing import Any

import numpy as np

from hushtable.federation.book.chain import TABLES, Chain
from hushtable.federation.book.database import Database
from hushtable.federation.contribution import Contribution
from hushtable.federation.keys import Card
from hushtable.privacy.budget import Spent
from hushtable.privacy.ledger import Share


def take_over(db: Database, key: bytes, at: str) -> None:
    """Make the tables of version 1 a chain, inside a transaction; the ``steps`` stay.

    ``key`` has 32 bytes, for digests of rows; ``at`` is the time now. Raises `KeyError`,
    `TypeError` or `ValueError` if the tables do not hold what was written.
    """
    for statement in TABLES:
        db.run(statement)
    chain = Chain(db)
    ((name, signing, epsilon, delta),) = db.run("select name, signing, epsilon, delta from site")
    site = {"name": name, "signing": signing, "key": key.hex(), "epsilon": epsilon, "delta": delta}
    chain.append("site", {"at": at, **site, "from_version": 1}, {})
    for text, since in db.run("select card, since from known order by since, name"):
        card = Card.from_dict(json.loads(text)).to_dict()
        chain.append("trust", {"at": _time(since), "card": card, "role": "site"}, {})
    # Row by row: a large book fits into the file, but perhaps not into memory.
    for (number,) in db.run("select rowid from answers order by rowid"):
        ((round_id, title, data_set, made, counts, sent, share, spent),) = db.run(
            "select round_id, title, data_set, made, counts, sent, share, spent from answers "
            "where rowid = ?",
            (number,),
        )
        answer = Contribution(
            round_id,
            title,
            data_set,
            datetime.fromisoformat(made),
            np.frombuffer(counts, "<i8"),
            np.frombuffer(sent, "<i8"),
            Share.from_dict(json.loads(share)),
            Spent.from_dict(json.loads(spent)),
        )
        content, blobs = answer.noted()
        chain.append("answer", {"at": _time(made), **content}, blobs)
    for table in ("site", "known", "answers"):
        db.run(f"drop table {table}")


def _time(text: Any) -> str:
    datetime.fromisoformat(text)
    return str(text)
