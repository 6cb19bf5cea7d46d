"""The compiled loops: arrays in, arrays out, no objects.

Values are encoded once into 16-bit codes; everything after that is integer arithmetic on
the codes, so that cells and counts are bit-identical on every platform.

==========  ====================================================================
code        meaning
==========  ====================================================================
0           missing, on the low side of every cut
1..LEVELS   numeric: 1 + floor(LEVELS (x - low) / (high - low)), clipped;
            categorical: 1 + index of the category, 1 + K for an unseen one
65535       missing, on the high side of every cut
==========  ====================================================================

``codes`` has one row for each feature: the feature's codes with missing values low. If a chunk
has missing values, d further rows hold the same with missing values high, and a hash function
reads the row for the side that was drawn for it.

Loops run over blocks of ``BLOCK`` rows that stay in the second-level cache, one feature at a
time, so that LLVM compares 16 to 32 rows in one instruction.
"""

import importlib
import sys
from typing import Any

from hushtable.kernels._built import built

#: 255 * 256 levels: a multiple of every power of two up to 256, so that the cells of an
#: equal-width histogram are exact unions of levels.
LEVELS = 65_280
MISSING_LOW = 0
MISSING_HIGH = 65_535

#: A missing value among the words of a row, for every bit pattern of NaN.
MISSING_WORD = 0x7FF8_0000_0000_0000

# On first use: Numba takes a quarter of a second to import, and where the kernels are built, or few
# rows come, it is not needed.
_BUILT = {
    "_differences": ["compare_readings", "take_differences", "take_residuals"],
    "_encode": [
        *("column_ranges", "encode", "encode_wide", "find_outside", "keep_outermost"),
        "take_rows",
    ],
    "_equi_width": [
        *("count_equi_width", "count_numbers_equi_width", "count_pairs_equi_width"),
        "sum_equi_width",
    ],
    "_gains": ["gain_random_feature"],
    "_random_feature": [
        *("count_random_feature", "count_pairs_random_feature", "sum_random_feature"),
        *("join_values", "rank_codes", "sum_few_random_feature"),
        *("count_contextual", "count_pairs_contextual", "sum_contextual"),
    ],
    "_row_hash": ["finish_hashes", "fold_words"],
}
_COMPILED = {"_common": ["BLOCK", "KEPT", "kernel"]}
_HOMES = {name: home for home, names in (_BUILT | _COMPILED).items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES[name]

    def compiled() -> Any:
        return getattr(importlib.import_module(f"{__name__}.{home}"), name)

    def unbuilt() -> Any:
        plain = importlib.import_module(f"{__name__}._plain")
        return plain.until_compiled(name, compiled)

    value = built(name, unbuilt) if home in _BUILT else compiled()
    setattr(sys.modules[__name__], name, value)  # later look-ups do not call this function
    return value


def __dir__() -> list[str]:
    return sorted(_HOMES)
