"""Valid inputs, made by code: golden files, and a small round with every message in it."""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import places
from hushtable import Feature, HushTable, Plan, Release, Schema, Sketch, files
from hushtable.plans.draws import detectors
from hushtable.privacy import mechanisms as mechanism
from hushtable.privacy.ledger import Share
from hushtable_federation.book.book import Book
from hushtable_federation.keys import Keys, crypto
from hushtable_federation.online.carriers import Memory
from hushtable_federation.online.secure_sum import SecureSum
from hushtable_federation.online.site import OnlineSite
from hushtable_federation.policy import Approval, Policy, write_policy
from hushtable_federation.protocol.messages import STEPS, Message, ask
from hushtable_federation.result import with_seal
from hushtable_federation.round import Round
from hushtable_federation.submission import Submission

GOLDEN = places.GOLDEN
#: When the round is opened, and what every clock says.
NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)
NAMES = ("north", "south", "west")
#: Of a round online: far is gone when masked counts are due, and west deals south a wrong row.
ONLINE = ("east", "far", *NAMES)

TOML = """\
[[feature]]
name = "age"
kind = "numeric"
low = 0
high = 120.5
unit = "year"

[[feature]]
name = "ward"
kind = "categorical"
categories = ["north", "é", ""]
"""
CSV = "age,ward,when\n30,north,2024-01-01\n,south,2024-01-02\n41.5,,\n"


def golden(*kinds: str) -> list[bytes]:
    """Return the golden files of these kinds."""
    refused = ("hidden", "dropped")
    paths = (path for path in sorted(GOLDEN.rglob("*.hush")) if path.parent.name not in refused)
    found = [path.read_bytes() for path in paths]
    named = [(content, json.loads(files.manifest_text(content, "golden"))) for content in found]
    return [content for content, manifest in named if manifest["kind"] in kinds]


def saved(*things: Any) -> list[bytes]:
    """Return the files of what can be saved."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        for thing in things:
            thing.save(path)
            found.append(path.read_bytes())
    return found


@cache
def registered() -> list[bytes]:
    """Return files of the draws that are registered and have no golden file."""
    plans = [files.unpack(content, "golden").manifest["plan"] for content in golden("plan")]
    found = []
    for name in sorted(set(detectors()) - {plan["detector"] for plan in plans}):
        plan = Plan.draw(_schema(), detector=name, n_tables=3, random_state=0)
        sketch = Sketch.from_data(plan, _rows())
        found += saved(plan, sketch, sketch.release(1.0))
    return found


@cache
def keys(name: str) -> Keys:
    """Return someone's keys, the same each time."""
    c = crypto()
    signing, masking = (hashlib.sha256(f"{name} {use}".encode()).digest() for use in ("s", "m"))
    return Keys(
        name,
        c.Ed25519PrivateKey.from_private_bytes(signing),
        c.X25519PrivateKey.from_private_bytes(masking),
    )


@cache
def _schema() -> Schema:
    return Schema([Feature.numeric("x", low=-5, high=5), Feature.categorical("ward", ["n", "s"])])


@cache
def _rows() -> pa.Table:
    return pa.table({"x": [0.5, 1.5, None, 9.0], "ward": ["n", "s", "x", None]})


@cache
def round_(masked: bool = True, names: tuple[str, ...] = NAMES, least: int = 2) -> Round:
    """Return a round of three sites, or others."""
    plan = Plan.draw(_schema(), n_tables=3, n_cells=16, random_state=0)
    terms = {"epsilon": 1.0, "deadline": NOW + timedelta(days=7), "at": NOW}
    if masked:
        terms |= {"least": least}
    cards = [keys(name).card for name in names]
    return Round.open(plan, cards, keys("lead"), masked=masked, **terms)


def submission(name: str, *, masked: bool = False) -> bytes:
    """Return what a site might send by file; its counts are without noise, which no one checks."""
    asked = round_(masked)
    counts = Sketch.from_data(asked.plan, _rows()).counts
    share = Share(hashlib.sha256(name.encode()).hexdigest(), asked.site_scale, "none 0")
    masks = np.arange(len(counts), dtype=np.uint64) if masked else None
    return Submission.pack(asked, keys(name), counts, share, NOW, masks)


def of_rounds() -> list[bytes]:
    """Return rounds with masks and without, and a submission."""
    return [round_().content, round_(masked=False).content, submission("north")]


