"""Both sides of a round by what they were configured with, for networks that run them unattended.

A site's part is one request, in any process: its state is in its book. A coordinator's part is one
round, or what is left of it: its state is in its journal.
"""

import glob
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hushtable import files
from hushtable.counts.sketch import Sketch
from hushtable.data.readers import FileLayout, Unasked, as_reader
from hushtable.data.typed import open_rows
from hushtable.errors import HushTableError
from hushtable.plans.plan import Plan
from hushtable_federation.approval import Approval
from hushtable_federation.book.book import ALL_ROWS, Book
from hushtable_federation.book.digests import RowDigester, RowDigests
from hushtable_federation.hidden import read_plan
from hushtable_federation.keys import Keys
from hushtable_federation.online.journal import path_of
from hushtable_federation.online.nodes import Carrier, Nodes
from hushtable_federation.online.secure_sum import SecureSum
from hushtable_federation.online.site import OnlineSite
from hushtable_federation.policy_file import load_policy, policy_beside
from hushtable_federation.round import Round

#: What a site's configuration has to hold, and what it may.
NEEDED = ("key", "data")
OPTIONAL = ("approvals", "book", "data-set", "person", "plan", "policy", "query")


def answer(config: Mapping[str, str], request: bytes) -> bytes:
    """Return a site's signed answer to one request, or its signed word.

    Parameters
    ----------
    config : mapping of str to str
        The site's own: ``key`` and ``data``, its keys and rows; and if it is not beside the keys or
        not the default, ``book``, ``policy``, ``approvals`` (a pattern), ``data-set`` and ``plan``;
        of rows about persons, ``person``: the column that tells them; and of a database, ``query``:
        SQL, or the .sql file that holds it.
    request : bytes
        What came from the coordinator.

    Raises
    ------
    HushTableError, OSError
        If keys, book, policy, plan or approvals cannot be opened: there is nothing to sign with.
    """
    key = Path(config["key"])
    keys, path = Keys.load(key), config.get("book", key.with_suffix(".book"))
    hidden = read_plan(config["plan"]) if "plan" in config else None
    policy = load_policy(config.get("policy", policy_beside(key)))
    approvals = [Approval.load(found) for found in glob.glob(config.get("approvals", ""))]
    with Book.open(path, keys.card) as book:
        data_set = config.get("data-set", ALL_ROWS)
        rows = _Rows(config["data"], config.get("query"), config.get("person"), data_set, book)
        site = OnlineSite(
            keys,
            book,
            lambda plan: rows.count(plan, site.asked),
            policy=policy,
            recognise=rows.seen,
            approvals={one.round_id: one for one in approvals},
            data_set=data_set,
            plan=hidden,
        )
        return site.answer(request)


class _Rows:
    """The site's rows: counted, and recognised by what was counted."""

    def __init__(
        self, data: str, query: str | None, person: str | None, data_set: str, book: Book
    ) -> None:
        self._data, self._query, self._book = data, query, book
        self._person, self._data_set = person, data_set
        self._digester: RowDigester | None = None

    def count(self, plan: Plan, round_: Round) -> Sketch:
        self._digester = self._book.digester(plan.schema)
        texts, persons, keep = plan.schema.categorical_names, dict[str, Any](), list[str]()
        if self._person is not None:
            most, known = round_.terms.rows_per_person, self._book.barred(self._data_set)
            persons = {"person": self._person, "rows_per_person": most, "known": known}
            persons |= {"key": self._book.persons_key}
            keep = [] if self._person in plan.schema.names else [self._person]
        unasked = Unasked([*plan.schema.names, *keep] if plan.schema.named else ())
        layout = FileLayout(query=self._query, unasked=unasked)
        reader = as_reader(self._data, text_columns=texts, layout=layout)
        rows = self._digester.watch(open_rows(reader, plan.schema, keep=keep))
        sketch = Sketch.from_data(plan, rows, n_jobs=-1, attended=False, **persons)
        if not sketch.n_rows:
            self._digester = None
        return sketch

    def seen(self) -> RowDigests | None:
        return None if self._digester is None else self._digester.digests()


def coordinate(
    carrier: Carrier, path: Path, key: Path, output: Path, timeout: float
) -> dict[str, Any]:
    """Run one round, or what is left of it; write the result, and in any case how it went.

    Parameters
    ----------
    carrier : Carrier
        Brings requests to the sites.
    path, key : Path
        Of the round, and of the coordinator's keys; its journal lies beside these.
    output : Path
        Of the result. How it went is in a file beside it, ``*.state.json``, and returned.
    timeout : float
        Seconds that a site has in each step.

    Raises
    ------
    HushTableError
        If round, keys or journal cannot be read, or are not of each other. A round that ends
        without a sum raises nothing: ``state["error"]`` says why.
    """
    round_ = Round.from_bytes(path.read_bytes(), path)
    keys = Keys.load(key)
    nodes = Nodes(carrier, round_, keys, timeout)
    journal = path_of(key, round_)
    secure_sum = SecureSum(round_, keys, nodes, timeout=timeout, journal=journal)
    state: dict[str, Any] = {"round_id": round_.round_id}
    try:
        secure_sum.run().save(output)
        state |= {"done": True}
    except HushTableError as error:  # in this side's words: of a site's, one at most is in it
        state |= {"done": False, "error": str(error)}
    state |= {"nodes": sorted(nodes.nodes), "reached": secure_sum.reached}
    state |= {"lost": secure_sum.lost, "refused": nodes.refused}
    text = json.dumps(state, indent=2) + "\n"
    files.write_bytes(output.with_suffix(".state.json"), text.encode())
    return state
