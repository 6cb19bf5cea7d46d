"""``python -m hushtable_bench CASE``: the same as ``hushtable bench CASE``."""

import sys

from hushtable.cli import main

sys.exit(main(["bench", *sys.argv[1:]]))
