"""Hash functions that the coordinator does not know: drawn from a secret that the sites share."""

import os
from pathlib import Path

import numpy as np
import rfc8785

from hushtable.errors import FileError, UsageError
from hushtable.federation.keys import crypto
from hushtable.schema import Schema

__all__ = ["generator", "read_secret"]


def generator(secret: bytes, schema: Schema, *purpose: str) -> np.random.Generator:
    """Return the generator of hash functions that a secret stands for.

    Without the secret, the plan's id tells nothing of the plan: there are 2^256 to try.

    Parameters
    ----------
    secret : bytes
        32 bytes or more that nobody can guess.
    schema : Schema
        The features.
    *purpose : str
        What else sets this draw apart, such as the id of a release that it is refined by.
    """
    if len(secret) < 32:
        raise UsageError(
            f"the secret has {len(secret)} bytes: needs at least 32 that nobody can guess "
            "(hushtable round secret)"
        )
    c = crypto()
    info = rfc8785.dumps(["hushtable", "plan", schema.to_dict(), *purpose])
    seed = c.HKDF(algorithm=c.SHA256(), length=32, salt=None, info=info).derive(secret)
    return np.random.default_rng(int.from_bytes(seed))


def read_secret(path: str | os.PathLike[str]) -> bytes:
    """Read the file of ``hushtable round secret``; raises `FileError` if it holds none."""
    try:
        return bytes.fromhex(Path(path).read_text().strip())
    except (ValueError, UnicodeDecodeError):
        raise FileError(f"{path}: holds no secret of hushtable round secret") from None
