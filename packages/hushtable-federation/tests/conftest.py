"""Fixtures of rounds."""

import os
import tempfile
from pathlib import Path

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

    monkeypatch.setattr("hushtable.privacy.mechanisms.add_noise", add_noise)


@pytest.fixture(scope="module")
def shared():
    """Give the module's consortium of so many sites, whose budgets last for all its rounds.

    Its books are in memory where there is such a folder: nothing here is about disks.
    """
    made = {}

    def give(k):
        if k not in made:
            (Path(folder) / f"of{k}").mkdir()
            made[k] = Consortium(Path(folder) / f"of{k}", k, cap=20.0, epsilon=0.05)
        return made[k]

    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield give
        for one in made.values():
            one.close()
