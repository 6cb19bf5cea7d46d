"""A model that is loaded once and answers request after request: the same words everywhere.

MLflow's flavour is a module of its own, with the extra ``mlflow``. May import `detectors` and what
lies below; tested in ``tests/serving``. Names load on first use.
"""

from typing import TYPE_CHECKING

from hushtable.lazy import exports

if TYPE_CHECKING:
    from hushtable_connect.serving.served import Served

__all__ = ["Served"]

__getattr__, __dir__ = exports(__name__, {"Served": "served"})
