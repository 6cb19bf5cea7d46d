"""Check the wheel in a folder, install it into an empty environment and use it there."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from zipfile import ZipFile

from packaging.metadata import Metadata

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
    assert "hushtable/known_columns.toml" in names, "the well-known columns are missing"
    assert "hushtable/report/page.html" in names, "the template of the report is missing"
    assert f"{info}/licenses/LICENSE" in names, "LICENSE is missing"
    assert metadata.description, "the README is missing"


def use(wheel: Path, folder: Path) -> None:
    """Install the wheel where nothing else is, run the demo and fit a detector."""
    # Without what the developer's shell adds: a user has neither our cache nor our path.
    env = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "PYTHONPATH")}
    python = folder / "env" / "bin" / "python"
    for command in (
        [sys.executable, "-m", "venv", "env"],
        [python, "-m", "pip", "install", "--quiet", wheel],
        [python, "-m", "pip", "check", "--quiet"],
        [python.with_name("hushtable"), "demo"],
        [python, "-W", "error", "-c", FIT],
    ):
        subprocess.run(command, cwd=folder, env=env, check=True)


if __name__ == "__main__":
    (wheel,) = Path(sys.argv[1]).resolve().glob("*.whl")
    check_content(wheel)
    with tempfile.TemporaryDirectory() as folder:
        use(wheel, Path(folder))
    print(f"{wheel.name}: {wheel.stat().st_size / 1000:.0f} kB, installed and used")
