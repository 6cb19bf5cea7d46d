"""The algorithm's package is found in its folder, as in an image it is installed from there."""

import sys

from places import FEDERATION

sys.path.append(str(FEDERATION / "vantage6"))
