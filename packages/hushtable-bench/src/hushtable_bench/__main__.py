"""``python -m hushtable_bench CASE``."""

import sys

from hushtable_bench.runner import main

sys.exit(main())
