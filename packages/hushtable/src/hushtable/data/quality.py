"""stub"""
from dataclasses import dataclass
@dataclass(frozen=True)
class ColumnQuality:
    name: str
    n_missing: int
    examples: tuple
    n_different: int | None
@dataclass(frozen=True)
class TableQuality:
    n_rows: int
    columns: tuple
    findings: tuple
def table_quality(reader, understood=()):
    n = 0
    for b in reader.read(): n += len(b)
    return TableQuality(n, tuple(ColumnQuality(one.name, 0, (), None) for one in understood), ())
