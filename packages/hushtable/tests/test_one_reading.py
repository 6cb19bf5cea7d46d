"""What is found in a table does not depend on threads, batches, and files."""

import numpy as np
import pyarrow as pa
import pytest

from hushtable.data import read
from hushtable.data.quality import understood_with_quality
from hushtable.data.texts import column_facts
from hushtable.data.understanding import understood
from hushtable.errors import DataError

N = 2_500


def column(name, rng):
    """Texts of a column of N rows, in batches of 100."""
    number = [f"{x:.3f}" for x in rng.normal(size=N)]
    match name:
        case "number":
            return number
        case "gaps":
            return ["" if rng.random() < 0.2 else text for text in number]
        case "words for missing":
            return ["n/a" if rng.random() < 0.1 else text for text in number]
        case "text that comes late":
            return [*number[:-3], "12 mg", "unknown", "7"]
        case "numbers that come late":
            return [*(f"patient {k}" for k in range(200)), *number[200:]]
        case "comma that comes late":
            return [*(f"{k}" for k in range(2_000)), *(f"{k},5" for k in range(500))]
        case "code":
            return ["-9999" if rng.random() < 0.05 else text for text in number]
        case "code that comes late":
            return [*number[:2_000], *["-9999.000"] * 20, *number[2_020:]]
        case "day":
            return [f"2024-{m:02}-{d:02}" for m, d in rng.integers(1, 28, (N, 2)) % (12, 28) + 1]
        case "ward":
            return rng.choice(["north", "South", "south ", "total"], N).tolist()
        case "id":
            return [f"case-{k:07}" for k in rng.permutation(N)]


NAMES = (
    "number", "gaps", "words for missing", "text that comes late", "numbers that come late",
    "comma that comes late", "code", "code that comes late", "day", "ward", "id",
)  # fmt: skip


@pytest.fixture
def batches(monkeypatch):
    monkeypatch.setattr("hushtable.data.readers.reader.BATCH_ROWS", 100)


def written(path, columns, delimiter=";"):
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join(map(delimiter.join, [columns, *rows])) + "\n")
    return path


@pytest.mark.usefixtures("batches")
@pytest.mark.parametrize(("n_jobs", "missing"), [(1, ("n/a", "-9999")), (4, ())])
def test_threads_and_files_change_nothing(n_jobs, missing, rng, tmp_path):
    columns = {name: column(name, rng) for name in NAMES}
    for texts in columns.values():
        texts[1_700] = texts[1_400]  # a row that is equal to an earlier one
    path = written(tmp_path / "rows.csv", columns)
    ours = understood_with_quality(read(path, missing=missing), n_jobs)
    assert ours == understood_with_quality(read(path, missing=missing), 1)
    assert ours[2].n_rows == N
    parts = tmp_path / "parts"
    parts.mkdir()
    for k in range(3):
        some = {name: texts[900 * k : 900 * k + 900] for name, texts in columns.items()}
        written(parts / f"{k}.csv", some)
    of_parts = understood_with_quality(read(parts, missing=missing), n_jobs)
    assert [one.kind for one in of_parts[0]] == [one.kind for one in ours[0]]
    assert of_parts[2].columns == ours[2].columns


def test_what_cannot_be_read_is_refused_in_the_same_words(rng, tmp_path):
    columns = {"x": column("number", rng), "y": column("gaps", rng)}
    path = written(tmp_path / "rows.csv", columns)
    path.write_text(path.read_text() + "1;2;3\n")
    with pytest.raises(DataError) as one:
        understood_with_quality(read(path), 1)
    with pytest.raises(DataError) as two:
        understood(read(path))
    assert str(one.value) == str(two.value)
    path.write_text("x;y\n")
    with pytest.raises(DataError, match="no rows"):
        understood_with_quality(read(path), 1)


# --- columns of too many texts --------------------------------------------------------------------

IDS = [f"case-{k}" for k in range(30_000)]


@pytest.mark.parametrize(
    "later",
    [
        IDS, [f"{k}.5" for k in range(30_000)], ["2024-02-03"] * 30_000, [""] * 30_000,
        [f"{k:09}" for k in range(30_000)], [*[f"note {k}" for k in range(600)] * 50],
        [f"n{k}" if k % 9 else f"{k}" for k in range(30_000)], ["yes", "no", "7", "12:30"] * 7_500,
    ],
)  # fmt: skip
def test_texts_after_the_first_ten_thousand_still_decide(later, tmp_path, monkeypatch):
    """Only if they are like these, not all of them are looked at."""
    texts = [f"first-{k}" for k in range(12_000)] + later
    path = written(tmp_path / "rows.csv", {"who": texts, "x": [str(k % 7) for k in range(42_000)]})
    found = understood(read(path), None, 1)[0]
    monkeypatch.setattr(column_facts, "are_other", lambda texts: False)
    assert found == understood(read(path), None, 1)[0]


def test_a_batch_of_further_identifiers_is_counted_as_if_all_were_looked_at(monkeypatch):
    def looked_at():
        one = column_facts.ColumnFacts()
        for start in range(0, 30_000, 6_000):
            one.add(pa.array([*IDS[start : start + 6_000], None, " "]), start)
        return one

    ours = looked_at()
    monkeypatch.setattr(column_facts, "are_other", lambda texts: False)
    expected = looked_at()
    for name in ("n", "n_missing", "shapes", "tally", "texts", "first"):
        assert getattr(ours, name) == getattr(expected, name), name
    assert vars(ours.exceptions["other"]) == vars(expected.exceptions["other"])
    assert ours.shapes["other"] == np.int64(30_000)
