"""Compiles the kernels ahead of time: ``python packages/hushtable/build_kernels.py [LEVEL ...]``.

`hatch_build.py` calls it for a wheel, and ``make kernels`` for the sources.

Numba is the compiler, but the result does not need it. The build runs once for each level of
processor, as if on such a processor, so the result is bit-identical to what it would compile there.
Without a level, it builds for those that these sources have no object for.
"""

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from hushtable import kernels
from hushtable.kernels._built import FOLDER, levels_here, path_of

_INTS, _FLOATS, _CODES = "int64[::1]", "float64[::1]", "uint16[:, ::1]"
_WEIGHED = f"{_INTS}, {_INTS}"  # weights, counts
_PAIRS = f"{_INTS}, {_INTS}, {_INTS}"  # rows, tables, counts
_PARTS = f"UniTuple({_INTS}, 3)"
_X = tuple(f"float{bits}[{layout}]" for bits in (32, 64) for layout in ("::1, :", ":, ::1", ":, :"))
_TABLE, _CUBE = "float64[:, ::1]", "float64[:, :, ::1]"
_WORDS = "uint64[:, ::1]", "uint64[:, :]"
_FOLDED = "none", "uint8[::1]"
_FUNCTIONS = tuple(
    f"Tuple(({_INTS}, {_INTS}, uint16[::1], {_INTS}, uint8[::1], {folded}, {_INTS}))"
    for folded in _FOLDED
)
_RANKS = "int8[:, ::1]"
#: Codes or their ranks, with all bits or one bit of a category, and functions of them.
_COMPARED = tuple(f"{_CODES}, {functions}" for functions in _FUNCTIONS) + tuple(
    f"{_RANKS}, Tuple(({_INTS}, {_INTS}, int8[::1], {masks}, none, {folded}, {_INTS}))"
    for masks in ("none", "int8[::1]")
    for folded in _FOLDED
)
#: Functions of a behaviour, which are usually folded, and of a context, or none.
_PAIRED = tuple(f"{_FUNCTIONS[1]}, {context}" for context in (_FUNCTIONS[1], "none"))
_PLACE = "UniTuple(int64, 4)"
_REACHABLE = f"Tuple(({_INTS}, {_INTS}, uint32[::1], {_INTS}, uint32[::1]))"
#: Of entities over time: see `hushtable.data.history._State`.
_STATE = f"Tuple(({_FLOATS}, {', '.join([_TABLE] * 3 + [_CUBE] * 2 + [_TABLE] * 4)}, {_CUBE}))"

