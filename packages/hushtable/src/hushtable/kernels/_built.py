"""Kernels that were compiled when the wheel was built, so that nothing has to be compiled to run.

The folder ``built`` has an object for each level of processor for which ``build_kernels.py`` of the
source distribution compiled. Its name contains the digest of the kernels' sources, so another
version's object is never loaded. llvmlite loads it, like Numba loads its cached code, and ctypes
calls it.
"""

import ctypes
import functools
import hashlib
import os
import platform
import struct
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent / "built"

#: Features of processors of each level, the highest first (x86-64 psABI, Table 3.1).
FEATURES = {
    "x86-64-v3": ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"),
    "x86-64-v2": ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"),
}
_MACHINES = {"x86_64": tuple(FEATURES), "amd64": tuple(FEATURES), "aarch64": ("generic",)}

#: Kinds of arguments that are not arrays or tuples of them.
_KINDS: dict[type, str] = {int: "i", bool: "b", type(None): "n"}
#: Return types of kernels; the others return nothing.
_RETURNS = {
    "column_ranges": ctypes.c_int64 * 2,
    "count_numbers_equi_width": ctypes.c_int64 * 2,
    "encode": ctypes.c_int64 * 2,
    "encode_wide": ctypes.c_int64 * 2,
    "finish_hashes": ctypes.c_uint64,
}
_PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_char_p)
#: Codes of a function that Numba compiled: it returned, with a value or with None.
_FINE = (0, -2)


@functools.cache
def digest() -> str:
    """Return the digest of all kernels' sources; Numba checks only the file of each kernel."""
    sources = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        sources.update(path.read_bytes())
    return sources.hexdigest()[:16]


def levels_here() -> tuple[str, ...]:
    """Return the levels for which this machine builds, the highest first."""
    return _MACHINES.get(platform.machine().lower(), ())


def path_of(level: str) -> Path:
    """Return the path of the kernels of these sources for a level: its SHA-256, the object."""
    return FOLDER / f"{level}-{digest()}.o"


def _read(level: str) -> bytes:
    kept = path_of(level).read_bytes()
    if hashlib.sha256(kept[32:]).digest() != kept[:32]:  # LLVM would end the process
        raise OSError(f"{path_of(level)} is damaged: install hushtable again")
    return kept[32:]


def levels_at_hand() -> list[str]:
    """Return the levels that the processor has, the highest first."""
    import llvmlite.binding as llvm  # not needed for --help

    try:
        able = llvm.get_host_cpu_features()
    except RuntimeError:  # LLVM does not recognise the processor
        able = {}
    levels: list[str] = []
    for level in reversed(levels_here()):  # each level includes the lower ones
        if not all(able.get(feature) for feature in FEATURES.get(level, ())):
            break
        levels.insert(0, level)
    return levels


@functools.cache
def library(level: str) -> Any:
    """Load the kernels that were built for a level; None if that fails, with a warning."""
    import llvmlite.binding as llvm

    try:
        llvm.check_jit_execution()  # if memory must not become code, LLVM would end the process
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_default_triple().create_target_machine()
        loaded = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
        loaded.add_object_file(llvm.ObjectFileRef.from_data(_read(level)))
        loaded.finalize_object()
    except (OSError, RuntimeError) as error:
        warnings.warn(
            "hushtable compiles its kernels, because those installed with it cannot be loaded: "
            f"{error}",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    return loaded


@functools.cache
def _library_at_hand() -> Any:
    # If no file is there, llvmlite is not imported, which takes a tenth of a second.
    if is_left_to_compiler() or not any(path_of(level).is_file() for level in levels_here()):
        return None
    levels = [level for level in levels_at_hand() if path_of(level).is_file()]
    return library(levels[0]) if levels else None


def is_left_to_compiler() -> bool:
    """Return whether the environment asks for kernels that Numba compiles here."""
    return os.environ.get("HUSHTABLE_JIT") == "1"


def built(name: str, other: Callable[[], Any]) -> Any:
    """Return a kernel: the built one or, if there is none, the other."""
    library = _library_at_hand()
    return other() if library is None else Kernel(library, name, other)


class Kernel:
    """A built kernel, for all arguments for which it was built; for others there is another.

    The built function takes the address of its result, and words: each argument as Numba lays it
    out, an array as (0, 0, size, bytes per value, address, shape, strides).
    """

    def __init__(self, loaded: Any, name: str, other: Callable[[], Any]) -> None:
        self._library, self._name = loaded, name
        self._other = functools.cache(other)
        self._returns: Any = _RETURNS.get(name, ctypes.c_int64)
        self._functions: dict[str, Any] = {}
        # The functions of a plan are the same for every batch.
        self._last: tuple[Any, list[int], str] = (None, [], "")

    def __call__(self, *arguments: Any) -> Any:
        words: list[int] = []
        kinds = "".join([self._add(argument, words) for argument in arguments])
        function = self._functions.get(kinds)
        if function is None:
            address = self._library.get_function_address(f"{self._name}:{kinds}")
            function = self._functions[kinds] = _PROTOTYPE(address) if address else self._other()
        if not isinstance(function, _PROTOTYPE):
            return function(*arguments)
        returned = self._returns()
        if function(ctypes.byref(returned), struct.pack(f"{len(words)}q", *words)) not in _FINE:
            # Kernels raise no other error.
            raise MemoryError(f"{self._name}: not enough memory for the rows being processed")
        return tuple(returned) if isinstance(returned, ctypes.Array) else returned.value

    def _add(self, argument: Any, words: list[int]) -> str:
        """Add an argument to the words; return its kind."""
        if isinstance(argument, np.ndarray):
            return _array(argument, words)
        if not isinstance(argument, tuple):
            words.append(int(argument or 0))
            return _KINDS.get(type(argument), "?")
        last, of_tuple, kind = self._last
        if last is not argument:
            of_tuple = []
            kind = f"({''.join([self._add(item, of_tuple) for item in argument])})"
            self._last = argument, of_tuple, kind
        words += of_tuple
        return kind


def _array(array: np.ndarray[Any, Any], words: list[int]) -> str:
    flags, dtype, shape = array.flags, array.dtype, array.shape
    usual = flags.carray and array.size  # in C order, aligned, and can be written to
    if usual:  # this takes a third of the time
        address = ctypes.addressof(ctypes.c_char.from_buffer(array))  # type: ignore[arg-type]
        layout = "C"
    else:
        address = array.ctypes.data
        layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        layout = layout if flags.aligned else "?"
    words += (0, 0, array.size, dtype.itemsize, address, *shape, *array.strides)
    return f"{dtype.char if dtype.isnative else '?'}{len(shape)}{layout}"
