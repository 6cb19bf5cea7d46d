"""The base of all counts: what each kind may do, and what it refuses."""

import pytest

import places
from hushtable import files
from hushtable.counts.base import mergeable
from hushtable.counts.kinds import counts_from_file
from hushtable.errors import PlanError, PrivacyError, UsageError
from hushtable.scores.scorer import Scorer
from hushtable_connect.engines.work import counts_of
from hushtable_federation.layout import Sealed

ROUNDS = places.GOLDEN / "protocol-1" / "rounds"


@pytest.fixture
def sealed():
    return files.read(ROUNDS / "sealed.hush").build(Sealed.from_file)


@pytest.fixture
def local():
    return files.read(ROUNDS / "local.hush").build(counts_from_file)


def test_a_sealed_result_scores_nothing(sealed):
    assert sealed.hidden
    assert sealed.n_tables == len(sealed.layout.cells)
    with pytest.raises(PlanError, match="the hash functions are hidden"):
        Scorer(sealed)
    with pytest.raises(UsageError, match="is not a model"):
        counts_of(sealed)


def test_what_does_not_add(sealed, local):
    assert mergeable(sealed) is mergeable(local) is None
    with pytest.raises(PrivacyError, match="a sealed result cannot be added"):
        sealed + sealed
    with pytest.raises(PrivacyError, match="exact counts of its site"):
        local + local


def test_only_noised_counts_may_leave(sealed, local):
    assert sealed.may_leave
    assert not local.may_leave
    assert counts_of(local) is local
