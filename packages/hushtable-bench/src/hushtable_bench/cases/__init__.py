"""Cases, timed and judged: one function each, run by `hushtable_bench.runner`."""
