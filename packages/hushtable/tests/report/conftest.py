"""Reports of each kind, from rows whose features have names that no one should trust."""

import numpy as np
import pyarrow as pa
import pytest

from hushtable import Feature, Plan, Schema, Sketch
from hushtable.data.readers import as_reader
from hushtable.report.content import RowsToShow, Subject, gather, score_rows, sites_of_parts
from hushtable.scores.scorer import Scorer
from report_helpers import EVIL


@pytest.fixture(scope="session")
def X():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    X[7], X[:20, 1], X[20:30, 0] = 8.125, np.nan, 20.0
    return X


@pytest.fixture(scope="session")
def schema():
    features = [Feature.numeric(EVIL, low=-9, high=9, unit="<b>bits</b>")]
    features += [Feature.numeric(f"x{j}", low=-9, high=9) for j in (1, 2)]
    return Schema(features)


@pytest.fixture(scope="session")
def sketch(schema, X):
    return Sketch.from_data(Plan.draw(schema, random_state=0, n_tables=20), X)


@pytest.fixture(scope="session")
def releases(schema, X):
    plan = Plan.draw(schema, epsilon=2.0, expected_rows=600, sites=2, random_state=0)
    return {
        f"<i>{name}</i>": Sketch.from_data(plan, rows).release(epsilon=2.0)
        for name, rows in (("north", X[:400]), ("south", X[400:]))
    }


def scored(counts, X, n_shown=0, values=False, kept=None, **options):
    scorer = Scorer(counts)
    offset = scorer.auto_offset()
    names, rows = (), X
    if kept is not None:
        features = dict(zip(counts.plan.schema.names, X.T, strict=True))
        names, rows = tuple(kept.column_names), pa.table(features | dict(kept.to_pydict()))
    shown = RowsToShow(n_shown, values, names)
    return offset, score_rows(scorer, offset, as_reader(rows), shown=shown, **options)


@pytest.fixture(scope="session")
def score_them():
    return scored


@pytest.fixture(scope="session")
def of_rows(sketch, X):
    """Return reports of a sketch and its rows, by options of `score_rows`."""

    def of_rows(**options):
        offset, scores = scored(sketch, X, **options)
        return gather(Subject("a.hush", "sketch", sketch, "1 kB"), threshold=offset, scores=scores)

    return of_rows


@pytest.fixture(scope="session")
def of_release(releases):
    """Return the report of a merged release and its parts, without rows."""
    total = sum(list(releases.values())[1:], start=next(iter(releases.values())))
    model = Subject("all.hush", "release", total, "2 kB")
    threshold = Scorer(total).auto_offset()
    sites = sites_of_parts(releases, total, model.name)
    return gather(model, threshold=threshold, sites=sites)


@pytest.fixture(scope="session")
def of_everything(releases, X):
    """Return the report with every section, and single rows."""
    total = sum(list(releases.values())[1:], start=next(iter(releases.values())))
    model = Subject("all.hush", "release", total, "2 kB")
    offset, scores = scored(total, X, n_shown=5)
    sites = sites_of_parts(releases, total, model.name)
    return gather(model, threshold=offset, scores=scores, sites=sites)


@pytest.fixture(scope="session")
def kept(X):
    """Columns of the rows beside the features: numbers and texts that no one should trust."""
    ward = np.array([EVIL, "north", None], object)[np.arange(len(X)) % 3]
    return pa.table({"nr": [f"{i:04}" for i in range(len(X))], "ward": ward})


@pytest.fixture(scope="session")
def of_values(of_rows, kept):
    """Return the report of three rows with ids, a further column, and values."""
    return of_rows(n_shown=3, values=True, kept=kept)


@pytest.fixture(scope="session")
def marginals(schema, X):
    features = [*schema.features, Feature.categorical("ward", ["$a$", "<i>b</i>"])]
    plan = Plan.marginals(Schema(features), epsilon=2.0, expected_rows=600)
    ward = np.array(["$a$", "<i>b</i>", None, "west"], object)[np.arange(len(X)) % 4]
    rows = np.column_stack([X.astype(object), ward])
    return Sketch.from_data(plan, rows).release(epsilon=2.0)


@pytest.fixture(scope="session")
def of_marginals(marginals):
    """Return the report of released marginals."""
    return gather(Subject("m.hush", "release", marginals, "1 kB"))
