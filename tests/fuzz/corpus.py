"""The corpus: inputs that reach different code, one a line in base64, and what once went wrong.

``corpus/TARGET.txt`` is made by ``run.py --keep``. ``findings/TARGET.SLUG`` is a file each, as
the reader got it, kept by hand once the fault is mended.
"""

import base64
from pathlib import Path

__all__ = ["findings", "keep", "kept"]

_HERE = Path(__file__).parent
#: What is worth keeping of one target.
_MOST_BYTES, _MOST_INPUTS = 3_000, 120


def kept(target: str) -> list[bytes]:
    """Return the inputs that are kept for a target."""
    path = _HERE / "corpus" / f"{target}.txt"
    return [base64.b64decode(line) for line in path.read_text().split()] if path.exists() else []


def keep(target: str, inputs: list[bytes]) -> int:
    """Write the corpus of a target anew, the small ones of these; return how many."""
    chosen = sorted({one for one in inputs if len(one) <= _MOST_BYTES}, key=len)[:_MOST_INPUTS]
    lines = "".join(f"{base64.b64encode(one).decode()}\n" for one in chosen if one)
    (_HERE / "corpus").mkdir(exist_ok=True)
    (_HERE / "corpus" / f"{target}.txt").write_text(lines)
    return len(chosen)


def findings(target: str) -> list[bytes]:
    """Return what once went wrong in a target."""
    return [path.read_bytes() for path in sorted(_HERE.glob(f"findings/{target}.*"))]
