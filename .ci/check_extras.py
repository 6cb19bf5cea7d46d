"""Install each extra alone in an empty environment and use it; check the base's dependencies.

    python .ci/check_extras.py dist [EXTRA ...]

The versions come from .ci/locks/: from the file with the extra's name if there is one (as for
Flower), else from dev.txt.
"""

import argparse
import os
import re
import subprocess
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCKS = ROOT / ".ci" / "locks"
UV = ROOT / ".venv-supply" / "bin" / "uv"
#: Dependencies of the package alone. No other runtime may be added to them.
BASE = {
    "charset-normalizer", "numba", "numpy", "platformdirs", "pyarrow", "python-calamine",
    "rfc8785", "rich", "safetensors", "scikit-learn", "scipy", "typer", "xlsxwriter",
}  # fmt: skip
#: Rows, for what follows.
ROWS = """
import numpy as np
from hushtable import Feature, HushTable, Plan, Schema, Sketch
X = np.random.default_rng(0).normal(size=(300, 2))
schema = Schema([Feature.numeric("a", low=-9, high=9), Feature.numeric("b", low=-9, high=9)])
plan = Plan.draw(schema, random_state=0)
detector = HushTable(n_tables=20, random_state=0).fit(X)
"""
RELEASE = ROWS + "Sketch.from_data(plan, X).release(epsilon=1.0, delta=1e-6)"
KEYS = RELEASE + "\nimport hushtable.cli as c\nc.main(['round', 'keygen', 'lead'])"
#: For each extra, a program that uses it.
USES: dict[str, str] = {
    "connect": ROWS + "from hushtable_connect.exports import export\nexport(detector, 'm.json')",
    "bench": "import hushtable_bench, matplotlib, pooch, pyod",
    "dask": "import dask.array, dask.dataframe, distributed, hushtable_connect.engines.dask",
    "databases": "import duckdb, adbc_driver_postgresql",
    "desk": "from hushtable_desk import Access, Desk, build_app\nbuild_app(Desk('.'), Access(1))",
    "federation": KEYS,
    "files": "import duckdb, pyreadstat, rdata, hushtable_connect.files.frames",
    "flower": "import hushtable_federation.flower",
    "keyring": "import keyring, hushtable_federation.credentials",
    "metrics": "import prometheus_client, hushtable_federation.reports",
    "mlflow": ROWS
    + "from hushtable_connect.serving import mlflow\nmlflow.save_model(detector, 'model')\n"
    "mlflow.load_model('model')",
    "nvflare": "import hushtable_federation.nvflare",
    "onnx": ROWS + "from hushtable_connect.exports import export\nexport(detector, 'm.onnx')",
    "private": RELEASE,
    "remote": "from hushtable import far\nprint(far.connect('memory://x'))",
    "sealed": "import sqlcipher3, hushtable_federation.at_rest",
    "report": ROWS + "detector.save('m.hush')\nnp.savetxt('x.csv', X, delimiter=',')\n"
    "import hushtable.cli as c\nc.main(['report', 'm.hush', '-o', 'r.html'])",
    "spark": "import hushtable_connect.engines.spark, pyspark, pandas",
    "vantage6": "import hushtable_federation.vantage6, vantage6.algorithm.client",
}


def run(*command: object, cwd: Path | None = None) -> None:
    """Run a command; show its output only if it fails."""
    words = [str(word) for word in command]
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(words[:8])}:\n{done.stdout}{done.stderr}")


def check(dist: Path, extra: str, folder: Path) -> None:
    """Install the package with one extra and nothing else, and use it."""
    env = folder / extra
    python = env / "bin" / "python"
    own = LOCKS / f"{extra}.txt"
    versions = ["--constraint", own if own.exists() else LOCKS / "dev.txt"]
    run(UV, "venv", "--quiet", env)
    [wheel] = dist.glob("hushtable-*-any.whl")
    install = [UV, "pip", "install", "--quiet", "--python", python, "--find-links", dist]
    run(*install, *versions, f"{wheel}[{extra}]")
    run(UV, "pip", "check", "--quiet", "--python", python)
    run(python, "-c", USES[extra], cwd=folder)
    print(f"{extra}: installs alone")


def main() -> None:
    """Check the named extras, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dist", type=Path, help="folder of all wheels")
    parser.add_argument("extras", nargs="*")
    given = parser.parse_args()
    project = tomllib.loads((ROOT / "packages/hushtable/pyproject.toml").read_text())["project"]
    base = {re.split(r"[^\w.-]", one)[0] for one in project["dependencies"]}
    if base != BASE:
        raise SystemExit(f"the package's own dependencies have changed: {sorted(base ^ BASE)}")
    extras = set(project["optional-dependencies"])
    if extras != set(USES):
        raise SystemExit(f"USES has no use for these extras: {sorted(extras ^ set(USES))}: add one")
    with tempfile.TemporaryDirectory() as folder:
        for extra in sorted(given.extras or extras):
            check(given.dist.resolve(), extra, Path(folder))


if __name__ == "__main__":
    main()
