"""The estimators by the names of their draws in plans."""

from hushtable import detectors
from hushtable.detectors._base import TableDetector
from hushtable.plans.draws import DRAWS

BY_DRAW: dict[str, type[TableDetector]] = {
    name: getattr(detectors, draw.estimator) for name, draw in DRAWS.items() if draw.estimator
}
