"""What is fuzzed: every reader of bytes that others wrote, by name.

Each target comes in two forms where its files carry digests: as they are (``hush``), and as a
program of edits whose digests, ids and signatures fit (``hush-edited``; see `edits`).
"""

import bz2
import contextlib
import gzip
import io
import json
import sqlite3
import tempfile
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import seeds
from edits import ODD, Program, as_json, as_toml, changed, edited, odd_table, relink

import hushtable_bench.systems.families  # noqa: F401 (files of its draws are seeds)
from hushtable import (
    Feature,
    HushTableError,
    Increment,
    LocalModel,
    Periods,
    Plan,
    Release,
    Schema,
    Sketch,
    decoded,
    files,
    load,
)
from hushtable.cli.inspect_ import inspect
from hushtable.cli.result import machine_output
from hushtable.cli.score import STAMP, stamp_in
from hushtable.counts.verdicts import LearnedModel, Verdicts
from hushtable.data.readers import as_reader
from hushtable.data.understanding import schema_from_data
from hushtable.describe import describe_ledger
from hushtable.plans.draws import Purpose
from hushtable.scores.scorer import Scorer
from hushtable_federation.book.book import Book
from hushtable_federation.keys import Card, Keys
from hushtable_federation.policy import Approval, load_policy
from hushtable_federation.protocol.messages import STEPS, Message
from hushtable_federation.result import Collection
from hushtable_federation.round import Round
from hushtable_federation.submission import Submission

__all__ = ["TARGETS", "Target"]

#: Larger plans are read but not used: a table of counts is not what a fuzzer looks for.
_MOST_CELLS = 1 << 20


@dataclass(frozen=True)
class Target:
    """A reader under attack.

    Attributes
    ----------
    read : callable
        Takes what the fuzzer made; reads it as a user's command would, and uses what comes out.
        May raise `HushTableError` and nothing else.
    seeds : callable
        Returns inputs to begin with; for programs of edits, a few that do different things.
    most_bytes : int
        Memory that an input of a few kilobytes may take.
    """

    read: Callable[[bytes], object]
    seeds: Callable[[], list[bytes]]
    most_bytes: int = 2 << 30


@cache
def _scratch() -> Path:
    """Return a folder in memory, where there is one, that goes with the process."""
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    _scratch.keep = tempfile.TemporaryDirectory(dir=memory)
    return Path(_scratch.keep.name)


def _file(content: bytes, name: str) -> Path:
    path = _scratch() / name
    path.write_bytes(content)
    path.chmod(0o600)
    return path


def _any_of(*reads: Callable[[], object]) -> None:
    """Read in every one of these ways; raise if all refuse, or one fails in another way."""
    refused = []
    for read in reads:
        try:
            read()
        except HushTableError as error:
            refused.append(error)
    if len(refused) == len(reads):
        raise refused[0]


def _some_programs() -> list[bytes]:
    rng = np.random.default_rng(0)
    return [b"", *(rng.bytes(n) for n in (2, 4, 6, 8, 12, 16, 24, 32) for _ in range(4))]


# --- .hush files --------------------------------------------------------------------------------


def _rows_for(schema: Schema) -> pa.Table:
    """Return rows that fit a schema, with what lies on its edges and beyond."""
    columns = []
    for feature in schema.features:
        if feature.kind == "numeric":
            low, high = feature.low, feature.high
            values = [low, high, None, low / 2 + high / 2, min(high * 2, 1e300)]
            columns.append(pa.array(values, pa.float64()))
        else:
            some = [*feature.categories[:1], *feature.categories[-1:]]
            columns.append(pa.array([*some, None, "", "not listed"][:5], pa.string()))
    rows = min(len(column) for column in columns)
    return pa.table([column[:rows] for column in columns], names=schema.names)


