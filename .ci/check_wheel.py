"""Check the wheel in a folder, build it again, and use it in an empty environment.

With LOCKED=1, what it needs is installed in the locked versions.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from zipfile import ZipFile

from packaging.metadata import Metadata

LOCKED = bool(os.environ.get("LOCKED"))
#: All that the wheel and the source distribution are made from.
SOURCES = (
    ".gitignore", "CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml",
    "flower", "src", "tests",
)  # fmt: skip

FIT = """
import numpy as np
from hushtable import HushTable

X = np.random.default_rng(0).normal(size=(500, 3))
X[7] = 9.0
assert HushTable(random_state=0).fit(X).score_samples(X).argmin() == 7
"""


def check_content(wheel: Path) -> None:
    """Pure, typed, licensed, nothing but the package, and metadata that an index accepts."""
    assert wheel.name.endswith("-py3-none-any.whl"), f"not a pure wheel: {wheel.name}"
    with ZipFile(wheel) as archive:
        names = archive.namelist()
        info = next(name.split("/")[0] for name in names if ".dist-info/" in name)
        metadata = Metadata.from_email(archive.read(f"{info}/METADATA"), validate=True)
    assert {name.split("/")[0] for name in names} == {"hushtable", info}, names
    assert "hushtable/py.typed" in names, "py.typed is missing"
    assert "hushtable/data/known_columns.toml" in names, "the well-known columns are missing"
    assert "hushtable/bench/paper/published.toml" in names, "the paper's figures are missing"
    assert "hushtable/bench/adbench/known.toml" in names, "figures of others are missing"
    assert "hushtable/report/page.html" in names, "the template of the report is missing"
    assert f"{info}/licenses/LICENSE" in names, "LICENSE is missing"
    assert metadata.description, "the README is missing"


def build_again(built: Path, folder: Path) -> None:
    """Build from a copy elsewhere, later, under another umask and time zone: the same bytes."""
    there = folder / "elsewhere" / "sources"
    for path in (Path(name) for name in SOURCES):
        target = there / path
        target.parent.mkdir(parents=True, exist_ok=True)
        # Not with their times.
        if path.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(path, target, ignore=ignored, copy_function=shutil.copy)
        else:
            shutil.copyfile(path, target)
    isolation = ["--no-isolation"] if LOCKED else []
    subprocess.run(
        [sys.executable, "-m", "build", *isolation, there],
        env=os.environ | {"TZ": "Pacific/Kiritimati", "PYTHONHASHSEED": "7"},
        umask=0o077, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    for file in sorted(built.glob("hushtable-*")):
        assert file.read_bytes() == (there / "dist" / file.name).read_bytes(), (
            f"{file.name} is not the same when it is built again"
        )


def use(wheel: Path, folder: Path) -> None:
    """Install the wheel where nothing else is, run the demo and fit a detector."""
    # Without what the developer's shell adds: a user has neither our cache nor our path.
    env = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "PYTHONPATH")}
    python = folder / "env" / "bin" / "python"
    locked = ["--require-hashes", "--requirement", Path(".ci/locks/package.txt").resolve()]
    install = [python, "-m", "pip", "install", "--quiet"]
    steps = [[*install, *locked], [*install, "--no-deps", wheel]] if LOCKED else [[*install, wheel]]
    for command in (
        [sys.executable, "-m", "venv", "env"],
        *steps,
        [python, "-m", "pip", "check", "--quiet"],
        [python.with_name("hushtable"), "demo"],
        [python, "-W", "error", "-c", FIT],
    ):
        subprocess.run(command, cwd=folder, env=env, check=True)


if __name__ == "__main__":
    (wheel,) = Path(sys.argv[1]).resolve().glob("*.whl")
    check_content(wheel)
    with tempfile.TemporaryDirectory() as folder:
        build_again(wheel.parent, Path(folder))
        use(wheel, Path(folder))
    print(f"{wheel.name}: {wheel.stat().st_size / 1000:.0f} kB, built twice alike, installed, used")
