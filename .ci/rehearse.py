"""Rehearse a release: upload the wheels to a local index, install from it, and follow the README.

    python .ci/rehearse.py dist

pypiserver is the index, and twine uploads as the workflow does. The `pip install` commands of
README.md run in an empty environment, where packages of this repository can come from that index
only; other libraries come from the index that pip is configured for. The README's blocks then run
in order, without a network where the system allows that (unshare).
"""

import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / ".ci"), str(ROOT / "tests" / "helpers")]

from check_wheel import offline  # noqa: E402 (their folders are on the path only now)

from docs_reader import blocks  # noqa: E402

SUPPLY = ROOT / ".venv-supply" / "bin"
PORT = 8765
INDEX = f"http://127.0.0.1:{PORT}"
#: Follows the README in the environment with the packages.
FOLLOW = """
import sys
from pathlib import Path
from docs_pages import PAGES
import hushtable
assert Path(sys.prefix) in Path(hushtable.__file__).parents, hushtable.__file__
PAGES["README.md"].follow("README.md", Path.cwd())
print("README.md: every block ran, with hushtable", hushtable.__version__)
"""


@contextmanager
def index(folder: Path) -> Iterator[None]:
    """Serve an empty index from a folder; everyone on this machine may upload to it."""
    command = [SUPPLY / "pypi-server", "run", "-p", str(PORT), "-i", "127.0.0.1"]
    open_to_all = ["-P", ".", "-a", ".", "--disable-fallback", folder]
    server = subprocess.Popen([*command, *open_to_all], stderr=subprocess.DEVNULL)
    try:
        for _ in range(100):
            try:
                urllib.request.urlopen(INDEX).close()
                break
            except OSError:
                time.sleep(0.1)
        else:
            sys.exit(f"the index does not answer at {INDEX}")
        yield
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    """Rehearse the release in the named folder."""
    files = sorted(Path(sys.argv[1]).glob("hushtable*"))
    wheels = [file for file in files if file.suffix in (".whl", ".gz")]
    if not wheels:
        sys.exit(f"no wheel in {sys.argv[1]}: run make wheel first")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("index", "here"):
            (folder / part).mkdir()
        env = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "PYTHONPATH")}
        env |= {"HOME": name}
        python = folder / "env" / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
        with index(folder / "index"):
            upload = [SUPPLY / "twine", "upload", "--repository-url", INDEX, "-u", "", "-p", ""]
            subprocess.run([*upload, "--disable-progress-bar", *wheels], check=True)
            local = ["--index-url", f"{INDEX}/simple/", "--extra-index-url", _configured()]
            for line in _installs():
                print(f"==> {line}", flush=True)
                words = [word.strip("'") for word in line.split()[1:]]
                command = [python, "-m", "pip", *words, "--quiet", *local]
                subprocess.run(command, check=True, env=env)
        subprocess.run([python, "-m", "pip", "check"], check=True, env=env)
        env |= {"PYTHONPATH": str(ROOT / "tests" / "helpers")}
        follow = [*offline(), python, "-c", FOLLOW]
        subprocess.run(follow, check=True, env=env, cwd=folder / "here")


def _installs() -> list[str]:
    found = [block.text for block in blocks(ROOT / "README.md") if block.language == "sh"]
    return [line for text in found for line in text.splitlines() if line.startswith("pip install")]


def _configured() -> str:
    command = [SUPPLY / "python", "-m", "pip", "config", "get", "global.index-url"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.strip() or "https://pypi.org/simple"


if __name__ == "__main__":
    main()
