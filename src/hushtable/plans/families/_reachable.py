"""The bits that one feature's hash functions can have in a table, whatever its value."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.data.schema import Feature


def reachable(
    features: tuple[Feature, ...],
    depth: NDArray[np.uint8],
    feature: NDArray[np.uint16],
    cut: NDArray[np.uint16],
    sides: list[NDArray[np.uint8]],
) -> tuple[Any, ...]:
    """Lay out, for `hushtable.kernels.gain_random_feature`, what a change of one value can do.

    Cuts at 3 and at 5 answer 00, 10 or 11, never 01: only cells that some value reaches are
    compared. Missing and unseen values are no values to change to. Arguments are the schema's
    features, arrays of a RandomFeature family, and for each hash function the sides of the K
    categories, none on a numeric feature. Returns (groups, feature, bits, at, patterns).
    """
    groups, of_group, bits, at, patterns = [0], [], [], [0], []
    end = 0
    for length in depth.tolist():
        begin, end = end, end + length
        in_table = feature[begin:end]
        for j in np.unique(in_table).tolist():
            functions = np.flatnonzero(in_table == j)
            place = (1 << (length - 1 - functions)).astype(np.uint32)
            found = _patterns(features[j], begin + functions, place, cut, sides)
            if len(found) == 0:
                continue
            of_group.append(j)
            bits.append(place.sum())
            # One function with two sides is the most common by far, and flips.
            patterns.append(found if len(functions) > 1 or len(found) < 2 else found[:0])
            at.append(at[-1] + len(patterns[-1]))
        groups.append(len(of_group))
    return (
        np.array(groups),
        np.array(of_group, np.int64),
        np.array(bits, np.uint32),
        np.array(at),
        np.concatenate([np.empty(0, np.uint32), *patterns]),
    )


def _patterns(
    feature: Feature,
    functions: NDArray[np.int64],
    place: NDArray[np.uint32],
    cut: NDArray[np.uint16],
    sides: list[NDArray[np.uint8]],
) -> NDArray[np.uint32]:
    """Return the different bits that the feature's values give these functions of one table."""
    if feature.kind == "categorical":
        high = np.array([sides[h] for h in functions], bool)
    else:
        cuts = cut[functions]
        # Code 1 is below every cut; a constant feature has no other.
        codes = np.array([1]) if feature.constant else np.append(cuts, 1)
        high = codes >= cuts[:, np.newaxis]
    found: NDArray[np.uint32] = np.unique(place @ high.astype(np.uint32)).astype(np.uint32)
    return found
