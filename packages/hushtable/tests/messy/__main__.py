"""Print what becomes of each messy file: outcome, ROC-AUC clean and messy, and the options.

python -m tests.messy            all cases
python -m tests.messy bank sap   those whose names hold one of the words
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from messy_clean import CLEAN
from messy_corpus import in_order, verdict


def main(words: list[str]) -> int:
    """Judge the cases; return 1 if any fails."""
    failed = 0
    print(f"{'case':<45} {'outcome':<18} {'clean':>6} {'messy':>6}  options")
    chosen = {name: case for name, case in {**in_order(), **CLEAN}.items()
              if not words or any(word in name for word in words)}  # fmt: skip
    for name, case in chosen.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(verdict(case, Path(folder)))
            except Exception as error:  # every fault is one line of the table
                failed += 1
                first = str(error).strip().partition("\n")[0]
                print(f"{name:<45} FAILED: {type(error).__name__}: {first[:300]}")
    print(f"{len(chosen) - failed} of {len(chosen)} right, or refused with a remedy that works")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