#: Arguments that each kernel is built for, in Numba's notation; ``{}`` is each of the kinds.
SIGNATURES: dict[str, tuple[str, tuple[str, ...]]] = {
    "column_ranges": (f"{{}}, {_FLOATS}, {_FLOATS}", _X),
    "encode": (f"{{}}, {_FLOATS}, {_FLOATS}, {_FLOATS}, {_CODES}, int64[:, ::1]", _X),
    "encode_wide": (f"{{}}, {_FLOATS}, {_FLOATS}, {_FLOATS}, {_CODES}, int64[:, ::1]", _X),
    "find_outside": (f"{{}}, {_FLOATS}, {_FLOATS}, {_CODES}, {_INTS}, {_INTS}", _X),
    "keep_outermost": (
        f"{{}}, int64, int64, {_INTS}, float64[:, :, ::1], int64[:, :, ::1]",
        _X,
    ),
    "take_rows": (f"{_CODES}, {_INTS}, {_CODES}", ("",)),
    "take_differences": (
        f"{_TABLE}, int64[:, ::1], {_TABLE}, {_TABLE}, {_FLOATS}, {_TABLE}",
        ("",),
    ),
    "compare_readings": (
        f"{_INTS}, {_INTS}, {_FLOATS}, {_INTS}, {_TABLE}, {_STATE}, {_CUBE}, {_FLOATS}",
        ("",),
    ),
    "take_residuals": (f"{{}}, {_FLOATS}, {_TABLE}, int64, {_TABLE}", _X[3:]),
    "count_equi_width": (f"{_CODES}, {_INTS}, {_INTS}, {_WEIGHED}", ("",)),
    "count_numbers_equi_width": (
        f"{{}}, {_FLOATS}, {_FLOATS}, {_FLOATS}, {_INTS}, {_WEIGHED}, int64[:, ::1]",
        _X,
    ),
    "count_pairs_equi_width": (f"{_CODES}, {_INTS}, {_INTS}, {_PAIRS}", ("",)),
    "sum_equi_width": (f"{_CODES}, {_INTS}, {_INTS}, {_FLOATS}, {_FLOATS}", ("",)),
    "count_random_feature": (f"{{}}, {_PARTS}, {_WEIGHED}", _COMPARED),
    "count_pairs_random_feature": (f"{_CODES}, {{}}, {_PAIRS}", _FUNCTIONS),
    "sum_few_random_feature": (f"{_CODES}, {{}}, {_FLOATS}, {_FLOATS}", _FUNCTIONS),
    "sum_random_feature": (f"{{}}, {_FLOATS}, {_FLOATS}", _COMPARED),
    "rank_codes": (f"{_CODES}, {_INTS}, {_INTS}, {_RANKS}, {_RANKS}", ("",)),
    "join_values": (f"{_FLOATS}, {_PARTS}, {_INTS}, {_FLOATS}", ("",)),
    "gain_random_feature": (
        f"{_CODES}, {{}}, {_REACHABLE}, {_FLOATS}, {_FLOATS}, float64[:, ::1], {_FLOATS}",
        (*(f"{one}, none, none" for one in _FUNCTIONS), *(f"{one}, {_PLACE}" for one in _PAIRED)),
    ),
    "count_contextual": (f"{_CODES}, {{}}, {_PLACE}, {_WEIGHED}", _PAIRED),
    "count_pairs_contextual": (f"{_CODES}, {{}}, {_PLACE}, {_PAIRS}", _PAIRED),
    "sum_contextual": (f"{_CODES}, {{}}, {_PLACE}, {_FLOATS}, {_FLOATS}", _PAIRED),
    "fold_words": (f"{{}}, {_INTS}, uint64[::1]", _WORDS),
    "finish_hashes": ("uint64[::1]", ("",)),
}

#: The parts of Numba's own runtime that the kernels need. For memory that a kernel allocates, the
#: fourth word is the address of the values, which are 64-byte aligned.
_RUNTIME = """
declare ptr @malloc(i64)
declare void @free(ptr)
define ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %align) {
  %whole = add i64 %size, 128
  %block = call ptr @malloc(i64 %whole)
  %none = icmp eq ptr %block, null
  br i1 %none, label %end, label %filled
filled:
  store i64 1, ptr %block
  %start = ptrtoint ptr %block to i64
  %beyond = add i64 %start, 127
  %at = and i64 %beyond, -64
  %values = inttoptr i64 %at to ptr
  %fourth = getelementptr i64, ptr %block, i64 3
  store ptr %values, ptr %fourth
  br label %end
end:
  ret ptr %block
}
define void @NRT_MemInfo_call_dtor(ptr %block) {
  call void @free(ptr %block)
  ret void
}
declare float @nextafterf(float, float)
define float @numba_nextafterf(float %x, float %y) {
  %next = call float @nextafterf(float %x, float %y)
  ret float %next
}
declare double @nextafter(double, double)
define double @numba_nextafter(double %x, double %y) {
  %next = call double @nextafter(double %x, double %y)
  ret double %next
}
"""
#: Exceptions as Numba stores them: they contain paths of the machine on which it runs.
_PICKLED = re.compile(r"(@\.const\.picklebuf\.\S+ = .*constant \{[^}]*\} )\{[^}]*\}")
#: Everything that a built object may request from the process that loads it.
_OF_LIBC = {"free", "malloc", "memcpy", "memmove", "memset", "nextafter", "nextafterf", "sqrt"}


def signatures(name: str) -> Iterator[str]:
    """Yield the arguments for which a kernel is built, in Numba's notation."""
    arguments, kinds = SIGNATURES[name]
    return (f"({arguments.format(kind)},)" for kind in kinds)


def kind_of(argument: Any) -> str:
    """Return the kind of an argument's type, in the notation of `hushtable.kernels._built`."""
    from numba import types

    if isinstance(argument, types.Array):
        char = np.dtype(str(argument.dtype)).char
        return f"{char}{argument.ndim}{argument.layout}"
    if hasattr(argument, "types"):
        return f"({''.join(map(kind_of, argument.types))})"
    return {types.int64: "i", types.boolean: "b", types.none: "n"}[argument]


