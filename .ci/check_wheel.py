"""Check the wheels in a folder, and use them in empty environments.

    python .ci/check_wheel.py dist            check their content, install and use them
    python .ci/check_wheel.py dist --twice    build the last commit elsewhere, too: the same bytes
    python .ci/check_wheel.py dist --extras   install each extra alone, too, and use it

They are used without a network if the system allows that (unshare), with dependencies in the locked
versions.
"""

import functools
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from zipfile import ZipFile

from hushtable.kernels._built import levels_here, path_of

ROOT = Path(__file__).parents[1]
LOCKS = ROOT / ".ci" / "locks"
FIT = """
import sys
import numpy as np
from hushtable import HushTable

X = np.random.default_rng(0).normal(size=(2000, 10))
X[7] = 9.0
detector = HushTable(random_state=0).fit(X)
assert detector.score_samples(X).argmin() == 7
detector.explain(X[:2])
print("numba" in sys.modules)
"""
ROWS = """
import numpy as np
from hushtable import Feature, HushTable, Plan, Schema, Sketch
import hushtable.cli as command
X = np.random.default_rng(0).normal(size=(300, 2))
detector = HushTable(n_tables=20, random_state=0).fit(X)
plan = Plan.draw(Schema([Feature.numeric(name, low=-9, high=9) for name in "ab"]), random_state=0)
"""
RELEASE = ROWS + "Sketch.from_data(plan, X).release(epsilon=1.0, delta=1e-6)"
EXPORT = ROWS + "from hushtable_connect.exports import export\nexport(detector, 'm.%s')"
#: For each extra, a program that uses it.
USES = {
    "connect": EXPORT % "json",
    "bench": "import hushtable_bench, matplotlib, pooch, pyod",
    "dask": "import dask.array, dask.dataframe, distributed, hushtable_connect.engines.dask",
    "databases": "import duckdb, adbc_driver_postgresql",
    "desk": "from hushtable_desk import Access, Desk, build_app\nbuild_app(Desk('.'), Access(1))",
    "federation": RELEASE + "\ncommand.main(['round', 'keygen', 'lead'])\n"
    "assert command.main(['demo']) == 0",
    "files": "import duckdb, pyreadstat, hushtable_connect.statistics",
    "keyring": "import keyring, hushtable_federation.credentials",
    "nvflare": "import hushtable_federation.nvflare",
    "onnx": EXPORT % "onnx",
    "private": RELEASE,
    "pyod": ROWS + "from hushtable_connect.pyod import PyODAdapter\nPyODAdapter().fit(X)",
    "remote": "from hushtable import far\nprint(far.connect('memory://x'))",
    "report": ROWS + "detector.save('m.hush')\ncommand.main(['report', 'm.hush', '-o', 'r.html'])",
    "spark": "import hushtable_connect.engines.spark, pyspark, pandas",
}


def check_content(wheel: Path) -> None:
    """Check that a wheel has its licence, all files of its package, and no others but kernels."""
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
    package = wheel.name.partition("-")[0]
    source = ROOT / "packages" / package.replace("_", "-") / "src"
    listed = subprocess.check_output(["git", "ls-files", package], cwd=source, text=True).split()
    kernels = {f"hushtable/kernels/built/{path_of(level).name}" for level in levels_here()}
    expected = {*listed} | (set() if wheel.name.endswith("-any.whl") else kernels)
    found = {name for name in names if ".dist-info/" not in name}
    assert found == expected, f"{wheel.name}: missing or foreign: {sorted(found ^ expected)}"
    assert any(name.endswith("/licenses/LICENSE") for name in names), "LICENSE is missing"


def build_again(dist: Path, there: Path) -> None:
    """Build the last commit elsewhere, later, under another umask and time zone; compare."""
    subprocess.run(["git", "clone", "--quiet", ROOT, there], umask=0o077, check=True)
    env = os.environ | {"TZ": "Pacific/Kiritimati", "PYTHONHASHSEED": "7"}
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", there / "dist"]
    run = functools.partial(subprocess.run, umask=0o077, check=True, stdout=subprocess.DEVNULL)
    for package in (there / "packages").iterdir():
        run([*build, package], env=env)
    kernels = {"HUSHTABLE_BUILD_KERNELS": "1"}
    run([*build, "--wheel", there / "packages" / "hushtable"], env=env | kernels)
    for file in sorted(dist.glob("hushtable*")):
        same = file.read_bytes() == (there / "dist" / file.name).read_bytes()
        assert same, f"{file.name} is not the same when it is built again"


