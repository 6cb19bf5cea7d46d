"""Detectors take on scikit-learn's base when it is imported, and are used without it before."""

import importlib
import os
import subprocess
import sys

import pytest

from hushtable.detectors.estimator import _AfterImport

#: What a process does before anything of scikit-learn is imported.
BEFORE = """
import copy, pickle, sys
import numpy as np
from hushtable import HushTable, load

class Mine(HushTable):
    def __init__(self, extra=1):
        super().__init__(n_tables=20, random_state=0)
        self.extra = extra

X = np.random.default_rng(0).normal(size=(300, 3))
detector = HushTable(n_tables=20, random_state=0).fit(X)
"""


def run(code, *arguments):
    """Return what a process of its own prints, words by line."""
    done = subprocess.run(
        [sys.executable, "-c", BEFORE + code, *map(str, arguments)],
        capture_output=True, text=True, check=False,
        env=os.environ | {"HUSHTABLE_JIT": "0"},  # Numba imports SciPy when it compiles
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


USED = """
scores = detector.score_samples(X)
detector.save(sys.argv[1])
detector.learn(X[:4], [1, 1, 0, 0]).forget()
same = [load(sys.argv[1]), copy.deepcopy(detector), pickle.loads(pickle.dumps(detector))]
assert all((one.score_samples(X) == scores).all() for one in same)
assert set(HushTable(n_tables=20, random_state=0).fit_predict(X)) == {-1, 1}
assert not hasattr(HushTable(passes=2), "partial_fit") and HushTable().partial_fit
detector.explain(X); detector.predict(X); detector.standard_errors(X)
assert Mine(3).set_params(extra=4).get_params() == {"extra": 4}
print(*sorted({name.partition(".")[0] for name in sys.modules} & {"sklearn", "scipy", "pandas"}))
state = pickle.dumps(detector)
import sklearn.base
from sklearn.base import BaseEstimator, OutlierMixin, clone
again = pickle.loads(state)
assert (again.score_samples(X) == scores).all()
for one in (detector, again, Mine(2), clone(Mine(2))):
    assert isinstance(one, BaseEstimator) and isinstance(one, OutlierMixin)
    assert one.__sklearn_tags__().estimator_type == "outlier_detector"
    assert callable(one.set_fit_request)
assert clone(Mine(2)).extra == 2
assert not [one for one in sys.meta_path if type(one).__module__.startswith("hushtable")]
loader = sklearn.base.__loader__
print(sklearn.base.__spec__.loader is loader, type(loader).__name__)
print(*[one.__name__ for one in Mine.__mro__])
"""


def test_a_detector_is_used_without_scikit_learn_and_is_an_estimator_with_it(tmp_path):
    imported, loader, order = run(USED, tmp_path / "model.hush")
    assert imported == ""
    assert loader == "True SourceFileLoader"
    # The same as where scikit-learn is imported first.
    first = "import sklearn.base\n" + BEFORE + "print(*[one.__name__ for one in Mine.__mro__])"
    done = subprocess.run([sys.executable, "-c", first], capture_output=True, text=True, check=True)
    assert order == done.stdout.strip()
    assert "LightBase" not in order


ASKED = {
    "repr": "print(repr(detector))",
    "html": "print('n_tables' in detector._repr_mimebundle_()['text/html'])",
    "dir": "print('get_metadata_routing' in dir(detector))",
    "request": "print(HushTable.set_fit_request.__doc__, Mine().set_fit_request.__name__)",
    "routing": "print(detector.get_metadata_routing())",
    "tags": "print(detector.__sklearn_tags__().input_tags.allow_nan)",
    "wrong": "\ntry: detector.set_params(depth=3)\nexcept ValueError as error: print(error)",
    "unfitted": """
try: HushTable().predict(X)
except Exception as error: print(type(error).__module__, error)
""",
    "absent": """
try: HushTable(passes=2).partial_fit(X)
except AttributeError as error: print(error)
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_what_only_scikit_learns_base_has_is_as_if_it_had_been_imported_first(asked):
    assert run(asked) == run(f"import sklearn.base\n{asked}") != []


THREADS = """
import threading
from concurrent.futures import ThreadPoolExecutor
ready = threading.Barrier(5)
def score():
    ready.wait()
    return [detector.score_samples(X[:3]).sum() for _ in range(300)]
def join():
    ready.wait()
    from sklearn.base import BaseEstimator
    return isinstance(detector, BaseEstimator)
with ThreadPoolExecutor(5) as pool:
    scoring = [pool.submit(score) for _ in range(3)]
    joining = [pool.submit(join) for _ in range(2)]
print(len({score for one in scoring for score in one.result()}), *[one.result() for one in joining])
"""


@pytest.mark.slow
def test_threads_score_while_another_imports_scikit_learn():
    assert run(THREADS) == ["1 True True"]


def test_a_module_that_failed_to_import_is_joined_when_it_succeeds(tmp_path, monkeypatch):
    (tmp_path / "toy_late.py").write_text("import toy_sooner\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = []
    after = _AfterImport("toy_late", found.append)
    monkeypatch.setattr(sys, "meta_path", [after, *sys.meta_path])
    with pytest.raises(ModuleNotFoundError, match="toy_sooner"):
        importlib.import_module("toy_late")
    assert found == []
    assert after in sys.meta_path
    monkeypatch.setitem(sys.modules, "toy_sooner", sys)
    module = importlib.import_module("toy_late")
    monkeypatch.delitem(sys.modules, "toy_late")
    assert found == [module]
    assert after not in sys.meta_path
    assert module.__spec__.loader is module.__loader__ is not after