def build(level: str) -> None:
    """Compile for one level, in a process that has not imported Numba."""
    # LLVM's name of the level, without further features of the processor here.
    os.environ |= {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": "", "HUSHTABLE_JIT": "1"}
    with tempfile.TemporaryDirectory() as nothing:  # it does not reveal what Numba cached
        os.environ["NUMBA_CACHE_DIR"] = nothing
        module = _linked()
    # Large, as in Numba: the parts may be far from each other where they are loaded.
    target = llvm.Target.from_default_triple().create_target_machine(
        cpu=level, opt=3, reloc="static", codemodel="large"
    )
    _drop_unused(module, target)
    asked = {f.name for f in module.functions if f.is_declaration and "llvm." not in f.name}
    if asked - _OF_LIBC:
        raise RuntimeError(f"{level}: requests {sorted(asked - _OF_LIBC)}, which nothing provides")
    _write(level, target.emit_object(module))


def _write(level: str, code: bytes) -> None:
    """Write the kernels for a level, and remove those of other sources."""
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob(f"{level}-*.o"):
        old.unlink()
    path_of(level).write_bytes(hashlib.sha256(code).digest() + code)


def _linked() -> Any:
    """Return one LLVM module with all kernels and the memory functions that they need."""
    module = llvm.parse_assembly(_RUNTIME)
    for name in SIGNATURES:
        for signature in signatures(name):
            module.link_in(_compiled(getattr(kernels, name), name, signature))
    module.verify()
    return module


def _compiled(kernel: Any, name: str, signature: str) -> Any:
    """Return the LLVM of a kernel for one signature, with nothing else visible from outside."""
    from numba.core.sigutils import normalize_signature

    arguments, _ = normalize_signature(signature)  # type: ignore[no-untyped-call]
    kernel.compile(arguments)
    described = kernel.overloads[arguments].fndesc
    module = llvm.parse_assembly(_PICKLED.sub(r"\1zeroinitializer", kernel.inspect_llvm(arguments)))
    inner = module.get_function(described.llvm_func_name)  # raises if it is missing
    for held in (*module.functions, *module.global_variables):
        if not held.is_declaration and held.name != inner.name:
            held.linkage = "private"
    module.link_in(_called_by_words(inner, f"{name}:{''.join(map(kind_of, arguments))}"))
    module.get_function(described.llvm_func_name).linkage = "private"
    return module


def _called_by_words(inner: Any, name: str) -> Any:
    """Return a function that takes its arguments as words, and calls another with them."""
    types = [str(argument.type) for argument in inner.arguments][2:]
    lines, passed = [], ["ptr %returned", "ptr %failed"]
    for i, of_argument in enumerate(types):
        lines += [
            f"%at{i} = getelementptr i64, ptr %words, i64 {i}",
            f"%word{i} = load i64, ptr %at{i}",
        ]
        if of_argument == "i64":
            passed.append(f"i64 %word{i}")
            continue
        into = "inttoptr" if of_argument == "ptr" else "trunc"
        lines.append(f"%as{i} = {into} i64 %word{i} to {of_argument}")
        passed.append(f"{of_argument} %as{i}")
    body = "\n  ".join(lines)
    return llvm.parse_assembly(
        f"""
declare i32 @"{inner.name}"({", ".join(["ptr", "ptr", *types])})
define i32 @"{name}"(ptr %returned, ptr %words) {{
  %failed = alloca ptr
  {body}
  %code = call i32 @"{inner.name}"({", ".join(passed)})
  ret i32 %code
}}
"""
    )


def _drop_unused(module: Any, target: Any) -> None:
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options()))


def main(levels: list[str]) -> None:
    """Compile for one level in this process; for several in a process each, side by side."""
    if len(levels) == 1:
        build(levels[0])
        return
    command = [sys.executable, __file__]
    running = [subprocess.Popen([*command, level]) for level in levels]
    codes = [process.wait() for process in running]
    if any(codes):
        raise SystemExit("the kernels could not be built")


if __name__ == "__main__":
    main(sys.argv[1:] or [level for level in levels_here() if not path_of(level).is_file()])
