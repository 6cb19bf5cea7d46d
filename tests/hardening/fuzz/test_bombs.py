"""Small files that stand for very large ones, and large ones that take far more memory."""

import gzip
import hashlib
import json
import struct
import subprocess
import sys
import tracemalloc
from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from inputs import limited
from pyarrow import parquet

from hushtable import Feature, Plan, Schema, Sketch, files
from hushtable.data.readers import as_reader
from hushtable.data.understanding import schema_from_data
from hushtable.errors import DataError, HushTableError
from hushtable_federation.keys import parsed_json

PLAN = Plan.draw(Schema([Feature.numeric("a", low=0, high=1)]), n_tables=2, random_state=0)


def count(path):
    Sketch.from_data(PLAN, np.zeros((2, 1)))  # what is loaded once is no part of the bomb
    with limited(1 << 30):
        return Sketch.from_data(PLAN, path)


@pytest.mark.slow
def test_a_value_of_a_gigabyte(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"a\n") + gzip.compress(b"0" * (16 << 20)) * 64)
    assert path.stat().st_size < 2e6
    with pytest.raises(DataError, match=r"a\.csv\.gz"):
        count(path)


def test_rows_that_compress_well_are_read_in_flat_memory(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"a\n") + gzip.compress(b"0\n" * (1 << 20)) * 4)
    assert count(path).n_rows == 4 << 20
    rows = pa.table({"a": pa.array(np.zeros(4 << 20))})
    parquet.write_table(rows, tmp_path / "a.parquet", row_group_size=4 << 20)
    assert (tmp_path / "a.parquet").stat().st_size < 1e5
    assert count(tmp_path / "a.parquet").n_rows == 4 << 20


@pytest.mark.slow
def test_more_columns_than_a_plan_takes(tmp_path):
    path = tmp_path / "a.csv"
    names, row = ",".join(f"c{j}" for j in range(66_000)), ",".join("1" * 66_000)
    path.write_text(f"{names}\n{row}\n")
    with (
        limited(6 << 30),
        pytest.raises(DataError, match="66,000 columns: needs 65,535"),
    ):
        schema_from_data(as_reader(path))


# --- manifests ------------------------------------------------------------------------------------

#: What a list, or an object, of a manifest is full of: each takes far more memory than text.
FILLED = {
    "objects": "{}",
    "lists": "[]",
    "nested": '[[{"a":[]}]]',
    "numbers": "999",
    "fractions": "1.5",
    "words": '"ab"',
    "entries": '{"ab":1}',
    "long": '"' + "a" * 100 + '"',
    "long and wide": '"' + "a" * 100 + '\U0001f321"',
    "wide": '"\U0001f321 b"',
    "Chinese": '"\u4f53"',
    "commas": '","',
    "escapes": '"\\\\\\u0001"',
}


