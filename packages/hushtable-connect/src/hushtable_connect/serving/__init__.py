"""A model that is loaded once and answers many requests, with the same results everywhere.

MLflow's flavour is a separate module, with the extra ``mlflow``. May import `detectors` and the
layers below it; tested in ``tests/serving``. Names load on first use.
"""

from typing import TYPE_CHECKING

from hushtable.lazy import exports

if TYPE_CHECKING:
    from hushtable_connect.serving.served import Served

__all__ = ["Served"]

__getattr__, __dir__ = exports(__name__, {"Served": "served"})
