"""Benchmarks that the command line runs."""
