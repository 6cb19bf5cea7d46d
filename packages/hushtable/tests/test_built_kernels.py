"""Kernels built ahead of time: the right ones are loaded, or else plain or compiled ones run."""

import os
import runpy
import subprocess
import sys
import warnings

import llvmlite.binding as llvm
import numpy as np
import pytest

from hushtable import HushTable, kernels
from hushtable.kernels import _built
from places import ROOT

built_here = pytest.mark.skipif(
    not any(_built.path_of(level).is_file() for level in _built.levels_here()),
    reason="the kernels are not built here: make kernels",
)

SCRIPT = """
import hashlib, sys
import numpy as np
from hushtable import HushTable, kernels
X = np.random.default_rng(0).normal(size=(3000, 20))
detector = HushTable(random_state=0).fit(X)
shares = detector.explain(X[:10])
digest = hashlib.sha256(detector.score_samples(X).tobytes() + np.asarray(shares).tobytes())
kind = "Numba" if "numba" in sys.modules else type(kernels.encode).__name__
print(kind, digest.hexdigest())
"""


def run(package, **variables):
    """Fit, score and explain in a process of its own: kind of kernels, digest, stderr."""
    names = ("HUSHTABLE_JIT", "PYTHONPATH", "HUSHTABLE_PROGRESS")
    env = {k: v for k, v in os.environ.items() if k not in names}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=env | {"PYTHONPATH": str(package)} | variables,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return *done.stdout.split(), done.stderr


@pytest.fixture
def at_hand():
    """Have the library looked for again, before the test and after it."""
    _built._library_at_hand.cache_clear()
    _built.library.cache_clear()
    yield
    _built._library_at_hand.cache_clear()
    _built.library.cache_clear()


def test_all_kernels_but_those_that_need_blas_are_built():
    signatures = runpy.run_path(str(ROOT / "packages/hushtable/build_kernels.py"))["SIGNATURES"]
    assert set(signatures) == {n for names in kernels._BUILT.values() for n in names}


@built_here
def test_nothing_is_compiled_and_numba_is_not_imported(package):
    kind, scores, said = run(package)
    assert (kind, said) == ("Kernel", "")
    for path in (package, *package.rglob("*")):  # and nothing is written
        path.chmod(0o555 if path.is_dir() else 0o444)
    nowhere = {"HOME": "/nowhere", "XDG_CACHE_HOME": "/nowhere", "NUMBA_CACHE_DIR": "/nowhere"}
    assert run(package, **nowhere) == ("Kernel", scores, "")


@built_here
@pytest.mark.slow
def test_the_environment_asks_for_the_compiler_instead(package):
    built, compiled = run(package), run(package, HUSHTABLE_JIT="1")
    assert (built[0], compiled[0]) == ("Kernel", "Numba")
    assert built[1:] == compiled[1:]


@built_here
@pytest.mark.slow
def test_a_library_of_another_version_is_not_loaded(package):
    mine = run(package)
    kernel = package / "hushtable" / "kernels" / "_common.py"
    kernel.write_text(kernel.read_text() + "\n# another version\n")
    assert run(package) == ("PlainKernel", *mine[1:])


