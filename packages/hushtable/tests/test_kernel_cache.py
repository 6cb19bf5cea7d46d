"""Kernels are compiled once for a user, again when any of their sources changes, and always run."""

import os
import subprocess
import sys
import time

import pytest

from bounds import run_checked

SCRIPT = """
import sys
from numba.core import event
compiled = []
class Noted(event.Listener):
    def on_start(self, e): compiled.append(e)
    def on_end(self, e): pass
with event.install_listener("numba:compile", Noted()):
    import numpy as np
    from hushtable import Feature, Plan, Schema, Sketch, kernels
    schema = Schema((Feature.numeric("x", low=0, high=1), Feature.numeric("y", low=0, high=1)))
    plan = Plan.draw(schema, detector="hushtable", n_tables=10, random_state=0)
    sketch = Sketch.from_data(plan, np.random.default_rng(0).random((500, 2)))
print(kernels.KEPT, len(compiled) > 0, hash(sketch.counts.tobytes()))
"""


def run(package, **variables):
    """Count rows in a process of its own; return whether kernels are kept and were compiled."""
    keep = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "PYTHONPATH")}
    always = {"PYTHONPATH": str(package), "PYTHONHASHSEED": "0", "HUSHTABLE_JIT": "1"}
    env = keep | always | variables
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return tuple(done.stdout.split())


@pytest.mark.serial
@pytest.mark.slow
def test_a_read_only_install_compiles_once_for_a_user(package, tmp_path):
    for path in (package, *package.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path / "home")}
    start = time.perf_counter()
    cold = run(package, **cache)
    between = time.perf_counter()
    warm = run(package, **cache)
    end = time.perf_counter()
    print(f"\na sketch of 500 rows: {between - start:.1f} s cold, {end - between:.1f} s warm")
    assert cold[:2] == ("True", "True")
    assert warm[:2] == ("True", "False")
    assert cold[2] == warm[2]
    assert not list(package.rglob("*.nbi"))


@pytest.mark.slow
def test_a_change_in_what_kernels_inline_is_compiled(package, tmp_path):
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    before = run(package, **cache)
    common = package / "hushtable" / "kernels" / "_common.py"
    common.write_text(common.read_text().replace("0x85EBCA6B", "0x85EBCA6D"))
    after = run(package, **cache)
    assert after[:2] == ("True", "True")
    assert after[2] != before[2]


@pytest.mark.slow
def test_without_a_folder_to_write_to_kernels_run_all_the_same(package, tmp_path):
    (tmp_path / "file").touch()
    found = run(package, NUMBA_CACHE_DIR=str(tmp_path / "file" / "below"))
    assert found[:2] == ("False", "True")


@pytest.mark.slow
def test_damaged_files_of_the_cache_are_compiled_again(package, tmp_path):
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    whole = run(package, **cache)
    for kind, damaged in (
        ("nbi", b""),
        ("nbi", b"\x80\x05"),
        ("nbc", b""),
        ("nbc", b"\x80\x05abc"),
    ):
        files = list((tmp_path / "cache").rglob(f"*.{kind}"))
        assert files
        for path in files:
            path.write_bytes(damaged)
        assert run(package, **cache) == whole
        assert run(package, **cache) == ("True", "False", whole[2])


@pytest.mark.slow
def test_no_index_out_of_bounds(tmp_path):
    draws = [{"detector": "lsh_itables"}, {"n_cells": 2}, {"min_depth": 30, "max_depth": 32}]
    more = """
Scorer(Sketch.from_data(Plan.marginals(schema), table)).score(table)
X = np.where(rng.random((n, 150)) < .1, np.nan, rng.normal(size=(n, 150)))
for rows in (X, X.astype(np.float32), np.asfortranarray(X)):
    HushTable(random_state=0).fit(rows)
"""
    run_checked(tmp_path, draws, more)
