"""The compiled loops: arrays in, arrays out, no objects.

Values are encoded once into 16-bit codes; everything after that is integer arithmetic on
the codes, so that cells and counts are the same bits on every platform.

==========  ====================================================================
code        meaning
==========  ====================================================================
0           missing, on the low side of every cut
1..LEVELS   numeric: 1 + floor(LEVELS (x - low) / (high - low)), clipped;
            categorical: 1 + index of the category, 1 + K for an unseen one
65535       missing, on the high side of every cut
==========  ====================================================================

``codes`` has one row a feature: the feature's codes with missing values low. Where a chunk
has missing values, d further rows hold the same with missing values high, and a hash function
reads the row that suits the side it drew for them.

Loops run over blocks of ``BLOCK`` rows that stay in the second-level cache, one feature at a
time, so that LLVM compares 16 to 32 rows in one instruction.
"""

from hushtable.kernels._cache import KEPT, kernel
from hushtable.kernels._common import BLOCK, LEVELS, MISSING_HIGH, MISSING_LOW
from hushtable.kernels._encode import column_ranges, encode
from hushtable.kernels._equi_width import count_equi_width, count_pairs_equi_width, sum_equi_width
from hushtable.kernels._gains import gain_random_feature
from hushtable.kernels._projection import (
    CORNER,
    CORNER_BITS,
    count_pairs_random_projection,
    count_pairs_sim_hash,
    count_random_projection,
    count_sim_hash,
    sum_random_projection,
    sum_sim_hash,
)
from hushtable.kernels._random_feature import (
    count_pairs_random_feature,
    count_random_feature,
    join_values,
    sum_random_feature,
)
from hushtable.kernels._row_hash import MISSING_WORD, finish_hashes, fold_words
from hushtable.kernels._subspace_grid import (
    count_pairs_subspace_grid,
    count_subspace_grid,
    sum_subspace_grid,
)

__all__ = [
    "BLOCK", "CORNER", "CORNER_BITS", "KEPT", "LEVELS", "MISSING_HIGH", "MISSING_LOW",
    "MISSING_WORD", "column_ranges", "count_equi_width", "count_pairs_equi_width",
    "count_pairs_random_feature", "count_pairs_random_projection", "count_pairs_sim_hash",
    "count_pairs_subspace_grid", "count_random_feature", "count_random_projection",
    "count_sim_hash", "count_subspace_grid", "encode", "finish_hashes", "fold_words",
    "gain_random_feature", "join_values", "kernel", "sum_equi_width", "sum_random_feature",
    "sum_random_projection", "sum_sim_hash", "sum_subspace_grid",
]  # fmt: skip
