"""The scripts in benchmarks/ import one another as neighbours; the tests import them likewise."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
