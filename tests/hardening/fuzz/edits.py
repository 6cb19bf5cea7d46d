"""Programs of edits: any bytes at all, read as a list of changes to something valid.

A fuzzer that flips bytes of a file gets no further than its digests. One that mutates programs
gets past them: whatever was changed is given ids, sums, digests and signatures that fit.
"""

import copy
import hashlib
import json
import sqlite3
from collections.abc import Callable
from typing import Any

import numpy as np
import rfc8785
import safetensors.numpy

from hushtable import files
from hushtable.privacy.budget import Spent
from hushtable.privacy.ledger import Ledger, Pool, Share
from hushtable.privacy.mechanisms import Sensitivity

__all__ = ["ODD", "Program", "as_json", "changed", "edited", "relink"]

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
