"""Measure what the project claims: all that ``hushtable bench`` runs, and only that.

May import every room but the command line. Scripts that time things, or race other packages,
lie in benchmarks/, outside the package. Tested by ``tests/bench`` on made-up sets; the promises
themselves by its slow tests, where there are labelled sets.
"""