@functools.cache
def offline() -> list[str]:
    """Return the prefix that runs a command without a network; empty if there is none."""
    without = ["unshare", "--map-root-user", "--net"]
    if shutil.which("unshare") is None or subprocess.run([*without, "true"]).returncode:
        print("used with a network: unshare cannot remove it here")
        return []
    return without


class Environment:
    """An empty environment in a new folder, without the developer's compiled kernels and paths.

    What uv has downloaded is shared, because an environment of its own takes a gigabyte.
    """

    def __init__(self, folder: Path, dist: Path, lock: str = "dev") -> None:
        self.folder, self.python = folder, folder / "env" / "bin" / "python"
        ours = ("NUMBA_CACHE_DIR", "PYTHONPATH")
        self.env = {k: v for k, v in os.environ.items() if k not in ours} | {"HOME": str(folder)}
        self._uv = ROOT / ".venv-supply" / "bin" / "uv"
        downloads = subprocess.check_output([self._uv, "cache", "dir"], text=True).strip()
        self.env["UV_CACHE_DIR"] = downloads
        self._versions = ["--find-links", dist, "--constraint", LOCKS / f"{lock}.txt"]
        self._versions += ["--build-constraint", LOCKS / "dev.txt"]
        folder.mkdir()
        self.run(sys.executable, "-m", "venv", "--without-pip", "env")

    def run(self, *command: object) -> None:
        """Run a command in the folder."""
        subprocess.run([*command], cwd=self.folder, env=self.env, check=True)

    def install(self, *what: object) -> None:
        """Install wheels or sources; check that everything fits together."""
        command = [self._uv, "pip", "install", "--quiet", "--python", self.python]
        self.run(*command, *self._versions, *what)
        self.run(self._uv, "pip", "check", "--quiet", "--python", self.python)

    def first_use(self, kind: str, compiles: bool, **more: str) -> None:
        """Fit in a separate process, without the network."""
        command = [*offline(), self.python, "-W", "error", "-c", FIT]
        env = self.env | {"XDG_CACHE_HOME": str(self.folder / kind)} | more
        numba = subprocess.check_output(command, env=env, text=True).strip()
        assert numba == str(compiles), f"{kind}: Numba imported: {numba}"


def use(here: Environment, pure: Path, platform: Path, sources: Path) -> None:
    """Call the command line, and fit a detector with each kind of kernels."""
    again = ("--no-deps", "--reinstall-package", "hushtable")
    here.install(pure)
    here.run(*offline(), here.python.with_name("hushtable"), "--help")
    here.first_use("compiled on use", True, HUSHTABLE_JIT="1")
    here.first_use("in plain NumPy", False)
    here.install(*again, platform)
    here.first_use("with built kernels", False)
    here.install(*again, sources)
    here.first_use("from the sources", False)


def check_extras(folder: Path, pure: Path) -> None:
    """Use each extra in an environment with the core, that extra, and nothing else."""
    project = tomllib.loads((ROOT / "packages/hushtable/pyproject.toml").read_text())["project"]
    unlike = project["optional-dependencies"].keys() ^ USES.keys()
    assert not unlike, f"USES and the extras of the package differ in {unlike}"
    for extra, program in sorted(USES.items()):
        lock = extra if (LOCKS / f"{extra}.txt").exists() else "dev"
        here = Environment(folder / extra, pure.parent, lock)
        here.install(f"{pure}[{extra}]")
        here.run(here.python, "-c", program)


def main() -> None:
    """Check the wheels of the named folder."""
    dist = Path(sys.argv[1]).resolve()
    [sources] = dist.glob("hushtable-*.tar.gz")
    [pure] = dist.glob("hushtable-*-any.whl")
    [platform] = {*dist.glob("hushtable-*.whl")} - {pure}
    for wheel in sorted(dist.glob("*.whl")):
        check_content(wheel)
    with tempfile.TemporaryDirectory() as name:
        if "--twice" in sys.argv:
            build_again(dist, Path(name) / "elsewhere")
        use(Environment(Path(name) / "used", dist), pure, platform, sources)
        if "--extras" in sys.argv:
            check_extras(Path(name), pure)


if __name__ == "__main__":
    main()
