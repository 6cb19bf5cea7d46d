"""Timed and judged cases: one function each, which `hushtable_bench.runner` runs."""
