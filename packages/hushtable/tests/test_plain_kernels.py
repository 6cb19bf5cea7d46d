"""Plain kernels: the same bits as compiled ones, whenever the compiled ones take over.

The fixture ``each_build`` compares plain kernels with the naive oracle, too.
"""

import importlib
import itertools
import math
import os
import shutil
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushtable import HushTable, LSHiTables, kernels
from hushtable.kernels import LEVELS, _built, _plain
from hushtable.kernels._plain import PLAIN, PlainKernel

#: Loops over numbers (n, d), which return the first infinity that they meet.
LOOPS = ("column_ranges", "count_numbers_equi_width", "encode", "encode_wide")


def at_hand(name):
    """Return the built kernel or, if there is none, the compiled one."""
    found = getattr(kernels, name)
    return found._compiled() if isinstance(found, PlainKernel) else found


def looped(loop, name, X):
    """Run a loop over numbers; return what it returned, and what it wrote if that is used."""
    d = X.shape[1]
    low, high = np.full(d, -1.0), np.full(d, 2.0)
    if name == "column_ranges":
        found, written = loop(X, low, high), [low, high]
    else:
        tally, scale = np.zeros((d, 2), np.int64), LEVELS / (high - low)
        if name == "count_numbers_equi_width":
            counts, offsets = np.zeros(17 * d, np.int64), 17 * np.arange(d + 1)
            widths = np.full(d, LEVELS // 16)
            found = loop(X, low, high, scale, widths, offsets, counts, tally)
            written = [counts, tally]
        else:
            codes = np.zeros((d, len(X)), np.uint16)
            found, written = loop(X, low, high, scale, codes, tally), [codes, tally]
    return tuple(found), [a.tobytes() for a in written] if found[0] < 0 else None


@pytest.mark.parametrize("name", LOOPS)
@given(
    shape=st.sampled_from([(0, 3), (1, 1), (7, 3), (70, 2), (20, 260), (2_100, 2)]),
    dtype=st.sampled_from([np.float32, np.float64]),
    order=st.sampled_from("CF"),
    infinite=st.integers(0, 4),
    seed=st.integers(0, 999),
)
def test_loops_over_numbers(name, shape, dtype, order, infinite, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=shape)
    for value in (np.nan, 0.0, -0.0, -1.0, 2.0):
        X[rng.random(shape) < 0.1] = value
    for _ in range(infinite if X.size else 0):
        X.flat[rng.integers(X.size)] = rng.choice([-np.inf, np.inf])
    X = np.asarray(X, dtype, order)
    assert looped(PLAIN[name], name, X) == looped(at_hand(name), name, X)


@pytest.mark.parametrize(("first", "second"), [(0.0, -0.0), (-0.0, 0.0)])
def test_of_zeros_the_first_one_keeps_its_sign(first, second):
    for X in (np.array([[first], [second]]), np.array([[first, 1.0], [second, 1.0]])):
        ends = np.full((2, X.shape[1]), [[np.inf], [-np.inf]])
        PLAIN["column_ranges"](X, *ends)
        assert np.signbit(ends[:, 0]).tolist() == [math.copysign(1, first) < 0] * 2


@pytest.fixture
def switching(monkeypatch):
    """Return a function that replaces all kernels by plain ones with this patience."""

    def replace(patience):
        monkeypatch.setattr(_plain, "PATIENCE", patience)
        for name in PLAIN:
            compiled = at_hand(name)
            monkeypatch.setattr(kernels, name, PlainKernel(name, lambda kernel=compiled: kernel))

    return replace


@pytest.mark.parametrize("detector", [HushTable, LSHiTables])
def test_when_compiled_kernels_take_over_changes_nothing(detector, switching, monkeypatch, rng):
    n = 13_000  # enough for ranks of codes
    X = rng.normal(size=(n, 3))
    X[rng.random(X.shape) < 0.01] = np.nan
    table = pa.table({"x": X[:, 0], "y": X[:, 1], "z": X[:, 2], "c": rng.choice(["a", "b"], n)})
    expected = None
    # A clock that moves by 1 at each look: a plain kernel runs twice, never, or always.
    monkeypatch.setattr(_plain.time, "thread_time", itertools.count().__next__)
    for patience in (0, 2, math.inf):
        switching(patience)
        model = detector(random_state=0, n_tables=20).fit(table)
        scores, shares = model.score_samples(table), model.explain(table[:50])
        found = [a.tobytes() for a in (model.sketch_.counts, scores, np.asarray(shares))]
        expected = expected or found
        assert found == expected


def test_a_kernel_is_compiled_once_and_after_a_while(monkeypatch):
    monkeypatch.setattr(_plain, "PATIENCE", 2)
    monkeypatch.setattr(_plain.time, "thread_time", itertools.count().__next__)
    compiled = []

    def compile_it():
        compiled.append("compiled")
        return lambda *_: "compiled"

    kernel, codes = PlainKernel("take_rows", compile_it), np.zeros((1, 2), np.uint16)
    arguments = codes, np.array([0]), np.empty((1, 1), np.uint16)
    assert [kernel(*arguments) for _ in range(4)] == [None, None, "compiled", "compiled"]
    assert compiled == ["compiled"]


def test_plain_kernels_take_what_the_kernels_take():
    for home, names in kernels._BUILT.items():
        for name in PLAIN.keys() & names:
            compiled = getattr(importlib.import_module(f"hushtable.kernels.{home}"), name).py_func
            mine, theirs = PLAIN[name].__code__, compiled.__code__
            assert mine.co_varnames[: mine.co_argcount] == theirs.co_varnames[: theirs.co_argcount]
    assert PLAIN.keys() <= set(itertools.chain(*kernels._BUILT.values()))


FIRST_FIT = """
import hashlib, sys
import numpy as np
import pandas as pd
from hushtable import HushTable
rng = np.random.default_rng(0)
table = pd.DataFrame(rng.normal(size=(1000, 4)), columns=list("abcd"))
table["e"] = rng.choice(["x", "y", "z"], 1000)
found = hashlib.sha256()
for rows in (table[list("abcd")], table):
    detector = HushTable(random_state=0).fit(rows)
    found.update(detector.score_samples(rows).tobytes())
    found.update(np.asarray(detector.explain(rows[:1])).tobytes())
print(found.hexdigest(), "numba" in sys.modules)
"""


def test_a_first_fit_without_built_kernels_compiles_nothing(package, tmp_path):
    shutil.rmtree(package / "hushtable" / "kernels" / "built", ignore_errors=True)
    env = {k: v for k, v in os.environ.items() if k != "HUSHTABLE_JIT"}
    env |= {"PYTHONPATH": str(package), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", FIRST_FIT]
    plain = subprocess.check_output(command, env=env, text=True).split()
    assert plain[1] == "False"
    assert not (tmp_path / "cache").exists()
    # The kernels of this test run, built or compiled.
    names = "PYTHONPATH", "NUMBA_CACHE_DIR"
    env |= dict(zip(names, (os.pathsep.join(sys.path), os.environ[names[1]]), strict=True))
    if not any(_built.path_of(level).is_file() for level in _built.levels_at_hand()):
        env["HUSHTABLE_JIT"] = "1"
    assert subprocess.check_output(command, env=env, text=True).split()[0] == plain[0]
