"""How detectors become scikit-learn estimators without importing scikit-learn early.

Importing ``sklearn.base`` takes more than a second, because it imports scipy.stats, pandas and
joblib; fitting and scoring rows needs none of them. The class of all detectors therefore starts
with `LightBase`, and replaces it with scikit-learn's own base as soon as ``sklearn.base`` is
imported: by the user, by another library, or by a detector when someone uses an attribute that only
that base has. Code that checks whether a detector is an estimator can only run later than that.
"""

import difflib
import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Self

_SKLEARN = "sklearn.base"


def import_sklearn() -> ModuleType:
    """Import scikit-learn's base, which the detectors have from then on; return it."""
    return importlib.import_module(_SKLEARN)


class _OfSklearn:
    """An attribute of scikit-learn's base: reading it imports that base."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, detector: object, owner: type) -> Any:
        import_sklearn()  # from now on, lookups no longer find this descriptor
        return getattr(owner if detector is None else detector, self._name)


class LightBase:
    """Placeholder for ``BaseEstimator`` and ``OutlierMixin`` until they are imported."""

    __dir__: Any = _OfSklearn()
    __repr__: Any = _OfSklearn()
    _repr_html_ = _OfSklearn()
    _repr_mimebundle_ = _OfSklearn()
    get_metadata_routing = _OfSklearn()
    set_fit_request = _OfSklearn()

    @classmethod
    def _get_param_names(cls) -> list[str]:
        parameters = inspect.signature(cls.__init__).parameters
        return sorted(parameters.keys() - {"self"})

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; ``deep`` has no effect, as none is an estimator."""
        return {name: getattr(self, name) for name in self._get_param_names()}

    def set_params(self, **params: object) -> Self:
        """Set parameters by name."""
        if not params.keys() <= {*self._get_param_names()}:
            import_sklearn()  # whose error message says what is wrong
            return self.set_params(**params)
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def fit_predict(self: Any, X: Any, y: object = None, **kwargs: Any) -> Any:
        """Fit the detector to rows; return -1 for outliers among them and 1 for inliers."""
        return self.fit(X, **kwargs).predict(X)


def join_sklearn(cls: object) -> None:
    """Replace `LightBase` by scikit-learn's base in a class, once that base is imported."""
    after = _AfterImport(_SKLEARN, functools.partial(_join, cls))
    sys.meta_path.insert(0, after)
    if "sklearn" in sys.modules:  # or another thread is importing it, and may be past our finder
        after.finish(import_sklearn())


def _join(cls: Any, base: ModuleType) -> None:
    cls.__bases__ = (base.OutlierMixin, base.BaseEstimator)
    for kind in _and_subclasses(cls):
        super(cls, kind).__init_subclass__()  # which adds set_fit_request


def _and_subclasses(cls: Any) -> list[Any]:
    return [cls, *(kind for below in cls.__subclasses__() for kind in _and_subclasses(below))]


class _AfterImport(MetaPathFinder, Loader):
    """Calls ``then`` with a module once it is imported; until then it wraps the loader."""

    def __init__(self, name: str, then: Callable[[ModuleType], None]) -> None:
        self._name, self._then = name, then
        self._loader: Any = None

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._name:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        specs = (finder.find_spec(name, path, target) for finder in others)
        spec = next((found_spec for found_spec in specs if found_spec is not None), None)
        if spec is not None:
            self._loader, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        self.finish(module)

    def finish(self, module: ModuleType) -> None:
        """Call ``then``, unless it was called already."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
            self._then(module)


#: Parameters of other libraries' detectors, by the parameter that means the same here.
_ELSEWHERE = {
    "n_tables": ("n_estimators", "n_trees", "n_hash", "n_bins", "num_trees"),
    "max_rows": ("max_samples", "subsample", "sample_size"),
    "context": ("group", "groups", "by"),
    "contamination": ("nu", "outlier_fraction", "threshold"),
    "n_jobs": ("n_threads", "nthread", "num_threads"),
    "random_state": ("seed", "random_seed"),
}


def suggesting(init: Callable[..., None]) -> Callable[..., None]:
    """Return a constructor whose error about an unknown parameter proposes the right one."""
    known = [name for name in inspect.signature(init).parameters if name != "self"]

    @functools.wraps(init)
    def checked(self: object, *args: object, **kwargs: object) -> None:
        for name in kwargs:
            if name not in known:
                mine = type(self).__name__
                words = f"{mine} has no parameter {name!r}: its parameters are {', '.join(known)}"
                near = [parameter for parameter, others in _ELSEWHERE.items() if name in others]
                near = [parameter for parameter in near if parameter in known]
                if near := near or difflib.get_close_matches(name, known, n=1):
                    words += f". Did you mean {near[0]}?"
                raise TypeError(words)
        init(self, *args, **kwargs)

    return checked


def check_fitted(detector: object) -> None:
    """Raise scikit-learn's `NotFittedError` if a detector is not fitted."""
    if not hasattr(detector, "plan_"):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(detector)