def _use(loaded: object) -> None:
    """Do with a loaded object what commands do."""
    plan = loaded if isinstance(loaded, Plan) else getattr(loaded, "plan_", None) or loaded.plan
    if plan.family.n_cells > _MOST_CELLS or len(plan.schema) > 300:
        return
    rows = _rows_for(plan.schema)
    if plan.first_counts is not None and plan.gate_cell is None:  # of version 0.1: see dense_rows
        if isinstance(loaded, Sketch):
            Scorer(loaded).score(rows)
        return
    if isinstance(loaded, Plan):
        counted = Sketch.from_data(loaded, rows)
        Scorer(counted + counted).score(rows)
        return
    if isinstance(loaded, Verdicts):
        model = LearnedModel(Sketch.from_data(plan, rows), (loaded + loaded) - loaded)
        Scorer(model).score(rows)
        return
    if isinstance(loaded, Periods | Increment):
        _use_periods(loaded, rows)
        return
    if isinstance(loaded, Release | LocalModel):
        describe_ledger(loaded.ledger)
    if isinstance(loaded, Sketch | Release | LocalModel):
        if not plan.purpose.refines:
            scorer = Scorer(loaded)
            scorer.auto_offset()
            scorer.score(rows)
        if isinstance(loaded, Sketch):
            _ = (loaded + Sketch.from_data(plan, rows)) - loaded
        elif isinstance(loaded, Release) and plan.purpose is Purpose.RANGES:
            loaded.ranges()
        return
    loaded.score_samples(rows)
    if not np.isnan(loaded.offset_):
        loaded.predict(rows)


def _use_periods(loaded: Periods | Increment, rows: pa.Table) -> None:
    """Go on from a site's periods, and decode what they released."""
    if isinstance(loaded, Increment):
        describe_ledger(loaded.ledger)
        if loaded.period == 1:
            decoded([loaded])
        return
    if len(loaded) < loaded.horizon.periods:
        loaded.release(Sketch.from_data(loaded.plan, rows))
    if loaded.start == 1 and len(loaded):
        decoded([loaded.increment(n) for n in range(1, len(loaded) + 1)])


def _hush(content: bytes) -> None:
    path = _file(content, "a.hush")
    with contextlib.redirect_stdout(io.StringIO()):
        for machines in (False, True):
            with machine_output(machines):
                if (result := inspect(path)) is not None:
                    result.write()
    _use(load(path))


_HUSH = ("plan", "sketch", "release", "local", "verdicts", "increment", "periods")


@cache
def _hush_seeds() -> list[bytes]:
    return [*seeds.golden(*_HUSH), seeds.detector(), seeds.signed(), *seeds.registered()]


def _hush_edited(program: bytes) -> None:
    choices = Program(program)
    _hush(edited(choices.pick(_hush_seeds()), choices))


# --- what belongs to a round --------------------------------------------------------------------


def _of_round(content: bytes) -> None:
    kind = files.unpack(content, "a.hush").kind
    if kind == "round":
        read = Round.from_bytes(content, "a.hush")
        read.check_time(seeds.NOW, "a clock")
    else:
        asked = seeds.round_(masked=False)
        Submission.from_bytes(content, "a.hush", asked, seeds.NOW)
        collection = Collection(asked)
        collection.add("a.hush", content, seeds.NOW)
        collection.add("b.hush", seeds.submission("south"), seeds.NOW)
        collection.result()


@cache
def _round_seeds() -> list[bytes]:
    return seeds.of_rounds()


def _of_round_edited(program: bytes) -> None:
    choices = Program(program)
    seed = choices.pick(_round_seeds())
    who = {"round": "lead", "submission": "north"}[files.unpack(seed, "seed").kind]
    _of_round(edited(seed, choices, seeds.keys(who).sign))


# --- messages of a round over Flower ------------------------------------------------------------


@cache
def _rehearsal() -> seeds.Rehearsal:
    folder = _scratch() / "rehearsal"
    folder.mkdir()
    return seeds.Rehearsal(folder)


def _asked(content: bytes, step: str) -> None:
    """Let a site answer this in a step of a round."""
    agent, book = _rehearsal().site("north", step, _scratch() / "north.book")
    with contextlib.closing(book):
        answer = agent.answer(content)
    Message.read(answer, seeds.keys("north").card)