def signed() -> bytes:
    """Return a result as its coordinator signs it."""
    asked = round_(masked=False)
    parts = [Submission.from_bytes(submission(n), n, asked, NOW) for n in NAMES[:2]]
    counts = (parts[0].words + parts[1].words).view(np.int64)
    result = Release(asked.plan, counts, parts[0].ledger + parts[1].ledger)
    digests = {part.site: part.digest for part in parts}
    return saved(with_seal(asked, result, digests, keys("lead")))[0]


@cache
def detector() -> bytes:
    """Return the file of a fitted detector."""
    return saved(HushTable(n_tables=3, random_state=0).fit(_rows()))[0]


def private_files() -> list[bytes]:
    """Return a file of keys, a card, and an officer's approval."""
    own = keys("north")
    return saved(own, own.card, Approval.sign(round_(), own))


def policy() -> str:
    """Return a policy that says something of everything."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "north.policy.toml"
        write_policy(path, "north", 2.0, 1e-6)
        text = path.read_text().replace("answer = false", "answer = true")
    pin = f'lead = "{keys("lead").card.fingerprint}"\n# lead'
    text = text.replace("# lead", pin)
    for name in ("fingerprint", "[[feature]]", "name", "kind", "low", "high"):
        text = text.replace(f"# {name}", name)
    plan = f'plans = ["{round_().plan.plan_id}"]'
    return text.replace("plans = []", plan)


def parquet_bytes(table: pa.Table) -> bytes:
    """Return a Parquet file."""
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def scores_file(model: str) -> bytes:
    """Return a file of scores, with what it says of its source."""
    stamp = json.dumps({"model": model, "bytes": 1, "changed_ns": 1}).encode()
    table = pa.table({"row": [0], "score": [1.0], "outlier": [False]})
    return parquet_bytes(table.replace_schema_metadata({b"hushtable.scores": stamp}))


class Rehearsal:
    """A masked round that was run online once: every message, and every book before each step.

    What happens in it, `ONLINE` says: so all steps have their turn.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.round = folder, round_(names=ONLINE, least=3)
        self.requests: dict[tuple[str, str], bytes] = {}
        self.answers: dict[tuple[str, str], bytes] = {}
        exact, mechanism.add_noise = mechanism.add_noise, lambda counts, *_, **__: counts
        for name in ONLINE:
            with Book.create(self._book(name, STEPS[0]), keys(name).card, epsilon=10.0) as book:
                book.trust([keys("lead").card], "coordinator")
                book.trust([keys(other).card for other in ONLINE])
        try:
            self.sum(self._rehearse)
        finally:
            mechanism.add_noise = exact

    def _book(self, name: str, step: str) -> Path:
        return self.folder / f"{name}.{step}.book"

    def sum(self, answer: Callable[[str, str, bytes], bytes | None]) -> None:
        """Run the coordinator's side; ``answer`` takes a site's name, a step and a request."""

        def site(name: str) -> Callable[[bytes], bytes | None]:
            card = keys("lead").card
            return lambda request: answer(name, Message.read(request, card).step, request)

        sites = Memory({name: site(name) for name in ONLINE})
        SecureSum(self.round, keys("lead"), sites).run()

    def site(self, name: str, step: str, scratch: Path) -> tuple[OnlineSite, Book]:
        """Return a site before a step, with a copy of its book to write to."""
        shutil.copyfile(self._book(name, step), scratch)
        scratch.chmod(0o600)
        book = Book.open(scratch, keys(name).card)
        count = lambda round_: Sketch.from_data(round_.plan, _rows())  # noqa: E731
        policy = Policy(unattended=True, persons=1, plans=(self.round.plan.plan_id,))
        return OnlineSite(keys(name), book, count, policy=policy), book

    def _rehearse(self, name: str, step: str, request: bytes) -> bytes | None:
        if (name == "far" and step not in ("keys", "shares")) or step not in STEPS:
            return None
        book = self._book(name, [*STEPS, "over"][STEPS.index(step) + 1])
        agent, notes = self.site(name, step, book)
        self.requests[name, step] = request
        self.answers[name, step] = agent.answer(request)
        notes.close()
        return self.answers[name, step]

    def request(self, step: str, body: dict) -> bytes:
        """Return a request as the coordinator would sign it."""
        return ask(self.round, step, keys("lead"), body)
