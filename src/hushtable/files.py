"""The .hush file: a safetensors container with one canonical-JSON manifest.

Nothing in it is executable. Every array is listed in the manifest with its dtype, shape and
SHA-256, and the manifest with its own digest, so that a truncated or edited file is refused
before anything is built from it.
"""

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import rfc8785
import safetensors
import safetensors.numpy

from hushtable.errors import FileError, PlanError
from hushtable.hashing import Arrays
from hushtable.plan import Plan, array_digests
from hushtable.sketch import Sketch

__all__ = [
    "KINDS",
    "PROTOCOL",
    "Content",
    "plan_from",
    "read",
    "replacing",
    "sketch_from",
    "write",
    "write_plan",
    "write_sketch",
]

#: Version of the file format. To bump it: raise the number; keep a reader for every older one
#: (a function from an old `Content` to a new one, applied in `read`); save the files of the old
#: version that the tests read as ``tests/golden/protocol-N/``; describe the change in
#: ``docs/file-format.md``; publish the new JSON Schema beside the old.
PROTOCOL = 1

KINDS = ("plan", "sketch", "release", "detector")

T = TypeVar("T")

_KEY = "hushtable"
#: Bytes of the manifest at most: 65,535 features with 10,000 categories do not fit, real ones do.
_MAX_MANIFEST = 64 << 20


@dataclass(frozen=True)
class Content:
    """What a file says: its kind, its manifest's entries, its arrays."""

    kind: str
    manifest: dict[str, Any]
    arrays: Arrays


def write(path: str | os.PathLike[str], kind: str, entries: dict[str, Any], arrays: Arrays) -> None:
    """Write a file atomically: the path holds the whole new file, or what it held before."""
    manifest = {
        "protocol": PROTOCOL,
        "kind": kind,
        **entries,
        "arrays": array_digests(arrays),
    }
    manifest["digest"] = _digest(manifest)
    manifest["writer"] = {"hushtable": version("hushtable")}
    text = rfc8785.dumps(manifest).decode()
    if len(text) > _MAX_MANIFEST:
        raise FileError(f"{path}: the plan is too large for a file: shorten the categories")
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    content = safetensors.numpy.save(contiguous, metadata={_KEY: text})
    with replacing(path) as temporary:
        temporary.write_bytes(content)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path beside ``path``; rename it to ``path`` if the body succeeds.

    Whatever goes wrong (a full disk, Ctrl-C), ``path`` keeps what it held and the temporary
    file goes.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _digest(manifest: dict[str, Any]) -> str:
    covered = {key: value for key, value in manifest.items() if key not in ("digest", "writer")}
    return hashlib.sha256(rfc8785.dumps(covered)).hexdigest()


def read(path: str | os.PathLike[str]) -> Content:
    """Read and check a file; build nothing.

    Raises
    ------
    FileError
        If it is not an intact .hush file of a protocol that this version reads.
    OSError
        If the file cannot be read.
    """
    with open(path, "rb"):
        pass  # a clear OSError where there is no such file, or no permission
    try:
        with safetensors.safe_open(path, framework="np") as file:
            text = (file.metadata() or {}).get(_KEY)
            if text is None:
                raise FileError(f"{path}: a safetensors file, but not one of hushtable")
            manifest = _manifest(text, path)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
    except safetensors.SafetensorError as error:
        raise FileError(
            f"{path}: not a .hush file, or a truncated one ({error}): get it again from its source"
        ) from None
    if array_digests(arrays) != manifest["arrays"]:
        raise FileError(f"{path}: the arrays are not those the file was written with: get it again")
    return Content(manifest["kind"], manifest, arrays)


def _manifest(text: str, path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        manifest = json.loads(text) if len(text) <= _MAX_MANIFEST else None
    except (ValueError, RecursionError):
        manifest = None
    if not isinstance(manifest, dict):
        raise FileError(f"{path}: the manifest is damaged: get the file again from its source")
    protocol = manifest.get("protocol")
    if not isinstance(protocol, int) or isinstance(protocol, bool) or protocol < 1:
        raise FileError(f"{path}: the manifest names no protocol: get the file again")
    if protocol > PROTOCOL:
        raise FileError(
            f"{path}: written with protocol {protocol}, this version reads up to {PROTOCOL}: "
            "upgrade with pip install -U hushtable"
        )
    try:
        intact = manifest.get("digest") == _digest(manifest)
    except (rfc8785.CanonicalizationError, RecursionError):
        intact = False
    if not intact:
        raise FileError(f"{path}: the manifest was edited after the file was written: get it again")
    if manifest.get("kind") not in KINDS or not isinstance(manifest.get("arrays"), dict):
        raise FileError(f"{path}: kind {manifest.get('kind')!r} is none of {', '.join(KINDS)}")
    return manifest


# --- plans and sketches -----------------------------------------------------------------------

_COUNTS, _TALLY = "counts", "tally"


def write_plan(path: str | os.PathLike[str], plan: Plan) -> None:
    """Write a plan."""
    entries = {"plan_id": plan.plan_id, "plan": plan.to_dict()}
    write(path, "plan", entries, _prefixed(plan.arrays()))


def write_sketch(
    path: str | os.PathLike[str],
    sketch: Sketch,
    kind: str = "sketch",
    entries: dict[str, Any] | None = None,
) -> None:
    """Write a sketch, or a file of another kind that holds one."""
    plan = sketch.plan
    entries = {
        "plan_id": plan.plan_id,
        "plan": plan.to_dict(),
        "sampled": sketch.sampled,
        **(entries or {}),
    }
    arrays = {**_prefixed(plan.arrays()), _COUNTS: sketch.counts, _TALLY: sketch.tally}
    write(path, kind, entries, arrays)


def _prefixed(arrays: Arrays) -> Arrays:
    return {f"plan.{name}": array for name, array in arrays.items()}


def plan_from(content: Content, path: str | os.PathLike[str]) -> Plan:
    """Build the plan that a file of any kind holds."""

    def build() -> Plan:
        arrays = {
            name.removeprefix("plan."): array
            for name, array in content.arrays.items()
            if name.startswith("plan.")
        }
        plan = Plan.from_content(content.manifest.get("plan"), arrays)
        if plan.plan_id != content.manifest.get("plan_id"):
            raise PlanError("the plan's content does not have the plan id that the file states")
        return plan

    return _built(build, path)


def sketch_from(content: Content, path: str | os.PathLike[str]) -> Sketch:
    """Build the sketch that a file of kind sketch or detector holds."""
    plan = plan_from(content, path)

    def build() -> Sketch:
        if _COUNTS not in content.arrays or _TALLY not in content.arrays:
            raise PlanError(f"a file of kind {content.kind} holds no counts")
        if not isinstance(content.manifest.get("sampled"), bool):
            raise PlanError("sampled must be true or false")
        arrays = content.arrays
        return Sketch(plan, arrays[_COUNTS], arrays[_TALLY], content.manifest["sampled"])

    return _built(build, path)


def _built(build: Callable[[], T], path: str | os.PathLike[str]) -> T:
    try:
        return build()
    except PlanError as error:
        raise FileError(f"{path}: {error}") from None
