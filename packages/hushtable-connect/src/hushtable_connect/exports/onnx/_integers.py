"""Arithmetic of 32 bits as nodes of an ONNX graph: exact, without overflow.

Tensors are int64, of numbers below 2**32. Runtimes do not multiply unsigned numbers, and shift no
signed ones.
"""

import numpy as np

from hushtable_connect.exports.onnx._graph import Graph


def mixed(graph: Graph, key: str) -> str:
    """Add MurmurHash3's fmix32, as `hushtable.kernels._mix.mix`."""
    key = _times(graph, _shifted(graph, key, 16), 0x85EBCA6B)
    key = _times(graph, _shifted(graph, key, 13), 0xC2B2AE35)
    return _shifted(graph, key, 16)


def low_bits(graph: Graph, number: str, modulus: int) -> str:
    """Add the remainder of the division by a power of two."""
    return graph.add("BitwiseAnd", number, np.array(modulus - 1))


def high_bits(graph: Graph, number: str, bits: int) -> str:
    """Add a shift to the right."""
    shift = np.array(bits, np.uint64)
    number = graph.add("BitShift", graph.cast(number, "uint64"), shift, direction="RIGHT")
    return graph.cast(number, "int64")


def _shifted(graph: Graph, number: str, bits: int) -> str:
    return graph.add("BitwiseXor", number, high_bits(graph, number, bits))


def _times(graph: Graph, number: str, factor: int) -> str:
    """Add a product modulo 2**32: of halves, so that nothing exceeds 2**49."""
    low, high = low_bits(graph, number, 1 << 16), high_bits(graph, number, 16)
    upper = graph.add("Mul", high, np.array((factor << 16) & 0xFFFFFFFF))
    return low_bits(
        graph, graph.add("Add", graph.add("Mul", low, np.array(factor)), upper), 1 << 32
    )
