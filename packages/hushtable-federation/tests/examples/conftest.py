"""The examples are found in their folders, as if they were installed from there."""

import sys

from places import FEDERATION

for name in ("flower", "vantage6"):
    sys.path.append(str(FEDERATION / "examples" / name))
