"""``hushtable bench attacks``: each attack by itself, and the whole way."""

import dataclasses

import numpy as np
import pytest

from hushtable import Plan, Sketch
from hushtable.cli import main
from hushtable_bench import attacks
from hushtable_bench.data import LabelledSet
from hushtable_bench.systems.bounds import Outcome

#: A correct release fails a test at this confidence once in ten million runs.
SURE = 1 - 1e-7


@pytest.fixture(scope="module")
def labelled():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 6)), np.zeros(300, bool)
    X[:20], y[:20] = rng.uniform(6, 9, size=(20, 6)), True
    return LabelledSet("made-up", X, y)


@pytest.fixture(scope="module")
def scene(labelled):
    return attacks.Scene(labelled)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (at % 3 > 0))
        for at, name in enumerate(attacks.ATTACKS)
    ],
)
def test_an_attack_works_on_exact_counts_and_not_on_a_release(name, scene, monkeypatch):
    attack = attacks.ATTACKS[name]
    monkeypatch.setattr(attacks, "CONFIDENCE", SURE)
    assert attack(scene, None, 40).auc > 0.99
    finding = attack(scene, 4.0, 40)
    assert finding.epsilon == 4.0
    assert not finding.rejects, finding.words()


@pytest.mark.slow
def test_the_same_noise_in_two_rounds_is_found_out(scene):
    *_, last = attacks.outcomes(scene, (), 100)
    assert (last.attack, last.epsilon) == (attacks.PLANTED, 1.0)
    assert last.finding.rejects
    assert len(list(attacks.outcomes(scene, (), 2))) == attacks.n_outcomes(())


def test_two_rounds_share_one_epsilon(scene):
    """What the attacks on two rounds are held to is what the ledger of the second states."""
    pair = scene.pair(scene.plan())
    first = attacks._release(pair[False], 1.0, share=0.5)
    second = attacks._release(pair[True], 1.0, after=first)
    assert second.ledger.epsilon <= 1.0
    assert first.ledger.epsilon < 0.8
    assert pair[True].n_rows == pair[False].n_rows + 1


@pytest.mark.slow
def test_attacks_are_as_good_as_the_noise_allows(scene, monkeypatch):
    """A weak attack would show nothing: each gets what the likelihood ratio gets, to chance."""
    monkeypatch.setattr(attacks, "CONFIDENCE", SURE)
    for name, attack in attacks.ATTACKS.items():
        if "canaries" in name or "joins" in name:  # those leave something unused
            continue
        one = attacks.AttackOutcome(name, 4.0, attack(scene, 4.0, 600))
        # 5.3 standard errors either way: once in ten million runs.
        assert abs(one.above_best) < 5.3, (name, one.finding.auc, one.best)


def test_a_half_is_solved_for_exactly_without_noise(labelled):
    """And with noise, the attack is held by epsilon."""
    found = [one for trial in attacks.attack(labelled, (1.0,), 2) for one in trial]
    raw = [one for one in found if one.epsilon is None]
    noised = [one for one in found if one.epsilon == 1.0]
    assert len(raw) == len(noised) == 2
    assert min(one.auc for one in raw) > 0.99
    # The best area is .56 here, and a half has a standard error of .033.
    assert max(one.auc for one in noised) < 0.75
    assert "no noise" in str(attacks.membership_table(found))
    verdicts = {t.claim: t.met for t in attacks.membership_targets(raw + noised)}
    assert verdicts["membership, made-up, no noise: AUC"]
    weak = [dataclasses.replace(raw[0], auc=0.6), dataclasses.replace(noised[0], lower_bound=1.1)]
    assert [t.met for t in attacks.membership_targets(weak)] == [False, False]


def test_solving_agrees_with_the_formula(labelled):
    """One row in, by a dense solve of the same equations."""
    plan = Plan.draw(labelled.schema(), random_state=0, n_tables=10)
    X = labelled.X[:40]
    solver = attacks.Solver(plan, X)
    A = solver.incidence.toarray()
    assert (A.sum(axis=1) == 10).all()
    counts = Sketch.from_data(plan, X[:15]).counts
    np.testing.assert_array_equal(A[:15].sum(axis=0), counts)
    sd = 3.0
    expected = np.linalg.solve(A @ A.T + 4 * sd**2 * np.eye(40), A @ (counts - A.sum(axis=0) / 2))
    np.testing.assert_allclose(solver.scores(counts, sd), expected, atol=1e-10)


def test_targets_judge_what_was_found():
    def outcome(name, epsilon, bound, auc):
        finding = Outcome("a", epsilon or 0.0, 1e-6, bound, 0.999, 600, 0.0, auc)
        return attacks.AttackOutcome(name, epsilon, finding)

    found = [
        outcome("strong", None, 3.0, 1.0),
        outcome("strong", 1.0, 0.9, 0.57),
        outcome("weak", None, 0.5, 0.7),
        outcome("weak", 4.0, 4.1, 0.9),
        outcome(attacks.PLANTED, 1.0, 0.8, 0.6),
    ]
    verdicts = [t.met for t in attacks.targets(found)]
    assert verdicts == [True, True, True, False, False, False, False]
    assert "rejected" in str(attacks.table(found))


@pytest.mark.slow
def test_the_whole_way(labelled, tmp_path, capsys):
    folder = tmp_path / "sets"
    folder.mkdir()
    np.savez(folder / "4_breastw.npz", X=labelled.X, y=labelled.y)
    arguments = ["bench", "attacks", "--quick", "--data", str(folder)]
    assert main([*arguments, "-o", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    for heading in ("# Attacks", "# Membership", "Must show"):
        assert heading in out
    assert "FAIL" not in out
    table, membership = (
        (tmp_path / "out" / f"attacks{suffix}.csv").read_text("utf-8") for suffix in ("", "-2")
    )
    assert membership.startswith('"set, total epsilon"')
    assert all(name.split(",")[0] in table for name in (*attacks.ATTACKS, attacks.PLANTED))
    assert not (tmp_path / "out" / "privacy.csv").exists()
