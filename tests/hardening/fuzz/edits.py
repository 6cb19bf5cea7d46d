"""Programs of edits: any bytes at all, read as a list of changes to something valid.

A fuzzer that flips bytes of a file gets no further than its digests. One that mutates programs
gets past them: whatever was changed is given ids, sums, digests and signatures that fit.
"""

import copy
import hashlib
import json
import math
import sqlite3
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import rfc8785
import safetensors.numpy

from hushtable import files
from hushtable.privacy.budget import Spent
from hushtable.privacy.ledger import Ledger, Pool, Share
from hushtable.privacy.mechanisms import Sensitivity

__all__ = ["ODD", "Program", "as_json", "as_toml", "changed", "edited", "odd_table", "relink"]

#: Stand in a tree for JSON that no Python object gives.
_VERBATIM = {
    '"@deep"': "[" * 20_000 + "]" * 20_000,
    '"@digits"': "9" * 5_000,
    '"@huge"': "1e999",
    '@again"': '"',  # makes a key one that is there already
}

#: What stands where something else is expected.
ODD = (
    None, True, False, 0, 1, -1, 2, 16, 255, 65_535, 65_536, 2**31, 2**53, -(2**53), 2**63, 2**70,
    10**400, 0.5, -0.0, -1.5, 5e-324, 1e-200, 1e-12, 0.999, 1e14, 1e300,
    float("nan"), float("inf"), "", "x", "é", "\0",
    "\ud800", "\x1b[2J", "a" * 3_000, "0" * 64, "f" * 128, "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00Z", "2027-03-01T12:00:00+00:00", [], {}, [[]], {"": {}}, [0] * 300,
    [None, "a", 1], {"name": []}, "numeric", "categorical", "plan", "sketch", "release", "local",
    "detector", "HushTable", "ACE", "hushtable", "marginals", "ranges", "EquiWidth", "SimHash",
    "RandomFeature", "count", "log2", "smoothed_log2", "discrete-laplace", "laplace-per-table",
    "replace-one", "gaussian", "@deep", "@digits", "@huge",
)  # fmt: skip

#: Edits in one program, and places of a tree that is still changed.
_MOST_EDITS, _MOST_PLACES = 8, 3_000

_DTYPES = ("<i8", "<u8", "<i4", "<u4", "<i2", "<u2", "<i1", "<u1", "<f8", "<f4", "<f2", "?")
_FILLS = (0, 1, -1, 2, 16, 32, 255, 65_535, 2**31, 2**53, 2**62, -(2**62), np.nan, np.inf)


class Program:
    """Choices, read off bytes; zeros once they are used up."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def below(self, n: int) -> int:
        """Return a number from 0 to n - 1."""
        width = 1 if n <= 256 else 2
        chosen = self._data[self._at : self._at + width]
        self._at += width
        return int.from_bytes(chosen, "little") % max(1, n)

    def pick(self, these: Any) -> Any:
        """Return one of these."""
        return these[self.below(len(these))]


# --- trees of JSON ------------------------------------------------------------------------------


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Return every (container, key) in a tree."""
    found, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        keys = node if isinstance(node, dict) else range(len(node))
        for key in keys:
            found.append((node, key))
            if isinstance(node[key], dict | list):
                waiting.append(node[key])
    return found


def _change_tree(tree: Any, program: Program) -> None:
    """Change one place of a tree of JSON, unless earlier changes made it large."""
    places = _places(tree)
    if not 0 < len(places) < _MOST_PLACES:
        return
    node, key = program.pick(places)
    match program.below(8):
        case 0 | 1 | 2:
            node[key] = copy.deepcopy(program.pick(ODD))
        case 3:
            del node[key]
        case 4:  # what stands elsewhere
            other, there = program.pick(places)
            node[key] = copy.deepcopy(other[there])
        case 5:
            if isinstance(node, dict):
                node[str(program.pick(ODD))] = copy.deepcopy(program.pick(ODD))
            else:
                node.extend([copy.deepcopy(node[key])] * program.pick((1, 2, 40)))
        case 6:
            if isinstance(node, dict):
                node[f"{key}@again"] = copy.deepcopy(program.pick(ODD))
        case 7:
            value = node[key]
            if isinstance(value, int | float) and not isinstance(value, bool):
                value = value if abs(value) < 1e300 else 1
                node[key] = program.pick(
                    (value + 1, value - 1, -value, value * 2, value / 2, value * 1e6)
                )
            elif isinstance(value, str):
                node[key] = value[: program.below(80)] + program.pick(("", "é", " ", "\n", "0"))


def changed(tree: Any, program: Program) -> Any:
    """Return a tree with the edits of a program."""
    for _ in range(_MOST_EDITS):
        if program:
            _change_tree(tree, program)
    return tree


def as_json(tree: Any, **form: Any) -> str:
    """Return a tree as JSON, and as what passes for it."""
    text = json.dumps(tree, **form)
    for stand_in, verbatim in _VERBATIM.items():
        text = text.replace(stand_in, verbatim)
    return text


