"""Whatever bytes a reader gets: a result, or an error of ours, in bounded memory and time."""

import contextlib
import os

import hypothesis
import inputs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inputs import limited
from targets import TARGETS

from hushtable.errors import HushTableError

EDITED = sorted(name for name in TARGETS if name.endswith("-edited"))
#: What a run of ``-m slow`` tries of each target.
MANY = int(os.environ.get("HUSHTABLE_INPUTS", "1000"))


def attack(name, data):
    target = TARGETS[name]
    with contextlib.suppress(HushTableError), limited(target.most_bytes):
        target.read(data)


@pytest.mark.parametrize("name", sorted(set(TARGETS) - set(EDITED)))
def test_the_seeds_are_valid(name):
    """Else the fuzzer would begin outside, and never come in."""
    # A request is no answer, nor an answer a request.
    refused = HushTableError if name == "messages" else ()
    for seed in TARGETS[name].seeds():
        with contextlib.suppress(refused):
            TARGETS[name].read(seed)


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus(name):
    assert inputs.kept(name)
    for data in [*TARGETS[name].seeds(), *inputs.kept(name), *inputs.findings(name)]:
        attack(name, data)


@st.composite
def damaged(draw, name):
    """One of the seeds with a few bytes changed, taken away or put in."""
    data = bytearray(draw(st.sampled_from(TARGETS[name].seeds())))
    for _ in range(draw(st.integers(1, 4))):
        at, length = draw(st.integers(0, len(data))), draw(st.integers(0, 8))
        data[at : at + length] = draw(st.binary(max_size=8))
    return bytes(data)


def some_input(name):
    """Programs of edits, or damaged seeds and bytes of no kind at all."""
    if name in EDITED:
        return st.binary(min_size=1, max_size=40)
    return damaged(name) | st.binary(max_size=60)


def tried(name, examples):
    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), database=None)
    @given(st.data())
    def attacked(data):
        attack(name, data.draw(some_input(name)))

    attacked()


def test_other_inputs():
    tried("messages", 15)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_many_other_inputs(name):
    tried(name, MANY)
    print(f"{name}: {MANY:,} inputs by hypothesis {hypothesis.__version__}")
