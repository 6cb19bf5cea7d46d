"""Plans, counts, scores, thresholds and explanations are the same bits everywhere."""

import json
import os
import platform
import subprocess
import sys

import pytest

import places
from hushtable import Plan, Sketch
from hushtable.data.readers import reader

BITS = places.GOLDEN / "bits.py"
bits = places.script(BITS)
EXPECTED = json.loads(bits.EXPECTED.read_text())

pytestmark = pytest.mark.usefixtures("each_build")

AVX_512 = "X86_V4 AVX512_ICL AVX512_SPR AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL"
#: What a processor of another age takes: kernels, NumPy, BLAS and the C library's maths.
PROCESSORS = {
    "2009, without AVX": {
        "NUMBA_CPU_NAME": "x86-64-v2",
        "NPY_DISABLE_CPU_FEATURES": f"X86_V3 AVX2 FMA3 {AVX_512}",
        "OPENBLAS_CORETYPE": "Nehalem",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX2,-AVX,-FMA,-FMA4",
    },
    "2013, without AVX-512": {
        "NUMBA_CPU_NAME": "haswell",
        "NPY_DISABLE_CPU_FEATURES": AVX_512,
        "OPENBLAS_CORETYPE": "Haswell",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F",
    },
}


def test_on_this_machine():
    assert bits.facts() == EXPECTED


def test_with_threads(monkeypatch):
    monkeypatch.setattr(reader, "BATCH_ROWS", 64)  # so that each thread gets many batches
    X = bits.rows(2000)
    for name in bits.DETECTORS:
        plan = Plan.draw(bits.SCHEMA, detector=name, n_tables=10, random_state=5)
        one = bits.of_plan(plan, X, 1)
        for threads in (2, 7):
            assert bits.of_plan(plan, X, threads) == one, (name, threads)


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="names processors of x86-64")
@pytest.mark.parametrize("processor", PROCESSORS)
def test_on_other_processors(processor, tmp_path):
    cache = {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_CPU_FEATURES": ""}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", BITS],
        env=os.environ | cache | PROCESSORS[processor],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == EXPECTED


def test_a_row_less_is_noticed():
    plan = Plan.draw(bits.SCHEMA, random_state=5)
    sketch = Sketch.from_data(plan, bits.rows().slice(1))
    assert bits.digest(sketch.counts) != EXPECTED["hushtable by a plan"]["counts"]