def as_toml(tree: dict[str, Any]) -> str:
    """Return TOML of a tree: a list of tables as such, all else in line."""
    lines = []
    for key, value in tree.items():
        if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
            for table in value:
                lines.append(f"[[{_key(key)}]]")
                lines += [f"{_key(k)} = {_value(v)}" for k, v in table.items()]
        else:
            lines.insert(0, f"{_key(key)} = {_value(value)}")
    return "\n".join(lines) + "\n"


def _key(key: str) -> str:
    return json.dumps(key.replace("@again", ""), ensure_ascii=False)


def _value(value: Any) -> str:
    match value:
        case None:
            return '""'
        case bool():
            return str(value).lower()
        case float() if not math.isfinite(value):
            return "nan" if math.isnan(value) else "inf"
        case "@deep":
            return "[" * 20_000 + "]" * 20_000
        case "@digits":
            return "9" * 3_000
        case "@huge":
            return "1e999"
        case list():
            return "[" + ", ".join(map(_value, value)) + "]"
        case dict():
            return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + "}"
        case str():
            return json.dumps(value, ensure_ascii=False)
    return repr(value)


# --- arrays -------------------------------------------------------------------------------------


def _change_arrays(arrays: dict[str, np.ndarray], program: Program) -> None:
    """Change one of the arrays."""
    if not arrays:
        return
    name = program.pick(sorted(arrays))
    array = arrays[name]
    with np.errstate(all="ignore"):
        match program.below(8):
            case 0:
                arrays[name] = array.astype(program.pick(_DTYPES))
            case 1:
                arrays[name] = array[: program.below(len(array) + 1)] if array.ndim else array
            case 2:
                arrays[name] = np.concatenate([array, array]) if array.ndim else array
            case 3:
                arrays[name] = array.reshape(program.pick(((-1,), (1, -1), (-1, 1), (1, -1, 1))))
            case 4:
                fill = np.array(program.pick(_FILLS), np.float64)
                arrays[name] = np.full_like(array, fill.astype(array.dtype))
            case 5:
                if array.size:
                    fill = np.array(program.pick(_FILLS), np.float64)
                    flat = array.copy().ravel()
                    flat[program.below(len(flat))] = fill.astype(array.dtype)
                    arrays[name] = flat.reshape(array.shape)
            case 6:
                del arrays[name]
            case 7:
                other = program.pick(("counts", "tally", "words", "plan.depth", "plan.x", "é"))
                arrays[other] = array


# --- whole files --------------------------------------------------------------------------------


def edited(seed: bytes, program: Program, sign: Callable[[str, str], str] | None = None) -> bytes:
    """Return a .hush file with some edits, all its digests and ids made to fit."""
    content = files.unpack(seed, "seed")
    manifest, arrays = copy.deepcopy(content.manifest), dict(content.arrays)
    for key in ("arrays", "digest", "signature", "writer"):
        manifest.pop(key, None)
    for _ in range(_MOST_EDITS):
        if program and program.below(3):
            _change_tree(manifest, program)
        elif program:
            _change_arrays(arrays, program)
    return _packed(manifest, arrays, sign)


def _packed(
    manifest: dict[str, Any],
    arrays: dict[str, np.ndarray],
    sign: Callable[[str, str], str] | None,
) -> bytes:
    """Return the bytes of a file that says this, as its writer would have written it."""
    manifest["arrays"] = files.array_digests(arrays)
    _fit_plan_id(manifest, arrays)
    _fit_ledger(manifest)
    text = as_json(manifest, separators=(",", ":"), ensure_ascii=False)
    text = text.encode("utf-8", "replace").decode()
    try:
        digest = files.digest(json.loads(text))
    except (ValueError, RecursionError):  # what no reader can check
        digest = "0" * 64
    more: dict[str, Any] = {"digest": digest}
    if sign is not None:
        kind = manifest.get("kind")
        more["signature"] = sign(kind if kind in list(files.KINDS) else "", digest)
    text = f"{text[:-1]},{json.dumps(more)[1:]}"
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return safetensors.numpy.save(contiguous, metadata={"hushtable": text})


