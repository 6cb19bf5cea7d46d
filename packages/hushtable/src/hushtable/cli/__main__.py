"""Run ``python -m hushtable.cli``, which is the same as the command ``hushtable``."""

import sys

from hushtable.cli import main

if __name__ == "__main__":
    sys.exit(main())
