"""Relations between columns in a release: found by counts of pairs, with their own noise."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from hushtable import Feature, HushTable, Plan, Release, Schema, Sketch, load
from hushtable.cli import main
from hushtable.counts.rounds import relations
from hushtable.data.residuals import Relations
from hushtable.errors import PlanError, PrivacyError, UsageError
from hushtable.plans.draws import Purpose

TERMS = {"epsilon": 1.0, "delta": 1e-6, "expected_rows": 6000}
#: A correct release fails a test at this confidence once in ten million runs.
SURE = 1 - 1e-7


def bound(n=6000, d=14, factors=3, seed=0):
    """Rows of d columns that follow from three factors; in 1%, two columns have another row's."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, factors)) @ rng.normal(size=(factors, d))
    X += 0.15 * rng.normal(size=(n, d))
    odd = rng.choice(n, n // 100, replace=False)
    for i in odd:
        for j in rng.choice(d, 2, replace=False):
            X[i, j] = X[rng.integers(n), j]
    return X, np.isin(np.arange(n), odd)


def public(d=14):
    features = [Feature.numeric(f"x{j}", low=-12, high=12) for j in range(d)]
    return Schema(tuple(features), named=False)


def released(X, schema, **terms):
    """Release marginals, pairs and tables of rows under one budget; return all three."""
    terms = TERMS | terms
    budget = terms["epsilon"], terms["delta"]
    marginals = Sketch.from_data(Plan.marginals(schema, **terms), X).release(*budget)
    pairs = Sketch.from_data(relations(marginals), X).release(*budget)
    plan = Plan.draw(pairs.relations(marginals), random_state=0, **terms)
    return marginals, pairs, Sketch.from_data(plan, X).release(*budget)


@pytest.fixture(scope="module")
def rounds():
    X, _ = bound()
    return X, *released(X, public())


def test_relations_are_found_at_epsilon_1():
    """Six thousand rows of 14 columns, all three releases within epsilon 1."""
    figures = []
    for seed in range(4):
        X, planted = bound(seed=seed)
        marginals, _, tables = released(X, public())
        plain = Plan.draw(public(), marginals=marginals, random_state=0, **TERMS)
        plain = Sketch.from_data(plain, X).release(1.0, 1e-6)
        for release in (tables, plain):
            low = -HushTable.from_counts(release).score_samples(X)
            figures += [roc_auc_score(planted, low), average_precision_score(planted, low)]
    auc, ap, plain_auc, plain_ap = np.reshape(figures, (4, 4)).mean(axis=0)
    print(
        f"\nrelations at epsilon 1: {auc:.3f} / {ap:.3f}, without {plain_auc:.3f} / {plain_ap:.3f}"
    )
    assert auc >= 0.96
    assert ap >= 0.80
    assert plain_ap < 0.1


def test_all_rounds_share_one_budget(rounds):
    _, marginals, pairs, tables = rounds
    assert [spent.what for spent in pairs.ledger.behind_plan] == ["marginals"]
    assert [spent.what for spent in tables.ledger.behind_plan] == ["marginals", "relations"]
    assert marginals.ledger.epsilon < pairs.ledger.epsilon < tables.ledger.epsilon <= 1.0
    assert tables.ledger.epsilon > 0.99
    own = [release.ledger.own.rho for release in (marginals, pairs, tables)]
    np.testing.assert_allclose(np.array(own) / sum(own), [0.1, 0.3, 0.6], atol=0.01)


def test_a_person_is_in_one_cell_of_each_pair(rounds):
    """Whatever the row: missing, beyond the range, in front or behind."""
    X, _, pairs, _ = rounds
    plan = pairs.plan
    assert (plan.purpose, plan.data_dependent) == (Purpose.RELATIONS, False)
    assert plan.family.n_tables == pairs.ledger.sensitivity.tables == 14 * 13 // 2
    rows = np.vstack([X[:3], np.full(14, np.nan), np.full(14, 99.0), np.full(14, -12.0)])
    one = Sketch.from_data(plan, X[:50]).counts
    for row in rows:
        more = Sketch.from_data(plan, np.vstack([X[:50], row])).counts - one
        assert (more.reshape(-1, 4).sum(axis=1) == 1).all()
        assert set(more.tolist()) == {0, 1}


def test_the_audit_stands_and_finds_less_noise(rounds):
    audit = pytest.importorskip("hushtable_bench.systems.audit", reason="needs hushtable-bench")
    X, marginals, pairs, _ = rounds
    plan, scale = pairs.plan, pairs.ledger.shares[0].scale
    claim = {"epsilon": 0.5, "delta": 1e-6, "confidence": SURE}
    rows = np.vstack([np.full(14, 12.0), np.full(14, -12.0)])

    def publish(rows):
        return Sketch.from_data(plan, rows).release(1.0, 1e-6, share=0.2, after=marginals)

    found = audit.audit_neighbours(
        publish, X[:200], rows[:1], trials=60, **claim | {"epsilon": 1.0}
    )
    assert not found.rejects, found.words()

    def exact(rows):
        sketch = Sketch.from_data(plan, rows)
        return Release(plan, sketch.counts, pairs.ledger)

    assert scale > 1.0
    found = audit.audit_neighbours(exact, X[:200], rows[:1], trials=60, **claim)
    assert found.rejects


def test_relations_are_those_of_the_rows():
    """From many rows with little noise, the residuals are those of exact relations."""
    X, _ = bound(n=60_000, d=5)
    marginals, pairs, _ = released(X, public(5), epsilon=20.0, expected_rows=60_000)
    found = pairs.relations(marginals).relations
    exact = HushTable(relations=True, random_state=0).fit(X).plan_.schema.relations
    a, b = found.residuals(X), exact.residuals(X)
    for j in range(5):
        assert np.corrcoef(a[:, j], b[:, j])[0, 1] > 0.9
    assert isinstance(found, Relations)
    assert (found.low < 0).all()
    assert (found.high > 0).all()


def test_two_sites_add_up_to_one(rounds):
    X, marginals, pairs, _ = rounds
    north, south = (Sketch.from_data(pairs.plan, part) for part in (X[:2500], X[2500:]))
    whole = Sketch.from_data(pairs.plan, X)
    np.testing.assert_array_equal((north + south).counts, whole.counts)
    both = north.release(1.0, 1e-6) + south.release(1.0, 1e-6)
    assert both.relations(marginals).relations is not None


def test_words_and_files_have_them(rounds, tmp_path):
    X, _, _, tables = rounds
    tables.save(tmp_path / "tables.hush")
    again = load(tmp_path / "tables.hush")
    model, loaded = HushTable.from_counts(tables), HushTable.from_counts(again)
    np.testing.assert_array_equal(loaded.score_samples(X[:50]), model.score_samples(X[:50]))
    words = " ".join(model.outliers(X, n=20)["words"].to_pylist())
    assert "it would be" in words


def test_columns_of_one_value_and_texts_are_left_as_they_are():
    X, _ = bound(n=3000, d=3)
    rng = np.random.default_rng(1)
    features = [*public(3).features, Feature.categorical("kind", ["a", "b"]),
                Feature.numeric("spike", low=0, high=1)]  # fmt: skip
    schema = Schema(tuple(features))
    table = {f"x{j}": X[:, j] for j in range(3)}
    table |= {
        "kind": rng.choice(["a", "b"], 3000),
        "spike": np.where(rng.random(3000) < 0.01, 1.0, 0.0),
    }
    marginals, pairs, tables = released(
        pd.DataFrame(table), schema, epsilon=5.0, expected_rows=3000
    )
    found = pairs.relations(marginals).relations
    assert found.columns == (0, 1, 2, 4)
    off = found.weights - np.diag(np.diag(found.weights))
    assert np.abs(off[3]).max() + np.abs(off[:, 3]).max() < 0.2  # nearly all rows have one value
    assert np.isfinite(HushTable.from_counts(tables).score_samples(pd.DataFrame(table))).all()


def test_what_cannot_be_is_refused(rounds):
    X, marginals, pairs, tables = rounds
    with pytest.raises(UsageError, match="has no relations"):
        tables.relations(marginals)
    with pytest.raises(PlanError, match="are not marginals"):
        relations(pairs)
    other = Sketch.from_data(Plan.marginals(public(), **TERMS), X[:3000]).release(1.0, 1e-6)
    with pytest.raises(PlanError, match="other marginals"):
        pairs.relations(other)
    exact = Sketch.from_data(Plan.marginals(public()), X)
    with pytest.raises(PrivacyError):
        Sketch.from_data(relations(exact), X).release(1.0, 1e-6)
    for d in (1, 101):
        few = Sketch.from_data(Plan.marginals(public(d)), np.zeros((9, d)))
        with pytest.raises(UsageError, match=f"{d} columns of numbers that vary"):
            relations(few)
    too_few = Sketch.from_data(pairs.plan, X[:60]).release(1.0, 1e-6)
    with pytest.raises(PrivacyError, match="too few for the relations of 14 columns"):
        too_few.relations(marginals)
    unpaid = pairs.relations(marginals).to_dict() | {"paid": []}
    with pytest.raises(PlanError, match="not public"):
        Schema.from_dict(unpaid)


def test_the_commands(tmp_path, capsys):
    X, planted = bound()
    folder = str(tmp_path) + "/"
    np.savetxt(folder + "rows.csv", X, delimiter=",", header=",".join(f"x{j}" for j in range(14)),
               comments="")  # fmt: skip
    (tmp_path / "schema.toml").write_text(
        "".join(
            f'[[feature]]\nname = "x{j}"\nkind = "numeric"\nlow = -12\nhigh = 12\n'
            for j in range(14)
        )
    )
    budget = ["--epsilon", "1", "--expected-rows", "6000"]

    def run(*arguments):
        assert main([*arguments]) == 0, capsys.readouterr().err

    def count(plan, name):
        run("sketch", folder + "rows.csv", "--plan", folder + plan, "-o", folder + "sketch.hush")
        run("release", folder + "sketch.hush", "--epsilon", "1", "-o", folder + name)

    schema = Schema.from_toml(folder + "schema.toml")
    plan = Plan.marginals(schema, epsilon=1.0, expected_rows=6_000)
    plan.save(folder + "m.plan.hush")
    count("m.plan.hush", "m.hush")
    relations(load(folder + "m.hush")).save(folder + "r.plan.hush")
    count("r.plan.hush", "r.hush")
    draw = [
        "plan",
        "draw",
        folder + "schema.toml",
        *budget,
        "-o",
        folder + "plan.hush",
        "--seed",
        "0",
    ]
    assert main([*draw, "--relations", folder + "r.hush"]) == 2
    assert "--relations also needs --marginals" in capsys.readouterr().err
    run(*draw, "--relations", folder + "r.hush", "--marginals", folder + "m.hush")
    count("plan.hush", "all.hush")
    run("score", folder + "rows.csv", "--model", folder + "all.hush", "--contamination", "60",
        "-o", folder + "scores.csv")  # fmt: skip
    scores = np.genfromtxt(folder + "scores.csv", delimiter=",", skip_header=1, usecols=1)
    assert roc_auc_score(planted, -scores) > 0.95
    capsys.readouterr()
    run("inspect", folder + "all.hush")
    assert "relations" in capsys.readouterr().out
