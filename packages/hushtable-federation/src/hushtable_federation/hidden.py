"""Hash functions that the coordinator does not know: drawn from a secret that the sites share."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import rfc8785

from hushtable import files
from hushtable.counts.base import Counts
from hushtable.data.schema import Schema
from hushtable.errors import FileError
from hushtable.plans.plan import Plan
from hushtable_federation.keys import check_private, crypto
from hushtable_federation.secret import check_secret
from hushtable_federation.secret import opened_secret as opened_secret
from hushtable_federation.secret import seal_secret as seal_secret


def draw_hidden(
    secret: bytes, schema: Schema, *, marginals: Counts | None = None, **parameters: Any
) -> Plan:
    """Draw the plan that all who have the secret draw; its files are for the sites alone.

    Takes what `Plan.draw` takes, without a seed.
    """
    after = marginals.release_id if marginals is not None else ""
    source = generator(secret, schema, after)
    plan = Plan.draw(schema, marginals=marginals, random_state=source, **parameters)
    return replace(plan, hidden=True)


def generator(secret: bytes, schema: Schema, *purpose: str) -> np.random.Generator:
    """Return the generator of hash functions that a secret stands for.

    The secret has 32 bytes or more that nobody can guess: without it, the plan's id reveals
    nothing of the plan. The purpose sets this draw apart, such as the id of a release that it is
    refined by.
    """
    check_secret(secret)
    c = crypto()
    info = rfc8785.dumps(["hushtable", "plan", schema.to_dict(), *purpose])
    seed = c.HKDF(algorithm=c.SHA256(), length=32, salt=None, info=info).derive(secret)
    return np.random.default_rng(int.from_bytes(seed))


def read_secret(path: str | os.PathLike[str]) -> bytes:
    """Read the file of ``hushtable round secret``.

    Raises `FileError` if it holds none, and `PrivacyError` if others may read it.
    """
    try:
        secret = bytes.fromhex(Path(path).read_text().strip())
    except (ValueError, UnicodeDecodeError):
        raise FileError(f"{path}: holds no secret of hushtable round secret") from None
    check_private(path, "make a new secret (hushtable round secret) and draw the plans anew")
    return secret


def read_plan(path: str | os.PathLike[str]) -> Plan:
    """Read the plan that the sites share in a round with hidden hash functions.

    Raises `FileError` if it holds none, and `PrivacyError` if others may read it. Histograms of a
    first round follow from the schema alone, and others may read them unless the file says else.
    """
    file = files.read(path)
    if file.kind == "layout":
        raise FileError(f"{path}: holds {file.held}: give the plan, which the sites share")
    plan = file.build(Plan.from_file)
    if plan.hidden or not plan.purpose.refines:
        check_private(path, "draw another plan from a new secret (hushtable round secret)")
    return replace(plan, hidden=True)
