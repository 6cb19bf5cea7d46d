"""Promises of accuracy, made for two collections of sets and held in one run."""

import math
from collections.abc import Sequence

from hushtable_bench.adbench.compare import Comparison
from hushtable_bench.adbench.known import collection, sets_published
from hushtable_bench.adbench.runs import DEFAULT, MANY, NOVELTY
from hushtable_bench.tables import Target

#: Mean ROC-AUC and mean average precision at least, by protocol and collection.
LEAST = {
    ("unsupervised", "data"): {DEFAULT: (0.808, 0.447), MANY: (0.80, 0.45)},
    ("unsupervised", "data-odd"): {DEFAULT: (0.758, 0.283)},
    ("novelty", "data"): {NOVELTY: (0.860, 0.685)},
}
_KNN = ("KNN", "KNN, min-max")
#: How far ahead of the best of some peers, in ROC-AUC and AP.
AHEAD = {
    ("unsupervised", "data"): (("iForest",), (0.0, 0.0)),
    ("unsupervised", "data-odd"): (("iForest",), (0.008, 0.02)),
    ("novelty", "data-odd"): (_KNN, (-0.01, 0.0)),
}
#: Where no peer of these may be better by more than chance.
LEVEL = {("novelty", "data"): _KNN}
_LABELS = ("mean ROC-AUC", "mean AP")


def targets(protocol: str, auc: Comparison, ap: Comparison) -> list[Target]:
    """Hold HushTable to its promises; there are none for other sets.

    Under novelty, sets of the first collection without published figures do not count.
    """
    case = (protocol, collection(auc.sets) or "")
    if case == ("novelty", "data"):
        auc, ap = (one.only(sets_published(one.sets)) for one in (auc, ap))
    found = []
    for at, (metric, label) in enumerate(zip((auc, ap), _LABELS, strict=True)):
        means = dict(zip(metric.systems, metric.means().tolist(), strict=True))
        for system, least in LEAST.get(case, {}).items():
            measured = means.get(system, math.nan)  # a detector that is not there keeps no promise
            found.append(Target(f"{system}: {label}", measured, ">=", least[at], ".5f"))
        ours = metric.systems[0]
        if case in AHEAD:
            peers, margins = AHEAD[case]
            claim, best = f"{ours}: {label} beyond {{}}'s", _best(means, peers)
            beyond, needs = means[ours] - means[best], ">" if margins[at] == 0 else ">="
            found.append(Target(claim.format(best), beyond, needs, margins[at], ".5f"))
        if case in LEVEL:
            best = _best(means, LEVEL[case])
            low = metric.intervals(ours)[best][1]
            claim = f"{best} beyond {ours}, {label}: lower end of the 95% interval"
            found.append(Target(claim, low, "<=", 0.0, ".5f"))
    return found


def _best(means: dict[str, float], peers: Sequence[str]) -> str:
    return max(peers, key=lambda name: means[name])
