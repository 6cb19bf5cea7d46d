"""Fixtures that several test files share."""

import os
from pathlib import Path

# Before SciPy is imported: scikit-learn's checks of array API input ask for it.
os.environ["SCIPY_ARRAY_API"] = "1"
# No test tells MLflow's makers that it ran.
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
# Before numba is imported: one cache of compiled kernels for every test run.
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(__file__).resolve().parent / ".cache" / "numba"))

import functools
import gc
import importlib
import shutil
import sqlite3

import hypothesis
import numpy as np
import pytest

import hushtable
from cli_fixtures import old, refused, run, site  # noqa: F401 # of commands, for all packages
from hushtable import kernels
from hushtable.errors import in_shell
from hushtable.kernels import _built
from hushtable.kernels._plain import PLAIN
from postgres_server import postgres  # noqa: F401

# The first example of a run may compile a kernel, which no deadline should judge. The examples are
# the same everywhere and each time, so that a test that turns red does so because of a change.
everyday = hypothesis.settings(deadline=None, max_examples=15, derandomize=True, database=None)
hypothesis.settings.register_profile("everyday", everyday)
hypothesis.settings.register_profile("nightly", everyday, max_examples=200)
# For mutation testing: that a test fails is all that counts, not the smallest example of it.
hypothesis.settings.register_profile(
    "mutants",
    everyday,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
    report_multiple_bugs=False,
)
hypothesis.settings.load_profile("everyday")


class _Hasty(sqlite3.Connection):
    """SQLite that does not wait for the disk."""

    def execute(self, statement, *values):
        """Run a statement, but the one that asks to wait."""
        waits = statement.startswith("pragma synchronous")
        return super().execute("pragma synchronous = off" if waits else statement, *values)


# No power is lost here, and a disk that others use takes longer than the tests. What has to be
# on the disk when, tests/hardening/faults looks at, in processes of their own.
os.fsync = lambda descriptor: None
sqlite3.connect = functools.partial(sqlite3.connect, factory=_Hasty)


# Nothing that collecting makes is garbage: looking for some takes seconds.
gc.disable()


def pytest_collection_finish():
    """Spare the collector thousands of tests and all modules, which stay to the end."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure():
    """Let the modules go as ever: some complain of what is left of them."""
    gc.unfreeze()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session, exitstatus):
    """State at the very end that a run was interrupted, because its counts look like success."""
    result = yield
    if exitstatus == pytest.ExitCode.INTERRUPTED and not hasattr(session.config, "workerinput"):
        message = "The run was interrupted: not every test ran."
        session.config.get_terminal_writer().line(message, red=True)
    return result


@pytest.fixture
def rng():
    return np.random.default_rng(20_260_101)


@pytest.fixture
def X(rng):
    """500 rows of 4 features, row 0 far out."""
    X = rng.normal(size=(500, 4))
    X[0] = 8.0
    return X


@pytest.fixture
def package(tmp_path):
    """Return a folder with a copy of the core package, which a test may change."""
    folder = tmp_path / "lib"
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(hushtable.__file__).parent, folder / "hushtable", ignore=ignore)
    return folder


@pytest.fixture(scope="session")
def data_dir():
    """Folder of labelled sets, where the environment names one."""
    folder = os.environ.get("HUSHTABLE_DATA")
    if not folder:
        pytest.skip("HUSHTABLE_DATA is not set: no labelled data here")
    return Path(folder)


def _builds():
    """Return the builds; compiling, and built kernels not taken here, are for the slow run."""
    taken = "compiled"
    if os.environ.get("HUSHTABLE_JIT") != "1":
        at_hand = (level for level in _built.levels_at_hand() if _built.path_of(level).is_file())
        taken = next(at_hand, taken)
    return [
        pytest.param(level, marks=[pytest.mark.slow] * (level not in (taken, "plain")))
        for level in ("plain", "compiled", *_built.levels_here())
    ]


@pytest.fixture(scope="module", params=_builds())
def each_build(request):
    """Run the tests of a module with plain kernels, with compiled ones, and with built ones."""
    level = request.param
    if level in _built.levels_here():
        if level not in _built.levels_at_hand():
            pytest.skip(f"this processor is no {level}")
        if not _built.path_of(level).is_file():
            pytest.skip("the kernels are not built here: make kernels")
    with pytest.MonkeyPatch.context() as patch:
        for home, names in kernels._BUILT.items():
            module = importlib.import_module(f"hushtable.kernels.{home}")
            for name in names:
                if level == "plain":
                    kernel = PLAIN.get(name, getattr(kernels, name))
                elif level == "compiled":
                    kernel = getattr(module, name)
                else:
                    kernel = _built.Kernel(_built.library(level), name, _not_built(name))
                patch.setattr(kernels, name, kernel)
        yield level


def _not_built(name):
    def compiled():
        raise AssertionError(f"{name} was not built for these arguments")

    return compiled


@pytest.fixture
def shell():
    """Let messages name the options of commands, as they do there."""
    with in_shell():
        yield