def _fit_plan_id(manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    plan = manifest.get("plan")
    if not isinstance(plan, dict):
        return
    own = {n.removeprefix("plan."): a for n, a in arrays.items() if n.startswith("plan.")}
    try:
        text = rfc8785.dumps(plan | {"arrays": files.array_digests(own)})
    except (ValueError, RecursionError):
        return
    manifest["plan_id"] = hashlib.sha256(text).hexdigest()


def _fit_ledger(manifest: dict[str, Any]) -> None:
    """State the sums that the ledger's entries come to, if they are such that there are sums."""
    stated = manifest.get("ledger")
    try:
        ledger = Ledger(
            stated["mechanism"],
            Sensitivity(
                stated["tables"],
                stated["adjacency"],
                stated["rows_per_person"],
                stated["sampled"],
            ),
            float(stated["delta"]),
            tuple(Share.from_dict(share) for share in stated["shares"]),
            tuple(Spent.from_dict(spent) for spent in stated["behind_plan"]),
            Pool.from_dict(stated["pool"]) if "pool" in stated else None,
            stated.get("accounting", "zcdp"),
        )
        sums = ledger.to_dict()
    except Exception:  # not such a ledger: the reader is to say so
        return
    for key in ("l1_sensitivity", "l2_sensitivity", "noise_sd", "rho", "epsilon"):
        stated[key] = sums[key]


def relink(db: sqlite3.Connection) -> None:
    """Give the entries of a book links that fit."""
    previous = ""
    for n, kind, content in db.execute(
        "select n, kind, content from entries order by n"
    ).fetchall():
        text = "\0".join(("hushtable book", previous, str(kind), str(content)))
        previous = hashlib.sha256(text.encode()).hexdigest()
        db.execute("update entries set link = ? where n = ?", (previous, n))


# --- tables of columns that no one expects --------------------------------------------------------


_NUMBERS = (0, 1, -1, 2, 0.5, -1.5, 1e308, -1e308, 5e-324, 1e15, float("nan"), float("inf"), None)
_WHOLE = (0, 1, -1, 100, 127, None)
_LARGE = (0, 2**53, 2**53 + 1, -(2**63), 2**63 - 1, None)
_TEXTS = ("", "a", "b", "1", "1.0", "nan", "é", "\0", "a\nb", "x" * 2_000, None)
_BYTES = (b"", b"a", b"\xff\xfe", None)
_NAMES = ("age", "ward", "a", "b", "", "é", "\0", "n" * 500, "x.y", "a,b", "'", '"')

#: Arrow types, and what their values are picked from.
_KINDS = (
    (pa.float64(), _NUMBERS), (pa.float32(), _NUMBERS[:6]), (pa.float16(), (0, 1, -1, None)),
    (pa.int8(), _WHOLE), (pa.int16(), _WHOLE), (pa.int32(), _WHOLE), (pa.int64(), _LARGE),
    (pa.uint8(), (0, 255, None)), (pa.uint64(), (0, 2**53 + 1, 2**64 - 1, None)),
    (pa.bool_(), (True, False, None)), (pa.null(), (None,)),
    (pa.string(), _TEXTS), (pa.large_string(), _TEXTS), (pa.string_view(), _TEXTS),
    (pa.binary(), _BYTES), (pa.large_binary(), _BYTES), (pa.binary_view(), _BYTES),
    (pa.binary(2), (b"ab", None)),
    (pa.dictionary(pa.int8(), pa.string()), _TEXTS),
    (pa.dictionary(pa.int32(), pa.float64()), _NUMBERS),
    (pa.dictionary(pa.int8(), pa.binary()), _BYTES),
    (pa.decimal128(10, 2), (Decimal("1.25"), Decimal("-3"), None)),
    (pa.decimal256(60, 1), (Decimal("1e50"), Decimal("-3"), None)),
    (pa.decimal128(3, -2), (Decimal("100"), None)),
    (pa.date32(), (0, 1, -(2**31), 2**31 - 1, None)), (pa.date64(), (0, 86_400_000, None)),
    (pa.timestamp("s"), _LARGE), (pa.timestamp("ns", "UTC"), _LARGE),
    (pa.timestamp("us", "Europe/Berlin"), _LARGE),
    (pa.time32("s"), (0, 1, 86_399, None)), (pa.time64("ns"), (0, 1, None)),
    (pa.duration("ms"), _LARGE), (pa.month_day_nano_interval(), ((1, 2, 3), None)),
    (pa.list_(pa.float64()), ([], [1.0], None)), (pa.list_(pa.int8(), 2), ([1, 2], None)),
    (pa.struct([("a", pa.int8())]), ({"a": 1}, None)),
    (pa.map_(pa.string(), pa.int8()), ([("a", 1)], None)),
    (pa.large_list(pa.string()), (["a"], None)),
)  # fmt: skip


def odd_table(program: Program) -> pa.Table:
    """Return a table of up to four columns and twenty rows."""
    n_rows = program.pick((3, 0, 1, 2, 20))
    columns, names = [], []
    for _ in range(1 + program.below(4)):
        kind, values = program.pick(_KINDS)
        chosen = [program.pick(values) for _ in range(n_rows)]
        column = _array(chosen, kind)
        match program.below(8):
            case 0:
                column = pa.chunked_array([column[:1], column[1:]])
            case 1 if n_rows and not isinstance(kind, pa.DictionaryType):
                column = pa.array(np.zeros(n_rows)) if kind == pa.null() else column
        columns.append(column)
        names.append(program.pick(_NAMES))
    table = pa.table(columns, names=names)
    return table[program.below(2) :] if n_rows > 1 else table


def _array(values: list, kind: pa.DataType) -> pa.Array:
    numbers = pa.types.is_temporal(kind) and not pa.types.is_interval(kind)
    if numbers:
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array(values, width).view(kind)
    if kind == pa.float16():
        values = [None if v is None else np.float16(v) for v in values]
    return pa.array(values, kind)