def _answered(content: bytes, step: str) -> None:
    """Let the coordinator get this from one site in a step, and what it should from the others."""
    rehearsal = _rehearsal()
    answers = rehearsal.answers | {("north", step): content}
    rehearsal.sum(lambda name, at, _: answers.get((name, at)))


def _messages(content: bytes) -> None:
    step = STEPS[content[0] % len(STEPS)] if content else STEPS[0]
    _asked(content[1:], step)
    _answered(content[1:], step)


def _message_seeds() -> list[bytes]:
    told = _rehearsal()
    return [
        bytes([place]) + sent["north", step]
        for place, step in enumerate(STEPS)
        for sent in (told.requests, told.answers)
    ]


def _messages_edited(program: bytes) -> None:
    choices = Program(program)
    step = choices.pick(STEPS)
    if choices.below(2):
        seed = _rehearsal().requests["north", step]
        _asked(edited(seed, choices, seeds.keys("lead").sign), step)
    else:
        seed = _rehearsal().answers["north", step]
        _answered(edited(seed, choices, seeds.keys("north").sign), step)


# --- keys, cards, the book -------------------------------------------------------------


def _private(content: bytes) -> None:
    path = _file(content, "a.key")
    _any_of(
        lambda: Keys.load(path),
        lambda: Card.load(path),
        lambda: Approval.load(path).holds,
    )


@cache
def _private_seeds() -> list[bytes]:
    return seeds.private_files()


def _private_edited(program: bytes) -> None:
    choices = Program(program)
    tree = json.loads(choices.pick(_private_seeds()))
    _private(as_json(changed(tree, choices)).encode())


def _book(content: bytes) -> None:
    path, round_ = _file(content, "a.book"), _rehearsal().round
    with Book.open(path, seeds.keys("north").card) as book:
        book.known()
        for answer in book.answers():
            round_.ledger(answer.share)
        book.answer(round_.round_id)
        for data_set in book.data_sets():
            book.total(data_set)
        for step in STEPS:
            book.step(round_.round_id, step)
        book.trust([seeds.keys("south").card])
        book.forget_steps(round_.round_id)


@cache
def _book_seed() -> bytes:
    return _rehearsal()._book("north", "over").read_bytes()


def _book_edited(program: bytes) -> None:
    """Change what stands in the tables of a book."""
    choices = Program(program)
    path = _file(_book_seed(), "edited.book")
    columns = {
        "entries": ("n", "kind", "link"),
        "blobs": ("digest", "content"),
        "steps": ("round_id", "step", "asked", "answer", "kept"),
    }
    with contextlib.closing(sqlite3.connect(path)) as db:
        for _ in range(2):  # what an entry says, which the links then vouch for
            n = 1 + choices.below(4)
            ((text,),) = db.execute("select content from entries where n = ?", (n,))
            # Half a character, or what the change before nested deeply.
            with contextlib.suppress(ValueError, RecursionError):
                content = as_json(changed(json.loads(text), choices))
                db.execute("update entries set content = ? where n = ?", (content, n))
        relink(db)
        if choices.below(2):
            columns = {"steps": columns["steps"]}
        for _ in range(4):
            table = choices.pick(sorted(columns))
            column = choices.pick(columns[table])
            value = choices.pick(ODD)
            if isinstance(value, list | dict):
                value = choices.pick((b"", b"\0" * 8, "[]", "{}", '{"name": 1}', "[" * 9_000))
            with contextlib.suppress(sqlite3.Error, OverflowError, UnicodeError):
                db.execute(f"update {table} set {column} = ?", (value,))
        db.commit()
    _book(path.read_bytes())


# --- schemas and rows ---------------------------------------------------------------------------


def _policy(content: bytes) -> None:
    policy = load_policy(_file(content, "a.policy.toml"))
    round_ = seeds.round_()
    known = {"coordinator": {}, "site": {card.name: card for card in round_.sites}}
    strangers = policy.strangers(round_, round_.sites[0], known.__getitem__)
    policy.check_strangers(round_, strangers)
    policy.check(round_, round_.plan, attended=False)


def _policy_edited(program: bytes) -> None:
    tree = changed(tomllib.loads(seeds.policy()), Program(program))
    _policy(as_toml(tree).encode("utf-8", "surrogatepass"))


