"""Fixtures of rounds."""

import numpy as np
import pytest
from round_helpers import Consortium


@pytest.fixture
def consortium(tmp_path):
    made = []

    def make(k=3, **options):
        folder = tmp_path / f"consortium{len(made)}"
        folder.mkdir()
        made.append(Consortium(folder, k, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def those(consortium):
    """Three sites."""
    return consortium(3)


@pytest.fixture
def quick_noise(monkeypatch):
    """Noise that is drawn fast, for sums over many sites: what is summed is the same."""
    rng = np.random.default_rng(1)

    def add_noise(counts, mechanism, scale, *, progress=None):
        return counts + np.rint(rng.normal(0.0, scale, len(counts))).astype(np.int64)

    monkeypatch.setattr("hushtable.privacy.noise.add_noise", add_noise)
