"""Books of version 1, without a chain: what they say becomes the first entries of one."""

import json
from datetime import datetime
from typing import Any

from hushtable.federation.book.chain import TABLES, Chain
from hushtable.federation.book.database import Database
from hushtable.federation.contribution import Contribution
from hushtable.federation.keys import Card


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
    names = ("round_id", "title", "data_set", "made", "counts", "sent", "share", "spent")
    for row in db.run("select rowid from answers order by rowid"):
        (values,) = db.run(f"select {', '.join(names)} from answers where rowid = ?", row)
        found = dict(zip(names, values, strict=True))
        parsed = {name: json.loads(found[name]) for name in ("share", "spent")}
        content, blobs = Contribution.of(found | parsed, found).noted()
        chain.append("answer", {"at": _time(found["made"]), **content}, blobs)
    for table in ("site", "known", "answers"):
        db.run(f"drop table {table}")


def _time(text: Any) -> str:
    datetime.fromisoformat(text)
    return str(text)