def _toml(content: bytes) -> None:
    schema = Schema.from_toml(_file(content, "a.toml"))
    _use(Plan.draw(schema, n_tables=3, random_state=0))


def _toml_edited(program: bytes) -> None:
    tree = changed(tomllib.loads(seeds.TOML), Program(program))
    _toml(as_toml(tree).encode("utf-8", "surrogatepass"))


def _count(data: object) -> None:
    """Count rows under the schema that they show, and under others."""
    reader = as_reader(data)

    def count(schema: Schema) -> None:
        if len(schema) <= 300:
            Sketch.from_data(Plan.draw(schema, n_tables=3, random_state=0), data)

    def given(first: bool) -> Schema:
        """Return a schema in which every second column is numeric, whatever it holds."""
        kinds = (
            lambda name: Feature.numeric(name, low=0, high=9),
            lambda name: Feature.categorical(name, ["", "a", "1"]),
        )
        return Schema([kinds[(j + first) % 2](n) for j, n in enumerate(reader.names or ())])

    _any_of(
        lambda: count(schema_from_data(reader).schema),
        lambda: count(given(True)),
        lambda: count(given(False)),
    )


def _csv(content: bytes) -> None:
    suffix = (".csv", ".csv.gz", ".csv.zst", ".csv.bz2")[content[0] % 4] if content else ".csv"
    _count(str(_file(content[1:], f"a{suffix}")))


def _csv_seeds() -> list[bytes]:
    text = seeds.CSV.encode()
    more = [b"a\tb\n1\t2\n", b'a;b\n1;"x\ny"\n', b'a,b\n"1\n",2\n', text.replace(b"\n", b"\r\n")]
    zipped = [b"\1" + gzip.compress(text, mtime=0), b"\3" + bz2.compress(text)]
    return [*(b"\0" + one for one in (text, *more)), *zipped]


def _parquet(content: bytes) -> None:
    _count(str(_file(content, "a.parquet")))


def _rows_edited(program: bytes) -> None:
    """Read odd columns from memory and, where Parquet has such columns, from a file."""
    table = odd_table(Program(program))
    try:
        written = seeds.parquet_bytes(table)
    except (pa.ArrowException, OSError):  # Parquet has no such columns
        _count(table)
    else:
        _any_of(lambda: _count(table), lambda: _parquet(written))


def _scores(content: bytes) -> None:
    stamp_in(_file(content, "rows.scores.parquet"))


def _scores_edited(program: bytes) -> None:
    table = pa.table({"row": [0]}).replace_schema_metadata({STAMP: program})
    _scores(seeds.parquet_bytes(table))


TARGETS: dict[str, Target] = {
    "hush": Target(_hush, _hush_seeds),
    "hush-edited": Target(_hush_edited, _some_programs),
    "round": Target(_of_round, _round_seeds),
    "round-edited": Target(_of_round_edited, _some_programs),
    "messages": Target(_messages, _message_seeds),
    "messages-edited": Target(_messages_edited, _some_programs),
    "keys": Target(_private, _private_seeds),
    "keys-edited": Target(_private_edited, _some_programs),
    "book": Target(_book, lambda: [_book_seed()]),
    "book-edited": Target(_book_edited, _some_programs),
    "toml": Target(_toml, lambda: [seeds.TOML.encode()]),
    "toml-edited": Target(_toml_edited, _some_programs),
    "policy": Target(_policy, lambda: [seeds.policy().encode()]),
    "policy-edited": Target(_policy_edited, _some_programs),
    "csv": Target(_csv, _csv_seeds),
    # Arrow believes the header of a page, which may state 2 GiB for each of two buffers.
    "parquet": Target(
        _parquet, lambda: [seeds.parquet_bytes(pa.table({"a": [1.5, None]}))], most_bytes=6 << 30
    ),
    "rows-edited": Target(_rows_edited, _some_programs),
    "scores": Target(_scores, lambda: [seeds.scores_file("m" * 64)]),
    "scores-edited": Target(_scores_edited, _some_programs),
}
