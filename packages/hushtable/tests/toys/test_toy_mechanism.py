"""A mechanism is added by one file and one call of `register`."""

import numpy as np
import pytest

from hushtable import Feature, Plan, Schema, Sketch, load
from hushtable.describe import describe_ledger
from hushtable.errors import PrivacyError, UsageError
from hushtable.privacy import Ledger, Pool, ReleaseTerms
from hushtable.privacy.mechanisms import MECHANISMS, register
from toy_mechanism import Geometric

SCHEMA = Schema([Feature.numeric("a", low=0, high=1), Feature.numeric("b", low=0, high=1)])
TERMS = {"mechanism": Geometric.name}


@pytest.fixture(autouse=True)
def geometric():
    register(Geometric())
    yield
    del MECHANISMS[Geometric.name]


@pytest.fixture
def releases(rng):
    plan = Plan.draw(SCHEMA, random_state=0, n_tables=7)
    sites = [Sketch.from_data(plan, rng.random((50, 2))) for _ in range(2)]
    return [sketch.release(ReleaseTerms(0.9, **TERMS)) for sketch in sites]


def test_a_sketch_is_released_with_it(releases):
    release = releases[0]
    assert release.ledger.shares[0].scale == 8.0  # 7 / 0.9, rounded up to a whole number
    assert (release.ledger.epsilon, release.ledger.delta) == (7 / 8, 0.0)
    assert release.noise_sd == Geometric().noise_sd(8.0)
    assert describe_ledger(release.ledger)[0].endswith("at most a factor e^0.875.")


def test_its_ledgers_add_and_travel(releases, tmp_path):
    merged = releases[0] + releases[1]
    merged.save(tmp_path / "all.hush")
    back = load(tmp_path / "all.hush")
    assert back.ledger == merged.ledger
    assert np.array_equal(back.counts, merged.counts)
    assert back.ledger.epsilon_at(2) == 2 * 7 / 8
    with pytest.raises(PrivacyError, match="different mechanisms"):
        releases[0].ledger + Sketch.zero(releases[0].plan).release(1.0).ledger


def test_later_releases_pay_for_it(releases):
    sketch = Sketch.zero(releases[0].plan)
    with pytest.raises(PrivacyError, match="is exhausted"):
        sketch.release(0.8, after=releases[0], **TERMS)
    assert sketch.release(2.0, after=releases[0], **TERMS).ledger.epsilon <= 2.0


def test_it_refuses_to_be_shared(releases):
    ledger = releases[0].ledger
    with pytest.raises(PrivacyError, match="toy-geometric noise cannot be shared"):
        Ledger(ledger.mechanism, ledger.sensitivity, 0.0, ledger.shares, pool=Pool("8e01", 3, 2))


def test_an_audit_holds_it_to_its_claim():
    audit = pytest.importorskip("hushtable_bench.systems.audit", reason="needs hushtable-bench")
    terms = {"mechanism": Geometric.name, "tables": 7, "draws": 2000, "delta": 0.0}
    assert not audit.audit_noise(scale=8.0, epsilon=7 / 8, confidence=1 - 1e-7, **terms).rejects
    assert audit.audit_noise(scale=1.0, epsilon=7 / 8, **terms).rejects


def test_a_name_is_taken_once():
    with pytest.raises(UsageError, match="already"):
        register(Geometric())
