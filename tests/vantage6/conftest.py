"""The algorithm's package is found in its folder, as in an image it is installed from there."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
for folder in ("vantage6", "tests/databases", "tests/hardening/docs"):
    sys.path.append(str(ROOT / folder))
