"""Arrow tables of columns that no one expects."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
from edits import Program

_NUMBERS = (0, 1, -1, 2, 0.5, -1.5, 1e308, -1e308, 5e-324, 1e15, float("nan"), float("inf"), None)
_WHOLE = (0, 1, -1, 100, 127, None)
_LARGE = (0, 2**53, 2**53 + 1, -(2**63), 2**63 - 1, None)
_TEXTS = ("", "a", "b", "1", "1.0", "nan", "é", "\0", "a\nb", "x" * 2_000, None)
_BYTES = (b"", b"a", b"\xff\xfe", None)
_TIMES = (0, 1, -1, 86_400, 2**31 - 1, None)
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