def bomb(kind, filled, size, *, end=""):
    """Return a file of a kind whose manifest has about this size, with a digest that fits."""
    piece = FILLED[filled]
    filling = ",".join([piece] * (size // (len(piece.encode()) + 1)) + ['"x"'])
    text = f'{{"arrays":{{}},"kind":"{kind}","protocol":1,"x":[{filling}{end}]}}'.encode()
    digest = hashlib.sha256(text).hexdigest()
    text = text.replace(b',"kind"', f',"digest":"{digest}","kind"'.encode(), 1)
    return contained(text)


def contained(text, more=b""):
    quoted = json.dumps({"__metadata__": {files.KEY: text.decode()}}, ensure_ascii=False).encode()
    head = quoted[:-1] + more + b"}"
    return struct.pack("<Q", len(head)) + head


def tensors(kind, filled, size):
    """Return a file whose header lists more arrays than any file has."""
    entry = '"%d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
    entries = ",".join(entry % k for k in range(size // 55))
    text = f'{{"arrays":{{}},"kind":"{kind}","protocol":1}}'.encode()
    return contained(text, b"," + entries.encode())


def cut(kind, filled, size):
    """Return a file that says it has a far larger header than it has."""
    return struct.pack("<Q", size * 1000) + bomb(kind, filled, size)[8:]


def peak_of(content, opened=files.unpack):
    """Return the memory that opening takes at most, beside the file, and whether it was taken."""
    tracemalloc.start()
    try:
        opened(content, "it")
        taken = True
    except HushTableError:
        taken = False
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak, taken


def bound_of(bound, content):
    """Return what is promised: four times the file, or what its kind may take in any case."""
    return max(4 * len(content), 180 * bound.values) + (1 << 16)


@pytest.mark.parametrize("made", [bomb, tensors, cut])
@pytest.mark.parametrize("filled", FILLED)
@pytest.mark.parametrize(
    "kind",
    [
        "message",
        pytest.param("round", marks=pytest.mark.slow),
        pytest.param("plan", marks=pytest.mark.slow),
    ],
)
def test_a_manifest_takes_a_small_multiple_of_the_file(kind, filled, made):
    bound = files.kind_of(kind).bound
    for size in (1000, 3 * bound.values, bound.size // 40):
        content = made(kind, filled, min(size, 400_000))
        peak, _ = peak_of(content)
        assert peak <= bound_of(bound, content), (size, peak / len(content))


def test_cards_and_approvals_are_bounded_too():
    for size in (1000, 30_000, 3_000_000):
        content = b'{"hushtable":"card","x":[' + b"{}," * (size // 3) + b"0]}"
        peak, _ = peak_of(content, lambda text, path: parsed_json(text, path, "card", "keygen"))
        assert peak <= bound_of(files.SMALL, content)


@pytest.mark.slow
def test_a_thousand_hostile_files_of_each_kind(rng, capsys):
    """Prints what the reader took at most, by kind: `pytest -s -k thousand_hostile`."""
    found = defaultdict(list)
    for kind, one in files.KINDS.items():
        most = min(one.bound.size, 4 * one.bound.values)
        for k in range(1000):
            size = int(most) if k < 5 else int(1000 * (most / 1000) ** rng.uniform(0, 0.8))
            made = (bomb, bomb, bomb, tensors, cut)[k % 5]
            content = made(kind, list(FILLED)[rng.integers(len(FILLED))], size)
            peak, taken = peak_of(content)
            assert peak <= bound_of(one.bound, content), (kind, size)
            found[kind].append((len(content), peak, taken))
    with capsys.disabled():
        print(f"\n{'kind':12}{'files':>6}{'taken':>6}{'largest':>12}{'peak':>12}{'bound':>12}")
        for kind, rows in found.items():
            print(
                f"{kind:12}{len(rows):6}{sum(taken for *_, taken in rows):6}"
                f"{max(size for size, *_ in rows):12,}{max(peak for _, peak, _ in rows):12,}"
                f"{180 * files.KINDS[kind].bound.values:12,}"
            )


@pytest.mark.slow
@pytest.mark.serial
@pytest.mark.parametrize("megabytes", [7, 15, 60])
@pytest.mark.parametrize("filled", ["objects", "wide", "words", "long", "long and wide"])
def test_the_process_takes_a_small_multiple_of_a_large_file(tmp_path, megabytes, filled):
    """Also what safetensors takes, which this process cannot see."""
    path = tmp_path / "bomb.hush"
    path.write_bytes(bomb("plan", filled, megabytes << 20))
    code = (
        "import re, sys; from hushtable import files; from hushtable.errors import FileError;"
        # Not ru_maxrss, which a process takes over from the one that started it.
        "take = lambda: int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]);"
        "content = open(sys.argv[1], 'rb').read(); before = take()\n"
        "try: files.unpack(content, 'it'); words = 'taken'\n"
        "except FileError as error: words = str(error)\n"
        "print((take() - before) * 1024, words)"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    more, _, words = done.stdout.partition(" ")
    assert ("taken" in words) == (
        filled == "long" or (filled == "long and wide" and megabytes == 7)
    )
    print(f"{filled}: {path.stat().st_size:,} bytes, {int(more) / path.stat().st_size:.2f} times")
    assert filled != "long" or int(more) > path.stat().st_size, "nothing was measured"
    assert int(more) <= bound_of(files.LARGE, path.read_bytes())
