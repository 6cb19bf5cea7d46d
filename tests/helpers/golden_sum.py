"""Vectors of the masked sum, from fixed randomness: `python golden_sum.py` writes them anew."""

import json
import secrets
from types import SimpleNamespace
from unittest import mock

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

import places
from hushtable_federation.keys import Keys
from hushtable_federation.protocol import masks
from hushtable_federation.protocol.messages import RoundKeys, SumList, digest_of_keys
from hushtable_federation.terms import PROTOCOL

PATH = places.GOLDEN / f"masked-sum-{PROTOCOL}.json"
ROUND, NAMES, N_WORDS, THRESHOLD = "ab" * 32, ("east", "north", "west"), 4, 2


def private(use, name):
    """Return 32 bytes that are fixed for a use and a site."""
    return bytes.fromhex(masks.seed_hash(f"{use} {name}".encode()))


def vectors():
    """Return all vectors, as JSON has them."""
    keys = {name: identity(name) for name in NAMES}
    round_ = SimpleNamespace(round_id=ROUND)
    public = {
        name: RoundKeys.sign(
            round_, keys[name], *(masks.public_of(private(use, name)) for use in ("mask", "seal"))
        )
        for name in NAMES
    }
    digest = digest_of_keys({name: one.digest for name, one in public.items()})
    found = {
        "protocol": PROTOCOL,
        "round_id": ROUND,
        "threshold": THRESHOLD,
        "sites": {name: site(name, keys[name], public, digest) for name in NAMES},
    }
    sent = [np.array(one["masked"], np.uint64) for one in found["sites"].values()]
    own = np.zeros(N_WORDS, np.uint64)
    for name in NAMES:
        masks.add_stream(masks.own_key(private("seed", name), ROUND, name), own)
    entries = {
        name: {"masked": "cd" * 32, "seed": one["seed_hash"]}
        for name, one in found["sites"].items()
    }
    return found | {
        "keys_digest": digest,
        "list_digest": SumList(entries, {}).digest(round_),
        "own_masks": own.tolist(),
        "sum": (sum(sent) - own).tolist(),
    }


def identity(name):
    signing = Ed25519PrivateKey.from_private_bytes(private("signing", name))
    masking = X25519PrivateKey.from_private_bytes(private("masking", name))
    return Keys(name, signing, masking)


def site(name, keys, public, digest):
    """Return what one site derives, deals and sends."""
    seed, key, seal = (private(use, name) for use in ("seed", "mask", "seal"))
    others = [other for other in NAMES if other != name]
    counts = [10 * NAMES.index(name) + i for i in range(N_WORDS)]
    words = np.array(counts, np.uint64)
    masks.add_stream(masks.own_key(seed, ROUND, name), words)
    for other in others:
        pair = masks.pair_key(key, public[other].mask, ROUND, name, other)
        masks.add_pair(name, other, pair, words)
    fixed = iter(range(1, 100))
    at = [1 + NAMES.index(other) for other in NAMES]
    with mock.patch.object(secrets, "randbelow", side_effect=fixed):
        shares = [masks.share(secret, THRESHOLD, at) for secret in (key, seed)]
    rows, commitment = {}, masks.seed_hash(seed)
    for reader, of_key, of_seed in zip(NAMES, *shares, strict=True):
        context = masks.Context(ROUND, name, reader, digest, commitment)
        row = masks.Row.sign(keys, context, of_key, of_seed)
        sealing = masks.seal_key(seal, public[reader].seal, ROUND, name, reader)
        with mock.patch.object(secrets, "token_bytes", return_value=bytes(12)):
            sealed = masks.seal_row(sealing, row)
        rows[reader] = {
            "row": b"".join(row).hex(),
            "seal_key": sealing.hex(),
            "sealed": sealed.hex(),
        }
    return {
        "mask_private": key.hex(),
        "seal_private": seal.hex(),
        "statement": public[name].content.hex(),
        "seed": seed.hex(),
        "seed_hash": commitment,
        "own_key": masks.own_key(seed, ROUND, name).hex(),
        "pair_keys": {
            other: masks.pair_key(key, public[other].mask, ROUND, name, other).hex()
            for other in others
        },
        "counts": counts,
        "masked": words.tolist(),
        "rows": rows,
    }


if __name__ == "__main__":
    PATH.write_text(json.dumps(vectors(), indent=1) + "\n")
