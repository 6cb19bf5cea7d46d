"""A million rows out of PostgreSQL cost little more than to fetch them, and no memory."""

import statistics
import sys

import pytest

from places import BENCH

sys.path.insert(0, str(BENCH / "benchmarks"))

import databases
from common import in_turns


@pytest.mark.serial
@pytest.mark.slow
def test_a_million_rows(postgres):
    url, rows = postgres.url(), 1_000_000
    databases.fill(url, rows)
    ways = databases.contestants(url, rows)
    del ways["Sketch.from_data"]
    fetch, read = (statistics.median(taken) for taken in in_turns(ways, repeats=3).values())
    assert read <= 2 * fetch
    few, many = (databases.peak(url, n) for n in (rows // 10, rows))
    assert many - few <= 64e6


def test_the_benchmark_runs_on_few_rows(postgres):
    databases.fill(postgres.url(), 100)
    for read in databases.contestants(postgres.url(), 100).values():
        read()
