"""Helpers of rounds are beside the tests of rounds."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "federation"))
