"""Check the wheels in a folder, and use them in an empty environment.

With --twice, they are built again elsewhere and have to be the same bytes. They are used without a
network if the system allows that (unshare), with dependencies in the locked versions. For another
Python: --python /path/to/python.
"""

import argparse
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from zipfile import ZipFile

from packaging.metadata import Metadata

from hushtable.kernels._built import levels_here

ROOT = Path(__file__).parents[1]
LOCK = ROOT / ".ci" / "locks" / "dev.txt"
#: All sources of the wheels and the source distributions.
SOURCES = (".gitignore", "pyproject.toml", "packages")
#: For each package, files that its wheel needs besides py.typed.
NEEDED = {
    "hushtable": ("data/known_columns.toml", "report/page.html"),
    "hushtable_bench": ("paper/published.toml", "known.toml"),
    "hushtable_connect": ("omop/concepts.toml",),
    "hushtable_desk": (
        "templates/base.html",
        "static/desk.js",
        "static/desk.css",
        "locale/de/LC_MESSAGES/desk.mo",
    ),
    "hushtable_federation": ("policy.toml", "site.toml"),
}

FIT = """
import sys, time
start = time.perf_counter()
import numpy as np
from hushtable import HushTable

X = np.random.default_rng(0).normal(size=(2000, 10))
X[7] = 9.0
detector = HushTable(random_state=0).fit(X)
assert detector.score_samples(X).argmin() == 7
detector.explain(X[:2])
print("numba" in sys.modules, time.perf_counter() - start)
"""


def check_content(wheel: Path) -> None:
    """Check that a wheel is typed and licensed, holds only the package, and has valid metadata."""
    with ZipFile(wheel) as archive:
        names = archive.namelist()
        info = next(name.split("/")[0] for name in names if ".dist-info/" in name)
        metadata = Metadata.from_email(archive.read(f"{info}/METADATA"), validate=True)
    package = info.partition("-")[0]
    assert {name.split("/")[0] for name in names} == {package, info}, names
    for name in ("py.typed", *NEEDED[package]):
        assert f"{package}/{name}" in names, f"{wheel.name}: {name} is missing"
    assert f"{info}/licenses/LICENSE" in names, "LICENSE is missing"
    assert metadata.description, "the README is missing"
    built = [name for name in names if name.startswith("hushtable/kernels/built/")]
    levels = 0 if wheel.name.endswith("-any.whl") else len(levels_here())
    assert len(built) == levels, f"{wheel.name} has {built}"


def build_again(built: Path, folder: Path) -> None:
    """Build a copy elsewhere, later, under another umask and time zone; compare the bytes."""
    there = folder / "elsewhere" / "sources"
    for path in (Path(name) for name in SOURCES):
        target = there / path
        target.parent.mkdir(parents=True, exist_ok=True)
        # Copies without the files' times.
        if path.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "built")
            shutil.copytree(path, target, ignore=ignored, copy_function=shutil.copy)
        else:
            shutil.copyfile(path, target)
    env = os.environ | {"TZ": "Pacific/Kiritimati", "PYTHONHASHSEED": "7"}
    for package in sorted((there / "packages").iterdir()):
        core = package.name == "hushtable"
        for options, more in [([], {})] + [(["--wheel"], {"HUSHTABLE_BUILD_KERNELS": "1"})] * core:
            build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", there / "dist"]
            subprocess.run(
                [*build, package, *options],
                env=env | more, umask=0o077, check=True, stdout=subprocess.DEVNULL,
            )  # fmt: skip
    for file in sorted(built.glob("hushtable*")):
        assert file.read_bytes() == (there / "dist" / file.name).read_bytes(), (
            f"{file.name} is not the same when it is built again"
        )


@functools.cache
def offline() -> list[str]:
    """Return the prefix that runs a command without a network; empty if there is none."""
    without = ["unshare", "--map-root-user", "--net"]
    if shutil.which("unshare") is None or subprocess.run([*without, "true"]).returncode:
        print("used with a network: unshare cannot remove it here")
        return []
    return without


def use(pure: Path, platform: Path, folder: Path, base: str) -> None:
    """Install the wheels and the sources in empty environments; run the demo and fit a detector."""
    # Without the developer's variables: a user has neither our cache nor our path.
    ours = ("NUMBA_CACHE_DIR", "PYTHONPATH")
    env = {k: v for k, v in os.environ.items() if k not in ours} | {"HOME": str(folder)}
    python = folder / "env" / "bin" / "python"
    uv = ROOT / ".venv-supply" / "bin" / "uv"
    install = [uv, "pip", "install", "--quiet", "--python", python]
    again = [*install, "--no-deps", "--reinstall-package", "hushtable"]
    for command in (
        [base, "-m", "venv", "env"],
        [*install, "--constraint", LOCK, pure],
        [uv, "pip", "check", "--quiet", "--python", python],
        [*offline(), python.with_name("hushtable"), "demo"],
    ):
        subprocess.run(command, cwd=folder, env=env, check=True)
    empty = env | {"XDG_CACHE_HOME": str(folder / "empty")}
    first_use("compiled on use", python, empty | {"HUSHTABLE_JIT": "1"}, True)
    first_use("in plain NumPy", python, empty, False)
    subprocess.run([*again, platform], cwd=folder, env=env, check=True)
    if base == sys.executable:  # the version that the kernels are for
        first_use("with built kernels", python, env, False)
    sources = next(pure.parent.glob("hushtable-*.tar.gz"))
    subprocess.run([*again, "--build-constraint", LOCK, sources], cwd=folder, env=env, check=True)
    first_use("from the sources", python, env | {"XDG_CACHE_HOME": str(folder / "new")}, False)


def first_use(kind: str, python: Path, env: dict[str, str], compiles: bool) -> None:
    """Fit in a separate process; print the seconds from import to scores and reasons."""
    command = [*offline(), python, "-W", "error", "-c", FIT]
    done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    numba, seconds = done.stdout.split()
    assert (numba == "True") == compiles, f"{kind}: Numba imported: {numba}"
    print(f"first use {kind}: {float(seconds):.1f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", default=sys.executable, help="default: this one")
    parser.add_argument("--twice", action="store_true", help="build them again, and compare")
    options = parser.parse_args()
    wheels = sorted(options.folder.resolve().glob("*.whl"))
    core = [wheel for wheel in wheels if wheel.name.startswith("hushtable-")]
    pure, for_platform = sorted(core, key=lambda wheel: not wheel.name.endswith("-any.whl"))
    for wheel in wheels:
        check_content(wheel)
    with tempfile.TemporaryDirectory() as folder:
        if options.twice:
            build_again(pure.parent, Path(folder))
        use(pure, for_platform, Path(folder), options.python)
    for wheel in wheels:
        done = "built twice identically, and used" if options.twice else "used"
        print(f"{wheel.name}: {wheel.stat().st_size / 1000:.0f} kB, {done}")
