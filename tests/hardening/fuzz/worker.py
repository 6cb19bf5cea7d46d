"""Attack one target with atheris for a while: ``worker.py TARGET SECONDS SEED FOLDER``.

The folder holds the corpus, in ``corpus/TARGET``, and what was found, in ``findings``.
"""

import base64
import contextlib
import hashlib
import sys
import traceback
import warnings
from pathlib import Path

import atheris

# First, and as they are: Numba compiles from the same bytecode.
from hushtable.kernels import (  # noqa: F401
    _differences,
    _encode,
    _equi_width,
    _gains,
    _plain,
    _random_feature,
    _row_hash,
)

with atheris.instrument_imports(include=["hushtable"]):
    from targets import TARGETS

import seeds
from inputs import TooSlow, limited

from hushtable.errors import HushTableError
from hushtable_federation import clock


def main() -> None:
    """Fuzz until the time is over; libFuzzer then ends the process."""
    name, seconds, chance, folder = sys.argv[1:]
    target, here = TARGETS[name], Path(folder)
    clock.read = lambda: seeds.NOW
    warnings.simplefilter("error")  # a user sees them, and an overflow is a wrong result
    warnings.filterwarnings("ignore", "X (has|does not have)")  # for this, users are to see one
    warnings.filterwarnings("ignore", "contamination=|Many rows are outside|context=")  # likewise
    corpus = here / "corpus" / name
    for each in (corpus, here / "findings"):
        each.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds()):
        (corpus / f"seed{number}").write_bytes(seed)
        # What is made once, such as compiled kernels, is not an input's fault.
        with contextlib.suppress(Exception):
            target.read(seed)
    known: set[str] = set()

    def attempt(data: bytes) -> None:
        with limited(target.most_bytes):
            target.read(data)

    def one(data: bytes) -> None:
        try:
            try:
                attempt(data)
            except TooSlow:  # perhaps a kernel was compiled, which happens once
                attempt(data)
        except HushTableError:
            pass
        except Exception as error:
            place = _place(error)
            if place not in known:
                known.add(place)
                digest = hashlib.sha256(data).hexdigest()[:12]
                (here / "findings" / f"{name}.{digest}").write_bytes(data)
                line = f"FINDING {name} {digest} {place}: {str(error)[:200]!r}"
                # With the input, from which it can be done again where there is only a log.
                print(line, base64.b64encode(data[:1_000]).decode(), flush=True)

    options = [
        f"-max_total_time={seconds}",
        f"-seed={chance}",
        "-max_len=100000",
        "-rss_limit_mb=8000",
        "-timeout=60",
    ]
    options += [f"-artifact_prefix={here / 'findings' / name}.", "-print_final_stats=1"]
    atheris.Setup([name, *options, str(corpus)], one)
    atheris.Fuzz()


def _place(error: BaseException) -> str:
    """Return the kind of an error, and the last line of the package that it came through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/src/hushtable/" in frame.filename] or frames
    last = ours[-1]
    return f"{type(error).__name__} in {last.filename.rpartition('/src/')[2]}:{last.lineno}"


if __name__ == "__main__":
    main()
