"""The base of all counts: what each kind may do, and what it refuses."""

import pytest

import places
from hushtable import files
from hushtable.counts.base import mergeable
from hushtable.counts.kinds import counts_from_file
from hushtable.errors import PrivacyError

ROUNDS = places.GOLDEN / "protocol-1" / "rounds"


@pytest.fixture
def local():
    return files.read(ROUNDS / "local.hush").build(counts_from_file)


def test_what_does_not_add(local):
    assert mergeable(local) is None
    with pytest.raises(PrivacyError, match="exact counts of its site"):
        local + local


def test_only_noised_counts_may_leave(local):
    assert not local.may_leave