@built_here
@pytest.mark.parametrize(
    "damage", [lambda code: b"", lambda code: code[:-9], lambda code: b"x" * 99]
)
def test_a_damaged_library_is_said_in_one_line_and_compiled_instead(
    damage, at_hand, monkeypatch, tmp_path
):
    monkeypatch.delenv("HUSHTABLE_JIT", raising=False)
    (level, *_) = _built.levels_at_hand()
    whole = _built.path_of(level).read_bytes()
    monkeypatch.setattr(_built, "FOLDER", tmp_path)
    _built.path_of(level).write_bytes(damage(whole))
    with pytest.warns(RuntimeWarning, match="damaged: install hushtable again") as said:
        assert _built.built("encode", lambda: "compiled") == "compiled"
    assert "\n" not in str(said[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once, not for every kernel
        assert _built.built("sum_random_feature", lambda: "compiled") == "compiled"


def _never():
    raise AssertionError("compiled")


@built_here
def test_where_memory_must_not_become_code_it_is_said(at_hand, monkeypatch):
    def refused():
        raise PermissionError("cannot allocate executable memory")

    monkeypatch.setattr(llvm, "check_jit_execution", refused)
    monkeypatch.delenv("HUSHTABLE_JIT", raising=False)
    with pytest.warns(RuntimeWarning, match="cannot allocate executable memory"):
        assert _built.built("encode", lambda: "compiled") == "compiled"


AVX2 = {feature: True for names in _built.FEATURES.values() for feature in names}
SSE4 = AVX2 | {"avx2": False}


@pytest.mark.parametrize(
    ("machine", "able", "levels"),
    [
        ("x86_64", AVX2, ["x86-64-v3", "x86-64-v2"]),
        ("AMD64", SSE4, ["x86-64-v2"]),
        ("x86_64", AVX2 | {"sse4.2": False}, []),
        ("x86_64", None, []),
        ("aarch64", {}, ["generic"]),
        ("riscv64", {}, []),
    ],
)
def test_levels_of_processors(monkeypatch, machine, able, levels):
    def features():
        if able is None:
            raise RuntimeError("failed to get host cpu features")
        return able

    monkeypatch.setattr(_built.platform, "machine", lambda: machine)
    monkeypatch.setattr(llvm, "get_host_cpu_features", features)
    assert _built.levels_at_hand() == levels


def test_a_platform_without_a_library_compiles(at_hand, monkeypatch):
    monkeypatch.delenv("HUSHTABLE_JIT", raising=False)
    monkeypatch.setattr(_built.platform, "machine", lambda: "riscv64")
    assert _built.built("encode", lambda: "compiled") == "compiled"


@built_here
def test_a_processor_without_avx2_has_the_same_scores(at_hand, monkeypatch, X):
    expected = HushTable(random_state=0).fit(X).score_samples(X)
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: SSE4)
    monkeypatch.delenv("HUSHTABLE_JIT", raising=False)
    _built._library_at_hand.cache_clear()
    assert _built._library_at_hand() is _built.library("x86-64-v2")
    for names in kernels._BUILT.values():
        for name in names:
            monkeypatch.setattr(kernels, name, _built.built(name, _never))
    np.testing.assert_array_equal(HushTable(random_state=0).fit(X).score_samples(X), expected)


@built_here
@pytest.mark.parametrize(
    "arrays",
    [
        lambda X: X.astype(">f8"),
        lambda X: X.astype(np.float16),
        lambda X: np.ndarray(X.shape, X.dtype, b"\0" * (X.nbytes + 1), offset=1),
    ],
    ids=["byte order", "type", "alignment"],
)
def test_other_arguments_are_left_to_the_compiler(X, arrays):
    kernel = _built.Kernel(
        _built.library(_built.levels_at_hand()[-1]), "column_ranges", lambda: lambda *_: "compiled"
    )
    low, high = np.full(4, np.inf), np.full(4, -np.inf)
    assert kernel(X, low, high) == (-1, -1)
    assert kernel(arrays(X), low, high) == "compiled"


@built_here
def test_too_little_memory_is_an_error_as_anywhere():
    X = np.random.default_rng(0).normal(size=(50, 2))
    family = HushTable(random_state=0).fit(X).plan_.family
    loaded = _built.library(_built.levels_at_hand()[-1])
    kernel = _built.Kernel(loaded, "gain_random_feature", _never)
    codes, nothing = np.empty((2, 0), np.uint16), np.empty(0)
    gains = np.empty((0, 2**44))  # columns: each is to have a row of sums
    functions, reached = family._apart.functions[False], family.reachable
    with pytest.raises(MemoryError, match="gain_random_feature"):
        kernel(codes, functions, None, None, reached, nothing, nothing, gains, nothing)


@built_here
@pytest.mark.skipif(
    not _built.FEATURES.keys() & _built.levels_here(), reason="reads x86-64's codes"
)
@pytest.mark.parametrize("level", _built.levels_here())
def test_parts_may_be_loaded_far_from_one_another(level):
    """With 32 bits from one to the other, LLVM ends a process where they lie 2 GB apart."""
    whole, from_here = 1, 24  # R_X86_64_64 and R_X86_64_PC64
    found = set()
    for section in llvm.ObjectFileRef.from_data(_built._read(level)).sections():
        if (section.name() or b"").startswith(b".rela"):
            entries = np.frombuffer(section.data(), "<u8").reshape(-1, 3)
            found |= set((entries[:, 1] & 0xFFFF_FFFF).tolist())
    assert found == {whole, from_here}
